"""Check mask parameters when a mask is constructed.

Each check returns the parameter in its normal form. Otherwise it raises `PolicyError`, which names
the mask, the parameter, the given value and the allowed values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from aegis.errors import InternalError, PolicyError, choices
from aegis.words import brief

MOST_SCALED = 2**50
"""Largest width, step or origin, in units of its last decimal place; all bounds up to it are exact.
"""
MOST_DIGITS = 12
"""Largest number of decimal places of a width, step or origin."""
MOST_WHOLE = 2**31 - 1
"""Largest whole number of a parameter that has no limit of its own."""
LARGEST = 1e300
"""Largest number; sums and products of larger numbers might not be finite."""


def wrong(mask: str, parameter: str, given: object, allowed: str) -> PolicyError:
    """Return the error for a parameter of the mask called `mask` whose value `given` is not
    allowed.
    """
    return PolicyError(
        f"Mask {mask!r}: parameter {parameter!r} is {brief(given)}.", hint=f"Allowed: {allowed}."
    )


def whole(
    mask: str, parameter: str, given: object, *, at_least: int = 0, at_most: int | None = None
) -> int:
    """Return `given`, the value of a mask's parameter, if it is an int from `at_least` to
    `at_most`; otherwise raise `PolicyError`. True and 2.0 are refused.
    """
    large = isinstance(given, int) and given > MOST_WHOLE
    top = "" if at_most is None and not large else f" and at most {at_most or MOST_WHOLE}"
    allowed = f"a whole number, at least {at_least}{top}"
    if isinstance(given, bool) or not isinstance(given, int):
        raise wrong(mask, parameter, given, allowed)
    if given < at_least or given > (MOST_WHOLE if at_most is None else at_most):
        raise wrong(mask, parameter, given, allowed)
    return given


def number(mask: str, parameter: str, given: object, *, positive: bool = False) -> int | float:
    """Return `given`, the value of a mask's parameter, if it is a finite int or float (above 0 if
    `positive`); otherwise raise `PolicyError`.
    """
    allowed = "a number above 0" if positive else "a finite number"
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise wrong(mask, parameter, given, allowed)
    # Compared before anything is computed: a whole number may be too large for a float.
    if not -LARGEST <= given <= LARGEST:
        raise wrong(mask, parameter, given, f"{allowed}, at most {LARGEST:g}")
    if positive and given <= 0:
        raise wrong(mask, parameter, given, allowed)
    return given


def exact(mask: str, parameter: str, given: object, *, positive: bool = False) -> int | float:
    """Return `given`, the value of a mask's parameter, if it is a number with so few decimal places
    that interval bounds are exact; otherwise raise `PolicyError`.
    """
    checked = number(mask, parameter, given, positive=positive)
    digits = decimals(checked)
    if digits > MOST_DIGITS or abs(checked) * 10**digits > MOST_SCALED:
        raise wrong(
            mask,
            parameter,
            given,
            f"at most {MOST_DIGITS} decimal places, and at most {MOST_SCALED} in units of the last",
        )
    return checked


def one_of(mask: str, parameter: str, given: object, allowed: Sequence[str]) -> str:
    """Return `given`, the value of a mask's parameter, if it is one of `allowed`; otherwise raise
    `PolicyError`.
    """
    if not isinstance(given, str) or given not in allowed:
        raise PolicyError(
            f"Mask {mask!r}: parameter {parameter!r} is {brief(given)}.",
            hint=choices(str(given), allowed),
        )
    return given


def either(mask: str, example: str, **given: object) -> None:
    """Raise `PolicyError` unless exactly one of two parameters of the mask called `mask` has a
    value; `example` shows how to write it.
    """
    missing = [value is None for value in given.values()]
    if all(missing) or not any(missing):
        raise PolicyError(
            f"Mask {mask!r} takes {' or '.join(map(repr, given))};"
            f" {'neither' if all(missing) else 'both'} given.",
            hint=f"For example {example}.",
        )


def together(what: str, hint: str, **given: object) -> None:
    """Raise `PolicyError` unless both or neither of two parameters have a value. `what` names the
    mask, and `hint` says what to write.
    """
    if len({value is None for value in given.values()}) > 1:
        raise PolicyError(
            f"{what} takes {' and '.join(map(repr, given))} together; one given.", hint=hint
        )


def text(mask: str, parameter: str, given: object) -> str:
    """Return `given`, the value of a mask's parameter, if it is a text that is not empty; otherwise
    raise `PolicyError`.
    """
    if not isinstance(given, str) or not given:
        raise wrong(mask, parameter, given, "a text that is not empty")
    return given


def edges(mask: str, given: object) -> tuple[int | float, ...]:
    """Return `given` if it is a list of cut points, that is, finite numbers in strictly ascending
    order; otherwise raise `PolicyError`.
    """
    allowed = "a list of numbers in ascending order, none twice"
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise wrong(mask, "edges", given, allowed)
    cuts = tuple(number(mask, "edges", cut) for cut in given)
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
