"""A summary with all that a bundle can hold, and how two are compared."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from aegis.errors import DataError
from aegis.policy import load_policy
from aegis.signing import canonical
from aegis.summary import (
    AttributeSummary,
    FrequencyTable,
    PairCounts,
    Summary,
    load_bundle,
    summarize,
)


def assert_arrays(one: Any, two: Any) -> None:
    assert one.dtype == two.dtype
    np.testing.assert_array_equal(one, two)


def assert_same(one: Summary, two: Summary) -> None:
    for name in (
        "rows",
        "max_levels",
        "unnamed",
        "digests",
        "shared_rows",
        "dialects",
        "read_by_context",
        "sampled",
        "terms",
        "weights",
    ):
        assert getattr(one, name) == getattr(two, name)
    assert one.to_dict() == two.to_dict()
    for name in ("column", "classes", "unlabelled", "mask", "unit", "ends"):
        assert getattr(one.label, name) == getattr(two.label, name)
    assert_arrays(one.label.counts, two.label.counts)
    assert_arrays(one.label.weighted, two.label.weighted)
    assert list(one.attributes) == list(two.attributes)
    assert (one.label_attribute is None) == (two.label_attribute is None)
    for left, right in zip(one.all_attributes, two.all_attributes, strict=True):
        assert_same_attribute(left, right)
    assert_same_pairs(one.pairs, two.pairs)
    assert (one.frequency is None) == (two.frequency is None)
    if one.frequency is not None and two.frequency is not None:
        assert_same_frequency(one.frequency, two.frequency)
    assert (one.several is None) == (two.several is None)
    if one.several is not None and two.several is not None:
        assert one.several.serve is two.several.serve
        for left, right in zip(one.several.tasks, two.several.tasks, strict=True):
            assert (left.weight, left.measure) == (right.weight, right.measure)
            assert_same(left.summary, right.summary)


def assert_same_attribute(one: AttributeSummary, two: AttributeSummary) -> None:
    for name in ("name", "role", "kind", "weight", "nulls", "n_atoms"):
        assert getattr(one, name) == getattr(two, name)
    assert_same_values(one.values, two.values)
    for name in ("counts", "joint", "atoms"):
        assert_arrays(getattr(one, name), getattr(two, name))
    assert (one.domain, two.domain) == (None, None)  # `test_advisor_withhold` holds others
    assert len(one.candidates) == len(two.candidates)
    pairs = zip((*one.candidates, one.unmasked), (*two.candidates, two.unmasked), strict=True)
    for left, right in pairs:
        assert (left.mask, left.declared) == (right.mask, right.declared)
        assert left.labels == right.labels
        assert_same_values(left.masked_values, right.masked_values)
        assert_arrays(left.groups, right.groups)
        assert_arrays(left.levels, right.levels)
        assert (left.ranges is None) == (right.ranges is None)
        if left.ranges is not None:
            assert_arrays(left.ranges, right.ranges)


def assert_same_values(one: pa.Array, two: pa.Array) -> None:
    assert one.type == two.type
    # NaN is not equal to itself, its text is.
    assert list(map(repr, one.to_pylist())) == list(map(repr, two.to_pylist()))


def assert_same_pairs(one: PairCounts, two: PairCounts) -> None:
    for name in ("names", "sizes", "classes", "rows", "weights"):
        assert getattr(one, name) == getattr(two, name)
    for left, right in zip(one.atom_counts, two.atom_counts, strict=True):
        assert_arrays(left, right)
    assert one.index.keys() == two.index.keys() == one.count.keys() == two.count.keys()
    for pair in one.index:
        assert_arrays(one.index[pair], two.index[pair])
        assert_arrays(one.count[pair], two.count[pair])
    assert (one.responses is None) == (two.responses is None)
    if one.responses is not None and two.responses is not None:
        assert one.responses.squares == two.responses.squares
        assert_arrays(one.responses.total, two.responses.total)
        for left, right in zip(one.responses.sums, two.responses.sums, strict=True):
            assert_arrays(left, right)
    assert (one.folds is None) == (two.folds is None)
    if one.folds is not None and two.folds is not None:
        assert one.folds.size == two.folds.size
        assert_arrays(one.folds.rows, two.folds.rows)
        for left, right in zip(one.folds.atom_counts, two.folds.atom_counts, strict=True):
            assert_arrays(left, right)
        for name in ("cell", "fold", "count"):
            left, right = getattr(one.folds, name), getattr(two.folds, name)
            assert left.keys() == right.keys() == one.index.keys()
            for pair in left:
                assert_arrays(left[pair], right[pair])


def assert_same_frequency(one: FrequencyTable, two: FrequencyTable) -> None:
    for name in ("quasi", "sensitive", "label", "cells", "rows"):
        assert getattr(one, name) == getattr(two, name)
    assert_arrays(one.counts, two.counts)
    assert list(one.codes) == list(two.codes)
    for name in one.codes:
        assert_arrays(one.codes[name], two.codes[name])
        assert_arrays(one.representatives[name], two.representatives[name])


def example() -> Summary:
    table = pa.table(
        {
            "town": ["Oslo", "Rome", None, "Oslo", "Turku", "Rome"],
            "age": [1, 2, 3, 4, 5, None],
            "y": [1.0, 2.0, 3.0, 4.0, None, 6.0],
        }
    )
    policy = load_policy(
        {
            "version": 1,
            "label": {"column": "y", "bins": 2},
            "privacy": {"k": 2},
            "attributes": {
                "town": {
                    "role": "quasi-identifier",
                    "hierarchy": {
                        "levels": {"Oslo": ["N", "*"], "Turku": ["N", "*"], "Rome": ["S", "*"]}
                    },
                    "masks": [
                        "identity",
                        {"level": 1},
                        {"compose": [{"level": 1}, {"blur": {"keep": 0}}]},
                    ],
                },
                "age": {"role": "feature", "masks": [{"quantiles": {"count": 2}}, "identity"]},
            },
        }
    )
    return summarize(table, policy)


def rewritten(
    data: bytes,
    *,
    change: Callable[[dict[str, Any]], None] | None = None,
    members: Callable[[dict[str, bytes]], None] | None = None,
    seal: bool = True,
) -> bytes:
    """Return a bundle with another manifest or other members, its digests put right if `seal`."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts.pop("manifest.json"))
    if members is not None:
        members(parts)
    if seal:
        manifest["members"] = {
            name: {"size": len(part), "sha256": hashlib.sha256(part).hexdigest()}
            for name, part in parts.items()
        }
    if change is not None:
        change(manifest)
    if seal:
        manifest.pop("digest")
        manifest["digest"] = hashlib.sha256(canonical(manifest)).hexdigest()
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, part in parts.items():
            archive.writestr(name, part)
    return sink.getvalue()


def refused(folder: Path, data: bytes) -> str:
    file = folder / "bad.aegis"
    file.write_bytes(data)
    with pytest.raises(DataError) as caught:
        load_bundle(file)
    assert str(file) in caught.value.message
    assert caught.value.hint
    return str(caught.value)
