"""Rank masked tables from their counts: `aegis advise FILE.published`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from aegis.errors import PolicyError

if TYPE_CHECKING:
    from aegis.advisor import Advice
    from aegis.files import Progress
    from aegis.papers.published import Published
    from aegis.policy import Policy
    from aegis.report import ReportSection
    from aegis.requests import RankRequest, SearchRequest

TAKEN_BY = "aegis advise and aegis report take the counts of masked tables"
HOLDS = "holds the counts of masked tables"
_RANKED = "masked tables are ranked as they stand, without candidate masks"
_ROWS = "it holds no rows"
REFUSED = {
    **dict.fromkeys(
        ("objective", "front", "prefer", "search", "configurations", "generate", "generate_count"),
        _RANKED,
    ),
    **dict.fromkeys(("with", "methods", "after", "population", "proxy", "evaluate"), _ROWS),
    **dict.fromkeys(
        ("merit", "models"), "Aegis predicts a metric of models only from the table's counts"
    ),
    "output": "masks of a masked table are not known",
    "leave-out": "leave the attribute out of the policy and of the tables",
    "verify-key": "it is not signed",
}
"""Options and functions that need the table or its summary."""


@dataclass(frozen=True)
class RankedTables:
    """The counts of masked tables, and the policy under which they are ranked."""

    published: Published
    policy: Policy
    rule_override: bool
    summary_format: ClassVar[str] = "published"
    searchable: bool = False

    def rank(self, request: RankRequest, *, progress: Progress) -> Advice:
        """Rank the masked tables."""
        from aegis.papers.published import rank_published

        return rank_published(
            self.published,
            self.policy,
            measure=request.measure,
            estimate=request.estimate,
            rule_override=self.rule_override,
            progress=progress,
        )

    def search(self, request: SearchRequest, *, progress: Progress) -> Advice:  # noqa: ARG002 - of the seam
        """Raise `PolicyError`, because masked tables have no masks to combine."""
        raise PolicyError(f"Aegis cannot search: {_RANKED}.", hint="Rank the tables instead.")

    def report_sections(self, advice: Advice) -> Sequence[ReportSection]:  # noqa: ARG002 - of the seam
        """Return no additional section, because the advice already contains all figures."""
        return ()


def open_summary(source: Any, policy: Policy, *, rule_override: bool) -> RankedTables:
    """Return the counts of masked tables in the file `source`, for ranking under a policy.
    `rule_override` says whether the policy may have another privacy rule than the one under which
    the counts were made.
    """
    from aegis.papers.published import load_published

    return RankedTables(load_published(source), policy, rule_override)
