"""The container of a bundle: a ZIP whose manifest lists every member with its size and digest.

A bundle comes from elsewhere and is not trusted. Nothing in it is executed, no more is inflated
than the manifest and the ZIP directory both declare, and every byte that is read is covered by a
SHA-256. The digests show damage and careless edits; they do not show who wrote the bundle.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aegis.errors import DataError
from aegis.files import replacing

FORMAT = "aegis-summary"
VERSION = 2
"""Version of the format; it changes whenever an older reader would misread a bundle."""
MANIFEST = "manifest.json"
MAX_MANIFEST = 64 << 20
"""Most bytes of a manifest."""
MAX_BYTES = 4 << 30
"""Most bytes of all members together, inflated."""
AGAIN = "Make a new one: `aegis summarize TABLE --policy POLICY -o NAME.aegis`."

_FIRST_DATE = (1980, 1, 1, 0, 0, 0)
_CHUNK = 1 << 20
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
    """Return the error for a bundle that is not what was written."""
    return DataError(f"{path} is truncated or was tampered with: {reason}.", hint=AGAIN)


def write_archive(path: Path, content: Mapping[str, Any], members: Mapping[str, bytes]) -> None:
    """Write a bundle, all or nothing; equal content gives equal bytes.

    Parameters
    ----------
    path
        The file to write; an existing one is replaced.
    content
        What the manifest says besides the list of members: JSON values.
    members
        The other members, by name.

    Raises
    ------
    DataError
        The members are too large to be read back, or the file cannot be written.
    """
    total = sum(map(len, members.values()))
    if total > MAX_BYTES:
        raise DataError(
            f"The summary takes {total:,} bytes; a bundle holds at most {MAX_BYTES:,}.",
            hint="Give fewer quasi-identifiers, or coarser candidate masks.",
        )
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "members": {
            name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in members.items()
        },
        "summary": content,
    }
    manifest["digest"] = _digest(manifest)
    text = json.dumps(manifest, sort_keys=True, indent=1).encode()
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, data in {MANIFEST: text, **members}.items():
            entry = zipfile.ZipInfo(name, _FIRST_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # the same bytes on every operating system
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, data)


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return what a bundle's manifest says and its members, checked against the manifest.

    Raises
    ------
    DataError
        The file cannot be read, is no bundle or one of another version, declares more than
        `MAX_BYTES`, or differs from its manifest in any member, size or digest.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _checked(path, archive)
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


def _digest(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a manifest without its own digest."""
    rest = {key: value for key, value in manifest.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _checked(path: Path, archive: zipfile.ZipFile) -> tuple[dict[str, Any], dict[str, bytes]]:
    entries = {entry.filename: entry for entry in archive.infolist()}
    if MANIFEST not in entries:
        raise DataError(f"{path} is not a summary bundle: it has no {MANIFEST}.", hint=AGAIN)
    manifest = _manifest(path, archive, entries.pop(MANIFEST))
    declared = manifest["members"]
    if len(archive.infolist()) != len(entries) + 1 or set(entries) != set(declared):
        raise damaged(path, "its members are not those that its manifest lists")
    total = sum(entry.file_size for entry in entries.values())
    if total > MAX_BYTES:
        raise DataError(
            f"{path} would expand to {total:,} bytes; at most {MAX_BYTES:,} are allowed.",
            hint="If you trust its origin, summarise the table again with fewer quasi-identifiers.",
        )
    for name, entry in entries.items():
        if entry.file_size != declared[name]["size"]:
            raise damaged(path, f"member {name!r} has not the size that the manifest declares")
    members = {}
    for name, entry in entries.items():
        members[name] = _inflate(archive, entry)
        if hashlib.sha256(members[name]).hexdigest() != declared[name]["sha256"]:
            raise damaged(path, f"the digest of member {name!r} does not fit")
    return manifest["summary"], members


def _manifest(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> dict[str, Any]:
    if entry.file_size > MAX_MANIFEST:
        raise damaged(path, f"its manifest declares {entry.file_size:,} bytes")
    manifest = json.loads(_inflate(archive, entry))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(f"{path} is not a summary bundle.", hint=AGAIN)
    version = manifest.get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        raise DataError(
            f"{path} is a bundle of format version {version}; this Aegis reads version {VERSION}.",
            hint="Update Aegis, or summarise again with this one." if newer else AGAIN,
        )
    if manifest.get("digest") != _digest(manifest):
        raise damaged(path, "the digest of its manifest does not fit")
    return manifest


def _inflate(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return a member's bytes, at most as many as the directory declares."""
    if entry.compress_type not in _METHODS:
        raise zipfile.BadZipFile(f"member {entry.filename!r} has an unknown compression")
    parts = []
    left = entry.file_size
    with archive.open(entry) as file:
        while left and (part := file.read(min(left, _CHUNK))):
            parts.append(part)
            left -= len(part)
    if left:
        raise zipfile.BadZipFile(f"member {entry.filename!r} ends too early")
    return b"".join(parts)
