"""The workbench in Chromium: from a moved control to what follows from it on screen."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import ADULT, Figure, SkipError
from benchmarks.processes import seconds_of
from benchmarks.service.catalog import served

if TYPE_CHECKING:
    from benchmarks.tasks import Settings

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
TIMES = 20
FIRST = "#best section:not(#old)"
LAST = "#best:not(:has(> [role=status])) section:not(#old)"
MOVE = """value => new Promise(done => {
  const view = document.getElementById('view'), began = performance.now();
  new MutationObserver((_, watch) => {
    watch.disconnect();
    requestAnimationFrame(() => done(performance.now() - began));
  }).observe(view, {childList: true});
  const control = document.getElementById('k');
  control.value = value;
  control.dispatchEvent(new Event('change', {bubbles: true}));
})"""


def workbench(settings: Settings) -> Iterator[Figure]:
    """Open Adult in the workbench, and move a control until costs, a first and a last best follow."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise SkipError("there is no program chromium")
    folder = Path(tempfile.mkdtemp(dir=settings.folder))
    shutil.copy(ADULT, folder)
    with served("--local", folder) as (url, process), sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        page = browser.new_page()
        page.set_default_timeout(120_000)

        def opened(_: int) -> float:
            began = time.perf_counter()
            page.goto(f"{url}/table?name={ADULT.name}")
            page.select_option("#label", "income")
            page.click("text=Open the workbench")
            page.wait_for_selector("#controls")
            return 1000 * (time.perf_counter() - began)

        yield from _figures(process, "opened table", opened, [0])

        def ranked(k: int) -> float:
            return float(page.evaluate(MOVE, k))

        yield from _figures(process, "control to costs and ranking", ranked, range(2, 2 + TIMES))
        page.click("text=Find the best")
        page.wait_for_selector(LAST)
        for name, until, values in (
            ("control to a first best", FIRST, range(2, 2 + TIMES)),
            ("control to the last best", LAST, (5, 10, 25)),
        ):
            yield from _figures(process, name, lambda k, until=until: _best(page, k, until), values)
        print(f"workbench: {page.text_content('#best h2')}")
        browser.close()


def _figures(
    process: int, name: str, move: Callable[[int], float], values: Iterable[int]
) -> Iterator[Figure]:
    """Move a control to some values; yield the median on screen, and the service's processor time."""
    before = seconds_of(process)
    milliseconds = [move(value) for value in values]
    each = 1000 * (seconds_of(process) - before) / len(milliseconds)
    note = f"median of {len(milliseconds)}, at most {max(milliseconds):.0f} ms"
    yield Figure(
        "workbench", f"{name}, on screen", statistics.median(milliseconds), "ms", note=note
    )
    yield Figure("workbench", f"{name}, processor time of the service", each, "ms")


def _best(page: Any, k: int, until: str) -> float:
    """Move a control; return the milliseconds until the best that follows from it is on screen."""
    page.evaluate("document.querySelector('#best section').id = 'old'")
    began = time.perf_counter()
    page.evaluate(MOVE, k)
    page.wait_for_selector(until)
    return 1000 * (time.perf_counter() - began)
