"""Hold the subject of a study (a table or its summary, with the policy), which is read and
summarised only once, and complete its answers with record-level releases, privacy, utility and
reports. Packages add questions through the entry points `aegis.questions`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from aegis.advisor import Advice, PrivacyPlan, plan_of, with_privacy, with_residual_risks
from aegis.advisor.advice import with_first
from aegis.advisor.advise import rule_notes
from aegis.advisor.plan import (
    check_owner_rule,
    require_same,
    with_label_mask,
    with_owner_rule,
)
from aegis.advisor.ranked import ESTIMATES
from aegis.advisor.released import ReleasedRows, with_utility
from aegis.advisor.several import scorer_of
from aegis.errors import DataError, PolicyError
from aegis.files import BUNDLE, Progress, check_output
from aegis.options import checks_types
from aegis.policy import Configuration, Policy, RuleOverride
from aegis.registry import Extensions, format_of_summary, refuse_options
from aegis.requests import RankRequest, SearchRequest, Span
from aegis.sources import Source, open_table
from aegis.summary import Summary
from aegis.summary.attributes import narrow
from aegis.summary.build import declared_policy, summarize_rows
from aegis.summary.builder import SAMPLE_ROWS
from aegis.summary.coded_rows import CodedRows, holding

if TYPE_CHECKING:
    from aegis.advisor.search import FrontRange
    from aegis.anonymizers import Recipe
    from aegis.report import Reported, ReportSection

QUESTIONS = Extensions("question")
"""Functions of a study that packages register. Most of them have a method of the same name in
`Study`.
"""


def ask(question: str, study: Any, *values: Any, **options: Any) -> Any:
    """Call the function that an installed package registers under a name, such as `evaluate`. Raise
    `PolicyError` if there is none, or if the package cannot be loaded.
    """
    if question not in QUESTIONS:
        raise PolicyError(
            f"No installed package provides Study.{question}.",
            hint="Install the complete package aegis-advisor.",
        )
    return QUESTIONS.load(question)(study, *values, **options)


class AddedSummary(Protocol):
    """A summary in a format that a package adds, with a policy. Aegis can give advice from it."""

    summary_format: ClassVar[str]
    """The name of its format."""

    @property
    def searchable(self) -> bool:
        """Whether the summary has candidates to combine; if not, it can only rank its
        configurations.
        """

    def rank(self, request: RankRequest, *, progress: Progress) -> Advice:
        """Rank the configurations in the request. If it has none, rank those in the summary."""

    def search(self, request: SearchRequest, *, progress: Progress) -> Advice:
        """Search all combinations of the summary's candidate masks."""

    def report_sections(self, advice: Advice) -> Sequence[ReportSection]:
        """Return the sections that this format of summary adds to the report on an advice."""


@dataclass
class Subject:
    """A table, or only its summary, under one policy.

    Attributes
    ----------
    source
        The table; None if there is only a summary.
    exact
        Whether pairs of values are counted on all rows, not on a sample.
    rule_override, overridden
        Whether the user accepts a rule that differs from that of the summary's owner, and how it
        differs, if it does.
    like
        The summary of another part of the same data, whose groups of values are reused.
    plugin
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
    plugin: AddedSummary | None = None
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
        """Return the subject for a table, a summary, the path of either, or a subject, which is
        returned. Raise `PolicyError` if the summary was made for another policy, or under another
        rule and `rule_override` is False, or if a table is given without a policy. Raise
        `DataError` if the table cannot be opened.
        """
        if isinstance(table, Subject):
            return table
        plugin = format_of_summary(table)
        if plugin is not None:
            if policy is None:
                raise PolicyError(
                    f"What you gave {plugin.HOLDS}. Its policy is not in it.",
                    hint="Give the policy, too.",
                )
            opened = plugin.open_summary(table, policy, rule_override=rule_override)
            return cls(policy, None, exact, seed, progress, rule_override, plugin=opened)
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

    def __reduce__(self) -> str:
        raise TypeError(
            "A Study cannot be pickled or deeply copied, because it holds an open table. Open a Study "
            "in each process, or give it the summary: Study(study.summary, study.policy)."
        )

    @property
    def summarised(self) -> Summary | None:
        """The summary of the table if it has already been made; None otherwise."""
        return None if self._counted is None else self._counted[0]

    @property
    def coded_rows(self) -> CodedRows | None:
        """The rows of the table as codes; None if they are too many, or were not read here."""
        return None if self._counted is None else self._counted[1]

    @property
    def summary(self) -> Summary:
        """The summary of the table, which is made when it is first used."""
        if self.plugin is not None:
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

    @contextmanager
    def holding(self) -> Iterator[Subject]:
        """Return a context that keeps the columns read of a large Parquet table in memory."""
        with nullcontext() if self.source is None else holding(self.source):
            yield self

    def counted_exactly(self) -> Subject:
        """Return a subject that counts pairs of values on all rows, not on a sample."""
        if self.exact or self.rows_to("count").rows <= SAMPLE_ROWS:
            return self
        return replace(self, exact=True, _counted=None, _plan=None, _lock=RLock())

    @property
    def plan(self) -> PrivacyPlan:
        """The plan that checks configurations against the privacy rule."""
        with self._lock:
            if self._plan is None:
                if self.source is None and not (
                    self.policy.privacy.criteria or self.summary.terms is not None
                ):
                    raise PolicyError(
                        "The summary does not say which rule it was made under, and no policy is given.",
                        hint="Give the policy.",
                    )
                self._plan = plan_of(self.summary, self.policy, self.source)
            return self._plan

    def released(self, reading: AbstractContextManager[Any] | None = None) -> ReleasedRows:
        """Return an object that counts the rows of releases. It enters the context `reading`, such
        as a lock, before a search reads the table.
        """
        return ReleasedRows(
            self.plan, self.source, self.policy, self.seed, self.coded_rows, reading=reading
        )

    def under(self, policy: Policy, *, rule_override: bool = False) -> Subject:
        """Return a subject with the same table and another policy, and the same summary if it fits
        this policy. Raise `PolicyError` if there is only a summary, and it does not fit the policy
        or its rule.
        """
        with self._lock:
            narrowed = None if self._counted is None else narrow(self._counted[0], policy)
        if self.source is None and narrowed is None:
            require_same(self.summary, policy)
            narrowed = self.summary
        rule_override, override = rule_override or self.rule_override, None
        if self.source is None:
            override = check_owner_rule(self.summary, policy.privacy, override=rule_override)
        return Subject(
            policy,
            self.source,
            self.exact,
            self.seed,
            self.progress,
            rule_override,
            override,
            like=self.like,
            _counted=None if narrowed is None else (narrowed, None),
        )

    def allowed_front(self, front: Span | str) -> FrontRange:
        """Return the part of a front that is no weaker than the rule of the summary's owner."""
        from aegis.advisor.search import FrontRange, front_under_owner

        terms, span = self.summary.terms, FrontRange.of(front)
        owner = terms.owner if terms is not None and terms.binding else None
        return front_under_owner(owner, span, self.policy.privacy, override=self.rule_override)

    def rows_to(self, purpose: str) -> Source:
        """Return the table; raise `DataError`, which names the `purpose`, if there is only a
        summary.
        """
        if self.source is None:
            raise DataError(f"A summary holds no rows to {purpose}.", hint="Give the table itself.")
        return self.source


Configurations = Mapping[str, Configuration] | Sequence[Configuration]


def added_summary(
    subject: Subject,
    request: RankRequest | SearchRequest,
    methods: Sequence[str | Recipe] | None,
) -> AddedSummary | None:
    """Return the summary of a study if an installed package defines its format, else None. Raise
    `PolicyError` if the format does not support an option of the request.
    """
    if subject.plugin is not None:
        refuse_options(subject.plugin, {**vars(request), "methods": methods or None})
    return subject.plugin


def check_methods(policy: Policy, methods: Collection[str | Recipe] | None, seed: int) -> None:
    """Raise `PolicyError` before any work is done if a record-level method (None: of the policy) is
    unknown, or if the policy allows none because it has several labels.
    """
    if methods or (methods is None and policy.anonymizers):
        policy.refuse_several("A record-level method")
    if methods:
        from aegis.advisor.methods import choose_recipes

        choose_recipes(policy, methods, seed=seed)


def check_estimate(estimate: str | None, methods: Iterable[str | Recipe] | None) -> None:
    """Raise `PolicyError` if the estimate is unknown, or given together with record-level methods."""
    if estimate is None:
        return
    ESTIMATES.get(estimate)
    if methods:
        raise PolicyError(
            "An estimate needs masks, and record-level releases have none.",
            hint="Leave out the methods or the estimate.",
        )


def complete_advice(
    subject: Subject,
    advice: Advice,
    methods: Sequence[str | Recipe] | None,
    seed: int,
    *,
    measured: bool = True,
    rows: ReleasedRows | None = None,
) -> Advice:
    """Return the advice completed with record-level releases (None: those of the policy) and with
    privacy figures. Warnings about the rule come first, then risks to persons. `measured` says
    whether to measure the utility on the rows that the best release keeps, which `rows` counts if
    it exists already.
    """
    policy, summary = subject.policy, subject.summary
    if methods or (methods is None and policy.anonymizers):
        from aegis.advisor.methods import with_methods

        advice = with_methods(
            advice,
            summary,
            subject.source,
            policy,
            methods,
            seed=seed,
            progress=subject.progress,
        )
    scorer, best = scorer_of(summary), advice.best
    released = rows or subject.released()
    stored: AbstractContextManager[ReleasedRows] = nullcontext(released)
    if measured and best is not None and best.method is None:
        stored = released.storing(scorer.choose(best.configuration))
    with stored as rows:
        if measured:
            advice = with_utility(advice, rows, scorer, subject.progress)
        advice = with_residual_risks(advice, rows)
    advice = with_privacy(advice, summary, subject.plan, policy)
    advice = with_first(advice, lambda: rule_notes(summary, subject.plan))
    if subject.source is None:
        advice = with_owner_rule(advice, summary, subject.overridden)
    return with_label_mask(advice, summary, policy)


@checks_types
def check_report(path: str | Path | None, *, force: bool) -> None:
    """Raise `PolicyError` if no report can be written to this path, before any work is done."""
    if path is not None:
        check_output(Path(path), force=force, formats=(".html", ".htm", ".pdf"))


def draw_report(
    subject: Subject,
    reported: Advice | Reported,
    path: str | Path | None,
    *,
    title: str | None,
    values: bool,
) -> str:
    """Return the report on an advice or an evaluation as HTML, and write it to `path`, if given.
    `values` says whether it may show values of the table.
    """
    from aegis.advisor.owner_preview import show_release
    from aegis.report import added_sections, render_report, write_page
    from aegis.report.section import advice_of

    with subject.progress.step("Drawing the report"):
        advice = advice_of(reported)
        release_values, plugin = None, subject.plugin
        if plugin is None and values:
            release_values = show_release(
                advice, subject.summary, subject.plan, subject.policy, subject.source
            )
        sections: Sequence[ReportSection] = (
            added_sections(subject.summary, advice)
            if plugin is None
            else plugin.report_sections(advice)
        )
        page = render_report(reported, title=title, shown=release_values, sections=sections)
    if path is not None:
        write_page(Path(path), page)
    return page
