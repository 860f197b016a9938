"""Pages of the catalog: list, data set, registration, ledger."""

from __future__ import annotations

from typing import Annotated, Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from fastapi import Depends, Form
from starlette.responses import Response

from aegis.service.api.data_sets import Words
from aegis.service.api.shapes import NO_NUL, Epsilon, Protection
from aegis.service.catalog import Action, budget, data_sets, flow, jobs, requests, signs, waiting
from aegis.service.catalog.access import authorise, may
from aegis.service.catalog.errors import CatalogError
from aegis.service.catalog.summaries import costs as costs_of
from aegis.service.identity import CallOf, FormCallOf
from aegis.service.pages.people import Offset, Text
from aegis.service.pages.render import PAGE, page, see
from aegis.service.routes import Routes

routes = Routes(include_in_schema=False)
Long = Annotated[str, Form(max_length=1 << 20, pattern=NO_NUL)]


@routes.get("/", Action.BROWSE)
def catalog_page(call: CallOf, words: Words = "", offset: Offset = 0) -> Response:
    """Show all data sets that you may see."""
    with call.reading() as session:
        page_of, count = data_sets.search(session, call.actor, words, offset=offset, limit=PAGE)
        newest = data_sets.newest_of(session, [data_set.id for data_set in page_of])
        return page(
            call,
            "catalog.html",
            listed=[(data_set, newest.get(data_set.id)) for data_set in page_of],
            waits=waiting.of(session, call.actor),
            count=count,
            words=words,
            offset=offset,
        )


@routes.get("/register", Action.REGISTER)
def registering(call: CallOf) -> Response:
    """Show the form that registers a data set."""
    authorise(call.actor, Action.REGISTER)
    return page(call, "register.html")


def _described(
    title: Text = "", description: Long = "", terms: Long = "", population: Text = ""
) -> dict[str, str]:
    """Collect the fields of a form that describe a data set, by name."""
    return {"title": title, "description": description, "terms": terms, "population": population}


def _summary_options(
    policy: Long = "",
    protect: Annotated[Protection, Form()] = "noise",
    epsilon: Annotated[Epsilon, Form()] = 1.0,
) -> dict[str, Any] | None:
    """Collect the fields of a form that ask for a summary; None without a policy."""
    if not policy.strip():
        return None
    return {"policy": policy, "protect": protect, "epsilon": epsilon}


@routes.post("/register", Action.REGISTER)
def register(
    call: FormCallOf,
    identifier: Text,
    source: Text,
    public_key: Long,
    described: Annotated[dict[str, str], Depends(_described)],
    summary_options: Annotated[dict[str, Any] | None, Depends(_summary_options)],
    approvals: Annotated[int, Form()] = 1,
    public: Annotated[bool, Form()] = False,
    ceiling: Text = "",
) -> Response:
    """Register a data set. `described` has its descriptive fields, and `ceiling` the largest
    epsilon, or is empty. With `summary_options`, ask the agent for a summary at once; if that is
    refused, nothing is registered.
    """
    authorise(call.actor, Action.REGISTER)
    if summary_options is not None:
        flow.declared(summary_options["policy"])
    with call.writing() as session:
        data_set = data_sets.register(
            session,
            call.actor,
            identifier,
            source=source,
            public_key=_key(public_key),
            approvals=approvals,
            public=public,
            ceiling=_number(ceiling),
            **described,
        )
        if summary_options is not None:
            flow.ask_summary(session, call.actor, identifier, **summary_options)
        return see(f"/data-sets/{data_set.id}")


@routes.get("/data-sets/{identifier}", Action.BROWSE)
def show(identifier: str, call: CallOf) -> Response:
    """Show a data set: schema, terms, utility cost of each mask, versions."""
    with call.reading() as session:
        data_set = data_sets.authorised(session, call.actor, Action.BROWSE, identifier)
        versions = data_sets.versions(session, call.actor, identifier)
        subject = data_sets.subject_of(session, call.actor, data_set)
        allowed = {str(a): may(call.actor, a, subject) for a in Action}
        data_set_requests, _ = requests.listed(session, call.actor, data_set=identifier, limit=20)
        leak = jobs.latest(session, "leak", data_set_id=identifier)
        asks = allowed[str(Action.UPLOAD_SUMMARY)]
        summarising = jobs.latest(session, "summarize", data_set_id=identifier) if asks else None
        agents = signs.programs(session, data_set.provider_id) if asks else []
        assigns = allowed[str(Action.PUBLISH)]
        grants = data_sets.grants(session, data_set) if assigns else []
    costs = costs_of(call.catalog.objects, versions[0].summary_key) if versions else []
    return page(
        call,
        "data_set.html",
        data_set=data_set,
        versions=versions,
        allowed=allowed,
        costs=costs,
        requests=data_set_requests,
        leak=leak,
        summarising=summarising,
        agents=agents,
        grants=grants,
    )


@routes.post("/data-sets/{identifier}/publish", Action.PUBLISH)
def publish(
    identifier: str, call: FormCallOf, published: Annotated[bool, Form()] = False
) -> Response:
    """Publish a data set for consumers, or withdraw it."""
    call.write(data_sets.publish, identifier, published=published)
    return see(f"/data-sets/{identifier}")


@routes.post("/data-sets/{identifier}/grants", Action.PUBLISH)
def grant(
    identifier: str,
    call: FormCallOf,
    account: Text,
    role: Text,
    granted: Annotated[bool, Form()] = True,
) -> Response:
    """Assign an operator or approver to a data set, or let a consumer see the data set.
    `granted=False` takes the role back.
    """
    call.write(data_sets.grant, identifier, account, role, granted=granted)
    return see(f"/data-sets/{identifier}")


@routes.post("/data-sets/{identifier}/summary", Action.UPLOAD_SUMMARY)
def ask_summary(
    identifier: str,
    call: FormCallOf,
    policy: Long,
    protect: Annotated[Protection, Form()],
    epsilon: Annotated[Epsilon, Form()] = 1.0,
) -> Response:
    """Ask the agent for a protected summary."""
    call.read(data_sets.authorised, Action.UPLOAD_SUMMARY, identifier)
    flow.declared(policy)
    call.write(flow.ask_summary, identifier, policy, protect=protect, epsilon=epsilon)
    return see(f"/data-sets/{identifier}")


@routes.get("/data-sets/{identifier}/ledger", Action.SEE_LEDGER)
def ledger(identifier: str, call: CallOf) -> Response:
    """Show the costs and releases of a population."""
    with call.reading() as session:
        data_set = data_sets.authorised(session, call.actor, Action.SEE_LEDGER, identifier)
        return page(
            call,
            "ledger.html",
            data_set=data_set,
            balance=budget.balance(session, data_set),
            entries=budget.entries(session, data_set),
            releases=budget.releases(session, data_set),
        )


def _key(text: str) -> str:
    """Return a public key in hexadecimal from the text of a PEM file; any other text unchanged."""
    try:
        key = load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        return text.strip()
    return key.public_bytes_raw().hex() if isinstance(key, Ed25519PublicKey) else text.strip()


def _number(text: str) -> float | None:
    """Parse a number; return None for an empty text."""
    try:
        return float(text) if text.strip() else None
    except ValueError as error:
        raise CatalogError(
            f"The budget {text!r} is not a number.",
            hint="Give an epsilon such as 4, or leave it out.",
        ) from error
