"""Describe the best entry of an advice in plain words: its utility, the masks of its columns, and
the proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aegis.present.labels import labels_kept, score_words
from aegis.words import counted, percent, predicted

if TYPE_CHECKING:
    from aegis.advisor import Advice, Ranked
    from aegis.advisor.figures import SearchFigures
    from aegis.advisor.utility import UtilityFigure

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
        compared.
    released
        The number of released rows, and the smallest class size.
    proof
        The number of combinations or configurations with which the entry was compared, and whether
        it is proven to be the best.
    changed
        The columns whose values change: the name, the mask, and the loss in percent if only this
        column is masked (None if unknown).
    dropped, unchanged
        The columns in which every value is suppressed, and the columns that do not change.
    """

    title: str
    figure: str
    released: str
    proof: str
    changed: tuple[tuple[str, str, float | None], ...]
    dropped: tuple[str, ...]
    unchanged: tuple[str, ...]

    @classmethod
    def of(cls, advice: Advice, best: Ranked) -> Finding:
        """Return the texts about one entry of an advice, usually the best."""
        figure, masks = advice.stated_utility(best), best.shown
        return cls(
            title=f"{best.name}{_share(advice, figure.utility_kept)}",
            figure=f"{_figure(advice, figure)}.{_least(figure)}",
            released=f"{_released(best, advice.summary['rows'], persons='person' in advice.policy)}.",
            proof=_proof(advice),
            changed=tuple(
                (name, mask, advice.share_lost(name) if advice.lost_alone else None)
                for name, mask in masks.items()
                if mask not in (UNCHANGED, DROPPED)
            ),
            dropped=tuple(name for name in masks if masks[name] == DROPPED),
            unchanged=tuple(name for name in masks if masks[name] == UNCHANGED),
        )


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


def _figure(advice: Advice, figure: UtilityFigure) -> str:
    """Return the utility of the best entry as text: the score by the measure or, with several
    labels, the share kept for each label.
    """
    if advice.labels:
        return labels_kept(advice)
    return advice.headline or score_words(advice.summary, figure)


def ranked_words(advice: Advice) -> str:
    """Return how many candidates were ranked, such as "20 configurations and 1 record-level release"."""
    releases = sum(ranked.method is not None for ranked in advice.ranking)
    masks = counted(len(advice.ranking) - releases, advice.ranked_things)
    return f"{masks} and {counted(releases, 'record-level release')}" if releases else masks


def _share(advice: Advice, percentage: float | None) -> str:
    from aegis.measures import MEASURES, Need  # loads NumPy, which no help needs

    what = (
        "predictive value above chance"
        if predicted(advice.summary)
        else "association among the columns"
    )
    if Need.COLUMNS in MEASURES.get(advice.measure).needs:
        what = "predictive value of each column for the others"
    if advice.by_chance:
        left = (
            "masks so much that what is left" if advice.predicts_unmasked else "is of a table that"
        )
        return f" {left} may predict by chance only"
    if advice.labels and percentage is not None:
        return f" keeps {percent(percentage)} of {SERVED[advice.measure]}"
    return "" if percentage is None else f" keeps {percent(percentage)} of the {what}"


def _least(figure: UtilityFigure) -> str:
    """Return a text with the columns that the other columns predict worst after masking; empty if
    the measure predicts no columns.
    """
    shares = {name: own.kept for name, own in figure.columns.items() if not own.left_out}
    known = {name: share for name, share in shares.items() if share is not None}
    least = sorted(known, key=lambda name: (known[name], name))[:_NAMED]
    named = ", ".join(f"{name} ({percent(known[name])} kept)" for name in least)
    return f" Predictability falls most for {named}." if least else ""


def _released(best: Ranked, rows: int, *, persons: bool) -> str:
    """Return a text on how many of `rows` rows are released, or why this is unknown. If `persons`
    is True, the rule counts persons, and so does the text.
    """
    if best.suppressed_rows is not None:
        said = f"It releases {rows - best.suppressed_rows:,} of {rows:,} rows"
        smallest, unit = best.smallest_class, " persons" if persons else ""
        return f"{said}, each in a class of at least {smallest:,}{unit}" if smallest else said
    if best.admissible:
        return "The owner of the table states that it meets the rule"
    return "It is not known yet whether it meets the rule"


def _proof(advice: Advice) -> str:
    """Return a text on how many configurations the best entry was compared with, and on what is
    proven.
    """
    search = advice.search
    among = f"{counted(advice.combinations, 'combination')} of masks"
    if search is not None and advice.combinations == 1:
        return "The policy allows no other combination of masks."
    if search is not None and search.preferred:
        how = "most" if "masks most" in search.preferred else "least"  # as you prefer
        chosen = f"Of those found that are as good, it is the one that masks {how}"
        if advice.optimal:
            return (
                f"None of the {among} does better by more than Aegis can measure: proven. {chosen}."
            )
        return (
            f"It is about as good as the best found among {among}; {_possible(search)}. {chosen}."
        )
    if advice.optimal:
        return f"None of the {among} does better{_objective(advice)}{_ranked_on(advice)}: proven."
    if search is not None:
        return f"It is the best found among {among}; {_possible(search)}."
    if len(advice.ranking) == 1 and not advice.masked_tables:
        return f"No other configuration was ranked; there are {among}."
    if not advice.verdicts_known:
        return f"It is the best of {ranked_words(advice)} that were ranked, of {among}."
    best = f"It is the best of {advice.admissible_count:,} that meet the rule"
    if advice.masked_tables:
        return f"{best}, among {ranked_words(advice)}."
    return f"{best}, among {ranked_words(advice)} that were ranked; there are {among}."


def _objective(advice: Advice) -> str:
    """Return a text with the objective by which the search has its proof; empty if it is the
    measure of the advice.
    """
    search = advice.search
    same = search is None or search.objective == advice.measure
    return "" if same or search is None else f" by {search.objective}"


def _ranked_on(advice: Advice) -> str:
    """Return " on all rows, before any is suppressed", to be added to the sentence that says
    whether the configuration is proven to be the best. The text is empty if no row is suppressed,
    or if the displayed utility is also measured on all rows.
    """
    best, figure = advice.best, advice.utility
    if best is None or figure is None or not best.suppressed_rows or figure.rows == "all":
        return ""
    return " on all rows, before any is suppressed"


def _possible(search: SearchFigures) -> str:
    """Return a text on how much better another combination could be, by the bound of the search."""
    if search.gap is None or search.bound is None:
        return "better ones may exist"
    possible = percent(100 * search.gap)
    return f"{f'at most {possible}'.replace('at most <', 'less than')} better is possible"


@dataclass(frozen=True)
class ExpectedFigure:
    """The metric that models trained on the best release are expected to reach.

    Attributes
    ----------
    title, value
        The name and the value of the metric.
    note
        A text: how far trained models usually deviate from the value, the metric of the unmasked
        table, and for a numeric label the prediction errors.
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
        return cls(
            title=title,
            value=f"{figure.value:.{figure.digits}f}",
            note=f"of models{figure.plus_minus}; {reference}{figure.errors}{figure.why_better}",
        )
