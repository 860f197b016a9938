"""What every method promises, on tables made to break promises."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from anonymizers_support import QUASI, class_counts, encoded, tables
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.anonymizers import ANONYMIZERS, Style, build_release
from aegis.errors import DataError, PolicyError

NO_GROUPS = ("hybrid", "safe-pub", "rank-swap", "record-swap")
GROUPING = tuple(name for name in ANONYMIZERS.names() if name not in NO_GROUPS)
METHODS = [(name, {}) for name in GROUPING if name not in ("kl-member", "mo-obam")]
CELLS = {"partition_above": 1, "cell_size": 5}
"""Every table is cut into Mondrian cells first."""
METHODS += [
    ("kl-member", {"l": 1}),
    ("mondrian", {"relaxed": True}),
    *((name, CELLS) for name in ("mdav", "k-member")),
    ("v-mdav", {"gamma": 1.1, **CELLS}),
    ("kl-member", {"l": 1, **CELLS}),
    ("mo-obam", {"starts": 1}),
    ("mo-obam", {"starts": 3, "weight": 1.0}),
    ("mo-obam", {"scaled": False, "starts": 1, "weight": 0.0}),
    ("hybrid", {"strict": True, "pattern_friendly": ("place",)}),
    ("hybrid", {"strict": True, "pattern_friendly": ()}),
]


def sizes(rows: int) -> st.SearchStrategy[int]:
    """A k from 2 to the number of rows, often close to it or to its half."""
    return st.sampled_from([max(2, rows // 2), rows // 2 + 1, rows - 1, rows]) | st.integers(
        2, rows
    )


@pytest.mark.parametrize(("name", "more"), METHODS)
@given(table=tables(), data=st.data())
def test_every_release_has_the_k_that_it_claims(name, more, table, data):
    method = ANONYMIZERS.get(name)
    k = data.draw(sizes(table.num_rows), label="k")
    style = data.draw(st.sampled_from(Style), label="style")
    records = encoded(table)
    options = method.configure(k=k, rounded=data.draw(st.booleans()), **more)
    grouped = method.group(records, options, seed=3)
    released = build_release(table, records, grouped, style=style)
    counts = class_counts(released)
    assert min(counts.values(), default=k) >= k
    assert released.num_rows + grouped.suppressed == table.num_rows
    assert "name" not in released.column_names
    kept = np.flatnonzero(grouped.groups.of >= 0)
    assert released.column("note").to_pylist() == kept.tolist()
    if name != "hybrid":
        assert grouped.suppressed == 0


@pytest.mark.parametrize(("name", "more"), [m for m in METHODS if m[1].get("starts") != 3])
@settings(max_examples=4)
@given(table=tables(least=6))
def test_the_same_seed_gives_the_same_groups(name, more, table):
    method = ANONYMIZERS.get(name)
    options = method.configure(k=2, **more)
    first = method.group(encoded(table), options, seed=11)
    second = method.group(encoded(table), options, seed=11)
    assert np.array_equal(first.groups.of, second.groups.of)
    assert first.loss == second.loss


DIVERSE = [
    ("kl-member", {}),
    ("kl-member", CELLS),
    ("mondrian", {}),
    ("mondrian", {"relaxed": True}),
    ("hybrid", {"strict": True, "pattern_friendly": ("place",)}),
]


@pytest.mark.parametrize(("name", "more"), DIVERSE)
@given(table=tables(), data=st.data())
def test_groups_hold_l_sensitive_values(name, more, table, data):
    held = len(set(table.column("illness").to_pylist()))
    k = data.draw(sizes(table.num_rows))
    diversity = data.draw(st.integers(1, held))
    method = ANONYMIZERS.get(name)
    records = encoded(table)
    grouped = method.group(records, method.configure(k=k, l=diversity, **more))
    released = build_release(table, records, grouped)
    sensitive: dict[tuple[object, ...], set[object]] = {}
    names = [*QUASI, "illness"]
    for *key, value in zip(*(released.column(n).to_pylist() for n in names), strict=True):
        sensitive.setdefault(tuple(key), set()).add(value)
    assert all(len(values) >= diversity for values in sensitive.values())


@pytest.mark.parametrize("name", GROUPING)
def test_too_large_a_k_is_refused_with_what_is_possible(name):
    table = pa.table({"age": [20, 30, 40], "illness": ["a", "b", "c"]})
    roles = {"age": "quasi-identifier", "illness": "sensitive"}
    method = ANONYMIZERS.get(name)
    with pytest.raises(PolicyError, match=r"k = 4 is above the number of records, 3.*2 to 3"):
        method.group(encoded_two(table, roles), method.configure(k=4))


def encoded_two(table, roles):
    from aegis.anonymizers import encode

    return encode(table, roles)


@pytest.mark.parametrize(
    ("name", "given_", "says"),
    [
        ("mdav", {"k": 1}, "k = 1 is too small. It must be at least 2"),
        ("mdav", {"gamma": 0.2}, "Unknown option of method 'mdav': 'gamma'"),
        ("v-mdav", {"gamma": -1.0}, "gamma = -1.0 is too small. It must be at least 0"),
        ("mo-obam", {"clusters": 0}, "clusters = 0"),
        ("mo-obam", {"weight": -0.1}, "weight = -0.1"),
        ("hybrid", {"epsilon": 0.0}, "epsilon = 0.0 is too small. It must be above 0"),
        ("hybrid", {"epsilon_violating": -3.0}, "epsilon_violating = -3.0"),
        (
            "hybrid",
            {"coverage": 1.2},
            "coverage = 1.2 is out of range. It must lie between 0 and 1",
        ),
        ("hybrid", {"bands": (0.1, 0.5, 0.01)}, "the largest first"),
        ("hybrid", {"l": 2}, "Set `strict`"),
    ],
)
def test_bad_options_are_refused(name, given_, says):
    with pytest.raises(PolicyError) as raised:
        ANONYMIZERS.get(name).configure(**given_)
    assert says in str(raised.value)


def small(sensitive=("a", "b", "a", "b", "a")):
    table = pa.table({"age": [20, 30, 40, 50, 60], "illness": list(sensitive)})
    return encoded_two(table, {"age": "quasi-identifier", "illness": "sensitive"})


def test_more_diversity_than_there_is_says_what_is_possible():
    method = ANONYMIZERS.get("kl-member")
    with pytest.raises(DataError, match=r"holds 2.*most that is possible is l = 2"):
        method.group(small(), method.configure(k=2, l=3))


def test_too_many_clusters_say_how_many_fit():
    method = ANONYMIZERS.get("mo-obam")
    with pytest.raises(PolicyError, match=r"3 clusters of at least 2 need 6.*at most 2 clusters"):
        method.group(small(), method.configure(k=2, clusters=3))


def test_a_method_without_diversity_refuses_l():
    method = ANONYMIZERS.get("mdav")
    with pytest.raises(PolicyError, match="ignores sensitive attributes"):
        method.group(small(), method.configure(k=2, l=2))


def test_diversity_needs_a_sensitive_attribute():
    table = pa.table({"age": [20, 30, 40]})
    method = ANONYMIZERS.get("mondrian")
    with pytest.raises(PolicyError, match="no attribute is sensitive"):
        method.group(encoded_two(table, {"age": "quasi-identifier"}), method.configure(k=2, l=2))


def test_options_of_another_method_are_refused():
    with pytest.raises(PolicyError, match="Give MondrianOptions"):
        ANONYMIZERS.get("mondrian").group(small(), ANONYMIZERS.get("mdav").configure(k=2))


def test_an_unknown_method_gets_the_nearest_name():
    with pytest.raises(PolicyError, match="Did you mean 'mondrian'"):
        ANONYMIZERS.get("mondrain")


def test_results_show_and_convert_themselves():
    grouped = ANONYMIZERS.get("mdav").group(small(), ANONYMIZERS.get("mdav").configure(k=2))
    plain = grouped.to_dict()
    assert plain["method"] == "mdav"
    assert plain["options"]["k"] == 2
    assert plain["groups"] == len(grouped.groups)
    assert repr(grouped).startswith("Grouped(mdav, 2 groups of at least 2")


@pytest.mark.parametrize("name", ["mdav", "v-mdav", "k-member", "kl-member"])
def test_large_tables_are_cut_into_cells_first(name):
    random = np.random.default_rng(5)
    table = pa.table({"x": random.normal(size=300), "y": random.normal(size=300)})
    table = table.append_column("s", pa.array(random.choice(list("abc"), 300)))
    records = encoded_two(
        table, {"x": "quasi-identifier", "y": "quasi-identifier", "s": "sensitive"}
    )
    method = ANONYMIZERS.get(name)
    whole = method.group(records, method.configure(k=4))
    cells = method.group(records, method.configure(k=4, partition_above=100, cell_size=70))
    assert whole.notes == ()
    assert "Mondrian cells" in cells.notes[0]
    assert cells.details["cells"] == 4
    assert cells.smallest >= 4
    # Groups may not cross cells, which costs something, and little.
    assert cells.loss.scaled < 1.35 * whole.loss.scaled


def test_a_rounded_release_keeps_whole_numbers():
    table = pa.table({"age": [20, 21, 40, 42]})
    records = encoded_two(table, {"age": "quasi-identifier"})
    method = ANONYMIZERS.get("mdav")
    exact = build_release(table, records, method.group(records, method.configure(k=2)))
    whole = build_release(
        table, records, method.group(records, method.configure(k=2, rounded=True))
    )
    assert exact.column("age").to_pylist() == [20.5, 20.5, 41.0, 41.0]
    assert whole.schema.field("age").type == pa.int64()
    assert Counter(whole.column("age").to_pylist()) == {20: 2, 41: 2}


def test_a_generalised_release_shows_ranges_ancestors_and_sets():
    table = pa.table(
        {
            "age": [20, 21, 40, 42, None, None],
            "place": ["x", "y", "x", "x", "z", "z"],
            "grade": ["low", "middle", "top", "top", "low", "low"],
            "job": ["nurse", "doctor", "clerk", "nurse", "judge", "judge"],
        }
    )
    records = encoded(table, dict.fromkeys(QUASI, "quasi-identifier"))
    method = ANONYMIZERS.get("mdav")
    grouped = method.group(records, method.configure(k=2))
    released = build_release(table, records, grouped, style=Style.GENERALISED)
    assert released.slice(0, 1).to_pylist()[0] == {
        "age": "[20, 21]",
        "place": "x|y",
        "grade": "[low, middle]",
        "job": "care",
    }
    assert released.slice(2, 1).to_pylist()[0] == {
        "age": "[40, 42]",
        "place": "x",
        "grade": "top",
        "job": "*",
    }
    assert released.slice(4, 1).to_pylist()[0] == {
        "age": None,
        "place": "z",
        "grade": "low",
        "job": "judge",
    }
