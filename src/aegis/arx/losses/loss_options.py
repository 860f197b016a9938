"""The options of losses, as in `loss(mean=geometric)` or `classification(charges=arx)`."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from aegis.arrays import Floats
from aegis.errors import PolicyError, member, require_known

_OPTIONS = ("mean", "factor", "weights", "over")
_WEIGHTS = ("equal", "policy")
_OVER = ("all", "quasi-identifiers")
_CHARGES = ("iyengar", "arx")


def read_options(text: str, allowed: Collection[str]) -> tuple[str, dict[str, str]]:
    """Read `NAME` or `NAME(option=value, ...)`; return the name and the options as text.

    >>> read_options("classification( charges=arx )", ["charges"])
    ('classification', {'charges': 'arx'})

    Raises
    ------
    PolicyError
        A bracket is not closed, or an option is not among the `allowed`.
    """
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", text)
    if match is None:
        raise PolicyError(
            f"The options of {text!r} cannot be read.",
            hint="Write them as NAME(option=value, option=value).",
        )
    options: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in (match[2] or "").split(","))):
        name, _, value = part.partition("=")
        options[name.strip()] = value.strip()
    for name in options:
        require_known(f"option of {match[1]}", name, allowed)
    return match[1], options


class Mean(StrEnum):
    """The ways to combine the losses of several attributes: their sum, a mean or the maximum."""

    SUM = "sum"
    ARITHMETIC = "arithmetic"
    GEOMETRIC = "geometric"
    MAXIMUM = "max"

    def of(self, values: Floats) -> float:
        """Combine the losses of m attributes into one loss; `values` has one loss for each
        attribute, shape (m,).

        The geometric mean of the losses x is prod(1 + x)^(1/m) - 1.
        """
        if self is Mean.GEOMETRIC:
            return float(np.expm1(np.log1p(values).mean()))
        if self is Mean.ARITHMETIC:
            return math.fsum(values) / max(len(values), 1)
        return math.fsum(values) if self is Mean.SUM else float(values.max(initial=0.0))


@dataclass(frozen=True)
class LossOptions:
    """Options of a loss over attributes.

    Attributes
    ----------
    mean
        The way in which the losses of attributes are combined.
    factor
        A number from 0 to 1. At 0.5, the loss counts masking and suppression in full. At 0, a
        suppressed row counts like a masked row. At 1, masking does not count.
    weighted
        Whether attributes have the weights of the policy.
    quasi
        Whether only quasi-identifiers count.
    """

    mean: Mean = Mean.SUM
    factor: float = 0.5
    weighted: bool = False
    quasi: bool = False

    @property
    def masked(self) -> float:
        """The weight of the loss that masks cause, from 0 to 1."""
        return min(1.0, 2 * (1 - self.factor))

    @property
    def suppressed(self) -> float:
        """The weight of the additional loss that suppression causes, from 0 to 1."""
        return min(1.0, 2 * self.factor)

    @classmethod
    def parse(cls, text: str) -> tuple[str, LossOptions]:
        """Read `loss` or `loss(mean=geometric, factor=0.3)`; return the name and the options.

        Raises
        ------
        PolicyError
            An option is unknown or has a value that is not allowed.
        """
        loss, options = read_options(text, _OPTIONS)
        mean = member(Mean, options.get("mean", "sum"), f"mean of {loss}")
        weights = options.get("weights", "equal")
        require_known(f"weights of {loss}", weights, _WEIGHTS)
        over = options.get("over", "all")
        require_known(f"'over' of {loss}", over, _OVER)
        factor = _factor(options.get("factor", "0.5"), loss)
        return loss, cls(mean, factor, weights == "policy", over != "all")


@dataclass(frozen=True)
class LabelCharges:
    """The weights of rows in the classification metric, each from 0 to 1.

    Attributes
    ----------
    minority
        Weight of a kept row that does not have the most frequent label of its class.
    tied
        Weight of each kept row of a class in which several labels tie as the most frequent one. If
        None, such a class is treated like the others.
    suppressed
        Weight of a suppressed row.
    """

    minority: float = 1.0
    tied: float | None = None
    suppressed: float = 1.0

    @classmethod
    def of_arx(cls, factor: float = 0.5) -> LabelCharges:
        """Return the charges of ARX 3.9.2. `factor`, from 0 to 1, is ARX's weight of generalisation
        against suppression.

        >>> LabelCharges.of_arx()
        LabelCharges(minority=1.0, tied=1.0, suppressed=0.5)
        """
        weights = LossOptions(factor=factor)
        return cls(weights.masked, weights.suppressed, factor)

    @classmethod
    def parse(cls, text: str) -> LabelCharges:
        """Read `classification`, or `classification(charges=arx, factor=0.3)`.

        >>> LabelCharges.parse("classification")
        LabelCharges(minority=1.0, tied=None, suppressed=1.0)

        Raises
        ------
        PolicyError
            An option is unknown or has a value that is not allowed, or a factor is given without
            ARX's charges.
        """
        loss, options = read_options(text, ("charges", "factor"))
        charges = options.get("charges", "iyengar")
        require_known(f"charges of {loss}", charges, _CHARGES)
        if charges == "arx":
            return cls.of_arx(_factor(options.get("factor", "0.5"), loss))
        if "factor" in options:
            raise PolicyError(
                f"A factor of {loss} weighs the charges of ARX alone (given: {text.strip()!r}).",
                hint=f"Write {loss}(charges=arx, factor={options['factor']}), or leave the factor out.",
            )
        return cls()


def _factor(text: str, loss: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise PolicyError(
            f"The factor of {loss} is {text!r}.",
            hint="Give a number from 0 (suppression is free) over 0.5 (both count in full) "
            "to 1 (masking is free).",
        )
    return value
