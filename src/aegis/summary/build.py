"""Aggregate a table near the data into a `Summary`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from aegis.errors import DataError, PolicyError
from aegis.masks import Kind, Mask, Quantiles, ValueCounts
from aegis.policy import Attribute, Policy, Role, Terms, as_policy, policy_digest
from aegis.progress import SILENT, Progress
from aegis.sources import Source, open_table
from aegis.summary.attributes import describe
from aegis.summary.codes import code_values, encode, settle, show, sorted_values
from aegis.summary.cooccurrence import Chunk, PairCounts, count_pairs
from aegis.summary.count_cells import count_cells
from aegis.summary.frequency import FrequencyTable
from aegis.summary.labels import add_classes
from aegis.summary.model import AttributeSummary, Information, LabelSummary, Summary
from aegis.summary.noise import check_noise
from aegis.summary.pairs_in_engine import count_pairs_in_engine

MAX_LEVELS = 128
"""Most levels of one attribute in multi-attribute measures."""
SAMPLE_ROWS = 1_000_000
"""Rows of the sample behind co-occurrence counts of larger tables."""
FOLDS = 10
"""Folds of the rows behind standard errors."""
MAX_CLASSES = 1_024
"""Most classes of a label."""
ALL_ROWS = "all rows"
"""The one class of a table without a label."""
MAX_VALUES = 5_000_000
"""Most distinct values of one attribute that are counted one by one."""


def summarize(
    table: Any,
    policy: Policy | str | Path,
    *,
    exact: bool = False,
    sample_rows: int = SAMPLE_ROWS,
    max_levels: int = MAX_LEVELS,
    seed: int = 0,
    like: Summary | None = None,
    progress: Progress = SILENT,
) -> Summary:
    """Reduce a table to the aggregates that advice needs.

    Label joints and the frequency table come from a full scan. Co-occurrence counts come from a
    seeded uniform sample when the table has more than `sample_rows` rows, unless `exact`.

    Parameters
    ----------
    table
        Anything that `aegis.sources.open_table` opens.
    policy
        Roles, candidate masks and the label.
    exact
        Count co-occurrences on all rows, whatever their number.
    sample_rows
        Rows of the co-occurrence sample.
    max_levels
        Most levels of one attribute in multi-attribute measures; at least 2.
    seed
        Seed of the sample.
    like
        The summary of another part of the same data under the same policy. Masks that it has
        fitted, the bins of the label, its classes and the groups that it pools are taken from it,
        so that the two can be merged.
    progress
        Receives one step per stage.

    Raises
    ------
    DataError
        A column is missing or has no usable type, the table is empty, or the label has no value,
        one class only or too many classes.
    PolicyError
        A mask does not fit its column, or `like` was made under another policy.

    Examples
    --------
    >>> import aegis
    >>> summary = aegis.summarize("data/adult.parquet", "examples/adult/policy.yaml")
    >>> summary.rows, len(summary.attributes)
    (32561, 11)
    """
    policy = as_policy(policy)
    if like is not None:
        _check_model(like, policy)
        max_levels = like.max_levels
    return _Builder(
        open_table(table, reading=policy.reading), policy, max_levels, seed, like, progress
    ).build(None if exact else sample_rows)


class _Builder:
    """The steps of `summarize`, sharing what they found."""

    def __init__(
        self,
        source: Source,
        policy: Policy,
        max_levels: int,
        seed: int,
        like: Summary | None,
        progress: Progress,
    ) -> None:
        self.source = source
        self.policy = policy
        self.max_levels = max(2, max_levels)
        self.seed = seed
        self.like = like
        self.progress = progress
        self.timings: dict[str, float] = {}
        self.rows = 0
        self.label_mask: Mask | None = None

    def build(self, sample_rows: int | None) -> Summary:
        check_columns(self.source, self.policy)
        check_noise(self.policy)
        started = time.perf_counter()
        label, classes = self._label()
        attributes = {}
        with self.progress.step("Counting values by class", len(self.policy.features)) as step:
            for attribute in self.policy.features:
                step.note(attribute.name)
                attributes[attribute.name] = self._attribute(attribute, classes)
                step.advance()
        own = self.policy.label_attribute
        label_attribute = None
        if own is not None and own.scored:
            label_attribute = self._label_attribute(own, label, classes)
        started = self._clock("joints", started)
        pairs = self._pairs(attributes, classes, sample_rows)
        started = self._clock("cooccurrence", started)
        frequency = self._frequency(attributes, label_attribute, classes)
        self._clock("frequency_table", started)
        named = {*self.policy.attributes, self.policy.label.column}
        return Summary(
            rows=self.rows,
            label=label,
            attributes=attributes,
            label_attribute=label_attribute,
            pairs=pairs,
            frequency=frequency,
            max_levels=self.max_levels,
            seed=self.seed,
            shared_rows=self.policy.shared_rows,
            unnamed=tuple(c for c in self.source.columns if c not in named),
            digests={"policy": policy_digest(self.policy)},
            dialects=() if self.source.dialect is None else (self.source.dialect,),
            timings=self.timings,
            terms=Terms.of(self.policy),
        )

    def _clock(self, step: str, started: float) -> float:
        now = time.perf_counter()
        self.timings[step] = now - started
        return now

    def _label(self) -> tuple[LabelSummary, pa.Array]:
        """Count the classes; return the label's summary and the classes as the engine has them."""
        declared = self.policy.label
        if not declared:
            return self._no_label()
        column = self.source.table[declared.column]
        _check_label(column)
        values, counts = self._distinct(column)
        self.rows = int(counts.sum())
        if self.rows == 0:
            raise DataError(f"{self.source.origin} has no rows.", hint="Give a table with rows.")
        if declared.bins is not None:
            if self.like is None:
                self.label_mask = _label_bins(column, values, counts, declared.bins)
            else:
                self.label_mask = self.like.label.mask
            values, counts = self._distinct(self._class(self.source.table))
        valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
        classes, class_counts = values.drop_null(), counts[valid]
        if self.like is not None:
            classes, class_counts = add_classes(classes, class_counts, self.like.label)
        _check_classes(declared.column, classes)
        texts = tuple(show(v) for v in classes.to_pylist())
        missing = self.rows - int(class_counts.sum())
        return LabelSummary(declared.column, texts, class_counts, missing, self.label_mask), classes

    def _no_label(self) -> tuple[LabelSummary, pa.Array]:
        """Count the rows, which are of one class."""
        self.rows = self.source.rows
        if self.rows == 0:
            raise DataError(f"{self.source.origin} has no rows.", hint="Give a table with rows.")
        counts = np.array([self.rows], dtype=np.int64)
        return LabelSummary("", (ALL_ROWS,), counts, 0), pa.array([ALL_ROWS])

    def _class(self, table: ir.Table) -> ir.Value:
        """Return the class of each row of `table`: the label, cut into bins where declared."""
        if not self.policy.label:
            return ibis.literal(ALL_ROWS)
        column = table[self.policy.label.column]
        return column if self.label_mask is None else self.label_mask.expression(column)

    def _distinct(self, column: ir.Value) -> tuple[pa.Array, npt.NDArray[np.int64]]:
        """Return the distinct values of an expression, ascending, null last, and their counts."""
        table = self.source.table
        counted = self.source.collect(table.group_by(v=column).aggregate(n=table.count()))
        values, order = sorted_values(counted["v"].combine_chunks())
        return values, counted["n"].to_numpy().astype(np.int64)[order]

    def _attribute(self, attribute: Attribute, classes: pa.Array) -> AttributeSummary:
        table = self.source.table
        column = table[attribute.name]
        kind = _kind(column, attribute)
        counted = self.source.collect(
            table.group_by(v=column, y=self._class(table)).aggregate(n=table.count())
        )
        if counted.num_rows > MAX_VALUES * (len(classes) + 1):
            raise DataError(
                f"Attribute {attribute.name!r} has more than {MAX_VALUES:,} distinct values.",
                hint="Give it the role identifier or ignore, or round it before.",
            )
        codes, values = encode(counted["v"].combine_chunks())
        label = pc.index_in(settle(counted["y"].combine_chunks()), value_set=classes)
        counts = counted["n"].to_numpy().astype(np.int64)
        labelled = pc.is_valid(label).to_numpy(zero_copy_only=False)
        own = codes[labelled] * len(classes) + label.drop_null().to_numpy()
        size = len(values)
        joint = np.bincount(own, weights=counts[labelled], minlength=size * len(classes))
        rows = np.bincount(codes, weights=counts, minlength=size).astype(np.int64)
        return self._summarised(
            attribute,
            ValueCounts(kind, values, rows, self.policy.shared_rows),
            joint.astype(np.int64).reshape(size, len(classes)),
        )

    def _label_attribute(
        self, attribute: Attribute, label: LabelSummary, classes: pa.Array
    ) -> AttributeSummary:
        """Return the label as an attribute: its values are the classes, and null where it occurs."""
        kind = Kind.of(self._class(self.source.table).type()) or Kind.TEXT
        values, counts = classes, label.counts
        joint = np.diag(label.counts)
        if label.unlabelled:
            values = pa.concat_arrays([classes, pa.nulls(1, classes.type)])
            counts = np.append(counts, label.unlabelled)
            joint = np.vstack([joint, np.zeros(len(classes), dtype=np.int64)])
        data = ValueCounts(kind, values, counts, self.policy.shared_rows)
        return self._summarised(attribute, data, joint)

    def _summarised(
        self, attribute: Attribute, data: ValueCounts, joint: npt.NDArray[np.int64]
    ) -> AttributeSummary:
        for mask in attribute.masks:
            mask.check(data.kind, attribute.name)
        _check_hierarchy(attribute, data)
        model = None if self.like is None else self.like.attribute(attribute.name)
        if model is None:
            masks = [(mask.fit(data), mask) for mask in attribute.masks]
        else:
            masks = [(candidate.mask, candidate.declared) for candidate in model.candidates]
        return describe(
            *(attribute.name, attribute.role, attribute.weight, data, joint, masks),
            self.max_levels,
            like=model,
        )

    def _pairs(
        self,
        attributes: Mapping[str, AttributeSummary],
        classes: pa.Array,
        sample_rows: int | None,
    ) -> PairCounts:
        with self.progress.step("Counting co-occurrences", self.rows) as step:
            if not self.source.engine.in_process:
                rows = self._sample(sample_rows)
                return count_pairs_in_engine(
                    *(self.source, rows.table, attributes, self._class, classes, step),
                    folds=FOLDS,
                    seed=self.seed,
                    person=self.policy.person,
                )
            chunks = self._coded(attributes, classes, sample_rows, step)
            return count_pairs(
                tuple(attributes),
                tuple(a.n_atoms for a in attributes.values()),
                len(classes),
                chunks,
                folds=FOLDS,
                seed=self.seed,
            )

    def _coded(
        self,
        attributes: Mapping[str, AttributeSummary],
        classes: pa.Array,
        sample_rows: int | None,
        step: Any,
    ) -> Iterator[Chunk]:
        """Stream the atoms and the class of each labelled row, of a sample where asked for.

        Rows of one person fall into one fold: else what is held out would be known in part.
        """
        rows = self._sample(sample_rows)
        columns = [rows.table[name].name(f"a{i}") for i, name in enumerate(attributes)]
        own = {} if self.policy.person is None else {"p": rows.table[self.policy.person]}
        persons = self._distinct(self.source.table[self.policy.person])[0] if own else None
        selected = rows.table.select(*columns, y=self._class(rows.table), **own)
        for batch in rows.batches(selected, rows=SAMPLE_ROWS):
            place = pc.index_in(settle(batch.column("y")), value_set=classes)
            labelled = pc.is_valid(place).to_numpy(zero_copy_only=False)
            y = place.drop_null().to_numpy().astype(np.int64)
            yield Chunk(
                [
                    a.atoms[code_values(batch.column(f"a{i}"), a.values)][labelled].astype(np.int64)
                    for i, a in enumerate(attributes.values())
                ],
                y,
                units=None
                if persons is None
                else code_values(batch.column("p"), persons)[labelled].astype(np.int64),
            )
            step.advance(len(batch))

    def _sample(self, rows: int | None) -> Source:
        """Return a sample of that many rows, or the table itself where it has no more."""
        if rows is None or self.rows <= rows:
            return self.source
        return Source(self.source.sample(rows, seed=self.seed), self.source.origin)

    def _frequency(
        self,
        attributes: Mapping[str, AttributeSummary],
        label_attribute: AttributeSummary | None,
        classes: pa.Array,
    ) -> FrequencyTable | None:
        known = dict(attributes)
        label = self.policy.label.column
        if label_attribute is not None:
            known[label] = label_attribute
        with self.progress.step("Counting equivalence classes", self.rows):
            return count_cells(
                self.source,
                tuple(a.name for a in self.policy.quasi_identifiers),
                self.policy.sensitive,
                known,
                label,
                self._class,
                classes,
                person=self.policy.person,
            )


def _check_model(like: Summary, policy: Policy) -> None:
    if like.information is not Information.RAW:
        raise PolicyError(
            f"The summary to be like carries {like.information} of an attribute, not the raw joints.",
            hint="Give one that was made with the raw joints.",
        )
    if like.digests.get("policy") != policy_digest(policy):
        raise PolicyError(
            "The summary to be like was made under another policy.",
            hint="Parts can be merged only under one policy: give the one that it was made with.",
        )


def check_columns(source: Source, policy: Policy) -> None:
    """Raise when the table lacks a column that the policy names, or holds what no mask works on."""
    if policy.label:
        source.require(policy.label.column, where="the policy's label")
    if policy.person is not None:
        source.require(policy.person, where="the policy's person")
    for attribute in policy.attributes.values():
        if attribute.role is not Role.IGNORE:
            source.require(attribute.name, where="named in the policy")


def _kind(column: ir.Column, attribute: Attribute) -> Kind:
    kind = Kind.of(column.type())
    if kind is None:
        raise DataError(
            f"Attribute {attribute.name!r} has type {column.type()}, which no mask works on.",
            hint="Convert it to a number, text, date or boolean, or give it the role ignore.",
        )
    return kind


def _check_label(column: ir.Column) -> None:
    dtype = column.type()
    if Kind.of(dtype) is None and not dtype.is_null():
        raise DataError(
            f"The label {column.get_name()!r} has type {dtype}, which cannot be cut into classes.",
            hint="Convert it to a number, text, date or boolean.",
        )


def _label_bins(
    column: ir.Column, values: pa.Array, counts: npt.NDArray[np.int64], bins: int
) -> Mask:
    """Return the quantile mask that cuts a numeric label into classes."""
    kind = Kind.of(column.type())
    if kind is None or not kind.numeric:
        raise DataError(
            f"The label {column.get_name()!r} is cut into {bins} bins but has type {column.type()}.",
            hint="Bins are for numeric labels; leave them out.",
        )
    return Quantiles(count=bins).fit(ValueCounts(kind, values, counts))


def _check_classes(column: str, classes: pa.Array) -> None:
    if len(classes) == 0:
        raise DataError(
            f"The label {column!r} is null in every row.", hint="Choose a label that is known."
        )
    if len(classes) == 1:
        raise DataError(
            f"The label {column!r} has one class only: {classes[0].as_py()!r}.",
            hint="Advice needs a label with at least two classes.",
        )
    if len(classes) > MAX_CLASSES:
        raise DataError(
            f"The label {column!r} has {len(classes):,} classes; at most {MAX_CLASSES} are allowed.",
            hint="For a numeric label, write `label: {column: NAME, bins: 5}`.",
        )


def _check_hierarchy(attribute: Attribute, data: ValueCounts) -> None:
    if attribute.hierarchy is None:
        return
    missing = attribute.hierarchy.uncovered(data.values)
    if missing:
        shown = ", ".join(repr(v) for v in missing[:5])
        raise DataError(
            f"The hierarchy of {attribute.name!r} does not cover {len(missing)} of its values: {shown}"
            + (", ..." if len(missing) > 5 else "."),
            hint="Add a row for each of them to the hierarchy.",
        )
