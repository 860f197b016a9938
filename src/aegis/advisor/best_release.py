"""Recommend a release that keeps more predictive value if suppression makes the first choice worse.

A ranking compares configurations on all rows, but a consumer receives the released rows. If the
rule suppresses the rows that make a configuration good, such as all rows of a class of the label,
then a release that suppresses fewer rows may predict more.
"""

from __future__ import annotations

from collections.abc import Callable

from aegis.advisor.confidence import tie_margin
from aegis.advisor.figures import FirstByRelease
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.released import ReleasedRows, release_figure
from aegis.advisor.scores import utility_kept
from aegis.advisor.scoring import Choice, Scorer
from aegis.advisor.utility import Rows, UtilityFigure
from aegis.measures import Measure


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
