"""Print the utility that a release keeps for each of several labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aegis.present import label_lines

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.advisor import Advice


def label_sections(advice: Advice) -> Iterator[RenderableType]:
    """Yield a table of the labels under the best configuration. If there is only one label, yield
    nothing.
    """
    from aegis.cli.tables import Column, fixed, heading, line, number, percent, table

    lines = label_lines(advice)
    if not lines:
        return
    yield heading("Labels")
    columns = (
        Column("label", wraps=True),
        number("weight"),
        Column("measure", wraps=True),
        number("unmasked"),
        number("masked"),
        number("kept"),
        number("alone"),
        number("price"),
    )
    yield table(
        columns,
        (
            (
                own.label,
                f"{own.weight:g}",
                own.measure,
                fixed(own.reference),
                fixed(own.value),
                percent(own.utility_kept),
                percent(own.alone),
                "–" if own.price is None else f"{own.price:.1f}",
            )
            for own in lines
        ),
    )
    proven = sum(own.proven for own in lines)
    yield line(
        "\nkept: share of what the unmasked table predicts of the label beyond a constant prediction. "
        "alone: what the best configuration for this label alone keeps, on all rows"
        f"{f' ({proven} of {len(lines)} proven)' if advice.search else ', of those ranked'}. "
        "price: points that serving the other labels costs.",
        style="dim",
    )
