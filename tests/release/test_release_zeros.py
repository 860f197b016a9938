"""A release spells equal numbers alike: a reader of its text counts the classes that were certified."""

from __future__ import annotations

import csv
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import aegis
from aegis.masks import parse_mask
from aegis.policy import Configuration

NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000000))[0]
NUMBERS = np.array([-0.0, 0.0, NEGATIVE_NAN, float("nan"), 1.5, 1.5] * 10)
TABLE = pa.table(
    {
        "x": NUMBERS,
        "y": pa.array(np.repeat([-0.0, 0.0, 2.0], 20), pa.float32()),
        "label": ["a", "b", "b"] * 20,
    }
)
POLICY = {
    "version": 1,
    "label": "label",
    "privacy": {"k": 5, "suppression": 0.9},
    "attributes": {"x": {"role": "quasi-identifier"}, "y": {"role": "quasi-identifier"}},
}
AS_IT_IS = Configuration("as it is", {name: parse_mask("identity") for name in ("x", "y")})


def smallest_class(file: Path) -> int:
    with file.open(newline="") as rows:
        return min(Counter((row["x"], row["y"]) for row in csv.DictReader(rows)).values())


def test_masked_release(tmp_path: Path) -> None:
    policy = aegis.load_policy(POLICY)
    release = aegis.apply(TABLE, policy, AS_IT_IS, output=tmp_path / "m.csv")
    assert release.audit.report.k == smallest_class(tmp_path / "m.csv") >= 5


@pytest.mark.parametrize("method", ["mondrian", "k-member", "mdav", "rank-swap"])
def test_record_level_release(tmp_path: Path, method: str) -> None:
    zeros = TABLE.set_column(0, "x", pa.array(np.nan_to_num(NUMBERS, nan=2.0)))
    release = aegis.Study(zeros, POLICY).anonymize(method, output=tmp_path / "m.csv")
    assert release.audit.report.k == smallest_class(tmp_path / "m.csv") >= 5


def test_rows_in_memory() -> None:
    shown = aegis.apply(TABLE, aegis.load_policy(POLICY), AS_IT_IS).to_arrow()
    assert not np.signbit(shown["x"].to_numpy()).any()
    assert not np.signbit(shown["y"].to_numpy()).any()
