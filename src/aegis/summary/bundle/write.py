"""Convert a summary to the content of a bundle: JSON values for the manifest, and arrays as
members.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from aegis.arrays import Array, halves
from aegis.masks.grouping import hierarchy_of
from aegis.summary.bundle.archive import pack
from aegis.summary.cooccurrence import FoldCounts, PairCounts
from aegis.summary.frequency import FrequencyTable
from aegis.summary.model import AttributeSummary, LabelSummary, SeveralSummaries, Summary
from aegis.summary.responses import NumberUnit, ResponseSums
from aegis.summary.weights import TableWeights, WeightSums
from aegis.words import json_fields, jsonable

PAIRS = "pairs.arrow"
FREQUENCY = "frequency.arrow"
LABEL_KEY = "label"
"""The key in the names of the label's own members."""


def attribute_key(index: int) -> str:
    """Return the prefix of file names in the bundle for one attribute."""
    return f"attribute_{index}"


def values_member(key: str) -> str:
    """Return the name of the file in the bundle that holds the arrays of an attribute."""
    return f"{key}.arrow"


def hierarchy_member(key: str) -> str:
    """Return the name of the file in the bundle that holds the hierarchy of an attribute."""
    return f"{key}_hierarchy.arrow"


def pack_summary(summary: Summary) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Convert a summary to the entries of its JSON manifest, and the bytes of other members by
    name.
    """
    members: dict[str, bytes] = {}
    label = summary.label_attribute
    content: dict[str, Any] = {
        "rows": summary.rows,
        "label": _label_to(summary.label),
        "attributes": [
            _attribute_to(attribute, attribute_key(i), members)
            for i, attribute in enumerate(summary.attributes.values())
        ],
        "label_attribute": None if label is None else _attribute_to(label, LABEL_KEY, members),
        "pairs": _pairs_to(summary.pairs, members),
        "frequency": _frequency_to(summary.frequency, members),
        "max_levels": summary.max_levels,
        "unnamed": list(summary.unnamed),
        "digests": dict(summary.digests),
        "shared_rows": summary.shared_rows,
        "dialects": jsonable(summary.dialects),
        "read_by_context": jsonable(summary.read_by_context),
        "terms": None if summary.terms is None else json_fields(summary.terms, "policy", "locked"),
        **_weights_to(summary.weights),
    }
    if summary.several is not None:
        content["labels"] = _labels_to(summary.several, members)
    return content, members


def label_prefix(index: int) -> str:
    """Return the prefix of file names in the bundle for one of several labels."""
    return f"label_{index}_"


def _labels_to(several: SeveralSummaries, members: dict[str, bytes]) -> dict[str, Any]:
    """Add the summary for each of several labels to `members`; return their entries in the
    manifest.
    """
    tasks = []
    for index, task in enumerate(several.tasks):
        content, task_members = pack_summary(task.summary)
        members |= {f"{label_prefix(index)}{name}": data for name, data in task_members.items()}
        tasks.append({"weight": task.weight, "measure": task.measure, "summary": content})
    return {"serve": str(several.serve), "tasks": tasks}


def _label_to(label: LabelSummary) -> dict[str, Any]:
    return {
        "column": label.column,
        "classes": list(label.classes),
        "counts": label.counts.tolist(),
        "unlabelled": label.unlabelled,
        "mask": None if label.mask is None else label.mask.spec(),
        **_unit_to(label.unit),
        **({} if label.totals is None else {"totals": label.totals.tolist()}),
        **({} if label.ends is None else {"ends": list(label.ends)}),
    }


def _weights_to(weights: TableWeights | None) -> dict[str, Any]:
    """Return the weights as an entry in a file's manifest; empty if each row counts once."""
    if weights is None:
        return {}
    return {
        "weights": {
            "column": weights.column,
            **_unit_to(weights.unit),
            "sums": _sums_to(weights.sums),
            "labelled": _sums_to(weights.labelled),
            "zeros": weights.zeros,
        }
    }


def _sums_to(sums: WeightSums) -> dict[str, str]:
    """Return sums of weights as texts, because their squares may need more than 64 bits."""
    return {name: str(getattr(sums, name)) for name in ("total", "squares", "divisor")}


def _unit_to(unit: NumberUnit | None) -> dict[str, Any]:
    """Return a label's unit as an entry in a file's manifest; empty for a label with classes."""
    return {} if unit is None else {"unit": json_fields(unit)}


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
        columns[f"shown{i}"] = candidate.masked_values
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
    """Add the hierarchy of an attribute's masks to `members`, one column per level; return its
    name.
    """
    masks = (m for c in attribute.candidates for m in (c.mask, c.declared))
    hierarchy = hierarchy_of(masks, attribute.name)
    if hierarchy is None:
        return None
    levels = zip(*hierarchy.rows, strict=True)
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
    return hierarchy.name


def _pairs_to(pairs: PairCounts, members: dict[str, bytes]) -> dict[str, Any]:
    """Add the counts of all pairs to `members`, joined into few columns; return their entry in the
    manifest.
    """
    order = sorted(pairs.index)
    columns: dict[str, Any] = {
        "joint": _joined([joint.ravel() for joint in pairs.atom_counts], np.int64),
        "cells": np.array([len(pairs.index[pair]) for pair in order], dtype=np.int64),
        "index": _joined([pairs.index[pair] for pair in order], np.int64),
        "count": _joined([pairs.count[pair] for pair in order], np.int64),
    }
    if pairs.folds is not None:
        columns |= _folds_to(pairs.folds, order, weighted=pairs.weights is not None)
    entry: dict[str, Any] = {
        "rows": pairs.rows,
        "classes": pairs.classes,
        "sizes": list(pairs.sizes),
        "folds": None if pairs.folds is None else pairs.folds.size,
    }
    if pairs.weights is not None:
        entry["weights"] = _sums_to(pairs.weights)
    if pairs.responses is not None:
        columns |= _responses_to(pairs.responses)
        entry["response_squares"] = [str(square) for square in pairs.responses.squares]
    members[PAIRS] = pack(columns)
    return entry


def _responses_to(responses: ResponseSums) -> dict[str, Any]:
    """Return sums of a numeric label as columns; sums of more than 64 bits as upper and lower bits."""
    parts = [sums.ravel() for sums in responses.sums]
    if responses.total.dtype != object:
        return {"response": _joined(parts, np.int64), "response_total": responses.total}
    columns: dict[str, Any] = {}
    for name, numbers in (("response", np.concatenate(parts)), ("response_total", responses.total)):
        high, low = halves(numbers)
        columns |= {name: high.astype(np.int64), f"{name}_low": low.astype(np.int64)}
    return columns


def _folds_to(
    folds: FoldCounts, order: Sequence[tuple[int, int]], *, weighted: bool
) -> dict[str, Any]:
    return {
        "fold_rows": folds.rows,
        "fold_joint": _joined([joint.ravel() for joint in folds.atom_counts], np.int64),
        "fold_cells": np.array([len(folds.cell[pair]) for pair in order], dtype=np.int64),
        "fold_cell": _joined([folds.cell[pair] for pair in order], np.int32),
        "fold_of": _joined([folds.fold[pair] for pair in order], np.int8),
        "fold_count": _joined(
            [folds.count[pair] for pair in order], np.int64 if weighted else np.int32
        ),
    }


def _joined(parts: Sequence[Array], dtype: type[np.integer[Any]]) -> Array:
    return np.concatenate([np.zeros(0, dtype=dtype), *parts])


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
