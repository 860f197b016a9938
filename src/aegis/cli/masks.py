"""`aegis masks`: the masking functions that a policy can name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aegis.cli.listing import Name, print_entry, print_list
from aegis.cli.options import Format, FormatOption, Quiet
from aegis.cli.output import Output

if TYPE_CHECKING:
    from aegis.masks import MaskType

EXAMPLES = ("aegis masks", "aegis masks bucketize", "aegis masks --format json")


def command(
    name: Name = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    quiet: Quiet = False,
) -> None:
    """List the masks that a policy can name, or explain one.

    The list shows for each mask its name, the kinds of column that it accepts, and what
    it does. With a name, Aegis also shows its parameters and how you write it in a
    policy.
    """
    from aegis.masks import MASKS

    shell = Output(format, quiet)
    if name is None:
        entries = [_entry(mask) for mask in MASKS]
        if shell.tabular:
            entries = [entry | {"kinds": _kinds(entry["kinds"])} for entry in entries]
        print_list(shell, entries, ("name", "kinds", "description"), "aegis masks")
        return
    mask = MASKS.get(name)
    print_entry(shell, _entry(mask), f"masks: [{mask.example}]")


def _entry(mask: MaskType) -> dict[str, Any]:
    return {
        "name": mask.name,
        "description": mask.summary,
        "kinds": [str(kind) for kind in mask.kinds],
        "deterministic": mask.mask.deterministic,
        "parameters": [
            {
                "name": parameter.name,
                "description": parameter.doc,
                "required": parameter.required,
                "default": parameter.default,
            }
            for parameter in mask.parameters
        ],
        "example": mask.example,
    }


def _kinds(names: list[str]) -> str:
    from aegis.masks import Kind

    return "any" if len(names) == len(Kind) else ", ".join(names)
