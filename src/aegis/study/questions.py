"""Call methods of a study that packages implement, through the entry points `aegis.questions`."""

from __future__ import annotations

from typing import Any

from aegis.errors import PolicyError
from aegis.registry import Extensions

QUESTIONS = Extensions("question")
"""What packages answer: functions of a study. `Study` has a method of the name of most."""


def ask(question: str, study: Any, *values: Any, **options: Any) -> Any:
    """Call the function that a package registers for a method of `Study`; return its result.

    Raises
    ------
    PolicyError
        No package registers the question, or the package cannot be loaded.
    """
    if question not in QUESTIONS:
        raise PolicyError(
            f"No installed package answers Study.{question}.",
            hint="Install Aegis with all its parts.",
        )
    return QUESTIONS.load(question)(study, *values, **options)
