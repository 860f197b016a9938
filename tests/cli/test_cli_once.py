"""No command does its work twice: the table is summarised once, whatever is asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Shell


@pytest.mark.parametrize(
    "words",
    [
        ("advise", "-o", "b.yaml", "--report", "r.html"),
        ("advise", "--exact", "--front", "k=2,3", "--report", "r.html"),
        ("advise", "--generate", "4", "--with", "mondrian", "--exact", "--report", "r.html"),
        ("advise", "--generate", "4", "--proxy", "--report", "r.html"),
        ("evaluate", "--generate", "2", "--models", "nb", "--splits", "1", "--report", "r.html"),
        ("report", "--evaluate", "nb", "-o", "r.html"),
    ],
)
def test_the_table_is_summarised_once(
    shell: Shell, folder: Path, summaries: list[str], words: tuple[str, ...]
) -> None:
    command, *options = words
    result = shell(command, "table.csv", "-p", "policy.yaml", *options)
    assert result.code == 0, result.err
    assert (folder / "r.html").exists()
    # Masked tables, of which a record-level release is one, are summaries of their own.
    assert summaries.count(summaries[0]) == 1, summaries
