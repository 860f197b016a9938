"""Print the record-level releases of an advice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.advisor import Advice


def method_sections(advice: Advice) -> Iterator[RenderableType]:
    """Yield a table of the record-level releases and their losses, if there are any."""
    from aegis.cli.tables import Column, fixed, heading, line, number, table

    releases = [(r.name, r.method) for r in advice.ranking if r.method is not None]
    if not releases:
        return
    yield heading("Record-level releases")
    columns = (
        Column("name", wraps=True),
        number("groups"),
        number("IL"),
        number("unscaled"),
        number("NCP"),
        number("mean size"),
        number("left out"),
        number("s"),
    )
    yield table(
        columns,
        (
            (
                name,
                f"{release.groups:,}",
                fixed(release.loss.scaled),
                fixed(release.loss.unscaled),
                fixed(release.loss.penalty),
                f"{release.loss.average_class_size:.1f}",
                f"{release.left_out:,}",
                f"{release.seconds:.2f}",
            )
            for name, release in releases
        ),
    )
    yield line(
        "\nIL: information loss of the centroids on z-scores.\n"
        "unscaled: the same on the numbers as they are.\n"
        "NCP: normalised certainty penalty. mean size: records in a group. s: seconds.\n"
        "left out: rows that the method itself dropped; rows of classes that fail the rule come on top.",
        style="dim",
    )
    for name, release in releases:
        for note in release.notes:
            yield line(f"{name}: {note}", style="dim")
