"""The pages for those who decide: what a release looks like, and what its certificate states."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import aegis
from aegis.advisor.owner_preview import show_release
from aegis.advisor.utility import UtilityFigure
from aegis.cli.audit import print_audit
from aegis.cli.main import run
from aegis.cli.output import Output
from aegis.cli.parameters import Format
from aegis.errors import DataError, PolicyError
from aegis.policy import policy_digest
from aegis.report import page, render_certificate, write_page
from aegis.report.charts import _spread
from aegis.report.sections import mask_words
from aegis.signing import seal
from aegis.sources import open_table
from aegis.words import percent, portion

RELEASE = {"purpose": "Teaching <b>", "author": "Office", "date": "2026-11-22"}


def table() -> pa.Table:
    random = np.random.default_rng(7)
    age = random.integers(20, 40, 300)
    return pa.table(
        {
            "age": age,
            "town": [f"t{v}" for v in random.integers(0, 12, 300)],
            "y": ((age > 30) ^ (random.random(300) < 0.2)).astype(int),
        }
    )


def policy(**changes: Any) -> aegis.Policy:
    return aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 3, "suppression": 0.3},
            "attributes": {
                "age": {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 5}}]},
                "town": {"role": "quasi-identifier", "masks": ["identity"]},
            },
        }
        | changes
    )


@pytest.fixture(scope="module")
def study() -> aegis.Study:
    return aegis.Study(table(), policy(release=RELEASE))


def test_who_is_left_out_is_counted_by_label_and_by_group(study: aegis.Study) -> None:
    advice = study.rank()
    shown = show_release(advice, study.summary, study.plan, study.policy, study.source)
    rows = [(r["age"] // 5, r["town"], r["y"]) for r in table().to_pylist()]
    sizes = Counter((a, t) for a, t, _ in rows)
    out = [(a, t, y) for a, t, y in rows if sizes[a, t] < 3]
    assert advice.best.suppressed_rows == len(out) > 0
    assert {s.value: s.left_out for s in shown.by_label} == Counter(str(y) for *_, y in out)
    towns, gone = Counter(t for _, t, _ in rows), Counter(t for _, t, _ in out)
    for share in shown.hardest_hit:
        if share.column == "town":
            assert (share.rows, share.left_out) == (towns[share.value], gone[share.value])
    parts = [share.part for share in shown.hardest_hit]
    assert parts == sorted(parts, reverse=True)
    town = next(one for one in shown.columns if one.name == "town")
    assert [n for _, n in town.before] == [n for _, n in towns.most_common(3)]
    assert town.before == town.after
    assert len(shown.preview) == 6
    assert "[" in shown.preview[0][shown.header.index("age")]


def test_the_preview_names_no_person(study: aegis.Study) -> None:
    named = table().append_column("who", pa.array([str(i // 2) for i in range(len(table()))]))
    counted = aegis.Study(named, policy(person="who"))
    advice = counted.rank()
    shown = show_release(advice, counted.summary, counted.plan, counted.policy, open_table(named))
    assert advice.best is not None
    assert set(shown.header) == {"age", "town", "y"}


def test_the_report_shows_values_to_their_owner_alone(study: aegis.Study, tmp_path: Path) -> None:
    advice = study.rank()
    whole = study.report(advice, tmp_path / "whole.html")
    assert 'id="shown"' in whole
    assert "Who is suppressed" in whole
    assert "Teaching &lt;b&gt;" in whole
    assert whole == (tmp_path / "whole.html").read_text()
    assert 'id="shown"' not in study.report(advice, values=False)
    assert 'id="shown"' not in aegis.render_report(advice)
    bundle = aegis.Study(study.summary, study.policy)
    assert "The first rows of the release" not in bundle.report(bundle.rank())


def test_a_certificate_becomes_a_page_to_sign(study: aegis.Study, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    study.apply(study.rank(), tmp_path / "masked.parquet", certificate=path)
    document = json.loads(path.read_text())
    text = render_certificate(document)
    assert "Sign-off" in text
    assert document["output"]["sha256"] in text
    assert "bucketize, width 5" in text
    assert "Teaching &lt;b&gt;" in text
    listed = re.findall(
        r'<th scope="row"><bdi>(.*?)</bdi></th><td>(.*?)</td><td><bdi>(.*?)</bdi>', text
    )
    assert listed == [
        ("age", "quasi-identifier", "bucketize, width 5"),
        ("town", "quasi-identifier", "unchanged"),
        ("y", "label", "unchanged"),
    ]
    for changed in ({"attributes": [1]}, {"labels": "any"}, {"labels": [{"column": "y"}, 7]}):
        shown = render_certificate(seal(document | {"policy": document["policy"] | changed}))
        assert "bucketize, width 5" in shown
    assert f">{document['privacy']['k']}<" in text
    utility = UtilityFigure.from_dict(document["utility"])
    assert f">{percent(utility.utility_kept)}<" in text.replace("\u00a0", " ")
    assert utility.detail in text
    damaged = document | {"utility": {"measure": "held-out-auc", "reference_name": "x"}}
    with pytest.raises(DataError, match="utility that cannot be read"):
        render_certificate(seal(damaged))
    with pytest.raises(DataError, match="lacks output"):
        render_certificate({name: document[name] for name in document if name != "output"})


ABSENT = object()
WRONG = (ABSENT, None, True, -1, 10**400, float("nan"), "x", [], [["x"]], {}, {"x": 1}, {"": None})


def damaged(document: Any) -> Iterator[Any]:
    """Yield copies of a JSON document, each with one value missing or replaced by a wrong one."""
    for key in document if isinstance(document, dict) else range(len(document)):
        for value in WRONG:
            copy = document.copy()
            if value is not ABSENT:
                copy[key] = value
            else:
                del copy[key]
            yield copy
        if isinstance(document[key], dict | list):
            for inner in damaged(document[key]):
                copy = document.copy()
                copy[key] = inner
                yield copy


def test_each_damage_to_a_certificate_is_an_error_of_the_file(study, tmp_path, capsys) -> None:
    path = tmp_path / "c.json"
    study.apply(study.rank(), tmp_path / "masked.csv", certificate=path)
    refused = 0
    for copy in damaged(json.loads(path.read_text())):
        path.write_text(json.dumps(seal(copy)))
        try:
            assert "<main>" in render_certificate(path)
        except (DataError, PolicyError):
            refused += 1
    assert refused > 100
    for text in ("[" * 100_000, '{"input": 1' + "0" * 5000 + "}", "null"):
        path.write_text(text)
        assert run(["report", str(path), "-o", str(tmp_path / "r.html")]) == 2
        assert "a bug" not in capsys.readouterr().err


def test_an_altered_certificate_makes_no_page(study, tmp_path, capsys) -> None:
    path, made = tmp_path / "c.json", tmp_path / "r.html"
    study.apply(study.rank(), tmp_path / "masked.csv", certificate=path)
    document = json.loads(path.read_text())
    privacy = document["privacy"] | {"k": 10 * document["privacy"]["k"]}
    without_digest = {name: value for name, value in document.items() if name != "digest"}
    for altered in (document | {"privacy": privacy}, without_digest):
        with pytest.raises(DataError, match="altered or damaged"):
            render_certificate(altered)
        path.write_text(json.dumps(altered))
        assert run(["report", str(path), "-o", str(made)]) == 2
        assert f"{path.name} is altered or damaged" in "".join(capsys.readouterr().err.split("\n"))
        assert not made.exists()
    assert "<main>" in render_certificate(without_digest | {"certificate": 1})  # the first had none


def test_long_names_of_columns_that_differ_at_the_end_are_told_apart(study, tmp_path) -> None:
    path = tmp_path / "c.json"
    study.apply(study.rank(), tmp_path / "masked.csv", certificate=path)
    question = (
        "Which of these have you used in the last twelve months? Please select all that apply, " * 2
    )
    names = [f"{question}- {answer}" for answer in ("Bus", "Train")]
    document = json.loads(path.read_text())
    masks = document["configuration"]["masks"] | dict.fromkeys(names, "identity")
    changed = {"configuration": {"masks": masks}, "dropped_columns": [f"{question}- Tram"]}
    shown = render_certificate(seal(document | changed))
    for end in ("Bus", "Train", "Tram"):
        assert re.search(rf"<bdi>Which of these [^<]*\.\.\.[^<]*- {end}</bdi>", shown)


def test_the_page_names_the_release_its_table_and_its_persons(tmp_path: Path) -> None:
    who = pa.array([f"p{i // 2}" for i in range(len(table()))])
    pyarrow.csv.write_csv(table().append_column("who", who), tmp_path / "visits.csv")
    study = aegis.Study(tmp_path / "visits.csv", policy(person="who"))
    study.apply(study.rank(), tmp_path / "out.csv", certificate=tmp_path / "c.json")
    document = json.loads((tmp_path / "c.json").read_text())
    head = render_certificate(document).partition("<main>")[0]
    assert "out.csv, made from visits.csv; persons: who (150)" in head
    whole = render_certificate(document).replace("\u00a0", " ")
    assert "of the persons (who) suppressed" in whole
    lost = document["suppressed_persons"]
    assert f"{lost} ({percent(100 * lost / 150)})" in whole
    assert "Persons unique by quasi-identifiers" in whole
    in_memory = document | {"output": {"file": None}, "persons": None, "input": {}}
    assert "A release; persons: who<" in render_certificate(seal(in_memory))


def test_a_risk_and_a_utility_have_one_precision_on_all_screens(
    study: aegis.Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    advice, path = study.rank(), tmp_path / "certificate.json"
    release = study.apply(advice, tmp_path / "masked.csv", certificate=path)
    print_audit(Output(Format.TABLE, quiet=False), release.audit, "masked.csv")
    terminal = capsys.readouterr().out
    page = render_certificate(json.loads(path.read_text())).replace("\u00a0", " ")
    report = study.report(advice).replace("\u00a0", " ")
    average = release.audit.report.prosecutor.average
    assert average is not None
    utility = release.utility
    assert utility is not None
    assert advice.headline is not None
    shown = f"{utility.value:.{utility.digits}f} of {utility.reference:.{utility.digits}f}"
    for text in (terminal, page, report):
        assert portion(average) in text
    for text in (advice.headline, utility.detail, page):
        assert shown in text
    assert portion(release.suppressed_rows / release.rows) in page
    assert portion(release.suppressed_rows / release.rows) in report


def test_the_page_says_what_each_digest_is_of(tmp_path: Path) -> None:
    pyarrow.csv.write_csv(table(), tmp_path / "table.csv")
    from_file = aegis.Study(tmp_path / "table.csv", policy())
    from_memory = aegis.Study(table(), policy())
    pages = []
    for place, opened in enumerate((from_file, from_memory)):
        certificate = tmp_path / f"{place}.json"
        opened.apply(opened.rank(), tmp_path / f"{place}.csv", certificate=certificate)
        pages.append(render_certificate(json.loads(certificate.read_text())))
    stated = [dict(re.findall(r"<dt>(.*?)</dt><dd><code>(.*?)</code>", page)) for page in pages]
    of_file = hashlib.sha256((tmp_path / "0.csv").read_bytes()).hexdigest()
    assert stated[0]["Release, SHA-256"] == of_file
    assert not [title for each in stated for title in each if title.startswith("Input")]
    declared = policy_digest(policy())
    assert stated[0]["Policy, SHA-256 of its declarations"] == declared


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ("identity", "unchanged"),
        ("suppress", "suppressed"),
        ("level(1)", "level 1"),
        ("keep_frequent(count=5)", "keep frequent, count 5"),
        ("quantiles(count=4, edges=[114])", "quantiles, count 4, edges 114"),
        ("top_code(at=60)", "top code, at 60; 60 means 60 or more"),
        ("bottom_code(at=-2.5)", "bottom code, at -2.5; -2.5 means -2.5 or less"),
        ("compose([{'top_code': {'at': 60}}])", "compose top code: at: 60; 60 means 60 or more"),
        (
            "compose(top_code(at=60), suppress)",
            "compose, top code(at 60), suppress; 60 means 60 or more",
        ),
    ],
)
def test_masks_are_named_without_code(mask: str, words: str) -> None:
    assert mask_words(mask) == words


def test_an_axis_does_not_blow_up_ties() -> None:
    low, high = _spread([96.05, 96.4])
    assert (high, high - low) == (96.4, pytest.approx(1.928))
    assert _spread([20.0, 90.0]) == (20.0, 90.0)


def test_a_pdf_takes_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "BROWSERS", ("no-such-browser",))
    with pytest.raises(PolicyError, match="needs an installed Chromium"):
        write_page(tmp_path / "a.pdf", "<p>x</p>")
    assert not list(tmp_path.iterdir())


def browser(folder: Path, body: str) -> str:
    """Return a command that stands for a browser; `target` is the file that it should write."""
    script = folder / "browser"
    script.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "target = next(a for a in sys.argv if a.startswith('--print-to-pdf='))[15:]\n" + body
    )
    script.chmod(0o755)
    return str(script)


def test_a_pdf_is_what_the_browser_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = browser(tmp_path, "open(target, 'w').write('%PDF')\n")
    monkeypatch.setattr(page, "BROWSERS", (command,))
    write_page(tmp_path / "a.pdf", "<p>x</p>")
    assert (tmp_path / "a.pdf").read_text() == "%PDF"


def test_a_browser_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "BROWSERS", (browser(tmp_path, "sys.exit('no display')\n"),))
    with pytest.raises(PolicyError, match="no display"):
        write_page(tmp_path / "a.pdf", "<p>x</p>")
    assert not (tmp_path / "a.pdf").exists()


def test_the_release_block_is_checked() -> None:
    with pytest.raises(PolicyError, match="purpos"):
        policy(release={"purpos": "x"})


def test_a_search_that_proved_nothing_says_so(study: aegis.Study, tmp_path: Path) -> None:
    advice = study.search()
    assert advice.search is not None
    assert "better" not in _recommendation(study, advice, tmp_path).replace("does better", "")
    open_search = replace(advice.search, optimal=False, gap=0.25, bound=0.98, stopped="time limit")
    unproven = replace(advice, optimal=False, combinations=7, search=open_search)
    page = _recommendation(study, unproven, tmp_path)
    assert re.search(
        r"It is the best found among 7 combinations of masks\. Its [-a-z]+ is 0\.\d+", page
    )
    assert page.count("best found") == 1
    assert "best one" not in page
    assert re.search(r"\. Another one could reach at most 0\.980*\.", page)
    assert "% better" not in page.replace("\u00a0", " ")
    for gap, bound in ((None, None), (0.25, 1.0)):  # no score is above 1
        nothing = replace(unproven, search=replace(open_search, gap=gap, bound=bound))
        assert ". Better ones may exist." in _recommendation(study, nothing, tmp_path)


def _recommendation(study: aegis.Study, advice: aegis.Advice, folder: Path) -> str:
    study.report(advice, folder / "r.html", force=True)
    return (folder / "r.html").read_text().partition('id="attributes"')[0]


def test_terminal_and_certificate_show_no_digit_that_rounding_removed(tmp_path: Path) -> None:
    draws = np.random.default_rng(3)
    age = draws.integers(20, 60, 600)
    pay = 100 * age + draws.normal(0, 170, 600).round()
    declared = {
        "version": 1,
        "label": {"column": "pay", "kind": "number"},
        "privacy": {"k": 5},
        "attributes": {"age": {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 5}}]}},
    }
    study = aegis.Study(pa.table({"age": age, "pay": pay}), declared)
    advice = study.rank()
    study.apply(advice, tmp_path / "out.csv", certificate=tmp_path / "c.json")
    document = json.loads((tmp_path / "c.json").read_text())
    rmse, reference = (document["utility"][key] for key in ("rmse", "reference_rmse"))
    assert reference == round(reference, -1)  # a table of 600 rows: two significant digits
    said = f", error of a prediction {rmse:,.0f} instead of about {reference:,.0f}"
    assert said in advice.headline
    assert said in render_certificate(document)
    without_rows = document | {"input": {}}
    assert f" instead of {reference:,.1f}" in render_certificate(seal(without_rows))


@pytest.mark.parametrize("person", [None, "who"])
def test_the_limit_of_a_rule_counts_what_the_rule_counts(
    person: str | None, tmp_path: Path
) -> None:
    visited = table()
    who = pa.array([row // 4 for row in range(len(visited))])
    changes: dict[str, Any] = {} if person is None else {"person": person}
    study = aegis.Study(visited.append_column("who", who), policy(**changes))
    study.report(study.rank(), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text().replace("\u00a0", " ")
    limit = "rows: 90 rows" if person is None else "persons: 22 persons"  # 30 % of 75, down
    assert f"suppressed, at most 30 % of the {limit}." in page
