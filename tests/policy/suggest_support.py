"""Proposals checked whole, and a table of people to propose for."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from aegis.masks import Identity, Kind, Suppress, ValueCounts, evaluate
from aegis.policy import Policy, Role, load_policy
from aegis.policy.suggest import ProposedPolicy, init_policy
from aegis.policy.suggest.masks import MOST_MASKS
from aegis.sources import open_table


def load_text(text: str) -> Policy:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.yaml"
        path.write_text(text, encoding="utf-8")
        return load_policy(path)


def check(table: pa.Table, label: str) -> ProposedPolicy:
    """Propose a policy and check everything that holds for every proposal."""
    proposed = init_policy(table, label=label)
    assert load_text(proposed.yaml) == proposed.policy
    assert list(proposed.profiles) == table.column_names
    assert set(proposed.policy.attributes) == set(table.column_names) - {label}
    assert init_policy(table, label=label).yaml == proposed.yaml
    json.dumps(proposed.to_dict(), allow_nan=False)
    for attribute in proposed.policy.attributes.values():
        check_candidates(table, proposed, attribute.name)
    return proposed


def check_candidates(table: pa.Table, proposed: ProposedPolicy, name: str) -> None:
    """Check the candidates of one attribute on the data itself."""
    attribute = proposed.policy.attributes[name]
    if not attribute.scored:
        assert attribute.masks == ()
        return
    assert 1 <= len(attribute.masks) <= MOST_MASKS
    assert len(set(attribute.masks)) == len(attribute.masks)
    if attribute.role is Role.QUASI_IDENTIFIER:
        assert attribute.masks[-1] == Suppress()
    else:
        assert len(attribute.masks) == 1
    column = open_table(table.select([name])).table
    counted = column.group_by(v=column[name]).aggregate(n=lambda t: t.count()).order_by("v")
    values = counted.to_pyarrow()
    kind = Kind.of(column[name].type())
    assert kind is not None
    data = ValueCounts(kind, values["v"].combine_chunks(), values["n"].to_numpy())
    for mask in attribute.masks:
        mask.check(kind, name)
    fitted = [mask.fit(data) for mask in attribute.masks]
    groups = [len(g.labels) for g in evaluate([*fitted, Identity()], data.values)]
    if attribute.role is Role.QUASI_IDENTIFIER:
        assert any(size < groups[-1] for size in groups[:-1])


def people(rows: int = 400) -> pa.Table:
    start = date(1950, 1, 1)
    return pa.table(
        {
            "user_id": range(rows),
            "email": [f"p{i}@example.org" for i in range(rows)],
            "token": [f"{i:08x}" for i in range(rows)],
            "age": [18 + i % 70 for i in range(rows)],
            "zip": [f"{10000 + i % 97:05d}" for i in range(rows)],
            "sex": ["f" if i % 2 else "m" for i in range(rows)],
            "job": [f"job {i % 12}" for i in range(rows)],
            "birth_date": [start + timedelta(days=37 * (i % 300)) for i in range(rows)],
            "visited": [
                datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=i % 200) for i in range(rows)
            ],
            "diagnosis": [f"E{i % 9}" for i in range(rows)],
            "weight": [50 + i * 0.37 for i in range(rows)],
            "spent": [0 if i % 4 else 13 * i for i in range(rows)],
            "constant": ["x"] * rows,
            "void": pa.nulls(rows, pa.int64()),
            "items": [[i] for i in range(rows)],
            "label": [i % 3 == 0 for i in range(rows)],
        }
    )
