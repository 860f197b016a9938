"""The tables on MO-OBAM in docs/anonymizers.md are those of the result files."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    path = ROOT / "experiments" / "mo_obam_tables.py"
    spec = importlib.util.spec_from_file_location("mo_obam_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("table", "rows"), [("risk_table", 8), ("peer_table", 18), ("model_table", 12)]
)
def test_tables_stand_in_the_docs(tables: ModuleType, table: str, rows: int) -> None:
    make: Callable[[], list[str]] = getattr(tables, table)
    made = make()
    assert len(made) == rows
    page = (ROOT / "docs" / "anonymizers.md").read_text(encoding="utf-8").splitlines()
    missing = [line for line in made if line not in page]
    assert not missing, "\n".join(missing)
