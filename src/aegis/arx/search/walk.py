"""Simulated annealing over configurations: a random walk that also accepts slightly worse steps.

So the walk does not stop at the first local optimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from aegis.arx.search.class_counter import Node

_TEMPERATURE = 0.02
"""How much worse a step is on the average that is still taken, as a share of what is paid."""
_CHANGED = 2
"""Attributes that a step changes, at most."""


class Walk:
    """A random walk over configurations; each step changes one or two masks.

    A step that raises the cost by d is accepted with probability exp(-d/T), where the temperature T
    is a fixed share of the cost (Metropolis and others, Equation of state calculations by fast
    computing machines, Journal of Chemical Physics 21, 1953).

    Parameters
    ----------
    start
        The first configuration: a candidate per attribute.
    cost
        Cost of the first configuration.
    least
        Lower bound of the cost of each candidate, (n,) per attribute.
    price
        Function that returns the cost of a configuration, at least the sum of `least`; infinity if
        it is not admissible.
    """

    def __init__(
        self,
        start: Node,
        cost: float,
        least: Sequence[npt.NDArray[np.float64]],
        price: Callable[[Node], float],
    ) -> None:
        self.node, self.cost = start, cost
        self._least = [figures.tolist() for figures in least]
        self._price = price
        self._random = np.random.default_rng(0)

    def go(self, steps: int) -> None:
        """Try this number of steps, and make those that are accepted."""
        for _ in range(steps):
            other = self._other()
            most = self.cost * (1.0 + _TEMPERATURE * self._random.exponential())
            least = math.fsum(figures[c] for figures, c in zip(self._least, other, strict=True))
            if least <= most and (cost := self._price(other)) <= most:
                self.node, self.cost = other, cost

    def _other(self) -> Node:
        """Return a random configuration that differs from the current one in at most `_CHANGED`
        attributes.
        """
        other = list(self.node)
        for index in self._random.integers(len(other), size=_CHANGED).tolist():
            other[index] = int(self._random.integers(len(self._least[index])))
        return tuple(other)
