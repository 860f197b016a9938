"""Convert records to the options of commands, and find the defaults of options in files.

Each field of a record that a function accepts becomes one option. Several commands share the
options that are defined here, so each option has one meaning everywhere. The files of the folder,
the project and the user can set other defaults.
"""

from __future__ import annotations

import csv
import functools
import inspect
import math
import os
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from aegis.cli import completion
from aegis.errors import PolicyError, allowed_value, choices
from aegis.files import read_text
from aegis.options import Option, group_of, option, own_options
from aegis.words import brief

LAST = ("format", "seed", "force", "quiet")
"""The options that the help of each command lists last, in this order, by the name of the
parameter.
"""
_LARGEST = 1 << 63
"""Whole numbers must be below this: those of engines and seeds have 64 bits."""


def takes_records(
    command: Callable[..., None], before: Callable[[Mapping[str, Any]], None] | None = None
) -> Callable[..., None]:
    """Return a command in which each parameter that is a record is replaced by one option for each
    field. Its docstring is the help. `before` is called before any record is made, with the values
    of all options by name.
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    records = {name: p.annotation for name, p in parameters.items() if is_dataclass(p.annotation)}
    listed: list[inspect.Parameter] = []
    for name, parameter in parameters.items():
        if name in records:
            listed += _ordered(records[name])
        else:
            listed.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def with_options(**values: Any) -> None:
        if before is not None:
            before(values)
        filled = {name: _filled(record, values) for name, record in records.items()}
        command(**filled, **{name: values[name] for name in parameters if name not in records})

    with_options.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in listed}
    return with_options


def _ordered(record: Any) -> list[inspect.Parameter]:
    """Return the options of a record in the order of its fields, with `LAST` at the end."""
    return sorted(_parameters(record), key=lambda p: p.name in LAST and LAST.index(p.name) + 1)


def _parameters(record: Any) -> Iterator[inspect.Parameter]:
    for field, described, kind in _option_fields(record):
        if is_dataclass(kind):
            yield from _parameters(kind)
            continue
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        if described is not None:
            kind = Annotated[
                described.kind or kind, _typer_option(_name(field, described), described)
            ]
            default = None if default == () else default
        yield inspect.Parameter(
            _name(field, described),
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=kind,
        )


def _option_fields(record: Any) -> Iterator[tuple[Field[Any], Option | None, Any]]:
    """Yield each field that becomes an option, with its declaration (None for a nested record or
    without one) and its type (None if the declaration states it).
    """
    options = own_options(record)
    for field in fields(record):
        described, grouped = options.get(field.name), group_of(field)
        if grouped is not None:
            yield field, None, grouped
        elif described is None or described.on_command_line:
            kind = None if described is not None and described.kind else _kind(record, field)
            yield field, described, kind


def given_options(record: Any) -> dict[str, object]:
    """Return the options of a record that differ from the defaults, by name."""
    changed: dict[str, object] = {}
    for field, described, kind in _option_fields(type(record)):
        value = getattr(record, field.name)
        if is_dataclass(kind):
            changed |= given_options(value)
        elif value != field.default:
            changed[_long_name(field, described, kind)] = value
    return changed


def _long_name(field: Field[Any], option: Option | None, kind: Any) -> str:
    """Return an option's name on the command line: the first declared one, else the field's."""
    for described in getattr(kind, "__metadata__", ()):
        # Of an annotation typer keeps the first name as the default.
        for name in (described.default, *(described.param_decls or ())):
            if isinstance(name, str) and name.startswith("--"):
                return name.partition("/")[0]
    return f"--{_name(field, option).replace('_', '-')}"


def _kind(record: Any, field: Field[Any]) -> Any:
    """Return the type of a field, evaluated in the module of the class that declares it."""
    home = next(c for c in record.__mro__ if field.name in vars(c).get("__annotations__", {}))
    alone = type(field.name, (), {"__annotations__": {field.name: field.type}})
    names = vars(sys.modules[home.__module__])
    return get_type_hints(alone, names, include_extras=True)[field.name]


def _name(field: Field[Any], option: Option | None) -> str:
    return (option and option.name) or field.name


def _typer_option(name: str, option: Option) -> Any:
    return typer.Option(
        f"--{name.replace('_', '-')}",
        *(() if option.short is None else (option.short,)),
        metavar=option.metavar,
        help=option.text,
        min=option.least,
        autocompletion=None if option.offers is None else getattr(completion, option.offers),
    )


def _filled(record: Any, option_values: Mapping[str, Any]) -> Any:
    """Build a record (dataclass) of the given class from the values of options, by name."""
    values = {}
    for field, described, kind in _option_fields(record):
        name = _name(field, described)
        if is_dataclass(kind):
            values[field.name] = _filled(kind, option_values)
        elif name in option_values:
            values[field.name] = option_values[name]
    return record(**values)


def with_numbers_checked(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that it rejects NaN, infinities and numbers that are too large."""

    @functools.wraps(command)
    def checked(**arguments: Any) -> None:
        for name, value in arguments.items():
            _check(f"--{name.replace('_', '-')}", value)
        command(**arguments)

    return checked


def _check(option: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    is_integer = isinstance(value, int)
    if (-_LARGEST <= value < _LARGEST) if is_integer else math.isfinite(value):
        return
    raise PolicyError(
        f"{option} is {brief(value)}.",
        hint="Allowed are whole numbers of at most 64 bits."
        if is_integer
        else "Allowed are numbers that are finite.",
    )


FOLDER = "aegis.toml"
"""The file in the current folder that overrides all others."""
PROJECT = "pyproject.toml"
"""The file of a project in the current folder; its table `tool.aegis` has defaults."""
VARIABLE = "AEGIS_CONFIG"
"""The environment variable that names another file instead of the user's file; if it is empty, the
user has no file.
"""
_NEVER = ("help", "version", "install-completion", "show-completion")


def user_file() -> Path | None:
    """Return the path of the user's file of defaults; None if there is none."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named) if named else None
    if sys.platform == "win32":
        folder = os.environ.get("APPDATA")
        return Path(folder, "aegis", "config.toml") if folder else None
    folder = os.environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(folder, "aegis", "config.toml")


def read_defaults(root: Any) -> dict[str, Any]:
    """Return the defaults of all commands in the group `root`, in the form that the parser of the
    command line needs. Raise `PolicyError` if a file is not TOML, names an unknown command or
    option, or has an invalid value for an option.

    Top-level keys apply to all commands that have the option. A section such as `[advise]` applies
    only to this command, and overrides top-level keys. The file of the folder overrides the file of
    the project, which overrides the file of the user. Options on the command line override all
    files.
    """
    defaults: dict[str, Any] = {}
    for where, data in _files():
        _merge(defaults, _resolved(root, data, where))
    return defaults


def has_defaults() -> bool:
    """Return whether a file of the user, the project or the folder sets defaults. If so, all
    commands must be loaded to check the file.
    """
    return any(data for _, data in _files())


def _files() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and content of each file with defaults, from the lowest to the highest priority."""
    user_path = user_file()
    if user_path is not None and user_path.is_file():
        yield str(user_path), _toml(user_path)
    if Path(PROJECT).is_file():
        tables = _toml(Path(PROJECT)).get("tool", {})
        yield f"{PROJECT} (tool.aegis)", tables.get("aegis", {})
    if Path(FOLDER).is_file():
        yield FOLDER, _toml(Path(FOLDER))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path, "file of defaults", PolicyError))
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{path} is not TOML: {error}.", hint="Write KEY = VALUE.") from error


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, Mapping):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


def _resolved(command: Any, data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the defaults for a command and its subcommands from the content of a file, which errors
    call `where`.
    """
    below: Mapping[str, Any] = getattr(command, "commands", {})
    everywhere = {k.replace("_", "-"): v for k, v in data.items() if not isinstance(v, Mapping)}
    option_names = set(_all_options(command))
    for key in everywhere:
        if key not in option_names:
            raise PolicyError(
                f"{where}: no command has an option {key!r}.", hint=choices(key, option_names)
            )
    defaults = _applied(command, everywhere, where)
    for name, table in data.items():
        if isinstance(table, Mapping):
            if name not in below:
                raise PolicyError(
                    f"{where}: there is no command {name!r}.", hint=choices(name, below)
                )
            _merge(defaults[name], _resolved(below[name], table, f"{where} [{name}]"))
    return defaults


def _applied(command: Any, everywhere: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return those defaults in `everywhere` whose option a command or its subcommands have."""
    options = _options(command)
    defaults: dict[str, Any] = {
        options[key].name: _checked(command, options[key], value, f"{where}: {key}")
        for key, value in everywhere.items()
        if key in options
    }
    for name, subcommand in getattr(command, "commands", {}).items():
        defaults[name] = _applied(subcommand, everywhere, where)
    return defaults


def _options(command: Any) -> dict[str, Any]:
    """Return the options of a command by their long names, without the leading dashes."""
    return {
        spelling.lstrip("-"): option
        for option in command.params
        if option.param_type_name == "option"
        for spelling in option.opts
        if spelling.startswith("--") and spelling.lstrip("-") not in _NEVER
    }


def _all_options(command: Any) -> Iterator[str]:
    yield from _options(command)
    for subcommand in getattr(command, "commands", {}).values():
        yield from _all_options(subcommand)


def _checked(command: Any, option: Any, value: Any, where: str) -> Any:
    """Return the default `value` of an option; raise `PolicyError` if the option does not accept
    it.
    """
    if option.is_flag and not isinstance(value, bool):
        raise PolicyError(f"{where} is {value!r}.", hint="Write true or false.")
    if isinstance(value, list) != bool(option.multiple):
        allowed = "a list" if option.multiple else "one value"
        raise PolicyError(f"{where} is {value!r}.", hint=f"Write {allowed}.")
    try:
        option.process_value(command.context_class(command), value)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        in_plain_words(error)
        raise PolicyError(f"{where} is {value!r}: {error.message}", hint="Correct it.") from error  # type: ignore[attr-defined]
    return value


def in_plain_words(error: Any) -> None:
    """Let an error of an option state its value and the allowed ones, not the text of the parser."""
    if not hasattr(error.__cause__, "errors"):
        return
    problems = []
    for wrong in error.__cause__.errors():
        allowed = allowed_value(wrong)
        by_us = wrong["type"] == "value_error"
        problems.append(allowed if by_us else f"{brief(wrong['input'])} is not {allowed}")
    error.message = "; ".join(problems)


def file_option(*names: str, text: str) -> Any:
    """Return the option for a file; `text` is its help."""
    return typer.Option(*names, metavar="FILE", help=text)


def output_file(text: str) -> Any:
    """Return the option for the file to write; `text` is its help."""
    return file_option("--output", "-o", text=text)


class Format(StrEnum):
    """The format of printed results."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="The table: a file (CSV, Parquet, Arrow, JSON), a folder, a quoted glob, or the URL "
        "of a database (postgres://...) with --table.",
    ),
]
TableName = Annotated[
    str | None,
    typer.Option(
        "--table", metavar="NAME", help="The table in the database, such as staff or hr.staff."
    ),
]


class FileEngine(StrEnum):
    """The engines that can read files."""

    DUCKDB = "duckdb"
    SPARK = "spark"

    @property
    def elsewhere(self) -> bool:
        """Whether the engine runs outside this process, with separate files and memory."""
        return self is FileEngine.SPARK


TableOrBundle = Annotated[
    str,
    typer.Argument(
        metavar="TABLE|SUMMARY",
        help="A table (file, folder, quoted glob, or URL of a database with --table) or its "
        "summary (.aegis).",
    ),
]
PolicyFile = Annotated[Path, file_option("--policy", "-p", text="The policy (YAML).")]
PolicyOfTable = Annotated[
    Path | None, file_option("--policy", "-p", text="The policy (YAML). Not needed for a summary.")
]
ReportFile = Annotated[Path | None, file_option("--report", text="Write a report (one HTML file).")]
ExactPairs = Annotated[
    bool, typer.Option("--exact", help="Count pairs of values on all rows, not on a sample.")
]
FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        "-f",
        help="The format of printed results: table, json or csv.",
        case_sensitive=False,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print results only: no progress, warnings or next steps."),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        min=0,
        metavar="N",
        help="Seed of all random draws: the same seed gives the same result.",
    ),
]
VerifyKey = Annotated[
    Path | None,
    file_option(
        "--verify-key",
        text="Accept only a summary with a valid signature for this public key (PEM, from aegis "
        "keygen).",
    ),
]
SignCertificate = Annotated[
    Path | None,
    file_option(
        "--sign",
        text="Sign the certificate with this private key (PEM, from aegis keygen). Anyone with "
        "the public key can then check who made it. Needs --certificate.",
    ),
]
RuleOverride = Annotated[
    bool,
    typer.Option(
        "--rule-override",
        help="Use the policy's rule even if the summary was made under another rule. The result "
        "then says so. A locked summary still refuses a weaker rule.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
ReleasedConfiguration = Annotated[
    Path | None,
    file_option(
        "--configuration",
        "-c",
        text="The configuration to release (YAML), as aegis advise -o writes it. Without it, "
        "Aegis takes the configuration in the policy.",
    ),
]
ConfigurationName = Annotated[
    str | None,
    typer.Option(
        "--name", metavar="NAME", help="Which configuration to take, if the file holds several."
    ),
]
Configurations = Annotated[
    Path | None,
    file_option("--configurations", text="Rank the configurations of this file (YAML)."),
]
Generate = Annotated[
    int | None,
    typer.Option(
        "--generate",
        metavar="N",
        min=1,
        help="Rank N random combinations of the candidate masks, for experiments.",
    ),
]
With = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="A,B,...",
        autocompletion=completion.methods,
        help="Rank releases of these record-level methods, too (aegis anonymizers lists them). By "
        "default: those in the policy.",
    ),
]


NoValues = Annotated[
    bool,
    typer.Option(
        "--no-values",
        help="Show no values of the table in the report: no rows, no columns before and after, no "
        "values that masks learnt, and no values in warnings and notes. The report then also does not "
        "state how many rows have a value, null or a label class, or are in classes of some size, if they "
        "are fewer than the k of the rule (10 if it has none), and no size of a smaller class of the table.",
    ),
]
LeaveOut = Annotated[
    list[str] | None,
    typer.Option(
        "--leave-out",
        metavar="A,B,...",
        autocompletion=completion.columns,
        help="Attributes to leave out of scores and release.",
    ),
]


QuasiIdentifiers = Annotated[
    list[str] | None,
    typer.Option(
        "--quasi-identifiers",
        metavar="A,B,...",
        autocompletion=completion.columns,
        help="Columns that others may know, separated by commas. Put a name with a comma in double "
        "quotes: 'age,\"city, state\"'.",
    ),
]
Population = Annotated[
    str | None,
    typer.Option(
        "--population",
        metavar="TABLE",
        help="The population that this table is a sample of, unmasked: one row per person, or a "
        "column `rows` with counts. Used for k_map, delta_presence, and the journalist and "
        "marketer risks. Replaces the policy's population.",
    ),
]


After = Annotated[
    list[Path] | None,
    file_option(
        "--after",
        text="An earlier release of this table: its certificate (.json) or configuration (.yaml). "
        "The rule must also hold for somebody who has both releases. Repeat the option for "
        "several.",
    ),
]


def refuse(options: Mapping[str, object], why: str, hint: str) -> None:
    """Raise `PolicyError` if the user gave one of these `options`. `why` completes the message
    after the name of the option.
    """
    for name, value in options.items():
        if value is not None:
            raise PolicyError(f"{name} {why}.", hint=hint.format(name))


def split_names(texts: list[str] | None) -> list[str] | None:
    """Return the names in repeated options with comma-separated lists; None without options."""
    if texts is None:
        return None
    names = [name.strip() for text in texts for name in text.split(",")]
    return list(dict.fromkeys(name for name in names if name))


def column_names(texts: list[str] | None) -> list[str] | None:
    """Return the column names in repeated options, each of which is a line of CSV."""
    if texts is None:
        return None
    try:
        lines = list(csv.reader(texts, skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise PolicyError(
            f"The list of columns {', '.join(texts)} cannot be read: {error}.",
            hint="Separate names by commas, and put a name that holds one in double quotes, one at "
            "each end.",
        ) from error
    names = [name.strip() for line in lines for name in line]
    if not any(names):
        raise PolicyError(
            "No column is named: the list is empty.", hint="Name columns, separated by commas."
        )
    return list(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """Options that choose the measure or the expected model metric of a ranking."""

    measure: str | None = option(
        None,
        "The measure to rank by, instead of the policy's (aegis measures lists them).",
        "NAME",
        short="-m",
        offers="measures",
    )
    merit: str | None = option(
        None, "Rank by a predicted model metric: auc, accuracy or log-loss.", "NAME"
    )
    models: str | None = option(
        None,
        "The models whose metric --metric predicts, separated by commas: lr (logistic "
        "regression), nb (naive Bayes), gbdt (boosted trees), pairs (gbdt with the strongest "
        "interaction of two attributes; AUC and R2 only). Several models count equally. The default is "
        "the better of linear models and trees.",
        "NAMES",
    )

    @property
    def name(self) -> str | None:
        """The name of the measure that the user requested, or None. Raise `PolicyError` if both a
        measure and a metric were requested, or a metric or model is unknown.
        """
        if self.merit is None and self.models is None:
            return self.measure
        from aegis.measures import metric_name

        if self.measure is not None:
            raise PolicyError(
                "You gave --measure together with --metric or --models.", hint="Give one of them."
            )
        return metric_name(self.merit, self.models)

    @property
    def first_model(self) -> str:
        """The first requested model; logistic regression if no model was requested."""
        return (self.models or "lr").replace("+", ",").split(",")[0]
