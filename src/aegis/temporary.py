"""Folders for temporary files, named after their process, so that those of killed processes are
found and removed.
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
    """Yield a folder for temporary files, which is gone afterwards.

    What is made in it is not noted as made. What processes that were killed had left next to it is
    removed: rows that nobody asked for.

    Parameters
    ----------
    purpose
        What it is for, in small letters, for its name.
    parent
        Where it is made; the system's folder for temporary files unless given.
    """
    place = Path(tempfile.gettempdir()) if parent is None else parent
    remove_abandoned(place)
    prefix = f"{name_for(purpose)}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=place) as folder, recording():
        yield Path(folder)


def name_for(purpose: str) -> str:
    """Return the name of a folder of this process."""
    return f"aegis-{purpose}-{_machine()}-{os.getpid()}"


@cache
def remove_abandoned(parent: Path) -> None:
    """Remove the folders of processes that no longer run; looked for once by each process."""
    for folder in abandoned(parent):
        shutil.rmtree(folder, ignore_errors=True)


def abandoned(parent: Path) -> list[Path]:
    """Return the folders of processes of this machine that no longer run.

    Those of other users are left alone, except by who may remove all.
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
    """Return what distinguishes this machine from others, and containers, that share a folder with it.

    Numbers of processes say which still run only where they are given by the same system.
    """
    try:
        numbered_by = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        numbered_by = 0
    return hashlib.sha256(f"{platform.node()} {numbered_by}".encode()).hexdigest()[:8]
