"""`aegis anonymize` and record-level releases in `aegis advise`, as people meet them."""

from __future__ import annotations

import csv
import json
from collections import Counter

import pyarrow.parquet
import pytest
from cli_support import plain

pytestmark = pytest.mark.wings
BASE = ("anonymize", "table.csv", "-p", "policy.yaml")
SMALL = ("--option", "clusters=4", "--option", "starts=1")


def test_release_is_written_verified_and_certified(shell, folder):
    result = shell(*BASE, "-m", "mdav", "--k", "6", "-o", "r.csv", "--certificate", "c.json")
    assert result.code == 0, result.err
    with (folder / "r.csv").open() as file:
        rows = list(csv.DictReader(file))
    sizes = Counter((row["age"], row["sex"], row["zip"]) for row in rows)
    assert min(sizes.values()) >= 6
    assert set(rows[0]) == {"age", "sex", "zip", "diagnosis", "income"}
    paper = json.loads((folder / "c.json").read_text())
    assert paper["anonymizer"]["claims"]["k"] == 6
    assert paper["privacy"]["k"] == min(sizes.values())
    assert "aegis audit r.csv --policy policy.yaml" in plain(result.out)


def test_best_of_the_advice_can_be_made_again(shell, folder):
    strict = (folder / "policy.yaml").read_text().replace("masks: [identity, {b", "masks: [{b")
    strict = strict.replace("masks: [identity, suppress]", "masks: [suppress]")
    (folder / "strict.yaml").write_text(strict)
    words = ("advise", "table.csv", "-p", "strict.yaml", "--with", "mondrian,mdav")
    result = shell(*words, "-o", "won.yaml", "--format", "json")
    assert result.code == 0, result.err
    best = json.loads(result.out)["ranking"][0]
    assert best["method"]["method"] in ("mondrian", "mdav")
    assert best["masks"] == {}
    made = shell(
        "anonymize",
        "table.csv",
        "-p",
        "strict.yaml",
        "--recipe",
        "won.yaml",
        "-o",
        "r.parquet",
        "--format",
        "json",
    )
    assert made.code == 0, made.err
    data = json.loads(made.out)
    assert data["information_loss"] == best["method"]["information_loss"]
    assert data["anonymizer"]["options"] == best["method"]["options"]
    shown = shell(*words, "--top", "3")
    assert "aegis anonymize table.csv --policy strict.yaml" not in shown.out  # nothing written yet
    applied = shell(
        "apply",
        "table.csv",
        "-p",
        "strict.yaml",
        "-c",
        "won.yaml",
        "-o",
        "a.csv",
    )
    assert applied.code == 2
    assert "aegis anonymize" in applied.err
    text = shell(*words, "-o", "won.yaml", "--force")
    assert "--recipe won.yaml" in plain(text.out)


def test_ranking_as_csv_has_a_column_for_every_attribute(shell):
    result = shell("advise", "table.csv", "-p", "policy.yaml", "--with", "mdav", "--format", "csv")
    assert result.code == 0, result.err
    header, *rows = list(csv.reader(result.out.splitlines()))
    assert {len(row) for row in rows} == {len(header)}
    named = {row[1]: dict(zip(header, row, strict=True)) for row in rows}
    assert any(one["mask:age"] == "mdav(k=5)" for one in named.values())


def test_front_alone_writes_nothing(shell, folder):
    before = sorted(folder.iterdir())
    result = shell(*BASE, "-m", "mo-obam", *SMALL, "--front", "-f", "json")
    assert result.code == 0, result.err
    points = json.loads(result.out)["front"]["points"]
    assert {one["clusters"] for one in points} == {1, 2, 4}
    assert any(one["efficient"] for one in points)
    assert sorted(folder.iterdir()) == before


def test_reports(shell, folder):
    words = (*BASE, "-m", "mo-obam", *SMALL, "--front", "--report", "r.html")
    assert shell(*words).code == 0
    page = (folder / "r.html").read_text()
    assert "Information loss against diversity" in page
    assert "<script" not in page
    advice = ("advise", "table.csv", "-p", "policy.yaml", "--with", "mdav", "--report", "a.html")
    assert shell(*advice).code == 0
    page = (folder / "a.html").read_text()
    assert 'id="records"' in page
    assert "mdav" in page
    assert shell(*advice[:4], "--report", "b.html").code == 0
    assert 'id="records"' not in (folder / "b.html").read_text()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("-o", "r.csv"), 2, "No method was named"),
        (("-m", "mdva", "-o", "r.csv"), 2, "Did you mean 'mdav'"),
        (("-m", "mdav"), 2, "No output is named"),
        (("-m", "mdav", "-o", "r.xls"), 2, "unknown extension"),
        (("-m", "mdav", "-o", "table.csv"), 2, "is read by this command"),
        (("-m", "mdav", "-o", "r.csv", "--option", "gamma"), 2, "NAME=VALUE"),
        (("-m", "mdav", "-o", "r.csv", "--option", "gamma=1"), 2, "Unknown option"),
        (("-m", "v-mdav", "-o", "r.csv", "--option", "gamma=x"), 2, "a number"),
        (("-m", "mdav", "-o", "r.csv", "--k", "241"), 2, "above the number of records"),
        (("-m", "mo-obam", "-o", "r.csv", "--option", "clusters=99"), 2, "at most 48 clusters"),
        (("-m", "hybrid", "-o", "r.csv", "--option", "epsilon=0"), 2, "above 0"),
        (("-m", "mdav", "--recipe", "recipe.yaml", "-o", "r.csv"), 2, "Both --method and --recipe"),
        (("--recipe", "recipe.yaml", "--k", "5", "-o", "r.csv"), 2, "already sets options"),
        (("--recipe", "best.yaml", "-o", "r.csv"), 2, "aegis apply"),
        (("--recipe", "none.yaml", "-o", "r.csv"), 2, "none.yaml"),
        (("-m", "mdav", "--front"), 2, "cannot make a front"),
        (("-m", "mdav", "--style", "x", "-o", "r.csv"), 2, "style"),
        (("-m", "mdav", "--option", "k={", "-o", "r.csv"), 2, "not valid YAML"),
        (
            ("-m", "hybrid", "--option", "pattern-friendly=[sex]", "-o", "r.csv"),
            1,
            "does not meet the privacy rule",
        ),
    ],
)
def test_bad_input_is_one_error_and_writes_nothing(words, code, message, shell, folder):
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    result = shell(*BASE, *words)
    assert result.code == code
    assert message in plain(result.err)
    assert result.out == ""
    assert "Traceback" not in result.err
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_advise_with_bad_methods(shell):
    base = ("advise", "table.csv", "-p", "policy.yaml")
    assert "Did you mean 'mdav'" in shell(*base, "--with", "mdva").err
    assert "summary has none" in plain(
        shell("advise", "table.aegis", *base[2:], "--with", "mdav").err
    )
    exact = shell(*base, "--with", "mondrian", "--exact", "--format", "json")
    assert any(one["method"] for one in json.loads(exact.out)["ranking"])
    assert (
        "holds no rows"
        in shell("anonymize", "table.aegis", *base[2:], "-m", "mdav", "-o", "r.csv").err
    )
    assert "objective" in plain(
        shell(*base, "--with", "mdav", "--search", "--objective", "nu-entropy").err
    )


POLICY = """\
version: 1
label: income
privacy: {k: 40}
attributes:
  sex:
    role: quasi-identifier
    kind: categorical
  extra:
    role: quasi-identifier
    order: [3, 2, 1, 0]
  diagnosis: {role: sensitive}
anonymizers:
  - mondrian
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("  - mondrian", "  - mondrain", 13, "Did you mean 'mondrian'"),
        ("  - mondrian", "  - mondrian\n  - {mdav: {gamma: 2}}", 14, "Unknown option"),
        ("  - mondrian", "  - {mdav: {k: five}}", 13, "a whole number"),
        ("  - mondrian", "  - {mdav: {}, mondrian: {}}", 13, "2 methods in one entry"),
        ("kind: categorical", "kind: category", 7, "'categorical'"),
        ("[3, 2, 1, 0]", "[3, 2, 3]", 10, "3 is given twice"),
    ],
)
def test_methods_kinds_and_orders_of_a_policy_are_refused_with_their_line(
    old, new, line, message, shell, folder
):
    (folder / "kinds.yaml").write_text(POLICY.replace(old, new))
    before = sorted(folder.iterdir())
    result = shell("advise", "table.csv", "-p", "kinds.yaml", "-o", "best.out.yaml")
    assert result.code == 2
    assert f"kinds.yaml, line {line}:" in result.err
    assert message in plain(result.err)
    assert sorted(folder.iterdir()) == before


def test_kinds_and_orders_of_a_policy_are_gone_by(shell, folder):
    (folder / "kinds.yaml").write_text(POLICY)
    words = ("anonymize", "table.csv", "-p", "kinds.yaml", "-m", "mondrian", "-o", "r.csv")
    result = shell(*words)
    assert result.code == 0, result.err
    with (folder / "r.csv").open() as file:
        shown = {row["extra"] for row in csv.DictReader(file)}
    ranges = {one for one in shown if one.startswith("[")}
    assert ranges
    assert all(int(one[1]) > int(one[-2]) for one in ranges)  # "[2, 1]": down is up in this order
    advised = shell("advise", "table.csv", "-p", "kinds.yaml", "-f", "json")
    assert any(one["method"] for one in json.loads(advised.out)["ranking"])
    (folder / "kinds.yaml").write_text(POLICY.replace("[3, 2, 1, 0]", "[3, 2]"))
    short = shell(*words, "--force")
    assert short.code == 2
    assert "lacks the value" in plain(short.err)


QUASI = "{role: quasi-identifier}"
BAD_POLICIES = {
    "no role": (
        {"extra": "{masks: [identity]}"},
        "mdav",
        "line 8: 'attributes.extra.role' is missing",
    ),
    "no such column": ({"aeg": QUASI}, "mdav", "Did you mean 'age'"),
    "k above N": (
        {"privacy": "{k: 241}"},
        "mondrian",
        "requires 241 rows in a class, but the table has 240",
    ),
    "clusters": ({"privacy": "{k: 30}"}, "mo-obam", "need 300 records; the table has 240"),
    "uncovered": (
        {"sex": "{role: quasi-identifier, hierarchy: {all: [f]}}"},
        "k-member",
        "does not cover the value 'm'",
    ),
    "all null": ({"empty": QUASI}, "mdav", "'empty' is null in every row"),
    "constant": ({"same": QUASI}, "v-mdav", "'same' has the same value in every row: 1"),
    "too diverse": (
        {"privacy": "{k: 2, l_diversity: {attribute: diagnosis, l: 4}}"},
        "kl-member",
        "choose an l of at most 3",
    ),
    "too diverse for a method without l": (
        {"privacy": "{k: 2, l_diversity: {attribute: diagnosis, kind: entropy, l: 3.5}}"},
        "mdav",
        "choose an l of at most 3",
    ),
    "text in a number": (
        {"sex": "{role: quasi-identifier, kind: numeric}"},
        "mdav",
        "Attribute 'sex' cannot be numeric: its values have the type string",
    ),
    "text without order": (
        {"sex": "{role: quasi-identifier, kind: ordinal}"},
        "mdav",
        "order of the string values of ordinal attribute",
    ),
}


@pytest.mark.parametrize("bad", BAD_POLICIES)
def test_what_no_method_can_work_on_is_one_error_and_writes_nothing(bad, shell, folder):
    changed, method, message = BAD_POLICIES[bad]
    lines = (folder / "table.csv").read_text().splitlines()
    rows = [f"{lines[0]},empty,same", *(f"{line},,1" for line in lines[1:])]
    (folder / "wide.csv").write_text("\n".join(rows) + "\n")
    attributes = {"age": QUASI, "sex": QUASI, "diagnosis": "{role: sensitive}"}
    attributes |= {name: entry for name, entry in changed.items() if name != "privacy"}
    rule = changed.get("privacy", "{k: 3}")
    text = f"version: 1\nlabel: income\nprivacy: {rule}\nattributes:\n"
    text += "".join(f"  {name}: {entry}\n" for name, entry in attributes.items())
    (folder / "bad.yaml").write_text(text)
    before = sorted(folder.iterdir())
    words = ("anonymize", "wide.csv", "-p", "bad.yaml", "-m", method, "-o", "r.csv")
    more = ("--option", "clusters=10") if method == "mo-obam" else ()
    result = shell(*words, *more, "--certificate", "c.json", "--report", "r.html")
    assert result.code == 2, result.err
    assert message in plain(result.err)
    assert result.err.count("Error:") == 1
    assert result.out == ""
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("rounded", [True, False])
def test_whole_numbers_stay_whole_where_asked(rounded, shell, folder):
    words = ("anonymize", "table.csv", "-p", "policy.yaml", "-m", "mdav", "-o", "r.parquet")
    assert shell(*words, "--option", f"rounded={str(rounded).lower()}").code == 0
    ages = pyarrow.parquet.read_table(folder / "r.parquet")["age"]
    assert pyarrow.types.is_integer(ages.type) == rounded
    assert all(age == int(age) for age in ages.to_pylist()) == rounded
