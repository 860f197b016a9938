"""Register routes, each with the action whose permission it checks."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from aegis.service.catalog.access import Action
from aegis.service.identity import identified

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
PUBLIC = "public"
"""Declares a route that anybody may call, such as signing in or the state of the service."""
ACTION = "x-aegis-action"
"""Extension field of OpenAPI with the action of a route."""


class _Route(APIRoute):
    """A route that identifies the caller before it reads the body of the call, unless it is public.

    FastAPI parses the body before it calls the dependencies of a route.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a call."""
        handle = super().get_route_handler()
        if (self.openapi_extra or {}).get(ACTION) == PUBLIC:
            return handle

        async def identified_first(request: Request) -> Response:
            request.state.call = await run_in_threadpool(identified, request)
            return await handle(request)

        return identified_first


class Routes:
    """A router in which each route declares an action, whose permission is checked at each call."""

    def __init__(self, prefix: str = "", **options: Any) -> None:
        self.router = APIRouter(prefix=prefix, route_class=_Route, **options)

    def get(
        self, path: str, action: Action | str, **options: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator that registers a GET endpoint, for calls that only read."""
        return self._add("GET", path, action, options)

    def post(
        self, path: str, action: Action | str, **options: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator that registers a POST endpoint, for calls that change something."""
        return self._add("POST", path, action, options)

    def _add(
        self, method: str, path: str, action: Action | str, options: dict[str, Any]
    ) -> Callable[[Endpoint], Endpoint]:
        extra = {**options.pop("openapi_extra", {}), ACTION: str(action)}
        return self.router.api_route(path, methods=[method], openapi_extra=extra, **options)
