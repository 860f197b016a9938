"""What is printed: readable at 80 columns, whole where nobody cuts it, and on the right stream."""

from __future__ import annotations

import csv
import io
import json
import threading

import pytest
from cli_support import ROWS_OF_COMMANDS, plain
from hypothesis import example, given
from hypothesis import strategies as st

from aegis.cli.main import run
from aegis.cli.output import (
    Output,
    QueryClock,
    TerminalProgress,
    clean,
    figure,
    finite,
    fixed,
    percent,
    reporting,
    share,
    write_json,
)
from aegis.files import SILENT
from aegis.sources import embedded, query_progress

ESCAPE = "\x1b"


class Terminal(io.StringIO):
    """A stream that says that a person watches it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "cell"), [(Terminal, r"\x1b[2Jowned"), (io.StringIO, f"{ESCAPE}[2Jowned")]
)
def test_csv_moves_no_cursor_of_a_terminal(stream, cell, monkeypatch):
    """What a person wrote into a note reached the terminal with its control characters."""
    printed = stream()
    monkeypatch.setattr("sys.stdout", printed)
    Output().csv(["note"], [[f"{ESCAPE}[2Jowned"]])
    assert printed.getvalue() == f"note\n{cell}\n"


@pytest.fixture
def terminal(folder, monkeypatch):
    """Run `aegis` with both streams on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")

    def start(*words):
        out, err = Terminal(), Terminal()
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", out)
            patch.setattr("sys.stderr", err)
            code = run(words)
        return code, out.getvalue(), err.getvalue()

    return start


@pytest.mark.parametrize("words", ROWS_OF_COMMANDS)
def test_output_fits_80_columns(words, shell, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = shell(*words)
    assert result.out
    for line in (*result.out.splitlines(), *result.err.splitlines()):
        assert len(line) <= 80, line
        assert line == line.rstrip() or words == ("--help",)


def test_an_audit_repeats_no_rows_without_figures(shell):
    """It printed nine rows "c, recursive, l = ...: above -", where a class has one value."""
    words = ("audit", "table.csv", "--quasi-identifiers")
    of_single_rows = shell(*words, "name", "--sensitive", "diagnosis").out
    assert of_single_rows.count("c, recursive") == 1
    assert of_single_rows.count("never") == 1
    by_sex = shell(*words, "sex", "--sensitive", "diagnosis").out
    assert by_sex.count("c, recursive") == 3  # it has three values: l = 2, l = 3, and never for 4
    assert by_sex.count("never") == 1


def test_a_terminal_has_colour_unless_told_otherwise(terminal, monkeypatch):
    words = ("advise", "table.csv", "-p", "policy.yaml", "--explain")
    assert ESCAPE in terminal(*words)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    code, out, _ = terminal(*words)
    assert code == 0
    assert "[32m" not in out
    assert "met" in out


def test_progress_is_drawn_on_the_terminal_s_error_stream_only(terminal):
    words = ("advise", "table.csv", "-p", "policy.yaml", "-f", "json")
    code, out, err = terminal(*words)
    assert code == 0
    # Also combinations of masks that group the values in the same way, as the result counts them.
    assert json.loads(out)["combinations"] == 16
    assert "Searching 16 combinations" in err
    assert terminal(*words, "--quiet")[2] == ""


def test_no_progress_where_nobody_watches(shell):
    with reporting(quiet=False) as progress:
        assert isinstance(progress._progress, type(SILENT))
    assert shell("advise", "table.csv", "-p", "policy.yaml", "-f", "json").err == ""


def test_progress_shows_steps_with_notes(monkeypatch):
    err = Terminal()
    monkeypatch.setattr("sys.stderr", err)
    monkeypatch.setenv("COLUMNS", "100")
    with reporting(quiet=False) as progress:
        assert isinstance(progress._progress, TerminalProgress)
        with progress.step("Outer", 2) as outer, progress.step("Inner"):
            outer.advance()
            outer.note("n\x1bote")
    assert "Outer" in err.getvalue()
    assert "Inner" in err.getvalue()


def test_a_query_says_how_long_it_will_take():
    seen = iter([(0.0, None), (1.0, 0.01), (2.0, 0.02), (11.0, 0.11), (21.0, 0.5), (22.0, 0.1)])
    state = [0.0, None]

    def clock_at():
        state[:] = next(seen)

    clock = QueryClock(lambda: state[1], lambda: state[0])
    said = []
    for _ in range(6):
        clock_at()
        said.append(clock.text())
    assert said == [
        "",
        "",
        "query 2 %, 1:38 left",
        "query 11 %, 1:29 left",
        "query 50 %, 0:21 left",
        "",
    ]


def test_the_engine_tells_how_far_a_query_is():
    found = []
    connection = embedded().con
    connection.execute("CREATE OR REPLACE TEMP TABLE long AS SELECT range AS v FROM range(3000000)")
    query = "SELECT count(DISTINCT md5(v::text)) FROM long; DROP TABLE long"
    thread = threading.Thread(target=connection.execute, args=(query,))
    thread.start()
    while thread.is_alive():
        found.append(query_progress())
        thread.join(0.005)
    assert query_progress() is None
    assert all(share is None or 0 < share < 1 for share in found)
    assert any(share is not None for share in found)


@pytest.mark.parametrize(
    "words",
    [
        ("advise", "table.csv", "-p", "policy.yaml", "-o", "b.yaml"),
        ("summarize", "table.csv", "-p", "policy.yaml", "-o", "s.aegis"),
        ("init", "table.csv", "--label", "income", "-o", "p.yaml"),
        ("report", "table.csv", "-p", "policy.yaml", "-o", "r.html"),
        ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", "m.csv"),
    ],
)
def test_quiet_leaves_results_only(words, shell):
    loud = shell(*words)
    quiet = shell(*words, "--force", "--quiet")
    assert loud.code == quiet.code == 0
    assert "Written" in loud.out
    assert "Written" not in quiet.out
    assert "Next:" not in quiet.out
    assert quiet.err == ""


def test_written_files_are_named_on_the_error_stream_beside_json(shell):
    result = shell("advise", "table.csv", "-p", "policy.yaml", "-o", "b.yaml", "-f", "json")
    json.loads(result.out)
    assert "b.yaml" in result.err


def test_warnings_are_said(shell):
    result = shell("advise", "table.csv", "-p", "policy.yaml")
    assert "2 columns are not in the policy" in plain(result.out)
    assert "price, extra" in plain(result.out)


def test_nothing_is_cut_in_a_pipe(shell, folder):
    long = "a_very_" + "long_" * 40 + "name"
    header, rest = (folder / "table.csv").read_text().split("\n", 1)
    (folder / "wide.csv").write_text(header.replace("zip", long) + "\n" + rest)
    out = shell("audit", "wide.csv", "--quasi-identifiers", f"{long},sex").out
    assert long in out
    out = shell("audit", "wide.csv", "--quasi-identifiers", "sex", "--sensitive", long).out
    assert long in out


def test_long_names_fold_on_a_narrow_page(shell, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    long = "a_very_" + "long_" * 20 + "name"
    for name in ("table.csv", "policy.yaml"):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace("zip", long))
    result = shell("advise", "table.csv", "-p", "policy.yaml")
    assert result.code == 0
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_names_are_broken_between_their_parts(shell, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("table.csv", "policy.yaml"):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace("zip", "number_of_previous_stays_here"))
    out = shell("advise", "table.csv", "-p", "policy.yaml", "--explain").out
    folded = [
        line.split()[0] for line in out.splitlines() if line.startswith(("number_of", "stays"))
    ]
    assert folded
    assert all(part.endswith("_") or part.endswith("here") for part in folded)


def test_of_many_attributes_those_that_tell_most_are_listed(shell, folder):
    columns = [f"g{i}" for i in range(62)]
    rows = [[(n * (i % 4 + 1) + n // (i + 2)) % 5 for i in range(62)] for n in range(40)]
    lines = [",".join([*columns, "sick"])]
    lines += [",".join([*map(str, row), "ny"[n % 2]]) for n, row in enumerate(rows)]
    (folder / "wide.csv").write_text("\n".join(lines) + "\n")
    begun = shell("init", "wide.csv", "--label", "sick", "-o", "wide.yaml")
    assert begun.code == 0
    assert "12 more" in plain(begun.out)
    words = ("advise", "wide.csv", "-p", "wide.yaml", "--generate", "2", "--top", "1")
    advice = shell(*words)
    assert advice.code == 0
    assert "2 more attributes predict less each: --format json has all of them." in plain(
        advice.out
    )
    listed = [line for line in advice.out.splitlines() if line.startswith("g")]
    assert len(listed) == 60
    whole = json.loads(shell(*words, "--format", "json").out)
    assert len(whole["ranking"][0]["attributes"]) == 62


def test_control_characters_in_data_reach_no_terminal(shell, folder):
    name = f"a{ESCAPE}[31mge"
    header, rest = (folder / "table.csv").read_text().split("\n", 1)
    (folder / "odd.csv").write_text(header.replace("age", name) + "\n" + rest)
    result = shell("audit", "odd.csv", "--quasi-identifiers", name)
    assert result.code == 0
    assert ESCAPE not in result.out
    assert r"a\x1b[31mge" in result.out
    failed = shell("audit", "odd.csv", "--quasi-identifiers", f"{name}x")
    assert failed.code == 2
    assert ESCAPE not in failed.err


def test_markup_in_data_is_text(shell, folder):
    header, rest = (folder / "table.csv").read_text().split("\n", 1)
    (folder / "odd.csv").write_text(header.replace("age", "[bold]age[/red]") + "\n" + rest)
    result = shell("audit", "odd.csv", "--quasi-identifiers", "[bold]age[/red]")
    assert result.code == 0
    assert "[bold]age[/red]" in result.out


def test_the_next_command_can_be_copied(shell, folder):
    (folder / "table.csv").rename(folder / "my table.csv")
    out = shell("advise", "my table.csv", "-p", "policy.yaml", "-o", "b.yaml").out
    assert "aegis apply 'my table.csv'" in out
    assert out.rstrip().endswith("--certificate certificate.json")


def test_json_is_ascii_where_the_stream_is():
    for encoding, written in (("ascii", b'"\\u00e2ge"\n'), ("utf-8", '"âge"\n'.encode())):
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding=encoding)
        write_json(stream, "âge")
        assert raw.getvalue() == written


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4))
@example({"\r": "a\rb", "": None})
def test_figures_name_every_leaf_once(data):
    """Each CSV row's pointer leads back to its value."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", out)
        Output().figures(data)
    header, *rows = list(csv.reader(io.StringIO(out.getvalue(), newline="")))
    assert header == ["figure", "value"]
    assert len(rows) == leaves(data)
    for pointer, value in rows:
        found = follow(data, pointer)
        assert value == ("" if found is None else str(found))


def leaves(data) -> int:
    if isinstance(data, dict):
        return sum(map(leaves, data.values()))
    return sum(map(leaves, data)) if isinstance(data, list) else 1


def follow(data, pointer: str):
    """Return what a JSON pointer (RFC 6901) leads to."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


@given(JSON)
def test_json_is_always_valid(data):
    def refuse(name):
        raise AssertionError(name)

    text = json.dumps(finite(data), allow_nan=False)
    json.loads(text, parse_constant=refuse)


@given(st.text())
def test_clean_text_is_printable_and_unchanged_where_it_was(text):
    assert clean(text).isprintable()
    if text.isprintable():
        assert clean(text) == text


def test_figures_for_people():
    assert [fixed(0.12345), fixed(0.0), fixed(1.2e-6), fixed(123456.7), fixed(None)] == [
        "0.1235",
        "0.0000",
        "1.2e-06",
        "123,457",
        "-",
    ]
    assert [fixed(999.5), fixed(-1234.56), fixed(2.5e20)] == ["999.5000", "-1,234.6", "2.5e+20"]
    assert fixed(0.12344999) == "0.1234"
    assert [fixed(1.06e-22), fixed(-3e-17)] == ["0.0000", "0.0000"]
    assert figure(float("nan")) == "-"
    assert percent(99.96) == "> 99.9 %"
    assert share(5, 200) == "5 (2.5 %)"
    assert share(0, 0) == "0"
