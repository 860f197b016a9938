"""Tables of other shapes than Adult: many columns, and hierarchies of many values."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.measure import ADULT, Figure, advised, command, in_another_process, step
from benchmarks.tables import as_csv

SEED = 3
QUASI = 6
THREE = ("income", "occupation", "hours-per-week")
"""Labels of Adult."""
Codes = npt.NDArray[np.integer[Any]]


def wide_table(folder: Path, columns: int, rows: int) -> tuple[Path, Path]:
    """Return a table and a policy: a quarter of the columns each are categories of 3 to 12 values,
    numbers of 100 values, yes or no, and numbers of more than 1,000 values.
    """
    random = np.random.default_rng(SEED)
    label = random.random(rows) < 0.3
    table: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for column in range(columns):
        told = label * (column % 7 == 0)
        match column % 4:
            case 0:
                values = _texts("v", random.integers(0, 3 + column % 10, rows))
                masks: list[Any] = ["identity", {"keep_frequent": {"count": 2}}, "suppress"]
            case 1:
                values = random.integers(0, 90, rows) + 10 * told
                masks = [
                    "identity",
                    *({"bucketize": {"width": w}} for w in (5, 10, 20)),
                    "suppress",
                ]
            case 2:
                values = np.where(random.random(rows) < 0.5 + 0.1 * told, "yes", "no")
                masks = ["identity", "suppress"]
            case _:
                values = random.integers(0, 1_500, rows) + 100 * told
                masks = [{"bucketize": {"width": w}} for w in (25, 100, 500)] + ["suppress"]
        table[f"c{column}"] = values
        role = "quasi-identifier" if column < QUASI else "feature"
        attributes[f"c{column}"] = {"role": role, "masks": masks}
    table["label"] = np.where(label, "yes", "no")
    return _written(folder / f"wide_{columns}_{rows}", table, attributes, k=2)


def zip_table(folder: Path) -> tuple[Path, Path]:
    """Return a table of 200,000 rows, one column of which has a hierarchy of 100,000 values."""
    random = np.random.default_rng(SEED)
    codes = np.sort(random.choice(1_000_000, 100_000, replace=False))
    texts = [f"{code:06d}" for code in codes]
    lines = [[text, *(text[: 6 - up] + "*" * up for up in range(1, 5))] for text in texts]
    _hierarchy(folder / "zip.csv", lines)
    drawn = np.concatenate([np.arange(len(texts)), random.integers(0, len(texts), 100_000)])
    age = random.integers(18, 90, len(drawn))
    table = {
        "zip": np.array(texts)[random.permutation(drawn)],
        "age": age,
        "sex": random.choice(["f", "m"], len(drawn)),
        "label": np.where(random.random(len(drawn)) < 0.2 + 0.3 * (age > 50), "yes", "no"),
    }
    ten = {"bucketize": {"width": 10}}
    attributes = {
        "zip": _levels("zip.csv", 4),
        "age": {"role": "quasi-identifier", "masks": ["identity", ten, "suppress"]},
        "sex": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
    }
    return _written(folder / "zip_table", table, attributes, k=5)


def many_hierarchies(folder: Path, count: int = 24, lines: int = 175_000) -> tuple[Path, Path]:
    """Return a table whose columns have hierarchies of six levels, 25 to some 49,000 values each."""
    random = np.random.default_rng(SEED)
    sizes = np.geomspace(20, 39_630, count)
    sizes = np.round(sizes * lines / sizes.sum()).astype(int)
    rows = int(sizes.sum())
    table: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for place, size in enumerate(sizes):
        fan = max(2, round(size ** (1 / 6)))
        texts = _texts(f"v{place}_", np.arange(size))
        _hierarchy(
            folder / f"h{place}.csv",
            [
                [text, *(f"g{up}_{i // fan**up}" for up in range(1, 6))]
                for i, text in enumerate(texts)
            ],
        )
        drawn = np.concatenate([np.arange(size), random.integers(0, size, rows - size)])
        table[f"a{place}"] = texts[random.permutation(drawn)]
        attributes[f"a{place}"] = _levels(f"h{place}.csv", 5, quasi=place < QUASI)
    table["label"] = np.where(random.random(rows) < 0.3, "yes", "no")
    return _written(folder / "many_hierarchies", table, attributes, k=2, suppression=1.0)


def many_classes(folder: Path, classes: int, rows: int) -> tuple[Path, Path]:
    """Return a table of ten columns and a label of many classes, with the masks that `init` proposes."""
    random = np.random.default_rng(SEED)
    label = random.integers(0, classes, rows)
    ten = [{"bucketize": {"width": width}} for width in (5, 10, 20)]
    table: dict[str, Any] = {
        "age": np.clip(40 + 2 * (label % 10) + random.normal(0, 12, rows), 17, 90).astype(int),
        "hours": np.clip(40 + label % 7 + random.normal(0, 10, rows), 1, 99).astype(int),
        "gain": (random.random(rows) < 0.15) * random.lognormal(7, 1, rows).round(-1),
        "score": (0.3 * label + random.normal(0, 10, rows)).round(2),
    }
    attributes: dict[str, Any] = {
        "age": {"role": "quasi-identifier", "masks": ["identity", *ten, "suppress"]},
        **{name: {"role": "feature", "masks": ["identity"]} for name in list(table)[1:]},
    }
    for values in (50, 25, 16, 7, 5, 2):
        told = np.where(random.random(rows) < 0.3, 7 * label, random.integers(0, values, rows))
        table[f"c{values}"] = _texts("v", told % values)
        fewer = [{"keep_frequent": {"count": count}} for count in (20, 10, 5) if count < values]
        masks = ["identity", *fewer, "suppress"]
        attributes[f"c{values}"] = {"role": "quasi-identifier", "masks": masks}
    table["label"] = _texts("y", label)
    return _written(folder / f"classes_{classes}", table, attributes, k=5, suppression=0.02)


def other_shapes(folder: Path) -> Iterator[Figure]:
    """Advise on wide tables and large hierarchies, as whole processes."""
    wide = in_another_process(wide_table, folder, 200, 200_000)
    narrow = in_another_process(wide_table, folder, 50, 10_000)
    zips = in_another_process(zip_table, folder)
    many = in_another_process(many_hierarchies, folder)
    classes = in_another_process(many_classes, folder, 100, 200_000)
    shapes: list[tuple[str, tuple[Path, Path], int, float, float | None]] = [
        ("200 columns x 200,000 rows, 20 configurations", wide, 20, 16, 1536),
        ("50 columns x 10,000 rows, 20 configurations", narrow, 20, 5, None),
        ("a hierarchy of 100,000 values, 3 configurations", zips, 3, 2, 500),
        ("24 hierarchies of 175,000 values, 10 configurations", many, 10, 10, None),
        ("100 classes x 200,000 rows, searched", classes, 0, 10, 1024),
    ]
    for name, (table, policy), count, seconds, megabytes in shapes:
        how = ("--generate", count) if count else ("--search",)
        words = ("advise", table, "-p", policy, *how, "--quiet")
        runs = [command(*words) for _ in range(3)]
        wall, cpu, peak = (statistics.median(run[i] for run in runs) for i in range(3))
        note = f"{wall:.2f} s elapsed"
        # A search that the time limit ends takes no longer, and finds less.
        ended = count > 0 or advised(*words[:-1])["search"]["stopped"] is None
        yield Figure(
            "shapes",
            f"advise, {name}",
            cpu,
            "s",
            seconds,
            note=note,
            proven=ended,
        )
        yield Figure("shapes", f"the same, {name}, peak memory", peak, "MB", megabytes)


def very_wide(folder: Path) -> Iterator[Figure]:
    """Propose a policy for 2,000 columns of a CSV file, and advise on the same columns, once each."""
    table, policy = in_another_process(wide_table, folder, 2_000, 20_000)
    rows = in_another_process(as_csv, table)
    proposed = folder / "proposed.yaml"
    for name, words in (
        ("init, from CSV", ("init", rows, "--label", "label", "-o", proposed, "--force")),
        ("advise, 20 configurations", ("advise", table, "-p", policy, "--generate", 20)),
    ):
        wall, cpu, peak = command(*words, "--quiet")
        what, note = f"{name}, 2,000 columns x 20,000 rows", f"{wall:.0f} s elapsed"
        yield Figure("shapes", what, cpu, "s", note=note)
        yield Figure("shapes", f"{what}, peak memory", peak, "MB")


def any_table(folder: Path, columns: int, rows: int) -> tuple[Path, Path]:
    """Return a table without a label, and a policy: most columns have 2 to 6 values, every eighth is
    a number, and all are a little associated.
    """
    random = np.random.default_rng(SEED)
    hidden = random.integers(0, 4, rows)
    table: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for column in range(columns):
        if column % 8 == 7:
            values = np.rint(random.normal(50, 15, rows) + 5 * hidden * (column % 3 == 0))
            masks = ["identity", *({"bucketize": {"width": w}} for w in (5, 20)), "suppress"]
            table[f"c{column}"] = values.astype(int)
        else:
            size = 2 + column % 5
            drawn = random.integers(0, size, rows)
            values = np.where(random.random(rows) < 0.3, hidden % size, drawn)
            few: list[Any] = [{"keep_frequent": {"count": 2}}] if size > 3 else []
            masks = ["identity", *few, "suppress"]
            table[f"c{column}"] = _texts("v", values)
        role = "quasi-identifier" if column < QUASI else "feature"
        attributes[f"c{column}"] = {"role": role, "masks": masks}
    return _saved(folder / f"any_{columns}_{rows}", table, attributes, {"labels": "any"}, k=5)


def unknown_task(folder: Path) -> Iterator[Figure]:
    """Search tables of many columns for a task that nobody knows."""
    for columns, target in ((240, 30.0), (500, 60.0), (1_000, 120.0)):
        table, policy = any_table(folder, columns, 2_000)
        wall, cpu, peak = command("advise", table, "-p", policy, "--quiet")
        name = f"advise, {columns:,} columns x 2,000 rows, labels: any"
        note = f"{wall:.0f} s elapsed, {peak:.0f} MB"
        yield Figure("labels", name, cpu, "s", target, note=note)


def any_against_one(folder: Path) -> Iterator[Figure]:
    """Search Adult for a task that nobody knows against one label, as whole processes in turns."""
    times: dict[str, list[float]] = {"any": [], "one": []}
    for name, named in (("any", ()), ("one", ("--label", "income"))):
        command("init", ADULT, *named, "-o", folder / f"{name}.yaml", "--force", "--quiet")
    for _ in range(3):
        for name, known in times.items():
            known.append(command("advise", ADULT, "-p", folder / f"{name}.yaml", "--quiet")[1])
    every, one = (min(known) for known in times.values())
    name = "advise, Adult, labels: any / one label"
    yield Figure("labels", name, every / one, "x", 3.0, note=f"{every:.2f} s / {one:.2f} s")


def several_labels(folder: Path) -> Iterator[Figure]:
    """Summarise for three labels against one, as whole processes in turns, and compare the files."""
    table = folder / "repeated.parquet"
    duckdb.connect().execute(
        f"COPY (SELECT adult.* FROM read_parquet('{ADULT}') adult, range(12)) TO '{table}' (FORMAT parquet)"
    )
    times: dict[int, list[float]] = {1: [], 3: []}
    for count in times:
        policy = folder / f"labels_{count}.yaml"
        named = [word for label in THREE[:count] for word in ("--label", label)]
        command("init", table, *named, "-o", policy, "--force", "--quiet")
    for _ in range(5):
        for count, known in times.items():
            policy, output = folder / f"labels_{count}.yaml", folder / f"labels_{count}.aegis"
            words = ("summarize", table, "-p", policy, "-o", output, "--force", "--quiet")
            known.append(command(*words)[1])
    one, several = (min(known) for known in times.values())
    size = (folder / "labels_3.aegis").stat().st_size / 1e6
    name = "summarize, three labels / one, 390,732 rows"
    note = f"{several:.2f} s / {one:.2f} s, file of {size:.2f} MB"
    yield Figure("labels", name, several / one, "x", 1.3, note=note)


def several_searched(folder: Path) -> Iterator[Figure]:
    """Search Adult for three labels, to proof, by their mean and by the worst of them."""
    policy = folder / "three.yaml"
    labels = [word for label in THREE for word in ("--label", label)]
    command("init", ADULT, *labels, "-o", policy, "--force", "--quiet")
    for serve in ("mean", "worst"):
        ran = step("search_labels", table=ADULT, policy=policy, serve=serve)
        name = f"search of Adult for three labels, serve: {serve}"
        proven = bool(ran.result["optimal"])
        note = (
            f"{ran.result['combinations']:,.0f} combinations, "
            f"{'proven' if proven else 'NOT proven'}; {ran.seconds:.0f} s elapsed"
        )
        yield Figure("labels", name, ran.cpu, "s", 60, note=note, proven=proven)


def _texts(prefix: str, codes: Codes) -> npt.NDArray[np.str_]:
    return np.char.add(prefix, codes.astype(str))


def _levels(file: str, height: int, *, quasi: bool = True) -> dict[str, Any]:
    masks = ["identity", *({"level": level} for level in range(1, height + 1)), "suppress"]
    role = "quasi-identifier" if quasi else "feature"
    return {"role": role, "hierarchy": file, "masks": masks}


def _hierarchy(path: Path, lines: Sequence[Sequence[str]]) -> None:
    path.write_text("".join(";".join(line) + "\n" for line in lines), encoding="utf-8")


def _written(
    path: Path,
    table: dict[str, Any],
    attributes: dict[str, Any],
    *,
    k: int,
    suppression: float = 0.05,
) -> tuple[Path, Path]:
    return _saved(path, table, attributes, {"label": "label"}, k=k, suppression=suppression)


def _saved(
    path: Path,
    table: dict[str, Any],
    attributes: dict[str, Any],
    task: dict[str, Any],
    *,
    k: int,
    suppression: float = 0.05,
) -> tuple[Path, Path]:
    data, policy = path.with_suffix(".parquet"), path.with_suffix(".yaml")
    pq.write_table(pa.table(table), data)
    rule = {"k": k, "suppression": suppression}
    whole = {"version": 1, **task, "privacy": rule, "attributes": attributes}
    policy.write_text(yaml.safe_dump(whole), encoding="utf-8")
    return data, policy
