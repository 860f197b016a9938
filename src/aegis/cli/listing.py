"""Print the registries whose entries a policy can name, as a list or one entry in full."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli import completion
from aegis.cli.output import Column, Output, heading, line, pairs, table
from aegis.cli.parameters import Format, FormatOption, Quiet
from aegis.words import default_value, json_fields, jsonable

if TYPE_CHECKING:
    from aegis.anonymizers import Anonymizer
    from aegis.masks import MaskType
    from aegis.measures import Measure
    from aegis.privacy import ModelParameter, PrivacyModel

SCHEMA = 1
"""Version of the JSON form of a list; it changes when a field changes its meaning."""


@dataclass(frozen=True)
class RegistryListing:
    """A command that lists the entries of a registry, or explains one.

    Attributes
    ----------
    about, EXAMPLES
        The help of the command, and its examples; the first one is the command alone.
    registry
        The registry, as `module:NAME`. It is loaded when the command runs.
    entry
        Function that returns an entry of the registry as JSON values.
    written
        Function that returns an example of how a policy writes an entry.
    columns
        Keys of the columns of the list; the last column contains sentences.
    """

    about: str
    registry: str
    entry: Callable[[Any], dict[str, Any]]
    written: Callable[[Any], str]
    columns: tuple[str, ...]
    EXAMPLES: tuple[str, ...]

    @property
    def command(self) -> Callable[..., None]:
        """The function of the command, with its options as the library typer reads them."""

        def names(incomplete: str) -> list[str]:
            return completion.starting(resolve_name(self.registry).names(), incomplete)

        named = typer.Argument(
            metavar="NAME",
            help="Name of the entry to explain. Without it, Aegis lists all.",
            autocompletion=names,
        )

        def command(
            name: str | None = None,
            format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
            quiet: Quiet = False,
        ) -> None:
            shell, registry = Output(format, quiet), resolve_name(self.registry)
            if name is None:
                self._print_all(shell, [self.entry(each) for each in registry])
            else:
                each = registry.get(name)
                _print_entry(shell, self.entry(each), self.written(each))

        command.__doc__ = self.about
        command.__annotations__["name"] = Annotated[str | None, named]
        return command

    def _print_all(self, shell: Output, entries: Sequence[dict[str, Any]]) -> None:
        header = list(entries[0]) if entries else []
        cells = ([_cell(entry[key]) for key in header] for entry in entries)
        if shell.as_data({"schema": SCHEMA, "entries": entries}, header, cells):
            return
        columns = [Column(key, wraps=key in ("cost", self.columns[-1])) for key in self.columns]
        rows = ([_short(key, entry[key]) for key in self.columns] for entry in entries)
        shell.show(table(columns, rows))
        shell.suggest(line(f"\n{self.EXAMPLES[0]} NAME explains one, in full.", style="dim"))


def _print_entry(shell: Output, entry: dict[str, Any], example: str) -> None:
    """Print one entry in full, with an example for the policy."""
    cells = [_cell(value) for value in entry.values()]
    if shell.as_data({"schema": SCHEMA, "entries": [entry]}, list(entry), [cells]):
        return
    plain = {key: value for key, value in entry.items() if key not in ("parameters", "example")}
    shell.show(
        pairs((key.replace("_", " "), _cell(value)) for key, value in plain.items() if value != "")
    )
    if entry.get("parameters"):
        shell.show(heading("Parameters"))
        shell.show(pairs((each["name"], _parameter(each)) for each in entry["parameters"]))
    shell.show(heading("In a policy"), line("\n".join(f"  {text}" for text in example.split("\n"))))


def _parameter(parameter: dict[str, Any]) -> str:
    if parameter["required"]:
        return f"{parameter['description']} (required)"
    default = default_value(parameter["default"])
    return f"{parameter['description']}{f' (default {default})' if default else ''}"


def _short(key: str, value: object) -> str:
    """Return a cell of the list; all kinds of columns are "any"."""
    from aegis.masks import Kind

    every = key == "kinds" and isinstance(value, list) and len(value) == len(Kind)
    return "any" if every else _cell(value)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        named = [item["name"] if isinstance(item, dict) else str(item) for item in value]
        return ", ".join(named)
    return "" if value is None else str(value)


def _parameters(each: Iterable[tuple[str, str, bool, object]]) -> list[dict[str, Any]]:
    """Return parameters (name, description, whether required, default) as JSON values."""
    names = ("name", "description", "required", "default")
    return [dict(zip(names, jsonable(parameter), strict=True)) for parameter in each]


def _mask(mask: MaskType) -> dict[str, Any]:
    return {
        **json_fields(mask, "name", "description=summary", "kinds"),
        "deterministic": mask.mask.deterministic,
        "parameters": _parameters((p.name, p.doc, p.required, p.default) for p in mask.parameters),
        "example": mask.example,
    }


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        **json_fields(measure, "name", "title", "description", "formula", "scope"),
        **json_fields(measure, "better=direction", "range", "unit", "monotone", "cost"),
        "reference": measure.reference,
    }


def _anonymizer(anonymizer: Anonymizer) -> dict[str, Any]:
    from aegis.anonymizers import listed_options

    options = listed_options(anonymizer.options)
    return {
        **json_fields(anonymizer, "name", "description=summary", "cost", "style", "diverse"),
        "reference": anonymizer.reference,
        "parameters": _parameters((o.name, o.description, False, o.default) for o in options),
        "example": f"anonymizers: [{{{anonymizer.name}: {{k: 5}}}}]",
    }


def _privacy_model(model: PrivacyModel) -> dict[str, Any]:
    return {
        **json_fields(model, "name", "title", "description", "formula"),
        "needs": sorted(str(need) for need in model.needs),
        **json_fields(model, "monotone", "monotone_with_suppression", "argument", "reference"),
        "parameters": _parameters(
            (p.name, f"{p.description}; {p.range}", p.default is None, p.default)
            for p in model.parameters
        ),
        "example": _criterion(model),
    }


def _criterion(model: PrivacyModel) -> str:
    """Return a valid criterion of this model, as a policy writes it."""
    from aegis.privacy import PrivacyRule
    from aegis.privacy.model import ModelNeed

    parameters: dict[str, object] = {
        parameter.name: _typical(parameter) for parameter in model.parameters
    }
    if ModelNeed.SENSITIVE in model.needs:
        parameters["attribute"] = "diagnosis"
    written = PrivacyRule((model.criterion(parameters),)).to_mapping()[model.key]
    if isinstance(written, dict):
        written = "{" + ", ".join(f"{key}: {_plain(value)}" for key, value in written.items()) + "}"
    return f"privacy: {{{model.key}: {written}}}"


def _typical(parameter: ModelParameter) -> float:
    """Return a typical value of a parameter, for an example."""
    if parameter.default is not None:
        return parameter.default
    if math.isinf(parameter.high):
        return max(5.0 if parameter.whole else 2.0, parameter.low)
    return parameter.low + (parameter.high - parameter.low) / 5


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


LISTINGS = {
    "masks": RegistryListing(
        """List the masks that a policy can name, or explain one.

The list shows for each mask its name, the kinds of column that it accepts, and what
it does. With a name, Aegis also shows its parameters and how you write it in a
policy.
""",
        "aegis.masks:MASKS",
        _mask,
        lambda mask: f"masks: [{mask.example}]",
        ("name", "kinds", "description"),
        ("aegis masks", "aegis masks bucketize", "aegis masks --format json"),
    ),
    "anonymizers": RegistryListing(
        """List the record-level methods, or explain one.

The list shows for each method its name, how its cost grows with the rows, and what
it does. With a name, Aegis also shows its options and where it is published.
""",
        "aegis.anonymizers:ANONYMIZERS",
        _anonymizer,
        lambda anonymizer: f"anonymizers: [{anonymizer.name}]",
        ("name", "cost", "description"),
        ("aegis anonymizers", "aegis anonymizers mo-obam", "aegis anonymizers --format json"),
    ),
    "measures": RegistryListing(
        """List the measures that can rank configurations, or explain one.

The list shows for each measure its name, whether it scores one attribute or a whole
configuration, which values are better, and its meaning. With a name, Aegis also
shows formula, range, reference and properties.
""",
        "aegis.measures:MEASURES",
        _measure,
        lambda measure: f"measure: {measure.name}",
        ("name", "scope", "better", "title"),
        ("aegis measures", "aegis measures adjusted-pillai", "aegis measures --format csv"),
    ),
    "privacy-models": RegistryListing(
        """List the privacy models that a rule can require, or explain one.

The list shows for each model its name and its full name. With a name, Aegis also
shows what the model protects against, what it requires of a class, its parameters,
its reference, and how you write it in a policy.
""",
        "aegis.privacy:MODELS",
        _privacy_model,
        _criterion,
        ("name", "title"),
        (
            "aegis privacy-models",
            "aegis privacy-models l_diversity.entropy",
            "aegis privacy-models --format json",
        ),
    ),
}
"""The commands by name."""
