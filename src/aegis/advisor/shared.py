"""What the configurations of one ranking have in common, so that it is solved once for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from aegis.measures import Cooccurrence
from aegis.measures.shared import FEWEST_LEVELS, SharedLevels, Sharing

if TYPE_CHECKING:
    from aegis.summary import Candidate

FEW = 0.2
"""Share of an unmasked table's levels that attributes may have to stand beside what is shared."""
Count = Callable[[Sequence[int], Sequence["Candidate"], "Candidate | None"], Cooccurrence]
"""Counts attributes, by their places, under candidates, and the label under one."""


class CommonParts:
    """Attributes under masks that many configurations have in common.

    Parameters
    ----------
    count
        What counts some attributes alone.
    """

    def __init__(self, count: Count) -> None:
        self._count = count
        self._parts: list[Mapping[int, Candidate]] = []
        self._levels: dict[tuple[int, Candidate | None], SharedLevels] = {}

    def expect(self, listed: Sequence[Sequence[Candidate]]) -> None:
        """Take note of configurations that are to be scored, one candidate per attribute in each."""
        if len(listed) < 2:
            return
        common = {
            place: candidates[0]
            for place, candidates in enumerate(zip(*listed, strict=True))
            if candidates[0].noise is None and candidates.count(candidates[0]) == len(listed)
        }
        if sum(c.n_levels for c in common.values()) < FEWEST_LEVELS:
            return
        if len(common) < len(listed[0]) and common not in self._parts:
            self._parts.append(common)

    def expect_alone(self, unmasked: Sequence[Candidate], masked: Sequence[Candidate]) -> None:
        """Take note of an unmasked table of which one attribute at a time is masked.

        Attributes of few levels, which together have a small part of all, stand beside the others.
        """
        by_size = sorted(range(len(unmasked)), key=lambda place: unmasked[place].n_levels)
        before = np.cumsum([unmasked[place].n_levels for place in by_size])
        few = by_size[: int(np.searchsorted(before, before[-1] * FEW, side="right"))]
        self.expect([[*unmasked[:i], masked[i], *unmasked[i + 1 :]] for i in few])

    def of(self, candidates: Sequence[Candidate], label: Candidate | None) -> Sharing | None:
        """Return what a configuration has in common with others, the most of what there is."""
        fitting = [
            number
            for number, part in enumerate(self._parts)
            if all(candidates[place] == candidate for place, candidate in part.items())
        ]
        if not fitting:
            return None
        best = max(fitting, key=lambda n: sum(c.n_levels for c in self._parts[n].values()))
        part = self._parts[best]
        key = best, label
        if key not in self._levels:
            self._levels[key] = SharedLevels(
                lambda: self._count(tuple(part), tuple(part.values()), label)
            )
        return Sharing(self._levels[key], tuple(part))
