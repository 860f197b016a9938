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
        """Whether the summary has candidate masks to combine; if not, it can only rank its
        configurations.

        If not, it only ranks the configurations it holds.
        """

    def rank(self, request: RankRequest, *, progress: Progress) -> Advice:
        """Rank the configurations of the request; if it has none, those that the summary holds."""

    def search(self, request: SearchRequest, *, progress: Progress) -> Advice:
        """Search all combinations of the summary's candidate masks."""

    def report_sections(self, advice: Advice) -> Sequence[ReportSection]:
        """Return the report sections that this format adds to the report on an advice."""
