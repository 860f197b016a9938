"""Files that hold another kind of summary: commands hand them to what a package adds.

A package adds a format through the entry points `aegis.summary_formats`: the name is the ending of its
files, the object is a module (or a record) with the functions of `SummaryFormat`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from aegis.cli.output import Output
from aegis.errors import PolicyError
from aegis.summary_formats import FORMATS, added_format

if TYPE_CHECKING:
    from aegis.policy import Configuration, Policy


@dataclass(frozen=True, kw_only=True)
class SummaryRequest:
    """What a command was asked of a file of another format.

    Attributes
    ----------
    path
        The file.
    policy_file, policy
        The policy, as it was named and as it was read, without what is to be left out.
    configurations
        Those to rank, where a file of them was given.
    search
        Whether all combinations are searched; else configurations are ranked.
    options
        Every other option by its name, such as `--top`; None where it was not given.
    shell
        Where results and warnings go.
    printed
        Whether the result is printed; else only what was written is said.
    """

    path: str
    policy_file: Path
    policy: Policy
    configurations: Mapping[str, Configuration] | None
    search: bool
    options: Mapping[str, Any]
    shell: Output
    printed: bool = True


class SummaryFormat(Protocol):
    """What is asked of a file of another format."""

    TAKEN_BY: str
    """Which commands take such a file, as the end of a sentence's hint."""
    HOLDS: str
    """What such a file is, after its name: "is a protected summary"."""

    def advise(self, asked: SummaryRequest) -> None:
        """Rank or search, print and write what was found."""

    def reconstruct(
        self, path: str, attribute: str, options: Mapping[str, Any], shell: Output
    ) -> None:
        """Print the joint of an attribute and the label, as far as the file shows."""


def format_of_summary(given: str | Path) -> SummaryFormat | None:
    """Return the format of a file by its ending; None where no package adds it."""
    ending = added_format(given)
    if ending is None:
        return None
    added: SummaryFormat = FORMATS.load(ending)
    return added


def refuse_added(given: str | Path) -> None:
    """Raise where a file of another format is in place of a table or its summary."""
    added = format_of_summary(given)
    if added is not None:
        raise PolicyError(
            f"{given} {added.HOLDS}, and this needs a table or its exact summary (.aegis).",
            hint=f"Give one of these; {added.TAKEN_BY}.",
        )
