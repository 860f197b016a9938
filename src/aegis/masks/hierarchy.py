"""Define generalisation hierarchies, which group values on successive levels, and the mask that
shows a level.

Masks with many values join a small table instead of building a long expression. For a `Level` of a
hierarchy with 100,000 values, an engine needs minutes and gigabytes to evaluate a CASE with 100,000
branches. A join of the column with a table that has a row per value gives the same result. Values
that are not in a table of an engine are looked up in this process.
"""

from __future__ import annotations

import csv
import gc
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, ClassVar

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Ints
from aegis.errors import DataError, InternalError, PolicyError
from aegis.files import read_text
from aegis.masks import base
from aegis.masks.base import SUPPRESSED, Kind, Mask, Targets, described
from aegis.masks.categories import among, keyed_by, mapped, text_of
from aegis.sources import Source

SEPARATORS = (";", ",", "\t", "|")
NULL = "NULL"
MOST_CELLS = 5_000_000
"""Largest number of cells of a hierarchy file."""
_BATCH = 10_000
Row = tuple[str | None, ...]
_ESCAPED = r"[^ !#-\[\]-~]"
"""Characters that JSON escapes: quotes, backslashes, and all beyond printable ASCII."""
_json = json.encoder.encode_basestring_ascii


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A generalisation hierarchy: for each value its group on every level.

    Level 0 is the value itself. A higher level never splits a group of a lower level. Hierarchies
    with the same rows are equal and have the same hash; their names and the order of their rows do
    not matter.

    Attributes
    ----------
    rows
        One row per value: the value as text (None for null), then its group on levels 1, 2, ... All
        rows have the same length.
    name
        Where the hierarchy comes from, for messages.
    """

    rows: tuple[Row, ...]
    name: str = "hierarchy"

    def __post_init__(self) -> None:
        even = bool(self.rows) and len(self.rows[0]) > 1
        if not (even and set(map(len, self.rows)) == {len(self.rows[0])} and _sound(self.columns)):
            _check_rows(self.rows, self.name)

    @classmethod
    def from_csv(cls, path: str | Path, *, null: str = NULL) -> Hierarchy:
        """Read a hierarchy in the format of ARX (https://arx.deidentifier.org).

        The file has no header. Column 0 contains the values, and each further column is one level
        up. The separator is the first of `;`, `,`, tab and `|` with which all rows have equally
        many columns. A byte order mark, blank lines, quotes and trailing separators are allowed.

        Parameters
        ----------
        path
            The file, UTF-8.
        null
            The text in column 0 that represents null.

        Raises
        ------
        DataError
            The file cannot be read, or is not a hierarchy (see `Hierarchy`).
        """
        file = Path(path)
        with _without_collection():
            rows = _split(read_text(file, "hierarchy", DataError), file.name)
            _require_even(rows, file.name)
            # A line that is there twice says nothing new; two lines that differ are refused.
            lines: dict[Row, None] = dict.fromkeys(map(tuple, rows))
            if any(row[0] == null for row in rows):
                renamed = ((None if row[0] == null else row[0], *row[1:]) for row in lines)
                lines = dict.fromkeys(renamed)
            return cls(tuple(lines), file.name)

    @classmethod
    def from_levels(cls, levels: Mapping[Any, Any], *, name: str = "hierarchy") -> Hierarchy:
        """Return the hierarchy that lists for each value its groups, `{value: [group on level 1, on
        level 2, ...]}`; None is null.
        """
        rows = []
        for value, groups in levels.items():
            listed = (
                groups if isinstance(groups, Sequence) and not isinstance(groups, str) else [groups]
            )
            rows.append((text_of(value), *(_group_name(group, name) for group in listed)))
        return cls(tuple(rows), name)

    @classmethod
    def from_tree(cls, tree: Mapping[Any, Any], *, name: str = "hierarchy") -> Hierarchy:
        """Return the hierarchy for nested mappings that end in lists of values.

        `{Europe: {north: [Oslo, Turku], south: [Rome]}, Asia: {east: [Tokyo]}}` has the levels
        value, region, continent. A mapping `{levels: {value: [groups ...]}}` is read with
        `from_levels`.

        Raises
        ------
        PolicyError
            The tree is empty or contains something other than mappings and lists.
        DataError
            The branches differ in depth, or a value occurs twice.
        """
        if not isinstance(tree, Mapping) or not tree:
            raise PolicyError(
                f"Hierarchy {name}: {tree!r} is not a tree.",
                hint="Write nested mappings that end in lists of values, or {levels: {value: [...]}}.",
            )
        levels = tree.get("levels")
        if len(tree) == 1 and isinstance(levels, Mapping):
            return cls.from_levels(levels, name=name)
        return cls(tuple(_leaves(tree, (), name)), name)

    @property
    def height(self) -> int:
        """Number of the highest level; levels run from 0 (the values themselves) to `height`."""
        return len(self.rows[0]) - 1

    @cached_property
    def columns(self) -> tuple[pa.Array, ...]:
        """The values, and their groups on each level, as arrays of text. The first array has the
        values, the second their groups on level 1, and so on; all arrays are in the order of the
        rows.
        """
        return tuple(pa.array(column, pa.string()) for column in zip(*self.rows, strict=True))

    @cached_property
    def values(self) -> tuple[str | None, ...]:
        """The values that the hierarchy covers, as text (None for null), in the order of the rows."""
        return tuple(row[0] for row in self.rows)

    def groups(self, level: int) -> dict[str | None, tuple[str | None, ...]]:
        """Return the values of each group of a level; groups and values are in the order of the
        rows.

        Raises `PolicyError` for a level that the hierarchy does not have.
        """
        self.require(level)
        by_group: dict[str | None, list[str | None]] = {}
        for row in self.rows:
            by_group.setdefault(row[level], []).append(row[0])
        return {group: tuple(values) for group, values in by_group.items()}

    def targets(self, level: int) -> dict[str | None, str | None]:
        """Return the group of each value on `level`, as texts; None is null."""
        self.require(level)
        return {row[0]: row[level] for row in self.rows}

    def require(self, level: int) -> None:
        """Raise `PolicyError` unless the hierarchy has `level`."""
        if not 0 <= level <= self.height:
            raise PolicyError(
                f"Hierarchy {self.name} has no level {level}.",
                hint=f"Its levels are 0 (the values themselves) to {self.height}.",
            )

    def ancestry(self, values: Sequence[str]) -> Ints:
        """Return the code of each shown value on its level, and the code of its group on every
        higher level.

        Parameters
        ----------
        values
            V masked values as text, all from one level of the hierarchy; null is "null".

        Returns
        -------
        array of shape (V, L)
            L is the number of levels from the shown one upwards. Column 0 has a different code for
            each shown value. Each further column contains the codes of the groups one level up.

        Raises
        ------
        PolicyError
            The values are not all on one level.
        """
        groups = [None if value == "null" and None in self.values else value for value in values]
        for level in range(self.height + 1):
            above = {row[level]: row[level:] for row in self.rows}
            if all(value in above for value in groups):
                paths = [above[value] for value in groups]
                columns = [
                    np.unique([str(group) for group in column], return_inverse=True)[1]
                    for column in zip(*paths, strict=True)
                ]
                return np.stack(columns, axis=1).astype(np.int64)
        raise PolicyError(
            f"The values {', '.join(map(repr, values[:3]))} are not on one level of hierarchy {self.name}.",
            hint="Mask the attribute by levels of its hierarchy, or use another distance.",
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the rows, in hexadecimal; it does not depend on the order of the rows."""
        plain = _plain_rows(self.columns)
        if plain is not None:
            return hashlib.sha256(plain).hexdigest()
        # As json.dumps writes each row, in a fraction of its time.
        rows = sorted(
            f"[{', '.join(['null' if cell is None else _json(cell) for cell in row])}]"
            for row in self.rows
        )
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Hierarchy) or self._shape != other._shape:
            return False
        return self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self._shape)

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.rows), self.height

    def __repr__(self) -> str:
        return f"Hierarchy({self.name!r}, values={len(self.rows)}, height={self.height})"

    def uncovered_values(self, values: pa.Array | Iterable[object]) -> tuple[str, ...]:
        """Return the values that the hierarchy does not cover, as text, in the order of `values`.

        Values are compared according to their type: "39" covers the number 39. Null is always
        covered; it stays null if the hierarchy has no row for it.
        """
        if isinstance(values, pa.Array) and pa.types.is_string(values.type):
            covered = pc.is_in(values, value_set=self.columns[0].drop_null())
            missing = values.filter(pc.and_not(pc.is_valid(values), covered))
            return tuple(missing.to_pylist())
        listed = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
        named = {value: True for value in self.values if value is not None}
        covered = keyed_by(named, _type_of(values, listed))
        unknown = (v for v in listed if v is not None and _comparable(v) not in covered)
        return tuple(str(text_of(value)) for value in unknown)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Switch off garbage collection: its search takes four times as long as reading rows."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _type_of(values: Any, listed: list[Any]) -> Any:
    """Return the Ibis type of an Arrow array, else of the first entry that is not null."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return ibis.dtype(values.type)
    first = next((value for value in listed if value is not None), "")
    return (
        ibis.literal(first).type()
        if not isinstance(first, int)
        else ibis.dtype("boolean" if isinstance(first, bool) else "int64")
    )


def _comparable(value: object) -> object:
    """Return a value in the form in which `keyed_by` converts it: a decimal as a float."""
    return float(value) if isinstance(value, Decimal) else value


def _split(text: str, name: str) -> list[list[str]]:
    """Return the rows of a hierarchy file, split by the first separator that makes them even."""
    best: list[list[str]] = []
    wrong: csv.Error | None = None
    for separator in SEPARATORS:
        try:
            rows = _cells(text, separator, name)
        except csv.Error as error:  # quotes that end within a field: another separator may fit
            wrong = error
            continue
        if rows and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1:
            return rows
        # Where nothing fits, the separator that splits the most rows gives the most useful message.
        best = max(best, rows, key=lambda rows: sum(len(row) > 1 for row in rows))
    if wrong is not None and not any(len(row) > 1 for row in best):
        raise DataError(
            f"Hierarchy {name} is not a CSV file: {wrong}.", hint="Save it as CSV, UTF-8."
        ) from wrong
    if not any(len(row) > 1 for row in best):
        raise DataError(
            f"Hierarchy {name} has no row with a value and a group.",
            hint="Write one row per value: value;group on level 1;group on level 2;...",
        )
    return best


def _cells(text: str, separator: str, name: str) -> list[list[str]]:
    rows: list[list[str]] = []
    parts = 0
    reader = csv.reader(text.splitlines(), delimiter=separator, strict=True)
    while batch := list(islice(reader, _BATCH)):
        parts += sum(map(len, batch))
        if parts > MOST_CELLS:
            raise DataError(
                f"Hierarchy {name} has more than {MOST_CELLS:,} cells.",
                hint="Leave out values that do not occur, or levels that no mask uses.",
            )
        if all(row and row[-1] and row[0].strip() for row in batch):
            rows += batch
        else:
            rows += filter(None, map(_trimmed, batch))
    return rows


def _trimmed(row: list[str]) -> list[str] | None:
    """Return a row without empty cells at its end; None if all cells are empty."""
    while len(row) > 1 and not row[-1]:
        row.pop()
    return row if any(cell.strip() for cell in row) else None


def _require_even(rows: list[list[str]], name: str) -> None:
    """Refuse uneven rows, without quoting a value: the file may contain data instead."""
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]) or len(row) < 2:
            first = f"row 1 has {len(rows[0]) - 1} levels above its value"
            raise DataError(
                f"Hierarchy {name}: {first}"
                + ("." if number == 1 else f", row {number} has {len(row) - 1}."),
                hint="Give every value the same number of levels, at least one.",
            )


def _check_rows(rows: tuple[Row, ...], name: str) -> None:
    """Refuse rows that are uneven, repeat a value, or split a group on a higher level."""
    if not rows:
        raise DataError(f"Hierarchy {name} is empty.", hint="Give one row per value.")
    by_value: dict[str | None, Row] = {}
    for row in rows:
        if len(row) != len(rows[0]) or len(row) < 2:
            raise DataError(
                f"Hierarchy {name}: value {row[0]!r} has {len(row) - 1} levels above it, "
                f"value {rows[0][0]!r} has {len(rows[0]) - 1}.",
                hint="Give every value the same number of levels, at least one.",
            )
        if row[0] in by_value:
            raise DataError(
                f"Hierarchy {name}: value {row[0]!r} has two rows: {_row_text(by_value[row[0]])} and "
                f"{_row_text(row)}.",
                hint="Keep one of them.",
            )
        by_value[row[0]] = row
    for lower, upper in pairwise(range(1, len(rows[0]))):
        _check_nested(rows, lower, upper, name)


def _sound(columns: Sequence[pa.Array]) -> bool:
    """Return whether values are unique and groups nested; if not, `_check_rows` says where."""
    levels = [column.dictionary_encode(null_encoding="encode") for column in columns]
    if len(levels[0].dictionary) < len(columns[0]):
        return False
    places = [level.indices.to_numpy() for level in levels[1:]]
    for lower, upper in pairwise(places):
        above = np.empty(int(lower.max()) + 1, dtype=upper.dtype)
        above[lower] = upper  # of a group in two others the last one stays
        if not np.array_equal(above[lower], upper):
            return False
    return True


def _plain_rows(columns: Sequence[pa.Array]) -> bytes | None:
    """Return the rows as sorted JSON lines; None if a cell is null or needs escapes."""
    for column in columns:
        if column.null_count or pc.any(pc.match_substring_regex(column, _ESCAPED)).as_py():
            return None
    rows = pc.binary_join_element_wise(
        *columns[:-1], pc.binary_join_element_wise(columns[-1], '"]', ""), '", "'
    )
    ordered = rows.take(pc.array_sort_indices(rows)).to_pylist()
    return ('["' + '\n["'.join(ordered)).encode()


def _row_text(row: Row) -> str:
    return repr(";".join(NULL if cell is None else cell for cell in row))


def _check_nested(rows: tuple[Row, ...], lower: int, upper: int, name: str) -> None:
    """Raise `DataError` if level `upper` of the hierarchy `name` splits a group of level `lower`."""
    first: dict[str | None, Row] = {}
    for row in rows:
        other = first.setdefault(row[lower], row)
        if other[upper] != row[upper]:
            raise DataError(
                f"Hierarchy {name}: level {upper} splits the group {row[lower]!r} of level {lower}: "
                f"value {other[0]!r} belongs to {other[upper]!r}, value {row[0]!r} to "
                f"{row[upper]!r}.",
                hint="A group must lie within one group of the next level: rename or move it.",
            )


def _group_name(group: object, name: str) -> str:
    text = text_of(group) if isinstance(group, (str, int, float)) else None
    if text is None:
        raise PolicyError(
            f"Hierarchy {name}: {group!r} is not the name of a group.",
            hint="Give a text or number.",
        )
    return text


def _leaves(node: Any, above: tuple[str, ...], name: str) -> Iterator[Row]:
    """Yield the row of each value below `node`; `above` are its groups, the nearest first."""
    if isinstance(node, Mapping):
        for group, below in node.items():
            yield from _leaves(below, (_group_name(group, name), *above), name)
        return
    for value in node if isinstance(node, list | tuple) else [node]:
        if isinstance(value, Mapping | list | tuple):
            raise PolicyError(
                f"Hierarchy {name}: {value!r} is not a value.",
                hint="A list in a tree holds values only; make deeper groups mappings.",
            )
        yield (text_of(value), *above)


@dataclass(frozen=True)
class Level(Mask):
    """Shows the group of a value on one level of its hierarchy; level 0 is the value itself.

    Null stays null unless the hierarchy has a row for it. From level 1 on, a value that the
    hierarchy does not cover is unknown: `known` is false for it and the expression shows "*".
    """

    name: ClassVar[str] = "level"
    summary: ClassVar[str] = (
        "Replaces each value by its group at a level of the attribute's hierarchy."
    )
    fits: ClassVar[frozenset[Kind]] = frozenset(Kind)
    example: ClassVar[str] = "{level: 2}"

    level: int = described("number of the level. Level 0 is the value itself")
    hierarchy: Hierarchy | None = field(default=None, metadata={"policy": False})

    def __post_init__(self) -> None:
        base.whole(self.name, "level", self.level)
        if self.hierarchy is not None:
            self.hierarchy.require(self.level)

    def spec(self) -> str | dict[str, Any]:
        """Return `{level: n}`; the hierarchy itself belongs to the attribute."""
        return {self.name: self.level}

    def __str__(self) -> str:
        return f"{self.name}({self.level})"

    def check(self, kind: Kind, attribute: str) -> None:
        """Raise `PolicyError` if the attribute has no hierarchy."""
        super().check(kind, attribute)
        if self.hierarchy is None:
            raise PolicyError(
                f"Mask {str(self)!r}: attribute {attribute!r} has no hierarchy.",
                hint="Name one under `hierarchy:` of the attribute.",
            )

    def output_kind(self, kind: Kind) -> Kind:
        """Return `kind` for level 0, text for all other levels."""
        return kind if self.level == 0 else Kind.TEXT

    def shows(self, text: str) -> bool | None:
        """Return whether the mask can show a text: a group of the level, or "*". None for level 0,
        which can show any text.
        """
        return among(text, self._texts) if self.level else None

    @cached_property
    def _texts(self) -> frozenset[str]:
        return frozenset(map(str, self.shown_values)) | {SUPPRESSED}

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the group of each value; raise `InternalError` if the mask has no hierarchy."""
        if self.level == 0:
            return column
        targets = self._targets()
        of_null = targets.pop(None, None)
        masked = mapped(column, targets, ibis.literal(SUPPRESSED))
        return masked if of_null is None else ibis.ifelse(column.isnull(), of_null, masked)

    def targets(self, dtype: dt.DataType) -> Targets | None:
        """Return the list of the hierarchy's values, in the type `dtype`, with the group of each;
        None for level 0, which shows the values unchanged.
        """
        if self.level == 0:
            return None
        targets = self._targets()
        of_null = targets.pop(None, None)
        return Targets(keyed_by(targets, dtype), SUPPRESSED, of_null)

    def known(self, column: ir.Column) -> ir.BooleanValue | None:
        """Return whether a value is null or covered by the hierarchy; None for level 0."""
        if self.level == 0:
            return None
        covered = {value: True for value in self._targets() if value is not None}
        return column.isnull() | mapped(column, covered, ibis.literal(False))

    @property
    def shown_values(self) -> frozenset[Any]:
        """All values that the mask can show; raise `InternalError` if it has no hierarchy."""
        return frozenset(self._targets().values())

    def _targets(self) -> dict[Any, Any]:
        if self.hierarchy is None:
            raise InternalError(f"Mask {str(self)!r} has no hierarchy to look values up in.")
        return self.hierarchy.targets(self.level)


MANY = 1_000
"""Smallest number of values for which a mask is applied by a lookup table."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """A mask as a list of values and the masked text of each.

    Attributes
    ----------
    values
        The values, in the column's type, without duplicates and without null.
    masked_texts
        The masked text of each value.
    otherwise
        The masked text of all other values.
    of_null
        The masked text of null; None if it stays null.
    """

    values: pa.Array
    masked_texts: pa.Array
    otherwise: str
    of_null: str | None = None

    def evaluate(self, column: pa.Array) -> pa.Array:
        """Return the masked value of each entry of an array of the column's type."""
        places = pc.index_in(column, value_set=self.values)
        masked = pc.fill_null(self.masked_texts.take(places), self.otherwise)
        null = pa.scalar(self.of_null, pa.string())
        return pc.if_else(pc.is_null(column), null, masked)

    def expression(self, column: ir.Value, joined: ir.Value) -> ir.Value:
        """Return the masked column; `joined` has the joined texts, null where no value matched."""
        null = ibis.null(dt.string) if self.of_null is None else ibis.literal(self.of_null)
        return ibis.ifelse(column.isnull(), null, joined.fill_null(self.otherwise))


def lookup_of(mask: Mask | None, dtype: dt.DataType) -> Lookup | None:
    """Return a mask as a list of values and masked texts; None if it has no list, or if a short
    expression computes the masked text.
    """
    if mask is None or not (dtype.is_string() or dtype.is_integer()):
        return None
    if type(mask).targets is Mask.targets:
        return None
    lookup = _cached_lookup(mask, dtype)
    return None if lookup is None or len(lookup.values) < MANY else lookup


@lru_cache(maxsize=256)
def _cached_lookup(mask: Mask, dtype: dt.DataType) -> Lookup | None:
    if (
        isinstance(mask, Level)
        and mask.level > 0
        and mask.hierarchy is not None
        and dtype.is_string()
    ):
        return _of_level(mask.hierarchy, mask.level)
    targets = mask.targets(dtype)
    if targets is None:
        return None
    return Lookup(
        pa.array(list(targets.keyed), dtype.to_pyarrow()),
        pa.array(list(targets.keyed.values()), pa.string()),
        targets.otherwise,
        targets.of_null,
    )


def _of_level(hierarchy: Hierarchy, level: int) -> Lookup:
    """Return the list of a hierarchy's values and their groups, as of `Level.targets`."""
    values, texts = hierarchy.columns[0], hierarchy.columns[level]
    of_null = None
    if values.null_count:
        of_null = texts.filter(pc.is_null(values))[0].as_py()
        texts, values = texts.filter(pc.is_valid(values)), values.drop_null()
    return Lookup(values, texts, SUPPRESSED, of_null)


@dataclass(frozen=True, eq=False)
class Joined:
    """A table joined with lookups for some of its columns. A lookup is a list of values and their
    masked texts.

    Attributes
    ----------
    table
        The joined table. Its own columns keep their names. If there is a lookup, the rows are in no
        particular order.
    looked_up
        For each column with a lookup, the result of the join; null in rows without a match.
    lookups
        The lookups by column.
    """

    table: ir.Table
    looked_up: Mapping[str, ir.Value]
    lookups: Mapping[str, Lookup]

    def masked(self, name: str, mask: Mask | None) -> ir.Value:
        """Return the expression of a column after masking; None changes nothing."""
        column = self.table[name]
        if name in self.lookups:
            return self.lookups[name].expression(column, self.looked_up[name])
        return column if mask is None else mask.told_apart(column)


def join_lookups(source: Source, table: ir.Table, masks: Mapping[str, Mask | None]) -> Joined:
    """Return a table joined with the list of each mask that has one and no short expression."""
    lookups: dict[str, Lookup] = {}
    handed: dict[str, ir.Table] = {}
    for name, mask in masks.items():
        lookup = lookup_of(mask, table[name].type())
        if lookup is not None:
            lookups[name] = lookup
            i = len(handed)
            small: Any = {f"aegis_v{i}": lookup.values, f"aegis_g{i}": lookup.masked_texts}
            handed[name] = source.upload(pa.table(small))
    return joined_with(table, lookups, handed)


def joined_with(
    table: ir.Table, lookups: Mapping[str, Lookup], handed: Mapping[str, ir.Table]
) -> Joined:
    """Return a table joined with lookup tables that the engine has; it adds aegis_v0 (values), aegis_g0
    (masked texts), aegis_v1, ...
    """
    for number, (name, small) in enumerate(handed.items()):
        table = table.left_join(small, table[name] == small[f"aegis_v{number}"])
    columns = {name: table[f"aegis_g{number}"] for number, name in enumerate(handed)}
    return Joined(table, columns, lookups)
