"""Measure the risk of single records, in weighted samples, by SUDA, and from masked numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Flags, Floats, Ints
from aegis.errors import DataError, PolicyError, member
from aegis.files import SILENT, Progress
from aegis.options import checks_types, request_with
from aegis.policy import as_policy
from aegis.privacy.individual import (
    eigenvalue_distance,
    il1s,
    individual_risk,
    interval_share,
    key_counts,
)
from aegis.privacy.suda import SpecialUniques, special_uniques
from aegis.requests import RiskOptions, RiskRequest
from aegis.sources import Source, open_table
from aegis.words import json_fields, jsonable

VERSION = 1
"""Version of the JSON form; it changes if a field changes its meaning."""
AT_RISK = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Limits of the risk; for each, the records with a higher risk are counted."""


class Missing(StrEnum):
    """How a missing value of a quasi-identifier is compared with other values."""

    VALUE = "value"
    """A missing value is a separate value: it agrees only with other missing values."""
    WILDCARD = "wildcard"
    """A missing value agrees with any value, as in sdcMicro."""


@dataclass(frozen=True)
class MaskedNumbers:
    """Distances between masked numbers and the original ones.

    Attributes
    ----------
    columns
        The columns that were compared.
    interval
        Width of the interval around a masked number, in standard deviations of its column.
    interval_share
        Share of records whose original numbers all lie within the interval: sdcMicro's dRisk.
    il1s
        Information loss IL1s, a sum over all cells: each term is the distance divided by (sqrt(2)
        times the standard deviation of the column).
    eigenvalues
        Relative distance between two lists of eigenvalues: from the correlation matrix of the
        masked numbers, and from the correlation matrix of the original numbers. Null if a column is
        constant.
    """

    columns: tuple[str, ...]
    interval: float
    interval_share: float
    il1s: float
    eigenvalues: float | None


@dataclass(frozen=True, eq=False)
class RecordRisk:
    """The risk of every record of a table.

    Attributes
    ----------
    quasi_identifiers
        The quasi-identifiers that form the key.
    weight
        The column of sampling weights. With None, every record represents itself.
    missing
        How a missing value of a quasi-identifier is compared with other values.
    risks
        Probability that an attacker finds the person of each of N records in the population, shape
        (N,).
    counts, people
        For each record, the number of records in the sample and the estimated number of people that
        have the same key, shape (N,).
    people_in_all
        Number of people whom the records represent: the sum of the weights.
    unknown
        Number of missing values in all quasi-identifiers and records together.
    uniques
        The special uniques (records that few columns make unique) and their SUDA scores, if
        requested.
    numbers
        Distances between masked numbers and the original ones, if requested.

    Examples
    --------
    >>> import aegis
    >>> risk = aegis.record_risk(
    ...     "data/adult.parquet", quasi_identifiers=["age", "sex", "race"], special=True
    ... )
    >>> int((risk.counts == 1).sum()), float(risk.uniques.scores.max())
    (65, 2.0)
    """

    quasi_identifiers: tuple[str, ...]
    weight: str | None
    missing: Missing
    risks: Floats = field(repr=False)
    counts: Ints = field(repr=False)
    people: Floats = field(repr=False)
    people_in_all: float
    unknown: int
    uniques: SpecialUniques | None = field(default=None, repr=False)
    numbers: MaskedNumbers | None = None

    @property
    def expected(self) -> float:
        """Expected number of people whom an attacker finds by trying all records."""
        return float(self.risks.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return the documented JSON form (docs/reference/json.md).

        Examples
        --------
        >>> import aegis
        >>> risk = aegis.record_risk("data/adult.parquet", quasi_identifiers=["age", "sex"])
        >>> risk.to_dict()["unique"]
        5
        """
        rows = len(self.risks)
        return {
            "schema": VERSION,
            **json_fields(self, "quasi_identifiers", "weight", "missing"),
            "rows": rows,
            "people": self.people_in_all,
            "unique": int((self.counts == 1).sum()),
            "in_pairs": int((self.counts == 2).sum()),
            "risk": {
                "expected": self.expected,
                "average": self.expected / rows,
                "maximum": float(self.risks.max()),
                "at_risk": {f"{t:g}": int((self.risks > t + 1e-12).sum()) for t in AT_RISK},
            },
            "special_uniques": None if self.uniques is None else self._special(self.uniques),
            "numbers": jsonable(self.numbers),
        }

    def _special(self, uniques: SpecialUniques) -> dict[str, Any]:
        shares = dict(zip(self.quasi_identifiers, uniques.shares.tolist(), strict=True))
        return {
            "records": int((uniques.scores > 0).sum()),
            "largest_score": float(uniques.scores.max(initial=0)),
            "largest_chance": float(uniques.chances.max(initial=0)),
            "match": uniques.match,
            "by_size": {
                str(size + 1): int(total) for size, total in enumerate(uniques.sizes.sum(axis=0))
            },
            "contributions": shares,
        }

    def records(self) -> pa.Table:
        """Return the figures of each record, in the order of the table.

        Examples
        --------
        >>> import aegis
        >>> risk = aegis.record_risk("data/adult.parquet", quasi_identifiers=["age", "sex"])
        >>> risk.records().column_names
        ['risk', 'records', 'people']
        """
        columns: dict[str, Any] = {
            "risk": self.risks,
            "records": self.counts,
            "people": self.people,
        }
        if self.uniques is not None:
            columns |= {"suda": self.uniques.scores, "dis_suda": self.uniques.chances}
        return pa.table(columns)


@checks_types
def record_risk(
    table: Any,
    request: RiskRequest | None = None,
    *,
    progress: Progress = SILENT,
    **options: Unpack[RiskOptions],
) -> RecordRisk:
    """Measure the risk of every record of a table without masking it.

    Parameters
    ----------
    table
        Anything that `aegis.sources.open_table` opens. Aegis reads the quasi-identifiers of all
        rows into memory.
    request, options
        The columns to examine, and how: a `RiskRequest`, or its fields as keywords.
    progress
        Receives one step.

    Raises
    ------
    PolicyError
        There is no quasi-identifier, the policy counts persons, an option is out of range, or one of `original` and `numbers`
        is given without the other.
    DataError
        A column is missing, a weight is not a number above 0, a column of `numbers` is not numeric,
        or the tables have different numbers of rows.

    Examples
    --------
    >>> import aegis
    >>> risk = aegis.record_risk(
    ...     "data/adult.parquet", quasi_identifiers=["age", "sex"], weight="fnlwgt"
    ... )
    >>> round(float(risk.risks.max()), 6)
    0.000162
    """
    source = open_table(table)
    request = _completed(request_with(RiskRequest, request, options), source)
    names = tuple(dict.fromkeys(request.quasi_identifiers))
    _check(names, request)
    source.engine.require_here(
        "The risk of records needs all keys in memory, which would come",
        "Read the table without Spark.",
    )
    with progress.step("Counting keys"):
        return _measured(source, names, request)


def _completed(request: RiskRequest, source: Source) -> RiskRequest:
    """Return the request; quasi-identifiers or a weight that it lacks come from its policy."""
    if request.policy is None:
        return request
    policy = as_policy(request.policy)
    source.refuse_other_table(policy.attributes, most=1)
    if policy.person is not None:
        raise PolicyError(
            f"The policy counts persons ({policy.person}), and the risk of records counts records: it "
            "is too low if a person has several.",
            hint="`aegis audit TABLE --policy POLICY` counts persons. If each person has one record, "
            "name the columns instead (--quasi-identifiers).",
        )
    names = [a.name for a in policy.quasi_identifiers if a.name in source.columns]
    if request.weight is None and policy.weight is not None:
        source.require(policy.weight, where="the policy's weight")
    return replace(
        request,
        quasi_identifiers=request.quasi_identifiers or names,
        weight=request.weight or policy.weight,
    )


def _measured(source: Source, names: tuple[str, ...], request: RiskRequest) -> RecordRisk:
    """Measure the risk of every record; the columns `names` form its key."""
    keys, unknown = _keys(source, names)
    weight = request.weight
    weights = np.ones(len(keys)) if weight is None else _weights(source, weight)
    agreeing = unknown if request.missing == Missing.WILDCARD else None
    counts, people = key_counts(keys, weights, agreeing)
    uniques = compared = None
    if request.special:
        uniques = special_uniques(
            keys, missing=agreeing, largest=request.largest, fraction=request.fraction
        )
    if request.numbers:
        before = open_table(request.original)
        compared = _compare(before, source, tuple(request.numbers), request.interval)
    return RecordRisk(
        names,
        weight,
        Missing(request.missing),
        individual_risk(counts, people, approximate=request.approximate),
        counts,
        people,
        float(weights.sum()),
        int(unknown.sum()),
        uniques,
        compared,
    )


def _check(names: tuple[str, ...], request: RiskRequest) -> None:
    largest, fraction, interval = request.largest, request.fraction, request.interval
    if not names:
        raise PolicyError(
            "The risk of records needs quasi-identifiers.",
            hint="Name the columns that others may know, or give a policy that has quasi-identifiers.",
        )
    member(Missing, request.missing, "meaning of missing values")
    if largest is not None and largest < 1:
        raise PolicyError(
            f"You asked for sets of at most {largest} columns.", hint="Give 1 or more."
        )
    if not 0 < fraction <= 1:
        raise PolicyError(
            f"The share of the population that was drawn is {fraction}.",
            hint="Give a number above 0 and up to 1.",
        )
    if not interval > 0:
        raise PolicyError(f"The interval is {interval}.", hint="Give a number above 0.")
    if (request.original is None) != (not request.numbers):
        raise PolicyError(
            "Aegis compares masked numbers with those of the original table, and you gave only one of the two.",
            hint="Give both the original table and the columns of numbers, or neither.",
        )


def _keys(source: Source, names: tuple[str, ...]) -> tuple[Ints, Flags]:
    """Return codes and missing-value flags of N records in the m columns `names`, shape (N, m)."""
    table = _read(source, names)
    codes = np.empty((len(table), len(names)), dtype=np.int64)
    unknown = np.empty(codes.shape, dtype=np.bool_)
    for number, name in enumerate(names):
        values = table[name].combine_chunks()
        encoded = pc.dictionary_encode(values, null_encoding="encode")
        codes[:, number] = encoded.indices.to_numpy(zero_copy_only=False)
        unknown[:, number] = values.is_null().to_numpy(zero_copy_only=False)
    return codes, unknown


def _read(source: Source, names: tuple[str, ...]) -> pa.Table:
    for name in names:
        source.require(name)
    table = source.collect(source.table.select(*names))
    if not len(table):
        raise DataError(f"{source.origin} has no rows.", hint="Give a table with rows.")
    return table


def _weights(source: Source, name: str) -> Floats:
    weights = _floats(_read(source, (name,))[name], name, source.origin)
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise DataError(
            f"Weight {name!r} of {source.origin} is not above 0 in every row.",
            hint="Give each row the number of people that it represents, or leave such rows out.",
        )
    return weights


def _floats(column: pa.ChunkedArray, name: str, origin: str) -> Floats:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise DataError(
            f"Column {name!r} of {origin} holds {kind}, not numbers.",
            hint="Name a column of numbers; `--numbers COLUMN` reads a text column of a file as such.",
        )
    values: Floats = column.cast(pa.float64()).to_numpy()
    return values


def _compare(
    original: Source, masked: Source, names: tuple[str, ...], interval: float
) -> MaskedNumbers:
    before, after = (
        np.column_stack([_floats(table[n], n, source.origin) for n in names])
        for source, table in ((s, _read(s, names)) for s in (original, masked))
    )
    if len(before) != len(after):
        raise DataError(
            f"{original.origin} has {len(before):,} rows, and {masked.origin} {len(after):,}.",
            hint="Masked numbers are compared record by record: give the same records in the same "
            "order.",
        )
    distance = eigenvalue_distance(before, after)
    return MaskedNumbers(
        names,
        interval,
        interval_share(before, after, interval),
        il1s(before, after),
        distance if np.isfinite(distance) else None,
    )
