"""Results of a search in addition to its ranking: proof, binding rules, and the front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from aegis.policy import Configuration
from aegis.words import finite

NOTHING = 5e-5
"""A gain below it is told as none."""


@dataclass(frozen=True)
class ProvenList:
    """The configurations that were scored if the objective has no sharp bound: provably all with a
    high trace.

    Attributes
    ----------
    measure
        What listed them, such as `adjusted-pillai`.
    configurations
        How many were listed and scored.
    highest, least
        The highest of any admissible configuration, and the value above which none was left out;
        None if every admissible one was scored.
    """

    measure: str
    configurations: int
    highest: float
    least: float | None

    @property
    def gap(self) -> float | None:
        """How far the least trace lies below the highest, relative to the highest; None without
        a least.
        """
        if self.least is None or not self.highest:
            return None
        return (self.highest - self.least) / abs(self.highest)

    def words(self) -> str:
        """Return it as a sentence without its full stop.

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
        """Return the fields and the gap as JSON values."""
        return {**asdict(self), "gap": self.gap}


@dataclass(frozen=True)
class SearchWork:
    """The work of a search.

    Attributes
    ----------
    combinations
        Size of the space, duplicates left out.
    nodes, checked
        Boxes that were split, and class counts that were compared with the rule.
    seconds
        Time of the search alone.
    rule_monotone
        Whether the whole rule prunes; if not, some criteria were checked one by one.
    """

    combinations: int
    nodes: int
    checked: int
    seconds: float
    rule_monotone: bool


@dataclass(frozen=True)
class SearchFigures:
    """The state at the end of a search: its best value, its bound and its work.

    Attributes
    ----------
    objective
        What was maximised (or minimised, for losses).
    optimal
        Whether the best configuration is proven best among all combinations.
    exact
        Whether the objective has a valid bound; if not, `notes` says how it was searched.
    best, bound
        The objective of the best configuration, and the best that any other could still reach.
    gap
        Distance between the two, relative to the best; 0 when proven.
    work
        How much was looked at, and how long it took.
    notes
        What a reader should know.
    stopped
        What stopped it: "time limit" or "interrupt"; "verdicts" where those of a protected summary leave
        open whether any combination meets the rule; None if it is complete.
    preferred
        Why the first of the ranking is not the best by score, of which `best` is the value: it
        scores about the same, and it masks less, or more where you asked for that. None if it
        is the best by score.
    tells_masks_apart
        Whether the measure sees anything in the unmasked table; where not, no score proves
        anything.
    proven
        What was scored for sure, where the objective has no sharp bound; None if it has one.
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
    preferred: str | None = None
    tells_masks_apart: bool = True
    proven: ProvenList | None = None

    @property
    def complete(self) -> bool:
        """Whether the search examined the whole space.

        Then a search that found nothing has proven that no combination meets the rule; a stopped
        one has not.
        """
        return self.stopped is None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values; infinite figures as null."""
        proven = None if self.proven is None else self.proven.to_dict()
        flat: dict[str, Any] = {}
        for name, figure in asdict(self).items():
            if name == "stopped":
                flat["complete"] = self.complete
            flat |= figure if name == "work" else {name: figure}
        figures: dict[str, Any] = finite({**flat, "proven": proven})
        return figures


@dataclass(frozen=True)
class FinerMask:
    """The next finer mask of one attribute and what it would break.

    Attributes
    ----------
    attribute, current, mask
        The attribute, its mask in the best configuration, and the finer candidate.
    gain
        What the objective would gain.
    utility_kept
        Percent of the unmasked utility that would be kept; None if there was none.
    smallest_class
        Smallest class before suppression.
    rows_failing
        Rows in classes that would fail the rule.
    allowed_rows
        How many may be suppressed.
    violations
        What falls short, in plain sentences; empty if the mask is admissible but no better.
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
    """The gain from making one requirement of the rule one step weaker.

    Attributes
    ----------
    change
        The step, such as "k = 4 instead of 5".
    score
        The objective of the best configuration under it.
    gain
        How much better that is than the best by score under the rule as it is.
    utility_kept
        Percent of the unmasked utility that it keeps; None if there was none.
    proven
        Whether that best is proven.
    masks
        Attributes whose masks differ from those of the first configuration, with the new mask.
    """

    change: str
    score: float
    gain: float
    utility_kept: float | None
    proven: bool
    masks: Mapping[str, str]

    @property
    def shows(self) -> bool:
        """Whether the gain is still visible after rounding to four decimals."""
        return abs(self.gain) >= NOTHING * max(1.0, abs(self.score))


@dataclass(frozen=True)
class Binding:
    """The reasons why the best configuration is not finer, and the gain from a weaker rule."""

    finer: tuple[FinerMask, ...]
    relaxations: tuple[Relaxation, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "finer": [{**asdict(f), "violations": list(f.violations)} for f in self.finer],
            "relaxations": [{**asdict(r), "masks": dict(r.masks)} for r in self.relaxations],
        }


@dataclass(frozen=True)
class FrontPoint:
    """The best configuration under one strength of the rule.

    Attributes
    ----------
    value
        The parameter's value.
    score, utility_kept
        The measure of the best configuration and the percent of utility that it keeps; None if no configuration is admissible, or none was found in time.
    configuration
        Its masks, or None.
    declared
        Its masks as text.
    smallest_class, suppressed_rows
        As in the ranking.
    proven
        Whether it is proven best.
    dominated
        Whether a stricter point reaches as much, so that this one is not on the Pareto front.
    objective
        The value of the search's objective, where it is not the measure itself.
    """

    value: float
    score: float | None
    utility_kept: float | None
    configuration: Configuration | None
    declared: Mapping[str, str]
    smallest_class: int
    suppressed_rows: int
    proven: bool
    dominated: bool = False
    objective: float | None = None

    @property
    def reached(self) -> float | None:
        """The value that the search optimised: the objective, or the measure if both are the
        same.
        """
        return self.score if self.objective is None else self.objective

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "value": self.value,
            "score": self.score,
            "objective": self.objective,
            "utility_kept": self.utility_kept,
            "masks": None if self.configuration is None else self.configuration.spec(),
            "smallest_class": self.smallest_class,
            "suppressed_rows": self.suppressed_rows,
            "proven": self.proven,
            "dominated": self.dominated,
        }


@dataclass(frozen=True, repr=False)
class Front:
    """The Pareto front of privacy against utility.

    Attributes
    ----------
    parameter
        What varies: `k`, `risk`, `l` or `suppression`.
    points
        One per value, from weakest to strictest.
    knee
        Value at the recommended knee, or None if the front is too short to bend.
    """

    parameter: str
    points: tuple[FrontPoint, ...]
    knee: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "parameter": self.parameter,
            "knee": self.knee,
            "points": [point.to_dict() for point in self.points],
        }

    def __repr__(self) -> str:
        utility = ((point.value, point.utility_kept) for point in self.points)
        shown = (f"{value:g}: {'-' if k is None else f'{k:.1f} %'}" for value, k in utility)
        return f"Front({self.parameter}; utility kept {', '.join(shown)})"


@dataclass(frozen=True)
class MaskChange:
    """The change of the best score if one attribute had another mask and all others stayed.

    Attributes
    ----------
    attribute, mask
        The attribute, and the other candidate as the policy writes it.
    score
        Estimate with it.
    change
        That less the estimate without it.
    stderr
        Standard error of the change, by protection alone.
    tied
        Whether protection hides which of the two is better.
    """

    attribute: str
    mask: str
    score: float
    change: float
    stderr: float
    tied: bool


@dataclass(frozen=True)
class EstimatedScores:
    """The origin of scores that are estimates from protected counts.

    Attributes
    ----------
    estimator
        `codes`, or `tables` where only the table of each attribute with the label is known.
    changes
        Every other mask of one attribute of the best; empty without a best one.
    """

    estimator: str
    changes: tuple[MaskChange, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {"estimator": self.estimator, "what_if": [asdict(change) for change in self.changes]}


@dataclass(frozen=True)
class ProxyFigures:
    """Results of small models that were trained on a sample of rows of the best configurations.

    Attributes
    ----------
    models
        The models, whose mean it is.
    rows
        Rows that were drawn from the table; the same ones for all configurations.
    splits
        Splits into training and test rows, whose mean it is.
    metric
        The figure of merit: `roc_auc`, `accuracy` or `log_loss`.
    reached
        The figure by name of the configuration.
    """

    models: tuple[str, ...]
    rows: int
    splits: int
    metric: str
    reached: Mapping[str, float]

    @property
    def best(self) -> str | None:
        """The configuration that the trained models would choose."""
        sign = -1 if self.metric == "log_loss" else 1
        return max(self.reached, key=lambda name: sign * self.reached[name], default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {**asdict(self), "models": list(self.models), "best": self.best}

    def words(self) -> str:
        """Return the figures in one sentence."""
        told = ", ".join(f"{name} {value:.3f}" for name, value in self.reached.items())
        return (
            f"proxy: {' and '.join(self.models)} trained on {self.rows:,} rows of each finalist"
            f" ({self.splits} splits, mean {self.metric}): {told}. It would choose {self.best};"
            " the ranking is by the measure"
        )
