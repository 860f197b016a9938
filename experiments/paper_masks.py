"""Configurations as the AEGIS paper draws them, for the reproduction of its experiments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from aegis.errors import DataError, PolicyError
from aegis.masks import Kind, Mask, parse_mask
from aegis.policy import Configuration, Policy
from aegis.sources import open_table
from aegis.summary import Summary

BUCKETS = (2, 3, 4, 5)
DIGITS = (1, 2, 3)
_NUMERIC: tuple[tuple[Any, ...], ...] = (
    tuple({"equal_width": {"count": count}} for count in BUCKETS),
    tuple({"erase_digits": {"digits": digits}} for digits in DIGITS),
    ("suppress",),
)
_CATEGORICAL: tuple[tuple[Any, ...], ...] = (("identity",), ("suppress",))


def paper_policy(table: Any, policy: Policy) -> Policy:
    """Return the policy with the candidate masks of the paper, and no others.

    Numbers: 2 to 5 buckets of equal width, 1 to 3 digits erased, or suppressed. Everything else:
    as it is, or suppressed. Roles, label, rule and measure stay; the policy's own configurations
    go, for their masks may no longer be candidates.

    Parameters
    ----------
    table
        Anything that `aegis.sources.open_table` opens; its schema says what is a number.
    policy
        Roles and label.

    Raises
    ------
    DataError
        A scored column is missing, or of a type that no mask works on.
    """
    source = open_table(table)
    attributes = dict(policy.attributes)
    for attribute in policy.features:
        kind = Kind.of(source.require(attribute.name, where="named in the policy").type())
        if kind is None:
            raise DataError(
                f"Attribute {attribute.name!r} has a type that no mask works on.",
                hint="Give it the role ignore.",
            )
        masks = tuple(mask for family in _families(kind) for mask in family)
        attributes[attribute.name] = replace(attribute, masks=masks)
    return replace(policy, attributes=attributes, configurations={})


def paper_configurations(summary: Summary, count: int, *, seed: int = 0) -> list[Configuration]:
    """Draw different configurations as the paper does: a family, then its parameter, uniformly.

    Parameters
    ----------
    summary
        Made under `paper_policy`.
    count
        How many; fewer are returned when chance gives no new one in 1,000 draws.
    seed
        The same seed draws the same configurations.

    Raises
    ------
    PolicyError
        `count` is below 1, or the summary's candidates are not those of the paper.

    References
    ----------
    AEGIS (Laskar et al., SIGMOD 2025), experimental setup. That each family is equally likely,
    whatever the number of its parameters, is our reading.
    """
    if count < 1:
        raise PolicyError(
            f"{count} configurations cannot be generated.", hint="Ask for at least 1."
        )
    random = np.random.default_rng(seed)
    distinct: dict[tuple[Mask, ...], None] = {}
    unlucky = 0
    while len(distinct) < count and unlucky < 1000:
        drawn = tuple(_draw(a.kind, random) for a in summary.attributes.values())
        unlucky = unlucky + 1 if drawn in distinct else 0
        distinct[drawn] = None
    width = len(str(len(distinct)))
    own = summary.label_attribute
    label = {} if own is None else {own.name: own.candidates[0].mask}
    return [
        Configuration(
            f"p{number:0{width}d}",
            {
                attribute.name: attribute.candidate(mask).mask
                for attribute, mask in zip(summary.attributes.values(), masks, strict=True)
            }
            | label,
        )
        for number, masks in enumerate(distinct, start=1)
    ]


def _families(kind: Kind) -> tuple[tuple[Mask, ...], ...]:
    families = _NUMERIC if kind.numeric else _CATEGORICAL
    return tuple(tuple(parse_mask(spec) for spec in family) for family in families)


def _draw(kind: Kind, random: np.random.Generator) -> Mask:
    families = _families(kind)
    family = families[int(random.integers(len(families)))]
    return family[int(random.integers(len(family)))]
