"""Choose the configurations to rank: listed ones, or generated ones.

Generated configurations are the least masked ones first, then random ones without repetition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from aegis.arrays import Integers
from aegis.errors import PolicyError
from aegis.masks import Mask
from aegis.policy import Configuration, Policy, Role, listed_configurations
from aegis.requests import RankRequest

DEFAULT_COUNT = 50
"""Number of configurations to generate if neither the caller nor the policy gives configurations.
"""
LADDER_SHARE = 0.2
"""Largest share of the generated configurations that are not drawn at random."""


class CandidateMask(Protocol):
    """A candidate mask, and the groups that it forms."""

    @property
    def mask(self) -> Mask:
        """The fitted mask."""

    @property
    def groups(self) -> Integers:
        """The number of the group of each value, shape (V,)."""

    @property
    def size(self) -> int:
        """The number of groups."""


class AttributeWithMasks(Protocol):
    """An attribute with its candidate masks."""

    @property
    def name(self) -> str:
        """The name of the column."""

    @property
    def role(self) -> Role:
        """The role of the attribute."""

    @property
    def candidates(self) -> Sequence[CandidateMask]:
        """The candidate masks, in the order of the policy."""


class WithCandidates(Protocol):
    """A summary of any format, with the candidate masks of its attributes."""

    @property
    def all_attributes(self) -> Sequence[AttributeWithMasks]:
        """The attributes that have candidate masks."""


def configurations_to_rank(
    summary: WithCandidates,
    policy: Policy | None,
    request: RankRequest,
    stated: Sequence[Configuration] = (),
) -> list[Configuration]:
    """Return the configurations to rank: those of the caller, else generated ones if the caller asks
    for them, else those of the policy, else the `stated` ones, else 50 generated ones.

    Raises
    ------
    PolicyError
        The caller gives both configurations and a number to generate, or an empty list.
    """
    configurations, count = request.configurations, request.generate_count
    if configurations is not None and count is not None:
        raise PolicyError(
            "You gave both configurations and a number of configurations to generate.",
            hint="Give one of them.",
        )
    if configurations is not None:
        explicit = listed_configurations(configurations)
        if not explicit:
            raise PolicyError("The list of configurations is empty.", hint="Give at least one.")
        return list(explicit)
    if count is None:
        listed = () if policy is None else tuple(policy.configurations.values())
        if listed or stated:
            return list(listed or stated)
    return generate(summary, DEFAULT_COUNT if count is None else count, seed=request.seed or 0)


def combinations(summary: WithCandidates) -> int:
    """Return how many configurations can be made by choosing one candidate mask for each
    attribute.
    """
    return math.prod(len(a.candidates) for a in summary.all_attributes)


def generate(summary: WithCandidates, count: int, *, seed: int = 0) -> list[Configuration]:
    """Return different configurations: first those that mask least, then others drawn at random.

    The first configuration masks every attribute least. The next ones coarsen all quasi-identifiers
    step by step, and mask other attributes least. They make up at most a share `LADDER_SHARE` of
    `count`. In all others, each mask is drawn uniformly from its attribute's candidates.

    Parameters
    ----------
    summary
        The summary with the candidate masks.
    count
        Number of configurations; fewer are returned if there are fewer combinations.
    seed
        The same seed draws the same configurations.

    Raises
    ------
    PolicyError
        `count` is below 1.
    """
    if seed < 0:
        raise PolicyError(f"The seed {seed} is negative.", hint="Give a whole number from 0.")
    if count < 1:
        raise PolicyError(
            f"{count} configurations cannot be generated.", hint="Ask for at least 1."
        )
    attributes = summary.all_attributes
    total = combinations(summary)
    random = np.random.default_rng(seed)
    ladder = _ladder(attributes, max(1, int(count * LADDER_SHARE)))
    if total <= 4 * count:
        drawn = [_decode(number, attributes) for number in random.permutation(total).tolist()]
        choices = list(dict.fromkeys([*ladder, *drawn]))[:count]
    else:
        choices = _distinct(attributes, count, random, ladder)
    width = len(str(len(choices)))
    return [
        Configuration(
            f"c{i + 1:0{width}d}",
            {a.name: a.candidates[c].mask for a, c in zip(attributes, chosen, strict=True)},
        )
        for i, chosen in enumerate(choices)
    ]


def _ladder(attributes: Sequence[AttributeWithMasks], most: int) -> list[tuple[int, ...]]:
    """Return at most `most` combinations, each as one candidate index per attribute: the least
    masked one first, then ever coarser masks of the quasi-identifiers.
    """
    # From the candidate that shows the most values to the one that shows the fewest; ties as declared.
    orders = [
        np.argsort([-c.size for c in a.candidates], kind="stable").tolist() for a in attributes
    ]
    quasi = [a.role is Role.QUASI_IDENTIFIER for a in attributes]
    longest = max((len(o) for o, q in zip(orders, quasi, strict=True) if q), default=1)
    steps = min(most, longest)
    return list(
        dict.fromkeys(
            tuple(
                order[round(step * (len(order) - 1) / max(longest - 1, 1)) if masked else 0]
                for order, masked in zip(orders, quasi, strict=True)
            )
            for step in range(steps)
        )
    )


def _decode(number: int, attributes: Sequence[AttributeWithMasks]) -> tuple[int, ...]:
    """Return the combination with this number, as one candidate index per attribute.

    Combinations are numbered in mixed radix.
    """
    digits = []
    for attribute in reversed(attributes):
        number, digit = divmod(number, len(attribute.candidates))
        digits.append(digit)
    return tuple(reversed(digits))


def _distinct(
    attributes: Sequence[AttributeWithMasks],
    count: int,
    random: np.random.Generator,
    ladder: Sequence[tuple[int, ...]],
) -> list[tuple[int, ...]]:
    sizes = [len(a.candidates) for a in attributes]
    chosen = dict.fromkeys(ladder)
    while len(chosen) < count:
        chosen[tuple(int(random.integers(size)) for size in sizes)] = None
    return list(chosen)
