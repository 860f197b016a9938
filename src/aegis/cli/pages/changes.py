"""Print the effect of replacing the mask of one attribute, if scores are estimates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aegis.present import mask_shown

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.advisor import Advice

SHOWN = 8
"""Number of changes that are printed, the best ones; JSON and the report contain all."""


def change_sections(advice: Advice) -> Iterator[RenderableType]:
    """Yield a table of the effect that other masks would have on the best configuration.

    If scores are not estimates, yield nothing.
    """
    from aegis.cli.tables import Column, heading, number, table

    if advice.estimated is None or not advice.estimated.changes:
        return
    changes = sorted(advice.estimated.changes, key=lambda change: -change.change)[:SHOWN]
    yield heading("Another mask of one attribute would change the score by")
    yield table(
        (Column("attribute"), Column("mask"), number("change"), number("stderr"), Column("")),
        (
            (
                c.attribute,
                mask_shown(c.mask),
                f"{c.change:+.4g}",
                f"{c.stderr:.2g}",
                "tied" * c.tied,
            )
            for c in changes
        ),
    )
