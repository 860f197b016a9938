"""A search that is stopped again and again ends with the proof of one that is not."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from advisor_support import policy_of, random_rows, table_of
from aegis.advisor import PrivacyPlan
from aegis.advisor.search import Searcher, search_combinations
from aegis.advisor.search.branch import BranchAndBound
from aegis.advisor.search.problem import OutOfTimeError, make_problem
from aegis.advisor.search.searcher import SearchFile
from aegis.errors import PolicyError
from aegis.policy import as_policy
from aegis.summary import Summary, summarize
from search_support import VARIANTS, rule_of

POLICY = policy_of({"k": 2}, **VARIANTS["plain"])


@cache
def summary_of(seed: int) -> Summary:
    return summarize(table_of(random_rows(seed)), POLICY)


def searcher_of(objective: str, seed: int) -> Searcher:
    summary = summary_of(seed)
    return Searcher(summary, PrivacyPlan(summary, rule_of({"k": 2}, 0.12)), objective, objective)


def file_of(searcher: Searcher, path: Path, top: int = 1) -> SearchFile:
    name = f"{searcher.objective.name}, {top}"
    return SearchFile.of(path, as_policy(POLICY), searcher.problem, searcher.plan, name)


@pytest.mark.parametrize(
    ("seed", "objective"),
    [
        (0, "held-out-auc"),
        (0, "adjusted-pillai"),
        (1, "adjusted-pillai"),
        (1, "held-out-pillai-values"),
    ],
)
def test_it_ends_with_the_same_proof(
    objective: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "aegis.advisor.search.searcher"
    monkeypatch.setattr(f"{module}.ENUMERATED", 0)
    monkeypatch.setattr(f"{module}.LISTED", 1)
    monkeypatch.setattr(f"{module}.SPLITS", 1)
    whole = searcher_of(objective, seed)
    best, proof = whole.run(whole.plan.rule, top=1, time_limit=None, prove=True)
    assert proof.optimal
    left, most, bounds = [0], 4, []

    def counted(self: BranchAndBound) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OutOfTimeError

    monkeypatch.setattr(BranchAndBound, "_go_on", counted)
    file = file_of(whole, tmp_path / "search.json")
    for _ in range(300):
        left[0], most = most, most + most // 2  # a search that never gets further would never end
        searcher = searcher_of(objective, seed)
        found, figures = searcher.run(searcher.plan.rule, top=1, time_limit=None, file=file)
        if figures.bound is not None:
            bounds.append(figures.bound)
        if figures.optimal:
            break
    assert figures.optimal
    assert len(bounds) > 1
    assert found.best[0][0] == pytest.approx(best.best[0][0])
    assert all(bound >= best.best[0][0] - 1e-9 for bound in bounds)
    assert file.read()[1] == ()
    again, figures = searcher.run(searcher.plan.rule, top=1, time_limit=None, file=file)
    assert figures.optimal
    assert again.best[0] == found.best[0]


def search(path: Path, seed: int = 1, **options: Any) -> Any:
    policy = as_policy(options.pop("policy", POLICY))
    summary = summary_of(seed)
    plan = PrivacyPlan(summary, policy.privacy)
    return search_combinations(summary, plan, policy, resume=path, **options)


def test_another_search_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "search.json"
    first = search(path)
    text = path.read_text()
    assert search(path).best.masks == first.best.masks
    strict = policy_of({"k": 3}, **VARIANTS["plain"])
    for other, said in (
        ({"seed": 2}, "another table"),
        ({"policy": strict}, "another policy"),
        ({"objective": "pillai-plain"}, "another measure"),
        ({"top": 3}, "another measure or --top"),
    ):
        with pytest.raises(PolicyError, match=said):
            search(path, **other)
    assert path.read_text() == text


def test_a_table_with_the_same_counts_in_each_column_is_another_one() -> None:
    rows = table_of(random_rows(1)).sort_by("y")
    labels = rows["y"].to_pylist()
    places = list(range(rows.num_rows))
    for label in set(labels):  # turn the first column round within each class
        own = [i for i, value in enumerate(labels) if value == label]
        places[own[0] : own[-1] + 1] = reversed(own)
    name = rows.column_names[0]
    turned = rows.set_column(0, name, rows[name].take(pa.array(places)))
    digests, counts = [], []
    for table in (rows, turned):
        summary = summarize(table, POLICY)
        plan = PrivacyPlan(summary, rule_of({"k": 2}, 0.12))
        problem = make_problem(replace(summary, frequency=None))  # as where it is counted elsewhere
        file = SearchFile.of(Path("search.json"), as_policy(POLICY), problem, plan, "pillai-plain")
        digests.append(file.digests["table"])
        counts.append([joint.tolist() for joint in summary.pairs.atom_counts])
    assert counts[0] == counts[1]
    assert digests[0] != digests[1]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop("open"),
        lambda data: data.update(best=[["0", "1"]]),
        lambda data: data.update(open=[[0.5, False, ["x"]]]),
        lambda data: data.update(open=[["high", False, data["best"][0]]]),
        lambda data: data.update(open=[[float("nan"), False, data["best"][0]]]),
        lambda data: data.update(aegis_search=2),
        lambda data: data.update(of=[]),
    ],
)
def test_a_file_that_is_no_search_is_refused(change: Any, tmp_path: Path) -> None:
    path = tmp_path / "search.json"
    search(path)
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(PolicyError, match="is not a search that can be resumed"):
        search(path)


def test_the_folder_is_checked_before_the_search(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="its folder does not exist"):
        search(tmp_path / "none" / "search.json")
    with pytest.raises(PolicyError, match="it is a folder"):
        search(tmp_path)
