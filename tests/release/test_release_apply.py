"""Releases against masking and suppressing the rows in plain Python."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from aegis.advisor import Scorer
from aegis.advisor.scores import coarse
from aegis.errors import DataError, InternalError, NoAdmissibleConfiguration, PolicyError
from aegis.files import Silent
from aegis.masking.masked import refuse_unseen
from aegis.masks import evaluate, parse_mask
from aegis.measures import MEASURES
from aegis.policy import Configuration, Policy, load_policy, policy_digest
from aegis.release import Release, apply, audit
from aegis.sources import open_table
from aegis.summary import summarize

QUASI = ("age", "zip")
TREE = {"all": {"north": ["a1", "b1"], "south": ["a2", "b2", "c2", ""]}}
MASKS: dict[str, Any] = {
    "age": {"bucketize": {"width": 4}},
    "zip": {"keep_frequent": {"count": 3}},
    "pay": {"round": {"step": 2}},
}


def table_of(seed: int = 0, count: int = 80) -> pa.Table:
    """Return a table with nulls, NaN and empty texts, each a value of its own."""
    random = np.random.default_rng(seed)

    def drawn(values: list[Any], shares: list[float]) -> list[Any]:
        return [values[i] for i in random.choice(len(values), count, p=shares)]

    codes = ["a1", "a2", "b1", "", None]
    ages = drawn([*range(20, 30), None], [0.095] * 10 + [0.05])
    likely = [0.8 if (age or 0) > 24 else 0.2 for age in ages]
    return pa.table(
        {
            "name": [f"person {i}" for i in range(count)],
            "age": pa.array(ages, pa.int64()),
            "unused": pa.array(range(count)),
            "zip": pa.array(drawn(codes, [0.4, 0.3, 0.1, 0.1, 0.1]), pa.string()),
            "pay": pa.array(
                drawn([0.5, 1.5, float("nan"), None], [0.4, 0.4, 0.1, 0.1]), pa.float64()
            ),
            "y": ["q" if random.random() < p else "p" for p in likely],
        }
    )


def policy_of(privacy: dict[str, Any] | None = None, **changes: Any) -> Policy:
    attributes = {
        "name": {"role": "identifier"},
        "age": {"role": "quasi-identifier", "masks": ["identity", MASKS["age"], "suppress"]},
        "zip": {"role": "quasi-identifier", "masks": ["identity", MASKS["zip"], "suppress"]},
        "pay": {"role": "feature", "masks": ["identity", MASKS["pay"]]},
    }
    attributes |= changes.pop("attributes", {})
    return load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": privacy or {"k": 4, "suppression": 0.4},
            "attributes": attributes,
        }
        | changes
    )


def configuration(**masks: Any) -> Configuration:
    return Configuration("chosen", {n: parse_mask(m) for n, m in (MASKS | masks).items()})


CHOSEN = configuration()


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows, NaN as a text, so that equal rows compare equal."""
    columns = [
        ["NaN" if isinstance(v, float) and v != v else v for v in column.to_pylist()]
        for column in table.columns
    ]
    return list(zip(*columns, strict=True))


def expected(table: pa.Table, release: Release, k: int) -> list[tuple[Any, ...]]:
    """Mask row by row with the release's fitted masks and drop classes below `k`, in order."""
    masked = {}
    for name in ("age", "zip", "pay"):
        [grouping] = evaluate([release.configuration.masks[name]], table[name].combine_chunks())
        shown = grouping.masked_values.take(pa.array(grouping.codes))
        masked[name] = shown
    masked["y"] = table["y"].combine_chunks()
    rows = rows_of(pa.table(masked))
    classes = Counter(row[:2] for row in rows)
    return [row for row in rows if classes[row[:2]] >= k]


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    elif path.suffix == ".arrow":
        pa.feather.write_feather(table, path, compression="uncompressed")
    else:
        separator = "\t" if path.suffix == ".tsv" else ","
        lines = [separator.join(table.column_names)]
        shown = [
            ["" if v is None else '""' if v == "" else str(v) for v in column.to_pylist()]
            for column in table.columns
        ]
        lines.extend(separator.join(row) for row in zip(*shown, strict=True))
        path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("suffix", "target"),
    [
        (".parquet", ".csv"),
        (".csv", ".parquet"),
        (".csv", None),
        (".tsv", ".arrow"),
        (".arrow", ".tsv"),
        (None, ".feather"),
        (None, None),
    ],
)
def test_released_rows(tmp_path: Path, suffix: str | None, target: str | None) -> None:
    table = table_of()
    given = table if suffix is None else write(table, tmp_path / f"in{suffix}")
    output = None if target is None else tmp_path / f"out{target}"
    release = apply(given, policy_of(), CHOSEN, output=output)
    wanted = expected(table, release, 4)
    assert 0 < len(wanted) < 80
    released = release.data if output is None else open_table(output).table.to_pyarrow()
    assert released.column_names == ["age", "zip", "pay", "y"]
    assert rows_of(released) == wanted
    assert (release.rows, release.released_rows) == (80, len(wanted))
    assert release.suppressed_rows == 80 - len(wanted)
    assert set(release.dropped) == {"name", "unused"}
    sizes = Counter(row[:2] for row in wanted)
    assert (release.audit.report.k, release.audit.report.classes) == (
        min(sizes.values()),
        len(sizes),
    )
    assert release.audit.passed
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []
    json.dumps(release.to_dict(), allow_nan=False)


def without_input(figures: dict[str, Any]) -> dict[str, Any]:
    """Return figures of privacy without what an audit of the output alone cannot know."""
    return {**figures, "outside": {**figures["outside"], "implied": None}}


def test_empty_text_null_and_nan_stay_apart_in_csv(tmp_path: Path) -> None:
    table = table_of()
    policy = policy_of({"k": 1})
    output = tmp_path / "out.csv"
    same = configuration(age="identity", zip="identity", pay="identity")
    written = apply(table, policy, same, output=output)
    memory = apply(table, policy, same)
    assert written.audit.to_dict() == memory.audit.to_dict()
    assert audit(output, policy=policy).to_dict() == without_input(memory.audit.to_dict())
    assert len(set(table["zip"].to_pylist())) == 5
    assert open_table(output).table.to_pyarrow()["zip"].to_pylist() == table["zip"].to_pylist()


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    # More rows than a thread takes at once, of which some are suppressed.
    random = np.random.default_rng(0)
    count = 400_000
    table = pa.table(
        {
            "row": np.arange(count),
            "age": np.minimum(random.geometric(0.02, count), 300),
            "y": random.integers(0, 2, count),
        }
    )
    pa.parquet.write_table(table, tmp_path / "in.parquet", row_group_size=50_000)
    policy = load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 200, "suppression": 0.2},
            "attributes": {"row": {"role": "feature"}, "age": {"role": "quasi-identifier"}},
        }
    )
    chosen = Configuration(
        "as it is", {"row": parse_mask("identity"), "age": parse_mask("identity")}
    )
    digests = set()
    for attempt in range(3):
        output = tmp_path / f"out{attempt}.parquet"
        release = apply(tmp_path / "in.parquet", policy, chosen, output=output)
        assert release.suppressed_rows > 0
        digests.add(hashlib.sha256(output.read_bytes()).hexdigest())
    rows = pa.parquet.read_table(output)["row"].to_numpy()
    assert (np.diff(rows) > 0).all()
    assert len(digests) == 1


def test_training_and_test_set_agree() -> None:
    policy = policy_of(
        {"k": 1},
        attributes={"age": {"role": "quasi-identifier", "masks": [{"quantiles": {"count": 4}}]}},
    )
    declared = configuration(age={"quantiles": {"count": 4}})
    training = apply(table_of(1), policy, declared)
    assert declared.masks["age"].fitted is False
    other = apply(table_of(2), policy, training.configuration)
    assert other.configuration.masks == training.configuration.masks
    pairs: dict[str, set[tuple[Any, Any]]] = {"age": set(), "zip": set(), "pay": set()}
    for seed, release in ((1, training), (2, other)):
        for name, found in pairs.items():
            found |= set(
                zip(
                    map(str, table_of(seed)[name].to_pylist()),
                    release.data[name].to_pylist(),
                    strict=True,
                )
            )
    for name, found in pairs.items():
        shown = {(raw, str(masked)) for raw, masked in found}
        assert len({raw for raw, _ in shown}) == len(shown), name
    again = apply(table_of(2), policy, declared)
    assert again.configuration.masks["age"] != training.configuration.masks["age"]


def test_identifiers_are_dropped_or_tokenised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELEASE_TEST_KEY", "a secret of at least sixteen bytes")
    token = {
        "name": {"role": "identifier", "masks": [{"tokenise": {"key_env": "RELEASE_TEST_KEY"}}]}
    }
    table = table_of()
    assert "name" not in apply(table, policy_of(), CHOSEN).data.column_names
    release = apply(table, policy_of({"k": 1}, attributes=token), CHOSEN)
    tokens = release.data["name"].to_pylist()
    assert len(set(tokens)) == 80
    assert not set(tokens) & set(table["name"].to_pylist())
    assert "name" not in release.configuration.masks
    assert "name" not in release.dropped
    assert (
        apply(table, policy_of({"k": 1}, attributes=token), CHOSEN).data["name"].to_pylist()
        == tokens
    )


def hierarchical(**changes: Any) -> tuple[Policy, Configuration]:
    covered = {"all": {"north": ["a1", "b1"], "south": ["a2"]}}
    policy = policy_of(
        {"k": 1},
        attributes={
            "zip": {"role": "quasi-identifier", "hierarchy": covered, "masks": [{"level": 1}]}
        },
        **changes,
    )
    return policy, Configuration("c", {**CHOSEN.masks, "zip": policy.attributes["zip"].masks[0]})


def test_unseen_values(tmp_path: Path) -> None:
    table = table_of()
    unknown = table["zip"].to_pylist().count("")
    policy, chosen = hierarchical()
    with pytest.raises(DataError, match=rf"do not cover: zip \({unknown} rows\)"):
        apply(table, policy, chosen, output=tmp_path / "out.csv")
    with pytest.raises(DataError, match=r"do not cover: zip \(1 row\)"):
        refuse_unseen({"zip": 1})
    assert list(tmp_path.iterdir()) == []
    policy, chosen = hierarchical(unseen="suppress")
    release = apply(table, policy, chosen)
    assert release.unseen == {"zip": unknown}
    shown = dict(zip(table["zip"].to_pylist(), release.data["zip"].to_pylist(), strict=True))
    assert shown == {"a1": "north", "b1": "north", "a2": "south", "": "*", None: None}


def test_a_table_that_is_not_what_was_planned_is_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import aegis.release.writing as module

    honest = module.write_table
    output = tmp_path / "out.parquet"

    def loses_a_row(source: Any, table: Any, path: Path) -> None:
        honest(source, table.limit(source.collect(table).num_rows - 1), path)

    def makes_a_row_unique(source: Any, table: Any, path: Path) -> None:
        honest(source, table, path)
        rows = pa.parquet.read_table(path)
        ages = ["[0, 4[", *rows["age"].to_pylist()[1:]]
        pa.parquet.write_table(rows.set_column(0, "age", pa.array(ages)), path)

    for wrong in (loses_a_row, makes_a_row_unique):
        monkeypatch.setattr(module, "write_table", wrong)
        with pytest.raises(InternalError, match="not what was planned"):
            apply(table_of(), policy_of(), CHOSEN, output=output, certificate=tmp_path / "c.json")
        assert list(tmp_path.iterdir()) == []
        output.write_text("old")
        with pytest.raises(InternalError, match="not what was planned"):
            apply(table_of(), policy_of(), CHOSEN, output=output, force=True)
        assert output.read_text() == "old"
        output.unlink()


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO people SELECT * FROM people LIMIT 5",
        "UPDATE people SET age = 99 WHERE unused = 1",
    ],
)
def test_a_table_that_changes_while_it_is_read_is_no_bug(tmp_path: Path, change: str) -> None:
    """The message asked the user to report a bug of Aegis."""
    connection = ibis.duckdb.connect()
    people = connection.create_table("people", table_of())

    class Changing(Silent):
        @contextmanager
        def step(self, title: str, total: float | None = None) -> Iterator[Any]:
            if title.startswith("Writing"):
                connection.raw_sql(change)
            with super().step(title, total) as step:
                yield step

    with pytest.raises(DataError, match="changed while Aegis read it") as caught:
        apply(people, policy_of(), CHOSEN, output=tmp_path / "out.csv", progress=Changing())
    assert "Copy the rows into a table that nobody changes" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys, time
import aegis.release.writing as module
from aegis.release import apply
sys.path.insert(0, {tests!r})
from test_release_apply import CHOSEN, policy_of, table_of
honest = module.write_table
def slow(source, table, path):
    honest(source, table, path)
    with path.open("r+b") as file:
        file.truncate(10)
    print("half", flush=True)
    time.sleep(60)
module.write_table = slow
apply(table_of(), policy_of(), CHOSEN, output={output!r}, force=True)
"""


def test_a_kill_in_mid_write_leaves_the_old_file(tmp_path: Path) -> None:
    output = tmp_path / "out.parquet"
    output.write_bytes(b"old")
    code = KILLED.format(tests=str(Path(__file__).parent), output=str(output))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"half"
        os.kill(process.pid, signal.SIGKILL)
    assert output.read_bytes() == b"old"


def test_what_cannot_be_written(tmp_path: Path) -> None:
    table, policy = table_of(), policy_of()
    output = tmp_path / "out.csv"
    output.write_text("old")
    with pytest.raises(PolicyError, match="exists"):
        apply(table, policy, CHOSEN, output=output)
    assert output.read_text() == "old"
    assert apply(table, policy, CHOSEN, output=output, force=True).path == output
    with pytest.raises(PolicyError, match=r"\.docx"):
        apply(table, policy, CHOSEN, output=tmp_path / "out.docx")
    with pytest.raises(PolicyError, match="folder does not exist"):
        apply(table, policy, CHOSEN, output=tmp_path / "no" / "out.csv")
    certificate = tmp_path / "c.json"
    certificate.write_text("old")
    with pytest.raises(PolicyError, match="exists"):
        apply(table, policy, CHOSEN, output=tmp_path / "new.csv", certificate=certificate)
    assert not (tmp_path / "new.csv").exists()


@pytest.mark.parametrize("failing", ["out.parquet", "c.json"])
def test_there_is_no_certificate_of_a_table_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    honest = Path.replace

    def refuse(self: Path, target: Path) -> Path:
        if Path(target).name == failing:
            raise PermissionError(13, "Permission denied")
        return honest(self, target)

    monkeypatch.setattr(Path, "replace", refuse)
    output, paper = tmp_path / "out.parquet", tmp_path / "c.json"
    with pytest.raises(DataError, match=rf"Cannot write .*{failing}: Permission denied"):
        apply(table_of(), policy_of(), CHOSEN, output=output, certificate=paper)
    left = [] if failing == "out.parquet" else ["out.parquet"]
    assert [p.name for p in tmp_path.iterdir()] == left


def test_too_many_rows_to_suppress(tmp_path: Path) -> None:
    strict = policy_of({"k": 4, "suppression": 0.01})
    with pytest.raises(NoAdmissibleConfiguration, match="'chosen' does not meet the privacy rule"):
        apply(table_of(), strict, CHOSEN, output=tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []


def test_configuration_that_leaves_an_attribute_out() -> None:
    short = Configuration("short", {n: m for n, m in CHOSEN.masks.items() if n != "pay"})
    with pytest.raises(PolicyError, match="'short' does not mask 'pay'"):
        apply(table_of(), policy_of(), short)


def test_certificate(tmp_path: Path) -> None:
    source = write(table_of(), tmp_path / "in.parquet")
    output, paper = tmp_path / "out.parquet", tmp_path / "certificate.json"
    policy = policy_of()
    release = apply(source, policy, CHOSEN, output=output, certificate=paper)
    document = json.loads(paper.read_text())
    assert document == json.loads(json.dumps(release.certificate))
    assert document["input"] == {"origin": source.name, "rows": 80}
    assert document["output"] == {
        "file": "out.parquet",
        "rows": release.released_rows,
        "sha256": hashlib.sha256(output.read_bytes()).hexdigest(),
    }
    assert document["policy"]["sha256"] == policy_digest(policy)
    assert document["configuration"]["name"] == "chosen"
    assert document["configuration"]["masks"] == json.loads(
        json.dumps(release.configuration.spec())
    )
    assert document["suppressed_rows"] == release.suppressed_rows > 0
    measured = json.loads(json.dumps(audit(output, policy=policy).to_dict()))
    assert without_input(document["privacy"]) == measured
    assert document["privacy"]["passed"] is True
    identity = load_policy(
        {
            "version": 1,
            "label": "y",
            "attributes": {
                n: {"role": "feature", "masks": ["identity"]} for n in ("age", "zip", "pay")
            },
        }
    )
    measure = MEASURES.get("held-out-auc")
    before, after = (Scorer(summarize(path, identity)) for path in (source, output))
    unmasked, released = (s.value(s.unmasked, measure) for s in (before, after))
    unmasked = coarse(unmasked, before.summary.rows)
    assert document["utility"] == {
        "measure": "held-out-auc",
        "value": pytest.approx(released),
        "reference": unmasked,
        "reference_name": "the unmasked table",
        "stderr": pytest.approx(0.05, abs=0.05),
        "rows": "released",
        "lost_classes": {},
        "kept": pytest.approx(min(100 * (released - 0.5) / (unmasked - 0.5), 100)),
    }


def test_certificate_of_a_release_without_classes(tmp_path: Path) -> None:
    label = {"y": {"role": "quasi-identifier", "masks": ["suppress"]}}
    policy, output = policy_of(attributes=label), tmp_path / "out.csv"
    release = apply(
        table_of(),
        policy,
        configuration(y="suppress"),
        output=output,
        certificate=tmp_path / "c.json",
    )
    assert release.utility is None
    assert json.loads((tmp_path / "c.json").read_text())["utility"] is None


def test_certificates_that_have_no_place(tmp_path: Path) -> None:
    paper = tmp_path / "c.csv"
    with pytest.raises(PolicyError, match="you named no output"):
        apply(table_of(), policy_of(), CHOSEN, certificate=paper)
    with pytest.raises(PolicyError, match="would both be"):
        apply(table_of(), policy_of(), CHOSEN, output=paper, certificate=paper)
    assert list(tmp_path.iterdir()) == []


def test_in_memory_frames() -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    table = table_of()
    wanted = rows_of(apply(table, policy_of(), CHOSEN).data)
    assert rows_of(apply(polars.from_arrow(table), policy_of(), CHOSEN).data) == wanted
    frame = apply(table, policy_of(), CHOSEN).to_polars()
    assert len(frame) == len(wanted)
    texts = table.select(["age", "zip", "y"])
    small = policy_of(attributes={"pay": {"role": "ignore"}, "name": {"role": "ignore"}})
    chosen = Configuration("c", {n: CHOSEN.masks[n] for n in QUASI})
    frame = pandas.DataFrame({name: texts[name].to_pylist() for name in texts.column_names})
    frame["age"] = frame["age"].astype("Int64")
    assert apply(frame, small, chosen).released_rows == len(wanted)


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
def test_rows_come_back_from_memory_file_and_database_alike(tmp_path):
    table = table_of()
    here = apply(table, policy_of(), CHOSEN)
    file = apply(table, policy_of(), CHOSEN, output=tmp_path / "masked.parquet")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as made:
        made.register("given", table)
        made.execute("CREATE TABLE people AS SELECT * FROM given")
    there = open_table(f"duckdb:///{tmp_path}/t.duckdb", name="people")
    stored = apply(there, policy_of(), CHOSEN, into="masked")
    assert stored.data is None
    assert stored.path is None
    rows = rows_of(here.to_arrow())
    assert rows
    assert rows_of(file.to_arrow()) == rows
    assert sorted(rows_of(stored.to_arrow()), key=repr) == sorted(rows, key=repr)
    assert rows_of(here.to_polars().to_arrow()) == rows
    text = apply(table, policy_of(), CHOSEN, output=tmp_path / "masked.csv")
    for release in (file, text, stored):
        assert release.to_polars().shape == here.to_polars().shape
        assert release.to_pandas().shape == here.to_pandas().shape
