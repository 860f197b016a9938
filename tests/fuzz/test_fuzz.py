"""A little of the fuzzing on every run; `make fuzz` runs it at length."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import checker, inputs, kills, releases
from .kinds import KINDS, SHARES

SEEDS = st.integers(0, 2**32)
SLOW = [HealthCheck.too_slow]


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_inputs_end_in_a_result_or_one_clear_error(kind: str) -> None:
    @settings(max_examples=20 if kind != "table" else 10, deadline=None, suppress_health_check=SLOW)
    @given(seed=SEEDS)
    def run(seed: int) -> None:
        outcome = inputs.attempt(kind, seed, seconds=60)
        assert outcome.failure is None, f"{outcome.failure.problem}\n{outcome.failure.trace}"

    run()


def test_every_kind_has_a_share_and_some_of_each_are_read() -> None:
    """A mutator that breaks everything tries nothing."""
    assert set(SHARES) == set(KINDS)
    assert sum(SHARES.values()) == 100
    for kind in KINDS:
        ends = [inputs.attempt(kind, seed, seconds=60).refused for seed in range(20)]
        assert any(ends), kind
        assert not all(ends), kind


def test_what_is_looked_for_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: object) -> None:
        raise KeyError("x")

    def hang(*_: object) -> None:
        while True:
            pass

    monkeypatch.setitem(KINDS, "policy", bug)
    failure = inputs.attempt("policy", 1).failure
    assert failure is not None
    assert failure.problem == "KeyError: 'x'"
    monkeypatch.setitem(KINDS, "policy", hang)
    failure = inputs.attempt("policy", 1, seconds=0.2).failure
    assert failure is not None
    assert failure.problem == "over 0.2 s"


@settings(max_examples=6, deadline=None, suppress_health_check=SLOW)
@given(seed=SEEDS)
def test_releases_keep_their_rule_when_counted_anew(seed: int) -> None:
    _, failure = releases.attempt(seed)
    assert failure is None, f"{failure.problem}\n{failure.trace}"


RELEASED = pd.DataFrame({"q": ["a"] * 4 + [None] * 4, "s": list("11230123")})
TREE = {"0": ["low"], "1": ["low"], "2": ["high"], "3": ["high"]}


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"k": 4}, None),
        ({"k": 5}, "k is 4"),
        ({"k": 1, "suppression": 0.1}, None),
        ({"max_risk": {"threshold": 0.2}}, "prosecutor risk is 0.25"),
        ({"max_risk": {"kind": "marketer", "threshold": 0.2}}, "marketer risk"),
        ({"l_diversity": {"attribute": "s", "l": 3}}, None),
        ({"l_diversity": {"attribute": "s", "l": 4}}, "l_diversity"),
        ({"l_diversity": {"attribute": "s", "kind": "entropy", "l": 2.8}}, None),
        ({"l_diversity": {"attribute": "s", "kind": "entropy", "l": 3}}, "l_diversity"),
        ({"l_diversity": {"attribute": "s", "kind": "recursive", "l": 2, "c": 1.1}}, None),
        ({"l_diversity": {"attribute": "s", "kind": "recursive", "l": 3, "c": 1}}, "l_diversity"),
        ({"t_closeness": {"attribute": "s", "t": 0.13}}, None),
        ({"t_closeness": {"attribute": "s", "t": 0.12}}, "t_closeness"),
        ({"t_closeness": {"attribute": "s", "distance": "ordered", "t": 0.05}}, None),
        ({"t_closeness": {"attribute": "s", "distance": "ordered", "t": 0.04}}, "t_closeness"),
        ({"t_closeness": {"attribute": "s", "distance": "hierarchical", "t": 0.07}}, None),
        ({"t_closeness": {"attribute": "s", "distance": "hierarchical", "t": 0.06}}, "t_closeness"),
    ],
)
def test_the_checker(rule: dict[str, object], said: str | None) -> None:
    """Figures by hand: class a is 1 1 2 3, the other 0 1 2 3, and the whole 0 1 1 1 2 2 3 3."""
    wrong = checker.problems(
        RELEASED, quasi=["q"], rule=rule, rows_before=8, identifiers={}, tree=TREE
    )
    assert (wrong == []) if said is None else said in wrong[0]


def test_the_checker_on_rows_and_identifiers() -> None:
    wrong = checker.problems(
        RELEASED, quasi=["q"], rule={"suppression": 0.1}, rows_before=10,
        identifiers={"name": ["3"], "q": []},
    )  # fmt: skip
    assert wrong == [
        "2 rows suppressed, 1 allowed",
        "column q is released",
        "an identifier stands in column s",
    ]


def test_a_release_that_breaks_its_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recheck is held against a release with one row taken out of a class, unsaid."""
    read = checker.read
    monkeypatch.setattr(checker, "read", lambda path: read(path).iloc[1:])
    found = (releases.attempt(seed) for seed in range(50))
    failure = next(failure for made, failure in found if made)
    assert failure is not None
    assert "rows of" in failure.problem


KILLS = range(2)


@pytest.mark.parametrize("seed", KILLS)
def test_kills_leave_files_whole(bench: kills.Bench, seed: int) -> None:
    _, failure = kills.attempt(bench, seed)
    assert failure is None, failure


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> kills.Bench:
    """A folder where the commands that are killed have run once, and one that writes rows."""
    commands = {"apply", *map(kills.command_of, KILLS)}
    return kills.Bench.at(tmp_path_factory.mktemp("kills"), sorted(commands))


def test_half_a_file_is_found(bench: kills.Bench) -> None:
    whole = (bench.folder / "out.parquet").read_bytes()
    before = {"out.parquet": kills._digest(bench.folder / "out.parquet"), "gone.csv": ""}
    (bench.folder / "out.parquet").write_bytes(whole[: len(whole) // 2])
    (bench.folder / ".out.1.partial.csv").touch()
    wrong = " ".join(kills._wrong(bench.folder, before, "SIGTERM"))
    (bench.folder / "out.parquet").write_bytes(whole)
    (bench.folder / ".out.1.partial.csv").unlink()
    assert "gone.csv is gone" in wrong
    assert "out.parquet cannot be read" in wrong
    assert "partial.csv is left after SIGTERM" in wrong
