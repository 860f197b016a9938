"""A benchmark's target is met by its figure, and by its proof where it asks for one."""

from __future__ import annotations

from benchmarks.measure import Figure


def test_a_search_without_a_proof_misses_its_target():
    quick = {"task": "search", "name": "to proof", "value": 31.0, "unit": "s", "target": 60.0}
    assert Figure(**quick).met
    assert Figure(**quick, proven=False).met is False
    assert Figure(**quick | {"target": None}, proven=False).met is None
