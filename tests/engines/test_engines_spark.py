"""Spark: the summary, advice and audit of the embedded engine, with only aggregates to the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines_cases import spark_session
from engines_support import assert_same, awkward, policy

import aegis
from aegis.sources import Source, open_table
from aegis.summary import summarize

pytestmark = pytest.mark.filterwarnings("ignore")


def known() -> pa.Table:
    """Return the awkward table without NaN, which Ibis takes for null on Spark."""
    table = awkward()
    pay = [None if v is None or v != v else v for v in table["pay"].to_pylist()]
    place = table.column_names.index("pay")
    return table.set_column(place, "pay", pa.array(pay, pa.float64()))


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    folder = tmp_path_factory.mktemp("people")
    for part in range(4):
        pq.write_table(known().slice(part * 30, 30), folder / f"{part}.parquet")
    with ExitStack() as stack:
        session = spark_session(stack)
        session.read.parquet(str(folder)).createOrReplaceTempView("people")
        yield open_table(ibis.pyspark.connect(session).table("people"))


def test_the_summary_equals_that_of_the_embedded_engine(people: Source) -> None:
    assert_same(summarize(people, policy()), summarize(known(), policy()))


def test_advice_and_audit_equal_those_of_the_embedded_engine(people: Source) -> None:
    rules = policy()
    ours: dict[str, Any] = aegis.advise(people, rules, generate_count=4, seed=1).to_dict()
    theirs: dict[str, Any] = aegis.advise(known(), rules, generate_count=4, seed=1).to_dict()
    folds = {"stderr": None, "tied_with_best": None}
    assert ours["ranking"] == [ranked | folds for ranked in theirs["ranking"]]
    assert (
        aegis.audit(people, policy=rules).to_dict() == aegis.audit(known(), policy=rules).to_dict()
    )
