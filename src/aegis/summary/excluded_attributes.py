"""Attributes that measures of a whole configuration leave out because a table has too many levels.

The cost of such a measure grows with the cube of the levels of all attributes together, and of what
it counts with their square. Where they are more than `TOGETHER`, those attributes take part that tell
most of the label by themselves; the others are set aside: each has one level, so that it neither adds
to a score nor takes from it. Measures of single attributes see all of it as ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from aegis.masks import NoiseMask
from aegis.summary.levels import pool
from aegis.summary.model import AttributeSummary

TOGETHER = 2_048
"""Most atoms of all attributes together in measures of a whole configuration."""


def told_alone(attribute: AttributeSummary, max_levels: int) -> float:
    """Return how well the unmasked levels predict the label: Pillai's trace, corrected for chance.

    That is chi-square over the rows, less what it is on the average where the label is drawn at
    random: (levels - 1) (classes - 1) / (rows - 1). At least 0.

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
    np.add.at(joint, level, attribute.joint)
    joint = joint[joint.sum(axis=1) > 0][:, joint.sum(axis=0) > 0]
    rows, classes = joint.sum(axis=1), joint.sum(axis=0)
    n = float(joint.sum())
    if n < 2 or len(classes) < 2:
        return 0.0
    explained = float((joint**2 / np.outer(rows, classes)).sum()) - 1
    return max(0.0, explained - (len(rows) - 1) * (len(classes) - 1) / (n - 1))


def set_aside(
    attributes: Mapping[str, AttributeSummary], max_levels: int, together: int = TOGETHER
) -> dict[str, AttributeSummary]:
    """Return the attributes with one level each, except those that predict the label best.

    They are taken in the order of what they predict of the label alone, those with fewer atoms first
    where that is equal; one that does not fit is passed over, unless it is the first. Attributes with
    noise masks take part always: what noise shows is not known level by level.

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
    told = {n: told_alone(a, max_levels) for n, a in attributes.items() if n not in noisy}
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
    """Return an attribute whose values are one atom, on one level under every mask."""
    atoms, level = np.zeros(len(attribute.values), np.int32), np.zeros(1, np.int32)
    candidates = [
        replace(c, levels=level, ranges=None if c.ranges is None else level)
        for c in (*attribute.candidates, attribute.unmasked)
    ]
    return replace(
        attribute, atoms=atoms, candidates=tuple(candidates[:-1]), unmasked=candidates[-1]
    )


def in_full(attribute: AttributeSummary, max_levels: int) -> AttributeSummary:
    """Return an excluded attribute with its levels and ranges, as if it were not excluded.

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
    from aegis.summary.levels import atomise
    from aegis.summary.ordered import ranges_of

    every = (*attribute.candidates, attribute.unmasked)
    pooled = [pool(c.groups, attribute.counts, max_levels) for c in every]
    ranges = [
        None
        if c.ranges is None
        else ranges_of(c.groups, attribute.counts, max_levels, attribute.values)
        for c in every
    ]
    known = [own for own in ranges if own is not None]
    atoms, told = atomise([*pooled, *known], len(attribute.values))
    cut = iter(told[len(pooled) :])
    candidates = [
        replace(c, levels=level, ranges=None if own is None else next(cut))
        for c, level, own in zip(every, told, ranges, strict=False)
    ]
    return replace(
        attribute, atoms=atoms, candidates=tuple(candidates[:-1]), unmasked=candidates[-1]
    )
