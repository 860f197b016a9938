"""Factorise the counts that many configurations share only once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from aegis.advisor.grouping import Levels, RowGroups
from aegis.measures import Cooccurrence
from aegis.measures.common_factors import FEWEST_LEVELS, SharedLevels, Sharing
from aegis.measures.ordered import levels_in_common

if TYPE_CHECKING:
    from aegis.summary import Candidate

FEW = 0.33
"""Largest share of a configuration's levels that may stay outside of the common masks."""
_PARTS = 8
"""Number of sets of common masks in the cache; a new set replaces the oldest one."""
Coded = Sequence[tuple[tuple[int, Hashable], Levels]]
"""The cache key and the levels of a candidate under each encoding."""
Code = Callable[[int, "Candidate"], Coded]
Count = Callable[[Sequence[int], Sequence["Candidate"], "Candidate | None"], Cooccurrence]
"""Takes indices of attributes, their candidates and the label's candidate; returns the counts."""


@dataclass(frozen=True, eq=False)
class _Agreed:
    """Masks that configurations share, by attribute index, with the factorised counts for each
    label mask.
    """

    masked: Mapping[int, Candidate]
    levels: dict[Candidate | None, SharedLevels] = field(default_factory=dict)

    @cached_property
    def n_levels(self) -> int:
        return sum(candidate.n_levels for candidate in self.masked.values())

    def is_of(self, candidates: Sequence[Candidate]) -> bool:
        return all(candidates[place] == own for place, own in self.masked.items())


class InCommon(Protocol):
    """A scorer to which you announce configurations, so that it counts their common masks only once."""

    def expect(self, choices: Sequence[Mapping[str, Candidate]]) -> None:
        """Announce configurations to score, so that the scorer counts their common masks once."""

    def share(self, masked: Mapping[str, Candidate]) -> None:
        """Announce masks of some attributes that many of the next configurations share."""

    def expect_alone(
        self, unmasked: Mapping[str, Candidate], choice: Mapping[str, Candidate]
    ) -> None:
        """Announce variants of the unmasked table, each with one attribute masked as in `choice`."""

    def expect_near(self, base: Mapping[str, Candidate], changed: Collection[str]) -> None:
        """Announce variants of `base`, each with another mask for one attribute of `changed`."""


class CommonParts:
    """A cache of sets of masks that many configurations have in common, with factorised counts.

    Parameters
    ----------
    names
        Names of the attributes.
    groups
        Sums counts by level. If it has no cache, this class shares nothing.
    count
        Function that returns the counts of only some attributes.
    coded
        Function that returns the levels in which a candidate is counted, from the attribute's
        index.
    """

    def __init__(self, names: Sequence[str], groups: RowGroups, count: Count, coded: Code) -> None:
        self._names = names
        self._groups = groups
        self._count = count
        self._coded = coded
        self._parts: deque[_Agreed] = deque(maxlen=_PARTS)

    def expect(self, choices: Sequence[Mapping[str, Candidate]]) -> None:
        """Prepare to score these configurations: factorise the counts of their common masks once."""
        if len(choices) < 2:
            return
        if self._groups.remember:
            self._count_together(choices)
        first = choices[0]
        if not self._known(first):
            self.share({n: first[n] for n in self._names if all(c[n] == first[n] for c in choices)})

    def share(self, masked: Mapping[str, Candidate]) -> None:
        """Prepare to score configurations that share these masks: factorise their counts once."""
        common = {
            place: masked[name]
            for place, name in enumerate(self._names)
            if name in masked and masked[name].noise is None
        }
        part = _Agreed(common)
        if part.n_levels >= FEWEST_LEVELS and len(common) < len(self._names):
            self._parts.append(part)

    def _count_together(self, choices: Sequence[Mapping[str, Candidate]]) -> None:
        """Count the levels of all announced configurations in one pass, under each encoding."""
        expected: tuple[dict[tuple[int, Hashable], Levels], ...] = ({}, {})
        for place, name in enumerate(self._names):
            for candidate in dict.fromkeys(choice[name] for choice in choices):
                if candidate.noise is not None:
                    continue  # what it shows is worked out where a measure requires it
                for levels, coded in zip(expected, self._coded(place, candidate), strict=True):
                    levels.update([coded])
        for levels in expected:
            self._groups.expect(levels, len(choices))

    def expect_alone(
        self, unmasked: Mapping[str, Candidate], choice: Mapping[str, Candidate]
    ) -> None:
        """Prepare to score variants of the unmasked table, each with one attribute masked."""
        few = self.beside(unmasked, [n for n in self._names if choice[n] != unmasked[n]])
        self.expect([{**unmasked, name: choice[name]} for name in few])

    def expect_near(self, base: Mapping[str, Candidate], changed: Collection[str]) -> None:
        """Prepare to score variants of `base`, each with another mask for one attribute of `changed`."""
        if not self._known(base):
            few = self.beside(base, changed)
            self.share({name: own for name, own in base.items() if name not in few})

    def _known(self, choice: Mapping[str, Candidate]) -> bool:
        """Return whether announced common masks cover nearly all levels of a configuration."""
        own = [choice[name] for name in self._names]
        part, levels = self._fitting(own), sum(candidate.n_levels for candidate in own)
        return part is not None and part.n_levels >= (1 - FEW) * levels

    def beside(self, base: Mapping[str, Candidate], changed: Collection[str]) -> list[str]:
        """Return the changed attributes that stay outside of the common masks.

        These are the changed attributes with the fewest levels; together they have at most a share
        `FEW` of all levels.
        """
        levels = {name: base[name].n_levels for name in self._names}
        by_size = sorted((n for n in self._names if n in changed), key=levels.__getitem__)
        before = np.cumsum([levels[name] for name in by_size])
        return by_size[: int(np.searchsorted(before, sum(levels.values()) * FEW, side="right"))]

    def places(self, candidates: Sequence[Candidate]) -> Sequence[int]:
        """Return the indices of the attributes in the largest common set of masks of a configuration."""
        part = self._fitting(candidates)
        return () if part is None else tuple(part.masked)

    def of(self, candidates: Sequence[Candidate], label: Candidate | None) -> Sharing | None:
        """Return the factorised counts of the largest common set of masks, and the levels of all
        attributes.

        Return None if the configuration has no common masks, or if there is no cache.
        """
        part = self._fitting(candidates) if self._groups.remember else None
        if part is None:
            return None
        which, masks = tuple(part.masked), tuple(part.masked.values())
        if label not in part.levels:
            part.levels[label] = levels_in_common(lambda: self._count(which, masks, label))
        own = [self._coded(place, candidate)[0][0] for place, candidate in enumerate(candidates)]
        together = self._groups.together(*zip(*own, strict=True))
        return Sharing(part.levels[label], which, together)

    def _fitting(self, candidates: Sequence[Candidate]) -> _Agreed | None:
        """Return the announced masks that a configuration has, the set with most levels; None if none."""
        fitting = [part for part in self._parts if part.is_of(candidates)]
        return max(fitting, key=lambda part: part.n_levels, default=None)
