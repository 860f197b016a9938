"""The first look at a table, and what the page of a request offers."""

from __future__ import annotations

import html

import httpx
import pyarrow as pa
import pytest
from service_support import PASSWORD

from aegis.errors import DataError
from aegis.service.catalog.records import Request
from aegis.service.first_look import look_at
from aegis.sources import open_table

TABLE = pa.table(
    {
        "age": pa.array([20, 20, 30, 40, None, 20] * 4, pa.int64()),
        "sex": ["m", "f", "m", None, "m", "m"] * 4,
        "name": [f"person {i}" for i in range(24)],
        "same": [1.5] * 24,
        "rate": [0.0, 1.0, float("nan"), float("inf"), 4.0, 5.0] * 4,
        "empty": pa.array([None] * 24, pa.float64()),
    }
)


def test_types_values_and_what_is_missing_are_as_in_the_table():
    look = look_at(open_table(TABLE))
    age, sex, name, same, rate, empty = look.columns
    assert (look.rows, look.duplicates, look.with_missing) == (24, 0, 3)
    assert (age.kind, age.distinct, age.span, age.missing) == (
        "whole number",
        "3",
        "20 to 40",
        pytest.approx(1 / 6),
    )
    assert len(age.bars) == 12
    assert [i for i, part in enumerate(age.bars) if part] == [0, 6, 11]
    assert (age.bars[0], age.bars[6]) == (1.0, pytest.approx(1 / 3))
    assert (sex.kind, sex.bars) == ("text", ())
    assert sex.frequent == (("m", pytest.approx(2 / 3)),)  # values of few rows are not shown
    assert name.note == "a different value in nearly every row"
    assert same.note == "one value in all rows"
    assert same.bars == ()
    assert rate.note == "8 values are NaN or infinite"
    assert empty.note == "has no value"
    assert empty.missing == 1


def test_repeated_rows_are_counted():
    repeated = pa.table({"a": [1, 1, 1, 2, None, None], "b": list("xxxyzz")})
    assert look_at(open_table(repeated)).duplicates == 3


def test_a_table_without_rows_has_no_look():
    with pytest.raises(DataError, match="no rows"):
        look_at(open_table(pa.table({"a": pa.array([], pa.int64())})))


def shown(place, name: str, path: str) -> str:
    with httpx.Client(base_url=place.url, headers={"Origin": place.url}, timeout=60) as caller:
        caller.post("/sign-in", data={"name": name, "password": PASSWORD})
        return html.unescape(caller.get(path).text)


def test_approve_is_offered_only_where_the_rule_is_met(place):
    number = place.ask()
    button = f'action="/requests/{number}/approve"'
    assert button in shown(place, "otto", f"/requests/{number}")
    waits = shown(place, "anna", "/")
    assert f'<a href="/requests/{number}">to learn</a>' in waits
    assert "approve or reject it" in waits
    with place.catalog.database.writing() as session:
        request = session.get(Request, number)
        request.answer = {**request.answer, "holds": False}
    for name in ("otto", "anna"):
        page = shown(place, name, f"/requests/{number}")
        assert button not in page
        assert "You cannot approve this request." in page
        assert "breaks the rule" in shown(place, name, "/")
    assert "Waiting for you" not in shown(place, "clara", "/")


def test_what_waits_ends_with_the_step(place):
    with place.client("clara") as clara:
        number = clara.request("census", "to wait", terms_accepted=True)["id"]
    link = f'<a href="/requests/{number}">'
    assert link in shown(place, "otto", "/")
    assert link not in shown(place, "anna", "/")
    with place.client("otto") as otto:
        otto.step(number, "review")
        assert "choose a configuration" in shown(place, "otto", "/")
        otto.step(number, "choose")
        assert link not in shown(place, "otto", "/"), "a job is under way"
        place.work()
        otto.step(number, "approve")
    page = shown(place, "otto", "/")
    assert link in page
    assert "make the release" in page


def test_the_form_asks_for_models_and_measure(place):
    form = shown(place, "clara", "/data-sets/census/request")
    for words in ('value="gbdt"', 'name="measure"', "adjusted-pillai", "the default"):
        assert words in form
    with httpx.Client(base_url=place.url, headers={"Origin": place.url}, timeout=60) as caller:
        caller.post("/sign-in", data={"name": "clara", "password": PASSWORD})
        key = caller.get("/account").text.split('name="form_key" value="', 1)[1].split('"', 1)[0]
        given = {
            "form_key": key,
            "purpose": "x",
            "measure": "adjusted-pillai",
            "models": "gbdt",
            "terms_accepted": "true",
        }
        made = caller.post("/data-sets/census/request", data=given)
        page = caller.get(made.headers["location"]).text
    assert "adjusted-pillai" in page
    assert "gbdt" in page


@pytest.mark.parametrize("path", ["/", "/requests", "/log", "/tokens", "/account", "/accounts"])
def test_each_page_says_what_works_without_scripts_and_names_its_regions(place, path):
    page = shown(place, "ada", path)
    assert "<noscript>" in page
    assert page.count("scroll") <= page.count('tabindex="0"')
