"""The reference of the command line is what the commands say of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from aegis.cli.main import COMMANDS
from aegis.cli.reference import reference

pytestmark = pytest.mark.wings
DOCS = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def test_reference_is_up_to_date():
    assert DOCS.read_text() == reference(), "run: make docs"


def test_reference_holds_every_command_and_example():
    text = reference()
    for name, module in COMMANDS.items():
        assert f"## aegis {name}\n" in text
        assert all(example in text for example in module.EXAMPLES)


def test_table_cells_are_closed():
    rows = [line for line in reference().splitlines() if line.startswith("|")]
    assert all(row.replace(r"\|", "").count("|") == 4 for row in rows)
