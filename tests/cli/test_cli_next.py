"""The next step that a command suggests does what it says."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

import pytest
import yaml
from cli_support import plain

from aegis.advisor.utility import UtilityFigure
from aegis.cli.files import repeated
from aegis.sources import limit_memory
from aegis.sources.embedded import limits

SEVERAL = """\
version: 1
label: {column: income, classes: [high, low]}
measure: adjusted-pillai
privacy: {k: 5, suppression: 0.05}
attributes:
  age:
    role: quasi-identifier
    masks: [identity, {bucketize: {width: 10}}, {quantiles: {count: 2}}, suppress]
  sex: {role: quasi-identifier, masks: [identity, suppress]}
  zip: {role: quasi-identifier, masks: [{blur: {keep: 3}}, {blur: {keep: 2}}, suppress]}
configurations:
  listed: {age: suppress, sex: identity, zip: suppress}
"""


@pytest.fixture
def engine_as_before() -> Iterator[None]:
    """Give the engine its memory limit back: --memory-limit holds for the rest of the process."""
    before = limits()
    yield
    limit_memory(before.memory)


def suggested(out: str) -> list[str]:
    """Return the words after `aegis` of the command that a page ends with."""
    command = out.partition("Next: ")[2].partition("\n")[2]
    return shlex.split(command.replace("\\\n", " "))[1:]


@pytest.mark.usefixtures("unhurried", "engine_as_before")
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--generate", "3", "--seed", "6", "--measure", "mi"),
        ("--configurations", "all.yaml"),
        ("--search", "--measure", "cmim", "--top", "2"),
        ("--search", "--objective", "precision", "--measure", "g3", "--time-limit", "30"),
        ("--search", "--front", "k=2,3"),
        ("--generate", "2", "--with", "mondrian", "--with", "mdav,k-member", "--exact"),
    ],
)
def test_advise_suggests_what_it_recommended(options, shell, folder):
    folder.joinpath("several.yaml").write_text(SEVERAL)
    words = ("advise", "table.csv", "-p", "several.yaml", *options)
    recommended = json.loads(shell(*words, "--format", "json").out)
    page = shell(*words, "--memory-limit", "1GB")
    again = suggested(page.out)
    assert again[:2] == ["advise", "table.csv"]
    assert "--memory-limit" in again
    assert again[-1] == "best-2.yaml"  # there is a best.yaml in the folder
    assert shell(*again, "--format", "json").code == 0
    best = recommended["ranking"][0]
    written = yaml.safe_load(folder.joinpath(again[-1]).read_text())
    if best["method"] is None:
        assert written["configurations"] == {best["name"]: best["masks"]}
    else:
        assert (written["method"], written["options"]["k"]) == (best["method"]["method"], 5)

    then = suggested(shell(*words, "-o", "chosen.yaml").out)
    assert then[0] == ("apply" if best["method"] is None else "anonymize")
    made = shell(*then)
    assert made.code == 0
    audit = suggested(made.out)
    assert audit[0] == "audit"
    assert shell(*audit).code == 0


LABELS = """\
version: 1
labels: [{column: age, kind: number}, income]
privacy: {k: 5, suppression: 0.1}
attributes:
  sex: {role: quasi-identifier, masks: [identity, suppress]}
  zip: {role: quasi-identifier, masks: [{blur: {keep: 3}}, {blur: {keep: 2}}, suppress]}
"""


def test_the_share_that_labels_keep_is_said_in_words(shell, folder):
    folder.joinpath("labels.yaml").write_text(LABELS)
    words = ("advise", "table.csv", "-p", "labels.yaml", "-o", "labels-best.yaml", "--force")
    told = shell(*words, "--generate", "3", "--explain").out
    assert "score: mean share kept of all rows, before any row is suppressed.\n" in told
    made = shell("apply", "table.csv", "-p", "labels.yaml", "-c", "labels-best.yaml", "-o", "o.csv")
    assert "share-kept" not in shell(*words).out + made.out
    assert UtilityFigure("share-kept(mean)", 0.97, 1.0).detail == "mean share kept"


def test_from_a_summary_the_table_is_left_to_name(shell):
    words = ("advise", "table.aegis", "-p", "policy.yaml", "-o", "b.yaml")
    assert suggested(shell(*words).out)[:2] == ["apply", "TABLE"]


def test_options_are_repeated_as_given():
    given = {"search": True, "exact": False, "seed": 3, "measure": None, "time_limit": 0.5}
    assert repeated(**given, memory_limit="2GB") == [
        "--search",
        "--seed",
        "3",
        "--time-limit",
        "0.5",
        "--memory-limit",
        "2GB",
    ]
    assert repeated(**{"with": ["a", "b"]}) == ["--with", "a,b"]
    assert repeated(generate=0) == ["--generate", "0"]


def test_a_number_in_a_command_keeps_its_digits():
    """A copied command had six digits of a number, so it asked for something else."""
    given = (0.1234567, 1_234_567.0, 30.0, 0.1)
    words = [repeated(epsilon=value)[1] for value in given]
    assert words == ["0.1234567", "1234567", "30", "0.1"]


def test_the_audit_of_noise_names_the_masks(shell, folder):
    folder.joinpath("noisy.yaml").write_text(
        "version: 1\nlabel: income\nprivacy: {k: 2, suppression: 0.5}\nattributes:\n"
        "  sex: {role: quasi-identifier}\n"
        "  price: {role: feature, masks: [{laplace: {epsilon: 1, lower: 0, upper: 120}}]}\n"
    )
    folder.joinpath("two.yaml").write_text(
        "configurations:\n"
        "  a: {price: {laplace: {epsilon: 1, lower: 0, upper: 120}}}\n"
        "  b: {price: {laplace: {epsilon: 1, lower: 0, upper: 120}}, sex: suppress}\n"
    )
    done = shell(
        "apply",
        "table.csv",
        "-p",
        "noisy.yaml",
        "-c",
        "two.yaml",
        "--name",
        "b",
        "-o",
        "noisy.csv",
    )
    audit = suggested(done.out)
    assert audit[audit.index("--name") + 1] == "b"
    found = shell(*audit)
    assert found.code == 0
    assert "Differential privacy" in found.out


UNNAMED = SEVERAL.replace("measure: adjusted-pillai\n", "")


@pytest.mark.parametrize(
    ("rules", "options", "measure"),
    [
        (UNNAMED, ("--search",), "held-out-auc"),
        (UNNAMED, ("--generate", "3", "--measure", "mi"), "mi"),
        (SEVERAL, ("--generate", "3", "--merit", "auc"), "held-out-auc"),
        (SEVERAL, ("--generate", "3", "--measure", "cmim"), "cmim"),
        (
            UNNAMED,
            ("--generate", "2", "--with", "mondrian", "--measure", "adjusted-pillai"),
            "adjusted-pillai",
        ),
    ],
)
def test_the_certificate_goes_by_the_measure_that_chose(rules, options, measure, shell, folder):
    folder.joinpath("rules.yaml").write_text(rules)
    words = ("advise", "table.csv", "-p", "rules.yaml", *options, "-o", "chosen.yaml")
    again = suggested(shell(*words).out)
    assert again[0] in ("apply", "anonymize")
    page = shell(*again)
    assert page.code == 0, page.err
    document = json.loads(folder.joinpath("certificate.json").read_text())
    assert document["utility"]["measure"] == measure
    assert f"({measure} " in page.out


def test_a_named_measure_comes_before_the_policy_and_the_file(shell, folder):
    words = ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "--measure", "mi")
    shell(*words, "-o", "m.csv", "--certificate", "c.json")
    assert json.loads(folder.joinpath("c.json").read_text())["utility"]["measure"] == "mi"
    refused = shell(*words[:-1], "mee", "-o", "n.csv", "--certificate", "d.json")
    assert refused.code == 2
    assert not folder.joinpath("n.csv").exists()


def test_init_suggests_the_options_that_read_the_table(shell):
    page = shell("init", "table.csv", "--label", "income", "--delimiter", ",", "-o", "n.yaml")
    words = suggested(page.out)
    assert words[words.index("--delimiter") + 1] == ","
    assert shell(*words, "--time-limit", "5").code == 0


def test_without_a_label_the_page_says_what_is_kept(shell, folder):
    folder.joinpath("free.yaml").write_text(
        "version: 1\nprivacy: {k: 5}\nattributes:\n"
        "  sex: {role: quasi-identifier}\n  age: {role: quasi-identifier, masks: [suppress]}\n"
    )
    page = " ".join(shell("advise", "table.csv", "-p", "free.yaml").out.split())
    assert "no label" in page
    assert "of the predictive value of each column for the others" in page
    whole = " ".join(shell("advise", "table.csv", "-p", "free.yaml", "--explain").out.split())
    assert "Label any: each column is predicted from the others" in whole
    old = shell("advise", "table.csv", "-p", "free.yaml", "--measure", "adjusted-contingency")
    assert "of the association among the columns" in " ".join(old.out.split())


def test_a_summary_of_persons_suggests_the_table_that_advice_needs(shell, folder):
    folder.joinpath("persons.yaml").write_text("person: name\n" + SEVERAL)
    header, *rows = folder.joinpath("table.csv").read_text().splitlines()
    named = [f"p{number // 2},{row}" for number, row in enumerate(rows)]
    folder.joinpath("persons.csv").write_text("\n".join([f"name,{header}", *named, ""]))
    page = shell("summarize", "persons.csv", "-p", "persons.yaml", "-o", "persons.aegis")
    assert page.code == 0, page.err
    assert "counts persons (name) needs the table" in plain(page.err)
    again = suggested(page.out)
    assert again[:2] == ["advise", "persons.csv"]
    assert shell(*again).code == 0
    assert shell("advise", "persons.aegis", "-p", "persons.yaml").code == 2


def test_a_shell_that_does_not_find_aegis_is_shown_its_path(shell, monkeypatch):
    monkeypatch.setattr("sys.argv", [".venv/bin/aegis", "advise"])
    words = ("advise", "table.csv", "-p", "policy.yaml", "-o", "b.yaml", "--force")
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "\n  .venv/bin/aegis apply table.csv" in shell(*words).out
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert "\n  aegis apply table.csv" in shell(*words).out


SQL = ("sql", "--dialect", "duckdb", "--table", "t", "--schema-from", "table.csv")


@pytest.mark.parametrize("words", [("apply", "table.csv", "-o", "m.csv"), SQL])
def test_a_policy_with_configurations_says_which_there_are(words, shell, folder):
    more = "  none: {age: suppress, sex: suppress, zip: suppress}\n"
    folder.joinpath("several.yaml").write_text(SEVERAL + more)
    asked = shell(*words, "-p", "several.yaml")
    assert asked.code == 2
    assert plain(asked.err) == (
        "Error: several.yaml holds 2 configurations: listed, none. Choose one with --name."
    )
    named = shell(*words, "-p", "several.yaml", "-c", "listed")
    assert named.code == 2
    assert "No such file: listed. several.yaml holds the configurations listed, none." in plain(
        named.err
    )
    assert not folder.joinpath("m.csv").exists()
    assert shell(*words, "-p", "several.yaml", "--name", "listed").code == 0
    without = shell(*words, "-p", "policy.yaml", "--force" if words is not SQL else "--quiet")
    assert without.code == 2
    assert "policy.yaml is a policy without configurations" in plain(without.err)


def test_the_advice_of_a_search_fits_on_one_screen(shell, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = ("advise", "table.csv", "-p", "policy.yaml", "-o", "b.yaml", "--force")
    lines = shell(*words).out.splitlines()
    whole = shell(*words, "--explain").out.splitlines()
    assert len(lines) <= 25 < len(whole)
    said = " ".join(lines)
    for part in ("Rule: ", "keeps ", "t releases ", "unchanged", "Before you rely", "Next: "):
        assert part in said
    assert lines[-4:] == whole[-4:]
    assert len(shell(*words, "--top", "3").out.splitlines()) > 25


def test_a_long_path_leaves_the_suggested_command_whole(shell, folder, monkeypatch):
    """Every line of the command but the last ends with a backslash, and no path is broken."""
    monkeypatch.setenv("COLUMNS", "80")
    deep = folder / ("a_folder_with_a_long_name/" * 4)
    deep.mkdir(parents=True)
    table = deep / "table.csv"
    table.write_text((folder / "table.csv").read_text())
    out = shell("init", str(table), "--label", "income", "-o", "begun.yaml").out
    first, *rest = out.partition("Next: ")[2].partition("\n")[2].rstrip().splitlines()
    assert all(line.endswith(" \\") for line in (first, *rest)[:-1])
    assert suggested(out)[:2] == ["advise", str(table)]
