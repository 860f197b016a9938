"""Aggregate a table, or rows that are in memory as codes, into a `Summary`; return the policy that
a summary contains; and subtract a fold from its counts, for the delete-a-group jackknife.

A seeded hash of the content of each labelled row assigns it to one of a few folds
(`aegis.summary.codes`). The counts by fold are stored with the counts of all rows, cell by cell.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from aegis.arrays import Array, Integers, Ints, OnDemand
from aegis.errors import PolicyError
from aegis.files import SILENT, Progress
from aegis.masks import Level, Mask
from aegis.options import checks_types
from aegis.policy import (
    NO_LABEL,
    Attribute,
    Label,
    LabelTask,
    Policy,
    as_policy,
    policy_digest,
    several_labels,
)
from aegis.privacy import PrivacyRule
from aegis.sources import Source, open_table
from aegis.sources.source import sampled_positions
from aegis.summary.builder import MAX_LEVELS, SAMPLE_ROWS, Builder
from aegis.summary.coded_rows import MOST_ROWS, CodedRows, grouping, holding, is_held
from aegis.summary.codes import PRIME, Dealer
from aegis.summary.cooccurrence import Matrix, PairCounts
from aegis.summary.frequency import FrequencyTable
from aegis.summary.model import (
    AttributeSummary,
    Information,
    LabelSummary,
    SeveralSummaries,
    Summary,
    TaskSummary,
)
from aegis.summary.row_pairs import RowPairCounts


class HeldBuilder(Builder):
    """Makes the summary of a table from `rows_in_memory`, with the label's column; None if there
    are too many. `source` has the columns and types of the rows, and is read only if they are None.
    """

    def __init__(
        self,
        source: Source,
        policy: Policy,
        rows_in_memory: CodedRows | None,
        *,
        max_levels: int = MAX_LEVELS,
        seed: int = 0,
        like: Summary | None = None,
        progress: Progress = SILENT,
    ) -> None:
        super().__init__(source, policy, max_levels, seed, like, progress)
        self.rows_in_memory = rows_in_memory

    def _coded_rows(self, classes: pa.Array) -> CodedRows | None:
        rows = self.rows_in_memory
        return None if rows is None else self._with_classes(rows, classes)

    def _size(self) -> int:
        return super()._size() if self.rows_in_memory is None else len(self.rows_in_memory.label)

    def _distinct(self, column: ir.Value) -> tuple[pa.Array, Ints]:
        """Return a column's distinct values and counts, from rows in memory or else from the engine."""
        rows, name = self.rows_in_memory, column.get_name()
        if rows is None or name not in rows.values or not column.equals(self.source.table[name]):
            return super()._distinct(column)
        return rows.values[name], rows.rows(name)

    def _frequency(self, *_: Any) -> FrequencyTable | None:
        """Return None: rules are checked on the frequency table of the whole summary."""
        return None


def summarize_held(
    rows: CodedRows, policy: Policy, table: Source | str, *, seed: int = 0
) -> Summary:
    """Return the summary of rows in memory that `summarize` makes of a table with these rows,
    without the frequency table. `table` is that table or, if the rows are not stored anywhere,
    their name in messages.
    """
    if isinstance(table, str):
        types = {name: values.type for name, values in rows.values.items()}
        schema = ibis.Schema.from_pyarrow(pa.schema(types))
        table = Source(ibis.table(schema, name="held"), table)
    return _RowsBuilder(table, policy, rows, seed=seed).build(SAMPLE_ROWS)


class _RowsBuilder(HeldBuilder):
    """Makes the summary of rows in memory, of which many may not be stored anywhere."""

    def _sampled_positions(self, sample_rows: int) -> Ints:
        positions = super()._sampled_positions(sample_rows)
        if positions is None:
            positions = sampled_positions([self.rows], sample_rows, self.seed)
        return positions


class TaskBuilder(HeldBuilder):
    """Makes the summary of a table for one of several labels, from the rows that `table_builder`
    read once for all labels. `like` is the summary for the same label in another part of the data.
    """

    def __init__(self, table_builder: Builder, task: LabelTask, like: Summary | None) -> None:
        super().__init__(
            table_builder.source,
            table_builder.policy.of_task(task),
            table_builder.coded_rows,
            max_levels=table_builder.max_levels,
            seed=table_builder.seed,
            like=like,
            progress=table_builder.progress,
        )
        self.table_builder = table_builder
        self.several = True

    def _has_atoms(self, attribute: AttributeSummary) -> bool:
        """Return whether the builder of the whole table already has the atom of each row."""
        dealt = self.table_builder.dealt
        return dealt is not None and dealt[0].get(attribute.name, (None,))[0] is attribute.atoms

    def _labelled(self, of_rows: Array) -> Array:
        """Return the entries of `of_rows` (one per row) for those rows that have the label."""
        assert self.coded_rows is not None
        labelled = self.coded_rows.labelled
        return of_rows if labelled.all() else of_rows[labelled]

    def _atoms(self, attribute: AttributeSummary) -> Integers:
        if self.table_builder.dealt is None or not self._has_atoms(attribute):
            return super()._atoms(attribute)
        return self._labelled(self.table_builder.dealt[0][attribute.name][1])

    def _content(
        self, dealer: Dealer, attributes: Mapping[str, AttributeSummary], atoms: Sequence[Integers]
    ) -> tuple[Ints, Ints]:
        """Return the two sums from which the folds are computed: those of the whole table, without
        the attributes that do not predict this label.
        """
        if self.table_builder.dealt is None or not all(map(self._has_atoms, attributes.values())):
            return super()._content(dealer, attributes, atoms)
        dealt_atoms, sums = self.table_builder.dealt
        others = [name for name in dealt_atoms if name not in attributes]
        terms = [self._labelled(dealt_atoms[name][1]) for name in others]
        less = Dealer(others, dealer.folds, self.seed).content(terms)
        first, second = (
            (self._labelled(total) - excluded) % PRIME
            for total, excluded in zip(sums, less, strict=True)
        )
        return first, second

    def _label_mask(self, column: ir.Column, values: pa.Array, counts: Ints) -> Mask:
        if self.policy.label_mask is None:
            return super()._label_mask(column, values, counts)
        return self.table_builder.described[self.policy.label.column].candidates[0].mask

    def _attributes(self, classes: pa.Array) -> dict[str, AttributeSummary]:
        """Return the attributes with their counts by class; their masks are fitted already."""
        described = {
            a.name: replace(self.table_builder.described[a.name], joint=self._counts(a, classes)[1])
            for a in self.policy.features
        }
        return self._exclude(described)

    def _label_attribute(
        self, attribute: Attribute, label: LabelSummary, classes: pa.Array
    ) -> AttributeSummary:
        """Return the label as an attribute, with the number of all rows by value and class."""
        described = self.table_builder.described[attribute.name]
        joint = np.zeros((len(described.values), len(classes)), dtype=np.int64)
        np.fill_diagonal(joint, label.weighted)
        return replace(described, joint=joint)


@checks_types
def summarize(
    table: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    *,
    exact: bool = False,
    sample_rows: int = SAMPLE_ROWS,
    max_levels: int = MAX_LEVELS,
    seed: int = 0,
    like: Summary | None = None,
    progress: Progress = SILENT,
) -> Summary:
    """Reduce a table to the counts from which Aegis can give advice.

    Aegis counts values by label, and the combinations of values that the privacy rule checks, on
    all rows. If the table has more than `sample_rows` rows, Aegis counts pairs of values on a
    uniform sample, unless you set `exact`.

    Parameters
    ----------
    table
        Anything that `aegis.sources.open_table` opens.
    policy
        Roles, candidate masks and the label.
    exact
        Whether to count pairs of values on all rows.
    sample_rows
        Number of rows in the sample for pairs of values.
    max_levels
        Largest number of levels of an attribute in measures of several attributes; at least 2.
    seed
        Seed of the sample.
    like
        The summary of another part of the same data under the same policy. Aegis reuses its
        fitted masks, label bins, classes and pooled groups, so that you can merge both summaries.
    progress
        Receives one step per stage.

    Raises
    ------
    DataError
        A column is missing or has no usable type, or the table is empty. Or the label has only
        nulls, only one class or too many classes.
    PolicyError
        A mask does not fit its column, or `like` was made under another policy.

    Examples
    --------
    >>> import aegis
    >>> summary = aegis.summarize("data/adult.parquet", "examples/adult/policy.yaml")
    >>> summary.rows, len(summary.attributes)
    (32561, 11)
    """
    rows = None if exact else sample_rows
    return summarize_rows(table, policy, rows, max_levels, seed, like, progress)[0]


def summarize_rows(
    table: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    sample_rows: int | None = SAMPLE_ROWS,
    max_levels: int = MAX_LEVELS,
    seed: int = 0,
    like: Summary | None = None,
    progress: Progress = SILENT,
) -> tuple[Summary, CodedRows | None]:
    """Return the summary of a table, as `summarize`, with its rows as codes; None if there are too
    many to keep them. A `sample_rows` of None means `exact`.
    """
    policy = as_policy(policy)
    if like is not None:
        _check_model(like, policy)
        max_levels = like.max_levels
    builder = Builder(
        open_table(table, reading=policy.reading), policy, max_levels, seed, like, progress
    )
    counted_together = (
        *(a.name for a in policy.quasi_identifiers),
        *policy.sensitive,
        *policy.label.columns,
    )
    with holding(builder.source), grouping(builder.source, counted_together):
        summary = builder.build(sample_rows)
    if policy.tasks:
        summary = _with_tasks(builder, summary, sample_rows)
    return summary, builder.coded_rows if builder.rows <= MOST_ROWS else None


def coded_rows(source: Source, policy: Policy, like: Summary) -> CodedRows | None:
    """Return the rows of a large table whose columns `holding` keeps in memory, with the classes of
    `like`; None for other tables.
    """
    if not is_held(source):
        return None
    builder = Builder(source, policy, like.max_levels, 0, like, SILENT)
    builder.read()
    return builder.coded_rows


def _with_tasks(builder: Builder, summary: Summary, sample_rows: int | None) -> Summary:
    """Return the summary with one for each of its several labels, from the same rows."""
    policy, likes = builder.policy, None if builder.like is None else builder.like.several
    assert policy.label.several is not None
    started, tasks = time.perf_counter(), []
    for position, task in enumerate(policy.tasks):
        like = None if likes is None else likes.tasks[position].summary
        counted = TaskBuilder(builder, task, like).build(sample_rows)
        task_summary = replace(counted, unnamed=(), digests=summary.digests, terms=summary.terms)
        tasks.append(TaskSummary(task_summary, task.weight, task.named_measure(policy.measure)))
    timings = {**summary.timings, "labels": time.perf_counter() - started}
    several = SeveralSummaries(tuple(tasks), policy.label.several.serve)
    return replace(summary, several=several, timings=timings)


def _check_model(like: Summary, policy: Policy) -> None:
    if like.information is not Information.RAW:
        raise PolicyError(
            f"The summary that you gave as an example holds {like.information} of an attribute, not the raw joints.",
            hint="Give one that was made with the raw joints.",
        )
    if like.digests.get("policy") != policy_digest(policy):
        raise PolicyError(
            "The summary that you gave as an example was made under another policy.",
            hint="Parts can be merged only under one policy: give the one that it was made with.",
        )


def declared_policy(summary: Summary) -> Policy:
    """Return the policy under which a summary was made, as far as the summary contains it. If it
    does not contain its privacy rule, that of the result requires nothing.
    """
    terms = summary.terms
    return Policy(
        label=_label(summary),
        attributes={a.name: _declared(a) for a in summary.all_attributes},
        privacy=PrivacyRule() if terms is None else terms.owner.rule,
        measure=None if terms is None else terms.declared.get("measure"),
    )


def _label(summary: Summary) -> Label:
    """Return the label as a policy declares it, from a summary: one label, several labels, or none."""
    label, several = summary.label, summary.several
    if several is None:
        return Label(label.column, kind=label.kind) if label.there else NO_LABEL
    columns = set(summary.label_columns)
    tasks = [
        LabelTask(Label(t.column, kind=t.summary.label.kind), t.weight, t.measure)
        for t in several.tasks
    ]
    have_roles = any(columns & set(task.summary.attributes) for task in several.tasks)
    return several_labels(tasks, several.serve, labels_known=have_roles)


def _declared(attribute: AttributeSummary) -> Attribute:
    masks = tuple(candidate.declared for candidate in attribute.candidates)
    levels = [mask.hierarchy for mask in masks if isinstance(mask, Level)]
    return Attribute(
        attribute.name,
        attribute.role,
        masks,
        hierarchy=levels[0] if levels else None,
        weight=attribute.weight,
    )


def lock(summary: Summary) -> Summary:
    """Return the summary with its rule locked, so that Aegis refuses weaker rules.

    Raises
    ------
    PolicyError
        The summary does not contain its rule, because an earlier version made it.
    """
    if summary.terms is None:
        raise PolicyError(
            "The summary does not say which rule it was made under, so Aegis cannot lock it to the rule.",
            hint="Summarise the table again.",
        )
    return replace(summary, terms=replace(summary.terms, locked=True, binding=True))


@dataclass(frozen=True, eq=False)
class WithoutFold(PairCounts):
    """The counts of pairs of attributes on all rows except those of one fold."""

    all_pairs: PairCounts = field(kw_only=True)
    left_out: int = field(kw_only=True)

    @property
    def n(self) -> float:
        """The number of (effective) rows on which scores are based."""
        folds = self.all_pairs.folds
        return self.all_pairs.n - (0.0 if folds is None else float(folds.rows[self.left_out]))

    @cached_property
    def total(self) -> Matrix:
        """`PairCounts.total` of the rows outside the fold, shape (D, D)."""
        if isinstance(self.all_pairs, RowPairCounts) and self.all_pairs.dense:
            fold_total = self.all_pairs.total_in(self.left_out)
            return np.subtract(self.all_pairs.total, fold_total, out=fold_total)
        return self.total_of_pairs()


def without_fold(pairs: PairCounts, fold: int) -> WithoutFold:
    """Return the counts of pairs over all rows outside one fold; they must have been counted by
    fold.
    """
    folds = pairs.folds
    if folds is None:
        raise ValueError("The counts have no folds.")

    def count(pair: tuple[int, int]) -> Array:
        out = folds.fold[pair] == fold
        rest = pairs.count[pair].copy()
        # A cell has at most one entry per fold.
        rest[folds.cell[pair][out]] -= folds.count[pair][out]
        return rest

    return WithoutFold(
        names=pairs.names,
        sizes=pairs.sizes,
        classes=pairs.classes,
        rows=pairs.rows - int(folds.rows[fold]),
        weights=pairs.weights,
        in_rows=pairs.in_rows,
        atom_counts=tuple(
            j - f[fold] for j, f in zip(pairs.atom_counts, folds.atom_counts, strict=True)
        ),
        index=pairs.index,
        count=OnDemand(pairs.count, count),
        all_pairs=pairs,
        left_out=fold,
    )
