"""Every page is drawn for everybody who may see it, in a browser where there is one."""

from __future__ import annotations

import html
import re
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from unittest import mock

import httpx
import numpy as np
import pyarrow as pa
import pytest
import xlsxwriter
from service_support import PASSWORD, PEOPLE, POLICY, running, write_table

import aegis
from aegis.safe.protect import protect
from aegis.service.catalog.flow import policy_of
from aegis.service.catalog.summaries import costs_in
from aegis.service.pages.render import fragment
from aegis.service.pins import Approvers, RefusedError
from aegis.service.settings import ServiceSettings

BROWSER = shutil.which("chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.mark.parametrize("name", PEOPLE)
def test_every_page_of_a_person_is_drawn(place, name):
    number = place.ask()
    paths = ["/", "/?words=census", "/requests", "/requests?state=in+review", "/log", "/tokens"]
    paths += ["/data-sets/census", f"/requests/{number}", "/data-sets/census/ledger"]
    paths += ["/data-sets/census/workbench", "/data-sets/census/workbench?search=true"]
    paths += ["/data-sets/census/request", "/register", "/accounts", "/nothing"]
    with httpx.Client(base_url=place.url) as caller:
        form = {"name": name, "password": PASSWORD}
        caller.post("/sign-in", data=form, headers={"Origin": place.url})
        for path in paths:
            answer = caller.get(path)
            assert answer.status_code in (200, 403, 404), (path, answer.text)
            assert "</html>" in answer.text


def test_a_request_offers_the_measures_that_fit_the_label(place):
    with httpx.Client(base_url=place.url) as caller:
        signed_in(place, caller, "clara")
        form = caller.get("/data-sets/census/request").text
    assert "(held-out-auc), the default" in form
    assert "held-out-r2" not in form
    assert "(adjusted-pillai)" in form


def costs_of_masks(age, draw, *, epsilon):
    """Return the costs that a catalog states for a table whose ages may be shown unmasked."""
    rows = len(age)
    table = pa.table(
        {
            "age": age,
            "sex": draw.choice(["m", "f"], rows),
            "income": draw.choice(["high", "low"], rows),
            "canary": [f"n{i}" for i in range(rows)],
        }
    )
    named = POLICY.replace("income", "{column: income, classes: [high, low]}")
    named = named.replace("[{bucketize: {width: 10}}, ", "[identity, ").replace(
        "{bucketize: {width: 40}}, ", ""
    )
    return costs_in(protect(table, policy_of(named), level="noise", epsilon=epsilon, delta=1e-6))


def test_what_masks_of_a_hidden_column_cost_is_unknown():
    """Noise that hides all values made each mask look free: "at most 0.0 %"."""
    draw = np.random.default_rng(0)
    told = costs_of_masks(draw.integers(0, 2000, 300), draw, epsilon=0.5)
    lost = {(cost["attribute"], cost["mask"]): cost for cost in told}
    hidden = [cost for (name, _), cost in lost.items() if name == "age"]
    assert [cost["lost"] for cost in hidden if cost["levels"] <= 1] == [None] * len(hidden)
    page = bytes(fragment("costs.html", costs=told).body).decode()
    assert page.count("unknown: the protected summary hides all its values") >= 1
    assert {cost["hidden"] for cost in hidden} == {100}
    assert "The protected summary hides all values of age" in page


def test_what_masks_of_a_partly_hidden_column_cost_is_called_rough():
    """A loss of 38 % was shown where the table loses 1.5 %: most other columns were hidden."""
    draw = np.random.default_rng(0)
    often = np.where(draw.random(3000) < 0.5, 30, 40)
    age = np.where(draw.random(3000) < 0.7, often, draw.integers(0, 900, 3000))
    told = costs_of_masks(age, draw, epsilon=4)
    hidden = {cost["attribute"]: cost["hidden"] for cost in told}
    assert (20 < hidden["age"] < 40, hidden["sex"] < 0.5) == (True, True)
    page = bytes(fragment("costs.html", costs=told).body).decode()
    assert "These figures are rough" in page
    assert "some values of age" in page
    assert f"hides the values of {hidden['age']:.0f} % of the rows" in page


def signed_in(place, caller: httpx.Client, name: str) -> str:
    """Sign in; return the key that forms of the session carry."""
    form = {"name": name, "password": PASSWORD}
    caller.post("/sign-in", data=form, headers={"Origin": place.url})
    return caller.get("/tokens").text.split('name="form_key" value="', 1)[1].split('"', 1)[0]


@pytest.mark.parametrize(
    ("field", "given", "status", "told"),
    [
        ("ceiling", "much", 400, "is not a number"),
        ("ceiling", "nan", 400, "The budget cannot be nan"),
        ("approvals", "x", 422, "approvals is a text of 1 character, not a whole number"),
        ("source", "http://169.254.169.254/", 400, "is not a name"),
        ("identifier", "Census 2", 400, "cannot be a data set"),
        ("public_key", "ab", 400, "not an Ed25519 key"),
        ("policy", "version: 1\nattributes: {age: {role: nobody}}", 422, "nobody"),
    ],
)
def test_a_field_that_is_wrong_is_told_on_the_page_and_nothing_is_registered(
    place, field, given, status, told
):
    with httpx.Client(base_url=place.url, headers={"Origin": place.url}) as paula:
        form = {
            "form_key": signed_in(place, paula, "paula"),
            "identifier": "other",
            "source": "adult",
            "public_key": place.key,
        }
        answer = paula.post("/register", data={**form, field: given})
        assert answer.status_code == status
        assert told in html.unescape(answer.text)
        assert paula.get("/data-sets/other").status_code == 404


def test_you_register_a_data_set_with_its_policy_and_the_agent_is_asked_at_once(place):
    """The form had no field for a policy, unlike the command."""
    with httpx.Client(base_url=place.url, headers={"Origin": place.url}) as paula:
        form = {
            "form_key": signed_in(place, paula, "paula"),
            "source": "adult",
            "public_key": place.key,
        }
        assert 'name="policy"' in paula.get("/register").text
        asked = {"policy": POLICY, "protect": "noise", "epsilon": "0.5"}
        answer = paula.post("/register", data={**form, "identifier": "with-policy", **asked})
        assert answer.status_code == 303
        assert "Your agent summarises the table" in paula.get("/data-sets/with-policy").text
        none = paula.post("/register", data={**form, "identifier": "without", "policy": " "})
        assert none.status_code == 303
        assert "Your agent summarises" not in paula.get("/data-sets/without").text
        spent = paula.post(
            "/register", data={**form, "identifier": "costly", "ceiling": "0.1", **asked}
        )
        assert spent.status_code >= 400
        assert paula.get("/data-sets/costly").status_code == 404


def test_a_summary_that_could_not_be_made_is_told_on_the_page(place):
    """Its provider alone is told what the agent said of the table."""
    with place.client("paula") as paula:
        asked = POLICY.replace("  age:", "  height:")
        paula.ask_summary("census", asked, protect="noise", epsilon=1.0)
        place.work()
    pages = {}
    for name in ("paula", "clara"):
        with httpx.Client(base_url=place.url) as caller:
            signed_in(place, caller, name)
            pages[name] = html.unescape(caller.get("/data-sets/census").text)
    assert "The agent made no summary." in pages["paula"]
    assert "height" in pages["paula"]
    assert "The agent made no summary." not in pages["clara"]


def test_a_policy_is_edited_over_a_protected_summary_and_proposed(place):
    """Roles, masks and rule by the controls; the YAML that comes out goes in again, and to paula."""
    with httpx.Client(base_url=place.url, headers={"Origin": place.url}, timeout=60) as otto:
        key = signed_in(place, otto, "otto")
        base = "/data-sets/census/workbench"
        assert "Propose this policy to the provider" in otto.get(base).text
        form = {
            "form_key": key,
            "role:age": "quasi-identifier",
            "mask:age": ['{"bucketize": {"width": 40}}', "suppress"],
            "more:age": "bucketize: {width: 20}",
            "role:sex": "feature",
            "mask:sex": ["identity"],
            "k": "7",
            "suppression": "5",
        }
        drawn = otto.post(f"{base}/draw", data=form)
        assert drawn.status_code == 200, drawn.text
        for words in (
            "k = 7",
            "sex: feature instead of quasi-identifier",
            "sex: without suppress",
            "age: with",
            "does not contain age (bucketize",
        ):
            assert words in drawn.text, words
        shown = html.unescape(drawn.text)
        text = shown.split("<textarea", 1)[1].split(">", 1)[1].split("</textarea>", 1)[0]
        policy = policy_of(text)
        assert policy.privacy.to_mapping()["k"] == 7
        assert [str(m) for m in policy.attributes["sex"].masks] == ["identity"]
        best = otto.post(f"{base}/best", data=form)
        assert "The best of 2 combinations" in best.text
        front = otto.post(f"{base}/front", data=form).text
        assert "Only the owner of the table can check the rule." in front
        # The noise of the summary decides whether some configuration meets the rule.
        if "k = 3, 5, 10, 20, 50: by estimate, no configuration meets the rule." in front:
            assert front.count('class="dot"') == 0
        else:
            assert front.count('class="dot"') == 1
            assert "k = 3, 5, 10, 20: a stricter k keeps as much." in front
        again = otto.post(f"{base}/policy", data={"form_key": key, "policy": text})
        assert html.unescape(again.text).count(text) == 2
        file = otto.post(f"{base}/policy.yaml", data={"form_key": key, "policy": text})
        assert policy_of(file.text) == policy
        assert "attachment" in file.headers["content-disposition"]
        otto.post(f"{base}/propose", data={"form_key": key, "policy": text})
        for wrong in ("a: [", "version: 1", "- a"):
            answer = otto.post(f"{base}/policy", data={"form_key": key, "policy": wrong})
            assert answer.status_code in (400, 422), wrong
    with httpx.Client(base_url=place.url, headers={"Origin": place.url}) as paula:
        signed_in(place, paula, "paula")
        page = html.unescape(paula.get("/data-sets/census").text)
        assert "An operator proposes this policy" in page
        assert text in page


def write_parts(folder: Path) -> None:
    """Write a workbook of two sheets and an empty one, and a SQLite file of two tables."""
    with xlsxwriter.Workbook(folder / "book.xlsx") as book:
        for name in ("people", "visits", "empty"):
            sheet = book.add_worksheet(name)
            for row in range(0 if name == "empty" else 61):
                values = (20 + row % 9, "ab"[row % 2], ["no", "yes"][row % 3 % 2])
                sheet.write_row(row, 0, values if row else (f"age of {name}", "sex", "ill"))
    with closing(sqlite3.connect(folder / "base.sqlite")) as base:
        for name in ("people", "visits"):
            base.execute(f'CREATE TABLE {name} ("age of {name}" INTEGER, sex TEXT, ill TEXT)')
            rows = [(20 + i % 9, "ab"[i % 2], ["no", "yes"][i % 3 % 2]) for i in range(60)]
            base.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
        base.commit()


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_table(folder / "adult.csv", rows=300)
    write_parts(folder)
    (folder / "notes.md").write_text("no table")
    with running(ServiceSettings(local=True, folder=folder, worker=False)) as url:
        yield url, folder


def test_the_workbench_opens_no_table_outside_its_folder(bench):
    url, folder = bench
    (folder.parent / "secret.csv").write_text("a,b\n1,2\n")
    with httpx.Client(base_url=url) as caller:
        assert "adult.csv" in caller.get("/").text
        assert "notes.md" not in caller.get("/").text
        for name in ("../secret.csv", "/etc/passwd", "nothing.csv", f"{'x' * 5000}.csv"):
            assert caller.get("/table", params={"name": name}).status_code == 422
        assert caller.get("/api/v1/data-sets").status_code == 404


@pytest.mark.parametrize("file", ["book.xlsx", "base.sqlite"])
@pytest.mark.parametrize("label", ["ill", ""])
def test_a_part_of_a_file_is_chosen_and_opened_with_a_label_and_without(bench, file, label):
    url, _ = bench
    with httpx.Client(base_url=url, timeout=120, follow_redirects=True) as caller:
        asked = caller.get("/table", params={"name": file})
        assert asked.status_code == 200, asked.text
        assert re.findall('<option value="([^"]*)"', asked.text) == ["people", "visits"]
        chosen = caller.get("/table", params={"name": file, "part": "visits"}).text
        assert "age of visits" in chosen
        assert "60 rows, 3 columns" in chosen
        assert caller.get("/table", params={"name": file, "part": "none"}).status_code == 422
        key = chosen.split('name="form_key" value="', 1)[1].split('"', 1)[0]
        form = {"form_key": key, "name": file, "part": "visits", "label": label}
        shown = caller.post("/open", data=form, headers={"Origin": url})
        while shown.url.path.startswith("/opening/"):
            time.sleep(0.1)
            shown = caller.get(shown.url)
        assert shown.status_code == 200, shown.text
        assert f"{file}: visits" in shown.text
        assert ("predicting ill" if label else "no label") in shown.text
        form = {"form_key": key, "k": "2", "suppression": "10"}
        best = caller.post(f"{shown.url.path}/best", data=form, headers={"Origin": url})
        what = "the predictive value"
        assert (what if label else f"{what} of each column for the others") in best.text


def test_the_best_is_shown_if_the_policy_masks_the_label(bench):
    url, _ = bench
    with httpx.Client(base_url=url, timeout=120, follow_redirects=True) as caller:
        asked = caller.get("/table", params={"name": "adult.csv"}).text
        key = asked.split('name="form_key" value="', 1)[1].split('"', 1)[0]
        form = {"form_key": key, "name": "adult.csv", "label": "age"}
        shown = caller.post("/open", data=form, headers={"Origin": url})
        while shown.url.path.startswith("/opening/"):
            time.sleep(0.1)
            shown = caller.get(shown.url)
        base = shown.url.path
        text = re.search(r"<textarea[^>]*>(.*?)</textarea>", html.unescape(shown.text), re.DOTALL)[
            1
        ]
        mask = "attributes:\n  age: {role: feature, masks: [{round: {step: 10}}]}"
        edited = {"form_key": key, "policy": text.replace("attributes:", mask, 1)}
        told = caller.post(f"{base}/policy", data=edited, headers={"Origin": url})
        assert told.status_code == 200, told.text
        form = {"form_key": key, "k": "2", "suppression": "10"}
        best = caller.post(f"{base}/best", data=form, headers={"Origin": url})
        assert best.status_code == 200, best.text
        assert "round(step=10)" in best.text
        assert "Models are expected to reach R2" in best.text


def test_a_release_says_what_the_rule_does_not_cover():
    table = pa.table({"age": [30, 40] * 20, "note": list(range(40)), "y": [0, 0, 1, 1] * 10})
    roles = {"age": {"role": "quasi-identifier"}, "note": {"role": "feature"}}
    rule = {"version": 1, "label": "y", "privacy": {"k": 5}, "attributes": roles}
    study = aegis.Study(table, aegis.load_policy(rule))
    made = study.apply(study.rank())
    page = fragment(
        "bench_released.html", release=made, base="/", folder="out", files=[]
    ).body.decode()
    assert "40 of 40 released rows are the only ones with their values in all columns" in page
    assert "The column note shows 40 values and is nearly a key" in page


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        started = player.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield started
        started.close()


def answer_to_k(page, k, call):
    """Enter another k, and return the status of the answer to the call that this causes."""
    with page.expect_response(lambda answer: answer.url.endswith(call)) as answered:
        page.evaluate(
            f"() => {{ const k = document.getElementById('k'); k.value = {k};"
            " k.dispatchEvent(new Event('change', {bubbles: true})); }"
        )
    return answered.value.status


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_a_table_is_opened_searched_and_released_in_a_browser(bench, browser):
    url, folder = bench
    wrong: list[str] = []
    page = browser.new_page()
    page.set_default_timeout(120_000)
    page.on("console", lambda told: wrong.append(told.text) if told.type == "error" else None)
    page.on("requestfailed", lambda call: wrong.append(call.url))
    page.goto(url)
    page.click("a[href^='/table'] >> text=adult.csv")
    page.select_option("#label", "income")
    page.click("text=Open the workbench")
    page.wait_for_selector("#controls")
    assert answer_to_k(page, 10, "/draw") == 200
    page.click("text=Find the best")
    page.wait_for_selector("#best .headline")
    assert answer_to_k(page, 12, "/best") == 200
    page.wait_for_selector("#best .headline")
    page.click("text=Privacy against utility")
    page.wait_for_selector("#front svg.chart")
    page.click("text=Release the table")
    page.wait_for_selector("#released .note")
    page.click("text=Close the table")
    page.wait_for_selector("a[href^='/table'] >> text=adult.csv")  # closing must not cut it off
    page.close()
    assert not wrong
    made = next((folder / "aegis-releases").iterdir())
    assert {"masked.parquet", "certificate.json", "report.html"} <= {p.name for p in made.iterdir()}


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_a_release_is_shown_although_a_search_ends_meanwhile(bench, browser):
    """A better configuration replaces the card in which you clicked; the answer is shown all the same."""
    url, _ = bench
    held = []
    page = browser.new_page()
    page.set_default_timeout(120_000)
    page.goto(url)
    page.click("a[href^='/table'] >> text=adult.csv")
    page.select_option("#label", "income")
    page.click("text=Open the workbench")
    page.wait_for_selector("#controls")
    page.route("**/release", lambda route: held.append(route))
    page.click("text=Find the best")
    page.wait_for_selector("#best .headline")
    with page.expect_request(lambda call: call.url.endswith("/release")):
        page.click("text=Release the table")
    with page.expect_response(lambda answer: answer.url.endswith("/best")):
        page.click("text=Find the best")
    held[0].continue_()
    page.wait_for_selector("#released .note")
    page.click("text=Close the table")
    page.close()


def test_calls_wait_as_long_as_a_busy_machine_needs():
    with httpx.Client() as caller:
        assert caller.timeout == httpx.Timeout(60)


def test_a_page_says_in_which_section_it_is_and_which_request_it_shows(place):
    """Below the lists, no section was marked, and commands need a number that no page told."""
    number = place.ask()
    with httpx.Client(base_url=place.url) as caller:
        signed_in(place, caller, "otto")
        request, data_set = (
            caller.get(f"/requests/{number}").text,
            caller.get("/data-sets/census").text,
        )
    assert '<a href="/requests" aria-current="true">' in request
    assert '<a href="/" aria-current="true">' in data_set
    assert f"<code>{number[:8]}</code>" in request


def test_a_failed_request_gives_its_reason_once(place):
    number = place.ask()
    with place.client("otto") as otto, httpx.Client(base_url=place.url) as caller:
        otto.step(number, "approve")
        otto.step(number, "run")
        with mock.patch.object(Approvers, "require", side_effect=RefusedError("not this one")):
            place.work()
        signed_in(place, caller, "otto")
        assert caller.get(f"/requests/{number}").text.count("not this one") == 1
        otto.step(number, "reject", message="over")


def test_a_page_leads_with_the_signature_that_the_agent_needs(place):
    """The button that leads to a failed release was the primary one."""
    number = place.ask()
    with httpx.Client(base_url=place.url) as otto:
        signed_in(place, otto, "otto")
        page = html.unescape(otto.get(f"/requests/{number}").text)
    assert "The provider's agent releases only what approvers have signed." in page
    assert '<button class="second">Approve without a signature</button>' in page
    assert "<button>Approve with the signature</button>" in page


def test_a_key_is_pasted_as_its_file_holds_it(place):
    """`aegis keygen` writes PEM, and the page wanted hexadecimal digits that nothing prints."""
    pem = (place.folder / "otto.pub.pem").read_text()
    with httpx.Client(base_url=place.url, headers={"Origin": place.url}) as paula:
        form_key = signed_in(place, paula, "paula")
        form = {"form_key": form_key, "identifier": "pasted", "source": "adult"}
        answer = paula.post("/register", data={**form, "public_key": f"\n{pem}\n"})
    assert answer.status_code == 303, answer.text
    with place.client("paula") as paula:
        assert paula.data_set("pasted")["title"] == "pasted"


def test_a_key_of_an_unknown_kind_is_no_bug(place):
    """The library that reads keys has a second error for these, and the page stated a bug."""
    pem = "-----BEGIN PUBLIC KEY-----\nMAwwBAYCKgMDBABBQkM=\n-----END PUBLIC KEY-----\n"
    with httpx.Client(base_url=place.url, headers={"Origin": place.url}) as paula:
        form_key = signed_in(place, paula, "paula")
        form = {"form_key": form_key, "identifier": "unknown", "source": "adult"}
        answer = paula.post("/register", data={**form, "public_key": pem})
    assert answer.status_code == 400
    assert "The public key is not an Ed25519 key." in answer.text


def test_the_page_of_a_data_set_lists_who_has_a_role_and_takes_it_back(place):
    with httpx.Client(base_url=place.url, headers={"Origin": place.url}) as paula:
        form = {"form_key": signed_in(place, paula, "paula"), "account": "clara"}
        path = "/data-sets/census"
        label = "Take back the role consumer from clara"
        assert label not in paula.get(path).text
        paula.post(f"{path}/grants", data={**form, "role": "consumer"})
        assert label in paula.get(path).text
        paula.post(f"{path}/grants", data={**form, "role": "consumer", "granted": "false"})
        assert label not in paula.get(path).text
    with httpx.Client(base_url=place.url) as clara:
        signed_in(place, clara, "clara")
        assert "Take back" not in clara.get(path).text
