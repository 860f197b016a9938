"""Summary formats other than `.aegis`; packages add them as entry points `aegis.summary_formats`.

The name of an entry point is the file extension of the format. Its object is a module (or a record)
with the members of `SummaryFormat`. `aegis.study.subject` defines the methods that a study
calls on such a summary.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from aegis.errors import PolicyError
from aegis.registry import Extensions

FORMATS = Extensions("summary format")
"""Formats of summaries, by the extension of their files without the dot."""


class SummaryFormat(Protocol):
    """A format of summaries that a package adds to Aegis."""

    TAKEN_BY: str
    """The commands that accept such a file, as the end of a hint."""
    HOLDS: str
    """What such a file is, as a text that follows its name: "is a protected summary"."""
    REFUSED: Mapping[str, str]
    """The options that such a file does not support, without their dashes, each with the reason."""

    def open_summary(self, given: Any, policy: Any, *, rule_override: bool) -> Any:
        """Open a summary under a `Policy`, and return it as an `AddedSummary`. `given` is the path
        of the summary, or an object.

        `rule_override` says whether to accept a rule that differs from the rule of the summary's
        owner.
        """


def added_format(given: Any) -> str | None:
    """Return the file extension of a summary format that a package added, if a path or an object
    has this format; otherwise None.

    An object names its format in the attribute `summary_format`.
    """
    if isinstance(given, str | Path):
        ending = Path(str(given)).suffix.lower().removeprefix(".")
        return ending if ending in FORMATS else None
    stated = getattr(given, "summary_format", None)
    return stated if isinstance(stated, str) and stated in FORMATS else None


def format_of_summary(given: Any) -> SummaryFormat | None:
    """Return the added format of an object, or of a file by its extension; None if no package adds
    such a format.
    """
    name = added_format(given)
    if name is None:
        return None
    added: SummaryFormat = FORMATS.load(name)
    return added


def refuse_options(given: Any, options: Mapping[str, object]) -> None:
    """Raise `PolicyError` if the user gave an option that a summary of an added format does not
    support. `given` is the summary.

    `options` maps names, with or without dashes, to values; None and False mean that the option was
    not given.
    """
    added = format_of_summary(given)
    for name, value in options.items():
        why = None if added is None else added.REFUSED.get(name.removeprefix("--"))
        if added is not None and why is not None and value is not None and value is not False:
            raise PolicyError(
                f"{name} was given, and {_named(given)} {added.HOLDS}: {why}.",
                hint="Leave it out, or give the table or its exact summary (.aegis).",
            )


def refuse_added(given: str | Path) -> None:
    """Raise an error if the user gives a summary in an added format, where a table or an ordinary
    summary is needed.
    """
    added = format_of_summary(given)
    if added is not None:
        raise PolicyError(
            f"{given} {added.HOLDS}, and this needs a table or its exact summary (.aegis).",
            hint=f"Give one of these; {added.TAKEN_BY}.",
        )


def _named(given: Any) -> str:
    return str(given) if isinstance(given, str | Path) else "the summary"
