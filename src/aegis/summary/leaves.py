"""Count the leaves of masked values, and the bits that masks hide. Leaves are the original values
that a masked value may represent.

The leaves of an attribute are the leaves of its hierarchy, including leaves without rows. If it has
no hierarchy, they are its distinct values in the table. A masked value with n leaves hides log2 n
bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from aegis.arrays import Floats, Integers
from aegis.errors import PolicyError
from aegis.masks import Hierarchy, Level, Mask, NoiseMask, evaluate
from aegis.policy import Policy
from aegis.sources import Source
from aegis.summary.codes import encode, show
from aegis.summary.frequency import FrequencyTable
from aegis.summary.model import AttributeSummary, Candidate

_LEAVES: WeakKeyDictionary[Candidate, Floats] = WeakKeyDictionary()
"""Leaves of each value's group, by candidate: each belongs to one attribute."""


def leaf_counts(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return how many leaves are in the group of each value under a candidate, shape (V,)."""
    if candidate not in _LEAVES:  # a search asks thousands of times
        null, hierarchy = attribute.values.null_count > 0, _hierarchy_of(attribute)
        counts = _per_group(
            candidate.mask, hierarchy, candidate.groups, candidate.masked_values, null
        )
        _LEAVES[candidate] = counts[candidate.groups]
    return _LEAVES[candidate]


def leaf_shares(attribute: AttributeSummary, candidate: Candidate) -> Floats | None:
    """Return which share of all leaves of the hierarchy is in the group of each value, shape (V,);
    None without a hierarchy.
    """
    mask = candidate.mask
    if not isinstance(mask, Level) or mask.hierarchy is None:
        return None
    null = attribute.values.null_count > 0
    span = _all_leaves(mask.hierarchy, null) - 1
    if span <= 0 or not mask.level:
        return np.zeros(len(candidate.groups))
    shares: Floats = (
        leaves_of_level(mask.hierarchy, mask.level, candidate.masked_values) - 1
    ) / span
    return shares[candidate.groups]


def domain(attribute: AttributeSummary) -> int:
    """Return how many leaves an attribute has."""
    hierarchy = _hierarchy_of(attribute)
    if hierarchy is None:
        return len(attribute.values)
    return _all_leaves(hierarchy, attribute.values.null_count > 0)


def hidden_shares(
    frequency: FrequencyTable,
    attributes: Mapping[str, AttributeSummary],
    choice: Mapping[str, Candidate],
) -> Floats:
    """Return how much of the information in the quasi-identifiers of each cell of the frequency
    table the masks hide, as a share of all bits, shape (cells,).
    """
    hidden = np.zeros(frequency.cells)
    for name in frequency.quasi:
        bits = np.log2(leaf_counts(attributes[name], choice[name]))
        hidden += bits[frequency.representatives[name]][frequency.codes[name]]
    return hidden / whole_bits(domain(attributes[name]) for name in frequency.quasi)


def whole_bits(domains: Iterable[int]) -> float:
    """Return the sum over attributes of log2 of their numbers of leaves (`domains`); 1 if it is 0."""
    return math.fsum(math.log2(max(size, 1)) for size in domains) or 1.0


@dataclass(frozen=True)
class ShownLeaves:
    """How many bits each masked value of each quasi-identifier hides, by its text, and the sum of
    the bits that the quasi-identifiers have.
    """

    bits: tuple[Mapping[str, float], ...]
    total_bits: float

    def hidden(self, classes: pa.Table) -> Floats:
        """Return which share of the bits each class hides, shape (n_classes,). The first columns of
        `classes` are the quasi-identifiers in their order.
        """
        hidden = np.zeros(classes.num_rows)
        for column, bits in zip(classes.columns, self.bits, strict=False):
            codes, values = encode(column.combine_chunks())
            hidden += np.array([bits[show(v)] for v in values.to_pylist()] or [0.0])[codes]
        return hidden / self.total_bits


def shown_leaves(source: Source, policy: Policy, masks: Mapping[str, Mask | None]) -> ShownLeaves:
    """Return how many bits fitted masks hide in the quasi-identifiers of an unmasked table; None
    leaves an attribute unmasked.
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
                f"The rule depends on how many values each released value may represent, but {mask} of "
                f"{attribute.name!r} draws its values at random: {policy.privacy}.",
                hint="Choose a mask that groups values, or ask for k.",
            )
        (grouping,) = evaluate([mask], values, source.table[attribute.name].type())
        counts = _per_group(mask, hierarchy, grouping.codes, grouping.masked_values, null)
        texts = [show(v) for v in grouping.masked_values.to_pylist()]
        bits.append(dict(zip(texts, np.log2(counts).tolist(), strict=True)))
    return ShownLeaves(tuple(bits), whole_bits(domains))


def leaves_by_hierarchy(
    classes: pa.Table,
    policy: Policy,
    quasi: Sequence[str],
    masks: Mapping[str, Mask | None] | None = None,
) -> ShownLeaves:
    """Return how many bits the values of a masked table hide, judging by the hierarchies of the
    policy. `classes` has columns `k0`, `k1`, ... in the order of `quasi`. If the mask of an
    attribute is not known, the lowest level of the hierarchy that has all its values in the masked
    table is used.

    Raises
    ------
    PolicyError
        A quasi-identifier has no hierarchy, or no single level has all its values.
    """
    bits, domains = [], []
    for index, name in enumerate(quasi):
        attribute = policy.attributes.get(name)
        hierarchy = None if attribute is None else _first_hierarchy(attribute.masks)
        if hierarchy is None:
            raise PolicyError(
                f"The rule depends on how many values each value of {name!r} may represent, and {name!r} has "
                "no hierarchy.",
                hint="To audit a table that is already masked, give this column a hierarchy. `aegis apply` "
                "checks the rule while it makes a release.",
            )
        texts = [show(v) for v in encode(classes[f"k{index}"].combine_chunks())[1].to_pylist()]
        null = "null" in texts and None not in hierarchy.values
        made_by = (masks or {}).get(name)
        levels = range(hierarchy.height + 1)
        if isinstance(made_by, Level):
            levels = range(made_by.level, made_by.level + 1)
        bits.append(_by_level(name, hierarchy, texts, levels, null))
        domains.append(_all_leaves(hierarchy, null))
    return ShownLeaves(tuple(bits), whole_bits(domains))


def without_hierarchy(policy: Policy, quasi: Sequence[str]) -> list[str]:
    """Return the quasi-identifiers without a hierarchy: of these, a masked table cannot show how
    many leaves a value has.
    """
    hierarchies = {name: _first_hierarchy(a.masks) for name, a in policy.attributes.items()}
    return [name for name in quasi if hierarchies.get(name) is None]


def _by_level(
    name: str, hierarchy: Hierarchy, texts: list[str], levels: range, null: bool
) -> dict[str, float]:
    for level in levels:
        members = hierarchy.groups(level)
        sizes = {show(group): len(leaves) for group, leaves in members.items()}
        if null:
            sizes.setdefault("null", 1)
        if all(value in sizes for value in texts):
            return {value: math.log2(sizes[value]) for value in texts}
    raise PolicyError(
        f"No level of the hierarchy of {name!r} has all values that the table shows.",
        hint="Audit the table that was made under this hierarchy, all rows at one level.",
    )


def _per_group(
    mask: Mask, hierarchy: Hierarchy | None, groups: Integers, masked_values: pa.Array, null: bool
) -> Floats:
    """Return the number of leaves of each group of a mask, shape (groups,). `groups` has the group
    of each value, and `null` says whether null occurs.
    """
    if hierarchy is None or not isinstance(mask, Level) or mask.hierarchy != hierarchy:
        return np.bincount(groups, minlength=len(masked_values)).astype(np.float64)
    if not mask.level or _all_leaves(hierarchy, null) <= 1:
        return np.ones(len(masked_values))
    return leaves_of_level(hierarchy, mask.level, masked_values)


def leaves_of_level(hierarchy: Hierarchy, level: int, masked_values: pa.Array) -> Floats:
    """Return how many leaves each of the `masked_values`, groups on a level of the hierarchy, has."""
    groups = hierarchy.groups(level)
    names = [None if value is None else str(value) for value in masked_values.to_pylist()]
    return np.array([len(groups.get(name, (None,))) for name in names], dtype=np.float64)


def _all_leaves(hierarchy: Hierarchy, null: bool) -> int:
    # Null is its own leaf where the hierarchy has no row for it.
    return len(hierarchy.rows) + int(null and None not in hierarchy.values)


def _hierarchy_of(attribute: AttributeSummary) -> Hierarchy | None:
    """Return the hierarchy of an attribute's candidates; the first if there are several."""
    return _first_hierarchy(c.mask for c in attribute.candidates)


def _first_hierarchy(masks: Iterable[Mask]) -> Hierarchy | None:
    for mask in masks:
        if isinstance(mask, Level) and mask.hierarchy is not None:
            return mask.hierarchy
    return None
