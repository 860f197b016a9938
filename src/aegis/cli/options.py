"""Define options that several commands share, so that they have one meaning."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from aegis.cli import completion
from aegis.errors import PolicyError


class Format(StrEnum):
    """The format of printed results."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, Parquet, Arrow or JSON: a file, a folder or a quoted glob; or the URL "
        "of a database (postgres://...), with --table.",
    ),
]
TableName = Annotated[
    str | None,
    typer.Option("--table", metavar="NAME", help="The table of the database: name or schema.name."),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="Most memory of the embedded engine, such as 4GB; what does not fit goes to disk "
        "(TMPDIR). By default 80 % of the machine's.",
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


EngineOption = Annotated[
    FileEngine | None,
    typer.Option(
        "--engine",
        help="The engine that reads TABLE: duckdb, in this process (the default), or spark; "
        "TABLE is then a path of Parquet files or a table of Spark's catalog.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Where Spark runs: local[4], spark://HOST:7077, yarn, k8s://... By default what its "
        "own configuration says.",
    ),
]
TableOrBundle = Annotated[
    str,
    typer.Argument(
        metavar="TABLE|SUMMARY",
        help="A table (file, folder, quoted glob, or the URL of a database, with --table), or the "
        "summary of one (.aegis).",
    ),
]
PolicyFile = Annotated[
    Path, typer.Option("--policy", "-p", metavar="FILE", help="The policy (YAML).")
]
FormatOption = Annotated[
    Format,
    typer.Option(
        "--format", "-f", help="How to print results: table, json or csv.", case_sensitive=False
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Results only: no progress, no warnings, no next steps."),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        min=0,
        metavar="N",
        help="Number that starts all random draws: a run with the same seed gives the same result.",
    ),
]
ReleaseSeed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        metavar="N",
        help="Number that starts all random draws, so that you can repeat a run. By default draws "
        "that protect come from the randomness of the system: a reader who knows the seed can undo them.",
    ),
]
VerifyKey = Annotated[
    Path | None,
    typer.Option(
        "--verify-key",
        metavar="FILE",
        help="Refuse a summary unless it was signed with the private key that belongs to "
        "this public key (PEM; aegis keygen makes pairs).",
    ),
]
SignCertificate = Annotated[
    Path | None,
    typer.Option(
        "--sign",
        metavar="FILE",
        help="Sign the certificate with this private key (PEM; aegis keygen makes pairs), so that anybody with the public key can check who made it. Needs --certificate.",
    ),
]
RuleOverride = Annotated[
    bool,
    typer.Option(
        "--rule-override",
        help="Use the policy's rule although the summary was made under another one; the result says "
        "so. A rule weaker than that of a locked summary is refused all the same.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
SafeCsv = Annotated[
    bool,
    typer.Option(
        "--safe-csv",
        help="Write CSV with an apostrophe before texts that begin with =, +, -, @ or a tabulator, "
        "which spreadsheets take for formulas.",
    ),
]
Measure = Annotated[
    str | None,
    typer.Option(
        "--measure",
        "-m",
        metavar="NAME",
        autocompletion=completion.measures,
        help="Measure that ranks, instead of the policy's (aegis measures lists them).",
    ),
]
Merit = Annotated[
    str | None,
    typer.Option(
        "--merit",
        metavar="NAME",
        help="Rank by a predicted model metric: auc, accuracy or log-loss.",
    ),
]
Models = Annotated[
    str | None,
    typer.Option(
        "--models",
        metavar="NAMES",
        help="The models whose metric is predicted, with equal weights: lr (logistic "
        "regression), nb (naive Bayes), gbdt (boosted trees), pairs (the same with "
        "the strongest interaction of two attributes; AUC only), separated by commas. By default "
        "the better one of linear models and trees.",
    ),
]
ReleasedConfiguration = Annotated[
    Path | None,
    typer.Option(
        "--configuration",
        "-c",
        metavar="FILE",
        help="The configuration to release (YAML), as aegis advise -o writes it. Without it, the policy's "
        "own configurations are read.",
    ),
]
ConfigurationName = Annotated[
    str | None,
    typer.Option(
        "--name", metavar="NAME", help="Name of the configuration, if the file holds several."
    ),
]
UtilityMeasure = Annotated[
    str | None,
    typer.Option(
        "--measure",
        metavar="NAME",
        autocompletion=completion.measures,
        help="Measure of the utility that the certificate states: by default the one in the file of the configuration, otherwise that of the policy.",
    ),
]
Configurations = Annotated[
    Path | None,
    typer.Option(
        "--configurations", metavar="FILE", help="Rank the configurations of this file (YAML)."
    ),
]
Generate = Annotated[
    int | None,
    typer.Option(
        "--generate",
        metavar="N",
        help="Rank N random combinations of the candidate masks, for experiments.",
    ),
]
With = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="A,B,...",
        autocompletion=completion.methods,
        help="Also the releases of these record-level methods, in addition to the configurations "
        "(aegis anonymizers lists them); by default those of the policy.",
    ),
]


NoValues = Annotated[
    bool,
    typer.Option(
        "--no-values",
        help="No values of the table in the report: no rows, no column before and after.",
    ),
]
LeaveOut = Annotated[
    list[str] | None,
    typer.Option(
        "--leave-out",
        metavar="A,B,...",
        autocompletion=completion.columns,
        help="Attributes to leave out of scores and release, as if the policy ignored them.",
    ),
]


QuasiIdentifiers = Annotated[
    list[str] | None,
    typer.Option(
        "--quasi-identifiers",
        metavar="A,B,...",
        autocompletion=completion.columns,
        help="Columns that others may know, separated by commas, or the option given again. A "
        "name that holds a comma goes in double quotes: 'age,\"city, state\"'.",
    ),
]
Population = Annotated[
    str | None,
    typer.Option(
        "--population",
        metavar="TABLE",
        help="The table that this one is a sample of, with the values that it has before it is "
        "masked: a row per person, or a column `rows` that counts them. For k_map, delta_presence "
        "and the journalist and marketer risks; in place of the policy's population.",
    ),
]


After = Annotated[
    list[Path] | None,
    typer.Option(
        "--after",
        metavar="FILE",
        help="An earlier release of the same table, a certificate (.json) or a configuration"
        " (.yaml): whoever has both releases must not get below the rule either. May be"
        " given again.",
    ),
]


def split_names(given: list[str] | None) -> list[str] | None:
    """Return names from repeated options, each a comma-separated list; None if not given."""
    if given is None:
        return None
    names = [name.strip() for text in given for name in text.split(",")]
    return list(dict.fromkeys(name for name in names if name))


def column_names(given: list[str] | None) -> list[str] | None:
    """Return column names from repeated options, each a line of CSV."""
    if given is None:
        return None
    try:
        lines = list(csv.reader(given, skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise PolicyError(
            f"The list of columns {', '.join(given)} cannot be read: {error}.",
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

    measure: Measure = None
    merit: Merit = None
    models: Models = None

    @property
    def name(self) -> str | None:
        """The name of the requested measure; None if none was requested.

        Raises
        ------
        PolicyError
            Both a measure and a metric were requested, or a metric or model is unknown.
        """
        return asked_measure(self.measure, self.merit, self.models)

    @property
    def first_model(self) -> str:
        """The first of the requested models; logistic regression if none was requested."""
        return (self.models or "lr").replace("+", ",").split(",")[0]


def asked_measure(measure: str | None, merit: str | None, models: str | None) -> str | None:
    """Return the name of the measure that the options request, by name or by a model metric.

    Raises
    ------
    PolicyError
        Both were requested, or a metric or model is unknown.
    """
    if merit is None and models is None:
        return measure
    from aegis.measures import merit_name

    if measure is not None:
        raise PolicyError(
            "Both --measure and --merit or --models were given.", hint="Give one of them."
        )
    return merit_name(merit, models)
