"""What the shell offers when Tab is pressed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.shell_completion import CompletionItem
from typer.main import get_command

from aegis.cli.main import app
from aegis.measures import MEASURES


def offered(*words: str) -> list[str]:
    """Return what is offered for the last word, as the shell would ask."""
    command = get_command(app)
    context = command.make_context("aegis", list(words[:1]), resilient_parsing=True)
    verb = command.get_command(context, words[0])
    own = verb.make_context(words[0], list(words[1:-1]), parent=context, resilient_parsing=True)
    option = next((p for p in verb.params if words[-2] in p.opts), verb.params[0])
    items: list[CompletionItem] = option.shell_complete(own, words[-1])
    return [item.value for item in items]


@pytest.fixture
def table(tmp_path: Path) -> str:
    (tmp_path / "t.csv").write_text('age;sex;"zip code"\n1;f;2\n')
    return str(tmp_path / "t.csv")


def test_measures_and_objectives_and_methods() -> None:
    wanted = [name for name in MEASURES.names() if name.startswith("held")]
    assert offered("advise", "t.csv", "--measure", "held") == wanted != []
    assert "loss" in offered("advise", "t.csv", "--objective", "lo")
    assert "mondrian" in offered("advise", "t.csv", "--with", "mon")
    assert offered("masks", "buck") == ["bucketize"]
    assert "k" in offered("privacy-models", "")


def test_columns_of_the_table_that_is_named(table: str) -> None:
    assert offered("init", table, "--label", "") == ["age", "sex", "zip code"]
    assert offered("audit", table, "--quasi-identifiers", "age,s") == ["age,sex"]
    assert offered("audit", table, "--quasi-identifiers", "sex,") == ["sex,age", "sex,zip code"]
    parquet = Path(table).with_suffix(".parquet")
    pq.write_table(pa.table({"age": [1], "born": [2]}), parquet)
    assert offered("audit", str(parquet), "--person", "b") == ["born"]


def test_what_cannot_be_read_offers_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"no parquet")
    for name in ("broken.parquet", "missing.csv", "."):
        assert offered("audit", str(tmp_path / name), "--person", "") == []
