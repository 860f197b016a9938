"""A plug-in of pytest that records how long each test takes, and which libraries the tests import.

Quick tests judge a mutant first, in a process that has the libraries.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

_seconds: dict[str, float] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        _seconds[report.nodeid] = report.duration


def pytest_sessionfinish() -> None:
    folder = Path(os.environ["AEGIS_MUTANTS"])
    (folder / "seconds.json").write_text(json.dumps(_seconds), encoding="utf-8")
    libraries = [
        name
        for name, module in list(sys.modules.items())
        if "site-packages" in (getattr(module, "__file__", None) or "")
    ]
    (folder / "modules.json").write_text(json.dumps(libraries), encoding="utf-8")
