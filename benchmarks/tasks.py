"""What is measured: one function per task, each yielding figures."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.arx.cases import ADULT as ARX_ADULT
from benchmarks.arx.cases import ADULT_QUASI, Case
from benchmarks.arx.task import arx, arx_process
from benchmarks.disk import disk
from benchmarks.grouping import anonymizers
from benchmarks.large import huge, large, memory
from benchmarks.measure import (
    ADULT,
    POLICY,
    SHARED,
    Figure,
    SkipError,
    command,
    imports_alone,
    step,
    timed,
)
from benchmarks.postgres import postgres
from benchmarks.protection import protection
from benchmarks.reconstruction import reconstruction
from benchmarks.score import blas, expected
from benchmarks.searches import lattices, models
from benchmarks.service.load import service_load
from benchmarks.service.pages import service_pages
from benchmarks.service.workbench import workbench
from benchmarks.shapes import (
    any_against_one,
    other_shapes,
    several_labels,
    several_searched,
    unknown_task,
    very_wide,
)
from benchmarks.spark import spark, spark_large
from benchmarks.tables import as_csv, jittered, make_table, with_persons


@dataclass(frozen=True)
class Settings:
    """Where large tables go, and how large they are."""

    folder: Path
    rows: int


Task = Callable[[Settings], Iterator[Figure]]


def scores(_: Settings) -> Iterator[Figure]:
    """Score 50 configurations of Adult under every measure, against training models on each."""
    import numpy as np

    import aegis
    from aegis.advisor import Scorer, generate
    from aegis.blas import one_blas_thread
    from aegis.masking import masked_table
    from aegis.measures import MEASURES, LabelKind
    from aegis.sources import open_table

    policy = aegis.load_policy(POLICY)
    summary = aegis.summarize(ADULT, policy)
    listed = generate(summary, 50, seed=1)
    measures = [m for m in MEASURES if m.label is LabelKind.CLASSES]

    @one_blas_thread  # as every study does
    def score() -> None:
        scorer = Scorer(summary)
        for configuration in listed:
            choice = scorer.choose(configuration)
            for measure in measures:
                scorer.value(choice, measure)

    wall, cpu = timed(score, 3)
    yield Figure(
        "scores",
        f"50 configurations, {len(measures)} measures",
        cpu,
        "s",
        0.3,
        note=f"{wall:.2f} s elapsed",
    )
    source = open_table(ADULT)
    tables = [source.collect(masked_table(source, c.masks)).to_pandas() for c in listed[:3]]
    label = np.asarray(source.collect(source.table.select("income"))["income"].to_pylist())
    for name, target in (("logistic regression", 50), ("random forest", 1000)):
        spent = [timed(_training(name, table, label)) for table in tables]
        whole, busy = (50 * sum(column) / len(spent) for column in zip(*spent, strict=True))
        yield Figure(
            "scores",
            f"times faster than {name} on each",
            busy / cpu,
            "x",
            target,
            False,
            note=f"{busy:.1f} s for 50, from {len(spent)} of them; {whole / wall:.0f} in elapsed time",
        )


def _training(name: str, frame: Any, label: Any) -> Callable[[], Any]:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    model = (
        LogisticRegression(max_iter=1000)
        if name == "logistic regression"
        else RandomForestClassifier(n_estimators=100, random_state=0)
    )
    train, _, known, _ = train_test_split(frame.astype(str), label, test_size=0.3, random_state=0)
    pipeline = make_pipeline(OneHotEncoder(handle_unknown="ignore"), model)
    return lambda: pipeline.fit(train, known)


def process(settings: Settings) -> Iterator[Figure]:
    """Advise on Adult as a whole process."""
    fifty = ("--generate", 50)
    yield _against_imports("50 configurations, examples/adult", (ADULT, "-p", POLICY, *fifty), 2.4)
    proposed = settings.folder / "init.yaml"
    table = as_csv(Path(shutil.copy(ADULT, settings.folder)))
    command("init", table, "--label", "income", "-o", proposed, "--force", "--quiet")
    words = (table, "-p", proposed)
    yield _against_imports("50 configurations, policy of init, CSV", (*words, *fifty), 3.8)
    words = (ADULT, "-p", proposed)
    yield _against_imports("default search, policy of init", words, 6.0)


IMPORTS = "import ibis, duckdb, pyarrow, scipy"
"""What any program on these libraries pays before it does anything."""


def _against_imports(name: str, words: tuple[object, ...], times: float) -> Figure:
    """Advise on Adult as a whole process against a process that only imports, in turns."""
    whole = ("advise", *words, "--quiet")
    pairs = [(command(*whole), imports_alone(IMPORTS)) for _ in range(5)]
    wall, cpu, peak = (statistics.median(advise[i] for advise, _ in pairs) for i in range(3))
    alone = statistics.median(imports[1] for _, imports in pairs)
    return Figure(
        "process",
        f"aegis advise, {name} / {IMPORTS}",
        statistics.median(advise[1] / imports[1] for advise, imports in pairs),
        "x",
        times,
        note=f"{cpu:.2f} s / {alone:.2f} s; {wall:.2f} s elapsed, {peak:.0f} MB",
    )


def audit(settings: Settings) -> Iterator[Figure]:
    """Audit Adult, and a large table against the plain GROUP BY."""
    import aegis

    names = [a.name for a in aegis.load_policy(POLICY).quasi_identifiers]
    aegis.audit(ADULT, quasi_identifiers=names, sensitive=["income"])
    _wall, cpu = timed(lambda: aegis.audit(ADULT, quasi_identifiers=names, sensitive=["income"]), 3)
    name = "Adult, eight quasi-identifiers, in process"
    yield Figure("audit", name, cpu, "s", 1.0)
    table = str(make_table(settings.folder, settings.rows))
    plain, ours = _alternating("group_by_quasi", "audit", table=table)
    yield from _ratio("audit", "audit / plain GROUP BY", ours, plain, 3.0, settings.rows)


def persons(settings: Settings) -> Iterator[Figure]:
    """Audit a large table in persons against the plain GROUP BY that counts distinct persons."""
    table = str(with_persons(make_table(settings.folder, settings.rows), settings.rows))
    plain, ours = _alternating("group_by_persons", "audit_persons", table=table)
    name = "audit --person / plain GROUP BY with COUNT(DISTINCT person)"
    yield from _ratio("persons", name, ours, plain, 3.0, settings.rows)


def scale(settings: Settings) -> Iterator[Figure]:
    """Summarise and advise on a large table against the plain group-bys and the scan floor."""
    table = str(make_table(settings.folder, settings.rows))
    plain, advised = _alternating("group_bys", "advise", table=table)
    yield from _ratio("scale", "advise / 14 plain GROUP BYs", advised, plain, 4.0, settings.rows)
    floor, summed = _alternating("scan_floor", "summarize", table=table)
    yield from _ratio("scale", "summarize / 14 plain GROUP BYs", summed, plain, 3.0, settings.rows)
    yield from _ratio("scale", "summarize / scan floor", summed, floor, 12.0, settings.rows)
    yield Figure("scale", "advise, peak memory", max(s.peak for s in advised), "MB", 4000)
    best = min(s.cpu for s in advised)
    name = "advise, rows a second"
    yield Figure("scale", name, settings.rows / best, "1/s")
    if settings.rows <= 10_000_000:
        small = str(make_table(settings.folder, settings.rows // 10))
        slow = step("naive", table=small, configurations=2)
        whole = slow.cpu * 25 * 10
        yield Figure(
            "scale",
            "times faster than pandas and crosstab",
            whole / best,
            "x",
            note=f"{whole:.0f} s, from 2 configurations on a tenth of the rows",
        )


def csv_count(settings: Settings) -> Iterator[Figure]:
    """Count the records of a CSV file against reading it."""
    table = make_table(settings.folder, settings.rows)
    for quoted in (False, True):
        runs = [step("read_csv", table=str(as_csv(table, quoted=quoted))) for _ in range(2)]
        best = min(runs, key=lambda run: run.cpu)
        counted = best.result["cpu"]
        yield Figure(
            "csv_count",
            f"count of records / reading, {'all' if quoted else 'few'} fields in quotes, "
            f"{settings.rows:.0e} rows",
            counted / (best.cpu - counted),
            "x",
            0.15,
            note=f"{counted:.2f} s / {best.cpu - counted:.2f} s; "
            f"{best.result['seconds']:.2f} s / {best.seconds - best.result['seconds']:.2f} s elapsed",
        )


def release(settings: Settings) -> Iterator[Figure]:
    """Apply to a large table against a copy of the same columns."""
    rows = settings.rows
    yield from _released(settings, make_table(settings.folder, rows), "nothing suppressed")
    many = {"k": rows // 5000}
    yield from _released(settings, make_table(settings.folder, rows), "classes suppressed", **many)
    changed = jittered(settings.folder, rows)
    yield from _released(settings, changed, "13 columns, numbers changed at random")
    paper = {"certificate": settings.folder / "certificate.json", "target": 2.0}
    yield from _released(settings, changed, "the same with certificate", **paper)


def _released(
    settings: Settings, table: Path, name: str, *, target: float = 1.5, **options: Any
) -> Iterator[Figure]:
    """Apply and copy in turns."""
    output, copied = settings.folder / "masked.parquet", settings.folder / "copied.parquet"
    bundle = table.with_suffix(".aegis")
    if not bundle.exists():
        step("save_summary", table=table, output=bundle)
    ours, theirs = [], []
    for _ in range(3):
        ours.append(step("apply", table=table, summary=bundle, output=output, **options))
        theirs.append(step("copy", table=table, output=copied, released=output))
    note = f"; {ours[0].result['suppressed']:,} rows suppressed"
    yield from _ratio("release", f"apply / copy, {name}", ours, theirs, target, settings.rows, note)
    peak, plain = (max(one.peak for one in steps) for steps in (ours, theirs))
    note = f"{peak:.0f} MB / {plain:.0f} MB"
    yield Figure("release", f"peak memory, apply / copy, {name}", peak / plain, "x", 1.0, note=note)


def search(_: Settings) -> Iterator[Figure]:
    """Search all 14 attributes of Adult, and the lattice of ARX's Adult file."""
    import aegis

    everything = step("search_all", table=str(ADULT))
    found = everything.result
    proof = "proven optimal" if found["optimal"] else f"NOT proven, gap {found['gap']:.2%}"
    yield Figure(
        "search",
        "14 quasi-identifiers, adjusted-pillai, k = 5, s = 5 %",
        everything.cpu,
        "s",
        60,
        note=f"{found['combinations']:.1e} combinations, {proof}; "
        f"{everything.seconds:.0f} s elapsed",
        proven=found["optimal"],
    )
    yield Figure("search", "14 quasi-identifiers, peak memory", everything.peak, "MB", 2000)
    if not (SHARED / "arx_adult").is_dir():
        raise SkipError(f"no data of ARX at {SHARED}")
    for limit in (0.0, 0.02, 0.05):
        policy, table = arx_policy(limit)
        study = aegis.Study(table, policy)

        def run(study: Any = study, objective: str = "nu-entropy(factor=0)") -> Any:
            return study.search(objective=objective, top=1, explain_best=False)

        run()
        _wall, cpu = timed(lambda run=run: run().to_dict(), 5)
        name = f"12,960 nodes, NU entropy, s = {limit:.0%}, advice written as JSON"
        yield Figure("search", name, cpu, "s", note="with scores, privacy figures and risks")
        proven = run(objective="adjusted-pillai").optimal
        _wall, cpu = timed(lambda run=run: run(objective="adjusted-pillai"), 2)
        name = f"12,960 nodes, adjusted-pillai, s = {limit:.0%}"
        yield Figure("search", name, cpu, "s", 1.0, proven=proven)


def arx_policy(limit: float) -> tuple[Any, str]:
    """Return the policy of ARX's Adult problem with nine quasi-identifiers, and its table."""
    import aegis

    case = Case(ARX_ADULT, ADULT_QUASI, "NU entropy", limit)
    return aegis.load_policy(case.rules()), str(case.table.path)


def search_models(settings: Settings) -> Iterator[Figure]:
    """Search under models of sensitive values."""
    yield from models(settings.folder)


def search_lattices(settings: Settings) -> Iterator[Figure]:
    """Search lattices that are too large to walk."""
    yield from lattices(settings.folder)


def shapes(settings: Settings) -> Iterator[Figure]:
    """Advise on wide tables and large hierarchies."""
    yield from other_shapes(settings.folder)
    yield from very_wide(settings.folder)


def labels(settings: Settings) -> Iterator[Figure]:
    """Summarise for several labels, and search for a task that nobody knows."""
    yield from several_labels(settings.folder)
    yield from several_searched(settings.folder)
    yield from any_against_one(settings.folder)
    yield from unknown_task(settings.folder)


def growth(settings: Settings) -> Iterator[Figure]:
    """How time grows with rows, attributes and configurations."""
    sizes = [10**e for e in range(4, 9) if 10**e <= settings.rows]
    from_summary = {}
    for rows in sizes:
        table = str(make_table(settings.folder, rows))
        found = step("summarize", table=table)
        bundle = settings.folder / f"adult_{rows}.aegis"
        step("save_summary", table=table, output=bundle)
        yield Figure(
            "growth",
            f"summarize, {rows:.0e} rows",
            found.cpu,
            "s",
            note=f"{found.seconds:.2f} s elapsed; {rows / found.cpu:,.0f} rows/s by processor time",
        )
        yield Figure("growth", f"summarize, {rows:.0e} rows, peak memory", found.peak, "MB")
        from_summary[rows] = bundle
    cpu = _least_in_turns(from_summary)
    for rows, seconds in cpu.items():
        yield Figure("growth", f"advise from a summary of {rows:.0e} rows", seconds, "s")
    if 100_000 in cpu:
        ratio = cpu[sizes[-1]] / cpu[100_000]
        yield Figure(
            "growth", f"advise from a summary, {sizes[-1]:.0e} rows / 1e+05 rows", ratio, "x", 1.2
        )
    yield from _attributes(str(make_table(settings.folder, min(settings.rows, 1_000_000))))
    yield from _configurations(str(from_summary[sizes[0]]))


def _least_in_turns(bundles: Mapping[int, Path]) -> dict[int, float]:
    """Return the least processor time of advice from each summary, over three rounds of all."""
    found: dict[int, list[float]] = {rows: [] for rows in bundles}
    for _ in range(3):
        for rows, bundle in bundles.items():
            found[rows].append(step("advise_from_summary", summary=bundle).cpu)
    return {rows: min(times) for rows, times in found.items()}


def _attributes(table: str) -> Iterator[Figure]:
    """Summarise and advise with 4, 8 and all 11 scored attributes of Adult."""
    for count in (4, 8, 11):
        found = step("advise", table=table, attributes=count)
        yield Figure(
            "growth",
            f"advise, 1e+06 rows, {count} attributes",
            found.cpu,
            "s",
            note=f"{found.cpu / count:.3f} s each, {found.cpu / count**2 * 1000:.1f} ms a pair",
        )


def _configurations(bundle: str) -> Iterator[Figure]:
    """Rank 50 to 800 configurations; the fit of a line says whether time is linear."""
    times = {}
    for count in (50, 200, 800):
        runs = [step("advise_from_summary", summary=bundle, configurations=count) for _ in range(2)]
        times[count] = min(run.cpu for run in runs)
        yield Figure("growth", f"advise, {count} configurations", times[count], "s")
    slopes = (times[200] - times[50]) / 150, (times[800] - times[200]) / 600
    yield Figure(
        "growth",
        "cost of a further configuration, 200-800 / 50-200",
        slopes[1] / slopes[0],
        "x",
        1.5,
        note=f"{1000 * slopes[1]:.1f} ms each",
    )


def _alternating(one: str, two: str, **options: Any) -> tuple[list[Any], list[Any]]:
    """Run two steps in turns, so that both see the same load."""
    ones, twos = [], []
    for _ in range(3):
        ones.append(step(one, **options))
        twos.append(step(two, **options))
    return ones, twos


def _ratio(
    task: str,
    name: str,
    ours: list[Any],
    theirs: list[Any],
    target: float,
    rows: int,
    note: str = "",
) -> Iterator[Figure]:
    """Yield the ratio of the least processor times, with that of times elapsed as a note."""
    mine, other = min(s.cpu for s in ours), min(s.cpu for s in theirs)
    wall = min(s.seconds for s in ours) / min(s.seconds for s in theirs)
    yield Figure(
        task,
        f"{name}, {rows:.0e} rows",
        mine / other,
        "x",
        target,
        note=f"{mine:.2f} s / {other:.2f} s; {wall:.2f} in elapsed time{note}",
    )


TASKS: dict[str, Task] = {
    one.__name__: one
    for one in (
        scores,
        process,
        audit,
        persons,
        scale,
        csv_count,
        release,
        search,
        arx,
        arx_process,
        search_models,
        search_lattices,
        shapes,
        labels,
        growth,
        reconstruction,
        anonymizers,
        blas,
        expected,
        protection,
        disk,
        memory,
        service_pages,
        service_load,
        workbench,
        postgres,
        spark,
        spark_large,
        large,
        huge,
    )
}
"""Every task by the name that `--only` takes."""
BY_NAME_ONLY = (
    "service_load",
    "workbench",
    "postgres",
    "spark",
    "spark_large",
    "large",
    "huge",
)
"""Tasks that take long or need other programs: they run only if `--only` names them."""
EXTRAS = {
    "httpx": "pip install '.[service]'",
    "playwright": "pip install --group dev",
    "psycopg": "pip install '.[postgres]'",
    "pyspark": "pip install '.[spark]'",
    "sqlalchemy": "pip install '.[service]'",
}
"""What installs the packages of tasks that need more than the core."""


def run_task(name: str, settings: Settings, before: Mapping[str, float]) -> list[Figure]:
    """Run one task; print its figures beside those of an earlier run, and return them."""
    figures = []
    try:
        for figure in TASKS[name](settings):
            figures.append(figure)
            print(figure.line(before), flush=True)
    except SkipError as why:
        print(f"{name}: skipped, {why}")
    except ModuleNotFoundError as missing:
        if missing.name not in EXTRAS:
            raise
        print(f"{name}: skipped, {missing.name} is missing: {EXTRAS[missing.name]}")
    return figures
