"""Bad input gets one clear error, the right exit code, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
import re
import signal
from pathlib import Path

import pandas as pd
import pytest
from cli_support import plain

import aegis.release
from aegis.errors import EngineError, InternalError, choices
from aegis.sources import source


def error_of(result) -> str:
    """Return the error of a run that failed on its input, as one line of words."""
    assert result.code == 2, (result.code, result.err)
    assert result.out == ""
    assert "Traceback" not in result.err
    assert result.err.startswith("Error: ")
    return plain(result.err)


def policy(folder: Path, old: str, new: str) -> None:
    text = (folder / "policy.yaml").read_text()
    assert old in text
    (folder / "policy.yaml").write_text(text.replace(old, new))


@pytest.mark.parametrize(
    "words",
    [
        ("advise", "nowhere.csv", "-p", "policy.yaml"),
        ("advise", "nowhere.aegis", "-p", "policy.yaml"),
        ("audit", "nowhere.csv", "--quasi-identifiers", "a"),
        ("init", "nowhere.csv", "--label", "income"),
        ("summarize", "nowhere.csv", "-p", "policy.yaml", "-o", "s.aegis"),
        ("apply", "nowhere.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", "x.csv"),
        ("report", "nowhere.csv", "-p", "policy.yaml", "-o", "x.html"),
    ],
)
def test_missing_table(words, shell, folder):
    before = sorted(p.name for p in folder.iterdir())
    assert "nowhere" in error_of(shell(*words))
    assert sorted(p.name for p in folder.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [
        ("init", "table.aegis"),
        ("audit", "table.aegis", "--quasi-identifiers", "sex"),
        ("risk", "table.aegis", "--quasi-identifiers", "sex"),
        ("apply", "table.aegis", "-p", "policy.yaml", "-c", "best.yaml", "-o", "x.csv"),
        ("anonymize", "table.aegis", "-p", "policy.yaml", "-m", "mdav", "-o", "x.csv"),
        ("evaluate", "table.aegis", "-p", "policy.yaml"),
    ],
)
def test_a_command_that_reads_rows_refuses_a_summary(words, shell, folder):
    said = error_of(shell(*words))
    assert said.startswith("Error: table.aegis is a summary, which holds no rows.")
    assert "Give the table that it was made from." in said
    assert not (folder / "x.csv").exists()


@pytest.mark.parametrize(
    ("name", "option", "kind"),
    [
        ("t.parquet", "--text=n", "a text file or a workbook"),
        ("t.parquet", "--no-header", "a text file or a workbook"),
        ("t.csv", "--sheet=one", "a workbook"),
        ("t.xlsx", "--delimiter=;", "a text file"),
    ],
)
def test_options_that_a_format_does_not_use_are_refused(name, option, kind, shell, folder):
    rows = pd.DataFrame({"n": [1, 2] * 30, "y": ["a", "b"] * 30})
    write = {".csv": rows.to_csv, ".xlsx": rows.to_excel}.get(Path(name).suffix)
    rows.to_parquet(folder / name) if write is None else write(folder / name, index=False)
    said = error_of(shell("init", name, "--label", "y", option, "-o", "new.yaml"))
    assert f"{option.split('=')[0]} says how to read {kind}, and {name} is not one." in said
    assert not (folder / "new.yaml").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("advise", "other.csv", "-p", "policy.yaml"),
        ("apply", "other.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", "x.csv"),
        ("anonymize", "other.csv", "-p", "policy.yaml", "-m", "mdav", "-o", "x.csv"),
    ],
)
def test_a_policy_of_another_table_is_asked_about(words, shell, folder):
    (folder / "other.csv").write_text("Age,income,town\n1,high,a\n2,low,b\n")
    error = error_of(shell(*words))
    assert "Is this the policy of another table?" in error, error
    assert "(other.csv)" in error, error
    assert re.search(r"3 of the 3 columns|[45] of the [456] columns", error), error
    assert "name" in error or "age" in error
    assert "aegis init" in error
    (folder / "other.csv").write_text("age,sex,zipp,income,name,diagnosis\n1,f,2,high,a,b\n")
    assert "Did you mean 'zipp'?" in error_of(shell(*words))


@pytest.mark.parametrize("more", [(), ("-o", "x.csv", "--into", "x")])
def test_a_release_goes_to_exactly_one_place(more, shell, folder):
    words = ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", *more)
    assert "Give exactly one of --output FILE and --into NAME." in error_of(shell(*words))


@pytest.mark.parametrize("command", ["audit", "risk"])
def test_a_release_without_a_column_of_the_policy_is_asked_about(command, shell, folder):
    (folder / "other.csv").write_text("Age,income,town\n1,high,a\n2,low,b\n")
    error = error_of(shell(command, "other.csv", "-p", "policy.yaml"))
    assert "Is this the policy of another table?" in error, error
    assert "(other.csv)" in error, error
    # A release may leave out most columns.
    (folder / "few.csv").write_text("sex,income\n" + "f,high\nm,low\n" * 9)
    assert shell(command, "few.csv", "-p", "policy.yaml").code == 0


def test_short_names_have_a_nearest_name_too(shell):
    error = error_of(shell("audit", "table.csv", "--quasi-identifiers", "ae"))
    assert "Did you mean 'age'?" in error
    assert choices("t9", ["t1", "income"]).startswith("Did you mean 't1'?")
    assert choices("t9", ["age", "income"]).startswith("Allowed")


def test_the_title_of_a_privacy_model_suggests_its_name(shell):
    assert "Did you mean 'k'?" in error_of(shell("privacy-models", "k-anonymity"))


def test_missing_policy_and_configuration(shell):
    assert "none.yaml" in error_of(shell("advise", "table.csv", "-p", "none.yaml"))
    words = ("apply", "table.csv", "-p", "policy.yaml", "-o", "x.csv", "-c", "none.yaml")
    assert "none.yaml" in error_of(shell(*words))


def test_unreadable_table(shell, folder):
    (folder / "bad.parquet").write_bytes(b"PAR1 no more PAR1")
    assert "bad.parquet" in error_of(shell("advise", "bad.parquet", "-p", "policy.yaml"))
    (folder / "table.odd").write_bytes(b"PK")
    assert "Unknown file format" in error_of(shell("init", "table.odd", "--label", "x"))


def test_empty_table(shell, folder):
    header = (folder / "table.csv").read_text().splitlines()[0]
    (folder / "table.csv").write_text(header + "\n")
    for words in (
        ("advise", "table.csv", "-p", "policy.yaml"),
        ("init", "table.csv", "--label", "income"),
        ("audit", "table.csv", "--quasi-identifiers", "sex"),
        ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", "x.csv"),
    ):
        assert "no rows" in error_of(shell(*words))
    (folder / "table.csv").write_text("")
    assert "empty" in error_of(shell("advise", "table.csv", "-p", "policy.yaml"))


def test_missing_label(shell, folder):
    policy(folder, "column: income", "column: incme")
    message = error_of(shell("advise", "table.csv", "-p", "policy.yaml"))
    assert "'incme'" in message
    assert "Did you mean 'income'?" in message
    assert "Did you mean 'income'?" in error_of(shell("init", "table.csv", "--label", "Income"))


@pytest.mark.parametrize(("value", "said"), [("low", "one class"), ("", "null in every row")])
def test_label_without_two_classes(value, said, shell, folder):
    lines = (folder / "table.csv").read_text().splitlines()
    place = lines[0].split(",").index("income")
    rows = [line.split(",") for line in lines]
    for row in rows[1:]:
        row[place] = value
    (folder / "table.csv").write_text("\n".join(map(",".join, rows)) + "\n")
    assert said in error_of(shell("advise", "table.csv", "-p", "policy.yaml"))


def test_misspelt_column(shell, folder):
    message = error_of(shell("audit", "table.csv", "--quasi-identifiers", "sex,agee"))
    assert "'agee'" in message
    assert "Did you mean 'age'?" in message
    policy(folder, "  age:", "  agee:")
    assert "Did you mean 'age'?" in error_of(shell("advise", "table.csv", "-p", "policy.yaml"))


def test_unknown_mask_measure_model(shell, folder):
    assert "Did you mean 'cmim'?" in error_of(
        shell("advise", "table.csv", "-p", "policy.yaml", "--measure", "cmin")
    )
    for command, name, near in (
        ("masks", "bucketise", "bucketize"),
        ("measures", "adjusted-pilai", "adjusted-pillai"),
        ("privacy-models", "kk_map", "k_map"),
    ):
        assert f"Did you mean '{near}'?" in error_of(shell(command, name))
    policy(folder, "bucketize", "bukketize")
    message = error_of(shell("advise", "table.csv", "-p", "policy.yaml"))
    assert "policy.yaml, line 9" in message
    assert "Did you mean 'bucketize'?" in message


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("width: 10", "width: wide", "'wide'"),
        ("width: 10", "with: 10", "Did you mean 'width'?"),
        ("label: {", "lable: {", "Did you mean 'label'?"),
        ("k: 5", "k: five", "'five'"),
        ("k: 5", "kk: 5", "kk"),
        ("suppression: 0.05", "suppression: 2", "suppression"),
        ("role: sensitive", "role: sensible", "sensible"),
        (
            "zip: {role: quasi-identifier, masks: [{blur: {keep: 3}}",
            "zip: {role: quasi-identifier, masks: [{truncate: {unit: month}}",
            "truncate",
        ),
        ("version: 1", "version: [1", "not valid YAML"),
    ],
)
def test_bad_policy(old, new, said, shell, folder):
    policy(folder, old, new)
    assert said in error_of(shell("advise", "table.csv", "-p", "policy.yaml"))


def test_k_above_the_rows(shell, folder):
    policy(folder, "k: 5", "k: 241")
    message = error_of(shell("advise", "table.csv", "-p", "policy.yaml"))
    assert "241" in message
    assert "240 rows" in message
    assert "k" in error_of(shell("audit", "table.csv", "--quasi-identifiers", "sex", "--k", "0"))


def test_no_admissible_configuration(shell, folder):
    policy(folder, "k: 5, suppression: 0.05", "k: 100")
    words = (
        "advise",
        "table.csv",
        "-p",
        "policy.yaml",
        "--configurations",
        "all.yaml",
        "-o",
        "b.yaml",
    )
    result = shell(*words, "--report", "r.html")
    assert result.code == 1
    assert "not met" in result.out
    assert "k-anonymity: " in result.out.partition("What falls short")[2]
    message = plain(result.err)
    assert "came closest" in message
    assert "allow coarser masks" in message
    assert not (folder / "b.yaml").exists()
    assert (folder / "r.html").exists()
    as_json = shell(*words, "-f", "json")
    assert as_json.code == 1
    assert json.loads(as_json.out)["best"] is None
    assert json.loads(as_json.err)["error"]["kind"] == "no_admissible_configuration"
    assert (
        shell(
            "report",
            "table.csv",
            "-p",
            "policy.yaml",
            "-o",
            "r2.html",
            "--configurations",
            "all.yaml",
        ).code
        == 1
    )


def test_search_without_admissible_configuration(shell, folder):
    policy(folder, "k: 5, suppression: 0.05", "k: 240")
    policy(
        folder,
        "sex: {role: quasi-identifier, masks: [identity, suppress]}",
        "sex: {role: quasi-identifier, masks: [identity]}",
    )
    result = shell("advise", "table.csv", "-p", "policy.yaml", "--search")
    assert result.code == 1
    assert "proven: no combination meets the rule" in result.out
    assert "came closest" in plain(result.err)


def test_apply_of_an_inadmissible_configuration(shell, folder):
    policy(folder, "k: 5, suppression: 0.05", "k: 100")
    words = ("apply", "table.csv", "-p", "policy.yaml", "-c", "all.yaml", "-o", "x.csv")
    result = shell(*words, "--name", "fine")
    assert result.code == 1
    assert "does not meet the privacy rule" in plain(result.err)
    assert not (folder / "x.csv").exists()


def test_configuration_must_be_chosen(shell):
    words = ("apply", "table.csv", "-p", "policy.yaml", "-c", "all.yaml", "-o", "x.csv")
    message = error_of(shell(*words))
    assert "fine, coarse" in message
    assert "--name" in message
    assert "Did you mean 'coarse'?" in error_of(shell(*words, "--name", "coarze"))


def test_unseen_values(shell, folder):
    group = "masks: [{group: {groups: {female: [f]}}}, suppress]"
    policy(
        folder,
        "sex: {role: quasi-identifier, masks: [identity, suppress]}",
        f"sex: {{role: quasi-identifier, {group}}}",
    )
    (folder / "best.yaml").write_text(
        "configurations:\n  b: {age: suppress, zip: suppress, sex: {group: {groups: {female: [f]}}}}\n"
    )
    words = ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", "x.csv")
    message = error_of(shell(*words))
    assert "sex (120 rows)" in message
    assert not (folder / "x.csv").exists()
    policy(folder, "version: 1", "version: 1\nunseen: suppress")
    accepted = shell(*words)
    assert accepted.code == 0
    assert "120 rows" in accepted.out


def test_bad_summary_file(shell, folder):
    whole = (folder / "table.aegis").read_bytes()
    (folder / "table.aegis").write_bytes(whole[: len(whole) // 2])
    error_of(shell("advise", "table.aegis", "-p", "policy.yaml"))
    spoilt = bytearray(whole)
    spoilt[len(whole) // 2] ^= 0xFF
    (folder / "table.aegis").write_bytes(bytes(spoilt))
    error_of(shell("advise", "table.aegis", "-p", "policy.yaml"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("diagnosis: {role: sensitive}", "diagnosis: {role: quasi-identifier, masks: [identity]}"),
        ("masks: [identity, suppress]", "masks: [suppress]"),
        ("  sex: {role: quasi-identifier, masks: [identity, suppress]}\n", ""),
    ],
)
def test_summary_of_another_policy(old, new, shell, folder):
    """Else the rule would be checked on the classes of other columns."""
    policy(folder, old, new)
    message = error_of(shell("advise", "table.aegis", "-p", "policy.yaml"))
    assert "made for another policy" in message
    assert "diagnosis" in message or "sex" in message


def test_summary_under_another_rule(shell, folder):
    policy(folder, "k: 5, suppression: 0.05", "k: 7")
    policy(folder, "measure: adjusted-pillai", "measure: cmim")
    words = ("-p", "policy.yaml", "-f", "csv")
    assert "--rule-override" in error_of(shell("advise", "table.aegis", *words))
    allowed = shell("advise", "table.aegis", *words, "--rule-override")
    assert allowed.out == shell("advise", "table.csv", *words).out


@pytest.mark.parametrize(
    "words",
    [
        ("init", "table.csv", "--label", "income", "-o", "old.yaml"),
        ("advise", "table.csv", "-p", "policy.yaml", "-o", "old.yaml"),
        ("advise", "table.csv", "-p", "policy.yaml", "--report", "old.html"),
        ("report", "table.csv", "-p", "policy.yaml", "-o", "old.html"),
        ("summarize", "table.csv", "-p", "policy.yaml", "-o", "old.aegis"),
        ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", "old.csv"),
        (
            "apply",
            "table.csv",
            "-p",
            "policy.yaml",
            "-c",
            "best.yaml",
            "-o",
            "x.csv",
            "--certificate",
            "old.json",
        ),
    ],
)
def test_existing_output_needs_force(words, shell, folder):
    old = folder / words[-1]
    old.write_text("old")
    message = error_of(shell(*words))
    assert old.name in message
    assert "--force" in message
    assert old.read_text() == "old"
    assert shell(*words, "--force").code == 0
    assert old.read_bytes() != b"old"


@pytest.mark.parametrize(
    "words",
    [
        ("init", "table.csv", "-o", "made"),
        ("advise", "table.csv", "-p", "policy.yaml", "-o", "made"),
        ("advise", "table.csv", "-p", "policy.yaml", "--report", "made"),
        ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", "made"),
        ("report", "table.csv", "-p", "policy.yaml", "-o", "made"),
        ("summarize", "table.csv", "-p", "policy.yaml", "-o", "made"),
        ("risk", "table.csv", "-p", "policy.yaml", "-o", "made"),
    ],
)
def test_a_folder_as_output_is_called_a_folder(shell, folder, words):
    """It was called a file with an unknown extension."""
    (folder / "made").mkdir()
    message = error_of(shell(*words))
    assert "Cannot write made: it is a folder." in message
    assert "Give the name of a file in it: made/NAME." in message


def test_a_report_without_table_or_policy_names_the_command(shell, folder):
    told = error_of(shell("report", "table.csv", "-o", "r.html"))
    assert "needs its policy. Type: aegis report table.csv -p policy.yaml -o r.html" in told
    command = "aegis report TABLE -p policy.yaml --configurations best.yaml -o r.html"
    told = error_of(shell("report", "best.yaml", "-o", "r.html"))
    assert told.endswith(
        f"best.yaml is no table: a report needs the table and its policy. Type: {command}"
    )
    assert shell(*command.replace("TABLE", "table.csv").split()[1:]).code == 0
    told = error_of(shell("report", "best.yaml", "-p", "policy.yaml", "-o", "r2.html"))
    assert told.endswith("Type: aegis report TABLE -p policy.yaml -o r2.html")


def test_a_folder_as_input_is_called_a_folder(shell, folder):
    (folder / "made").mkdir()
    policy = error_of(shell("advise", "table.csv", "-p", "made"))
    assert "Cannot read policy file made: it is a folder. Give a file in it." in policy
    assert "Folder made holds no files of tables." in error_of(shell("init", "made"))
    for words in (("leak", "made"), ("import", "made", "-o", "project")):
        assert "folder" in (told := error_of(shell(*words))) or "Is a directory" in told
        assert "Give a" in told


def test_outputs_that_cannot_be_written(shell, folder):
    base = ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o")
    assert "unknown extension" in error_of(shell(*base, "x.odd"))
    assert "Cannot write new: the name has no extension. Allowed: .parquet, " in error_of(
        shell(*base, "new/")
    )
    assert "folder does not exist" in error_of(shell(*base, "none/x.csv"))
    advise = ("advise", "table.csv", "-p", "policy.yaml")
    assert ".html" in error_of(shell(*advise, "--report", "r.docx"))
    assert ".yaml" in error_of(shell(*advise, "-o", "best.txt"))
    assert ".aegis" in error_of(shell("summarize", *advise[1:], "-o", "s.zip"))


def test_options_that_exclude_each_other(shell):
    advise = ("advise", "table.csv", "-p", "policy.yaml")
    both = error_of(shell(*advise, "--configurations", "all.yaml", "--generate", "3"))
    assert "Give one of them" in both
    assert "--search" in error_of(shell(*advise, "--search", "--generate", "3"))
    assert "--front" in error_of(shell(*advise, "--generate", "3", "--front", "k=2..5"))
    assert "-1" in error_of(shell(*advise, "--generate", "-1"))
    assert "Unknown" in error_of(shell(*advise, "--search", "--objective", "beauty"))
    assert "front" in error_of(shell(*advise, "--search", "--front", "k=a..b"))
    assert "quasi-identifiers" in error_of(shell("audit", "table.csv"))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("sql",), "Also missing: --dialect, --table, --schema-from."),
        (("sql", "-pp.yaml", "--dialect=duckdb"), "'--table'. Also missing: --schema-from."),
        (("protect", "table.csv", "-p", "policy.yaml"), "Missing option '--output' / '-o'. `"),
        (("protect",), "Missing argument 'TABLE|SUMMARY'. Also missing: --policy, --output."),
        (("merge", "-o", "all.aegis"), "Missing argument 'SUMMARY...'. `"),
    ],
)
def test_all_that_is_missing_is_named_at_once(shell, words, named):
    assert named in error_of(shell(*words))


def test_usage_errors(shell):
    assert "--policy" in error_of(shell("advise", "table.csv"))
    assert "'advize'" in error_of(shell("advize"))
    assert "--policy" in error_of(shell("advise", "table.csv", "--polcy", "x"))
    assert "table" in error_of(shell("masks", "--format", "xml"))
    assert "aegis advise --help" in error_of(shell("advise", "a", "b", "-p", "policy.yaml"))
    assert "--format json" in error_of(shell("advise", "table.csv", "--json"))
    assert "--format csv" in error_of(shell("measures", "--csv"))
    assert "option: --json." in error_of(shell("keygen", "--json"))


@pytest.mark.parametrize(
    "words", [("--format", "json"), ("--format=json",), ("-f", "JSON"), ("-fjson",)]
)
def test_errors_are_json_where_results_are(words, shell):
    for command, kind in (
        (("advise", "none.csv", "-p", "policy.yaml"), "data"),
        (("advise", "table.csv", "-p", "none.yaml"), "policy"),
        (("advise", "table.csv", "--nonsense"), "usage"),
    ):
        result = shell(*command, *words)
        assert result.code == 2
        assert result.out == ""
        error = json.loads(result.err)["error"]
        assert set(error) == {"kind", "message", "hint"}
        assert error["kind"] == kind
        assert error["message"]
        assert error["hint"]


AUDIT = ("audit", "table.csv", "--quasi-identifiers", "sex")


@pytest.mark.parametrize(
    ("raised", "code", "kind"),
    [
        (EngineError("The engine is gone."), 2, "engine"),
        (InternalError("An invariant broke."), 70, "internal"),
        (ZeroDivisionError("division by zero"), 70, "internal"),
        (PermissionError(13, "Permission denied", "out.csv"), 2, "file"),
        (MemoryError(), 2, "engine"),
        (ImportError("x.so: failed to map segment from shared object"), 2, "engine"),
        (RuntimeError("can't start new thread"), 2, "engine"),
        (RuntimeError("Resource temporarily unavailable"), 2, "engine"),
        (ImportError("cannot import name 'x'"), 70, "internal"),
        (EOFError("Ran out of input"), 70, "internal"),
    ],
)
def test_every_failure_has_its_exit_code(raised, code, kind, shell, monkeypatch):
    def fail(*args, **kwargs):
        raise raised

    monkeypatch.setattr(aegis.release, "audit", fail)
    result = shell(*AUDIT)
    assert result.code == code
    assert "Traceback" not in result.err
    assert ("report it" in plain(result.err)) == (code == 70)
    assert json.loads(shell(*AUDIT, "-f", "json").err)["error"]["kind"] == kind
    monkeypatch.setenv("AEGIS_DEBUG", "1")
    assert "Traceback" in shell(*AUDIT).err


def test_interrupt_ends_cleanly(shell, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(aegis.release, "audit", interrupted)
    result = shell(*AUDIT)
    assert (result.code, result.out, result.err) == (130, "", "Interrupted.\n")


def test_an_interrupt_that_a_library_renames_is_no_bug(shell, monkeypatch):
    def interrupted(*args, **kwargs):
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr(aegis.release, "audit", interrupted)
    result = shell(*AUDIT)
    assert (result.code, result.out, result.err) == (130, "", "Interrupted.\n")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    "words",
    [
        ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", "m.parquet"),
        ("summarize", "table.csv", "-p", "policy.yaml", "-o", "m.aegis"),
        ("init", "table.csv", "--label", "income", "-o", "m.yaml"),
    ],
)
def test_an_interrupt_that_a_library_swallows_ends_the_command(shell, folder, monkeypatch, words):
    before = sorted(folder.rglob("*"))
    fetch, sent = source._fetched, []

    def swallowing(*args):
        if not sent:
            sent.append(args)
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        return fetch(*args)

    monkeypatch.setattr(source, "_fetched", swallowing)
    result = shell(*words)
    assert sent
    assert (result.code, result.out, result.err) == (130, "", "Interrupted.\n")
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("label", ["one", "none"])
def test_a_label_with_one_class_is_noted(shell, folder, label):
    lines = (folder / "table.csv").read_text()
    word = {"one": "low", "none": ""}[label]
    (folder / "odd.csv").write_text(re.sub(r"\b(high|low)\b", word, lines))
    words = ("odd.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", "m.csv")
    result = shell("apply", *words, "--certificate", "c.json")
    assert result.code == 0, result.err
    assert json.loads((folder / "c.json").read_text())["utility"] is None
    assert "- the label income shows fewer than two classes" in plain(result.out)
    (folder / "m.csv").unlink()
    (folder / "c.json").unlink()
    usual = shell("apply", "table.csv", *words[1:], "--certificate", "c.json")
    assert usual.code == 0
    assert "fewer than two classes" not in plain(usual.err)


SQL = (
    "sql",
    "-p",
    "policy.yaml",
    "-c",
    "best.yaml",
    "-o",
    "x.sql",
    "--dialect",
    "duckdb",
    "--table",
    "t",
    "--schema-from",
    "table.csv",
)


def test_the_values_of_an_option_that_is_missing_are_listed_in_one_line(shell) -> None:
    result = shell("sql", "-p", "policy.yaml")
    assert "Choose from: duckdb, postgres, " in error_of(result)
    assert "\\n" not in result.err
    told = json.loads(shell("sql", "-p", "policy.yaml", "--format", "json").err)
    assert "\n" not in told["error"]["message"]


def test_an_unknown_value_of_an_option_is_named_with_what_is_allowed(shell) -> None:
    message = error_of(shell(*SQL[:-6], "--dialect", "foo"))
    assert "Invalid value for '--dialect': 'foo' is not one of 'duckdb', 'postgres'" in message


@pytest.mark.parametrize(
    "words",
    [
        ("advise", "table.csv", "-p", "policy.yaml", "-o", "policy.yaml"),
        ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", "table.csv"),
        ("apply", "parts", "-p", "policy.yaml", "-c", "best.yaml", "-o", "parts/y.parquet"),
        (*SQL, "--as", "view", "--into", "t"),
        (*SQL, "--into", "u"),
    ],
)
def test_no_output_takes_the_place_of_what_is_read(words, shell, folder):
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    message = error_of(shell(*words, "--force"))
    assert any(part in message for part in ("is read", "the input itself", "has no name"))
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
