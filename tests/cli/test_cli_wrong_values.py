"""A wrong value of an option is refused in our words, not in those of the libraries that check it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cli_support import plain
from typer.main import get_command

from aegis.cli.failures import Failure
from aegis.cli.main import app

VALUES = ("x", "", "-1", "0", "1.5", "nan", "inf", "1e999", "9" * 30, "2026-13-40", "\udc80")


def options_of(command: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each command below a command, with each of its options and arguments."""
    for option in command.params:
        yield command, option
    for name in getattr(command, "commands", {}):
        yield from options_of(command.commands[name])


@pytest.mark.parametrize("value", VALUES)
def test_each_option_refuses_wrong_values_in_plain_words(value: str) -> None:
    refused = set()
    for command, option in options_of(get_command(app)):
        if option.is_flag if hasattr(option, "is_flag") else False:
            continue
        context = command.context_class(command)
        with context:
            try:
                option.process_value(context, [value] if option.multiple else value)
            except Exception as error:  # noqa: BLE001 - whichever the parser raises
                said = Failure.of(error).message
                assert "nput should" not in said, said
                assert "Value error" not in said, said
                assert "another value" not in said, said
                refused.add(option.name)
    assert refused or value in ("", "0", "\udc80")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seed", "x"), "'x' is not a whole number."),
        (("--seed", "1.5"), "'1.5' is not a whole number."),
        (("--top", "-5"), "is not a number of 0 or more."),
        (("--generate", "0"), "is not a number of 1 or more."),
        (("--time-limit", "soon"), "'soon' is not a number."),
        (("--engine", "foo"), "'foo' is not one of 'duckdb', 'spark'."),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(shell, folder, words, said) -> None:
    ended = shell("advise", "table.csv", "-p", "policy.yaml", "-o", "new.yaml", *words)
    assert ended.code == 2
    assert f"Invalid value for '{words[0]}': " in plain(ended.err)
    assert said in plain(ended.err)
    assert not (folder / "new.yaml").exists()


def test_a_wrong_default_is_named_with_what_is_allowed(shell, folder) -> None:
    (folder / "aegis.toml").write_text('[advise]\nseed = "x"\n')
    ended = shell("advise", "table.csv", "-p", "policy.yaml")
    assert ended.code == 2
    assert "'x' is not a whole number" in plain(ended.err)


CLOSED = ("--url", "http://127.0.0.1:9", "--token", "none")
WRONG = {
    ("init", "empty.csv", "-o", "new.yaml"): "empty.csv is empty",
    ("init", "table.csv", "--delimiter", "ab", "-o", "new.yaml"): "'ab' is not one character",
    ("init", "table.csv", "--label", "income", "--weight", "sex", "-o", "new.yaml"): "holds values",
    ("advise", "table.csv", "-p", "policy.yaml", "-o", "new.yaml", "--front", "k=5..2"): "k=5..2",
    ("advise", "table.csv", "-p", "policy.yaml", "--resume", "policy.yaml", "--time-limit", "5"): (
        "not a search that can be resumed"
    ),
    ("advise", "table.csv", "-p", "bytes", "-o", "new.yaml"): "bytes is not UTF-8 text",
    ("apply", "table.csv", "-p", "policy.yaml", "-c", "bytes", "-o", "new.csv"): "not UTF-8",
    (
        "apply",
        "table.csv",
        "-p",
        "policy.yaml",
        "-c",
        "best.yaml",
        "-o",
        "policy.yaml",
        "--force",
    ): ("policy.yaml is read by this command"),
    ("anonymize", "table.csv", "-p", "policy.yaml", "--recipe", "bytes", "-o", "new.csv"): (
        "not UTF-8"
    ),
    ("audit", "table.csv", "--certificate", "bytes"): "bytes is not JSON",
    (
        "protect",
        "table.csv",
        "-p",
        "policy.yaml",
        "-o",
        "new.protected",
        "--epsilon",
        "0",
        "--delta",
        "0.1",
    ): ("Epsilon is 0"),
    ("evaluate", "table.csv", "-p", "policy.yaml", "--store", "bytes", "--generate", "2"): (
        "not a store of finished trainings"
    ),
    ("evaluate", "table.csv", "-p", "policy.yaml", "--test-share", "1.5", "--generate", "2"): "1.5",
    ("catalog", "choose", "4f", "-c", "bytes", *CLOSED): "bytes is not UTF-8 text",
    ("catalog", "choose", "4f", "-c", "nowhere.yaml", *CLOSED): "nowhere.yaml",
    ("catalog", "download", "4f", "-o", "new.parquet", *CLOSED): "does not answer",
    ("catalog", "token", "paula", "--database", "new.db"): "There is no catalog new.db",
    ("catalog", "clean", "--keep-days", "-3", "--database", "new.db"): "not a number of 0 or more",
    ("catalog", "sign", "bytes", "--key", "bytes"): "bytes",
}


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
@pytest.mark.wings
def test_a_wrong_input_ends_with_2_and_changes_no_file(shell, folder, words) -> None:
    (folder / "bytes").write_bytes(b"\xf1\x94\x00 no text")
    (folder / "empty.csv").write_bytes(b"")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    ended = shell(*words)
    assert ended.code == 2, ended.err
    assert WRONG[words] in plain(ended.err)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
