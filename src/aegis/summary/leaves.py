"""How many values a shown value may represent: the leaves of its group, and the bits that they
hide.

Leaves are those of an attribute's hierarchy, whether or not a row has them; else the distinct values
of the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegis.errors import PolicyError
from aegis.masks import Hierarchy, Level, Mask, NoiseMask, evaluate
from aegis.policy import Policy
from aegis.sources import Source
from aegis.summary.codes import encode, show
from aegis.summary.frequency import FrequencyTable
from aegis.summary.model import AttributeSummary, Candidate

Floats = npt.NDArray[np.float64]
_LEAVES: WeakKeyDictionary[Candidate, Floats] = WeakKeyDictionary()
"""Leaves of each value's group, by candidate: each belongs to one attribute."""


def leaf_counts(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return how many leaves the group of each value has, shape (V,).

    Leaves are those of the attribute's hierarchy, else its distinct values.
    """
    if candidate not in _LEAVES:  # a search asks thousands of times
        null, hierarchy = attribute.values.null_count > 0, _hierarchy_of(attribute)
        counts = _per_group(candidate.mask, hierarchy, candidate.groups, candidate.shown, null)
        _LEAVES[candidate] = counts[candidate.groups]
    return _LEAVES[candidate]


def leaf_shares(attribute: AttributeSummary, candidate: Candidate) -> Floats | None:
    """Return the share of a hierarchy's leaves in each value's group; None without a hierarchy."""
    mask = candidate.mask
    if not isinstance(mask, Level) or mask.hierarchy is None:
        return None
    null = attribute.values.null_count > 0
    span = _all_leaves(mask.hierarchy, null) - 1
    if span <= 0 or not mask.level:
        return np.zeros(len(candidate.groups))
    shares: Floats = (_of_level(mask.hierarchy, mask.level, candidate.shown) - 1) / span
    return shares[candidate.groups]


def domain(attribute: AttributeSummary) -> int:
    """Return how many leaves an attribute has in all."""
    hierarchy = _hierarchy_of(attribute)
    if hierarchy is None:
        return len(attribute.values)
    return _all_leaves(hierarchy, attribute.values.null_count > 0)


def hidden_shares(
    frequency: FrequencyTable,
    attributes: Mapping[str, AttributeSummary],
    choice: Mapping[str, Candidate],
) -> Floats:
    """Return the share of the bits of each cell's quasi-identifiers that masks hide, shape (cells,).

    Parameters
    ----------
    frequency
        The cells.
    attributes
        The quasi-identifiers, by name.
    choice
        Their candidates.
    """
    hidden = np.zeros(frequency.cells)
    for name in frequency.quasi:
        bits = np.log2(leaf_counts(attributes[name], choice[name]))
        hidden += bits[frequency.representatives[name]][frequency.codes[name]]
    return hidden / whole_bits(domain(attributes[name]) for name in frequency.quasi)


def whole_bits(domains: Iterable[int]) -> float:
    """Return the bits of all leaves of all attributes; 1 if there is nothing to hide."""
    return math.fsum(math.log2(max(size, 1)) for size in domains) or 1.0


@dataclass(frozen=True)
class ShownLeaves:
    """The bits that each shown value of each quasi-identifier hides.

    Attributes
    ----------
    bits
        Per quasi-identifier log2 of the leaves of each shown value, by its text.
    whole
        The bits of all leaves.
    """

    bits: tuple[Mapping[str, float], ...]
    whole: float

    def hidden(self, classes: pa.Table) -> Floats:
        """Return the share of the bits that each class hides, shape (n_classes,).

        Parameters
        ----------
        classes
            A row per class, the quasi-identifiers in their order first.
        """
        hidden = np.zeros(classes.num_rows)
        for column, bits in zip(classes.columns, self.bits, strict=False):
            codes, values = encode(column.combine_chunks())
            hidden += np.array([bits[show(v)] for v in values.to_pylist()] or [0.0])[codes]
        return hidden / self.whole


def shown_leaves(source: Source, policy: Policy, masks: Mapping[str, Mask | None]) -> ShownLeaves:
    """Return the bits that the masks of a policy's quasi-identifiers hide in a table.

    Parameters
    ----------
    source
        The table, unmasked.
    policy
        Names the quasi-identifiers and their hierarchies.
    masks
        Fitted masks by attribute; None leaves it as it is.
    """
    bits, domains = [], []
    for attribute in policy.quasi_identifiers:
        column = source.require(attribute.name, where="the policy's attributes")
        values = source.collect(source.table.select(v=column).distinct())["v"].combine_chunks()
        hierarchy = _first_hierarchy(attribute.masks)
        mask = masks.get(attribute.name)
        null = values.null_count > 0
        domains.append(len(values) if hierarchy is None else _all_leaves(hierarchy, null))
        if mask is None:
            bits.append({show(v): 0.0 for v in values.to_pylist()})
            continue
        if isinstance(mask, NoiseMask):
            raise PolicyError(
                f"The rule depends on how many values each shown value may represent, and {mask} of "
                f"{attribute.name!r} draws what it shows: {policy.privacy}.",
                hint="Choose a mask that groups values, or ask for k.",
            )
        (grouping,) = evaluate([mask], values, source.table[attribute.name].type())
        counts = _per_group(mask, hierarchy, grouping.codes, grouping.shown, null)
        shown = [show(v) for v in grouping.shown.to_pylist()]
        bits.append(dict(zip(shown, np.log2(counts).tolist(), strict=True)))
    return ShownLeaves(tuple(bits), whole_bits(domains))


def leaves_by_hierarchy(
    classes: pa.Table,
    policy: Policy,
    quasi: Sequence[str],
    masks: Mapping[str, Mask | None] | None = None,
) -> ShownLeaves:
    """Return the bits that an already masked table hides, by the policy's hierarchies.

    Parameters
    ----------
    classes
        A row per class, columns `k0`, `k1`, ... in the order of `quasi`.
    policy
        Has the hierarchies.
    quasi
        The quasi-identifiers.
    masks
        The masks that the table was made with, where they are known; of an attribute without one the
        lowest level counts that has all values which the table shows.

    Raises
    ------
    PolicyError
        A quasi-identifier has no hierarchy, or shows what no one level of it has.
    """
    bits, domains = [], []
    for place, name in enumerate(quasi):
        known = policy.attributes.get(name)
        hierarchy = None if known is None else _first_hierarchy(known.masks)
        if hierarchy is None:
            raise PolicyError(
                f"The rule depends on how many values each value of {name!r} may represent, and {name!r} has "
                "no hierarchy.",
                hint="Only a hierarchy says that of a table that is masked already. aegis apply states what "
                "the rule says of a release while it makes it.",
            )
        shown = [show(v) for v in encode(classes[f"k{place}"].combine_chunks())[1].to_pylist()]
        null = "null" in shown and None not in hierarchy.values
        made_by = (masks or {}).get(name)
        levels = range(hierarchy.height + 1)
        if isinstance(made_by, Level):
            levels = range(made_by.level, made_by.level + 1)
        bits.append(_by_level(name, hierarchy, shown, levels, null))
        domains.append(_all_leaves(hierarchy, null))
    return ShownLeaves(tuple(bits), whole_bits(domains))


def without_hierarchy(policy: Policy, quasi: Sequence[str]) -> list[str]:
    """Return the quasi-identifiers whose leaves a masked table does not say: those without hierarchy."""
    known = policy.attributes
    return [n for n in quasi if n not in known or _first_hierarchy(known[n].masks) is None]


def _by_level(
    name: str, hierarchy: Hierarchy, shown: list[str], levels: range, null: bool
) -> dict[str, float]:
    for level in levels:
        members = hierarchy.groups(level)
        sizes = {show(group): len(leaves) for group, leaves in members.items()}
        if null:
            sizes.setdefault("null", 1)
        if all(value in sizes for value in shown):
            return {value: math.log2(sizes[value]) for value in shown}
    raise PolicyError(
        f"No level of the hierarchy of {name!r} has all values that the table shows.",
        hint="Audit the table that was made under this hierarchy, all rows at one level.",
    )


def _per_group(
    mask: Mask,
    hierarchy: Hierarchy | None,
    groups: npt.NDArray[np.integer],
    shown: pa.Array,
    null: bool,
) -> Floats:
    """Return how many leaves each group has, shape (groups,)."""
    if hierarchy is None or not isinstance(mask, Level) or mask.hierarchy != hierarchy:
        return np.bincount(groups, minlength=len(shown)).astype(np.float64)
    if not mask.level or _all_leaves(hierarchy, null) <= 1:
        return np.ones(len(shown))
    return _of_level(hierarchy, mask.level, shown)


def _of_level(hierarchy: Hierarchy, level: int, shown: pa.Array) -> Floats:
    """Return the leaves of the groups of a level that are shown, shape (groups,)."""
    groups = hierarchy.groups(level)
    names = [None if value is None else str(value) for value in shown.to_pylist()]
    return np.array([len(groups.get(name, (None,))) for name in names], dtype=np.float64)


def _all_leaves(hierarchy: Hierarchy, null: bool) -> int:
    # Null is its own leaf where the hierarchy has no row for it.
    return len(hierarchy.rows) + int(null and None not in hierarchy.values)


def _hierarchy_of(attribute: AttributeSummary) -> Hierarchy | None:
    """Return the hierarchy that an attribute's candidates use, the first one of several."""
    return _first_hierarchy(c.mask for c in attribute.candidates)


def _first_hierarchy(masks: Iterable[Mask]) -> Hierarchy | None:
    for mask in masks:
        if isinstance(mask, Level) and mask.hierarchy is not None:
            return mask.hierarchy
    return None
