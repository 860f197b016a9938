"""The losses that sum the effect of masks over attributes, and charge suppressed rows.

If suppressed rows were not charged, suppressing all rows would give the smallest loss. As in ARX, a
suppressed row has the value "*" in every attribute (Prasser, Kohlmayer, Kuhn, A generic method for
assessing the quality of de-identified health data, MIE 2016).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.problem import Box, Problem, Variable, members
from aegis.arrays import Floats, Integers
from aegis.arx.losses.classes import ClassLoss, ConfigurationClasses
from aegis.arx.losses.loss_options import LossOptions, Mean
from aegis.arx.losses.separable import AttributePart, Separable
from aegis.arx.losses.widths import (
    domain_bits,
    leaf_bits,
    rank_per_value,
    width_per_value,
)
from aegis.summary import AttributeSummary, Candidate


@dataclass(frozen=True)
class AttributeLoss:
    """How much loss masking and suppression cause in one attribute.

    Attributes
    ----------
    per_value
        Function that returns, for each of the attribute's V values, the loss that a mask causes in a
        row with this value, shape (V,).
    whole
        Function that returns the loss of a suppressed row in this attribute; None if this loss
        depends on which other rows are suppressed.
    charge
        Used only if `whole` is None. Function of the attribute, its candidate mask and the number
        of suppressed rows by value, shape (V,). It returns how much loss these rows cause in
        addition to the loss of the mask: at least 0, and more or the same if more rows are
        suppressed.
    per_row
        Whether the loss is a mean over rows instead of a sum.
    normed
        Whether all losses are divided by the loss of a row that is suppressed in every attribute
        (the sum of `whole`).
    """

    per_value: Callable[[AttributeSummary, Candidate], Floats]
    whole: Callable[[AttributeSummary], float] | None
    charge: Callable[[AttributeSummary, Candidate, Floats], float] | None = None
    per_row: bool = False
    normed: bool = False

    def beyond(self, attribute: AttributeSummary, candidate: Candidate, gone: Floats) -> float:
        """Return how much loss suppression adds to the loss of masking in one attribute. `gone` has
        the number of suppressed rows by value, shape (V,).
        """
        if self.charge is not None:
            return self.charge(attribute, candidate, gone)
        return float((gone * self.beyond_per_value(attribute, candidate)).sum())

    def beyond_per_value(self, attribute: AttributeSummary, candidate: Candidate) -> Floats:
        """Return the least loss that suppressing a row adds to masking, for each of the attribute's
        V values, shape (V,).

        It is 0 if the loss of a row depends on which other rows are suppressed.
        """
        hidden = self.per_value(attribute, candidate)
        if self.whole is None:
            return np.zeros_like(hidden)
        return self.whole(attribute) - hidden


class ChargedLoss(ClassLoss):
    """A loss that is summed over attributes and rows, with charges for suppressed rows.

    The bound for a box (a set of candidate masks for each attribute) takes the least loss that the
    masks of each attribute cause without suppression. It is valid because in every attribute a
    suppressed row costs at least as much as a masked row. For attributes that are not in the
    frequency table, suppressed rows are assumed to have the same distribution of values as all
    rows.
    """

    divides = False
    _options: LossOptions

    def __init__(
        self, problem: Problem, plan: PrivacyPlan, options: LossOptions, shown: str
    ) -> None:
        super().__init__(problem, plan, options, shown)
        self._loss = loss = CHARGED[LossOptions.parse(shown)[0]]
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
        if loss.normed and loss.whole is not None:
            most = np.array([loss.whole(v.attribute) for v in problem.variables])
            self._most = math.fsum((most * self._weights)[self._counted]) or 1.0

    def upper(self, box: Box) -> float:
        """Return an upper bound of minus the loss in a box (a set of candidate masks for each
        attribute): minus the loss without suppression, which needs no class counts.
        """
        return -self._least(box)

    def _total(self, lost: Floats) -> float:
        """Combine the losses of all attributes into one loss, as the options say. `lost` has the
        loss of each attribute, summed over rows.
        """
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
        """Whether the loss can be computed from a sum over attributes, either as the sum itself or
        as its mean. This is true unless the option `mean` is `max`.
        """
        return self._options.mean is not Mean.MAXIMUM

    def separable(self) -> Separable:
        """Return the loss as a sum of one term for each attribute, with the least loss that
        suppressed rows add to each term.
        """
        options = self._options
        scales = self._weights / self._most * self._counted
        if self._loss.per_row:
            scales = scales / self._totals
        parts = []
        for place, (variable, scale) in enumerate(
            zip(self._problem.variables, scales.tolist(), strict=True)
        ):
            attribute = variable.attribute
            beyond = [
                (1 - options.masked) * self._loss.per_value(attribute, candidate)
                + options.suppressed * self._loss.beyond_per_value(attribute, candidate)
                for candidate in variable.candidates
            ]
            masked = options.masked * np.array(self._masked[place])
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
        for index, (variable, domain) in enumerate(zip(self._problem.variables, box, strict=True)):
            candidate = variable.candidates[domain.bit_length() - 1]
            gone = suppressed(variable)
            per_value = self._loss.per_value(variable.attribute, candidate)
            masked = self._masked[index][domain.bit_length() - 1]
            hidden = float((gone * per_value).sum())
            beyond = self._loss.beyond(variable.attribute, candidate, gone)
            left = options.masked * max(masked - hidden, 0.0)
            lost.append(left + hidden + options.suppressed * beyond)
        return self._total(np.array(lost))

    def _suppressed(self, box: Box) -> Callable[[Variable], Floats]:
        """Return a function that takes a variable and returns how many rows with each of its V
        values a configuration suppresses, shape (V,).
        """
        frequency = self._problem.summary.frequency
        if frequency is None:
            classes = self._plan.classes(self._problem.choice(box))
            kept_classes = self._plan.rule.check(classes).kept_classes
            share = float(classes.sizes[~kept_classes].sum()) / max(classes.rows, 1)
            return lambda variable: share * variable.attribute.counts.astype(np.float64)
        if self._released is None:
            self._released = ConfigurationClasses(self._problem, self._plan, frequency)
        gone = self._released.suppressed_cells(box)
        share = float(frequency.counts[gone].sum()) / max(float(frequency.counts.sum()), 1.0)
        counts = frequency.counts[gone].astype(np.float64)

        def rows(variable: Variable) -> Floats:
            attribute = variable.attribute
            if attribute.name not in frequency.codes:
                return share * attribute.counts.astype(np.float64)
            values = frequency.representatives[attribute.name]
            places = values[frequency.codes[attribute.name][gone]]
            # Values that no candidate distinguishes share what is suppressed of them.
            finest: Integers = variable.join(variable.full)
            alike = np.bincount(finest, weights=attribute.counts)
            lost = np.bincount(finest[places], weights=counts, minlength=len(alike))
            shares = np.divide(lost, alike, out=np.zeros_like(alike), where=alike > 0)
            return shares[finest] * attribute.counts

        return rows


def nu_entropy_per_value(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return, for each of the attribute's V values, -log2 of its share among the rows of its group
    under a candidate, in bits, shape (V,).
    """
    rows = attribute.counts.astype(np.float64)
    groups = np.bincount(candidate.groups, weights=rows)
    share = np.divide(rows, groups[candidate.groups], out=np.ones_like(rows), where=rows > 0)
    return -np.log2(share)


def nu_entropy_charge(
    attribute: AttributeSummary,  # noqa: ARG001 - the signature of a charge
    candidate: Candidate,
    gone: Floats,
) -> float:
    """Return how many bits are lost in addition if suppressed rows show "*" instead of their group.
    `gone` has the number of suppressed rows by value, shape (V,).
    """
    groups = np.bincount(candidate.groups, weights=gone)
    groups = groups[groups > 0]
    total = groups.sum()
    return float(-(groups * np.log2(groups / total)).sum()) if len(groups) else 0.0


CHARGED: dict[str, AttributeLoss] = {
    "nu-entropy": AttributeLoss(nu_entropy_per_value, None, nu_entropy_charge),
    "loss": AttributeLoss(width_per_value, lambda _: 1.0, per_row=True),
    "log-width": AttributeLoss(leaf_bits, domain_bits, per_row=True, normed=True),
    "precision": AttributeLoss(rank_per_value, lambda _: 1.0, per_row=True),
}
"""Losses over attributes that charge suppressed rows, by name."""
