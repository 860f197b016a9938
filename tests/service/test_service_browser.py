"""A browser against hostile names and values, and against forms of other sites."""

from __future__ import annotations

import csv
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from service_support import PASSWORD, running

from aegis.policy.load import write_mapping
from aegis.service.settings import ServiceSettings

BROWSER = shutil.which("chromium")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
ARGUMENTS = [
    "--headless",
    "--remote-debugging-port=0",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # where that is small, pages hang
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
STARTS = 30.0
"""Seconds in which a browser must be ready; else it is killed and another is started."""
TRIES = 4
"""Browsers that are started, until one is ready."""
ACTS = 60.0
"""Seconds that one action on a page may take."""
LIVES = 240.0
"""Seconds after which a browser is killed: then all that waits for it ends, also what has no limit
of its own in Playwright (`evaluate`, `new_page`, `close`)."""
PAYLOADS = (
    "<img src=x onerror=window.owned=1>",
    '"><script>window.owned=1</script>',
    "</textarea><script src=//evil.example/x.js></script>",
    "'-window.owned=1-'",
    "{{7*7}}${7*7}<%= 7*7 %>",
    "javascript:window.owned=1",
    "=cmd|' /C calc'!A0",
    "<svg/onload=window.owned=1>",
    "'; DROP TABLE log; --",
    '<a href="javascript:window.owned=1" hx-get="http://evil.example/" hx-trigger="load">x</a>',
    "<link rel=stylesheet href=//evil.example/x.css>",
    "\u202egnp.exe",
)
NAMES = (PAYLOADS[0], PAYLOADS[1], PAYLOADS[9])


def write_hostile(path: Path) -> None:
    draw = random.Random(3)
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow([*NAMES, "label"])
        for _ in range(600):
            out.writerow([draw.choice(PAYLOADS) for _ in NAMES] + [draw.choice("ab")])


POLICY = write_mapping(
    {
        "version": 1,
        "label": "label",
        "privacy": {"k": 3, "suppression": 0.5},
        "attributes": {
            name: {"role": "quasi-identifier", "masks": ["identity", "suppress"]} for name in NAMES
        },
    }
)


@contextmanager
def started(folder: str) -> Iterator[tuple[subprocess.Popen[bytes], str | None]]:
    """Start a browser; yield its process and its address, None where it is not ready in time."""
    hidden = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([str(BROWSER), *ARGUMENTS, f"--user-data-dir={folder}"], **hidden)
    told, end = Path(folder, "DevToolsActivePort"), time.monotonic() + STARTS
    text = ""
    try:
        while "\n" not in text and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
            text = told.read_text() if told.is_file() else ""
        yield process, f"http://127.0.0.1:{text.split()[0]}" if "\n" in text else None
    finally:
        process.kill()
        process.wait()


def connect(player, address: str | None):
    """The browser at an address, None where there is none or where it does not answer in time."""
    from playwright.sync_api import Error

    try:
        return address and player.chromium.connect_over_cdp(address, timeout=1000 * STARTS)
    except Error:
        return None


@contextmanager
def connected(player):
    """A browser that ends after `LIVES`, and the test that waits for it with a word on the cause."""
    for _ in range(TRIES):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        with folder as place, started(place) as (process, address):
            browser = connect(player, address)
            if browser is None:
                continue
            watch = threading.Timer(LIVES, process.kill)
            watch.start()
            try:
                yield browser
            finally:
                watch.cancel()
            if process.poll() is not None:
                pytest.fail(f"Chromium ended, or hung and was killed after {LIVES:.0f} s")
            return
    pytest.fail(f"Chromium was not ready within {STARTS:.0f} s, {TRIES} times")


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player, connected(player) as browser:
        yield browser


class Watch:
    """What a page did that it must not."""

    def __init__(self, page, origin: str) -> None:
        self.wrong: list[str] = []
        self.page, self.origin = page, origin
        page.set_default_timeout(1000 * ACTS)
        page.on("dialog", lambda box: (self.wrong.append(f"dialog {box.message}"), box.dismiss()))
        page.on("console", self._console)
        page.on("request", self._request)

    def _console(self, told) -> None:
        if told.type == "error" and "status of" not in told.text:
            self.wrong.append(told.text)

    def _request(self, call) -> None:
        if not call.url.startswith((self.origin, "data:")):
            self.wrong.append(call.url)

    def visit(self, path: str) -> list[str]:
        """Open a page, open all that is folded, and return where its links lead."""
        self.page.goto(f"{self.origin}{path}")
        self.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        self.check(path)
        found = self.page.eval_on_selector_all("a[href]", "all => all.map(a => a.href)")
        return [
            link.removeprefix(self.origin)
            for link in found
            if link.startswith(f"{self.origin}/") and "#" not in link
        ]

    def check(self, where: str) -> None:
        assert self.page.evaluate("window.owned") is None, where
        assert not self.wrong, (where, self.wrong)


LEFT_OUT = (
    "/data-sets/census",  # without payloads
    "/exports/",
    "/log/export",
    "/download",
    "/statement",
    "/certificate",
    ".json",
    ".jsonld",
    ".yaml",
    "/static/",
)


def crawl(watch: Watch) -> set[str]:
    seen: set[str] = set()
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        if path in seen or any(part in path for part in LEFT_OUT):
            continue
        seen.add(path)
        waiting += watch.visit(path)
    return seen


@pytest.fixture(scope="module")
def hostile(place):
    """A data set of payloads, taken from registration to a release."""
    write_hostile(place.folder / "hostile.csv")
    known = place.agent.settings.sources
    known["hostile"] = replace(known["adult"], table=str(place.folder / "hostile.csv"))
    with place.client("paula") as paula, place.client("otto") as otto:
        paula.register(
            "hostile",
            source="hostile",
            public_key=place.key,
            title=PAYLOADS[1],
            description=" ".join(PAYLOADS),
            terms=PAYLOADS[2],
            population=PAYLOADS[4],
            public=True,
        )
        paula.ask_summary("hostile", POLICY, protect="noise", epsilon=8.0)
        place.work()
        paula.publish("hostile")
        paula.grant("hostile", "otto", "operator")
        with place.client("clara") as clara:
            number = clara.request("hostile", PAYLOADS[0], terms_accepted=True)["id"]
        otto.step(number, "review")
        otto.step(number, "choose")
        place.work()
        otto.step(number, "approve")
        otto.step(number, "run")
        place.work()
        assert otto.shown(number)["state"] == "released"
    return number


def sign_in(page, place, name: str) -> None:
    page.goto(place.url)
    page.fill("#name", name)
    page.fill("#password", PASSWORD)
    page.click("main button")
    page.wait_for_selector("nav a")


def test_payloads_of_a_data_set_stay_text(place, hostile, chromium):
    for name in ("paula", "otto", "clara", "aude"):
        context = chromium.new_context()
        page = context.new_page()
        watch = Watch(page, place.url)
        sign_in(page, place, name)
        seen = crawl(watch)
        due = {"/", "/requests", "/data-sets/hostile", f"/requests/{hostile}"}
        assert due <= seen, name
        if name == "otto":
            assert "/data-sets/hostile/workbench" in seen
        context.close()


def test_payloads_of_ones_own_table_stay_text(tmp_path, chromium):
    write_hostile(tmp_path / "<img src=x onerror=window.owned=1>.csv")
    with running(ServiceSettings(local=True, folder=tmp_path, worker=False)) as url:
        page = chromium.new_page()
        watch = Watch(page, url)
        crawl(watch)
        page.goto(url)
        page.click("td a")
        page.select_option("#label", "label")
        page.click("text=Open the workbench")
        page.wait_for_selector("#controls")
        page.click("text=Find the best")
        page.wait_for_selector("#best .headline, #best .problem")
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        watch.check("bench")
        page.close()


def test_a_form_of_another_site_changes_nothing(place, chromium):
    """A page elsewhere that sends a form with the browser of who is signed in."""
    number = place.ask()
    context = chromium.new_context()
    page = context.new_page()
    sign_in(page, place, "clara")
    trap = (
        f"<form method=post action='{place.url}/requests/{number}/withdraw'>"
        "<input name=form_key value=guessed><button>win</button></form>"
    )
    page.route("http://evil.example/**", lambda r: r.fulfill(body=trap, content_type="text/html"))
    page.goto("http://evil.example/")
    with page.expect_response(lambda answer: answer.url.endswith("/withdraw")) as sent:
        page.click("button")
    assert sent.value.status == 403
    with place.client("clara") as clara:
        assert clara.shown(number)["state"] == "in review"
    context.close()


WIDTHS = (320, 360, 500)
SCROLLS = (
    "[document.documentElement, ...document.querySelectorAll('.scroll')]"
    ".some(shown => shown.scrollWidth > shown.clientWidth)"
)


def test_long_words_of_people_fit_a_narrow_page(place, chromium):
    """A name of 80 letters and a description without a space pushed the page to three widths."""
    name, word = "x" * 80, "Donaudampfschifffahrt" * 9
    with place.client("paula") as paula:
        paula.register(
            name, source="adult", public_key=place.key, title=word, description=word, terms=word
        )
        number = place.ask()
        paula.step(number, "reject", message=word)
    context = chromium.new_context(viewport={"width": 360, "height": 900})
    page = context.new_page()
    sign_in(page, place, "paula")
    for path in ("/", f"/data-sets/{name}", "/data-sets/census", f"/requests/{number}", "/log"):
        page.goto(f"{place.url}{path}")
        assert not page.evaluate(SCROLLS), path
    page.goto(f"{place.url}/data-sets/{name[1:]}")
    assert "There is no data set" in page.inner_text("main")
    assert not page.evaluate(SCROLLS)
    context.close()


@pytest.mark.parametrize("name", ["otto", "ada"])
def test_lists_of_rows_fit_a_narrow_page(place, chromium, name):
    """The list of requests scrolled sideways, and hid when a request changed."""
    number = place.ask()
    context = chromium.new_context(viewport={"width": WIDTHS[0], "height": 900})
    page = context.new_page()
    sign_in(page, place, name)
    pages = {
        "otto": ("/requests", f"/requests/{number}", "/data-sets/census", "/log", "/tokens"),
        "ada": ("/accounts", "/account"),
    }
    for path in pages[name]:
        page.goto(f"{place.url}{path}")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("window.innerWidth") == width
            assert page.locator("tbody td:visible").count() > 2
            assert not page.evaluate(SCROLLS), (path, width)
    context.close()
