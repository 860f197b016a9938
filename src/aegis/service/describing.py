"""Complete the OpenAPI description of the API with security schemes and error responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

from aegis.service.problems import PROBLEM
from aegis.service.routes import ACTION, PUBLIC

_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token from the page Tokens, or from `aegis catalog token`.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "__Host-aegis_session",
        "description": "The session of a browser; `aegis_session` over plain HTTP on your machine.",
    },
}
_SHAPE = {
    "type": "object",
    "description": "An error (RFC 9457): what was wrong, and what to do.",
    "required": ["type", "status", "title", "detail"],
    "properties": {
        "type": {"type": "string"},
        "status": {"type": "integer"},
        "title": {"type": "string"},
        "detail": {"type": "string"},
        "hint": {"type": "string"},
    },
}
_STATUSES = {
    400: "The service cannot do this as you asked for it.",
    401: "Nobody is signed in, or the session or token has ended.",
    403: "The account, or the scopes of its token, do not allow this; or a form came from another site.",
    404: "It does not exist, or the account may not see it.",
    409: "Its state does not allow this, or somebody changed it meanwhile.",
    413: "The call is larger than allowed.",
    421: "The service has another name.",
    422: "A value does not have the described form.",
    429: "Too many calls in a short time; Retry-After says how long to wait.",
    503: "The database, the store of files or an engine does not answer.",
}


def describe(app: FastAPI) -> None:
    """Add the ways to sign in and all status codes to the application's OpenAPI description."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            _complete(plain())
        return plain()

    app.openapi = described  # type: ignore[method-assign]


def _complete(schema: dict[str, Any]) -> None:
    parts = schema.setdefault("components", {})
    parts["securitySchemes"] = _SCHEMES
    shapes = parts.setdefault("schemas", {})
    shapes["Problem"] = _SHAPE
    for name in ("HTTPValidationError", "ValidationError"):
        shapes.pop(name, None)
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            public = operation[ACTION] == PUBLIC
            operation["security"] = [] if public else [{"token": []}, {"session": []}]
            for status in _statuses(path, method, public=public):
                answer = {"description": _STATUSES[status], "content": content}
                operation["responses"][str(status)] = answer


def _statuses(path: str, method: str, *, public: bool) -> Iterator[int]:
    """Yield the HTTP status codes of a route's errors. A `public` route needs no sign-in."""
    yield from (400, 421, 422, 429, 503)
    if not public:
        yield from (401, 403, 404)
    elif "/session" in path:
        yield from (401, 403)
    elif path.endswith("/password-links"):
        yield 404
    if method == "post":
        yield from (409, 413)
    elif "{" in path:
        yield 409
