"""The interface of masks: each is one frozen object that builds one Ibis expression.

All other properties of a mask follow from this expression. Evaluated on the distinct values of a
column, it shows which values the mask treats in the same way. Compiled by Ibis, it is the mask's
SQL. Computed by the engine, it masks a table. So groups, SQL and masked table cannot disagree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from aegis.arrays import Ints
from aegis.errors import InternalError, PolicyError

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
        """Return an expression that has the same result for two values of `column` if and only if
        the mask merges them.

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
        shown = {}
        for each in self.declared():
            value = getattr(self, each.name)
            if value != each.default:
                shown[each.name] = list(value) if isinstance(value, tuple) else value
        return shown

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
            raise PolicyError(
                f"Mask {str(self)!r} of attribute {attribute!r} does not fit a column of {kind}.",
                hint=f"It works on: {allowed}.",
            )
