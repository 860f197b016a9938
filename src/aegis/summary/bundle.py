"""A summary as one file, safe to load: a ZIP with a JSON manifest and Arrow arrays."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from aegis.errors import AegisError, InternalError
from aegis.files import check_output
from aegis.masks import Compose, Hierarchy, Kind, Level, Mask, parse_mask
from aegis.policy import Role
from aegis.summary.bundle_archive import damaged, read_archive, write_archive
from aegis.summary.bundle_arrow import numbers, pack, unpack
from aegis.summary.cooccurrence import FoldCounts, PairCounts
from aegis.summary.frequency import FrequencyTable
from aegis.summary.model import AttributeSummary, Candidate, Domain, LabelSummary, Summary

PAIRS = "pairs.arrow"
FREQUENCY = "frequency.arrow"

_BROKEN = (
    AegisError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    StopIteration,
    TypeError,
    ValueError,
    pa.ArrowException,
    struct.error,
)
"""What content that does not fit can lead to: all of it means that the bundle is damaged."""


def save_bundle(summary: Summary, path: str | Path, *, force: bool = False) -> None:
    """Write a summary to one file, from which `load_bundle` makes an equal one.

    The same summary gives the same bytes. Everything is in the file but the timings: hierarchies
    are stored by content, masks as a policy writes them.

    Parameters
    ----------
    summary
        What `summarize` returned.
    path
        The file, with the extension `.aegis`.
    force
        Replace an existing file.

    Raises
    ------
    PolicyError
        The extension is another, the folder does not exist, or the file exists and `force` is
        not set.
    DataError
        The file cannot be written, or would be larger than a bundle may be.
    """
    target = Path(path)
    check_output(target, force=force, formats=(".aegis",))
    members: dict[str, bytes] = {}
    own = summary.label_attribute
    content: dict[str, Any] = {
        "rows": summary.rows,
        "label": _label_to(summary.label),
        "attributes": [
            _attribute_to(attribute, f"attribute_{i}", members)
            for i, attribute in enumerate(summary.attributes.values())
        ],
        "label_attribute": None if own is None else _attribute_to(own, "label", members),
        "pairs": _pairs_to(summary.pairs, members),
        "frequency": _frequency_to(summary.frequency, members),
        "max_levels": summary.max_levels,
        "seed": summary.seed,
        "unnamed": list(summary.unnamed),
        "digests": dict(summary.digests),
    }
    write_archive(target, content, members)


def load_bundle(path: str | Path) -> Summary:
    """Return the summary that `save_bundle` wrote; its timings are empty.

    Raises
    ------
    DataError
        The file is missing, is no bundle or one of another format version, or is truncated or
        tampered with.
    """
    source = Path(path)
    content, members = read_archive(source)
    try:
        return _Reader(members).summary(content)
    except _BROKEN as error:
        reason = getattr(error, "message", str(error)).rstrip(".") or type(error).__name__
        raise damaged(source, reason) from error


def _label_to(label: LabelSummary) -> dict[str, Any]:
    return {
        "column": label.column,
        "classes": list(label.classes),
        "counts": label.counts.tolist(),
        "unlabelled": label.unlabelled,
        "mask": None if label.mask is None else label.mask.spec(),
    }


def _attribute_to(
    attribute: AttributeSummary, key: str, members: dict[str, bytes]
) -> dict[str, Any]:
    listed = (*attribute.candidates, attribute.unmasked)
    columns: dict[str, Any] = {
        "values": attribute.values,
        "counts": attribute.counts,
        "joint": attribute.joint.ravel(),
        "atoms": attribute.atoms,
    }
    for i, candidate in enumerate(listed):
        columns[f"groups{i}"] = candidate.groups
        columns[f"shown{i}"] = candidate.shown
        columns[f"levels{i}"] = candidate.levels
        if candidate.ranges is not None:
            columns[f"ranges{i}"] = candidate.ranges
    if attribute.domain is not None:
        columns |= {"domain": attribute.domain.values, "cells": attribute.domain.cells}
        if attribute.domain.counts is not None:
            columns["histogram"] = attribute.domain.counts
    members[f"{key}.arrow"] = pack(columns)
    return {
        "key": key,
        "name": attribute.name,
        "role": str(attribute.role),
        "kind": str(attribute.kind),
        "weight": attribute.weight,
        "nulls": attribute.nulls,
        "hierarchy": _hierarchy_to(attribute, key, members),
        "candidates": [{"mask": c.mask.spec(), "declared": c.declared.spec()} for c in listed],
    }


def _hierarchy_to(attribute: AttributeSummary, key: str, members: dict[str, bytes]) -> str | None:
    """Store the hierarchy behind an attribute's masks, one column a level; return its name."""
    masks = (m for c in attribute.candidates for m in (c.mask, c.declared))
    found = list(dict.fromkeys(_hierarchies(masks)))
    if not found:
        return None
    if len(found) > 1:
        raise InternalError(f"The masks of {attribute.name!r} use more than one hierarchy.")
    levels = zip(*found[0].rows, strict=True)
    # Text and the place of nulls apart, since many groups may be called null.
    members[f"{key}_hierarchy.arrow"] = pack(
        {
            name: column
            for i, level in enumerate(levels)
            for name, column in (
                (f"text{i}", pa.array(["" if t is None else t for t in level], pa.string())),
                (f"null{i}", np.array([t is None for t in level], dtype=np.int8)),
            )
        }
    )
    return found[0].name


def _hierarchies(masks: Iterable[Mask]) -> Iterator[Hierarchy]:
    for mask in masks:
        if isinstance(mask, Compose):
            yield from _hierarchies(mask.masks)
        elif isinstance(mask, Level) and mask.hierarchy is not None:
            yield mask.hierarchy


def _pairs_to(pairs: PairCounts, members: dict[str, bytes]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for i, joint in enumerate(pairs.joints):
        columns[f"joint{i}"] = joint.ravel()
    for i, j in sorted(pairs.index):
        columns[f"index{i},{j}"] = pairs.index[i, j]
        columns[f"count{i},{j}"] = pairs.count[i, j]
    if pairs.folds is not None:
        columns |= _folds_to(pairs.folds)
    members[PAIRS] = pack(columns)
    return {
        "rows": pairs.rows,
        "classes": pairs.classes,
        "sizes": list(pairs.sizes),
        "folds": None if pairs.folds is None else pairs.folds.size,
    }


def _folds_to(folds: FoldCounts) -> dict[str, Any]:
    columns: dict[str, Any] = {"fold_rows": folds.rows}
    for i, joint in enumerate(folds.joints):
        columns[f"fold_joint{i}"] = joint.ravel()
    for i, j in sorted(folds.cell):
        columns[f"fold_cell{i},{j}"] = folds.cell[i, j]
        columns[f"fold_of{i},{j}"] = folds.fold[i, j]
        columns[f"fold_count{i},{j}"] = folds.count[i, j]
    return columns


def _frequency_to(
    frequency: FrequencyTable | None, members: dict[str, bytes]
) -> dict[str, Any] | None:
    if frequency is None:
        return None
    names = list(frequency.codes)
    columns: dict[str, Any] = {"counts": frequency.counts}
    for i, name in enumerate(names):
        columns[f"codes{i}"] = frequency.codes[name]
        columns[f"representatives{i}"] = frequency.representatives[name]
    members[FREQUENCY] = pack(columns)
    return {
        "quasi": list(frequency.quasi),
        "sensitive": list(frequency.sensitive),
        "label": frequency.label,
        "columns": names,
    }


class _Reader:
    """Rebuilds a summary from a manifest's content and members, and checks that they fit."""

    def __init__(self, members: Mapping[str, bytes]) -> None:
        self.members = members

    def summary(self, content: Mapping[str, Any]) -> Summary:
        label = _label_from(content["label"])
        classes = len(label.classes)
        listed = [self._attribute(entry, classes) for entry in content["attributes"]]
        attributes = {attribute.name: attribute for attribute in listed}
        own = content["label_attribute"]
        known = None if own is None else self._attribute(own, classes)
        return Summary(
            rows=content["rows"],
            label=label,
            attributes=attributes,
            label_attribute=known,
            pairs=self._pairs(content["pairs"], attributes),
            frequency=self._frequency(content["frequency"], attributes, classes),
            max_levels=content["max_levels"],
            seed=content["seed"],
            unnamed=tuple(content["unnamed"]),
            digests=dict(content["digests"]),
        )

    def _attribute(self, entry: Mapping[str, Any], classes: int) -> AttributeSummary:
        columns = unpack(self.members[f"{entry['key']}.arrow"])
        hierarchy = self._hierarchy(entry)
        values = columns["values"]
        atoms = numbers(columns["atoms"], np.int32)
        counts = numbers(columns["counts"], np.int64)
        _require(len(atoms) == len(values), "atoms do not fit the values")
        _require(len(counts) == len(values), "counts do not fit the values")
        candidates = [
            _candidate(i, said, columns, hierarchy, atoms)
            for i, said in enumerate(entry["candidates"])
        ]
        return AttributeSummary(
            name=entry["name"],
            role=Role(entry["role"]),
            kind=Kind(entry["kind"]),
            weight=entry["weight"],
            values=values,
            counts=counts,
            joint=numbers(columns["joint"], np.int64).reshape(len(values), classes),
            atoms=atoms,
            candidates=tuple(candidates[:-1]),
            unmasked=candidates[-1],
            nulls=entry["nulls"],
            domain=_domain_from(columns, len(values)),
        )

    def _hierarchy(self, entry: Mapping[str, Any]) -> Hierarchy | None:
        if entry["hierarchy"] is None:
            return None
        columns = unpack(self.members[f"{entry['key']}_hierarchy.arrow"])
        levels = [
            [
                None if null else text
                for text, null in zip(
                    columns[f"text{i}"].to_pylist(), columns[f"null{i}"].to_pylist(), strict=True
                )
            ]
            for i in range(len(columns) // 2)
        ]
        return Hierarchy(tuple(zip(*levels, strict=True)), entry["hierarchy"])

    def _pairs(
        self, said: Mapping[str, Any], attributes: Mapping[str, AttributeSummary]
    ) -> PairCounts:
        columns = unpack(self.members[PAIRS])
        sizes, classes = tuple(said["sizes"]), said["classes"]
        _require(
            sizes == tuple(a.n_atoms for a in attributes.values()), "pairs do not fit the atoms"
        )
        width = len(sizes)
        pairs = [(i, j) for i in range(width) for j in range(i + 1, width)]
        index = {(i, j): numbers(columns[f"index{i},{j}"], np.int64) for i, j in pairs}
        count = {(i, j): numbers(columns[f"count{i},{j}"], np.int64) for i, j in pairs}
        for (i, j), cells in index.items():
            _require(len(cells) == len(count[i, j]), "cells of a pair and their counts differ")
            _require(_below(cells, sizes[i] * sizes[j] * classes), "a pair has an unknown cell")
        joints = (numbers(columns[f"joint{i}"], np.int64) for i in range(width))
        return PairCounts(
            names=tuple(attributes),
            sizes=sizes,
            classes=classes,
            rows=said["rows"],
            joints=tuple(j.reshape(s, classes) for j, s in zip(joints, sizes, strict=True)),
            index=index,
            count=count,
            folds=_folds_from(said.get("folds"), columns, sizes, classes, count),
        )

    def _frequency(
        self,
        said: Mapping[str, Any] | None,
        attributes: Mapping[str, AttributeSummary],
        classes: int,
    ) -> FrequencyTable | None:
        if said is None:
            return None
        names = list(dict.fromkeys((*said["quasi"], *said["sensitive"], said["label"])))
        _require(said["columns"] == names, "the frequency table has other columns")
        columns = unpack(self.members[FREQUENCY])
        counts = numbers(columns["counts"], np.int64)
        codes, representatives = {}, {}
        for i, name in enumerate(said["columns"]):
            codes[name] = numbers(columns[f"codes{i}"], np.int32)
            representatives[name] = numbers(columns[f"representatives{i}"], np.int32)
            values = len(attributes[name].values) if name in attributes else classes + 1
            _require(len(codes[name]) == len(counts), "codes and counts of the cells differ")
            _require(_below(codes[name], len(representatives[name])), "a cell has an unknown code")
            _require(_below(representatives[name], values), "a code stands for an unknown value")
        return FrequencyTable(
            quasi=tuple(said["quasi"]),
            sensitive=tuple(said["sensitive"]),
            label=said["label"],
            codes=codes,
            counts=counts,
            representatives=representatives,
        )


def _folds_from(
    size: int | None,
    columns: Mapping[str, pa.Array],
    sizes: tuple[int, ...],
    classes: int,
    cells: Mapping[tuple[int, int], Any],
) -> FoldCounts | None:
    if size is None:
        return None
    cell = {(i, j): numbers(columns[f"fold_cell{i},{j}"], np.int32) for i, j in cells}
    fold = {(i, j): numbers(columns[f"fold_of{i},{j}"], np.int8) for i, j in cells}
    count = {(i, j): numbers(columns[f"fold_count{i},{j}"], np.int32) for i, j in cells}
    for pair, known in cells.items():
        _require(_below(cell[pair], len(known)), "a fold has an unknown cell")
        _require(_below(fold[pair], size), "a cell has an unknown fold")
        added = np.bincount(cell[pair], weights=count[pair], minlength=len(known))
        _require(np.array_equal(added, known), "the folds do not add up to the cells")
    joints = (numbers(columns[f"fold_joint{i}"], np.int64) for i in range(len(sizes)))
    return FoldCounts(
        size=size,
        rows=numbers(columns["fold_rows"], np.int64),
        joints=tuple(j.reshape(size, s, classes) for j, s in zip(joints, sizes, strict=True)),
        cell=cell,
        fold=fold,
        count=count,
    )


def _label_from(said: Mapping[str, Any]) -> LabelSummary:
    counts = np.array(said["counts"], dtype=np.int64)
    _require(len(counts) == len(said["classes"]), "classes and their counts differ")
    mask = None if said["mask"] is None else parse_mask(said["mask"])
    return LabelSummary(said["column"], tuple(said["classes"]), counts, said["unlabelled"], mask)


def _domain_from(columns: Mapping[str, pa.Array], cells: int) -> Domain | None:
    if "domain" not in columns:
        return None
    of = numbers(columns["cells"], np.int32)
    counts = numbers(columns["histogram"], np.int64) if "histogram" in columns else None
    _require(len(of) == len(columns["domain"]), "cells do not fit the domain")
    _require(_below(of, cells), "a value belongs to an unknown cell")
    _require(counts is None or len(counts) == len(of), "the histogram does not fit the domain")
    return Domain(columns["domain"], of, counts)


def _candidate(
    index: int,
    said: Mapping[str, Any],
    columns: Mapping[str, pa.Array],
    hierarchy: Hierarchy | None,
    atoms: Any,
) -> Candidate:
    groups = numbers(columns[f"groups{index}"], np.int32)
    shown = columns[f"shown{index}"]
    levels = numbers(columns[f"levels{index}"], np.int32)
    key = f"ranges{index}"
    ranges = numbers(columns[key], np.int32) if key in columns else None
    _require(ranges is None or len(ranges) == len(levels), "ranges do not fit the levels")
    _require(len(groups) == len(atoms), "groups do not fit the values")
    _require(_below(groups, len(shown)), "a value belongs to an unknown group")
    _require(_below(atoms, len(levels)), "a value belongs to an unknown atom")
    return Candidate(
        mask=parse_mask(said["mask"], hierarchy=hierarchy),
        declared=parse_mask(said["declared"], hierarchy=hierarchy),
        groups=groups,
        shown=shown,
        levels=levels,
        ranges=ranges,
    )


def _below(codes: Any, size: int) -> bool:
    return not len(codes) or bool(codes.min() >= 0 and codes.max() < size)


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)
