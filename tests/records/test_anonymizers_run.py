"""The whole path: table and policy in, a written release that keeps what it claims, or nothing."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from anonymizers_support import GRADES, JOBS, QUASI, class_counts, tables
from hypothesis import event, given, settings
from hypothesis import strategies as st

import aegis
from aegis.anonymizers import (
    ANONYMIZERS,
    Recipe,
    anonymize_records,
    check_release,
    dump_recipe,
    listed_options,
    load_recipe,
    read_records,
)
from aegis.errors import DataError, NoAdmissibleConfiguration, PolicyError
from aegis.policy import load_policy
from aegis.sources import open_table

FEATURE = {"role": "feature"}
TREE = {"care": ["nurse", "doctor"], "office": ["clerk", "judge"]}


def policy_of(privacy: dict[str, object] | None = None, **changed: object) -> aegis.Policy:
    attributes = {
        "name": {"role": "identifier"},
        **{name: {"role": "quasi-identifier"} for name in QUASI},
        "job": {"role": "quasi-identifier", "hierarchy": TREE},
        "illness": {"role": "sensitive"},
        **changed,
    }
    return load_policy(
        {"version": 1, "label": "note", "privacy": privacy or {}, "attributes": attributes}
    )


def fixed(rows: int = 40) -> pa.Table:
    """A small table without nulls or constants."""
    return pa.table(
        {
            "age": [20 + (7 * i) % 31 for i in range(rows)],
            "place": ["uvwx"[(i // 2) % 4] for i in range(rows)],
            "grade": [GRADES[(i * 3) % 4] for i in range(rows)],
            "job": [list(JOBS)[(i * 5 + i // 3) % 4] for i in range(rows)],
            "name": [f"person {i}" for i in range(rows)],
            "illness": ["abc"[(i + i // 4) % 3] for i in range(rows)],
            "note": [i % 2 for i in range(rows)],
        }
    )


OPTIONS = {
    "mo-obam": {"starts": 1, "clusters": 1},
    "hybrid": {"strict": True, "pattern_friendly": ["place"]},
    "mondrian": {"relaxed": True},
}


@pytest.mark.parametrize("method", ANONYMIZERS.names())
@settings(max_examples=5)
@given(table=tables(), data=st.data())
def test_written_releases_keep_what_they_claim(method, table, data):
    rows, extension = table.num_rows, data.draw(st.sampled_from(["parquet", "csv"]))
    k = data.draw(st.sampled_from([2, 3, max(2, rows // 2), max(2, rows - 1), max(2, rows)]))
    share = data.draw(st.sampled_from([0.0, 0.3, 0.99]))
    usable = [name for name in QUASI if len(set(table[name].to_pylist())) > 1]
    roles = {} if data.draw(st.booleans()) else {n: FEATURE for n in QUASI if n not in usable}
    quasi = tuple(usable) if roles else QUASI
    policy = policy_of({"k": k, "suppression": share}, **roles)
    style = data.draw(st.sampled_from([None, "centroid", "generalised"]))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / f"out.{extension}"
        try:
            release = aegis.anonymize(
                table,
                policy,
                method,
                options=OPTIONS.get(method, {}),
                style=style,
                output=out,
                orders={"grade": GRADES},
            )
        except (PolicyError, DataError, NoAdmissibleConfiguration) as error:
            event(type(error).__name__)
            assert list(Path(folder).iterdir()) == []
            return
        assert [one.name for one in Path(folder).iterdir()] == [out.name]
        written = open_table(out).table.to_pyarrow()
        event("released")
        counts = class_counts(written, quasi)
        assert min(counts.values()) >= k
        assert release.claims is not None
        assert release.claims["k"] == k
        assert release.audit.report.k == min(counts.values())
        assert written.num_rows == release.released_rows == rows - release.suppressed_rows
        assert release.suppressed_rows <= share * rows + 1e-9
        assert set(written.column_names) == {*QUASI, "illness", "note"}
        notes = dict(zip(table["note"].to_pylist(), table["illness"].to_pylist(), strict=True))
        for note, illness in zip(
            written["note"].to_pylist(), written["illness"].to_pylist(), strict=True
        ):
            assert notes[note] == illness


@given(table=tables(least=8), k=st.integers(2, 4))
def test_rule_is_held_against_the_release_by_counting(table, k):
    policy = policy_of(
        {"k": k, "suppression": 0.5, "l_diversity": {"attribute": "illness", "l": 2}}
    )
    try:
        read = read_records(open_table(table), policy)
    except DataError:
        return  # a constant quasi-identifier: the test above is about those
    made = anonymize_records(read, Recipe("mondrian", {"k": 2, "l": 1}))
    _, left, verdict = check_release(made, policy)
    sizes = class_counts(made.data)
    kinds: dict[tuple[object, ...], set[object]] = {}
    columns = [made.data[name].to_pylist() for name in (*QUASI, "illness")]
    for *key, illness in zip(*columns, strict=True):
        kinds.setdefault(tuple(key), set()).add(illness)
    kept = Counter({c: n for c, n in sizes.items() if n >= k and len(kinds[c]) >= 2})
    assert verdict.suppressed_rows == table.num_rows - kept.total()
    assert verdict.admissible == (
        bool(kept) and verdict.suppressed_rows <= 0.5 * table.num_rows + 1e-9
    )
    assert class_counts(left.collect(left.table)) == kept


def test_k_and_l_come_from_the_rule():
    rule = {"k": 4, "l_diversity": {"attribute": "illness", "kind": "distinct", "l": 3}}
    read = read_records(open_table(fixed()), policy_of(rule))
    options = Recipe("kl-member").resolve(read.policy, read.records)
    assert (options.k, options.l) == (4, 3)
    assert Recipe("mdav").resolve(read.policy, read.records).l == 1
    assert Recipe("hybrid").resolve(read.policy, read.records).l == 1
    assert Recipe("hybrid", {"strict": True}).resolve(read.policy, read.records).l == 3
    chosen = Recipe("kl-member", {"k": 6, "l": 2}).resolve(read.policy, read.records)
    assert (chosen.k, chosen.l) == (6, 2)


BY_RECORD = ("safe-pub", "rank-swap", "record-swap")
"""Methods that show no ranges of their classes: they draw records or swap their values."""


@pytest.mark.parametrize(
    "method", [one.name for one in ANONYMIZERS if not one.by_cell and one.name not in BY_RECORD]
)
def test_an_order_in_the_policy_is_that_of_the_call(method):
    """Every method goes by it: the release is the one that the argument gives, and no other."""
    declared = policy_of({"k": 3}, grade={"role": "quasi-identifier", "order": list(GRADES)})
    plain = policy_of({"k": 3})
    options = OPTIONS.get(method, {}) | ({"clusters": 9} if method == "mo-obam" else {})
    given_by = [
        aegis.anonymize(fixed(), policy, method, options=options, style="generalised", **more)
        for policy, more in ((declared, {}), (plain, {"orders": {"grade": GRADES}}), (plain, {}))
    ]
    first, second, unordered = (one.data["grade"].to_pylist() for one in given_by)
    assert first == second
    assert first != unordered
    assert any(str(value).startswith("[") for value in first)
    assert min(class_counts(given_by[0].data).values()) >= 3


def test_close_ranks_are_those_of_an_order_in_the_policy():
    declared = policy_of({}, grade={"role": "quasi-identifier", "order": list(GRADES)})
    plain = policy_of({})
    given_by = (declared, {}), (plain, {"orders": {"grade": GRADES}}), (plain, {})
    first, second, unordered = (
        aegis.anonymize(fixed(), policy, "rank-swap", options={"percent": 40}, seed=1, **more)
        .data["grade"]
        .to_pylist()
        for policy, more in given_by
    )
    assert first == second
    assert first != unordered


def test_columns_that_are_no_quasi_identifier_follow_the_policy():
    policy = policy_of(
        {"k": 3},
        illness={"role": "sensitive", "masks": [{"group": {"groups": {"x": ["a", "b", "c"]}}}]},
        note={"role": "feature", "masks": ["identity", "suppress"]},
    )
    release = aegis.anonymize(fixed(), policy, "mondrian")
    assert set(release.data["illness"].to_pylist()) == {"x"}
    assert release.data["note"].to_pylist() == fixed()["note"].to_pylist()
    assert any("illness" in note for note in release.notes)
    assert any("rows stay in the order of the table" in note for note in release.notes)
    assert release.dropped == ("name",)


def test_a_release_says_if_it_is_finer_than_every_mask_of_the_policy():
    coarse = {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 10}}, "suppress"]}
    policy = policy_of({"k": 3}, age=coarse)
    warning = "the release may show single values of age, for which the policy lists only coarser"
    release = aegis.anonymize(fixed(), policy, "mdav")
    assert any(warning in note for note in release.notes)
    masked = aegis.anonymize(fixed(), policy, "local-suppression")
    assert not any(warning in note for note in masked.notes)
    assert not any(
        "single values" in n for n in aegis.anonymize(fixed(), policy_of({"k": 3}), "mdav").notes
    )


def test_noise_is_no_mask_for_a_carried_column():
    policy = policy_of(
        {"k": 3}, note={"role": "feature", "masks": [{"add_uniform": {"amount": 2}}]}
    )
    with pytest.raises(PolicyError, match="note"):
        aegis.anonymize(fixed(), policy, "mondrian")


def test_identifiers_are_tokenised_where_the_policy_says_so(monkeypatch):
    monkeypatch.setenv("AEGIS_KEY", "a key that is long enough to be one")
    masks = [{"tokenise": {"key_env": "AEGIS_KEY"}}]
    policy = policy_of({"k": 3}, name={"role": "identifier", "masks": masks})
    released = aegis.anonymize(fixed(), policy, "mdav").data
    assert len(set(released["name"].to_pylist())) == 40
    assert "person 1" not in released["name"].to_pylist()


def test_same_recipe_gives_the_same_bytes(tmp_path):
    policy = policy_of({"k": 3})
    quick = {"clusters": 5, "starts": 1}
    first = aegis.anonymize(
        fixed(), policy, "mo-obam", seed=4, output=tmp_path / "a.parquet", options=quick
    )
    (tmp_path / "recipe.yaml").write_text(dump_recipe(first.recipe))
    recipe = load_recipe(tmp_path / "recipe.yaml")
    second = aegis.anonymize(fixed(), policy, recipe, output=tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert second.recipe == first.recipe


def test_rows_left_out_by_the_method_count_as_suppressed():
    table = fixed().append_column("extra", pa.array([None, *range(39)]))
    limits = {"strict": True, "pattern_friendly": ["place"], "limits": [["age", 22, 90]]}
    left_out = sum(age < 22 for age in table["age"].to_pylist())
    assert left_out
    with pytest.raises(NoAdmissibleConfiguration, match=f"leaves out {left_out} rows"):
        aegis.anonymize(table, policy_of({"k": 3}), "hybrid", options=limits)
    allowed = policy_of({"k": 3, "suppression": 0.5})
    release = aegis.anonymize(table, allowed, "hybrid", options=limits)
    assert release.suppressed_rows >= left_out
    free = aegis.anonymize(table, policy_of(), "hybrid", options=limits)
    assert free.released_rows <= 40 - left_out


def test_certificate_says_what_was_done(tmp_path):
    import json

    release = aegis.anonymize(
        fixed(),
        policy_of({"k": 4}),
        "mdav",
        output=tmp_path / "out.csv",
        certificate=tmp_path / "c.json",
    )
    paper = json.loads((tmp_path / "c.json").read_text())
    assert paper["anonymizer"]["method"] == "mdav"
    assert paper["anonymizer"]["options"]["k"] == 4
    assert paper["anonymizer"]["claims"] == {"k": 4, "l": 1}
    assert paper["information_loss"]["scaled"] == release.grouped.loss.scaled
    assert paper["privacy"]["passed"] is True
    assert paper["utility"]["kept"] == release.utility.utility_kept
    assert paper["output"]["rows"] == 40
    assert paper["policy"]["privacy"] == {"k": 4}


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("mdva", {}, "Did you mean 'mdav'"),
        ("mdav", {"gama": 1}, "Unknown option of method 'mdav'"),
        ("mdav", {"k": "five"}, "a whole number"),
        ("mdav", {"k": True}, "a whole number"),
        ("mdav", {"k": 1}, "at least 2"),
        ("mdav", {"k": 41}, "above the number of records"),
        ("mo-obam", {"clusters": 11, "k": 4}, "at most 10 clusters"),
        ("mdav", {"l": 2}, "ignores sensitive attributes"),
        ("kl-member", {"l": 4}, "The most that is possible is l = 3"),
        ("hybrid", {"epsilon": 0}, "above 0"),
        ("hybrid", {"epsilon": -1.5}, "above 0"),
        ("hybrid", {"bands": [0.5, 0.1]}, "a list of 3"),
        ("hybrid", {"limits": [["age", 1]]}, "a list, each entry a list of 3"),
        ("hybrid", {"pattern_friendly": "place"}, "a list"),
        ("hybrid", {"strict": 1}, "true or false"),
        ("mo-obam", {"clusters": 2.5}, "a whole number or null"),
    ],
)
def test_bad_options_are_one_clear_error(method, options, words, tmp_path):
    with pytest.raises((PolicyError, DataError)) as caught:
        aegis.anonymize(
            fixed(), policy_of(), method, options=options, output=tmp_path / "out.parquet"
        )
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"age": [None] * 40}, "null in every row"),
        ({"age": [30] * 40}, "same value in every row"),
        ({"job": ["pilot"] + ["nurse"] * 39}, "does not cover the value 'pilot'"),
    ],
)
def test_bad_columns_are_one_clear_error(changed, words, tmp_path):
    table = fixed()
    for name, values in changed.items():
        kind = pa.int64() if name == "age" else pa.string()
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(values, kind))
    with pytest.raises(DataError, match=words):
        aegis.anonymize(table, policy_of(), "mdav", output=tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []


def test_other_bad_input(tmp_path):
    policy = policy_of({"k": 3})
    with pytest.raises(DataError, match="no rows"):
        aegis.anonymize(fixed().slice(0, 0), policy, "mdav")
    with pytest.raises(DataError, match="'note'"):
        aegis.anonymize(fixed().drop_columns(["note"]), policy, "mdav")
    with pytest.raises(PolicyError, match="style"):
        aegis.anonymize(fixed(), policy, "mdav", style="rounded")
    with pytest.raises(PolicyError, match="cannot make a front"):
        aegis.anonymize(fixed(), policy, "mdav", front=True)
    with pytest.raises(PolicyError, match="no output"):
        aegis.anonymize(fixed(), policy, "mdav", certificate=tmp_path / "c.json")
    with pytest.raises(PolicyError, match="already sets options"):
        aegis.anonymize(fixed(), policy, Recipe("mdav"), options={"k": 2})
    with pytest.raises(NoAdmissibleConfiguration, match="strict"):
        aegis.anonymize(fixed(), policy, "hybrid", options={"pattern_friendly": ["place"]})
    (tmp_path / "out.parquet").write_text("old")
    with pytest.raises(PolicyError, match="--force"):
        aegis.anonymize(fixed(), policy, "mdav", output=tmp_path / "out.parquet")
    assert (tmp_path / "out.parquet").read_text() == "old"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("configurations: {a: {age: suppress}}", "aegis apply"),
        ("options: {k: 5}", "does not name a method"),
        ("method: mdav\nsed: 1", "Did you mean 'seed'"),
        ("method: mdav\nseed: -1", "from 0"),
        ("method: mdav\noptions: [k]", "NAME: VALUE"),
        ("[a, b]", "not a mapping"),
        ("method: mdav\nstyle: round", "style"),
    ],
)
def test_bad_recipes(text, words, tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(PolicyError) as caught:
        load_recipe(path)
    assert words in str(caught.value)


@pytest.mark.parametrize("method", ANONYMIZERS.names())
def test_every_option_is_documented_and_accepts_its_default(method):
    options = ANONYMIZERS.get(method).options
    listed = listed_options(options)
    assert all(one.description.endswith(".") for one in listed)
    defaults = {one.name: one.default for one in listed}
    assert ANONYMIZERS.get(method).configure(**defaults) == options()
