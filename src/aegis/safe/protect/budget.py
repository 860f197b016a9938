"""A privacy budget: noise rounds, and thresholds above which something is named.

Everything that leaves a table under level `noise` passes through here: figures get noise that is
paid for in rho, and names that nobody declared are published where a noisy figure exceeds a
threshold that is paid for in delta. So the account can be checked where it is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from aegis.safe.protect.accounting import (
    NamingThreshold,
    NoiseRound,
    budget_of,
    rho_of,
    sigma_of,
    threshold_of,
)
from aegis.safe.protect.mechanisms import discrete_gaussian

Ints = npt.NDArray[np.int64]


class Budget:
    """The rest of a budget, and how the other part was spent.

    Parameters
    ----------
    epsilon, delta
        The promise. Where names are bought half of delta is for them.
    unit_rows
        Most rows of one unit: 1 where the unit is a row.
    namings
        How many thresholds names are bought with.
    """

    def __init__(self, epsilon: float, delta: float, unit_rows: int, namings: int) -> None:
        self._each = delta / 2 / namings if namings else 0.0
        self.total = budget_of(epsilon, delta / 2 if namings else delta)
        self.left = self.total
        self.unit_rows = unit_rows
        self.rounds: list[NoiseRound] = []
        self.thresholds: list[NamingThreshold] = []

    def spend(
        self,
        name: str,
        figures: Sequence[Ints],
        sensitivity: float,
        rho: float,
        keys: Sequence[Sequence[str]] | None = None,  # noqa: ARG002 - for who checks the account
    ) -> tuple[list[Ints], float]:
        """Return figures with noise that costs `rho`, and its scale.

        Parameters
        ----------
        name
            What the figures are.
        figures
            Arrays of whole numbers.
        sensitivity
            L2 distance that one row can move all of them together by at most.
        rho
            What they may cost.
        keys
            What each line of an array counts, where the lines depend on the table.
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
        """Return the noisy total from which something is named, and record it.

        Parameters
        ----------
        name
            The round whose figures are compared.
        sigma
            Its noise.
        columns
            How many noisy counts a total is the sum of.
        tables
            In how many tables a row counts whose names are bought.
        """
        cells = tables * self.unit_rows
        least = threshold_of(sigma, columns, cells, self._each, alone=self.unit_rows)
        self.thresholds.append(
            NamingThreshold(name, least, sigma, columns, cells, self.unit_rows, self._each)
        )
        return least
