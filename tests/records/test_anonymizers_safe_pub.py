"""Differential privacy by sampling and generalisation, on the running program."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aegis
from aegis.anonymizers import ANONYMIZERS, Recipe, anonymize_records, read_records
from aegis.errors import PolicyError
from aegis.policy import Policy, load_policy
from aegis.records.safe_pub import SampledOptions
from aegis.sources import open_table

ROWS = 6000
RANDOM = np.random.default_rng(5)
TABLE = pa.table(
    {
        "age": RANDOM.integers(20, 80, ROWS),
        "sex": [("f", "m")[i] for i in RANDOM.integers(0, 2, ROWS)],
        "y": [("no", "yes")[i] for i in RANDOM.integers(0, 2, ROWS)],
    }
)


def policy(**masks: Any) -> Policy:
    age = {"role": "quasi-identifier", "masks": masks.get("age", [{"bucketize": {"width": 10}}])}
    return load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2, "suppression": 1},
            "attributes": {"age": age, "sex": {"role": "quasi-identifier"}},
        }
    )


def test_a_sample_is_released_without_small_classes(tmp_path: Path) -> None:
    recipe = Recipe("safe-pub", {"epsilon": 0.5, "delta": 1e-4})
    made = aegis.anonymize(TABLE, policy(), recipe, output=tmp_path / "r.parquet")
    released = pq.read_table(tmp_path / "r.parquet")
    details = made.grouped.details
    k, drawn = details["least_class"], details["drawn"]
    assert k == SampledOptions(epsilon=0.5, delta=1e-4).privacy.k
    # The number drawn is binomial: four standard deviations.
    assert abs(drawn - ROWS * details["rate"]) < 4 * (ROWS * 0.39 * 0.61) ** 0.5
    classes = Counter(zip(*(released[n].to_pylist() for n in ("age", "sex")), strict=True))
    assert min(classes.values()) >= k
    assert released.num_rows == drawn - details["in_small_classes"]
    assert set(released["age"].to_pylist()) <= {f"[{a}, {a + 10}[" for a in range(20, 80, 10)}


def test_a_release_is_drawn_by_the_system_and_repeats_no_draw(tmp_path: Path) -> None:
    """A reader who repeats the draws with seeds that anybody would try finds none of them."""
    recipe = Recipe("safe-pub", {"epsilon": 1.0, "delta": 0.01})
    read = read_records(open_table(TABLE), policy())
    guessed = [anonymize_records(read, recipe, seed=seed).grouped.groups.of for seed in range(8)]
    study = aegis.Study(TABLE, policy(), seed=3)
    for number in range(4):
        files = {"output": tmp_path / f"{number}.csv", "certificate": tmp_path / f"{number}.json"}
        method = recipe if number % 2 else recipe.method
        given = {} if number % 2 else {"options": recipe.options}
        made = study.anonymize(method, **given, **files)
        assert "seed" not in files["certificate"].read_text()
        assert not any(np.array_equal(made.grouped.groups.of, of) for of in guessed)
        guessed.append(made.grouped.groups.of)


def test_a_seed_with_the_promise_is_refused() -> None:
    with pytest.raises(PolicyError, match="safe-pub promises differential privacy") as refused:
        aegis.anonymize(TABLE, policy(), "safe-pub", seed=0)
    assert "Leave out the seed" in str(refused.value.hint)


def test_an_estimate_draws_by_its_seed_alone() -> None:

    recipe = Recipe("safe-pub", {"epsilon": 1.0, "delta": 0.01})
    read = read_records(open_table(TABLE), policy())
    one, other = (anonymize_records(read, recipe, seed=seed) for seed in (1, 2))
    again = anonymize_records(read, recipe, seed=1)
    assert np.array_equal(one.grouped.groups.of, again.grouped.groups.of)
    assert not np.array_equal(one.grouped.groups.of, other.grouped.groups.of)
    assert ANONYMIZERS.get("safe-pub").sampled


@pytest.mark.parametrize("mask", [{"quantiles": {"count": 4}}, {"equal_width": {"count": 4}}])
def test_masks_that_learn_from_the_table_are_refused(mask: Any, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="learns from the table"):
        aegis.anonymize(
            TABLE, policy(age=[mask]), Recipe("safe-pub"), output=tmp_path / "r.parquet"
        )


def test_persons_are_refused(tmp_path: Path) -> None:
    table = TABLE.append_column("p", pa.array(np.arange(ROWS) // 2))
    written = {
        "version": 1,
        "label": "y",
        "person": "p",
        "privacy": {"k": 2, "suppression": 1},
        "attributes": {
            "age": {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 10}}]}
        },
    }
    with pytest.raises(PolicyError, match="protects single records"):
        aegis.anonymize(
            table, load_policy(written), Recipe("safe-pub"), output=tmp_path / "r.parquet"
        )


@pytest.mark.parametrize("option", [{"epsilon": 6.0}, {"delta": 0.0}, {"rate": 0.99}])
def test_options_out_of_range_are_refused(option: dict[str, float]) -> None:
    with pytest.raises(PolicyError):
        Recipe("safe-pub", option).anonymizer.configure(**option)


def searched(**options: Any) -> Recipe:
    given = {"epsilon": 2.0, "delta": 1e-4, "search": 1.0, "steps": 6}
    return Recipe("safe-pub", given | options)


def wide_policy() -> Policy:
    age = {
        "role": "quasi-identifier",
        "masks": ["identity", *({"bucketize": {"width": w}} for w in (5, 20)), "suppress"],
    }
    sex = {"role": "quasi-identifier", "masks": ["identity", "suppress"]}
    return load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2, "suppression": 1},
            "attributes": {"age": age, "sex": sex},
        }
    )


def test_masks_are_drawn_and_the_parts_of_epsilon_are_said(tmp_path: Path) -> None:
    made = aegis.anonymize(TABLE, wide_policy(), searched(), output=tmp_path / "r.parquet")
    details = made.grouped.details
    assert (details["epsilon"], details["epsilon_search"]) == (2.0, 1.0)
    assert details["epsilon_sample"] == pytest.approx(1.0)
    assert details["least_class"] == SampledOptions(epsilon=1.0, delta=1e-4).privacy.k
    assert any("is the sum of 1 for the search" in note for note in made.grouped.notes)
    assert set(details["masks"]) == {"age", "sex"}
    assert f"before the method: age: {details['masks']['age']}" in made.grouped.notes[0]
    released = pq.read_table(tmp_path / "r.parquet")
    classes = Counter(zip(*(released[n].to_pylist() for n in ("age", "sex")), strict=True))
    assert min(classes.values()) >= details["least_class"]


def test_masks_depend_on_the_seed_and_are_better_with_more_budget() -> None:
    read = read_records(open_table(TABLE), wide_policy())
    drawn = [anonymize_records(read, searched(), seed=seed).masks for seed in (1, 1, 2, 3, 4, 5)]
    assert drawn[0] == drawn[1]
    assert len({str(d) for d in drawn}) > 1
    # So many rows and so much budget leave hardly a doubt: ages by five years, or as they are.
    sure = searched(epsilon=5.0, search=4.0, steps=8)
    shown = anonymize_records(read, sure, seed=3).masks
    assert "suppress" not in shown.values()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"search": 2.0}, "search = 2 must be smaller than epsilon = 2"),
        ({"search": -1.0}, "search = -1"),
        ({"steps": 0}, "steps = 0"),
        ({"score": "los"}, "Unknown score of safe-pub"),
        ({"score": "loss"}, "needs levels of a hierarchy"),
        ({"score": "classification"}, "needs a label that is a quasi-identifier"),
    ],
)
def test_bad_searches_are_refused(options: dict[str, Any], match: str) -> None:
    read = read_records(open_table(TABLE), wide_policy())
    with pytest.raises(PolicyError, match=match):
        anonymize_records(read, searched(**options))


def test_candidates_that_learn_are_not_searched() -> None:
    read = read_records(open_table(TABLE), policy(age=[{"quantiles": {"count": 4}}]))
    with pytest.raises(PolicyError, match="search cannot use the candidate"):
        anonymize_records(read, searched())


def test_leaves_of_hierarchies_are_searched_by_loss() -> None:
    sex = {"role": "quasi-identifier", "hierarchy": {"levels": {"f": ["*"], "m": ["*"]}}}
    age = {"role": "feature"}
    written = {
        "version": 1,
        "label": "y",
        "privacy": {"k": 2, "suppression": 1},
        "attributes": {"sex": sex, "age": age},
    }
    read = read_records(open_table(TABLE), load_policy(written))
    made = anonymize_records(read, searched(score="loss", epsilon=5.0, search=3.0))
    assert set(made.data["sex"].to_pylist()) == {"f", "m"}
