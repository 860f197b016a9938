"""Sums of weights are the same on every engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aegis.sources import Source, open_table
from aegis.summary import PairCounts, summarize

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = 90
LABELS: tuple[Any, ...] = ("y", {"column": "price", "kind": "number"})


def policy(label: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "label": label,
        "weight": "w",
        "attributes": {
            "age": {"role": "quasi-identifier", "masks": ["identity", {"bucketize": {"width": 5}}]},
            "town": {"role": "feature"},
        },
    }


def table() -> pa.Table:
    draw = np.random.default_rng(4)
    y = [None if i % 20 == 3 else "ab"[i * i % 7 > 3] for i in range(ROWS)]
    return pa.table(
        {
            "age": draw.integers(20, 30, ROWS),
            "town": draw.choice(list("abc"), ROWS),
            "y": pa.array(y, pa.string()),
            "price": np.round(draw.normal(0, 1e6, ROWS), 2),
            "w": np.round(draw.gamma(1, 1000, ROWS), 3) * (draw.random(ROWS) > 0.1),
        }
    )


def assert_counts(here: PairCounts, there: PairCounts) -> None:
    assert (here.weights, here.rows) == (there.weights, there.rows)
    for pair in here.index:
        assert here.index[pair].tolist() == there.index[pair].tolist()
        assert here.count[pair].tolist() == there.count[pair].tolist()
    assert here.folds is not None
    assert there.folds is not None
    assert here.folds.rows.tolist() == there.folds.rows.tolist()
    for own, other in zip(here.folds.atom_counts, there.folds.atom_counts, strict=True):
        assert own.tolist() == other.tolist()
    if here.responses is not None:
        assert there.responses is not None
        assert here.responses.squares == there.responses.squares
        for own, other in zip(here.responses.sums, there.responses.sums, strict=True):
            assert own.tolist() == other.tolist()


def assert_same(there: Source) -> None:
    for label in LABELS:
        own, other = (summarize(t, policy(label)) for t in (table(), there))
        assert own.weights == other.weights
        assert own.label.weighted.tolist() == other.label.weighted.tolist()
        for left, right in zip(own.attributes.values(), other.attributes.values(), strict=True):
            assert left.joint.tolist() == right.joint.tolist()
        assert_counts(own.pairs, other.pairs)


def test_postgresql_adds_up_weights_as_the_embedded_engine_does(postgres: Any) -> None:
    connection = ibis.connect(postgres.url)
    connection.create_table("weighted", table(), overwrite=True)
    assert_same(Source(connection.table("weighted"), "weighted"))
    connection.disconnect()


def test_spark_adds_up_weights_as_the_embedded_engine_does(spark: Any, tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "weighted.parquet")
    assert_same(open_table(spark.read.parquet(str(tmp_path / "weighted.parquet"))))
