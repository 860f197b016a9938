"""Versions of one table: the ledger remembers tables and keys of all levels, and refuses their difference."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import aegis
from aegis.errors import DataError, PolicyError
from aegis.policy import Policy, load_policy
from aegis.safe.ledger import EntryState, Ledger
from aegis.safe.protect import release_protected
from aegis.study import Study

KEY, OTHER = b"k" * 32, b"o" * 32
NOISE = {"level": "noise", "epsilon": 0.5, "delta": 1e-5, "public": ["*"]}


def policy() -> Policy:
    masks = {"a": ["identity", {"bucketize": {"width": 4}}], "b": ["identity", "suppress"]}
    attributes = {n: {"role": "quasi-identifier", "masks": m} for n, m in masks.items()}
    return load_policy({"version": 1, "label": "y", "privacy": {"k": 5}, "attributes": attributes})


def table(rows: int, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "a": pa.array(random.integers(0, 8, rows), pa.int64()),
            "b": random.choice(["u", "v"], rows).tolist(),
            "y": random.choice(["n", "p"], rows).tolist(),
        }
    )


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "house.ledger", create=True)
    for name in ("people", "others"):
        ledger.open_population(name, ceiling=1.0, delta=1e-5)
    return ledger


def told(book: Ledger, subject: object, name: str = "people", number: int = 0, **options: object):
    """Write a file of a table and enter it, at level counts unless options say otherwise."""
    given = {"level": "counts", "key": KEY} | options
    if given["level"] == "noise":
        del given["key"]
    output = book.path.parent / f"{name}{number}.protected"
    return release_protected(
        subject, policy(), output, ledger=book.path, population=name, force=True, **given
    )


def test_every_level_is_remembered_with_table_and_output(book):
    told(book, table(400))
    told(book, table(400), number=1, **NOISE)
    counts, noise = book.entries("people")
    assert (counts.state, counts.spend, noise.state) == (
        EntryState.COMMITTED,
        None,
        EntryState.COMMITTED,
    )
    assert counts.table == noise.table == aegis.sources.open_table(table(400)).content_digest()
    assert counts.digest
    assert counts.digest != noise.digest
    assert counts.key
    assert not noise.key
    assert KEY not in book.path.read_bytes()
    assert book.balance("people").spent == noise.rho > 0
    book.verify(book.head)


def test_a_second_version_under_one_key_is_refused(book):
    """Cells that changed between the two files are those of the person who was added."""
    before = table(400)
    added = pa.concat_tables([before, table(1, seed=7)])
    told(book, before)
    head = book.head
    for options in ({}, {"new_version": True}):
        with pytest.raises(PolicyError, match=r"another table|the rows that changed"):
            told(book, added, number=1, **options)
    for name in ("people", "others"):
        with pytest.raises(PolicyError, match="the rows that changed"):
            told(book, added, name, number=1, new_version=True)
    assert book.head == head
    assert not list(book.path.parent.glob("*1.protected"))
    made = told(book, added, number=2, key=OTHER, new_version=True)
    assert any("2 versions of the table" in note for note in made.notes)


def test_the_same_rows_in_another_order_are_the_same_table(book):
    """Else the average over keys comes back, with one order of the rows for each key."""
    rows = table(400)
    told(book, rows)
    turned = rows.take(list(range(399, -1, -1))).select(rows.column_names[::-1])
    with pytest.raises(PolicyError, match="average of files under several keys"):
        told(book, turned, number=1, key=OTHER, new_version=True)
    told(book, turned, number=2)


def test_another_key_of_the_same_table_is_refused(book):
    """The average of files over keys is the exact table."""
    first = told(book, table(400))
    again = told(book, table(400), number=1)
    assert {n: a.table.tolist() for n, a in first.attributes.items()} == {
        n: a.table.tolist() for n, a in again.attributes.items()
    }
    head = book.head
    with pytest.raises(PolicyError, match="average of files under several keys"):
        told(book, table(400), number=2, key=OTHER)
    assert book.head == head
    assert not list(book.path.parent.glob("*2.protected"))


@pytest.mark.parametrize("options", [{}, NOISE])
def test_a_ledger_of_another_table_is_refused_and_nothing_is_spent(book, options):
    # Large classes: noise could leave the name of a small one out, and refuse the file.
    told(book, table(4000), **NOISE)
    head, spent = book.head, book.balance("people").spent
    with pytest.raises(PolicyError, match="belongs to another table") as refused:
        told(book, table(3800, seed=3), number=1, **options)
    assert "--new-version" in str(refused.value.hint)
    with pytest.raises(PolicyError, match="belongs to the population 'people'"):
        told(book, table(4000), "others", **options)
    assert (book.head, book.balance("people").spent) == (head, spent)
    assert book.balance("others").spent == 0
    assert not list(book.path.parent.glob("others*.protected"))
    told(book, table(3800, seed=3), number=2, new_version=True, **options)


def test_a_request_that_failed_leaves_no_table_behind(book):
    with pytest.raises(PolicyError, match="threshold"):
        told(book, table(400), threshold=1000)
    [entry] = book.entries("people")
    assert entry.state is EntryState.CANCELLED
    told(book, table(380, seed=3), key=OTHER)


def test_a_summary_is_known_by_its_counts(book):
    summaries = [Study(table(400, seed), policy()).summary for seed in (0, 0, 1)]
    told(book, summaries[0])
    told(book, summaries[1], number=1)
    with pytest.raises(PolicyError, match="belongs to another table"):
        told(book, summaries[2], number=2)


def test_level_counts_without_a_ledger_is_noted(tmp_path, book):
    made = release_protected(
        table(400), policy(), tmp_path / "a.protected", level="counts", key=KEY
    )
    assert any("without a ledger, Aegis does not know" in note for note in made.notes)
    assert not any("without a ledger" in note for note in told(book, table(400)).notes)
    noise = release_protected(table(400), policy(), tmp_path / "n.protected", **NOISE)
    assert not any("without a ledger" in note for note in noise.notes)


def test_a_new_version_goes_with_a_ledger(tmp_path):
    with pytest.raises(PolicyError, match="--ledger and --population"):
        release_protected(table(400), policy(), tmp_path / "n.protected", new_version=True, **NOISE)


def test_a_head_that_was_noted_finds_a_ledger_that_was_cut(book):
    told(book, table(400))
    noted = book.head
    connection = sqlite3.connect(book.path)
    connection.execute("drop trigger event_remains")
    connection.execute("delete from event where number = (select max(number) from event)")
    connection.commit()
    connection.close()
    book.verify()  # the chain itself is whole
    with pytest.raises(DataError, match="noted is not in its chain"):
        book.verify(noted)


def test_a_refusal_that_noise_decided_costs_what_the_file_would(book):
    """Who may ask again for nothing learns from refusals how many rows a class has."""
    asked = {**NOISE, "public": ["a", "b"]}  # the label has to be named, and has too few rows
    with pytest.raises(PolicyError, match="enough rows to be named") as refused:
        told(book, table(12), **asked)
    assert "Noise was drawn, so that the cost stays in the ledger." in refused.value.hint
    [entry] = book.entries("people")
    assert entry.state is EntryState.BEGUN
    assert book.balance("people").spent == entry.rho > 0
    with pytest.raises(PolicyError, match="Level noise takes no step"):
        told(book, table(12), **asked, step=3)
    assert book.entries("people")[1].state is EntryState.CANCELLED
    assert book.balance("people").spent == entry.rho


def test_a_cost_without_an_output_is_never_silent(book, tmp_path, monkeypatch):
    """The disk was full after the noise was drawn, and nothing said that the budget had paid."""

    def full(*_, **__):
        raise DataError("Cannot write the file.", hint="Check space.")

    monkeypatch.setattr("aegis.safe.protect.release.save_protected", full)
    with pytest.raises(DataError, match="Cannot write") as refused:
        told(book, table(400), **NOISE)
    [entry] = book.entries("people")
    assert refused.value.hint == (
        f"Check space. The cost stays in the ledger as entry {entry.number}: output had begun."
    )
    monkeypatch.undo()
    made = told(book, table(400), **NOISE)
    [note] = [note for note in made.notes if "has no output for" in note]
    assert f"1 cost of 'people' (entry {entry.number})" in note
    assert "charged again" in note
