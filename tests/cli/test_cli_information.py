"""Summaries that carry less than raw joints, and evidence that contradicts itself."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from functools import partial

import pytest

from aegis.papers.reconstruction import Settings
from aegis.summary import load_bundle, save_bundle

POLICY = """\
version: 1
label: income
measure: adjusted-pillai
privacy: {k: 5, suppression: 0.05}
attributes:
  age:
    role: quasi-identifier
    masks: [{bucketize: {width: 8}}, {bucketize: {width: 12}}, {quantiles: {count: 3}}, suppress]
  sex: {role: feature}
"""


MADE = {}
"""The summaries that `hidden` has written, by file: all tests read the same."""


@pytest.fixture
def hidden(shell, folder):
    """Write summaries of one table in all settings."""
    folder.joinpath("hidden.yaml").write_text(POLICY)
    for name in ("raw", "histogram", "nothing"):
        path = folder / f"{name}.aegis"
        if path.name in MADE:
            path.write_bytes(MADE[path.name])
            continue
        words = ("summarize", "table.csv", "-p", "hidden.yaml", "-o", path.name)
        assert shell(*words, "--information", name).code == 0
        MADE[path.name] = path.read_bytes()
    return folder


def test_a_summary_says_what_it_carries(shell, hidden):
    words = ("summarize", "table.csv", "-p", "hidden.yaml", "--information")
    page = shell(*words, "nothing", "-o", "n.aegis")
    assert "Counts in the file: rows by masked value and label, of each attribute" in page.out
    found = json.loads(shell(*words, "histogram", "-o", "h.aegis", "-f", "json").out)
    assert found["information"] == "histogram"
    assert found["attributes"]["age"]["values"] == 48
    refused = shell(*words, "some", "-o", "s.aegis")
    assert refused.code == 2
    assert "Unknown information setting 'some'" in refused.err
    assert not hidden.joinpath("s.aegis").exists()


def test_advice_is_the_same_and_says_what_it_is_measured_against(shell, hidden):
    words = ("-p", "hidden.yaml", "--generate", "20", "-f", "json")
    known, less = (
        json.loads(shell("advise", f"{name}.aegis", *words).out) for name in ("raw", "nothing")
    )
    assert [(r["name"], r["score"]) for r in known["ranking"]] == [
        (r["name"], pytest.approx(r["score"])) for r in less["ranking"]
    ]
    assert any(
        "no raw counts of unmasked values (information: nothing)" in text
        for text in less["warnings"]
    )


@pytest.mark.parametrize("name", ["histogram", "nothing"])
def test_a_reconstruction_without_a_truth(shell, hidden, name):
    page = shell("reconstruct", f"{name}.aegis", "-a", "age", "--plot", "m.svg")
    assert page.code == 0
    assert "the true one is not in the summary" in page.out
    assert "Total variation" not in page.out
    assert "truth " not in hidden.joinpath("m.svg").read_text().lower().split("white")[0]
    known = json.loads(
        shell("reconstruct", "raw.aegis", "-a", "age", "--know", name, "-f", "json").out
    )
    less = json.loads(shell("reconstruct", f"{name}.aegis", "-a", "age", "-f", "json").out)
    assert less["know"] == name
    assert (less["truth"], less["total_variation"], less["measure"]["true"]) == (None, None, None)
    assert less["values"] == known["values"]
    for row, wanted in zip(less["table"], known["table"], strict=True):
        assert row == pytest.approx(wanted, abs=1e-6)
    for bound in ("estimate", "lower", "upper", "finest_mask"):
        assert less["measure"][bound] == pytest.approx(known["measure"][bound], abs=1e-6)
    rows = list(
        csv.DictReader(
            io.StringIO(shell("reconstruct", f"{name}.aegis", "-a", "age", "-f", "csv").out)
        )
    )
    assert len(rows) == 48
    assert {row["truth:high"] for row in rows} == {""}


def test_more_than_a_summary_carries(shell, hidden):
    for name, know, told in (
        ("nothing", "histogram", "histogram"),
        ("histogram", "raw", "raw joint"),
    ):
        refused = shell("reconstruct", f"{name}.aegis", "-a", "age", "--know", know)
        assert (refused.code, refused.out) == (2, "")
        assert f"does not contain the {told} of 'age'" in refused.err
    # What a mask shows as it is was never withheld.
    assert shell("reconstruct", "nothing.aegis", "-a", "sex", "--know", "raw").code == 0


def test_parts_are_merged_before_anything_is_withheld(shell, hidden):
    refused = shell("merge", "nothing.aegis", "raw.aegis", "-o", "both.aegis")
    assert refused.code == 2
    assert "carries nothing of an attribute" in refused.err
    words = ("summarize", "table.csv", "-p", "hidden.yaml", "-o", "m.aegis")
    assert "not the raw joints" in shell(*words, "--like", "nothing.aegis").err


def altered(folder, change) -> None:
    """Write a summary whose histogram of age is not that of its masks."""
    summary = load_bundle(folder / "histogram.aegis")
    age = summary.attributes["age"]
    counts = change(age.domain.counts.copy(), age.domain.cells)
    wrong = replace(age, domain=replace(age.domain, counts=counts))
    attributes = {**summary.attributes, "age": wrong}
    save_bundle(replace(summary, attributes=attributes), folder / "wrong.aegis")


def more(counts, cells):
    counts[0] += 7
    return counts


def moved(counts, cells):
    rows = counts[cells == 0].sum()
    counts[cells == 0] = 0
    counts[-1] += rows
    return counts


@pytest.mark.parametrize("method", ["all-evidence", "ipf", "smooth"])
@pytest.mark.parametrize("change", [more, moved])
def test_constraints_that_contradict_each_other(shell, hidden, change, method):
    altered(hidden, change)
    refused = shell("reconstruct", "wrong.aegis", "-a", "age", "--method", method)
    assert (refused.code, refused.out) == (2, "")
    assert "attribute 'age': its histogram does not add up to its cells" in refused.err


def test_what_does_not_converge_is_said_and_kept(shell, hidden, monkeypatch):
    monkeypatch.setattr(
        "aegis.papers.estimates.deviation.Settings", partial(Settings, max_sweeps=1)
    )
    page = shell("reconstruct", "raw.aegis", "-a", "age", "--method", "ipf", "--know", "nothing")
    assert page.code == 0
    assert "did not converge after 1 iteration" in page.out
    assert "Note:" in page.err
    found = json.loads(
        shell(
            "reconstruct",
            "raw.aegis",
            "-a",
            "age",
            "--method",
            "ipf",
            "--know",
            "nothing",
            "-f",
            "json",
        ).out
    )
    assert not found["converged"]
    assert found["residual"] > 0
    assert len(found["table"]) == 48


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ("{laplace: {epsilon: 0, lower: 17, upper: 90}}", "'epsilon' is 0"),
        ("{laplace: {epsilon: -1, lower: 17, upper: 90}}", "'epsilon' is -1"),
        ("{randomised_response: {epsilon: -2}}", "'epsilon' is -2"),
        ("{pram: {values: [a, b], matrix: [[0.9, 0.2], [0, 1]]}}", "probabilities that sum to one"),
        (
            "{pram: {values: [a, b], matrix: [[1.2, -0.2], [0, 1]]}}",
            "probabilities that sum to one",
        ),
    ],
)
def test_noise_that_is_none(shell, folder, mask, message):
    folder.joinpath("noise.yaml").write_text(
        f"version: 1\nlabel: income\nattributes:\n  age: {{role: feature, masks: [{mask}, suppress]}}\n"
    )
    for words in (("reconstruct", "table.csv", "-a", "age"), ("evaluate", "table.csv")):
        refused = shell(*words, "-p", "noise.yaml")
        assert (refused.code, refused.out) == (2, "")
        assert message in refused.err


def test_noise_on_text(shell, folder):
    folder.joinpath("noise.yaml").write_text(
        "version: 1\nlabel: income\nattributes:\n"
        "  sex: {role: feature, masks: [{add_uniform: {amount: 2}}, suppress]}\n"
    )
    refused = shell("reconstruct", "table.csv", "-a", "sex", "-p", "noise.yaml")
    assert refused.code == 2
    assert "does not fit a column of text" in refused.err


def test_noise_keeps_the_raw_joints(shell, folder):
    folder.joinpath("noise.yaml").write_text(
        "version: 1\nlabel: income\nattributes:\n"
        "  age: {role: feature, masks: [{add_uniform: {amount: 2}}, suppress]}\n"
    )
    words = ("summarize", "table.csv", "-p", "noise.yaml", "-o", "n.aegis")
    refused = shell(*words, "--information", "nothing")
    assert refused.code == 2
    assert "needs the raw joint" in refused.err
    assert not folder.joinpath("n.aegis").exists()


def test_estimates_leave_place_for_names(shell, hidden, monkeypatch):
    """On a narrow terminal, figures of estimates do not cut the names to one letter a line."""
    monkeypatch.setenv("COLUMNS", "80")
    words = ("advise", "raw.aegis", "-p", "hidden.yaml", "--generate", "3", "--measure", "mi")
    page = shell(*words, "--estimate", "aegis+1d", "--explain").out
    lines = [line.split() for line in page.splitlines()]
    assert any(words[:3] == ["#", "name", "score"] for words in lines)
    assert any(words[:2] == ["attribute", "masked"] and "between" in words for words in lines)


def test_listed_methods_leave_place_for_descriptions(shell, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = shell("anonymizers").out.splitlines()
    assert any(line.endswith("Adds noise to numbers, and") for line in lines)
