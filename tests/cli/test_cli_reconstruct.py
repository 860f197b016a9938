"""`aegis reconstruct`: the table, the heat map and what goes wrong."""

from __future__ import annotations

import csv
import io
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from cli_support import plain
from rich.cells import cell_len

from aegis.papers.commands.estimate_tables import shorten, shorten_all
from aegis.papers.commands.heat_map import SHADES, HeatMap


def heat_map(values: int = 100, name: str = "<b>&") -> HeatMap:
    random = np.random.default_rng(0)
    truth = random.integers(0, 50, (values, 2)).astype(float)
    return HeatMap(
        "Rows", "age", [f"{name}{i}" for i in range(values)], ["p", "q"], truth[::-1], truth
    )


def test_heat_map_is_as_wide_as_told_and_escaped():
    picture = heat_map()
    lines = picture.text().splitlines()
    assert len(lines) == 5
    assert all(len(line) <= 31 + 64 for line in lines[:4])
    assert set("".join(line[31:] for line in lines[:4])) <= set(SHADES)
    tree = ElementTree.fromstring(picture.svg())
    cells = [e for e in tree if e.tag.endswith("rect")]
    assert len(cells) == 1 + 4 * 101  # each band has a frame
    assert "<b>" not in picture.svg()
    assert picture.svg() in picture.html()
    assert "http" not in picture.html().replace("http://www.w3.org/2000/svg", "")


def test_darkest_cell_is_where_a_class_has_most_rows():
    picture = heat_map(10, "v")
    lines = picture.text().splitlines()
    truth = picture.truth[:, 0]
    estimate, shown = lines[0][31:].ljust(10), lines[1][31:].ljust(10)
    assert SHADES[-1] in shown
    assert shown[int(truth.argmax())] == SHADES[-1]
    assert estimate[9 - int(truth.argmax())] == SHADES[-1]


def test_many_values_are_put_together_and_one_is_enough():
    assert len(heat_map(1000).text().splitlines()[0]) <= 31 + 64
    assert heat_map(1).text().count("\n") == 4
    zero = HeatMap("t", "a", ["x"], ["p"], np.zeros((1, 1)), np.zeros((1, 1)))
    assert "x" in zero.svg()


def test_table_shows_estimate_and_truth(shell):
    result = shell("reconstruct", "table.aegis", "--attribute", "age")
    assert result.code == 0
    for text in ("Total variation distance", "Heat map", "truth", "Guaranteed bounds"):
        assert text in result.out
    assert SHADES[-1] in result.out


def test_csv_holds_every_value(shell):
    result = shell("reconstruct", "table.aegis", "-a", "age", "-f", "csv", "-q")
    rows = list(csv.DictReader(io.StringIO(result.out)))
    assert len(rows) == 48
    assert sum(int(row["truth:high"]) + int(row["truth:low"]) for row in rows) == 240
    assert sum(float(row["estimate:high"]) for row in rows) == pytest.approx(
        sum(int(row["truth:high"]) for row in rows)
    )


def test_plots_are_written(shell, folder):
    assert shell("reconstruct", "table.aegis", "-a", "zip", "--plot", "m.svg").code == 0
    ElementTree.fromstring((folder / "m.svg").read_text())
    assert shell("reconstruct", "table.aegis", "-a", "zip", "--plot", "m.html").code == 0
    assert "<svg" in (folder / "m.html").read_text()
    assert shell("reconstruct", "table.aegis", "-a", "zip", "--plot", "m.svg").code == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("table.csv", "-a", "age"), "needs a policy"),
        (("table.aegis", "-a", "aeg"), "Did you mean 'age'"),
        (("table.aegis", "-a", "age", "--know", "much"), "information setting"),
        (("table.aegis", "-a", "age", "--method", "closed-form"), "closed-form"),
        (("table.aegis", "-a", "age", "--measure", "adjusted-pillai"), "whole configurations"),
        (("table.aegis", "-a", "age", "--plot", "m.png"), "m.png"),
        (("table.aegis", "-a", "diagnosis"), "identity"),
    ],
)
def test_bad_input_gets_one_error(shell, words, message):
    result = shell("reconstruct", *words)
    assert result.code == 2
    assert message in result.err
    assert not result.out


def test_audit_accounts_for_the_noise_of_a_configuration(shell, folder):
    noise = "{geometric: {epsilon: 2, lower: 18, upper: 65}}"
    (folder / "noise.yaml").write_text(
        f"configurations: {{n: {{age: {noise}, sex: suppress, zip: suppress}}}}\n"
    )
    words = ("apply", "table.csv", "-p", "policy.yaml", "-c", "noise.yaml", "-o", "n.csv")
    applied = shell(*words)
    assert applied.code == 0, applied.err
    assert "epsilon 2; not covered: " in applied.out
    assert "true values" in applied.out
    audited = shell("audit", "n.csv", "-p", "policy.yaml", "-c", "noise.yaml")
    assert "epsilon 2" in audited.out
    assert shell("audit", "n.csv", "--quasi-identifiers", "age", "-c", "noise.yaml").code == 2


def test_values_learnt_from_the_data_are_named_wherever_epsilon_is(shell, folder):
    text = (folder / "policy.yaml").read_text()
    noise = "{randomised_response: {epsilon: 2}}"
    zips = "zip: {role: quasi-identifier, masks: [{blur: {keep: 3}}, suppress]}"
    assert zips in text
    (folder / "learnt.yaml").write_text(
        text.replace(
            zips,
            f"zip: {{role: quasi-identifier, masks: [suppress]}}\n  extra: {{role: feature, masks: [{noise}]}}",
        )
    )
    note = "epsilon 2 of 'extra' does not cover which values occur"
    advised = shell("advise", "table.csv", "-p", "learnt.yaml", "-o", "learnt-best.yaml")
    assert advised.code == 0, advised.err
    assert note in plain(advised.out)
    explained = shell("advise", "table.csv", "-p", "learnt.yaml", "--explain")
    assert "values: [...]}}" in plain(explained.out)
    release = ("-p", "learnt.yaml", "-c", "learnt-best.yaml")
    applied = shell("apply", "table.csv", *release, "-o", "l.csv", "--certificate", "l.json")
    assert applied.code == 0, applied.err
    assert note in plain(applied.out)
    assert "extra (which values occur)" in plain(applied.out)
    audited = shell("audit", "l.csv", *release)
    assert note in plain(audited.err)
    assert "extra (which values occur)" in plain(audited.out)
    account = json.loads((folder / "l.json").read_text())["privacy"]["differential_privacy"]
    assert account["notes"][0].startswith(note)
    assert not account["covers_release"]


def test_ranking_marks_ties(shell):
    result = shell("advise", "table.csv", "-p", "policy.yaml", "--explain")
    assert "standard error of the first score" in result.out
    told = shell("advise", "table.csv", "-p", "policy.yaml", "-f", "csv", "-q").out
    rows = list(csv.DictReader(io.StringIO(told)))
    assert rows[0]["tied_with_best"] == "true"
    assert float(rows[0]["stderr"]) > 0


NARROW = 80


def shown_at(shell, folder, monkeypatch, *, classes: int, value: str, name: str, width=NARROW):
    """Run `reconstruct` on 96 values at a narrow page, and return its lines."""
    rows = [
        f"{value.format(i % 96)},{name.format((i * 7 + i // 96) % classes)}" for i in range(960)
    ]
    (folder / "wide.csv").write_text("\n".join(["v,y", *rows]) + "\n", encoding="utf-8")
    (folder / "wide.yaml").write_text(
        "version: 1\nlabel: y\nprivacy: {k: 2}\n"
        "attributes: {v: {role: feature, masks: [{keep_frequent: {count: 9}}, suppress]}}\n"
    )
    monkeypatch.setenv("COLUMNS", str(width))
    result = shell("reconstruct", "wide.csv", "-p", "wide.yaml", "-a", "v")
    assert result.code == 0, result.err
    return result.out.splitlines()


LONG = "the long name of number {} in a list of many names"


@pytest.mark.parametrize(
    ("classes", "name", "value"),
    [
        (2, "c{}", "v{}"),
        (2, "ein sehr langer 名前です {}", LONG),
        (3, "quite a long class name {}", LONG),
        (3, "ein sehr langer 名前です {}", "v{}"),
        (4, "quite a long class name {}", "v{}"),
        (4, "c{}", LONG),
        (5, "c{}", "v{}"),
        (5, "ein sehr langer 名前です {}", LONG),
    ],
)
def test_a_narrow_page_keeps_values_and_bars(shell, folder, monkeypatch, classes, name, value):
    lines = shown_at(shell, folder, monkeypatch, classes=classes, value=value, name=name)
    assert all(cell_len(line) <= NARROW for line in lines)
    table = lines[lines.index("Estimated and true rows") + 1 : lines.index(heat_title(lines))]
    blocks = [i for i, line in enumerate(table) if line.startswith("──")]
    for block in blocks:  # each has every value, shown as no other is
        rows = [re.split(r" {2,}", line) for line in table[block + 1 : block + 25]]
        assert len({row[0] for row in rows}) == 24
        assert {len(row) for row in rows} == {1 + 2 * table[block - 1].count("truth")}
    assert sum(line.count("truth") for line in table) == classes
    assert len(blocks) <= classes
    bars = lines[lines.index(heat_title(lines)) + 1 :]
    assert len(bars) == 2 * classes + 1
    starts = {
        cell_len(bar[: bar.index(word)])
        for bar in bars
        for word in ("estimate ", "truth  ")
        if word in bar
    }
    assert len(starts) == 1
    assert len({bar.split("estimate")[0].strip() for bar in bars[:-1:2]}) == classes


def heat_title(lines: list[str]) -> str:
    return next(line for line in lines if line.startswith("Heat map"))


@pytest.mark.parametrize("width", [32, 40, 60, 95, 120, 300])
def test_other_widths(shell, folder, monkeypatch, width):
    lines = shown_at(
        shell, folder, monkeypatch, classes=4, value="value {}", name="class {}", width=width
    )
    start = lines.index("Estimated and true rows")
    assert all(cell_len(line) <= width for line in lines[start:])
    assert sum(line.startswith("value ") for line in lines[start:]) >= 24
    if width >= 120:
        assert "class 3: estimate" in "".join(lines)


def test_shortened_texts_stay_apart():
    assert shorten("abc", 3) == "abc"
    assert shorten("abcd", 3) == "ab…"
    assert shorten("名前です", 5) == "名前…"
    assert shorten_all(["number one", "number two"], 8) == ["…one", "…two"]
    assert shorten_all(["one of them", "two of them"], 5) == ["one…", "two…"]
    assert shorten_all(["same", "same"], 3) == ["sa…", "sa…"]
