"""Score how well two masked attributes predict each other; each pair of masks is scored only once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from aegis.advisor.encodings import indicators
from aegis.advisor.fold_counts import pair_block
from aegis.array_cache import remembered
from aegis.arrays import Array, Floats
from aegis.measures import Measure
from aegis.measures.information import pair_information
from aegis.summary import Candidate, PairCounts


class PairValues:
    """Computes measures of pairs of attributes, and caches the values for later calls.

    Parameters
    ----------
    pairs
        Counts of pairs of atoms (sets of values that all candidates of an attribute treat in the
        same way).
    levels
        Function that takes the index of an attribute and a candidate. It returns the level (masked
        value) of each of A atoms, shape (A,). For a noise mask, it returns the probability of each
        of L levels, shape (A, L).
    """

    def __init__(self, pairs: PairCounts, levels: Callable[[int, Candidate], Array]) -> None:
        self._pairs = pairs
        self._levels = levels
        self._values: dict[Any, float] = {}

    def value(
        self, places: tuple[int, int], candidates: tuple[Candidate, Candidate], measure: Measure
    ) -> float:
        """Return the value of a measure for a pair of masked attributes.

        `places` are the attributes' indices, `candidates` their masks.
        """
        if places[0] > places[1]:
            return self.value(places[::-1], candidates[::-1], measure)
        key = (measure.name, places, candidates)
        if key not in self._values:
            self._values[key] = self._value(places, candidates, measure)
        return self._values[key]

    def mean(self, chosen: Sequence[Candidate], measure: Measure) -> float:
        """Return the mean of a measure over all pairs of attributes; 0 if there are no pairs.
        `chosen` has the mask of each attribute.
        """
        values = [
            self.value((i, j), (chosen[i], chosen[j]), measure)
            for i, j in combinations(range(len(chosen)), 2)
        ]
        return float(np.mean(values)) if values else 0.0

    def mean_of_one(
        self, place: int, candidate: Candidate, others: Sequence[Candidate], measure: Measure
    ) -> float:
        """Return the mean of a measure over all pairs that one masked attribute forms with another
        attribute; 0 if there is no other attribute.

        `place` is the index of the attribute, `candidate` its mask, and `others` has the masks of
        all attributes.
        """
        values = [
            self.value((place, j), (candidate, other), measure)
            for j, other in enumerate(others)
            if j != place
        ]
        return float(np.mean(values)) if values else 0.0

    def informations(
        self, which: Sequence[int], candidates: Sequence[Candidate], label: Candidate | None
    ) -> Floats:
        """Return how much information each pair of m attributes has about the label, in bits,
        corrected for chance, shape (m, m).

        `which` has the indices of the attributes, `candidates` their masks. `label` is the mask of
        the label, if it has one.
        """
        informations = np.zeros((len(which), len(which)))
        for i, j in combinations(range(len(which)), 2):
            places, chosen = (which[i], which[j]), (candidates[i], candidates[j])
            informations[i, j] = informations[j, i] = self._information(places, chosen, label)
        return informations

    @remembered
    def _information(
        self,
        places: tuple[int, int],
        candidates: tuple[Candidate, Candidate],
        label: Candidate | None,
    ) -> float:
        return pair_information(self._block(places, candidates, label))

    def _block(
        self,
        places: tuple[int, int],
        candidates: tuple[Candidate, Candidate],
        label: Candidate | None = None,
    ) -> Array:
        levels = self._levels(places[0], candidates[0]), self._levels(places[1], candidates[1])
        return pair_block(self._pairs, places, levels, label)

    def _value(
        self, places: tuple[int, int], candidates: tuple[Candidate, Candidate], measure: Measure
    ) -> float:
        assert measure.of_pair is not None
        block = self._block(places, candidates).sum(axis=0)
        told_apart = None
        if any(candidate.noise is not None for candidate in candidates):
            told_apart = self._told(places[0], candidates[0]), self._told(places[1], candidates[1])
        return measure.of_pair(block, told_apart)

    @remembered
    def _told(self, place: int, candidate: Candidate) -> float:
        """Return the effective number of values of an attribute after masking: the sum of p_a P(r |
        a)^2 / p_r over its atoms a (sets of original values) and masked values r, where p are
        shares of rows.

        `place` is the index of the attribute, `candidate` its mask.
        """
        channel = indicators(self._levels(place, candidate))
        atoms = self._pairs.joints[place].sum(axis=1).astype(np.float64)
        shares = atoms / max(atoms.sum(), 1)
        reports = shares @ channel
        shown = reports > 0
        squares = (shares[:, None] * channel[:, shown] ** 2).sum(axis=0)
        return float((squares / reports[shown]).sum())
