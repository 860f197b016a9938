"""Hold what a search returns besides its ranking: proof, binding requirements, Pareto front, and
the utility that is lost by each candidate mask if it is the only mask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aegis.advisor.scoring import Scorer, utility_kept
from aegis.advisor.several import scorer_of
from aegis.advisor.utility import Rows, UtilityFigure, measure_for
from aegis.policy import Configuration
from aegis.summary import Summary
from aegis.words import counted, finite, json_fields, jsonable

WORTHLESS = 0.05
"""Percent of the unmasked utility below which a release counts as useless."""
NOTHING = 5e-5
"""A gain smaller than this counts as no gain."""


@dataclass(frozen=True)
class ProvenList:
    """What a search has proven about its shortlist, the configurations that it scored one by one:
    it contains every admissible configuration with a value of `measure` above `least`.

    Attributes
    ----------
    measure
        The cheaper measure by which the list was selected, such as `adjusted-pillai`.
    configurations
        Number of configurations that were listed and scored.
    highest, least
        The highest value of the measure among admissible configurations, and the value above which
        the list is complete. `least` is None if every admissible configuration was scored.
    """

    measure: str
    configurations: int
    highest: float
    least: float | None

    @property
    def gap(self) -> float | None:
        """How far `least` is below `highest`, as a share of `highest`; None if there is no `least`."""
        if self.least is None or not self.highest:
            return None
        return (self.highest - self.least) / abs(self.highest)

    def words(self) -> str:
        """Return what is proven about the shortlist, as a sentence without its full stop.

        Examples
        --------
        >>> from aegis.advisor.figures import ProvenList
        >>> ProvenList("adjusted-pillai", 200, 0.4668, 0.4607).words()
        'every admissible configuration with adjusted-pillai above 0.4607 was checked (200 of them)'
        """
        least = "" if self.least is None else f" with {self.measure} above {self.least:.4f}"
        number = f"({self.configurations:,} of them)"
        return f"every admissible configuration{least} was checked {number}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and `gap` as JSON values."""
        return {**json_fields(self), "gap": self.gap}


@dataclass(frozen=True)
class SearchWork:
    """How large a search was, how much work it did, and how long it took.

    Attributes
    ----------
    combinations
        Number of combinations in the search space, without duplicates.
    nodes
        Number of boxes (sets of combinations) that the search split.
    checked
        Number of checks against the rule; for a protected summary, the number of scored
        configurations.
    seconds
        Seconds that the search itself took.
    rule_monotone
        Whether the whole rule can exclude boxes; if not, some criteria were checked for each
        configuration.
    """

    combinations: int
    nodes: int
    checked: int
    seconds: float
    rule_monotone: bool


@dataclass(frozen=True)
class FirstByRelease:
    """Two configurations of which the first one has a worse score on all rows, but a better
    release, because it suppresses fewer rows. The figures are the utility of the released rows.
    """

    score: float
    other_score: float
    figure: UtilityFigure
    other_figure: UtilityFigure
    suppressed_rows: int
    other_suppressed_rows: int

    def words(self) -> str:
        """Return why the first configuration comes first, as sentences without the last full stop."""
        by = self.figure.measure
        return (
            f"On all rows, another configuration scores {self.other_score:.4f} by {by}, and this one "
            f"{self.score:.4f}. But this one predicts more from the rows that it releases: "
            f"{_reached(self.figure, self.suppressed_rows)}. The other one would reach "
            f"{_reached(self.other_figure, self.other_suppressed_rows)}"
        )


def _reached(figure: UtilityFigure, suppressed_rows: int) -> str:
    """Return the value that a release reaches, and what it loses, as text."""
    lost = figure.lost_class_count
    without = f", and lose {counted(lost, 'class of the label', 'classes of the label')}"
    text = f"{figure.value:.4f}, with {counted(suppressed_rows, 'row')} suppressed"
    return f"{text}{without if lost else ''}"


@dataclass(frozen=True)
class FirstByMasking:
    """Two configurations that score about the same, of which the first one masks less (or more, if
    you prefer that).

    Attributes
    ----------
    prefer
        What you prefer: "least-masking" or "most-private".
    best, margin
        The best score, and how far below it a score may be and still count as equal.
    hidden, other_hidden
        How much the first configuration and the one with the best score mask, from 0 to 1.
    """

    prefer: str
    best: float
    margin: float
    hidden: float
    other_hidden: float

    @property
    def least_or_most(self) -> str:
        """Whether the first configuration masks "least" or "most"."""
        return "least" if self.prefer == "least-masking" else "most"

    def words(self) -> str:
        """Return why the first configuration comes first, as sentences without the last full stop."""
        equal = (
            "All scores"
            if math.isinf(self.margin)
            else f"Scores within {self.margin:.2g} of the highest, {self.best:.4f},"
        )
        return (
            f"{equal} count as equal. Of these we recommend the one that masks {self.least_or_most}: it hides "
            f"{100 * self.hidden:.3g} % of the attributes' entropy, the top scorer "
            f"{100 * self.other_hidden:.3g} %"
        )


@dataclass(frozen=True)
class SearchFigures:
    """The result of a search in figures: the best value, the bound on all other values, and the
    work.

    Attributes
    ----------
    objective
        The objective that the search maximised (or minimised, for losses).
    optimal
        Whether the best configuration is proven to be the best of all combinations.
    exact
        Whether an upper bound of the objective is known. If not, `notes` describes the search.
    best, bound
        The objective of the best configuration, and the best value that any configuration could
        still reach.
    gap
        The distance between `best` and `bound`, relative to `best`; 0 if the result is proven.
    work
        The size, the amount of work and the time of the search.
    notes
        Notes for the reader.
    stopped
        Why the search stopped early: "time limit" or "interrupt"; "verdicts" if a protected summary
        leaves open whether any combination meets the rule. None if the search is complete.
    tells_masks_apart
        Whether the unmasked table has any utility by the measure. If not, scores cannot compare
        masks.
    proven
        What is proven about the list of configurations that was scored, if the upper bound on the
        objective is too high to exclude configurations; else None.
    """

    objective: str
    optimal: bool
    exact: bool
    best: float | None
    bound: float | None
    gap: float | None
    work: SearchWork
    notes: tuple[str, ...] = ()
    stopped: str | None = None
    tells_masks_apart: bool = True
    proven: ProvenList | None = None

    @property
    def complete(self) -> bool:
        """Whether the search ran to its end. If a complete search has no result, no combination
        meets the rule. If a stopped search has no result, this proves nothing.
        """
        return self.stopped is None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values. Infinite figures become null."""
        flat: dict[str, Any] = {}
        for name, figure in json_fields(self).items():
            if name == "stopped":
                flat["complete"] = self.complete
            flat |= figure if name == "work" else {name: figure}
        figures: dict[str, Any] = finite(flat)
        return figures


@dataclass(frozen=True)
class FinerMask:
    """The next finer mask of one attribute, and why the best configuration does not have it.

    Attributes
    ----------
    attribute, current, mask
        The attribute, its mask in the best configuration, and the finer candidate.
    gain
        How much better the objective is with the finer mask.
    utility_kept
        Percent of the unmasked utility that would be kept; None if the unmasked utility is 0.
    smallest_class
        Number of rows of the smallest class before suppression.
    rows_failing, allowed_rows
        Rows in classes that would fail the rule, and rows that may be suppressed.
    violations
        The violated requirements as sentences; empty if the mask is admissible but not better.
    """

    attribute: str
    current: str
    mask: str
    gain: float
    utility_kept: float | None
    smallest_class: int
    rows_failing: int
    allowed_rows: int
    violations: tuple[str, ...]


@dataclass(frozen=True)
class Relaxation:
    """How much utility you would gain if you relaxed the rule by one step.

    Attributes
    ----------
    change
        The step, such as "k = 4 instead of 5".
    score
        The objective of the best configuration under the relaxed rule.
    gain
        How much better `score` is than the best score under the unchanged rule.
    utility_kept
        Percent of the unmasked utility that this configuration keeps; None if the unmasked utility
        is 0.
    proven
        Whether this configuration is proven to be the best.
    masks
        The new mask of each attribute whose mask differs from the first configuration.
    """

    change: str
    score: float
    gain: float
    utility_kept: float | None
    proven: bool
    masks: Mapping[str, str]

    @property
    def shows(self) -> bool:
        """Whether the gain is still above 0 after rounding to four decimals."""
        return abs(self.gain) >= NOTHING * max(1.0, abs(self.score))


@dataclass(frozen=True)
class Binding:
    """What keeps the best configuration from being finer: the requirements that finer masks
    violate, and how much utility a weaker rule would gain.
    """

    finer: tuple[FinerMask, ...]
    relaxations: tuple[Relaxation, ...]


@dataclass(frozen=True)
class FrontPoint:
    """The best configuration for one value of a parameter of the privacy rule.

    Attributes
    ----------
    value
        The parameter's value.
    score, utility_kept
        The measure of the best configuration, and the percent of utility that it keeps. None if no
        configuration is admissible, or none was found in time.
    configuration
        The masks of the best configuration; None if there is none.
    declared
        The masks of the best configuration as text, by attribute; empty if there is none.
    smallest_class, suppressed_rows
        Rows of the smallest equivalence class of its release, and the rows that the release
        suppresses; None if no class can be counted, so that only an estimate says whether it meets
        the rule.
    proven
        Whether this configuration is proven to be the best; False if it was chosen by its release.
    dominated
        Whether the release at a point with a stricter value keeps at least as much (or has as good an
        objective), so that this point is not on the Pareto front.
    objective
        The value of the search's objective; None if the objective is the measure.
    utility
        The utility of the release; None if it was not measured.
    """

    value: float
    score: float | None
    utility_kept: float | None
    configuration: Configuration | None
    declared: Mapping[str, str]
    smallest_class: int | None
    suppressed_rows: int | None
    proven: bool
    dominated: bool = False
    objective: float | None = None
    utility: UtilityFigure | None = None

    @property
    def reached(self) -> float | None:
        """The best value at this point: of the search's objective, or of the measure if that was
        optimised.
        """
        return self.score if self.objective is None else self.objective

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            **json_fields(self, "value", "score", "objective", "utility_kept"),
            "masks": None if self.configuration is None else self.configuration.spec(),
            **json_fields(self, "smallest_class", "suppressed_rows", "proven", "dominated"),
        }


_BY_ESTIMATE = (
    "Each configuration meets its rule by estimate. Only the owner of the table can check the rule."
)


@dataclass(frozen=True, repr=False)
class Front:
    """The Pareto front: the best utility for each of several values of a parameter of the privacy
    rule.

    Attributes
    ----------
    parameter
        The parameter that varies, such as `k`, `risk`, `l` or `suppression`.
    points
        One point per value, from the weakest to the strictest.
    knee
        The recommended value, where the curve bends most (its knee); None if the front is too
        short.
    weaker
        A sentence on the values that are left out because the rule of a summary's owner is
        stricter; empty if there are none.
    """

    parameter: str
    points: tuple[FrontPoint, ...]
    knee: float | None
    weaker: str = ""

    @property
    def visible_points(self) -> tuple[FrontPoint, ...]:
        """The points that keep something, and more than every point with a stricter rule."""
        return tuple(point for point in self.points if not self._why_not(point))

    @property
    def on(self) -> str:
        """The rows on which the utility of the shown points was measured, in words. From a summary,
        Aegis cannot count the rows that each release keeps.
        """
        figures = [point.utility for point in self.visible_points]
        if any(figure is None or figure.rows is Rows.ALL for figure in figures):
            return "all rows"
        return "the released rows"

    @property
    def by_estimate(self) -> bool:
        """Whether only an estimate says which configurations meet the rules."""
        return any(point.smallest_class is None for point in self.points)

    @property
    def left_out(self) -> tuple[str, ...]:
        """For the values whose points are not shown, sentences that say why.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> study.front("k=5,40000").left_out
        ('k = 40,000: no configuration meets the rule.',)
        """
        values: dict[str, list[str]] = {}
        for point in self.points:
            values.setdefault(self._why_not(point), []).append(f"{point.value:,g}")
        return tuple(
            f"{self.parameter} = {', '.join(named)}: {why}." for why, named in values.items() if why
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on how points were found to meet their rule, and which values are not shown."""
        first = (_BY_ESTIMATE if self.by_estimate else "", self.weaker)
        return (*filter(None, first), *self.left_out)

    def _why_not(self, point: FrontPoint) -> str:
        """Return why a point is not shown; empty if it is."""
        if point.score is None:
            if self.by_estimate:
                return "by estimate, no configuration meets the rule"
            none = "no configuration meets the rule"
            return none if point.proven else "no configuration was found in time"
        share = None if point.utility is None else point.utility_kept
        if share is not None and share < WORTHLESS:
            return "the best release keeps nothing"
        if point.dominated:
            return f"a stricter {self.parameter} keeps as much"
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return json_fields(self, "parameter", "knee", "weaker", "points")

    def __repr__(self) -> str:
        utility = ((point.value, point.utility_kept) for point in self.points)
        parts = (f"{value:g}: {'-' if k is None else f'{k:.1f} %'}" for value, k in utility)
        return f"Front({self.parameter}; utility kept {', '.join(parts)})"


@dataclass(frozen=True)
class MaskChange:
    """How much the score would change, by estimate, if one attribute of the best configuration had
    another mask. `stderr` covers only the noise that protects the counts; `tied` says that this
    noise leaves open which of the two masks is better.
    """

    attribute: str
    mask: str
    score: float
    change: float
    stderr: float
    tied: bool


@dataclass(frozen=True)
class EstimatedScores:
    """How Aegis estimated scores from protected counts (counts with noise that hides persons), and
    how close the scores of other configurations are to the best one.

    Attributes
    ----------
    estimator
        From which protected counts scores were estimated: `codes` if the counts also describe pairs
        of attributes, `tables` if there is only the table of each attribute with the label.
    changes
        The effect of replacing each mask of the best configuration; empty if there is no best
        configuration.
    share_error
        Twice the standard error of the share of utility that the best configuration keeps, in
        percentage points; None if the counts cannot tell this share.
    small_class_rows
        Estimated number of rows in classes that are too small for the rule, under the best
        configuration; None if the owner of the table states whether it meets the rule, or if the
        rule requires no size of classes.
    """

    estimator: str
    changes: tuple[MaskChange, ...] = ()
    share_error: float | None = None
    small_class_rows: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        figures = json_fields(self, "estimator", "share_error", "small_class_rows")
        return figures | {"what_if": jsonable(self.changes)}


@dataclass(frozen=True)
class ProxyFigures:
    """The results of small models that were trained on sampled rows under the best configurations.

    Attributes
    ----------
    models
        The models; figures are means over them.
    rows
        Number of sampled rows; all configurations use the same rows.
    splits
        Number of splits into training and test rows; figures are means over them.
    metric
        The metric: `roc_auc`, `accuracy` or `log_loss`.
    reached
        The metric of each configuration, by its name.
    """

    models: tuple[str, ...]
    rows: int
    splits: int
    metric: str
    reached: Mapping[str, float]

    @property
    def best(self) -> str | None:
        """The configuration on which the trained models were best."""
        sign = -1 if self.metric == "log_loss" else 1
        return max(self.reached, key=lambda name: sign * self.reached[name], default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {**json_fields(self), "best": self.best}

    def words(self) -> str:
        """Return the results of the trained models in one sentence."""
        results = ", ".join(f"{name} {value:.3f}" for name, value in self.reached.items())
        return (
            f"proxy: {' and '.join(self.models)} trained on {self.rows:,} rows of each finalist"
            f" ({self.splits} splits, mean {self.metric}): {results}. The models would choose {self.best};"
            " Aegis ranks by the measure"
        )


@dataclass(frozen=True)
class MaskCost:
    """How much utility is lost if one candidate, which shows `levels` values, and no other mask, is
    applied to the whole table. `utility_kept` is None if the unmasked utility is 0.
    """

    attribute: str
    mask: str
    levels: int
    score: float
    utility_kept: float | None

    @property
    def lost(self) -> float:
        """How many percent of the unmasked utility the mask costs, at least 0."""
        return 0.0 if self.utility_kept is None else max(0.0, 100.0 - self.utility_kept)


def mask_costs(
    summary: Summary, measure: str | None = None, *, scorer: Scorer | None = None
) -> tuple[MaskCost, ...]:
    """Return how much utility each candidate mask of each attribute costs, in the order of the
    policy; by default, by the measure that rankings use. All other attributes stay unmasked, so
    masking an attribute costs little if others carry the same information.
    """
    chosen, _ = measure_for(summary, measure)
    scorer = scorer or scorer_of(summary)
    unmasked_score = scorer.value(scorer.unmasked, chosen)
    costs = []
    for attribute in summary.attributes.values():
        for candidate in attribute.candidates:
            score = scorer.value({**scorer.unmasked, attribute.name: candidate}, chosen)
            costs.append(
                MaskCost(
                    attribute.name,
                    str(candidate.declared),
                    candidate.size,
                    score,
                    utility_kept(score, unmasked_score, chosen, scorer.label_rows),
                )
            )
    return tuple(costs)
