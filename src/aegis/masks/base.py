"""The contract of a mask: one frozen object, one Ibis expression.

Everything else about a mask follows from that expression. Which values it treats in the same way is found
by evaluating it on the distinct values of a column; how it looks in SQL is what Ibis compiles;
what it does to a table is what the engine computes. So a mask cannot mean two things.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegis.errors import InternalError, PolicyError

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

SUPPRESSED = "*"
"""The one value that a suppressed attribute shows."""
SHARED_ROWS = 11
"""Least rows that share a learnt bound: the smallest group that guidance on releases of health data
allows (EMA policy 0070 and Health Canada, the presets of the privacy rule)."""


class Kind(StrEnum):
    """The kinds of column that masks distinguish."""

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
        """Whether arithmetic makes sense on values of this kind."""
        return self in (Kind.INTEGER, Kind.NUMBER)

    @property
    def ordered(self) -> bool:
        """Whether values of this kind have their own order."""
        return self.numeric or self is Kind.DATE


@dataclass(frozen=True)
class ValueCounts:
    """The distinct values of a column and the rows of each; masks that learn from data use it.

    Attributes
    ----------
    kind
        What the column holds.
    values
        Distinct values, shape (V,), in ascending order with null last where there is one.
    counts
        Rows per value, shape (V,), int64.
    shared_rows
        Rows that share each bound that a mask learns.
    """

    kind: Kind
    values: pa.Array
    counts: npt.NDArray[np.int64]
    shared_rows: int = SHARED_ROWS


@dataclass(frozen=True)
class Targets:
    """The shown value for each value of a column.

    Attributes
    ----------
    keyed
        Each value that it names, as a column of the type asked for holds it, and what it shows.
    otherwise
        What any other value shows.
    of_null
        What null shows; None if it stays null.
    """

    keyed: Mapping[Any, str]
    otherwise: str
    of_null: str | None = None


@dataclass(frozen=True)
class Mask(ABC):
    """A masking function: a frozen object with its parameters as fields.

    Two masks with equal parameters are equal and hash in the same way, so whatever is computed for a mask
    can be remembered under it. Null stays null unless a mask says otherwise; NaN is a value of
    its own.
    """

    name: ClassVar[str]
    """The name under which policies call the mask."""
    summary: ClassVar[str]
    """One sentence for `aegis masks` and the reference."""
    fits: ClassVar[frozenset[Kind]]
    """Kinds of column that the mask can work on."""
    example: ClassVar[str] = ""
    """The mask as a policy writes it (YAML), for the reference."""
    learns: ClassVar[str | None] = None
    """What bounds that are learnt from the data give away of it, for certificates; None if none
    are. `{rows}` represents the rows that share one. A release cannot tell whether a policy declared
    them."""
    shows_intervals: ClassVar[bool] = False
    """Whether what is shown are intervals of numbers, as text."""
    deterministic: ClassVar[bool] = True
    """Whether equal values are always masked in the same way."""

    @abstractmethod
    def expression(self, column: ir.Column) -> ir.Value:
        """Return the Ibis expression of the masked `column`.

        Raises
        ------
        InternalError
            The mask has parameters that must be fitted to the data first.
        """

    def told_apart(self, column: ir.Column) -> ir.Value:
        """Return an expression that is equal for two values exactly if the mask treats them in the
        same way.

        The masked value itself, unless what is shown is drawn at random.
        """
        return self.expression(column)

    def known(self, column: ir.Column) -> ir.BooleanValue | None:  # noqa: ARG002 - most know all
        """Return the Ibis condition that a value is one that the mask has a rule for.

        None represents "every value". A value that is not known is masked as `SUPPRESSED`, so
        that it does not leak; whether it is also an error is for the policy to say.
        """
        return None

    def targets(self, dtype: dt.DataType) -> Targets | None:  # noqa: ARG002 - few masks have them
        """Return the shown value of each value, if that describes the mask completely; otherwise
        None.
        """
        return None

    def shows(self, text: str) -> bool | None:  # noqa: ARG002 - few masks can tell
        """Return whether the mask can show a text; None if its parameters do not say."""
        return None

    def output_kind(self, kind: Kind) -> Kind:  # noqa: ARG002 - most masks show text
        """Return the kind of the masked column if the column has the kind `kind`."""
        return Kind.TEXT

    @property
    def fitted(self) -> bool:
        """Whether all parameters are known, so that the mask works in the same way on any table."""
        return True

    def fit(self, data: ValueCounts) -> Mask:  # noqa: ARG002 - most masks have nothing to learn
        """Return the mask with its data-driven parameters filled in from `data`.

        A configuration stores the fitted mask, so that tomorrow's rows are masked by the same
        cuts as today's.
        """
        return self

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as a policy writes them, defaults left out."""
        shown = {}
        for field in self.declared():
            value = getattr(self, field.name)
            if value != field.default:
                shown[field.name] = list(value) if isinstance(value, tuple) else value
        return shown

    @classmethod
    @cache
    def declared(cls) -> tuple[Field[Any], ...]:
        """Return the fields that a policy may write.

        Each carries its documentation as `metadata["doc"]`. A field with `metadata["policy"]`
        False is filled in by the program, for example the hierarchy of the attribute.
        """
        return tuple(field for field in fields(cls) if field.metadata.get("policy", True))

    @classmethod
    def required(cls) -> tuple[str, ...]:
        """Return the names of the parameters that have no default."""
        return tuple(field.name for field in cls.declared() if field.default is MISSING)

    def require_fitted(self) -> None:
        """Raise `InternalError` when the mask still has parameters to learn from the data."""
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
        """Raise `PolicyError` when the mask does not fit a column of `kind`."""
        if kind not in self.fits:
            allowed = ", ".join(sorted(self.fits))
            raise PolicyError(
                f"Mask {str(self)!r} of attribute {attribute!r} does not fit a column of {kind}.",
                hint=f"It works on: {allowed}.",
            )
