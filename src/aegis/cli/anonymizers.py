"""`aegis anonymizers`: the record-level methods that `aegis anonymize` can run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aegis.cli.listing import Name, print_entry, print_list
from aegis.cli.options import Format, FormatOption, Quiet
from aegis.cli.output import Output

if TYPE_CHECKING:
    from aegis.anonymizers import Anonymizer

EXAMPLES = ("aegis anonymizers", "aegis anonymizers mo-obam", "aegis anonymizers --format json")


def command(
    name: Name = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    quiet: Quiet = False,
) -> None:
    """List the record-level methods, or explain one.

    The list shows for each method its name, how its cost grows with the rows, and what
    it does. With a name, Aegis also shows its options and where it is published.
    """
    from aegis.anonymizers import ANONYMIZERS

    shell = Output(format, quiet)
    if name is None:
        entries = [_entry(anonymizer) for anonymizer in ANONYMIZERS]
        print_list(shell, entries, ("name", "cost", "description"), "aegis anonymizers")
        return
    print_entry(shell, _entry(ANONYMIZERS.get(name)), f"anonymizers: [{name}]")


def _entry(anonymizer: Anonymizer) -> dict[str, Any]:
    from aegis.anonymizers import listed_options

    return {
        "name": anonymizer.name,
        "description": anonymizer.summary,
        "cost": anonymizer.cost,
        "style": str(anonymizer.style),
        "diverse": anonymizer.diverse,
        "reference": anonymizer.reference,
        "parameters": [
            {
                "name": option.name,
                "description": option.description,
                "required": False,
                "default": list(option.default)
                if isinstance(option.default, tuple)
                else option.default,
            }
            for option in listed_options(anonymizer.options)
        ],
        "example": f"anonymizers: [{{{anonymizer.name}: {{k: 5}}}}]",
    }
