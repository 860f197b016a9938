"""The workbench in Chromium: `python -m benchmarks.service.latency TABLE LABEL`.

Printed: from a moved control to new costs on screen, and to a first best: medians of twenty; and to the
best that the page ends with, proven or not: of three. Processor time of the service stands beside, which
does not depend on what else the machine does.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.service.place import processor_time, served

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


def main() -> None:
    """Run it and print the figures."""
    from playwright.sync_api import sync_playwright

    table, label = Path(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as player:
        (Path(folder) / table.name).symlink_to(table.resolve())
        shutil.copy(table, Path(folder) / f"copy-{table.name}")
        with served("--local", folder) as url:
            browser = player.chromium.launch(
                executable_path=shutil.which("chromium"), args=list(ARGUMENTS)
            )
            page = browser.new_page()
            page.set_default_timeout(600_000)
            began = time.perf_counter()
            page.goto(f"{url}/table?name=copy-{table.name}")
            page.select_option("#label", label)
            page.click("text=Open it")
            page.wait_for_selector("#controls")
            print(f"opened after {time.perf_counter() - began:.1f} s")
            before = processor_time()
            moved = [float(page.evaluate(MOVE, 2 + n)) for n in range(TIMES)]
            told("control to costs and ranking", moved, processor_time() - before)
            page.click("text=Find the best")
            page.wait_for_selector("#best section")
            before = processor_time()
            searched = [best(page, 2 + n, FIRST) for n in range(TIMES)]
            told("control to a first best", searched, processor_time() - before)
            before = processor_time()
            ended = [best(page, k, LAST) for k in (5, 10, 25)]
            told("control to the last best", ended, processor_time() - before)
            print(f"{page.text_content('#best h2')}")
            browser.close()


def best(page: Any, k: int, until: str) -> float:
    """Move a control; return the milliseconds until the best that follows from it is on screen."""
    page.evaluate("document.querySelector('#best section').id = 'old'")
    began = time.perf_counter()
    page.evaluate(MOVE, k)
    page.wait_for_selector(until)
    return 1000 * (time.perf_counter() - began)


def told(what: str, milliseconds: list[float], seconds: float) -> None:
    """Print the median, the longest, and the processor time of each."""
    middle, longest = statistics.median(milliseconds), max(milliseconds)
    each = 1000 * seconds / len(milliseconds)
    print(
        f"{what}: {middle:.0f} ms (at most {longest:.0f}), {each:.0f} ms of processor time",
        flush=True,
    )


if __name__ == "__main__":
    main()
