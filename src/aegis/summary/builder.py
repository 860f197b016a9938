"""Count a table step by step, and combine the counts into a `Summary`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Array, Floats, Integers, Ints
from aegis.errors import DataError
from aegis.files import Progress, Step
from aegis.masks import Grouping, Kind, Mask, ValueCounts, evaluate_columns
from aegis.measures import LabelSpread, chance_of_share
from aegis.policy import Attribute, Policy, Terms, policy_digest
from aegis.sources import Source
from aegis.summary.attributes import (
    Masks,
    check_noise,
    describe,
    exclude_attributes,
    judged_levels,
    with_identity,
)
from aegis.summary.coded_rows import (
    MOST_CELLS,
    MOST_ROWS,
    CodedRows,
    counted_by,
    read_groups,
    read_rows,
    stored_rows,
)
from aegis.summary.codes import (
    Dealer,
    check_classes,
    check_columns,
    check_hierarchy,
    check_label,
    check_masks,
    check_values,
    code_values,
    encode,
    kind_of,
    label_bins,
    narrow,
    numbers_of,
    settle,
    show,
    shown_values,
    sorted_values,
)
from aegis.summary.cooccurrence import Chunk, PairCounts, count_pairs
from aegis.summary.count_cells import count_cells
from aegis.summary.frequency import BLOCK, FrequencyTable
from aegis.summary.model import AttributeSummary, LabelSummary, Summary
from aegis.summary.pairs_in_engine import count_pairs_in_engine, read_combinations
from aegis.summary.responses import MOST_BITS, NumberUnit, check_number, rows_with_number
from aegis.summary.row_pairs import WIDE, count_row_pairs
from aegis.summary.weights import MOST_BITS as MOST_WEIGHT_BITS
from aegis.summary.weights import RowWeights, TableWeights, WeightSums, refuse_text_weights


def add_classes(classes: pa.Array, counts: Ints, model: LabelSummary) -> tuple[pa.Array, Ints]:
    """Return the classes in a part of the data and their rows, with those of `model` that do not
    occur in the part.

    Raises
    ------
    DataError
        A class of the model cannot be converted to the label's type in this part.
    """
    here = [show(value) for value in classes.to_pylist()]
    absent = [text for text in model.classes if text not in set(here)]
    if not absent:
        return classes, counts
    try:
        absent_classes = pa.array(absent, pa.string()).cast(classes.type)
    except pa.ArrowException as error:
        raise DataError(
            f"The label {model.column!r} has type {classes.type} here, which does not hold the "
            f"class {absent[0]!r} of the other summary.",
            hint="Parts must have the same types.",
        ) from error
    values, order = sorted_values(pa.concat_arrays([classes, absent_classes]))
    return values, np.append(counts, np.zeros(len(absent), dtype=np.int64))[order]


MAX_LEVELS = 128
"""Largest number of levels of an attribute in measures of several attributes."""
SAMPLE_ROWS = 1_000_000
"""Number of rows in the sample from which co-occurrences are counted, if a table has more rows."""
FOLDS = 10
"""Number of folds of the rows, from which standard errors are computed."""
ALL_ROWS = "all rows"
"""The name of the only class of a table without a label."""
MAX_VALUES = 5_000_000
"""Largest number of distinct values of an attribute."""


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A numeric label: its column, its distinct values, and the unit of which they are multiples.

    Attributes
    ----------
    name, values, unit, mask
        The column, its distinct values, their unit, and the label's mask, if it has one.
    released_values
        The number that is released for each value: its masked value, or the value itself.
    """

    name: str
    values: pa.Array
    released_values: pa.Array
    unit: NumberUnit
    mask: Mask | None

    def of(self, column: pa.Array) -> Ints:
        """Return the numeric label of each row as a whole number of units, shape (N,); 0 if
        missing.
        """
        return self.unit.of_values(self.released_values)[code_values(column, self.values)]

    def expression(self, table: ir.Table) -> ir.Value:
        """Return an expression by which the engine computes the label as a number of units."""
        column = table[self.name]
        return self.unit.expression(column if self.mask is None else self.mask.expression(column))


class Builder:
    """Makes the summary of a table in several steps, and holds the results that the steps share."""

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
        self.response: NumberColumn | None = None
        self.weights: RowWeights | None = None
        self.coded_rows: CodedRows | None = None
        self.described: dict[str, AttributeSummary] = {}
        self.several = bool(policy.tasks)  # pairs are then counted when they are asked for
        self.dealt: tuple[dict[str, tuple[Array, Integers]], tuple[Ints, Ints]] | None = None

    def build(self, sample_rows: int | None) -> Summary:
        """Return the summary. Pairs of values are counted on at most `sample_rows` rows (None:
        all).
        """
        check_columns(self.source, self.policy)
        check_noise(self.policy)
        started = time.perf_counter()
        label, classes = self.read()
        attributes = self._attributes(classes)
        weights = self._table_weights(label)
        if weights is not None:
            label = replace(label, totals=next(iter(attributes.values())).joint.sum(axis=0))
        chosen_label = self.policy.chosen_label
        label_attribute = None
        if chosen_label is not None:
            label_attribute = self._label_attribute(chosen_label, label, classes)
        started = self._clock("joints", started)
        pairs = self._pairs(attributes, classes, sample_rows)
        started = self._clock("cooccurrence", started)
        frequency = self._frequency(attributes, label_attribute, classes)
        self._clock("frequency_table", started)
        policy = self.policy
        named = {*policy.attributes, *policy.label.columns, policy.weight}
        return Summary(
            rows=self.rows,
            label=label,
            attributes=attributes,
            label_attribute=label_attribute,
            pairs=pairs,
            frequency=frequency,
            max_levels=self.max_levels,
            shared_rows=self.policy.shared_rows,
            unnamed=tuple(c for c in self.source.columns if c not in named),
            digests={"policy": policy_digest(self.policy)},
            dialects=() if self.source.dialect is None else (self.source.dialect,),
            read_by_context=self.source.by_context,
            timings=self.timings,
            terms=Terms.of(self.policy),
            weights=weights,
        )

    def read(self) -> tuple[LabelSummary, pa.Array]:
        """Read the rows as codes if they fit in memory. Return the label's summary, and its classes."""
        with self.progress.step("Reading the table"):
            self.weights = self._row_weights()
            label, classes = self._label()
            self.coded_rows = self._coded_rows(classes)
        return label, classes

    def _row_weights(self) -> RowWeights | None:
        """Return the column with the rows' weights, its values and unit; None if each row counts
        once.
        """
        name = self.policy.weight
        if name is None:
            return None
        column = self.source.table[name]
        refuse_text_weights(self.source, name)
        like = None if self.like is None or self.like.weights is None else self.like.weights.unit
        return RowWeights.read(column, *self._distinct(column), like)

    def _table_weights(self, label: LabelSummary) -> TableWeights | None:
        """Return the sums of weights over all rows and over labelled rows; None without weights."""
        weights = self.weights
        if weights is None:
            return None
        labelled = weights.sums
        if label.unlabelled and self.coded_rows is not None:
            labelled_weights = self._held_weights(self.coded_rows.labelled)
            labelled = weights.sums if labelled_weights is None else WeightSums.of(labelled_weights)
        elif label.unlabelled:
            table = self.source.table
            rows = table.filter(self._class(table).notnull())
            counted = self.source.collect(
                rows.group_by(v=rows[weights.column]).aggregate(n=rows.count())
            )
            units = weights.of(counted["v"].combine_chunks()).tolist()
            pairs = list(zip(units, counted["n"].to_pylist(), strict=True))
            labelled = WeightSums(sum(w * n for w, n in pairs), sum(w * w * n for w, n in pairs))
        labelled = replace(labelled, divisor=weights.sums.divisor)
        if not labelled.total:
            raise DataError(
                f"All rows with a label have a weight {weights.column!r} of 0.",
                hint="At least one labelled row needs a weight above 0.",
            )
        return TableWeights(weights.column, weights.unit, weights.sums, labelled, weights.zeros)

    def _clock(self, step: str, started: float) -> float:
        now = time.perf_counter()
        self.timings[step] = now - started
        return now

    def _label(self) -> tuple[LabelSummary, pa.Array]:
        """Return the label's summary, and the classes as the engine stores them."""
        declared = self.policy.label
        if not declared:
            return self._no_label()
        column = self.source.table[declared.column]
        check_label(column)
        values, counts = self._distinct(column)
        self.rows = int(counts.sum())
        if self.rows == 0:
            raise DataError(f"{self.source.origin} has no rows.", hint="Give a table with rows.")
        if declared.is_number:
            return self._number(column, values, counts)
        if declared.cut or self.policy.label_mask is not None:
            if self.like is None:
                self.label_mask = self._label_mask(column, values, counts)
            else:
                self.label_mask = self.like.label.mask
            values, counts = self._distinct(self._class(self.source.table))
        valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
        classes, class_counts = values.drop_null(), counts[valid]
        if self.like is not None:
            classes, class_counts = add_classes(classes, class_counts, self.like.label)
        check_classes(declared.column, classes)
        texts = tuple(show(v) for v in classes.to_pylist())
        missing = self.rows - int(class_counts.sum())
        return LabelSummary(declared.column, texts, class_counts, missing, self.label_mask), classes

    def _number(
        self, column: ir.Column, values: pa.Array, counts: Ints
    ) -> tuple[LabelSummary, pa.Array]:
        """Return the summary of a numeric label, for which all rows are one class, and the classes."""
        numbers, released = check_number(column, values), values
        if self.policy.label_mask is not None:
            self.label_mask = self._label_mask(column, values, counts)
            released = shown_values(self.label_mask, values)
            numbers = check_number(column, released, f" under its mask {self.label_mask}")
        has_number = ~np.isnan(numbers)
        like = None if self.like is None else self.like.label.unit
        most = MOST_BITS if self.weights is None else MOST_WEIGHT_BITS
        unit = NumberUnit.of(numbers[has_number], self.rows, most) if like is None else like
        self.response = NumberColumn(column.get_name(), values, released, unit, self.label_mask)
        rows = int(counts[has_number].sum())
        classes, class_counts = pa.array([ALL_ROWS]), np.array([rows], dtype=np.int64)
        units = unit.in_units(numbers[has_number])
        ends = int(units.min()), int(units.max())
        missing = self.rows - rows
        label = LabelSummary(
            column.get_name(),
            (ALL_ROWS,),
            class_counts,
            missing,
            self.label_mask,
            unit,
            ends=ends,
        )
        return label, classes

    def _label_mask(self, column: ir.Column, values: pa.Array, counts: Ints) -> Mask:
        """Return the mask that turns the label's values into classes: declared bins, or its only
        candidate.
        """
        declared, mask = self.policy.label, self.policy.label_mask
        if mask is None:
            return label_bins(column, values, counts, declared)
        kind = Kind.of(column.type()) or Kind.TEXT
        mask.check(kind, declared.column)
        return mask.fit(ValueCounts(kind, values, counts, self.policy.shared_rows))

    def _no_label(self) -> tuple[LabelSummary, pa.Array]:
        """Return the summary of a table without a label, whose rows are all one class."""
        self.rows = self._size()
        if self.rows == 0:
            raise DataError(f"{self.source.origin} has no rows.", hint="Give a table with rows.")
        counts = np.array([self.rows], dtype=np.int64)
        return LabelSummary("", (ALL_ROWS,), counts, 0), pa.array([ALL_ROWS])

    def _size(self) -> int:
        """Return the number of rows."""
        return self.source.rows

    def _class(self, table: ir.Table) -> ir.Value:
        """Return the class of each row as an expression; a number is cut into bins that the policy
        declares.
        """
        if not self.policy.label:
            return ibis.literal(ALL_ROWS)
        column = table[self.policy.label.column]
        if self.response is not None:
            return rows_with_number(column, ALL_ROWS)
        return column if self.label_mask is None else self.label_mask.expression(column)

    def _distinct(self, column: ir.Value) -> tuple[pa.Array, Ints]:
        """Return the distinct values of an expression, ascending, null last, and their counts."""
        table = self.source.table
        counted = counted_by(self.source, table, {"v": column})
        values, order = sorted_values(counted["v"].combine_chunks())
        return values, counted["n"].to_numpy().astype(np.int64)[order]

    def _coded_rows(self, classes: pa.Array) -> CodedRows | None:
        """Return all rows as codes, with the index of their class; None if they do not fit in
        memory.
        """
        names = [attribute.name for attribute in self.policy.features]
        names += self.policy.label.columns
        for attribute in self.policy.features:
            kind_of(self.source.table[attribute.name], attribute)
        if self.weights is not None:
            names.append(self.weights.column)
        names = list(dict.fromkeys(names))
        read = read_rows(self.source, names, self.rows) or stored_rows(self.source, names)
        return read if read is None or self.policy.tasks else self._with_classes(read, classes)

    def _with_classes(self, rows: CodedRows, classes: pa.Array) -> CodedRows:
        """Return rows with the index of their class; without a label, it is the number of classes."""
        column = self.policy.label.column
        if not column:
            return replace(rows, label=np.zeros(len(rows.label), dtype=np.uint8), classes=1)
        values = rows.values[column]
        if self.response is not None:
            of_value = np.where(np.isnan(numbers_of(values)), len(classes), 0)
        else:
            released = values if self.label_mask is None else shown_values(self.label_mask, values)
            positions = pc.index_in(settle(released), value_set=classes)
            of_value = pc.fill_null(positions, len(classes)).to_numpy(zero_copy_only=False)
        small, codes = narrow(of_value, len(classes) + 1), rows.codes[column]
        starts = range(0, len(codes), BLOCK)  # all at once would need eight bytes for each row
        blocks = [small.take(codes[start : start + BLOCK]) for start in starts]
        label = np.concatenate([small[:0], *blocks])
        return replace(rows, label=label, classes=len(classes))

    def _attributes(self, classes: pa.Array) -> dict[str, AttributeSummary]:
        """Return the summaries of the attributes; one query evaluates all masks."""
        features = self.policy.features
        counted, fitted = [], []
        with self.progress.step("Counting values by class", len(features)) as step:
            for attribute in features:
                step.note(attribute.name)
                data, joint = self._counts(attribute, classes)
                counted.append((data, joint))
                fitted.append(self._fitted(attribute, data))
                step.advance()
            columns = [
                ([mask for mask, _ in with_identity(masks)], data.values)
                for (data, _), masks in zip(counted, fitted, strict=True)
            ]
            grouped = evaluate_columns(columns)
        self.described = {
            attribute.name: self._described(attribute, *of, masks, groupings)
            for attribute, of, masks, groupings in zip(
                features, counted, fitted, grouped, strict=True
            )
        }
        return self._exclude(self.described)

    def _exclude(self, described: dict[str, AttributeSummary]) -> dict[str, AttributeSummary]:
        # A model has excluded what is excluded here.
        if self.like is not None:
            return described
        sums = None if self.weights is None else self.weights.sums
        explained = None if self._deviations is None else self._explained
        return exclude_attributes(described, self.max_levels, weights=sums, explained=explained)

    def _explained(self, attribute: AttributeSummary) -> tuple[float, float]:
        """Return the adjusted R2 of a numeric label by an attribute's unmasked values, at least 0,
        and how probable so large an R2 is by chance.
        """
        assert self.coded_rows is not None
        assert self._deviations is not None
        number, weight = self._deviations
        atom = attribute.atoms[self.coded_rows.codes[attribute.name][self.coded_rows.labelled]]
        level = attribute.unmasked.scored[atom]
        rows, sums = np.bincount(level, weight), np.bincount(level, weight * number)
        between = float((sums[rows > 0] ** 2 / rows[rows > 0]).sum())
        squares, freedom = float((weight * number**2).sum()), len(number) - np.count_nonzero(rows)
        if squares <= 0 or freedom <= 0:
            return 0.0, 1.0
        total = float(weight.sum())
        effective = total**2 / float((weight**2).sum())  # rows that count alike
        kurtosis = total * float((weight * number**4).sum()) / squares**2
        spread = LabelSpread.of_number(effective, kurtosis)
        alike: Floats = np.asarray(rows * (effective / total), dtype=np.float64)
        judged = judged_levels(alike, 1 / kurtosis)
        rows, sums = np.bincount(judged, rows), np.bincount(judged, sums)
        share = float((sums[rows > 0] ** 2 / rows[rows > 0]).sum()) / squares
        alike = np.bincount(judged, alike).astype(np.float64)
        chance = chance_of_share(share, alike, spread)
        return max(0.0, 1 - (1 - between / squares) * (len(number) - 1) / freedom), chance

    @cached_property
    def _deviations(self) -> tuple[Floats, Floats] | None:
        """For each labelled row, the deviation of the numeric label from its mean, and the weight;
        None if rows were not read, there are too many of them or the label is not a number.
        """
        if self.response is None or self.coded_rows is None or self.rows > MOST_ROWS:
            return None
        labelled = self.coded_rows.labelled
        number, weight = self._held_response(labelled), self._held_weights(labelled)
        assert number is not None
        of_row = np.ones(len(number)) if weight is None else weight.astype(np.float64)
        mean = float((of_row * number).sum()) / max(float(of_row.sum()), 1.0)
        return np.asarray(number - mean, dtype=np.float64), of_row

    def _counts(self, attribute: Attribute, classes: pa.Array) -> tuple[ValueCounts, Ints]:
        """Return the values of an attribute, the rows of each, and the rows by value and class, (V,
        C).
        """
        table = self.source.table
        column = table[attribute.name]
        kind = kind_of(column, attribute)
        if self.coded_rows is not None:
            values = self.coded_rows.values[attribute.name]
            joint = self.coded_rows.joint(attribute.name)
            check_values(attribute.name, len(values), MAX_VALUES)
            data = ValueCounts(kind, values, joint.sum(axis=1), self.policy.shared_rows)
            if self.weights is not None:
                joint = self.coded_rows.joint(attribute.name, self._held_weights())
            return data, np.ascontiguousarray(joint[:, :-1])
        keys = {"v": column, "y": self._class(table)}
        if self.weights is None:
            counted = counted_by(self.source, table, keys)
        else:
            total = self.weights.expression(table).sum().cast("int64")
            query = table.group_by(**keys).aggregate(n=table.count(), w=total)
            counted = self.source.collect(query)
        check_values(attribute.name, counted.num_rows // (len(classes) + 1), MAX_VALUES)
        codes, values = encode(counted["v"].combine_chunks())
        label = pc.index_in(settle(counted["y"].combine_chunks()), value_set=classes)
        counts = counted["n"].to_numpy().astype(np.int64)
        labelled = pc.is_valid(label).to_numpy(zero_copy_only=False)
        cell = codes[labelled] * len(classes) + label.drop_null().to_numpy()
        size = len(values)
        of_cells = counts if self.weights is None else counted["w"].to_numpy().astype(np.int64)
        joint = np.bincount(cell, weights=of_cells[labelled], minlength=size * len(classes))
        rows = np.bincount(codes, weights=counts, minlength=size).astype(np.int64)
        data = ValueCounts(kind, values, rows, self.policy.shared_rows)
        return data, joint.astype(np.int64).reshape(size, len(classes))

    def _label_attribute(
        self, attribute: Attribute, label: LabelSummary, classes: pa.Array
    ) -> AttributeSummary:
        """Return the label as an attribute; its values are the classes, and null if it occurs."""
        kind = Kind.of(self._class(self.source.table).type()) or Kind.TEXT
        values, counts = classes, label.counts
        joint = np.diag(label.weighted)
        if label.unlabelled:
            values = pa.concat_arrays([classes, pa.nulls(1, classes.type)])
            counts = np.append(counts, label.unlabelled)
            joint = np.vstack([joint, np.zeros(len(classes), dtype=np.int64)])
        data = ValueCounts(kind, values, counts, self.policy.shared_rows)
        return self._described(attribute, data, joint, self._fitted(attribute, data))

    def _fitted(self, attribute: Attribute, data: ValueCounts) -> Masks:
        """Return an attribute's masks, fitted to its values or taken from the summary `like`."""
        check_masks(attribute.masks, data.kind, attribute.name, self.source)
        check_hierarchy(attribute, data)
        model = None if self.like is None else self.like.attribute(attribute.name)
        if model is None:
            return [(mask.fit(data), mask) for mask in attribute.masks]
        return [(candidate.mask, candidate.declared) for candidate in model.candidates]

    def _described(
        self,
        attribute: Attribute,
        data: ValueCounts,
        joint: Ints,
        masks: Masks,
        groupings: Sequence[Grouping] | None = None,
    ) -> AttributeSummary:
        model = None if self.like is None else self.like.attribute(attribute.name)
        return describe(
            attribute.name,
            attribute.role,
            attribute.weight,
            data,
            joint,
            masks,
            self.max_levels,
            like=model,
            groupings=groupings,
        )

    def _pairs(
        self,
        attributes: Mapping[str, AttributeSummary],
        classes: pa.Array,
        sample_rows: int | None,
    ) -> PairCounts:
        with self.progress.step("Counting co-occurrences", self.rows) as step:
            rows_elsewhere = self.coded_rows is None and not self.source.engine.in_process
            if rows_elsewhere and not self._sends_combinations(sample_rows, len(attributes)):
                rows = self._sample(sample_rows)
                return count_pairs_in_engine(
                    self.source,
                    rows.table,
                    attributes,
                    self._class,
                    classes,
                    step,
                    Dealer(tuple(attributes), FOLDS, self.seed, self._divisor or 1),
                    person=self.policy.person,
                    response=None if self.response is None else self.response.expression,
                    weight=None if self.weights is None else self.weights.expression,
                )
            few_read = self.several or self.response is not None or len(attributes) > WIDE
            if few_read and self._counts_from_rows(sample_rows):
                return self._row_pairs(attributes, len(classes), step)
            chunks = self._chunks(attributes, classes, sample_rows, step)
            return count_pairs(
                tuple(attributes),
                tuple(a.n_atoms for a in attributes.values()),
                len(classes),
                chunks,
                folds=FOLDS,
                seed=self.seed,
                divisor=self._divisor,
            )

    def _sends_combinations(self, sample_rows: int | None, attributes: int) -> bool:
        """Return whether the engine counts the combinations of all attributes' atoms in a sample,
        and this process the pairs. It does not if there are too many rows, or if rows have weights,
        a numeric label or persons, by which many combinations would be those of a single row.
        """
        rows = self.rows if sample_rows is None else min(sample_rows, self.rows)
        few = rows <= MOST_ROWS and rows * attributes <= MOST_CELLS
        by_class = self.response is None and self.weights is None and self.policy.person is None
        return few and by_class and self.source.engine.sends_combinations

    def _counts_from_rows(self, sample_rows: int | None) -> bool:
        """Return whether pairs are counted from all rows in memory when they are used, not from a
        sample or by the engine.
        """
        by_row = self.coded_rows is not None and self.policy.person is None
        return by_row and self._all_rows(sample_rows) and self.rows <= MOST_ROWS

    def _row_pairs(
        self, attributes: Mapping[str, AttributeSummary], classes: int, step: Step
    ) -> PairCounts:
        """Return the counts of pairs from rows in memory; each is counted when it is first used."""
        assert self.coded_rows is not None
        labelled = self.coded_rows.labelled
        atoms = [self._atoms(attribute) for attribute in attributes.values()]
        step.advance(self.rows)
        dealer = Dealer(tuple(attributes), FOLDS, self.seed, self._divisor or 1)
        return count_row_pairs(
            tuple(attributes),
            tuple(a.n_atoms for a in attributes.values()),
            classes,
            atoms,
            self.coded_rows.label[labelled].astype(np.int64),
            dealer,
            response=self._held_response(labelled),
            weights=self._held_weights(labelled),
            content=self._content(dealer, attributes, atoms),
        )

    def _atoms(self, attribute: AttributeSummary) -> Integers:
        """Return the atom (set of values) of each labelled row in memory."""
        assert self.coded_rows is not None
        codes, labelled = self.coded_rows.codes[attribute.name], self.coded_rows.labelled
        labelled_codes = codes if labelled.all() else codes[labelled]
        atoms: Integers = narrow(attribute.atoms, attribute.n_atoms)[labelled_codes]
        return atoms

    def _content(
        self, dealer: Dealer, attributes: Mapping[str, AttributeSummary], atoms: Sequence[Integers]
    ) -> tuple[Ints, Ints]:
        """Return the two sums over the atoms of each labelled row from which its fold is computed.
        If the policy has several labels, atoms and sums are kept for their builders.
        """
        content = dealer.content(atoms)
        if self.policy.tasks:
            listed = zip(attributes.values(), atoms, strict=True)
            self.dealt = {a.name: (a.atoms, of_rows) for a, of_rows in listed}, content
        return content

    @property
    def _divisor(self) -> int | None:
        """The common divisor of the weights; None if each row counts once."""
        return None if self.weights is None else self.weights.sums.divisor

    def _held_weights(self, rows: Array | slice = slice(None)) -> Ints | None:
        """Return the weights of these rows in memory; None if each row counts once."""
        if self.weights is None or self.coded_rows is None:
            return None
        return self.weights.of_codes(self.coded_rows.codes[self.weights.column][rows])

    def _held_response(self, rows: Array | slice) -> Ints | None:
        """Return the numeric label of these rows in memory; None if the label has classes."""
        if self.response is None or self.coded_rows is None:
            return None
        name, coded_rows = self.response.name, self.coded_rows
        return np.take(self.response.of(coded_rows.values[name]), coded_rows.codes[name][rows])

    def _chunks(
        self,
        attributes: Mapping[str, AttributeSummary],
        classes: pa.Array,
        sample_rows: int | None,
        step: Step,
    ) -> Iterator[Chunk]:
        """Yield chunks with the atoms and the class of each labelled row, of all rows or of a
        sample.

        All rows of one person are in one fold, so that no person is both held out and trained on.
        """
        blocks = self._held_blocks(sample_rows)
        if self.coded_rows is not None and blocks is not None:
            of_values = {n: narrow(a.atoms, a.n_atoms) for n, a in attributes.items()}
            for block in blocks:
                yield Chunk(
                    [atoms.take(self.coded_rows.codes[n][block]) for n, atoms in of_values.items()],
                    self.coded_rows.label[block].astype(np.int32),
                    self._held_weights(block),
                    response=self._held_response(block),
                )
            step.advance(self.rows)
            return
        rows = self._sample(sample_rows)
        if self.source.engine.in_process:
            yield from self._chunks_of_batches(rows, attributes, classes, step)
            return
        yield read_combinations(self.source, rows.table, attributes, self._class, classes)
        step.advance(self.rows)

    def _chunks_of_batches(
        self,
        rows: Source,
        attributes: Mapping[str, AttributeSummary],
        classes: pa.Array,
        step: Step,
    ) -> Iterator[Chunk]:
        """Yield a chunk for each batch of `rows` that the engine returns."""
        extra: dict[str, tuple[str, Callable[[pa.Array], Array]]] = {}
        if (person := self.policy.person) is not None:
            persons, _ = self._distinct(self.source.table[person])
            extra["p"] = person, lambda column: code_values(column, persons).astype(np.int64)
        if self.response is not None:
            extra["r"] = self.response.name, self.response.of
        if self.weights is not None:
            extra["w"] = self.weights.column, self.weights.of
        columns = {f"a{i}": rows.table[name] for i, name in enumerate(attributes)}
        columns |= {"y": self._class(rows.table)}
        columns |= {key: rows.table[name] for key, (name, _) in extra.items()}
        for batch in rows.batches(rows.table.select(**columns), rows=SAMPLE_ROWS):
            label = pc.index_in(settle(batch.column("y")), value_set=classes)
            labelled = pc.is_valid(label).to_numpy(zero_copy_only=False)
            atoms = [
                a.atoms[code_values(batch.column(f"a{i}"), a.values)][labelled].astype(np.int64)
                for i, a in enumerate(attributes.values())
            ]
            arrays = {key: of(batch.column(key))[labelled] for key, (_, of) in extra.items()}
            yield Chunk(
                atoms,
                label.drop_null().to_numpy().astype(np.int64),
                arrays.get("w"),
                units=arrays.get("p"),
                response=arrays.get("r"),
            )
            step.advance(len(batch))

    def _held_blocks(self, sample_rows: int | None) -> Sequence[Array | slice] | None:
        """Return which rows in memory have a label and are in the sample, in blocks; None if the
        engine must return the rows.
        """
        if self.coded_rows is None or self.policy.person is not None:
            return None
        labelled = self.coded_rows.labelled
        if sample_rows is not None and not self._all_rows(sample_rows):
            positions = self._sampled_positions(sample_rows)
            return None if positions is None else [positions[labelled[positions]]]
        starts = range(0, len(labelled), SAMPLE_ROWS)
        blocks = [slice(start, start + SAMPLE_ROWS) for start in starts]
        return blocks if labelled.all() else [np.flatnonzero(labelled[b]) + b.start for b in blocks]

    def _sampled_positions(self, sample_rows: int) -> Ints | None:
        """Return the positions of the sampled rows; None if only the engine knows them."""
        return self.source.sample_positions(sample_rows, seed=self.seed)

    def _all_rows(self, sample_rows: int | None) -> bool:
        return sample_rows is None or self.rows <= sample_rows

    def _sample(self, rows: int | None) -> Source:
        """Return a sample of at most this many rows of the table."""
        if rows is None or self._all_rows(rows):
            return self.source
        return Source(self.source.sample(rows, seed=self.seed), self.source.origin)

    def _frequency(
        self,
        attributes: Mapping[str, AttributeSummary],
        label_attribute: AttributeSummary | None,
        classes: pa.Array,
    ) -> FrequencyTable | None:
        all_attributes = dict(attributes)
        label = self.policy.label.column
        if label_attribute is not None:
            all_attributes[label] = label_attribute
        quasi = tuple(a.name for a in self.policy.quasi_identifiers)
        sensitive = self.policy.sensitive
        with self.progress.step("Counting equivalence classes", self.rows):
            named = (*quasi, *sensitive, *self.policy.label.columns)
            read = read_groups(self.source, named) if self.policy.person is None else None
            if read is not None:
                groups = self._with_classes(read[0], classes)
                return groups.frequency(quasi, sensitive, all_attributes, label, read[1])[0]
            return count_cells(
                self.source,
                quasi,
                sensitive,
                all_attributes,
                label,
                self._class,
                classes,
                person=self.policy.person,
                coded_rows=self.coded_rows,
            )
