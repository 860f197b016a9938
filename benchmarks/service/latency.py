"""The workbench in Chromium: `python -m benchmarks.service.latency TABLE LABEL`.

Printed: from a moved control to new costs on screen, and to the best: medians of twenty.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.service.place import served

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
TIMES = 20
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
            moved = [float(page.evaluate(MOVE, 2 + n)) for n in range(TIMES)]
            print(f"control to costs and ranking: {statistics.median(moved):.0f} ms")
            searched = [best(page, 2 + n) for n in range(TIMES)]
            print(f"control to the best: {1000 * statistics.median(searched):.0f} ms")
            print(f"{page.text_content('#best h2')}")
            browser.close()


def best(page: Any, k: int) -> float:
    """Move a control and search the best; return the seconds until it is on screen."""
    page.evaluate(MOVE, k)
    page.evaluate("document.getElementById('best').replaceChildren()")
    began = time.perf_counter()
    page.click("text=Find the best")
    page.wait_for_selector("#best .headline, #best .problem")
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
