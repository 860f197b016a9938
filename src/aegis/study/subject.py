"""Hold the subject of a study: a table or its summary, with the policy. It is read and summarised
only once.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from typing import Any

from aegis.advisor import PrivacyPlan, plan_of
from aegis.advisor.owner import check_front_rules, check_owner_rule
from aegis.advisor.plan import require_same
from aegis.errors import DataError, PolicyError
from aegis.files import BUNDLE
from aegis.policy import Policy, RuleOverride
from aegis.privacy import PrivacyRule
from aegis.progress import Progress
from aegis.sources import Source, open_table
from aegis.study.questions import AddedSummary
from aegis.summary import Summary
from aegis.summary.build import summarize_rows
from aegis.summary.builder import SAMPLE_ROWS
from aegis.summary.coded_rows import CodedRows
from aegis.summary.declared import declared_policy
from aegis.summary.narrow import narrow
from aegis.summary_formats import format_of_summary
from aegis.words import counted


@dataclass
class Subject:
    """A table, or only its summary, under one policy.

    Attributes
    ----------
    policy
        The roles, the candidate masks and the privacy rule.
    source
        The table; None if there is only a summary.
    exact
        Whether pairs of values are counted on all rows, not on a sample.
    seed
        Seed of all random draws.
    progress
        The object that shows the progress of long work.
    rule_override
        Whether the user accepts a rule that differs from the rule of the summary's owner.
    overridden
        How the policy's rule differs from the owner's rule; None if it does not differ.
    like
        The summary of another part of the same data, whose groups of values are reused.
    added
        The summary, if an installed package defines its format; else None.
    """

    policy: Policy
    source: Source | None
    exact: bool
    seed: int
    progress: Progress
    rule_override: bool = False
    overridden: RuleOverride | None = None
    like: Summary | None = None
    added: AddedSummary | None = None
    _counted: tuple[Summary, CodedRows | None] | None = None
    _plan: PrivacyPlan | None = None
    _lock: RLock = field(default_factory=RLock)

    @classmethod
    def of(
        cls,
        table: Any,
        policy: Policy | None,
        *,
        exact: bool,
        seed: int,
        progress: Progress,
        rule_override: bool = False,
        like: Summary | None = None,
    ) -> Subject:
        """Return the subject of a study for a table, for a summary, or for the path of either.
        `table` may also be a subject, which is returned. All other parameters are fields of the
        subject.

        Raises
        ------
        PolicyError
            The summary was made for another policy, or under another rule and `rule_override` is
            False; or a table is given without a policy.
        DataError
            The table cannot be opened.
        """
        if isinstance(table, Subject):
            return table
        added = format_of_summary(table)
        if added is not None:
            if policy is None:
                raise PolicyError(
                    f"What you gave {added.HOLDS}. Its policy is not in it.",
                    hint="Give the policy, too.",
                )
            opened = added.open_summary(table, policy, rule_override=rule_override)
            return cls(policy, None, exact, seed, progress, rule_override, added=opened)
        if isinstance(table, str | Path) and str(table).lower().endswith(BUNDLE):
            from aegis.summary import load_bundle

            table = load_bundle(table)
        if isinstance(table, Summary):
            policy = declared_policy(table) if policy is None else policy
            require_same(table, policy)
            override = check_owner_rule(table, policy.privacy, override=rule_override)
            return cls(
                policy, None, exact, seed, progress, rule_override, override, _counted=(table, None)
            )
        if policy is None:
            raise PolicyError(
                "A table needs a policy, which names its masks.",
                hint="Give the policy, or the table's summary (.aegis).",
            )
        source = open_table(table, reading=policy.reading)
        return cls(policy, source, exact, seed, progress, like=like)

    @property
    def summarised(self) -> Summary | None:
        """The summary of the table if it has already been made; None otherwise."""
        return None if self._counted is None else self._counted[0]

    @property
    def known(self) -> CodedRows | None:
        """The rows of the table as codes of their values. None if there are too many rows, or if
        the summary was not made here.
        """
        return None if self._counted is None else self._counted[1]

    @property
    def summary(self) -> Summary:
        """The summary of the table, which is made when it is first used."""
        if self.added is not None:
            raise PolicyError(
                "This summary has no rows and no exact counts, so it cannot answer this question.",
                hint="Give the table or its exact summary (.aegis).",
            )
        with self._lock:
            if self._counted is None:
                self._counted = summarize_rows(
                    self.rows_to("summarise"),
                    self.policy,
                    None if self.exact else SAMPLE_ROWS,
                    seed=self.seed,
                    like=self.like,
                    progress=self.progress,
                )
            return self._counted[0]

    def counted_exactly(self) -> Subject:
        """Return a subject that counts pairs of values on all rows, not on a sample. If this
        subject already counts all rows, return it unchanged.
        """
        if self.exact or self.rows_to("count").rows <= SAMPLE_ROWS:
            return self
        return replace(self, exact=True, _counted=None, _plan=None, _lock=RLock())

    @property
    def plan(self) -> PrivacyPlan:
        """The plan that checks configurations against the privacy rule."""
        with self._lock:
            if self._plan is None:
                self._require_rule()
                self._plan = plan_of(self.summary, self.policy, self.source)
            return self._plan

    def _require_rule(self) -> None:
        if self.source is None and not self.policy.privacy.criteria and self.summary.terms is None:
            raise PolicyError(
                "The summary does not say which rule it was made under, and no policy is given.",
                hint="Give the policy.",
            )

    def check_rules(self, rules: Iterable[PrivacyRule]) -> None:
        """Raise `PolicyError` if a rule is weaker than the owner of the summary allows. If there is
        the table itself, every rule is allowed.
        """
        if self.source is None:
            check_front_rules(self.summary, rules, override=self.rule_override)

    def under(self, policy: Policy, *, rule_override: bool = False) -> Subject:
        """Return a subject with the same table and another policy. It reuses the summary if the
        summary fits the new policy.

        `rule_override` says whether to accept a rule that differs from the rule of the summary's
        owner.

        Raises
        ------
        PolicyError
            There is only a summary, and it does not fit the new policy or its rule.
        """
        with self._lock:
            narrowed = None if self._counted is None else narrow(self._counted[0], policy)
        if self.source is None and narrowed is None:
            require_same(self.summary, policy)
            narrowed = self.summary
        meant, override = rule_override or self.rule_override, None
        if self.source is None:
            override = check_owner_rule(self.summary, policy.privacy, override=meant)
        return Subject(
            policy,
            self.source,
            self.exact,
            self.seed,
            self.progress,
            meant,
            override,
            like=self.like,
            _counted=None if narrowed is None else (narrowed, None),
        )

    def rows_to(self, purpose: str) -> Source:
        """Return the table, to be used for `purpose`; raise `DataError` if there is only a summary.
        The error says for which purpose the rows are needed.
        """
        if self.source is None:
            raise DataError(f"A summary holds no rows to {purpose}.", hint="Give the table itself.")
        return self.source


def describe_subject(subject: Subject) -> str:
    """Return one line that describes a study: its table, rows, label and rule."""
    of = "a summary" if subject.source is None else str(subject.source.origin)
    summary = subject.summarised
    read = "not read yet" if summary is None else counted(summary.rows, "row")
    policy = subject.policy
    label = f"label {policy.label.column!r}" if policy.label else "no label"
    return f"Study({of}, {read}, {label}, {policy.privacy})"


def subject_html(subject: Subject) -> str:
    """Return the description of a study as HTML. If the table is already summarised, a table of its
    attributes follows.
    """
    summary = subject.summarised
    line = f"<p>{html.escape(describe_subject(subject))}</p>"
    return line + ("" if summary is None else _attributes_html(summary))


def _attributes_html(summary: Summary) -> str:
    """Return an HTML table of a summary's attributes."""
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{html.escape(text)}</td>"
            for text in (
                a.name,
                str(a.role),
                f"{len(a.all_values):,}",
                ", ".join(str(c.declared) for c in a.candidates),
            )
        )
        + "</tr>"
        for a in summary.all_attributes
    )
    head = "".join(f"<th>{h}</th>" for h in ("attribute", "role", "values", "candidate masks"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
