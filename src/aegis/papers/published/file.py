"""Store the publisher's data in one file: a ZIP of bundles, with a manifest of names and digests."""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from aegis.errors import AegisError, DataError
from aegis.files import check_output, replacing
from aegis.papers.published.model import Published
from aegis.summary import load_bundle, save_bundle

EXTENSION = ".published"
FORMAT = "aegis-published"
VERSION = 1
PAGE = "published.json"
MOST_BYTES = 4 << 30
"""Largest number of bytes of all bundles together; the size of each bundle is also checked."""
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)


def save_published(published: Published, path: str | Path, *, force: bool = False) -> None:
    """Write the publisher's data to one file; `load_published` reads an equal object from it.

    Raises
    ------
    PolicyError
        The extension is wrong, or the file exists and `force` is not set.
    """
    target = Path(path)
    check_output(target, force=force, formats=(EXTENSION,))
    members: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, summary in enumerate(published.tables.values()):
            file = Path(folder, f"{number}.aegis")
            save_bundle(summary, file)
            members[file.name] = file.read_bytes()
    contents = {
        "format": FORMAT,
        "version": VERSION,
        "tables": {
            name: {"member": member, "sha256": hashlib.sha256(members[member]).hexdigest()}
            for name, member in zip(published.tables, members, strict=True)
        },
        "histograms": {name: dict(rows) for name, rows in published.histograms.items()},
        "mappings": {
            name: {a: {m: list(r) for m, r in values.items()} for a, values in attributes.items()}
            for name, attributes in published.mappings.items()
        },
        "marginal": sorted(published.marginal),
    }
    with replacing(target) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        text = json.dumps(contents, indent=1, sort_keys=False).encode()
        for name, data in {PAGE: text, **members}.items():
            archive.writestr(zipfile.ZipInfo(name, _FIRST_DATE), data)


def load_published(path: str | Path) -> Published:
    """Return the data that `save_published` wrote.

    Raises
    ------
    DataError
        The file is missing, is not a file of published counts, or was changed.
    """
    source = Path(path)
    try:
        with zipfile.ZipFile(source) as archive:
            return _read(source, archive)
    except FileNotFoundError as error:
        raise DataError(f"No such file: {source}.", hint="Check the path.") from error
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        raise DataError(
            f"{source} is not what `aegis publish --masked` wrote: {error}.",
            hint="Make it again from the masked tables.",
        ) from error


def _read(source: Path, archive: zipfile.ZipFile) -> Published:
    sizes = sum(entry.file_size for entry in archive.infolist())
    if sizes > MOST_BYTES or any(e.compress_type != zipfile.ZIP_STORED for e in archive.infolist()):
        raise ValueError("it declares more bytes than are allowed, or is compressed")
    contents: dict[str, Any] = json.loads(archive.read(PAGE))
    if contents.get("format") != FORMAT or contents.get("version") != VERSION:
        raise ValueError(f"format {contents.get('format')!r}, version {contents.get('version')!r}")
    tables = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, said) in enumerate(contents["tables"].items()):
            data = archive.read(said["member"])
            if hashlib.sha256(data).hexdigest() != said["sha256"]:
                raise ValueError(f"the digest of {name} does not fit")
            file = Path(folder, f"{number}.aegis")
            file.write_bytes(data)
            try:
                tables[str(name)] = load_bundle(file)
            except AegisError as error:
                raise ValueError(
                    f"{name}: {error.message.replace(str(file), str(source))}"
                ) from error
    if not tables:
        raise ValueError("it holds no table")
    return Published(
        tables,
        {
            str(a): {str(v): int(n) for v, n in rows.items()}
            for a, rows in contents["histograms"].items()
        },
        {
            str(name): {
                str(a): {str(m): tuple(map(str, raws)) for m, raws in values.items()}
                for a, values in attributes.items()
            }
            for name, attributes in contents["mappings"].items()
        },
        frozenset(map(str, contents.get("marginal", ()))) & frozenset(tables),
    )
