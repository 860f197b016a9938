"""Define commands that only some formats of summaries support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from aegis.cli.output import Output
from aegis.summary_formats import SummaryFormat, format_of_summary


class ReconstructedFormat(SummaryFormat, Protocol):
    """A format whose files show the joint distribution of an attribute and the label."""

    def reconstruct(
        self, path: str, attribute: str, options: Mapping[str, Any], shell: Output
    ) -> None:
        """Print the joint counts of an attribute and the label, as precisely as the file allows."""


def reconstructed_format(given: str) -> ReconstructedFormat | None:
    """Return the format with which a package reconstructs a file; None if no package supports it."""
    return cast("ReconstructedFormat | None", format_of_summary(given))
