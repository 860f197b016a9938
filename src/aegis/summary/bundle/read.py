"""Rebuild a summary from the manifest and members of a bundle, which are not trusted.

This module checks the entries of the manifest before it reads anything else, and the type and
length of every array when it reads the array. The module `check` then compares the numbers with
each other, and raises `ValueError` for a contradiction.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Annotated, Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aegis.arrays import Array, Ints, joined_halves
from aegis.errors import wrong_value
from aegis.masks import SHARED_ROWS, Hierarchy, Kind, Mask, parse_mask
from aegis.measures import MEASURES
from aegis.policy import Role, Serve, Terms
from aegis.sources.dialect import TextDialect
from aegis.summary.bundle.archive import numbers, unpack
from aegis.summary.bundle.write import (
    FREQUENCY,
    LABEL_KEY,
    PAIRS,
    attribute_key,
    hierarchy_member,
    label_prefix,
    values_member,
)
from aegis.summary.cooccurrence import FoldCounts, PairCounts, as_entries
from aegis.summary.frequency import FrequencyTable
from aegis.summary.model import (
    AttributeSummary,
    Candidate,
    Domain,
    LabelSummary,
    SeveralSummaries,
    Summary,
    TaskSummary,
)
from aegis.summary.responses import NumberUnit, ResponseSums
from aegis.summary.weights import TableWeights, WeightSums

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
    """A mapping in the manifest (JSON) of a summary file; it allows only the fields of its class."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class UnitShape(BundleMapping):
    """The manifest's entry for the unit of a numeric label, `base ** -exponent`."""

    base: Literal[2, 10]
    exponent: Annotated[int, Field(ge=-1100, le=1100)]


class LabelShape(BundleMapping):
    """The manifest's entry for the label; without one, its column is empty."""

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
    """The manifest's entry for a candidate mask, as declared and as fitted to the table."""

    mask: MaskSpec
    declared: MaskSpec


class AttributeShape(BundleMapping):
    """The manifest's entry for one attribute, whose arrays are in a member named after `key`."""

    key: str
    name: str
    role: Literal["quasi-identifier", "sensitive", "feature"]
    kind: Literal["integer", "number", "text", "date", "boolean"]
    weight: Annotated[float, Field(ge=1e-9, le=1e9, allow_inf_nan=False)]
    nulls: Rows
    hierarchy: str | None
    candidates: Annotated[list[CandidateShape], Field(min_length=1)]


class WeightSumsShape(BundleMapping):
    """The manifest's entry for sums of the weights of some rows, in units of weight."""

    total: Large
    squares: Large
    divisor: Large


class WeightsShape(BundleMapping):
    """The entry in a summary file's manifest for weights of rows: their column, unit and sums."""

    column: str
    unit: UnitShape
    sums: WeightSumsShape
    labelled: WeightSumsShape
    zeros: Rows


class PairsShape(BundleMapping):
    """The entry in a summary file's manifest for the sizes of the counts of pairs of attributes."""

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
    """The entry in a summary file's manifest for the columns and the size of the frequency table."""

    quasi: list[str]
    sensitive: list[str]
    label: str
    columns: list[str]


class DialectShape(BundleMapping):
    """The entry in a summary file's manifest for the dialect of a text file."""

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
    """The entry in a summary file's manifest for the policy of the summary, as a JSON text."""

    policy: str
    locked: bool


class TaskShape(BundleMapping):
    """The manifest's entry for one of several labels: its weight, its measure, and its summary."""

    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    measure: str | None
    summary: SummaryShape


class LabelsShape(BundleMapping):
    """The entry in a summary file's manifest for several labels, and how the advice combines them."""

    serve: Literal["mean", "worst"]
    tasks: Annotated[list[TaskShape], Field(min_length=2)]


class SummaryShape(BundleMapping):
    """All entries in a summary file's manifest (JSON) that describe the summary."""

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
    """Parse the manifest of a bundle; raise a `ValueError` that names the first invalid entry."""
    try:
        return SummaryShape.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"])) or "the summary"
        raise ValueError(f"{location} of its manifest {wrong_value(first)}") from error


MOST_HIERARCHY = 256 << 20
"""Largest size of a hierarchy, in bytes; as Python objects, its texts need several times as much
memory.
"""


class Columns:
    """The named arrays in one member of a bundle. Each may be read only once."""

    def __init__(self, member: str, data: pa.Buffer) -> None:
        self._member = member
        self._arrays = unpack(data)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def array(self, name: str, length: int | None = None) -> pa.Array:
        """Return an array, and remove it from those that remain to be read. Raise `ValueError` if
        it is missing, or does not have `length` entries (None allows any number).
        """
        if name not in self._arrays:
            refuse(f"member {self._member!r} has no column {name!r}")
        array = self._arrays.pop(name)
        if length is not None and len(array) != length:
            refuse(
                f"column {name!r} of {self._member!r} has {len(array):,} entries, not {length:,}"
            )
        return array

    def integers(self, name: str, dtype: type[np.integer[Any]], length: int | None = None) -> Any:
        """Return `array` as a NumPy array of the type `dtype`."""
        return numbers(self.array(name, length), dtype)

    def finish(self) -> None:
        """Raise `ValueError` if an array was not read: a valid file has only arrays that the
        summary needs.
        """
        if self._arrays:
            refuse(f"member {self._member!r} has the column {next(iter(self._arrays))!r}")


def refuse(problem: str) -> NoReturn:
    """Raise a `ValueError` that states this problem."""
    raise ValueError(problem)


def member_names(content: SummaryShape) -> set[str]:
    """Return the names of all members (files in a bundle) that the manifest of the bundle mentions."""
    keys = [(attribute_key(i), entry) for i, entry in enumerate(content.attributes)]
    if content.label_attribute is not None:
        keys.append((LABEL_KEY, content.label_attribute))
    names = {PAIRS} | ({FREQUENCY} if content.frequency is not None else set())
    for key, entry in keys:
        if entry.key != key:
            refuse(f"attribute {entry.name!r} has the key {entry.key!r}, not {key!r}")
        names.add(values_member(key))
        if entry.hierarchy is not None:
            names.add(hierarchy_member(key))
    for index, task in enumerate([] if content.labels is None else content.labels.tasks):
        if task.summary.labels is not None:
            refuse(f"label {index} has labels of its own")
        names |= {f"{label_prefix(index)}{name}" for name in member_names(task.summary)}
    return names


def _context_from(content: SummaryShape) -> tuple[str, ...] | None:
    """Return the columns of text files in which the reading of a value depends on the other values;
    None if there are text files and the manifest does not state these columns.
    """
    columns = content.read_by_context
    if columns is None:
        return None if content.dialects else ()
    return tuple(columns)


class Reader:
    """Rebuilds a summary from a bundle. It frees the memory of each member as soon as it is read."""

    def __init__(self, members: Mapping[str, pa.Buffer]) -> None:
        self.members = dict(members)

    def summary(self, content: SummaryShape) -> Summary:
        """Return the summary; raise `ValueError` if an array has the wrong type or length."""
        label = _label_from(content.label)
        classes = len(label.classes)
        attributes: dict[str, AttributeSummary] = {}
        for entry in content.attributes:
            if entry.name in attributes:
                refuse(f"attribute {entry.name!r} is given twice")
            attributes[entry.name] = self._attribute(entry, classes)
        label_entry = content.label_attribute
        return Summary(
            rows=content.rows,
            label=label,
            attributes=attributes,
            label_attribute=None if label_entry is None else self._attribute(label_entry, classes),
            pairs=self._pairs(content.pairs, attributes, classes),
            frequency=None if content.frequency is None else self._frequency(content.frequency),
            max_levels=content.max_levels,
            unnamed=tuple(content.unnamed),
            digests=dict(content.digests),
            shared_rows=content.shared_rows,
            dialects=tuple(map(_dialect_from, content.dialects)),
            read_by_context=_context_from(content),
            terms=None if content.terms is None else _terms_from(content.terms, content.digests),
            several=None if content.labels is None else self._several(content.labels),
            weights=_weights_from(content),
        )

    def _several(self, entry: LabelsShape) -> SeveralSummaries:
        tasks = []
        for index, task in enumerate(entry.tasks):
            prefix = label_prefix(index)
            members = {
                name.removeprefix(prefix): self.members.pop(name)
                for name in list(self.members)
                if name.startswith(prefix)
            }
            measure = None if task.measure is None else MEASURES.get(task.measure).name
            tasks.append(TaskSummary(Reader(members).summary(task.summary), task.weight, measure))
        return SeveralSummaries(tuple(tasks), Serve(entry.serve))

    def _columns(self, member: str) -> Columns:
        return Columns(member, self.members.pop(member))

    def _attribute(self, entry: AttributeShape, classes: int) -> AttributeSummary:
        hierarchy = self._hierarchy(entry)
        columns = self._columns(values_member(entry.key))
        values = columns.array("values")
        size = len(values)
        candidates = [
            _candidate(i, candidate_entry, columns, hierarchy, size)
            for i, candidate_entry in enumerate(entry.candidates)
        ]
        attribute = AttributeSummary(
            name=entry.name,
            role=Role(entry.role),
            kind=Kind(entry.kind),
            weight=float(entry.weight),
            values=values,
            counts=columns.integers("counts", np.int64, size),
            joint=columns.integers("joint", np.int64, size * classes).reshape(size, classes),
            atoms=columns.integers("atoms", np.int32, size),
            candidates=tuple(candidates[:-1]),
            unmasked=candidates[-1],
            nulls=entry.nulls,
            domain=_domain_from(columns),
        )
        columns.finish()
        return attribute

    def _hierarchy(self, entry: AttributeShape) -> Hierarchy | None:
        if entry.hierarchy is None:
            return None
        member = hierarchy_member(entry.key)
        size = self.members[member].size
        if size > MOST_HIERARCHY:
            refuse(f"member {member!r} has {size:,} bytes; at most {MOST_HIERARCHY:,} are allowed")
        columns = self._columns(member)
        levels: list[list[str | None]] = []
        rows = None
        while (name := f"text{len(levels)}") in columns:
            texts = columns.array(name, rows)
            rows = len(texts)
            nulls = columns.integers(f"null{len(levels)}", np.int8, rows)
            levels.append(_texts(texts, nulls))
        columns.finish()
        return Hierarchy(tuple(zip(*levels, strict=True)), entry.hierarchy)

    def _pairs(
        self, entry: PairsShape, attributes: Mapping[str, AttributeSummary], classes: int
    ) -> PairCounts:
        sizes = tuple(attribute.n_atoms for attribute in attributes.values())
        if tuple(entry.sizes) != sizes or entry.classes != classes:
            refuse("the co-occurrences have other atoms or classes than the attributes")
        columns = self._columns(PAIRS)
        pairs = list(combinations(range(len(sizes)), 2))
        shapes = [(size, classes) for size in sizes]
        atom_counts = _shaped(columns.integers("joint", np.int64), shapes)
        cells = columns.integers("cells", np.int64, len(pairs))
        index = _parted(columns.integers("index", np.int64), cells, pairs)
        count = _parted(columns.integers("count", np.int64), cells, pairs)
        weights = None if entry.weights is None else _sums_from(entry.weights)
        folds = None
        if entry.folds is not None:
            folds = _folds_from(columns, entry.folds, shapes, pairs, weighted=weights is not None)
        responses = _responses_from(columns, entry, sizes)
        columns.finish()
        return PairCounts(
            names=tuple(attributes),
            sizes=sizes,
            classes=classes,
            rows=entry.rows,
            atom_counts=atom_counts,
            index=index,
            count=count,
            folds=folds,
            responses=responses,
            weights=weights,
        )

    def _frequency(self, entry: FrequencyShape) -> FrequencyTable:
        names = list(dict.fromkeys((*entry.quasi, *entry.sensitive, entry.label)))
        if entry.columns != names:
            refuse("the frequency table has other columns than its names")
        columns = self._columns(FREQUENCY)
        counts = columns.integers("counts", np.int64)
        codes, representatives = {}, {}
        for i, name in enumerate(names):
            codes[name] = columns.integers(f"codes{i}", np.int32, len(counts))
            representatives[name] = columns.integers(f"representatives{i}", np.int32)
        columns.finish()
        return FrequencyTable(
            quasi=tuple(entry.quasi),
            sensitive=tuple(entry.sensitive),
            label=entry.label,
            codes=codes,
            counts=counts,
            representatives=representatives,
        )


def _dialect_from(entry: DialectShape) -> TextDialect:
    return TextDialect(
        **{**entry.model_dump(), "null": tuple(entry.null), "units": tuple(entry.units)}
    )


def _terms_from(entry: TermsShape, digests: Mapping[str, str]) -> Terms:
    """Return the policy that the manifest states; raise `ValueError` if it does not match its
    digest.
    """
    terms = Terms(entry.policy, entry.locked, binding=True)
    if terms.digest != digests.get("policy"):
        refuse("its policy does not match its digest")
    terms.owner  # noqa: B018 - read now, so that a rule that cannot be is refused with the file
    return terms


def _label_from(entry: LabelShape) -> LabelSummary:
    if len(entry.counts) != len(entry.classes):
        refuse("classes and their counts differ")
    mask = None if entry.mask is None else parse_mask(entry.mask)
    counts = np.array(entry.counts, dtype=np.int64)
    unit = None if entry.unit is None else NumberUnit(entry.unit.base, entry.unit.exponent)
    totals = None if entry.totals is None else np.array(entry.totals, dtype=np.int64)
    ends = None if entry.ends is None else (entry.ends[0], entry.ends[1])
    return LabelSummary(
        entry.column, tuple(entry.classes), counts, entry.unlabelled, mask, unit, totals, ends
    )


def _candidate(
    index: int, entry: CandidateShape, columns: Columns, hierarchy: Hierarchy | None, size: int
) -> Candidate:
    levels = columns.integers(f"levels{index}", np.int32)
    ranges = f"ranges{index}"
    return Candidate(
        mask=_mask(entry.mask, hierarchy),
        declared=_mask(entry.declared, hierarchy),
        groups=columns.integers(f"groups{index}", np.int32, size),
        masked_values=columns.array(f"shown{index}"),
        levels=levels,
        ranges=columns.integers(ranges, np.int32, len(levels)) if ranges in columns else None,
    )


def _mask(spec: str | dict[str, Any], hierarchy: Hierarchy | None) -> Mask:
    return parse_mask(spec, hierarchy=hierarchy)


def _domain_from(columns: Columns) -> Domain | None:
    if "domain" not in columns:
        return None
    values = columns.array("domain")
    cells = columns.integers("cells", np.int32, len(values))
    has_counts = "histogram" in columns
    counts = columns.integers("histogram", np.int64, len(values)) if has_counts else None
    return Domain(values, cells, counts)


def _texts(texts: pa.Array, nulls: npt.NDArray[np.int8]) -> list[str | None]:
    """Return the texts of one level of a hierarchy, None where `nulls` is 1; equal texts are one
    object.
    """
    if not pa.types.is_string(texts.type):
        refuse(f"a hierarchy holds {texts.type} in place of texts")
    encoded = texts.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return [
        None if null else distinct[code]
        for code, null in zip(codes.tolist(), nulls.tolist(), strict=True)
    ]


def _weights_from(content: SummaryShape) -> TableWeights | None:
    """Return the weights of the rows; None if each row counts once."""
    entry = content.weights
    there = {entry is not None, content.label.totals is not None, content.pairs.weights is not None}
    if len(there) > 1:
        refuse("some counts have weights and others have none")
    if entry is None:
        return None
    unit = NumberUnit(entry.unit.base, entry.unit.exponent)
    return TableWeights(
        entry.column, unit, _sums_from(entry.sums), _sums_from(entry.labelled), entry.zeros
    )


def _sums_from(entry: WeightSumsShape) -> WeightSums:
    sums = WeightSums(int(entry.total), int(entry.squares), int(entry.divisor))
    if not 0 < sums.total < 1 << 62 or sums.divisor < 1 or sums.squares < 1:
        refuse(f"weights add up to {sums.total:,}, their squares to {sums.squares:,}")
    return sums


def _folds_from(
    columns: Columns,
    size: int,
    shapes: list[tuple[int, int]],
    pairs: list[tuple[int, int]],
    *,
    weighted: bool,
) -> FoldCounts:
    entries = columns.integers("fold_cells", np.int64, len(pairs))
    of_cells = columns.integers("fold_count", np.int64 if weighted else np.int32)
    return FoldCounts(
        size=size,
        rows=columns.integers("fold_rows", np.int64, size),
        atom_counts=_shaped(columns.integers("fold_joint", np.int64), [(size, *s) for s in shapes]),
        cell=_parted(columns.integers("fold_cell", np.int32), entries, pairs),
        fold=_parted(columns.integers("fold_of", np.int8), entries, pairs),
        count={p: as_entries(counts) for p, counts in _parted(of_cells, entries, pairs).items()},
    )


def _responses_from(
    columns: Columns, entry: PairsShape, sizes: tuple[int, ...]
) -> ResponseSums | None:
    """Return the sums of a numeric label by fold and atom; None if the label has classes."""
    if entry.response_squares is None:
        return None
    folds = entry.folds or 1
    if len(entry.response_squares) != folds:
        refuse("the squares of the label have other folds than the co-occurrences")
    weighted = entry.weights is not None
    flat = _large(columns, "response") if weighted else columns.integers("response", np.int64)
    sums = _shaped(flat, [(folds, size) for size in sizes])
    if weighted:
        total = _large(columns, "response_total", folds)
    else:
        total = columns.integers("response_total", np.int64, folds)
    return ResponseSums(sums, total, tuple(map(int, entry.response_squares)))


def _large(columns: Columns, name: str, length: int | None = None) -> Array:
    """Return an array of integers of more than 64 bits, which are stored as upper and lower bits;
    raise `ValueError` unless it has `length` entries (None: any number).
    """
    high = columns.integers(name, np.int64, length)
    return joined_halves(high, columns.integers(f"{name}_low", np.int64, len(high)))


def _shaped(flat: Array, shapes: list[Any]) -> tuple[Array, ...]:
    """Split a flat array into consecutive arrays of these shapes."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    if sum(sizes) != len(flat):
        refuse("the joints of atoms and classes have another size")
    ends = np.cumsum([0, *sizes])
    return tuple(
        flat[start:end].reshape(shape)
        for start, end, shape in zip(ends[:-1], ends[1:], shapes, strict=True)
    )


def _parted(flat: Array, lengths: Ints, pairs: list[tuple[int, int]]) -> dict[tuple[int, int], Any]:
    """Split a flat array into one array with so many entries (`lengths`) for each pair."""
    sizes = lengths.tolist()  # Python's own numbers, which cannot overflow
    if any(length < 0 for length in sizes) or sum(sizes) != len(flat):
        refuse("the cells of the pairs are more or fewer than the manifest says")
    ends = np.cumsum([0, *sizes])
    return {
        pair: flat[start:end] for pair, start, end in zip(pairs, ends[:-1], ends[1:], strict=True)
    }
