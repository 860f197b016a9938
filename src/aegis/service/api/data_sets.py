"""API calls for data sets."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import Query
from fastapi.responses import Response

from aegis.service.api import shapes
from aegis.service.catalog import Action, budget, data_sets, exports, flow, populations, requests
from aegis.service.catalog.access import authorise
from aegis.service.catalog.errors import NotThere
from aegis.service.catalog.summaries import costs as costs_of
from aegis.service.identity import CallOf
from aegis.service.routes import Routes

routes = Routes(prefix="/data-sets", tags=["data sets"])
Offset = Annotated[int, Query(ge=0, le=10_000_000)]
ExportKind = Literal["croissant", "dcat", "datapackage"]
Limit = Annotated[int, Query(ge=1, le=200)]
Words = Annotated[str, Query(max_length=200)]


@routes.get("", Action.BROWSE)
def search(
    call: CallOf, words: Words = "", offset: Offset = 0, limit: Limit = 50
) -> dict[str, Any]:
    """Search the data sets that you may see, by words in their name, title, label or columns."""
    with call.reading() as session:
        listed, count = data_sets.search(session, call.actor, words, offset=offset, limit=limit)
        newest = data_sets.newest_of(session, [data_set.id for data_set in listed])
        return {
            "count": count,
            "data_sets": [
                shapes.data_set(data_set, newest.get(data_set.id)) for data_set in listed
            ],
        }


@routes.post("", Action.REGISTER)
def register(body: shapes.DataSetGiven, call: CallOf) -> dict[str, Any]:
    """Register a data set under its provider; others see it once it is published. With `summary`,
    ask the agent for it at once, and return its job.
    """
    authorise(call.actor, Action.REGISTER)
    about = body.model_dump(exclude={"id", "summary"})
    if body.summary is not None:
        flow.declared(body.summary.policy)
    with call.writing() as session:
        data_set = data_sets.register(session, call.actor, body.id, **about)
        job = None
        if body.summary is not None:
            options = body.summary.model_dump()
            job = shapes.as_json(flow.ask_summary(session, call.actor, body.id, **options))
        return shapes.data_set(data_set) | {"job": job}


@routes.get("/{identifier}", Action.BROWSE)
def show(identifier: str, call: CallOf) -> dict[str, Any]:
    """Return a data set with its newest version."""
    with call.reading() as session:
        data_set = data_sets.authorised(session, call.actor, Action.BROWSE, identifier)
        return shapes.data_set(data_set, data_sets.newest(session, identifier))


@routes.get("/{identifier}/versions", Action.BROWSE)
def versions(identifier: str, call: CallOf) -> list[dict[str, Any]]:
    """Return all versions of a data set, newest first."""
    return [shapes.as_json(version) for version in call.read(data_sets.versions, identifier)]


@routes.get("/{identifier}/exports/{kind}", Action.BROWSE)
def export(identifier: str, kind: ExportKind, call: CallOf) -> Response:
    """Describe a data set for other catalogs, as Croissant, DCAT or Data Package."""
    with call.reading() as session:
        data_set = data_sets.authorised(session, call.actor, Action.BROWSE, identifier)
        version = data_sets.newest(session, identifier)
        if version is None:
            raise NotThere(
                f"{identifier} has no summary yet.", hint="Ask its provider to publish one."
            )
        return exported(exports.of_data_set(data_set, version, call.settings.origin), kind)


def exported(entry: exports.Described, kind: ExportKind) -> Response:
    """Return the description of a data set or release in the format `kind` as a file download."""
    write, media, name = exports.FORMATS[kind]
    headers = {"Content-Disposition": f'attachment; filename="{entry.identifier}-{name}"'}
    text = json.dumps(write(entry), ensure_ascii=False, indent=2)
    return Response(text, media_type=media, headers=headers)


@routes.get("/{identifier}/policy", Action.STUDY)
def policy(identifier: str, call: CallOf) -> dict[str, Any]:
    """Return the policy of the newest version, as YAML."""
    with call.reading() as session:
        data_sets.authorised(session, call.actor, Action.STUDY, identifier)
        newest = data_sets.newest(session, identifier)
        return {"policy": None if newest is None else newest.policy}


@routes.post("/{identifier}", Action.EDIT_DATA_SET)
def change(identifier: str, body: shapes.DataSetChanged, call: CallOf) -> dict[str, Any]:
    """Change the description or terms of a data set; approved requests with changed terms are sent back."""
    with call.writing() as session:
        about = body.model_dump(exclude_unset=True)
        changed = data_sets.change(session, call.actor, identifier, **about)
        requests.drift(session, call.actor, identifier)
        return shapes.data_set(changed, data_sets.newest(session, identifier))


@routes.post("/{identifier}/publish", Action.PUBLISH)
def publish(identifier: str, call: CallOf, published: bool = True) -> dict[str, Any]:
    """Publish a data set for consumers, or withdraw it."""
    with call.writing() as session:
        changed = data_sets.publish(session, call.actor, identifier, published=published)
        return shapes.data_set(changed, data_sets.newest(session, identifier))


@routes.post("/{identifier}/grants", Action.PUBLISH)
def grant(identifier: str, body: shapes.GrantGiven, call: CallOf) -> dict[str, Any]:
    """Assign an operator or approver, or let a consumer see the data set."""
    call.write(data_sets.grant, identifier, body.account, body.role, granted=body.granted)
    return body.model_dump()


@routes.post("/{identifier}/summary", Action.UPLOAD_SUMMARY)
def ask_summary(identifier: str, body: shapes.SummaryAsked, call: CallOf) -> dict[str, Any]:
    """Ask the agent to summarise the table under a policy and to protect the summary."""
    call.read(data_sets.authorised, Action.UPLOAD_SUMMARY, identifier)
    flow.declared(body.policy)
    return shapes.as_json(call.write(flow.ask_summary, identifier, **body.model_dump()))


@routes.post("/{identifier}/members", Action.PUBLISH)
def admit(identifier: str, body: shapes.MemberGiven, call: CallOf) -> dict[str, Any]:
    """Let another provider's data sets share the privacy budget of this population, or end the
    sharing.
    """
    with call.writing() as session:
        data_set = data_sets.authorised(session, call.actor, Action.PUBLISH, identifier)
        populations.admit(
            session, call.actor, data_set.population, body.account, admitted=body.admitted
        )
    return body.model_dump()


@routes.get("/{identifier}/ledger", Action.SEE_LEDGER)
def ledger(identifier: str, call: CallOf) -> dict[str, Any]:
    """Return the privacy budget of the data set's population, and its releases."""
    with call.reading() as session:
        data_set = data_sets.authorised(session, call.actor, Action.SEE_LEDGER, identifier)
        balance = budget.balance(session, data_set)
        return shapes.as_json(balance) | {
            "entries": [shapes.as_json(entry) for entry in budget.entries(session, data_set)],
            "releases": [shapes.as_json(entry) for entry in budget.releases(session, data_set)],
        }


@routes.get("/{identifier}/costs", Action.BROWSE)
def costs(identifier: str, call: CallOf) -> list[dict[str, Any]]:
    """Return the utility cost of each candidate mask, computed from the protected summary."""
    with call.reading() as session:
        data_sets.authorised(session, call.actor, Action.BROWSE, identifier)
        newest = data_sets.newest(session, identifier)
    return [] if newest is None else list(costs_of(call.catalog.objects, newest.summary_key))
