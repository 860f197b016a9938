"""Call methods of a study that packages implement, through the entry points `aegis.questions`."""

from __future__ import annotations

from typing import Any

from aegis.errors import PolicyError
from aegis.registry import Extensions

QUESTIONS = Extensions("question")
"""Functions of a study that packages register. Most of them have a method of the same name in
`Study`.
"""


def ask(question: str, study: Any, *values: Any, **options: Any) -> Any:
    """Call the function that a package registers for a question, and return its result.

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
