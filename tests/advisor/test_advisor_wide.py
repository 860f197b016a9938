"""Standard errors are left out where they would take long, and that is said."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import aegis
from aegis.advisor import as_it_is, confidence
from aegis.advisor.scoring import Scorer
from aegis.policy import Configuration
from aegis.summary.attributes import exclude_attributes, judged_levels


def advice(columns: int = 4) -> aegis.Advice:
    draw = np.random.default_rng(1)
    table = {f"c{j}": draw.integers(0, 6, 400) for j in range(columns)}
    table["y"] = np.where(draw.random(400) < 0.4 + 0.03 * table["c0"], "yes", "no")
    policy = {
        "version": 1,
        "label": "y",
        "privacy": {"k": 1},
        "attributes": {
            f"c{j}": {"role": "feature", "masks": ["identity", {"quantiles": {"count": 2}}]}
            for j in range(columns)
        },
    }
    return aegis.advise(
        pa.table(table), aegis.load_policy(policy), generate_count=8, measure="held-out-pillai"
    )


def test_the_best_have_standard_errors_where_there_is_time() -> None:
    found = advice()
    assert all(ranked.stderr is not None for ranked in found.ranking[:8])
    assert not any("standard errors were computed" in warning for warning in found.warnings)


@pytest.mark.parametrize(("effort", "few"), [(0.0, 0), (4e5, None)])
def test_on_wide_tables_fewer_have_them(
    effort: float, few: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = advice()
    monkeypatch.setattr(confidence, "EFFORT", effort)
    found = advice()
    with_errors = [ranked.stderr is not None for ranked in found.ranking]
    count = sum(with_errors)
    assert count == few if few is not None else 2 <= count < 8
    assert with_errors == sorted(with_errors, reverse=True)
    [warning] = [one for one in found.warnings if "standard errors were computed" in one]
    assert (
        "for no configuration" if not count else f"for the best {count} configurations only"
    ) in warning
    # Scores and order are as ever, and so are the errors that there are.
    pairs = list(zip(found.ranking, whole.ranking, strict=True))
    assert [(one.name, one.score) for one, _ in pairs] == [(o.name, o.score) for _, o in pairs]
    for one, other in pairs[:count]:
        assert one.stderr == pytest.approx(other.stderr)


def test_a_label_of_a_thousand_classes_is_ranked_and_searched() -> None:
    """The expected AUC is of each three classes: of a thousand it took 112 GiB, and was no bonus."""
    table = pa.table(
        {"a": [i % 5 for i in range(4000)], "y": [f"c{i % 1000}" for i in range(4000)]}
    )
    policy = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2},
            "attributes": {"a": {"role": "quasi-identifier", "masks": ["identity", "suppress"]}},
        }
    )
    ranked, searched = aegis.advise(table, policy), aegis.search(table, policy)
    assert ranked.ranking[0].admissible
    assert searched.ranking[0].admissible
    assert ranked.expected is searched.expected is None


def wide(
    columns: int, names: Sequence[str] | None = None, *, noise: bool = False
) -> tuple[pa.Table, aegis.Policy]:
    draw = np.random.default_rng(4)
    table = {f"c{j}": draw.integers(0, 4 + j, 900) for j in range(columns)}
    table["y"] = np.where(draw.random(900) < 0.2 + 0.1 * table["c1"] + 0.02 * table["c4"], 1, 0)
    masks = ["identity", {"bucketize": {"width": 2}}, "suppress"]
    policy = {
        "version": 1,
        "label": "y",
        "privacy": {"k": 1},
        "attributes": {
            name: {"role": "feature", "masks": masks}
            for name in names or [f"c{j}" for j in range(columns)]
        },
    }
    if noise:
        policy["attributes"]["c1"]["masks"] = [{"randomised_response": {"keep": 0.8}}, "suppress"]
    return pa.table(table), aegis.load_policy(policy)


@pytest.mark.parametrize("measure", [None, "adjusted-pillai", "cmim", "held-out-auc"])
@pytest.mark.parametrize("held", [False, True])
def test_attributes_that_tell_least_are_set_aside_and_that_is_said(
    measure: str | None, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aegis.summary.builder.WIDE", 2 if held else 100)
    table, policy = wide(6)
    whole = aegis.advise(table, policy, generate_count=6, measure=measure)
    assert not any("by themselves" in warning for warning in whole.warnings)
    monkeypatch.setattr(
        "aegis.summary.builder.exclude_attributes",
        functools.partial(exclude_attributes, together=14),
    )
    fewer = aegis.advise(table, policy, generate_count=6, measure=measure)
    [warning] = [w for w in fewer.warnings if "by themselves" in w]
    summary = aegis.summarize(table, policy)
    taken = [n for n, a in summary.attributes.items() if not a.excluded]
    assert 0 < len(taken) < 6
    assert "c1" in taken
    assert f"the {len(taken)} of 6 attributes" in warning
    # They count as they do in a table without the others; the others are shown one by one.
    configurations = {r.name: r.configuration for r in fewer.ranking}
    only = Scorer(aegis.summarize(table.select([*taken, "y"]), wide(6, taken)[1]))
    chosen = policy.measure_by(measure)
    for ranked in fewer.ranking:
        masks = {n: configurations[ranked.name].masks[n] for n in taken}
        exact = only.value(only.choose(Configuration(ranked.name, masks)), chosen)
        assert ranked.score == pytest.approx(exact, abs=1e-9)
    known = {r.name: r.attributes for r in whole.ranking}
    for ranked in fewer.ranking:
        for name, score in ranked.attributes.items():
            other = known[ranked.name][name]
            # A row's fold depends on the attributes that are counted together.
            rough = 0.05 if chosen.name == "held-out-auc" else 1e-9
            assert score.score == pytest.approx(other.score, abs=rough)


@pytest.mark.parametrize("measure", ["adjusted-pillai", "held-out-pillai", "held-out-auc"])
@pytest.mark.parametrize("noise", [False, True])
def test_some_are_counted_beside_noise_and_where_most_is_empty_too(
    measure: str, noise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not noise:
        monkeypatch.setattr("aegis.summary.cooccurrence._DENSE_CELLS", 0)
        monkeypatch.setattr("aegis.summary.cooccurrence._SPARSE_FACTOR", 0)
    monkeypatch.setattr(
        "aegis.summary.builder.exclude_attributes",
        functools.partial(exclude_attributes, together=14),
    )
    table, policy = wide(6, noise=noise)
    summary = aegis.summarize(table, policy)
    assert noise == isinstance(summary.pairs.total, np.ndarray)
    taken = [n for n, a in summary.attributes.items() if not a.excluded]
    assert 0 < len(taken) < 6
    advice = aegis.advise(summary, policy, generate_count=6, measure=measure)
    alone = aegis.summarize(table.select([*taken, "y"]), wide(6, taken, noise=noise)[1])
    only, chosen = Scorer(alone), policy.measure_by(measure)
    for ranked in advice.ranking:
        masks = {n: ranked.configuration.masks[n] for n in taken}
        exact = only.value(only.choose(Configuration(ranked.name, masks)), chosen)
        assert ranked.score == pytest.approx(exact, abs=1e-9)


def test_a_search_counts_those_alone_that_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "aegis.summary.builder.exclude_attributes",
        functools.partial(exclude_attributes, together=14),
    )
    table, policy = wide(5)
    found = aegis.search(table, policy)
    assert found.optimal
    assert any("by themselves" in warning for warning in found.warnings)


def test_a_bundle_remembers_what_was_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aegis.summary.builder.WIDE", 2)
    monkeypatch.setattr(
        "aegis.summary.builder.exclude_attributes",
        functools.partial(exclude_attributes, together=14),
    )
    table, policy = wide(5)
    direct = aegis.advise(table, policy, generate_count=4)
    path = tmp_path / "wide.aegis"
    aegis.save_bundle(aegis.summarize(table, policy), path)
    loaded = aegis.advise(path, policy, generate_count=4)
    assert [(r.name, r.score) for r in loaded.ranking] == [
        (r.name, r.score) for r in direct.ranking
    ]
    assert any("by themselves" in warning for warning in loaded.warnings)


def test_without_a_label_those_of_the_fewest_values_take_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "aegis.summary.builder.exclude_attributes",
        functools.partial(exclude_attributes, together=14),
    )
    draw = np.random.default_rng(4)
    table = pa.table({f"c{j}": draw.integers(0, 4 + j, 300) for j in range(5)})
    attribute = {"role": "feature", "masks": ["identity", "suppress"]}
    policy = {"version": 1, "attributes": {f"c{j}": attribute for j in range(5)}}
    found = aegis.advise(table, aegis.load_policy(policy), generate_count=3)
    [told] = [warning for warning in found.warnings if "the fewest values" in warning]
    numbers = [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", told)]
    used, whole, measured, pairs, rest = numbers
    assert (measured, pairs, rest) == (comb(used, 2), comb(whole, 2), pairs - measured)


FORTIETHS = {"quantiles": {"count": 40}}


@pytest.mark.parametrize(
    "masks", [["identity", {"erase_digits": {"digits": 1}}, FORTIETHS], [FORTIETHS]]
)
def test_advice_and_certificate_compare_with_one_reference(
    masks: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a table that sets attributes aside with its masks, and counts all of them as it stands."""
    monkeypatch.setattr(
        "aegis.summary.builder.exclude_attributes",
        functools.partial(exclude_attributes, together=430),
    )
    draw = np.random.default_rng(2)
    told = draw.random(600)
    table = {f"c{j}": np.round(100 * (told + draw.random(600))).astype(int) for j in range(3)}
    table["y"] = np.where(told + draw.random(600) < 1, "yes", "no")
    attributes = {f"c{j}": {"role": "feature", "masks": masks} for j in range(3)}
    policy = aegis.load_policy(
        {"version": 1, "label": "y", "privacy": {"k": 1}, "attributes": attributes}
    )
    study = aegis.Study(pa.table(table), policy)
    assert any(attribute.excluded for attribute in study.summary.attributes.values())
    stands = aegis.summarize(study.source, as_it_is(policy))
    assert not any(attribute.excluded for attribute in stands.attributes.values())
    advice = study.search(top=2)
    released = study.apply(advice, tmp_path / "r.csv", certificate=tmp_path / "c.json")
    said, certified = advice.utility, released.utility
    assert said is not None
    assert certified is not None
    assert (said.value, said.reference) == pytest.approx((certified.value, certified.reference))
    assert said.utility_kept == pytest.approx(certified.utility_kept)


@pytest.mark.parametrize("weight", [None, "w"])
def test_columns_that_explain_a_number_best_stay(
    weight: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(8)
    columns = {f"c{i}": random.integers(0, 4 + i, 300) for i in range(5)}
    number = 10 * columns["c4"] + random.normal(0, 1, 300)
    data = pa.table({**columns, "y": number.round(3), "w": random.integers(1, 4, 300)})
    rules: dict[str, Any] = {
        "version": 1,
        "label": {"column": "y", "kind": "number"},
        "attributes": {n: {"role": "feature", "masks": ["identity", "suppress"]} for n in columns},
        **({} if weight is None else {"weight": weight}),
    }
    monkeypatch.setattr(
        "aegis.summary.builder.exclude_attributes",
        functools.partial(exclude_attributes, together=10),
    )
    advice = aegis.advise(data, rules, generate_count=8)
    assert [n for n, a in aegis.summarize(data, rules).attributes.items() if not a.excluded] == [
        "c4"
    ]
    [warning] = [w for w in advice.warnings if "by themselves" in w]
    assert warning.startswith("scores use the 1 of 5 attributes that explain the number best")
    best = advice.best
    assert best is not None
    assert best.score > 0.9
    assert list(best.attributes) == ["c4"]  # of the others no R2 is known
    json.dumps(advice.to_dict())


@pytest.mark.parametrize("serve", ["mean", "worst"])
def test_several_labels_in_a_wide_table_have_a_share_each(
    serve: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(9)
    columns = {f"c{i}": random.integers(0, 4 + i, 300) for i in range(5)}
    number = 10 * columns["c4"] + random.normal(0, 1, 300)
    data = pa.table({**columns, "y": number.round(3), "z": (columns["c3"] > 2).astype(str)})
    rules: dict[str, Any] = {
        "version": 1,
        "labels": [{"column": "y", "kind": "number"}, "z"],
        "serve": serve,
        "attributes": {n: {"role": "feature", "masks": ["identity", "suppress"]} for n in columns},
    }
    monkeypatch.setattr(
        "aegis.summary.builder.exclude_attributes",
        functools.partial(exclude_attributes, together=10),
    )
    advice = aegis.advise(data, rules, generate_count=8)
    best = advice.best
    assert best is not None
    assert best.score > 0.9
    assert set(best.attributes) == set(columns)
    json.dumps(advice.to_dict())


@pytest.mark.parametrize("kind", ["class", "number"])
def test_columns_of_noise_do_not_predict_when_some_are_left_out(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The columns that come first by chance would predict held-out rows of the same table."""
    monkeypatch.setattr(
        "aegis.summary.builder.exclude_attributes",
        functools.partial(exclude_attributes, together=120),
    )
    stated = []
    for seed in range(8):
        random = np.random.default_rng(seed)
        table = {f"c{i}": random.integers(0, 2 + i % 3, 80) for i in range(150)}
        number = random.permutation(80)
        told = number if kind == "number" else np.where(number < 40, "yes", "no")
        rules = {
            "version": 1,
            "label": {"column": "y", "kind": "number"} if kind == "number" else "y",
            "privacy": {"k": 1},
            "attributes": {n: {"role": "feature", "masks": ["identity"]} for n in table},
        }
        summary = aegis.summarize(pa.table({**table, "y": told}), aegis.load_policy(rules))
        scorer = Scorer(summary)
        measure = aegis.load_policy(rules).measure_by(None)
        stated.append(scorer.value(scorer.unmasked, measure))
    assert np.mean(stated) < (0.03 if kind == "number" else 0.6)


def test_a_column_that_predicts_stays_although_it_has_many_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(1)
    table = {f"c{i}": random.integers(0, 2, 400) for i in range(60)}
    table["known"] = random.integers(0, 30, 400)
    told = np.where(table["known"] + random.normal(0, 8, 400) > 15, "yes", "no")
    rules = {
        "version": 1,
        "label": "y",
        "privacy": {"k": 1},
        "attributes": {n: {"role": "feature", "masks": ["identity"]} for n in table},
    }
    monkeypatch.setattr(
        "aegis.summary.builder.exclude_attributes",
        functools.partial(exclude_attributes, together=60),
    )
    summary = aegis.summarize(pa.table({**table, "y": told}), aegis.load_policy(rules))
    assert not summary.attributes["known"].excluded
    # Columns that predict no better than chance fill a quarter of the room.
    assert sum(not a.excluded for a in summary.attributes.values()) == 1 + 15 // 2


@pytest.mark.parametrize(("rows_of_a_value", "weight"), [(4, 1.0), (40, 1.0), (40, 0.002)])
def test_a_column_that_determines_the_label_stays(
    rows_of_a_value: int, weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if each value has few rows, or if a value has hardly any weight."""
    random = np.random.default_rng(2)
    table: dict[str, Any] = {f"c{i}": random.integers(0, 2, 400) for i in range(60)}
    table["known"] = np.arange(400) // rows_of_a_value
    told = np.where(random.integers(0, 2, 400)[table["known"]] > 0, "yes", "no")
    table["known"][:2] = 400
    rules = {
        "version": 1,
        "label": "y",
        "weight": "w",
        "privacy": {"k": 1},
        "attributes": {
            **{n: {"role": "feature", "masks": ["identity"]} for n in table},
            "w": {"role": "ignore"},
        },
    }
    weights = np.where(table["known"] == 400, weight, 1.0)
    monkeypatch.setattr(
        "aegis.summary.builder.exclude_attributes",
        functools.partial(exclude_attributes, together=110),
    )
    opened = pa.table({**table, "y": told, "w": weights})
    summary = aegis.summarize(opened, aegis.load_policy(rules))
    assert not summary.attributes["known"].excluded


def test_levels_of_few_rows_are_judged_together() -> None:
    rows = np.array([1.0, 4.0, 30.0, 3.0, 0.5, 9.0])
    assert judged_levels(rows, 0.1).tolist() == [2, 2, 0, 2, 2, 1]
    # Enough rows of the rarest class have values of two to four rows.
    assert judged_levels(np.array([1.0, 1.0, *[4.0] * 20, 30.0]), 0.5).tolist() == [
        21,
        21,
        *range(20),
        20,
    ]
    assert judged_levels(np.array([0.5, 30.0, 9.0]), 0.1).tolist() == [1, 0, 1]
    assert judged_levels(np.array([0.5, 0.5]), 0.1).tolist() == [0, 0]


@pytest.mark.parametrize("kind", ["class", "number"])
def test_a_number_without_equal_values_is_judged_as_scores_see_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 128 levels, 127 would be the smallest numbers, with a row each."""
    random = np.random.default_rng(3)
    table = {f"c{i}": random.normal(size=600) for i in range(6)}
    label = table["c5"].argsort().argsort() // 63 % 2 + random.normal(0, 0.1, 600)
    told = label if kind == "number" else np.where(label > 0.5, "yes", "no")
    rules = {
        "version": 1,
        "label": {"column": "y", "kind": "number"} if kind == "number" else "y",
        "privacy": {"k": 1},
        "attributes": {n: {"role": "feature", "masks": ["identity"]} for n in table},
    }
    monkeypatch.setattr(
        "aegis.summary.builder.exclude_attributes",
        functools.partial(exclude_attributes, together=400),
    )
    summary = aegis.summarize(pa.table({**table, "y": told}), aegis.load_policy(rules))
    assert any(attribute.excluded for attribute in summary.attributes.values())
    assert not summary.attributes["c5"].excluded
