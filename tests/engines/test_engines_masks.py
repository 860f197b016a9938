"""One suite on all engines: every mask gives on each what it gives on the embedded one.

The reference of engines, docs/reference/engines.md, is written from the cases and the gaps below:
`python tests/engines/engines_reference.py` writes it, and a test holds the two together.
"""

from __future__ import annotations

from collections import defaultdict
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
def engines() -> Iterator[tuple[ExitStack, dict[str, dict[str, Source]]]]:
    """What must be closed, and the tables of each engine that a test asked for."""
    with ExitStack() as stack:
        yield stack, {}


@pytest.fixture
def engine(
    request: pytest.FixtureRequest, engines: tuple[ExitStack, dict[str, dict[str, Source]]]
) -> tuple[str, dict[str, Source]]:
    """Every column of the cases as a table of one engine; skips with the reason without it."""
    stack, ready = engines
    if request.param not in ready:
        ready[request.param] = opened(request.param, request, stack)
    return request.param, ready[request.param]


def _parameters() -> Iterator[Any]:
    for name in ENGINES:
        for case in CASES:
            gap = GAPS.get((name, case.name))
            marks = [QUIET] if name == "Spark" else []
            if gap is not None:
                marks.append(pytest.mark.xfail(reason=gap.reason, raises=gap.raises, strict=True))
            yield pytest.param(name, case, marks=marks, id=f"{name}-{case.name}")


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], list[Any]]:
    """What an engine finds under the masks of a column: they share a query, once the first is asked for."""
    return {}


def masked(engine: str, source: Source, case: Case) -> dict[str, list[Any]]:
    """Return the values of a case in order, and of all that share its query: those without a gap."""
    alike = [c for c in CASES if c.column == case.column and (engine, c.name) not in GAPS]
    if case in alike:
        try:
            return masked_together(source, alike)
        except EngineError:
            # Of which case it is, each tells alone.
            pass
    return masked_together(source, [case])


def masked_together(source: Source, cases: list[Case]) -> dict[str, list[Any]]:
    """Return the values of each case in order, by one query."""
    asked = dict(enumerate(cases))
    values = {f"x{i}": parse_mask(c.mask).expression(source.table["v"]) for i, c in asked.items()}
    rows = source.collect(source.table.select(row="row", **values)).sort_by("row")
    return {c.name: [shown(v) for v in rows[f"x{i}"].to_pylist()] for i, c in asked.items()}


@pytest.mark.parametrize(("engine", "case"), list(_parameters()), indirect=["engine"])
def test_a_mask_means_the_same(
    engine: tuple[str, dict[str, Source]], found: dict[tuple[str, str], list[Any]], case: Case
) -> None:
    name, sources = engine
    if (name, case.name) not in found:
        values = masked(name, sources[case.column], case)
        found |= {(name, other): told for other, told in values.items()}
    assert found[name, case.name] == case.expected()


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


def test_the_cases_of_a_mask_show_more_than_one_value() -> None:
    """A column that a mask does not suit, such as texts without "@" for one of mails, tests nothing."""
    shows: dict[str, int] = defaultdict(int)
    for case in CASES:
        name = parse_mask(case.mask).name
        values = {repr(value) for value in case.expected() if value is not None}
        shows[name] = max(shows[name], len(values))
    lacking = sorted(name for name, values in shows.items() if values < 2 and name != "suppress")
    assert not lacking, f"add values that {lacking} show differently to COLUMNS in engines_cases.py"


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
