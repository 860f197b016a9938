"""A plug-in of pytest that records how long each test takes: quick tests judge a mutant first."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_seconds: dict[str, float] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        _seconds[report.nodeid] = report.duration


def pytest_sessionfinish() -> None:
    Path(os.environ["AEGIS_MUTANTS_SECONDS"]).write_text(json.dumps(_seconds), encoding="utf-8")
