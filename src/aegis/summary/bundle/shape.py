"""The shape of a bundle's manifest: types and ranges, before anything is looked up or allocated."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aegis.masks import SHARED_ROWS

MOST_ROWS = 1 << 53
"""Most rows: whole numbers up to here are exact as 64-bit floats, in which counts are added."""

Rows = Annotated[int, Field(ge=0, le=MOST_ROWS)]
Character = Annotated[str, Field(min_length=1, max_length=1)]
CharacterOrNone = Annotated[str, Field(max_length=1)]
MaskSpec = str | dict[str, Any]


class BundleMapping(BaseModel):
    """A mapping with known keys, each with its value type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class UnitShape(BundleMapping):
    """The unit of a numeric label, whose values are multiples of `base ** -exponent`."""

    base: Literal[2, 10]
    exponent: Annotated[int, Field(ge=-1100, le=1100)]


class LabelShape(BundleMapping):
    """The label in a manifest; without a label, one class and no column."""

    column: str
    classes: Annotated[list[str], Field(min_length=1, max_length=256)]
    counts: list[Rows]
    unlabelled: Rows
    mask: MaskSpec | None
    unit: UnitShape | None = None


class CandidateShape(BundleMapping):
    """One candidate mask, fitted and as declared."""

    mask: MaskSpec
    declared: MaskSpec


class AttributeShape(BundleMapping):
    """One attribute; its arrays are in a member named after `key`."""

    key: str
    name: str
    role: Literal["quasi-identifier", "sensitive", "feature"]
    kind: Literal["integer", "number", "text", "date", "boolean"]
    weight: Annotated[float, Field(ge=1e-9, le=1e9, allow_inf_nan=False)]
    nulls: Rows
    hierarchy: str | None
    candidates: Annotated[list[CandidateShape], Field(min_length=1)]


class PairsShape(BundleMapping):
    """Co-occurrence counts."""

    rows: Rows
    classes: int
    sizes: list[int]
    folds: Annotated[int, Field(ge=2, le=127)] | None
    response_squares: list[Annotated[str, Field(pattern=r"^[0-9]{1,60}$")]] | None = None
    """Per fold the sum of squares of a numeric label in its unit, which may take more than 64 bits."""


class FrequencyShape(BundleMapping):
    """The frequency table."""

    quasi: list[str]
    sensitive: list[str]
    label: str
    columns: list[str]


class DialectShape(BundleMapping):
    """The dialect of a text file."""

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
    """The policy that the summary was made under, as one JSON text."""

    policy: str
    locked: bool


class SummaryShape(BundleMapping):
    """The summary's part of the manifest."""

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
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)] = 0
    """In bundles of earlier versions; nobody reads it."""


def read_shape(content: object) -> SummaryShape:
    """Return the content of a manifest; raise a `ValueError` that names the first impossible
    entry.
    """
    try:
        return SummaryShape.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the summary"
        raise ValueError(f"{place} of its manifest: {_lower(first['msg'])}") from error


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
