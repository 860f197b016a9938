"""The utility of the rows that a release keeps, measured before anything is written.

A release is measured as it is, and so is the best configuration here: its rows are masked, the
classes that fail the rule are left out, and what is left is summarised like any table. Where only a
summary is at hand, the frequency table says the same of measures that hold nothing out, if every
scored attribute is in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from aegis.advisor.advice import Advice
from aegis.advisor.caveats import caveats_of, with_caveats
from aegis.advisor.confidence import (
    compared,
    jackknife,
    sampling_error,
    shrink_of,
    standard_errors,
)
from aegis.advisor.default import out_of_reach
from aegis.advisor.excluded_attributes import sets_aside
from aegis.advisor.figures import Front
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.rank import as_it_is, tells_classes_apart
from aegis.advisor.ranked import Ranked
from aegis.advisor.rule_strength import rule_at
from aegis.advisor.scoring import Choice, Scorer
from aegis.advisor.utility import IN_WORDS, Rows, UtilityFigure
from aegis.masking import masked_population, masked_table, suppress
from aegis.measures import MEASURES, LabelKind, Measure, Need
from aegis.policy import Policy
from aegis.progress import SILENT, Progress
from aegis.sources import Source
from aegis.summary import Chunk, LabelSummary, Summary, count_pairs, summarize
from aegis.summary.leaves import shown_leaves


def lost_classes(before: LabelSummary, after: LabelSummary) -> dict[str, int]:
    """Return the label classes that a release leaves out completely, with their rows; none for a
    masked label.
    """
    left = set(after.classes)
    if before.mask is not None or not left <= set(before.classes):
        return {}
    rows = zip(before.classes, before.counts, strict=True)
    return {name: int(n) for name, n in rows if n and name not in left}


def error_of(scorer: Scorer, choice: Choice, measure: Measure) -> float | None:
    """Return the standard error of one score; None if it would take too long."""
    if scorer.summary.pairs.folds is None or not compared(scorer, [choice], measure):
        return None
    without = jackknife(scorer, [choice], measure)
    if without is None:
        return None
    jackknifed = shrink_of(scorer.summary, measure) * float(standard_errors(without)[0])
    return sampling_error(scorer, measure, scorer.value(choice, measure), jackknifed)


@dataclass(frozen=True, eq=False)
class KeptRows:
    """The rows that a release keeps, counted.

    Attributes
    ----------
    scorer, choice
        Scores them, and under which masks: none where they are counted as they are. Both None if only the classes of the label are known.
    lost
        Label classes that are left out whole, with their rows.
    constant
        Whether one class at most is left: nothing is left to predict.
    """

    scorer: Scorer | None
    choice: Choice | None
    lost: Mapping[str, int]
    constant: bool = False

    def figure(self, measure: Measure, reference: float, whole: Scorer) -> UtilityFigure | None:
        """Return the utility of these rows; None if the measure cannot score them.

        Parameters
        ----------
        measure
            What measures it.
        reference
            The measure of the unmasked table.
        whole
            Holds the summary of the unmasked table.
        """
        value, error = measure.worst(whole.label_rows), None
        if not self.constant:
            if self.scorer is None or self.choice is None:
                return None
            if Need.PARTS in measure.needs and self.scorer.summary.pairs.folds is None:
                return None
            value = self.scorer.value(self.choice, measure)
            error = error_of(self.scorer, self.choice, measure)
        figure = UtilityFigure.of(
            measure, value, reference, whole.label_rows, stderr=error, lost_classes=self.lost
        )
        number = None if self.scorer is None else self.scorer.summary.number
        return figure.with_errors(number, whole.summary.number)


class ReleasedRows:
    """Counts the rows that releases keep.

    Parameters
    ----------
    plan
        Says which classes are kept.
    source, policy
        The table and its policy, where they are at hand: the rows are then masked and counted.
    seed
        Seed of the sample behind the scores of a large table, as that of the certificate.
    """

    def __init__(
        self,
        plan: PrivacyPlan,
        source: Source | None = None,
        policy: Policy | None = None,
        seed: int = 0,
    ) -> None:
        self.plan = plan
        self.source = source
        self.policy = policy
        self.seed = seed

    def under(self, plan: PrivacyPlan) -> ReleasedRows:
        """Return the same table under another rule."""
        return ReleasedRows(plan, self.source, self.policy, self.seed)

    def of(self, choice: Choice) -> KeptRows | None:
        """Return the rows that a configuration keeps; None if they cannot be known.

        The rows of a release with noise are known once the noise is drawn.
        """
        if any(candidate.noise is not None for candidate in choice.values()):
            return None
        if self.source is None or self.policy is None:
            return self._from_cells(self.plan.summary, choice)
        rest = self._masked(self.source, self.policy, choice)
        if not tells_classes_apart(rest, self.policy):
            counted = self._from_cells(self.plan.summary, choice)
            return KeptRows(None, None, {} if counted is None else counted.lost, constant=True)
        scorer = Scorer(summarize(rest, as_it_is(self.policy), seed=self.seed))
        lost = lost_classes(self.plan.summary.label, scorer.summary.label)
        return KeptRows(scorer, scorer.unmasked, lost)

    @property
    def counts_otherwise(self) -> bool:
        """Whether the release and its certificate are counted in another way than the summary of
        the masks.

        A policy that counts persons deals their rows to one fold; a release does not name persons.
        A summary of a wide table sets attributes aside by what its masks show.
        """
        by_persons = self.policy is not None and self.policy.person is not None
        return by_persons or sets_aside(self.plan.summary)

    def reference(self, measure: Measure, on_all_rows: float) -> float:
        """Return the score of the unmasked table, counted as a release and its certificate count it."""
        if self.source is None or self.policy is None or not self.counts_otherwise:
            return on_all_rows
        return self._unmasked.value(self._unmasked.unmasked, measure)

    def measured(
        self,
        kept_rows: KeptRows | None,
        on_all_rows: UtilityFigure,
        measure: Measure,
        scorer: Scorer,
    ) -> UtilityFigure:
        """Return the utility of the kept rows; if they are unknown, the utility of the masks on
        all rows.
        """
        if kept_rows is None:
            return on_all_rows
        reference = self.reference(measure, on_all_rows.reference)
        figure = kept_rows.figure(measure, reference, scorer)
        return replace(on_all_rows, lost_classes=kept_rows.lost) if figure is None else figure

    @cached_property
    def _unmasked(self) -> Scorer:
        assert self.source is not None
        assert self.policy is not None
        return Scorer(summarize(self.source, as_it_is(self.policy), seed=self.seed))

    def _masked(self, source: Source, policy: Policy, choice: Choice) -> Source:
        masks = policy.with_label(
            {name: c.mask for name, c in choice.items()}, self.plan.summary.label.mask
        )
        masked = masked_table(source, masks, person=self.plan.rule.person)
        rule = self.plan.rule
        kept_rows, _ = suppress(
            source,
            masked,
            [a.name for a in policy.quasi_identifiers],
            rule.sensitive,
            rule,
            policy.protected_hierarchies,
            masked_population(policy, masks),
            shown_leaves(source, policy, masks) if rule.by_leaves else None,
        )
        return Source(kept_rows, f"the released rows of {source.origin}")

    def _from_cells(self, summary: Summary, choice: Choice) -> KeptRows | None:
        """Count the kept rows from the cells of the frequency table, as far as it holds them."""
        frequency = summary.frequency
        if frequency is None or not summary.label.has_classes:
            return None
        ids = frequency.class_ids({q: choice[q].groups for q in frequency.quasi})
        classes = self.plan.classes(choice)
        kept_ids = classes.kept_ids(self.plan.rule.check(classes).kept_classes)
        label = frequency.representatives[frequency.label][frequency.codes[frequency.label]]
        keep = np.isin(ids, kept_ids) & (label < len(summary.label.classes))
        weights, y = frequency.counts[keep], label[keep].astype(np.int64)
        rows = np.bincount(y, weights=weights, minlength=len(summary.label.classes))
        named = zip(summary.label.classes, summary.label.counts, rows, strict=True)
        masked = summary.label.column in choice
        lost = {} if masked else {name: int(n) for name, n, left in named if n and not left}
        constant = not masked and int(np.count_nonzero(rows)) < 2
        if constant or not set(summary.attributes) <= set(frequency.codes):
            return KeptRows(None, None, lost, constant=constant)
        values = {
            name: frequency.representatives[name][frequency.codes[name][keep]]
            for name in summary.attributes
        }
        width = len(summary.label.classes)
        atoms = [a.atoms[values[a.name]].astype(np.int64) for a in summary.attributes.values()]
        chunk = Chunk(atoms, y, weights)
        attributes = {
            a.name: replace(
                a,
                joint=np.bincount(
                    values[a.name] * width + y, weights=weights, minlength=len(a.values) * width
                )
                .astype(np.int64)
                .reshape(-1, width),
            )
            for a in summary.attributes.values()
        }
        pairs = count_pairs(tuple(summary.attributes), summary.pairs.sizes, width, [chunk])
        rest = replace(
            summary,
            attributes=attributes,
            pairs=pairs,
            label=replace(summary.label, counts=rows.astype(np.int64)),
        )
        return KeptRows(Scorer(rest), choice, lost)


def with_utility(
    advice: Advice, released: ReleasedRows, scorer: Scorer, progress: Progress = SILENT
) -> Advice:
    """Return the advice with the utility of its best release, and of each point of its front.

    Parameters
    ----------
    advice
        A ranking, or what a search found.
    released
        Counts the rows that releases keep.
    scorer
        Holds the summary behind the advice.
    progress
        Receives a step.
    """
    best = advice.best
    if best is None or best.method is not None or not best.configuration.masks:
        return advice
    told, measure = caveats_of(advice), MEASURES.get(advice.measure)
    with progress.step("Scoring the rows that are kept"):
        kept_rows = _kept(released, best, scorer)
        figure = released.measured(kept_rows, advice.stated_utility(best), measure, scorer)
        expected = advice.expected
        if expected is not None:
            by = MEASURES.get(expected.measure)
            expected = released.measured(kept_rows, expected, by, scorer)
        front = None if advice.front is None else _front(advice, advice.front, released, scorer)
    caveats = figure.caveats(best.suppressed_rows)
    first = replace(best, utility=figure, utility_kept=figure.utility_kept)
    measured = replace(
        advice,
        ranking=(first, *advice.ranking[1:]),
        expected=expected,
        front=front,
        warnings=(*caveats, *advice.warnings),
    )
    return with_caveats(measured, told=told)


def _kept(released: ReleasedRows, best: Ranked, scorer: Scorer) -> KeptRows | None:
    """Return the rows that a release keeps: those of a table that is released as it is are counted."""
    choice = scorer.choose(best.configuration)
    if released.counts_otherwise or best.suppressed_rows or choice != scorer.unmasked:
        return released.of(choice)
    return KeptRows(scorer, choice, {})


def _front(advice: Advice, front: Front, released: ReleasedRows, scorer: Scorer) -> Front:
    """Return the front with the utility of the rows that each of its points keeps."""
    measure, rule = MEASURES.get(advice.measure), released.plan.rule
    reference = released.reference(measure, advice.unmasked)
    points = []
    for point in front.points:
        figure = None
        if point.configuration is not None:
            plan = released.plan.under(rule_at(rule, front.parameter, point.value))
            kept_rows = released.under(plan).of(scorer.choose(point.configuration))
            if kept_rows is not None:
                figure = kept_rows.figure(measure, reference, scorer)
        points.append(point if figure is None else replace(point, utility_kept=figure.utility_kept))
    return replace(front, points=tuple(points))


def expected_auc(
    scorer: Scorer, measure: Measure, ranking: Sequence[Ranked]
) -> UtilityFigure | None:
    """Return the expected AUC, or R2, of the first configuration of a ranking, on all rows.

    None where the measure is itself a metric of models, so that the score says it; where nothing
    admissible comes first; where there is no number to predict and no label with two classes, or the summary holds no folds;
    and where the table has so many values and classes that it would take longer than the ranking.
    """
    best = next(
        (ranked for ranked in ranking[:1] if ranked.admissible and ranked.method is None), None
    )
    if best is None or measure.unit in IN_WORDS or out_of_reach(scorer.summary):
        return None
    kind = scorer.summary.label.kind
    few = kind is LabelKind.CLASSES and sum(rows > 0 for rows in scorer.label_rows) < 2
    if kind is LabelKind.NONE or few or scorer.parts < 2:
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
