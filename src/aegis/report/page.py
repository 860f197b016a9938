"""Write a report to a file, as HTML or as PDF that an installed browser prints."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from aegis.errors import PolicyError
from aegis.files import replacing, temporary_folder, write_text

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
    "microsoft-edge",
)
"""The commands of browsers that can print to PDF without a window."""
SECONDS = 120
"""Number of seconds that printing may take."""


def write_page(path: Path, page: str) -> None:
    """Write an HTML document (`page`) to a file, as HTML or as PDF, depending on the extension of
    the path.

    Raises
    ------
    PolicyError
        A PDF is requested, but no suitable browser is installed, or printing fails. Then nothing is
        written.
    """
    if path.suffix.lower() != ".pdf":
        write_text(path, page)
        return
    browser = next((program for name in BROWSERS if (program := shutil.which(name))), None)
    if browser is None:
        raise PolicyError(
            f"To write the PDF {path}, Aegis needs an installed Chromium, Chrome or Edge.",
            hint="Write .html, and print it from any browser: the report has a print style.",
        )
    with replacing(path) as temporary, temporary_folder("report") as folder:
        source = folder / "report.html"
        source.write_text(page, encoding="utf-8")
        _print(browser, source, temporary, folder / "profile")


def _print(browser: str, source: Path, target: Path, profile: Path) -> None:
    """Print a page to a PDF file with a browser, which has a temporary `profile`."""
    command = [
        browser,
        "--headless",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--no-sandbox",  # the page runs no script and loads nothing: its own policy forbids both
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-pdf-header-footer",
        f"--user-data-dir={profile}",
        f"--print-to-pdf={target.resolve()}",
        source.as_uri(),
    ]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(browser, str(error)) from error
    if done.returncode or not target.is_file() or not target.stat().st_size:
        raise _failed(browser, done.stderr.decode(errors="replace").strip().splitlines()[-1:])


def _failed(browser: str, why: object) -> PolicyError:
    return PolicyError(
        f"{browser} could not print the report: {why or 'it wrote nothing'}.",
        hint="Write .html, and print it from any browser.",
    )
