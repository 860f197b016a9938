"""What a rule does not cover: rows that other columns single out, near keys, the label in disguise."""

from __future__ import annotations

import html
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aegis
from aegis.advisor.advise import outside_of_release
from aegis.advisor.label_leaks import label_share, leak_sentences
from aegis.advisor.released import ReleasedRows
from aegis.cli.apply import _facts
from aegis.errors import PolicyError
from aegis.policy.load import policy_mapping
from aegis.present.cautions import cautions_of
from aegis.privacy.inference import Implication
from aegis.release import check_certificate
from aegis.report import render_certificate
from aegis.sources import open_table
from aegis.summary.outside import Outside

ROWS = 120


def table() -> pa.Table:
    random = np.random.default_rng(4)
    y = random.integers(0, 2, ROWS)
    return pa.table(
        {
            "age": random.integers(20, 40, ROWS),
            "twin": [f"code-{v}" for v in y],
            "note": [f"n{i}" for i in range(ROWS)],
            "y": y,
        }
    )


def policy(**changes: Any) -> aegis.Policy:
    masks = ["identity", {"bucketize": {"width": 5}}, "suppress"]
    return aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 3, "suppression": 0.1},
            "attributes": {
                "age": {"role": "quasi-identifier", "masks": masks},
                "twin": {"role": "feature"},
                "note": {"role": "feature"},
            },
        }
        | changes
    )


def test_what_stands_outside_the_rule_is_named() -> None:
    study = aegis.Study(table(), policy())
    advice = study.search()
    told = advice.uncovered
    assert told.near_keys == {"note": ROWS}
    assert set(told.leaks) == {"twin"}
    assert told.leaks["twin"] == pytest.approx(1)
    assert told.unique_rows == told.rows == study.apply(advice).released_rows
    assert all(sentence in advice.warnings for sentence in told.sentences)
    assert "may repeat the label in other words" in aegis.render_report(advice)
    assert advice.to_dict()["uncovered"]["unique_rows"] == told.unique_rows


def test_a_certificate_says_that_its_utility_may_be_chance(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    ages = random.integers(20, 40, ROWS)
    for y, chance in ((random.integers(0, 2, ROWS), True), ((ages > 30).astype(int), False)):
        rule = {"k": 3, "suppression": 0.1}
        ranges: dict[str, Any] = {
            "role": "quasi-identifier",
            "masks": [{"bucketize": {"width": 5}}],
        }
        declared = {"version": 1, "label": "y", "privacy": rule, "attributes": {"age": ranges}}
        study = aegis.Study(pa.table({"age": ages, "y": y}), aegis.load_policy(declared))
        release = study.apply(
            study.search(),
            certificate=tmp_path / f"{chance}.json",
            output=tmp_path / f"{chance}.csv",
        )
        words = "within two standard errors of no utility: that the released columns predict y may be chance"
        assert any(words in text for text in cautions_of(release.certificate)) == chance
        page = html.unescape(render_certificate(release.certificate))
        assert (words in page) == chance
        assert ('<dd class="note">may be chance; held-out-auc' in page) == chance
        assert ("(may be chance; held-out-auc" in dict(_facts(release))["utility kept"]) == chance


def patients(place: str, diagnoses: list[str]) -> list[dict[str, str]]:
    return [
        {"place": place, "diagnosis": each, "y": "ab"[i % 2]} for i, each in enumerate(diagnoses)
    ]


def diagnosed(**rule: Any) -> aegis.Policy:
    return aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 3, "suppression": 0.1} | rule,
            "attributes": {
                "place": {"role": "quasi-identifier", "masks": ["identity"]},
                "diagnosis": {"role": "sensitive"},
            },
        }
    )


def test_a_release_warns_of_classes_that_are_missing_because_of_their_values(tmp_path) -> None:
    """A reader who knows all places sees that Nuuk is missing, so all its people have the flu."""
    rows = [*patients("Oslo", ["flu", "cold"] * 20), *patients("Nuuk", ["flu"] * 3)]
    diverse = diagnosed(l_diversity={"attribute": "diagnosis", "l": 2})
    study = aegis.Study(pa.Table.from_pylist(rows), diverse)
    advice = study.search()
    release = study.apply(advice, tmp_path / "r.csv", certificate=tmp_path / "c.json")
    assert release.suppressed_rows == 3
    start = "Suppressed rows may reveal their values of diagnosis: "
    (warned,) = (text for text in release.warnings if text.startswith(start))
    assert "If one of them has 3 rows or more, it was not too small, so its values broke" in warned
    assert study.policy.privacy.missing_classes(2) == ()  # no missing class has 3 rows
    assert warned in advice.warnings
    assert warned in cautions_of(release.certificate)
    assert html.escape(start, quote=False) in render_certificate(release.certificate)

    by_size = aegis.Study(pa.Table.from_pylist(rows), diagnosed(k=5))
    for text in (*by_size.apply(by_size.search()).warnings, *by_size.search().warnings):
        assert not text.startswith("Suppressed rows may reveal")
    whole = aegis.Study(pa.Table.from_pylist(rows[:40]), diverse)
    assert not any(text.startswith(start) for text in whole.apply(whole.search()).warnings)


def test_a_release_warns_of_a_class_with_nearly_one_value() -> None:
    """Two diagnoses meet l = 2, although nine of ten people of Nuuk have the flu."""
    rows = [*patients("Oslo", ["flu", "cold"] * 20), *patients("Nuuk", ["flu"] * 9 + ["cold"])]
    study = aegis.Study(
        pa.Table.from_pylist(rows), diagnosed(l_diversity={"attribute": "diagnosis", "l": 2})
    )
    advice = study.search()
    release = study.apply(advice)
    start = "In some class, one value of diagnosis has 90 % of the rows: "
    for warnings in (release.warnings, advice.warnings, release.audit.report.cautions):
        assert sum(text.startswith(start) for text in warnings) == 1

    rare = pa.Table.from_pylist(
        [row for place in "AB" for row in patients(place, ["flu"] * 9 + ["cold"])]
    )
    alike = aegis.Study(rare, study.policy)
    assert not any(
        text.startswith("In some class") for text in alike.apply(alike.search()).warnings
    )


def test_risks_to_persons_come_before_label_leaks_wherever_they_are_listed(tmp_path: Path) -> None:
    """`advise` listed label leaks first; the certificate and its page listed them last."""
    rows = [
        {
            "place": place,
            "diagnosis": diagnosis,
            "pay": index * 7 + place_index,
            "twin": "ab"[index % 2],
            "y": "ab"[index % 2],
        }
        for place_index, (place, diagnosis) in enumerate((("Oslo", "flu"), ("Nuuk", "cold")))
        for index in range(60)
    ]
    feature = {"role": "feature", "masks": ["identity"]}
    described = policy_mapping(diagnosed())
    described["attributes"] |= {"pay": feature, "twin": feature}
    rules = aegis.load_policy(described)
    study = aegis.Study(pa.Table.from_pylist(rows), rules)
    advice = study.search()
    release = study.apply(advice, tmp_path / "r.csv", certificate=tmp_path / "c.json")
    starts = (
        "Some classes have a single value",
        "120 of 120 released rows",
        "The column twin alone",
    )

    def order(texts: tuple[str, ...]) -> list[str]:
        return [start for text in texts for start in starts if text.startswith(start)]

    for texts in (advice.warnings, cautions_of(release.certificate)):
        assert order(texts) == list(starts)
    assert order(release.warnings) == list(starts[:2])
    assert order(advice.uncovered.sentences) == list(starts[1:])


def test_a_certificate_names_the_columns_that_repeat_the_label(tmp_path: Path) -> None:
    study = aegis.Study(table(), policy())
    advice = study.search()
    made = tmp_path / "r.csv"
    release = study.apply(advice, made, certificate=tmp_path / "c.json")
    document = release.certificate
    assert document["utility"]["leaks"] == pytest.approx({"twin": 1})
    assert document["utility"]["leaks"] == advice.utility.to_dict()["leaks"]
    (told,) = (text for text in cautions_of(document) if "alone explains" in text)
    assert told in advice.warnings
    assert told in html.unescape(render_certificate(document))
    assert check_certificate(made, document).passed
    said = document["utility"]
    without = {key: figure for key, figure in said.items() if key != "leaks"}
    for forged in (said | {"leaks": {"age": 0.9}}, without):
        checked = check_certificate(made, document | {"utility": forged})
        assert [m.what for m in checked.mismatches if "leaks" in m.what] == ["utility.leaks"]


def test_a_key_does_not_explain_the_label_of_weighted_rows() -> None:
    """A row alone with its value is not guessed from itself, however large its weight is."""
    given = table().append_column("w", pa.array([1 + 3 * (i % 4) for i in range(ROWS)]))
    asked = policy_mapping(policy()) | {"weight": "w"}
    asked["attributes"]["w"] = {"role": "ignore"}
    advice = aegis.Study(given, aegis.load_policy(asked)).search()
    assert set(advice.uncovered.leaks) == set(advice.utility.leaks) == {"twin"}


def test_a_masked_column_is_not_said_to_repeat_the_label() -> None:
    asked = policy_mapping(policy())
    asked["attributes"]["twin"] = {"role": "feature", "masks": ["suppress"]}
    study = aegis.Study(table(), aegis.load_policy(asked))
    advice = study.search()
    assert not advice.uncovered.leaks
    assert not any("explains" in text for text in advice.warnings)


def test_warnings_begin_with_the_rule_and_with_risks_to_persons() -> None:
    sick = pa.array(["yes" if i < ROWS // 2 else "no" for i in range(ROWS)])
    given = table().append_column("sick", sick).append_column("unnamed", sick)
    asked = policy_mapping(policy())
    asked["attributes"]["sick"] = {"role": "sensitive"}
    advice = aegis.Study(given, aegis.load_policy(asked)).search()
    order = [
        next(i for i, text in enumerate(advice.warnings) if part in text)
        for part in (
            "single value of sick",
            "the only ones with their values",
            "nearly a key",
            "not in the policy",
        )
    ]
    assert order == sorted(order)
    for name in ("age", "sick"):
        asked["attributes"][name] = {"role": "feature"}
    unprotected = aegis.Study(given, aegis.load_policy(asked)).search()
    assert unprotected.warnings[0].startswith("The rule protects nothing")


def test_what_is_left_out_is_neither_scored_nor_released() -> None:
    left = policy().without(["note", "twin"])
    study = aegis.Study(table(), left)
    advice = study.search()
    assert set(advice.best.attributes) == {"age"}
    assert not advice.uncovered.near_keys
    assert not advice.uncovered.leaks
    assert study.apply(advice).data.column_names == ["age", "y"]
    with pytest.raises(PolicyError, match="Did you mean 'twin'"):
        policy().without(["twim"])


def test_listed_configurations_lose_what_is_left_out() -> None:
    listed = {"c": {"age": "suppress", "twin": "identity", "note": "suppress"}}
    left = policy(configurations=listed).without(["note"])
    assert set(left.configurations["c"].masks) == {"age", "twin"}
    assert aegis.advise(table(), left).best.name == "c"


def test_a_summary_alone_names_columns_but_no_rows() -> None:
    advice = aegis.search(aegis.summarize(table(), policy()), policy())
    assert advice.uncovered.unique_rows is None
    assert set(advice.uncovered.near_keys) == {"note"}


HIDDEN_MASKS = ["identity", {"group": {"groups": {"ab": ["a", "b"]}, "rest": "other"}}, "suppress"]


@settings(max_examples=10, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(0, 2), st.none() | st.integers(0, 9)),
        min_size=12,
        max_size=60,
    ),
    st.sampled_from(HIDDEN_MASKS),
    st.sampled_from(["identity", "suppress"]),
)
def test_all_ways_to_look_outside_the_rule_agree(
    rows: list[tuple[Any, ...]], hidden_mask: Any, other_mask: str
) -> None:
    """As codes while advising, in the engine, and on the released rows."""
    values = list(zip(*rows, strict=True))
    columns = {
        "hidden": pa.array(values[0]),
        "twin": pa.array([f"{v}{i % 2}" for i, v in enumerate(values[0])]),
        "small": pa.array(values[1]),
        "odd": pa.array(values[2], pa.int64()),
        "y": pa.array([i % 2 for i in range(len(rows))]),
    }
    rules = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2, "suppression": 0.9},
            "attributes": {
                "hidden": {"role": "quasi-identifier", "masks": [hidden_mask]},
                "small": {"role": "quasi-identifier", "masks": [other_mask]},
                "twin": {"role": "feature"},
                "odd": {"role": "feature"},
            },
        }
    )
    study = aegis.Study(pa.table(columns), rules)
    advice = study.rank()
    if advice.best is None:
        return
    assert study._subject.coded_rows is not None
    choice = {
        a.name: a.candidate(advice.best.configuration.masks[a.name])
        for a in study.summary.all_attributes
    }
    by_query = outside_of_release(ReleasedRows(study.plan, study.source, rules), choice)
    assert by_query is not None
    assert by_query == study.apply(advice).audit.outside
    figures = advice.uncovered.to_dict()
    assert {"rows": figures.pop("released_rows"), **figures}.items() >= by_query.to_dict().items()


def test_a_released_column_that_predicts_a_hidden_one_is_named(tmp_path: Path) -> None:
    sex = ["f" if i % 5 < 2 else "m" for i in range(400)]
    titles = ["Dr." if i % 9 == 0 else {"f": "Ms.", "m": "Mr."}[s] for i, s in enumerate(sex)]
    data = pa.table({"sex": sex, "title": titles, "y": [i % 2 for i in range(400)]})
    pq.write_table(data, tmp_path / "t.parquet")
    rules = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 5},
            "attributes": {
                "sex": {"role": "quasi-identifier", "masks": ["suppress"]},
                "title": {"role": "feature"},
            },
        }
    )
    study = aegis.Study(tmp_path / "t.parquet", rules)
    advice = study.search()
    [implied] = advice.uncovered.implied
    doctors = titles.count("Dr.")
    assert (implied.hidden, implied.released) == ("sex", "title")
    assert implied.fixed == (400 - doctors) / 400
    assert implied.right_without == 240 / 400
    sentence = next(text for text in advice.warnings if "title gives away sex" in text)
    release = study.apply(advice, tmp_path / "o.parquet", certificate=tmp_path / "c.json")
    assert release.audit.outside.implied == (implied,)
    assert sentence in release.audit.outside.sentences
    document = json.loads((tmp_path / "c.json").read_text())
    assert "title gives away sex" in render_certificate(document)
    checked = check_certificate(tmp_path / "o.parquet", tmp_path / "c.json")
    assert checked.passed
    assert any(text.startswith("privacy.outside.implied") for text in checked.unchecked)


def test_the_label_that_is_nearly_a_key_is_named() -> None:
    prices = [100 + 7 * i % 1999 for i in range(300)]
    data = pa.table({"age": [i % 9 for i in range(300)], "price": prices})
    rules = aegis.load_policy(
        {
            "version": 1,
            "label": {"column": "price", "bins": 3},
            "privacy": {"k": 5},
            "attributes": {"age": {"role": "quasi-identifier"}},
        }
    )
    study = aegis.Study(data, rules)
    advice = study.search()
    assert advice.uncovered.near_keys == {"price": 300}
    assert advice.uncovered.singling.columns == ("price",)
    assert any("It is the label: to release ranges" in text for text in advice.warnings)
    assert study.apply(advice).audit.outside.near_keys == {"price": 300}


def test_nulls_that_follow_the_label_give_one_alarm() -> None:
    random = np.random.default_rng(3)
    y = random.integers(0, 2, 2_000)
    boat = [str(random.integers(0, 20)) if v and i % 25 else None for i, v in enumerate(y)]
    data = pa.table({"age": random.integers(0, 9, 2_000), "boat": boat, "y": y})
    rules = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 5},
            "attributes": {"age": {"role": "quasi-identifier"}, "boat": {"role": "feature"}},
        }
    )
    told = aegis.Study(data, rules).search().uncovered
    assert not told.leaks
    assert set(told.missing_leaks) == {"boat"}
    leak = told.missing_leaks["boat"]
    assert leak.label_class == "0"
    assert leak.within == 1
    assert leak.besides == pytest.approx(0.04, abs=0.02)
    assert sum("boat is" in sentence for sentence in told.sentences) == 1
    blank = replace(leak, label_class="   ")  # a class of blanks was not seen in the sentence
    shown = replace(told, missing_leaks={"boat": blank}).sentences
    assert any("rows with y = '   ' and in" in sentence for sentence in shown)


def test_columns_that_know_the_label_come_after_risks_and_in_one_sentence() -> None:
    random = np.random.default_rng(3)
    sick = random.random(ROWS) < 0.4
    seen = pa.array([1 + i % 3 if ill else None for i, ill in enumerate(sick)])
    data = pa.table(
        {
            "age": pa.array(random.integers(20, 60, ROWS)),
            "height": pa.array(random.integers(1500, 1900, ROWS)),
            "dose": seen,
            "days": seen,
            "y": pa.array(sick.astype(int)),
        }
    )
    attributes = {
        "age": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
        "height": {"role": "feature"},
        "dose": {"role": "feature"},
        "days": {"role": "feature"},
    }
    rules = aegis.load_policy(
        {"version": 1, "label": "y", "privacy": {"k": 5}, "attributes": attributes}
    )
    advice = aegis.Study(data, rules).search()
    unique, near_key, leak, *rest = advice.warnings
    assert "the only ones with their values" in unique
    assert "is nearly a key" in near_key
    assert leak.startswith("dose and days are empty in 100 % of the rows with y = 0 and in 0 %")
    assert not any("empty in" in text for text in rest)


@pytest.mark.parametrize("copies", [1, 2])
def test_a_nearly_unique_number_does_not_explain_the_label(copies: int) -> None:
    random = np.random.default_rng(5)
    joint = np.zeros((1_000, 2), dtype=int)
    np.add.at(joint, (np.arange(1_000), random.integers(0, 2, 1_000)), 1)
    np.add.at(joint, (np.arange(0, 60), random.integers(0, 2, 60)), copies - 1)
    assert label_share(joint) < 0.1


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 1)), min_size=4))
def test_unique_rows_are_those_that_nothing_equals(rows: list[tuple[int, int, int]]) -> None:
    rows = [*rows, (0, 0, 0), (1, 1, 1)]
    given_table = pa.table(
        dict(zip(("a", "b", "y"), map(list, zip(*rows, strict=True)), strict=True))
    )
    given_policy = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2, "suppression": 0.9},
            "attributes": {
                "a": {"role": "quasi-identifier", "masks": ["identity"]},
                "b": {"role": "feature"},
            },
        }
    )
    study = aegis.Study(open_table(given_table), given_policy)
    sizes = Counter(a for a, _, _ in rows)
    left = Counter(row for row in rows if sizes[row[0]] >= 2)
    told = study.rank().uncovered
    if not study.rank().best:
        assert told.unique_rows is None
        return
    assert told.rows == sum(left.values())
    assert told.unique_rows == sum(n for n in left.values() if n == 1)


@pytest.mark.parametrize("person", [None, "who"])
def test_columns_may_have_the_names_of_counts(person: str | None) -> None:
    columns = {"n": [1, 1, 2, 2, 1], "p": [0, 0, 0, 1, 1], "y": [0, 0, 0, 1, 1]}
    rules = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "attributes": {
                "n": {"role": "quasi-identifier", "masks": ["identity"]},
                "p": {"role": "feature"},
            },
            "privacy": {"k": 2},
        }
        | ({} if person is None else {"person": person})
    )
    given_table = pa.table(columns | {"who": [1, 2, 3, 4, 5]})
    told = aegis.Study(given_table, rules).search().uncovered
    assert (told.rows, told.unique_rows) == (5, 3)


@given(st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=1, max_size=6))
def test_the_share_lies_between_nothing_and_all(joint: list[list[int]]) -> None:
    assert 0 <= label_share(np.array(joint)) <= 1 + 1e-12


def test_the_share_of_a_key_is_nothing_and_of_a_copy_all() -> None:
    assert label_share(np.eye(2, dtype=int) * 50) == pytest.approx(1)
    assert label_share(np.ones((5, 2), dtype=int)) == 0
    alone = np.zeros((60, 2), dtype=int)
    alone[np.arange(60), np.arange(60) % 2] = 1
    assert label_share(alone) == 0  # one row per value: all of it is chance


def test_a_sentence_on_a_masked_column_does_not_contradict_itself() -> None:
    """A column that only fixes some values is not said to help a guess, and a label cannot be left out."""
    fixes = Implication("race", "site", right=0.88, right_without=0.89, fixed=0.33)
    helps = Implication("race", "y", right=0.8, right_without=0.5, fixed=0)
    told = Outside(rows=9, unique_rows=0, implied=(fixes, helps), label="y").sentences
    assert told[0].startswith(
        "The column site gives away race, which is masked: in 33 % of the released rows only one value is possible. Mask"
    )
    assert "a guess" not in told[0]
    assert "right in 80 % of the released rows, and without it in 50 %. It is the label" in told[1]
    assert "--leave-out" not in told[1]


def test_columns_that_explain_the_whole_label_are_not_said_to_explain_more() -> None:
    both = leak_sentences({"a": 1.0, "b": 1.0}, "y")[0]
    assert both.startswith("The columns a and b each alone explain all of y: ")
    assert "explains all of y: " in leak_sentences({"a": 1.0}, "y")[0]
    assert "explain > 99 % of y: " in leak_sentences({"a": 1.0, "b": 0.9999}, "y")[0]
    assert "explain 90 % or more of y: " in leak_sentences({"a": 1.0, "b": 0.9}, "y")[0]
