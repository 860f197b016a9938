"""What a loss charges: `loss(mean=geometric, factor=0.3)`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from aegis.errors import PolicyError

Floats = npt.NDArray[np.float64]
_OPTIONS = ("mean", "factor", "weights", "over")
_WEIGHTS = ("equal", "policy")
_OVER = ("all", "quasi-identifiers")


class Mean(StrEnum):
    """How the losses of several attributes become one."""

    SUM = "sum"
    ARITHMETIC = "arithmetic"
    GEOMETRIC = "geometric"
    MAXIMUM = "max"

    def of(self, values: Floats) -> float:
        """Return the losses (m,) as one figure; the geometric mean is prod(1 + x)^(1/m) - 1."""
        if self is Mean.GEOMETRIC:
            return float(np.expm1(np.log1p(values).mean()))
        if self is Mean.ARITHMETIC:
            return math.fsum(values) / max(len(values), 1)
        return math.fsum(values) if self is Mean.SUM else float(values.max(initial=0.0))


@dataclass(frozen=True)
class LossOptions:
    """What a loss over attributes charges.

    Attributes
    ----------
    mean
        How attributes are put together.
    factor
        From 0 to 1: 0.5 charges masking and suppression in full, less charges suppression less
        (0: not at all, a suppressed row counts as masked), more charges masking less (1: not at all).
    weighted
        Whether the policy's weights of attributes count.
    quasi
        Whether only quasi-identifiers count.
    """

    mean: Mean = Mean.SUM
    factor: float = 0.5
    weighted: bool = False
    quasi: bool = False

    @property
    def masked(self) -> float:
        """Weight of what masks hide of the rows that are kept."""
        return min(1.0, 2 * (1 - self.factor))

    @property
    def suppressed(self) -> float:
        """Weight of what suppression hides beyond what masks do."""
        return min(1.0, 2 * self.factor)

    @classmethod
    def parse(cls, text: str) -> tuple[str, LossOptions]:
        """Read `loss`, or `loss(mean=geometric, factor=0.3)`: the loss and its options.

        Raises
        ------
        PolicyError
            An option is unknown or has a value that is not allowed.
        """
        match = re.fullmatch(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", text)
        if match is None or match[2] is None:
            return text.strip(), cls()
        given: dict[str, str] = {}
        for part in filter(None, (text.strip() for text in match[2].split(","))):
            name, _, value = part.partition("=")
            given[name.strip()] = value.strip()
        for name in given:
            if name not in _OPTIONS:
                raise PolicyError.unknown(f"option of {match[1]}", name, _OPTIONS)
        mean = given.get("mean", "sum")
        if mean not in list(Mean):
            raise PolicyError.unknown(f"mean of {match[1]}", mean, list(Mean))
        weights = given.get("weights", "equal")
        if weights not in _WEIGHTS:
            raise PolicyError.unknown(f"weights of {match[1]}", weights, _WEIGHTS)
        over = given.get("over", "all")
        if over not in _OVER:
            raise PolicyError.unknown(f"'over' of {match[1]}", over, _OVER)
        factor = _factor(given.get("factor", "0.5"), match[1])
        return match[1], cls(Mean(mean), factor, weights == "policy", over != "all")


def _factor(given: str, loss: str) -> float:
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise PolicyError(
            f"The factor of {loss} is {given!r}.",
            hint="Give a number from 0 (suppression is free) over 0.5 (both count in full) "
            "to 1 (masking is free).",
        )
    return value
