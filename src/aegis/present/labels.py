"""Describe the utility that a release keeps for each of several labels, in words and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aegis.words import counted, percent, short

if TYPE_CHECKING:
    from aegis.advisor import Advice
    from aegis.advisor.served import ServedLabel
    from aegis.advisor.utility import UtilityFigure

NAMED = 5
"""Largest number of labels that a sentence names: those that lose the most."""


@dataclass(frozen=True)
class LabelLine:
    """The utility of the recommended configuration for one of several labels.

    Attributes
    ----------
    label, measure, weight
        The label's column, its measure, and its weight in the mean over labels.
    value, reference
        The score of the release, and the score of the unmasked table.
    utility_kept
        Percent of the utility that the release keeps; None if the unmasked table has no utility.
    alone
        Percent of the utility that the best configuration for this label alone would keep, on all
        rows.
    price
        How many percentage points this label loses, on all rows, because the configuration also
        serves other labels.
    proven
        Whether `alone` is proven to be the highest value that an admissible configuration reaches.
    headline
        A sentence without its full stop: the score that models are expected to reach, or the
        measure of the release and of the table. None if this was not measured on the released rows.
    """

    label: str
    measure: str
    weight: float
    value: float
    reference: float
    utility_kept: float | None
    alone: float | None
    price: float | None
    proven: bool
    headline: str | None

    @classmethod
    def of(cls, advice: Advice, served: ServedLabel) -> LabelLine:
        """Return the figures of one of several labels: on the released rows if these were measured,
        otherwise on all rows, as in `served`.
        """
        utility = None if advice.best is None else advice.best.utility
        figure = None if utility is None else utility.labels.get(served.label)
        value, reference, percentage = served.score, served.reference, served.utility_kept
        if figure is not None:
            value, reference, percentage = figure.value, figure.reference, figure.utility_kept
        return cls(
            label=served.label,
            measure=served.measure,
            weight=served.weight,
            value=value,
            reference=reference,
            utility_kept=percentage,
            alone=served.alone,
            price=served.price,
            proven=served.proven,
            headline=None if figure is None else _headline(figure),
        )


def label_lines(advice: Advice) -> tuple[LabelLine, ...]:
    """Return the figures of each of several labels under the best configuration; empty for one label."""
    return tuple(LabelLine.of(advice, served) for served in advice.labels)


def labels_kept(advice: Advice) -> str:
    """Return a sentence, without its full stop, on the utility kept for each label, with the
    smallest first.
    """
    lines = sorted(
        label_lines(advice), key=lambda line: (line.utility_kept is None, line.utility_kept or 0.0)
    )
    named = [
        f"{percent(line.utility_kept)} of {line.label}{_alone(line)}"
        for line in lines[:NAMED]
        if line.utility_kept is not None
    ]
    more = f", and a larger share of {len(lines) - NAMED:,} others" if len(lines) > NAMED else ""
    return f"It keeps {', '.join(named)}{more}"


def _alone(line: LabelLine) -> str:
    """Return a text on how much more utility of the label could be kept, on all rows, if it were
    the only label.
    """
    if line.price is None or line.price < 0.1:
        return ""
    return f" ({line.price:.1f} points less than if it were the only label)"


def _headline(figure: UtilityFigure) -> str:
    """Return the expected metric or the scores of one label as a sentence without its full stop."""
    from aegis.advisor.utility import IN_WORDS  # loads NumPy, which no help needs
    from aegis.measures import MEASURES

    in_words = MEASURES.get(figure.measure).unit in IN_WORDS
    return figure.expected(None) if in_words else figure.detail


def score_words(summary: Mapping[str, Any], figure: UtilityFigure) -> str:
    """Return a sentence, without its full stop, on the score of a release and the score of the
    table with which it is compared. `summary` describes the label.

    Examples
    --------
    >>> from aegis.advisor.utility import UtilityFigure
    >>> score_words({}, UtilityFigure("held-out-auc", 0.9081, 0.9169))
    'Held-out-auc 0.91 of 0.92 unmasked'
    >>> score_words({"label_rounded": ["0", "9"]}, UtilityFigure("held-out-target-coded", 0.02, 0.03))
    'The masks explain about 2.0 % of the variance of the rounded number, of 3.0 % unmasked'
    """
    if not summary.get("label_rounded"):
        return figure.detail[:1].upper() + figure.detail[1:]
    own, reference = (percent(100 * max(share, 0.0)) for share in (figure.value, figure.reference))
    return (
        f"The masks explain about {own} of the variance of the rounded number, of {reference} "
        f"{figure.reference_name.short}"
    )


def label_words(summary: Mapping[str, Any]) -> str:
    """Return a description of the label of a summary, such as "2 classes".

    Parameters
    ----------
    summary
        The result of `Summary.to_dict`, or of its equivalent for an estimated summary.

    Examples
    --------
    >>> label_words({"classes": {"no": 3, "yes": 2}})
    '2 classes'
    >>> label_words({"classes": {}, "label_number": {"mean": 1250.5, "deviation": 320.25}})
    'a mean of 1,250 and a standard deviation of 320.2'
    """
    if bounds := summary.get("label_rounded"):
        return f"a number, rounded at random to {bounds[0]} or {bounds[1]}"
    number = summary.get("label_number")
    if number is None:
        return counted(len(summary["classes"]), "class", "classes")
    return f"a mean of {short(number['mean'])} and a standard deviation of {short(number['deviation'])}"
