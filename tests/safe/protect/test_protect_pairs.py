"""What moments say of pairs: the shared programs against one by one, and against brute force."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protect_support import make_table
from scipy.optimize import linprog

import aegis
from aegis.errors import DataError
from aegis.safe.protect import CellMethod, Moments, audit_leak, protect
from aegis.safe.protect.counts import _rounded, _without_pairs
from aegis.safe.protect.derive import pairs as derive_pairs
from aegis.safe.protect.derive.cells import known_bounds
from aegis.safe.protect.derive.pairs import _Program, audit_pairs, count_pairs, first_pinned
from aegis.safe.protect.model import GRID

STEP = 3
"""To which drawn label tables are rounded."""
KEY = b"a secret of at least 16 bytes"


@pytest.fixture(scope="module")
def told(policy):
    return protect(make_table(700), policy, level="counts", key=KEY, method="rounding")


def programs(protected):
    attributes = list(protected.attributes.values())
    bounds = [known_bounds(protected, a) for a in attributes]
    for i, j in itertools.combinations(range(len(attributes)), 2):
        if attributes[i].codes.size and attributes[j].codes.size:
            yield _Program(
                protected,
                (i, j),
                (attributes[i], attributes[j]),
                bounds,
                protected.protection.threshold,
            )


def exact_table(policy, told, names):
    """Rows of each pair of cells, counted row by row."""
    summary = aegis.summarize(make_table(700), policy)
    from aegis.safe.protect.cells import cells_of, without_small

    cells = {n: without_small(cells_of(summary.attributes[n]), 10) for n in names}
    place = {
        n: dict(zip(summary.attributes[n].values.to_pylist(), c.of_value.tolist(), strict=True))
        for n, c in cells.items()
    }
    counted = np.zeros([cells[n].count for n in names])
    for row in make_table(700).to_pylist():
        counted[place[names[0]][row[names[0]]], place[names[1]][row[names[1]]]] += 1
    return counted


@pytest.mark.parametrize("method", CellMethod)
def test_the_true_table_agrees_with_every_program(policy, method):
    """No row is clipped and what is added is bounded, so that what the program excludes is not so."""
    told = protect(make_table(700), policy, level="counts", key=KEY, method=method)
    for program in programs(told):
        names = [a.name for a in program.attributes]
        truth = exact_table(policy, told, names)
        if truth.shape != program.shape:
            continue  # the audit of label tables joined more cells than the threshold asks for
        sums = program.sums @ truth.ravel()
        assert (sums >= program.least - 1e-6).all(), names
        assert (sums <= program.most + 1e-6).all(), names
        assert (truth.ravel() <= program.high).all()


def test_shared_programs_find_what_one_program_per_cell_finds(told):
    careless = replace(told, moments=Moments(told.moments.matrix, told.moments.error / 3))
    for summary in (told, careless):
        for program in itertools.islice(programs(summary), 3):
            asked = program.candidates()
            try:
                shared = {
                    d.cells[0] * program.shape[1] + d.cells[1]: d.range
                    for d in program.narrower_than(40, asked)
                }
            except aegis.AegisError:
                continue  # narrower than the truth: nothing agrees, which both would say
            for place in asked.tolist():
                ends = []
                for sign in (1, -1):
                    aim = np.zeros(program.size)
                    aim[place] = sign
                    both = np.vstack([program.sums.toarray(), -program.sums.toarray()])
                    solved = linprog(
                        aim,
                        A_ub=both,
                        b_ub=np.concatenate([program.most, -program.least]),
                        bounds=list(zip(np.zeros(program.size), program.high, strict=True)),
                        method="highs-ipm",
                    )
                    ends.append(sign * solved.fun)
                low, high = np.ceil(ends[0] - 1e-6), np.floor(ends[1] + 1e-6)
                narrow = high - low + 1 < 40 and low < 40 and high > 0
                assert narrow == (place in shared), (program.attributes[0].name, place, ends)


def test_moments_of_full_precision_pin_small_combinations_down_and_rounding_hides_them(policy):
    """A table of two binary attributes: margins and one exact moment are all four counts."""
    told = protect(make_table(700), policy, level="counts", key=KEY, method="rounding")
    assert not audit_pairs(told).derivable
    exact = replace(told, protection=replace(told.protection, step=1))
    summary = aegis.summarize(make_table(700), policy)
    rows = {n: summary.attributes[n].joint for n in ("city", "sex")}
    city, sex = (told.attributes[n] for n in ("city", "sex"))
    code = np.array([[GRID], [0]])
    two = {
        "city": replace(
            city,
            table=np.array([rows["city"][0], rows["city"][1:].sum(axis=0)]),
            units=np.ones(2, dtype=np.int64),
            codes=code,
            candidates=(),
        ),
        "sex": replace(sex, table=rows["sex"], codes=code, candidates=()),
    }
    both = sum(r["city"] == "aa" and r["sex"] == "f" for r in make_table(700).to_pylist())
    moment = np.array([[0, both], [both, 0]]) / told.rows
    careless = replace(exact, attributes=two, moments=Moments(moment, 1e-9))
    found = audit_pairs(careless, narrower=1000).derivable
    assert len(found) == 4
    assert {d.range.values for d in found} == {1}
    aa = next(d for d in found if d.cells == (0, 0))
    assert aa.range.low == both
    leak = audit_leak(careless, threshold=600)
    assert any("counts of two attributes" in text for text in leak.shortfalls)


def test_larger_pairs_are_looked_at_where_moments_weigh_most(told, monkeypatch):
    monkeypatch.setattr("aegis.safe.protect.derive.pairs.MOST_CELLS", 5)
    monkeypatch.setattr("aegis.safe.protect.derive.pairs.HEAVIEST", 3)
    found = audit_pairs(told)
    assert 0 < found.looked_at < found.cells


def drawn(told, seed, step, attributes=2):
    """What is told of some attributes of random rows, moments rounded to a step."""
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 8 - 2 * attributes + 2, attributes)
    truth = np.maximum(random.poisson(random.gamma(0.5, 120 / attributes**2, sizes)), 1)
    for axis in range(attributes):  # no cell of an attribute has fewer rows than the threshold
        truth[tuple(slice(None) if i == axis else 0 for i in range(attributes))] += 10
    named, blocks = {}, []
    for axis, own in enumerate(list(told.attributes.values())[:attributes]):
        rows = truth.sum(axis=tuple(i for i in range(attributes) if i != axis))
        table = np.stack([rows - rows // 3, rows // 3], axis=1) // STEP * STEP
        codes = random.integers(-2 * GRID, 2 * GRID, (len(rows), int(random.integers(1, 3))))
        ones = np.ones(len(rows), dtype=np.int64)
        named[own.name] = replace(own, table=table, codes=codes, units=ones, candidates=())
        at = np.indices(truth.shape)[axis].ravel()
        blocks.append(codes[at] / GRID)
    owner = np.repeat(np.arange(attributes), [b.shape[1] for b in blocks])
    rows = np.hstack(blocks)
    matrix = rows.T @ (rows * truth.ravel()[:, None]) / truth.sum()
    matrix[owner[:, None] == owner[None, :]] = 0.0
    counts = np.array([truth.sum() - truth.sum() // 3, truth.sum() // 3], dtype=float)
    moments = _rounded(matrix, step)
    protection = replace(told.protection, step=STEP)
    told = replace(told, protection=protection)
    return replace(told, attributes=named, class_counts=counts, moments=moments)


def plain_narrow(program, narrower):
    """Two programs per cell: the cells that may be small, in a range that is narrower."""
    pinned = {}
    both = np.vstack([program.sums.toarray(), -program.sums.toarray()])
    limit = np.concatenate([program.most, -program.least])
    for place in range(program.size):
        ends = []
        for sign in (1, -1):
            aim = np.zeros(program.size)
            aim[place] = sign
            bounds = [(0, high) for high in program.high]
            solved = linprog(aim, A_ub=both, b_ub=limit, bounds=bounds)
            if solved.x is None:
                return None
            ends.append(sign * solved.fun)
        low, high = int(np.ceil(ends[0] - 1e-6)), int(np.floor(ends[1] + 1e-6))
        if high - low + 1 < narrower and low < narrower and high > 0:
            pinned[divmod(place, program.shape[1])] = (low, high)
    return pinned


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-4, 1e-2, 0.1]), st.booleans())
@settings(max_examples=8)
def test_programs_nearby_and_shared_find_what_two_programs_per_cell_find(told, seed, step, nearby):
    protected = drawn(told, seed, step)
    (program,) = programs(protected)
    patch = pytest.MonkeyPatch()
    with patch.context() as changed:
        if nearby:  # look nearby at once, at fewer lines than there are
            changed.setattr(derive_pairs, "LOOKS", 1)
            changed.setattr(derive_pairs, "CHANGED_LINES", (2,))
        try:
            found = {
                d.cells: (d.range.low, d.range.high)
                for d in program.narrower_than(25, program.candidates())
            }
        except DataError:
            found = None
    assert found == plain_narrow(program, 25)


def test_moments_are_as_coarse_as_whole_audits_of_every_step_make_them(told):
    """What a pair needs is found by looking at it alone, and no pair is passed over."""
    coarsened = 0
    for seed in (0, 2, 3, 9):
        protected = drawn(told, seed, 1e-3, attributes=3)
        quick = _without_pairs(protected)
        whole = protected
        while whole.moments is not None and audit_pairs(whole).derivable:
            step = 3 * whole.moments.error * np.sqrt(12)
            whole = replace(
                whole, moments=None if step > 0.1 else _rounded(whole.moments.matrix, step)
            )
        assert (quick.moments is None) == (whole.moments is None)
        if whole.moments is not None:
            assert quick.moments.error == whole.moments.error
            assert np.array_equal(quick.moments.matrix, whole.moments.matrix)
            coarsened += quick.moments.error > protected.moments.error
            assert first_pinned(quick) is None
    assert coarsened


def test_the_audit_of_pairs_says_how_many_it_has_done(told):
    """It said nothing until all were done, which takes minutes if there are many attributes."""

    class Counting:
        done = 0

        def advance(self, amount: float = 1) -> None:
            self.done += int(amount)

        def note(self, text: str) -> None:
            raise AssertionError(text)

    quick = _without_pairs(drawn(told, 9, 1e-3, attributes=3))
    step = Counting()
    assert quick.moments is not None
    assert first_pinned(quick, step=step) is None
    assert step.done == count_pairs(quick) == 3
