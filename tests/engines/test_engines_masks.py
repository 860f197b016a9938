"""One suite on all engines: every mask gives on each what it gives on the embedded one.

The reference of engines, docs/reference/engines.md, is written from the cases and the gaps below:
`python tests/engines/engines_reference.py` writes it, and a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from engines_cases import CASES, ENGINES, GAPS, Case, opened, shown
from engines_reference import PATH, reference

from aegis.errors import EngineError
from aegis.masks import MASKS, parse_mask
from aegis.sources import Source

# Spark's driver leaves sockets to the garbage collector, and calls old names of pandas.
QUIET = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[tuple[str, dict[str, Source]]]:
    """Every column of the cases as a table of one engine; skips with the reason without it."""
    with ExitStack() as stack:
        yield request.param, opened(request.param, request, stack)


def _parameters() -> Iterator[Any]:
    for name in ENGINES:
        for case in CASES:
            gap = GAPS.get((name, case.name))
            marks = [QUIET] if name == "Spark" else []
            if gap is not None:
                marks.append(pytest.mark.xfail(reason=gap.reason, raises=gap.raises, strict=True))
            yield pytest.param(name, case, marks=marks, id=f"{name}-{case.name}")


@pytest.mark.parametrize(("engine", "case"), list(_parameters()), indirect=["engine"])
def test_a_mask_means_the_same(engine: tuple[str, dict[str, Source]], case: Case) -> None:
    _, sources = engine
    source = sources[case.column]
    mask = parse_mask(case.mask)
    masked = source.table.select(row="row", x=mask.expression(source.table["v"]))
    found = source.collect(masked)
    order = sorted(
        zip(found["row"].to_pylist(), found["x"].to_pylist(), strict=True), key=lambda p: p[0]
    )
    assert [shown(value) for _, value in order] == case.expected()


@QUIET
@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_an_engine_counts_values_alike(engine: tuple[str, dict[str, Source]]) -> None:
    _, sources = engine
    for source in sources.values():
        counted = source.collect(source.table.group_by("v").aggregate(n=source.table.count()))
        # Values of the cases are distinct, but for zeros and NaN of two signs.
        keys = [shown(value) for value in counted["v"].to_pylist()]
        assert len(keys) == len(set(keys))


WITHOUT_CASE = {
    "level": "it needs a hierarchy",
    "compose": "each of its masks has cases",
    "tokenise": "it needs a secret key",
}
"""Masks that the suite leaves out, with the reason; masks that draw at random have tests of their own."""


def test_every_mask_has_a_case() -> None:
    tried = {parse_mask(case.mask).name for case in CASES}
    due = {m.name for m in MASKS if m.mask.deterministic} - WITHOUT_CASE.keys()
    lacking = sorted(due - tried)
    assert not lacking, (
        f"add a case of {lacking} to MASKS in engines_cases.py, and where an engine differs a reason "
        "to GAPS; then run: python tests/engines/engines_reference.py"
    )


def test_gaps_are_of_known_engines_and_cases() -> None:
    assert {name for name, _ in GAPS} <= set(ENGINES)
    assert {case for _, case in GAPS} <= {case.name for case in CASES}
    assert all(
        issubclass(gap.raises, AssertionError | EngineError | Exception) for gap in GAPS.values()
    )


def test_the_reference_of_engines_is_up_to_date() -> None:
    assert PATH.read_text(encoding="utf-8") == reference(), (
        "run: python tests/engines/engines_reference.py"
    )
