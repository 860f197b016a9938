"""Score configurations for several labels: a scorer for each label, and one figure that combines
the shares kept.

Each label has a scorer for a table with this label alone. A configuration of the whole table is
also a configuration of each label's table, with the candidates at the same positions. For each
label, Aegis states the utility that a release keeps, and what the label loses because the release
serves all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from aegis.advisor.encodings import known_alone
from aegis.advisor.ranked import Ranked
from aegis.advisor.scores import utility_kept
from aegis.advisor.scoring import Choice, Scorer
from aegis.advisor.utility import measure_for
from aegis.measures import LabelKind, Measure
from aegis.measures.several import combined
from aegis.summary import AttributeSummary, Candidate, Summary
from aegis.summary.model import TaskSummary
from aegis.words import Quoting, counted, json_fields


@dataclass(eq=False)
class TaskScorer:
    """Scores configurations of the whole table for one of several labels.

    Attributes
    ----------
    table_summary
        The summary of the whole table; configurations refer to its candidates.
    task
        The summary of the table with only this label, and the label's weight and measure.
    scorer
        Scores the table with only this label.
    measure
        The measure of the label.
    notes
        Sentences that say that another measure replaces the default; else empty.
    """

    table_summary: Summary
    task: TaskSummary
    scorer: Scorer
    measure: Measure
    notes: tuple[str, ...] = ()
    _label_candidates: dict[Candidate, Candidate] = field(default_factory=dict)

    @classmethod
    def of(cls, summary: Summary, task: TaskSummary) -> TaskScorer:
        """Create the scorer of one label. `summary` describes the whole table, and `task` the table
        with only this label.
        """
        measure, notes = measure_for(task.summary, task.measure)
        sentences = tuple(f"{task.column}: {note}" for note in notes)
        return cls(summary, task, Scorer(task.summary), measure, sentences)

    @property
    def column(self) -> str:
        """The name of the label's column."""
        return self.task.column

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes from which the label is predicted, and of the label if it has
        masks.
        """
        return tuple(a.name for a in self.task.summary.all_attributes)

    @cached_property
    def reference(self) -> float:
        """The score of the unmasked table for this label."""
        return self.scorer.value(self.scorer.unmasked, self.measure)

    def choice(self, choice: Choice) -> Choice:
        """Translate a configuration of the whole table into one of the table with only this label,
        which lacks some columns.
        """
        return {name: self.candidate(name, choice[name]) for name in self.names}

    def candidate(self, name: str, candidate: Candidate) -> Candidate:
        """Translate a candidate of the whole table into that of the table with only this label."""
        if candidate not in self._label_candidates:
            in_table, with_label = (
                (*attribute.candidates, attribute.unmasked)
                for attribute in (
                    s.attribute(name) for s in (self.table_summary, self.task.summary)
                )
            )
            self._label_candidates.update(zip(in_table, with_label, strict=True))
        return self._label_candidates[candidate]

    def value(self, choice: Choice) -> float:
        """Return the score that a configuration of the whole table has for this label."""
        label_choice = self.choice(choice)
        if self.hides_label(label_choice):
            return self.measure.worst(self.scorer.label_rows)
        return self.scorer.value(label_choice, self.measure)

    def hides_label(self, choice: Choice) -> bool:
        """Return whether the label's mask leaves at most one class, so that there is nothing to
        predict. `choice` is of the table with only this label.
        """
        label = choice.get(self.column)
        if label is None or label.noise is not None:
            return False
        counts = self.task.summary.attribute(self.column).joint.sum(axis=1)
        return len(np.unique(label.groups[counts > 0])) < 2

    def share(self, score: float) -> float | None:
        """Return which share of the label's utility remains at a score, from 0 to 1; None if the
        unmasked table has no utility for the label.
        """
        percent = utility_kept(score, self.reference, self.measure, self.scorer.label_rows)
        return None if percent is None else percent / 100

    def alone(self, name: str, candidate: Candidate, label: Candidate | None) -> float | None:
        """Return which share of the label's utility one attribute keeps by itself, from 0 to 1;
        None if this is not known.
        """
        attribute = self.task.summary.attributes.get(name)
        if attribute is None:
            return 0.0
        if not known_alone(attribute, self.measure):
            return None
        label_candidate = self.candidate(name, candidate)
        score = self.scorer.attribute(attribute, label_candidate, self.measure, label)
        return self.share(score)


class SeveralScorer(Scorer):
    """Scores configurations of a table that has several labels (`Summary.several` is not None)."""

    def __init__(self, summary: Summary) -> None:
        super().__init__(summary)
        assert summary.several is not None
        self.serve = summary.several.serve
        self.tasks = [TaskScorer.of(summary, task) for task in summary.several.tasks]

    def value(self, choice: Choice, measure: Measure) -> float:
        """Return the value of a measure for a configuration. For a measure of several labels, it
        combines the shares of utility that are kept for the labels.
        """
        if measure.label is not LabelKind.SEVERAL:
            return super().value(choice, measure)
        return self.combine([task.share(task.value(choice)) for task in self.tasks])

    def attribute(
        self,
        attribute: AttributeSummary,
        candidate: Candidate,
        measure: Measure,
        label: Candidate | None = None,
    ) -> float:
        """Return the value of a measure for one attribute alone. For a measure of several labels,
        it combines the shares of the labels' utility that the attribute keeps by itself.
        """
        if measure.label is not LabelKind.SEVERAL:
            return super().attribute(attribute, candidate, measure, label)
        return self.combine([task.alone(attribute.name, candidate, None) for task in self.tasks])

    def combine(self, shares: Sequence[float | None]) -> float:
        """Combine the shares kept into one figure: their weighted mean or the smallest, as the
        policy says. A share is None if the label has no utility even unmasked.
        """
        return combined(self.serve, shares, [task.task.weight for task in self.tasks])

    def percents(self, choice: Choice) -> dict[str, float | None]:
        """Return how many percent of utility are kept for each label, by the name of its column."""
        shares = {task.column: task.share(task.value(choice)) for task in self.tasks}
        return {name: None if share is None else 100 * share for name, share in shares.items()}


def scorer_of(summary: Summary) -> Scorer:
    """Return an object that scores the configurations of a summary with one label or several."""
    return Scorer(summary) if summary.several is None else SeveralScorer(summary)


def tasks_of(scorer: Scorer) -> Sequence[TaskScorer]:
    """Return the scorer of each of several labels; empty for one label."""
    return scorer.tasks if isinstance(scorer, SeveralScorer) else ()


ERASED = 1.0
"""A release counts as useless for a label if it keeps less than this percentage of the label's
utility.
"""


@dataclass(frozen=True)
class ServedLabel:
    """The utility that the recommended configuration keeps for one of several labels, on all rows.

    Attributes
    ----------
    label
        The column of the label.
    weight
        The label's weight in the mean.
    measure
        Name of the label's measure.
    score, floor, reference
        The score of the configuration, of a constant prediction and of the unmasked table.
    utility_kept
        Percent of the label's utility that the configuration keeps; None if the unmasked table has
        no utility for the label.
    alone
        Percent of the label's utility that is kept by the best configuration for this label alone,
        among all configurations that were ranked or searched; None if it was not computed.
    proven
        Whether `alone` is proven: no admissible configuration keeps more of the label's utility.
    """

    label: str
    weight: float
    measure: str
    score: float
    floor: float
    reference: float
    utility_kept: float | None
    alone: float | None = None
    proven: bool = False

    @classmethod
    def of(
        cls, task: TaskScorer, choice: Choice, alone: float | None = None, *, proven: bool = False
    ) -> ServedLabel:
        """Compute the utility that a configuration keeps for one label. `alone` is the percentage
        that the best configuration for this label alone keeps, and `proven` says whether this is
        proven.
        """
        score, rows = task.value(choice), task.scorer.label_rows
        share = task.share(score)
        percent = None if share is None else 100 * share
        return cls(
            label=task.column,
            weight=task.task.weight,
            measure=task.measure.name,
            score=score,
            floor=task.measure.worst(rows),
            reference=task.reference,
            utility_kept=percent,
            alone=None if percent is None or alone is None else max(alone, percent),
            proven=proven,
        )

    @property
    def price(self) -> float | None:
        """How many percentage points of utility this label loses because the configuration also
        serves other labels; None if this is not known.
        """
        if self.utility_kept is None or self.alone is None:
            return None
        return self.alone - self.utility_kept

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and the price as JSON values."""
        return {**json_fields(self), "price": self.price}


def served_by_ranking(scorer: Scorer, ranking: Sequence[Ranked]) -> tuple[ServedLabel, ...]:
    """Return how much utility the first configuration of a ranking keeps for each of several
    labels, and how much the configuration of the ranking keeps that is best for this label alone.
    Empty if the first entry is not admissible or is a record-level release.
    """
    best = next((r for r in ranking[:1] if r.admissible and r.method is None), None)
    if best is None:
        return ()
    choice = scorer.choose(best.configuration)
    rivals = [ranked.labels for ranked in ranking if ranked.admissible and ranked.labels]
    return tuple(
        ServedLabel.of(task, choice, _most(task.column, rivals)) for task in tasks_of(scorer)
    )


def _most(column: str, rivals: Sequence[Mapping[str, float | None]]) -> float | None:
    return max((most for r in rivals if (most := r[column]) is not None), default=None)


def notes_on_labels(scorer: Scorer, served: Sequence[ServedLabel]) -> tuple[str, ...]:
    """Return notes on labels that keep little utility, have missing values, or use another measure
    than requested.
    """
    notes = [note for task in tasks_of(scorer) for note in task.notes]
    notes += [
        Quoting(
            f"{counted(missing, 'row without a value counts', 'rows without a value count')} for privacy but "
            f"not for scores of {task.column}",
            f"rows without a value count for privacy but not for scores of {task.column}",
        )
        for task in tasks_of(scorer)
        if (missing := task.task.summary.label.unlabelled)
    ]
    for label in served:
        if label.utility_kept is None:
            notes.append(
                f"by {label.measure} the attributes do not predict {label.label} even unmasked, so this "
                "label does not count in the share kept"
            )
        elif label.utility_kept < ERASED:
            best = (
                ""
                if label.alone is None
                else f" (as the only label it could keep {label.alone:.1f} %)"
            )
            notes.append(
                f"the recommended configuration keeps almost nothing of {label.label}{best}: write "
                "`serve: worst` in the policy, or give this label more weight"
            )
    return tuple(notes)
