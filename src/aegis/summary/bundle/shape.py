"""Define the types and ranges of the entries in a bundle's manifest. They are checked before
anything else is read.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aegis.masks import SHARED_ROWS

MOST_ROWS = 1 << 53
"""Largest number of rows. Counts are added as 64-bit floats, which represent whole numbers up to
this one exactly.
"""

Rows = Annotated[int, Field(ge=0, le=MOST_ROWS)]
Weights = Annotated[int, Field(ge=0, lt=1 << 62)]
Number = Annotated[int, Field(gt=-(1 << 62), lt=1 << 62)]
Large = Annotated[str, Field(pattern=r"^[0-9]{1,60}$")]
"""A whole number that may take more than 64 bits."""
Character = Annotated[str, Field(min_length=1, max_length=1)]
CharacterOrNone = Annotated[str, Field(max_length=1)]
MaskSpec = str | dict[str, Any]


class BundleMapping(BaseModel):
    """A mapping in the manifest of a bundle that allows only the keys listed here."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class UnitShape(BundleMapping):
    """The manifest's entry for the unit of a numeric label, `base ** -exponent`. Every label is a
    whole multiple of the unit.
    """

    base: Literal[2, 10]
    exponent: Annotated[int, Field(ge=-1100, le=1100)]


class LabelShape(BundleMapping):
    """The manifest's entry for the label. If the summary has no label, the name of its column is
    empty, and all rows are in one class.
    """

    column: str
    classes: Annotated[list[str], Field(min_length=1, max_length=256)]
    counts: list[Rows]
    unlabelled: Rows
    mask: MaskSpec | None
    unit: UnitShape | None = None
    totals: list[Weights] | None = None
    """Sums of the weights of each class, if rows have weights."""
    ends: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None
    """The smallest and largest number of a numeric label, in its unit."""


class CandidateShape(BundleMapping):
    """The manifest's entry for a candidate mask, as the policy declares it and as it was fitted to
    the table.
    """

    mask: MaskSpec
    declared: MaskSpec


class AttributeShape(BundleMapping):
    """The manifest's entry for one attribute. The arrays of the attribute are in a member named
    after `key`.
    """

    key: str
    name: str
    role: Literal["quasi-identifier", "sensitive", "feature"]
    kind: Literal["integer", "number", "text", "date", "boolean"]
    weight: Annotated[float, Field(ge=1e-9, le=1e9, allow_inf_nan=False)]
    nulls: Rows
    hierarchy: str | None
    candidates: Annotated[list[CandidateShape], Field(min_length=1)]


class WeightSumsShape(BundleMapping):
    """The manifest's entry for sums of the weights of some rows, in units."""

    total: Large
    squares: Large
    divisor: Large


class WeightsShape(BundleMapping):
    """The manifest's entry for the weights of the rows: their column, their unit and their sums."""

    column: str
    unit: UnitShape
    sums: WeightSumsShape
    labelled: WeightSumsShape
    zeros: Rows


class PairsShape(BundleMapping):
    """The manifest's entry for the sizes of the counts of pairs of attributes."""

    rows: Rows
    classes: int
    sizes: list[int]
    folds: Annotated[int, Field(ge=2, le=127)] | None
    response_squares: list[Large] | None = None
    """For each fold, the sum of squares of a numeric label in its unit, which may need more than 64
    bits.
    """
    weights: WeightSumsShape | None = None


class FrequencyShape(BundleMapping):
    """The manifest's entry for the columns and the size of the frequency table."""

    quasi: list[str]
    sensitive: list[str]
    label: str
    columns: list[str]


class DialectShape(BundleMapping):
    """The manifest's entry for the dialect of a text file."""

    delimiter: Character
    quote: CharacterOrNone
    escape: CharacterOrNone
    header: bool
    encoding: Annotated[str, Field(min_length=1, max_length=100)]
    skip: Rows
    decimal: Character
    thousands: CharacterOrNone
    null: list[str]
    dates: Literal["", "day-first", "month-first"]
    units: list[str] = []


class TermsShape(BundleMapping):
    """The manifest's entry for the policy under which the summary was made, as a JSON text."""

    policy: str
    locked: bool


class TaskShape(BundleMapping):
    """The manifest's entry for one of several labels: its weight, its measure, and the summary of
    the table that was made for this label.
    """

    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    measure: str | None
    summary: SummaryShape


class LabelsShape(BundleMapping):
    """The manifest's entry for several labels, and how the advice combines them."""

    serve: Literal["mean", "worst"]
    tasks: Annotated[list[TaskShape], Field(min_length=2)]


class SummaryShape(BundleMapping):
    """All entries of the manifest that describe the summary."""

    rows: Annotated[int, Field(ge=1, le=MOST_ROWS)]
    label: LabelShape
    attributes: Annotated[list[AttributeShape], Field(min_length=1)]
    label_attribute: AttributeShape | None
    pairs: PairsShape
    frequency: FrequencyShape | None
    max_levels: Annotated[int, Field(ge=2, le=1 << 31)]
    unnamed: list[str]
    digests: dict[str, str]
    shared_rows: Annotated[int, Field(ge=1, le=MOST_ROWS)] = SHARED_ROWS
    dialects: list[DialectShape] = []
    read_by_context: list[str] | None = None
    terms: TermsShape | None = None
    labels: LabelsShape | None = None
    weights: WeightsShape | None = None
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)] = 0
    """An entry in bundles of earlier versions; it is not used."""


def read_shape(content: object) -> SummaryShape:
    """Parse the manifest of a bundle and return it; raise a `ValueError` that names the first
    invalid entry.
    """
    try:
        return SummaryShape.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the summary"
        raise ValueError(f"{place} of its manifest: {_lower(first['msg'])}") from error


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
