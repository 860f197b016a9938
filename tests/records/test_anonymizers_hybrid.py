from __future__ import annotations

import json
import sys

import numpy as np
import pyarrow as pa
import pytest

from aegis.anonymizers import ANONYMIZERS, Records, build_release, encode
from aegis.errors import DataError, PolicyError
from aegis.records.hybrid import HybridOptions, band, patterns
from experiment_modules import experiment

METRICS = experiment("hybrid_metrics")

HIERARCHY = [
    ["Paris", "France", "Europe", "*"],
    ["Lyon", "France", "Europe", "*"],
    ["Rome", "Italy", "Europe", "*"],
    ["Tokyo", "Japan", "Asia", "*"],
]
ROLES = {
    "age": "quasi-identifier",
    "race": "quasi-identifier",
    "city": "quasi-identifier",
    "illness": "sensitive",
}
QUASI = ("age", "race", "city")


def people(rows: int = 400) -> pa.Table:
    random = np.random.default_rng(4)
    city = random.choice(["Paris", "Lyon", "Rome", "Tokyo"], rows)
    # The city decides the illness, the race tells nothing.
    illness = np.where(np.isin(city, ["Paris", "Lyon"]), "a", "b")
    return pa.table(
        {
            "age": random.integers(20, 60, rows),
            "race": random.choice(["m", "n", "o"], rows, p=[0.9, 0.08, 0.02]),
            "city": city,
            "illness": illness,
        }
    )


def encoded(table: pa.Table) -> Records:
    return encode(table, ROLES, hierarchies={"city": HIERARCHY})


def run(table: pa.Table, **options):
    method = ANONYMIZERS.get("hybrid")
    records = encoded(table)
    grouped = method.group(records, method.configure(**options), seed=1)
    return records, grouped, build_release(table, records, grouped)


def test_the_forest_finds_the_attribute_that_tells_nothing():
    pytest.importorskip("sklearn")
    found = patterns(encoded(people()), HybridOptions(trees=20), np.random.default_rng(0))
    race, city = found
    assert (race.name, race.friendly) == ("race", True)
    assert (city.name, city.friendly) == ("city", False)
    assert city.drop > 0.2 > abs(race.drop)
    assert [row[0] for row in race.bands] == ["m", "n", "o"]
    assert [row[2] for row in race.bands] == ["super-major", "major", "minor"]


def test_figures_name_no_value_that_only_suppressed_records_have():
    table = people()
    race = pa.array(["unheard-of", *table["race"].to_pylist()[1:]])
    table = table.set_column(table.column_names.index("race"), "race", race)
    _, grouped, _ = run(table, strict=True, pattern_friendly=("race",))
    assert [pattern["name"] for pattern in grouped.details["patterns"]] == ["race", "city"]
    assert "unheard-of" not in json.dumps(grouped.details)


def test_bands_split_at_their_limits():
    limits = (0.5, 0.05, 0.01)
    shares = [0.9, 0.5, 0.49, 0.05, 0.049, 0.01, 0.0099]
    names = ["super-major"] * 2 + ["major"] * 2 + ["minor"] * 2 + ["super-minor"]
    assert [band(share, limits) for share in shares] == names


def test_without_scikit_learn_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(PolicyError, match=r"aegis-advisor\[ml\]"):
        run(people())


def test_the_published_release_leaves_major_rows_exact_but_for_noise():
    table = people()
    records, grouped, released = run(table, pattern_friendly=("race",), sensitivity=None)
    minor = np.array([race == "o" for race in table.column("race").to_pylist()])
    assert grouped.details["violating"] == int(minor.sum())
    assert grouped.claims_k is False
    assert grouped.details["epsilon"] == {"non_violating": 5.0, "violating": 3.0}
    major = np.flatnonzero(~minor)
    for name in ("race", "city"):
        assert released.column(name).take(major).equals(table.column(name).take(major))
    ages = np.array(released.column("age").to_pylist())
    assert ages.min() >= 20
    assert ages.max() <= 59
    assert (ages != np.array(table.column("age").to_pylist())).mean() > 0.5
    assert "neither differentially private nor k-anonymous" in grouped.notes[-1]
    assert len(records) == released.num_rows


def test_more_epsilon_means_less_noise():
    table = people()
    _, noisy, _ = run(table, pattern_friendly=("race",), epsilon=1.0)
    _, quiet, _ = run(table, pattern_friendly=("race",), epsilon=100.0)
    assert quiet.loss.scaled < noisy.loss.scaled
    assert quiet.details["originality"] > noisy.details["originality"]


def test_noise_has_the_scale_of_range_over_epsilon():
    values = np.linspace(0.0, 1000.0, 4001)
    table = pa.table({"x": values, "s": ["a", "b"] * 2000 + ["a"]})
    records = encode(table, {"x": "quasi-identifier", "s": "sensitive"})
    method = ANONYMIZERS.get("hybrid")
    options = method.configure(
        pattern_friendly=(), epsilon_violating=200.0, sensitivity=None, k=2000
    )
    released = build_release(table, records, method.group(records, options))
    noise = np.array(released.column("x").to_pylist()) - values
    # Laplace of scale 5: mean absolute value 5; the ends of the domain cut off little.
    assert np.abs(noise).mean() == pytest.approx(5.0, rel=0.1)


def test_noise_is_that_of_the_papers_worked_example_unless_told_otherwise():
    """Ages 33, 34, 39, 31, 38 become 32, 35, 39, 32, 37: off by one or not at all."""
    table = people()
    ages = np.array(table.column("age").to_pylist())
    off = {}
    for epsilon in (1.0, 10.0):
        _, grouped, released = run(
            table, pattern_friendly=("race",), epsilon=epsilon, epsilon_violating=epsilon
        )
        off[epsilon] = np.abs(np.array(released.column("age").to_pylist()) - ages)
        width = ages.max() - ages.min()
        # Values at the ends of the domain are told apart by as many times epsilon.
        spent = {"non_violating": epsilon * width, "violating": epsilon * width}
        assert grouped.details["epsilon"] == pytest.approx(spent)
    assert np.quantile(off[1.0], 0.8) <= 2
    assert (off[10.0] == 0).mean() > 0.95  # "almost zero" loss from epsilon = 10


def test_a_sensitivity_has_to_be_above_0():
    with pytest.raises(PolicyError, match="sensitivity = 0"):
        ANONYMIZERS.get("hybrid").configure(sensitivity=0.0)


def test_clusters_of_low_diversity_go_to_the_middle_level():
    table = pa.table(
        {
            "age": [20, 21, 40, 41],
            "race": ["m"] * 4,
            "city": ["Paris", "Paris", "Rome", "Rome"],
            "illness": ["a", "a", "a", "b"],
        }
    )
    records = encode(table, ROLES, hierarchies={"city": HIERARCHY}, degenerate=True)
    method = ANONYMIZERS.get("hybrid")
    options = method.configure(k=2, pattern_friendly=(), strict=True)
    released = build_release(table, records, method.group(records, options))
    # The second cluster is as diverse as two values can be and stays at its lowest common level.
    assert released.column("city").to_pylist() == ["Europe", "Europe", "Rome", "Rome"]
    assert released.column("age").to_pylist() == ["[20, 21]", "[20, 21]", "[40, 41]", "[40, 41]"]


def test_strict_makes_every_class_large_enough():
    table = people()
    _, grouped, released = run(table, pattern_friendly=("race",), strict=True, k=5, l=1)
    counts: dict[tuple[object, ...], int] = {}
    for key in zip(*(released.column(name).to_pylist() for name in QUASI), strict=True):
        counts[key] = counts.get(key, 0) + 1
    assert min(counts.values()) >= 5
    assert grouped.claims_k is True
    assert grouped.details["epsilon"] == {"non_violating": 0.0, "violating": 0.0}


def test_strict_suppresses_what_no_group_can_hold():
    table = pa.table(
        {
            "age": [20, 21, 22, 23, 24],
            "race": ["m", "m", "m", "m", "o"],
            "city": ["Paris"] * 4 + ["Rome"],
            "illness": ["a", "b", "a", "b", "a"],
        }
    )
    _, grouped, released = run(
        table, pattern_friendly=("race",), strict=True, k=2, bands=(0.5, 0.3, 0.01)
    )
    assert grouped.suppressed == 1
    assert released.num_rows == 4
    assert any("fit no group" in note for note in grouped.notes)


def test_preprocessing_counts_what_it_leaves_out():
    table = pa.table(
        {
            "age": [20, 20, 21, None, 99, 22],
            "race": ["m", "m", "m", "m", "m", "n"],
            "city": ["Paris"] * 5 + ["Rome"],
            "illness": ["a", "a", "b", "b", "a", "a"],
        }
    )
    _, grouped, released = run(
        table,
        pattern_friendly=(),
        strict=True,
        k=3,
        drop_incomplete=True,
        drop_duplicates=True,
        limits=(("age", 0, 90),),
    )
    assert grouped.details["dropped"] == {"outliers": 1, "incomplete": 1, "duplicates": 1}
    assert grouped.suppressed == 3
    assert released.num_rows == 3


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"pattern_friendly": ("age",)}, PolicyError, "is not categorical"),
        ({"pattern_friendly": ("sex",)}, DataError, "No column 'sex'"),
        ({"limits": (("city", 0, 1),)}, PolicyError, "'city' is not numeric"),
        ({"limits": (("age", 90, 20),)}, PolicyError, "lower limit 90 of 'age' is above"),
        ({"limits": (("age", 90, 99),), "pattern_friendly": ()}, PolicyError, "leaves 0 of 400"),
    ],
)
def test_bad_settings_get_one_clear_error(options, error, says):
    with pytest.raises(error) as raised:
        run(people(), **options)
    assert says in str(raised.value)


def test_a_sensitive_attribute_is_needed():
    table = people().drop_columns(["illness"])
    records = encode(table, dict.fromkeys(QUASI, "quasi-identifier"))
    with pytest.raises(PolicyError, match="needs a sensitive attribute"):
        ANONYMIZERS.get("hybrid").group(records)


def test_originality_compares_cells_as_they_are_written():
    table = pa.table({"age": [20, 30], "city": ["Rome", None]})
    released = pa.table({"age": ["20", "[30, 40]"], "city": ["Rome", None]})
    assert METRICS.originality(table, released, ["age", "city"]) == 0.75


def test_disclosure_risk_grows_with_knowledge():
    released = pa.table(
        {
            "age": ["[20, 30]", "[20, 30]", "[30, 40]", "[30, 40]"],
            "city": ["Rome", "Paris", "Rome", "Rome"],
            "illness": ["a", "b", "a", "b"],
        }
    )
    age, both = METRICS.disclosure_risk(released, ["age", "city"], "illness")
    assert (age.known, age.mean, age.largest) == (("age",), 0.5, 0.5)
    assert (both.known, both.mean, both.largest) == (("age", "city"), 0.75, 1.0)


def test_a_forest_predicts_from_a_release():
    pytest.importorskip("sklearn")
    table = people()
    assert METRICS.forest_accuracy(table, ["city"], "illness", trees=10) == 1.0
    assert METRICS.forest_accuracy(table, ["race"], "illness", trees=10) < 0.8


def test_metrics_name_an_unknown_column():
    with pytest.raises(DataError, match="Did you mean 'city'"):
        METRICS.disclosure_risk(people(), ["citi"], "illness")


def test_strict_shows_ranks_as_ranges():
    """Groups of four by k-member; a grade without a hierarchy goes to the range of its group."""
    table = pa.table(
        {
            "age": [20, 21, 22, 23, 60, 61, 62, 63],
            "grade": ["low", "middle", "low", "low", "high", "top", None, "top"],
            "illness": ["a", "b"] * 4,
        }
    )
    roles = {"age": "quasi-identifier", "grade": "quasi-identifier", "illness": "sensitive"}
    records = encode(table, roles, orders={"grade": ["low", "middle", "high", "top"]})
    method = ANONYMIZERS.get("hybrid")
    options = method.configure(k=4, strict=True, pattern_friendly=())
    grouped = method.group(records, options)
    released = build_release(table, records, grouped)
    assert released["grade"].to_pylist() == ["[low, middle]"] * 4 + ["*"] * 4
    # Ranks lie at 0, 1/3, 2/3 and 1; a range that mixes in a missing value costs 1, as "*" does.
    ages = 8 * 3 / 43
    assert grouped.loss.penalty == pytest.approx((ages + 4 / 3 + 4) / 16)
    farther = (3 + 2 + 2 + 3 + 3 + 2 + 2 + 3) / 43
    assert grouped.details["distortion"] == pytest.approx((farther + 4 / 3 + 4) / 16)
    assert grouped.details["originality"] == 0.0
