"""Spark on executors that are processes of their own: several JVMs, so only where asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from engines_support import awkward

asked = pytest.mark.skipif(
    os.environ.get("AEGIS_CLUSTER") != "1",
    reason="three Java programs of 1 GB each; AEGIS_CLUSTER=1 runs it",
)

CLUSTERED = """
import sys
import pyarrow.parquet as pq
import aegis
from aegis.sources import open_table
from engines_support import assert_advised_alike, assert_same, awkward, configuration, policy, rows_of
folder, output = sys.argv[1:]
people = open_table(folder, engine="spark", master="local-cluster[2,1,1024]")
context = people.backend._session.sparkContext
assert context._jsc.sc().getExecutorMemoryStatus().size() == 3
rules = policy(k=3, suppression=0.9)
assert_same(aegis.summarize(people, rules), aegis.summarize(awkward(), rules))
assert_advised_alike(people, 4)
chosen = configuration(rules)
release = aegis.apply(people, rules, chosen, output=output)
expected = aegis.apply(awkward(), rules, chosen)
assert release.audit.to_dict() == expected.audit.to_dict()
assert release.suppressed_rows == expected.suppressed_rows > 0
assert rows_of(pq.read_table(output)) == rows_of(expected.data)
print("the same")
"""


@asked
def test_two_executors_give_what_the_embedded_engine_gives(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    folder = tmp_path / "people"
    folder.mkdir()
    for part in range(4):
        pq.write_table(awkward().slice(30 * part, 30), folder / f"{part}.parquet")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CLUSTERED, str(folder), str(tmp_path / "masked")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.endswith("the same\n"), done.stderr
