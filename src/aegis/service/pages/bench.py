"""The workbench of the catalog: what a protected summary shows of a data set."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from fastapi import Request
from starlette.responses import Response

from aegis.catalog import Action, Catalog, data_sets
from aegis.catalog.errors import NotThere
from aegis.catalog.records import Version
from aegis.catalog.summaries import as_declared, costs, read, written
from aegis.protect import rank_protected, search_protected
from aegis.service.identity import CallerOf, CatalogOf
from aegis.service.pages.render import page
from aegis.service.routes import Routes

routes = Routes(include_in_schema=False)
SECONDS = 3.0
"""Most seconds of a search for the page; a request is searched longer, by the worker."""


def costs_of(catalog: Catalog, version: Version) -> list[dict[str, Any]]:
    """Return what each mask costs, from the protected summary of a version."""
    return _costs(catalog.objects.get(version.summary_key))


@lru_cache(maxsize=64)
def _costs(bundle: bytes) -> list[dict[str, Any]]:
    return costs(bundle)


@routes.get("/data-sets/{identifier}/workbench", Action.STUDY)
def show(
    identifier: str, request: Request, who: CallerOf, catalog: CatalogOf, search: bool = False
) -> Response:
    """Costs, some configurations, and on request the best, from the protected summary."""
    with catalog.database.reading() as session:
        data_set = data_sets.seen(session, who.actor, Action.STUDY, identifier)
        version = data_sets.newest(session, identifier)
    if version is None:
        raise NotThere("This data set has no summary yet.", hint="Ask its provider.")
    summary = read(catalog.objects.get(version.summary_key))
    advice = (
        search_protected(summary, top=10, time_limit=SECONDS)
        if search
        else rank_protected(summary, generate_count=20)
    )
    best = advice.best
    return page(
        request,
        "protected_bench.html",
        who.actor,
        form_key=who.form_key,
        data_set=data_set,
        version=version,
        summary=summary,
        advice=advice,
        searched=search,
        best="" if best is None else written(as_declared(summary, best.configuration)),
        costs=costs_of(catalog, version),
    )
