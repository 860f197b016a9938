"""Pages on a phone: nothing is wider than the screen."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

import aegis
from aegis.report import render_certificate

BROWSER = shutil.which("chromium")
WIDTHS = (320, 400, 720)
FRAMES = """<!doctype html><title></title>
{frames}
<script>addEventListener('load', () => document.title = [...document.querySelectorAll('iframe')]
  .map(frame => frame.contentDocument.documentElement.scrollWidth).join(' '))</script>"""


def widths_of(pages: Mapping[str, str], folder: Path) -> dict[str, list[int]]:
    """Return how wide each page is, in pixels, on screens of `WIDTHS`.

    A browser's window is never narrow, a frame in it may be.
    """
    frames = "\n".join(
        f'<iframe width={width} height=900 srcdoc="{html.escape(page)}"></iframe>'
        for page in pages.values()
        for width in WIDTHS
    )
    held = folder / "frames.html"
    held.write_text(FRAMES.format(frames=frames), encoding="utf-8")
    made = subprocess.run(
        [
            str(BROWSER),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--disable-dev-shm-usage",
            f"--user-data-dir={folder / 'profile'}",
            "--virtual-time-budget=5000",
            "--dump-dom",
            held.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    title = re.search("<title>([0-9 ]+)</title>", made.stdout)
    assert title is not None, made.stdout[:200]
    found = map(int, title[1].split())
    return {name: [next(found) for _ in WIDTHS] for name in pages}


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_no_report_is_wider_than_the_screen(tmp_path: Path) -> None:
    study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    advice = study.search(top=3)
    study.apply(advice, tmp_path / "m.parquet", certificate=tmp_path / "c.json")
    pages = {
        "report": study.report(advice),
        "certificate": render_certificate(json.loads((tmp_path / "c.json").read_text())),
    }
    assert widths_of(pages, tmp_path) == {name: list(WIDTHS) for name in pages}
