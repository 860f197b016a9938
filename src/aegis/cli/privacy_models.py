"""`aegis privacy-models`: the privacy models for rules."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from aegis.cli.listing import Name, print_entry, print_list
from aegis.cli.options import Format, FormatOption, Quiet
from aegis.cli.output import Output

if TYPE_CHECKING:
    from aegis.privacy import ModelParameter, PrivacyModel

EXAMPLES = (
    "aegis privacy-models",
    "aegis privacy-models l_diversity.entropy",
    "aegis privacy-models --format json",
)


def command(
    name: Name = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    quiet: Quiet = False,
) -> None:
    """List the privacy models that a rule can require, or explain one.

    The list shows for each model its name and its full name. With a name, Aegis also
    shows what the model protects against, what it requires of a class, its parameters,
    its reference, and how you write it in a policy.
    """
    from aegis.privacy import MODELS

    shell = Output(format, quiet)
    if name is None:
        entries = [_entry(model) for model in MODELS]
        print_list(shell, entries, ("name", "title"), "aegis privacy-models")
        return
    model = MODELS.get(name)
    print_entry(shell, _entry(model), _example(model))


def _entry(model: PrivacyModel) -> dict[str, Any]:
    return {
        "name": model.name,
        "title": model.title,
        "description": model.description,
        "formula": model.formula,
        "needs": sorted(str(need) for need in model.needs),
        "monotone": model.monotone,
        "monotone_with_suppression": model.monotone_with_suppression,
        "argument": model.argument,
        "reference": model.reference,
        "parameters": [
            {
                "name": parameter.name,
                "description": f"{parameter.description}; {parameter.range}",
                "required": parameter.default is None,
                "default": parameter.default,
            }
            for parameter in model.parameters
        ],
        "example": _example(model),
    }


def _example(model: PrivacyModel) -> str:
    """Return a valid criterion of this model, as a policy writes it."""
    from aegis.privacy import PrivacyRule
    from aegis.privacy.model import ModelNeed

    given: dict[str, object] = {parameter.name: _value(parameter) for parameter in model.parameters}
    if ModelNeed.SENSITIVE in model.needs:
        given["attribute"] = "diagnosis"
    written = PrivacyRule((model.criterion(given),)).to_mapping()[model.key]
    if isinstance(written, dict):
        written = "{" + ", ".join(f"{key}: {_plain(value)}" for key, value in written.items()) + "}"
    return f"privacy: {{{model.key}: {written}}}"


def _value(parameter: ModelParameter) -> float:
    """Return a typical value of a parameter, for an example."""
    if parameter.default is not None:
        return parameter.default
    if math.isinf(parameter.high):
        return max(5.0 if parameter.whole else 2.0, parameter.low)
    return parameter.low + (parameter.high - parameter.low) / 5


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
