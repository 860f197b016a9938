"""Requests to a study as frozen dataclasses, which the command line, `Study` and the API fill in.

Each has a `TypedDict` of the same fields, by which functions accept them as keywords.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, runtime_checkable

from aegis.options import documented, keyword, option

if TYPE_CHECKING:
    from aegis.policy import Configuration, OwnerRule
    from aegis.signing import PrivateKey

Configurations = Mapping[str, "Configuration"] | Sequence["Configuration"]
"""Configurations by name, or in a row."""


@runtime_checkable
class Span(Protocol):
    """A parameter of the privacy rule, and its values along a Pareto front."""

    @property
    def parameter(self) -> str:
        """The name of the parameter, such as `k`."""

    @property
    def values(self) -> tuple[float, ...]:
        """The values of the parameter, from the weakest to the strictest."""


@documented
@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """A search of all combinations of the candidate masks."""

    objective: str | None = option(
        None,
        "Objective of the search: a measure to maximise, or an information loss to minimise "
        "(nu-entropy, loss, precision, discernibility, classification, class-entropy), with "
        "options as loss(mean=geometric,factor=0.5). By default the measure.",
        "NAME",
        offers="objectives",
    )
    measure: str | None = keyword(None, "Measure that scores the results of the search.")
    top: int = keyword(5, "How many of the best to return, at least 1.")
    time_limit: float | None = option(
        None,
        "Search until the best is proven, or stop after this time, as Ctrl-C does, with the best so "
        "far and its gap. Without this option the search ends after the most promising combinations, "
        "at the latest after 30 seconds. Reading and summarising the table come before it.",
        "SECONDS",
    )
    front: Span | str | None = option(
        None,
        "Also search the best for each of several rules: k=2..50, risk=, suppression=, or a "
        "number of a model that the policy requires: l=, t=.",
        "RANGE",
        kind=str | None,
    )
    prefer: str | None = option(
        None,
        "Which comes first of those that score within 0.002 of the highest AUC: least-masking "
        "(the default of a search), most-private, or score, the highest score (of a ranking).",
        "NAME",
    )
    resume: str | Path | None = option(
        None,
        "Keep the unfinished part of the search in this file. If the file exists, go on from it: table, "
        "policy, measure and --top must be the same.",
        "FILE",
        kind=Path | None,
    )
    prove: bool = keyword(
        False,
        "Whether to go on until the best is proven or the time limit ends, if the bound of the measure "
        "is loose (expected AUC). Each gap that is reported falls with the time.",
    )
    explain_best: bool = keyword(
        False,
        "Whether to find the rule's obstacles to finer masks, the cost of each mask alone, and the "
        "metric that models are expected to reach.",
    )


class SearchOptions(TypedDict, total=False):
    """The fields of `SearchRequest` as keywords."""

    objective: str | None
    measure: str | None
    top: int
    time_limit: float | None
    front: Span | str | None
    prefer: str | None
    resume: str | Path | None
    prove: bool
    explain_best: bool


@documented
@dataclass(frozen=True, kw_only=True)
class RankRequest:
    """A ranking of configurations."""

    configurations: Configurations | None = keyword(
        None, "Configurations to rank; by default those of the policy, else 50 random ones."
    )
    generate_count: int | None = keyword(
        None, "Rank this many random combinations of the candidate masks instead."
    )
    measure: str | None = keyword(
        None, "Name of a measure; by default the policy's, else the default of rankings."
    )
    estimate: str | None = keyword(
        None,
        "Rank by the estimated deviation from the raw table instead, the smallest first "
        "(Algorithm 1 of the AEGIS paper): one of `aegis.advisor.estimates.ESTIMATES`.",
    )
    prefer: str | None = keyword(
        None,
        "Which comes first of configurations that score about the same: `least-masking`, "
        "`most-private`, or `score`, the default.",
    )
    seed: int | None = keyword(
        None, "Seed of the random configurations and methods, where it is not the study's."
    )


class RankOptions(TypedDict, total=False):
    """The fields of `RankRequest` as keywords; configurations are given by themselves."""

    generate_count: int | None
    measure: str | None
    estimate: str | None
    prefer: str | None
    seed: int | None


@documented
@dataclass(frozen=True, kw_only=True)
class ReleaseRequest:
    """A release of a table: its files, and the utility that its certificate states."""

    output: str | Path | None = option(
        None,
        "The released table: .parquet, .csv, .tsv, .arrow or .feather.",
        "FILE",
        short="-o",
        kind=Path | None,
    )
    certificate: str | Path | None = option(
        None,
        "Write a certificate (JSON): digests, options, losses, every privacy figure.",
        "FILE",
        kind=Path | None,
    )
    key: PrivateKey | None = keyword(
        None, "Private key that signs the certificate (`aegis.signing.load_private_key`)."
    )
    measure: str | None = option(
        None,
        "Measure of the utility that the certificate states: by default the one in the file of the configuration, otherwise that of the policy.",
        "NAME",
        offers="measures",
    )
    safe_csv: bool = option(
        False,
        "Write CSV with an apostrophe before texts that begin with =, +, -, @ or a tabulator, "
        "which spreadsheets take for formulas.",
    )
    seed: int | None = option(
        None,
        "Number that starts all random draws, so that you can repeat a run. By default draws "
        "that protect come from the randomness of the system: a reader who knows the seed can undo "
        "them.",
        "N",
        least=0,
    )
    force: bool = option(False, "Overwrite files that exist.")


class ReleaseOptions(TypedDict, total=False):
    """The fields of `ReleaseRequest` as keywords, but for the output."""

    certificate: str | Path | None
    key: PrivateKey | None
    measure: str | None
    safe_csv: bool
    seed: int | None
    force: bool


@documented
@dataclass(frozen=True, kw_only=True)
class ApplyRequest(ReleaseRequest):
    """A release under one configuration."""

    output: str | Path | None = option(
        None,
        "The masked table: .parquet, .csv, .tsv, .arrow or .feather; with --engine spark "
        "a folder of Parquet files, also hdfs://..., s3a://...",
        "FILE",
        short="-o",
        kind=str | None,
    )
    into: str | None = option(
        None, "In place of a file: the table to make in the database that holds the data.", "NAME"
    )
    form: str = keyword(
        "table",
        'Form of the release in the database: "table", or "view", which follows the rows of the '
        "table and shows none when they do not meet the rule.",
    )
    certificate: str | Path | None = option(
        None,
        "Write a certificate (JSON): digests, masks, every privacy figure. It goes with a "
        "file, so with --output, not with --into.",
        "FILE",
        kind=Path | None,
    )
    after: Sequence[Configuration] = keyword(
        (),
        "Configurations of earlier releases of the same table: classes are those of a reader who has "
        "all of these releases.",
    )
    made_under: OwnerRule | None = keyword(
        None,
        "Rule of the summary that the configuration was chosen from, as its advice and its file "
        "(`aegis.policy.owner_of_choice`) name it.",
    )
    rule_override: bool = option(
        False,
        "Use the policy's rule although the summary was made under another one; the result says "
        "so. A rule weaker than that of a locked summary is refused all the same.",
    )


class StudyApplyOptions(ReleaseOptions, total=False):
    """The fields of `ApplyRequest` as keywords of `Study.apply`, where the output is a separate
    argument.
    """

    into: str | None
    form: str
    after: Sequence[Configuration]
    made_under: OwnerRule | None
    rule_override: bool


class ApplyOptions(StudyApplyOptions, total=False):
    """The fields of `ApplyRequest` as keywords."""

    output: str | Path | None


@documented
@dataclass(frozen=True, kw_only=True)
class AnonymizeRequest(ReleaseRequest):
    """A release by a record-level method."""

    options: Mapping[str, Any] | None = keyword(
        None,
        "Options of the method; k and l come from the policy's rule where they are not given.",
    )
    style: str | None = option(
        None,
        "How groups are shown: centroid or generalised; by default the method's way.",
        "NAME",
    )
    front: bool = option(
        False,
        "Also search a grid of cluster numbers and weights (mo-obam): information "
        "loss against diversity.",
    )
    kinds: Mapping[str, str] | None = keyword(
        None,
        "Kind (numeric, ordinal, categorical) of quasi-identifiers where it is neither the natural "
        "one nor that of the policy.",
    )
    orders: Mapping[str, Sequence[Any]] | None = keyword(
        None,
        "Ascending values of quasi-identifiers where they are neither the natural ones nor those of "
        "the policy.",
    )


class AnonymizeOptions(ReleaseOptions, total=False):
    """The fields of `AnonymizeRequest` as keywords."""

    output: str | Path | None
    options: Mapping[str, Any] | None
    style: str | None
    front: bool
    kinds: Mapping[str, str] | None
    orders: Mapping[str, Sequence[Any]] | None


@documented
@dataclass(frozen=True, kw_only=True)
class RiskRequest:
    """The risk of the single records of a table."""

    quasi_identifiers: Sequence[str] = keyword((), "Columns that others may know.")
    weight: str | None = option(
        None,
        "Column with the number of people that each record represents; by default 1.",
        "COLUMN",
        offers="columns",
    )
    missing: str = option(
        "value",
        "How a missing value compares: as a separate value, or as equal to any value.",
        "value|wildcard",
    )
    approximate: bool = option(
        False, "Take the approximation of the risk that sdcMicro takes by default."
    )
    special: bool = option(
        False,
        "Find special uniques as well (SUDA): records that few of their values single out.",
    )
    largest: int | None = option(
        None,
        "Look for sets of at most so many columns on which a record is alone; by default "
        "all of them.",
        "N",
        least=1,
    )
    fraction: float = option(
        0.01,
        "Share of the population that the table is a sample of, for the chances of special uniques.",
        "SHARE",
    )
    original: Any = option(
        None,
        "The table before masking, the same records in the same order, to compare numbers.",
        "TABLE",
        kind=str | None,
    )
    numbers: Sequence[str] = option(
        (),
        "Columns of numbers to compare with those of --original.",
        "A,B,...",
        name="compare",
        kind=list[str] | None,
        offers="columns",
    )
    interval: float = option(
        0.05,
        "How close an original number is to be found, in standard deviations of the masked column.",
        "SHARE",
    )


class RiskOptions(TypedDict, total=False):
    """The fields of `RiskRequest` as keywords."""

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
