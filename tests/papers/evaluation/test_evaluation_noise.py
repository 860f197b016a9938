"""Evaluation of configurations with noise: trained on what is drawn."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from aegis.advisor import Scorer
from aegis.errors import PolicyError
from aegis.papers.evaluation.coding import code_table
from aegis.papers.evaluation.comparators import compare
from aegis.policy import load_policy
from aegis.sources import open_table
from aegis.summary import summarize


def prepared():
    random = np.random.default_rng(0)
    age = [None if i % 40 == 0 else int(a) for i, a in enumerate(random.integers(20, 40, 200))]
    table = pa.table(
        {"age": pa.array(age), "sex": ["f", "m"] * 100, "y": ["p", "p", "q", "q"] * 50}
    )
    policy = load_policy(
        {
            "version": 1,
            "label": "y",
            "attributes": {
                "age": {"role": "feature", "masks": [{"add_uniform": {"amount": 3}}, "identity"]},
                "sex": {"role": "feature", "masks": ["shuffle", "identity"]},
            },
        }
    )
    summary = summarize(table, policy)
    return table, policy, summary


def test_designs_hold_drawn_values():
    table, policy, summary = prepared()
    choice = {a.name: a.candidates[0] for a in summary.all_attributes}
    rows = code_table(open_table(table), summary, policy, seed=1)
    design = rows.design(choice)
    assert design.digest == rows.design(choice).digest
    assert (
        design.digest
        != code_table(open_table(table), summary, policy, seed=2).design(choice).digest
    )
    assert design.codes.max(axis=0).tolist() == [s - 1 for s in design.sizes]
    ages = table["age"].to_pylist()
    shown = design.codes[:, 0]
    null = [i for i, a in enumerate(ages) if a is None]
    assert set(shown[null]) == {design.sizes[0] - 1}  # null is last
    # Codes are those of the sorted shown values: whole years within three of the true one.
    known = [i for i, a in enumerate(ages) if a is not None]
    gaps = shown[known] - np.array([ages[i] for i in known])
    assert np.ptp(gaps) <= 6
    assert np.bincount(design.codes[:, 1]).tolist() == [100, 100]
    assert (design.codes[:, 1] != rows.codes["sex"]).any()


def test_comparators_leave_noise_out():
    _, _, summary = prepared()
    scorer = Scorer(summary)
    choices = {"c": {a.name: a.candidates[0] for a in summary.all_attributes}}
    assert compare(scorer, choices) == ()
    with pytest.raises(PolicyError, match="not defined for noise masks"):
        compare(scorer, choices, ["mascara"])
