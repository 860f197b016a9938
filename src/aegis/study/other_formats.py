"""Define the protocol for summaries in formats that packages add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from aegis.advisor import Advice
    from aegis.progress import Progress
    from aegis.report import ReportSection
    from aegis.requests import RankRequest, SearchRequest


class AddedSummary(Protocol):
    """A summary in an added format, with a policy, from which Aegis can advise."""

    summary_format: ClassVar[str]
    """The name of its format."""

    @property
    def searchable(self) -> bool:
        """Whether the summary has candidate masks to combine.

        If not, it can only rank the configurations that it contains.
        """

    def rank(self, request: RankRequest, *, progress: Progress) -> Advice:
        """Rank the configurations in the request; if it has none, rank those in the summary."""

    def search(self, request: SearchRequest, *, progress: Progress) -> Advice:
        """Search all combinations of the summary's candidate masks."""

    def report_sections(self, advice: Advice) -> Sequence[ReportSection]:
        """Return the report sections that this format adds to the report on an advice."""
