"""Spend a privacy budget on rounds of noise, and on thresholds for names of values and classes.

All output of level `noise` passes through this module. Figures get noise, which costs rho. If the
policy does not declare a name, it is published only if a noisy figure exceeds a threshold. This
costs delta; such names are called bought. So you need to check only this module to check the whole
account.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from aegis.arrays import Ints
from aegis.errors import AegisError
from aegis.safe.protect.accounting import (
    NamingThreshold,
    NoiseRound,
    budget_of,
    rho_of,
    sigma_of,
    threshold_of,
)
from aegis.safe.protect.mechanisms import discrete_gaussian


class Budget:
    """The remaining privacy budget of level `noise`, and a record of its use.

    Parameters
    ----------
    epsilon, delta
        The guarantee. If names of values or classes are paid from the budget, they use half of
        delta.
    unit_rows
        Largest number of rows of one unit: 1 if the unit is a row.
    namings
        Number of thresholds for names that are paid from the budget.
    """

    def __init__(self, epsilon: float, delta: float, unit_rows: int, namings: int) -> None:
        self._each = delta / 2 / namings if namings else 0.0
        self.total = budget_of(epsilon, delta / 2 if namings else delta)
        self.left = self.total
        self.unit_rows = unit_rows
        self.rounds: list[NoiseRound] = []
        self.thresholds: list[NamingThreshold] = []

    @contextmanager
    def marking(self) -> Iterator[None]:
        """Mark an error that occurs after noise was drawn, so that the cost of the noise is not refunded."""
        try:
            yield
        except AegisError as error:
            error.noise_drawn = bool(self.rounds)
            raise

    def spend(
        self,
        name: str,
        figures: Sequence[Ints],
        sensitivity: float,
        rho: float,
        keys: Sequence[Sequence[str]] | None = None,  # noqa: ARG002 - for who checks the account
    ) -> tuple[list[Ints], float]:
        """Add noise that costs `rho` to figures; return them and the scale of the noise.

        Parameters
        ----------
        name
            Description of the figures.
        figures
            Arrays of whole numbers.
        sensitivity
            Largest change of all figures together by one row, as an L2 distance.
        rho
            The privacy cost to spend (zCDP).
        keys
            For each array, texts that identify the item of each of its lines. They are needed if
            the lines depend on the table.
        """
        distance = sensitivity * self.unit_rows
        sigma = sigma_of(distance, rho)
        flat = np.concatenate([f.ravel() for f in figures]) if figures else np.zeros(0, np.int64)
        noisy = discrete_gaussian(flat, sigma, distance, rho)
        cuts = np.cumsum([f.size for f in figures])[:-1]
        parts = np.split(noisy, cuts) if figures else []
        self.rounds.append(NoiseRound(name, distance, sigma, rho_of(distance, sigma)))
        self.left -= rho
        shaped = [part.reshape(f.shape) for part, f in zip(parts, figures, strict=True)]
        return shaped, sigma

    def threshold(self, name: str, sigma: float, columns: int, tables: int) -> float:
        """Return the smallest noisy number of rows with which a value, a cell or a class may be
        named, and record this threshold.

        Parameters
        ----------
        name
            Name of the round whose figures are compared with the threshold.
        sigma
            Scale of the noise.
        columns
            Number of noisy counts that are added up in a total.
        tables
            Number of tables to which each row contributes and whose names are paid from the budget.
        """
        cells = tables * self.unit_rows
        least = threshold_of(sigma, columns, cells, self._each, alone=self.unit_rows)
        self.thresholds.append(
            NamingThreshold(name, least, sigma, columns, cells, self.unit_rows, self._each)
        )
        return least
