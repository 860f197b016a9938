"""Factorise the counts that many configurations share only once."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from aegis.measures.split import FEWEST_LEVELS

if TYPE_CHECKING:
    from aegis.summary import Candidate

FEW = 0.33
"""Largest share of a configuration's levels that may stay outside of the common masks."""
_PARTS = 8
"""Number of sets of common masks in the cache; a new set replaces the oldest one."""


@dataclass(frozen=True, eq=False)
class _Agreed:
    """Masks that configurations share, by attribute index."""

    masked: Mapping[int, Candidate]

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
    """A cache of sets of masks that many configurations have in common.

    Parameters
    ----------
    names
        Names of the attributes.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._parts: deque[_Agreed] = deque(maxlen=_PARTS)

    def expect(self, choices: Sequence[Mapping[str, Candidate]]) -> None:
        """Prepare to score these configurations: factorise the counts of their common masks once."""
        if len(choices) < 2:
            return
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

    def _fitting(self, candidates: Sequence[Candidate]) -> _Agreed | None:
        """Return the announced masks that a configuration has, the set with most levels; None if none."""
        fitting = [part for part in self._parts if part.is_of(candidates)]
        return max(fitting, key=lambda part: part.n_levels, default=None)
