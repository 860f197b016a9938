"""Search for the best configurations from label tables only, with a bound that proves the result.

If the summary has no moments, a score depends only on two sums over attributes: it rises with the
sum of explained shares and falls with the sum of degrees of freedom. For an attribute whose mask is
not chosen yet, the bound uses the largest explained share and the smallest degrees of freedom of
all its masks. The search skips a partial choice if this bound does not exceed the scores of the
best configurations so far.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from aegis.arrays import Floats
from aegis.measures import held_out_reached
from aegis.safe.protect.scores import Choice, ProtectedScorer


class TablesSearch:
    """Depth-first search over all combinations of candidate masks, with a bound.

    Parameters
    ----------
    scorer
        Scorer of a summary without moments (mean products of codes).
    top
        Number of best configurations to return.
    expired
        Function that returns whether the time limit has passed.

    Attributes
    ----------
    seen
        Number of combinations that were scored.
    complete
        Whether the bound proves that no unscored combination is better than the best scored
        combination.
    """

    def __init__(self, scorer: ProtectedScorer, top: int, expired: Callable[[], bool]) -> None:
        self._scorer = scorer
        self._top = top
        self._expired = expired
        sizes = [len(a.candidates) for a in scorer.summary.attributes.values()]
        self._explained, self._freedom = [], []
        for index, size in enumerate(sizes):
            masked = [scorer.masked(index, place) for place in range(size)]
            self._explained.append(np.array([m.believed * m.strength for m in masked]))
            self._freedom.append(np.array([m.freedom for m in masked]))
        # What the attributes from each place on explain at most, and spend at least.
        self._most = _sums_from([e.max(axis=0) for e in self._explained])
        self._least = _sums_from([f.min(axis=0) for f in self._freedom])
        self._best: list[tuple[float, Choice]] = []
        self.seen = 0
        self.complete = True

    def run(self) -> list[tuple[Choice, float]]:
        """Search, and return the best combinations of masks with their scores, best first."""
        self._extend((), np.zeros(1), np.zeros(1))
        return [
            (choice, score) for score, choice in sorted(self._best, key=lambda b: (-b[0], b[1]))
        ]

    def _reached(self, explained: Floats, freedom: Floats) -> float:
        summary = self._scorer.summary
        return held_out_reached(explained, freedom, len(summary.classes), summary.rows)

    def _extend(self, chosen: Choice, explained: Floats, freedom: Floats) -> None:
        """Search all choices that begin with the candidates `chosen`, the most promising first.
        `explained` and `freedom` are the sums of explained shares and degrees of freedom over the
        chosen masks.
        """
        if self._expired():
            self.complete = False
            return
        place = len(chosen)
        if place == len(self._explained):
            self.seen += 1
            scored = (self._reached(explained, freedom), chosen)
            if len(self._best) < self._top:
                heapq.heappush(self._best, scored)
            else:
                heapq.heappushpop(self._best, scored)
            return
        more = explained + self._explained[place]
        spent = freedom + self._freedom[place]
        bounds = [
            self._reached(m + self._most[place + 1], s + self._least[place + 1])
            for m, s in zip(more, spent, strict=True)
        ]
        for own in sorted(range(len(bounds)), key=lambda i: -bounds[i]):
            if len(self._best) < self._top or bounds[own] > self._best[0][0]:
                self._extend((*chosen, own), more[own], spent[own])


def _sums_from(parts: list[Floats]) -> list[Floats]:
    """Return, for each position in `parts`, the sum of the arrays from this position to the end;
    the last entry is 0.
    """
    sums = [np.zeros(1)]
    for part in reversed(parts):
        sums.append(sums[-1] + part)
    return sums[::-1]
