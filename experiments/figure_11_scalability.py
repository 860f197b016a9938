"""Figure 11: time and memory over rows, attributes and configurations.

Tables are generated from Adult by a seeded hash: column k is attribute k mod 14 of an Adult row of
the same class, drawn anew for every 14 columns, so columns keep their distribution and what they
say of the label. Each measurement is a process of its own: open the Parquet file, summarise, score
the paper's configurations under the default measure; its peak memory is that of the process.

    python experiments/figure_11_scalability.py [--rows 1e5,1e6,1e7] [--attributes 50,100,...]
        [--configurations 10,20,...] [--folder FOLDER] [--store FILE]

Rows vary at 50 attributes, attributes at 1e5 rows, configurations at 1e6 rows and 50 attributes.
Memory grows with the square of the attributes: all pairs are counted, by class and by fold, at up
to 128 levels of each. More than 100 attributes are measured with at most 16 levels.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

from common import ADULT, save_chart, write_csv, write_json

NAME = "figure_11_scalability"
SEED = 11
ATTRIBUTES, CONFIGURATIONS = 50, 50
NARROW, MIDDLE = 100_000, 1_000_000
"""Rows where attributes vary, and where configurations do."""
LEVELS, FEW_LEVELS, MANY = 128, 16, 100
"""Levels of an attribute, those of tables with more attributes than the third."""
PUBLISHED_SECONDS = 1000.0
"""What the paper reports at 10 million rows, on a machine with a large GPU."""


def make_table(folder: Path, rows: int, attributes: int) -> Path:
    """Return a Parquet file of generated rows; made once."""
    path = folder / f"generated_{rows}_{attributes}.parquet"
    if path.exists():
        return path
    connection = duckdb.connect(config={"temp_directory": str(folder / "spill")})
    connection.execute("SET preserve_insertion_order = false")
    # Rows are numbered class by class, so that one number says class and row: an equality of
    # classes in every join would let the optimiser join the blocks with each other first.
    connection.execute(
        f"CREATE TABLE adult AS SELECT *, row_number() OVER (ORDER BY income) - 1 AS number "
        f"FROM read_parquet('{ADULT}')"
    )
    source = [c for c in connection.sql(f"FROM '{ADULT}'").columns if c != "income"]
    connection.execute(
        "CREATE TABLE class AS SELECT income, min(number) AS start, count(*) AS size "
        "FROM adult GROUP BY income"
    )
    size = connection.sql("SELECT count(*) FROM adult").fetchall()[0][0]
    names, joins = [], []
    for block in range(-(-attributes // len(source))):
        joins.append(
            f"JOIN adult AS b{block} ON b{block}.number = "
            f"drawn.start + hash(drawn.i * 1000 + {block + SEED}) % drawn.size"
        )
        for number, name in enumerate(source, start=block * len(source)):
            if number < attributes:
                names.append(f'b{block}."{name}" AS a{number:03d}')
    connection.execute(
        f"COPY (SELECT {', '.join(names)}, drawn.income FROM (SELECT i, start, size, adult.income "
        f"FROM range({rows}) AS t(i) JOIN adult ON number = hash(i + {SEED}) % {size} "
        f"JOIN class ON class.income = adult.income) AS drawn "
        f"{' '.join(joins)}) TO '{path}' (FORMAT parquet)"
    )
    connection.close()
    return path


def advise_once(table: str, configurations: int, levels: int) -> dict[str, Any]:
    """Summarise and rank; return what it took. Runs in a process of its own."""
    import aegis
    from aegis.sources import open_table
    from paper_masks import paper_configurations, paper_policy

    started, cpu = time.perf_counter(), time.process_time()
    source = open_table(table)
    attributes = {name: {"role": "feature"} for name in source.columns if name != "income"}
    declared = aegis.load_policy(
        {"version": 1, "label": "income", "privacy": {}, "attributes": attributes}
    )
    policy = paper_policy(source, declared)
    summary = aegis.summarize(source, policy, max_levels=levels, seed=1)
    summarised = time.perf_counter()
    listed = paper_configurations(summary, configurations, seed=1)
    advice = aegis.advise(summary, policy, configurations=listed)
    ended = time.perf_counter()
    return {
        "seconds": ended - started,
        "summarise_seconds": summarised - started,
        "advise_seconds": ended - summarised,
        "processor_seconds": time.process_time() - cpu,
        "measure": advice.measure,
        "ranked": len(advice.ranking),
        "sampled": summary.sampled,
    }


def measure(
    folder: Path, rows: int, attributes: int, configurations: int, levels: int
) -> dict[str, Any]:
    """Run `advise_once` in a process of its own; return its figures with its peak memory."""
    table = make_table(folder, rows, attributes)
    words = [sys.executable, __file__, "--one", str(table), str(configurations), str(levels)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{rows:,} rows x {attributes} attributes ended with {process.returncode}")
    facts = {
        "rows": rows,
        "attributes": attributes,
        "configurations": configurations,
        "levels": levels,
    }
    found = json.loads(printed.splitlines()[-1])
    return facts | found | {"peak_mb": usage.ru_maxrss / 1024, "load": os.getloadavg()[0]}


def plans(rows: str, attributes: str, configurations: str) -> list[tuple[str, int, int, int, int]]:
    """Return what is varied, with rows, attributes, configurations and levels."""
    found = [("rows", int(float(n)), ATTRIBUTES, CONFIGURATIONS, LEVELS) for n in rows.split(",")]
    wide = list(map(int, attributes.split(",")))
    found += [("attributes", NARROW, n, CONFIGURATIONS, LEVELS) for n in wide if n <= MANY]
    found += [("attributes", NARROW, n, CONFIGURATIONS, FEW_LEVELS) for n in wide]
    found += [
        ("configurations", MIDDLE, ATTRIBUTES, int(n), LEVELS) for n in configurations.split(",")
    ]
    return found


def remembered(store: Path | None, folder: Path, *sizes: int) -> dict[str, Any]:
    """Return a measurement from the store, or measure and store it."""
    names = ("rows", "attributes", "configurations", "levels")
    if store is not None and store.exists():
        for line in store.read_text().splitlines():
            known: dict[str, Any] = json.loads(line)
            if [known[name] for name in names] == list(sizes):
                return known
    found = measure(folder, *sizes)
    if store is not None:
        with store.open("a") as file:
            file.write(json.dumps(found) + "\n")
    return found


def main(argv: list[str] | None = None) -> None:
    """Measure, and write figures and plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default="1e5,1e6,1e7")
    parser.add_argument("--attributes", default="50,100,150,200,250")
    parser.add_argument("--configurations", default="10,30,50")
    parser.add_argument("--folder", type=Path, help="keep the tables here")
    parser.add_argument(
        "--store", type=Path, help="finished measurements; the run goes on where it was stopped"
    )
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.one:
        print(json.dumps(advise_once(given.one[0], int(given.one[1]), int(given.one[2]))))
        return
    folder = given.folder or Path(tempfile.mkdtemp(prefix="aegis-figure-11-"))
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    try:
        for varied, *sizes in plans(given.rows, given.attributes, given.configurations):
            rows.append({"varied": varied, **remembered(given.store, folder, *sizes)})
            print(rows[-1], flush=True)
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    write_csv(NAME, rows)
    write_json(NAME, {"published_seconds_at_1e7_rows": PUBLISHED_SECONDS, "measured": rows})
    draw(rows)


def draw(rows: list[dict[str, Any]]) -> None:
    """Draw seconds and memory over what varies."""
    import altair

    columns = []
    for varied in dict.fromkeys(row["varied"] for row in rows):
        log = varied == "rows"
        panels = []
        for key, title in (
            ("seconds", "Seconds"),
            ("processor_seconds", "Processor seconds"),
            ("peak_mb", "Peak memory, MB"),
        ):
            own = [
                {"x": row[varied], "y": row[key], "levels": f"{row['levels']} levels"}
                for row in rows
                if row["varied"] == varied
            ]
            scale = altair.Scale(type="log") if log else altair.Scale(zero=True)
            panels.append(
                altair.Chart(altair.Data(values=own))
                .mark_line(point=True)
                .encode(
                    x=altair.X(
                        "x:Q",
                        title=varied.capitalize(),
                        scale=scale,
                        axis=altair.Axis(format="~s", values=sorted({point["x"] for point in own})),
                    ),
                    y=altair.Y("y:Q", title=title, scale=altair.Scale(zero=True)),
                    color=altair.Color("levels:N", title="Attributes with at most"),
                )
                .properties(width=220, height=120)
            )
        columns.append(altair.vconcat(*panels))
    save_chart(NAME, altair.hconcat(*columns))


if __name__ == "__main__":
    main()
