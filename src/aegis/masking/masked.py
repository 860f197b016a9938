"""Fit masks to a table, build the masked table as a query, and check its classes.

An engine needs twenty times as long to format a text from integers, such as "[20, 30[", as to
choose among constants. So if a column has few values, Aegis computes the text of each value once,
and the engine looks it up. Parquet stores such a column as a dictionary. There, the engine looks up
each entry of the dictionary in a map once. For other sources, the engine chooses the text by
bisection. Null, and any value that is not listed, still gets the mask's expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from aegis.errors import DataError, InternalError
from aegis.masks import (
    Hierarchy,
    Kind,
    Mask,
    NoiseMask,
    ValueCounts,
    evaluate,
    join_lookups,
    lookup_of,
)
from aegis.masks.base import usable
from aegis.masks.categories import mapped
from aegis.policy import Policy
from aegis.privacy import PrivacyRule, Verdict
from aegis.privacy.inference import Implication, find_implications
from aegis.sources import Source
from aegis.sources.lookup import look_up
from aegis.sources.source import ROW_NUMBER
from aegis.summary.classes import (
    PERSON,
    ROWS,
    WEIGHT,
    CountedClasses,
    ShownColumns,
    count_classes,
    same_class,
)
from aegis.summary.coded_rows import count_by, fetch_codes, fits, stored_rows
from aegis.summary.codes import check_masks, sorted_values
from aegis.summary.leaves import ShownLeaves
from aegis.summary.outside import comparable, people_of
from aegis.words import counted

MANY_ROWS = 1_000_000
"""Smallest number of rows for which Aegis first lists the values of a column."""
MOST_VALUES = 512
"""Largest number of values that a column may have if its texts are looked up."""
MOST_IN_MAP = 128
"""Largest number of values in a map, because the engine searches a map from its start."""
_FEW_ROWS = 2_000_000
"""Up to this many rows, one query lists the values of all columns."""
_TRIAL_ROWS = 100_000
"""Number of rows on which Aegis tests whether a column has few values."""


def expressions(
    source: Source,
    columns: Mapping[str, ir.Column],
    masks: Mapping[str, Mask],
    *,
    rows: int = MANY_ROWS,
) -> dict[str, ir.Value]:
    """Return, for each column, an expression that computes its masked values. If possible, this is
    a faster expression with the same results.

    Parameters
    ----------
    source
        The table; it runs the queries that list the values.
    columns
        Columns of the table, by name.
    masks
        A fitted mask for each column.
    rows
        Smallest number of rows for which Aegis lists the values.
    """
    masked = {name: mask.expression(columns[name]) for name, mask in masks.items()}
    if source.rows < rows or not source.engine.in_process:
        return masked
    looked_up = [n for n, mask in masks.items() if _gains(source, columns[n], mask, masked[n])]
    for name, values in _values(source, looked_up).items():
        masked[name] = _chosen(source, columns[name], masks[name], values, masked[name])
    return masked


def _gains(source: Source, column: ir.Column, mask: Mask, plain: ir.Value) -> bool:
    """Return whether it is faster to look up the mask's texts for the values of a column than to
    compute them by the expression `plain`.
    """
    kind = column.type()
    quicker = kind.is_integer() or (kind.is_string() and source.is_parquet)
    operation = plain.op()  # a constant requires no value, and the column itself no text
    of_values = bool(operation.find(ops.Field)) and not isinstance(operation, ops.Field)
    return mask.deterministic and quicker and plain.type().is_string() and of_values


def _chosen(
    source: Source, column: ir.Column, mask: Mask, values: pa.Array, plain: ir.Value
) -> ir.Value:
    """Return an expression that masks a column by looking up the masked text of each of the
    `values`. All other values are masked by the expression `plain`, which is returned if a lookup
    is not possible.
    """
    [grouping] = evaluate([mask], values)
    if grouping.size == 1 or grouping.masked_values.null_count:
        return plain
    texts = grouping.masked_values.take(grouping.codes.tolist()).to_pylist()
    if source.is_parquet and len(values) <= MOST_IN_MAP:
        return look_up(column, values.to_pylist(), texts, plain)
    if not column.type().is_integer():
        return plain
    targets = {str(value): text for value, text in zip(values.to_pylist(), texts, strict=True)}
    return column.isnull().ifelse(plain, mapped(column, targets, plain))


def _values(source: Source, names: Sequence[str]) -> dict[str, pa.Array]:
    """Return the distinct values of each column that has only few of them, ascending and without
    null. Columns with many values are left out.
    """
    rows = stored_rows(source, names)
    if rows is not None:
        values = {n: v.drop_null() for n, v in rows.values.items()}
        return {n: v for n, v in values.items() if 0 < len(v) <= MOST_VALUES}
    few = names
    if names and source.rows > _FEW_ROWS:
        few = _few(source.table.select(*names).limit(_TRIAL_ROWS), names, source)
    if not few:
        return {}
    table = source.table
    lists = {f"v{i}": table[name].collect(distinct=True) for i, name in enumerate(few)}
    listed = source.collect(table.aggregate(**lists))
    values = {n: listed[f"v{i}"].combine_chunks().flatten() for i, n in enumerate(few)}
    return {n: v.drop_null().sort() for n, v in values.items() if 0 < len(v) <= MOST_VALUES}


def _few(trial: ir.Table, names: Sequence[str], source: Source) -> list[str]:
    """Return those of the columns `names` that have few different values in `trial`, the first rows
    of the table.
    """
    counts = {f"v{i}": trial[name].nunique() for i, name in enumerate(names)}
    [counted] = source.collect(trial.aggregate(**counts)).to_pylist()
    return [name for i, name in enumerate(names) if counted[f"v{i}"] <= MOST_VALUES]


ORDERED_ROWS = 2_000_000
"""Largest number of rows whose order is kept when rows are suppressed."""


def masked_table(
    source: Source,
    masks: Mapping[str, Mask | None],
    *,
    numbered: bool = False,
    person: str | None = None,
    weight: str | None = None,
) -> ir.Table:
    """Return the masked table as a query, with the columns that `masks` names, in the table's
    order.

    Parameters
    ----------
    source
        The table.
    masks
        The fitted mask of each column; None shows the column as it is.
    numbered
        Whether to add the column `ROW_NUMBER` if the engine has row numbers, so that the order of
        rows can be restored later.
    person
        Column that identifies persons, if the rule counts them; it is added as `PERSON`.
    weight
        Column of weights for scores; it is added as `WEIGHT`.
    """
    ordered = source.engine.ordered  # where there is an order, joins must not lose it
    numbered = numbered and ordered
    looked_up_in_tables = any(
        lookup_of(masks.get(name), source.table[name].type()) for name in source.columns
    )
    counted = numbered or (ordered and looked_up_in_tables)
    table = _numbered(source) if counted else source.table
    joined = join_lookups(source, table, {n: masks.get(n) for n in source.columns})
    columns: dict[str, ir.Value] = {n: joined.table[n] for n in source.columns if n in masks}
    rest: dict[str, Mask] = {}
    for name in columns:
        mask = masks[name]
        if mask is None or name in joined.lookups:
            columns[name] = joined.masked(name, mask)
        else:
            rest[name] = mask
    columns |= expressions(source, {n: joined.table[n] for n in rest}, rest)
    if person is not None:
        source.require(person, where="the policy's person")
        columns[PERSON] = joined.table[person]
    if weight is not None:
        columns[WEIGHT] = joined.table[weight]
    if counted:
        columns[ROW_NUMBER] = joined.table[ROW_NUMBER]
    masked = joined.table.select(columns)
    if counted and looked_up_in_tables and source.rows <= ORDERED_ROWS:
        masked = masked.order_by(ROW_NUMBER)
    return masked if numbered or not counted else masked.drop(ROW_NUMBER)


def _numbered(source: Source) -> ir.Table:
    if source.numbered is not None:
        return source.numbered
    return source.table.mutate(**{ROW_NUMBER: ibis.row_number()})


@dataclass(frozen=True, eq=False)
class CheckedClasses:
    """The classes of a masked table, checked against a rule.

    Attributes
    ----------
    source, table
        The engine and the masked table.
    verdict
        The verdict of the rule.
    quasi
        Columns whose values form the classes.
    left_out
        The classes that fail the rule, each as a row with its values of the quasi-identifiers in
        the columns `k0`, `k1`, ...; None if no class fails.
    rows
        Rows of the table.
    """

    source: Source
    table: ir.Table
    verdict: Verdict
    quasi: tuple[str, ...]
    left_out: pa.Table | None
    rows: int

    def kept_rows(self) -> ir.Table:
        """Return the table without the rows of classes that fail the rule, in the same order."""
        table, in_order = self.table, ROW_NUMBER in self.table.columns
        if self.left_out is None:
            return table.drop(ROW_NUMBER) if in_order else table
        failing = self.source.upload(self.left_out)
        rest = table.anti_join(failing, same_class(table, failing, self.quasi, self.left_out))
        if not in_order:
            return rest
        # An engine joins in whatever order its threads finish: row numbers bring the rows back into
        # the table's order, but not where sorting would cost more than all else.
        if self.rows <= ORDERED_ROWS:
            rest = rest.order_by(ROW_NUMBER)
        return rest.drop(ROW_NUMBER)


def check_classes(
    source: Source,
    table: ir.Table,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    rule: PrivacyRule,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    population: Source | None = None,
    leaves: ShownLeaves | None = None,
    earlier: Sequence[ShownColumns] = (),
    *,
    narrow: ir.Table | None = None,
) -> CheckedClasses:
    """Check the classes of a masked table against the rule.

    Parameters
    ----------
    source
        Runs the query that counts the classes.
    table
        The masked table, with row numbers if the order of its rows matters, and with persons
        (`PERSON`) if the rule counts them.
    quasi, sensitive, rule
        Columns whose values form the classes, columns that the rule protects, and the rule.
    hierarchies
        Hierarchies of sensitive columns, for models that need them.
    population
        The table of the population, for models that depend on it.
    leaves
        The number of original values that each masked value of a quasi-identifier may represent;
        only some privacy models need it.
    earlier
        For each earlier release, in their order, the columns of `table` that show the rows as this
        release did. These columns stay in the table.
    """
    if earlier:
        return _check_after(source, table, quasi, sensitive, rule, hierarchies or {}, earlier)
    person = PERSON if rule.person is not None else None
    counted = count_classes(
        source,
        quasi,
        sensitive,
        table=table if narrow is None else narrow,
        hierarchies=hierarchies,
        person=person,
        population=population,
    )
    classes = counted.table
    if leaves is not None:
        members = counted.members(np.ones(len(classes), dtype=np.bool_))
        classes = replace(classes, hidden=leaves.hidden(members))
    verdict = rule.check(classes)
    if verdict.kept_classes.all() or not quasi:
        return CheckedClasses(source, table, verdict, tuple(quasi), None, classes.rows)
    left_out = counted.members(~verdict.kept_classes)
    return CheckedClasses(source, table, verdict, tuple(quasi), left_out, classes.rows)


def _check_after(
    source: Source,
    table: ir.Table,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    rule: PrivacyRule,
    hierarchies: Mapping[str, Hierarchy],
    earlier: Sequence[ShownColumns],
) -> CheckedClasses:
    """Check the classes that a release forms together with earlier releases. Rows that are missing
    in one of the releases are in other classes than the rows that it contains.

    The parameters are those of `check_classes`.
    """
    new_release = ShownColumns(tuple(quasi), {name: name for name in sensitive})
    releases = (*earlier, new_release)
    names = tuple(name for release in releases for name in release.quasi)
    protected = tuple(name for release in releases for name in release.sensitive.values())
    counted = count_classes(source, names, protected, table=table, hierarchies=hierarchies)
    if not isinstance(counted, CountedClasses):
        raise InternalError("Earlier releases are combined by rows, but the classes count persons.")
    last = counted.after(rule, releases)
    left_out = last.left_out if last.left_out.num_rows and names else None
    return CheckedClasses(source, table, last.verdict, names, left_out, last.table.rows)


def masked_population(
    policy: Policy, source: Source | None, masks: Mapping[str, Mask | None]
) -> Source | None:
    """Return the population from which the table's rows come, with the masks applied to its
    quasi-identifiers.

    Return None if there is no population, or if the rule does not depend on one.
    """
    people = people_of(policy, source)
    if people is None:
        return None
    quasi = [attribute.name for attribute in policy.quasi_identifiers]
    people_masks: dict[str, Mask | None] = {name: masks.get(name) for name in quasi}
    for name in people_masks:
        people.require(name, where="in the population")
    for counts in (ROWS, WEIGHT):  # say how many persons a row represents, where they are there
        people_masks.setdefault(counts, None)
    return Source(masked_table(people, people_masks), people.origin)


_PREFIX = "aegis original"


@dataclass(frozen=True)
class WithOriginals:
    """A table with an extra unmasked copy of each column that a mask hides.

    Attributes
    ----------
    source
        The table.
    columns
        For each column that is hidden by a mask, the name of its copy; the copies are not released.
    copied
        Whether Aegis could add the copies. It can if the rows are in this process, are few enough,
        and have no noise.
    """

    source: Source
    columns: Mapping[str, str] = field(default_factory=dict)
    copied: bool = False

    @classmethod
    def of(cls, source: Source, masks: Mapping[str, Mask | None]) -> WithOriginals:
        """Add an unmasked copy of each column that `masks` hide. If this is not possible, return
        the table unchanged.
        """
        schema = source.table.schema()
        hidden = {
            name: f"{_PREFIX} {position} {name}"
            for position, (name, mask) in enumerate(masks.items())
            if mask is not None and str(mask) != "identity" and Kind.of(schema[name]) is not None
        }
        noisy = any(isinstance(mask, NoiseMask) for mask in masks.values())
        if noisy or not fits(source, source.rows, len(masks) + len(hidden)):
            return cls(source)
        wide = source.with_copies({new: old for old, new in hidden.items()})
        return cls(wide, hidden, copied=True)

    @property
    def masks(self) -> dict[str, Mask | None]:
        """The masks of the added columns: None for each, because these columns stay unmasked."""
        return dict.fromkeys(self.columns.values())

    def implied(self, released: ir.Table) -> tuple[Implication, ...] | None:
        """Return which released columns predict the true values of hidden columns; None if this
        cannot be measured.

        `released` has the masked rows of the release, with the copies of hidden columns.
        """
        if not self.copied:
            return None
        copies = set(self.columns.values())
        released_columns = [name for name in comparable(released) if name not in copies]
        codes = fetch_codes(self.source, released.select(*released_columns, *copies))
        hidden = {
            name: (codes[original], codes[name])
            for name, original in self.columns.items()
            if name in released_columns
        }
        return find_implications(hidden, {name: codes[name] for name in released_columns})


def fit_masks(
    source: Source, masks: Mapping[str, Mask | None], shared_rows: int
) -> dict[str, Mask | None]:
    """Fit all masks that are not fitted yet to this table, and check that every mask fits its column.

    Parameters
    ----------
    source
        The table.
    masks
        The mask of each column; None shows the column as it is.
    shared_rows
        Smallest number of rows that must share each bound that a mask learns from the table, such
        as the end of a range.
    """
    source.refuse_other_table(masks)
    fitted: dict[str, Mask | None] = {}
    for name, mask in masks.items():
        column = source.require(name, where="named in the policy")
        kind = Kind.of(column.type())
        if mask is None:
            fitted[name] = None
            continue
        if kind is None:
            raise DataError(
                f"Attribute {name!r} has type {column.type()}, and no mask supports this type.",
                hint=f"{usable(column.type())}.",
            )
        check_masks([mask], kind, name, source)
        if not mask.fitted:
            table = source.table
            counted = source.collect(table.group_by(v=column).aggregate(n=table.count()))
            values, order = sorted_values(counted["v"].combine_chunks())
            counts = counted["n"].to_numpy().astype(np.int64)[order]
            mask = mask.fit(ValueCounts(kind, values, counts, shared_rows))
        fitted[name] = mask
    return fitted


def count_unseen(source: Source, masks: Mapping[str, Mask | None]) -> dict[str, int]:
    """Return, for each attribute, how many rows have a value that the attribute's mask does not
    cover.
    """
    table = source.table
    unseen = {}
    for name, mask in masks.items():
        if lookup_of(mask, table[name].type()) is not None:
            joined = join_lookups(source, source.table, {name: mask})
            absent = joined.table[name].notnull() & joined.looked_up[name].isnull()
            counted = source.collect(joined.table.aggregate(n=absent.sum().cast("int64")))
            rows = int(counted["n"][0].as_py() or 0)
            if rows:
                unseen[name] = rows
            continue
        covered = mask.known(table[name]) if mask is not None else None
        if covered is None:
            continue
        unknown = (~covered).fill_null(False)
        unknown_rows = source.collect(count_by(source, table, {"unknown": unknown})).to_pylist()
        rows = sum(row["n"] for row in unknown_rows if row["unknown"])
        if rows:
            unseen[name] = int(rows)
    return unseen


def refuse_unseen(unseen: Mapping[str, int]) -> None:
    """Raise `DataError` if masks do not cover all values. `unseen` has the number of rows with such
    values by column, as `count_unseen` returns it.
    """
    if unseen:
        listed = ", ".join(f"{name} ({counted(count, 'row')})" for name, count in unseen.items())
        raise DataError(
            f"The table has values that its masks do not cover: {listed}.",
            hint="Add them to the hierarchy or groups, or write `unseen: suppress` in the policy to release them as '*'.",
        )
