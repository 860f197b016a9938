"""The public door: one table and one policy, read once, asked many times."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aegis
from aegis.advisor.advise import outside_of_release
from aegis.advisor.label_leaks import ResidualRisks
from aegis.advisor.released import ReleasedRows
from aegis.errors import DataError, PolicyError
from aegis.policy import load_policy
from aegis.privacy import report as privacy_report
from aegis.report import added_sections
from aegis.requests import SearchOptions
from aegis.safe.ledger import Ledger
from aegis.safe.protect import budget_of, load_protected
from aegis.sources import Source
from aegis.study import subject
from aegis.summary import builder
from aegis.summary.outside import Outside

ROWS = 240


def table() -> pa.Table:
    """A label that follows both attributes."""
    age = [20 + (i * 7) % 40 for i in range(ROWS)]
    sex = ["f" if i % 3 else "m" for i in range(ROWS)]
    rich = [int(a > 40) ^ int(i % 11 == 0) for i, a in enumerate(age)]
    return pa.table({"age": age, "sex": sex, "rich": rich})


def policy(**changes: Any) -> aegis.Policy:
    masks = ["identity", {"bucketize": {"width": 10}}, "suppress"]
    return aegis.load_policy(
        {
            "version": 1,
            "label": "rich",
            "privacy": {"k": 4},
            "attributes": {
                "age": {"role": "quasi-identifier", "masks": masks},
                "sex": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
            },
        }
        | changes
    )


def test_every_question_shares_one_summary(summaries: list[str]) -> None:
    # One of the table, and one of the rows that each of six releases keeps.
    study = aegis.Study(table(), policy(measure="adjusted-pillai"))
    assert summaries == []
    ranked, searched = study.rank(), study.search(prefer="score")
    front = study.front("k=2,4,8")
    assert study.estimate(searched.best.configuration)[0].pud >= 0
    assert "<!doctype html>" in study.report(searched)
    assert len(summaries) == 1 + 6
    assert [point.value for point in front.points] == [2, 4, 8]
    assert searched.best.score == ranked.best.score  # six combinations: all are drawn
    assert searched.optimal


@pytest.mark.parametrize("method", ["nonsense", ""])
@pytest.mark.parametrize("know", ["raw", "histogram"])
def test_an_unknown_method_of_an_estimate_is_refused_whatever_is_known(
    method: str, know: str
) -> None:
    """Of unmasked counts, which need no method, any name was accepted."""
    study = aegis.Study(table(), policy())
    with pytest.raises(PolicyError, match="Unknown reconstruction method") as caught:
        study.estimate(study.search().best.configuration, know=know, method=method)
    assert "all-evidence, smooth, channel-em, closed-form, ipf, sampling" in str(caught.value)


def test_a_ranking_counts_exactly_where_the_study_does_not(
    summaries: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = aegis.Study(table(), policy())
    assert study.rank(exact=True).ranking == study.rank().ranking
    assert len(summaries) == 1 + 2, "all rows were counted, and those of two releases"
    monkeypatch.setattr(subject, "SAMPLE_ROWS", 40)
    study = aegis.Study(table(), policy())
    sampled, exact = study.rank(), study.rank(exact=True)
    assert exact.best.score == aegis.Study(table(), policy(), exact=True).rank().best.score
    assert exact.best.score != sampled.best.score
    assert study.rank().ranking == sampled.ranking
    with pytest.raises(DataError, match="no rows to count"):
        aegis.Study(study.summary).rank(exact=True)


def test_a_release_needs_no_summary_of_the_table(summaries: list[str], tmp_path: Path) -> None:
    best = aegis.search(table(), policy()).best
    summaries.clear()
    study = aegis.Study(table(), policy())
    release = study.apply(best)
    assert summaries == []
    assert release.audit.report.k >= 4
    assert study.audit().report.k < 4


def test_an_advice_is_applied_and_its_measure_certified(tmp_path: Path) -> None:
    study = aegis.Study(table(), policy())
    advice = study.search(measure="mi")
    out = tmp_path / "masked.parquet"
    release = study.apply(advice, out, certificate=tmp_path / "certificate.json")
    assert release.utility.measure == "mi"
    certificate = json.loads((tmp_path / "certificate.json").read_text())
    assert certificate["utility"]["measure"] == "mi"


@pytest.mark.parametrize("given", ["best.yaml", {"age": "suppress"}, None])
def test_what_is_no_configuration_is_refused(given: Any) -> None:
    with pytest.raises(PolicyError, match="is not a configuration") as refused:
        aegis.Study(table(), policy()).apply(given)
    assert "load_configurations" in str(refused.value)


def test_an_advice_carries_what_its_report_needs() -> None:
    study = aegis.Study(table(), policy())
    advice = study.rank()
    page = aegis.render_report(advice)
    assert 'id="privacy"' in page
    # A study has the summary at hand, too, and says what it gives away.
    told = aegis.render_report(advice, sections=added_sections(study.summary, advice))
    assert told == study.report(advice, values=False)
    classes = study.plan.classes({a.name: a.unmasked for a in study.summary.all_attributes})
    assert advice.privacy.before.to_dict() == privacy_report(classes).to_dict()
    assert advice.privacy.after.k == advice.best.smallest_class
    assert advice.to_dict()["privacy"]["after"]["k"] == advice.best.smallest_class


def test_a_summary_on_disk_goes_on_where_the_table_stopped(tmp_path: Path) -> None:
    study = aegis.Study(table(), policy())
    study.save(tmp_path / "small.aegis")
    again = aegis.Study(tmp_path / "small.aegis", policy())
    assert again.source is None
    assert again.rank().best.score == study.rank().best.score
    assert "a summary" in repr(again)


def test_exact_counts_classes_in_the_engine_where_memory_is_too_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`exact` once lost the counter of classes, and failed on tables of many cells."""
    whole = aegis.Study(table(), policy(), exact=True).rank()
    monkeypatch.setattr(builder, "count_cells", lambda *_, **__: None)
    study = aegis.Study(table(), policy(), exact=True)
    advice = study.rank()
    assert study.plan.in_engine
    assert advice.best.name == whole.best.name
    assert advice.best.smallest_class == whole.best.smallest_class


def test_a_record_level_release_reports_itself(tmp_path: Path) -> None:
    study = aegis.Study(table(), policy())
    page = tmp_path / "release.html"
    release = study.anonymize("mondrian", report=page)
    text = page.read_text(encoding="utf-8")
    assert f"{release.released_rows:,}" in text
    with pytest.raises(PolicyError, match="exists"):
        study.anonymize("mondrian", report=page)
    study.anonymize("mondrian", report=page, force=True)


def test_a_protected_summary_is_paid_for_from_the_library_too(tmp_path: Path) -> None:
    book = Ledger(tmp_path / "house.ledger", create=True)
    book.open_population("patients", ceiling=1.0, delta=1e-6)
    declared = policy(label={"column": "rich", "classes": [0, 1]})
    study, told = aegis.Study(table(), declared), tmp_path / "told.protected"
    named = {"ledger": book.path, "population": "patients"}
    with pytest.raises(PolicyError, match="go together"):
        study.protect(told, epsilon=1, delta=1e-6, ledger=book.path)
    assert not told.exists()
    made = study.protect(told, epsilon=1, delta=1e-6, public=["*"], **named)
    assert load_protected(told).protection == made.protection
    [entry] = book.entries("patients")
    assert entry.digest == sha256(told.read_bytes()).hexdigest()
    assert book.balance("patients").spent == pytest.approx(budget_of(1, 1e-6))


def test_the_same_part_is_not_added_up_twice(tmp_path: Path) -> None:
    part, twin = tmp_path / "part.aegis", tmp_path / "twin.aegis"
    aegis.Study(table(), policy()).save(part)
    twin.write_bytes(part.read_bytes())
    with pytest.raises(PolicyError, match="are the same summary"):
        aegis.merge_bundles([part, twin])
    assert aegis.merge_bundles([part]).rows == ROWS


def outside_part(uncovered: ResidualRisks) -> Outside:
    return Outside(**{entry.name: getattr(uncovered, entry.name) for entry in fields(Outside)})


@pytest.mark.parametrize("columns", [("age", "sex"), ("age",)])
def test_rows_that_are_alone_are_those_that_the_query_counts(columns: tuple[str, ...]) -> None:
    """Small tables are read once, and their rows compared as codes."""
    shown = {"version": 1, "label": "rich", "privacy": {"k": 4, "suppression": 0.2}}
    masks = ["identity", {"bucketize": {"width": 10}}]
    own = {"age": {"role": "quasi-identifier", "masks": masks}, "sex": {"role": "feature"}}
    rule = aegis.load_policy(shown | {"attributes": {name: own[name] for name in columns}})
    study = aegis.Study(table(), rule)
    advice = study.rank()
    choice = {
        a.name: a.candidate(advice.best.configuration.masks[a.name])
        for a in study.summary.all_attributes
    }
    assert study._subject.coded_rows is not None
    by_query = outside_of_release(ReleasedRows(study.plan, study.source, rule), choice)
    assert by_query is not None
    assert outside_part(advice.uncovered) == by_query == study.apply(advice).audit.outside


def test_a_small_table_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, pairs, cells and rows that are alone come from one scan beside that of the label.

    The rows that the release keeps are then read masked.
    """
    monkeypatch.setattr("aegis.study.subject.with_utility", lambda advice, *_: advice)
    study, asked = aegis.Study(table(), policy()), []

    def counting(inner: Any) -> Any:
        def counted(self: Any, query: Any, **options: Any) -> Any:
            asked.append(query)
            return inner(self, query, **options)

        return counted

    for name in ("collect", "batches"):
        monkeypatch.setattr(Source, name, counting(getattr(Source, name)))
    assert study.rank().uncovered.unique_rows is not None
    assert len(asked) == 2


def test_conveniences_are_the_methods_of_a_study() -> None:
    study = aegis.Study(table(), policy(), seed=3)
    assert aegis.advise(table(), policy(), seed=3, generate_count=4).rows() == (
        study.rank(generate_count=4).rows()
    )
    assert aegis.search(table(), policy(), seed=3).rows() == study.search().rows()


@pytest.mark.parametrize(
    "question",
    [
        lambda study: study.apply(study.rank()),
        lambda study: study.anonymize("mdav"),
        lambda study: study.audit(),
        lambda study: study.evaluate(models=("lr",)),
    ],
)
def test_a_summary_answers_nothing_that_takes_rows(question: Any) -> None:
    study = aegis.Study(aegis.summarize(table(), policy()), policy())
    with pytest.raises(DataError, match="holds no rows"):
        question(study)


def test_a_summary_of_another_policy_is_refused_at_once() -> None:
    summary = aegis.summarize(table(), policy())
    other = policy(attributes={"age": {"role": "feature"}})
    with pytest.raises(PolicyError, match="made for another policy"):
        aegis.Study(summary, other)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda study: study.search(top=0), "at least 1"),
        (lambda study: study.search(objective="adjusted-pilai"), "Did you mean"),
        (lambda study: study.rank(methods=["mdva"]), "Did you mean"),
        (lambda study: study.evaluate(models=("rl",)), "rl"),
    ],
)
def test_bad_questions_are_refused_before_the_table_is_read(
    ask: Any, words: str, summaries: list[str]
) -> None:
    study = aegis.Study(table(), policy())
    with pytest.raises(PolicyError, match=words):
        ask(study)
    assert summaries == []


def test_a_study_shows_itself() -> None:
    study = aegis.Study(table(), policy())
    assert "not read yet" in repr(study)
    study.rank()
    assert "240 rows" in repr(study)
    assert "<table>" in study._repr_html_()


@pytest.mark.parametrize("names", [("n", "p"), ("rows", "alone"), ("v", "y"), ("aegis_n", "count")])
def test_columns_may_have_the_names_that_queries_use(names):
    first, second = names
    table = pa.table({first: [1, 2, 3, 4] * 10, second: ["u", "v"] * 20, "label": ["x", "z"] * 20})
    roles = {
        name: {"role": "quasi-identifier", "masks": ["identity", "suppress"]} for name in names
    }
    policy = load_policy({"version": 1, "label": "label", "privacy": {"k": 3}, "attributes": roles})
    study = aegis.Study(table, policy)
    assert study.search().best is not None
    assert study.apply(study.search()).audit.passed


def test_results_are_pickled_and_copied(tmp_path: Path) -> None:
    """Joblib and other processes need it; scores and figures held what no pickle takes."""
    study = aegis.Study(table(), policy())
    advice = study.advise()
    files: dict[str, Any] = {"output": tmp_path / "a.csv", "certificate": tmp_path / "a.json"}
    releases = study.apply(advice), study.apply(advice, **files)
    check = aegis.check_certificate(files["output"], files["certificate"])
    for result in (advice, advice.require_best(), *releases, study.audit(), check):
        for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
            assert again.to_dict() == result.to_dict()
    assert repr(pickle.loads(pickle.dumps(check))) == repr(check)
    for ranked in (advice, advice.require_best()):
        assert pickle.loads(pickle.dumps(ranked)) == ranked == copy.deepcopy(ranked)
    assert study.search(top=2) != advice


@pytest.mark.parametrize("name", ["advise", "search"])
def test_a_type_checker_knows_the_keywords_of_a_function(name: str) -> None:
    """They were `Any`, so that a misspelt one was found only when the call ran."""
    options = inspect.signature(getattr(aegis, name), eval_str=True).parameters["options"]
    [declared] = get_args(options.annotation)
    method = inspect.signature(getattr(aegis.Study, name)).parameters.values()
    keywords = {each.name for each in method if each.kind is not each.VAR_KEYWORD} - {"self"}
    if name == "search":
        keywords |= set(SearchOptions.__annotations__)
    assert set(declared.__annotations__) == keywords


def test_a_study_says_why_it_cannot_be_pickled() -> None:
    """Python named only the type of a lock."""
    study = aegis.Study(table(), policy())
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="Open a Study in each process"):
            copied(study)
    assert copy.copy(study).policy is study.policy
    again = aegis.Study(pickle.loads(pickle.dumps(study.summary)), study.policy)
    assert again.rank().require_best().score == study.rank().require_best().score


def test_arguments_of_wrong_types_are_refused() -> None:
    """An entry of a ranking gave its long description as the error, "lr" an unknown model "l"."""
    study = aegis.Study(table(), policy())
    advice = study.rank(generate_count=2)
    with pytest.raises(PolicyError, match=r"type Ranked is not.*give its `configuration`"):
        study.rank(advice.ranking)
    with pytest.raises(PolicyError, match="models is 'lr', of type str"):
        study.proxy(advice, models="lr")
    with pytest.raises(PolicyError, match="title is 3"):
        study.report(advice, title=3)


def test_a_relative_path_is_that_of_the_folder_in_which_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a change of the folder, the engine found no file."""
    pq.write_table(table(), tmp_path / "people.parquet")
    monkeypatch.chdir(tmp_path)
    study = aegis.Study("people.parquet", policy())
    monkeypatch.chdir(tmp_path.parent)
    assert study.source is not None
    assert study.source.origin == "people.parquet"
    assert study.apply(study.advise(), tmp_path / "out.parquet").audit.passed


def test_an_entry_of_a_ranking_says_its_masks() -> None:
    """A notebook showed 2,000 characters of nested records."""
    best = aegis.Study(table(), policy()).advise().require_best()
    first, *lines = repr(best).splitlines()
    assert first.startswith(f"Ranked('best-1': score {best.score:.6g}, ")
    assert first.endswith("% kept, rule met)")
    assert lines == [f"  {name}: {mask}" for name, mask in best.mask_texts.items()]
