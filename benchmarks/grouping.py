"""Record-level methods: time, memory, and what cutting a table into cells first costs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import ADULT, POLICY, SHARED, Figure, Step, measured, step
from benchmarks.tables import make_complete, make_csv, make_table

if TYPE_CHECKING:
    from benchmarks.tasks import Settings

PEERS = os.environ.get("AEGIS_PEERS")
"""A Python that has anonypyx and anonypy, for ratios within one run."""
MDAV_COLUMNS = ("age", "fnlwgt", "hours-per-week")
QUADRATIC = ("mdav", "v-mdav", "k-member", "kl-member")
MEMORY_LIMIT = 8000
"""MB that a release of the large table may take."""


def anonymizers(settings: Settings) -> Iterator[Figure]:
    """Group records by every method at the sizes that the literature and other packages show."""
    yield from _mdav(settings)
    yield from _mondrian(settings)
    output = settings.folder / "local.parquet"
    local = step("anonymize", table=ADULT, output=output, method="local-suppression")
    yield _seconds("local-suppression release of Adult, k = 5", local)
    if not (SHARED / "adult").is_dir():
        print(f"anonymizers: MO-OBAM skipped, no data at {SHARED}")
    else:
        complete = make_complete(settings.folder)
        quasi = ("age", "race", "sex", "marital-status")
        policy = _policy(settings, "complete", quasi, sensitive="occupation")
        ours = step(
            "group",
            table=complete,
            policy=policy,
            method="mo-obam",
            given={"clusters": 100},
        )
        yield _seconds("MO-OBAM, Adult 45,222 x 4, 100 clusters", ours, 60)
    yield from _cells(settings)


def _mdav(settings: Settings) -> Iterator[Figure]:
    table = make_csv(settings.folder, MDAV_COLUMNS, 10_000)
    policy = _policy(settings, "three", MDAV_COLUMNS, label="row")
    runs = [step("group", table=table, policy=policy, method="mdav") for _ in range(2)]
    best = min(runs, key=lambda one: one.cpu)
    peak = max(one.peak for one in runs)
    yield _seconds("MDAV, 10,000 x 3, k = 5", best)
    yield Figure("anonymizers", "MDAV, 10,000 x 3, peak memory of the process", peak, "MB", 200)
    if PEERS is not None:
        theirs = _peer("anonypyx_mdav", make_csv(settings.folder, MDAV_COLUMNS, 10_000, row=False))
        yield _faster("MDAV, times faster than anonypyx", best, theirs, 100)
    ours = step("group_normal", rows=45_222, columns=4, method="mdav")
    yield _seconds("MDAV, 45,222 x 4 normal numbers, k = 5", ours, 15)


def _mondrian(settings: Settings) -> Iterator[Figure]:
    runs = [step("group", table=ADULT, policy=POLICY, method="mondrian") for _ in range(3)]
    best = min(runs, key=lambda one: one.cpu)
    yield _seconds("Mondrian, Adult, eight quasi-identifiers, k = 5", best, 1)
    if PEERS is not None:
        import aegis

        names = [one.name for one in aegis.load_policy(POLICY).quasi_identifiers]
        columns = (*(name for name in names if name != "income"), "income")
        rows = make_csv(settings.folder, columns, 32_561, row=False)
        yield _faster("Mondrian, times faster than anonypy", best, _peer("anonypy_mondrian", rows))
    table = make_table(settings.folder, settings.rows)
    output = settings.folder / "grouped.parquet"
    ours = step("anonymize", table=table, output=output, method="mondrian")
    name = f"Mondrian release of {settings.rows:.0e} rows, k = 5"
    yield _seconds(
        f"{name}, read to verified file", ours, note=f"{ours.result['group']:.0f} s of it grouping"
    )
    yield Figure("anonymizers", f"{name}, peak memory", ours.peak, "MB", MEMORY_LIMIT)


def _cells(settings: Settings) -> Iterator[Figure]:
    """Quadratic methods whole and cell by cell: what is lost, and what is gained."""
    quasi = ("age", "education-num", "race", "sex", "marital-status")
    policy = _policy(settings, "cells", quasi, sensitive="occupation")
    for method in QUADRATIC:
        given = {"partition_above": 1_000_000}
        whole = step("group", table=ADULT, policy=policy, method=method, given=given)
        for size in (1_000, 5_000):
            given = {"partition_above": 1, "cell_size": size}
            cells = step("group", table=ADULT, policy=policy, method=method, given=given)
            figure = "penalty" if method.endswith("member") else "scaled"
            lost = cells.result[figure] / whole.result[figure]
            yield Figure(
                "anonymizers",
                f"{method}, loss in cells of {size:,} / whole, Adult",
                lost,
                "x",
                note=f"{cells.result[figure]:.4f} / {whole.result[figure]:.4f}; "
                f"{whole.cpu / cells.cpu:.1f} times faster ({whole.cpu:.1f} s processor time)",
            )


def _policy(
    settings: Settings,
    name: str,
    quasi: tuple[str, ...],
    *,
    label: str = "income",
    sensitive: str | None = None,
) -> Path:
    """Write a policy with these quasi-identifiers and k = 5."""
    attributes: dict[str, Any] = {column: {"role": "quasi-identifier"} for column in quasi}
    if sensitive is not None:
        attributes[sensitive] = {"role": "sensitive"}
    path = settings.folder / f"{name}.yaml"
    policy = {"version": 1, "label": label, "privacy": {"k": 5}, "attributes": attributes}
    path.write_text(json.dumps(policy), encoding="utf-8")  # JSON is YAML
    return path


def _peer(name: str, table: Path) -> Step:
    words = [PEERS or "", str(Path(__file__).with_name("peers.py")), name, str(table)]
    return measured(subprocess.Popen(words, stdout=subprocess.PIPE, text=True), f"peer {name}")


def _seconds(name: str, ours: Step, target: float | None = None, *, note: str = "") -> Figure:
    """Return processor time: the methods run on one thread, so it is what an idle machine takes."""
    text = f"{ours.seconds:.2f} s elapsed, {ours.peak:.0f} MB"
    return Figure(
        "anonymizers",
        name,
        ours.cpu,
        "s",
        target,
        note=f"{text}; {note}" if note else text,
    )


def _faster(name: str, ours: Step, theirs: Step, target: float | None = None) -> Figure:
    return Figure(
        "anonymizers",
        name,
        theirs.cpu / ours.cpu,
        "x",
        target,
        False,
        note=f"processor time {theirs.cpu:.1f} / {ours.cpu:.2f} s; theirs {theirs.peak:.0f} MB",
    )
