"""Routes with a declared action; a route without one cannot be made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import APIRouter

from aegis.service.catalog.access import Action

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
PUBLIC = "public"
"""For what anybody may call: signing in, the state of the service."""
ACTION = "x-aegis-action"
"""Where OpenAPI shows which action a route needs."""


@dataclass(frozen=True)
class Declared:
    """A route with its required rights.

    Attributes
    ----------
    method, path
        The route.
    action
        An action, or `PUBLIC`.
    """

    method: str
    path: str
    action: str


class Routes:
    """A router whose routes each name the action that `aegis.service.catalog.access` decides on."""

    def __init__(self, prefix: str = "", **options: Any) -> None:
        self.router = APIRouter(prefix=prefix, **options)
        self.declared: list[Declared] = []
        self._prefix = prefix

    def get(
        self, path: str, action: Action | str, **options: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Register a route that only reads."""
        return self._add("GET", path, action, options)

    def post(
        self, path: str, action: Action | str, **options: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Register a route that changes something."""
        return self._add("POST", path, action, options)

    def _add(
        self, method: str, path: str, action: Action | str, options: dict[str, Any]
    ) -> Callable[[Endpoint], Endpoint]:
        extra = {**options.pop("openapi_extra", {}), ACTION: str(action)}
        self.declared.append(Declared(method, f"{self._prefix}{path}", str(action)))

        def register(endpoint: Endpoint) -> Endpoint:
            self.router.add_api_route(
                path, endpoint, methods=[method], openapi_extra=extra, **options
            )
            return endpoint

        return register
