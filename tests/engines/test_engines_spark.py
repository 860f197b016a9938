"""Spark: what the embedded engine gives, with rows left to the executors, and its failures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines_support import (
    HOSTILE,
    assert_advised_alike,
    assert_same,
    awkward,
    configuration,
    policy,
    rows_of,
)

import aegis
from aegis.cli.main import run
from aegis.errors import DataError, EngineError, InternalError, PolicyError
from aegis.policy import Configuration, dump_configurations, dump_policy, load_policy
from aegis.release import applying
from aegis.sources import Source, open_table
from aegis.sources.embedded import translate
from aegis.sources.engines import Spark
from aegis.sources.spark import SparkFolder, connect
from aegis.summary import builder, coded_rows, summarize
from aegis.summary.coded_rows import count_by
from aegis.summary.count_cells import count_cells
from aegis.summary.pairs_in_engine import count_pairs_in_engine

# PySpark and Ibis call old names of pandas, and sockets are closed late.
pytestmark = pytest.mark.filterwarnings("ignore")
CV_FOLDS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("people")
    size = awkward().num_rows // CV_FOLDS
    for part in range(CV_FOLDS):
        pq.write_table(awkward().slice(part * size, size), place / f"{part}.parquet")
    return place


@pytest.fixture(scope="module")
def people(folder: Path, spark: Any) -> Source:
    return open_table(str(folder), engine=spark)


def test_the_summary_equals_that_of_the_embedded_engine(people: Source) -> None:
    ours = summarize(people, policy())
    assert_same(ours, summarize(awkward(), policy()))
    folds = ours.pairs.folds
    assert folds is not None
    assert folds.rows.sum() == awkward().num_rows
    assert np.count_nonzero(folds.rows) > CV_FOLDS


@pytest.mark.parametrize("sent", [True, False])
def test_pairs_counted_here_and_by_the_executors_are_the_same(
    people: Source, monkeypatch: pytest.MonkeyPatch, sent: bool
) -> None:
    counted_there: list[bool] = []

    def there(*given: Any, **more: Any) -> Any:
        counted_there.append(True)
        return count_pairs_in_engine(*given, **more)

    monkeypatch.setattr(builder, "count_pairs_in_engine", there)
    monkeypatch.setattr(Spark, "sends_combinations", sent)
    ours, theirs = summarize(people, policy()).pairs, summarize(awkward(), policy()).pairs
    assert counted_there == [True] * (not sent)
    assert ours.folds is not None
    assert theirs.folds is not None
    assert all(map(np.array_equal, ours.folds.atom_counts, theirs.folds.atom_counts))
    for pair, index in theirs.index.items():
        assert np.array_equal(ours.index[pair], index)
        assert np.array_equal(ours.folds.fold[pair], theirs.folds.fold[pair])
        assert np.array_equal(ours.folds.count[pair], theirs.folds.count[pair])


@pytest.mark.parametrize(("most", "read"), [(10**9, True), (0, False)])
def test_values_are_counted_from_the_groups_that_were_read(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, read: bool
) -> None:
    rows = pa.concat_tables([awkward()] * 3)
    pq.write_table(rows, tmp_path / "rows.parquet")
    source, queries = open_table(tmp_path / "rows.parquet", engine=spark), []
    cells: list[bool] = []

    def of_cells(*given: Any, **more: Any) -> Any:
        cells.append(True)
        return count_cells(*given, **more)

    def counted(*given: Any) -> Any:
        queries.append(next(iter(given[2].values())).get_name())
        return count_by(*given)

    monkeypatch.setattr(coded_rows, "TRIAL_ROWS", rows.num_rows)
    monkeypatch.setattr(coded_rows, "MOST_ROWS", most)
    theirs = summarize(rows, policy())
    monkeypatch.setattr(coded_rows, "count_by", counted)
    monkeypatch.setattr(builder, "count_cells", of_cells)
    assert_same(summarize(source, policy()), theirs)
    assert cells == [True] * (not read)
    grouped = {HOSTILE, "age", "born", "ill", "y"}
    assert set(queries) & grouped == (set() if read else grouped)
    assert "pay" in queries


def test_groups_are_stored_without_the_small_hash_table(
    people: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = people.engine.backend._session  # type: ignore[attr-defined]
    name, seen = "spark.sql.codegen.aggregate.map.twolevel.enabled", []
    frames = type(session.range(1))
    persist = frames.persist

    def watched(frame: Any) -> Any:
        seen.append(session.conf.get(name))
        return persist(frame)

    monkeypatch.setattr(frames, "persist", watched)
    before = session.conf.get(name)
    with people.keep(people.table.group_by("age").aggregate(n=people.table.count())) as stored:
        assert session.conf.get(name) == before == "true"
        assert people.collect(stored.aggregate(n=stored["n"].sum()))["n"][0].as_py() == people.rows
    assert seen == ["false"]


@pytest.mark.parametrize(("most_rows", "most_cells"), [(119, 10**9), (10**9, 599)])
def test_pairs_of_many_rows_are_counted_by_the_executors(
    people: Source, monkeypatch: pytest.MonkeyPatch, most_rows: int, most_cells: int
) -> None:
    def refuse(*_: Any) -> Any:
        raise InternalError("they were sent")

    monkeypatch.setattr(builder, "read_combinations", refuse)
    with pytest.raises(InternalError, match="they were sent"):
        summarize(people, policy())
    monkeypatch.setattr(builder, "MOST_ROWS", most_rows)
    monkeypatch.setattr(builder, "MOST_CELLS", most_cells)
    assert summarize(people, policy()).pairs.rows == awkward().num_rows


def test_advice_and_audit_equal_those_of_the_embedded_engine(people: Source) -> None:
    assert_advised_alike(people, 4)


def test_a_sample_and_folds_are_drawn_by_the_seed(people: Source) -> None:
    drawn = [people.collect(people.sample(60, seed=seed)) for seed in (1, 1, 2)]
    assert rows_of(drawn[0]) == rows_of(drawn[1]) != rows_of(drawn[2])
    scattered = people.engine.row_hash(people.table, 1)
    numbers = people.collect(people.table.select(f=scattered))["f"].to_pylist()
    assert len(set(numbers)) == awkward().num_rows
    assert 0 <= min(numbers) < max(numbers) < 1 << 30


def suppressing() -> tuple[Any, Configuration]:
    rules = policy(k=3, suppression=0.9)
    return rules, configuration(rules)


def little() -> tuple[Any, Configuration]:
    """Return a policy of one attribute and a configuration: each query takes Spark a while."""
    masks = [{"bucketize": {"width": 20}}, "suppress"]
    rules = load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 3, "suppression": 0.9},
            "attributes": {"age": {"role": "quasi-identifier", "masks": masks}},
        }
    )
    return rules, configuration(rules)


def test_a_release_is_written_by_the_executors(people: Source, tmp_path: Path) -> None:
    rules, chosen = suppressing()
    paper = tmp_path / "paper.json"
    target = tmp_path / "masked.parquet"
    # Spark gives rows other places, and so other parts: hold what does not go by parts against it.
    by: dict[str, Any] = {"measure": "held-out-pillai"}
    release = aegis.apply(people, rules, chosen, output=target, certificate=paper, **by)
    expected = aegis.apply(awkward(), rules, chosen)
    assert expected.data is not None
    one = tmp_path / "one.parquet"
    other = aegis.apply(
        awkward(), rules, chosen, output=one, certificate=tmp_path / "one.json", **by
    )
    assert release.utility is not None
    assert other.utility is not None
    found, wanted = release.utility.to_dict(), other.utility.to_dict()
    assert found.pop("lost_classes") == wanted.pop("lost_classes") == {}
    # Each engine deals the rows to folds of its own, which the error is measured over.
    assert found.pop("stderr") > 0
    assert wanted.pop("stderr") > 0
    assert found == pytest.approx(wanted)
    for path in (one, tmp_path / "one.json"):
        path.unlink()
    assert release.suppressed_rows == expected.suppressed_rows > 0
    audited, embedded = release.audit.to_dict(), expected.audit.to_dict()
    # What columns imply is worked out where the rows are at hand.
    assert audited["outside"].pop("implied") is None
    embedded["outside"].pop("implied")
    assert audited == embedded
    assert rows_of(pq.read_table(target)) == rows_of(expected.data)
    assert len(list(target.glob("part-*.parquet"))) > 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["masked.parquet", "paper.json"]
    document = json.loads(paper.read_text(encoding="utf-8"))
    assert "sha256" not in document["input"]
    assert people.digest() != document["output"]["sha256"]
    assert document["output"]["file"] == "masked.parquet"
    # Whoever has no Spark reads the files: a true certificate is not called false.
    unordered = "output.sha256: it is a digest of rows in any order, see --engine spark"
    session = people.engine.backend._session  # type: ignore[attr-defined]
    for shown, said in ((target, [unordered]), (open_table(target, engine=session), [])):
        checked = aegis.check_certificate(shown, paper, policy=rules)
        assert checked.passed, checked.mismatches
        assert [text for text in checked.unchecked if text.startswith("output.sha256")] == said
    forged = document | {"output": document["output"] | {"sha256_of": "files"}}
    paper.write_text(json.dumps(forged), encoding="utf-8")
    refused = aegis.check_certificate(target, paper, policy=rules)
    assert "output.sha256" in {mismatch.what for mismatch in refused.mismatches}
    with pytest.raises(PolicyError, match="exists"):
        aegis.apply(people, rules, chosen, output=target)
    again = aegis.apply(people, *little(), output=target, force=True)
    replaced = pq.read_table(target)
    assert replaced.num_rows == again.released_rows > release.released_rows
    assert replaced.column_names == ["age", "y"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["masked.parquet", "paper.json"]


def test_what_fails_its_audit_leaves_what_was_there(
    people: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise InternalError("not as planned")

    monkeypatch.setattr(applying, "refuse_unplanned", refuse)
    rules, chosen = little()
    target = tmp_path / "masked"
    target.mkdir()
    (target / "old").write_text("old", encoding="utf-8")
    with pytest.raises(InternalError, match="not as planned"):
        aegis.apply(people, rules, chosen, output=target, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["masked"]
    assert [p.name for p in target.iterdir()] == ["old"]


def test_places_that_cannot_be_written_are_refused(people: Source, folder: Path) -> None:
    rules, chosen = little()
    with pytest.raises(PolicyError, match="is the table itself"):
        aegis.apply(people, rules, chosen, output=folder, force=True)
    for place in (folder / "masked", folder.parent):
        with pytest.raises(PolicyError, match="lies within its folder"):
            aegis.apply(people, rules, chosen, output=place, force=True)
    with pytest.raises(PolicyError, match="writes folders of Parquet"):
        aegis.apply(people, rules, chosen, output=folder.parent / "masked.csv")
    with pytest.raises(PolicyError, match="come to this process, the driver"):
        aegis.apply(people, rules, chosen)
    assert len(list(folder.iterdir())) == CV_FOLDS


def test_a_folder_beside_one_file_is_written(spark: Any, tmp_path: Path) -> None:
    place = tmp_path / "with blank"
    place.mkdir()
    file = place / "a b.parquet"
    pq.write_table(awkward(), file)
    rules, chosen = little()
    one = open_table(str(file), engine=spark)
    assert aegis.apply(one, rules, chosen, output=place / "masked").rows == one.rows
    with pytest.raises(PolicyError, match="is the table itself"):
        aegis.apply(one, rules, chosen, output=file, force=True)


@pytest.mark.parametrize("answer", ["no", "exception"])
def test_a_rename_that_fails_leaves_what_was_there(
    people: Source, tmp_path: Path, answer: str
) -> None:
    target = SparkFolder(people, str(tmp_path / "masked"))
    (tmp_path / "masked").mkdir()
    (tmp_path / "masked" / "old").write_text("old", encoding="utf-8")
    honest = target._files

    class Refusing:
        """A file system that does not give the new folder its name."""

        def __getattr__(self, name: str) -> Any:
            return getattr(honest, name)

        def rename(self, one: Any, other: Any) -> bool:
            if not one.toString().endswith(".partial"):
                return bool(honest.rename(one, other))
            if answer == "exception":
                raise ConnectionError("connection reset")
            return False

    object.__setattr__(target, "_files", Refusing())
    with pytest.raises(EngineError, match=r"Cannot rename|was lost"), target.written(people.table):
        assert len(list(tmp_path.iterdir())) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["masked"]
    assert [p.name for p in (tmp_path / "masked").iterdir()] == ["old"]


def test_what_cannot_be_deleted_does_not_hide_what_failed(people: Source, tmp_path: Path) -> None:
    target = SparkFolder(people, str(tmp_path / "masked"))

    class Gone:
        def delete(self, *_: Any) -> None:
            raise ConnectionError("connection refused")

    def fail(target: SparkFolder) -> None:
        with target.written(people.table):
            object.__setattr__(target, "_files", Gone())
            raise EngineError("what failed", hint="Do this.")

    for local, left in ((target._local, 0), (None, 1)):
        target = SparkFolder(people, str(tmp_path / "masked"))
        object.__setattr__(target, "_local", local)
        with pytest.raises(EngineError, match="what failed") as caught:
            fail(target)
        assert len(list(tmp_path.iterdir())) == left
        assert ("Delete " in caught.value.hint) == bool(left)


def test_noise_is_not_drawn_in_the_driver(people: Source, tmp_path: Path) -> None:
    from aegis.masks import parse_mask

    rules, chosen = suppressing()
    noisy = Configuration(
        "noisy", {**chosen.masks, "pay": parse_mask({"add_uniform": {"amount": 1}})}
    )
    with pytest.raises(PolicyError, match="without noise on Spark"):
        aegis.apply(people, rules, noisy, output=tmp_path / "masked")


def test_a_digest_is_of_the_rows_in_any_order(spark: Any, people: Source, tmp_path: Path) -> None:
    turned = awkward().take(pa.array(range(awkward().num_rows))[::-1])
    changed = awkward().set_column(0, "age", pa.array([1] * awkward().num_rows, pa.int32()))
    for name, table in (("turned", turned), ("changed", changed)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    found = {p.stem: open_table(p, engine=spark).digest() for p in tmp_path.iterdir()}
    assert found["turned"] == people.digest() != found["changed"]
    assert len(people.digest()) == 64


def test_frames_sessions_backends_and_the_catalog_are_opened(
    spark: Any, folder: Path, people: Source
) -> None:
    frame = spark.read.parquet(str(folder))
    frame.createOrReplaceTempView("staff")
    backend = ibis.pyspark.connect(spark)
    opened = [
        open_table(frame),
        open_table("staff", engine=spark),
        open_table("staff", engine=backend),
        open_table(backend.table("staff")),
        open_table(f"{folder}/*.parquet", engine="spark"),
    ]
    assert all(source.engine.rows_stay and source.rows == people.rows for source in opened)
    assert {source.digest() for source in opened} == {people.digest()}


def test_what_cannot_be_opened_is_named(spark: Any, tmp_path: Path, folder: Path) -> None:
    spark.read.parquet(str(folder)).createOrReplaceTempView("staff")
    with pytest.raises(DataError, match="No such file"):
        open_table(tmp_path / "none.parquet", engine=spark)
    with pytest.raises(DataError, match=r"No table 'stuff'.*Did you mean 'staff'"):
        open_table("stuff", engine=spark)
    (tmp_path / "t.csv").write_text("a,y\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="from Parquet or from the catalog"):
        open_table(tmp_path / "t.csv", engine=spark)
    (tmp_path / "bad.parquet").write_text("no parquet at all", encoding="utf-8")
    with pytest.raises((DataError, EngineError), match=r"bad\.parquet"):
        open_table(tmp_path / "bad.parquet", engine=spark)
    pq.write_table(pa.table({"a": [1], "A": [2]}), tmp_path / "twice.parquet")
    with pytest.raises(DataError, match=r"two columns named|Cannot read"):
        open_table(tmp_path / "twice.parquet", engine=spark)
    with pytest.raises(DataError, match=r"policy of another table.*\(Spark DataFrame\)"):
        summarize(open_table(spark.range(3)), policy())
    with pytest.raises(PolicyError, match="'flink' is not an engine"):
        open_table("t.parquet", engine="flink")
    with pytest.raises(PolicyError, match="for a session that runs already"):
        open_table("t.parquet", engine=spark, master="local[2]")
    with pytest.raises(PolicyError, match="Add --engine spark"):
        open_table("t.parquet", master="local[2]")
    with pytest.raises(PolicyError, match="but the engine is Spark"):
        open_table("postgres://me@host/db", name="t", engine=spark)


def test_files_of_different_schemas_are_refused(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "2.parquet")
    with pytest.raises(DataError, match="have different columns or types"):
        open_table(tmp_path, engine=spark)


def test_the_commands_run_on_spark(
    folder: Path, people: Source, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, chosen = little()
    for name, text in (
        ("p.yaml", dump_policy(rules)),
        ("c.yaml", dump_configurations({chosen.name: chosen})),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    words = [str(folder), "-p", str(tmp_path / "p.yaml"), "--engine", "spark", "-q"]
    target = tmp_path / "masked.parquet"
    assert run(["summarize", *words, "-o", str(tmp_path / "s.aegis")]) == 0
    assert run(["advise", *words, "--generate", "2", "-o", str(tmp_path / "best.yaml")]) == 0
    applying_words = ["apply", *words, "-c", str(tmp_path / "c.yaml"), "-o", str(target)]
    assert run([*applying_words, "-f", "json"]) == 0
    assert run(["audit", str(target), *words[1:]]) == 0
    assert run([*applying_words, "--memory-limit", "1GB"]) == 2
    assert run(["audit", *words, "--master", "local[7]"]) == 2
    assert run(["advise", str(tmp_path / "s.aegis"), *words[1:]]) == 2
    assert run(["advise", *words, "--with", "mdav"]) == 2
    # Messages are broken into lines by the width of the terminal.
    said = " ".join(capsys.readouterr().err.split())
    for part in (
        "works only with the embedded engine",
        "but you named the master local[7]",
        "engines read only tables",
        "Record-level methods read all rows, which would come to this process, the driver",
    ):
        assert part in said
    assert pq.read_table(target).num_rows > 0


def test_a_master_that_does_not_answer_is_named() -> None:
    pytest.importorskip("pyspark")
    from aegis.sources import spark as session

    with pytest.raises(EngineError, match=r"Cannot reach the master spark://127.0.0.1:1"):
        session._check_master("spark://127.0.0.1:1")
    with pytest.raises(PolicyError, match="not a master"):
        session._check_master("spark://somewhere")
    with pytest.raises(PolicyError, match="Spark Connect"):
        session._check_master("sc://somewhere")
    session._check_master("yarn")


def test_frames_of_pandas_on_spark_are_taken_and_those_of_connect_refused(
    spark: Any, people: Source
) -> None:
    class OfPandas:
        """Stands in for a frame of pandas on Spark, which asks for its own version of pandas."""

        def to_spark(self) -> Any:
            return spark.table("numbers")

    class OfConnect:
        pass

    OfPandas.__module__, OfPandas.__qualname__ = "pyspark.pandas.frame", "DataFrame"
    OfPandas.__name__ = OfConnect.__name__ = "DataFrame"
    OfConnect.__module__ = "pyspark.sql.connect.dataframe"
    spark.range(3).createOrReplaceTempView("numbers")
    assert open_table(OfPandas()).rows == 3
    with pytest.raises(PolicyError, match="DataFrame is one of Spark Connect"):
        open_table(OfConnect())
    OfConnect.__name__ = "SparkSession"
    with pytest.raises(PolicyError, match="SparkSession is one of Spark Connect"):
        connect(OfConnect())
    with pytest.raises(PolicyError, match="is not an engine"):
        connect(spark.sparkContext)


KILLED = """
import os, signal, sys
from aegis.cli.main import run
from aegis.release import applying
honest = applying.audit
def killing(output, **given):
    os.kill(output.backend._session.sparkContext._gateway.proc.pid, signal.SIGKILL)
    return honest(output, **given)
applying.audit = killing
sys.exit(run(sys.argv[1:]))
"""


def test_spark_that_ends_in_mid_run_is_said(folder: Path, spark: Any, tmp_path: Path) -> None:
    java = spark.sparkContext.getConf().get("spark.driver.extraJavaOptions")
    environment = {"PYSPARK_SUBMIT_ARGS": f"--driver-java-options '{java}' pyspark-shell"}
    rules, chosen = little()
    (tmp_path / "p.yaml").write_text(dump_policy(rules), encoding="utf-8")
    (tmp_path / "c.yaml").write_text(dump_configurations({"c": chosen}), encoding="utf-8")
    words = [folder, "-p", tmp_path / "p.yaml", "-c", tmp_path / "c.yaml"]
    words += ["-o", tmp_path / "masked", "--certificate", tmp_path / "paper.json"]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            KILLED,
            "apply",
            *map(str, words),
            "-q",
            "--engine",
            "spark",
            "--master",
            "local[1]",
        ],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    # Messages are broken into lines by the width of the terminal.
    said = " ".join(done.stderr.split())
    assert said.startswith("Error: The connection to ")
    assert "was lost" in said
    assert said.endswith("run the command again.")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.yaml", "p.yaml"]


AUDIT = "import sys; from aegis.cli.main import run; sys.exit(run(sys.argv[1:]))"


def audited(folder: Path, *, before: str = "", **environment: str) -> str:
    """Return what a process of its own says of an audit that cannot start."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            before + AUDIT,
            "audit",
            str(folder),
            "--engine",
            "spark",
            "--quasi-identifiers",
            "age",
        ],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    return done.stderr


def test_a_missing_java_is_said(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    assert "Spark needs Java, and JAVA_HOME is" in audited(folder, JAVA_HOME=str(tmp_path))


def test_a_missing_extra_is_said(folder: Path) -> None:
    said = audited(folder, before="import sys; sys.modules['pyspark'] = None\n")
    assert "Spark is not installed" in said
    assert "aegis-advisor[spark]" in said


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (
            "An error occurred while calling o1.parquet.\n: org.apache.spark.SparkException: Job "
            "aborted.\nCaused by: java.io.IOException: No space left on device\n\tat x.Y",
            "The disk is full: IOException: No space left on device",
        ),
        (
            "An error occurred while calling o1.toArrow.\n: java.lang.OutOfMemoryError: Java heap "
            "space\n\tat x.Y",
            "too little memory for t: OutOfMemoryError",
        ),
        ("Answer from Java side is empty", "The connection to t was lost"),
    ],
)
def test_failures_of_spark_are_told_apart(said: str, meant: str) -> None:
    assert meant in translate(RuntimeError(said), "t").message


def test_other_engines_are_refused() -> None:
    with pytest.raises(PolicyError, match="is not an engine"):
        connect("flink")
