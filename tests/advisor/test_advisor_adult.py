"""Published figures and optima on real data, through the whole pipeline."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from aegis.advisor import PrivacyPlan, Scorer
from aegis.advisor.search import Searcher
from aegis.measures import MEASURES
from aegis.policy import Policy, load_policy
from aegis.privacy import PrivacyRule
from aegis.summary import Summary, summarize

ADULT = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]
NUMBERS = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
EIGHT = [
    "age",
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "race",
    "sex",
    "native-country",
]

PLUG_IN = {
    # attribute: MI, corrected MI, chi-square, Bergsma's V, g1, g2, g3
    "age": (0.09921780, 0.09762273, 3502.03646, 0.32456899, 0.00678846, 0.94723749, 0.24080956),
    "education": (
        0.09359084,
        0.09325854,
        4429.65330,
        0.36821890,
        0.05946282,
        0.99843371,
        0.22041706,
    ),
    "fnlwgt": (0.56800992, 0.08844819, 22678.95603, 0.17797068, 0.00001327, 0.24897884, 0.09434600),
    "relationship": (0.16536576, 0.16525499, 6699.07690, 0.45342258, 0.09642657, 1.0, 0.24080956),
    "sex": (0.03717139, 0.03714923, 1518.88682, 0.21591235, 0.21145015, 1.0, 0.24080956),
    "floored": (0.08462225, 0.08444502, 3146.07501, 0.31044841, 0.06767887, 1.0, 0.24080956),
}
NAMES = ("mi", "adjusted-mi", "chi2", "adjusted-cramers-v", "g1", "g2", "g3")


@pytest.fixture(scope="module")
def adult(shared_data: Path) -> pa.Table:
    """Adult as published, `?` kept as a value."""
    with (shared_data / "adult" / "adult.data").open() as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if row]
    columns = dict(zip(ADULT, zip(*rows, strict=True), strict=True))
    return pa.table(
        {n: [int(v) for v in c] if n in NUMBERS else list(c) for n, c in columns.items()}
    )


def summary_of(table: pa.Table, masks: dict[str, Any], max_levels: int = 128) -> Summary:
    attributes = {name: {"role": "feature", "masks": [mask]} for name, mask in masks.items()}
    policy = load_policy({"version": 1, "label": "income", "attributes": attributes})
    return summarize(table, policy, max_levels=max_levels)


FLOORED = {"bucketize": {"width": 10}}


def test_measures_of_adult(adult: pa.Table) -> None:
    names = [name for name in PLUG_IN if name != "floored"]
    scorer = Scorer(summary_of(adult, dict.fromkeys(names, "identity") | {"race": "identity"}))
    floored = Scorer(summary_of(adult, {"age": FLOORED, "sex": "identity"}))
    for name, figures in PLUG_IN.items():
        own = floored if name == "floored" else scorer
        attribute = own.summary.attributes["age" if name == "floored" else name]
        for measure, wanted in zip(NAMES, figures, strict=True):
            found = own.attribute(attribute, attribute.candidates[0], MEASURES.get(measure))
            assert found == pytest.approx(wanted, abs=6e-6 if measure == "chi2" else 6e-9)


def test_pillai_and_cmim_of_adult(adult: pa.Table) -> None:
    three = Scorer(summary_of(adult, {"age": FLOORED, "education": "identity", "sex": "identity"}))
    eight = Scorer(summary_of(adult, dict.fromkeys(EIGHT, "identity")))
    names = ("age", "education", "marital-status", "occupation", "sex", "race")
    six = Scorer(summary_of(adult, dict.fromkeys(names, "identity")))
    for scorer, measure, wanted in (
        (three, "pillai-plain", 0.2348545078),
        (three, "adjusted-pillai", 0.2342901025),
        (eight, "pillai-plain", 0.3514238052),
        (eight, "adjusted-pillai", 0.3482209598),
        (six, "cmim", 0.3313145330),
    ):
        choice = {a.name: a.candidates[0] for a in scorer.summary.all_attributes}
        assert scorer.value(choice, MEASURES.get(measure)) == pytest.approx(wanted, abs=1e-10)


ARX = [
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation",
    "salary-class",
]  # fmt: skip
OPTIMA = {
    (5, 0.04): ((1, 0, 1, 1, 3, 2, 2, 0, 1), 255559.854557),
    (100, 0.04): ((1, 1, 1, 1, 3, 2, 2, 1, 1), 379417.346057),
    (5, 0.0): ((1, 2, 1, 1, 3, 2, 2, 1, 1), 407289.538893),
    (100, 0.0): ((0, 4, 1, 1, 3, 2, 2, 1, 1), 453196.893246),
}


def hierarchical(folder: Path, names: list[str], label: str, prefix: str) -> Policy:
    attributes = {
        name: {"role": "quasi-identifier", "hierarchy": str(folder / f"{prefix}{name}.csv")}
        for name in names
    }
    return load_policy({"version": 1, "label": label, "attributes": attributes})


def rule_of(k: int, share: float) -> PrivacyRule:
    return PrivacyRule.parse({"k": k, "suppression": share} if share else {"k": k})


def test_arx_optima(shared_data: Path) -> None:
    folder = shared_data / "arx_adult"
    policy = hierarchical(folder, ARX, "salary-class", "adult_hierarchy_")
    summary = summarize(folder / "adult.csv", policy)
    plan = PrivacyPlan(summary, PrivacyRule())
    searcher = Searcher(summary, plan, "nu-entropy(factor=0)", "adjusted-pillai")
    levels = {a.name: list(a.candidates) for a in summary.all_attributes}
    for (k, share), (wanted, loss) in OPTIMA.items():
        found, figures = searcher.run(rule_of(k, share), top=1, time_limit=None)
        choice = searcher.problem.choice(found.best[0][1])
        assert tuple(levels[name].index(choice[name]) for name in ARX) == wanted
        assert figures.best == pytest.approx(loss, abs=1e-6)
        assert figures.optimal
        assert figures.work.combinations == 12_960
        if (k, share) == (5, 0.0):
            classes = plan.classes(choice)
            assert (len(classes), classes.sizes.min()) == (48, 5)


def test_fars_is_searched_to_the_end(shared_data: Path) -> None:
    folder = shared_data / "fars"
    names = ["iage", "irace", "isex", "ihispanic", "istatenum", "iinjury", "ideathday", "ideathmon"]
    policy = hierarchical(folder, names, "iinjury", "fars_hierarchy_")
    summary = summarize(folder / "fars_subset.csv", policy)
    searcher = Searcher(
        summary, PrivacyPlan(summary, PrivacyRule()), "adjusted-pillai", "adjusted-pillai"
    )
    before = None
    for share in (0.05, 0.02, 0.0):
        found, figures = searcher.run(rule_of(5, share), top=1, time_limit=None)
        assert figures.optimal
        assert (
            searcher.plan.under(rule_of(5, share))
            .check(searcher.problem.choice(found.best[0][1]))
            .admissible
        )
        assert before is None or figures.best <= before + 1e-12
        before = figures.best
