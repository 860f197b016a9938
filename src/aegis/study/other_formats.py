"""What a study asks of a summary of another format, which a package adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from aegis.advisor import Advice
    from aegis.progress import Progress
    from aegis.report import ReportSection
    from aegis.requests import RankRequest, SearchRequest


class AddedSummary(Protocol):
    """A summary of another format under one policy: what can be advised from it."""

    summary_format: ClassVar[str]
    """The name of its format."""

    @property
    def searchable(self) -> bool:
        """Whether it knows candidate masks to combine; else it only ranks what it holds."""

    def rank(self, request: RankRequest, *, progress: Progress) -> Advice:
        """Rank the configurations that are asked for, or those that it holds."""

    def search(self, request: SearchRequest, *, progress: Progress) -> Advice:
        """Search all combinations of its candidate masks."""

    def report_sections(self, advice: Advice) -> Sequence[ReportSection]:
        """Return what the report on an advice shows of it."""
