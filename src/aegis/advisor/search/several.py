"""Maximise the shares kept of several labels, or a combination of them.

Let B_t be an upper bound on the score for label t over a box. The share kept of label t grows with
its score, so the share for the score B_t is an upper bound on it. The weighted mean of these bounds
is a bound on the weighted mean share, and the smallest of them is a bound on the smallest share. A
search can prove its result if the objective of each label has bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from aegis.advisor.scores import utility_kept
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.problem import Box, Problem, is_leaf, members
from aegis.advisor.several import SeveralScorer, TaskScorer
from aegis.measures import Measure
from aegis.summary import Candidate


class ShareOfLabel(Objective):
    """An objective: the share of utility that is kept for one of several labels.

    Parameters
    ----------
    problem
        The search space of the whole table.
    own
        The search space of the table for this label, which lacks the columns that scores for the
        label ignore.
    task
        The scorer of the label.
    measure
        The measure from which the share is computed.
    inner
        The objective for `measure` on the table for this label.
    """

    sign = 1

    def __init__(
        self, problem: Problem, own: Problem, task: TaskScorer, measure: Measure, inner: Objective
    ) -> None:
        self.name = f"share kept of {task.column} by {measure.name}"
        self.bounded, self.divides = inner.bounded, inner.divides
        self.reaches = inner.bounded or inner.loose
        self._own, self._task, self._measure, self._inner = own, task, measure, inner
        self._places = _places(problem, own, task)
        scorer = task.scorer
        self._rows = scorer.label_rows
        self._reference = scorer.value(scorer.unmasked, measure)
        self._known: dict[Box, float | None] = {}

    def box(self, box: Box) -> Box:
        """Translate a box of the whole table into a box of the label's table, which lacks some
        columns. A box has a set of candidate masks for each attribute, as a bit mask.
        """
        return tuple(
            sum({1 << maps[c] for c in members(box[place])}) for place, maps in self._places
        )

    def share(self, box: Box) -> float | None:
        """Return an upper bound of the share of the label's utility that a configuration in a box
        can keep, from 0 to 1. A box has a set of candidate masks for each attribute.

        For a single configuration, the result is exact. It is None if the unmasked table has no
        utility for the label.
        """
        own = self.box(box)
        if own not in self._known:
            self._known[own] = self._share(own)
        return self._known[own]

    def _share(self, own: Box) -> float | None:
        if is_leaf(own) and self._task.hides_label(self._own.choice(own)):
            score = self._measure.worst(self._rows)
        else:
            score = self._inner.sign * self._inner.bound(own)
        percent = utility_kept(score, self._reference, self._measure, self._rows)
        return None if percent is None else percent / 100

    def guess(self, box: Box) -> float:
        """Return a quick estimate of how much utility of the label a box (a set of candidate masks
        for each attribute) can keep, relative to the unmasked table. The search uses it only to
        compare boxes.
        """
        span = abs(self._reference - self._measure.worst(self._rows))
        return self._inner.guess(self.box(box)) / span if span else 0.0

    def bound(self, box: Box) -> float:
        """Return an upper bound of the share of the label's utility that a configuration in a box
        can keep; 0 if the unmasked table has no utility for the label. A box has a set of candidate
        masks for each attribute.
        """
        return self.share(box) or 0.0

    def effort(self, box: Box) -> float:
        """Return about how many seconds it takes to compute `bound` for a box (a set of candidate
        masks for each attribute); 0 if the result is cached.
        """
        own = self.box(box)
        return 0.0 if own in self._known else self._inner.effort(own)


class SharesKept(Objective):
    """An objective for several labels: a combination of the shares of utility that a configuration
    keeps for each label, such as their weighted mean.
    """

    sign = 1

    def __init__(self, name: str, scorer: SeveralScorer, labels: Sequence[ShareOfLabel]) -> None:
        self.name = name
        weights = [task.task.weight for task in scorer.tasks]
        self._weights = [weight / sum(weights) for weight in weights]
        self.labels = tuple(labels)
        self.bounded = all(label.bounded for label in labels)
        self.loose = not self.bounded and all(label.reaches for label in labels)
        self.divides = any(label.divides for label in labels)
        self._combine = scorer.combine

    def guess(self, box: Box) -> float:
        """Return a quick estimate of the upper bound for a box (a set of candidate masks for each
        attribute).

        If the bounds are good, the estimate is `upper`. If they are loose and slow to compute, it
        is the weighted mean of the estimates for all labels.
        """
        if not self.loose:
            return self.upper(box)
        return sum(
            w * label.guess(box) for w, label in zip(self._weights, self.labels, strict=True)
        )

    def bound(self, box: Box) -> float:
        """Return an upper bound for all configurations in a box (a set of candidate masks for each
        attribute): the combination of the upper bounds for all labels.
        """
        return self._combine([label.share(box) for label in self.labels])

    def effort(self, box: Box) -> float:
        """Return about how many seconds it takes to compute the bounds of a box (a set of candidate
        masks for each attribute) for all labels.
        """
        return sum(label.effort(box) for label in self.labels)


def _key(candidate: Candidate) -> tuple[bytes, object]:
    """Return a key of a candidate mask. Candidates with equal keys have the same groups and the
    same noise.
    """
    return candidate.groups.tobytes(), candidate.noise


def _places(problem: Problem, own: Problem, task: TaskScorer) -> list[tuple[int, tuple[int, ...]]]:
    """Match the variables and candidates of one label's table with those of the whole table.

    For each variable of the label's table, return its index in the whole table. Also return a tuple
    that has, for each of its candidates in the whole table, the index of the candidate in the
    label's table.
    """
    names = [variable.name for variable in problem.variables]
    places = []
    for variable in own.variables:
        place = names.index(variable.name)
        first = {_key(c): i for i, c in reversed(list(enumerate(variable.candidates)))}
        maps = [
            first[_key(task.candidate(variable.name, candidate))]
            for candidate in problem.variables[place].candidates
        ]
        places.append((place, tuple(maps)))
    return places
