"""Compute the utility that a release keeps for each of several labels, and what each label loses
because the release serves all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aegis.advisor.ranked import Ranked
from aegis.advisor.scoring import Choice, Scorer
from aegis.advisor.several import TaskScorer, tasks_of
from aegis.words import counted, json_fields

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
        """Compute the utility that a configuration keeps for one of several labels.

        `alone` is the percentage that the best configuration for this label alone keeps (None if it
        is not known), and `proven` says whether this is proven.
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
        serves other labels.

        The result is None if this is not known.
        """
        if self.utility_kept is None or self.alone is None:
            return None
        return self.alone - self.utility_kept

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and the price as JSON values."""
        return {**json_fields(self), "price": self.price}


def served_by_ranking(scorer: Scorer, ranking: Sequence[Ranked]) -> tuple[ServedLabel, ...]:
    """Return how much utility the first configuration of a ranking keeps for each of several
    labels.

    Each label is also compared with the configuration of the ranking that keeps most for this label
    alone. The result is empty if the first entry is not admissible or is a record-level release.
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
    """Return notes on those labels that keep little utility, have missing values, or use another
    measure than requested.
    """
    notes = [note for task in tasks_of(scorer) for note in task.notes]
    notes += [
        f"{counted(missing, 'row without a value counts', 'rows without a value count')} for privacy but "
        f"not for scores of {task.column}"
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
