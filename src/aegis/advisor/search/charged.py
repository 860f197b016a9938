"""Losses that sum what masks hide over attributes, suppressed rows charged.

A row that is left out has lost everything: were it free, the least loss would be that of deleting
whatever does not fit. The conventions are those of ARX (Prasser, Kohlmayer, Kuhn, A generic method
for assessing the quality of de-identified health data, MIE 2016): a suppressed row has the value
"*" in every attribute.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.classes import ClassLoss
from aegis.advisor.search.loss_options import LossOptions
from aegis.advisor.search.problem import Box, Problem, Variable, members
from aegis.advisor.search.widths import (
    domain_bits,
    leaf_bits,
    leaf_bits_charge,
    rank_charge,
    rank_per_value,
    width_charge,
    width_per_value,
)
from aegis.summary import AttributeSummary, Candidate

Floats = npt.NDArray[np.float64]


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
    most
        The most that a row can lose in one attribute; the sum over attributes of it is what losses
        are divided by. None: they are not.
    """

    per_value: Callable[[AttributeSummary, Candidate], Floats]
    charge: Callable[[AttributeSummary, Candidate, Floats], float]
    per_row: bool = False
    most: Callable[[AttributeSummary], float] | None = None


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
        self._most = 1.0
        self._counted = np.array([v.quasi or not options.quasi for v in problem.variables])
        if loss.most is not None:
            most = np.array([loss.most(v.attribute) for v in problem.variables])
            self._most = math.fsum((most * self._weights)[self._counted]) or 1.0

    def under(self, plan: PrivacyPlan) -> ChargedLoss:
        """Return the same loss under another rule."""
        return ChargedLoss(self._problem, plan, self._base, self._loss, self._options, self.name)

    def upper(self, box: Box) -> float:
        """Return minus the loss without suppression, which takes no class count."""
        return -self._least(box)

    def _total(self, lost: Floats) -> float:
        """Return the losses of the attributes, in rows, as one figure."""
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
            left = options.masked * max(masked - hidden, 0.0)
            lost.append(left + hidden + options.suppressed * beyond)
        return self._total(np.array(lost))

    def _suppressed(self, box: Box) -> Callable[[Variable], Floats]:
        """Return what gives the suppressed rows (V,) of a variable under a configuration."""
        choice = self._problem.choice(box)
        frequency = self._problem.summary.frequency
        classes = self._plan.classes(choice)
        kept_classes = self._plan.rule.check(classes).kept_classes
        share = float(classes.sizes[~kept_classes].sum()) / max(classes.rows, 1)
        if frequency is None:
            return lambda variable: share * variable.attribute.counts.astype(np.float64)
        ids = frequency.class_ids({name: choice[name].groups for name in frequency.quasi})
        gone = ~np.isin(ids, classes.kept_ids(kept_classes))
        counts = frequency.counts[gone].astype(np.float64)

        def rows(variable: Variable) -> Floats:
            attribute = variable.attribute
            if attribute.name not in frequency.codes:
                return share * attribute.counts.astype(np.float64)
            values = frequency.representatives[attribute.name]
            places = values[frequency.codes[attribute.name][gone]]
            # Values that no candidate tells apart share what is suppressed of them.
            finest = variable.join(variable.full)
            alike = np.bincount(finest, weights=attribute.counts)
            lost = np.bincount(finest[places], weights=counts, minlength=len(alike))
            shares = np.divide(lost, alike, out=np.zeros_like(alike), where=alike > 0)
            suppressed: Floats = shares[finest] * attribute.counts
            return suppressed

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


CHARGED: dict[str, AttributeLoss] = {
    "nu-entropy": AttributeLoss(nu_entropy_per_value, nu_entropy_charge),
    "loss": AttributeLoss(width_per_value, width_charge, per_row=True),
    "log-width": AttributeLoss(leaf_bits, leaf_bits_charge, per_row=True, most=domain_bits),
    "precision": AttributeLoss(rank_per_value, rank_charge, per_row=True),
}
"""Losses over attributes that charge suppressed rows, by name."""


def charged_loss(text: str, problem: Problem, plan: PrivacyPlan) -> ChargedLoss:
    """Return the loss that a name, with its options, asks for."""
    name, options = LossOptions.parse(text)
    return ChargedLoss(problem, plan, name, CHARGED[name], options, text.strip())
