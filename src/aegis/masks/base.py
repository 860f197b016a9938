"""The interface of masks, the two masks that show everything or nothing, and checks of parameters.
A mask is one frozen object that builds one Ibis expression.

All other properties of a mask follow from this expression. Evaluated on the distinct values of a
column, it shows which values the mask treats in the same way. Compiled by Ibis, it is the mask's
SQL. Computed by the engine, it masks a table. So groups, SQL and masked table cannot disagree.

When a mask is constructed, each check returns a parameter in its normal form. Otherwise it raises
`PolicyError`, which names the mask, the parameter, the given value and the allowed values.

A noise mask may mask equal values differently, so it has no expression that an engine could run.
Instead it states its *channel*: for each distinct value of a column, the distribution of the masked
value over a finite list of *reports* (algorithms.md, "Masking functions"). Aegis computes expected
joint counts, scores and reconstructions from the channel without any draw. `draw` masks rows with
the same distribution.

Numbers are shown on a grid: the noisy number moves to the nearest grid point, and numbers beyond
the ends move to the ends. Both steps are part of the channel. Null and NaN do not change, so that
noise never creates or hides a missing value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Flags, Floats, Ints
from aegis.errors import InternalError, PolicyError, choices
from aegis.privacy import PrivacyAccount, PrivacyLoss
from aegis.words import brief

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

SUPPRESSED = "*"
"""The only value that a suppressed attribute shows."""
SHARED_ROWS = 11
"""Smallest number of rows that share a learnt bound.

Guidance on releases of health data allows no smaller group (EMA policy 0070 and Health Canada, the
presets of the privacy rule).
"""


SECONDS = "Write the times as seconds in a column of numbers (02:33:01 is 9181)"
"""How to use a column of times of day or durations, for which Aegis has no mask."""

TIMES = ("time", "interval")
"""Beginnings of the types of such columns."""


def usable(dtype: dt.DataType) -> str:
    """Return what to do with a column of a type that no mask accepts, without a full stop."""
    if str(dtype).startswith(TIMES):
        return SECONDS
    return "Convert it to a number, text, date or boolean"


class Kind(StrEnum):
    """The kind of data in a column: integer, number, text, date or Boolean."""

    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    BOOLEAN = "boolean"

    @classmethod
    def of(cls, dtype: dt.DataType) -> Kind | None:
        """Return the kind of an Ibis data type, or None if no mask can work on it."""
        if dtype.is_integer():
            return cls.INTEGER
        if dtype.is_floating() or dtype.is_decimal():
            return cls.NUMBER
        if dtype.is_string() or dtype.is_uuid():
            return cls.TEXT
        if dtype.is_date() or dtype.is_timestamp():
            return cls.DATE
        return cls.BOOLEAN if dtype.is_boolean() else None

    @property
    def numeric(self) -> bool:
        """Whether values of this kind are numbers."""
        return self in (Kind.INTEGER, Kind.NUMBER)

    @property
    def ordered(self) -> bool:
        """Whether values of this kind have a natural order."""
        return self.numeric or self is Kind.DATE


@dataclass(frozen=True)
class ValueCounts:
    """The distinct values of a column and the number of rows of each; masks are fitted to them.

    Attributes
    ----------
    kind
        The kind of data in the column.
    values
        The V distinct values, shape (V,), in ascending order; null, if there is one, is last.
    counts
        Number of rows with each of the V values, shape (V,), int64.
    shared_rows
        Smallest number of rows that must share a bound (a smallest or largest value) that a mask
        learns.
    """

    kind: Kind
    values: pa.Array
    counts: Ints
    shared_rows: int = SHARED_ROWS


@dataclass(frozen=True)
class Targets:
    """A mask written as a list that gives the masked value of each original value.

    Attributes
    ----------
    keyed
        Pairs of an original value, in the type of the column, and its masked value.
    otherwise
        The masked value of all other values.
    of_null
        The masked value of null; None if it stays null.
    """

    keyed: Mapping[Any, str]
    otherwise: str
    of_null: str | None = None


def described(doc: str, default: Any = MISSING) -> Any:
    """Return a dataclass field for a parameter of a mask, with its documentation and default."""
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True)
class Mask(ABC):
    """A masking function: a frozen object with its parameters as fields.

    Two masks with equal parameters are equal and have the same hash, so results can be cached by
    mask. Null stays null unless a mask states otherwise. NaN is a separate value.
    """

    name: ClassVar[str]
    """The name of the mask in policies."""
    summary: ClassVar[str]
    """One sentence on the mask, for `aegis masks` and the reference."""
    fits: ClassVar[frozenset[Kind]]
    """Kinds of column that the mask can work on."""
    example: ClassVar[str] = ""
    """The mask as a policy writes it (YAML), for the reference."""
    learns: ClassVar[str | None] = None
    """What learnt bounds reveal of the data, as a sentence for certificates; None if no bounds are learnt.

    `{rows}` is replaced by the number of rows that share a bound. A release does not show whether a
    policy declared the bounds.
    """
    shows_intervals: ClassVar[bool] = False
    """Whether the mask shows intervals of numbers, as text."""
    deterministic: ClassVar[bool] = True
    """Whether equal values are always masked in the same way."""
    idempotent: ClassVar[bool] = False
    """Whether the mask leaves a masked value unchanged. If so, masking a file again checks it."""
    keeps_kind: ClassVar[bool] = False
    """Whether the masked column has the kind of the original column. Otherwise it is text."""
    fitted_by: ClassVar[str | None] = None
    """Name of the parameter that `fit` sets; None if the mask learns nothing."""

    @abstractmethod
    def expression(self, column: ir.Column) -> ir.Value:
        """Return the Ibis expression of the masked `column`.

        Raises
        ------
        InternalError
            The mask has parameters that must be fitted to the data first.
        """

    def told_apart(self, column: ir.Column) -> ir.Value:
        """Return an expression that has the same result for two values of `column` if the mask
        shows both as the same value, and different results otherwise.

        This is the masked value, unless the mask draws the masked value at random.
        """
        return self.expression(column)

    def known(self, column: ir.Column) -> ir.BooleanValue | None:  # noqa: ARG002 - most know all
        """Return the Ibis condition that the mask defines a result for a value of `column`; None if
        it does so for every value.

        The mask has no result for an unknown value, for example one that its hierarchy lacks. It
        then shows `SUPPRESSED`. The policy decides whether an unknown value is also an error.
        """
        return None

    def targets(self, dtype: dt.DataType) -> Targets | None:  # noqa: ARG002 - few masks have them
        """Return the mask as a list of original values, in the type `dtype`, with their masked
        values; None if no list describes the mask.
        """
        return None

    def shows(self, text: str) -> bool | None:  # noqa: ARG002 - few masks can tell
        """Return whether the mask can show this text; None if its parameters do not decide that.

        A number counts as shown even if a file writes it in another form.
        """
        return None

    def output_kind(self, kind: Kind) -> Kind:
        """Return the kind of the masked column, if the original column has kind `kind`."""
        return kind if self.keeps_kind else Kind.TEXT

    @property
    def fitted(self) -> bool:
        """Whether all parameters are known, so that the mask has the same effect on any table."""
        return self.fitted_by is None or getattr(self, self.fitted_by) is not None

    def unfitted(self) -> Mask:
        """Return the mask without the parameters that `fit` learns from the data."""
        return self if self.fitted_by is None else replace(self, **{self.fitted_by: None})

    def unlisted(self) -> Mask:
        """Return the mask without a list of values that it learnt from the data.

        The list may have a value of which a release suppresses every row.
        """
        return self.unfitted() if self.fitted_by == "values" else self

    def fit(self, data: ValueCounts) -> Mask:
        """Learn the mask's missing parameters from `data`, and return the fitted mask.

        A configuration stores the fitted mask, so that later rows are masked with the same cut
        points. Fitting a fitted mask again returns it unchanged.
        """
        return self if self.fitted else self._learn(data)

    def _learn(self, data: ValueCounts) -> Mask:  # noqa: ARG002 - most masks learn nothing
        """Return the mask with the parameters that it learns from `data`."""
        return self

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as a policy writes them; default values are left out."""
        changed = {}
        for parameter in self.declared():
            value = getattr(self, parameter.name)
            if value != parameter.default:
                changed[parameter.name] = list(value) if isinstance(value, tuple) else value
        return changed

    @classmethod
    @cache
    def declared(cls) -> tuple[Field[Any], ...]:
        """Return the fields that a policy may write.

        Each field has its documentation in `metadata["doc"]`. If `metadata["policy"]` is False, the
        program sets the field, for example the hierarchy of the attribute.
        """
        return tuple(each for each in fields(cls) if each.metadata.get("policy", True))

    @classmethod
    def required(cls) -> tuple[str, ...]:
        """Return the names of the parameters that have no default."""
        return tuple(each.name for each in cls.declared() if each.default is MISSING)

    def require_fitted(self) -> None:
        """Raise `InternalError` if the mask still has to learn parameters from the data."""
        if not self.fitted:
            raise InternalError(
                f"Mask {str(self)!r} has not been fitted.", hint="Call fit(ValueCounts) first."
            )

    def spec(self) -> str | dict[str, Any]:
        """Return the mask as a policy writes it: its name, or `{name: parameters}`."""
        parameters = self.parameters()
        return {self.name: parameters} if parameters else self.name

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={value}" for key, value in self.parameters().items())
        return f"{self.name}({inside})" if inside else self.name

    def check(self, kind: Kind, attribute: str) -> None:
        """Raise `PolicyError`, which names the attribute, if the mask does not accept columns of
        this kind.
        """
        if kind not in self.fits:
            allowed = ", ".join(sorted(self.fits))
            stored = ""
            if kind is Kind.TEXT:
                stored = (
                    " If the texts are dates or numbers, store them as such in the file, or save the "
                    "table as CSV: Aegis then reads their type. In CSV, look for values that are neither."
                )
            raise PolicyError(
                f"Mask {str(self)!r} of attribute {attribute!r} does not fit a column of {kind}.",
                hint=f"It works on: {allowed}.{stored}",
            )


MOST_SCALED = 2**50
"""Largest width, step or origin, in units of its last decimal place; all bounds up to it are exact.
"""
MOST_DIGITS = 12
"""Largest number of decimal places of a width, step or origin."""
MOST_WHOLE = 2**31 - 1
"""Largest whole number of a parameter that has no limit of its own."""
LARGEST = 1e300
"""Largest number; sums and products of larger numbers might not be finite."""


def wrong(mask: str, parameter: str, value: object, allowed: str) -> PolicyError:
    """Return the error for a parameter with a `value` that is not allowed."""
    return PolicyError(
        f"Mask {mask!r}: parameter {parameter!r} is {brief(value)}.", hint=f"Allowed: {allowed}."
    )


def whole(
    mask: str, parameter: str, value: object, *, at_least: int = 0, at_most: int | None = None
) -> int:
    """Return `value` if it is an int from `at_least` to `at_most`, not True or 2.0; else refuse it."""
    large = isinstance(value, int) and value > MOST_WHOLE
    top = "" if at_most is None and not large else f" and at most {at_most or MOST_WHOLE}"
    allowed = f"a whole number, at least {at_least}{top}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(mask, parameter, value, allowed)
    if value < at_least or value > (MOST_WHOLE if at_most is None else at_most):
        raise wrong(mask, parameter, value, allowed)
    return value


def number(mask: str, parameter: str, value: object, *, positive: bool = False) -> int | float:
    """Return `value` if it is a finite number (above 0 if `positive`); else refuse it."""
    allowed = "a number above 0" if positive else "a finite number"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong(mask, parameter, value, allowed)
    # Compared before anything is computed: a whole number may be too large for a float.
    if not -LARGEST <= value <= LARGEST:
        raise wrong(mask, parameter, value, f"{allowed}, at most {LARGEST:g}")
    if positive and value <= 0:
        raise wrong(mask, parameter, value, allowed)
    return value


def exact(mask: str, parameter: str, value: object, *, positive: bool = False) -> int | float:
    """Return `value` if it is a number with few enough decimals for exact bounds; else refuse it."""
    checked = number(mask, parameter, value, positive=positive)
    digits = decimals(checked)
    if digits > MOST_DIGITS or abs(checked) * 10**digits > MOST_SCALED:
        raise wrong(
            mask,
            parameter,
            value,
            f"at most {MOST_DIGITS} decimal places, and at most {MOST_SCALED} in units of the last",
        )
    return checked


def one_of(mask: str, parameter: str, value: object, allowed: Sequence[str]) -> str:
    """Return `value` if it is one of `allowed`; else refuse it."""
    if not isinstance(value, str) or value not in allowed:
        raise PolicyError(
            f"Mask {mask!r}: parameter {parameter!r} is {brief(value)}.",
            hint=choices(str(value), allowed),
        )
    return value


def either(mask: str, example: str, **values: object) -> None:
    """Refuse a mask unless exactly one of two parameters has a value."""
    missing = [value is None for value in values.values()]
    if all(missing) or not any(missing):
        raise PolicyError(
            f"Mask {mask!r} takes {' or '.join(map(repr, values))};"
            f" {'neither' if all(missing) else 'both'} given.",
            hint=f"For example {example}.",
        )


def together(what: str, hint: str, **values: object) -> None:
    """Refuse a mask (`what`) that has a value for only one of two parameters."""
    if len({value is None for value in values.values()}) > 1:
        raise PolicyError(
            f"{what} takes {' and '.join(map(repr, values))} together; one given.", hint=hint
        )


def text(mask: str, parameter: str, value: object) -> str:
    """Return `value` if it is a text that is not empty; else refuse it."""
    if not isinstance(value, str) or not value:
        raise wrong(mask, parameter, value, "a text that is not empty")
    return value


def edges(mask: str, value: object) -> tuple[int | float, ...]:
    """Return `value` if it is a list of finite numbers in strictly ascending order; else refuse it."""
    allowed = "a list of numbers in ascending order, none twice"
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise wrong(mask, "edges", value, allowed)
    cuts = tuple(number(mask, "edges", cut) for cut in value)
    if any(left >= right for left, right in pairwise(cuts)):
        raise wrong(mask, "edges", list(cuts), allowed)
    return cuts


def as_fraction(value: object) -> Fraction:
    """Return a number as an exact fraction; a float is read in its shortest decimal form."""
    if isinstance(value, (int, Decimal)):
        return Fraction(value)
    if isinstance(value, float):
        return Fraction(repr(value))
    raise InternalError(f"{value!r} is not a number.")


def plain(value: Fraction) -> int | float:
    """Return `value` as an int if it is whole, else as the nearest float."""
    return int(value) if value.denominator == 1 else float(value)


def decimals(value: float) -> int:
    """Return how many decimal places the shortest decimal form of `value` has."""
    if isinstance(value, int) or value.is_integer():
        return 0
    exponent = Decimal(repr(float(value))).normalize().as_tuple().exponent
    return max(0, -int(exponent))


def number_text(value: float) -> str:
    """Return a number as text without exponent: 5, 0.25, -3."""
    return str(int(value)) if decimals(value) == 0 else format(Decimal(repr(float(value))), "f")


def scaled_text(value: int, digits: int) -> str:
    """Return `value` * 10**-digits as text with `digits` decimal places."""
    return format(Decimal(value).scaleb(-digits), "f")


@dataclass(frozen=True)
class Identity(Mask):
    """Shows each value as it is; null stays null."""

    name: ClassVar[str] = "identity"
    summary: ClassVar[str] = "Shows each value as it is."
    fits: ClassVar[frozenset[Kind]] = frozenset(Kind)
    example: ClassVar[str] = "identity"
    keeps_kind: ClassVar[bool] = True

    def expression(self, column: ir.Column) -> ir.Value:
        """Return `column` itself."""
        return column


@dataclass(frozen=True)
class Suppress(Mask):
    """Shows "*" for every value and for null, so that no values can be distinguished."""

    name: ClassVar[str] = "suppress"
    summary: ClassVar[str] = 'Shows "*" instead of every value, also instead of null.'
    fits: ClassVar[frozenset[Kind]] = frozenset(Kind)
    example: ClassVar[str] = "suppress"

    def expression(self, column: ir.Column) -> ir.Value:  # noqa: ARG002 - nothing of it is shown
        """Return the constant "*"."""
        return ibis.literal(SUPPRESSED)

    def shows(self, text: str) -> bool:
        """Return whether a text is "*"."""
        return text == SUPPRESSED


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
    """Yield the channel in blocks of values, so that the whole matrix is never in memory."""
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
        """Return the numbers from `lower` by `step` up to `upper`; refuse too many."""
        low, high, by = map(as_fraction, (lower, upper, step))
        size = (high - low) // by + 1
        if size > MOST_REPORTS:
            raise wrong(
                mask,
                "resolution",
                step,
                f"steps that make at most {MOST_REPORTS:,} values from {lower:g} to {upper:g}; "
                f"this makes {size:,}",
            )
        return cls(low, by, int(size))

    @property
    def integral(self) -> bool:
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
    exponent = max(exponent, -MOST_DIGITS)
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
    chosen_reports = reports.take(places)
    if missing is None or not missing.any():
        return chosen_reports
    null = pa.scalar(None, reports.type)
    return pc.if_else(pa.array(missing.tolist(), pa.bool_()), null, chosen_reports)


def is_null(values: pa.Array) -> Flags:
    """Return, for each of the n entries, whether it is null, shape (n,); NaN is not null."""
    null: Flags = pc.is_null(values).to_numpy(zero_copy_only=False)
    return null
