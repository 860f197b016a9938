"""Make folders for temporary files. Their names contain the process, so that leftovers can be
removed.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from aegis.files import recording, runs

_NAME = re.compile(r"aegis-[a-z]+-(?P<machine>[0-9a-f]{8})-(?P<process>[0-9]+)(-.*)?")


@contextmanager
def temporary_folder(purpose: str, parent: Path | None = None) -> Iterator[Path]:
    """Yield a new folder for temporary files, and remove the folder when the context ends.

    `aegis.files.recording` does not list the files in the folder. If a process was killed, its
    folder remains in `parent`. This function removes such folders, because they may contain rows.

    Parameters
    ----------
    purpose
        A word in lower case that becomes part of the folder's name.
    parent
        The folder in which the new folder is made; by default, the system's folder for temporary
        files.
    """
    place = Path(tempfile.gettempdir()) if parent is None else parent
    remove_abandoned(place)
    prefix = f"{name_for(purpose)}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=place) as folder, recording():
        yield Path(folder)


def name_for(purpose: str) -> str:
    """Return the name of the folder that this process uses for the given purpose."""
    return f"aegis-{purpose}-{_machine()}-{os.getpid()}"


@cache
def remove_abandoned(parent: Path) -> None:
    """Remove the temporary folders in `parent` whose processes no longer run. Each process does
    this only once.
    """
    for folder in abandoned(parent):
        shutil.rmtree(folder, ignore_errors=True)


def abandoned(parent: Path) -> list[Path]:
    """Return the temporary folders in `parent` of processes of this machine that no longer run.

    Folders of other users are included only if this process may remove them.
    """
    try:
        with os.scandir(parent) as entries:
            folders = [entry for entry in entries if _is_abandoned(entry)]
    except OSError:  # a folder that cannot be looked into may still take files
        return []
    return sorted(Path(folder.path) for folder in folders)


def _is_abandoned(entry: os.DirEntry[str]) -> bool:
    name = _NAME.fullmatch(entry.name)
    if name is None or name["machine"] != _machine() or runs(int(name["process"])):
        return False
    try:
        owner = entry.stat(follow_symlinks=False).st_uid
        mine = not hasattr(os, "geteuid") or os.geteuid() in (0, owner)
        return mine and entry.is_dir(follow_symlinks=False)
    except FileNotFoundError:  # another process was faster
        return False


@cache
def _machine() -> str:
    """Return an identifier of this machine or container, as several may share a folder.

    Process numbers show which processes still run only within the same system.
    """
    try:
        numbered_by = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        numbered_by = 0
    return hashlib.sha256(f"{platform.node()} {numbered_by}".encode()).hexdigest()[:8]
