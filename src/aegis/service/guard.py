"""What stands before every route: headers, the origin of forms, sizes, rates.

OWASP ASVS 5.0: 3.4 (headers), 3.5 (forms from elsewhere), 2.4 (rates).
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from threading import Lock

from fastapi import Request
from starlette.responses import Response

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

    def take(self, caller: str) -> float:
        """Take one call; return the seconds to wait, 0 where the call may go on."""
        moment = time.monotonic()
        with self._lock:
            left, seen = self._buckets.pop(caller, (float(self.calls), moment))
            left = min(self.calls, left + (moment - seen) * self.calls / 60)
            allowed = left >= 1
            self._buckets[caller] = (left - 1 if allowed else left, moment)
            while len(self._buckets) > 10_000:
                self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) * 60 / self.calls


def guard(settings: Settings) -> Callable[[Request, Next], Awaitable[Response]]:
    """Return the middleware of a service."""
    rates = Rates(settings.calls)

    async def run(request: Request, following: Next) -> Response:
        request.state.nonce = secrets.token_urlsafe(16)
        refused = _refused(request, settings, rates)
        response = refused if refused is not None else await following(request)
        _seal(request, response, settings)
        return response

    return run


def _refused(request: Request, settings: Settings, rates: Rates) -> Response | None:
    wait = 0.0 if request.url.path.startswith("/static/") else rates.take(_caller(request))
    if wait:
        answer = problem(429, "TooOften", "Too many calls.", f"Wait {wait:.0f} seconds.")
        answer.headers["Retry-After"] = str(int(wait) + 1)
        return answer
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
    client = request.client.host if request.client is not None else ""
    return hash_of(key) if key else client


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
