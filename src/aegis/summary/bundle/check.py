"""Check that the numbers of a summary from a file agree with one another.

A summary contains the same totals several times: the numbers of rows by value, by atom, by pair of
atoms, and by cell of the frequency table. If a number is changed, by mistake or on purpose, it
contradicts another number. Aegis uses only a summary without contradictions. No check can show that
the numbers come from a real table, but a signature shows who is responsible for them.

Each check reads an array once, in blocks, so it needs little additional memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Array, Ints, exact_sums
from aegis.masks import Kind, common_refinement
from aegis.policy import Role
from aegis.summary.attributes import RANGES
from aegis.summary.bundle.read import refuse
from aegis.summary.codes import numbers_of, show
from aegis.summary.cooccurrence import FoldCounts, PairCounts
from aegis.summary.frequency import FrequencyTable, combine
from aegis.summary.model import (
    AttributeSummary,
    Candidate,
    Domain,
    LabelSummary,
    SeveralSummaries,
    Summary,
)
from aegis.summary.responses import ResponseSums

_BLOCK = 1 << 20
"""Entries that are looked at together."""


def check_summary(summary: Summary) -> None:
    """Raise `ValueError` if two numbers of a summary contradict each other."""
    _check_label(summary.label, summary.rows)
    if summary.label.column in summary.attributes:
        refuse(f"the label {summary.label.column!r} is also an attribute")
    for attribute in summary.attributes.values():
        _check_attribute(attribute, summary)
    label_attribute = summary.label_attribute
    if label_attribute is not None:
        _check_label_attribute(label_attribute, summary)
    _check_pairs(summary)
    if summary.frequency is not None:
        _check_frequency(summary.frequency, summary)
    if summary.several is not None:
        _check_several(summary.several, summary)


def _check_several(several: SeveralSummaries, summary: Summary) -> None:
    """Raise `ValueError` unless all labels belong to the same table and have the same candidate masks."""
    columns = [task.column for task in several.tasks]
    _require(all(columns) and len(set(columns)) == len(columns), "its labels are not each another")
    _require(not summary.label.there, "it has one label and several")
    for task in several.tasks:
        task_summary = task.summary
        check_summary(task_summary)
        _require(task_summary.rows == summary.rows, f"the label {task.column!r} is of other rows")
        for attribute in task_summary.all_attributes:
            table_attribute = summary.attributes.get(attribute.name)
            _require(
                table_attribute is not None
                and [c.declared for c in table_attribute.candidates]
                == [c.declared for c in attribute.candidates],
                f"{attribute.name!r} has other masks for the label {task.column!r}",
            )


def _require(condition: bool, problem: str) -> None:
    if not condition:
        refuse(problem)


def _total(counts: Array, most: int, what: str, *, least: int = 0) -> int:
    """Return the sum of counts; raise `ValueError` unless each is from `least` to `most`. Numbers
    so large that their sum would overflow are refused before the addition.
    """
    if not counts.size:
        return 0
    low, high = int(counts.min()), int(counts.max())
    _require(least <= low and high <= most, f"{what}: a count is {low if low < least else high:,}")
    # Rounding is far below a row where the sum is near `most`, which is exact as a float.
    _require(float(counts.sum(dtype=np.float64)) < 2.0 * most + 1, f"{what}: more rows than it has")
    return int(counts.sum(dtype=np.int64))


def _below(codes: Array, size: int, what: str) -> None:
    """Raise `ValueError` unless all codes are at least 0 and below `size`."""
    if codes.size:
        low, high = int(codes.min()), int(codes.max())
        _require(low >= 0 and high < size, f"{what}: {low if low < 0 else high:,} of {size:,}")


def _all_used(codes: Array, size: int, what: str) -> None:
    _below(codes, size, what)
    used = np.zeros(size, dtype=np.bool_)
    used[codes] = True
    _require(bool(used.all()), f"{what}: {int(np.argmin(used)):,} of {size:,} occurs nowhere")


def _same(first: Array, two: Array, what: str) -> None:
    _require(np.array_equal(first, two), what)


def _summed(size: int, length: int, entries: Callable[[slice], tuple[Array, Array]]) -> Ints:
    """Sum counts by key, in blocks, to shape (size,). `entries` returns the keys and the counts of
    a slice of the `length` entries.
    """
    sums = np.zeros(size, dtype=np.int64)
    for part in _blocks(length, max(_BLOCK, size)):
        keys, counts = entries(part)
        sums += exact_sums(keys, counts, size)
    return sums


def _blocks(length: int, block: int = _BLOCK) -> Iterator[slice]:
    for start in range(0, length, block):
        yield slice(start, min(start + block, length))


def _ascending(keys: Array, what: str) -> None:
    for part in _blocks(len(keys)):
        # One entry of the block before, so that no neighbours are missed.
        some = keys[max(0, part.start - 1) : part.stop]
        _require(bool((some[1:] > some[:-1]).all()), what)


def _check_label(label: LabelSummary, rows: int) -> None:
    _require(len(set(label.classes)) == len(label.classes), "a class of the label is given twice")
    few = len(label.classes) < 2
    _require(
        few != label.has_classes, "a label has at least two classes, other tables have one class"
    )
    _require(label.there or label.unit is None, "a table without a label has units of one")
    labelled = _total(label.counts, rows, "classes of the label")
    _require(
        labelled + label.unlabelled == rows, "the classes of the label do not add up to the rows"
    )
    if label.totals is not None:
        _require(
            len(label.totals) == len(label.classes), "weights of other classes than the label's"
        )
    if label.mask is not None:
        _require(label.mask.deterministic and label.mask.fitted, "the bins of the label are open")


def _check_attribute(attribute: AttributeSummary, summary: Summary) -> None:
    what = f"attribute {attribute.name!r}"
    rows = summary.rows
    _check_values(attribute, what)
    _require(
        _total(attribute.counts, rows, what) == rows,
        f"{what}: its values do not add up to the rows",
    )
    most = rows if summary.weights is None else summary.weights.labelled.total
    _total(attribute.joint, most, what)
    of_values = attribute.joint.sum(axis=1)
    _require(
        summary.weights is not None or bool((of_values <= attribute.counts).all()),
        f"{what}: more labelled rows of a value than rows",
    )
    _same(
        attribute.joint.sum(axis=0),
        summary.label.weighted,
        f"{what}: its rows by class are not those of the label",
    )
    if attribute.domain is not None:
        _check_domain(attribute, attribute.domain, of_values, what)
    _check_divisions(attribute, summary.max_levels, what)


def _check_label_attribute(attribute: AttributeSummary, summary: Summary) -> None:
    label = summary.label
    _require(attribute.name == label.column, f"the label's own entry is called {attribute.name!r}")
    _require(label.mask is None, "a label in bins has masks of its own")
    _require(attribute.domain is None, "the label's own entry withholds its values")
    rows = np.append(label.counts, label.unlabelled) if label.unlabelled else label.counts
    _same(attribute.counts, rows, "the label's own entry has other rows than its classes")
    named = tuple(show(value) for value in attribute.values.drop_null().to_pylist())
    _require(named == label.classes, "the label's own entry has other values than its classes")
    _require(
        all(c.mask.deterministic for c in attribute.candidates), "the label has masks of noise"
    )
    _check_attribute(attribute, summary)


def _check_values(attribute: AttributeSummary, what: str) -> None:
    """Raise `ValueError` unless the values have an allowed type, are in order, and contain at most
    one null.
    """
    listed = attribute.all_values
    _require(
        Kind.of(ibis.dtype(listed.type)) is attribute.kind,
        f"{what}: values of type {listed.type} are no {attribute.kind}",
    )
    _require(attribute.values.type == listed.type, f"{what}: its cells are of another type")
    present = listed.drop_null()
    _require(listed[: len(present)].null_count == 0, f"{what}: null is not its last value")
    if pa.types.is_floating(present.type) and len(present) and pc.is_nan(present[-1]).as_py():
        present = present[:-1]
    for part in _blocks(len(present)):
        some = present[max(0, part.start - 1) : part.stop]
        ordered = pc.all(pc.greater(some[1:], some[:-1])).as_py()
        _require(len(some) < 2 or bool(ordered), f"{what}: its values are not in ascending order")
    _check_nulls(attribute, listed, what)


def _check_nulls(attribute: AttributeSummary, listed: pa.Array, what: str) -> None:
    nulls = attribute.nulls
    _require((listed.null_count > 0) == (nulls > 0), f"{what}: {nulls:,} nulls")
    if nulls and attribute.domain is None:
        _require(int(attribute.counts[-1]) == nulls, f"{what}: {nulls:,} nulls")
    elif nulls and attribute.domain is not None:
        cell = int(attribute.domain.cells[-1])
        fits = cell < len(attribute.counts) and int(attribute.counts[cell]) >= nulls
        _require(fits, f"{what}: {nulls:,} nulls")


def _check_domain(attribute: AttributeSummary, domain: Domain, of_cells: Ints, what: str) -> None:
    size = len(attribute.values)
    _all_used(domain.cells, size, f"{what}, cells of its values")
    first = np.unique(domain.cells, return_index=True)[1]
    named = domain.values.take(pa.array(first.tolist(), pa.int64()))
    _require(_equal(attribute.values, named), f"{what}: names of its cells")
    if domain.counts is not None:
        _total(domain.counts, int(of_cells.sum()), f"{what}, histogram")
        sums = _summed(size, len(domain.cells), lambda s: (domain.cells[s], domain.counts[s]))  # type: ignore[index]
        _same(sums, of_cells, f"{what}: its histogram does not add up to its cells")


def _equal(first: pa.Array, two: pa.Array) -> bool:
    """Return whether two arrays of the same type are equal; NaN counts as equal to NaN."""
    if pa.types.is_floating(first.type):
        return np.array_equal(numbers_of(first), numbers_of(two), equal_nan=True)
    return bool(first.equals(two))


def _check_divisions(attribute: AttributeSummary, max_levels: int, what: str) -> None:
    """Raise `ValueError` unless the atoms, and the groups, levels and ranges of every candidate,
    agree.
    """
    atoms = attribute.n_atoms
    _all_used(attribute.atoms, atoms, f"{what}, atoms")
    for candidate in (*attribute.candidates, attribute.unmasked):
        named_mask = f"{what}, mask {candidate.declared}"
        _require(len(candidate.levels) == atoms, f"{named_mask}: {len(candidate.levels):,} atoms")
        _check_candidate(candidate, attribute, max_levels, named_mask)
    plain = attribute.unmasked
    _require(plain.noise is None, f"{what}: noise in place of the values")
    _require(plain.size == len(attribute.values), f"{what}: its values are not all different")


def _check_candidate(
    candidate: Candidate, attribute: AttributeSummary, max_levels: int, what: str
) -> None:
    mask, declared = candidate.mask, candidate.declared
    mask.check(attribute.kind, attribute.name)
    _require(mask.fitted, f"{what}: the mask is not fitted")
    _require(type(mask) is type(declared), f"{what}: fitted as {mask}")
    _require(attribute.domain is None or mask.deterministic, f"{what}: noise without raw joints")
    _all_used(candidate.groups, candidate.size, f"{what}, groups")
    distinct = len(pc.unique(candidate.masked_values))
    _require(distinct == candidate.size, f"{what}: two groups show the same")
    of_values = candidate.levels[attribute.atoms]
    if mask.deterministic:
        # Before the number of levels requires an array of that size.
        _below(candidate.levels, min(max_levels, attribute.n_atoms), f"{what}, levels")
        _all_used(candidate.levels, candidate.n_levels, f"{what}, levels")
        _follows(of_values, candidate.groups, f"{what}: its levels divide a group")
    else:
        _same(
            candidate.levels, np.arange(attribute.n_atoms), f"{what}: its levels are not its atoms"
        )
    _check_ranges(candidate, attribute, what)


def _check_ranges(candidate: Candidate, attribute: AttributeSummary, what: str) -> None:
    ranges = candidate.ranges
    due = attribute.kind.ordered and candidate.mask.deterministic
    _require((ranges is not None) == due, f"{what}: ranges of what has no order, or none")
    if ranges is not None:
        _below(ranges, RANGES, f"{what}, ranges")
        _follows(ranges[attribute.atoms], candidate.groups, f"{what}: its ranges divide a group")


def _follows(codes: Array, groups: Array, what: str) -> None:
    """Raise `ValueError` if two values of the same group have different codes."""
    of_group = np.zeros(int(groups.max(initial=-1)) + 1, dtype=codes.dtype)
    of_group[groups] = codes
    _same(of_group[groups], codes, what)


def _check_pairs(summary: Summary) -> None:
    pairs = summary.pairs
    labelled = summary.rows - summary.label.unlabelled
    _require(pairs.rows <= labelled, f"co-occurrences of {pairs.rows:,} rows of {labelled:,}")
    weights = pairs.weights
    if weights is not None and summary.weights is not None:
        most, least = summary.weights.labelled.total, weights.total**2
        _require(weights.total <= most, "co-occurrences of more weight than the table has")
        _require(least <= weights.squares * pairs.rows, "squares of weights that are too small")
    by_class = None
    for (name, attribute), joint in zip(summary.attributes.items(), pairs.atom_counts, strict=True):
        what = f"co-occurrences of {name!r}"
        _require(
            _total(joint, pairs.counted, what) == pairs.counted,
            f"{what}: not of {pairs.counted:,} rows",
        )
        expected = np.zeros_like(joint)
        np.add.at(expected, attribute.atoms, attribute.joint)
        # A sample has no more rows of an atom than the table; all rows are the table's.
        fits = (joint <= expected).all() if pairs.rows < labelled else (joint == expected).all()
        _require(bool(fits), f"{what}: other rows than those of its values")
        by_class = joint.sum(axis=0) if by_class is None else by_class
        _same(joint.sum(axis=0), by_class, f"{what}: other rows by class than of the others")
    for pair in pairs.index:
        _check_pair(pairs, pair)
    if pairs.folds is not None:
        _check_folds(pairs, pairs.folds)
    there = pairs.responses is not None
    _require(there == (summary.label.unit is not None), "a number to predict without its sums")
    if pairs.responses is not None:
        _check_responses(pairs, pairs.responses)


def _check_responses(pairs: PairCounts, responses: ResponseSums) -> None:
    """Raise `ValueError` if the sums of a numeric label over the values of an attribute differ from
    its sum over all rows, or if no numbers can have these sums.
    """
    what = "sums of the label"
    folds = pairs.folds
    rows = np.array([pairs.counted]) if folds is None else folds.rows
    for i, sums in enumerate(responses.sums):
        of_rows = pairs.atom_counts[i].T if folds is None else folds.atom_counts[i][:, :, 0]
        _require(not sums[of_rows == 0].any(), f"{what}: of an atom without rows")
        _same(sums.sum(axis=1), responses.total, f"{what}: atoms and folds differ")
    for total, square, n in zip(responses.total, responses.squares, rows, strict=True):
        _require(int(total) ** 2 <= square * int(n), f"{what}: their squares are too small")


def _check_pair(pairs: PairCounts, pair: tuple[int, int]) -> None:
    i, j = pair
    what = f"co-occurrences of {pairs.names[i]!r} and {pairs.names[j]!r}"
    index, count = pairs.index[pair], pairs.count[pair]
    classes, width = pairs.classes, pairs.sizes[j]
    _below(index, pairs.sizes[i] * width * classes, f"{what}, cells")
    _ascending(index, f"{what}: their cells are not in ascending order")
    _require(
        _total(count, pairs.counted, what, least=1) == pairs.counted,
        f"{what}: not of {pairs.counted:,} rows",
    )
    for joint, keys in ((pairs.atom_counts[i], _left), (pairs.atom_counts[j], _right)):
        sums = _summed(
            joint.size,
            len(index),
            lambda s, keys=keys: (keys(index[s], width, classes), count[s]),  # type: ignore[misc]
        )
        _same(sums, joint.ravel(), f"{what}: they do not add up to the rows of each")


def _left(index: Array, width: int, classes: int) -> Array:
    """Return a number for the first attribute's atom and the class of each cell of a pair. `index`
    has its position in the flattened array (first atom, second atom, class), and `width` is the
    number of the second attribute's atoms.
    """
    keys: Array = index // (width * classes) * classes + index % classes
    return keys


def _right(index: Array, width: int, classes: int) -> Array:
    """Return a number for the second attribute's atom and the class of each cell; see `_left`."""
    return index % (width * classes)


def _check_folds(pairs: PairCounts, folds: FoldCounts) -> None:
    what = "folds of the co-occurrences"
    _require(
        _total(folds.rows, pairs.counted, what) == pairs.counted,
        f"{what}: not of {pairs.counted:,} rows",
    )
    for by_fold, joint in zip(folds.atom_counts, pairs.atom_counts, strict=True):
        _total(by_fold, pairs.counted, what)
        _same(by_fold.sum(axis=0), joint, f"{what}: they do not add up to the rows of the atoms")
        _same(by_fold.sum(axis=(1, 2)), folds.rows, f"{what}: atoms and folds differ in rows")
    for pair in pairs.index:
        _check_fold_cells(pairs, folds, pair)


def _check_fold_cells(pairs: PairCounts, folds: FoldCounts, pair: tuple[int, int]) -> None:
    i, j = pair
    what = f"folds of {pairs.names[i]!r} and {pairs.names[j]!r}"
    cell, fold, count = folds.cell[pair], folds.fold[pair], folds.count[pair]
    index, size, classes, width = pairs.index[pair], folds.size, pairs.classes, pairs.sizes[j]
    _below(cell, len(index), f"{what}, cells")
    _below(fold, size, f"{what}, folds")
    _total(count, pairs.counted, what, least=1)
    for part in _blocks(len(cell)):
        start = max(0, part.start - 1)
        cell_folds = cell[start : part.stop].astype(np.int64) * size + fold[start : part.stop]
        _ascending(cell_folds, f"{what}: their cells are not in ascending order")
    sums = _summed(len(index), len(cell), lambda s: (cell[s], count[s]))
    _same(sums, pairs.count[pair], f"{what}: they do not add up to the cells")
    for by_fold, keys in ((folds.atom_counts[i], _left), (folds.atom_counts[j], _right)):
        block = by_fold[0].size

        def entries(
            some: slice, keys: Callable[..., Array] = keys, block: int = block
        ) -> tuple[Array, Array]:
            key = keys(index[cell[some]], width, classes)
            return fold[some].astype(np.int64) * block + key, count[some]

        sums = _summed(by_fold.size, len(cell), entries)
        _same(sums, by_fold.ravel(), f"{what}: they do not add up to the rows of each")


def _check_frequency(frequency: FrequencyTable, summary: Summary) -> None:
    attributes = {attribute.name: attribute for attribute in summary.all_attributes}
    label = summary.label
    _require(frequency.label == label.column, "the frequency table has another label")
    quasi = {a.name for a in attributes.values() if a.role is Role.QUASI_IDENTIFIER}
    _require(
        set(frequency.quasi) == quasi and len(quasi) == len(frequency.quasi),
        "the frequency table has other quasi-identifiers than the attributes",
    )
    others = [
        name for name in frequency.sensitive if name not in attributes and name != label.column
    ]
    _require(not others, f"the frequency table has the unknown column {', '.join(others)!r}")
    what = "the frequency table"
    rows = _total(frequency.counts, summary.rows, what, least=1)
    _require(rows == summary.rows, f"{what} has {rows:,} rows of {summary.rows:,}")
    classes = _label_codes(frequency, summary, attributes)
    for name in frequency.codes:
        _check_column(frequency, name, classes, summary, attributes)
    keys = combine(frequency.codes.values(), frequency.cells)
    _ascending(keys, f"{what}: its cells are not in ascending order")


def _label_codes(
    frequency: FrequencyTable, summary: Summary, attributes: Mapping[str, AttributeSummary]
) -> Ints:
    """Return the index of the class for each code of the label; for null, the number of classes."""
    name = frequency.label
    values = frequency.representatives[name]
    _below(frequency.codes[name], len(values), "codes of the label")
    if name in attributes:
        _below(values, len(attributes[name].values), "codes of the label")
    else:
        _same(values, np.arange(len(values)), "the codes of the label are not its classes")
        _require(len(values) <= len(summary.label.classes) + 1, "the label has too many codes")
    return values.astype(np.int64)


def _check_column(
    frequency: FrequencyTable,
    name: str,
    classes: Ints,
    summary: Summary,
    attributes: Mapping[str, AttributeSummary],
) -> None:
    """Raise `ValueError` unless the codes of a column of the frequency table are valid, and the
    rows of its cells add up to the attribute's counts. `classes` has the class of each code of the
    label.
    """
    what = f"the frequency table's column {name!r}"
    codes, values = frequency.codes[name], frequency.representatives[name]
    label = frequency.codes[frequency.label]
    rows = np.append(summary.label.counts, summary.label.unlabelled)
    size = len(rows)
    _below(codes, len(values), what)
    if name in attributes:
        attribute = attributes[name]
        _below(values, len(attribute.values), what)
        by_class = [attribute.counts]
        if summary.weights is None:
            by_class = [attribute.joint, attribute.counts - attribute.joint.sum(axis=1)]
        due = _by_code(attribute, values, np.column_stack(by_class), what)
    else:
        due = np.diag(rows)[: len(values)]
        _same(due.sum(axis=0), rows, f"{what}: a class is missing")
    with_classes = name != frequency.label and not _coarse_label(frequency, attributes)
    with_classes &= summary.weights is None  # else rows are not known by value and class

    def entries(some: slice) -> tuple[Array, Array]:
        keys = codes[some].astype(np.int64)
        if with_classes:
            keys = keys * size + classes[label[some]]
        return keys, frequency.counts[some]

    due = due if with_classes else due.sum(axis=1)
    sums = _summed(due.size, len(codes), entries)
    _same(sums, due.ravel(), f"{what}: its cells do not add up to the rows of its values")


def _coarse_label(frequency: FrequencyTable, attributes: Mapping[str, AttributeSummary]) -> bool:
    """Return whether the frequency table counts the groups of the label's masks instead of its
    classes.
    """
    attribute = attributes.get(frequency.label)
    codes = frequency.representatives[frequency.label]
    return attribute is not None and len(codes) < len(attribute.values)


def _by_code(attribute: AttributeSummary, values: Array, rows: Ints, what: str) -> Ints:
    """Return the rows by code of the frequency table and by class, from those by value and class.
    `values` has the index of one value for each code; the code represents all values that the masks
    treat like it.
    """
    size = len(attribute.values)
    ordered = np.array_equal(values, np.arange(len(values)))
    if ordered and (len(values) == size or not rows[len(values) :].any()):
        return rows[: len(values)]  # value by value; the last classes of a label may have no rows
    listed = attribute.candidates or (attribute.unmasked,)
    parts = common_refinement([candidate.groups for candidate in listed])
    code = np.full(int(parts.max(initial=-1)) + 1, -1, dtype=np.int64)
    code[parts[values]] = np.arange(len(values))
    _require(
        len(code) == len(values) <= size and bool((code >= 0).all()),
        f"{what}: its codes are not what the masks distinguish",
    )
    due = np.zeros((len(values), rows.shape[1]), dtype=np.int64)
    np.add.at(due, code[parts], rows)
    return due
