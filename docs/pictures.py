"""Take the README's pictures of a report and of a request from the demos; `make pictures` runs it.

A picture holds the figures or the rows that it shows as a text, and tests compare them with today's pages.
"""

from __future__ import annotations

import html
import re
import runpy
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib
from pathlib import Path

import aegis

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "docs" / "images" / "report.png"
REQUEST = ROOT / "docs" / "images" / "request.png"
SIZE = (1140, 1460)
"""Width and height in pixels."""
_KEY = b"figures"
_HEAD = 8
"""Bytes before the first chunk of a PNG file."""


def demo_report() -> str:
    """Return the report of `make demo` as HTML."""
    study = aegis.Study(
        str(ROOT / "data" / "adult.parquet"), str(ROOT / "examples" / "adult" / "policy.yaml")
    )
    return study.report()


def figures(page: str) -> str:
    """Return the figures that a report begins with, each with its name, as text."""
    listed = re.search(r'<dl class="figures.*?</dl>', page, re.DOTALL)
    named = r'<dt[^>]*>(.*?)</dt>\s*<dd class="value[^>]*>(.*?)</dd>'
    found = re.findall(named, listed[0] if listed else "", re.DOTALL)
    if not found:
        raise ValueError("the report begins with no figures")
    text = "; ".join(f"{name} {value}" for name, value in found)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def shown_figures(picture: Path) -> str:
    """Return the figures that a picture holds as a text."""
    data = picture.read_bytes()
    place = _HEAD
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        if kind == b"iTXt" and body.startswith(_KEY + b"\0"):
            return body.rpartition(b"\0")[2].decode()
        place += length + 12
    raise ValueError(f"{picture} holds no figures; `make pictures` takes it again")


def with_figures(picture: bytes, text: str) -> bytes:
    """Return a PNG file that also holds a text, in the chunk that the format has for it."""
    body = _KEY + b"\0\0\0\0\0" + text.encode()
    chunk = struct.pack(">I", len(body)) + b"iTXt" + body
    chunk += struct.pack(">I", zlib.crc32(b"iTXt" + body))
    after = _HEAD + 12 + struct.unpack(">I", picture[_HEAD : _HEAD + 4])[0]
    return picture[:after] + chunk + picture[after:]


def _browser() -> str:
    """Return the path of Chromium; end the program if there is none."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("Pictures are taken by Chromium: install it first.")
    return browser


def take(page: str) -> bytes:
    """Return the upper part of a page as PNG, as Chromium draws it."""
    browser = _browser()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "report.html"), Path(folder, "report.png")
        source.write_text(page, encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        subprocess.run(
            [
                browser,
                *options,
                f"--user-data-dir={folder}/profile",
                "--virtual-time-budget=5000",
                f"--window-size={SIZE[0]},{SIZE[1]}",
                f"--screenshot={target}",
                source.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )
        return target.read_bytes()


def request_rows(page: str) -> str:
    """Return the names of the rows on the page or template of a request, as text."""
    asked = page[: page.index("</dl>")]
    return "; ".join(re.findall(r"<dt>(.*?)</dt>", asked))


def take_request() -> tuple[bytes, str]:
    """Walk a request through the service's demo; return its page as PNG, and as HTML."""
    from playwright.sync_api import sync_playwright

    walk = runpy.run_path(str(ROOT / "examples" / "service" / "walk.py"))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as player:
        sys.argv[1:] = [folder]
        walk["main"]()
        database, url = f"{folder}/catalog.db", "http://127.0.0.1:8765"
        with walk["started"]("serve", "--database", database, "--port", "8765", "--quiet"):
            while not _answers(url):
                time.sleep(0.3)
            browser = player.chromium.launch(executable_path=_browser(), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 1104})
            page.goto(url)
            page.fill("#name", "otto")
            page.fill("#password", walk["PASSWORD"])
            page.click("main button")
            page.wait_for_selector("nav a")
            page.goto(f"{url}/requests")
            page.click("td.wide a")
            page.wait_for_selector("dl.facts")
            taken = page.screenshot(), page.content()
            browser.close()
    return taken


def _answers(url: str) -> bool:
    """Return whether a service answers at a URL."""
    try:
        with urllib.request.urlopen(f"{url}/api/v1/live", timeout=5):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    picture, shown = take_request()
    REQUEST.write_bytes(with_figures(picture, request_rows(shown)))
    report = demo_report()
    REPORT.write_bytes(with_figures(take(report), figures(report)))
