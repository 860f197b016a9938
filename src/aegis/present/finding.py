"""Describe the best entry of an advice in plain words: its utility (also for each of several labels,
as a table), the masks of its columns, and the proof.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aegis.words import MOST_NAMED, alike, counted, joined, percent, predicted, short, unquoted

if TYPE_CHECKING:
    from aegis.advisor import Advice, Ranked
    from aegis.advisor.figures import SearchFigures
    from aegis.advisor.scores import AttributeScore
    from aegis.advisor.several import ServedLabel
    from aegis.advisor.utility import UtilityFigure
    from aegis.measures import Measure

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
        """Return the figures of one of several labels: on the released rows if these were measured."""
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
    """Return a sentence, without its full stop, on the utility kept for each label, the smallest
    first.
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
    """Return how many percentage points more of a label's utility could be kept if it were the only
    label; empty if hardly any.
    """
    if line.price is None or line.price < 0.1:
        return ""
    return f" ({line.price:.1f} points less than if it were the only label)"


def _headline(figure: UtilityFigure) -> str:
    """Return a sentence, without its full stop, on the utility for one label: the metric that
    models are expected to reach if the measure is one, otherwise the scores.
    """
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
    explained = percent(100 * max(figure.value, 0.0))
    reference = percent(100 * max(figure.reference, 0.0))
    return (
        f"The masks explain about {explained} of the variance of the rounded number, of {reference} "
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


UNCHANGED, DROPPED = "identity", "suppress"
IN_WORDS = {UNCHANGED: "unchanged", DROPPED: "suppressed"}
"""Masks for which texts use another word than policies."""
_NAMED = 2
"""Largest number of columns that a sentence names."""
SERVED = {
    "share-kept(mean)": "the predictive value for a label, on average",
    "share-kept(worst)": "the predictive value for the label that loses most",
}
"""For each measure of several labels, a description of the utility of which it states the share
that is kept.
"""
TITLES = {
    "AUC": "Expected AUC",
    "accuracy": "Expected accuracy",
    "nats": "Expected log loss",
    "R2": "Expected R2",
}
"""The title of the figure, by the unit of its measure."""


@dataclass(frozen=True)
class Finding:
    """Texts about the best entry of an advice, which are the same in the terminal and on all pages.

    Attributes
    ----------
    title, figure
        The configuration with its utility, and its score with the score of the table to which it is
        compared, and the doubt.
    doubt
        Why an expected metric may be chance; empty if it is not.
    released
        The number of released rows, and the smallest class size.
    proof
        The number of combinations or configurations with which the entry was compared, and whether
        it is proven to be the best.
    changed
        The columns whose values change: the name, the mask, and the loss in percent if only this
        column is masked (None if unknown, or if the whole release loses less).
    dropped, unchanged
        The columns in which every value is suppressed, and the columns that do not change.
    """

    title: str
    figure: str
    doubt: str
    released: str
    proof: str
    changed: tuple[tuple[str, str, float | None], ...]
    dropped: tuple[str, ...]
    unchanged: tuple[str, ...]

    @classmethod
    def of(cls, advice: Advice, best: Ranked) -> Finding:
        """Return the texts about one entry (`best`) of an advice, usually its first one."""
        figure, masks = advice.stated_utility(best), best.mask_texts
        doubt, expected = _doubt(advice), advice.expectation
        more = "" if expected is None or advice.labels else expected.may_be_more
        return cls(
            title=f"{best.name}{_share(advice, figure.utility_kept)}",
            figure=f"{_figure(advice, figure)}.{_least(figure)}{more and f' {more}'}{doubt and f' {doubt}'}",
            doubt=doubt,
            released=f"{_released(best, advice.summary['rows'], persons='person' in advice.policy)}.",
            proof=_proof(advice),
            changed=tuple(
                (name, mask, _lost_alone(advice, name, figure))
                for name, mask in masks.items()
                if mask not in (UNCHANGED, DROPPED)
            ),
            dropped=tuple(name for name in masks if masks[name] == DROPPED),
            unchanged=tuple(name for name in masks if masks[name] == UNCHANGED),
        )


_TENTH = 0.1
"""The last digit of a percentage that people see."""


def _lost_alone(advice: Advice, name: str, figure: UtilityFigure) -> float | None:
    """Return the loss in percent if only one column is masked; None if it is unknown, or larger
    than the loss of the whole release (`figure`): other masks, or the rows that the rule
    suppresses, can make up for it, and the text would contradict the share that the release keeps.
    """
    lost, release_kept = advice.share_lost(name), figure.utility_kept
    if lost is None or release_kept is None:
        return lost
    return lost if lost <= 100.0 - release_kept + _TENTH / 2 else None


def why_above_release(advice: Advice, best: Ranked) -> str:
    """Return a sentence that explains why a single mask of an entry (`best`) loses more than the
    whole release; empty if none does.
    """
    figure = advice.stated_utility(best)
    above = [
        name
        for name in advice.lost_alone
        if advice.share_lost(name) is not None and _lost_alone(advice, name, figure) is None
    ]
    if not above:
        return ""
    return (
        f"{joined(above, MOST_NAMED)} alone {'loses' if len(above) == 1 else 'lose'} more than the whole "
        "release: this loss counts all rows, also those that the release suppresses, and other masks "
        "can make up for it, because models learn fewer values better."
    )


LISTED = 60
"""Largest number of attributes in tables and charts: those that predict most by themselves."""


def strongest(attributes: Mapping[str, AttributeScore], measure: Measure) -> list[str]:
    """Return at most `LISTED` attributes that predict most by themselves, unmasked, in the order of
    the policy.
    """
    if len(attributes) <= LISTED:
        return list(attributes)
    sign = measure.direction.sign
    telling = sorted(attributes, key=lambda name: -sign * attributes[name].unmasked)
    chosen = set(telling[:LISTED])
    return [name for name in attributes if name in chosen]


def mask_shown(mask: object) -> str:
    """Return a mask as text for people. It is written as in a policy, except for the masks in
    `IN_WORDS`.

    Examples
    --------
    >>> from aegis.present import mask_shown
    >>> mask_shown("identity"), mask_shown("suppress"), mask_shown("level(1)")
    ('unchanged', 'suppressed', 'level(1)')
    """
    return IN_WORDS.get(str(mask), str(mask))


_BELOW, _FROM = re.compile(r"\]-inf, (.+)\["), re.compile(r"\[(.+), inf\[")
"""A value that masks with intervals show: an interval without a lower or without an upper end."""


def value_shown(value: object) -> object:
    """Return a masked value as people read it. Released files have the masked value itself.

    Examples
    --------
    >>> from aegis.present import value_shown
    >>> value_shown("]-inf, 27["), value_shown("[55, inf["), value_shown("[27, 55["), value_shown(27)
    ('below 27', '55 or more', '[27, 55[', 27)
    """
    text = str(value)
    if below := _BELOW.fullmatch(text):
        return f"below {below[1]}"
    least = _FROM.fullmatch(text)
    return value if least is None else f"{least[1]} or more"


def _figure(advice: Advice, figure: UtilityFigure) -> str:
    """Return the utility of the best entry as text: the score or, with several labels, the share
    kept for each.
    """
    if advice.labels:
        return labels_kept(advice)
    return advice.headline or score_words(advice.summary, figure)


def ranked_words(advice: Advice) -> str:
    """Return how many candidates were ranked, such as "20 configurations and 1 record-level release"."""
    releases = sum(ranked.method is not None for ranked in advice.ranking)
    masks = counted(len(advice.ranking) - releases, advice.ranked_things)
    return f"{masks} and {counted(releases, 'record-level release')}" if releases else masks


def meeting_words(advice: Advice, joint: str = "") -> str:
    """Return how many ranked entries meet the rule, such as "3 meet the rule"; `joint` stands after
    the number.
    """
    meeting, singular, plural = advice.admissible_count, "is known to meet", "are known to meet"
    if advice.verdicts_known:
        singular, plural = "meets", "meet"
    elif advice.probable_count is not None:
        meeting, singular, plural = advice.probable_count, "probably meets", "probably meet"
    return f"{meeting:,}{joint} {singular if meeting == 1 else plural} the rule"


def _share(advice: Advice, percentage: float | None) -> str:
    if advice.by_chance:
        clause = (
            "masks so much that what is left" if advice.predicts_unmasked else "is of a table that"
        )
        return f" {clause} may predict by chance only"
    if percentage is None:
        return ""
    what = utility_words(advice.measure, predicted(advice.summary))
    if advice.estimated is None:
        return f" keeps {percent(percentage)} of {what}"
    error = advice.estimated.share_error
    if error is None:
        return ": the protected summary does not tell how much it keeps"
    margin = f"{error:.0f}" if error >= 0.95 else f"{max(error, 0.1):.1f}"
    return f" keeps {percent(percentage)} (± {margin}) of what the protected summary shows"


def utility_words(measure: str, label: str | None) -> str:
    """Return the kind of utility of which a measure (by its name) states the share that is kept.
    `label` names the columns that models predict; None or empty: there are none.

    Examples
    --------
    >>> utility_words("held-out-auc", "income")
    'the predictive value above chance'
    """
    from aegis.measures import MEASURES, Need  # loads NumPy, which no help needs

    if measure in SERVED:
        return SERVED[measure]
    if measure in MEASURES and Need.COLUMNS in MEASURES.get(measure).needs:
        return "the predictive value of each column for the others"
    return "the predictive value above chance" if label else "the association among the columns"


def _doubt(advice: Advice) -> str:
    """Return sentences on why models may not reach the expected metric. They name no class and no
    exact count, because the pages that show them may be published.
    """
    from aegis.advisor.advice import class_of_few_rows  # loads NumPy, which no help needs

    few, lost = class_of_few_rows(advice), ""
    if advice.expectation is not None and advice.expectation.lost_classes:
        label = advice.summary["label"]
        lost = f"The release suppresses all rows of a class of {label}, so no model can learn this class."
    few_rows = "" if few is None else f"{unquoted(few)}, so this figure is uncertain."
    return " ".join(filter(None, (lost, few_rows[:1].upper() + few_rows[1:])))


def _least(figure: UtilityFigure) -> str:
    """Return the columns that others predict worst after masking; empty if the measure predicts
    none.
    """
    shares = {
        name: column.kept
        for name, column in figure.columns.items()
        if not column.left_out and column.kept is not None
    }
    least = sorted(shares, key=lambda name: (shares[name], name))[:_NAMED]
    named = ", ".join(f"{name} ({percent(shares[name])} kept)" for name in least)
    return f" Predictability falls most for {named}." if least else ""


def _released(best: Ranked, rows: int, *, persons: bool) -> str:
    """Return how many of `rows` rows (or persons) are released, or why this is unknown."""
    if best.suppressed_rows is not None:
        text = f"It releases {rows - best.suppressed_rows:,} of {rows:,} rows"
        smallest, unit = best.smallest_class, " persons" if persons else ""
        return (
            f"{text}, each in a class of at least {smallest:,}{unit}"
            if (smallest or 0) > 1
            else text
        )
    if best.admissible:
        return "The owner of the table states that it meets the rule"
    if best.probable is None:
        return "It is not known yet whether it meets the rule"
    says = "It probably meets" if best.probable else "It is doubtful whether it meets"
    return f"{says} the rule. Only the owner of the table can check this"


def _proof(advice: Advice) -> str:
    """Return with how many configurations the best entry was compared, and what is proven."""
    from aegis.advisor.figures import FirstByMasking  # loads NumPy, which no help needs

    search = advice.search
    among = f"{counted(advice.combinations, 'combination')} of masks"
    if search is not None and advice.combinations == 1:
        return "The policy allows no other combination of masks."
    if advice.by_release:
        best = "proven best" if search is not None and search.optimal else "best of those tried"
        return (
            f"One of the {among} scores better{_objective(advice)} on all rows ({best}), but its "
            "release loses rows and so keeps less."
        )
    chosen, first = "", advice.preferred
    if isinstance(first, FirstByMasking):
        chosen = (
            f" Of those found that are as good, it is the one that masks {first.least_or_most}."
        )
    if search is None:
        return _ranked_among(advice, among) + chosen
    if advice.optimal and chosen:
        return f"Proven: none of the {among} scores measurably better.{chosen}"
    if advice.optimal:
        return f"None of the {among} does better{_objective(advice)}{_ranked_on(advice)}: proven."
    best = "about as good as the best" if chosen else "the best"
    possible = possible_words(search, _ranked_on(advice), is_best=not chosen)
    return f"It is {best} found among {among}. {possible}{chosen}"


def _ranked_among(advice: Advice, among: str) -> str:
    """Return a text on how many configurations were ranked; `among` names all combinations."""
    if advice.optimal:
        return f"None of the {among} does better{_ranked_on(advice)}: proven."
    if len(advice.ranking) == 1 and not advice.masked_tables:
        return f"No other configuration was ranked; there are {among}."
    best = "the best" if advice.preferred is None else "about as good as the best"
    if not (advice.verdicts_known or advice.probable_count):
        return f"It is {best} of {ranked_words(advice)} that were ranked, of {among}."
    best = f"It is {best} of {meeting_words(advice, ' that')}"
    if advice.masked_tables:
        return f"{best}, among {ranked_words(advice)}."
    return f"{best}, among {ranked_words(advice)} that were ranked; there are {among}."


def _objective(advice: Advice) -> str:
    """Return a text that names the objective of the search; empty if it is the measure of the
    advice.
    """
    search = advice.search
    same = search is None or search.objective == advice.measure
    return "" if same or search is None else f" by {measure_words(search.objective)}"


def _ranked_on(advice: Advice) -> str:
    """Return " on all rows, before any is suppressed" if the search compared configurations on
    these; empty if no row is suppressed, or if the utility next to it is also measured on all rows.
    """
    best, figure = advice.best, advice.utility
    if best is None or figure is None or not best.suppressed_rows or figure.rows == "all":
        return ""
    return " on all rows, before any is suppressed"


def possible_words(search: SearchFigures, ranked_on: str = "", *, is_best: bool = True) -> str:
    """Return sentences on the score that another combination could reach, by the bound of the
    search. They follow a sentence on a configuration, and `is_best` tells whether it is the best
    that was found. They state scores of the objective: a percentage would stand next to the
    percentage of utility kept, and would mean something else.
    """
    if not search.tells_masks_apart:
        return "Scores cannot distinguish masks on this table."
    if search.best is None or search.bound is None or not search.gap or says_nothing(search):
        return "Better ones may exist."
    measure = measure_words(search.objective)
    best, bound = alike(search.best, search.bound)
    if best == bound:
        return f"No other one is noticeably better by {measure}{ranked_on} ({best})."
    limit = "at most" if search.bound > search.best else "no less than"
    score = f"Its {measure} is {best}" if is_best else f"The best one has {measure} {best}"
    return f"{score}{ranked_on}. Another one could reach {limit} {bound}."


def says_nothing(search: SearchFigures) -> bool:
    """Return whether the bound of the search is the highest value that its measure can have."""
    from aegis.measures import MEASURES  # loads NumPy, which no help needs

    if search.bound is None or search.objective not in MEASURES:
        return False
    measure = MEASURES.get(search.objective)
    most_one = measure.range.endswith((".. 1", "to 1")) or measure.range.startswith("at most 1;")
    return most_one and measure.direction.sign > 0 and search.bound > 1 - 5e-5


def measure_words(measure: str) -> str:
    """Return the name of a measure as people read it: its title for a measure of several labels,
    otherwise its name.

    Examples
    --------
    >>> measure_words("share-kept(mean)"), measure_words("held-out-auc")
    ('mean share kept', 'held-out-auc')
    """
    from aegis.measures import MEASURES, SHARE_KEPT  # loads NumPy, which no help needs

    return MEASURES.get(measure).title.lower() if measure.startswith(SHARE_KEPT) else measure


@dataclass(frozen=True)
class ExpectedFigure:
    """The metric that models trained on the best release are expected to reach.

    Attributes
    ----------
    title, value
        The name and the value of the metric.
    note
        A text: how far trained models usually deviate from the value, the metric of the unmasked
        table, for a numeric label the prediction errors, and why the value may be chance.
    """

    title: str
    value: str
    note: str

    @classmethod
    def of(cls, advice: Advice) -> ExpectedFigure | None:
        """Return the figure of an advice; None if no metric is expected."""
        from aegis.measures import MEASURES  # loads NumPy, which no help needs

        figure = advice.expectation
        title = None if figure is None else TITLES.get(MEASURES.get(figure.measure).unit)
        if figure is None or title is None:
            return None
        reference = f"{figure.reference:.{figure.digits}f} {figure.reference_name.short}"
        details = f"of models{figure.plus_minus}; {reference}{figure.errors}{figure.why_better}"
        return cls(
            title=title,
            value=f"{figure.value:.{figure.digits}f}",
            note="; ".join(filter(None, (details, _doubt(advice).removesuffix(".")))),
        )
