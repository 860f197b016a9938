"""Add noise to numbers and dates, which are shown on a grid.

Draw from differentially private mechanisms with OpenDP (extra `dp`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from aegis.arrays import Floats, Ints
from aegis.errors import InternalError, PolicyError
from aegis.masks import base
from aegis.masks.arithmetic import LEARNS, shared_range
from aegis.masks.base import (
    Kind,
    Mask,
    NoiseMask,
    NumberGrid,
    ValueCounts,
    described,
    floats,
    is_null,
    learnt_field,
    nice_step,
    take,
)
from aegis.masks.numeric import NUMERIC
from aegis.privacy import PrivacyLoss

STEPS = 100
"""Number of grid steps between the bounds if a policy gives no resolution."""


@dataclass(frozen=True)
class GridNoise(NoiseMask):
    """Noise on numbers: the mask shows the noisy number as the nearest of a list of evenly spaced
    numbers (the grid).

    Null and NaN do not change. Whole numbers stay whole if the grid is whole; all other numbers
    become 64-bit floats. An infinity moves to the nearer end of the grid.
    """

    fits: ClassVar[frozenset[Kind]] = NUMERIC
    ordered: ClassVar[bool] = True

    @abstractmethod
    def grid(self) -> NumberGrid:
        """Return the evenly spaced numbers that the mask can show; raise `InternalError` if the
        mask is not fitted.
        """

    @abstractmethod
    def spread(self, numbers: Floats, points: Floats) -> Floats:
        """Return the probability that number i is shown as point j, for V finite numbers and the R
        `points` that the mask can show, shape (V, R).
        """

    @abstractmethod
    def noisy(self, numbers: Floats, random: np.random.Generator) -> Floats:
        """Return each finite number with noise added, before it moves to the nearest number that
        the mask can show.
        """

    def output_kind(self, kind: Kind) -> Kind:
        """Return `kind` if all numbers that the mask can show are whole, else the kind `number`."""
        integral = not self.fitted or self.grid().integral
        return kind if integral else Kind.NUMBER

    def reports(self, data: ValueCounts) -> pa.Array:
        """Return the numbers that the mask can show, then NaN and null if the data has them."""
        numbers, null = floats(data.values), is_null(data.values)
        points = self._points(data.values.type)
        if (np.isnan(numbers) & ~null).any():
            points = pa.concat_arrays([points, pa.array([float("nan")], points.type)])
        if null.any():
            points = pa.concat_arrays([points, pa.nulls(1, points.type)])
        return points

    def channel(self, data: ValueCounts, rows: slice = slice(None)) -> Floats:
        """Return the probability that value i is shown as report j, for V values and R reports,
        shape (V, R), or only the lines `rows`. Null and NaN do not change.
        """
        points = self.grid().points
        every, missing = floats(data.values), is_null(data.values)
        not_number = np.isnan(every) & ~missing
        extra = int(not_number.any()) + int(missing.any())
        numbers = every[rows]
        numeric = ~np.isnan(numbers)
        chances = np.zeros((len(numbers), len(points) + extra))
        if numeric.any():
            chances[numeric, : len(points)] = self.spread(self._bounded(numbers[numeric]), points)
        if not_number.any():
            chances[not_number[rows], len(points)] = 1.0
        if missing.any():
            chances[missing[rows], -1] = 1.0
        return chances

    def draw(self, column: pa.Array, random: np.random.Generator) -> pa.Array:
        """Add noise to each number of the column, and return the nearest number that the mask can
        show.
        """
        numbers, missing = floats(column), is_null(column)
        unknown = np.isnan(numbers)
        noisy = self.noisy(self._bounded(np.where(unknown, 0.0, numbers)), random)
        index = self.grid().nearest(noisy)
        points = self._points(column.type)
        if (unknown & ~missing).any():
            index[unknown] = len(points)
            points = pa.concat_arrays([points, pa.array([float("nan")], points.type)])
        return take(points, index, missing)

    def _bounded(self, numbers: Floats) -> Floats:
        """Replace infinities by the smallest and the largest number that the mask can show."""
        points = self.grid().points
        return np.nan_to_num(numbers, posinf=points[-1], neginf=points[0])

    def _points(self, dtype: pa.DataType) -> pa.Array:
        points = self.grid().points
        if pa.types.is_integer(dtype) and self.grid().integral:
            return pa.array([int(p) for p in points], pa.int64())
        return pa.array(points.tolist(), pa.float64())


@dataclass(frozen=True)
class BoundedNoise(GridNoise):
    """Noise of scale sensitivity / epsilon within declared bounds; OpenDP draws it.

    A value beyond a bound is replaced by the bound.
    """

    exact_randomness: ClassVar[bool] = True

    epsilon: int | float = described("privacy loss per row, above 0")
    lower: int | float = described("smallest number to show. Choose it without looking at the data")
    upper: int | float = described("largest number to show. Choose it without looking at the data")
    sensitivity: int | float | None = described(
        "largest distance between two values that epsilon hides. The default is upper - lower", None
    )

    def __post_init__(self) -> None:
        _check_bounds(self.name, self.lower, self.upper)
        base.number(self.name, "epsilon", self.epsilon, positive=True)
        if self.sensitivity is not None:
            base.number(self.name, "sensitivity", self.sensitivity, positive=True)
            if self.sensitivity > self._width:
                allowed = f"a number up to upper - lower, which is {self._width:g}"
                raise base.wrong(self.name, "sensitivity", self.sensitivity, allowed)

    def loss(self, attribute: str) -> PrivacyLoss:
        """Return the privacy loss of a row in the column `attribute` if its number changes from one
        bound to the other.
        """
        width = float(self._width)
        loss = self.epsilon * width / self._sensitivity
        return PrivacyLoss(attribute, loss, mechanism=self.name, sensitivity=width)

    def _clipped(self, numbers: Floats) -> Floats:
        return np.clip(numbers, self.lower, self.upper)

    @property
    def _width(self) -> int | float:
        return self.upper - self.lower

    @property
    def _sensitivity(self) -> float:
        return float(self._width if self.sensitivity is None else self.sensitivity)


@dataclass(frozen=True)
class Laplace(BoundedNoise):
    """Adds Laplace noise of scale sensitivity / epsilon within given bounds; OpenDP draws it.

    A value beyond a bound is replaced by the bound. The bounds do not depend on the data. With the
    default sensitivity, upper - lower, each row is epsilon-locally differentially private: for any
    two values, the probabilities of showing any number differ at most by a factor of e^epsilon.
    With a smaller sensitivity, epsilon holds only for values that differ by at most the
    sensitivity. The stated privacy loss of a row is then epsilon * (upper - lower) / sensitivity.

    References: Dwork, McSherry, Nissim and Smith, TCC 2006; Kasiviswanathan et al., SIAM Journal
    on Computing 40, 2011 (local model).
    """

    name: ClassVar[str] = "laplace"
    summary: ClassVar[str] = (
        "Adds Laplace noise with the epsilon that you state. OpenDP draws it (install the extra dp)."
    )
    example: ClassVar[str] = "{laplace: {epsilon: 2, lower: 17, upper: 90}}"
    fitted_by: ClassVar[str | None] = "resolution"

    resolution: int | float | None = described(
        f"distance between two shown numbers. By default there are about {STEPS} steps. For integers, the distance is a whole number",
        None,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resolution is not None:
            base.exact(self.name, "resolution", self.resolution, positive=True)
            self.grid()

    def _learn(self, data: ValueCounts) -> Mask:
        """Return the mask with its `resolution` (the step between the numbers that it can show),
        which depends only on the bounds and the kind of column.
        """
        step = nice_step((self.upper - self.lower) / STEPS)
        if data.kind is Kind.INTEGER:
            step = max(step, base.as_fraction(1))
        return replace(self, resolution=base.plain(step))

    def grid(self) -> NumberGrid:
        """Return the evenly spaced numbers from `lower` to `upper` that the mask can show."""
        if self.resolution is None:
            raise InternalError(f"Mask {str(self)!r} has not been fitted.")
        return NumberGrid.between(self.name, self.lower, self.upper, self.resolution)

    def spread(self, numbers: Floats, points: Floats) -> Floats:
        """Return the probability that number i with Laplace noise is shown as point j, for V
        numbers and R points, shape (V, R). Noisy numbers beyond the ends are shown as the end.
        """
        from aegis.masks.channels import laplace_channel

        return laplace_channel(
            self._clipped(numbers),
            points,
            epsilon=self.epsilon,
            sensitivity=self._sensitivity,
        )

    def noisy(self, numbers: Floats, random: np.random.Generator) -> Floats:  # noqa: ARG002
        """Return the numbers with noise from OpenDP, which takes no seed."""

        return laplace(self._clipped(numbers), self._sensitivity / self.epsilon)


@dataclass(frozen=True)
class Geometric(BoundedNoise):
    """Adds two-sided geometric noise to whole numbers within given bounds; OpenDP draws it.

    This is the discrete form of `laplace`, on every whole number from lower to upper. Bounds,
    sensitivity and privacy loss have the same meaning as for `laplace`.

    Reference: Ghosh, Roughgarden and Sundararajan, Universally utility-maximizing privacy
    mechanisms, SIAM Journal on Computing 41, 2012.
    """

    name: ClassVar[str] = "geometric"
    summary: ClassVar[str] = (
        "Adds geometric noise to whole numbers. OpenDP draws it (install the extra dp)."
    )
    fits: ClassVar[frozenset[Kind]] = frozenset({Kind.INTEGER})
    example: ClassVar[str] = "{geometric: {epsilon: 2, lower: 17, upper: 90}}"

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise base.wrong(self.name, name, value, "a whole number")
        super().__post_init__()
        self.grid()

    def grid(self) -> NumberGrid:
        """Return every whole number from lower to upper."""
        return NumberGrid.between(self.name, self.lower, self.upper, 1)

    def spread(self, numbers: Floats, points: Floats) -> Floats:  # noqa: ARG002 - all whole numbers
        """Return the probability that number i with geometric noise is shown as point j, for V
        numbers and R points, shape (V, R). Noisy numbers beyond the ends are shown as the end.
        """
        from aegis.masks.channels import geometric_channel

        return geometric_channel(
            self._clipped(numbers),
            int(self.lower),
            int(self.upper),
            epsilon=self.epsilon,
            sensitivity=self._sensitivity,
        )

    def noisy(self, numbers: Floats, random: np.random.Generator) -> Floats:  # noqa: ARG002
        """Return the numbers with noise from OpenDP, which takes no seed."""

        bounded = self._clipped(numbers).astype(np.int64)
        return geometric(bounded, self._sensitivity / self.epsilon).astype(np.float64)


class UniformNoise(GridNoise):
    """Uniform noise on numbers; the evenly spaced numbers that the mask can show (the grid) are
    fitted to the data.

    Each subclass declares all parameters as fields, so that it can list its own parameters before
    the shared ones.
    """

    learns: ClassVar[str | None] = LEARNS

    resolution: int | float | None
    lower: int | float | None
    upper: int | float | None

    @abstractmethod
    def widths(self, numbers: Floats) -> Floats:
        """Return the largest change that the noise can make to each number."""

    def spread(self, numbers: Floats, points: Floats) -> Floats:
        """Return the probability that number i with uniform noise is shown as point j, for V
        numbers and R points, shape (V, R).
        """
        from aegis.masks.channels import uniform_channel

        return uniform_channel(numbers, points, self.widths(numbers))

    def _check_grid(self) -> None:
        if self.resolution is not None:
            base.exact(self.name, "resolution", self.resolution, positive=True)
        hint = "Give both, or neither: they are then taken from the data."
        base.together(f"Mask {self.name!r}", hint, lower=self.lower, upper=self.upper)
        if self.lower is not None and self.upper is not None:
            _check_bounds(self.name, self.lower, self.upper, empty=True)
        if self.fitted:
            self.grid()

    @property
    def fitted(self) -> bool:
        """Whether the numbers that the mask can show are known."""
        return self.resolution is not None and self.lower is not None

    def _learn(self, data: ValueCounts) -> Mask:
        """Return the mask with about 100 evenly spaced numbers to show, from the smallest to the
        largest possible noisy number.

        The ends of the data range are bounds that at least `data.shared_rows` rows share.
        """
        numbers = floats(data.values)
        finite = np.isfinite(numbers)
        numbers, counts = numbers[finite], data.counts[finite]
        if not len(numbers):
            numbers, counts = np.zeros(1), np.ones(1, dtype=np.int64)
        widths = self.widths(numbers)
        shared = shared_range(numbers, counts, data.shared_rows)
        bounds = np.array([float(bound) for bound in shared])
        # Noise that grows with the number reaches farthest from one of the bounds.
        far = self.widths(bounds)
        low = float((bounds - far).min()) if self.lower is None else float(self.lower)
        high = float((bounds + far).max()) if self.upper is None else float(self.upper)
        if self.resolution is None:
            typical = float(np.median(widths)) or high - low
            # Fine enough for the noise, as far as the range allows.
            least = max(min((high - low) / STEPS, typical / 2), (high - low) / (8 * STEPS))
            step = nice_step(least) if least > 0 else base.as_fraction(1)
            if data.kind is Kind.INTEGER:
                step = max(step, base.as_fraction(1))
        else:
            step = base.as_fraction(self.resolution)
        first = base.as_fraction(low) // step * step if self.lower is None else None
        last = -(-base.as_fraction(high) // step) * step if self.upper is None else None
        fitted: dict[str, Any] = {
            "resolution": base.plain(step),
            "lower": self.lower if first is None else base.plain(first),
            "upper": self.upper if last is None else base.plain(last),
        }
        return replace(self, **fitted)

    def grid(self) -> NumberGrid:
        """Return the evenly spaced numbers from `lower` to `upper` that the mask can show."""
        if self.resolution is None or self.lower is None or self.upper is None:
            raise InternalError(f"Mask {str(self)!r} has not been fitted.")
        return NumberGrid.between(self.name, self.lower, self.upper, self.resolution)

    def noisy(self, numbers: Floats, random: np.random.Generator) -> Floats:
        """Return the numbers with uniform noise added, one draw per number."""
        return numbers + self.widths(numbers) * random.uniform(-1.0, 1.0, len(numbers))


@dataclass(frozen=True)
class AddUniform(UniformNoise):
    """Adds uniform noise in [-amount, amount]; guarantees no differential privacy.

    This is the absolute noise of the AEGIS paper. The true value differs from the shown number by
    at most `amount` plus the distance between two numbers that the mask can show.
    """

    name: ClassVar[str] = "add_uniform"
    summary: ClassVar[str] = "Adds uniform noise of at most the given amount."
    example: ClassVar[str] = "{add_uniform: {amount: 5}}"

    amount: int | float = described("largest change, above 0")
    resolution: int | float | None = learnt_field("distance between two shown numbers")
    lower: int | float | None = learnt_field("smallest number to show")
    upper: int | float | None = learnt_field("largest number to show")

    def __post_init__(self) -> None:
        base.exact(self.name, "amount", self.amount, positive=True)
        self._check_grid()

    def widths(self, numbers: Floats) -> Floats:
        """Return, for every number, the largest change that the noise can make, which is always
        `amount`.
        """
        return np.full(len(numbers), float(self.amount))


@dataclass(frozen=True)
class ScaleUniform(UniformNoise):
    """Multiplies by 1 + U, with U uniform in [-ratio, ratio]; guarantees no differential privacy.

    This is the relative noise of the AEGIS paper. 0 stays 0. The true value differs from the shown
    number by at most the ratio times the true value, plus the distance between two numbers that the
    mask can show.
    """

    name: ClassVar[str] = "scale_uniform"
    summary: ClassVar[str] = "Multiplies a number by a random factor, which is uniform around 1."
    example: ClassVar[str] = "{scale_uniform: {ratio: 0.1}}"

    ratio: int | float = described("largest change, as a share of the number")
    resolution: int | float | None = learnt_field("distance between two shown numbers")
    lower: int | float | None = learnt_field("smallest number to show")
    upper: int | float | None = learnt_field("largest number to show")

    def __post_init__(self) -> None:
        base.exact(self.name, "ratio", self.ratio, positive=True)
        self._check_grid()

    def widths(self, numbers: Floats) -> Floats:
        """Return, for every number, the largest change: the ratio times the number's absolute
        value.
        """
        return np.abs(numbers) * float(self.ratio)


def _check_bounds(mask: str, lower: object, upper: object, *, empty: bool = False) -> None:
    low = base.exact(mask, "lower", lower)
    high = base.exact(mask, "upper", upper)
    if high < low or (high == low and not empty):
        raise base.wrong(mask, "upper", upper, f"a number above lower, which is {low}")


MOST_DAYS = 100_000
"""Largest number of days that a noise mask on dates may show."""


@dataclass(frozen=True)
class DateNoise(NoiseMask):
    """Moves a date by a random whole number of days, uniform in -days..days.

    A time of day is dropped. Days beyond the bounds are shown as the bound. If `lower` and `upper`
    are not given, the bounds are fitted to the data. Null stays null. The noise guarantees no
    differential privacy.
    """

    name: ClassVar[str] = "date_noise"
    summary: ClassVar[str] = "Moves a date at random, by at most a number of days."
    fits: ClassVar[frozenset[Kind]] = frozenset({Kind.DATE})
    example: ClassVar[str] = "{date_noise: {days: 14}}"
    keeps_kind: ClassVar[bool] = True
    fitted_by: ClassVar[str | None] = "lower"
    ordered: ClassVar[bool] = True
    learns: ClassVar[str | None] = LEARNS

    days: int = described("largest number of days that a date moves, 1 to 36500")
    lower: str | None = learnt_field("first day to show (ISO 8601)")
    upper: str | None = learnt_field("last day to show (ISO 8601)")

    def __post_init__(self) -> None:
        base.whole(self.name, "days", self.days, at_least=1, at_most=36_500)
        hint = "Give both, or neither: they are then taken from the data."
        base.together(f"Mask {self.name!r}", hint, lower=self.lower, upper=self.upper)
        for name in ("lower", "upper"):
            bound: Any = getattr(self, name)
            if isinstance(bound, date):  # YAML reads an unquoted day as a date
                object.__setattr__(self, name, bound.isoformat()[:10])
            elif bound is not None:
                _day(self.name, name, bound)
        if self.fitted:
            first, last = self._ends()
            if not 0 <= last - first < MOST_DAYS:
                raise base.wrong(
                    self.name,
                    "upper",
                    self.upper,
                    f"a day from {self.lower} on, within {MOST_DAYS:,} days",
                )

    def _learn(self, data: ValueCounts) -> Mask:
        """Return the mask with bounds that span all moved dates. Each bound comes from a date that
        at least `data.shared_rows` rows share.
        """
        present = ~is_null(data.values)
        days, index = np.unique(_day_numbers(data.values)[present], return_inverse=True)
        low, high = 0, 0
        if len(days):
            rows = np.bincount(index, weights=data.counts[present])
            low, high = map(int, shared_range(days.astype(np.float64), rows, data.shared_rows))
        first, last = _EPOCH + timedelta(low - self.days), _EPOCH + timedelta(high + self.days)
        return replace(self, lower=first.isoformat(), upper=last.isoformat())

    def reports(self, data: ValueCounts) -> pa.Array:
        """Return every day from lower to upper, and null if the data has nulls."""
        days = self._days()
        return pa.concat_arrays([days, pa.nulls(1, days.type)]) if data.values.null_count else days

    def channel(self, data: ValueCounts, rows: slice = slice(None)) -> Floats:
        """Return the probability that true date i is shown as day j, for V dates and R days, shape
        (V, R), or only the lines `rows`. Days beyond a bound become the bound.

        Each day within `days` of the true one has the probability 1 / (2 days + 1).
        """
        first, last = self._ends()
        every = is_null(data.values)
        missing, numbers = every[rows], _day_numbers(data.values)[rows]
        size = last - first + 1
        chances = np.zeros((len(numbers), size + int(every.any())))
        share = 1.0 / (2 * self.days + 1)
        for i, day in enumerate(numbers.tolist()):
            if missing[i]:
                chances[i, -1] = 1.0
                continue
            days = np.clip(np.arange(day - self.days, day + self.days + 1), first, last) - first
            chances[i, :size] = np.bincount(days, minlength=size) * share
        return chances

    def draw(self, column: pa.Array, random: np.random.Generator) -> pa.Array:
        """Move each date by a separately drawn number of days."""
        first, last = self._ends()
        moved = _day_numbers(column) + random.integers(-self.days, self.days + 1, len(column))
        return take(self._days(), np.clip(moved, first, last) - first, is_null(column))

    def _ends(self) -> tuple[int, int]:
        if self.lower is None or self.upper is None:
            raise InternalError(f"Mask {str(self)!r} has not been fitted.")
        return _day(self.name, "lower", self.lower), _day(self.name, "upper", self.upper)

    def _days(self) -> pa.Array:
        first, last = self._ends()
        return pa.array(range(first, last + 1), pa.int32()).cast(pa.date32())


_EPOCH = date(1970, 1, 1)


def _day(mask: str, parameter: str, text: object) -> int:
    """Return the number of days from 1970-01-01 to `text`, a day written in ISO 8601; raise
    `PolicyError`, which names the mask and the parameter, for anything else.
    """
    try:
        return (date.fromisoformat(str(text)) - _EPOCH).days
    except ValueError:
        raise base.wrong(mask, parameter, text, "a day as 2024-01-31") from None


def _day_numbers(values: pa.Array) -> Ints:
    """Return dates and times as days from 1970-01-01, null as 0."""
    days = values.cast(pa.date32(), safe=False).cast(pa.int32()).fill_null(0)
    numbers: Ints = days.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


@cache
def library() -> SimpleNamespace:
    """Import OpenDP; return its domains, measurements and metrics.

    Raise `PolicyError`, which names the extra to install, if OpenDP is missing.
    """
    try:
        # Not by its prelude, which imports its extras for tables and models: two seconds.
        from opendp import domains, measurements, metrics
        from opendp.mod import enable_features
    except ImportError as error:
        raise PolicyError(
            "Noise with a stated epsilon is drawn with OpenDP, which is not installed.",
            hint="Install it: pip install 'aegis-advisor[dp]'.",
        ) from error
    # Non-interactive mechanisms that OpenDP has, but whose proofs its reviewers have not all vetted.
    enable_features("contrib")
    return SimpleNamespace(domains=domains, measurements=measurements, metrics=metrics)


def laplace(numbers: Floats, scale: float) -> Floats:
    """Add independent Laplace noise of this scale to each number."""
    return np.array(_noisy("make_laplace", numbers, scale, T="f64", nan=False), dtype=np.float64)


def geometric(numbers: Ints, scale: float) -> Ints:
    """Add independent noise k to each integer, with P(k) proportional to e^(-|k| / scale)."""
    return np.array(_noisy("make_geometric", numbers, scale, T="i64"), dtype=np.int64)


def _noisy(make: str, numbers: Floats | Ints, scale: float, **kind: Any) -> list[float]:
    if not len(numbers):
        return []
    dp = library()
    domain = dp.domains.vector_domain(dp.domains.atom_domain(**kind))
    metric = dp.metrics.l1_distance(T=kind["T"])
    mechanism = getattr(dp.measurements, make)(domain, metric, scale=float(scale))
    noisy: list[float] = mechanism(numbers.tolist())
    return noisy


def randomised_response(codes: Ints, size: int, keep: float) -> Ints:
    """Keep each code with probability `keep`; otherwise draw another of the codes 0..size - 1, all
    with the same probability.
    """
    if not len(codes):
        return codes.astype(np.int64)
    dp = library()
    mechanism = dp.measurements.make_randomized_response(
        categories=list(range(size)), prob=float(keep)
    )
    return np.array([mechanism(code) for code in codes.tolist()], dtype=np.int64)
