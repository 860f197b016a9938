"""The file store of the catalog: a folder, or an S3-compatible store given by its URL."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from aegis.errors import EngineError
from aegis.service.catalog.errors import NotThere

_PRIVATE = 0o600
_RETRY = timedelta(seconds=20)


class Objects:
    """A file store in which each file has a key: a folder, which is created if it does not exist,
    or a URL that obstore supports (`s3://bucket/prefix`), with a number of `retries` if it does not
    answer.
    """

    def __init__(self, location: str, *, retries: int = 3) -> None:
        self._store: Any
        self._folder: Path | None = None
        if "://" in location:
            try:
                self._store = from_url(
                    location, retry_config={"max_retries": retries, "retry_timeout": _RETRY}
                )
            except (BaseError, ValueError) as error:
                raise EngineError(
                    f"{location} is not the address of a store of files.",
                    hint="Give a folder, or a URL such as s3://bucket/prefix.",
                ) from error
            return
        self._folder = Path(location)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._store = LocalStore(prefix=self._folder)

    def put(self, kind: str, content: bytes) -> tuple[str, str]:
        """Store a file under a new key, which begins with its `kind`; return the key and the
        content's SHA-256.
        """
        digest = hashlib.sha256(content).hexdigest()
        key = f"{kind}/{digest[:2]}/{digest}-{uuid4().hex[:8]}"
        try:
            obstore.put(self._store, key, content)
            if self._folder is not None:
                _keep(self._folder / key)
        except Exception as error:
            raise EngineError(
                f"The store of files did not accept the file: {type(error).__name__}.",
                hint="Check its free space and its permissions.",
            ) from error
        return key, digest

    def get(self, key: str) -> bytes:
        """Return the content of a file; raise `NotThere` if there is no file with this key."""
        with _reading():
            return bytes(obstore.get(self._store, key).bytes())

    def part(self, key: str, start: int, end: int) -> bytes:
        """Return the bytes `start` (included) to `end` (excluded) of a file."""
        with _reading():
            return bytes(obstore.get_range(self._store, key, start=start, end=end))

    def stream(self, key: str) -> Iterator[bytes]:
        """Return the content of a file in pieces; raise `NotThere` at once if there is none with
        this key.
        """
        with _reading():
            opened = obstore.get(self._store, key)
        return _pieces(opened)

    def listed(self) -> Iterator[tuple[str, datetime]]:
        """Yield the key of each file, and its time of creation."""
        with _reading():
            for piece in obstore.list(self._store):
                for matched in piece:
                    yield matched["path"], matched["last_modified"]

    def ping(self) -> None:
        """Check that the store answers and can be written, as far as one can see without writing;
        raise `EngineError` otherwise.
        """
        if self._folder is not None and not self._folder.is_dir():
            raise EngineError(
                "The folder of files does not exist any more.",
                hint="Restore the folder, and check its permissions.",
            )
        if self._folder is not None and not os.access(self._folder, os.W_OK):
            raise EngineError(
                "The service cannot write files: their folder is read-only.",
                hint="Check the rights of the folder, and whether the disk became read-only.",
            )
        with _reading():
            next(iter(obstore.list(self._store, chunk_size=1)), None)

    def delete(self, key: str) -> None:
        """Delete a file, if it exists."""
        with suppress(NotThere), _reading():
            obstore.delete(self._store, key)


def _keep(path: Path) -> None:
    """Make a file readable for its owner only, and make sure that it survives a power failure."""
    path.chmod(_PRIVATE)
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _pieces(opened: Any) -> Iterator[bytes]:
    with _reading():
        for piece in opened.stream(min_chunk_size=1 << 20):
            yield bytes(piece)


@contextmanager
def _reading() -> Iterator[None]:
    """Return a context that turns errors of the file store into `NotThere` and `EngineError`."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotThere("The store does not have the file.", hint="Ask the operator.") from error
    except BaseError as error:
        raise EngineError(
            f"The store of files does not answer: {type(error).__name__}.",
            hint="Try again in a minute.",
        ) from error
