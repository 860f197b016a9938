"""Releases of one table linked row by row: rows that one of them lacks are not alone."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
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
from aegis.advisor.composition import compose, read_release, summary_after, summary_of
from aegis.cli.main import run
from aegis.errors import NoAdmissibleConfiguration, PolicyError
from aegis.masks import parse_mask
from aegis.policy import Configuration, Policy, Role, load_policy
from aegis.release import Release, apply
from aegis.study import Study

MASKS: dict[str, list[Any]] = {
    "a": ["identity", {"bucketize": {"width": 2}}, {"bucketize": {"width": 3}}, "suppress"],
    "b": [
        "identity",
        {"group": {"groups": {"uv": ["u", "v"], "w": ["w"]}}},
        {"group": {"groups": {"u": ["u"], "vw": ["v", "w"]}}},
        "suppress",
    ],
}
RULES: list[dict[str, Any]] = [
    {"k": 3, "suppression": 0.5},
    {"k": 2, "suppression": 0.2},
    {"k": 2, "suppression": 0.6, "l_diversity": {"attribute": "s", "l": 2}},
]


def policy(rule: dict[str, Any]) -> Policy:
    attributes = {n: {"role": "quasi-identifier", "masks": m} for n, m in MASKS.items()}
    more = {
        "s": {"role": "sensitive", "masks": ["identity"]},
        "row": {"role": "feature", "masks": ["identity"]},
    }
    return load_policy(
        {"version": 1, "label": "y", "privacy": rule, "attributes": attributes | more}
    )


def table(rows: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "a": pa.array(random.integers(0, 6, rows), pa.int64()),
            "b": random.choice(["u", "v", "w"], rows, p=[0.6, 0.3, 0.1]).tolist(),
            "s": random.choice(["x", "z"], rows).tolist(),
            "row": list(range(rows)),
            "y": [("n", "p")[i % 2] for i in range(rows)],
        }
    )


OTHERS = {"s": parse_mask("identity"), "row": parse_mask("identity")}


def picks(random: np.random.Generator, count: int) -> list[Configuration]:
    return [
        Configuration(
            f"c{i}", OTHERS | {n: parse_mask(m[random.integers(len(m))]) for n, m in MASKS.items()}
        )
        for i in range(count)
    ]


def made_in_order(
    data: pa.Table, rules: Policy, chosen: list[Configuration], made: Sequence[Release] = ()
) -> list[Release] | None:
    """Return the releases, each made after those before it; None where one breaks the rule.

    Those of `made` are there already.
    """
    made = list(made)
    for configuration in chosen[len(made) :]:
        earlier = [release.configuration for release in made]
        try:
            made.append(apply(data, rules, configuration, after=earlier))
        except NoAdmissibleConfiguration:
            return None
    return made


def linked(releases: list[Release]) -> dict[tuple[Any, ...], list[str]]:
    """Return the sensitive values of rows that a reader of all releases cannot tell apart."""
    rows: dict[int, list[Any]] = defaultdict(lambda: [None] * len(releases))
    values = {}
    for place, release in enumerate(releases):
        assert release.data is not None
        for row in release.data.to_pylist():
            rows[row["row"]][place] = (row["a"], row["b"])
            values[row["row"]] = row["s"]
    classes = defaultdict(list)
    for row, shown in rows.items():
        classes[tuple(shown)].append(values[row])
    return classes


def lonely(releases: list[Release], rule: dict[str, Any]) -> list[list[str]]:
    """Return the classes of linked rows that break the rule."""
    diverse = rule.get("l_diversity", {"l": 1})["l"]
    found = linked(releases).values()
    return [rows for rows in found if len(rows) < rule["k"] or len(set(rows)) < diverse]


@given(st.integers(0, 10**6), st.integers(12, 60), st.integers(2, 3), st.sampled_from(RULES))
@settings(max_examples=settings.default.max_examples // 2)
def test_every_row_is_in_a_class_that_meets_the_rule_over_all_releases(seed, rows, count, rule):
    random = np.random.default_rng(seed)
    data, rules, chosen = table(rows, seed), policy(rule), picks(random, count)
    made = made_in_order(data, rules, chosen)
    together = compose(summary_of(data, rules, chosen), chosen, rules.privacy)
    first_alone = compose(summary_of(data, rules, chosen), chosen[:1] * 2, rules.privacy)
    assert (made is not None) == (together.admissible and first_alone.each[0].admissible)
    if made is not None:
        assert lonely(made, rule) == []
        assert made[-1].suppressed_rows == together.verdict.suppressed_rows
        after = Study(summary_after(data, rules, chosen[:-1]), rules)
        [ranked] = after.rank(configurations=[chosen[-1]]).ranking
        assert (ranked.admissible, ranked.suppressed_rows) == (True, made[-1].suppressed_rows)


@given(st.data(), st.integers(0, 10**6), st.integers(2, 3), st.sampled_from(RULES))
@settings(max_examples=settings.default.max_examples // 2)
def test_releases_that_disregard_earlier_ones_are_counted_as_they_were_made(
    draws, seed, count, rule
):
    data, rules = table(50, seed), policy(rule)
    made: list[Release] = []
    regarded: list[set[int]] = []
    for place, configuration in enumerate(picks(np.random.default_rng(seed), count)):
        named = draws.draw(st.sets(st.integers(0, place - 1))) if place else set()
        regarded.append(named.union(*(regarded[i] for i in named)))
        earlier = [made[i].configuration for i in sorted(regarded[-1])]
        try:
            made.append(apply(data, rules, configuration, after=earlier))
        except NoAdmissibleConfiguration:
            return
    chosen = [release.configuration for release in made]
    together = compose(summary_of(data, rules, chosen), chosen, rules.privacy)
    assert together.admissible == (lonely(made, rule) == [])


def test_a_release_after_one_that_is_not_named_is_refused():
    data, rules = table(50, 3), policy({"k": 2, "suppression": 0.9})
    first, second, third = picks(np.random.default_rng(3), 3)
    one = apply(data, rules, first).configuration
    two = apply(data, rules, second, after=[one]).configuration
    for named in ([two, third], [two, one]):
        with pytest.raises(PolicyError, match="made after another one") as refused:
            compose(summary_of(data, rules, named), named, rules.privacy)
        assert "in the order in which you made them" in str(refused.value.hint)
        with pytest.raises(PolicyError, match="made after another one"):
            apply(data, rules, third, after=named)


@pytest.mark.parametrize("regards", [True, False])
def test_compose_knows_from_certificates_what_each_release_left_out(tmp_path, capsys, regards):
    """Rows 0 and 1 are alone together in the second release, unless it regards the first."""
    ages = [0, 0, 1, 1, 1, 2, 2, 2, 4, 4, 4]
    data = {"a": ages, "b": ["u"] * 2 + ["v"] * 9, "y": ["n", "p"] * 5 + ["n"]}
    pq.write_table(pa.table(data), tmp_path / "t.parquet")
    attributes = {n: {"role": "quasi-identifier", "masks": m} for n, m in MASKS.items()}
    rule = {"k": 3, "suppression": 0.5}
    document = {"version": 1, "label": "y", "privacy": rule, "attributes": attributes}
    (tmp_path / "p.yaml").write_text(json.dumps(document))
    masks = [{"a": "identity", "b": "suppress"}, {"a": "suppress", "b": "suppress"}]
    words = [str(tmp_path / "t.parquet"), "-p", str(tmp_path / "p.yaml"), "-q"]
    certificates: list[str] = []
    for number, chosen in enumerate(masks):
        (tmp_path / f"{number}.yaml").write_text(json.dumps({"configurations": {"c": chosen}}))
        after = ["--after", *certificates] if certificates and regards else []
        certificates.append(str(tmp_path / f"{number}.json"))
        made = ["-c", str(tmp_path / f"{number}.yaml"), "-o", str(tmp_path / f"{number}.csv")]
        assert run(["apply", *words, *made, "--certificate", certificates[-1], *after]) == 0
    capsys.readouterr()
    assert run(["compose", *certificates, *words, "--format", "json"]) == (0 if regards else 1)
    said = json.loads(capsys.readouterr().out)
    assert (said["admissible"], said["alone"]) == (regards, 0)
    # Without certificates the second is one that will be made after the first.
    plain = [str(tmp_path / f"{number}.yaml") for number in range(2)]
    assert run(["compose", *plain, *words]) == 0


@pytest.mark.parametrize("rule", RULES)
def test_a_search_after_a_release_is_the_best_of_all_that_may_follow(rule):
    for seed in range(2):
        data, rules = table(60, seed), policy(rule)
        first = picks(np.random.default_rng(seed), 1)
        made = made_in_order(data, rules, first)
        if made is None:
            continue
        study = Study(summary_after(data, rules, first), rules)
        every = study.rank(generate_count=16, measure="adjusted-pillai").ranking
        assert len(every) == 16
        advice = study.search(measure="adjusted-pillai")
        met = [
            one for one in every if made_in_order(data, rules, [*first, one.configuration], made)
        ]
        assert {one.name for one in every if one.admissible} == {one.name for one in met}
        best = [one for one in advice.ranking if one.admissible]
        assert bool(best) == bool(met)
        if met:
            assert best[0].score == pytest.approx(max(one.score for one in met))
            return
    pytest.fail("nothing may follow any first release")


def test_missing_rows_cost_the_smallest_class_beside_them():
    """Two rows of ten fail beside the first release: three more must be missing with them."""
    data = pa.table(
        {
            "a": [0] * 2 + [1] * 3 + [4] * 5,
            "b": ["u"] * 10,
            "s": ["x", "z"] * 5,
            "row": list(range(10)),
            "y": ["n", "p"] * 5,
        }
    )
    rule = {"k": 3, "suppression": 0.5}
    hidden = Configuration("hidden", OTHERS | {n: parse_mask("suppress") for n in MASKS})
    shown = Configuration("shown", OTHERS | {n: parse_mask("identity") for n in MASKS})
    made = made_in_order(data, policy(rule), [hidden, shown])
    assert made is not None
    assert made[1].data is not None
    assert made[1].data["row"].to_pylist() == [5, 6, 7, 8, 9]
    tight = policy(rule | {"suppression": 0.4})
    with pytest.raises(NoAdmissibleConfiguration, match="missing rows are not alone"):
        apply(data, tight, shown, after=[hidden])
    together = compose(aegis.summarize(data, tight), [hidden, shown], tight.privacy)
    assert not together.admissible


EARLIER = Configuration("first", OTHERS | {n: parse_mask("identity") for n in MASKS})
LATER = Configuration(
    "second",
    OTHERS | {"a": parse_mask({"bucketize": {"width": 3}}), "b": parse_mask("identity")},
)


def certified(folder: Path, data: pa.Table, rules: Policy) -> Configuration:
    """Make the earlier release, and return what its certificate tells about it."""
    paper = folder / "first.json"
    apply(data, rules, EARLIER, output=folder / "first.csv", certificate=paper)
    return read_release(paper, rules)


@pytest.mark.parametrize("weaker", [{"k": 2}, {"l_diversity": {"attribute": "s", "l": 2}}])
def test_a_release_under_a_weaker_rule_is_not_taken_for_one_under_this_rule(tmp_path, weaker):
    """The first release shows rows in classes of 2 and 3. Under this rule, it would lack them, and
    the second release would show them in classes that only seem to be large enough.
    """
    data, strict = table(80, 1), policy({"k": 4, "suppression": 0.6})
    first = certified(tmp_path, data, policy({**weaker, "suppression": 0.6}))
    plain = apply(data, policy({**weaker, "suppression": 0.6}), EARLIER)
    unaware = apply(data, strict, LATER, after=[replace(first, certified={})])
    assert lonely([plain, unaware], {"k": 4})
    named = f"made under another rule: {first.certified['rule']}"
    with pytest.raises(PolicyError, match=re.escape(named)):
        apply(data, strict, LATER, after=[first])
    with pytest.raises(PolicyError, match="another rule"):
        compose(summary_of(data, strict, [first, LATER]), [first, LATER], strict.privacy)
    with pytest.raises(PolicyError, match="another rule"):
        summary_after(data, strict, [first])


def test_a_release_under_a_stronger_rule_is_taken_into_account(tmp_path):
    data, strict = table(120, 1), policy({"k": 3, "suppression": 0.6})
    strong = policy({"k": 6, "suppression": 0.6})
    first = certified(tmp_path, data, strong)
    made = [apply(data, strong, EARLIER), apply(data, strict, LATER, after=[first])]
    assert made[0].suppressed_rows > apply(data, strict, EARLIER).suppressed_rows
    assert lonely(made, {"k": 3}) == []


def test_a_release_of_other_quasi_identifiers_or_rows_is_refused(tmp_path):
    data, rules = table(80, 1), policy({"k": 3, "suppression": 0.6})
    first = certified(tmp_path, data, rules)
    attributes = dict(rules.attributes)
    attributes["b"] = replace(attributes["b"], role=Role.FEATURE)
    fewer = replace(rules, attributes=attributes)
    with pytest.raises(PolicyError, match="other quasi-identifiers"):
        apply(data, fewer, LATER, after=[first])
    with pytest.raises(PolicyError, match="from another table"):
        apply(table(80, 2), rules, LATER, after=[first])
