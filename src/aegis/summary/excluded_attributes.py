"""Exclude attributes from measures of whole configurations, if a table has too many levels.

The time of such a measure grows with the cube of the number of levels of all attributes together,
and the size of its counts grows with the square. If there are more than `TOGETHER` levels, the
measures use only the attributes that alone predict the label best. All other attributes get a
single level, so they do not change a score. Measures of single attributes still use all levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from aegis.masks import Grouping, NoiseMask
from aegis.summary.attributes import describe
from aegis.summary.levels import pool
from aegis.summary.model import AttributeSummary
from aegis.summary.weights import WeightSums

TOGETHER = 2_048
"""Largest number of atoms of all attributes together in measures of whole configurations."""


def told_alone(
    attribute: AttributeSummary, max_levels: int, weights: WeightSums | None = None
) -> float:
    """Return how well a single unmasked attribute, with at most `max_levels` levels, predicts the
    label, as Pillai's trace corrected for chance.

    The trace is chi-square divided by the number of rows. The correction subtracts its mean for a
    randomly permuted label, (levels - 1) (classes - 1) / (rows - 1). The result is at least 0. If
    counts are sums of row weights w, `weights` scales them so that all rows together count as (sum
    of w)^2 / (sum of w^2) effective rows.

    Examples
    --------
    >>> import aegis
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> round(told_alone(study.summary.attributes["education"], 128), 4)
    0.1356
    """
    groups = attribute.unmasked.groups
    level = pool(groups, attribute.joint.sum(axis=1), max_levels)
    joint = np.zeros((int(level.max(initial=0)) + 1, attribute.joint.shape[1]))
    np.add.at(
        joint, level, attribute.joint if weights is None else weights.in_rows(attribute.joint)
    )
    joint = joint[joint.sum(axis=1) > 0][:, joint.sum(axis=0) > 0]
    rows, classes = joint.sum(axis=1), joint.sum(axis=0)
    n = float(joint.sum())
    if n < 2 or len(classes) < 2:
        return 0.0
    explained = float((joint**2 / np.outer(rows, classes)).sum()) - 1
    return max(0.0, explained - (len(rows) - 1) * (len(classes) - 1) / (n - 1))


def set_aside(
    attributes: Mapping[str, AttributeSummary],
    max_levels: int,
    together: int = TOGETHER,
    weights: WeightSums | None = None,
    explained: Callable[[AttributeSummary], float] | None = None,
) -> dict[str, AttributeSummary]:
    """Reduce the attributes that predict the label worst to a single level each, so that measures
    of whole configurations leave them out.

    Attributes keep their levels in descending order of `told_alone`, as long as they have at most
    `together` atoms (sets of values) in total. Of attributes that predict equally well, the one
    with fewer atoms comes first. An attribute with too many atoms is skipped, unless it is the
    first. Attributes with noise masks are never reduced, because the levels of their noisy values
    are not known here. For a numeric label, the function `explained` replaces `told_alone`.
    `max_levels` is the largest number of levels of an attribute.

    Examples
    --------
    >>> import aegis
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> fewer = set_aside(study.summary.attributes, 128, together=60)
    >>> [name for name, attribute in fewer.items() if attribute.aside][:3]
    ['age', 'native-country', 'capital-gain']
    """
    if sum(a.n_atoms for a in attributes.values()) <= together:
        return dict(attributes)
    noisy = {n for n, a in attributes.items() if _has_noise(a)}
    left = together - sum(attributes[name].n_atoms for name in noisy)
    alone = explained or partial(told_alone, max_levels=max_levels, weights=weights)
    told = {n: alone(a) for n, a in attributes.items() if n not in noisy}
    taken = set(noisy)
    for name in sorted(told, key=lambda n: (-told[n], attributes[n].n_atoms)):
        more = attributes[name].n_atoms
        if more <= left or not taken:
            taken.add(name)
            left -= more
    return {n: a if n in taken else _aside(a) for n, a in attributes.items()}


def _has_noise(attribute: AttributeSummary) -> bool:
    return any(isinstance(c.mask, NoiseMask) for c in attribute.candidates)


def _aside(attribute: AttributeSummary) -> AttributeSummary:
    """Return the attribute with all values in one atom (set of values that are counted together),
    and with a single level under every mask.
    """
    atoms, level = np.zeros(len(attribute.values), np.int32), np.zeros(1, np.int32)
    candidates = [
        replace(c, levels=level, ranges=None if c.ranges is None else level)
        for c in (*attribute.candidates, attribute.unmasked)
    ]
    return replace(
        attribute, atoms=atoms, candidates=tuple(candidates[:-1]), unmasked=candidates[-1]
    )


def in_full(attribute: AttributeSummary, max_levels: int) -> AttributeSummary:
    """Restore the levels (at most `max_levels`) and ranges of an attribute that `set_aside` has
    reduced to a single level.

    Examples
    --------
    >>> import aegis
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> known = study.summary.attributes["race"]
    >>> both = {"education": study.summary.attributes["education"], "race": known}
    >>> aside = set_aside(both, 128, together=17)["race"]
    >>> aside.unmasked.n_levels, in_full(aside, 128).unmasked.n_levels, known.unmasked.n_levels
    (1, 5, 5)
    """
    every = (*attribute.candidates, attribute.unmasked)
    full = describe(
        attribute.name,
        attribute.role,
        attribute.weight,
        attribute.data,
        attribute.joint,
        [(c.mask, c.declared) for c in attribute.candidates],
        max_levels,
        groupings=[Grouping(c.groups, c.shown) for c in every],
    )
    return replace(full, domain=attribute.domain, nulls=attribute.nulls)
