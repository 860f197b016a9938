"""Warn if a release that meets the rule may be of little use."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from aegis.advisor.advice import Advice
from aegis.advisor.later import changed, later
from aegis.advisor.ranked import Ranked
from aegis.advisor.scoring import Scorer
from aegis.masks import Suppress
from aegis.measures import MEASURES, Measure, Merit
from aegis.words import in_sentence, predicted

WORTHLESS = 0.05
"""Percent of the unmasked utility below which a release counts as useless."""
FEWEST = 25
"""Smallest number of rows of a class for which the score of a model is not considered chance."""
RARE = 0.1
"""Share of the labelled rows below which a class counts as rare."""
COMPARED = 10
"""Number of configurations to compare, starting with the best."""
APART = 0.01
"""Smallest difference in AUC from which two metrics count as disagreeing."""
ALIKE = 0.005
"""Largest difference in accuracy up to which two releases count as equal."""


def caveats_of(advice: Advice) -> tuple[str, ...]:
    """Return the reasons why the best release may be less useful than its score suggests, as
    sentences.
    """
    return (*_worthless(advice), *_rare_class(advice), *_few_rows(advice))


def _rarest(advice: Advice) -> tuple[str, float, float]:
    """Return the class of the label with the fewest rows, the number of its rows, and their share.
    If the label has fewer than two classes, the number is infinite.
    """
    rows = {name: n for name, n in advice.summary.get("classes", {}).items() if n > 0}
    if len(rows) < 2:
        return "", math.inf, math.inf
    name = min(rows, key=rows.__getitem__)
    return name, rows[name], rows[name] / sum(rows.values())


def _few_rows(advice: Advice) -> tuple[str, ...]:
    """Return a warning if a label class has too few rows to predict the metric of trained models."""
    name, rows, _ = _rarest(advice)
    if advice.expectation is None or rows >= FEWEST:
        return ()
    return (
        f"{advice.summary['label']} = {in_sentence(name)} has {rows:,.0f} {'row' if rows == 1 else 'rows'} only: "
        "the expected metric of models may be chance, even if its standard error is small. "
        "Merge this class with another one, or leave out its rows",
    )


def _rare_class(advice: Advice) -> tuple[str, ...]:
    """Return a warning if a class is rare and the score weights rows, not classes.

    A model that never predicts a rare class is nearly always right. So releases may have the same
    accuracy, although they predict the class differently well (AUC).
    """
    name, _, share = _rarest(advice)
    if share >= RARE or MEASURES.get(advice.measure).unit == "AUC":
        return ()  # of other merits `disagreement` says more
    return (
        f"only {share:.1%} of the labelled rows are {advice.summary['label']} = {name}: such a class "
        f"hardly affects accuracy, and {advice.measure} weights rows, not classes. Compare with the "
        "ranking by --measure held-out-auc",
    )


def _worthless(advice: Advice) -> tuple[str, ...]:
    """Return a warning if nothing in the release predicts the label."""
    best = advice.best
    label = predicted(advice.summary)
    subject, use = ("each other", "") if not label else (label, f" to predict {label} from")
    if best is None or not best.attributes:
        return ()
    if best.utility_kept is None:
        return (
            f"by {advice.measure} the attributes do not predict {subject} even unmasked, so the "
            "ranking cannot show how much is kept",
        )
    if _hides_all(best):
        return (
            f"the recommended {best.name} suppresses every scored attribute, so nothing is "
            f"left{use}. Allow more suppressed rows, a weaker rule, or masks between identity and "
            "suppress",
        )
    if advice.by_chance:
        return (
            f"the score of the recommended {best.name} is within two standard errors of no utility: "
            f"that its attributes predict {subject} may be chance",
        )
    if best.utility_kept < WORTHLESS:
        return (
            f"the recommended {best.name} has no utility left: its attributes do not predict {subject}",
        )
    return ()


def with_caveats(advice: Advice, told: tuple[str, ...] = ()) -> Advice:
    """Return a copy of the advice whose warnings include the reasons why the best release may be
    less useful than its score suggests.

    `told` lists such reasons that an earlier call added for another best release; they are removed.
    """

    def warnings() -> tuple[str, ...]:
        others = tuple(text for text in advice.warnings if text not in told)
        return (*others, *caveats_of(advice))

    return changed(advice, warnings=later(warnings))


def with_first(advice: Advice, first: Callable[[], Sequence[str]]) -> Advice:
    """Return a copy of the advice whose warnings begin with those that `first` returns. It is
    called when somebody first reads the warnings.
    """
    return changed(advice, warnings=later(lambda: (*first(), *advice.warnings)))


def _hides_all(ranked: Ranked) -> bool:
    masks = ranked.configuration.masks
    return ranked.method is None and all(
        isinstance(masks[name], Suppress) for name in ranked.attributes
    )


def disagreement(ranking: Sequence[Ranked], scorer: Scorer, measure: Measure) -> tuple[str, ...]:
    """Return a warning if a class is rare and the AUC disagrees with the metric of the ranking.

    Aegis compares the first configuration with the one that has the largest expected AUC among the
    best ones. Aegis warns only if the measure is a model metric other than the AUC, and a class is
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
