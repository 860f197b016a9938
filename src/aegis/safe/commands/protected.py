"""Rank and search from a protected summary: `aegis advise FILE.protected`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from aegis.cli.output import Column, Output, line, number, table
from aegis.errors import PolicyError

if TYPE_CHECKING:
    from aegis.advisor import Advice
    from aegis.files import Progress
    from aegis.policy import Policy, RuleOverride
    from aegis.report import ReportSection
    from aegis.requests import RankRequest, SearchRequest
    from aegis.safe.protect import ProtectedSummary

TAKEN_BY = "aegis advise, report, reconstruct and leak take protected ones"
HOLDS = "is a protected summary"
_SCORED = "the held-out target-coded trace is its only measure"
_EXACT = "a model metric is predicted from exact counts"
_ROWS = "models are trained on rows"
REFUSED = {
    "measure": _SCORED,
    "objective": _SCORED,
    "after": "only its owner can check earlier releases",
    "merit": _EXACT,
    "models": _EXACT,
    "verify-key": "it is not signed",
    "proxy": _ROWS,
    "evaluate": _ROWS,
    "with": "record-level methods need the rows",
    "methods": "record-level methods need the rows",
    "prefer": "noise hides which scores are equal",
    "estimate": "it shows deviations from protected counts, not from the raw table",
}
"""Options that need exact counts or rows."""


@dataclass(frozen=True)
class RankedCounts:
    """A protected summary and the policy under which it is ranked or searched.

    Attributes
    ----------
    rule_override, override
        Whether the user accepts another privacy rule than that of the summary's owner, and how the
        policy's rule differs from it; None if it does not.
    """

    summary: ProtectedSummary
    policy: Policy
    rule_override: bool
    override: RuleOverride | None
    summary_format: ClassVar[str] = "protected"
    searchable: bool = True

    def rank(self, request: RankRequest, *, progress: Progress) -> Advice:
        """Rank the configurations of the request.

        If the request names none, rank the configurations of the policy. If the policy has none
        either, rank those for which the owner states whether they meet the privacy rule, or else
        generated ones.
        """
        from aegis.safe.protect import rank_protected

        advice = rank_protected(
            self.summary,
            request.configurations,
            policy=self.policy,
            generate_count=request.generate_count,
            seed=request.seed or 0,
            progress=progress,
        )
        return self._overridden(advice)

    def search(self, request: SearchRequest, *, progress: Progress) -> Advice:
        """Search all combinations of the summary's candidate masks."""
        from aegis.safe.protect import search_protected

        advice = search_protected(
            self.summary,
            policy=self.policy,
            top=request.top,
            time_limit=request.time_limit,
            work=request.work,
            front=request.front,
            rule_override=self.rule_override,
            progress=progress,
        )
        return self._overridden(advice)

    def _overridden(self, advice: Advice) -> Advice:
        """Add a sentence to the advice if another rule than the owner's was chosen."""
        if self.override is None:
            return advice
        warnings = (self.override.sentence, *advice.warnings)
        return replace(advice, rule_override=self.override, warnings=warnings)

    def report_sections(self, advice: Advice) -> Sequence[ReportSection]:  # noqa: ARG002 - of the seam
        """Return the report sections on how the summary was protected, and what it reveals."""
        from aegis.safe.report.section import protected_sections

        return protected_sections(self.summary)


def open_summary(source: Any, policy: Policy, *, rule_override: bool) -> RankedCounts:
    """Return the protected summary in `source`, a file or an object, for use under a policy.

    Attributes that are not in the policy are dropped. If there are any, the owner's statements
    whether configurations meet the privacy rule are dropped, too. `rule_override` says whether the
    user may choose another rule than the owner's.
    """
    from aegis.safe.protect import ProtectedSummary, load_protected, narrowed, summary_under

    summary = source if isinstance(source, ProtectedSummary) else load_protected(source)
    scored_names = {a.name for a in policy.features if a.scored}
    if not scored_names.issuperset(summary.attributes):
        candidates = {
            name: [candidate.declared for candidate in attribute.candidates]
            for name, attribute in summary.attributes.items()
            if name in scored_names
        }
        dropped_names = ", ".join(name for name in summary.attributes if name not in scored_names)
        note = f"attributes left out, because the policy does not list them: {dropped_names}"
        summary = replace(narrowed(summary, candidates), notes=(*summary.notes, note))
    summary, override = summary_under(summary, policy, rule_override=rule_override)
    return RankedCounts(summary, policy, rule_override, override)


def reconstruct(path: str, attribute: str, options: Mapping[str, Any], shell: Output) -> None:
    """Print the estimated label table of an attribute; refuse `options` for exact summaries."""
    import numpy as np

    from aegis.safe.protect import load_protected, reconstruct_protected

    for name, value in options.items():
        if value is not None:
            raise PolicyError(
                f"{name} cannot be used with a protected summary, which has only rows by value and label.",
                hint="Leave it out, or give the table or its exact summary (.aegis).",
            )
    joint = reconstruct_protected(load_protected(path), attribute)
    names = ("value", *(f"{kind}:{c}" for c in joint.classes for kind in ("estimate", "stderr")))
    pairs = np.stack([joint.table, joint.stderr], axis=2).tolist()
    rows = list(zip(joint.cells, pairs, strict=True))
    cells = ([cell, *chain.from_iterable(figures)] for cell, figures in rows)
    if shell.as_data({"schema": 1} | joint.to_dict(), names, cells):
        return
    shell.show(
        line(
            f"{joint.attribute}: estimated rows of {len(joint.cells):,} groups of values by label; mean square "
            f"contingency {joint.contingency:.4g} ± {joint.contingency_stderr:.2g}"
        ),
        line(""),
    )
    columns = (Column(joint.attribute, wraps=True), *(number(c) for c in joint.classes))
    texts = ([cell, *(f"{n:,.1f} ± {e:.1f}" for n, e in figures)] for cell, figures in rows)
    shell.show(table(columns, texts))
    shell.warn(
        ["± is the standard error that the protection adds; the file does not have the true counts"]
    )
