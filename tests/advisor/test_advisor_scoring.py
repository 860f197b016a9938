"""Scores from the summary against the same figures from rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from advisor_scores import (
    attribute_value,
    configuration_value,
    counts_of,
    mean_contingency,
    parts_of,
)
from hypothesis import Phase, given, settings

from advisor_support import (
    LABEL_MASKS,
    Row,
    all_choices,
    kept,
    labelled,
    masked_columns,
    policy_of,
    random_rows,
    rows,
    table_of,
)
from aegis.advisor import Choice, Scorer
from aegis.advisor import utility_kept as kept_percent
from aegis.advisor.scoring import AttributeScore
from aegis.errors import PolicyError
from aegis.measures import MEASURES, UNPOOLED, LabelKind, Need, Scope, measures_of, pooled_losses
from aegis.policy import Configuration
from aegis.summary import Summary, summarize

FEATURES = ("age", "zip", "pay", "ill")
WEIGHTS = {"age": 2.0, "zip": 1.0, "pay": 1.0, "ill": 1.0}


def some(summary: Summary, count: int) -> list[Choice]:
    """Return a spread of combinations, the finest and the coarsest among them."""
    choices = all_choices(summary)
    step = max(1, len(choices) // count)
    return [*choices[::step], choices[-1]]


def compare(table: pa.Table, summary: Summary) -> None:
    """Compare scores of a few choices with those of plain Python, which computes equal columns once."""
    scorer, known = Scorer(summary), {}
    for choice in some(summary, 2):
        compare_choice(table, summary, choice, scorer, known)


def compare_choice(
    table: pa.Table, summary: Summary, choice: Choice, scorer: Scorer, known: dict[Any, float]
) -> None:
    raw = {name: table[name].to_pylist() for name in table.column_names}
    own, before = labelled(masked_columns(table, choice), raw["y"]), labelled(raw, raw["y"])
    part = parts_of(summary, table)
    for measure in measures_of(LabelKind.CLASSES):
        if Need.COLUMNS in measure.needs:
            continue  # compared with separate fits in test_advisor_columns.py
        changes, masked, weights = [], [], []
        score = scorer.score(choice, measure)

        def once(shown: dict[str, Any], name: str = "", measure: Any = measure) -> float:
            names = [name] if name else FEATURES
            key = (measure.name, name, *(tuple(shown[one]) for one in (*names, "y")))
            if key not in known:
                known[key] = plainly(measure, name, shown, before, part)
            return known[key]

        for name in FEATURES:
            wanted, unmasked = once(own, name), once(before, name)
            assert score.attributes[name].score == pytest.approx(wanted, rel=1e-8, abs=1e-8), (
                measure.name
            )
            assert score.attributes[name].unmasked == pytest.approx(unmasked, rel=1e-8, abs=1e-8)
            changes.append(abs(unmasked - wanted))
            masked.append(wanted * WEIGHTS[name])
            weights.append(unmasked * WEIGHTS[name])
        if measure.scope is Scope.ATTRIBUTE:
            value, reference = sum(masked) / 5, sum(weights) / 5
        else:
            value, reference = once(own), once(before)
        assert score.score == pytest.approx(value, rel=1e-8, abs=1e-8), measure.name
        assert scorer.value(choice, measure) == score.score
        assert score.pud == pytest.approx(np.mean(changes), rel=1e-7, abs=1e-8)
        best = scorer.value(scorer.unmasked, measure)
        assert best == pytest.approx(reference, rel=1e-8, abs=1e-8)
        percent = kept(value, best, measure, before["y"])
        if percent is not None and abs(best - measure.floor) > 1e-6 and abs(1 - best) > 1e-6:
            assert score.utility_kept == pytest.approx(percent, rel=1e-6, abs=1e-6)


def plainly(measure: Any, name: str, shown: Any, before: Any, part: Any) -> float:
    """Return the value of an attribute, or of all where none is named, by a definition by rows."""
    if not name:
        columns, unmasked = ([of[n] for n in FEATURES] for of in (shown, before))
        return configuration_value(measure.name, columns, shown["y"], unmasked, part)
    if measure.reads_label:
        return attribute_value(measure.name, shown[name], shown["y"], before[name], part)
    others = [before[other] for other in FEATURES if other != name]
    return mean_contingency([(shown[name], other) for other in others])


@given(rows)
@settings(max_examples=4, phases=[Phase.explicit, Phase.generate])
def test_every_measure_on_generated_tables(given_rows: list[Row]) -> None:
    table = table_of(given_rows)
    compare(table, summarize(table, policy_of()))


def test_every_measure_with_a_masked_label() -> None:
    table = table_of(random_rows(5))
    compare(table, summarize(table, policy_of(label_masks=LABEL_MASKS)))


def test_what_the_table_loses_by_one_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    summary = summarize(table_of(random_rows(8)), policy_of())
    scorer, measure = Scorer(summary), MEASURES.get("adjusted-pillai")
    choice = some(summary, 3)[1]
    whole = scorer.value(scorer.unmasked, measure)
    lost = scorer.lost_alone(choice, measure)
    assert set(lost) == set(FEATURES)
    for name in FEATURES:
        own = {**scorer.unmasked, name: choice[name]}
        assert lost[name] == pytest.approx(whole - Scorer(summary).value(own, measure), abs=1e-12)
    monkeypatch.setattr("aegis.advisor.scoring.MOST_LEVELS", 3)
    assert Scorer(summary).lost_alone(choice, measure) == {}
    assert set(Scorer(summary).lost_alone(choice, MEASURES.get("mi"))) == set(FEATURES)


@pytest.fixture(scope="module")
def small() -> Summary:
    return summarize(table_of(random_rows(6)), policy_of(label_masks=LABEL_MASKS))


def test_cooccurrence_is_a_count_of_rows() -> None:
    table = table_of(random_rows(7))
    summary = summarize(table, policy_of(label_masks=LABEL_MASKS))
    scorer = Scorer(summary)
    for choice in some(summary, 4):
        own = labelled(masked_columns(table, choice), table["y"].to_pylist())
        found = scorer.cooccurrence(choice)
        assert found.n == len(own["y"])
        for i, one in enumerate(FEATURES):
            span = slice(*found.offsets[i : i + 2])
            assert sorted_rows(found.joint[span]) == sorted_rows(counts_of(own[one], own["y"]))
            for j, two in enumerate(FEATURES):
                other = slice(*found.offsets[j : j + 2])
                block = found.total[span, other]
                wanted = counts_of(own[one], own[two])
                assert sorted(block[block > 0].tolist()) == sorted(wanted[wanted > 0].tolist())


def sorted_rows(counts: Any) -> list[tuple[int, ...]]:
    """Return the non-empty rows of a contingency table, whatever their order and the classes'."""
    return sorted(tuple(sorted(row)) for row in np.asarray(counts).tolist() if sum(row))


def test_levels_beyond_the_limit_are_pooled() -> None:
    table = table_of(random_rows(8))
    summary = summarize(table, policy_of(), max_levels=3)
    scorer = Scorer(summary)
    raw_label = table["y"].to_pylist()
    for choice in some(summary, 6):
        masked = masked_columns(table, choice)
        shown = labelled(masked_columns(table, choice), raw_label)
        losses = np.zeros(len(UNPOOLED))
        for name in FEATURES:
            values = table[name].to_pylist()
            order = sorted(set(values), key=lambda v: (v is None, v))
            first = {}
            for value in order:
                first.setdefault(masked[name][values.index(value)], len(first))
            counts = {g: masked[name].count(g) for g in first}
            if len(first) > 3:
                largest = sorted(first, key=lambda g: (-counts[g], first[g]))[:2]
                masked[name] = [v if v in largest else "the rest" for v in masked[name]]
                shared = [v not in largest for v in shown[name]]
                losses += pooled_losses(
                    counts_of(
                        [v for v, own in zip(shown[name], shared, strict=True) if own],
                        [y for y, own in zip(shown["y"], shared, strict=True) if own],
                        shown["y"],
                    ),
                    np.array([shown["y"].count(y) for y in sorted(set(shown["y"]))]),
                )
        assert scorer.cooccurrence(choice, [Need.POOLED]).losses == pytest.approx(losses, abs=1e-12)
        own = labelled(masked, raw_label)
        columns = [own[n] for n in FEATURES]
        for name in ("adjusted-pillai", "pillai-plain", "held-out-pillai-values", "cmim"):
            wanted = configuration_value(name, columns, own["y"])
            assert scorer.value(choice, MEASURES.get(name)) == pytest.approx(wanted, abs=1e-8)


def test_memory_changes_nothing(small: Summary) -> None:
    warm = Scorer(small)
    choices = some(small, 3)[1:3]
    for measure in measures_of(LabelKind.CLASSES):
        for choice in choices:
            warm.value(choice, measure)
    for measure in measures_of(LabelKind.CLASSES):
        for choice in choices:
            assert warm.score(choice, measure) == Scorer(small).score(choice, measure)


def test_the_unmasked_table_keeps_all(small: Summary) -> None:
    scorer = Scorer(small)
    for measure in measures_of(LabelKind.CLASSES):
        score = scorer.score(scorer.unmasked, measure)
        assert score.utility_kept in (None, pytest.approx(100))
        assert score.pud == 0


def test_what_looks_better_than_the_reference_keeps_all_of_it() -> None:
    pillai, auc = MEASURES.get("adjusted-pillai"), MEASURES.get("held-out-auc")
    assert kept_percent(0.9, 0.1, pillai) == 100
    assert kept_percent(0.7, 0.9, auc) == pytest.approx(50)
    assert kept_percent(0.5, 0.5, auc) is None


def test_kept_has_the_direction_of_the_measure() -> None:
    assert kept_percent(0.2, 0.8, MEASURES.get("adjusted-pillai")) == pytest.approx(25)
    assert kept_percent(0.8, 0.2, MEASURES.get("g3")) == pytest.approx(25)
    assert kept_percent(0.1, 0.0, MEASURES.get("adjusted-pillai")) is None
    assert kept_percent(0.1, -0.2, MEASURES.get("adjusted-pillai")) is None
    assert kept_percent(1.0, 1.0, MEASURES.get("g3")) is None
    assert AttributeScore(0.5, 0.75).change == -0.25


def test_choosing_names_what_is_missing(small: Summary) -> None:
    scorer = Scorer(small)
    choice = all_choices(small)[0]
    masks = {name: candidate.mask for name, candidate in choice.items()}
    assert scorer.choose(Configuration("all", masks)) == choice
    declared = {name: candidate.declared for name, candidate in choice.items()}
    assert scorer.choose(Configuration("declared", declared)) == choice
    without = {name: mask for name, mask in masks.items() if name != "pay"}
    with pytest.raises(PolicyError, match="'short' does not mask 'pay'"):
        scorer.choose(Configuration("short", without))
    other = {**masks, "age": replace(small.attributes["age"].candidates[1].mask, width=9)}
    with pytest.raises(PolicyError, match="not among the summarised candidates"):
        scorer.choose(Configuration("other", other))


def test_a_suppressed_column_of_many_classes_scores_as_chance() -> None:
    """Above 16 classes all share a covariance; a column without a level that varies has none."""
    random = np.random.default_rng(3)
    data = pa.table(
        {
            "town": random.integers(0, 4, 400).astype(str),
            "y": random.integers(0, 20, 400).astype(str),
        }
    )
    masks = ["identity", "suppress"]
    rules = {
        "version": 1,
        "label": "y",
        "attributes": {"town": {"role": "quasi-identifier", "masks": masks}},
    }
    scorer = Scorer(summarize(data, rules))
    town = scorer.summary.attributes["town"]
    hidden = next(c for c in town.candidates if str(c.mask) == "suppress")
    assert scorer.attribute(town, hidden, MEASURES.get("held-out-auc")) == 0.5
    assert scorer.value({"town": hidden}, MEASURES.get("held-out-auc")) == 0.5
