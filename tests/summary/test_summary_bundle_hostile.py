"""Whatever was done to a bundle, reading it gives the summary or one clear error."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bundle_support import assert_same, example, refused, rewritten
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aegis.errors import AegisError, DataError
from aegis.sources.dialect import TextDialect
from aegis.summary import Summary, load_bundle
from aegis.summary.bundle import archive as container
from aegis.summary.bundle.archive import pack, unpack
from aegis.words import json_fields


def test_rewriting_alone_changes_nothing(folder: Path, bundle: bytes) -> None:
    (folder / "r.aegis").write_bytes(rewritten(bundle))
    assert_same(load_bundle(folder / "r.aegis"), example())


def test_versions(folder: Path, bundle: bytes) -> None:
    def version(number: object) -> Callable[[dict[str, Any]], None]:
        return lambda manifest: manifest.update(version=number)

    said = refused(folder, rewritten(bundle, change=version(7)))
    assert "format version 7" in said
    assert "Update Aegis" in said
    said = refused(folder, rewritten(bundle, change=version(1)))
    assert "format version 1" in said
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
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    monkeypatch.setattr(container, "MAX_BYTES", 1000)
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
    monkeypatch.setattr(container, "MAX_MANIFEST", 100)
    assert "manifest declares" in refused(folder, bundle)


def test_other_compressions(folder: Path) -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("manifest.json", "{}")
    assert "unknown compression" in refused(folder, sink.getvalue())


DIALECT = json_fields(TextDialect())


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
        "dialect": lambda m: m["summary"].update(dialects=[{**DIALECT, "quote": "quote"}]),
        "key of a dialect": lambda m: m["summary"].update(dialects=[{**DIALECT, "more": 1}]),
        "shared rows": lambda m: m["summary"].update(shared_rows=0),
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
        ("pairs.arrow", "index"),
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
        ("pairs.arrow", "joint"),
        ("pairs.arrow", "count"),
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
@settings(max_examples=40)
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
