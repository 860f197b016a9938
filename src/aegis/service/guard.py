"""What stands before every route: headers, the origin of forms, sizes, rates.

OWASP ASVS 5.0: 3.4 (headers), 3.5 (forms from elsewhere), 2.4 (rates), 5.2 (sizes).
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from threading import Lock

from fastapi import HTTPException, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aegis.catalog.accounts import hash_of
from aegis.service.problems import problem
from aegis.service.settings import Settings

Next = Callable[[Request], Awaitable[Response]]
_SAFE = ("GET", "HEAD", "OPTIONS")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_FORM_BYTES = 8 << 20
_FIELD_BYTES = 16 << 20
"""Bytes of an upload beside its file."""
_COSTS = {
    **dict.fromkeys(("sign-in", "session", "verify", "verification", "costs", "workbench"), 10),
    **dict.fromkeys(("search", "choose", "summary", "run", "retry", "best", "front"), 10),
    **dict.fromkeys(("croissant", "dcat", "datapackage", "draw"), 3),
}
"""How many calls a route counts for, by the last part of its path: what works hard counts for more."""
_SIGNING_IN = ("sign-in", "session", "callback")
_ADDRESS = 20
"""So many callers may share an address."""


@dataclass
class Rates:
    """Calls per minute and caller: a bucket that fills evenly.

    Attributes
    ----------
    calls
        Most calls in a minute.
    """

    calls: int
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def take(self, caller: str, cost: int = 1) -> float:
        """Take what a call costs; return the seconds to wait, 0 where the call may go on."""
        moment = time.monotonic()
        with self._lock:
            left, seen = self._buckets.pop(caller, (float(self.calls), moment))
            left = min(self.calls, left + (moment - seen) * self.calls / 60)
            allowed = left >= cost
            self._buckets[caller] = (left - cost if allowed else left, moment)
            while len(self._buckets) > 10_000:
                self._buckets.popitem(last=False)
        return 0.0 if allowed else (cost - left) * 60 / self.calls


def guard(settings: Settings) -> Callable[[Request, Next], Awaitable[Response]]:
    """Return the middleware of a service."""
    rates = Rates(settings.calls)
    addresses = Rates(settings.calls * _ADDRESS)

    async def run(request: Request, following: Next) -> Response:
        request.state.nonce = secrets.token_urlsafe(16)
        refused = _too_often(request, rates, addresses) or _refused(request, settings)
        response = refused if refused is not None else await following(request)
        _seal(request, response, settings)
        return response

    return run


class BodyLimit:
    """Ends a call whose body is larger than allowed while it comes, whatever it said before.

    Parameters
    ----------
    app
        What answers.
    upload
        Most bytes of a file that an agent hands in.
    """

    def __init__(self, app: ASGIApp, *, upload: int) -> None:
        self._app = app
        self._upload = upload + _FIELD_BYTES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a call."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = self._upload if "/uploads/" in scope["path"] else _FORM_BYTES
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise HTTPException(413, f"More than {most:,} bytes were sent")
            return message

        await self._app(scope, counted, send)


def _too_often(request: Request, rates: Rates, addresses: Rates) -> Response | None:
    """Slow down who calls too often: each caller, and all of one address together.

    Who signs in is known by the address alone: a cookie can be made up anew for each call.
    """
    path = request.url.path
    if path.startswith("/static/"):
        return None
    last = path.rsplit("/", 1)[-1]
    cost = _COSTS.get(last, 1)
    client = request.client.host if request.client is not None else ""
    caller = client if last in _SIGNING_IN else _caller(request) or client
    wait = max(rates.take(caller, cost), addresses.take(client, cost))
    if not wait:
        return None
    answer = problem(429, "TooOften", "Too many calls.", f"Wait {wait:.0f} seconds.")
    answer.headers["Retry-After"] = str(int(wait) + 1)
    return answer


def _refused(request: Request, settings: Settings) -> Response | None:
    if request.url.hostname not in _hosts(settings):
        return problem(421, "WrongHost", "This service has another name.", settings.origin)
    if request.method not in _SAFE and not _from_here(request, settings):
        return problem(
            403, "ForeignForm", "The call comes from another site.", "Use the service's own pages."
        )
    length = request.headers.get("content-length", "0")
    is_upload = "/uploads/" in request.url.path
    if not is_upload and length.isdecimal() and int(length) > _FORM_BYTES:
        return problem(413, "TooLarge", f"The call has {length} bytes.", f"At most {_FORM_BYTES}.")
    return None


def _hosts(settings: Settings) -> set[str]:
    named = settings.origin.split("://", 1)[1].rsplit(":", 1)[0].strip("[]").lower()
    return {named, "127.0.0.1", "localhost", "testserver"} if not settings.secure else {named}


def _from_here(request: Request, settings: Settings) -> bool:
    """Return whether a call that changes something comes from our own pages, or from a program.

    A browser tells where a form stands by Sec-Fetch-Site and Origin; programs send neither, and
    carry a token in place of a cookie.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    if origin is None:
        return site is not None or "authorization" in request.headers or not request.cookies
    own = {settings.origin, f"{request.url.scheme}://{request.headers.get('host', '')}"}
    return origin in own


def _caller(request: Request) -> str:
    key = request.headers.get("authorization") or request.headers.get("cookie")
    return hash_of(key) if key else ""


def _seal(request: Request, response: Response, settings: Settings) -> None:
    """Set the headers that keep pages to themselves."""
    response.headers.update(_HEADERS)
    response.headers["Content-Security-Policy"] = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    if not request.url.path.startswith("/static/"):
        response.headers["Cache-Control"] = "no-store"
    if settings.secure:
        response.headers["Strict-Transport-Security"] = "max-age=31536000"
