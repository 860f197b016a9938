"""Store finished trainings on disk, so that an evaluation can continue after it was killed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import IO, Any

from aegis.errors import DataError
from aegis.papers.evaluation.training import Task, Training
from aegis.words import json_fields


class Store:
    """A file of finished trainings, with one JSON object per line; each is written immediately.

    The key of a training is a hash of everything that determines its result: the masked rows, the
    label, the split, the model with its settings and seed, and the version of scikit-learn. So you
    can use one file for many evaluations. After a change of the table or the policy, old results
    are not used.

    Parameters
    ----------
    path
        The file, which is created when the first training is done; None keeps results in memory.

    Raises
    ------
    DataError
        The file cannot be read or written, or is not a file of trainings. If a killed process left
        an incomplete last line, the store drops this line, without an error.
    """

    def __init__(self, path: str | Path | None) -> None:
        self._path = None if path is None else Path(path)
        self._known: dict[str, dict[str, Any]] = {}
        self._file: IO[bytes] | None = None
        if self._path is not None and self._path.exists():
            self._read(self._path)

    def get(self, task: Task) -> Training | None:
        """Return the finished training of a task; None if it is not in the store."""
        training = self._known.get(task.key)
        if training is None:
            return None
        return Training(
            task.configuration,
            task.model.name,
            task.split,
            training["metrics"],
            training["converged"],
            tuple(training["messages"]),
            training["seconds"],
        )

    def add(self, key: str, training: Training) -> None:
        """Add a finished training, and write it to the file immediately."""
        record = {"key": key, **json_fields(training)}
        self._known[key] = record
        if self._path is None:
            return
        try:
            if self._file is None:
                self._file = self._path.open("ab", buffering=0)
            self._file.write(json.dumps(record).encode() + b"\n")
            os.fsync(self._file.fileno())
        except OSError as error:
            raise DataError(
                f"Cannot write {self._path}: {error.strerror or error}.",
                hint="Check its folder, space and permissions.",
            ) from error

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self, path: Path) -> None:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(
                f"Cannot read {path}: {error.strerror or error}.", hint="Check the path."
            ) from error
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), start=1):
            record = _record(line)
            if record is None:
                raise DataError(
                    f"Line {number} of {path} is not a finished training.",
                    hint="Give the store of an earlier evaluation, or a new file name.",
                )
            self._known[record["key"]] = record
        if len(whole) < len(content):
            if not self._known and not content.startswith(b'{"key"'):
                raise DataError(
                    f"{path} is not a store of finished trainings.",
                    hint="Give the store of an earlier evaluation, or a new file name.",
                )
            with path.open("rb+") as file:
                file.truncate(len(whole))


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    wanted = {"key", "metrics", "converged", "messages", "seconds"}
    return record if isinstance(record, dict) and wanted <= set(record) else None
