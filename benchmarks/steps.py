"""Steps that are measured in processes of their own: `python -m benchmarks.steps NAME JSON`.

A step prepares what is not measured and returns the work that is. Those of Aegis that stand beside
plain queries have done their work on a few rows before, since modules are loaded when they are first
asked for: what loading takes is a figure of whole processes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import POLICY
from benchmarks.processes import peak

Work = Callable[[], dict[str, Any]]


def _few(table: str) -> str:
    """Return a table of a thousand rows beside a table, made once."""
    import duckdb

    path = Path(f"{table}.few.parquet")
    if not path.exists():
        duckdb.connect().execute(f"COPY (FROM '{table}' LIMIT 1000) TO '{path}' (FORMAT parquet)")
    return str(path)


def summarize(table: str, *, exact: bool = False) -> Work:
    """Summarise."""
    import aegis

    policy = aegis.load_policy(POLICY)
    aegis.summarize(_few(table), policy, exact=exact)

    def work() -> dict[str, Any]:
        summary = aegis.summarize(table, policy, exact=exact)
        return {"rows": summary.rows, **{k: float(v) for k, v in summary.timings.items()}}

    return work


def advise(table: str, *, configurations: int = 50, attributes: int | None = None) -> Work:
    """Rank generated configurations, from the table; of the first so many attributes where asked."""
    import yaml

    import aegis

    rules = yaml.safe_load(POLICY.read_text(encoding="utf-8"))
    if attributes is not None:
        scored = [name for name, one in rules["attributes"].items() if "masks" in one]
        rules["attributes"] = {name: rules["attributes"][name] for name in scored[:attributes]}
    policy = aegis.load_policy(rules if attributes is not None else POLICY)
    aegis.advise(_few(table), policy, generate_count=2)

    def work() -> dict[str, Any]:
        advice = aegis.advise(table, policy, generate_count=configurations, seed=1)
        return {k: float(v) for k, v in advice.timings.items()}

    return work


def save_summary(table: str, *, output: str) -> Work:
    """Summarise into a file."""
    import aegis

    policy = aegis.load_policy(POLICY)

    def work() -> dict[str, Any]:
        aegis.save_bundle(aegis.summarize(table, policy), output, force=True)
        return {}

    return work


def advise_from_summary(summary: str, *, configurations: int = 50) -> Work:
    """Rank generated configurations, from a summary that is at hand."""
    import aegis

    policy = aegis.load_policy(POLICY)
    bundle = aegis.load_bundle(summary)

    def work() -> dict[str, Any]:
        aegis.advise(bundle, policy, generate_count=configurations, seed=1)
        return {}

    return work


def group_bys(table: str) -> Work:
    """Run the plain GROUP BY attribute, label of every attribute."""
    import duckdb

    connection = duckdb.connect()
    names = [c for c in connection.sql(f"FROM '{table}'").columns if c != "income"]

    def work() -> dict[str, Any]:
        for name in names:
            connection.sql(
                f"SELECT \"{name}\", income, count(*) FROM '{table}' GROUP BY ALL"
            ).to_arrow_table()
        return {"queries": len(names)}

    return work


def read_csv(table: str) -> Work:
    """Open a CSV file: count its records, read it, choose its types."""
    import aegis.sources.delimited.files as csv_files
    from aegis.sources import open_table

    spent = {"seconds": 0.0, "cpu": 0.0}
    count = csv_files.count_records

    def timed(*given: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        records = count(*given)
        spent["seconds"] += time.perf_counter() - wall
        spent["cpu"] += time.process_time() - cpu
        return records

    csv_files.count_records = timed

    def work() -> dict[str, Any]:
        return {"rows": open_table(table).rows, **spent}

    return work


def scan_floor(table: str) -> Work:
    """Hash every column once."""
    import duckdb

    connection = duckdb.connect()
    names = connection.sql(f"FROM '{table}'").columns
    hashes = " + ".join(f'(hash("{name}") & 255)' for name in names)

    def work() -> dict[str, Any]:
        connection.sql(f"SELECT sum({hashes}) FROM '{table}'").fetchall()
        return {}

    return work


def group_by_quasi(table: str) -> Work:
    """Run the plain GROUP BY of the quasi-identifiers."""
    import duckdb

    import aegis

    policy = aegis.load_policy(POLICY)
    names = ", ".join(f'"{a.name}"' for a in policy.quasi_identifiers)
    connection = duckdb.connect()

    def work() -> dict[str, Any]:
        query = f"SELECT {names}, count(*) FROM '{table}' GROUP BY ALL"
        return {"classes": connection.sql(query).to_arrow_table().num_rows}

    return work


def group_by_persons(table: str) -> Work:
    """Run the plain GROUP BY of the quasi-identifiers that counts distinct persons."""
    import duckdb

    import aegis

    policy = aegis.load_policy(POLICY)
    names = ", ".join(f'"{a.name}"' for a in policy.quasi_identifiers)
    connection = duckdb.connect()

    def work() -> dict[str, Any]:
        query = f"SELECT {names}, count(DISTINCT person) FROM '{table}' GROUP BY ALL"
        return {"classes": connection.sql(query).to_arrow_table().num_rows}

    return work


def audit_persons(table: str) -> Work:
    """Audit in persons."""
    import aegis

    policy = aegis.load_policy(POLICY)
    names = [a.name for a in policy.quasi_identifiers]
    aegis.audit(_few(table), quasi_identifiers=names, person="person")

    def work() -> dict[str, Any]:
        return {"k": aegis.audit(table, quasi_identifiers=names, person="person").report.k}

    return work


def audit(table: str) -> Work:
    """Audit."""
    import aegis

    policy = aegis.load_policy(POLICY)
    names = [a.name for a in policy.quasi_identifiers]
    aegis.audit(_few(table), quasi_identifiers=names)

    def work() -> dict[str, Any]:
        return {"k": aegis.audit(table, quasi_identifiers=names).report.k}

    return work


def apply(
    table: str, *, summary: str, output: str, k: int = 5, certificate: str | None = None
) -> Work:
    """Release the best of ten generated configurations, ranked from the table's summary."""
    import yaml

    import aegis

    rules = yaml.safe_load(POLICY.read_text(encoding="utf-8"))
    policy = aegis.load_policy(rules | {"privacy": {"k": k, "suppression": 0.5}})
    bundle = aegis.load_bundle(summary)  # made under another rule
    study = aegis.Study(bundle, policy, seed=1, rule_override=True)
    best = study.advise(generate_count=10).best
    assert best is not None
    few = aegis.load_policy(rules | {"privacy": {"k": 2, "suppression": 1.0}})
    aegis.apply(_few(table), few, best.configuration, output=output, force=True)

    def work() -> dict[str, Any]:
        release = aegis.apply(
            table, policy, best.configuration, output=output, certificate=certificate, force=True
        )
        return {"rows": release.released_rows, "suppressed": release.suppressed_rows} | {
            key: float(value) for key, value in release.timings.items()
        }

    return work


def copy(table: str, *, output: str, released: str) -> Work:
    """Copy the columns of a release, unmasked, into the same format."""
    import duckdb

    connection = duckdb.connect()
    names = ", ".join(f'"{c}"' for c in connection.sql(f"FROM '{released}'").columns)

    def work() -> dict[str, Any]:
        connection.execute(
            f"COPY (SELECT {names} FROM '{table}') TO '{output}' (FORMAT parquet, COMPRESSION zstd)"
        )
        return {}

    return work


def naive(table: str, *, configurations: int = 2) -> Work:
    """Mask with pandas and cross-tabulate, configuration by configuration, attribute by attribute."""
    import pandas as pd

    frame = pd.read_parquet(table)
    label = frame.pop("income")

    def masked(column: pd.Series) -> pd.Series:
        if pd.api.types.is_numeric_dtype(column):
            low = (column // 10) * 10
            return "[" + low.astype(str) + ", " + (low + 10).astype(str) + "["
        return column.str[:1]

    def work() -> dict[str, Any]:
        for _ in range(configurations):
            for name in frame.columns:
                pd.crosstab(masked(frame[name]), label)
        return {"attributes": len(frame.columns)}

    return work


def search_all(table: str, *, limit: float = 60) -> Work:
    """Search all 14 attributes of Adult, five or more candidates each, by Pillai, k = 5, 5 %."""
    import aegis

    def numeric(width: int) -> list[Any]:
        widths = [{"bucketize": {"width": width * factor}} for factor in (1, 2, 4, 8)]
        return [*widths, {"quantiles": {"count": 4}}, "suppress"]

    categorical: list[Any] = ["identity"]
    categorical += [{"keep_frequent": {"count": count}} for count in (5, 3, 2)] + ["suppress"]
    widths = {"age": 5, "fnlwgt": 50_000, "education-num": 2}
    widths |= {"capital-gain": 2_500, "capital-loss": 500, "hours-per-week": 5}
    names = ("workclass", "education", "marital-status", "occupation", "relationship")
    names += ("race", "sex", "native-country")
    masks = {name: numeric(width) for name, width in widths.items()}
    masks |= dict.fromkeys(names, categorical)
    policy = aegis.load_policy(
        {
            "version": 1,
            "label": "income",
            "privacy": {"k": 5, "suppression": 0.05},
            "attributes": {
                name: {"role": "quasi-identifier", "masks": listed}
                for name, listed in masks.items()
            },
        }
    )

    def work() -> dict[str, Any]:
        advice = aegis.search(
            table,
            policy,
            objective="adjusted-pillai",
            top=1,
            work=limit,  # seconds of an idle machine, so that a busy one finds the same
            explain_best=False,
        )
        found = advice.search
        assert found is not None
        return {
            "combinations": float(advice.combinations),
            "optimal": advice.optimal,
            "gap": float(found.gap or 0),
        }

    return work


def search_labels(table: str, *, policy: str, serve: str, limit: float = 300) -> Work:
    """Search for the labels of a policy, whose results are combined as `serve` says."""
    import yaml

    import aegis

    rules = yaml.safe_load(Path(policy).read_text(encoding="utf-8"))
    combined = aegis.load_policy(rules | {"serve": serve})

    def work() -> dict[str, Any]:
        advice = aegis.search(table, combined, top=1, time_limit=limit, prove=True)
        return {"combinations": float(advice.combinations), "optimal": advice.optimal}

    return work


def group(table: str, *, policy: str, method: str, given: dict[str, Any] | None = None) -> Work:
    """Group the records of a table by one record-level method, without an engine."""
    import pyarrow.csv
    import pyarrow.parquet

    import aegis
    from aegis.anonymizers import ANONYMIZERS, encode_for

    rules = aegis.load_policy(policy)
    read = pyarrow.csv.read_csv if table.endswith(".csv") else pyarrow.parquet.read_table
    records = encode_for(read(table), rules)
    anonymizer = ANONYMIZERS.get(method)
    options = anonymizer.configure(**{"k": 5, **(given or {})})

    def work() -> dict[str, Any]:
        made = anonymizer.group(records, options)
        return {
            "rows": len(records),
            "smallest": made.smallest,
            "scaled": made.loss.scaled,
            "penalty": made.loss.penalty,
        }

    return work


def group_normal(*, rows: int, columns: int, method: str) -> Work:
    """Group records of normal numbers, no two alike."""
    import numpy as np
    import pyarrow as pa

    from aegis.anonymizers import ANONYMIZERS, encode

    random = np.random.default_rng(1)
    table = pa.table({f"x{i}": random.normal(size=rows) for i in range(columns)})
    records = encode(table, dict.fromkeys(table.column_names, "quasi-identifier"))
    anonymizer = ANONYMIZERS.get(method)

    def work() -> dict[str, Any]:
        made = anonymizer.group(records, anonymizer.configure(k=5))
        return {"smallest": made.smallest, "scaled": made.loss.scaled}

    return work


def anonymize(table: str, *, output: str, method: str) -> Work:
    """Release a table record by record: read, group, write, verify."""
    import aegis

    policy = aegis.load_policy(POLICY)

    def work() -> dict[str, Any]:
        release = aegis.anonymize(table, policy, method, output=output, force=True)
        found = {key: float(value) for key, value in release.timings.items()}
        return {"rows": release.released_rows, "k": release.audit.report.k, **found}

    return work


STEPS: dict[str, Callable[..., Work]] = {
    one.__name__: one
    for one in (
        summarize,
        save_summary,
        advise,
        advise_from_summary,
        group_bys,
        scan_floor,
        read_csv,
        group_by_quasi,
        group_by_persons,
        audit_persons,
        audit,
        apply,
        copy,
        naive,
        search_all,
        search_labels,
        group,
        group_normal,
        anonymize,
    )
}


def main() -> None:
    """Run one step and print what it took as JSON."""
    work = STEPS[sys.argv[1]](**json.loads(sys.argv[2]))
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    seconds, spent = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"seconds": seconds, "cpu": spent, "peak": peak("self")[1], "result": result}))


if __name__ == "__main__":
    main()
