"""The page on the way of a table says what a trace finds."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

from way import PAGE, ROLES, passed, trace  # noqa: E402


def test_the_rooms_stand_in_the_order_in_which_a_table_passes_them() -> None:
    entered = trace()
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^\| \d+ \| `(\w+)`", text, re.MULTILINE) == passed(entered)
    files, functions = map(int, re.findall(r"in (\d+) files and calls (\d+) functions", text)[0])
    assert entered["code"] == 0
    assert files == pytest.approx(entered["files"], rel=0.1)
    assert functions == pytest.approx(entered["functions"], rel=0.1)


def test_each_room_of_the_page_exists() -> None:
    assert all((ROOT / "src" / "aegis" / room).is_dir() for room in ROLES)
