"""Build the web application: the REST API under `/api/v1`, the pages, and one access guard for both."""

from __future__ import annotations

import secrets
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from importlib.resources import files
from pathlib import Path

from anyio import CapacityLimiter
from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from aegis._version import __version__
from aegis.errors import AegisError, wrong_value
from aegis.service.api import accounts, data_sets, log, people, requests, state, work
from aegis.service.catalog import Catalog, UploadLimits
from aegis.service.describing import describe
from aegis.service.guard import Guard, seal
from aegis.service.metrics import CallMetrics
from aegis.service.notifying import Notifier
from aegis.service.opening import Openings
from aegis.service.pages import error_page, page_routers
from aegis.service.problems import problem, status_of
from aegis.service.recording import AccessLog, Recorder
from aegis.service.settings import ServiceSettings
from aegis.service.workbench import Benches, preload
from aegis.service.worker import Worker

API = "/api/v1"
API_ROOMS = (accounts, people, data_sets, requests, work, log, state)
RELEASES = "aegis-releases"
"""Folder for the releases of a workbench, next to the tables."""
_THREADS = 40
"""Number of threads that answer calls, over all processes; most of a call waits for the database."""
_FEWEST = 10
_FOLLOWING = 2
"""Number of further threads that look after jobs for event streams: hundreds of streams must not
keep other calls waiting.
"""
_FURTHER_CONNECTIONS = 4
"""Number of further database connections: for the worker, and for event streams."""

_PATIENCE = 10.0
"""Number of seconds in which a worker gives its job back, or a notice is sent, at the end."""


def threads_of(settings: ServiceSettings) -> int:
    """Return the number of threads with which each process answers calls."""
    return max(_FEWEST, _THREADS // settings.processes)


def create_app(settings: ServiceSettings, catalog: Catalog | None = None) -> FastAPI:
    """Return the application of a service. Without `catalog`, open one from the settings, except in
    a `local` service, which has no catalog.
    """
    opened = catalog
    if opened is None and not settings.local:
        limits = UploadLimits(work=settings.work)
        opened = Catalog.open(
            settings.database,
            settings.objects,
            limits=limits,
            connections=threads_of(settings) + _FURTHER_CONNECTIONS,
        )

    app = FastAPI(
        title="Aegis",
        version=__version__,
        summary="A masking advisor's catalog: data sets, requests, releases.",
        lifespan=_lifespan(settings, opened),
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{API}/openapi.json",
    )
    app.state.catalog = opened
    app.state.settings = settings
    app.state.local_key = secrets.token_urlsafe(24)
    if settings.folder is not None:
        app.state.benches = Benches(settings.folder, settings.folder / RELEASES)
        app.state.openings = Openings(app.state.benches)
    largest = UploadLimits().release if opened is None else opened.limits.release
    app.add_middleware(Guard, settings=settings, upload=largest)
    app.state.metrics = CallMetrics()
    app.add_middleware(
        Recorder, metrics=app.state.metrics, log=AccessLog.at(settings.operation.access_log)
    )
    if not settings.local:
        for room in API_ROOMS:
            app.include_router(room.routes.router, prefix=API)
    for router in page_routers(settings):
        app.include_router(router)
    static = Path(str(files("aegis.service").joinpath("static")))
    app.mount("/static", StaticFiles(directory=static), name="static")
    _handle_errors(app)
    describe(app)
    return app


@contextmanager
def working(settings: ServiceSettings, catalog: Catalog) -> Iterator[None]:
    """Return a context manager that runs background jobs and sends notices, as the settings say."""
    programs: list[Worker | Notifier] = []
    if settings.worker:
        programs.append(Worker(catalog, keep=settings.operation.keep))
    if settings.operation.channels:
        programs.append(Notifier(catalog, settings.operation.channels, settings.origin))
    threads = [threading.Thread(target=program.run, daemon=True) for program in programs]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for program, thread in zip(programs, threads, strict=True):
            program.over.set()
            thread.join(timeout=_PATIENCE)
        catalog.database.close()


def _lifespan(
    settings: ServiceSettings, catalog: Catalog | None
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Return what makes the context in which the application runs with its background work."""

    @asynccontextmanager
    async def run(app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = threads_of(settings)
        app.state.following = CapacityLimiter(_FOLLOWING)
        if settings.local:
            threading.Thread(target=preload, name="aegis-warm", daemon=True).start()
        with nullcontext() if catalog is None else working(settings, catalog):
            yield

    return run


def _field(path: Sequence[str | int]) -> str:
    """Return the name of the invalid field of a call, for the error message. `path` leads to the
    field, or to a position in a body that is not JSON.
    """
    names = [str(part) for part in path[1:] if path != ("body", part) or isinstance(part, str)]
    return ".".join(names) or "the call"


def _problem_of(error: Exception) -> tuple[int, str, str, str]:
    """Return status, title, message and hint of the response to an error. The text of an unexpected
    error is not shown, because it may contain anything.
    """
    title = type(error).__name__
    if isinstance(error, AegisError):
        return status_of(error), title, error.message, error.hint
    if isinstance(error, RequestValidationError):
        wrong = "; ".join(f"{_field(e['loc'])} {wrong_value(e)}" for e in error.errors()[:5])
        hint = "Correct this value, and send it again."
        if any(isinstance(e.get("input"), bytes) for e in error.errors()):
            hint = "Send JSON, with the header Content-Type: application/json."
        return 422, "Invalid", f"Not as expected: {wrong}.", hint
    if isinstance(error, HTTPException):
        hint = "Check the address and the method."
        if error.status_code == 400:
            hint = "Check what you sent."
        return error.status_code, str(error.detail), f"{error.detail}.", hint
    if isinstance(error, DataError):
        return 422, title, "A value cannot be stored.", "Leave out control characters."
    if isinstance(error, IntegrityError):
        return (
            409,
            title,
            "Somebody else changed this at the same time.",
            "Load the page again, then try again.",
        )
    if isinstance(error, SQLAlchemyError):
        hint = "Try again in a minute. Nothing was changed."
        return 503, title, "The database does not answer.", hint
    return 500, "InternalError", "A bug of Aegis.", "Please report what you did."


def _handle_errors(app: FastAPI) -> None:
    """Make the application answer every error in one form: a page for browsers,
    `application/problem+json` for programs.
    """

    def answer(request: Request, error: Exception) -> Response:
        status, title, message, hint = _problem_of(error)
        response: Response
        if request.scope["path"].startswith("/api/"):
            response = problem(status, title, message, hint)
        else:
            response = error_page(request, status, message, hint)
        # The answer to an unexpected error does not pass the guard.
        seal(response.headers, request.scope["path"], request.app.state.settings)
        return response

    for kind in (AegisError, RequestValidationError, HTTPException, SQLAlchemyError, Exception):
        app.add_exception_handler(kind, answer)
