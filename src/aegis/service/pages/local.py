"""Pages of the workbench for your own tables. It has no accounts and answers only on this machine."""

from __future__ import annotations

from typing import Annotated, Any, cast

from fastapi import Depends, Form, Query, Request
from fastapi.responses import PlainTextResponse
from starlette.datastructures import FormData
from starlette.responses import FileResponse, Response

from aegis.advisor import Advice
from aegis.advisor.figures import Front
from aegis.errors import NoAdmissibleConfiguration
from aegis.present import Finding
from aegis.service.catalog import Action
from aegis.service.catalog.errors import CatalogError, NotThere
from aegis.service.catalog.flow import policy_of
from aegis.service.catalog.summaries import written
from aegis.service.first_look import look_at
from aegis.service.identity import Call, CallOf, FormCallOf
from aegis.service.opening import Openings, give_back
from aegis.service.pages import controls
from aegis.service.pages.people import Text
from aegis.service.pages.render import fragment, page, see
from aegis.service.routes import Routes
from aegis.service.workbench import Bench, Benches
from aegis.sources import FORMATS, open_part, parts_of
from aegis.sources.office_files import WORKBOOKS

routes = Routes(include_in_schema=False)
SECONDS = 10.0
"""Largest number of seconds for a chart of privacy against utility."""
FRONT = "k=2,3,5,10,20,50"
"""The values of k in a chart of privacy against utility."""
AT_ONCE = 0.5
"""Number of seconds after which a page shows the progress of opening a table."""
EFFORTS = (1.5, 4.0, None)
"""Seconds of successive searches, until one proves the best; the last ends when `aegis advise`
would.
"""
_FILES = ("masked.parquet", "certificate.json", "report.html", "configuration.yaml", "policy.yaml")


def benches_of(call: CallOf) -> Benches:
    """Return the tables that are open in the workbench, after identifying the caller."""
    return cast(Benches, call.request.app.state.benches)


BenchesOf = Annotated[Benches, Depends(benches_of)]


def openings_of(call: CallOf) -> Openings:
    """Return the tables that are being opened, after identifying the caller."""
    return cast(Openings, call.request.app.state.openings)


OpeningsOf = Annotated[Openings, Depends(openings_of)]


async def form_of(request: Request) -> FormData:
    """Return all fields of the form; their names contain names of attributes. Raise `CatalogError`
    for half a character, which a form can have in an odd encoding.
    """
    form = await request.form(max_fields=20_000)
    try:
        "".join(str(part) for field in form.multi_items() for part in field).encode()
    except UnicodeEncodeError as error:
        raise CatalogError(
            "A text of the form is not valid Unicode.", hint="Send the form as UTF-8."
        ) from error
    return form


FormOf = Annotated[FormData, Depends(form_of)]
Yaml = Annotated[str, Form(max_length=4 << 20)]


@routes.get("/", Action.STUDY)
def tables(call: CallOf, benches: BenchesOf) -> Response:
    """Show the tables of the folder."""
    return page(
        call,
        "tables.html",
        folder=benches.folder.resolve().name,
        tables=[(str(path), (benches.folder / path).stat().st_size) for path in benches.tables()],
        benches=benches.all_open(),
        formats=FORMATS,
    )


@routes.get("/table", Action.STUDY)
def table(call: CallOf, benches: BenchesOf, name: str, part: str = "") -> Response:
    """Show a file, and let the user choose a sheet or table, and a label column."""
    path = benches.path_of(name)
    parts = parts_of(path)
    if len(parts) > 1 and not part:
        kind = "sheets" if path.suffix.lower() in WORKBOOKS else "tables"
        return page(call, "part.html", name=name, parts=parts, kind=kind)
    source = open_part(path, part or None)
    return page(call, "table.html", name=name, part=part, look=look_at(source))


@routes.post("/open", Action.STUDY)
def open_bench(
    _call: FormCallOf, openings: OpeningsOf, name: Text, label: Text = "", part: Text = ""
) -> Response:
    """Open a table with a policy that `aegis init` proposes."""
    opening = openings.begin(name, label or None, part or None)
    opening.ended.wait(AT_ONCE)
    bench = opening.bench()
    return see(f"/opening/{opening.identifier}" if bench is None else f"/bench/{bench}")


@routes.get("/opening/{identifier}", Action.STUDY)
def show_opening(identifier: str, call: CallOf, openings: OpeningsOf) -> Response:
    """Show the progress of opening a table; go to its workbench once it is open."""
    opening = openings.get(identifier)
    bench = opening.bench()
    if bench is not None:
        return see(f"/bench/{bench}")
    return page(call, "opening.html", opening=opening)


@routes.get("/opening/{identifier}/step", Action.STUDY)
def step_of_opening(identifier: str, openings: OpeningsOf) -> dict[str, Any]:
    """Return the progress of opening a table, for the page to poll."""
    opening = openings.get(identifier)
    return {
        "ended": opening.ended.is_set(),
        "step": opening.step_words,
        "noted": opening.noted_words,
        "done": opening.state["done"],
        "total": opening.state["total"],
    }


@routes.post("/bench/{identifier}/close", Action.STUDY)
def close(identifier: str, _call: FormCallOf, benches: BenchesOf) -> Response:
    """Close a table and free its memory; its releases stay in their folder."""
    benches.close(identifier)
    give_back()
    return see("/")


@routes.get("/bench/{identifier}", Action.STUDY)
def show(identifier: str, call: CallOf, benches: BenchesOf) -> Response:
    """Show the workbench of a table."""
    bench = benches.get(identifier)
    return page(
        call,
        "workbench.html",
        bench=bench,
        base=f"/bench/{identifier}",
        **controls.form_values(bench.policy),
        yaml=bench.yaml(),
        view=bench.view(),
    )


@routes.post("/bench/{identifier}/draw", Action.STUDY)
def draw(identifier: str, call: CallOf, benches: BenchesOf, form: FormOf) -> Response:
    """Change the policy of the open table `identifier` as the submitted form says, and return the
    HTML of the new results. The browser loads the whole page again if a column has a new role.
    """
    bench, role_changed = _edited(identifier, call, benches, form)
    response = fragment("bench_view.html", view=bench.view(), yaml=bench.yaml(), swapped=True)
    if role_changed:  # the column's line, the rule and the candidates are others now
        response.headers["HX-Refresh"] = "true"
    return response


@routes.post("/bench/{identifier}/policy", Action.STUDY)
def take_policy(identifier: str, _call: FormCallOf, benches: BenchesOf, policy: Yaml) -> Response:
    """Load a policy that was edited as text into the workbench."""
    benches.get(identifier).take(policy_of(policy))
    return see(f"/bench/{identifier}")


@routes.post("/bench/{identifier}/best", Action.STUDY)
def best(
    identifier: str,
    call: CallOf,
    benches: BenchesOf,
    form: FormOf,
    effort: Annotated[int, Query(ge=0, lt=len(EFFORTS))] = 0,
) -> Response:
    """Search for the best configuration under the current rule; a higher `effort` searches longer."""
    bench, _ = _edited(identifier, call, benches, form)
    advice = bench.best(EFFORTS[effort])
    best = advice.best
    more = effort + 1 if not advice.optimal and effort + 1 < len(EFFORTS) else None
    return fragment(
        "bench_best.html",
        more=more,
        problem=_problem(advice) if more is None else None,
        advice=advice,
        best=best,
        words=None if best is None else Finding.of(advice, best),
        shows={}
        if best is None
        else {preview.attribute: preview for preview in bench.preview(best.configuration)},
        base=f"/bench/{identifier}",
        form_key=call.form_key,
        configuration="" if best is None else written(best.configuration, advice.measure),
    )


@routes.post("/bench/{identifier}/front", Action.STUDY)
def front(identifier: str, call: CallOf, benches: BenchesOf, form: FormOf) -> Response:
    """Draw a chart of utility against privacy: the best configuration for each of several values of
    k.
    """
    bench, _ = _edited(identifier, call, benches, form)
    return front_card(bench.front(FRONT, SECONDS))


@routes.post("/bench/{identifier}/release", Action.STUDY)
def release(
    identifier: str, _call: FormCallOf, benches: BenchesOf, configuration: Yaml
) -> Response:
    """Mask the table, verify the written file, and write certificate and report next to it."""
    bench = benches.get(identifier)
    folder = benches.outputs / identifier
    released = bench.release(configuration, folder)
    return fragment(
        "bench_released.html",
        release=released,
        base=f"/bench/{identifier}",
        folder=folder,
        files=[name for name in _FILES if (folder / name).is_file()],
    )


@routes.get("/bench/{identifier}/policy.yaml", Action.STUDY)
def policy_file(identifier: str, benches: BenchesOf) -> Response:
    """Download the policy as a file."""
    headers = {"Content-Disposition": 'attachment; filename="policy.yaml"'}
    return PlainTextResponse(benches.get(identifier).yaml(), headers=headers)


@routes.get("/bench/{identifier}/files/{name}", Action.STUDY)
def file(identifier: str, name: str, benches: BenchesOf) -> Response:
    """Download a file of a release."""
    path = benches.outputs / benches.get(identifier).identifier / name
    if name not in _FILES or not path.is_file():
        raise NotThere(f"There is no file {name}.", hint="First make the release.")
    return FileResponse(path, filename=name)


def _edited(identifier: str, call: Call, benches: Benches, form: FormData) -> tuple[Bench, bool]:
    """Apply a form to an open table. Return the table, and whether a column has another role now."""
    call.require_form_key(str(form.get("form_key", "")))
    bench = benches.get(identifier)
    role_changed = bench.take_form(controls.changes(bench.policy, form))
    return bench, role_changed


def _problem(advice: Advice) -> NoAdmissibleConfiguration | None:
    try:
        advice.require_best()
    except NoAdmissibleConfiguration as error:
        return error
    return None


def front_card(front: Front) -> Response:
    """Return the part of a page that draws a chart of utility against privacy."""
    named = [(f"{point.value:g}", point.utility_kept) for point in front.visible_points]
    points = [(name, value) for name, value in named if value is not None]
    return fragment("front.html", front=front, points=points)
