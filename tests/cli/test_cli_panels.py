"""Help fits a screen, and words that people guess are accepted."""

from __future__ import annotations

import numpy as np
import pytest
import typer

from aegis.cli.main import COMMANDS, MOST, app

SCREEN = 100
"""Lines of the longest help; with all options explained `advise` has 200."""
MANY = ("advise", "apply", "audit", "anonymize", "protect", "report", "serve")


def command_of(name):
    return typer.main.get_command(app).commands[name]


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("name", MANY)
def test_help_explains_what_comes_first_and_names_the_rest(name, shell, narrow):
    short, whole = shell(name, "--help").out, shell(name, "--help-all").out
    assert len(short.splitlines()) <= SCREEN
    assert "explained by --help-all" in short
    options = [each for each in command_of(name).params if each.param_type_name == "option"]
    assert sum(each.rich_help_panel is None for each in options) <= MOST + 1  # and --help-all
    for each in options:
        named = next(word for word in each.opts if word.startswith("--"))
        assert named in short
        assert named in whole
    assert len(whole.splitlines()) > len(short.splitlines())


@pytest.mark.wings
def test_commands_of_the_help_stand_in_groups(shell):
    text = shell("--help").out
    for panel in ("From a table to a release", "Check a table or a release", "Serve a catalog"):
        assert panel in text
    assert "─ Commands" not in text


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ("check", "audit"),
        ("verify", "audit"),
        ("audit-summary", "leak"),
        ("audit-together", "compose"),
    ],
)
def test_other_words_for_commands(other, name, shell):
    assert name in COMMANDS
    assert other not in COMMANDS
    assert shell(other, "--help").out == shell(name, "--help").out


def test_other_words_for_options(shell):
    words = ("advise", "table.csv", "-p", "policy.yaml", "--format", "csv")
    assert shell(*words, "--metric", "auc").out == shell(*words, "--merit", "auc").out
    assert (
        shell(*words, "--methods", "mdav", "--generate", "3").out
        == shell(*words, "--with", "mdav", "--generate", "3").out
    )


def test_advice_on_a_table_of_many_columns_fits_a_screen(shell, folder, narrow):
    rng = np.random.default_rng(7)
    names = [f"column_{number:02}" for number in range(30)]
    values = rng.integers(0, 40, (120, len(names)))
    label = (values[:, 0] + rng.normal(0, 4, len(values)) > 20).astype(int)
    rows = [",".join(map(str, (*row, n))) for row, n in zip(values, label, strict=True)]
    (folder / "wide.csv").write_text("\n".join([",".join([*names, "sick"]), *rows]) + "\n")
    masks = "masks: [{bucketize: {width: 20}}, {bucketize: {width: 40}}, suppress]"
    attributes = "".join(f"  {n}: {{role: quasi-identifier, {masks}}}\n" for n in names[:14])
    rest = "".join(f"  {n}: {{role: feature}}\n" for n in names[14:])
    (folder / "wide.yaml").write_text(
        "version: 1\nlabel: sick\nprivacy: {k: 2, suppression: 0.9}\n"
        f"attributes:\n{attributes}{rest}"
    )
    words = ("advise", "wide.csv", "-p", "wide.yaml", "-o", "wide-best.yaml", "--time-limit", "0.2")
    result = shell(*words)
    lines = result.out.splitlines()
    assert result.code == 0, result.err
    assert len(lines) <= 25, result.out
    assert all(len(line) <= 80 for line in lines)
    assert any(line.startswith("Next: ") for line in lines)
    whole = shell(*words, "--explain", "--force").out
    assert len(whole.splitlines()) > 25
    assert all(name in whole for name in names[:14])
