"""A number to predict: `leak` sees its sums of small cells, and a protected summary rounds it to bounds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from aegis.errors import PolicyError
from aegis.policy import load_policy, policy_digest, policy_mapping
from aegis.present import Finding, label_words
from aegis.safe.protect import audit_leak, dumps, loads, protect, search_protected
from aegis.safe.protect.model import with_rounded_label
from aegis.sources import open_table
from aegis.summary import summarize

POLICY: dict[str, Any] = {
    "version": 1,
    "label": {"column": "pay", "kind": "number"},
    "privacy": {"k": 2},
    "attributes": {"town": {"role": "quasi-identifier"}, "age": {"role": "feature"}},
}


def test_sums_of_one_or_two_rows_are_named() -> None:
    towns = ["a"] * 60 + ["b"] * 40 + ["alone", "two", "two"]
    table = pa.table({"town": towns, "age": [30] * 103, "pay": np.arange(103.0)})
    audit = audit_leak(summarize(table, POLICY))
    (part,) = [part for part in audit.parts if part.part == "sums of the label"]
    assert part.alone >= 2  # one town in all, and in its fold
    assert part.small > part.alone
    (finding,) = [text for text in audit.findings if "sums of pay" in text]
    assert "of one row, whose number they are" in finding
    assert "p-percent rule" in finding
    assert not any("reads the label" in text for text in audit.findings)


BOUNDED: dict[str, Any] = {
    **POLICY,
    "label": {"column": "pay", "kind": "number", "bounds": [0, 100]},
    "attributes": {
        "town": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
        "side": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
    },
}
KEY = bytes(range(16))


def towns(rows: int = 4000) -> pa.Table:
    """Return rows whose town predicts the pay, and whose side of the street does not."""
    draw = np.random.default_rng(4)
    town = draw.integers(0, 4, rows)
    pay = 20.0 + 15 * town + draw.normal(0, 5, rows)
    pay[0] = 98765.4321
    return pa.table(
        {"town": [f"t{t}" for t in town], "side": draw.choice(["l", "r"], rows), "pay": pay}
    )


def test_words_say_that_the_number_was_rounded() -> None:
    summary = protect(towns(), BOUNDED, level="counts", key=KEY)
    assert summary.rounded
    assert loads(dumps(summary)).rounded
    advice = search_protected(summary)
    assert label_words(advice.summary) == "a number, rounded at random to 0 or 100"
    words = Finding.of(advice, advice.require_best()).figure
    assert words.startswith("The masks explain about")
    assert "of the variance of the rounded number" in words
    notes = str(audit_leak(summary).to_dict())
    assert "bounds of pay" in notes
    assert "classes of pay" not in notes


def test_a_number_without_bounds_is_refused() -> None:
    with pytest.raises(PolicyError, match="does not declare its bounds"):
        protect(towns(), POLICY, level="counts", key=KEY)
    own = {"role": "feature", "masks": [{"round": {"step": 10}}]}
    masked = {**BOUNDED, "attributes": {**BOUNDED["attributes"], "pay": own}}
    with pytest.raises(PolicyError, match="rounds each number to a bound instead"):
        protect(towns(), masked, level="counts", key=KEY)
    with pytest.raises(PolicyError, match="a summary has no rows"):
        protect(summarize(towns(), BOUNDED), BOUNDED, level="counts", key=KEY)


@pytest.mark.parametrize(
    ("label", "says"),
    [
        ({"column": "pay", "bounds": [0, 1]}, "not a number to predict"),
        ({"column": "pay", "kind": "number", "bounds": [1, 1]}, "two numbers, the least first"),
        ({"column": "pay", "kind": "number", "bounds": [0, float("inf")]}, "two numbers"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(label: dict[str, Any], says: str) -> None:
    with pytest.raises(PolicyError) as told:
        load_policy({**POLICY, "label": label})
    assert says in f"{told.value.message} {told.value.hint}"


def test_bounds_are_written_with_their_policy() -> None:
    policy = load_policy(BOUNDED)
    assert policy_mapping(policy)["label"] == BOUNDED["label"]
    assert load_policy(policy_mapping(policy)) == policy


def test_the_mean_of_rounded_numbers_is_that_of_the_numbers_within_bounds() -> None:
    values = [-50.0, 0.0, 10.0, 37.5, 99.0, 100.0, 1e300, float("inf"), None, float("nan")]
    each = 2000
    table = pa.table({"town": ["a"] * each * 10, "side": ["l"] * each * 10, "pay": values * each})
    rounded, policy = with_rounded_label(open_table(table), load_policy(BOUNDED))
    assert policy.label.classes == (0, 100)
    shown = rounded.collect(rounded.table)["pay"].to_pylist()
    for place, value in enumerate(values):
        own = shown[place::10]
        if value is None or value != value:
            assert own == [None] * each
            continue
        share = min(max(value, 0.0), 100.0) / 100
        assert set(own) <= {"0", "100"}
        error = np.sqrt(share * (1 - share) / each)
        assert abs(own.count("100") / each - share) <= 5 * error


def test_a_key_rounds_the_same_rows_in_the_same_way() -> None:
    def rounded(key: bytes | None) -> Any:
        source, _ = with_rounded_label(open_table(towns()), load_policy(BOUNDED), key=key)
        return source.collect(source.table)["pay"]

    assert rounded(KEY) == rounded(KEY)
    assert rounded(KEY) != rounded(bytes(16))
    assert rounded(None) != rounded(None)


def test_the_order_of_rows_and_a_further_row_change_no_rounding() -> None:
    """The mean over files of other orders would else be the exact sum of each cell."""
    policy = load_policy(BOUNDED)
    draw = np.random.default_rng(7)
    rows = pa.concat_tables([towns(400), towns(400).slice(0, 60)])  # 60 rows stand there twice

    def above(table: pa.Table) -> Counter[tuple[Any, ...]]:
        made, _ = with_rounded_label(open_table(table), policy, key=KEY)
        return Counter(tuple(row.values()) for row in made.collect(made.table).to_pylist())

    first = above(rows)
    assert above(rows.take(draw.permutation(len(rows)))) == first
    assert above(rows.select(["pay", "side", "town"])) == Counter(
        {(label, side, town): n for (town, side, label), n in first.items()}
    )
    more = above(pa.concat_tables([towns(401).slice(400), rows]))
    assert sum((more - first).values()) == 1
    assert not first - more


def test_each_number_is_read_by_itself() -> None:
    """One text turns the column into texts, and no other number into none."""
    texts = pa.table({"town": ["a", "a", "b"], "side": ["l"] * 3, "pay": ["0", "n/a", "1e2"]})
    rounded, _ = with_rounded_label(open_table(texts), load_policy(BOUNDED))
    assert rounded.collect(rounded.table)["pay"].to_pylist() == ["0", None, "100"]


@pytest.mark.parametrize(
    "level", [{"level": "counts", "key": KEY}, {"epsilon": 4, "delta": 1e-6, "public": ["*"]}]
)
def test_masks_are_ranked_by_what_they_keep_of_the_number(level: dict[str, Any]) -> None:
    made = protect(towns(), BOUNDED, **level)
    assert made.classes == ("0", "100")
    assert made.policy == policy_digest(load_policy(BOUNDED))
    assert any(
        "rounded at random, in each row, to one of its declared bounds" in note
        for note in made.notes
    )
    written = dumps(made)
    assert "98765" not in written
    assert not audit_leak(made).shortfalls
    advice = search_protected(loads(written), policy=load_policy(BOUNDED))
    best = advice.best
    assert best is not None
    assert str(best.configuration.masks["town"]) == "identity"
    assert best.utility_kept is not None
    assert best.utility_kept > 90
    without = next(r for r in advice.ranking if str(r.configuration.masks["town"]) == "suppress")
    assert without.utility_kept is not None
    assert without.utility_kept < 10
