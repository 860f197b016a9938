"""What models are expected to reach with a release, in a unit that people know.

A score such as a trace orders configurations well and tells a reader little. So the best
configuration of an advice is also given its expected AUC (`held-out-auc`) beside that of the
unmasked table, whichever measure ranked; where the measure is itself a figure of merit, that one
is told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from aegis.advisor.confidence import jackknife, least_error, standard_errors
from aegis.advisor.default import out_of_reach
from aegis.advisor.ranked import Ranked
from aegis.advisor.scoring import Scorer
from aegis.measures import MEASURES, Measure, Merit

IN_WORDS = {"AUC": "AUC", "accuracy": "an accuracy of", "nats": "a log loss of"}
"""What a sentence calls a figure of merit, by the unit of its measure."""


@dataclass(frozen=True)
class Expectation:
    """What models are expected to reach on rows that they were not fitted to.

    Attributes
    ----------
    configuration
        Name of what is released.
    measure
        The figure of merit, such as `held-out-auc`.
    score
        What is expected with the release.
    unmasked
        What is expected of the unmasked table, or of one that is coarsened where that is better.
    stderr
        Standard error of the score; None where the summary holds too few folds.
    """

    configuration: str
    measure: str
    score: float
    unmasked: float
    stderr: float | None

    def words(self, label_rows: Sequence[float] | None, before: str = "unmasked") -> str:
        """Return it as a headline.

        Parameters
        ----------
        label_rows
            Labelled rows of each class: what a constant prediction reaches depends on them.
        before
            What the release is held against.

        Examples
        --------
        >>> from aegis.advisor.expectation import Expectation
        >>> Expectation("mild", "held-out-auc", 0.9182, 0.9213, 0.0018).words([700, 300])
        'Models are expected to reach AUC 0.918 of 0.921 unmasked (+-0.002)'
        """
        measure, error = MEASURES.get(self.measure), self.stderr
        # One digit of the error is worth showing.
        digits = min(max(2, math.ceil(-math.log10(error))), 4) if error else 2
        sign = measure.direction.sign
        whole = sign * max(sign * self.unmasked, sign * self.score)
        said = (
            f"Models are expected to reach {IN_WORDS[measure.unit]} {self.score:.{digits}f}"
            f" of {whole:.{digits}f} {before}"
        )
        if error is None:
            return said
        gain = sign * (whole - measure.worst(label_rows))
        small = ": the table is too small to tell masks apart" if gain < 2 * error else ""
        return f"{said} (+-{error:.{digits}f}){small}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


def expectation_of(
    scorer: Scorer, measure: Measure, ranking: Sequence[Ranked]
) -> Expectation | None:
    """Return the expected AUC of the first configuration of a ranking.

    None where the measure is a figure of merit, so that the score says it; where nothing admissible
    comes first; where there is no label with two classes, or the summary holds no folds; and where
    the table has so many values and classes that it would take longer than the ranking.
    """
    best = next(
        (ranked for ranked in ranking[:1] if ranked.admissible and ranked.method is None), None
    )
    if best is None or measure.unit in IN_WORDS or out_of_reach(scorer.summary):
        return None
    if sum(rows > 0 for rows in scorer.label_rows) < 2 or scorer.parts < 2:
        return None
    area = MEASURES.get(Merit.AUC.measure)
    choice = scorer.choose(best.configuration)
    without = jackknife(scorer, [choice], area)
    score = scorer.value(choice, area)
    least = least_error(area, score, scorer.label_rows)
    return Expectation(
        configuration=best.name,
        measure=area.name,
        score=score,
        unmasked=scorer.reference(area),
        stderr=None if without is None else max(float(standard_errors(without)[0]), least),
    )
