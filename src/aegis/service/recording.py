"""Record each answered call: count it for `/metrics`, and write a line to the access log.

The line contains the caller and the path. It contains no query, body or answer, because these might
contain values of rows.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aegis.errors import PolicyError
from aegis.service.metrics import CallMetrics

STANDARD_OUTPUT = "-"
_API = "/api/v1"
"""Prefix of API paths, which the routes of the API do not include."""
_LONGEST = 200
"""Largest number of characters of a path in a line."""


class Recorder:
    """ASGI middleware that counts every call, and writes it to `log` as a line of JSON."""

    def __init__(self, app: ASGIApp, *, metrics: CallMetrics, log: AccessLog | None) -> None:
        self._app = app
        self._metrics = metrics
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a call on, and record status, duration and size of the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, sent, begun = 500, 0, time.perf_counter()

        async def counted(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            seconds = time.perf_counter() - begun
            self._metrics.count(scope["method"], route_of(scope), status, seconds)
            if self._log is not None:
                self._write(scope, status, seconds, sent)

    def _write(self, scope: Scope, status: int, seconds: float, sent: int) -> None:
        client = scope.get("client")
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "address": None if client is None else client[0],
            "account": scope.get("state", {}).get("account"),
            "method": scope["method"],
            "path": scope["path"][:_LONGEST],
            "status": status,
            "seconds": round(seconds, 4),
            "bytes": sent,
        }
        assert self._log is not None
        with suppress(OSError, ValueError):  # a log that is full or closed stops no call
            self._log.write(json.dumps(line) + "\n")


def route_of(scope: Scope) -> str:
    """Return the path of a call's route, with the names of its parameters instead of their values."""
    route: Any = scope.get("route")
    if route is None:
        return "none"
    path = str(route.path)
    room = scope["path"][: len(_API)]
    return f"{_API}{path}" if room == _API and not path.startswith(_API) else path


@dataclass(frozen=True)
class AccessLog:
    """The file to which the access log is written; None for standard output. The file is opened for
    each line, so you can move it at any moment.
    """

    file: Path | None

    @classmethod
    def at(cls, path: str | None) -> AccessLog | None:
        """Return the access log for a path, or for standard output if the path is "-"; None for no
        log. Raise `PolicyError` if the file cannot be written.
        """
        if path is None or path == STANDARD_OUTPUT:
            return None if path is None else cls(None)
        log = cls(Path(path))
        try:
            log.write("")
        except OSError as error:
            raise PolicyError(
                f"The access log {path} cannot be written: {error.strerror}.",
                hint="Give a file in a folder that you may write, or - for standard output.",
            ) from error
        return log

    def write(self, text: str) -> None:
        """Append a text in a single write."""
        if self.file is None:
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with os.fdopen(os.open(self.file, flags, 0o600), "a", encoding="utf-8") as file:
            file.write(text)
