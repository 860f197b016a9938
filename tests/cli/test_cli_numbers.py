"""Numbers of 400 digits, wherever a command takes a number: exit 2, and a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import typer
from typer.utils import get_params_from_function

from aegis.anonymizers import ANONYMIZERS
from aegis.anonymizers.method import listed_options
from aegis.cli.main import COMMANDS, app
from aegis.errors import PolicyError

HUGE = ("9" * 400, "-" + "9" * 400, "9" * 400 + ".5", "1e400", "-1e400", "nan")
BASE: dict[str, tuple[str, ...]] = {
    "init": ("init", "table.csv", "--label", "income"),
    "summarize": ("summarize", "table.csv", "-p", "policy.yaml", "-o", "new.aegis"),
    "protect": ("protect", "table.aegis", "-p", "policy.yaml", "-o", "new.protected"),
    "publish": ("publish", "--masked", "M1=table.csv", "-p", "policy.yaml", "-o", "new.published"),
    "ledger": ("ledger", "house.ledger", "reserve", "patients"),
    "advise": ("advise", "table.aegis", "-p", "policy.yaml"),
    "apply": ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", "new.csv"),
    "anonymize": ("anonymize", "table.csv", "-p", "policy.yaml", "-m", "mondrian", "-o", "new.csv"),
    "sql": ("sql", "-p", "policy.yaml", "-c", "best.yaml", "--dialect", "duckdb", "--table", "t", "--schema-from", "table.csv"),
    "audit": ("audit", "table.csv", "-p", "policy.yaml"),
    "risk": ("risk", "table.csv", "--quasi-identifiers", "age,sex", "--special"),
    "compose": ("compose", "best.yaml", "best.yaml", "table.csv", "-p", "policy.yaml"),
    "evaluate": ("evaluate", "table.csv", "-p", "policy.yaml", "--models", "lr"),
    "reconstruct": ("reconstruct", "table.aegis", "--attribute", "age"),
    "report": ("report", "table.aegis", "-p", "policy.yaml", "-o", "new.html"),
    "catalog token": ("catalog", "token", "x"),
    "catalog register": ("catalog", "register", "x"),
    "catalog new-token": ("catalog", "new-token", "x", "--scopes", "browse"),
    "catalog change": ("catalog", "change", "x"),
    "catalog summary": ("catalog", "summary", "x", "-p", "policy.yaml"),
    "catalog renew": ("catalog", "renew", "4f2c9a"),
    "catalog clean": ("catalog", "clean"),
    "leak": ("leak", "table.aegis"),
    "merge": ("merge", "january.aegis", "march.aegis", "-o", "new.aegis"),
    "serve": ("serve", "--local", "."),
    "agent": ("agent", "--server", "http://127.0.0.1:9"),
    "worker": ("worker",),
    "import": ("import", "project.deid", "-o", "new"),
}  # fmt: skip
WRITTEN: tuple[tuple[str, ...], ...] = (
    (*BASE["advise"], "--front", "k=2..{}"),
    (*BASE["advise"], "--front", "suppression=0..{}"),
    (*BASE["advise"], "--objective", "loss(factor={})"),
    (*BASE["init"], "--memory-limit", "{}"),
    (*BASE["init"], "--memory-limit", "{}GB"),
)
"""Numbers that are parts of texts."""


def options() -> Iterator[tuple[str, str]]:
    """Yield each command with each of its options that takes a number."""
    group: Any = typer.main.get_command(app)
    for name, module in COMMANDS.items():
        found = group
        for part in name.split():
            found = found.commands[part]
        typed = get_params_from_function(module.command)
        for one in found.params:
            if one.name in typed and {int, float} & {
                typed[one.name].annotation,
                *get_args(typed[one.name].annotation),
            }:
                yield name, max(one.opts, key=len)


def test_every_command_with_numbers_is_tried() -> None:
    listed = list(options())
    assert {name for name, _ in listed} <= set(BASE)
    assert ("advise", "--time-limit") in listed
    assert ("apply", "--seed") in listed


@pytest.mark.parametrize(("command", "option"), list(options()))
def test_options(shell: Any, command: str, option: str) -> None:
    for number in HUGE:
        words = BASE[command]
        refused(shell(*words, f"{option}={number}"), f"{option}={number}")


@pytest.mark.parametrize("words", WRITTEN, ids=lambda words: " ".join(words[-3:]))
def test_numbers_within_texts(shell: Any, words: tuple[str, ...]) -> None:
    for number in HUGE:
        refused(shell(*words[:-1], words[-1].replace("{}", number)), number)


@pytest.mark.parametrize("method", ANONYMIZERS.names())
def test_options_of_record_level_methods(method: str) -> None:
    found = ANONYMIZERS.get(method)
    listed = [o for o in listed_options(found.options) if not isinstance(o.default, str | bool)]
    assert listed
    for option in listed:
        for number in (10**400, -(10**400), 1e300, math.inf, -math.inf, math.nan):
            with pytest.raises(PolicyError) as caught:
                found.configure(**{option.name: number})
            assert len(caught.value.message) < 400
            assert caught.value.hint


def refused(result: Any, number: str) -> None:
    assert result.code == 2, (number[:30], result.code, result.err[-500:])
    assert result.err.startswith("Error: "), result.err[:300]
    assert "Traceback" not in result.err
    assert "bug in Aegis" not in result.err
