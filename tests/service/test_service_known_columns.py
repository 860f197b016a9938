"""A column that gets another role in the catalog's workbench gets the masks that `aegis init` proposes."""

from __future__ import annotations

import html
import random
from datetime import date

import httpx
import pyarrow as pa
import pytest
from service_support import PASSWORD, house

from aegis.policy import Role
from aegis.policy.suggest.masks import propose_masks
from aegis.policy.suggest.profile import measure_columns
from aegis.service.catalog.flow import policy_of
from aegis.service.catalog.summaries import make, read
from aegis.service.known_columns import facts_of, proposed_masks
from aegis.sources import open_table

POLICY = """version: 1
label: income
privacy: {k: 3, suppression: 0.1}
attributes:
  age: {role: quasi-identifier, masks: [{bucketize: {width: 10}}, suppress]}
  hours: {role: feature, masks: [identity]}
  job: {role: feature, masks: [identity]}
  zone: {role: feature, masks: [identity]}
  since: {role: feature, masks: [identity]}
  note: {role: ignore}
"""
KEY = b"0123456789abcdef0123456789abcdef"
TASK = {"protect": "counts", "threshold": 11}


def table(rows: int = 3000) -> pa.Table:
    draw = random.Random(1)
    jobs = ["clerk", "farmer", "nurse", "sales", "tech", "army", None]
    return pa.table(
        {
            "age": [draw.randint(20, 79) for _ in range(rows)],
            "hours": [draw.choice([40] * 10 + list(range(20, 60))) for _ in range(rows)],
            "job": draw.choices(jobs, [20, 5, 10, 10, 10, 2, 2], k=rows),
            "zone": draw.choices(["12345", "12349", "13300", "99001"], k=rows),
            "since": [date(1990 + draw.randrange(24), 1, 1) for _ in range(rows)],
            "note": [f"note {number}" for number in range(rows)],
            "income": draw.choices(["low", "high"], k=rows),
        }
    )


@pytest.fixture(scope="module")
def summary():
    return read(make(table(), policy_of(POLICY), TASK, KEY))


@pytest.mark.parametrize("name", ["hours", "job", "zone", "since"])
@pytest.mark.parametrize("role", [Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.FEATURE])
def test_masks_for_a_new_role_are_those_of_init(summary, name, role):
    """The rows that the provider has and the values that the summary names say the same of a column."""
    measured = measure_columns(open_table(table()))[name]
    wanted = [str(mask) for mask in propose_masks(measured, role).masks]
    assert [str(mask) for mask in proposed_masks(summary, name, role)] == wanted
    if role is Role.QUASI_IDENTIFIER:
        assert len(wanted) > 2


def test_of_values_that_the_summary_does_not_name_nothing_is_made_up(summary):
    assert proposed_masks(summary, "age", Role.QUASI_IDENTIFIER) == (), "only ranges are named"
    assert proposed_masks(summary, "none", Role.QUASI_IDENTIFIER) == ()
    rare = table()
    days = [date(1950 + n // 60, 1 + n % 12, 1 + n % 28) for n in range(rare.num_rows)]
    rare = rare.set_column(4, "since", [days])
    noise = {"protect": "noise", "epsilon": 4.0, "delta": 1e-6}
    made = read(make(rare, policy_of(POLICY), noise, b""))
    assert facts_of(made.attributes["since"]) is None, "days of few rows are not named"
    counts = read(make(rare, policy_of(POLICY), {**TASK, "threshold": 200}, KEY))
    shown = proposed_masks(counts, "since", Role.QUASI_IDENTIFIER)
    assert [str(mask) for mask in shown] == ["identity", "suppress"], "all days are pooled"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    import pyarrow.csv

    with house(tmp_path_factory.mktemp("known")) as made:
        pyarrow.csv.write_csv(table(1000), made.folder / "adult.csv")
        with made.client("paula") as paula:
            paula.register("census", source="adult", public_key=made.key, public=True)
            paula.ask_summary("census", POLICY, protect="noise", epsilon=50.0)
            made.work()
            paula.publish("census")
            paula.grant("census", "otto", "operator")
        yield made


def test_a_changed_role_shows_its_candidates_to_choose_from(place):
    """They stay chosen or not as the person says: the controls come again, with the column open."""
    base = "/data-sets/census/workbench"
    with httpx.Client(base_url=place.url, headers={"Origin": place.url}, timeout=60) as otto:
        otto.post("/sign-in", data={"name": "otto", "password": PASSWORD})
        page = html.unescape(otto.get(base).text)
        key = page.split('name="form_key" value="', 1)[1].split('"', 1)[0]
        form = {"form_key": key, "role:job": "quasi-identifier", "mask:job": ["identity"]}
        form |= {"role:age": "quasi-identifier", "k": "3", "suppression": "10"}
        drawn = html.unescape(otto.post(f"{base}/draw", data=form).text)
        controls = drawn.split('<form id="controls"', 1)[1]
        assert controls.startswith(' hx-swap-oob="true"')
        column = controls.split("<details open>", 1)[1].split("</details>", 1)[0]
        assert "<strong>job</strong>" in column
        assert column.count('type="checkbox" name="mask:job"') > 2
        assert "keep_frequent" in column
        text = controls.split('<textarea name="base" hidden>', 1)[1].split("</textarea>", 1)[0]
        kept = {"mask:job": ["identity", "suppress"], "base": text}
        again = html.unescape(otto.post(f"{base}/draw", data=form | kept).text)
        assert '<form id="controls"' not in again, "what is typed stays"
        shown = again.split('id="policy"', 1)[1].split(">", 1)[1].split("</textarea>", 1)[0]
        assert [str(m) for m in policy_of(shown).attributes["job"].masks] == kept["mask:job"]
        plain = {**kept, "role:job": "feature"}
        drawn = html.unescape(otto.post(f"{base}/draw", data=form | plain).text)
        fold = drawn.split('<details class="fold" open>', 1)[1]
        assert "<strong>job</strong>" in fold, (
            "who changes a role sees the column also where it is folded away"
        )
        unknown = {"role:note": "quasi-identifier"}
        drawn = html.unescape(otto.post(f"{base}/draw", data=form | kept | unknown).text)
        shown = drawn.split('id="policy"', 1)[1].split(">", 1)[1].split("</textarea>", 1)[0]
        assert [str(m) for m in policy_of(shown).attributes["note"].masks] == [
            "identity",
            "suppress",
        ]
