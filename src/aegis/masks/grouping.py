"""Group a column's distinct values by a mask, compare groupings, and apply several masks one after
the other.

A grouping is computed by evaluating the mask's own expression on the distinct values. So a grouping
cannot differ from the effect of the mask on a table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, ClassVar

import ibis
import ibis.expr.datatypes as dt
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Int32s, by_appearance
from aegis.errors import InternalError, PolicyError
from aegis.masks import base
from aegis.masks.base import SUPPRESSED, Identity, Kind, Mask, ValueCounts, described
from aegis.masks.categories import text_of
from aegis.masks.hierarchy import Hierarchy, Level, lookup_of
from aegis.masks.numeric import BottomCode, TopCode
from aegis.sources import embedded
from aegis.sources.source import fetch

if TYPE_CHECKING:
    import ibis.expr.types as ir

NULL_LABEL = "null"
_FEW_VALUES = 10_000
"""Largest number of distinct values for which several columns are masked in one query."""
Codes = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Grouping:
    """The distinct values of a column, grouped by their masked value.

    Attributes
    ----------
    codes
        Group of each of the V distinct values, shape (V,), int32. Groups are numbered from 0 in
        order of first appearance. NaN is one value, null is one value, and -0.0 counts as 0.0.
    masked_values
        The masked value of each group, shape (size,).
    """

    codes: Int32s
    masked_values: pa.Array

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.masked_values)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The masked values as text: "null", "39" for 39.0, dates in ISO 8601."""
        values = self.masked_values
        if pa.types.is_string(values.type) or pa.types.is_integer(values.type):
            # The common case of many labels; Arrow's text of these types is that of `text_of`.
            texts = values.cast(pa.string()).to_pylist()
        else:
            texts = [text_of(value) for value in values.to_pylist()]
        return tuple(NULL_LABEL if text is None else text for text in texts)


def evaluate(
    masks: Sequence[Mask],
    values: pa.Array,
    dtype: dt.DataType | None = None,
    connection: Any = None,
) -> list[Grouping]:
    """Return the grouping of `values` by each mask, from one query.

    Parameters
    ----------
    masks
        Fitted masks that fit the column.
    values
        The V distinct values of a column, shape (V,).
    dtype
        The column's Ibis type, if the type of the array differs from it; the values are cast to it.
    connection
        The Ibis connection to evaluate on; by default the embedded engine.

    Raises
    ------
    InternalError
        A mask is not fitted.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if dtype is not None:
        values = values.cast(dtype.to_pyarrow())
    return evaluate_columns([(masks, values)], connection)[0]


def evaluate_columns(
    columns: Sequence[tuple[Sequence[Mask], pa.Array]], connection: Any = None
) -> list[list[Grouping]]:
    """Return, for each of several columns, the grouping of its distinct values by each of its
    masks. Each column is given as its masks and its distinct values. `connection` evaluates them;
    by default, the embedded engine does.

    Columns with few values share one query, because starting a query takes longer than masking few
    values.
    """
    masked: dict[tuple[int, int], pa.ChunkedArray] = {}
    rest: list[tuple[int, list[int]]] = []
    for number, (masks, values) in enumerate(columns):
        dtype = ibis.dtype(values.type)
        for index, mask in enumerate(masks):
            lookup = lookup_of(mask, dtype)
            if isinstance(mask, Identity):
                masked[number, index] = pa.chunked_array([values.cast(dtype.to_pyarrow())])
            elif lookup is not None:
                masked[number, index] = pa.chunked_array([lookup.evaluate(values)])
        indices = [index for index in range(len(masks)) if (number, index) not in masked]
        if indices:
            rest.append((number, indices))
    together = [part for part in rest if len(columns[part[0]][1]) <= _FEW_VALUES]
    alone = [part for part in rest if len(columns[part[0]][1]) > _FEW_VALUES]
    for query in filter(None, [together, *([part] for part in alone)]):
        parts = [([columns[n][0][i] for i in indices], columns[n][1]) for n, indices in query]
        arrays = iter(_masked(parts, connection or embedded()))
        for number, indices in query:
            masked |= {(number, index): next(arrays) for index in indices}
    return [
        [_group(masked[number, index]) for index in range(len(masks))]
        for number, (masks, _) in enumerate(columns)
    ]


def transform(mask: Mask, data: ValueCounts) -> ValueCounts:
    """Return the distinct masked values of `data` and the number of rows with each."""
    [grouping] = evaluate([mask], data.values)
    counts = np.bincount(grouping.codes, weights=data.counts, minlength=grouping.size)
    order = pc.sort_indices(grouping.masked_values)
    dtype = ibis.dtype(grouping.masked_values.type)
    return ValueCounts(
        Kind.of(dtype) or Kind.TEXT,
        grouping.masked_values.take(order),
        np.rint(counts).astype(np.int64)[order.to_numpy()],
        data.shared_rows,
    )


def _masked(
    columns: Sequence[tuple[Sequence[Mask], pa.Array]], connection: Any
) -> list[pa.ChunkedArray]:
    """Return, for each column and each of its masks, the masked values of the column's distinct
    values, in the same order.

    Columns of one type are masked as one column if they have the same mask, because compiling an
    expression takes longer than masking few values.
    """
    pairs = [(mask, number) for number, (masks, _) in enumerate(columns) for mask in masks]
    stacks: list[tuple[Mask, list[int]]] = []
    filling: dict[Hashable, tuple[int, int]] = {}
    places = []
    for mask, number in pairs:
        values = columns[number][1]
        # Equal masks may be written in different ways, such as 5 and 5.0.
        key = mask, str(mask), values.type
        stack, start = filling.get(key, (len(stacks), 0))
        if start + len(values) > _FEW_VALUES:
            stack, start = len(stacks), 0
        if stack == len(stacks):
            stacks.append((mask, []))
        stacks[stack][1].append(number)
        filling[key] = stack, start + len(values)
        places.append((stack, start, len(values)))
    arrays = _of_stacks([values for _, values in columns], stacks, connection)
    return [arrays[stack].slice(start, size) for stack, start, size in places]


def _of_stacks(
    columns: Sequence[pa.Array], stacks: Sequence[tuple[Mask, Sequence[int]]], connection: Any
) -> list[pa.ChunkedArray]:
    """Return the masked values of each stack of columns under one mask, by one query."""
    most = max(sum(len(columns[n]) for n in numbers) for _, numbers in stacks)
    rows = np.arange(most, dtype=np.int64)
    # Built from a buffer: Arrow imports pandas to convert a NumPy array.
    arrays = {"row": pa.Array.from_buffers(pa.int64(), most, [None, pa.py_buffer(rows)])}
    names = {tuple(numbers): f"value_{i}" for i, (_, numbers) in enumerate(stacks)}
    for numbers, name in names.items():
        parts = [columns[n] for n in numbers]
        if short := most - sum(map(len, parts)):
            parts.append(pa.nulls(short, parts[0].type))
        arrays[name] = pa.concat_arrays(parts) if len(parts) > 1 else parts[0]
    table = ibis.memtable(pa.table(arrays))
    expressions = [mask.told_apart(table[names[tuple(numbers)]]) for mask, numbers in stacks]
    query = table.select("row", **{f"mask_{i}": e for i, e in enumerate(expressions)})
    result = fetch(connection, query)
    returned = result.column("row").to_numpy()
    if not np.array_equal(returned, rows):
        result = result.take(pc.sort_indices(result.column("row")))
    return [result.column(f"mask_{i}") for i in range(len(stacks))]


def _group(column: pa.ChunkedArray) -> Grouping:
    if pa.types.is_floating(column.type):
        # -0.0 + 0.0 is 0.0. Arrow distinguishes NaN by their bits.
        column = pc.add(column, pa.scalar(0.0, column.type))
        column = pc.if_else(pc.is_nan(column), pa.scalar(np.nan, column.type), column)
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return Grouping(
        encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32), encoded.dictionary
    )


def refines(fine: Codes, coarse: Codes) -> bool:
    """Return whether each group of `fine` is a subset of a group of `coarse`.

    Both are groupings of the same V values: the group of each value, shape (V,), numbered from 0.
    Every grouping refines itself and the grouping with a single group.
    """
    _check_sizes(fine, coarse)
    if not len(fine):
        return True
    member = np.empty(int(fine.max()) + 1, dtype=np.int64)
    member[fine] = coarse
    return bool((member[fine] == coarse).all())


def common_refinement(groupings: Sequence[Codes]) -> Int32s:
    """Return the coarsest grouping that refines all `groupings`, numbered by first appearance.

    Each grouping is the group of each of V values, shape (V,), numbered from 0. The result has the
    same form, with type int32. Raises `InternalError` if there are no groupings, or if their shapes
    differ.
    """
    if not groupings:
        raise InternalError("There is no grouping to refine.")
    first, *others = groupings
    for other in others:
        _check_sizes(first, other)
    refinement = _refined(np.zeros(len(first), dtype=np.int32), first)
    for other in others:
        if int(refinement.max(initial=-1)) + 1 == len(refinement):
            break  # each value is alone already
        refinement = _refined(refinement, other)
    return refinement


def _refined(left: Int32s, right: Codes) -> Int32s:
    width = int(right.max(initial=0)) + 1
    return by_appearance(left.astype(np.int64) * width + right)[1].astype(np.int32)


def _check_sizes(left: Codes, right: Codes) -> None:
    if left.shape != right.shape:
        raise InternalError(f"Groupings of {len(left)} and {len(right)} values cannot be compared.")


def parts_of(mask: Mask) -> tuple[Mask, ...]:
    """Return the masks of a composition; any other mask alone."""
    return mask.masks if isinstance(mask, Compose) else (mask,)


def hierarchy_of(masks: Iterable[Mask], attribute: str) -> Hierarchy | None:
    """Return the hierarchy of the masks of one attribute; None if no mask has one."""
    levels = (part for mask in masks for part in parts_of(mask) if isinstance(part, Level))
    hierarchies = dict.fromkeys(m.hierarchy for m in levels if m.hierarchy is not None)
    if len(hierarchies) > 1:
        raise InternalError(f"The masks of {attribute!r} use more than one hierarchy.")
    return next(iter(hierarchies), None)


@dataclass(frozen=True)
class Compose(Mask):
    """Applies masks in order, each to the result of the previous mask.

    `{compose: [{top_code: {at: 90}}, {bucketize: {width: 10}}]}` caps ages at 90 and then shows
    their decade; the last interval is then [90, inf[. Each mask must fit the kind of data that the
    previous mask shows. A mask that shows intervals cannot follow one that moves all numbers, such
    as `round`, because an interval would not contain the number of the table.
    """

    name: ClassVar[str] = "compose"
    summary: ClassVar[str] = "Applies several masks one after the other."
    fits: ClassVar[frozenset[Kind]] = frozenset(Kind)
    example: ClassVar[str] = "{compose: [{top_code: {at: 90}}, {bucketize: {width: 10}}]}"

    masks: tuple[Mask, ...] = described("the masks in order, at least two")

    def __post_init__(self) -> None:
        masks_given: object = self.masks
        masks = tuple(masks_given) if isinstance(masks_given, Iterable) else ()
        if len(masks) < 2 or not all(isinstance(mask, Mask) for mask in masks):
            raise base.wrong(self.name, "masks", masks_given, "a list of two or more masks")
        for mask in masks:
            if not mask.deterministic:
                raise PolicyError(
                    f"Mask {self.name!r} cannot hold {mask.name!r}, which draws its values at random.",
                    hint="Use the noise mask by itself.",
                )
        flat = tuple(part for mask in masks for part in parts_of(mask))
        object.__setattr__(self, "masks", flat)

    def spec(self) -> str | dict[str, Any]:
        """Return `{compose: [...]}`."""
        return {self.name: [mask.spec() for mask in self.masks]}

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.masks))})"

    def check(self, kind: Kind, attribute: str) -> None:
        """Raise `PolicyError`, which names the attribute, if one of the masks does not accept the
        kind of data that the previous mask shows, or if its intervals would not contain the
        numbers of the column.
        """
        moving: Mask | None = None
        for mask in self.masks:
            mask.check(kind, attribute)
            kind = mask.output_kind(kind)
            if moving and mask.shows_intervals and kind is Kind.TEXT:
                raise PolicyError(
                    f"Mask {str(self)!r} of attribute {attribute!r}: {moving.name!r} moves numbers "
                    f"out of the intervals that {mask.name!r} shows.",
                    hint=f"Leave out {moving.name!r}.",
                )
            if not isinstance(mask, (Identity, TopCode, BottomCode)):
                moving = mask

    def output_kind(self, kind: Kind) -> Kind:
        """Return the kind of data that the last mask shows."""
        return reduce(lambda kind, mask: mask.output_kind(kind), self.masks, kind)

    @property
    def fitted(self) -> bool:
        """Whether all masks are fitted."""
        return all(mask.fitted for mask in self.masks)

    def unfitted(self) -> Compose:
        """Return the composition without the parameters that its masks learn from the data."""
        return replace(self, masks=tuple(mask.unfitted() for mask in self.masks))

    def unlisted(self) -> Compose:
        """Return the composition without the lists of values that its masks learnt from the data."""
        return replace(self, masks=tuple(mask.unlisted() for mask in self.masks))

    def _learn(self, data: ValueCounts) -> Compose:
        """Return the composition with each mask fitted to the result of the previous mask."""
        fitted: list[Mask] = []
        for mask in self.masks:
            before = transform(Compose((Identity(), *fitted)), data) if fitted else data
            fitted.append(mask.fit(before))
        return replace(self, masks=tuple(fitted))

    def shows(self, text: str) -> bool | None:
        """Return whether the composition can show a text.

        It can if the last mask can, or if an earlier mask shows this text for values that it does
        not know.
        """
        by_last = self.masks[-1].shows(text)
        return by_last if by_last is None else by_last or text == SUPPRESSED

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the expression of all masks, applied one after the other."""
        *_, masked = self._steps(column)
        return masked

    def known(self, column: ir.Column) -> ir.BooleanValue | None:
        """Return the condition that each mask defines a result for its input; None if all masks do
        so for every value.
        """
        steps = zip(self.masks, self._steps(column), strict=False)
        conditions = [known for mask, step in steps if (known := mask.known(step)) is not None]
        return reduce(and_, conditions) if conditions else None

    def _steps(self, column: ir.Column) -> Iterator[ir.Value]:
        """Yield the column before each mask, then the result of the last one.

        An interval that contains the bound of a top or bottom code also holds the numbers beyond
        the bound, so it is shown open at this end.
        """
        bounds: list[tuple[bool, ir.Value]] = []
        for mask in self.masks:
            yield column
            if (
                isinstance(mask, (TopCode, BottomCode))
                and (bound := mask.bound(column)) is not None
            ):
                bounds.append((mask.top, bound))
            column = mask.expression(column)
            bounds = [(top, mask.expression(bound)) for top, bound in bounds]
            if mask.shows_intervals and column.type().is_string():
                column = _opened(column, bounds)
                bounds = []
        yield column


def _opened(intervals: ir.StringValue, bounds: Sequence[tuple[bool, ir.Value]]) -> ir.StringValue:
    """Return the intervals, open upwards (True) or downwards (False) if equal to one in `bounds`."""
    opened = intervals
    for top, bound in bounds:
        comma = opened.find(", ")
        wide = opened.left(comma) + ", inf[" if top else "]-inf" + opened.substr(comma)
        opened = ibis.ifelse(intervals == bound, wide, opened)
    return opened
