"""Bundles from strangers: every number is held against the others before it is used."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bundle_support import refused, rewritten
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aegis.summary import load_bundle, save_bundle, summarize, withhold
from aegis.summary.bundle import archive as container
from aegis.summary.bundle.archive import pack, unpack
from aegis.summary.model import Information

Members = dict[str, bytes]
COUNTED = {
    "attribute_0.arrow": ("counts", "joint"),
    "attribute_1.arrow": ("counts", "joint"),
    "pairs.arrow": (
        "joint",
        "cells",
        "index",
        "count",
        "fold_rows",
        "fold_joint",
        "fold_cells",
        "fold_cell",
        "fold_of",
        "fold_count",
    ),
    "frequency.arrow": ("counts", "codes0", "codes1", "representatives0"),
}
"""Arrays in which every number is said once more by others."""
PLACED = ("atoms", "groups0", "levels0", "groups1", "levels1", "groups3", "levels3")
LARGE = (-(2**63), -1, 10, 2**30, 2**31 - 1, 2**53, 2**62, 2**63 - 1)


def edited(member: str, name: str, change: Callable[[Any], Any]) -> Callable[[Members], None]:
    """Return a change of one array of one member."""

    def edit(members: Members) -> None:
        columns: dict[str, Any] = dict(unpack(members[member]))
        columns[name] = change(columns[name].to_numpy(zero_copy_only=False).copy())
        members[member] = pack(columns)

    return edit


def set_to(place: float, value: int) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        limits = np.iinfo(array.dtype)
        array[int(place * len(array))] = min(max(value, limits.min), limits.max)
        return array

    return change


def added(place: float, value: int) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array[int(place * len(array))] += value
        return array

    return change


@given(data=st.data(), place=st.floats(0, 1, exclude_max=True))
@settings(max_examples=16, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_number_that_contradicts_the_others(
    folder: Path, bundle: bytes, data: st.DataObject, place: float
) -> None:
    member = data.draw(st.sampled_from(sorted(COUNTED)))
    name = data.draw(st.sampled_from(COUNTED[member]))
    by = data.draw(st.integers(-3, 3).filter(bool) | st.none())
    change = set_to(place, data.draw(st.sampled_from(LARGE))) if by is None else added(place, by)
    said = refused(folder, rewritten(bundle, members=edited(member, name, change)))
    assert "truncated or was tampered" in said


@pytest.mark.parametrize("value", LARGE)
@pytest.mark.parametrize("name", PLACED)
def test_no_number_asks_for_memory(folder: Path, bundle: bytes, name: str, value: int) -> None:
    """A level of 2**30 once asked for eight gigabytes."""
    changed = rewritten(
        bundle,
        members=edited("attribute_0.arrow", name, set_to(0.5, value)),
        change=lambda m: m["summary"].update(max_levels=1 << 31),
    )
    tracemalloc.start()
    refused(folder, changed)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def numbers_of_manifest() -> dict[str, Callable[[dict[str, Any]], Any]]:
    def town(summary: dict[str, Any]) -> Any:
        return summary["attributes"][0]

    return {
        "rows": lambda s: s.update(rows=60),
        "rows below 0": lambda s: s.update(rows=-6),
        "rows beyond floats": lambda s: s.update(rows=2**60),
        "rows as a float": lambda s: s.update(rows=6.0),
        "a class of more rows than there are": lambda s: s["label"].update(counts=[2828, 3]),
        "a class below 0": lambda s: s["label"].update(counts=[-1, 6]),
        "unlabelled": lambda s: s["label"].update(unlabelled=2),
        "classes twice": lambda s: s["label"].update(classes=["a", "a"]),
        "weight": lambda s: town(s).update(weight=float("nan")),
        "weight below 0": lambda s: town(s).update(weight=-1.0),
        "infinite weight": lambda s: town(s).update(weight=float("inf")),
        "nulls": lambda s: town(s).update(nulls=2),
        "an identifier": lambda s: town(s).update(role="identifier"),
        "another kind": lambda s: town(s).update(kind="integer"),
        "pairs of more rows": lambda s: s["pairs"].update(rows=6),
        "folds": lambda s: s["pairs"].update(folds=3),
        "many folds": lambda s: s["pairs"].update(folds=10**9),
        "an atom more": lambda s: s["pairs"].update(sizes=[s["pairs"]["sizes"][0] + 1, s["pairs"]["sizes"][1]]),
        "levels": lambda s: s.update(max_levels=1),
        "another quasi-identifier": lambda s: s["frequency"].update(quasi=["age"], columns=["age", "y"]),
        "a key of nobody": lambda s: s.update(more=1),
        "the same attribute twice": lambda s: s["attributes"].append(town(s)),
        "no attribute": lambda s: s.update(attributes=[]),
        "a mask of other columns": lambda s: town(s)["candidates"][0].update(mask={"round": {"step": 5}}, declared={"round": {"step": 5}}),
        "a mask that is not fitted": lambda s: s["attributes"][1]["candidates"][0].update(mask={"quantiles": {"count": 2}}),
        "a mask fitted to another": lambda s: town(s)["candidates"][0].update(mask="suppress"),
        "noise of days without end": lambda s: s["attributes"][1]["candidates"][0].update(mask={"date_noise": {"days": 3, "lower": "0001-01-01", "upper": "9999-12-31"}}),
    }  # fmt: skip


@pytest.mark.parametrize("edit", numbers_of_manifest())
def test_numbers_of_the_manifest(folder: Path, bundle: bytes, edit: str) -> None:
    change = numbers_of_manifest()[edit]
    said = refused(folder, rewritten(bundle, change=lambda m: change(m["summary"])))
    assert "truncated or was tampered" in said


def test_members_and_columns_that_nothing_refers_to(folder: Path, bundle: bytes) -> None:
    def another(members: Members) -> None:
        members["attribute_2.arrow"] = members["attribute_1.arrow"]

    def column(members: Members) -> None:
        columns: dict[str, Any] = dict(unpack(members["pairs.arrow"]))
        members["pairs.arrow"] = pack(columns | {"zeros": np.zeros(1000, dtype=np.int64)})

    assert "referred to by nothing" in refused(folder, rewritten(bundle, members=another))
    assert "column 'zeros'" in refused(folder, rewritten(bundle, members=column))


def test_values_out_of_order(folder: Path, bundle: bytes) -> None:
    def twice(members: Members) -> None:
        columns: dict[str, Any] = dict(unpack(members["attribute_0.arrow"]))
        columns["values"] = pa.array(["Oslo", "Oslo", "Turku", None])
        members["attribute_0.arrow"] = pack(columns)

    assert "ascending order" in refused(folder, rewritten(bundle, members=twice))


def test_a_file_that_inflates_to_more_than_its_size_explains(
    folder: Path, bundle: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of zeros a thousand bytes fit into one: 14 MB took 6.4 GB."""

    def zeros(members: Members) -> None:
        members["pairs.arrow"] = bytes(20_000_000)

    changed = rewritten(bundle, members=zeros)
    monkeypatch.setattr(container, "FREE_BYTES", 1 << 20)
    tracemalloc.start()
    said = refused(folder, changed)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "would expand to 20,0" in said
    assert peak < 2_000_000


def test_more_than_there_is_memory_for(
    folder: Path, bundle: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "free_memory", lambda: 1000)
    assert "1,000 are free" in refused(folder, bundle)
    monkeypatch.setattr(container, "free_memory", lambda: None)
    (folder / "unknown.aegis").write_bytes(bundle)
    assert load_bundle(folder / "unknown.aegis").rows == 6
    measured = container.free_memory
    monkeypatch.undo()
    assert container.free_memory is not measured
    assert (container.free_memory() or 1 << 30) > 1 << 20


def test_a_summary_of_nearly_nothing_but_zeros_comes_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It compresses like a bomb; it is written so that it is not taken for one."""
    rows = 3000
    table = pa.table({"a": list(range(rows)), "y": [i % 200 for i in range(rows)]})
    summary = summarize(
        table, {"version": 1, "label": "y", "attributes": {"a": {"role": "feature"}}}, max_levels=2
    )
    monkeypatch.setattr(container, "FREE_BYTES", 1 << 10)
    monkeypatch.setattr(container, "MAX_RATIO", 20)
    file = folder / "sparse.aegis"
    save_bundle(summary, file, force=True)
    assert file.stat().st_size > 8 * rows * 200
    assert load_bundle(file).rows == rows


def test_a_directory_that_is_a_bomb(
    folder: Path, bundle: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "MAX_DIRECTORY", 100)
    assert "directory declares" in refused(folder, bundle)


def test_a_manifest_of_many_small_parts(
    folder: Path, bundle: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "MAX_PARTS", 10)
    assert "entries" in refused(folder, bundle)


@pytest.mark.parametrize("information", [Information.HISTOGRAM, Information.NOTHING])
def test_withheld_summaries(folder: Path, information: Information) -> None:
    table = pa.table({"a": [1.5, 2.5, 2.5, float("nan"), None, 7.0] * 3, "y": ["u", "v", None] * 6})
    policy = {
        "version": 1,
        "label": "y",
        "attributes": {
            "a": {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 4}}, "suppress"]}
        },
    }
    summary = withhold(summarize(table, policy), information)
    file = folder / "withheld.aegis"
    save_bundle(summary, file, force=True)
    assert load_bundle(file).information is information
    data = file.read_bytes()
    names = ["counts", "joint", "cells"] + (["histogram"] if information == "histogram" else [])
    for name in names:
        changed = rewritten(data, members=edited("attribute_0.arrow", name, added(0.3, 1)))
        assert "tampered" in refused(folder, changed)


def test_errors_name_the_entry(folder: Path, bundle: bytes) -> None:
    said = refused(folder, rewritten(bundle, change=lambda m: m["summary"].update(rows="six")))
    assert "rows of its manifest is a text of 3 characters, not a whole number" in said
