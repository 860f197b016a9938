"""Call methods of a study that packages implement, through the entry points `aegis.questions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from aegis.errors import PolicyError
from aegis.registry import Extensions

if TYPE_CHECKING:
    from aegis.advisor import Advice
    from aegis.progress import Progress
    from aegis.report import ReportSection
    from aegis.requests import RankRequest, SearchRequest

QUESTIONS = Extensions("question")
"""Functions of a study that packages register. Most of them have a method of the same name in
`Study`.
"""


def ask(question: str, study: Any, *values: Any, **options: Any) -> Any:
    """Call the function that an installed package registers for a question, such as `evaluate`, and
    return its result.

    `study`, `values` and `options` are its arguments.

    Raises
    ------
    PolicyError
        No package registers the question, or the package cannot be loaded.
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
        """Whether the summary has candidate masks to combine.

        If not, it can only rank the configurations that it contains.
        """

    def rank(self, request: RankRequest, *, progress: Progress) -> Advice:
        """Rank the configurations in the request. If it has none, rank those in the summary."""

    def search(self, request: SearchRequest, *, progress: Progress) -> Advice:
        """Search all combinations of the summary's candidate masks."""

    def report_sections(self, advice: Advice) -> Sequence[ReportSection]:
        """Return the report sections that this format adds to the report on an advice."""
