"""Measure the utility of the rows that a release would keep, before it is written, and recommend a
release that keeps more of it if suppression makes the first choice worse.

Aegis measures the best configuration in the same way as a release: it masks the rows, suppresses
the classes that fail the rule, and summarises the remaining rows like any table. If there is only a
summary, the rows come from the frequency table. This works only if the frequency table has every
scored attribute and the measure uses no held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegis.advisor.advice import Advice, caveats_of, with_caveats
from aegis.advisor.confidence import (
    compared,
    jackknife,
    sampling_error,
    shrink_of,
    standard_errors,
    tie_margin,
)
from aegis.advisor.encodings import has_excluded
from aegis.advisor.figures import FirstByRelease
from aegis.advisor.label_leaks import label_leaks
from aegis.advisor.plan import PrivacyPlan, as_it_is, as_released, tells_classes_apart
from aegis.advisor.ranked import Ranked, best_masked
from aegis.advisor.scores import ColumnRole, coarse, column_roles, rows_each, utility_kept
from aegis.advisor.scoring import Choice, Scorer
from aegis.advisor.several import SeveralScorer, tasks_of
from aegis.advisor.utility import IN_WORDS, Rows, UtilityFigure, columns_of, out_of_reach
from aegis.arrays import Flags, cached_method
from aegis.files import SILENT, Progress
from aegis.masking import check_classes, masked_population, masked_table
from aegis.masking.masked import WithOriginals
from aegis.masks import Kind, Mask, common_refinement
from aegis.measures import MEASURES, LabelKind, Measure, Need
from aegis.policy import Policy
from aegis.sources import Source
from aegis.summary import AttributeSummary, LabelSummary, Summary, summarize
from aegis.summary.build import coded_rows, summarize_held
from aegis.summary.classes import WEIGHT
from aegis.summary.coded_rows import CodedRows
from aegis.summary.cooccurrence import Chunk, count_pairs
from aegis.summary.leaves import shown_leaves
from aegis.summary.outside import MOST_ROWS

Codes = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class KeptCodes:
    """The rows that a release keeps, with their values as codes.

    Attributes
    ----------
    all_rows, keep
        All rows of the table before they are masked, and which of them the release keeps.
    masked
        The columns of the kept rows as they are released, and `WEIGHT` with the unmasked weights.
    """

    all_rows: CodedRows
    keep: Flags | slice
    masked: CodedRows

    @cached_property
    def original(self) -> CodedRows:
        """The kept rows before they are masked."""
        return self.all_rows.only(self.keep)


def kept_codes(
    rows: CodedRows | None, plan: PrivacyPlan, policy: Policy, choice: Choice
) -> KeptCodes | None:
    """Return the rows that the release of a configuration keeps, with their values as codes; None
    if the codes do not show which rows it keeps (see `codes_known`).
    """
    summary, frequency = plan.summary, plan.summary.frequency
    if rows is None or frequency is None or not codes_known(rows, plan, policy, choice):
        return None
    keep: Flags | slice = slice(None)
    if frequency.quasi and not (cells := plan.kept_cells(choice)).all():
        keep = cells[rows.cell_of_rows(frequency, summary.attributes)]
    if policy.weight is not None:
        rows = rows.with_copy(policy.weight, WEIGHT)
    groups: dict[str, tuple[Codes, pa.Array]] = {}
    for name, values in rows.values.items():
        groups[name] = np.arange(len(values)), values
        if (candidate := choice.get(name)) is not None:
            groups[name] = candidate.groups, candidate.masked_values
    return KeptCodes(rows, keep, rows.masked(groups, keep))


def codes_known(rows: CodedRows | None, plan: PrivacyPlan, policy: Policy, choice: Choice) -> bool:
    """Return whether the codes of a table's rows show which rows a release keeps.

    They do not show this if a mask adds noise or shows a type that cannot be compared, if the rule
    counts persons or depends on an earlier release, or if the classes of the label come from a
    mask.
    """
    summary, frequency = plan.summary, plan.summary.frequency
    if rows is None or frequency is None or frequency.earlier is not None:
        return False
    noisy = any(candidate.noise is not None for candidate in choice.values())
    tasks = () if summary.several is None else summary.several.tasks
    masked = any(s.label.mask is not None for s in (summary, *(t.summary for t in tasks)))
    if noisy or masked or policy.person is not None:
        return False
    types = (ibis.dtype(candidate.masked_values.type) for candidate in choice.values())
    return all(Kind.of(dtype) is not None for dtype in types)


def lost_classes(before: LabelSummary, after: LabelSummary) -> dict[str, int]:
    """Return the label classes that no row of a release has, and how many rows each had before;
    empty if the label is masked.
    """
    remaining = set(after.classes)
    if before.mask is not None or not remaining <= set(before.classes):
        return {}
    rows = zip(before.classes, before.counts, strict=True)
    return {name: int(n) for name, n in rows if n and name not in remaining}


def _cut_by_masks(attribute: AttributeSummary) -> bool:
    """Return whether candidates distinguish rare values that the unmasked attribute counts together
    as one level. The summary then counts these values separately.
    """
    unmasked = attribute.unmasked
    alone = [unmasked.levels] if unmasked.ranges is None else [unmasked.levels, unmasked.ranges]
    return attribute.n_atoms > int(common_refinement(alone).max(initial=-1)) + 1


def error_of(scorer: Scorer, choice: Choice, measure: Measure) -> float | None:
    """Return the standard error of the score of one configuration; None if it would take too long."""
    if scorer.summary.pairs.folds is None or not compared(scorer, [choice], measure):
        return None
    without = jackknife(scorer, [choice], measure)
    if without is None:
        return None
    jackknifed = shrink_of(scorer.summary, measure) * float(standard_errors(without)[0])
    return sampling_error(scorer, measure, scorer.value(choice, measure), jackknifed)


@dataclass(frozen=True, eq=False)
class KeptRows:
    """The counts of the rows that a release keeps, for a table with one label.

    Attributes
    ----------
    scorer, choice
        The scorer of the kept rows, and the masks to score. Both are None if only the label classes
        of these rows are known.
    lost
        Label classes that lose all rows, with their number of rows in the table.
    constant
        Whether at most one class remains, so that there is nothing to predict.
    """

    scorer: Scorer | None
    choice: Choice | None
    lost: Mapping[str, int]
    constant: bool = False

    def figure(
        self,
        measure: Measure,
        reference: float,
        original: Scorer,
        labels: int = 1,
        *,
        earlier: bool = False,
    ) -> UtilityFigure | None:
        """Return the utility of the rows that the release keeps; None if the measure cannot be
        computed on them. `reference` is the score of the unmasked table, which `original` scores;
        `labels` is the number of labels whose scores the certificate states, and `earlier` is as in
        `rows_each`.
        """
        table_rows = rows_each(original.summary.rows, labels, earlier=earlier)
        value, error = coarse(measure.worst(original.label_rows), table_rows), None
        columns, leaks = {}, {}
        if not self.constant:
            if self.scorer is None or self.choice is None:
                return None
            if {Need.CV_FOLDS, Need.COLUMNS} & set(
                measure.needs
            ) and self.scorer.summary.pairs.folds is None:
                return None
            value = self.scorer.value(self.choice, measure)
            error = error_of(self.scorer, self.choice, measure)
            columns = columns_of(self.scorer, self.choice, measure, original, earlier=earlier)
            leaks = label_leaks(self.scorer.summary, self.choice)
        figure = UtilityFigure.of(
            measure,
            value,
            reference,
            original.label_rows,
            table_rows=table_rows,
            stderr=error,
            lost_classes=self.lost,
            columns=columns,
            leaks=leaks,
        )
        number = None if self.scorer is None else self.scorer.summary.number
        return figure.with_errors(number, original.summary.number, table_rows)


@dataclass(frozen=True, eq=False)
class KeptLabels:
    """The counts of the rows that a release keeps, for each of several labels. `lost` is always
    empty, because the figure of each label lists the classes that this label loses.
    """

    labels: tuple[tuple[ReleasedRows, KeptRows], ...]
    lost: Mapping[str, int] = field(default_factory=dict)

    def figure(self, measure: Measure, reference: float, original: Scorer) -> UtilityFigure | None:
        """Return the utility of the rows that the release keeps, for all labels together and for
        each; None if the measure of a label cannot be computed on these rows. The arguments are as
        in `KeptRows.figure`.
        """
        assert isinstance(original, SeveralScorer)
        figures = {}
        for (rows, kept_rows), task in zip(self.labels, original.tasks, strict=True):
            unmasked = rows.reference(task.measure, task.reference)
            figure = kept_rows.figure(task.measure, unmasked, task.scorer, len(self.labels))
            if figure is None:
                return None
            figures[task.column] = figure
        shares = [
            None if f.utility_kept is None else f.utility_kept / 100 for f in figures.values()
        ]
        return UtilityFigure.of(measure, original.combine(shares), reference, None, labels=figures)


class ReleasedRows:
    """Counts the rows that each release of a table keeps.

    Parameters
    ----------
    plan
        The plan that decides which classes are kept.
    source, policy
        The table and its policy, if they are available; then the rows are masked and counted.
    seed
        Seed of the sample from which a large table is scored, as in the certificate.
    coded_rows
        The rows, with an integer code for each value, if they have already been read, so that they
        are not read again.
    stored
        Configurations, each with the rows that its release keeps, if a server stores these rows.
    reading
        A context, such as a lock, that a search enters before it measures a release.
    """

    def __init__(
        self,
        plan: PrivacyPlan,
        source: Source | None = None,
        policy: Policy | None = None,
        seed: int = 0,
        coded_rows: CodedRows | None = None,
        stored: tuple[tuple[Choice, ir.Table], ...] = (),
        reading: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.plan = plan
        self.source = source
        self.policy = policy
        self.seed = seed
        self.coded_rows = coded_rows
        self._stored = stored
        self.reading = nullcontext() if reading is None else reading
        self._tables: ExitStack | None = None

    def under(self, plan: PrivacyPlan) -> ReleasedRows:
        """Return a counter of released rows for the same table under the rule of another plan."""
        return ReleasedRows(
            plan, self.source, self.policy, self.seed, self.coded_rows, reading=self.reading
        )

    @contextmanager
    def open(self) -> Iterator[ReleasedRows]:
        """Return a context, at whose end the server drops the releases that it stores."""
        with ExitStack() as self._tables:
            yield self
        self._tables, self._stored = None, ()

    @contextmanager
    def storing(self, choice: Choice) -> Iterator[ReleasedRows]:
        """Return a context in which the kept rows of one configuration are masked only once; it
        yields an object that counts these rows.

        The server stores the kept rows in a temporary table, because otherwise each query would
        mask them again. Within `open`, it stores them until that context ends. Nothing is stored if
        the table has more than `MOST_ROWS` rows, if the engine runs in this process, or if a mask
        adds noise.
        """
        source, noisy = self.source, any(c.noise is not None for c in choice.values())
        none = source is None or source.engine.in_process or noisy or source.rows > MOST_ROWS
        if source is None or none or self.stored(choice) is not None:
            yield self
        elif self._tables is not None:
            stored = self._tables.enter_context(source.keep(self.table(choice)))
            self._stored = (*self._stored, (choice, stored))
            yield self
        else:
            with source.keep(self.table(choice)) as table:
                pair = choice, table
                yield ReleasedRows(
                    self.plan, source, self.policy, self.seed, self.coded_rows, (pair,)
                )

    def stored(self, choice: Choice) -> ir.Table | None:
        """Return the rows that the release of a configuration keeps, if a server has stored them;
        otherwise None.
        """
        return next((table for masks, table in self._stored if masks == choice), None)

    def of(self, choice: Choice) -> KeptRows | KeptLabels | None:
        """Return the counts of the rows that a release keeps; None if these cannot be known. The
        kept rows of a release with noise are known only after the noise is drawn.
        """
        if any(candidate.noise is not None for candidate in choice.values()):
            return None
        if self.source is None or self.policy is None:
            return (
                None if self.plan.summary.several else self._from_cells(self.plan.summary, choice)
            )
        codes = kept_codes(self._rows, self.plan, self.policy, choice)
        rest: Source | CodedRows
        rest = Source(self.table(choice), self._origin) if codes is None else codes.masked
        several = self.plan.summary.several
        if several is None:
            return self._counted(rest, self.plan.summary, choice)
        alone = [
            ReleasedRows(
                self.plan, self.source, self.policy.of_task(task), self.seed, self.coded_rows
            )
            for task in self.policy.tasks
        ]
        counted = [
            rows_of_label._counted(rest, task.summary, choice)
            for rows_of_label, task in zip(alone, several.tasks, strict=True)
        ]
        return KeptLabels(tuple(zip(alone, counted, strict=True)))

    def _counted(self, rest: Source | CodedRows, summary: Summary, choice: Choice) -> KeptRows:
        """Return the counts of the kept rows (`rest`) of a release; `summary` counts all rows."""
        assert self.policy is not None
        policy = as_released(self.policy)
        if isinstance(rest, CodedRows):
            column = policy.label.column
            classes = rest.rows(column)[rest.values[column].is_valid()] if column else rest.label
            several = np.count_nonzero(classes) > 1 if column else len(classes) > 0
        else:
            several = tells_classes_apart(rest, policy)
        if not several:
            counted = self._from_cells(summary, choice)
            return KeptRows(None, None, {} if counted is None else counted.lost, constant=True)
        if isinstance(rest, CodedRows):
            counts = summarize_held(rest, policy, self._origin, seed=self.seed)
        else:
            counts = summarize(rest, policy, seed=self.seed)
        scorer = Scorer(counts, self._roles)
        lost = lost_classes(summary.label, scorer.summary.label)
        return KeptRows(scorer, scorer.unmasked, lost)

    @property
    def _rows(self) -> CodedRows | None:
        """All rows of the table as codes, as long as they are in memory; None if they are not."""
        if self.coded_rows is not None or self.source is None or self.policy is None:
            return self.coded_rows
        return coded_rows(self.source, self.policy, self.plan.summary)

    @property
    def _origin(self) -> str:
        """The name by which messages refer to the released rows."""
        assert self.source is not None
        return f"the released rows of {self.source.origin}"

    @property
    def counts_otherwise(self) -> bool:
        """Whether the summary counts rows in another way than a release, so that the unmasked table
        must be counted again to compare them.

        In a wide table, the masks decide which attributes the measures leave out. And masks can
        divide the rare values of an attribute, which the unmasked table counts as one level; then
        rows are assigned to other folds.
        """
        summary = self.plan.summary
        return has_excluded(summary) or any(map(_cut_by_masks, summary.attributes.values()))

    def reference(self, measure: Measure, on_all_rows: float) -> float:
        """Return the score of the unmasked table with which a release is compared: `on_all_rows`,
        unless the table must be counted again (`counts_otherwise`).
        """
        lacking = self.source is None or self.policy is None or bool(self.policy.tasks)
        if lacking or not self.counts_otherwise:
            return on_all_rows
        return self._on_unmasked(measure)

    def measured(
        self,
        kept_rows: KeptRows | KeptLabels | None,
        on_all_rows: UtilityFigure,
        measure: Measure,
        scorer: Scorer,
    ) -> UtilityFigure:
        """Return the utility of the rows that a release keeps, or `on_all_rows`, that of the same
        masks on all rows, if they are not known or cannot be measured. `scorer` scores the unmasked
        table.
        """
        if kept_rows is None:
            return on_all_rows
        reference = self.reference(measure, on_all_rows.reference)
        figure = kept_rows.figure(measure, reference, scorer)
        return replace(on_all_rows, lost_classes=kept_rows.lost) if figure is None else figure

    @cached_method
    def _roles(self) -> Mapping[str, ColumnRole]:
        """Return the role of each column in the mean of all columns' scores, from the unmasked
        table.
        """
        return column_roles(self.plan.summary)

    @cached_method
    def _on_unmasked(self, measure: Measure) -> float:
        """Return the score of the unmasked table, counted again. The scorer is not kept: of a wide
        table, its counts of pairs take hundreds of megabytes.
        """
        scorer = Scorer(self._unmasked, self._roles)
        return scorer.value(scorer.unmasked, measure)

    @cached_property
    def _unmasked(self) -> Summary:
        assert self.source is not None
        assert self.policy is not None
        policy, rows = as_it_is(self.policy, original=True), self._rows
        if rows is None:
            return summarize(self.source, policy, seed=self.seed)
        return summarize_held(rows, policy, self.source, seed=self.seed)

    def table(self, choice: Choice, originals: WithOriginals | None = None) -> ir.Table:
        """Return the rows that the release of a configuration keeps, as a query or as a stored
        table, with `PERSON` and `WEIGHT` if the policy names such columns. No mask may draw noise.
        If `originals` has unmasked copies of the masked columns, so has the result.
        """
        assert self.source is not None
        assert self.policy is not None
        if originals is None and (stored := self.stored(choice)) is not None:
            return stored
        policy, rule = self.policy, self.plan.rule
        masks = self.masks(choice)
        source = self.source if originals is None else originals.source
        copies = {} if originals is None else originals.masks
        checked = check_classes(
            source,
            masked_table(source, {**masks, **copies}, person=policy.person, weight=policy.weight),
            [a.name for a in policy.quasi_identifiers],
            rule.sensitive,
            rule,
            policy.protected_hierarchies,
            masked_population(policy, self.source, masks),
            shown_leaves(self.source, policy, masks) if rule.by_leaves else None,
        )
        return checked.kept_rows()

    def masks(self, choice: Choice) -> dict[str, Mask | None]:
        """Return the mask of each column that a release shows, including the label."""
        assert self.policy is not None
        chosen = {name: candidate.mask for name, candidate in choice.items()}
        return self.policy.with_label(chosen, self.plan.summary.label.mask)

    def _from_cells(self, summary: Summary, choice: Choice) -> KeptRows | None:
        """Count the rows that a release keeps, from the frequency table of the summary; None if
        there is none or the label has no classes. If some scored attributes are missing there, the
        result has no scorer, and states only which label classes no kept row has.
        """
        frequency = summary.frequency
        if frequency is None or not summary.label.has_classes:
            return None
        label = frequency.representatives[frequency.label][frequency.codes[frequency.label]]
        keep = self.plan.kept_cells(choice) & (label < len(summary.label.classes))
        weights, y = frequency.counts[keep], label[keep].astype(np.int64)
        rows = np.bincount(y, weights=weights, minlength=len(summary.label.classes))
        named = zip(summary.label.classes, summary.label.counts, rows, strict=True)
        masked = summary.label.column in choice
        lost = {} if masked else {name: int(n) for name, n, after in named if n and not after}
        constant = not masked and int(np.count_nonzero(rows)) < 2
        weighted = summary.weights is not None  # cells count rows
        if constant or weighted or not set(summary.attributes) <= set(frequency.codes):
            return KeptRows(None, None, lost, constant=constant)
        classes, attributes, atoms = len(summary.label.classes), {}, []
        for name, attribute in summary.attributes.items():
            values = frequency.representatives[name][frequency.codes[name][keep]]
            atoms.append(attribute.atoms[values].astype(np.int64))
            key, size = values * classes + y, len(attribute.values) * classes
            joint = np.bincount(key, weights=weights, minlength=size).astype(np.int64)
            attributes[name] = replace(attribute, joint=joint.reshape(-1, classes))
        chunk = Chunk(atoms, y, weights)
        rest = replace(
            summary,
            attributes=attributes,
            pairs=count_pairs(tuple(attributes), summary.pairs.sizes, classes, [chunk]),
            label=replace(summary.label, counts=rows.astype(np.int64)),
        )
        return KeptRows(Scorer(rest, self._roles), choice, lost)


def with_utility(
    advice: Advice, released: ReleasedRows, scorer: Scorer, progress: Progress = SILENT
) -> Advice:
    """Return a copy of the advice with the utility of its best release, whose rows `released`
    counts. `scorer` is that of the summary.
    """
    best = advice.best
    if best is None or best.method is not None or not best.configuration.masks:
        return advice
    earlier, measure = caveats_of(advice), MEASURES.get(advice.measure)
    with progress.step("Scoring the rows that are kept"):
        figure, kept_rows = best.utility, None
        if figure is None or advice.expected is not None:
            choice = scorer.choose(best.configuration)
            kept_rows = _counts_of_release(released, choice, best.suppressed_rows, scorer)
        if figure is None:
            figure = released.measured(kept_rows, advice.stated_utility(best), measure, scorer)
        if figure.rows is Rows.ALL:
            choice = scorer.choose(best.configuration)
            figure = replace(figure, columns=columns_of(scorer, choice, measure, scorer))
        expected = advice.expected
        if expected is not None:
            by = MEASURES.get(expected.measure)
            expected = released.measured(kept_rows, expected, by, scorer)
    caveats = figure.caveats(best.suppressed_rows)
    first = replace(best, utility=figure, utility_kept=figure.utility_kept)
    measured = replace(
        advice,
        ranking=(first, *advice.ranking[1:]),
        expected=expected,
        warnings=(*caveats, *advice.warnings),
    )
    return with_caveats(measured, earlier=earlier)


def _counts_of_release(
    released: ReleasedRows, choice: Choice, suppressed_rows: int | None, scorer: Scorer
) -> KeptRows | KeptLabels | None:
    """Return the counts of the rows that a release keeps; those of the summary if it masks and
    suppresses nothing.
    """
    if (
        tasks_of(scorer)
        or released.counts_otherwise
        or suppressed_rows
        or choice != scorer.unmasked
    ):
        return released.of(choice)
    return KeptRows(scorer, choice, {})


def figure_on_all_rows(choice: Choice, scorer: Scorer, measure: Measure) -> UtilityFigure:
    """Return the utility of the masks of a configuration on all rows."""
    value, unmasked = scorer.value(choice, measure), scorer.value(scorer.unmasked, measure)
    return UtilityFigure.of(measure, value, unmasked, scorer.label_rows, rows=Rows.ALL)


def release_figure(
    released: ReleasedRows,
    choice: Choice,
    suppressed_rows: int,
    scorer: Scorer,
    measure: Measure,
) -> UtilityFigure | None:
    """Return the utility of the rows that a release keeps, or that of the same masks on all rows if
    only the lost label classes are known; None if neither is. `scorer` is that of the summary.
    """
    on_all_rows = figure_on_all_rows(choice, scorer, measure)
    with released.reading, released.storing(choice) as rows:
        kept_rows = _counts_of_release(rows, choice, suppressed_rows, scorer)
        if kept_rows is None:
            return None
        return released.measured(kept_rows, on_all_rows, measure, scorer)


def expected_auc(
    scorer: Scorer, measure: Measure, ranking: Sequence[Ranked]
) -> UtilityFigure | None:
    """Return the AUC (for a numeric label the R2) that models are expected to reach under the best
    configuration, on all rows.

    It is None if the measure is itself a model metric; the first configuration is not admissible;
    the label is neither numeric nor has two classes; the summary has no folds; or the table has so
    many values and classes that the computation would take longer than the ranking.
    """
    best = best_masked(ranking)
    if best is None or measure.unit in IN_WORDS or out_of_reach(scorer.summary):
        return None
    kind = scorer.summary.label.kind
    few = kind is LabelKind.CLASSES and sum(rows > 0 for rows in scorer.label_rows) < 2
    if kind is LabelKind.NONE or few or scorer.folds < 2:
        return None
    by = MEASURES.get(kind.default_measure)
    choice, number = scorer.choose(best.configuration), scorer.summary.number
    figure = UtilityFigure.of(
        by,
        scorer.value(choice, by),
        scorer.value(scorer.unmasked, by),
        scorer.label_rows,
        stderr=error_of(scorer, choice, by),
        rows=Rows.ALL,
    )
    return figure.with_errors(number, number)


def best_release(
    first: Choice,
    released: ReleasedRows,
    scorer: Scorer,
    measure: Measure,
    sparing: Callable[[int], Choice | None],
) -> tuple[Choice, UtilityFigure | None, FirstByRelease | None]:
    """Return the configuration to recommend, the utility of the rows that it releases (None if it
    is not measured), and why another configuration than `first` is recommended (else None).

    A ranking compares configurations on all rows, but the rule suppresses some. If the release of
    `first` therefore keeps a smaller share of the utility than `first` does on all rows, by more
    than the margin within which scores count as equal, it is compared with releases that suppress
    fewer rows. A class of the label that a release loses counts as a class that nothing predicts.

    `sparing` returns the configuration to recommend among those that suppress at most the given
    number of rows; None if there is none.
    """
    plan = released.plan
    removed = spared = plan.check(first).suppressed_rows
    figure = release_figure(released, first, removed, scorer, measure) if removed else None
    if figure is None:
        return first, None, None
    label_rows, unmasked = scorer.label_rows, scorer.value(scorer.unmasked, measure)
    score = scorer.value(first, measure)
    kept_on_all_rows = utility_kept(score, unmasked, measure, label_rows) or 0.0
    margin = measure.direction.sign * tie_margin(measure, unmasked, score, None, label_rows)
    equal = 100.0 - (utility_kept(unmasked - margin, unmasked, measure, label_rows) or 0.0)
    classes = sum(rows > 0 for rows in label_rows)

    def share(utility: UtilityFigure) -> float:
        return (utility.utility_kept or 0.0) * (1 - utility.lost_class_count / max(classes, 1))

    best, highest, short = first, figure, share(figure) < kept_on_all_rows - equal
    for rows in _fewer(plan, removed) if short else ():
        if (other := sparing(rows)) is None:
            continue
        left_out = plan.check(other).suppressed_rows
        measured = release_figure(released, other, left_out, scorer, measure)
        if measured is not None and share(measured) > share(highest) + equal:
            best, highest, spared = other, measured, left_out
    why = None
    if best != first:
        why = FirstByRelease(scorer.value(best, measure), score, highest, figure, spared, removed)
    return best, highest if highest.rows is Rows.RELEASED else None, why


def _fewer(plan: PrivacyPlan, removed: int) -> list[int]:
    """Return the limits of suppressed rows, below `removed`, under which to search again: half of
    the rows of the rarest class of the label, so that no class loses most of its rows, and none.
    """
    label, limits = plan.summary.label, {0}
    if label.has_classes and plan.summary.several is None and plan.rule.person is None:
        limits.add(min((int(rows) for rows in label.counts if rows), default=0) // 2)
    return sorted((rows for rows in limits if rows < removed), reverse=True)
