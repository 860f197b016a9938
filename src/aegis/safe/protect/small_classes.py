"""Estimate from a protected summary how many rows are in classes that are too small for the rule.

A protected summary has no joint counts of quasi-identifiers. So Aegis takes quasi-identifiers as
independent: the share of a class is the product of the shares of its values. Rows whose values have
no published name count as rows in small classes, if the mask may show such values. `suppress` and
masks that were fitted to protected counts show none.

Only the owner of the table can check the rule. The estimate decides which configurations a search
proposes first. It reads nothing but the protected summary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from aegis.advisor.search.problem import Box, members
from aegis.arrays import Flags, Floats
from aegis.masks import Suppress
from aegis.policy import Policy, Role
from aegis.privacy import PrivacyRule
from aegis.safe.protect.cells import UNNAMED_SHOWN
from aegis.safe.protect.model import (
    ProtectedAttribute,
    ProtectedCandidate,
    ProtectedSummary,
)
from aegis.safe.protect.scores import Choice

MARGIN = 4.0
"""A configuration fits a rule if the rule allows so many times the expected number of suppressed
rows, because quasi-identifiers depend on each other."""
_STEP = 0.1
"""Width of a step of the logarithm of a share."""


class ExpectedSmallClasses:
    """Estimates how many rows are in classes that are too small for a rule. A search that uses the
    estimate as its rule considers only configurations with an estimate of at most `most`.

    The logarithm of the share of a class is a sum over the quasi-identifiers. So its distribution
    over the rows is the convolution of their distributions.

    Attributes
    ----------
    rows, allowed
        The number of rows of the table, and of rows that the rule allows to suppress.
    least
        The number of rows that the rule requires of each class.
    most
        The largest expected number of rows in small classes with which a configuration fits.
    possible
        The number of all configurations.
    """

    def __init__(self, summary: ProtectedSummary, rule: PrivacyRule) -> None:
        self.rows = summary.rows
        self.possible = summary.combinations
        self.allowed = rule.suppression * summary.rows
        self.least = rule.minimum_size
        self.most = max(self.allowed / MARGIN, 0.5)
        steps = math.ceil((math.log(summary.rows) + 4) / _STEP)
        expected = (summary.rows - 1) * np.exp(-np.arange(steps) * _STEP)
        self._small = _at_most(self.least - 2, expected)
        self._small[-1] = 1.0
        self._spread = [
            np.array([_distribution(a, c, steps) for c in a.candidates])
            for a in summary.all_attributes
            if a.role is Role.QUASI_IDENTIFIER
        ]
        roles = [a.role for a in summary.all_attributes]
        self._places = [i for i, role in enumerate(roles) if role is Role.QUASI_IDENTIFIER]
        self._best: dict[tuple[int, int], Floats] = {}

    @classmethod
    def of(cls, summary: ProtectedSummary, policy: Policy | None) -> ExpectedSmallClasses | None:
        """Return the estimate for the rule of the policy, else of the owner. None if the owner states
        verdicts, or if the rule requires no size of classes.
        """
        owner = None if summary.owner is None else summary.owner.rule
        rule = owner if policy is None else policy.privacy
        if summary.verdicts or rule is None or rule.minimum_size < 2:
            return None
        return cls(summary, rule)

    def under(self, choice: Choice) -> float:
        """Return the expected number of rows in too small classes."""
        return self._fewest(tuple(1 << index for index in choice))

    def fits(self, choice: Choice) -> bool:
        """Return whether a configuration meets the rule with a margin, by the estimate."""
        return self.under(choice) <= self.most

    def admits(self, box: Box) -> bool:
        """Return whether some configuration of the box may meet the rule with a margin."""
        return self._fewest(box) <= self.most

    def narrow(self, box: Box) -> Box | None:
        """Return the box; None if none of its configurations may meet the rule with a margin."""
        return box if self.admits(box) else None

    @property
    def fits_all(self) -> bool:
        """Whether every configuration meets the rule with a margin, by the estimate."""
        worst = [np.diff(spread.cumsum(axis=1).min(axis=0), prepend=0.0) for spread in self._spread]
        return self._expected(worst) <= self.most

    def _fewest(self, box: Box) -> float:
        """Return a lower bound of the rows in too small classes, sharp for one configuration."""
        return self._expected(
            [self._most_common(quasi, box[index]) for quasi, index in enumerate(self._places)]
        )

    def _expected(self, spread: Sequence[Floats]) -> float:
        joint = reduce(_sum, spread, np.eye(1, len(self._small))[0])
        return self.rows * float(joint @ self._small)

    def _most_common(self, quasi: int, domain: int) -> Floats:
        """Return a distribution of the share of a value that no candidate in `domain` (bits) exceeds:
        at each share, the most rows with at least this share.
        """
        key = quasi, domain
        if key not in self._best:
            above = self._spread[quasi][members(domain)].cumsum(axis=1).max(axis=0)
            self._best[key] = np.diff(above, prepend=0.0)
        return self._best[key]


def _sum(first: Floats, second: Floats) -> Floats:
    """Return the distribution of the sum of two independent numbers; the last step is for all
    larger.
    """
    steps = len(second)
    convolution = np.convolve(first, second)
    joint: Floats = convolution[:steps].copy()
    joint[-1] += convolution[steps:].sum()
    return joint


def _at_most(most: int, expected: Floats) -> Floats:
    """Return the chance that a Poisson number is at most `most`, for each expected number."""
    from scipy.special import pdtr  # only this estimate needs it

    chances: Floats = pdtr(most, expected)
    return chances


def _distribution(
    attribute: ProtectedAttribute,
    candidate: ProtectedCandidate,
    steps: int,
) -> Floats:
    """Return the distribution of rows over minus the logarithm of their value's share, shape (steps,).

    Rows without a published value are in the last step if the mask may show it.
    """
    cells = np.maximum(attribute.table.sum(axis=1), 0).astype(np.float64)
    unnamed: Flags = attribute.units > 1
    if all(c.labels == (UNNAMED_SHOWN,) for c in attribute.candidates):
        unnamed[:] = True
    if not candidate.declared.fitted or isinstance(candidate.declared, Suppress):
        unnamed = np.zeros(len(cells), dtype=bool)
    total = max(cells.sum(), 1.0)
    group_rows = np.bincount(candidate.groups, weights=np.where(unnamed, 0.0, cells))
    shares = group_rows[group_rows > 0] / total
    places = np.minimum(np.rint(-np.log(shares) / _STEP).astype(np.int64), steps - 1)
    spread: Floats = np.bincount(places, weights=shares, minlength=steps).astype(np.float64)
    spread[-1] += 1.0 - shares.sum()
    return spread
