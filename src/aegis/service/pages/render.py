"""Render pages from templates; all values are escaped."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from rich.filesize import decimal
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response

from aegis._version import __version__
from aegis.errors import AegisError
from aegis.report.words import prose
from aegis.service.catalog.access import AccountRole, Action, Actor, scopes_of
from aegis.service.catalog.errors import NotSignedIn
from aegis.service.catalog.passwords import SHORTEST
from aegis.service.catalog.states import RequestState
from aegis.service.identity import Call, Visit, identified
from aegis.words import percent, portion

_TEMPLATES = Environment(
    loader=PackageLoader("aegis.service"),
    autoescape=True,
    undefined=StrictUndefined,
    auto_reload=False,
    trim_blocks=True,
    lstrip_blocks=True,
)

PAGE = 50
"""Number of entries of a list that a page shows."""
_LINKS = (
    ("/", "Catalog", None),
    ("/requests", "Requests", Action.SEE_REQUEST),
    ("/register", "Register", Action.REGISTER),
    ("/log", "Log", None),
    ("/accounts", "Accounts", Action.ACCOUNTS),
    ("/tokens", "Tokens", None),
)
"""Path and title of each page in the navigation, with the action that it needs, if any."""
_OF_HERE = re.compile("/(?!/)").match
"""Matches the paths of this service; two slashes would begin the address of another one."""
_EXPORTS = (("croissant", "Croissant"), ("dcat", "DCAT"), ("datapackage", "Data Package"))


def day(value: datetime | None) -> str:
    """Return a time as text, such as `2026-12-31 09:30 UTC`."""
    return "" if value is None else f"{value:%Y-%m-%d %H:%M} UTC"


def share(value: float | None) -> str:
    """Return a share in [0, 1] as a percentage, or a dash for None."""
    return "–" if value is None else portion(value)


def size(value: int) -> str:
    """Return the size of a file, as text."""
    return decimal(value)


_TEMPLATES.filters.update(day=day, share=share, size=size, percent=percent, prose=prose)
_TEMPLATES.globals.update(
    program=__version__,
    exports=_EXPORTS,
    limit=PAGE,
    shortest=SHORTEST,
    account_roles=list(AccountRole),
    states=list(RequestState),
)


def page(visit: Visit, template: str, **more: Any) -> HTMLResponse:
    """Render a page from its template, with the values `more` and the navigation for the caller."""
    settings = visit.settings
    actor, form_key = (visit.actor, visit.form_key) if isinstance(visit, Call) else (None, "")
    text = _TEMPLATES.get_template(template).render(
        actor=actor,
        form_key=form_key,
        local=settings.local,
        navigation=_navigation(actor, local=settings.local),
        path=visit.request.url.path,
        origin=settings.origin,
        **{"done": visit.request.query_params.get("done", ""), **more},
    )
    return HTMLResponse(text, status_code=more.get("status", 200))


def fragment(template: str, **more: Any) -> HTMLResponse:
    """Render a part of a page, which replaces the old part in the browser."""
    return HTMLResponse(_TEMPLATES.get_template(template).render(**more))


def error_page(request: Request, status: int, message: str, hint: str) -> Response:
    """Return a page that shows an error; callers who are not signed in get the sign-in form."""
    path = request.url.path
    if status == NotSignedIn.status and request.method == "GET" and not path.startswith("/sign-in"):
        return RedirectResponse("/sign-in", status_code=303)
    if request.headers.get("hx-request") == "true":
        part = fragment("problem.html", message=message, hint=hint)
        part.status_code = status
        return part
    try:
        visit: Visit = identified(request)
    except (AegisError, SQLAlchemyError):  # nobody is signed in, or the database is away
        visit = Visit(request)
    return page(
        visit, "error.html", status=status, message=message, hint=hint, back=_before(request)
    )


def _before(request: Request) -> str:
    """Return the path of the page of this service from which a call came; empty for other calls."""
    before = urlsplit(request.headers.get("referer", ""))
    same = request.method == "GET" and before.path == request.url.path
    if same or before.netloc != request.headers.get("host") or not _OF_HERE(before.path):
        return ""
    return before.path + (f"?{before.query}" if before.query else "")


def see(path: str) -> RedirectResponse:
    """Redirect the browser to another page after a form."""
    return RedirectResponse(path, status_code=303)


def _navigation(actor: Actor | None, *, local: bool) -> list[tuple[str, str]]:
    """Return the titles and paths of the pages that this actor may use. `local` says that the
    service is a workbench for one person.
    """
    if actor is None:
        return []
    if local:
        return [("/", "Tables")]
    allowed = [None, *scopes_of(actor)]
    return [(path, title) for path, title, action in _LINKS if action in allowed]
