"""A person's rows stay together: in folds, in training and test rows, and in what is released."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import aegis
from aegis.files import SILENT
from aegis.papers.evaluation.training import make_splits
from aegis.policy import Policy, load_policy
from aegis.sources import open_table
from aegis.summary import summarize
from aegis.summary.builder import FOLDS
from aegis.summary.codes import Dealer
from aegis.summary.pairs_in_engine import count_pairs_in_engine


def visits(seed: int = 3, people: int = 90) -> pa.Table:
    """Return a table of several rows per person; one row has no person."""
    random = np.random.default_rng(seed)
    who = [f"p{v:03}" for v in random.integers(0, people, 240)]
    age = random.integers(3, 9, 240) * 10
    return pa.table(
        {
            "who": [None, *who[1:]],
            "age": age,
            "ward": random.choice(["a", "b", "c"], 240),
            "y": (age + random.normal(0, 20, 240) > 55).astype(int),
        }
    )


def policy(**changes: Any) -> Policy:
    return load_policy(
        {
            "version": 1,
            "label": "y",
            "person": "who",
            "privacy": {"k": 3, "suppression": 0.3},
            "attributes": {
                "age": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
                "ward": {"role": "quasi-identifier"},
            },
        }
        | changes
    )


def test_the_rows_of_a_person_fall_into_one_fold() -> None:
    table = visits()
    summary = summarize(table, policy(), seed=4)
    rows = table.to_pylist()
    names = sorted({r["who"] for r in rows if r["who"] is not None})
    place = {name: i for i, name in enumerate([*names, None])}
    fold = Dealer((), FOLDS, 4).units(np.array([place[r["who"]] for r in rows]))
    folds = summary.pairs.folds
    assert folds is not None
    assert folds.rows.tolist() == np.bincount(fold, minlength=FOLDS).tolist()
    wards = sorted({r["ward"] for r in rows})
    counted = Counter(
        (int(f), wards.index(r["ward"]), int(r["y"])) for f, r in zip(fold, rows, strict=True)
    )
    joint = folds.atom_counts[summary.pairs.names.index("ward")]
    assert {at: n for at, n in np.ndenumerate(joint) if n} == dict(counted)
    alone = summarize(table, policy(person=None), seed=4).pairs.folds
    assert alone is not None
    assert alone.rows.tolist() != folds.rows.tolist()


@settings(max_examples=60)
@given(
    rows=st.lists(st.tuples(st.integers(0, 8), st.integers(-1, 2)), min_size=4, max_size=60),
    seed=st.integers(0, 9),
)
def test_nobody_is_trained_on_and_tested(rows: list[tuple[int, int]], seed: int) -> None:
    persons, label = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    classes: dict[int, int] = {}
    for person, own in rows:
        if own >= 0:
            classes.setdefault(person, own)
    wanted = sum(max(min(int(n * 0.4 + 0.5), n - 1), 0) for n in Counter(classes.values()).values())
    if wanted == 0:
        return
    for split in make_splits(label, count=2, test_share=0.4, seed=seed, persons=persons):
        train, test = set(persons[split.train].tolist()), set(persons[split.test].tolist())
        assert not train & test
        assert len(test) == wanted
        assert sorted([*split.train, *split.test]) == np.flatnonzero(label >= 0).tolist()


def test_engines_deal_persons_out_to_folds() -> None:
    table = visits()
    source, summary = open_table(table), summarize(table, policy())
    with SILENT.step("counting") as step:
        pairs = count_pairs_in_engine(
            source,
            source.table,
            summary.attributes,
            lambda rows: rows["y"],
            pa.array([0, 1]),
            step,
            Dealer(tuple(summary.attributes), 5, 0),
            person="who",
        )
    assert pairs.folds is not None
    people = Counter(table["who"].to_pylist())
    in_order = sorted(people.items(), key=lambda one: (one[0] is None, str(one[0])))
    dealt = np.zeros(5, dtype=int)
    np.add.at(dealt, Dealer((), 5, 0).units(np.arange(len(in_order))), [n for _, n in in_order])
    assert pairs.folds.rows.tolist() == dealt.tolist()
    assert pairs.rows == table.num_rows


def test_training_keeps_persons_apart() -> None:
    found = aegis.Study(visits(), policy()).evaluate(models=["nb"], splits=1, generate_count=1)
    assert found.trainings
