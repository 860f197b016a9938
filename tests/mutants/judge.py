"""Judge one mutant in a process that forked from one that has imported the libraries already."""

from __future__ import annotations

import os
import resource
import sys
from multiprocessing import set_start_method
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from hypothesis import Phase, settings

LIBRARIES = "ignore::pytest.PytestAssertRewriteWarning"
"""Pytest would warn that the process has its plug-ins already."""


def run(
    copy: Path, folder: Path, tests: list[str], limit: int, first: bool, answer: Connection
) -> None:
    """Run tests on a copy of the source, and send pytest's code and the tests that failed.

    Parameters
    ----------
    copy
        The source to import.
    folder
        The project, with its tests.
    tests
        What to run, in this order.
    limit
        Seconds of the processor after which the process is killed.
    first
        Whether to stop at the first that fails.
    answer
        Where to send to.
    """
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    set_start_method(None, force=True)
    os.chdir(folder)
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(quiet, stream)
    sys.path.insert(0, str(copy))
    sys.dont_write_bytecode = True
    os.environ |= environment(copy)
    failed = Failed()
    options = [
        "-q",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "-W",
        LIBRARIES,
        *(["-x"] if first else []),
    ]
    code = pytest.main([*options, *tests], plugins=[failed])
    answer.send((int(code), failed.nodes))


def environment(copy: Path) -> dict[str, str]:
    """Return what has Python import a copy of the source."""
    return {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}


class Failed:
    """A plug-in of pytest that keeps which tests failed, and shrinks no example of Hypothesis."""

    def __init__(self) -> None:
        self.nodes: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        quick = settings(phases=(Phase.explicit, Phase.generate))
        settings.register_profile("mutants", quick)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.nodes.append(report.nodeid)
