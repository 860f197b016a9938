"""The rows of a table as codes of their values: read once, for all that is counted of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import ibis.expr.types as ir
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from aegis.sources import Source
from aegis.summary.codes import encode, settle
from aegis.summary.count_cells import finest_key
from aegis.summary.frequency import FrequencyTable, combine
from aegis.summary.model import AttributeSummary

MOST_ROWS = 250_000
"""Largest table whose rows are held as codes, for as long as its summary is in use."""
MOST_CELLS = 50_000_000
"""Most rows times columns of such a table: a code takes one byte, two or four."""
_FETCHED = 2_000_000
"""Rows times columns that are fetched at a time: as they are they take some tens of bytes a cell."""

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows of a table, in its order.

    Attributes
    ----------
    values
        Per column its distinct values, ascending, null last.
    codes
        Per column the place of each row's value among them, shape (N,), in as few bytes as hold it.
    label
        Class of each row, shape (N,); the number of classes where it has none.
    classes
        Number of classes C.
    """

    values: Mapping[str, pa.Array]
    codes: Mapping[str, npt.NDArray[np.unsignedinteger]]
    label: Codes
    classes: int

    @property
    def labelled(self) -> npt.NDArray[np.bool_]:
        """Whether each row has a class, shape (N,)."""
        return self.label < self.classes

    def rows(self, name: str) -> Codes:
        """Return how many rows hold each value of a column, shape (V,)."""
        return np.bincount(self.codes[name], minlength=len(self.values[name])).astype(np.int64)

    def joint(self, name: str) -> Codes:
        """Return how many rows hold each value of a column by class, shape (V, C)."""
        size, labelled = len(self.values[name]), self.labelled
        own = self.codes[name][labelled].astype(np.int64) * self.classes + self.label[labelled]
        counted = np.bincount(own, minlength=size * self.classes)
        return counted.astype(np.int64).reshape(size, self.classes)

    def frequency(
        self,
        quasi: tuple[str, ...],
        sensitive: tuple[str, ...],
        attributes: Mapping[str, AttributeSummary],
        label: str,
    ) -> tuple[FrequencyTable, Codes]:
        """Return what `count_cells` returns, and the cell of each row, shape (N,)."""
        names = tuple(dict.fromkeys((*quasi, *sensitive, label)))
        codes: dict[str, npt.NDArray[np.integer]] = {}
        representatives: dict[str, npt.NDArray[np.int32]] = {}
        for name in names:
            if name == label:
                codes[name] = self.label
                continue
            finest = finest_key(attributes[name])
            if finest is None:
                codes[name] = self.codes[name].astype(np.int32)
                size = len(self.values[name])
                representatives[name] = np.arange(size, dtype=np.int32)
            else:
                codes[name] = finest.groups[self.codes[name]]
                first = np.unique(finest.groups, return_index=True)[1]
                representatives[name] = first.astype(np.int32)
        known = np.arange(int(self.label.max(initial=0)) + 1, dtype=np.int32)
        representatives[label] = known
        key = combine(codes.values(), len(self.label))
        _, first, cell, counts = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        by_cell = {name: own[first].astype(np.int32) for name, own in codes.items()}
        table = FrequencyTable(
            quasi, sensitive, label, by_cell, counts.astype(np.int64), representatives
        )
        return table, cell.astype(np.int64)

    def alone(
        self,
        groups: Mapping[str, npt.NDArray[np.integer]],
        label: npt.NDArray[np.integer] | None,
        keep: npt.NDArray[np.bool_],
    ) -> tuple[int, int]:
        """Return how many rows are kept, and how many of them no other equals in what is shown.

        Parameters
        ----------
        groups
            Per released column the group of each value.
        label
            The group of each class, and of what is none; None where no label is released.
        keep
            Whether each row is kept, shape (N,).
        """
        columns = [own[self.codes[name][keep]] for name, own in groups.items()]
        if label is not None:
            columns.append(label[self.label[keep]])
        rows = int(keep.sum())
        counts = np.unique(combine(columns, rows), return_counts=True)[1]
        return rows, int((counts == 1).sum())


def read_coded(
    source: Source,
    names: Sequence[str],
    label_class: Callable[[ir.Table], ir.Value],
    classes: pa.Array,
) -> CodedRows:
    """Read some columns and the class of all rows, in one scan.

    Parameters
    ----------
    source
        The table, of an engine in this process.
    names
        The columns.
    label_class
        The class of each row of a table.
    classes
        The classes, in order.
    """
    columns = {f"a{i}": source.table[name] for i, name in enumerate(names)}
    selected = source.table.select(**columns, y=label_class(source.table))
    parts: list[list[tuple[npt.NDArray[np.unsignedinteger], pa.Array]]] = [[] for _ in names]
    labels = [np.zeros(0, dtype=np.int64)]
    for batch in source.batches(selected, rows=max(_FETCHED // (len(names) + 1), 1)):
        for i, part in enumerate(parts):
            places, distinct = encode(batch.column(f"a{i}"))
            part.append((_narrow(places, len(distinct)), distinct))
        own = pc.index_in(settle(batch.column("y")), value_set=classes)
        labels.append(pc.fill_null(own, len(classes)).to_numpy(zero_copy_only=False))
    codes: dict[str, npt.NDArray[np.unsignedinteger]] = {}
    values: dict[str, pa.Array] = {}
    for name, part in zip(names, parts, strict=True):
        codes[name], values[name] = _joined(part, source.table[name].type().to_pyarrow())
        part.clear()
    return CodedRows(values, codes, np.concatenate(labels).astype(np.int64), len(classes))


def _joined(
    parts: Sequence[tuple[npt.NDArray[np.unsignedinteger], pa.Array]], dtype: pa.DataType
) -> tuple[npt.NDArray[np.unsignedinteger], pa.Array]:
    """Return the codes of all parts of a column among the values of all of them, and these."""
    if not parts:
        return np.zeros(0, dtype=np.uint8), pa.array([], dtype)
    places, distinct = encode(pa.concat_arrays([values for _, values in parts]))
    starts = np.cumsum([0, *(len(values) for _, values in parts)]).tolist()
    small = _narrow(places, len(distinct))
    codes = [small[start:][own] for start, (own, _) in zip(starts, parts, strict=False)]
    return np.concatenate(codes), distinct


def _narrow(codes: npt.NDArray[np.integer], size: int) -> npt.NDArray[np.unsignedinteger]:
    """Return codes below `size` in as few bytes as hold them."""
    narrow: npt.NDArray[np.unsignedinteger] = codes.astype(np.min_scalar_type(max(size - 1, 0)))
    return narrow
