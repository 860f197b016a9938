"""Compute second moments of clipped codes over the rows of a table, with bounded sensitivity.

Codes are numbers that describe how a value is associated with the label. They are clipped (a vector
of codes that is too long is scaled down) before their products are added up. So the effect of a
single row on the moments is bounded. If the rows are available, all codes of a row are scaled down
together. If only co-occurrence counts are available, the codes of each attribute are scaled down
separately.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Flags, Floats, Ints
from aegis.errors import PolicyError
from aegis.files import SILENT, Progress
from aegis.safe.protect.cells import Cells
from aegis.sources import Source
from aegis.summary import Summary
from aegis.summary.codes import code_values

BLOCK_LENGTH = 2.0
"""Length at which the codes of a single attribute are clipped, relative to their root mean square
length.
"""
_BATCH = 1 << 18
_CHUNK = 1 << 13
"""Number of rows that are multiplied at once, so that their codes fit the processor's cache."""
_SHORTER = 1 - 1e-12
"""Rows are clipped to this share of the allowed length, so that rounding never exceeds it."""
_SAMPLE = 50_000
"""Number of rows that are examined to see whether rows repeat."""
_EXACT = 1 << 53
"""Below this, floats add whole numbers exactly."""


@dataclass(frozen=True, eq=False)
class MomentSums:
    """Moments: sums over rows of the products of two codes of different attributes. A code is a
    whole number that describes how a row's value is associated with the label.

    Attributes
    ----------
    sums
        Whole numbers, shape (p, p) for p codes in total, symmetric. Entries for two codes of the
        same attribute are 0.
    sensitivity
        Largest change of all entries above the diagonal by adding or removing one row, as an L2
        distance.
    """

    sums: Ints
    sensitivity: float


def offsets_of(codes: Sequence[Ints]) -> Ints:
    """Return the index of each attribute's first code, and the number of all codes, shape (m + 1,)."""
    return np.concatenate([[0], np.cumsum([c.shape[1] for c in codes])]).astype(np.int64)


def between_attributes(offsets: Ints) -> Flags:
    """Return flags, shape (p, p): True above the diagonal for codes of different attributes."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return owner[:, None] < owner[None, :]


def clipped_rows(rows: Ints, longest: int) -> Ints:
    """Scale rows, shape (n, p), to the squared length `longest` at most, rounding towards zero."""
    squares = (rows * rows).sum(axis=1)
    over = squares > longest
    if not over.any():
        return rows
    shortened = rows.copy()
    factor = np.sqrt(longest / squares[over].astype(np.float64)) * _SHORTER
    shortened[over] = np.trunc(rows[over] * factor[:, None]).astype(np.int64)
    return shortened


def sensitivity_of_rows(longest: float, attributes: int) -> float:
    """Return the largest L2 change of the moments by one row with codes of squared length `longest`.

    If attribute i has y_i of it, the squared change is the sum of y_i y_j over all pairs: for m
    attributes at most longest^2 (1 - 1/m) / 2.
    """
    return longest * math.sqrt(max(1.0 - 1.0 / max(attributes, 1), 0.0) / 2.0)


def sensitivity_of_blocks(longest: Sequence[float]) -> float:
    """Return `sensitivity_of_rows` if the codes of each attribute i have their own limit,
    `longest[i]`.
    """
    total = sum(longest)
    return math.sqrt(max((total * total - sum(v * v for v in longest)) / 2.0, 0.0))


def moments_of_rows(
    source: Source,
    labelled: ir.Table,
    attributes: Sequence[tuple[pa.Array, Cells]],
    codes: Sequence[Ints],
    longest: int,
    progress: Progress = SILENT,
) -> MomentSums:
    """Return the moments of the `labelled` rows of a table: sums over rows of products of two codes
    of different attributes.

    Parameters
    ----------
    attributes
        The distinct values of each attribute, and its cells (sets of values).
    codes
        For each attribute i, the q_i codes of each of its K_i cells (whole numbers that describe
        the cell), shape (K_i, q_i).
    longest
        Largest squared length of the vector of a row's codes; longer vectors are scaled down.
    """
    offsets = offsets_of(codes)
    size = int(offsets[-1])
    sums = np.zeros((size, size), dtype=np.int64)
    names = [cells.name for _, cells in attributes]
    selected = _counted_rows(source, labelled, names)
    pairs = zip(attributes, codes, strict=True)
    tables = [_padded(cells, cell_codes)[cells.of_value] for (_, cells), cell_codes in pairs]
    adder = _Adder(tables, longest)
    with progress.step("Adding up moments", source.rows) as step:
        for batch in source.batches(selected, rows=_BATCH):
            places = [
                code_values(batch.column(f"a{i}"), values)
                for i, (values, _) in enumerate(attributes)
            ]
            alike = batch.column("rows").to_numpy()
            for start in range(0, len(alike), _CHUNK):
                part = slice(start, start + _CHUNK)
                sums += adder.products([value_ids[part] for value_ids in places], alike[part])
            step.advance(int(alike.sum()))
    return MomentSums(_cross(sums, offsets), sensitivity_of_rows(longest, len(codes)))


def _counted_rows(source: Source, table: ir.Table, names: Sequence[str]) -> ir.Table:
    """Return the distinct rows in the columns `names`, as a0, a1, ..., with their number in `rows`. If
    hardly any row repeats, all rows are returned, each with 1.
    """
    selected = table.select(*(table[name].name(f"a{i}") for i, name in enumerate(names)))
    if source.rows > 2 * _SAMPLE:
        sample = source.sample(_SAMPLE, seed=0).select(*names)
        sizes = source.collect(sample.distinct().aggregate(distinct=lambda t: t.count()))
        if 2 * int(pc.sum(sizes["distinct"]).as_py()) < _SAMPLE:
            return selected.group_by(selected.columns).aggregate(rows=lambda t: t.count())
    return selected.mutate(rows=ibis.literal(1, "int64"))


class _Adder:
    """Adds up, over rows, the products of each two codes (whole numbers that describe a row's
    values). If the vector of a row's codes is too long, it is scaled down before.

    Parameters
    ----------
    tables
        For each attribute i, q_i codes of each of its V_i distinct values, shape (V_i, q_i).
    longest
        Largest squared length of the vector of a row's codes; longer vectors are scaled down.
    """

    def __init__(self, tables: Sequence[Ints], longest: int) -> None:
        self._tables = tables
        self._longest = longest
        self._offsets = offsets_of(tables)
        floats = [table.astype(np.float64) for table in tables]
        self._columns = [np.ascontiguousarray(table.T) for table in floats]
        self._squares = [(table * table).sum(axis=1) for table in floats]
        self._most = sum(float(squares.max(initial=0)) for squares in self._squares)

    def products(self, places: Sequence[Ints], alike: Ints) -> Ints:
        """Return the sum of x x' over n rows, shape (p, p), where x is the vector of a row's p
        codes, scaled down if it is too long.

        Parameters
        ----------
        places
            For each attribute the index of each row's value, shape (n,).
        alike
            How often each row occurs, shape (n,).
        """
        if self._most * int(alike.sum()) >= _EXACT:
            rows = np.hstack([table[at] for table, at in zip(self._tables, places, strict=True)])
            return _products(clipped_rows(rows, self._longest), alike)
        row_codes: Floats = np.empty((int(self._offsets[-1]), len(alike)))
        squares = np.zeros(len(alike))
        for start, columns, value_squares, at in zip(
            self._offsets, self._columns, self._squares, places, strict=False
        ):
            squares += value_squares[at]
            for index, column in enumerate(columns):
                # Places are within the values: `clip` only spares another copy.
                np.take(column, at, out=row_codes[start + index], mode="clip")
        over = squares > self._longest
        if over.any():
            factor = np.ones(len(alike))
            factor[over] = np.sqrt(self._longest / squares[over]) * _SHORTER
            row_codes *= factor
            np.trunc(row_codes, out=row_codes)
        # Of a matrix times itself half the products are enough.
        other = row_codes if int(alike.max(initial=1)) == 1 else row_codes * alike
        return np.rint(row_codes @ other.T).astype(np.int64)


def _products(rows: Ints, alike: Ints) -> Ints:
    """Return the exact sum of x x' over the n rows x of a matrix of whole numbers, shape (n, p). The
    product x x' of each row is multiplied by the row's number in `alike`, shape (n,).
    """
    return rows.T @ (rows * alike[:, None])


def _padded(cells: Cells, codes: Ints) -> Ints:
    """Return the q codes of each of an attribute's K cells (sets of values), and in one more row
    the codes of values without a cell, shape (K + 1, q). If `codes` lacks this row, it is filled
    with zeros.
    """
    if len(codes) == cells.count + 1:
        return codes
    return np.vstack([codes, np.zeros((1, codes.shape[1]), dtype=np.int64)])


def moments_of_pairs(
    summary: Summary,
    cells: Sequence[Cells],
    codes: Sequence[Ints],
    longest: Sequence[int],
    classes: Flags | None = None,
) -> MomentSums:
    """Return the moments of `moments_of_rows`, from the co-occurrence counts of a summary.

    Parameters
    ----------
    cells, codes
        The cells of each attribute, and their codes, as for `moments_of_rows`.
    longest
        The same limit, for each attribute.
    classes
        For each label class, whether its rows count; None if all labelled rows count.

    Raises
    ------
    PolicyError
        The counts come from a sample, or do not distinguish values that the masks distinguish.
    """
    offsets = offsets_of(codes)
    on_atoms = atoms_coded(summary, cells, codes, longest)
    sums = np.zeros((int(offsets[-1]), int(offsets[-1])), dtype=np.int64)
    for i, j in summary.pairs.index:
        a, b, y, n = summary.pairs.cells(i, j)
        n = n if classes is None else n * classes[y]
        if not on_atoms[i].shape[1] or not on_atoms[j].shape[1]:
            continue
        weighted_codes = on_atoms[i][a].astype(np.float64) * n[:, None]
        block = weighted_codes.T @ on_atoms[j][b].astype(np.float64)
        sums[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]] = np.rint(block)
    return MomentSums(_cross(sums, offsets), sensitivity_of_blocks([float(v) for v in longest]))


def atoms_coded(
    summary: Summary, cells: Sequence[Cells], codes: Sequence[Ints], longest: Sequence[int]
) -> list[Ints]:
    """Return, for each attribute i, q_i codes for each of its A_i groups of values that the
    co-occurrence counts distinguish, shape (A_i, q_i). `codes` has the codes of the attribute's
    `cells` (sets of values). Vectors longer than the squared length `longest[i]` are scaled down.
    """
    if summary.sampled:
        raise PolicyError(
            "The co-occurrences of this summary come from a sample of the rows. One row can change "
            "which other rows are drawn, so the noise would be too small to protect it.",
            hint="Give the table itself, or summarise it with --exact.",
        )
    moments = []
    for attribute_cells, attribute_codes, most in zip(cells, codes, longest, strict=True):
        attribute = summary.attributes[attribute_cells.name]
        first = np.unique(attribute.atoms, return_index=True)[1]
        of_atom = attribute_cells.of_value[first]
        if not np.array_equal(of_atom[attribute.atoms], attribute_cells.of_value):
            raise PolicyError(
                f"The summary pools values of {attribute_cells.name!r} that its masks distinguish.",
                hint="Give the table itself, or leave out masks of more than "
                f"{summary.max_levels} groups.",
            )
        moments.append(clipped_rows(_padded(attribute_cells, attribute_codes)[of_atom], most))
    return moments


def _cross(sums: Ints, offsets: Ints) -> Ints:
    """Return the symmetric matrix with the entries of `sums` above the diagonal. Entries for two
    codes of the same attribute become 0. `offsets` has the index of each attribute's first code.
    """
    upper = np.where(between_attributes(offsets), sums, 0)
    return upper + upper.T


def rows_per_person(source: Source, person: str) -> int:
    """Return the largest number of rows with the same value of the column `person`; nulls do not
    count.

    Raises
    ------
    DataError
        The table has no such column.
    """
    source.require(person, where="the column of persons")
    table = source.table
    counted = table.group_by(p=table[person]).aggregate(n=table.count())
    most: Any = source.collect(counted.aggregate(n=counted.n.max()))
    return int(pc.max(most["n"]).as_py() or 0)
