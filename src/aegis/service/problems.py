"""Write errors as problem+json (RFC 9457) for programs, and as a page for people."""

from __future__ import annotations

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


def problem(status: int, title: str, detail: str, hint: str = "") -> JSONResponse:
    """Return an error response for programs: status, title, detail, and a hint on what to do."""
    body = {"type": "about:blank", "status": status, "title": title, "detail": detail}
    if hint:
        body["hint"] = hint
    return JSONResponse(body, status_code=status, media_type=PROBLEM)
