"""Check headers, origin of forms, size and rate of each call before it reaches a route.

See OWASP ASVS 5.0: 3.4 (headers), 3.5 (forms from other sites), 2.4 (rates), 5.2 (sizes).
"""

from __future__ import annotations

from fastapi import HTTPException, Request
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aegis.service.catalog.accounts import hash_of
from aegis.service.catalog.guessing import network_of
from aegis.service.identity import secret_of
from aegis.service.problems import problem
from aegis.service.rates import Rates
from aegis.service.settings import ServiceSettings

_SAFE = ("GET", "HEAD", "OPTIONS")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
}
_UPLOADS = "/api/v1/uploads/"
"""Start of the paths whose bodies contain a file."""
_FORM_BYTES = 8 << 20
_SIGN_IN_BYTES = 64 << 10
"""Number of bytes of a call that anybody may make: signing in, or setting a password by a link."""
_FIELD_BYTES = 16 << 20
"""Number of bytes of an upload that are allowed in addition to its file."""
_EXPENSIVE = (
    "sign-in oidc callback session code set-password password-links password second-factor recovery verify "
    "verification costs workbench search choose summary run retry best front events export"
)
_COSTS = {
    **dict.fromkeys(_EXPENSIVE.split(), 10),
    **dict.fromkeys(("croissant", "dcat", "datapackage", "draw"), 3),
}
"""Number of calls that a route counts for, by the last part of its path; expensive routes count more."""
_SIGNING_IN = frozenset(
    [
        "/sign-in",
        "/sign-in/oidc",
        "/sign-in/callback",
        "/sign-in/code",
        "/set-password",
        "/api/v1/session",
        "/api/v1/password-links",
    ]
)
"""Paths that anybody may call, and that lead to a session or a password."""
_ADDRESS = 20
"""Number of callers that may share an address."""


class Guard:
    """ASGI middleware that checks every call before it reaches a route, and ends a call once its
    body exceeds the allowed size: `upload` bytes for a file that an agent uploads.
    """

    def __init__(self, app: ASGIApp, *, settings: ServiceSettings, upload: int) -> None:
        self._app = app
        self._upload = upload + _FIELD_BYTES
        self._settings = settings
        self._hosts = _hosts(settings)
        callers, addresses = settings.shared or (None, None)
        self._rates = Rates(settings.calls, callers)
        self._addresses = Rates(settings.calls * _ADDRESS, addresses)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a call that fails a check; otherwise pass it on, and set security headers on the
        response.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        most = self._upload if scope["path"].startswith(_UPLOADS) else _most_bytes(scope["path"])
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                raise HTTPException(413, f"More than {most:,} bytes were sent")
            return message

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                seal(MutableHeaders(scope=message), scope["path"], self._settings)
            await send(message)

        refused = self._too_often(request) or _refused(request, self._settings, self._hosts)
        await (self._app if refused is None else refused)(scope, counted, sealed)

    def _too_often(self, request: Request) -> Response | None:
        """Return an error response if the caller or its address makes too many calls; else None.

        Calls that sign in are counted by address alone, all others by token or session.
        """
        path = request.scope["path"]  # not of `request.url`, of which the header Host is a part
        if path.startswith("/static/"):
            return None
        checks = b"verify=" in request.scope.get("query_string", b"")  # the page of the log
        last = "verify" if checks else path.rsplit("/", 1)[-1]
        cost = _COSTS.get(last, 1)
        client = network_of(request.client.host) if request.client is not None else ""
        secret = "" if path in _SIGNING_IN else secret_of(request, self._settings)
        caller = hash_of(secret) if secret else client
        wait = max(self._rates.take(caller, cost), self._addresses.take(client, cost))
        if not wait:
            return None
        answer = problem(429, "TooOften", "Too many calls.", f"Wait {wait:.0f} seconds.")
        answer.headers["Retry-After"] = str(int(wait) + 1)
        return answer


def _refused(request: Request, settings: ServiceSettings, hosts: frozenset[str]) -> Response | None:
    if request.url.hostname not in hosts:
        return problem(421, "WrongHost", "This service has another host name.", settings.origin)
    if request.method not in _SAFE and not _from_here(request, settings):
        return problem(
            403, "ForeignForm", "The call comes from another site.", "Use the service's own pages."
        )
    if "\0" in request.scope["path"] or b"%00" in request.scope.get("query_string", b""):
        return problem(400, "Invalid", "The address has a NUL character.", "Leave it out.")
    length, most = request.headers.get("content-length", "0"), _most_bytes(request.scope["path"])
    is_upload = request.scope["path"].startswith(_UPLOADS)
    if not is_upload and length.isdecimal() and int(length) > most:
        return problem(413, "TooLarge", f"The call has {length} bytes.", f"At most {most}.")
    return None


def _most_bytes(path: str) -> int:
    """Return the largest number of bytes of a call of `path` that uploads no file."""
    return _SIGN_IN_BYTES if path in _SIGNING_IN else _FORM_BYTES


def _hosts(settings: ServiceSettings) -> frozenset[str]:
    named = settings.origin.split("://", 1)[1].rsplit(":", 1)[0].strip("[]").lower()
    local = () if settings.secure else ("127.0.0.1", "localhost")
    return frozenset((named, *local))


def _from_here(request: Request, settings: ServiceSettings) -> bool:
    """Return whether a call that changes something comes from our own pages or from a program.

    Browsers send the headers Sec-Fetch-Site and Origin with a form. Programs send neither, and use
    a token instead of a cookie.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    if origin is None:
        return site is not None or "authorization" in request.headers or not request.cookies
    host = f"{request.url.scheme}://{request.headers.get('host', '')}"
    return origin in (settings.origin, host)


def seal(headers: MutableHeaders, path: str, settings: ServiceSettings) -> None:
    """Set the security headers of a response, for example those that forbid other sites to embed
    the pages of the service.
    """
    headers.update(_HEADERS)
    if not path.startswith("/static/"):
        headers["Cache-Control"] = "no-store"
    if settings.secure:
        headers["Strict-Transport-Security"] = "max-age=31536000; includeSubDomains"
