"""Write and read the container of a bundle: a ZIP file with a manifest of sizes and digests, whose
members store arrays.

A bundle may come from anybody, so Aegis does not trust it and executes nothing in it. Aegis
decompresses no more bytes than the manifest and the ZIP directory both declare, and checks the
SHA-256 digest of everything that it reads. The digests reveal damage and careless edits. If the
manifest is signed, the signature shows who wrote the bundle.

A member is an Arrow IPC stream with a table of one row whose columns are lists, because the arrays
have different lengths. Equal arrays give equal bytes. So the position of a null is stored
separately: Arrow does not define the bytes at a null, nor the unused bits of a validity bitmap.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.errors import DataError, InternalError
from aegis.files import replacing
from aegis.signing import PrivateKey, PublicKey, Signature, seal, sealed_digest, verify_seal

FORMAT = "aegis-summary"
VERSION = 6
"""The version of the format. It changes whenever an older reader would misread a bundle."""
OF_NUMBER = 5
"""The version of a bundle with one numeric label."""
OF_CLASSES = 4
"""The version of a bundle with one label of classes and without weights; such a bundle uses nothing
of later versions.
"""
READABLE = (3, 4, 5, 6)
"""The versions that Aegis reads. A bundle of version 3 does not contain the rule under which the
summary was made.
"""
MANIFEST = "manifest.json"
MAX_MANIFEST = 32 << 20
"""Largest size of a manifest, in bytes."""
MAX_PARTS = 2_000_000
"""Largest number of keys and values in a manifest, because each becomes an object in memory."""
MAX_DIRECTORY = 4 << 20
"""Largest size of the ZIP directory, in bytes."""
MAX_BYTES = 4 << 30
"""Largest size of all members together after decompression, in bytes."""
MAX_RATIO = 100
"""Largest ratio of the decompressed size, beyond `FREE_BYTES`, to the size of the file."""
FREE_BYTES = 64 << 20
"""Number of bytes that a bundle may have after decompression, whatever the size of the file."""
AGAIN = "Make a new one: `aegis summarize TABLE --policy POLICY -o NAME.aegis`."

_FIRST_DATE = (1980, 1, 1, 0, 0, 0)
_CHUNK = 1 << 20
_LEVEL = 4
"""How hard a bundle is compressed, from 1 to 9. Compared with the default of 6, its counts take a
third of the time and 8 % more bytes.
"""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    OverflowError,
    RecursionError,
    NotImplementedError,
    RuntimeError,
)
"""What `zipfile` and `json` raise on bytes that are not what they should be."""


def damaged(path: Path, reason: str) -> DataError:
    """Return the error to raise if a bundle (a summary in a file) is damaged, for this reason."""
    return DataError(f"{path} is truncated or was tampered with: {reason}.", hint=AGAIN)


def write_archive(
    path: Path,
    content: Mapping[str, Any],
    members: Mapping[str, bytes],
    key: PrivateKey | None = None,
) -> None:
    """Write a bundle (a ZIP file of a JSON manifest and other members) to a file, replacing an
    existing one; if this fails, leave no part of it. Equal content gives equal bytes. `content` is
    the manifest without its list of members. If `key` signs it, the signature covers the members,
    too, by their digests.

    Raises
    ------
    DataError
        The members are so large that Aegis could not read them back, or the file cannot be written.
    """
    total = sum(map(len, members.values()))
    if total > MAX_BYTES:
        raise DataError(
            f"The summary takes {total:,} bytes; a bundle holds at most {MAX_BYTES:,}.",
            hint="Give fewer quasi-identifiers, or coarser candidate masks.",
        )
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": _version(content),
        "members": {
            name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in members.items()
        },
        "summary": content,
    }
    manifest = seal(manifest, key)
    text = json.dumps(manifest, sort_keys=True, indent=1).encode()
    if len(text) > MAX_MANIFEST:
        raise DataError(
            f"The summary's masks and names take {len(text):,} bytes; a bundle holds at most "
            f"{MAX_MANIFEST:,} of them.",
            hint="Give fewer or shorter masks.",
        )
    with replacing(path, private=True) as temporary:  # exact counts are nearly rows
        _write(temporary, {MANIFEST: text, **members}, zipfile.ZIP_DEFLATED)
        if total > FREE_BYTES + MAX_RATIO * temporary.stat().st_size:
            # Nearly nothing but zeros: compressed, it would be taken for a bomb.
            _write(temporary, {MANIFEST: text, **members}, zipfile.ZIP_STORED)


def _version(content: Mapping[str, Any]) -> int:
    """Return the lowest format version with which readers understand the manifest of a bundle."""
    if "labels" in content or "weights" in content:
        return VERSION
    return OF_NUMBER if "unit" in content.get("label", {}) else OF_CLASSES


def _write(path: Path, members: Mapping[str, bytes], compression: int) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name, _FIRST_DATE)
            entry.compress_type = compression
            entry.create_system = 3  # the same bytes on every operating system
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, data, compresslevel=_LEVEL)


class _Guarded(io.FileIO):
    """A file that refuses to read too many bytes at once: `zipfile` reads the directory of a ZIP
    file in one call, and the file itself declares its size.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        """Read up to `size` bytes; raise an error if that is too many."""
        if size is not None and size > MAX_DIRECTORY:
            raise zipfile.BadZipFile(f"its directory declares {size:,} bytes")
        return super().read(-1 if size is None else size) or b""


@dataclass(frozen=True)
class Archive:
    """An open bundle whose manifest has been checked; `content` are its entries about the summary."""

    path: Path
    content: Any
    _zip: zipfile.ZipFile
    _declared: Mapping[str, Any]

    def members(self, expected: set[str]) -> dict[str, pa.Buffer]:
        """Return the content of each member by name, after comparing its digest with the manifest.

        Raises
        ------
        ValueError
            The manifest does not list exactly the expected members.
        DataError
            A member differs from the manifest in its digest.
        """
        declared = set(self._declared)
        if declared != expected:
            odd = min(declared ^ expected)
            problem = "is missing" if odd in expected else "is referred to by nothing"
            raise ValueError(f"member {odd!r} {problem}")
        checked = {}
        for name in sorted(declared):
            data = _inflate(self._zip, self._zip.getinfo(name))
            if hashlib.sha256(data).hexdigest() != self._declared[name]["sha256"]:
                raise damaged(self.path, f"the digest of member {name!r} does not fit")
            checked[name] = pa.py_buffer(data)
        return checked


@contextmanager
def open_archive(path: Path, key: PublicKey | None = None) -> Iterator[Archive]:
    """Open a bundle and check its manifest, and its signature if `key` is given. Each member is
    decompressed when it is first used.

    Raises
    ------
    DataError
        The file cannot be read, is not a bundle, or has another version. Or it declares more bytes
        than `MAX_BYTES`, than its size can explain, or than the free memory. Or it differs from its
        manifest, or is not signed with the key.
    """
    try:
        with _Guarded(path) as file, zipfile.ZipFile(file) as archive:
            yield _checked(path, archive, key)
    except FileNotFoundError as error:
        raise DataError(f"No such file: {path}.", hint="Check the path.") from error
    except _BROKEN as error:
        if not _looks_zipped(path):
            raise DataError(f"{path} is not a summary bundle.", hint=AGAIN) from error
        raise damaged(path, str(error).rstrip(".") or type(error).__name__) from error
    except OSError as error:
        raise DataError(
            f"Cannot read {path}: {error.strerror or error}.", hint="Check path and permissions."
        ) from error


def _looks_zipped(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _checked(path: Path, archive: zipfile.ZipFile, key: PublicKey | None) -> Archive:
    entries = {entry.filename: entry for entry in archive.infolist()}
    if MANIFEST not in entries:
        raise DataError(f"{path} is not a summary bundle: it has no {MANIFEST}.", hint=AGAIN)
    manifest = _manifest(path, archive, entries.pop(MANIFEST))
    _check_signature(path, manifest, key)
    declared = manifest["members"]
    if len(archive.infolist()) != len(entries) + 1 or set(entries) != set(declared):
        raise damaged(path, "its members are not those that its manifest lists")
    for name, entry in entries.items():
        if entry.file_size != declared[name]["size"]:
            raise damaged(path, f"member {name!r} has not the size that the manifest declares")
    total = sum(entry.file_size for entry in entries.values())
    size = path.stat().st_size
    if total > MAX_BYTES or total > FREE_BYTES + MAX_RATIO * size:
        most = min(MAX_BYTES, FREE_BYTES + MAX_RATIO * size)
        raise DataError(
            f"{path} has {size:,} bytes and would expand to {total:,}; at most {most:,} are "
            "allowed.",
            hint="If you trust its origin, summarise the table again with fewer quasi-identifiers.",
        )
    free = free_memory()
    if free is not None and 2 * total > free:
        raise DataError(
            f"{path} expands to {total:,} bytes and takes up to twice as many to check; "
            f"{free:,} are free.",
            hint="Load it on a machine with more memory.",
        )
    return Archive(path, manifest.get("summary"), archive, declared)


def free_memory() -> int | None:
    """Return how many bytes of memory are free; None if the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    sizes = dict(line.split(":", 1) for line in lines)
    words = sizes.get("MemAvailable", "").split()
    return int(words[0]) * 1024 if words else None


def _check_signature(path: Path, manifest: Mapping[str, Any], key: PublicKey | None) -> None:
    if key is None:
        return
    if "signature" not in manifest:
        raise DataError(
            f"{path} is not signed.",
            hint="Ask its maker for one made with `aegis summarize ... --sign KEY`.",
        )
    signature = Signature.of(manifest["signature"])
    if signature.key != key.text:
        raise DataError(
            f"{path} is signed with the key {signature.key}, not with that of {key.origin} "
            f"({key.text}).",
            hint="Ask its maker for the public key on a channel that you trust.",
        )
    if not verify_seal(manifest, signature, key):
        raise DataError(
            f"The signature of {path} does not fit its content.",
            hint="It was changed after it was signed: ask its maker for another one.",
        )


def _manifest(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> dict[str, Any]:
    if entry.file_size > MAX_MANIFEST:
        raise damaged(path, f"its manifest declares {entry.file_size:,} bytes")
    text = _inflate(archive, entry)
    parts = sum(text.count(mark) for mark in (b",", b"[", b"{"))
    if parts > MAX_PARTS:
        raise damaged(path, f"its manifest has {parts:,} entries")
    manifest = json.loads(text)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(f"{path} is not a summary bundle.", hint=AGAIN)
    version = manifest.get("version")
    if version not in READABLE:
        newer = isinstance(version, int) and version > VERSION
        raise DataError(
            f"{path} is a bundle of format version {version}; this Aegis reads versions "
            f"{READABLE[0]} to {VERSION}.",
            hint="Update Aegis, or summarise again with this one." if newer else AGAIN,
        )
    if manifest.get("digest") != sealed_digest(manifest):
        raise damaged(path, "the digest of its manifest does not fit")
    members = manifest.get("members")
    if not isinstance(members, dict) or any(
        not isinstance(facts, dict) or facts.keys() != {"size", "sha256"}
        for facts in members.values()
    ):
        raise damaged(path, "its manifest does not say size and digest of every member")
    return manifest


def _inflate(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytearray:
    """Decompress a file in a ZIP, up to its declared size; memory is allocated as bytes arrive."""
    if entry.compress_type not in _METHODS:
        raise zipfile.BadZipFile(f"member {entry.filename!r} has an unknown compression")
    data = bytearray()
    with archive.open(entry) as file:
        while len(data) < entry.file_size:
            part = file.read(min(entry.file_size - len(data), _CHUNK))
            if not part:
                raise zipfile.BadZipFile(f"member {entry.filename!r} ends too early")
            data += part
    return data


_NULL = ":null"
_COMPRESSION = 3
"""Place of `compression` among the fields of a RecordBatch (Arrow format, Message.fbs)."""
_HEADER = 2
"""Place of `header` among the fields of a Message."""


def pack(columns: Mapping[str, Any]) -> bytes:
    """Return named arrays (NumPy arrays of one dimension, or Arrow arrays with at most one null) as
    the bytes of one Arrow IPC stream.
    """
    stored: dict[str, pa.Array] = {}
    for name, column in columns.items():
        array = column if isinstance(column, pa.Array) else pa.array(column)
        if not _plain(array.type):
            raise InternalError(f"{name!r} has type {array.type}, which a bundle cannot hold.")
        if array.null_count > 1:
            raise InternalError(f"{name!r} is not an array of distinct values: null occurs twice.")
        if array.null_count:
            position = pc.index(pc.is_null(array), True).as_py()
            stored[name + _NULL] = _one_row(pa.array([position], pa.int64()))
            array = array.drop_null()
        if pa.types.is_boolean(array.type):
            array = pa.array(array.to_pylist(), pa.bool_())
        stored[name] = _one_row(array)
    batch = pa.record_batch(list(stored.values()), names=list(stored))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpack(data: bytes | pa.Buffer) -> dict[str, pa.Array]:
    """Return the arrays in the bytes that `pack` wrote; they share the memory of `data`.

    Raises
    ------
    ValueError
        The bytes are not such a stream, or have compressed buffers, which could expand to any size.
    """
    messages = pa.ipc.MessageReader.open_stream(pa.py_buffer(data))
    kinds = messages.read_next_message(), messages.read_next_message()
    if [message.type for message in kinds] != ["schema", "record batch"]:
        raise ValueError("it holds no plain record batch")
    if _compressed(kinds[1].metadata):
        raise ValueError("it holds a compressed record batch")
    # Only the stream reader checks a schema that may be damaged; reading messages one by one
    # could follow a pointer into nowhere.
    reader = pa.ipc.open_stream(pa.py_buffer(data))
    for field in reader.schema:
        if not pa.types.is_large_list(field.type) or not _plain(field.type.value_type):
            raise ValueError(f"it holds a column of type {field.type}")
    batch = reader.read_next_batch()
    if batch.num_rows != 1:
        raise ValueError("it does not have exactly one row")
    batch.validate(full=True)
    arrays = {name: batch.column(name).flatten() for name in batch.schema.names}
    return {
        name: _with_null(array, arrays.get(name + _NULL))
        for name, array in arrays.items()
        if not name.endswith(_NULL)
    }


def _plain(dtype: pa.DataType) -> bool:
    """Return whether an array of this type needs memory for each value, so that a small file cannot
    contain a long array.
    """
    return any(
        holds(dtype)
        for holds in (
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_decimal,
            pa.types.is_boolean,
            pa.types.is_date,
            pa.types.is_timestamp,
            pa.types.is_string,
            pa.types.is_large_string,
        )
    )


def _one_row(array: pa.Array) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)


def _with_null(array: pa.Array, position: pa.Array | None) -> pa.Array:
    if position is None:
        return array
    index = position[0].as_py()
    return pa.concat_arrays([array[:index], pa.nulls(1, array.type), array[index:]])


def numbers(array: pa.Array, dtype: type[np.integer[Any]]) -> Any:
    """Convert an Arrow array of integers of the type `dtype` to NumPy; raise `ValueError` for
    another type.
    """
    integers = array.to_numpy(zero_copy_only=False)
    if integers.dtype != np.dtype(dtype):
        raise ValueError(f"an array holds {integers.dtype} in place of {np.dtype(dtype)}")
    return integers


def _compressed(metadata: pa.Buffer) -> bool:
    """Return whether the metadata of a record batch (a flatbuffer) declares compressed buffers."""
    data = metadata.to_pybytes()
    header = _field(data, struct.unpack_from("<I", data, 0)[0], _HEADER)
    if header is None:
        raise ValueError("a message has no header")
    batch = header + struct.unpack_from("<I", data, header)[0]
    return _field(data, batch, _COMPRESSION) is not None


def _field(data: bytes, table: int, index: int) -> int | None:
    """Return the offset of field `index` of the flatbuffer table at `table`; None if unset."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, vtable)[0]
    slot = 4 + 2 * index
    offset = struct.unpack_from("<H", data, vtable + slot)[0] if slot < size else 0
    return table + offset if offset else None
