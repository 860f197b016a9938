"""What nobody asks for is not worked out, and what two readers ask for is worked out once."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import aegis
from aegis.advisor import Scorer
from aegis.advisor.released import ReleasedRows
from aegis.advisor.scores import Later
from aegis.measures import MEASURES, Cooccurrence, Measure
from aegis.measures.discriminant import PENALTIES, _Others
from aegis.policy import load_policy, policy_mapping
from aegis.summary import summarize
from aegis.summary.coded_rows import CodedRows


def table(classes: int, rows: int = 900) -> pa.Table:
    random = np.random.default_rng(classes)
    label = random.integers(0, classes, rows)
    shown = {
        name: [
            f"{name}{v}"
            for v in np.where(
                random.random(rows) < told, label % size, random.integers(0, size, rows)
            )
        ]
        for name, size, told in (("a", 5, 0.4), ("b", 9, 0.3), ("c", 14, 0.5))
    }
    age = random.integers(20, 60, rows) + 3 * label
    return pa.table({**shown, "age": age, "y": [f"class {v}" for v in label]})


MASKS = ("identity", {"keep_frequent": {"count": 3}}, "suppress")


def policy(*, numbers: bool = False, masks: Sequence[Any] = MASKS, k: int = 1) -> aegis.Policy:
    names = ("a", "b", "c")
    attributes = {name: {"role": "quasi-identifier", "masks": list(masks)} for name in names}
    if numbers:
        attributes["age"] = {"role": "feature", "masks": ["identity"]}
    rule = {"k": k, "suppression": 0.2}
    return load_policy({"version": 1, "label": "y", "privacy": rule, "attributes": attributes})


def test_a_search_scores_no_attribute_alone_until_somebody_reads_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    score = Scorer.attribute

    def counted(self: Scorer, attribute, *rest):
        asked.append(attribute.name)
        return score(self, attribute, *rest)

    monkeypatch.setattr(Scorer, "attribute", counted)
    advice = aegis.Study(table(3), policy(numbers=True)).search(top=3)
    best = advice.require_best()
    assert list(best.attributes) == ["a", "b", "c", "age"]
    assert asked == []
    scores = best.attributes["b"]
    assert set(asked) == {"b"}
    again = Scorer(summarize(table(3), policy(numbers=True)))
    measure = MEASURES.get(advice.measure)
    own = again.summary.attributes["b"]
    assert scores.unmasked == again.attribute(own, own.unmasked, measure)
    assert best.pud == pytest.approx(np.mean([abs(s.change) for s in best.attributes.values()]))
    with pytest.raises(KeyError):
        best.attributes["y"]


def test_a_search_by_a_loss_scores_nothing_until_somebody_reads_it_and_explains_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then the unmasked table and the two shown are scored once; privacy and risks wait, too."""
    scored: list[str] = []
    compute = Measure.__call__

    def counted(self: Measure, counts):
        scored.append(self.name)
        return compute(self, counts)

    def never(*_args, **_more):
        raise AssertionError("nobody asked for this")

    monkeypatch.setattr(Measure, "__call__", counted)
    search_module = sys.modules["aegis.advisor.search.search"]
    for name in ("explain", "lost_alone", "expected_auc", "trace_front"):
        monkeypatch.setattr(search_module, name, never)
    searcher = sys.modules["aegis.advisor.search.searcher"]
    for name in ("with_confidence", "error_of"):
        monkeypatch.setattr(searcher, name, never)
    monkeypatch.setattr(ReleasedRows, "of", never)
    study = aegis.Study(table(3), policy())
    advice = study.search(objective="loss", top=2, explain_best=False)
    assert len(advice.ranking) == 2
    assert advice.require_best().suppressed_rows is not None
    assert not any(vars(advice)[name].computed for name in ("privacy", "uncovered", "warnings"))
    assert scored == []
    figures = [advice.unmasked, *(ranked.score for ranked in advice.ranking)]
    assert figures == [advice.unmasked, *(ranked.score for ranked in copy(advice).ranking)]
    assert set(scored) == {advice.measure}
    assert len(scored) <= 3
    assert pickle.loads(pickle.dumps(advice)).to_dict() == advice.to_dict()
    with pytest.raises(AssertionError, match="nobody asked"):
        study.search(objective="loss", top=2, explain_best=True)


def test_threads_that_read_a_value_at_the_same_time_compute_it_once() -> None:
    begun, over = threading.Event(), threading.Event()
    computed: list[int] = []

    def compute() -> int:
        computed.append(1)
        begun.set()
        over.wait(10)
        return 7

    value, read = Later(compute), []
    readers = [threading.Thread(target=lambda: read.append(value.value)) for _ in range(2)]
    readers[0].start()
    begun.wait(10)
    readers[1].start()
    readers[1].join(0.2)  # it waits for the first
    over.set()
    for reader in readers:
        reader.join()
    assert computed == [1]
    assert read == [7, 7]


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("name", ["held-out-auc", "held-out-auc(gbdt)", "held-out-accuracy"])
def test_both_codings_of_unordered_levels_are_solved_in_one_pass(
    name: str, classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure, summary = MEASURES.get(name), summarize(table(classes), policy())
    passes: list[int] = []
    scores = _Others.scores

    def counted(self, direction, width, **more):
        passes.append(width)
        return scores(self, direction, width, **more)

    monkeypatch.setattr(_Others, "scores", counted)

    def figures() -> list[float]:
        scorer = Scorer(summary)
        choice = {a.name: a.candidates[1] for a in summary.all_attributes}
        found = [scorer.value(one, measure) for one in (scorer.unmasked, choice)]
        counts = scorer.cooccurrence(choice, measure.needs)
        assert measure.without_folds is not None
        return [*found, *measure.without_folds(counts)]

    together = figures()
    once = [len(PENALTIES)] * 2
    assert passes == once
    monkeypatch.setattr(Cooccurrence, "same_as", lambda _, encoding: encoding)
    assert figures() == pytest.approx(together, abs=1e-12)
    assert passes == once + (once if "gbdt" in name else 2 * once)


def test_a_table_that_is_released_as_it_is_is_counted_once(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    masked: list[object] = []
    of = ReleasedRows.of

    def counted(self: ReleasedRows, choice):
        masked.append(choice)
        return of(self, choice)

    monkeypatch.setattr(ReleasedRows, "of", counted)
    path = tmp_path / "t.csv"
    pyarrow.csv.write_csv(table(3), path)
    study = aegis.Study(path, policy(numbers=True, masks=["identity"]))
    advice = study.search(top=3)
    assert masked == []
    figure = advice.utility
    assert figure is not None
    assert (figure.rows, figure.value) == ("released", figure.reference)
    released = study.apply(advice, tmp_path / "r.csv", certificate=tmp_path / "c.json")
    assert released.utility is not None
    assert released.utility.value == pytest.approx(figure.value, abs=1e-12)
    assert released.utility.stderr == pytest.approx(figure.stderr, abs=1e-12)


def test_rows_that_only_the_table_shows_are_examined_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows that are held as codes wait; those of a rule on persons are read before they change."""
    residual_risks = sys.modules["aegis.advisor.advise"]
    examined: list[str] = []

    def spied(name: str) -> None:
        plain = getattr(residual_risks, name)
        monkeypatch.setattr(
            residual_risks, name, lambda *a, **more: examined.append(name) or plain(*a, **more)
        )

    spied("outside_of")
    spied("outside_of_codes")
    rows = table(3)
    of_persons = rows.append_column("id", pa.array(range(len(rows))))
    rules = policy_mapping(policy())
    asked = {"objective": "loss", "top": 1, "explain_best": False}
    held = aegis.Study(rows, policy()).search(**asked)
    assert examined == []
    for _ in range(2):
        assert held.uncovered is not None
    assert examined == ["outside_of_codes"]
    persons = {**rules, "person": "id"}
    read = aegis.Study(of_persons, load_policy(persons)).search(**asked)
    assert examined == ["outside_of_codes", "outside_of"]
    assert read.uncovered is not None
    assert examined == ["outside_of_codes", "outside_of"]


def test_the_cells_of_a_tables_rows_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often releases of a study are examined."""
    counted: list[object] = []
    frequency = CodedRows.frequency
    study = aegis.Study(table(3), policy(k=3))
    assert study.summary.rows  # counts the table
    monkeypatch.setattr(CodedRows, "frequency", lambda *own: counted.append(own) or frequency(*own))
    for top in (1, 2):
        advice = study.search(top=top)
        assert advice.require_best().suppressed_rows
        assert advice.uncovered is not None
    assert study.search(objective="loss", top=1, explain_best=False).uncovered is not None
    assert len(counted) == 1
