"""A benchmark's target is met by its figure, and by its proof where it asks for one."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.measure import Figure, measured


def test_a_search_without_a_proof_misses_its_target():
    quick = {"task": "search", "name": "to proof", "value": 31.0, "unit": "s", "target": 60.0}
    assert Figure(**quick).met
    assert Figure(**quick, proven=False).met is False
    assert Figure(**quick | {"target": None}, proven=False).met is None


def test_the_peak_of_a_step_is_the_one_that_it_states():
    words = [sys.executable, "-c", 'print(\'{"seconds": 1, "cpu": 1, "peak": 7.5, "result": {}}\')']
    running = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert measured(running, "a step").peak == 7.5
