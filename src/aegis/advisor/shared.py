"""What the configurations of one ranking have in common, so that it is solved once for all."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from aegis.advisor.grouping import Levels, RowGroups
from aegis.measures import Cooccurrence
from aegis.measures.shared import FEWEST_LEVELS, SharedLevels, Sharing

if TYPE_CHECKING:
    from aegis.summary import Candidate

FEW = 0.2
"""Share of an unmasked table's levels that attributes may have to stand beside what is shared."""
Coded = Sequence[tuple[tuple[int, Hashable], Levels]]
"""In which levels a candidate is counted under each coding, by what they are remembered by."""
Code = Callable[[int, "Candidate"], Coded]
Count = Callable[[Sequence[int], Sequence["Candidate"], "Candidate | None"], Cooccurrence]
"""Counts attributes, by their places, under candidates, and the label under one."""


class CommonParts:
    """Attributes under masks that many configurations have in common.

    Parameters
    ----------
    names
        The attributes.
    groups
        Adds up rows; where it remembers none, nothing is shared.
    count
        What counts some attributes alone.
    coded
        What says in which levels a candidate of an attribute, by its place, is counted.
    """

    def __init__(self, names: Sequence[str], groups: RowGroups, count: Count, coded: Code) -> None:
        self._names = names
        self._groups = groups
        self._count = count
        self._coded = coded
        self._parts: list[Mapping[int, Candidate]] = []
        self._levels: dict[tuple[int, Candidate | None], SharedLevels] = {}

    def expect(self, choices: Sequence[Mapping[str, Candidate]]) -> None:
        """Take note of configurations that are to be scored: what they share is solved once."""
        if len(choices) < 2 or not self._groups.remember:
            return
        self._count_together(choices)
        first = choices[0]
        common = {
            place: first[name]
            for place, name in enumerate(self._names)
            if first[name].noise is None and all(c[name] == first[name] for c in choices)
        }
        if sum(c.n_levels for c in common.values()) < FEWEST_LEVELS:
            return
        if len(common) < len(self._names) and common not in self._parts:
            self._parts.append(common)

    def _count_together(self, choices: Sequence[Mapping[str, Candidate]]) -> None:
        """Have the levels of all configurations counted at once, under each coding."""
        expected: tuple[dict[tuple[int, Hashable], Levels], ...] = ({}, {})
        for place, name in enumerate(self._names):
            for candidate in dict.fromkeys(choice[name] for choice in choices):
                if candidate.noise is not None:
                    continue  # what it shows is worked out where a measure asks for it
                for levels, coded in zip(expected, self._coded(place, candidate), strict=True):
                    levels.update([coded])
        for levels in expected:
            self._groups.expect(levels, len(choices))

    def expect_alone(
        self, unmasked: Mapping[str, Candidate], choice: Mapping[str, Candidate]
    ) -> None:
        """Take note of an unmasked table of which one attribute at a time is masked.

        Attributes of few levels, which together have a small part of all, stand beside the others.
        """
        by_size = sorted(self._names, key=lambda name: unmasked[name].n_levels)
        before = np.cumsum([unmasked[name].n_levels for name in by_size])
        few = by_size[: int(np.searchsorted(before, before[-1] * FEW, side="right"))]
        self.expect([{**unmasked, name: choice[name]} for name in few])

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
        own = [self._coded(place, candidate)[0][0] for place, candidate in enumerate(candidates)]
        together = self._groups.together(*zip(*own, strict=True))
        return Sharing(self._levels[key], tuple(part), together)
