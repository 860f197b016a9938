"""What cannot be asked for, and what a release is not worth, in one clear block."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_support import plain

LARGE = """\
version: 1
label: income
privacy: {k: 241}
attributes:
  age: {role: quasi-identifier}
"""


@pytest.mark.parametrize(
    "words",
    [
        ("advise", "table.csv", "-p", "large.yaml"),
        ("advise", "table.csv", "-p", "large.yaml", "--search"),
        ("apply", "table.csv", "-p", "large.yaml", "-c", "hidden.yaml", "-o", "o.csv"),
        ("report", "table.csv", "-p", "large.yaml", "-o", "o.html"),
    ],
)
def test_a_class_larger_than_the_table(words, shell, folder):
    folder.joinpath("large.yaml").write_text(LARGE)
    folder.joinpath("hidden.yaml").write_text("configurations: {hidden: {age: suppress}}\n")
    result = shell(*words)
    assert result.code == 2
    assert "requires 241 rows in a class, but the table has 240 rows" in result.err
    assert not list(folder.glob("o.*"))


DIVERSE = """\
version: 1
label: income
privacy: {k: 2, l_diversity: {attribute: diagnosis, %s}, suppression: 0.1}
attributes:
  age: {role: quasi-identifier}
  diagnosis: {role: sensitive, masks: [%s]}
"""


@pytest.mark.parametrize(
    "demand", ["kind: distinct, l: 4", "kind: entropy, l: 3.5", "kind: recursive, l: 4, c: 9"]
)
@pytest.mark.parametrize(
    "words",
    [
        ("advise", "table.csv"),
        ("advise", "table.csv", "--search"),
        ("advise", "table.csv", "--with", "mondrian"),
        ("apply", "table.csv", "-c", "hidden.yaml", "-o", "o.csv"),
        ("anonymize", "table.csv", "-m", "mondrian", "-o", "o.csv"),
        ("report", "table.csv", "-o", "o.html"),
    ],
)
def test_more_sensitive_values_in_a_class_than_the_table_has(demand, words, shell, folder):
    folder.joinpath("diverse.yaml").write_text(DIVERSE % (demand, "identity"))
    folder.joinpath("hidden.yaml").write_text("configurations: {hidden: {age: suppress}}\n")
    result = shell(*words, "-p", "diverse.yaml")
    assert (result.code, result.out) == (2, "")
    assert "requires 4 values of 'diagnosis' in a class, but the table has 3" in plain(result.err)
    assert "choose an l of at most 3" in plain(result.err)
    assert not list(folder.glob("o.*"))


def test_all_values_there_are_in_each_class(shell, folder):
    """What the table can just meet is not refused."""
    folder.joinpath("diverse.yaml").write_text(DIVERSE % ("kind: entropy, l: 2.9", "identity"))
    assert shell("advise", "table.csv", "-p", "diverse.yaml", "--search").code == 0


def test_a_sensitive_attribute_whose_own_masks_show_too_few_values(shell, folder):
    coarse = "{keep_frequent: {count: 1}}"
    folder.joinpath("coarse.yaml").write_text(DIVERSE % ("kind: distinct, l: 3", coarse))
    folder.joinpath("hidden.yaml").write_text("configurations: {hidden: {age: suppress}}\n")
    said = (
        "requires 3 values of 'diagnosis' in a class, but the table has 2 under its finest "
        "candidate mask"
    )
    for more in ((), ("--search",), ("--with", "mondrian")):
        result = shell("advise", "table.csv", "-p", "coarse.yaml", *more)
        assert result.code == 2
        assert said in plain(result.err)
        assert "Give it a finer mask" in plain(result.err)
    result = shell("apply", "table.csv", "-p", "coarse.yaml", "-c", "hidden.yaml", "-o", "o.csv")
    assert result.code == 1
    assert "the table has 2 under its mask: choose a finer mask" in plain(result.err)
    # The same with a finer one beside it.
    both = f"{coarse}, identity"
    folder.joinpath("finer.yaml").write_text(DIVERSE % ("kind: distinct, l: 3", both))
    result = shell("advise", "table.csv", "-p", "finer.yaml", "--search")
    assert result.code == 0
    result = shell("anonymize", "table.csv", "-p", "coarse.yaml", "-m", "mondrian", "-o", "o.csv")
    assert result.code == 2
    assert "the table has 2 as it is released" in plain(result.err)


def test_a_front_beyond_the_table(shell):
    words = ("advise", "table.csv", "-p", "policy.yaml", "--search")
    result = shell(*words, "--front", "k=40000,50000")
    assert (result.code, result.out) == (2, "")
    assert "Every point of the front over k requires 40,000 rows" in result.err
    page = shell(*words, "--front", "k=5,40000")
    assert page.code == 0
    assert "no configuration meets the rule" in page.out


def test_a_release_that_shows_nothing(shell, folder):
    folder.joinpath("large.yaml").write_text(LARGE.replace("241", "240"))
    words = ("advise", "table.csv", "-p", "large.yaml", "--search")
    page = shell(*words, "--report", "r.html")
    assert page.code == 0
    assert "- the recommended best-1 suppresses every scored attribute" in page.out
    assert any(
        "suppresses every" in w for w in json.loads(shell(*words, "-f", "json").out)["warnings"]
    )
    assert (
        "The recommended best-1 suppresses every scored attribute"
        in folder.joinpath("r.html").read_text()
    )


def test_a_policy_is_no_configuration_nor_the_reverse(shell, folder):
    words = ("apply", "table.csv", "-o", "o.csv")
    result = shell(*words, "-p", "policy.yaml", "-c", "policy.yaml")
    assert result.code == 2
    assert "policy.yaml is a policy without configurations" in result.err
    assert "aegis advise" in result.err
    result = shell(*words, "-p", "best.yaml", "-c", "best.yaml")
    assert result.code == 2
    assert "best.yaml holds configurations, not a policy" in result.err
    result = shell(*words, "-p", "recipe.yaml", "-c", "best.yaml")
    assert "recipe.yaml holds a record-level recipe, not a policy" in result.err
    # A policy with configurations of its own serves as both.
    text = folder.joinpath("policy.yaml").read_text() + folder.joinpath("best.yaml").read_text()
    folder.joinpath("both.yaml").write_text(text)
    assert shell(*words, "-p", "both.yaml", "-c", "both.yaml").code == 0


def test_a_column_whose_name_holds_a_comma(shell, folder):
    folder.joinpath("odd.csv").write_text('age,"city, state",y\n1,NY,p\n1,NY,q\n2,LA,p\n')
    words = ("audit", "odd.csv", "--format", "json", "--quasi-identifiers")
    for given in (('age,"city, state"',), ("age", "--quasi-identifiers", '"city, state"')):
        found = json.loads(shell(*words, *given).out)
        assert found["quasi_identifiers"] == ["age", "city, state"]
    result = shell(*words, "age, city")
    assert result.code == 2
    assert "Allowed: age, 'city, state', y" in json.loads(result.err)["error"]["hint"]
    result = shell(*words, 'age,"city')
    assert result.code == 2
    assert "double quotes" in json.loads(result.err)["error"]["hint"]


def test_the_merger_of_one_part_says_so(shell):
    result = shell("merge", "january.aegis", "-o", "one.aegis")
    assert result.code == 0
    assert "january.aegis is the only part" in result.err
    assert "only part" not in shell("merge", "march.aegis", "january.aegis", "-o", "two.aegis").err


@pytest.mark.parametrize("count", [1, 3, 4])
def test_few_configurations_have_no_rank_correlation(count, shell):
    page = shell(
        "evaluate",
        "table.csv",
        "-p",
        "policy.yaml",
        "--generate",
        str(count),
        "--models",
        "nb",
        "--no-comparators",
    )
    assert page.code == 0
    assert ("rank correlation needs at least 4" in page.out) == (count < 4)
    assert ("0: random order" in page.out) == (count == 4)
    assert "Loss if you choose by a measure" in page.out


@pytest.mark.parametrize("table", ["table.csv", "march.parquet", "parts", "parts/*.parquet"])
@pytest.mark.parametrize("form", [(), ("--view",)])
def test_a_table_made_beside_a_file_is_refused(table, form, shell):
    words = ("apply", table, "-p", "policy.yaml", "-c", "best.yaml", "--into", "foo")
    result = shell(*words, *form)
    assert (result.code, result.out) == (2, "")
    assert f"{table} is not a table of a database, so foo cannot be made" in plain(result.err)
    assert "-o FILE" in result.err
    assert "duckdb://" in result.err


@pytest.fixture
def piped() -> Iterator[Callable[[Path], str]]:
    """Return a file as a pipe that can be read once, as the shell's `<(cat FILE)` does."""
    ends = []

    def pipe(file: Path) -> str:
        reader, writer = os.pipe()
        ends.append(reader)
        os.write(writer, file.read_bytes())
        os.close(writer)
        return f"/dev/fd/{reader}"

    yield pipe
    for reader in ends:
        os.close(reader)


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="no pipe has a name here")
def test_what_comes_through_a_pipe_is_read_once(shell, folder, piped):
    # Without a measure in the policy, that of the configuration is asked for.
    silent = folder / "policy.yaml"
    silent.write_text(silent.read_text().replace("measure: adjusted-pillai\n", ""))
    best = folder / "best.yaml"
    best.write_text("measure: cmim\n" + best.read_text())
    words = ("apply", "table.csv", "--certificate", "c.json", "-o", "o.csv")
    assert shell(*words, "-p", piped(silent), "-c", piped(best)).code == 0
    assert json.loads(folder.joinpath("c.json").read_text())["utility"]["measure"] == "cmim"
    recipe = folder / "recipe.yaml"
    words = ("anonymize", "table.csv", "-o", "r.csv")
    assert shell(*words, "-p", piped(silent), "--recipe", piped(recipe)).code == 0


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (("apply", "table.csv", "-p", "policy.yaml", "-o", "o.csv", "-c"), "aegis advise"),
        (("anonymize", "table.csv", "-p", "policy.yaml", "-o", "o.csv", "--recipe"), "--with"),
        (("advise", "table.csv", "-p"), "aegis init"),
    ],
)
def test_an_empty_file_is_told_what_writes_it(words, remedy, shell, folder):
    folder.joinpath("empty.yaml").write_text("")
    result = shell(*words, "empty.yaml")
    assert result.code == 2
    assert "empty.yaml is empty" in result.err
    assert remedy in result.err
    assert ("aegis init" in result.err) == (remedy == "aegis init")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("advise", "table.csv", "-p"), "aegis advise"),
        (("privacy-models", "--format"), "aegis privacy-models"),
        (("advise", "--nonsense"), "aegis advise"),
        (("advice",), "aegis"),
        (("--nonsense",), "aegis"),
    ],
)
def test_a_mistake_in_the_words_names_the_command_that_helps(words, command, shell):
    result = shell(*words)
    assert result.code == 2
    assert f"`{command} --help`" in result.err


def test_one_attribute_in_both_roles_is_no_audit(shell, folder):
    words = ("audit", "table.csv", "--quasi-identifiers", "age,sex", "--sensitive")
    result = shell(*words, "diagnosis,age")
    assert (result.code, result.out) == (2, "")
    assert "'age' cannot be both a quasi-identifier and sensitive" in plain(result.err)
    assert shell(*words, "diagnosis").code == 0
    # Roles that are named here and in the policy, too.
    result = shell(*words, "zip", "-p", "policy.yaml")
    assert result.code == 0
    words = ("audit", "table.csv", "-p", "policy.yaml", "--sensitive", "sex")
    assert "'sex' cannot be both a quasi-identifier and sensitive" in plain(shell(*words).err)
    # What the policy's rule protects, taken as known to others.
    text = folder.joinpath("policy.yaml").read_text()
    rule = "{l_diversity: {attribute: diagnosis, kind: distinct, l: 2}}"
    folder.joinpath("policy.yaml").write_text(text.replace("{k: 5, suppression: 0.05}", rule))
    words = ("audit", "table.csv", "-p", "policy.yaml", "--quasi-identifiers", "diagnosis")
    assert "'diagnosis' cannot be both a quasi-identifier and sensitive" in plain(shell(*words).err)


@pytest.mark.parametrize("name", ["o.parquet", "o.csv", "o.arrow"])
@pytest.mark.parametrize("late", [False, True])
def test_a_folder_in_which_no_file_can_be_made(name, late, shell, folder, monkeypatch):
    """The name that was given is told, and not a temporary one beside it, nor the input."""
    if late:  # what can be written when the command starts may not be so when it ends
        monkeypatch.setattr("aegis.release.writing.check_output", lambda *_, **__: None)
        monkeypatch.setattr("aegis.cli.apply.check_outputs", lambda *_, **__: None)
    monkeypatch.setattr("aegis.files.tempfile.TemporaryFile", _refused)
    opened = os.open

    def refused_lock(path, *flags, **options):
        return _refused() if str(path).endswith(".lock") else opened(path, *flags, **options)

    monkeypatch.setattr("aegis.files.os.open", refused_lock)
    words = ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", name)
    result = shell(*words, "-f", "json")
    assert (result.code, result.out) == (2, "")
    error = json.loads(result.err)["error"]
    assert error["message"] == f"Cannot write {name}: Read-only file system."
    assert error["hint"] == "Check space and permissions."
    result = shell("advise", "table.csv", "-p", "policy.yaml", "--search", "-o", "o.yaml")
    assert (result.code, result.out) == (2, "")
    assert "Cannot write o.yaml" in result.err


def _refused(*_: object, **__: object) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no folder refuses files to everybody")
@pytest.mark.parametrize("name", ["o.parquet", "o.csv", "o.arrow"])
def test_no_file_is_made_among_processes(name, shell):
    words = ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml")
    result = shell(*words, "-o", f"/proc/{name}")
    assert result.code == 2
    assert f"Cannot write /proc/{name}: " in result.err
    assert "partial" not in result.err


def test_one_thing_is_spoken_of_as_one(shell, folder):
    small = folder / "small.yaml"
    text = folder.joinpath("policy.yaml").read_text()
    small.write_text(text.replace("attributes:", "attributes:\n  price: {role: feature}"))
    page = shell("advise", "table.csv", "-p", "small.yaml", "--configurations", "best.yaml")
    assert page.code == 0
    assert "1 column is not in the policy, so neither scored nor released: extra" in plain(page.out)
    assert "1 of 16 combinations of masks; 1 meets the rule" in plain(page.out)
    lines = folder.joinpath("table.csv").read_text().splitlines(keepends=True)
    folder.joinpath("unlabelled.csv").write_text("".join([*lines, "p,20,f,01200,flu,,10,1\n"]))
    page = shell("advise", "unlabelled.csv", "-p", "policy.yaml", "--configurations", "best.yaml")
    assert "1 row without a label counts for privacy" in plain(page.out)


def test_several_criteria_that_fail_fit_into_eighty_columns(shell, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rule = (
        "{k: 200, suppression: 0.05, l_diversity: {attribute: diagnosis, kind: entropy, l: 2.99}, "
        "t_closeness: {attribute: diagnosis, t: 0.0001}}"
    )
    text = folder.joinpath("policy.yaml").read_text()
    folder.joinpath("policy.yaml").write_text(text.replace("{k: 5, suppression: 0.05}", rule))
    page = shell("advise", "table.csv", "-p", "policy.yaml", "--search")
    table, _, below = page.out.partition("Ranking")[2].partition("What falls short")
    rows = [line for line in table.splitlines() if line.endswith("not met")]
    assert len(rows) == 1
    assert len(table.strip().splitlines()) == 3  # headings, a line, one line for one configuration
    assert "entropy l-diversity of diagnosis: " in plain(below)
    assert max(map(len, page.out.splitlines())) <= 80


def test_a_merger_suggests_no_policy_that_it_does_not_know(shell):
    page = shell("merge", "march.aegis", "january.aegis", "-o", "both.aegis")
    assert "aegis advise both.aegis --policy POLICY -o" in page.out


def test_no_values_without_a_report_is_refused(shell, folder):
    folder.joinpath("large.yaml").write_text(LARGE)
    result = shell("advise", "table.csv", "-p", "large.yaml", "--no-values")
    assert result.code == 2
    assert "--no-values is for a report, and you asked for none" in plain(result.err)
