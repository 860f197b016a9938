"""A PostgreSQL server of the tests' own, where its programs are installed."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus
from uuid import uuid4

import pytest

from aegis.files import name_for, remove_abandoned

PASSWORD = "pa:ss/w%rd"


@dataclass(frozen=True)
class Server:
    """A running server."""

    programs: Path
    folder: Path
    user: tuple[int, int] | None
    port: int

    @property
    def url(self) -> str:
        return f"postgres://aegis:{quote_plus(PASSWORD)}@127.0.0.1:{self.port}/postgres"

    def new_database(self) -> str:
        """Make an empty database; return its address."""
        import psycopg

        name = f"of_{uuid4().hex}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"{self.url.removesuffix('postgres')}{name}"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off -k {self.folder}"
        self.control("-o", options, "-l", self.folder / "log", "-w", "start")

    def stop(self) -> None:
        """Have it drop what it does, as in a crash."""
        self.control("-m", "immediate", "-w", "stop")

    def control(self, *words: object) -> None:
        _run([self.programs / "pg_ctl", "-D", self.folder / "data", *words], self.user)


@contextmanager
def server() -> Iterator[Server]:
    pytest.importorskip(
        "psycopg",
        exc_type=ImportError,
        reason="psycopg is not installed: pip install '.[postgres]'",
    )
    programs = _programs()
    remove_abandoned(Path(tempfile.gettempdir()))  # a server without its folder ends by itself
    folder = Path(tempfile.mkdtemp(prefix=f"{name_for('postgres')}-"))
    user = _user()
    if user is not None:
        os.chown(folder, *user)
    try:
        secret = folder / "secret"
        secret.write_text(PASSWORD, encoding="utf-8")
        if user is not None:
            os.chown(secret, *user)
        _run(
            [
                programs / "initdb",
                "-D",
                folder / "data",
                "-U",
                "aegis",
                "--pwfile",
                secret,
                "-E",
                "UTF8",
                "--auth=scram-sha-256",
                "--locale=C.UTF-8",
                "--no-sync",
            ],
            user,
        )
        made = Server(programs, folder, user, _free_port())
        made.start()
        try:
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    pytest.skip(
        "no PostgreSQL server is installed: initdb and pg_ctl are missing (Debian: postgresql)"
    )


def _user() -> tuple[int, int] | None:
    """Return another user to run the server as, which refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return entry.pw_uid, entry.pw_gid
    pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody")


def _run(words: list[object], user: tuple[int, int] | None) -> None:
    account: dict[str, Any] = {}
    if user is not None and shutil.which("setpriv"):
        # Python copies its whole address space to start a process as another user, which fails where
        # other tests have reserved more than the machine has.
        words = ["setpriv", f"--reuid={user[0]}", f"--regid={user[1]}", "--clear-groups", *words]
    elif user is not None:
        account = {"user": user[0], "group": user[1], "extra_groups": []}
    subprocess.run(
        [str(word) for word in words],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        **account,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
