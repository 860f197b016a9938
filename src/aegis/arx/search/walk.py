"""A local search that also accepts slightly worse steps, so that it does not stop too early."""

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
    """Steps to configurations that differ in a mask or two, also to slightly worse ones.

    Taken as often as Metropolis and others take them (Equation of state calculations by fast computing
    machines, Journal of Chemical Physics 21, 1953): worse by d with probability exp(-d/T).

    Parameters
    ----------
    start
        Where it begins: a candidate per attribute.
    cost
        What that costs.
    least
        What each candidate costs at least, (n,) per attribute.
    price
        Returns what a configuration costs, at least the sum of `least`; infinity where it is not admissible.
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
        """Try some steps, and accept those whose loss is small enough."""
        for _ in range(steps):
            other = self._other()
            most = self.cost * (1.0 + _TEMPERATURE * self._random.exponential())
            least = math.fsum(figures[c] for figures, c in zip(self._least, other, strict=True))
            if least <= most and (cost := self._price(other)) <= most:
                self.node, self.cost = other, cost

    def _other(self) -> Node:
        """Return a configuration that differs in `_CHANGED` attributes at most."""
        other = list(self.node)
        for index in self._random.integers(len(other), size=_CHANGED).tolist():
            other[index] = int(self._random.integers(len(self._least[index])))
        return tuple(other)
