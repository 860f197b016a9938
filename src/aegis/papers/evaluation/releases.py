"""Encode record-level releases for models, aligned with the rows of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegis.advisor import Ranked
from aegis.anonymizers import Anonymized, RecordTable
from aegis.errors import EngineError
from aegis.papers.evaluation.coding import CodedTable, Design
from aegis.papers.evaluation.training import Rows, Split
from aegis.summary.codes import encode

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CodedRelease:
    """The rows of a record-level release as integer codes.

    Attributes
    ----------
    ranked
        The ranking's entry for this release.
    design
        The features with which models are trained, for all rows of the table. Rows that the method
        did not release have the code 0.
    names
        For each column of the design, the attribute from which it comes.
    rows
        Indices of the table's rows that the method released, ascending. They include rows of
        classes that fail the rule.
    """

    ranked: Ranked
    design: Design
    names: tuple[str, ...]
    rows: Rows

    def split(self, table_split: Split) -> Split:
        """Return a split of the whole table without the rows that are not in the release."""
        return Split(
            table_split.number,
            np.intersect1d(table_split.train, self.rows),
            np.intersect1d(table_split.test, self.rows),
        )


def code_release(
    read: RecordTable, release: Anonymized, ranked: Ranked, rows: CodedTable, names: Sequence[str]
) -> CodedRelease:
    """Encode the scored columns `names` of a record-level release as integers.

    Released values of a quasi-identifier are numbered in the order of their original values, so
    that "[5, 9]" comes before "[10, 20]". `rows` is the unmasked table as integer codes.

    Raises
    ------
    EngineError
        The table was read in another order of rows than before.
    """
    if read.table.num_rows != rows.rows:
        raise EngineError(
            f"The engine gave {read.table.num_rows:,} rows, and {rows.rows:,} before.",
            hint="Evaluate a table that does not change, such as a file.",
        )
    grouped = np.flatnonzero(release.grouped.groups.of >= 0)
    ranks = {a.name: a.codes.astype(np.int64) for a in read.records.attributes}
    _require_same_order(rows, ranks)
    columns, sizes, column_names = [], [], []
    for name in names:
        codes, size = _codes(release.data[name], ranks[name][grouped] if name in ranks else None)
        if size > 1:
            table_codes = np.zeros(rows.rows, dtype=np.int32)
            table_codes[grouped] = codes
            columns.append(table_codes)
            sizes.append(size)
            column_names.append(name)
    if not columns:  # everything equal: one column that says nothing
        columns, sizes, column_names = [np.zeros(rows.rows, dtype=np.int32)], [1], [names[0]]
    design = Design(np.stack(columns, axis=1), tuple(sizes))
    return CodedRelease(ranked, design, tuple(column_names), grouped)


def _codes(column: pa.ChunkedArray, ranks: Codes | None) -> tuple[Codes, int]:
    codes, values = encode(column.combine_chunks())
    if ranks is None or not len(codes):
        return codes, len(values)
    means = np.bincount(codes, weights=ranks, minlength=len(values)) / np.bincount(codes)
    rank = np.empty(len(values), dtype=np.int64)
    rank[np.argsort(means, kind="stable")] = np.arange(len(values))
    return rank[codes], len(values)


def _require_same_order(rows: CodedTable, ranks: dict[str, Codes]) -> None:
    """Refuse a table that was read in another order of rows than before."""
    for name, codes in ranks.items():
        if name in rows.codes:
            pairs = np.unique(np.stack([codes, rows.codes[name]]), axis=1)
            if len(np.unique(pairs[1])) != pairs.shape[1]:
                raise EngineError(
                    "The engine gave the rows in another order than before.",
                    hint="Evaluate a file or a table in memory, whose order is fixed.",
                )
