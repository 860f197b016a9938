"""A plug-in of pytest that records which lines each test runs, how long it takes, and which libraries.

Quick tests judge a mutant first, in a process that has the libraries.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from coverage import Coverage

_seconds: dict[str, float] = {}
_passed: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tell coverage which test runs; by itself it takes no test of Hypothesis for one.

    Keep the seconds of the processor, also of what prepares the test and of programs that it starts.
    """
    recording = Coverage.current()
    assert recording is not None
    recording.switch_context(item.nodeid)
    before = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        recording.switch_context("")
        if item.nodeid in _passed:
            _seconds[item.nodeid] = sum(os.times()[:4]) - before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Keep which tests pass: no other one judges a mutant."""
    result = yield
    _passed.add(item.nodeid)
    return result


def pytest_sessionfinish() -> None:
    folder = Path(os.environ["AEGIS_MUTANTS"])
    (folder / "seconds.json").write_text(json.dumps(_seconds), encoding="utf-8")
    libraries = [
        name
        for name, module in list(sys.modules.items())
        if "site-packages" in (getattr(module, "__file__", None) or "")
    ]
    (folder / "modules.json").write_text(json.dumps(libraries), encoding="utf-8")
