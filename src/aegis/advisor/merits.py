"""Warn if the best configuration by one model metric is poor by another metric."""

from __future__ import annotations

from collections.abc import Sequence

from aegis.advisor.ranked import Ranked
from aegis.advisor.scoring import Scorer
from aegis.measures import MEASURES, Measure, Merit

COMPARED = 10
"""Number of configurations to compare, starting with the best."""
APART = 0.01
"""Smallest difference in AUC from which two metrics count as disagreeing."""
ALIKE = 0.005
"""Largest difference in accuracy up to which two releases count as equal."""
RARE = 0.1
"""Share of the labelled rows below which a class counts as rare."""


def disagreement(ranking: Sequence[Ranked], scorer: Scorer, measure: Measure) -> tuple[str, ...]:
    """Return a warning if a class is rare and the AUC disagrees with the metric of the ranking.

    Aegis compares the first configuration with the one that has the largest expected AUC among the
    best ones. There is no warning if the measure is the AUC or no model metric, or if no class is
    rare.

    Parameters
    ----------
    ranking
        Configurations, best first; record-level releases are skipped.
    scorer, measure
        The scorer and the measure that scored them.
    """
    label_rows = [rows for rows in scorer.label_rows if rows > 0]
    if measure.constant is None or measure.unit == "AUC" or len(label_rows) < 2:
        return ()
    if min(label_rows) / sum(label_rows) >= RARE:
        return ()
    able = [ranked for ranked in ranking if ranked.admissible and ranked.method is None][:COMPARED]
    if len(able) < 2:
        return ()
    choices = [scorer.choose(ranked.configuration) for ranked in able]
    _, _, models = measure.name.partition("(")
    suffix = f"({models}" if models else ""
    auc, accuracy = (MEASURES.get(merit.measure + suffix) for merit in (Merit.AUC, Merit.ACCURACY))
    areas = [scorer.value(choice, auc) for choice in choices]
    best = max(range(len(able)), key=areas.__getitem__)
    if areas[best] - areas[0] < APART:
        return ()
    right = [scorer.value(choices[place], accuracy) for place in (0, best)]
    alike = "equal" if abs(right[0] - right[1]) <= ALIKE else "close"
    first, other = able[0].name, able[best].name
    return (
        f"the model metrics disagree, because a class is rare ({min(label_rows) / sum(label_rows):.1%}): "
        f"by accuracy {first} and {other} are {alike} ({right[0]:.3f} and {right[1]:.3f}), by AUC they "
        f"differ ({areas[0]:.3f} and {areas[best]:.3f}). To rank by AUC, give --metric auc",
    )
