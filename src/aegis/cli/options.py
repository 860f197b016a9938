"""Define options that several commands share, so that each option has one meaning everywhere."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from aegis.cli import completion
from aegis.errors import PolicyError
from aegis.options import option


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
        help="Show no values of the table in the report: no rows, and no columns before and after.",
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


def split_names(given: list[str] | None) -> list[str] | None:
    """Return the names in repeated options, each of which is a comma-separated list; None if there
    are no options.
    """
    if given is None:
        return None
    names = [name.strip() for text in given for name in text.split(",")]
    return list(dict.fromkeys(name for name in names if name))


def column_names(given: list[str] | None) -> list[str] | None:
    """Return the column names in repeated options, each of which is a line of CSV."""
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
        """The name of the measure that the user requested; None if the user requested none.

        Raises
        ------
        PolicyError
            Both a measure and a metric were requested, or a metric or model is unknown.
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
