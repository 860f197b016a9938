"""Record-level releases among the advice, as people read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.advisor import Advice


def method_sections(advice: Advice) -> Iterator[RenderableType]:
    """Yield what the record-level releases cost, where there are any."""
    from aegis.cli.tables import Column, fixed, heading, line, number, table

    found = [(r.name, r.method) for r in advice.ranking if r.method is not None]
    if not found:
        return
    yield heading("Record-level releases")
    columns = (
        *(Column("name", wraps=True), number("groups"), number("IL scaled"), number("unscaled")),
        *(number("NCP"), number("class size"), number("left out"), number("seconds")),
    )
    yield table(
        columns,
        (
            (
                *(name, f"{one.groups:,}", fixed(one.loss.scaled), fixed(one.loss.unscaled)),
                *(fixed(one.loss.penalty), f"{one.loss.average_class_size:.1f}"),
                *(f"{one.left_out:,}", f"{one.seconds:.2f}"),
            )
            for name, one in found
        ),
    )
    yield line(
        "\nIL: information loss of the centroids. NCP: normalised certainty penalty. left out: rows\n"
        "that the method itself dropped; rows of classes that fail the rule come on top.",
        style="dim",
    )
    for name, one in found:
        for note in one.notes:
            yield line(f"{name}: {note}", style="dim")
