"""Write errors as problem+json (RFC 9457) for programs, and as a page for people."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse

from aegis.errors import AegisError, EngineError, InternalError
from aegis.service.catalog.errors import CatalogError

PROBLEM = "application/problem+json"


def status_of(error: AegisError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, CatalogError):
        return error.status
    if isinstance(error, EngineError):
        return 503
    return 500 if isinstance(error, InternalError) else 422


def problem(status: int, title: str, detail: str, hint: str = "", **more: Any) -> JSONResponse:
    """Return an error response for programs: status, title, detail, and a hint on what to do."""
    body = {"type": "about:blank", "status": status, "title": title, "detail": detail, **more}
    if hint:
        body["hint"] = hint
    return JSONResponse(body, status_code=status, media_type=PROBLEM)


def wants_page(request: Request) -> bool:
    """Return whether the request is a browser's request for a page, not a call of the API."""
    return not request.scope["path"].startswith("/api/")
