"""Metrics by which Majeed and Hwang judge a release: originality, disclosure risk, accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from aegis.anonymizers.records import Codes, distinct_rows
from aegis.arrays import Ints
from aegis.errors import DataError, InternalError
from aegis.records.forest import Forest


@dataclass(frozen=True)
class DisclosureRisk:
    """What one who knows some quasi-identifiers of a person can infer from a release.

    Attributes
    ----------
    known
        The quasi-identifiers known.
    mean
        Mean over released records of the largest share of one sensitive value in the record's
        class, 0..1: the chance of a right guess.
    largest
        The largest such share.
    """

    known: tuple[str, ...]
    mean: float
    largest: float


def originality(table: pa.Table, released: pa.Table, names: Sequence[str]) -> float:
    """Share of the cells in columns `names` that are released unchanged, 0..1.

    Values are compared as they are written, so "39" for 39 is unchanged; a null equals a null.

    Raises
    ------
    InternalError
        The tables differ in length, so that rows cannot be compared.
    """
    if table.num_rows != released.num_rows:
        raise InternalError(f"{table.num_rows} original and {released.num_rows} released rows.")
    _known_columns(table, names)
    _known_columns(released, names)
    same = sum(
        int(np.count_nonzero(_written(table, name) == _written(released, name))) for name in names
    )
    return float(same / max(table.num_rows * len(names), 1))


def disclosure_risk(
    released: pa.Table, names: Sequence[str], sensitive: str
) -> tuple[DisclosureRisk, ...]:
    """Return the risk for growing background knowledge: the first 1, 2, ... of `names`.

    DR is max Pr(sensitive value | release, knowledge), where the one who knows finds the class
    of a person among the released values of the known columns. Nulls are a value.
    """
    _known_columns(released, [*names, sensitive])
    target, values = _codes(released, sensitive)
    columns: list[Codes] = []
    risks = []
    for name in names:
        columns.append(_codes(released, name)[0])
        _, of = distinct_rows(columns)
        risks.append(_risk(tuple(names[: len(columns)]), of, target, values))
    return tuple(risks)


def _risk(known: tuple[str, ...], of: Ints, target: Codes, values: int) -> DisclosureRisk:
    pairs, counts = np.unique(of * values + target, return_counts=True)
    largest = np.zeros(int(of.max()) + 1)
    np.maximum.at(largest, pairs // values, counts)
    sizes = np.bincount(of)
    return DisclosureRisk(known, float(largest.sum() / len(of)), float((largest / sizes).max()))


def forest_accuracy(
    released: pa.Table, names: Sequence[str], target: str, *, seed: int = 0, trees: int = 100
) -> float:
    """Held-out accuracy of a random forest that predicts `target` from columns `names`.

    Values are coded by rank of their text; 30 % of at most 10,000 random rows are held out.

    Raises
    ------
    PolicyError
        scikit-learn is not installed.
    """
    _known_columns(released, [*names, target])
    features = np.array([_codes(released, name)[0] for name in names], dtype=np.int64).T
    random = np.random.default_rng(seed)
    wanted = _codes(released, target)[0].astype(np.int64)
    return Forest(features, wanted, random, trees=trees).accuracy()


def _known_columns(table: pa.Table, names: Sequence[str]) -> None:
    for name in names:
        if name not in table.column_names:
            raise DataError.unknown_column(name, table.column_names)
    if not table.num_rows:
        raise DataError("The release has no rows.", hint="Nothing can be measured on it.")


def _written(table: pa.Table, name: str) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    return np.array([str(value) for value in table.column(name).to_pylist()])


def _codes(table: pa.Table, name: str) -> tuple[Codes, int]:
    values, codes = np.unique(_written(table, name), return_inverse=True)
    return codes.astype(np.int32), len(values)
