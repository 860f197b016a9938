"""Masked tables under opaque names: what a publisher holds makes a file that advise ranks."""

from __future__ import annotations

import csv
import json
from collections import Counter

import pytest

pytestmark = pytest.mark.wings
POLICY = """\
version: 1
label: income
privacy: {k: 5, suppression: 0.05}
attributes:
  age: {role: quasi-identifier}
  sex: {role: feature}
"""


def rows_of(folder):
    with folder.joinpath("table.csv").open() as file:
        return list(csv.DictReader(file))


def write(folder, name, rows):
    with folder.joinpath(name).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def held(folder):
    """Three masked tables of the same rows, the histogram of age and what its masks stand for."""
    rows = rows_of(folder)
    ages = sorted({row["age"] for row in rows}, key=int)
    decade = {age: f"{int(age) // 10}x" for age in ages}
    half = {age: "young" if int(age) < 40 else "old" for age in ages}
    for name, of in (("one", decade), ("two", half), ("three", dict.fromkeys(ages, "*"))):
        table = [{"age": of[r["age"]], "sex": r["sex"], "income": r["income"]} for r in rows]
        write(folder, f"{name}.csv", sorted(table, key=lambda r: (r["age"], r["sex"], r["income"])))
    histograms = {
        column: {v: sum(r[column] == v for r in rows) for v in sorted({r[column] for r in rows})}
        for column in ("age", "sex")
    }
    mapping = {
        "M1": {
            "age": {m: [a for a in ages if decade[a] == m] for m in sorted(set(decade.values()))}
        },
        "M17": {"age": {m: [a for a in ages if half[a] == m] for m in sorted(set(half.values()))}},
    }
    folder.joinpath("h.json").write_text(json.dumps(histograms))
    folder.joinpath("mapping.json").write_text(json.dumps(mapping))
    folder.joinpath("held.yaml").write_text(POLICY)
    return folder


MASKED = ("--masked", "M1=one.csv", "--masked", "M17=two.csv", "--masked", "M3=three.csv")
KNOWN = ("--histograms", "h.json", "--mapping", "mapping.json")


def test_what_a_publisher_holds_is_ranked(shell, held):
    made = shell("publish", *MASKED, *KNOWN, "-p", "held.yaml", "-o", "held.published")
    assert made.code == 0, made.err
    words = ("advise", "held.published", "-p", "held.yaml", "--measure", "mi", "-f", "json")
    told = json.loads(shell(*words).out)
    assert [r["name"] for r in told["ranking"]] == ["M1", "M17", "M3"]
    assert told["best"] == "M1"
    assert told["unmasked"] is None
    assert told["ranking"][0]["pud"] is None
    assert told["ranking"][2]["attributes"]["age"]["score"] == pytest.approx(0, abs=1e-9)
    # The score of a masked table is that of the same masks on the raw one.
    raw = POLICY.replace(
        "age: {role: quasi-identifier}",
        "age: {role: quasi-identifier, masks: [{bucketize: {width: 10}}]}",
    )
    held.joinpath("raw.yaml").write_text(raw)
    own = json.loads(
        shell("advise", "table.csv", "-p", "raw.yaml", *words[4:], "--generate", "1").out
    )
    mine = next(r for r in told["ranking"] if r["name"] == "M1")["attributes"]["age"]["score"]
    assert own["ranking"][0]["attributes"]["age"]["score"] == pytest.approx(mine)


@pytest.mark.parametrize("case", ["aegis+1d", "aegis-1d", "sampling", "all-evidence"])
def test_the_deviation_from_the_raw_table_is_estimated_without_it(shell, held, case):
    assert shell("publish", *MASKED, *KNOWN, "-p", "held.yaml", "-o", "held.published").code == 0
    words = ("advise", "held.published", "-p", "held.yaml", "--measure", "mi", "-f", "json")
    told = json.loads(shell(*words, "--estimate", case).out)
    raw = POLICY.replace(
        "age: {role: quasi-identifier}",
        "age: {role: quasi-identifier, masks: [{bucketize: {width: 10}}]}",
    )
    held.joinpath("raw.yaml").write_text(raw)
    truth = json.loads(
        shell("advise", "table.csv", "-p", "raw.yaml", *words[4:], "--generate", "1").out
    )["ranking"][0]["pud"]
    low, high = next(r for r in told["ranking"] if r["name"] == "M1")["estimate"]["interval"]
    assert low - 1e-9 <= truth <= high + 1e-9
    page = shell(*words[:-2], "--estimate", case)
    assert "est. PUD" in page.out


def test_names_alone_suffice_to_rank_and_not_to_estimate(shell, held):
    assert shell("publish", *MASKED, "-p", "held.yaml", "-o", "held.published").code == 0
    words = ("advise", "held.published", "-p", "held.yaml", "--measure", "mi")
    assert shell(*words).code == 0
    refused = shell(*words, "--estimate", "aegis-1d")
    assert refused.code == 2
    assert "does not know which raw values" in refused.err
    assert "masked tables are ranked as they stand" in shell(*words, "--front", "k=2..3").err


def test_masked_tables_need_not_have_what_a_release_drops(shell, held):
    held.joinpath("held.yaml").write_text(POLICY + "  name: {role: identifier}\n")
    made = shell("publish", *MASKED, "-p", "held.yaml", "-o", "held.published")
    assert made.code == 0, made.err
    words = ("advise", "held.published", "-p", "held.yaml", "--measure", "mi", "-f", "json")
    assert json.loads(shell(*words).out)["best"] == "M1"


def test_the_rule_is_that_of_the_file(shell, held):
    assert shell("publish", *MASKED, "-p", "held.yaml", "-o", "held.published").code == 0
    held.joinpath("weak.yaml").write_text(POLICY.replace("k: 5", "k: 2"))
    refused = shell("advise", "held.published", "-p", "weak.yaml")
    assert refused.code == 2
    assert "--rule-override" in refused.err
    assert shell("advise", "held.published", "-p", "weak.yaml", "--rule-override").code == 0


def test_a_lock_holds_for_masked_tables(shell, held):
    made = shell("publish", *MASKED, "-p", "held.yaml", "-o", "held.published", "--locked")
    assert made.code == 0, made.err
    held.joinpath("weak.yaml").write_text(POLICY.replace("k: 5", "k: 2"))
    refused = shell("advise", "held.published", "-p", "weak.yaml", "--rule-override")
    assert refused.code == 2
    assert "is locked to the rule k-anonymity (k = 5)" in refused.err
    held.joinpath("strong.yaml").write_text(POLICY.replace("k: 5", "k: 6"))
    assert shell("advise", "held.published", "-p", "strong.yaml", "--rule-override").code == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, m: h["age"].update({"20": 99}), "adds up to"),
        (
            lambda h, m: h["age"].update(
                {
                    "18": h["age"]["18"] + 1,
                    "19": h["age"]["19"] - 1,
                    "64": h["age"]["64"] - 1,
                    "65": h["age"]["65"] + 1,
                }
            ),
            None,
        ),
        (
            lambda h, m: h["age"].update({"18": h["age"]["18"] + 1, "64": h["age"]["64"] - 1}),
            "rows that M1 shows as",
        ),
        (lambda h, m: m["M1"]["age"].pop("2x"), "does not cover 1 of its masked values: '2x'"),
        (lambda h, m: m["M1"]["age"]["2x"].append("64"), "gives '64' to '2x' and to '6x'"),
        (
            lambda h, m: m["M1"]["age"]["2x"].remove("20"),
            "assigns 1 raw values to no masked one: '20'",
        ),
        (lambda h, m: m.update(M9={}), "Unknown configuration of the mapping 'M9'"),
    ],
)
def test_what_contradicts_itself_is_refused(shell, held, change, message):
    histograms = json.loads(held.joinpath("h.json").read_text())
    mapping = json.loads(held.joinpath("mapping.json").read_text())
    change(histograms, mapping)
    held.joinpath("h.json").write_text(json.dumps(histograms))
    held.joinpath("mapping.json").write_text(json.dumps(mapping))
    result = shell("publish", *MASKED, *KNOWN, "-p", "held.yaml", "-o", "held.published")
    if message is None:  # moved within a group of every mask: nothing shows it
        assert result.code == 0
        return
    assert result.code == 2
    assert message in result.err
    assert not held.joinpath("held.published").exists()


def test_tables_of_other_rows_are_refused(shell, held):
    lines = held.joinpath("two.csv").read_text().splitlines(keepends=True)
    held.joinpath("two.csv").write_text("".join(lines[:-1]))
    refused = shell("publish", *MASKED, "-p", "held.yaml", "-o", "held.published")
    assert refused.code == 2
    assert "M1 has 240 rows and M17 has 239" in refused.err


def test_histograms_are_written_and_read_again(shell, held):
    words = ("histograms", "table.csv", "-p", "held.yaml", "-o")
    assert shell(*words, "out.json").code == 0
    wanted = json.loads(held.joinpath("h.json").read_text())
    assert json.loads(held.joinpath("out.json").read_text()) == wanted
    held.joinpath("csvs").mkdir()
    for name, rows in wanted.items():
        lines = [f"{name},rows", *(f"{v},{n}" for v, n in rows.items())]
        held.joinpath("csvs", f"{name}.csv").write_text("\n".join(lines) + "\n")
    folder = shell(*words, "made")
    assert folder.code == 0, folder.err
    files = {f.name: f.read_text() for f in held.joinpath("made").iterdir()}
    assert files == {f.name: f.read_text() for f in held.joinpath("csvs").iterdir()}
    again = shell(*words, "made", "--force")
    assert again.code == 2
    assert "made exists" in again.err
    known = ("--histograms", "csvs", "--mapping", "mapping.json")
    assert shell("publish", *MASKED, *known, "-p", "held.yaml", "-o", "held.published").code == 0


def test_a_table_is_read_as_its_policy_says(shell, folder):
    """A policy may name the texts that mean a missing value; without it, `age` is a column of texts."""
    written = folder.joinpath("table.csv").read_text().splitlines()
    age = written[0].split(",").index("age")
    rows = [line.split(",") for line in written]
    rows[1][age] = rows[2][age] = "unknown"
    folder.joinpath("gaps.csv").write_text("\n".join(map(",".join, rows)) + "\n")
    attributes = "attributes:\n  age: {role: quasi-identifier, masks: [{bucketize: {width: 10}}]}\n"
    head = POLICY.partition("attributes:")[0] + "reading: {null: [unknown]}\n"
    folder.joinpath("gaps.yaml").write_text(head + attributes)
    shell("histograms", "gaps.csv", "-p", "gaps.yaml", "-o", "gaps.json")
    assert "unknown" not in json.loads(folder.joinpath("gaps.json").read_text())["age"]
    shell("reconstruct", "gaps.csv", "--attribute", "age", "-p", "gaps.yaml")


def test_histograms_of_a_summary_are_those_of_its_table(shell, held):
    assert shell("summarize", "table.csv", "-p", "held.yaml", "-o", "s.aegis").code == 0
    assert shell("histograms", "s.aegis", "-o", "out.json").code == 0
    wanted = json.loads(held.joinpath("h.json").read_text())
    assert json.loads(held.joinpath("out.json").read_text()) == wanted
    refused = shell("histograms", "s.aegis", "-o", "nowhere/made")
    assert refused.code == 2
    assert "its folder does not exist" in refused.err


def test_a_report_is_written_of_masked_tables(shell, held):
    assert shell("publish", *MASKED, *KNOWN, "-p", "held.yaml", "-o", "held.published").code == 0
    words = ("report", "held.published", "-p", "held.yaml", "--measure", "mi", "-o", "r.html")
    made = shell(*words)
    assert made.code == 0, made.err
    assert "r.html" in made.out + made.err
    html = held.joinpath("r.html").read_text()
    assert "It is the best of 3 that meet the rule, among 3 masked tables." in html
    assert "standard error of" in html
    refused = shell(*words, "--evaluate", "lr", "--force")
    assert refused.code == 2
    assert "--evaluate was given" in refused.err
    left_out = shell("advise", *words[1:6], "--leave-out", "sex")
    assert left_out.code == 2
    assert "--leave-out was given" in left_out.err


@pytest.mark.parametrize("command", ["audit", "evaluate", "reconstruct"])
def test_other_commands_say_what_takes_masked_tables(shell, held, command):
    assert shell("publish", *MASKED, "-p", "held.yaml", "-o", "held.published").code == 0
    more = ("--attribute", "age") if command == "reconstruct" else ()
    refused = shell(command, "held.published", "-p", "held.yaml", *more)
    assert refused.code == 2
    assert "counts of masked tables" in refused.err
    assert "aegis advise and aegis report" in refused.err


def test_a_changed_file_is_refused(shell, held):
    assert shell("publish", *MASKED, "-p", "held.yaml", "-o", "held.published").code == 0
    data = bytearray(held.joinpath("held.published").read_bytes())
    place = data.index(b'"sha256": "') + 12
    data[place] = ord("0") if data[place] != ord("0") else ord("1")
    held.joinpath("held.published").write_bytes(bytes(data))
    refused = shell("advise", "held.published", "-p", "held.yaml")
    assert refused.code == 2
    assert "not what `aegis publish --masked` wrote" in refused.err


def contingency(folder, name, of):
    """Write the contingency tables of masked rows as a file."""
    cells = Counter(
        (attribute, row[attribute], row["income"]) for row in of for attribute in ("age", "sex")
    )
    rows = [
        dict(zip(("attribute", "value", "label", "rows"), (*cell, n), strict=True))
        for cell, n in cells.items()
    ]
    write(folder, name, rows)


@pytest.fixture
def cells(held):
    """The contingency tables of the masked tables, and the policy without a rule."""
    for name in ("one", "two", "three"):
        with held.joinpath(f"{name}.csv").open() as file:
            contingency(held, f"c_{name}.csv", list(csv.DictReader(file)))
    held.joinpath("open.yaml").write_text(POLICY.replace("{k: 5, suppression: 0.05}", "{}"))
    return held


CELLS = (
    "--contingency",
    "M1=c_one.csv",
    "--contingency",
    "M17=c_two.csv",
    "--contingency",
    "M3=c_three.csv",
)


@pytest.mark.parametrize("more", [(), ("--estimate", "aegis+1d"), ("--estimate", "aegis-1d")])
def test_contingency_tables_rank_as_their_masked_tables(shell, cells, more):
    for given, name in ((MASKED, "rows"), (CELLS, "cells")):
        made = shell("publish", *given, *KNOWN, "-p", "open.yaml", "-o", f"{name}.published")
        assert made.code == 0, made.err
    told = [
        json.loads(
            shell(
                "advise",
                f"{name}.published",
                "-p",
                "open.yaml",
                "--measure",
                "mi",
                "-f",
                "json",
                *more,
            ).out
        )["ranking"]
        for name in ("rows", "cells")
    ]
    for table, counts in zip(*told, strict=True):
        assert table.pop("smallest_class") > 0
        assert counts.pop("smallest_class") is None  # which values share a row is not known
        error = table.pop("stderr")
        assert (error is not None) == (not more)  # of an order by estimates they say nothing
        assert counts.pop("stderr") is None
        table.pop("tied_with_best")
        assert counts.pop("tied_with_best") is None
    assert told[0] == told[1]


def test_standard_errors_are_shown_or_it_is_said_why_not(shell, cells):
    for given, name in ((MASKED, "rows"), (CELLS, "cells")):
        made = shell("publish", *given, "-p", "open.yaml", "-o", f"{name}.published")
        assert made.code == 0, made.err
    words = ("-p", "open.yaml", "--measure", "mi")
    assert "standard error of the first score: " in shell("advise", "rows.published", *words).out
    counted = shell("advise", "cells.published", *words)
    assert "standard error of" not in counted.out
    assert "no standard errors: they need the rows" in counted.out


def test_contingency_tables_say_nothing_of_rows(shell, cells):
    refused = shell("advise", *_made(shell, "held.yaml"), "--measure", "mi")
    assert refused.code == 2
    assert "do not show which values share a row" in refused.err
    refused = shell("advise", *_made(shell, "open.yaml"))
    assert refused.code == 2
    assert "scores attributes together" in refused.err


def _made(shell, policy):
    made = shell("publish", *CELLS, "-p", policy, "-o", "c.published", "--force")
    assert made.code == 0, made.err
    return "c.published", "-p", policy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [*lines, lines[-1]], "twice"),
        (lambda lines: lines[:-1], "disagree"),
        (
            lambda lines: [lines[0], *(f"{x.rsplit(',', 1)[0]},-3" for x in lines[1:])],
            "-3 rows of 'age'",
        ),
        (lambda lines: ["a,b,c,d", *lines[1:]], "has no column 'attribute'"),
        (lambda lines: [*lines, "zip,1,no,3"], "Unknown attribute of contingency tables 'zip'"),
        (lambda lines: lines[:1], "add up to 0 rows"),
        (lambda lines: [*lines, "age,7x,,3"], "a row without label"),
    ],
)
def test_wrong_contingency_tables_are_refused(shell, cells, change, message):
    file = cells.joinpath("c_one.csv")
    file.write_text("\n".join(change(file.read_text().splitlines())) + "\n")
    refused = shell("publish", *CELLS, "-p", "open.yaml", "-o", "c.published")
    assert refused.code == 2
    assert message in refused.err
    assert not cells.joinpath("c.published").exists()


MADE = []
"""The file that `mixed` has written: all tests read the same."""


@pytest.fixture
def mixed(shell, cells):
    """M1 masks age and shows sex; M2 shows age and hides sex; M5 shows both; M17 has its counts."""
    raw = [{n: row[n] for n in ("age", "sex", "income")} for row in rows_of(cells)]
    write(cells, "raw.csv", raw)
    write(cells, "hidden.csv", [{n: row[n] for n in ("age", "income")} for row in raw])
    given = (
        "--masked",
        "M2=hidden.csv",
        "--masked",
        "M1=one.csv",
        "--masked",
        "M5=raw.csv",
        "--contingency",
        "M17=c_two.csv",
    )
    file = cells / "mix.published"
    if MADE:
        file.write_bytes(MADE[0])
    else:
        made = shell("publish", *given, *KNOWN, "-p", "open.yaml", "-o", file.name)
        assert made.code == 0, made.err
        MADE.append(file.read_bytes())
    return cells


def ranked(shell, *more):
    words = ("advise", "mix.published", "-p", "open.yaml", "--measure", "mi", "-f", "json")
    told = shell(*words, *more)
    assert told.code == 0, told.err
    return json.loads(told.out)


def test_masked_and_plain_columns_and_counts_are_ranked_together(shell, mixed):
    told = ranked(shell)
    assert told["masked_tables"]
    assert not told["optimal"]
    assert {r["name"]: r["smallest_class"] for r in told["ranking"]}["M17"] is None
    assert told["best"] == "M5"
    assert [r["name"] for r in told["ranking"]][-1] == "M17"


@pytest.mark.parametrize("case", ["aegis+1d", "aegis-1d", "sampling", "all-evidence"])
def test_a_table_without_masks_deviates_by_nothing(shell, mixed, case):
    told = ranked(shell, "--estimate", case)
    assert told["best"] == "M5"
    raw = told["ranking"][0]["estimate"]
    assert raw["interval"] == [0, 0]
    assert {a["method"] for a in raw["attributes"].values()} == {"exact"}


@pytest.mark.parametrize("case", ["aegis+1d", "aegis-1d"])
def test_what_an_estimate_does_not_tell_apart_is_in_the_order_of_the_measure(shell, mixed, case):
    told = ranked(shell, "--estimate", case)
    assert max(r["estimate"]["pud"] for r in told["ranking"]) < 1e-12  # theory, Theorem 1
    scores = [r["score"] for r in told["ranking"]]
    assert scores == sorted(scores, reverse=True)


def test_masked_tables_are_not_called_combinations_of_masks(shell, mixed):
    words = ("advise", "mix.published", "-p", "open.yaml", "--measure", "mi")
    page = shell(*words, "--report", "r.html")
    assert page.code == 0, page.err
    assert "4 masked tables; 4 meet the rule" in page.out
    assert "the file does not show which values occur in one row" in page.out
    html = mixed.joinpath("r.html").read_text()
    assert "It is the best of 4 that meet the rule, among 4 masked tables." in html
    for text in (page.out, html):
        assert "ombination" not in text
        assert "nmasked table" not in text
    assert "predictive value of the best masked table" in html
    assert "M5: 2 raw values" in html


def test_masked_tables_are_ranked_as_csv(shell, mixed):
    told = shell("advise", "mix.published", "-p", "open.yaml", "--measure", "mi", "-f", "csv")
    assert told.code == 0, told.err
    lines = list(csv.DictReader(told.out.splitlines()))
    assert lines[0]["name"] == "M5"
    by_name = {line["name"]: line for line in lines}
    assert by_name["M17"]["smallest_class"] == ""
    assert by_name["M2"]["mask:sex"] == "M2: hidden"
    assert "pud_finest" in lines[0]
    assert "pud" not in lines[0]


def test_values_that_a_histogram_names_without_a_row_change_nothing(shell, mixed):
    histograms = json.loads(mixed.joinpath("h.json").read_text())
    histograms["sex"]["X"] = 0
    mixed.joinpath("h.json").write_text(json.dumps(histograms))
    given = ("--masked", "M2=hidden.csv", "--masked", "M5=raw.csv", "--histograms", "h.json")
    words = ("publish", *given, "-p", "open.yaml", "-o", "mix.published", "--force")
    assert shell(*words).code == 0
    assert ranked(shell, "--estimate", "all-evidence")["best"] == "M5"


@pytest.mark.parametrize("source", ["table", "masked"])
def test_estimates_are_in_csv_and_report(shell, mixed, source):
    words = ("advise", "mix.published", "-p", "open.yaml")
    if source == "table":
        words = ("advise", "table.csv", "-p", "policy.yaml", "--generate", "5")
    words += ("--measure", "mi", "--estimate", "aegis+1d")
    told = shell(*words, "-f", "csv", "--report", "e.html")
    assert told.code == 0, told.err
    lines = list(csv.DictReader(told.out.splitlines()))
    exact = json.loads(shell(*words, "-f", "json").out)["ranking"]
    for line, ranked in zip(lines, exact, strict=True):
        estimate = ranked["estimate"]
        assert line["estimate"] == "aegis+1d"
        assert float(line["estimated_pud"]) == estimate["pud"]
        assert [float(line["estimated_low"]), float(line["estimated_high"])] == estimate["interval"]
    page = mixed.joinpath("e.html").read_text()
    assert "Estimated deviation from the raw table" in page
    assert "It is estimated by <code>aegis+1d</code>" in page
    plain = shell(*words[:-2], "-f", "csv", "--report", "e.html", "--force")
    assert "estimated_pud" not in plain.out
    assert "Estimated deviation" not in mixed.joinpath("e.html").read_text()
