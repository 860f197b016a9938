"""Find columns that reveal a quasi-identifier, and columns that together identify persons.

Nobody who looks at each column separately can see these relations. For example, a title reveals the
sex, the code of a place reveals its name, and an age in months reveals the age in years. And four harmless numbers together may be different in nearly every row. The functions that query the
table raise `EngineError` if the engine fails.

"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Floats
from aegis.masks.base import floats
from aegis.masks.grouping import common_refinement
from aegis.policy.suggest.facts import ColumnFacts
from aegis.policy.suggest.names import names_survey_weight
from aegis.policy.suggest.profile import finite
from aegis.privacy.inference import (
    LEAK,
    RowCounts,
    Singling,
    find_singling,
    lift,
    predictability_of_rows,
)
from aegis.sources import Source

TWIN = 0.98
"""Smallest lift for which a column counts as a copy of a quasi-identifier. It is below 1 because
tables contain typing errors.
"""
LIKELY_TWIN = 0.8
"""Smallest lift for which `init` asks you whether a column is a copy."""
LINEAR = 0.999
"""Smallest correlation for which a number counts as another number in other units."""
FEWEST_OTHERS = 20
"""Smallest number of rows that do not have the most frequent value. If there are fewer, a
prediction may be chance.
"""
FEWEST_NUMBERS = 10
"""Smallest number of values for which a linear relation of two numbers is meaningful."""
ROWS_PER_VALUE = 20
"""Smallest number of rows per value of a copy.

With fewer rows, any column that is constant for a person predicts every other column that is.
"""
TWIN_ROWS = 20_000
"""Number of sampled rows on which columns are compared in pairs."""
SINGLED_ROWS = 100_000
"""Number of rows in which combinations of columns are counted. In a sample, more rows are unique
than in the table.
"""
SQUARED = 1e-6
"""Largest relative error of a square, which may be rounded to 32 bits."""
MOST_CELLS = 20_000_000
"""Largest number of values (cells) for which all rows are compared."""
SINGLED_SHARE = 0.2
"""Smallest share of unique rows for which `init` asks you about the columns."""
MOST_ALIKE = 3
"""Largest number of columns that get separate warnings if the warnings differ only in their
figures.
"""
MOST_COPIED = 20
"""Largest number of quasi-identifiers for which copies are searched."""
MOST_COMPARED = 100
"""Largest number of other columns that are compared; these are the columns with the fewest values.
"""

NULL = -1
"""The code of null."""

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Twin:
    """A relation between a quasi-identifier (`of`) and another column that reveals its values.

    Attributes
    ----------
    right
        The share of the rows in which the quasi-identifier is guessed right from the other column;
        1 if one column is a linear function of the other.
    certain
        Whether the other column is certainly a copy; otherwise `init` asks you.
    linear
        Whether one number is a linear function of the other, such as a length in other units.
    coarse
        Whether the relation is reversed: the quasi-identifier determines the other column, as an
        age determines its decade. `right` is then the share of the rows in which the other column
        follows from the quasi-identifier.
    """

    of: str
    right: float
    certain: bool
    linear: bool = False
    coarse: bool = False


def find_twins(
    source: Source, quasi: Sequence[ColumnFacts], others: Sequence[ColumnFacts]
) -> dict[str, Twin]:
    """Return, for each column that reveals a quasi-identifier, the one that it reveals best.

    The share of right guesses (`Twin.right`) is measured on held-out rows of a sample. So a key,
    which has a different value in each row, reveals nothing. Only rows with a value to guess count,
    so columns that are empty in the same rows do not reveal each other.
    """
    # What is constant for a person gives away whatever else is, and is not a copy of it.
    eligible = [f for f in others if not f.fixes and not names_survey_weight(f.spoken)]
    compared = sorted(eligible, key=lambda facts: facts.distinct)[:MOST_COMPARED]
    copied = [facts for facts in quasi if facts.distinct > 1][:MOST_COPIED]
    if not copied or not compared:
        return {}
    columns = _collect(source, [*copied, *compared], TWIN_ROWS)
    codes = {name: _codes(column) for name, column in columns.items()}
    numbers = {
        facts.name: floats(columns[facts.name])
        for facts in (*copied, *compared)
        if facts.numeric and facts.distinct >= FEWEST_NUMBERS
    }
    twins: dict[str, Twin] = {}
    for other in compared:
        for original in copied:
            names = original.name, other.name
            twin = _linear(*names, numbers) or _predicted(*names, codes)
            best = twins.get(other.name)
            if twin is not None and (best is None or twin.right > best.right):
                twins[other.name] = twin
        for original in copied:
            if (twin := _coarser(original.name, other.name, codes)) is not None:
                twins.setdefault(other.name, twin)
    return twins


def find_squares(
    source: Source, quasi: Sequence[ColumnFacts], others: Sequence[ColumnFacts]
) -> dict[str, str]:
    """Return the columns that have the square of a quasi-identifier in each row, each with this
    quasi-identifier. Tables for regressions often have both, such as `age` and `agesq`.
    """
    squares = {}
    for root, other in product(quasi, others):
        if _may_have_squares(root, other):
            columns = _collect(source, [root, other], TWIN_ROWS)
            numbers, squared = (floats(columns[facts.name]) for facts in (root, other))
            if np.allclose(numbers * numbers, squared, rtol=SQUARED, atol=0, equal_nan=True):
                squares[other.name] = root.name
    return squares


def _may_have_squares(root: ColumnFacts, other: ColumnFacts) -> bool:
    """Return whether `other` may have the squares of `root`, by counts and bounds."""
    return (
        root.numeric
        and other.numeric
        and root.distinct >= FEWEST_NUMBERS
        and (root.distinct, root.nulls) == (other.distinct, other.nulls)
        and root.low >= 0
        and math.isclose(float(root.low) * float(root.low), other.low, rel_tol=SQUARED)
        and math.isclose(float(root.high) * float(root.high), other.high, rel_tol=SQUARED)
    )


def alike_once(warnings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the warnings about columns. If many warnings differ only in their figures, keep the
    first of them, and say for how many other columns it also holds.

    Examples
    --------
    >>> alike_once({f"'a{i}'": f"gives sex away in 9{i} % of the rows" for i in range(6)})
    ("'a0': gives sex away in 90 % of the rows. The same holds for 5 more columns: 'a1', 'a2', 'a3', ...",)
    """
    alike: dict[str, list[str]] = {}
    for name, text in warnings.items():
        alike.setdefault(re.sub(r"[<>]?[\d,.]*\d", "", text), []).append(name)
    lines = []
    for first, *others in alike.values():
        if len(others) < MOST_ALIKE:
            lines += [(name, f"{name}: {warnings[name]}") for name in (first, *others)]
            continue
        few = f"{', '.join(others[:MOST_ALIKE])}{', ...' * (len(others) > MOST_ALIKE)}"
        text = f"{first}: {warnings[first]}. The same holds for {len(others):,} more columns: {few}"
        lines.append((first, text))
    order = {name: index for index, name in enumerate(warnings)}
    return tuple(text for _, text in sorted(lines, key=lambda entry: order[entry[0]]))


def find_label_leaks(
    source: Source, label: ColumnFacts, others: Sequence[ColumnFacts]
) -> tuple[str, ...]:
    """Return those of the `others` columns that alone explain at least the share `LEAK` of a label
    with classes, in a sample of the rows. The share is 0 if the column does not help to guess the
    class, and 1 if all guesses are right.
    """
    compared = sorted(others, key=lambda facts: facts.distinct)[:MOST_COMPARED]
    columns = _collect(source, [label, *compared], TWIN_ROWS)
    classes = _codes(columns[label.name])
    there = classes != NULL
    classes = classes[there]
    if not len(classes):
        return ()
    most = float(np.bincount(classes).max() / len(classes))
    leaks = []
    for facts in compared:
        groups = np.unique(_codes(columns[facts.name])[there], return_inverse=True)[1]
        if lift(predictability_of_rows(groups, classes).right, most) >= LEAK:
            leaks.append(facts.name)
    return tuple(leaks)


def find_derived(
    source: Source, label: ColumnFacts, others: Sequence[ColumnFacts]
) -> tuple[str, ...]:
    """Return the numeric columns that sort the rows in nearly the same order as a numeric label
    does. They may be derived from the label, for example as its logarithm or as a multiple.
    """
    numeric = [f for f in others if f.numeric]
    compared = [f for f in numeric if f.distinct >= FEWEST_NUMBERS][:MOST_COMPARED]
    if not compared:
        return ()
    columns = _collect(source, [label, *compared], TWIN_ROWS)
    numbers = {name: floats(column) for name, column in columns.items()}
    ranks = {name: _ranks(values) for name, values in numbers.items()}
    return tuple(
        f.name
        for f in compared
        if _linear(label.name, f.name, numbers) or _linear(label.name, f.name, ranks)
    )


def one_row_share(source: Source, label: ColumnFacts) -> float:
    """Return the largest share of a numeric column's variance that comes from a single row."""
    column = finite(source.table[label.name]).cast("float64")
    aggregations = {"n": column.count(), "mean": column.mean(), "variance": column.var(how="pop")}
    row = source.collect(source.table.aggregate(**aggregations)).to_pylist()[0]
    if not row["n"] or not row["variance"]:
        return 0.0
    away = max(abs(float(end) - row["mean"]) for end in (label.low, label.high))
    return float(min(away**2 / (row["n"] * row["variance"]), 1.0))


def _ranks(numbers: Floats) -> Floats:
    """Return the place of each number among the distinct ones; NaN stays NaN."""
    places = np.unique(numbers, return_inverse=True)[1].astype(np.float64)
    return np.where(np.isfinite(numbers), places, np.nan)


def find_identifying(source: Source, others: Sequence[ColumnFacts]) -> tuple[Singling, int] | None:
    """Return a few columns that the rule does not protect and that together make many rows unique,
    and the number of rows that were examined. The result is None if no such columns make at least a
    fifth of the rows unique.
    """
    if not others:
        return None
    # `find_singling` tries those with the most values.
    ranked = sorted(others, key=lambda facts: (-facts.distinct, facts.name))[:10]
    columns = _collect(source, ranked, SINGLED_ROWS)
    codes = {name: _codes(column) for name, column in columns.items()}
    rows = len(next(iter(codes.values())))

    def count(sets: Sequence[tuple[str, ...]]) -> list[RowCounts]:
        sizes = [
            np.bincount(common_refinement([codes[name] - NULL for name in names])) for names in sets
        ]
        return [(int((size == 1).sum()), len(size)) for size in sizes]

    unique = count([tuple(codes)])[0][0]
    values = {name: len(np.unique(column)) for name, column in codes.items()}
    few = find_singling(values, unique, count)
    if few is None or few.unique_rows < SINGLED_SHARE * rows:
        return None
    return few, rows


def count_alone(source: Source, columns: Sequence[str], person: str | None) -> int | None:
    """Return how many rows have a combination of values in `columns` that no other row has, or only
    rows of the same `person` (the identifier of persons). The result is None if there are no
    columns, if the table is on a server, or if it has more than `MOST_CELLS` cells, which would
    take too long.
    """
    if not columns or not source.engine.in_process or source.rows * len(columns) > MOST_CELLS:
        return None
    rows = {"n": source.table.count()}
    if person is not None:
        rows["p"] = source.table[person].nunique()
    # Under names of their own: a column may be called as a count, in any case of letters.
    keys = {f"v{i}": source.table[column] for i, column in enumerate(columns)}
    groups = source.table.group_by(**keys).aggregate(**rows)
    alone = groups["n"] == 1 if person is None else groups["p"] == 1
    counted = source.collect(groups.aggregate(alone=groups["n"].sum(where=alone)))
    return int(counted["alone"][0].as_py() or 0)


def _collect(source: Source, facts: Sequence[ColumnFacts], most: int) -> dict[str, pa.Array]:
    """Return columns by name from one query: all rows, or a sample of about `most`."""
    table = source.table if source.rows <= most else source.sample(most, seed=0)
    selected = table.select(**{f"c{i}": table[column.name] for i, column in enumerate(facts)})
    collected = source.collect(selected)
    return {column.name: collected[f"c{i}"].combine_chunks() for i, column in enumerate(facts)}


def _codes(column: pa.Array) -> Codes:
    """Return a code for each row of a column, equal for equal values; null has the code `NULL`."""
    encoded = column.dictionary_encode()
    codes: Codes = pc.fill_null(encoded.indices, NULL).to_numpy().astype(np.int64)
    return codes


def _linear(quasi: str, other: str, numbers: Mapping[str, Floats]) -> Twin | None:
    if quasi not in numbers or other not in numbers:
        return None
    both = np.isfinite(numbers[quasi]) & np.isfinite(numbers[other])
    x, y = numbers[quasi][both], numbers[other][both]
    if len(x) < FEWEST_OTHERS:
        return None
    with np.errstate(
        all="ignore"
    ):  # of constant or huge numbers the correlation is NaN, and no line
        line = abs(np.corrcoef(x, y)[0, 1]) >= LINEAR
    return Twin(quasi, 1.0, certain=True, linear=True) if line else None


def _predicted(quasi: str, other: str, codes: Mapping[str, Codes]) -> Twin | None:
    right, gain = _guessed(codes[quasi], codes[other])
    return Twin(quasi, right, certain=gain >= TWIN) if gain >= LIKELY_TWIN else None


def _coarser(quasi: str, other: str, codes: Mapping[str, Codes]) -> Twin | None:
    """Return a `Twin` if `other` shows the values of `quasi` in larger groups, else None."""
    if 2 * codes[other].max() > codes[quasi].max():
        return None
    right, gain = _guessed(codes[other], codes[quasi])
    return Twin(quasi, right, certain=False, coarse=True) if gain >= TWIN else None


def _guessed(values: Codes, groups: Codes) -> tuple[float, float]:
    """Return the share of rows whose value is guessed right from their group, and its excess over the most
    frequent value, relative to the largest possible; 0 for too few rows.
    """
    there = values != NULL
    values, groups = values[there], np.unique(groups[there], return_inverse=True)[1]
    rows = len(values)
    sizes = np.bincount(values)
    if rows - sizes.max(initial=0) < FEWEST_OTHERS or (groups.max() + 1) * ROWS_PER_VALUE > rows:
        return 0.0, 0.0
    right = predictability_of_rows(groups, values).right
    return right, lift(right, float(sizes.max() / rows))
