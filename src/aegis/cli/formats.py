"""Commands that only some formats of summaries answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from aegis.cli.output import Output
from aegis.summary_formats import SummaryFormat, format_of_summary


class ReconstructedFormat(SummaryFormat, Protocol):
    """A file format that contains information on an attribute and the label."""

    def reconstruct(
        self, path: str, attribute: str, options: Mapping[str, Any], shell: Output
    ) -> None:
        """Print the joint of an attribute and the label, as far as the file shows."""


def reconstructed_format(given: str) -> ReconstructedFormat | None:
    """Return the format of a file for `aegis reconstruct`; None if no package adds it."""
    return cast("ReconstructedFormat | None", format_of_summary(given))
