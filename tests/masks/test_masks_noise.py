"""Noise masks: what they show follows their channel, and their channel follows its definition."""

from __future__ import annotations

import datetime as dt
import math
import sys
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from aegis.errors import DataError, PolicyError
from aegis.masks import (
    MASKS,
    Identity,
    Kind,
    NoiseMask,
    ValueCounts,
    channel_blocks,
    evaluate,
    parse_mask,
    privacy_account,
)
from aegis.masks.base import NumberGrid, nice_step
from channel_support import privacy_level

NAN = float("nan")
DAYS = [dt.date(2024, 1, 1), dt.date(2024, 1, 20), None, dt.date(2024, 2, 28)]
CASES: list[tuple[Any, Kind, pa.DataType, list[Any]]] = [
    (
        {"laplace": {"epsilon": 2, "lower": 0, "upper": 10}},
        Kind.INTEGER,
        pa.int32(),
        [1, 4, 30, None],
    ),
    (
        {"laplace": {"epsilon": 4, "lower": -1, "upper": 1, "resolution": 0.25}},
        Kind.NUMBER,
        pa.float64(),
        [-0.3, 0.9, NAN, None, math.inf, -math.inf],
    ),
    (
        {"geometric": {"epsilon": 3, "lower": 0, "upper": 9}},
        Kind.INTEGER,
        pa.int8(),
        [0, 5, 9, None],
    ),
    (
        {"geometric": {"epsilon": 1, "lower": 0, "upper": 9, "sensitivity": 1}},
        Kind.INTEGER,
        pa.int64(),
        [-4, 5, 9],
    ),
    ({"add_uniform": {"amount": 3}}, Kind.INTEGER, pa.int64(), [0, 5, 9, None]),
    (
        {"add_uniform": {"amount": 0.7, "resolution": 0.5}},
        Kind.NUMBER,
        pa.float32(),
        [0.0, 1.25, NAN],
    ),
    ({"scale_uniform": {"ratio": 0.5}}, Kind.INTEGER, pa.int64(), [-8, 0, 20, None]),
    ({"date_noise": {"days": 5}}, Kind.DATE, pa.date32(), DAYS),
    ({"randomised_response": {"epsilon": 1}}, Kind.TEXT, pa.string(), ["a", "b", "c", None]),
    ({"randomised_response": {"keep": 0.3}}, Kind.BOOLEAN, pa.bool_(), [True, False]),
    (
        {"randomised_response": {"keep": 0.3, "values": [1, 2, 9]}},
        Kind.INTEGER,
        pa.int16(),
        [1, 2, 3, None],
    ),
    (
        {"randomised_response": {"keep": 0.6, "values": ["a", "z"]}},
        Kind.TEXT,
        pa.string(),
        ["a", "b"],
    ),
    ({"pram": {"keep": 0.3}}, Kind.TEXT, pa.string(), ["a", "b", "c", None]),
    (
        {"pram": {"values": ["x", "y"], "matrix": [[0.9, 0.1], [0.3, 0.7]]}},
        Kind.TEXT,
        pa.string(),
        ["x", "y"],
    ),
    ("shuffle", Kind.NUMBER, pa.float64(), [0.5, 2.0, NAN, None]),
]
NAMES = [str(case[0]) for case in CASES]


def counted(kind: Kind, dtype: pa.DataType, values: list[Any], counts: list[int]) -> ValueCounts:
    """Return distinct values in a summary's order: ascending, NaN before null, null last."""

    def place(index: int) -> tuple[bool, bool, Any]:
        value = values[index]
        none, nan = value is None, isinstance(value, float) and math.isnan(value)
        return none, nan, 0 if none or nan else value

    order = sorted(range(len(values)), key=place)
    return ValueCounts(
        kind,
        pa.array([values[i] for i in order], dtype),
        np.array([counts[i] for i in order], dtype=np.int64),
    )


def noise(spec: Any, data: ValueCounts) -> NoiseMask:
    mask = parse_mask(spec).fit(data)
    assert isinstance(mask, NoiseMask)
    assert mask.fitted
    return mask


def key(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def drawn(mask: NoiseMask, dtype: pa.DataType, value: Any, rows: int, seed: int) -> Counter[Any]:
    shown = mask.draw(pa.array([value] * rows, dtype), np.random.default_rng(seed))
    return Counter(key(v) for v in shown.to_pylist())


@pytest.mark.parametrize(("spec", "kind", "dtype", "values"), CASES, ids=NAMES)
def test_rows_of_the_channel_are_distributions_over_the_reports(spec, kind, dtype, values):
    data = counted(kind, dtype, values, [3] * len(values))
    mask = noise(spec, data)
    channel, reports = mask.channel(data), mask.reports(data)
    assert channel.shape == (len(values), len(reports))
    assert (channel >= 0).all()
    np.testing.assert_allclose(channel.sum(axis=1), 1, atol=1e-12)
    assert len({key(v) for v in reports.to_pylist()}) == len(reports)
    assert reports.null_count <= 1
    blocks = list(channel_blocks(mask, data, 2**21))
    assert len(blocks) == -(-len(values) // 2)
    np.testing.assert_array_equal(np.concatenate([block for _, block in blocks]), channel)


@pytest.mark.parametrize(("spec", "kind", "dtype", "values"), CASES[:-1], ids=NAMES[:-1])
def test_drawn_values_follow_the_channel(spec, kind, dtype, values):
    # Draws by OpenDP take no seed: at 1e-7 the test fails by chance once in ten million runs.
    rows = 2_000
    data = counted(kind, dtype, values, [1] * len(values))
    mask = noise(spec, data)
    channel, reports = mask.channel(data), [key(v) for v in mask.reports(data).to_pylist()]
    for number, (value, expected) in enumerate(zip(data.values.to_pylist(), channel, strict=True)):
        seen = drawn(mask, dtype, value, rows, seed=number)
        assert set(seen) <= {r for r, p in zip(reports, expected, strict=True) if p > 0}
        common = expected * rows >= 5
        observed = np.array([seen[r] for r in reports], dtype=float)
        groups = [(observed[i], expected[i] * rows) for i in np.flatnonzero(common)]
        rest = (observed[~common].sum(), expected[~common].sum() * rows)
        groups += [rest] if rest[1] >= 5 else []
        statistic = sum((o - e) ** 2 / e for o, e in groups)
        freedom = len(groups) - 1 if sum(e for _, e in groups) > rows - 1e-6 else len(groups)
        assert freedom == 0 or chi2.sf(statistic, freedom) > 1e-7


def test_a_shuffle_gives_each_row_any_value_of_the_column():
    data = counted(Kind.TEXT, pa.string(), ["a", "b", None], [6, 3, 1])
    mask = noise("shuffle", data)
    np.testing.assert_allclose(mask.channel(data), [[0.6, 0.3, 0.1]] * 3)
    column = pa.array(["a"] * 6 + ["b"] * 3 + [None])
    first = [mask.draw(column, np.random.default_rng(s)).to_pylist() for s in range(1000)]
    assert all(Counter(c) == Counter(column.to_pylist()) for c in first)
    assert sum(c[0] == "a" for c in first) == pytest.approx(600, abs=75)


@pytest.mark.parametrize(("spec", "kind", "dtype", "values"), CASES, ids=NAMES)
def test_pieces_are_drawn_as_the_whole_from_one_seed(spec, kind, dtype, values):
    data = counted(kind, dtype, values, [1] * len(values))
    mask = noise(spec, data)
    column = pa.array(values * 30, dtype)
    whole = mask.draw(column, np.random.default_rng(7)).to_pylist()
    assert len(whole) == len(column)
    if mask.exact_randomness:
        return
    again = mask.draw(column, np.random.default_rng(7)).to_pylist()
    assert [key(v) for v in again] == [key(v) for v in whole]
    if mask.name != "shuffle":
        random = np.random.default_rng(7)
        parts = [
            mask.draw(column.slice(i, 11), random).to_pylist() for i in range(0, len(column), 11)
        ]
        assert [key(v) for part in parts for v in part] == [key(v) for v in whole]


@pytest.mark.parametrize(("spec", "kind", "dtype", "values"), CASES, ids=NAMES)
def test_fitted_masks_are_read_back_from_what_a_policy_writes(spec, kind, dtype, values):
    mask = noise(spec, counted(kind, dtype, values, [2] * len(values)))
    assert parse_mask(mask.spec()) == mask
    assert hash(mask) == hash(parse_mask(mask.spec()))


@given(
    st.floats(0.1, 8),
    st.lists(st.integers(-60, 60), min_size=1, max_size=8, unique=True),
    st.sampled_from(["laplace", "geometric"]),
)
def test_stated_epsilon_holds_for_any_two_values(epsilon, values, name):
    data = counted(Kind.INTEGER, pa.int64(), values, [1] * len(values))
    mask = noise({name: {"epsilon": epsilon, "lower": -20, "upper": 20}}, data)
    assert privacy_level(mask.channel(data)) <= epsilon + 1e-6
    assert mask.loss("a").epsilon == pytest.approx(epsilon)


def test_a_smaller_sensitivity_is_charged_over_the_whole_width():
    data = counted(Kind.INTEGER, pa.int64(), [0, 1, 20], [1, 1, 1])
    mask = noise({"geometric": {"epsilon": 0.5, "lower": 0, "upper": 20, "sensitivity": 1}}, data)
    loss = mask.loss("age")
    assert (loss.epsilon, loss.sensitivity) == (10, 20)
    channel = mask.channel(data)
    assert privacy_level(channel[:2]) == pytest.approx(0.5)
    assert privacy_level(channel[::2]) == pytest.approx(10)


def test_randomised_response_has_its_epsilon():
    data = counted(Kind.TEXT, pa.string(), ["a", "b", "c"], [5, 1, 1])
    mask = noise({"randomised_response": {"epsilon": 1.5}}, data)
    assert privacy_level(mask.channel(data)) == pytest.approx(1.5)
    e = math.exp(1.5)
    assert mask.channel(data)[0].tolist() == pytest.approx([e / (e + 2), 1 / (e + 2), 1 / (e + 2)])


def test_pram_with_keep_leaves_the_expected_distribution():
    data = counted(Kind.TEXT, pa.string(), ["a", "b", "c"], [7, 2, 1])
    mask = noise({"pram": {"keep": 0.25}}, data)
    np.testing.assert_allclose(data.counts @ mask.channel(data), data.counts)
    np.testing.assert_allclose(mask.channel(data)[2], [0.75 * 0.7, 0.75 * 0.2, 0.25 + 0.75 * 0.1])


def test_date_noise_moves_whole_days_within_reach_and_bounds():
    data = counted(Kind.DATE, pa.date32(), [dt.date(2024, 1, 10)], [1])
    mask = noise({"date_noise": {"days": 2, "lower": "2024-01-09", "upper": "2024-01-31"}}, data)
    channel = mask.channel(data)[0]
    np.testing.assert_allclose(channel[:5], [0.4, 0.2, 0.2, 0.2, 0], atol=1e-15)
    times = pa.array([dt.datetime(2024, 1, 10, 23, 59)], pa.timestamp("us"))
    assert mask.draw(times, np.random.default_rng(0)).type == pa.date32()


def test_account_adds_up_and_names_what_is_not_covered():
    masks = {
        "a": parse_mask({"geometric": {"epsilon": 1, "lower": 0, "upper": 5}}),
        "b": parse_mask({"randomised_response": {"epsilon": 2, "values": ["x", "y"]}}),
        "c": parse_mask({"add_uniform": {"amount": 1}}),
        "label": None,
    }
    account = privacy_account(masks, {"b": 3})
    assert account is not None
    assert account.epsilon == 3
    assert account.exact == ("b (whether it is null)", "c", "label")
    assert not account.covers_release
    assert privacy_account({"c": masks["c"], "d": Identity()}) is None
    full = privacy_account({"a": masks["a"]})
    assert full is not None
    assert full.covers_release


def test_values_learnt_from_the_data_are_not_covered():
    declared = parse_mask({"randomised_response": {"epsilon": 2}})
    fitted = declared.fit(ValueCounts(Kind.TEXT, pa.array(["x", "y"]), np.array([3, 4])))
    again = parse_mask(fitted.spec())
    assert again == fitted
    assert fitted.spec() == {
        "randomised_response": {"epsilon": 2, "values": ["x", "y"], "learnt": True}
    }
    for mask in (declared, fitted, again):
        account = privacy_account({"job": mask})
        assert account is not None
        assert account.exact == ("job (which values occur)",)
        assert not account.covers_release
        (note,) = account.notes
        assert note.startswith(
            "epsilon 2 of 'job' does not cover which values occur: the values of"
        )
        assert note.endswith("{randomised_response: {epsilon: 2, values: [...]}}")
        assert account.to_dict()["notes"] == [note]
    chosen = parse_mask({"randomised_response": {"epsilon": 2, "values": ["x", "y"]}})
    account = privacy_account({"job": chosen})
    assert account is not None
    assert account.covers_release
    assert account.notes == ()
    # Without an epsilon nothing is promised, so nothing is taken back.
    kept = parse_mask({"randomised_response": {"keep": 0.7}})
    assert (
        "learnt"
        not in kept.fit(ValueCounts(Kind.TEXT, pa.array(["x", "y"]), np.array([3, 4]))).spec()[
            "randomised_response"
        ]
    )
    with pytest.raises(PolicyError, match="true or false"):
        parse_mask({"randomised_response": {"epsilon": 2, "values": ["x"], "learnt": "no"}})


@pytest.mark.parametrize("spec", [
    {"laplace": {"epsilon": 1, "lower": 0, "upper": 5}},
    {"geometric": {"epsilon": 1, "lower": 0, "upper": 5}},
])  # fmt: skip
def test_bounds_of_stated_epsilons_are_never_learnt(spec):
    mask = parse_mask(spec)
    wide = mask.fit(ValueCounts(Kind.INTEGER, pa.array([-900, 900]), np.array([1, 1])))
    narrow = mask.fit(ValueCounts(Kind.INTEGER, pa.array([2, 3]), np.array([1, 1])))
    assert wide == narrow
    account = privacy_account({"a": wide})
    assert account is not None
    assert account.covers_release


def test_noise_groups_values_as_identity_does_and_has_no_expression():
    values = pa.array([3, 1, 2, None])
    mask = parse_mask({"add_uniform": {"amount": 1}})
    one, two = evaluate([mask, Identity()], values)
    np.testing.assert_array_equal(one.codes, two.codes)
    with pytest.raises(PolicyError, match="cannot be written as a query"):
        mask.expression(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [n for n in MASKS.names() if not MASKS.get(n).mask.deterministic])
def test_noise_masks_say_that_they_are_random(name):
    assert issubclass(MASKS.get(name).mask, NoiseMask)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"laplace": {"epsilon": 0, "lower": 0, "upper": 1}}, "'epsilon' is 0"),
        ({"laplace": {"epsilon": -1, "lower": 0, "upper": 1}}, "'epsilon' is -1"),
        ({"laplace": {"epsilon": 1, "lower": 2, "upper": 2}}, "'upper' is 2"),
        (
            {"laplace": {"epsilon": 1, "lower": 0, "upper": 1, "sensitivity": 2}},
            "'sensitivity' is 2",
        ),
        ({"laplace": {"epsilon": 1, "lower": 0, "upper": 9999, "resolution": 1}}, "at most 4,096"),
        ({"geometric": {"epsilon": 0, "lower": 0, "upper": 1}}, "'epsilon' is 0"),
        ({"geometric": {"epsilon": 1, "lower": 0.5, "upper": 1}}, "'lower' is 0.5"),
        ({"randomised_response": {"epsilon": -2}}, "'epsilon' is -2"),
        ({"randomised_response": {"keep": 1.5}}, "'keep' is 1.5"),
        ({"randomised_response": {}}, "neither given"),
        ({"randomised_response": {"keep": 1, "values": ["a", 1]}}, "'values'"),
        ({"randomised_response": {"keep": 1, "values": ["a", "a"]}}, "'values'"),
        ({"pram": {"keep": 0.5, "matrix": [[1]]}}, "both given"),
        ({"pram": {"matrix": [[1.0]]}}, "lacks 'values'"),
        ({"pram": {"values": ["a", "b"], "matrix": [[0.5, 0.4], [0, 1]]}}, "row 1"),
        ({"pram": {"values": ["a", "b"], "matrix": [[1, 0], [1.5, -0.5]]}}, "row 2"),
        ({"pram": {"values": ["a", "b"], "matrix": [[1, 0]]}}, "2 rows"),
        ({"add_uniform": {"amount": 0}}, "'amount' is 0"),
        ({"add_uniform": {"amount": 1, "lower": 0}}, "together"),
        ({"scale_uniform": {"ratio": -1}}, "'ratio' is -1"),
        ({"date_noise": {"days": 0}}, "'days' is 0"),
        ({"date_noise": {"days": 1, "lower": "soon", "upper": "later"}}, "'lower' is 'soon'"),
        ({"date_noise": {"days": 1, "lower": "2024-01-02", "upper": "2024-01-01"}}, "'upper'"),
        ({"compose": ["identity", "shuffle"]}, "draws its values at random"),
    ],
)
def test_bad_parameters_get_one_clear_error(spec, message):
    with pytest.raises(PolicyError, match=message) as caught:
        parse_mask(spec)
    assert caught.value.hint


@pytest.mark.parametrize(
    "name", ["laplace", "geometric", "add_uniform", "scale_uniform", "date_noise"]
)
def test_noise_on_text_is_refused(name):
    mask = parse_mask(
        {
            "laplace": {"laplace": {"epsilon": 1, "lower": 0, "upper": 1}},
            "geometric": {"geometric": {"epsilon": 1, "lower": 0, "upper": 1}},
            "add_uniform": {"add_uniform": {"amount": 1}},
            "scale_uniform": {"scale_uniform": {"ratio": 1}},
            "date_noise": {"date_noise": {"days": 1}},
        }[name]
    )
    with pytest.raises(PolicyError, match="does not fit a column of text"):
        mask.check(Kind.TEXT, "city")


def test_values_of_another_type_are_refused():
    mask = parse_mask({"randomised_response": {"keep": 0.5, "values": [1, 2]}})
    with pytest.raises(PolicyError, match="not a value of a column of text"):
        mask.check(Kind.TEXT, "code")


def test_too_many_or_no_values_are_refused():
    mask = parse_mask({"randomised_response": {"keep": 0.5}})
    with pytest.raises(DataError, match="null in every row"):
        mask.fit(counted(Kind.TEXT, pa.string(), [None], [4]))
    many = [f"v{i:05d}" for i in range(4097)]
    with pytest.raises(DataError, match="4,097 values"):
        mask.fit(counted(Kind.TEXT, pa.string(), many, [1] * len(many)))


def test_a_missing_library_is_named(monkeypatch):
    from aegis.masks.noise import numbers

    numbers.library.cache_clear()
    monkeypatch.setitem(sys.modules, "opendp.mod", None)
    with pytest.raises(PolicyError, match=r"OpenDP") as caught:
        numbers.library()
    assert "aegis-advisor[dp]" in caught.value.hint


@given(st.integers(-300, 300), st.integers(1, 30), st.integers(1, 40))
def test_grids_are_exact_decimals(start, step, size):
    low, by = start / 10, step / 10
    grid = NumberGrid.between("m", low, (start + step * (size - 1)) / 10, by)
    assert grid.size == size
    assert grid.points.tolist() == [(start + step * i) / 10 for i in range(size)]
    np.testing.assert_array_equal(grid.nearest(grid.points), np.arange(size))


@given(st.floats(1e-9, 1e9))
def test_nice_steps_are_the_least_of_their_kind(least):
    step = float(nice_step(least))
    assert least * (1 - 1e-6) <= step <= 2.6 * least


@pytest.mark.parametrize(
    "spec",
    [
        {"pram": {"keep": 0.8}},
        {"randomised_response": {"keep": 0.8}},
        {"randomised_response": {"epsilon": 2}},
    ],
)
def test_a_mask_without_what_it_learnt_learns_it_again(spec):
    data = ValueCounts(Kind.TEXT, pa.array(["a", "b"]), np.array([3, 4]))
    mask = parse_mask(spec)
    fitted = mask.fit(data)
    assert fitted != mask
    assert fitted.unfitted() == fitted.unlisted() == mask
    assert mask.fit(data) == fitted


def test_what_a_policy_declares_is_no_list_that_a_mask_learnt():
    declared = {"randomised_response": {"epsilon": 2, "values": ["a", "b"]}}
    matrix = {"pram": {"values": ["a", "b"], "matrix": [[0.9, 0.1], [0.2, 0.8]]}}
    for mask in map(parse_mask, (declared, matrix)):
        assert mask.unlisted() == mask
