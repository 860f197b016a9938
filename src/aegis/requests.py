"""Define requests to a study as frozen dataclasses, which the command line, `Study` and the API
fill in.

For each request, there is a `TypedDict` with the same fields, for functions that accept the fields
as keywords.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, runtime_checkable

from aegis.options import documented, keyword, option
from aegis.signing import PrivateKey

if TYPE_CHECKING:
    from aegis.policy import Configuration, OwnerRule

Configurations = Mapping[str, "Configuration"] | Sequence["Configuration"]
"""Configurations, by name or as a sequence."""


@runtime_checkable
class Span(Protocol):
    """A parameter of the privacy rule, and the values that it takes along a Pareto front."""

    @property
    def parameter(self) -> str:
        """The name of the parameter, such as `k`."""

    @property
    def values(self) -> tuple[float, ...]:
        """The values of the parameter, from the weakest to the strictest."""


class Dialect(StrEnum):
    """The SQL dialects in which Aegis can write the SQL of a release."""

    DUCKDB = "duckdb"
    POSTGRES = "postgres"
    SNOWFLAKE = "snowflake"
    BIGQUERY = "bigquery"
    TRINO = "trino"
    DATABRICKS = "databricks"
    CLICKHOUSE = "clickhouse"
    SPARK = "spark"


class Form(StrEnum):
    """The form in which Aegis writes a release as SQL: a query, or a statement that creates a view
    or a table.
    """

    SELECT = "select"
    VIEW = "view"
    TABLE = "table"


SEARCH_WORK = 30.0
"""Work after which `advise` ends a search if the user sets no time limit (see
`SearchRequest.work`).
"""


@documented
@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """The options of a search through all combinations of the candidate masks."""

    objective: str | None = option(
        None,
        "What the search optimises: a measure (the default) or an information loss: "
        "nu-entropy, loss, precision, discernibility, classification or class-entropy. You "
        "can add options, such as loss(mean=geometric,factor=0.5).",
        "NAME",
        offers="objectives",
    )
    measure: str | None = keyword(None, "Measure that scores the results of the search.")
    top: int = keyword(5, "Number of best configurations to return, at least 1.")
    time_limit: float | None = option(
        None,
        "Search until the best is proven, or until this time is over. Aegis then prints the best so "
        "far and its gap. Without this option, the search stops after the most promising "
        "combinations, or after work that takes about 30 seconds on an idle machine. A busy "
        "machine takes longer and finds the same. The time to read the table does not count.",
        "SECONDS",
    )
    front: Span | str | None = option(
        None,
        "Also find the best for each of several rules, such as k=2..50. You can vary k, "
        "risk, suppression, or a parameter in the policy's rule, such as l or t.",
        "RANGE",
        kind=str | None,
    )
    prefer: str | None = option(
        None,
        "Which configuration comes first among those within 0.002 of the highest AUC: "
        "least-masking (default of a search), most-private, or score (default of a ranking).",
        "NAME",
    )
    resume: str | Path | None = option(
        None,
        "Save an unfinished search in this file. If the file exists, continue from it, with "
        "the same table, policy, measure and --top.",
        "FILE",
        kind=Path | None,
    )
    prove: bool = keyword(
        False,
        "For a measure with a loose bound (expected AUC): whether to continue until the best "
        "is proven or the time limit ends. The reported gap falls over time.",
    )
    work: float | None = keyword(
        None,
        "Without a time limit: the work after which the search stops, in seconds of an ordinary "
        "idle machine. Aegis counts the work, so the result does not depend on how busy the machine "
        "is.",
    )
    explain_best: bool = keyword(
        False,
        "Whether to also find why the rule allows no finer masks, the cost of each mask "
        "alone, and the expected metric of models.",
    )


class SearchOptions(TypedDict, total=False):
    """The fields of `SearchRequest`, as keywords of a function."""

    objective: str | None
    measure: str | None
    top: int
    time_limit: float | None
    front: Span | str | None
    prefer: str | None
    resume: str | Path | None
    prove: bool
    work: float | None
    explain_best: bool


@documented
@dataclass(frozen=True, kw_only=True)
class RankRequest:
    """The options of a ranking of configurations."""

    configurations: Configurations | None = keyword(
        None, "Configurations to rank. By default, those of the policy, or else 50 random ones."
    )
    generate_count: int | None = keyword(
        None, "Rank this many random combinations of the candidate masks instead."
    )
    measure: str | None = keyword(
        None,
        "Name of a measure. By default, the policy's measure, or else the default for rankings.",
    )
    estimate: str | None = keyword(
        None,
        "Rank by the estimated deviation from the raw table, the smallest first (Algorithm 1 "
        "of the AEGIS paper). One of `aegis.advisor.ranked.ESTIMATES`.",
    )
    prefer: str | None = keyword(
        None,
        "Which configuration comes first among those that score about the same: "
        "`least-masking`, `most-private` or `score` (the default).",
    )
    seed: int | None = keyword(
        None, "Seed of random configurations and methods. By default, the seed of the study."
    )


class RankOptions(TypedDict, total=False):
    """The fields of `RankRequest` as keywords, without `configurations`, which are an argument."""

    generate_count: int | None
    measure: str | None
    estimate: str | None
    prefer: str | None
    seed: int | None


@documented
@dataclass(frozen=True, kw_only=True)
class ReleaseRequest:
    """The options of a release: the files to write, and the utility that its certificate states."""

    output: str | Path | None = option(
        None,
        "The released table to write: .parquet, .csv, .tsv, .xlsx, .arrow or .feather.",
        "FILE",
        short="-o",
        kind=Path | None,
    )
    certificate: str | Path | None = option(
        None,
        "Write a certificate (JSON): digests, options, losses and every privacy figure.",
        "FILE",
        kind=Path | None,
    )
    key: PrivateKey | None = keyword(
        None, "Private key that signs the certificate (`aegis.signing.load_private_key`)."
    )
    measure: str | None = option(
        None,
        "The measure of utility that the certificate states. By default, the measure in the "
        "configuration file, or else the policy's measure.",
        "NAME",
        offers="measures",
    )
    safe_csv: bool = option(
        False,
        "Put an apostrophe before CSV texts that begin with =, +, -, @ or a tab. "
        "Spreadsheets would run them as formulas.",
    )
    seed: int | None = option(
        None,
        "Seed of random draws, to repeat a run. Anyone who knows the seed can undo draws that "
        "protect. So by default, such draws come from the operating system.",
        "N",
        least=0,
    )
    force: bool = option(False, "Overwrite existing files.")


class ReleaseOptions(TypedDict, total=False):
    """The fields of `ReleaseRequest` except the output, as keywords of a function."""

    certificate: str | Path | None
    key: PrivateKey | None
    measure: str | None
    safe_csv: bool
    seed: int | None
    force: bool


@documented
@dataclass(frozen=True, kw_only=True)
class ApplyRequest(ReleaseRequest):
    """The options of a release under one configuration."""

    output: str | Path | None = option(
        None,
        "The masked table to write: .parquet, .csv, .tsv, .xlsx, .arrow or .feather. With --engine "
        "spark: a folder of Parquet files, such as hdfs://... or s3a://...",
        "FILE",
        short="-o",
        kind=str | None,
    )
    into: str | None = option(
        None,
        "Write to this new table in the database that holds the data, instead of a file.",
        "NAME",
    )
    form: str = keyword(
        "table",
        'Form of the release in the database: "table" or "view". A view changes with the '
        "table. It shows no row while the table does not meet the rule.",
    )
    certificate: str | Path | None = option(
        None,
        "Write a certificate (JSON): digests, masks and every privacy figure. Use it with "
        "--output, not with --into.",
        "FILE",
        kind=Path | None,
    )
    after: Sequence[Configuration] = keyword(
        (),
        "Configurations of earlier releases of the same table. Aegis then checks the rule on "
        "the classes that a reader of all these releases sees.",
    )
    made_under: OwnerRule | None = keyword(
        None,
        "Rule of the summary from which the configuration was chosen. The advice and the "
        "file of the configuration name it (`aegis.policy.owner_of_choice`).",
    )
    rule_override: bool = option(
        False,
        "Use the policy's rule even if the summary was made under another rule. The result then "
        "says so. A locked summary still refuses a weaker rule.",
    )


class StudyApplyOptions(ReleaseOptions, total=False):
    """The fields of `ApplyRequest` except the output, as keywords of `Study.apply`."""

    into: str | None
    form: str
    after: Sequence[Configuration]
    made_under: OwnerRule | None
    rule_override: bool


class ApplyOptions(StudyApplyOptions, total=False):
    """The fields of `ApplyRequest`, as keywords of a function."""

    output: str | Path | None


@documented
@dataclass(frozen=True, kw_only=True)
class AnonymizeRequest(ReleaseRequest):
    """The options of a release by a record-level method."""

    options: Mapping[str, Any] | None = keyword(
        None,
        "Options of the method. By default, k and l come from the policy's rule.",
    )
    style: str | None = option(
        None,
        "How to show a group: centroid (one typical value) or generalised (ranges and sets). "
        "By default, the method decides.",
        "NAME",
    )
    front: bool = option(
        False,
        "For mo-obam: also try a grid of cluster numbers and weights, and show information "
        "loss against diversity.",
    )
    kinds: Mapping[str, str] | None = keyword(
        None,
        "Kinds of quasi-identifiers (numeric, ordinal, categorical), if they differ from "
        "the policy and from the default for the column's type.",
    )
    orders: Mapping[str, Sequence[Any]] | None = keyword(
        None,
        "Orders of quasi-identifiers (ascending values), if they differ from the natural "
        "order and from the policy.",
    )


class AnonymizeOptions(ReleaseOptions, total=False):
    """The fields of `AnonymizeRequest`, as keywords of a function."""

    output: str | Path | None
    options: Mapping[str, Any] | None
    style: str | None
    front: bool
    kinds: Mapping[str, str] | None
    orders: Mapping[str, Sequence[Any]] | None


@documented
@dataclass(frozen=True, kw_only=True)
class RiskRequest:
    """The options of a measurement of the risk of single records."""

    policy: Any = option(
        None,
        "Take quasi-identifiers and weight from this policy (YAML), unless you give them by options.",
        "FILE",
        short="-p",
        kind=Path | None,
    )
    quasi_identifiers: Sequence[str] = keyword((), "Columns that others may know.")
    weight: str | None = option(
        None,
        "Column with the number of people that each record represents. By default, the weight of the "
        "policy, or else 1.",
        "COLUMN",
        offers="columns",
    )
    missing: str = option(
        "value",
        "How a missing value compares: value (a separate value) or wildcard (equal to any value).",
        "value|wildcard",
    )
    approximate: bool = option(False, "Approximate the risk as sdcMicro does by default.")
    special: bool = option(
        False,
        "Also find special uniques (SUDA): records that are unique by a few of their values.",
    )
    largest: int | None = option(
        None,
        "With --special: the largest number of columns in a set in which a record is unique (default: "
        "all columns).",
        "N",
        least=1,
    )
    fraction: float = option(
        0.01,
        "Sampling fraction: the share of the population that is in the table. Used for the "
        "risk of special uniques.",
        "SHARE",
    )
    original: Any = option(
        None,
        "The table before masking, with the same records in the same order, for --compare.",
        "TABLE",
        kind=str | None,
    )
    numbers: Sequence[str] = option(
        (),
        "Numeric columns to compare with the same columns of --original.",
        "A,B,...",
        name="compare",
        kind=list[str] | None,
        offers="columns",
    )
    interval: float = option(
        0.05,
        "With --compare: how close a guess must be to the original number, in standard "
        "deviations of the masked column.",
        "SHARE",
    )


class RiskOptions(TypedDict, total=False):
    """The fields of `RiskRequest`, as keywords of a function."""

    policy: Any
    quasi_identifiers: Sequence[str]
    weight: str | None
    missing: str
    approximate: bool
    special: bool
    largest: int | None
    fraction: float
    original: Any
    numbers: Sequence[str]
    interval: float
