"""A command that is refused makes no catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from aegis.cli.main import run

GOOD = "correct-horse-battery-1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["catalog", "account", "a/b", "--roles", "admin", "--password", GOOD], "account's name"),
        (["catalog", "account", "ann", "--roles", "admn", "--password", GOOD], "Unknown role"),
        (["catalog", "account", "ann", "--roles", "admin", "--password", "x"], "Use at least 12"),
        (["worker", "--once"], "There is no catalog new.db"),
        (["serve", "--objects", "foo://x"], "not the address of a store"),
    ],
)
def test_a_refused_call_leaves_no_catalog(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([*words, "--database", "new.db"]) != 0
    assert said in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []
