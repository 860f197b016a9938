"""Back up a catalog in SQLite while it runs, and restore it.

SQLite keeps the newest changes in a journal next to the database file, so a copy of the file alone
would miss them. SQLite itself makes a consistent copy.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from aegis.errors import DataError, PolicyError

DATABASE = "catalog.db"
OBJECTS = "objects"
_PRIVATE = 0o600


def backup(database: str, objects: str, folder: Path) -> int:
    """Copy a catalog (an SQLite file and a folder of files) into a new folder; return the number of
    copied files. The catalog may be in use: the copy has every file to which the copied database
    refers. Raise `PolicyError` if the catalog is not stored in files, or the folder exists, and
    `DataError` if there is no catalog, or it cannot be copied.
    """
    _require_files(database, objects)
    if not Path(database).is_file():
        raise DataError(f"There is no catalog {database}.", hint="Name its file with --database.")
    if folder.exists():
        raise PolicyError(f"{folder} exists.", hint="Name a new folder.")
    folder.mkdir(mode=0o700, parents=True)
    try:
        with (
            closing(sqlite3.connect(database)) as source,
            closing(sqlite3.connect(folder / DATABASE)) as target,
        ):
            source.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")
        (folder / DATABASE).chmod(_PRIVATE)
        return _copy(Path(objects), folder / OBJECTS)
    except (sqlite3.Error, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise DataError(
            f"The catalog cannot be copied: {error}.",
            hint="Check the folder, and who may write to it.",
        ) from error


def restore(folder: Path, database: str, objects: str) -> int:
    """Restore a catalog from a backup; return the number of restored files. Raise `PolicyError` if
    a database or folder exists already at the target, or the target is a URL, and `DataError` if
    the folder has no backup, or an incomplete one.
    """
    _require_files(database, objects)
    for path in (Path(database), Path(objects)):
        if path.exists():
            raise PolicyError(f"{path} exists.", hint="Name a path that does not exist yet.")
    copy = folder / DATABASE
    if not copy.is_file():
        raise DataError(
            f"{folder} contains no copy of a catalog.",
            hint="Give a folder that `aegis catalog backup` made.",
        )
    try:
        with closing(sqlite3.connect(copy)) as source:
            integrity = source.execute("PRAGMA integrity_check").fetchone()[0]
            if integrity != "ok":
                raise DataError(f"{copy} is damaged: {integrity}.", hint="Use another copy.")
            with closing(sqlite3.connect(database)) as target:
                source.backup(target)
        Path(database).chmod(_PRIVATE)
        return _copy(folder / OBJECTS, Path(objects))
    except (sqlite3.Error, OSError) as error:
        raise DataError(
            f"The catalog cannot be restored: {error}.",
            hint="Check the path, or use another copy.",
        ) from error


def _require_files(database: str, objects: str) -> None:
    if "://" in database or "://" in objects:
        raise PolicyError(
            "This command copies only a catalog in files.",
            hint="For PostgreSQL, use pg_dump. For objects in S3, use the tools of your store.",
        )


def _copy(source: Path, target: Path) -> int:
    if not source.exists():
        return 0
    shutil.copytree(source, target)
    return sum(1 for path in target.rglob("*") if path.is_file())
