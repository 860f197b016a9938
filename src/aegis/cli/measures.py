"""`aegis measures`: the measures of association that can rank configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aegis.cli.listing import Name, print_entry, print_list
from aegis.cli.options import Format, FormatOption, Quiet
from aegis.cli.output import Output

if TYPE_CHECKING:
    from aegis.measures import Measure

EXAMPLES = ("aegis measures", "aegis measures adjusted-pillai", "aegis measures --format csv")


def command(
    name: Name = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    quiet: Quiet = False,
) -> None:
    """List the measures that can rank configurations, or explain one.

    The list shows for each measure its name, whether it scores one attribute or a whole
    configuration, which values are better, and its meaning. With a name, Aegis also
    shows formula, range, reference and properties.
    """
    from aegis.measures import MEASURES

    shell = Output(format, quiet)
    if name is None:
        entries = [_entry(measure) for measure in MEASURES]
        print_list(shell, entries, ("name", "scope", "better", "title"), "aegis measures")
        return
    measure = MEASURES.get(name)
    print_entry(shell, _entry(measure), f"measure: {measure.name}")


def _entry(measure: Measure) -> dict[str, Any]:
    return {
        "name": measure.name,
        "title": measure.title,
        "description": measure.description,
        "formula": measure.formula,
        "scope": str(measure.scope),
        "better": str(measure.direction),
        "range": measure.range,
        "unit": measure.unit,
        "monotone": measure.monotone,
        "cost": measure.cost,
        "reference": measure.reference,
    }
