"""What advice says about how much of the ranking it shows, and about the table before masking."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_support import plain

from aegis.cli.main import run
from aegis.words import cut


def test_a_search_says_how_many_combinations_it_went_through(shell):
    words = ("advise", "table.csv", "-p", "policy.yaml", "--search", "--top", "2")
    shown = plain(shell(*words).out)
    assert "Searched 16 combinations of masks; the best 2 that meet the rule are listed" in shown
    assert "PUD: how much masking changes the score of an attribute by itself, on average" in shown


def test_masks_of_columns_with_long_names_are_shown(shell, folder):
    """Names as long as questions of a survey left no room for the masks."""
    name = "Please say in which of these postal areas you have lived for most of the last year"
    for file in ("table.csv", "policy.yaml"):
        text = re.sub(r"\bzip\b", name, (folder / file).read_text(), count=1)
        (folder / f"long_{file}").write_text(text)
    shown = plain(shell("advise", "long_table.csv", "-p", "long_policy.yaml").out)
    assert f" {cut(name)} blur(keep=3) " in shown


def test_names_that_begin_with_the_same_words_differ_where_they_are_cut():
    asked = "How satisfied have you been in the last twelve months with your"
    assert len({cut(f"{asked} {what}") for what in ("pay", "colleagues", "health")}) == 3
    assert max(len(cut("x" * n)) for n in range(99)) == 40


def test_a_single_combination_is_not_called_the_best_of_many(shell, folder):
    lines = (folder / "policy.yaml").read_text().splitlines()
    one = [re.sub(r"masks: \[.*\]", "masks: [suppress]", line) for line in lines]
    (folder / "one.yaml").write_text("\n".join(one))
    said = plain(shell("advise", "table.csv", "-p", "one.yaml").out)
    assert "The policy allows no other combination of masks." in said
    assert "etter ones may exist" not in said


def test_record_level_releases_are_shown_however_low_they_rank(shell):
    words = ("advise", "table.csv", "-p", "policy.yaml", "--generate", "20")
    words += ("--with", "mdav,mondrian", "--top", "1")
    whole = json.loads(shell(*words, "--format", "json", "--top", "0").out)["ranking"]
    ranks = {one["name"]: place + 1 for place, one in enumerate(whole)}
    for name in ("mdav", "mondrian"):
        assert f" {ranks[name]} {name} " in plain(shell(*words).out)
    cut = json.loads(shell(*words, "--format", "json").out)["ranking"]
    assert {one["name"] for one in cut} == {whole[0]["name"], "mdav", "mondrian"}


def test_a_release_that_suppresses_a_whole_class_says_so_where_its_figure_stands(shell, folder):
    """The score counts all rows, so the best combination may suppress just the rows of a rare class."""
    rows = [
        f"{i % 4},{'none' if i >= 12 else 'cause ' + str(i % 4)},{'no' if i >= 12 else 'yes'}"
        for i in range(1200)
    ]
    (folder / "rare.csv").write_text("\n".join(["ward,cause,died", *rows]) + "\n")
    (folder / "rare.yaml").write_text(
        """version: 1
label: died
privacy: {k: 5, suppression: 0.02}
attributes:
  ward: {role: feature}
  cause: {role: quasi-identifier, masks: [identity, suppress]}
"""
    )
    said = " ".join(plain(shell("advise", "rare.csv", "-p", "rare.yaml").out).split())
    assert "keeps 0.0 %" in said
    assert (
        "The release suppresses all rows of a class of died, so no model can learn this class."
        in said
    )
    found = json.loads(shell("advise", "rare.csv", "-p", "rare.yaml", "--format", "json").out)
    [reason] = [text for text in found["warnings"] if "no utility left" in text]
    assert "Lower `suppression` in the policy" in reason
    assert "do not predict" not in reason


def test_a_search_does_not_know_the_rank_of_what_stands_below(shell):
    words = ("advise", "table.csv", "-p", "policy.yaml", "--search", "--with", "mdav", "--top", "1")
    listed = json.loads(shell(*words, "--format", "json").out)["ranking"]
    shown = plain(shell(*words).out)
    if listed[0]["name"] == "mdav":
        assert " 1 mdav " in shown
        assert " 2 best-1 " in shown
    else:
        assert " >1 mdav " in shown
        assert "#: >1 is below what the search lists" in shown


def test_a_report_names_the_finest_masks_where_the_table_is_not_counted_as_it_is(shell, folder):
    """The policy's postcodes have no `identity`: unmasked classes are not counted."""
    assert shell("report", "table.csv", "-p", "policy.yaml", "-o", "r.html").code == 0
    page = folder.joinpath("r.html").read_text()
    assert "with the finest masks" in page
    assert "efore masking" not in page
    rules = folder.joinpath("policy.yaml").read_text()
    folder.joinpath("whole.yaml").write_text(
        rules.replace("masks: [{blur: {keep: 3}}, suppress]", "masks: [identity, suppress]")
    )
    assert shell("report", "table.csv", "-p", "whole.yaml", "-o", "w.html").code == 0
    page = folder.joinpath("w.html").read_text()
    assert "before masking" in page
    assert "with the finest masks" not in page.partition('id="reading"')[0]
    raw = json.loads(shell("audit", "table.csv", "-p", "whole.yaml", "--format", "json").out)
    assert f"{raw['uniques']} before masking" in page


def test_legends_leave_it_to_the_page_where_to_break(shell):
    shown = shell("advise", "table.csv", "-p", "policy.yaml", "--with", "mdav").out.splitlines()
    said = "left out: rows that the method itself dropped; rows of classes that fail the rule come"
    assert any(line.startswith(said) and line.endswith("on top.") for line in shown)


def test_help_says_that_a_certificate_goes_with_a_file(shell):
    assert "with --output, not with --into" in plain(
        "".join(c for c in shell("apply", "--help").out if c not in "│╭╮╰╯─")
    )


def test_the_figure_of_a_class_of_few_rows_is_doubted_where_it_stands(shell, folder):
    """Cautions about privacy come first, and a short page has no room for those after them."""
    rows = [f"{20 + i % 9},{i % 4},{'yes' if i < 9 else 'no'}" for i in range(400)]
    (folder / "few.csv").write_text("\n".join(["age,ward,back", *rows]) + "\n")
    assert shell("init", "few.csv", "--label", "back", "-o", "few.yaml").code == 0
    for more in ((), ("--explain", "--report", "few.html")):
        said = plain(shell("advise", "few.csv", "-p", "few.yaml", *more).out)
        doubt = "A class of back has fewer than 25 rows, so this figure is uncertain."
        assert said.replace("\n", " ").count(doubt) == 1
    page = (folder / "few.html").read_text()
    [figure] = re.findall(r"<dt>Expected AUC</dt>.*?</div>", page, re.DOTALL)[:1]
    assert "A class of back has fewer than 25 rows, so this figure is uncertain" in html.unescape(
        figure
    )


@pytest.mark.parametrize("more", [[], ["--explain"]])
def test_rows_without_a_label_are_counted(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = ["yes", "no", None, "yes"] * 30
    pq.write_table(pa.table({"a": [*range(4)] * 30, "y": labels}), tmp_path / "t.parquet")
    policy = {
        "version": 1,
        "label": "y",
        "privacy": {"k": 2},
        "attributes": {"a": {"role": "quasi-identifier", "masks": ["identity", "suppress"]}},
    }
    (tmp_path / "p.yaml").write_text(json.dumps(policy))
    words = ["advise", str(tmp_path / "t.parquet"), "-p", str(tmp_path / "p.yaml"), *more]
    assert run(words) == 0
    assert "120 rows, 30 of them without a label" in capsys.readouterr().out
