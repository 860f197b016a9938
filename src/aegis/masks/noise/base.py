"""The interface of noise masks: equal values may be masked differently, with known probabilities.

A noise mask has no expression that an engine could run. Instead it states its *channel*: for each
distinct value of a column, the distribution of the masked value over a finite list of *reports*
(algorithms.md, "Masking functions"). Aegis computes expected joint counts, scores and
reconstructions from the channel without any draw. `draw` masks rows with the same distribution.

Numbers are shown on a grid: the noisy number moves to the nearest grid point, and numbers beyond
the ends move to the ends. Both steps are part of the channel. Null and NaN do not change, so that
noise never creates or hides a missing value.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Flags, Floats, Ints
from aegis.errors import InternalError, PolicyError
from aegis.masks import parameters
from aegis.masks.base import Mask, ValueCounts, described
from aegis.privacy import PrivacyAccount, PrivacyLoss

if TYPE_CHECKING:
    import ibis.expr.types as ir


MOST_REPORTS = 4096
"""Largest number of values that a noise mask on numbers or categories may show."""
_CELLS = 1 << 22
"""Number of entries of a channel that are in memory at once."""


@dataclass(frozen=True)
class NoiseMask(Mask):
    """A mask that draws masked values at random, by default independently for each row."""

    deterministic: ClassVar[bool] = False
    ordered: ClassVar[bool] = False
    """Whether reports are sorted by value, so that neighbouring reports are close values."""
    exact_randomness: ClassVar[bool] = False
    """Whether OpenDP draws the rows from the machine's own source of randomness.

    No seed can reproduce such a draw, because anyone who knew the seed could remove the noise.
    """

    def expression(self, column: ir.Column) -> ir.Value:  # noqa: ARG002 - nothing is computed of it
        """Raise `PolicyError`, because rows are drawn by `draw` and no query can compute them."""
        raise PolicyError(
            f"Mask {str(self)!r} draws its values at random, so it cannot be written as a query.",
            hint="Use `aegis apply`: it draws the values.",
        )

    def told_apart(self, column: ir.Column) -> ir.Value:
        """Return the column itself, because any two values may be masked differently."""
        return column

    @abstractmethod
    def reports(self, data: ValueCounts) -> pa.Array:
        """Return all R reports (noisy values) that are possible for `data`, shape (R,), null last.

        Raises
        ------
        InternalError
            The mask is not fitted.
        """

    @abstractmethod
    def channel(self, data: ValueCounts, rows: slice = slice(None)) -> Floats:
        """Return the probability that value i is shown as report j (a noisy value), for V values
        and R reports, shape (V, R), or only the lines for some values.

        Parameters
        ----------
        data
            Distinct values of the column and their counts, null last.
        rows
            The values whose lines are returned.
        """

    @abstractmethod
    def draw(self, column: pa.Array, random: np.random.Generator) -> pa.Array:
        """Return the masked value of each row of a column, in the type of `reports` (the possible
        noisy values).

        Parameters
        ----------
        column
            The values of n rows, shape (n,). If a mask draws each row independently, a draw for the
            whole column gives the same result as draws for its consecutive parts.
        random
            Source of randomness, unless the mask has `exact_randomness`.
        """

    def loss(self, attribute: str) -> PrivacyLoss | None:  # noqa: ARG002 - most promise nothing
        """Return the local differential privacy that the mask guarantees for the column
        `attribute`; None if it guarantees none.
        """
        return None


def learnt_field(what: str) -> Any:
    """Return a dataclass field for a parameter that `fit` learns from the data if the policy does
    not give it. `what` describes the parameter.
    """
    return described(f"{what}. By default, Aegis learns it from the data", None)


def channel_blocks(
    mask: NoiseMask, data: ValueCounts, reports: int
) -> Iterator[tuple[slice, Floats]]:
    """Yield the channel of a noise mask (the probability of each of R reports, or noisy values, for
    each of V values) in blocks of values, each with the slice of its values. So the whole matrix is
    never in memory. `reports` is R.
    """
    size = max(1, _CELLS // max(reports, 1))
    for start in range(0, len(data.values), size):
        rows = slice(start, min(start + size, len(data.values)))
        yield rows, mask.channel(data, rows)


def privacy_account(
    masks: Mapping[str, Mask | None], with_nulls: Mapping[str, int] | None = None
) -> PrivacyAccount | None:
    """Return the privacy guarantee of all noise masks together; None if no mask guarantees
    anything.

    Parameters
    ----------
    masks
        For each released column its mask, or None if the column is not masked.
    with_nulls
        For each column the number of rows with null; they are counted because missing values are
        shown without noise.
    """
    losses, exact = [], []
    for name, mask in masks.items():
        loss = mask.loss(name) if isinstance(mask, NoiseMask) else None
        if loss is None:
            exact.append(name)
            continue
        losses.append(loss)
        if loss.learnt is not None:
            exact.append(f"{name} (which values occur)")
        if (with_nulls or {}).get(name):
            exact.append(f"{name} (whether it is null)")
    return PrivacyAccount(tuple(losses), tuple(exact)) if losses else None


@dataclass(frozen=True)
class NumberGrid:
    """The `size` evenly spaced numbers `start`, `start + step`, ..., as exact decimal numbers."""

    start: Fraction
    step: Fraction
    size: int

    @classmethod
    def between(cls, mask: str, lower: float, upper: float, step: float) -> NumberGrid:
        """Return the numbers `lower`, `lower + step`, ... up to at most `upper`. Raise
        `PolicyError`, which names `mask`, if there are too many.
        """
        low, high, by = map(parameters.as_fraction, (lower, upper, step))
        size = (high - low) // by + 1
        if size > MOST_REPORTS:
            raise parameters.wrong(
                mask,
                "resolution",
                step,
                f"steps that make at most {MOST_REPORTS:,} values from {lower:g} to {upper:g}; "
                f"this makes {size:,}",
            )
        return cls(low, by, int(size))

    @property
    def whole(self) -> bool:
        """Whether all numbers of the grid are whole numbers."""
        return self.start.denominator == 1 and self.step.denominator == 1

    @property
    def points(self) -> Floats:
        """The numbers of the grid, shape (size,), as the nearest 64-bit floats."""
        scale = int(np.lcm(self.start.denominator, self.step.denominator))
        first, by = int(self.start * scale), int(self.step * scale)
        return np.array([(first + by * i) / scale for i in range(self.size)])

    def nearest(self, numbers: Floats) -> Ints:
        """Return, for each number, the index of the nearest number of the grid; halves round up."""
        points = self.points
        cuts = (points[1:] + points[:-1]) / 2
        return np.searchsorted(cuts, numbers, side="right").astype(np.int64)


def nice_step(at_least: float) -> Fraction:
    """Return the smallest number that is at least `at_least` and 1, 2 or 5 times a power of ten."""
    exponent = int(np.floor(np.log10(at_least))) if at_least > 0 else 0
    exponent = max(exponent, -parameters.MOST_DIGITS)
    for factor in (1, 2, 5, 10):
        step = Fraction(factor) * Fraction(10) ** exponent
        if step >= Fraction(at_least) * (1 - Fraction(1, 10**9)):
            return step
    raise InternalError(f"No step of 1, 2, 5, 10 times 1e{exponent} reaches {at_least}.")


def floats(values: pa.Array) -> Floats:
    """Return a column of numbers as floats, null as NaN."""
    numbers: Floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def take(reports: pa.Array, index: Ints, missing: Flags | None = None) -> pa.Array:
    """Return the entry of `reports` at each position in `index`, and null where `missing` is true."""
    # Built from a buffer: Arrow imports pandas to convert a NumPy array.
    chosen = np.ascontiguousarray(index, dtype=np.int64)
    places = pa.Array.from_buffers(pa.int64(), len(chosen), [None, pa.py_buffer(chosen)])
    shown = reports.take(places)
    if missing is None or not missing.any():
        return shown
    return pc.if_else(pa.array(missing.tolist(), pa.bool_()), pa.scalar(None, shown.type), shown)


def is_null(values: pa.Array) -> Flags:
    """Return, for each of the n entries, whether it is null, shape (n,); NaN is not null."""
    null: Flags = pc.is_null(values).to_numpy(zero_copy_only=False)
    return null
