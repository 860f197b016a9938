"""Losses that sum the effect of masks over attributes, and charge suppressed rows; with lower
bounds if some rows are known to be suppressed.

Let R be the rows that a configuration suppresses. If a rule is monotone under suppression, every
finer configuration suppresses R, too. In each attribute, these rows have the cost of suppression.
So if R is known, the loss of every finer configuration is at least a certain sum over attributes.
Each term of this sum depends only on the mask of the attribute. R is given by its cells, the
combinations of values in the frequency table. A box is a set of configurations.

If suppressed rows were not charged, suppressing all rows would give the smallest loss. As in ARX, a
suppressed row has the value "*" in every attribute (Prasser, Kohlmayer, Kuhn, A generic method for
assessing the quality of de-identified health data, MIE 2016).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.corner_classes import RuleCells
from aegis.advisor.search.problem import Box, Problem, Variable, members
from aegis.arrays import Floats, Integers
from aegis.arx.losses.classes import ClassLoss, ConfigurationClasses
from aegis.arx.losses.loss_options import LossOptions, Mean
from aegis.masks import Level
from aegis.summary import AttributeSummary, Candidate
from aegis.summary.leaves import domain, leaf_counts, leaf_shares

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AttributePart:
    """The contribution of an attribute to a loss, for each of its n candidate masks.

    Attributes
    ----------
    variable
        The attribute with its candidate masks.
    masked
        The loss of each of the n candidate masks if no row is suppressed, shape (n,).
    beyond
        Lower bound of the loss that a row adds if it is suppressed instead of masked, for each of
        the n candidate masks and each of the attribute's V values, shape (n, V).
    """

    variable: Variable
    masked: Floats
    beyond: Floats


class Separable:
    """A loss that is a sum over attributes; each term depends only on the attribute's mask.

    Parameters
    ----------
    parts
        The contribution of each attribute, in the order of the search space.
    mean
        How contributions are combined: by their sum, or by an arithmetic or geometric mean. The
        maximum is not possible.
    counted
        Number of attributes over which the mean is taken.
    """

    def __init__(self, parts: Sequence[AttributePart], mean: Mean, counted: int) -> None:
        self._parts = parts
        self._mean = mean
        self._counted = max(counted, 1)
        self.least = [self.scaled(part.masked) for part in parts]

    def total(self, figure: float) -> float:
        """Return the loss from the sum of all terms, which are logarithms for a geometric mean."""
        return float(np.expm1(figure)) if self._mean is Mean.GEOMETRIC else figure

    def sum_of(self, loss: float) -> float:
        """Return the sum of the terms of all attributes from the loss; the inverse of `total`."""
        return float(np.log1p(loss)) if self._mean is Mean.GEOMETRIC else loss

    def scaled(self, lost: Floats) -> Floats:
        """Return the term of each candidate in the sum, shape (n,), from its loss (for a geometric
        mean, from log(1 + loss)). Means divide it by the number of attributes.
        """
        if self._mean is Mean.SUM:
            return lost
        return (np.log1p(lost) if self._mean is Mean.GEOMETRIC else lost) / self._counted

    def over(self, cells: RuleCells) -> LostRows:
        """Return an object that computes lower bounds of losses if some of the `cells` are
        suppressed.
        """
        return LostRows(self, self._parts, cells)


class LostRows:
    """Computes lower bounds of the loss of each candidate if some cells are suppressed."""

    def __init__(
        self, separable: Separable, parts: Sequence[AttributePart], cells: RuleCells
    ) -> None:
        self._scaled = separable.scaled
        self._masked = [part.masked for part in parts]
        self._weights = cells.counts.astype(np.float64)
        codes, self._costs = zip(*(_spread(part, cells) for part in parts), strict=True)
        widths = [cost.shape[1] for cost in self._costs]
        self._starts = np.cumsum([0, *widths]).tolist()
        # All attributes of a cell next to one another, each with places of its own.
        self._places = np.stack(
            [
                (code + start).astype(np.int32)
                for code, start in zip(codes, self._starts, strict=False)
            ],
            axis=1,
        )

    def parts(self, lost: Places) -> list[Floats]:
        """Return, for each attribute, a lower bound of the loss of each of its n candidates, shape
        (n,), if the cells with the indices `lost` are suppressed.
        """
        places = self._places[lost]
        weights = np.repeat(self._weights[lost], places.shape[1])
        rows = np.bincount(places.ravel(), weights=weights, minlength=self._starts[-1])
        ends = zip(self._masked, self._costs, self._starts, self._starts[1:], strict=False)
        return [self._scaled(base + cost @ rows[start:end]) for base, cost, start, end in ends]


def _spread(part: AttributePart, cells: RuleCells) -> tuple[Places, Floats]:
    """Return the group of each cell, shape (cells,), and the loss that suppressing a row of each of G
    groups adds under each candidate, shape (n, G).

    No candidate splits a group. Its values are assumed to be as frequent among suppressed rows as among
    all rows. An attribute that forms no equivalence classes has one group.
    """
    variable = part.variable
    rows = variable.attribute.counts.astype(np.float64)
    if variable.quasi:
        groups = variable.join(variable.full)
        codes = cells.code(variable.name, groups)
    else:
        groups = np.zeros(len(rows), dtype=np.int64)
        codes = np.zeros(cells.count, dtype=np.int64)
    size = int(groups.max(initial=0)) + 1
    totals = np.bincount(groups, weights=rows, minlength=size)
    cost = np.stack([np.bincount(groups, weights=rows * b, minlength=size) for b in part.beyond])
    return codes, np.divide(cost, totals, out=np.zeros_like(cost), where=totals > 0)


def width_per_value(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return the width of the masked value of each value relative to all together, 0 to 1, shape (V,).

    The width is the number of leaves of the hierarchy minus 1; without one, the range of numbers, else
    the number of distinct values minus 1.
    """
    leaves = leaf_shares(attribute, candidate)
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
    return width[groups] / span if span > 0 else np.zeros(len(groups))


def rank_per_value(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return the level of the mask divided by the highest level, for each value, shape (V,)."""
    level, highest = _level(attribute, candidate)
    return np.full(len(candidate.groups), level / max(highest, 1))


def height(attribute: AttributeSummary, candidate: Candidate) -> float:
    """Return the level of a mask in its hierarchy or, without one, its rank (see `_level`)."""
    return float(_level(attribute, candidate)[0])


def _level(attribute: AttributeSummary, candidate: Candidate) -> tuple[int, int]:
    """Return the level of a mask and the highest level of its hierarchy or, without one, the ranks from
    finest to coarsest among the attribute's masks.
    """
    if isinstance(candidate.mask, Level) and candidate.mask.hierarchy is not None:
        return candidate.mask.level, candidate.mask.hierarchy.height
    ladder = sorted({len(attribute.values), *(c.size for c in attribute.candidates)}, reverse=True)
    return ladder.index(candidate.size), len(ladder) - 1


@dataclass(frozen=True)
class AttributeLoss:
    """How much loss masking and suppression cause in one attribute, which has V values.

    Attributes
    ----------
    per_value
        Function that returns the loss that a mask causes in a row with each value, shape (V,).
    suppressed_loss
        Function that returns the loss of a suppressed row in this attribute; None if this loss
        depends on which other rows are suppressed.
    charge
        Used only if `suppressed_loss` is None. Function of the attribute, its candidate mask and
        the number of suppressed rows by value, shape (V,). It returns how much loss the suppression
        of these rows adds to the loss by the mask. It is at least 0, and does not fall if more rows
        are suppressed.
    per_row
        Whether the loss is a mean over rows instead of a sum.
    normed
        Whether all losses are divided by the loss of a row that is suppressed in every attribute
        (the sum of `suppressed_loss`).
    """

    per_value: Callable[[AttributeSummary, Candidate], Floats]
    suppressed_loss: Callable[[AttributeSummary], float] | None
    charge: Callable[[AttributeSummary, Candidate, Floats], float] | None = None
    per_row: bool = False
    normed: bool = False

    def beyond(
        self, attribute: AttributeSummary, candidate: Candidate, suppressed_rows: Floats
    ) -> float:
        """Return how much loss suppressed rows add to the loss by the mask; `suppressed_rows` has
        their number by value, shape (V,).
        """
        if self.charge is not None:
            return self.charge(attribute, candidate, suppressed_rows)
        return float((suppressed_rows * self.beyond_per_value(attribute, candidate)).sum())

    def beyond_per_value(self, attribute: AttributeSummary, candidate: Candidate) -> Floats:
        """Return a lower bound of what suppressing a row with each value adds, shape (V,); 0 if that
        depends on which other rows are suppressed.
        """
        hidden = self.per_value(attribute, candidate)
        if self.suppressed_loss is None:
            return np.zeros_like(hidden)
        return self.suppressed_loss(attribute) - hidden


class ChargedLoss(ClassLoss):
    """A loss that is summed over attributes and rows, and to which suppressed rows add.

    Its lower bound for a box (a set of candidate masks for each attribute) is the sum of the least
    losses that the masks of each attribute cause without suppression. For attributes that are not
    in the frequency table, suppressed rows are assumed to have the same distribution of values as
    all rows.
    """

    divides = False
    _options: LossOptions

    def __init__(
        self, problem: Problem, plan: PrivacyPlan, options: LossOptions, name: str
    ) -> None:
        super().__init__(problem, plan, options, name)
        self._loss = loss = ATTRIBUTE_LOSSES[LossOptions.parse(name)[0]]
        self._rows = [v.attribute.counts.astype(np.float64) for v in problem.variables]
        self._totals = np.array([max(float(rows.sum()), 1.0) for rows in self._rows])
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
        self._leasts: dict[Box, float] = {}
        self._released: ConfigurationClasses | None = None
        self._most = 1.0
        self._counted = np.array([v.quasi or not options.quasi for v in problem.variables])
        if loss.normed and loss.suppressed_loss is not None:
            most = np.array([loss.suppressed_loss(v.attribute) for v in problem.variables])
            self._most = math.fsum((most * self._weights)[self._counted]) or 1.0

    def upper(self, box: Box) -> float:
        """Return minus the least loss of a box without suppression, which needs no class counts."""
        return -self._least(box)

    def _total(self, lost: Floats) -> float:
        """Combine the losses of all attributes, each summed over rows, as the options say."""
        if self._loss.per_row:
            lost = lost / self._totals
        # Rounding must not turn nothing into less than nothing.
        weighed = np.maximum(lost, 0.0) * self._weights / self._most
        return self._options.mean.of(weighed[self._counted]) + 0.0

    def _least(self, box: Box) -> float:
        if box not in self._leasts:
            lost = [self._lowest_of(j, domain) for j, domain in enumerate(box)]
            self._leasts[box] = self._total(self._options.masked * np.array(lost))
        return self._leasts[box]

    @property
    def separates(self) -> bool:
        """Whether the loss follows from a sum over attributes: unless `mean` is `max`."""
        return self._options.mean is not Mean.MAXIMUM

    def separable(self) -> Separable:
        """Return the loss as a sum over attributes, with a bound of what suppressed rows add."""
        options = self._options
        scales = self._weights / self._most * self._counted
        if self._loss.per_row:
            scales = scales / self._totals
        parts = []
        for index, (variable, scale) in enumerate(
            zip(self._problem.variables, scales.tolist(), strict=True)
        ):
            attribute = variable.attribute
            beyond = [
                (1 - options.masked) * self._loss.per_value(attribute, candidate)
                + options.suppressed * self._loss.beyond_per_value(attribute, candidate)
                for candidate in variable.candidates
            ]
            masked = options.masked * np.array(self._masked[index])
            parts.append(AttributePart(variable, scale * masked, scale * np.stack(beyond)))
        return Separable(parts, options.mean, int(self._counted.sum()))

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
        for index, (variable, candidates) in enumerate(
            zip(self._problem.variables, box, strict=True)
        ):
            candidate = variable.candidates[candidates.bit_length() - 1]
            suppressed_rows = suppressed(variable)
            per_value = self._loss.per_value(variable.attribute, candidate)
            masked = self._masked[index][candidates.bit_length() - 1]
            hidden = float((suppressed_rows * per_value).sum())
            beyond = self._loss.beyond(variable.attribute, candidate, suppressed_rows)
            kept_loss = options.masked * max(masked - hidden, 0.0)
            lost.append(kept_loss + hidden + options.suppressed * beyond)
        return self._total(np.array(lost))

    def _suppressed(self, box: Box) -> Callable[[Variable], Floats]:
        """Return a function that counts the rows with each value of a variable that a configuration
        suppresses, shape (V,).
        """
        frequency = self._problem.summary.frequency
        if frequency is None:
            classes = self._plan.classes(self._problem.choice(box))
            kept_classes = self._plan.rule.check(classes).kept_classes
            share = float(classes.sizes[~kept_classes].sum()) / max(classes.rows, 1)
            return lambda variable: share * variable.attribute.counts.astype(np.float64)
        if self._released is None:
            self._released = ConfigurationClasses(self._problem, self._plan, frequency)
        cells = self._released.suppressed_cells(box)
        share = float(frequency.counts[cells].sum()) / max(float(frequency.counts.sum()), 1.0)
        counts = frequency.counts[cells].astype(np.float64)

        def rows(variable: Variable) -> Floats:
            attribute = variable.attribute
            if attribute.name not in frequency.codes:
                return share * attribute.counts.astype(np.float64)
            values = frequency.representatives[attribute.name]
            places = values[frequency.codes[attribute.name][cells]]
            # Values that no candidate distinguishes share what is suppressed of them.
            finest: Integers = variable.join(variable.full)
            alike = np.bincount(finest, weights=attribute.counts)
            lost = np.bincount(finest[places], weights=counts, minlength=len(alike))
            shares = np.divide(lost, alike, out=np.zeros_like(alike), where=alike > 0)
            return shares[finest] * attribute.counts

        return rows


def nu_entropy_per_value(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return -log2 of the share of each value among the rows of its group, in bits, shape (V,)."""
    rows = attribute.counts.astype(np.float64)
    groups = np.bincount(candidate.groups, weights=rows)
    share = np.divide(rows, groups[candidate.groups], out=np.ones_like(rows), where=rows > 0)
    return -np.log2(share)


def nu_entropy_charge(
    attribute: AttributeSummary,  # noqa: ARG001 - the signature of a charge
    candidate: Candidate,
    suppressed_rows: Floats,
) -> float:
    """Return how many bits are lost beyond those that the mask hides if suppressed rows show "*";
    `suppressed_rows` has their number by value, shape (V,).
    """
    groups = np.bincount(candidate.groups, weights=suppressed_rows)
    groups = groups[groups > 0]
    total = groups.sum()
    return float(-(groups * np.log2(groups / total)).sum()) if len(groups) else 0.0


ATTRIBUTE_LOSSES: dict[str, AttributeLoss] = {
    "nu-entropy": AttributeLoss(nu_entropy_per_value, None, nu_entropy_charge),
    "loss": AttributeLoss(width_per_value, lambda _: 1.0, per_row=True),
    "log-width": AttributeLoss(
        lambda attribute, candidate: np.log2(leaf_counts(attribute, candidate)),
        lambda attribute: math.log2(max(domain(attribute), 1)),
        per_row=True,
        normed=True,
    ),
    "precision": AttributeLoss(rank_per_value, lambda _: 1.0, per_row=True),
}
"""Losses over attributes that charge suppressed rows, by name."""
