"""Summarise rows that are already in memory as codes, without a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from aegis.arrays import Array, Integers, Ints
from aegis.masks import Mask
from aegis.policy import Attribute, LabelTask, Policy
from aegis.progress import SILENT, Progress
from aegis.sources import Source
from aegis.summary.builder import MAX_LEVELS, SAMPLE_ROWS, Builder
from aegis.summary.coded_rows import CodedRows
from aegis.summary.deal import PRIME, Dealer
from aegis.summary.frequency import FrequencyTable
from aegis.summary.model import AttributeSummary, LabelSummary, Summary


class HeldBuilder(Builder):
    """Carries out the steps of `summarize` on rows that have already been read into memory.

    Parameters
    ----------
    source
        A table with the columns and types of the rows. It is read only if `held` is None.
    policy, max_levels, seed, like, progress
        The policy, the largest number of levels of an attribute, the seed of samples and folds, the
        summary of another part of the data (None: there is none), and the receiver of progress.
    held
        The rows, with the label's column; None if there are too many to keep in memory.
    """

    def __init__(
        self,
        source: Source,
        policy: Policy,
        held: CodedRows | None,
        *,
        max_levels: int = MAX_LEVELS,
        seed: int = 0,
        like: Summary | None = None,
        progress: Progress = SILENT,
    ) -> None:
        super().__init__(source, policy, max_levels, seed, like, progress)
        self.held = held

    def _coded_rows(self, classes: pa.Array) -> CodedRows | None:
        return None if self.held is None else self._with_classes(self.held, classes)

    def _size(self) -> int:
        return super()._size() if self.held is None else len(self.held.label)

    def _distinct(self, column: ir.Value) -> tuple[pa.Array, Ints]:
        """Return a column's distinct values and counts, from rows in memory or else from the engine."""
        rows, name = self.held, column.get_name()
        if rows is None or name not in rows.values or not column.equals(self.source.table[name]):
            return super()._distinct(column)
        return rows.values[name], rows.rows(name)

    def _frequency(self, *_: Any) -> FrequencyTable | None:
        """Return None: rules are checked on the frequency table of the whole summary."""
        return None


def summarize_held(held: CodedRows, policy: Policy, *, origin: str, seed: int) -> Summary:
    """Summarise rows that are in memory. The summary is that of `summarize`, but without the
    frequency table.

    Parameters
    ----------
    held
        The rows, with the columns that the policy names.
    policy, seed
        Roles, candidate masks and label; and the seed of the folds.
    origin
        Name of the rows in messages.
    """
    types = {name: values.type for name, values in held.values.items()}
    table = ibis.table(ibis.Schema.from_pyarrow(pa.schema(types)), name="held")
    return HeldBuilder(Source(table, origin), policy, held, seed=seed).build(None)


def summarize_stored(source: Source, policy: Policy, held: CodedRows) -> Summary:
    """Summarise a large table whose columns are in memory, as `summarize` does, but without the
    frequency table.

    `source` is the table, and `held` has its rows as codes.
    """
    return _StoredBuilder(source, policy, held).build(SAMPLE_ROWS)


class _StoredBuilder(HeldBuilder):
    """Carries out the steps of `summarize` on a large table whose rows are in memory. To save
    memory, classes are stored as 32-bit integers, and the deviations of a numeric label from its
    mean are not stored.
    """

    label_type = np.int32
    _deviations = None


class TaskBuilder(HeldBuilder):
    """Carries out the steps of `summarize` for one of several labels. The rows were read once for
    all labels.

    Parameters
    ----------
    whole
        The builder that has summarised the table without a label.
    task
        The label.
    like
        The summary for the same label in another part of the data.
    """

    def __init__(self, whole: Builder, task: LabelTask, like: Summary | None) -> None:
        super().__init__(
            whole.source,
            whole.policy.of_task(task),
            whole.coded,
            max_levels=whole.max_levels,
            seed=whole.seed,
            like=like,
            progress=whole.progress,
        )
        self.whole = whole
        self.several = True

    def _known(self, attribute: AttributeSummary) -> bool:
        """Return whether the builder of the whole table has found the atoms of an attribute's rows."""
        dealt = self.whole.dealt
        return dealt is not None and dealt[0].get(attribute.name, (None,))[0] is attribute.atoms

    def _labelled(self, of_rows: Array) -> Array:
        """Return those entries of an array with one entry per row whose rows have the label."""
        assert self.coded is not None
        labelled = self.coded.labelled
        return of_rows if labelled.all() else of_rows[labelled]

    def _atoms(self, attribute: AttributeSummary) -> Integers:
        if self.whole.dealt is None or not self._known(attribute):
            return super()._atoms(attribute)
        return self._labelled(self.whole.dealt[0][attribute.name][1])

    def _content(
        self, dealer: Dealer, attributes: Mapping[str, AttributeSummary], atoms: Sequence[Integers]
    ) -> tuple[Ints, Ints]:
        """Return the sums of the labelled rows' atoms: those of the whole table, less the terms of
        attributes from which this label is not predicted.
        """
        if self.whole.dealt is None or not all(map(self._known, attributes.values())):
            return super()._content(dealer, attributes, atoms)
        known, sums = self.whole.dealt
        others = [name for name in known if name not in attributes]
        terms = [self._labelled(known[name][1]) for name in others]
        less = Dealer(others, dealer.folds, self.seed).content(terms)
        first, second = (
            (self._labelled(whole) - own) % PRIME for whole, own in zip(sums, less, strict=True)
        )
        return first, second

    def _label_mask(self, column: ir.Column, values: pa.Array, counts: Ints) -> Mask:
        if self.policy.label_mask is None:
            return super()._label_mask(column, values, counts)
        return self.whole.described[self.policy.label.column].candidates[0].mask

    def _attributes(self, classes: pa.Array) -> dict[str, AttributeSummary]:
        """Return the attributes with their counts by class; their masks are fitted already."""
        described = {
            a.name: replace(self.whole.described[a.name], joint=self._counts(a, classes)[1])
            for a in self.policy.features
        }
        return self._set_aside(described)

    def _label_attribute(
        self, attribute: Attribute, label: LabelSummary, classes: pa.Array
    ) -> AttributeSummary:
        """Return the label as an attribute, with the number of all rows by value and class."""
        own = self.whole.described[attribute.name]
        joint = np.zeros((len(own.values), len(classes)), dtype=np.int64)
        np.fill_diagonal(joint, label.weighted)
        return replace(own, joint=joint)
