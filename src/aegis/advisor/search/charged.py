"""Losses that sum what masks hide over attributes, suppressed rows charged.

A row that is left out has lost everything: were it free, the least loss would be that of deleting
whatever does not fit. The conventions are those of ARX (Prasser, Kohlmayer, Kuhn, A generic method
for assessing the quality of de-identified health data, MIE 2016): a suppressed row has the value
"*" in every attribute.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.classes import ClassLoss
from aegis.advisor.search.problem import Box, Problem, Variable, members
from aegis.errors import PolicyError
from aegis.masks import Level
from aegis.summary import AttributeSummary, Candidate

Floats = npt.NDArray[np.float64]


_OPTIONS = ("mean", "factor", "weights")
_WEIGHTS = ("equal", "policy")


class Mean(StrEnum):
    """How the losses of several attributes become one."""

    SUM = "sum"
    ARITHMETIC = "arithmetic"
    GEOMETRIC = "geometric"
    MAXIMUM = "max"

    def of(self, values: Floats) -> float:
        """Return the losses (m,) as one figure; the geometric mean is prod(1 + x)^(1/m) - 1."""
        if self is Mean.GEOMETRIC:
            return float(np.expm1(np.log1p(values).mean()))
        if self is Mean.ARITHMETIC:
            return math.fsum(values) / max(len(values), 1)
        return math.fsum(values) if self is Mean.SUM else float(values.max(initial=0.0))


@dataclass(frozen=True)
class LossOptions:
    """What a loss over attributes charges.

    Attributes
    ----------
    mean
        How attributes are put together.
    factor
        From 0 to 1: 0.5 charges masking and suppression in full, less charges suppression less
        (0: not at all, a suppressed row counts as masked), more charges masking less (1: not at all).
    weighted
        Whether the policy's weights of attributes count.
    """

    mean: Mean = Mean.SUM
    factor: float = 0.5
    weighted: bool = False

    @property
    def masked(self) -> float:
        """Weight of what masks hide of the rows that are kept."""
        return min(1.0, 2 * (1 - self.factor))

    @property
    def suppressed(self) -> float:
        """Weight of what suppression hides beyond what masks do."""
        return min(1.0, 2 * self.factor)

    @classmethod
    def parse(cls, text: str) -> tuple[str, LossOptions]:
        """Read `loss`, or `loss(mean=geometric, factor=0.3)`: the loss and its options.

        Raises
        ------
        PolicyError
            An option is unknown or has a value that is not allowed.
        """
        match = re.fullmatch(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", text)
        if match is None or match[2] is None:
            return text.strip(), cls()
        given: dict[str, str] = {}
        for part in filter(None, (one.strip() for one in match[2].split(","))):
            name, _, value = part.partition("=")
            given[name.strip()] = value.strip()
        for name in given:
            if name not in _OPTIONS:
                raise PolicyError.unknown(f"option of {match[1]}", name, _OPTIONS)
        mean = given.get("mean", "sum")
        if mean not in list(Mean):
            raise PolicyError.unknown(f"mean of {match[1]}", mean, list(Mean))
        weights = given.get("weights", "equal")
        if weights not in _WEIGHTS:
            raise PolicyError.unknown(f"weights of {match[1]}", weights, _WEIGHTS)
        factor = _factor(given.get("factor", "0.5"), match[1])
        return match[1], cls(Mean(mean), factor, weights == "policy")


def _factor(given: str, loss: str) -> float:
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise PolicyError(
            f"The factor of {loss} is {given!r}.",
            hint="Give a number from 0 (suppression is free) over 0.5 (both count in full) "
            "to 1 (masking is free).",
        )
    return value


@dataclass(frozen=True)
class AttributeLoss:
    """A loss of one attribute, row by row.

    Attributes
    ----------
    per_value
        What a mask hides of a row with each value, shape (V,).
    charge
        What suppression hides beyond that, of rows (V,) under a mask.
    per_row
        Whether the figure is a mean over rows, rather than a sum.
    """

    per_value: Callable[[AttributeSummary, Candidate], Floats]
    charge: Callable[[AttributeSummary, Candidate, Floats], float]
    per_row: bool = False


class ChargedLoss(ClassLoss):
    """A loss that is summed over attributes and rows, with what suppression hides.

    A box is bounded by the least that masks hide of each attribute, nothing suppressed: in every
    attribute a suppressed row costs at least as much as it does masked. Attributes that are no
    part of the frequency table are charged as if suppressed rows had their values in proportion.
    """

    divides = False

    def __init__(
        self,
        problem: Problem,
        plan: PrivacyPlan,
        name: str,
        loss: AttributeLoss,
        options: LossOptions,
        shown: str,
    ) -> None:
        super().__init__(problem, plan)
        self.name = shown
        self._base = name
        self._loss = loss
        self._options = options
        self._rows = [v.attribute.counts.astype(np.float64) for v in problem.variables]
        self._weights = np.array(
            [v.attribute.weight if options.weighted else 1.0 for v in problem.variables]
        )
        self._masked = [
            [
                float((rows * loss.per_value(v.attribute, candidate)).sum())
                for candidate in v.candidates
            ]
            for v, rows in zip(problem.variables, self._rows, strict=True)
        ]
        self._lowest: dict[tuple[int, int], float] = {}

    def under(self, plan: PrivacyPlan) -> ChargedLoss:
        """Return the same loss under another rule."""
        return ChargedLoss(self._problem, plan, self._base, self._loss, self._options, self.name)

    def upper(self, box: Box) -> float:
        """Return minus the loss without suppression, which takes no class count."""
        return -self._least(box)

    def _total(self, lost: Floats) -> float:
        """Return the losses of the attributes, in rows, as one figure."""
        if self._loss.per_row:
            lost = lost / np.array([max(float(rows.sum()), 1.0) for rows in self._rows])
        # Rounding must not turn nothing into less than nothing.
        return self._options.mean.of(np.maximum(lost, 0.0) * self._weights) + 0.0

    def _least(self, box: Box) -> float:
        lost = [self._lowest_of(j, domain) for j, domain in enumerate(box)]
        return self._total(self._options.masked * np.array(lost))

    def _lowest_of(self, index: int, domain: int) -> float:
        key = (index, domain)
        if key not in self._lowest:
            self._lowest[key] = min(self._masked[index][c] for c in members(domain))
        return self._lowest[key]

    def _exact(self, box: Box) -> float:
        options = self._options
        free = options.suppressed == 0 and options.masked == 1
        if free or not self._plan.rule.allowed_rows(self._problem.summary.rows):
            return self._least(box)  # nothing is suppressed of what is admissible, or for nothing
        suppressed = self._suppressed(box)
        lost = []
        for index, (variable, domain) in enumerate(zip(self._problem.variables, box, strict=True)):
            candidate = variable.candidates[domain.bit_length() - 1]
            gone = suppressed(variable)
            per_value = self._loss.per_value(variable.attribute, candidate)
            masked = self._masked[index][domain.bit_length() - 1]
            hidden = float((gone * per_value).sum())
            beyond = self._loss.charge(variable.attribute, candidate, gone)
            kept = options.masked * max(masked - hidden, 0.0)
            lost.append(kept + hidden + options.suppressed * beyond)
        return self._total(np.array(lost))

    def _suppressed(self, box: Box) -> Callable[[Variable], Floats]:
        """Return what gives the suppressed rows (V,) of a variable under a configuration."""
        choice = self._problem.choice(box)
        frequency = self._problem.summary.frequency
        classes = self._plan.classes(choice)
        kept = self._plan.rule.check(classes).kept_classes
        share = float(classes.sizes[~kept].sum()) / max(classes.rows, 1)
        if frequency is None:
            return lambda variable: share * variable.attribute.counts.astype(np.float64)
        ids = frequency.class_ids({name: choice[name].groups for name in frequency.quasi})
        gone = ~np.isin(ids, classes.kept_ids(kept))
        counts = frequency.counts[gone].astype(np.float64)

        def rows(variable: Variable) -> Floats:
            attribute = variable.attribute
            if attribute.name not in frequency.codes or attribute.name == frequency.label:
                return share * attribute.counts.astype(np.float64)
            values = frequency.representatives[attribute.name]
            places = values[frequency.codes[attribute.name][gone]]
            # Values that no candidate tells apart share what is suppressed of them.
            finest = variable.join(variable.full)
            alike = np.bincount(finest, weights=attribute.counts)
            lost = np.bincount(finest[places], weights=counts, minlength=len(alike))
            shares = np.divide(lost, alike, out=np.zeros_like(alike), where=alike > 0)
            found: Floats = shares[finest] * attribute.counts
            return found

        return rows


def nu_entropy_per_value(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return -log2 of the share that each value has of its group's rows, in bits, shape (V,)."""
    rows = attribute.counts.astype(np.float64)
    groups = np.bincount(candidate.groups, weights=rows)
    share = np.divide(rows, groups[candidate.groups], out=np.ones_like(rows), where=rows > 0)
    bits: Floats = -np.log2(share)
    return bits


def nu_entropy_charge(
    attribute: AttributeSummary,  # noqa: ARG001 - the signature of a charge
    candidate: Candidate,
    gone: Floats,
) -> float:
    """Return the bits from the groups of suppressed rows to "*", which all of them show."""
    groups = np.bincount(candidate.groups, weights=gone)
    groups = groups[groups > 0]
    total = groups.sum()
    return float(-(groups * np.log2(groups / total)).sum()) if len(groups) else 0.0


def width_per_value(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return the width of each value's group over that of the attribute, from 0 to 1, (V,).

    Under a hierarchy the leaves of a group less one over all its leaves less one, whatever the
    values are; else for numbers the range, and for other values the distinct ones less one.
    """
    leaves = _leaves(attribute, candidate)
    if leaves is not None:
        return leaves
    groups = candidate.groups
    numbers = attribute.numbers
    if numbers is None:
        width = np.bincount(groups).astype(np.float64) - 1
        span = float(len(groups) - 1)
    else:
        valid = np.isfinite(numbers)
        low = np.full(candidate.size, np.inf)
        high = np.full(candidate.size, -np.inf)
        np.minimum.at(low, groups[valid], numbers[valid])
        np.maximum.at(high, groups[valid], numbers[valid])
        width = np.where(high >= low, high - low, 0.0)
        span = float(np.ptp(numbers[valid])) if valid.any() else 0.0
    shares: Floats = width[groups] / span if span > 0 else np.zeros(len(groups))
    return shares


def width_charge(attribute: AttributeSummary, candidate: Candidate, gone: Floats) -> float:
    """Return what suppressed rows (V,) lose beyond the width of their groups: up to 1 each."""
    return float((gone * (1 - width_per_value(attribute, candidate))).sum())


def _leaves(attribute: AttributeSummary, candidate: Candidate) -> Floats | None:
    """Return the share of a hierarchy's leaves that each value's group holds; None without one."""
    mask = candidate.mask
    if not isinstance(mask, Level) or mask.hierarchy is None:
        return None
    # Null is a leaf of its own where the hierarchy has no row for it.
    null = attribute.values.null_count > 0 and None not in mask.hierarchy.values
    span = len(mask.hierarchy.rows) - 1 + null
    if span <= 0 or not mask.level:
        return np.zeros(len(candidate.groups))
    groups = mask.hierarchy.groups(mask.level)
    shown = [None if value is None else str(value) for value in candidate.shown.to_pylist()]
    sizes = [len(groups.get(group, (None,))) for group in shown]
    of_group = np.array(sizes, dtype=np.float64)
    shares: Floats = (of_group[candidate.groups] - 1) / span
    return shares


CHARGED: dict[str, AttributeLoss] = {
    "nu-entropy": AttributeLoss(nu_entropy_per_value, nu_entropy_charge),
    "loss": AttributeLoss(width_per_value, width_charge, per_row=True),
}
"""Losses over attributes that charge suppressed rows, by name."""


def charged_loss(text: str, problem: Problem, plan: PrivacyPlan) -> ChargedLoss:
    """Return the loss that a name, with its options, asks for."""
    name, options = LossOptions.parse(text)
    return ChargedLoss(problem, plan, name, CHARGED[name], options, text.strip())
