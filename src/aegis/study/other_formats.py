"""The interface for summaries in other formats, which packages add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from aegis.advisor import Advice
    from aegis.progress import Progress
    from aegis.report import ReportSection
    from aegis.requests import RankRequest, SearchRequest


class AddedSummary(Protocol):
    """A summary in another format under one policy, and the advice from it."""

    summary_format: ClassVar[str]
    """The name of its format."""

    @property
    def searchable(self) -> bool:
        """Whether it has candidate masks to combine; otherwise it only ranks its own entries."""

    def rank(self, request: RankRequest, *, progress: Progress) -> Advice:
        """Rank the requested configurations, or the summary's own entries."""

    def search(self, request: SearchRequest, *, progress: Progress) -> Advice:
        """Search all combinations of its candidate masks."""

    def report_sections(self, advice: Advice) -> Sequence[ReportSection]:
        """Return the sections on it in the report on an advice."""
