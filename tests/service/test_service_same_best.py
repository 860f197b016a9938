"""The workbench and the command recommend the same, with the same figure and warnings."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aegis
from aegis.advisor.search import search_combinations
from aegis.cli.main import run
from aegis.errors import AegisError
from aegis.policy import Configuration
from aegis.present import Finding
from aegis.requests import SEARCH_WORK
from aegis.service.catalog.flow import policy_of
from aegis.service.catalog.summaries import written
from aegis.service.pages.local import EFFORTS
from aegis.service.pages.render import fragment
from aegis.service.workbench import Bench
from aegis.words import percent


def staff(seed: int, classes: int) -> pa.Table:
    """Return persons whose pay follows several attributes alike, so that many configurations tie.

    Without classes, the pay is a number.
    """
    random = np.random.default_rng(seed)
    age, years = random.integers(20, 65, 900), random.integers(0, 30, 900)
    sex, town = random.integers(0, 2, 900), random.integers(0, 12, 900)
    pay = age / 20 + years / 10 + sex + random.normal(0, 1, 900)
    edges = np.quantile(pay, np.linspace(0, 1, classes + 1)[1:-1]) if classes else pay
    level = np.searchsorted(edges, pay)
    return pa.table(
        {
            "age": age,
            "years": years,
            "sex": np.array(["f", "m"])[sex],
            "town": [f"town {place}" for place in town],
            "pay": [f"level {place}" for place in level] if classes else pay.round(2),
        }
    )


TABLES = {
    "two classes": (staff(1, 2), "pay"),
    "five classes": (staff(3, 5), "pay"),
    "a number": (staff(9, 0), "pay"),
    "many towns": (staff(5, 12), "town"),
    "people": (pq.read_table("data/adult.parquet").slice(0, 1200), "income"),
}


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("name", TABLES)
def test_command_and_workbench_recommend_the_same(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, label = TABLES[name]
    path, policy = tmp_path / "t.parquet", tmp_path / "p.yaml"
    pq.write_table(table, path)
    policy.write_text(aegis.init_policy(str(path), label=label).yaml)
    assert run(["advise", str(path), "-p", str(policy), "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    bench = Bench.open(str(path), label)
    advice = bench.best(EFFORTS[-1])
    best = advice.require_best()
    first = said["ranking"][0]
    assert best.configuration.spec() == first["masks"]
    assert (best.smallest_class, best.suppressed_rows) == (
        first["smallest_class"],
        first["suppressed_rows"],
    )
    again = json.loads(json.dumps(advice.to_dict()))
    assert again["utility"] == said["utility"]
    assert again["ranking"][0] == first
    figure = advice.stated_utility(best).utility_kept
    assert list(advice.warnings) == said["warnings"]
    assert advice.optimal == said["optimal"]

    assert run(["advise", str(path), "-p", str(policy)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    words = Finding.of(advice, best)
    shown = fragment(
        "bench_best.html",
        more=None,
        problem=None,
        advice=advice,
        best=best,
        words=words,
        shows={preview.attribute: preview for preview in bench.preview(best.configuration)},
        base="/bench/x",
        form_key="",
        configuration=written(best.configuration, advice.measure),
    ).body.decode()
    page, _, _ = shown.partition("Release the table")
    if figure is not None and not advice.by_chance:
        assert f"keeps {percent(figure)} of the predictive value" in words.title
    for text in (words.title, words.figure, words.released, words.proof):
        assert text in printed
        assert html.escape(text) in page
    for text in advice.warnings:
        assert (
            html.escape(text, quote=True).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
            in page
        )


def test_no_list_states_another_figure_of_the_unmasked_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(3)
    age = random.integers(18, 90, 1500)
    income = np.round(
        2500 + 40 * age + random.normal(0, 900, 1500)
    )  # many values: the rarest are pooled
    ill = np.where(random.normal(0, 1, 1500) + (age - 50) / 20 > 0.8, "ill", "well")
    path, policy = tmp_path / "t.parquet", tmp_path / "p.yaml"
    pq.write_table(pa.table({"income": income, "diagnosis": ill}), path)
    policy.write_text(aegis.init_policy(str(path), label="diagnosis").yaml)
    assert run(["advise", str(path), "-p", str(policy), "--format", "json"]) == 0
    stated = json.loads(capsys.readouterr().out)["utility"]["reference"]
    assert run(["advise", str(path), "-p", str(policy), "--explain"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "score: held-out-auc of all rows" in printed
    listed = re.findall(r"\(unmasked ([\d.]+)\)", printed)
    assert [float(number) for number in listed] == pytest.approx([stated] * len(listed), abs=1e-4)
    page = fragment(
        "bench_view.html", view=Bench.open(str(path), "diagnosis").view(), base="/bench/x"
    ).body.decode()
    assert "held-out-auc of all rows" in page
    assert "unmasked table has" not in page
    assert "Kept" not in page  # the only share of utility is that of the released rows


def test_the_last_search_of_the_workbench_does_as_much_work_as_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, given = tmp_path / "t.parquet", []
    pq.write_table(TABLES["two classes"][0], path)

    def noted(*args: Any, **options: Any) -> Any:
        given.append(args[-1])
        return search_combinations(*args, **options)

    monkeypatch.setattr("aegis.service.workbench.search_combinations", noted)
    Bench.open(str(path), "pay").best(EFFORTS[-1])
    assert [(asked.time_limit, asked.work) for asked in given] == [(None, SEARCH_WORK)]


def test_the_report_of_a_release_says_what_the_search_proved(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(TABLES["two classes"][0], path)
    bench = Bench.open(str(path), "pay")
    advice = bench.best(EFFORTS[-1])
    best = advice.require_best()
    bench.release(written(best.configuration, advice.measure), tmp_path / "found")
    assert Finding.of(advice, best).proof in _words(tmp_path / "found")
    other = advice.ranking[-1]
    bench.release(written(other.configuration, advice.measure), tmp_path / "other")
    said = _words(tmp_path / "other")
    assert f"No other configuration was ranked; there are {advice.combinations:,}" in said
    assert Finding.of(advice, best).proof not in said


def _words(folder: Path) -> str:
    return html.unescape((folder / "report.html").read_text(encoding="utf-8")).replace(
        "\u00a0", " "
    )


def test_examples_of_masked_values_are_written_as_masks_write_them() -> None:
    table = pa.table(
        {
            "income": [1000.0 + 2.5 * (place % 40) for place in range(400)],
            "job": [None if place % 9 == 0 else f"job {place % 3}" for place in range(400)],
            "answer": ["yes" if place % 7 < 3 else "no" for place in range(400)],
        }
    )
    bench = Bench.open(table, "answer")
    finest = {name: a.candidates[0].mask for name, a in bench.study.summary.attributes.items()}
    shown = {p.attribute: dict(p.values) for p in bench.preview(Configuration("finest", finest))}
    assert shown["job"]["null"] == "null"
    assert "1000" in shown["income"]
    assert "1012.5" in shown["income"]


def test_a_best_of_an_earlier_policy_writes_no_file(tmp_path: Path) -> None:
    table, label = TABLES["two classes"]
    bench = Bench.open(table, label)
    advice = bench.best(EFFORTS[-1])
    shown = written(advice.require_best().configuration, advice.measure)
    column, mask = next(iter(advice.require_best().configuration.masks.items()))
    other = "suppress" if str(mask) == "identity" else "identity"
    lines = [
        f"  {name}: {{role: quasi-identifier, masks: [{other if name == column else mask}]}}\n"
        for name, mask in advice.require_best().configuration.spec().items()
    ]
    text = f"version: 1\nlabel: {label}\nprivacy: {{k: 1}}\nattributes:\n" + "".join(lines)
    bench.take(policy_of(text))
    with pytest.raises(AegisError, match="candidates"):
        bench.release(shown, tmp_path / "release")
    assert not (tmp_path / "release").exists()
