"""A bundle gives back the summary that went in, or one clear error; equal summaries, equal bytes."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from summary_support import HALF, Case, cases

from aegis.advisor import advise
from aegis.errors import AegisError, DataError, InternalError, PolicyError
from aegis.masks import Hierarchy, Level
from aegis.policy import load_policy
from aegis.summary import (
    AttributeSummary,
    Candidate,
    FrequencyTable,
    LabelSummary,
    PairCounts,
    Summary,
    bundle_archive,
    load_bundle,
    save_bundle,
    summarize,
)
from aegis.summary.bundle_arrow import pack, unpack
from aegis.summary.cooccurrence import FoldCounts


def assert_arrays(one: Any, two: Any) -> None:
    assert one.dtype == two.dtype
    np.testing.assert_array_equal(one, two)


def assert_same(one: Summary, two: Summary) -> None:
    for name in ("rows", "max_levels", "seed", "unnamed", "digests", "sampled"):
        assert getattr(one, name) == getattr(two, name)
    assert one.to_dict() == two.to_dict()
    for name in ("column", "classes", "unlabelled", "mask"):
        assert getattr(one.label, name) == getattr(two.label, name)
    assert_arrays(one.label.counts, two.label.counts)
    assert list(one.attributes) == list(two.attributes)
    assert (one.label_attribute is None) == (two.label_attribute is None)
    for left, right in zip(one.all_attributes, two.all_attributes, strict=True):
        assert_same_attribute(left, right)
    assert_same_pairs(one.pairs, two.pairs)
    assert (one.frequency is None) == (two.frequency is None)
    if one.frequency is not None and two.frequency is not None:
        assert_same_frequency(one.frequency, two.frequency)


def assert_same_attribute(one: AttributeSummary, two: AttributeSummary) -> None:
    for name in ("name", "role", "kind", "weight", "nulls", "n_atoms"):
        assert getattr(one, name) == getattr(two, name)
    assert_same_values(one.values, two.values)
    for name in ("counts", "joint", "atoms"):
        assert_arrays(getattr(one, name), getattr(two, name))
    assert len(one.candidates) == len(two.candidates)
    pairs = zip((*one.candidates, one.unmasked), (*two.candidates, two.unmasked), strict=True)
    for left, right in pairs:
        assert (left.mask, left.declared) == (right.mask, right.declared)
        assert left.labels == right.labels
        assert_same_values(left.shown, right.shown)
        assert_arrays(left.groups, right.groups)
        assert_arrays(left.levels, right.levels)


def assert_same_values(one: pa.Array, two: pa.Array) -> None:
    assert one.type == two.type
    # NaN is not equal to itself, its text is.
    assert list(map(repr, one.to_pylist())) == list(map(repr, two.to_pylist()))


def assert_same_pairs(one: PairCounts, two: PairCounts) -> None:
    for name in ("names", "sizes", "classes", "rows"):
        assert getattr(one, name) == getattr(two, name)
    for left, right in zip(one.joints, two.joints, strict=True):
        assert_arrays(left, right)
    assert one.index.keys() == two.index.keys() == one.count.keys() == two.count.keys()
    for pair in one.index:
        assert_arrays(one.index[pair], two.index[pair])
        assert_arrays(one.count[pair], two.count[pair])
    assert (one.folds is None) == (two.folds is None)
    if one.folds is not None and two.folds is not None:
        assert one.folds.size == two.folds.size
        assert_arrays(one.folds.rows, two.folds.rows)
        for left, right in zip(one.folds.joints, two.folds.joints, strict=True):
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


COMPARED = {
    Summary: "rows label attributes label_attribute pairs frequency max_levels seed unnamed digests timings",
    LabelSummary: "column classes counts unlabelled mask",
    AttributeSummary: "name role kind weight values counts joint atoms candidates unmasked nulls",
    Candidate: "mask declared groups shown levels",
    PairCounts: "names sizes classes rows joints index count folds",
    FoldCounts: "size rows joints cell fold count",
    FrequencyTable: "quasi sensitive label codes counts representatives",
}


@pytest.mark.parametrize("part", COMPARED)
def test_no_field_is_forgotten(part: Any) -> None:
    """A new field must be stored, and compared above; `timings` alone is not."""
    assert {field.name for field in fields(part)} == set(COMPARED[part].split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bundles")


@HALF
@given(case=cases(), sample=st.sampled_from([10, 1000]), most=st.sampled_from([2, 128]))
def test_the_way_back(folder: Path, case: Case, sample: int, most: int) -> None:
    summary = summarize(case.table, case.policy, sample_rows=sample, max_levels=most)
    file = folder / "s.aegis"
    save_bundle(summary, file, force=True)
    loaded = load_bundle(file)
    assert_same(loaded, summary)
    assert not loaded.timings
    first = file.read_bytes()
    save_bundle(loaded, file, force=True)
    assert file.read_bytes() == first


@HALF
@given(case=cases(), measure=st.sampled_from(["pillai", "cmim", "mi-corrected", "g3"]))
def test_advice_from_the_bundle(folder: Path, case: Case, measure: str) -> None:
    assume(case.policy.quasi_identifiers)
    rule = {"k": 2, "suppression": 0.4}
    policy = load_policy(policy_of(case, rule))
    try:
        direct = advise(case.table, policy, measure=measure, generate_count=5, seed=3).to_dict()
    except PolicyError as error:
        assert "rule" in str(error).lower()  # noqa: PT017 - some tables are too small for k
        assume(False)
    save_bundle(summarize(case.table, policy, seed=3), folder / "a.aegis", force=True)
    loaded = load_bundle(folder / "a.aegis")
    found = advise(loaded, policy, measure=measure, generate_count=5, seed=3).to_dict()
    for result in (direct, found):
        result.pop("timings")
    assert repr(found) == repr(direct)


def policy_of(case: Case, rule: dict[str, Any]) -> dict[str, Any]:
    from aegis.policy import policy_mapping

    return {**policy_mapping(case.policy), "privacy": rule}


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


@pytest.fixture(scope="module")
def bundle(folder: Path) -> bytes:
    file = folder / "example.aegis"
    save_bundle(example(), file)
    return file.read_bytes()


def test_the_same_summary_gives_the_same_bytes(folder: Path, bundle: bytes) -> None:
    file = folder / "again.aegis"
    save_bundle(example(), file)
    assert file.read_bytes() == bundle


def test_hierarchies_are_within(folder: Path, bundle: bytes) -> None:
    (folder / "h.aegis").write_bytes(bundle)
    candidates = load_bundle(folder / "h.aegis").attributes["town"].candidates
    [hierarchy] = {c.mask.hierarchy for c in candidates if isinstance(c.mask, Level)}
    assert hierarchy == Hierarchy((("Oslo", "N", "*"), ("Turku", "N", "*"), ("Rome", "S", "*")))
    assert hierarchy.name == "town"


def test_two_hierarchies_of_one_attribute() -> None:
    from dataclasses import replace

    summary = example()
    town = summary.attributes["town"]
    other = Level(1, Hierarchy((("Oslo", "x"), ("Rome", "x"), ("Turku", "x"))))
    mixed = replace(town, candidates=(*town.candidates, replace(town.candidates[0], mask=other)))
    changed = replace(summary, attributes={**summary.attributes, "town": mixed})
    with pytest.raises(InternalError, match="more than one hierarchy"):
        save_bundle(changed, "never.aegis")
    assert not Path("never.aegis").exists()


def test_where_it_may_be_written(tmp_path: Path) -> None:
    summary = example()
    with pytest.raises(PolicyError, match="unknown extension"):
        save_bundle(summary, tmp_path / "s.zip")
    with pytest.raises(PolicyError, match="folder does not exist"):
        save_bundle(summary, tmp_path / "none" / "s.aegis")
    (tmp_path / "s.aegis").write_text("old")
    with pytest.raises(PolicyError, match="exists"):
        save_bundle(summary, tmp_path / "s.aegis")
    assert (tmp_path / "s.aegis").read_text() == "old"
    save_bundle(summary, tmp_path / "s.aegis", force=True)
    assert load_bundle(tmp_path / "s.aegis").rows == 6


def test_a_failure_in_mid_write_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "s.aegis"
    file.write_text("old")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(DataError, match="No space left"):
        save_bundle(example(), file, force=True)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_summary_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_archive, "MAX_BYTES", 1000)
    with pytest.raises(DataError, match="at most 1,000"):
        save_bundle(example(), tmp_path / "s.aegis")
    assert not list(tmp_path.iterdir())


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
        text = json.dumps(manifest, sort_keys=True).encode()
        manifest["digest"] = hashlib.sha256(text).hexdigest()
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


def test_rewriting_alone_changes_nothing(folder: Path, bundle: bytes) -> None:
    (folder / "r.aegis").write_bytes(rewritten(bundle))
    assert_same(load_bundle(folder / "r.aegis"), example())


def test_versions(folder: Path, bundle: bytes) -> None:
    def version(number: object) -> Callable[[dict[str, Any]], None]:
        return lambda manifest: manifest.update(version=number)

    said = refused(folder, rewritten(bundle, change=version(2)))
    assert "format version 2" in said
    assert "Update Aegis" in said
    said = refused(folder, rewritten(bundle, change=version(0)))
    assert "format version 0" in said
    assert "aegis summarize" in said
    assert "format version None" in refused(folder, rewritten(bundle, change=version(None)))
    # Whatever else is in it: another version is another format.
    assert "format version 9" in refused(
        folder,
        rewritten(
            bundle,
            change=lambda m: (m.clear(), m.update(format="aegis-summary", version=9)),
            seal=False,
        ),
    )


def test_what_is_no_bundle(folder: Path, tmp_path: Path) -> None:
    assert "not a summary bundle" in refused(folder, b"")
    assert "not a summary bundle" in refused(folder, b"a,b\n1,2\n")
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("hello.txt", "hello")
    assert "has no manifest.json" in refused(folder, sink.getvalue())
    for text in ("[]", "{}", '{"format": "other", "version": 1}'):
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w") as archive:
            archive.writestr("manifest.json", text)
        assert "not a summary bundle" in refused(folder, sink.getvalue())
    for text in ("{", "[" * 100_000, "\xff"):
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w") as archive:
            archive.writestr("manifest.json", text.encode("latin-1"))
        assert "truncated or was tampered" in refused(folder, sink.getvalue())
    with pytest.raises(DataError, match="No such file"):
        load_bundle(tmp_path / "none.aegis")
    with pytest.raises(DataError, match="Cannot read"):
        load_bundle(tmp_path)


@given(share=st.floats(0.01, 0.999))
def test_truncation(folder: Path, bundle: bytes, share: float) -> None:
    refused(folder, bundle[: int(len(bundle) * share)])


@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_flipped_bit(folder: Path, bundle: bytes, place: float, bit: int) -> None:
    flipped = bytearray(bundle)
    flipped[int(place * len(bundle))] ^= 1 << bit
    file = folder / "flipped.aegis"
    file.write_bytes(flipped)
    try:
        loaded = load_bundle(file)
    except DataError:
        return
    # Dates and attributes of members in the ZIP directory mean nothing.
    assert_same(loaded, example_once())


_EXAMPLES: list[Summary] = []


def example_once() -> Summary:
    if not _EXAMPLES:
        _EXAMPLES.append(example())
    return _EXAMPLES[0]


def test_members_that_differ_from_the_manifest(folder: Path, bundle: bytes) -> None:
    def shorter(members: dict[str, bytes]) -> None:
        members["pairs.arrow"] = members["pairs.arrow"][:-8]

    def other(members: dict[str, bytes]) -> None:
        members["pairs.arrow"] = members["pairs.arrow"][::-1]

    assert "size" in refused(folder, rewritten(bundle, members=shorter, seal=False))
    assert "digest of member" in refused(folder, rewritten(bundle, members=other, seal=False))
    for change in (
        lambda members: members.pop("pairs.arrow"),
        lambda members: members.update({"more.arrow": b"x"}),
    ):
        said = refused(folder, rewritten(bundle, members=change, seal=False))
        assert "not those that its manifest lists" in said
    said = refused(
        folder, rewritten(bundle, change=lambda m: m["summary"].update(rows=7), seal=False)
    )
    assert "digest of its manifest" in said


def test_a_member_given_twice(folder: Path, bundle: bytes) -> None:
    sink = io.BytesIO(bundle)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(sink, "a") as archive:
        archive.writestr("pairs.arrow", b"x")
    refused(folder, sink.getvalue())


def test_a_bomb_that_says_so(folder: Path, bundle: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_archive, "MAX_BYTES", 1000)
    said = refused(folder, bundle)
    assert "would expand to" in said


def test_a_bomb_that_lies(folder: Path, bundle: bytes) -> None:
    """A member that declares few bytes and inflates to many is never inflated beyond them."""
    zeros = bytes(50_000_000)

    def bomb(members: dict[str, bytes]) -> None:
        members["pairs.arrow"] = zeros

    whole = rewritten(bundle, members=bomb)
    lie = len(zeros).to_bytes(4, "little")
    assert whole.count(lie) == 2  # the size in the local header and in the directory
    small = bytearray(whole.replace(lie, (1000).to_bytes(4, "little")))
    said = refused(folder, bytes(small))
    assert "size" in said

    def small_too(manifest: dict[str, Any]) -> None:
        manifest["members"]["pairs.arrow"]["size"] = 1000

    whole = rewritten(bundle, members=bomb, change=small_too)
    small = bytearray(whole.replace(lie, (1000).to_bytes(4, "little")))
    import tracemalloc

    tracemalloc.start()
    said = refused(folder, bytes(small))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "digest" in said or "CRC" in said
    assert peak < 10_000_000


def test_a_manifest_that_is_a_bomb(
    folder: Path, bundle: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_archive, "MAX_MANIFEST", 100)
    assert "manifest declares" in refused(folder, bundle)


def test_other_compressions(folder: Path) -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("manifest.json", "{}")
    assert "unknown compression" in refused(folder, sink.getvalue())


def edits() -> dict[str, Callable[[dict[str, Any]], Any]]:
    def town(manifest: dict[str, Any]) -> Any:
        return manifest["summary"]["attributes"][0]

    return {
        "no rows": lambda m: m["summary"].pop("rows"),
        "no label": lambda m: m["summary"].update(label=None),
        "classes": lambda m: m["summary"]["label"]["classes"].append("more"),
        "role": lambda m: town(m).update(role="king"),
        "kind": lambda m: town(m).update(kind="number of sorts"),
        "mask": lambda m: town(m)["candidates"][0].update(mask="mystery"),
        "parameter": lambda m: town(m)["candidates"][0].update(mask={"blur": {"keep": -1}}),
        "no hierarchy": lambda m: town(m).update(hierarchy=None, candidates=[{"mask": {"level": "x"}, "declared": "identity"}] * 4),
        "key": lambda m: town(m).update(key="attribute_1"),
        "member": lambda m: town(m).update(key="nothing"),
        "too many candidates": lambda m: town(m)["candidates"].append({"mask": "identity", "declared": "identity"}),
        "no candidates": lambda m: town(m).update(candidates=[]),
        "sizes": lambda m: m["summary"]["pairs"].update(sizes=[1, 1]),
        "pair classes": lambda m: m["summary"]["pairs"].update(classes=1),
        "columns": lambda m: m["summary"]["frequency"]["columns"].append("town"),
        "unknown column": lambda m: m["summary"]["frequency"].update(columns=["age", "y"]),
        "swapped": lambda m: m["summary"]["attributes"].reverse(),
        "content": lambda m: m.update(summary=[]),
    }  # fmt: skip


@pytest.mark.parametrize("edit", edits())
def test_content_that_does_not_fit(folder: Path, bundle: bytes, edit: str) -> None:
    said = refused(folder, rewritten(bundle, change=edits()[edit]))
    assert "truncated or was tampered" in said


def repacked(
    member: str, edit: Callable[[dict[str, Any]], None]
) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        columns: dict[str, Any] = {
            n: np.array(c)
            for n, c in unpack(members[member]).items()
            if not pa.types.is_string(c.type)
        }
        texts = {n: c for n, c in unpack(members[member]).items() if pa.types.is_string(c.type)}
        edit(columns)
        members[member] = pack(columns | texts)

    return change


def grown(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda columns: columns.update({name: columns[name] + 1000})


def shortened(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda columns: columns.update({name: columns[name][:-1]})


def retyped(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda columns: columns.update({name: columns[name].astype(np.float64)})


@pytest.mark.parametrize("edit", [grown, shortened, retyped])
@pytest.mark.parametrize(
    ("member", "name"),
    [
        ("attribute_0.arrow", "atoms"),
        ("attribute_0.arrow", "groups1"),
        ("pairs.arrow", "index0,1"),
        ("frequency.arrow", "codes0"),
    ],
)
def test_arrays_that_do_not_fit(
    folder: Path, bundle: bytes, edit: Callable[[str], Any], member: str, name: str
) -> None:
    said = refused(folder, rewritten(bundle, members=repacked(member, edit(name))))
    assert "truncated or was tampered" in said


@pytest.mark.parametrize(
    ("member", "name"),
    [
        ("attribute_0.arrow", "counts"),
        ("attribute_0.arrow", "joint"),
        ("pairs.arrow", "joint0"),
        ("pairs.arrow", "count0,1"),
    ],
)
def test_counts_that_do_not_fit(folder: Path, bundle: bytes, member: str, name: str) -> None:
    for edit in (shortened, retyped):
        refused(folder, rewritten(bundle, members=repacked(member, edit(name))))


def test_compressed_buffers_are_refused(folder: Path, bundle: bytes) -> None:
    """They could expand to any size behind the ZIP's back."""

    def squeezed(members: dict[str, bytes]) -> None:
        with pa.ipc.open_stream(members["pairs.arrow"]) as reader:
            table = reader.read_all()
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        members["pairs.arrow"] = sink.getvalue().to_pybytes()

    assert "record batch" in refused(folder, rewritten(bundle, members=squeezed))


def test_members_that_are_not_arrow(folder: Path, bundle: bytes) -> None:
    for junk in (
        b"",
        b"junk",
        b"\xff" * 100,
        pa.schema([("a", pa.int64())]).serialize().to_pybytes(),
    ):

        def change(members: dict[str, bytes], junk: bytes = junk) -> None:
            members["pairs.arrow"] = junk

        refused(folder, rewritten(bundle, members=change))


@given(
    place=st.floats(0, 1, exclude_max=True),
    byte=st.integers(0, 255),
    member=st.sampled_from(["attribute_0.arrow", "pairs.arrow", "frequency.arrow"]),
)
@settings(max_examples=100)
def test_any_sealed_change_gives_a_summary_or_one_error(
    folder: Path, bundle: bytes, place: float, byte: int, member: str
) -> None:
    def change(members: dict[str, bytes]) -> None:
        data = bytearray(members[member])
        data[int(place * len(data))] = byte
        members[member] = bytes(data)

    file = folder / "sealed.aegis"
    file.write_bytes(rewritten(bundle, members=change))
    try:
        loaded = load_bundle(file)
    except AegisError as error:
        assert isinstance(error, DataError)  # noqa: PT017
    else:
        assert isinstance(loaded, Summary)


@given(
    values=st.lists(st.none() | st.text(max_size=5), max_size=8, unique=True),
    numbers=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=8),
    flags=st.sampled_from([[], [True], [None, False], [False, True, None]]),
)
def test_packing(values: list[Any], numbers: list[int], flags: list[Any]) -> None:
    columns = {
        "text": pa.array(values, pa.string()),
        "sliced": pa.array(["x", *values, "x"], pa.string())[1:-1],
        "numbers": np.array(numbers, dtype=np.int64),
        "flags": pa.array(flags, pa.bool_()),
    }
    data = pack(columns)
    found = unpack(data)
    assert {name: array.to_pylist() for name, array in found.items()} == {
        "text": values,
        "sliced": values,
        "numbers": numbers,
        "flags": flags,
    }
    assert pack(found) == data


def test_packing_refuses_what_it_would_lose() -> None:
    with pytest.raises(InternalError, match="null occurs twice"):
        pack({"a": pa.array([None, None], pa.int64())})
