"""Searches under models of sensitive values, and of lattices that are too large to walk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import SHARED, Figure, SkipError

QUASI = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass")
MODELS: dict[str, dict[str, Any]] = {
    "t-closeness 0.2, equal": {"t_closeness": {"t": 0.2, "distance": "equal"}},
    "t-closeness 0.2, hierarchical": {"t_closeness": {"t": 0.2, "distance": "hierarchical"}},
    "t-closeness 0.2, ordered": {"t_closeness": {"t": 0.2, "distance": "ordered"}},
    "entropy 3-diversity": {"l_diversity": {"kind": "entropy", "l": 3}},
    "basic beta-likeness 2": {"beta_likeness": {"beta": 2, "kind": "basic"}},
    "enhanced beta-likeness 2": {"beta_likeness": {"beta": 2, "kind": "enhanced"}},
}
SIZES = (2, 2, 2, 2, 4, 5, 6, 8, 9, 12, 16, 20, 40, 90, 3, 7)
LEVELS = (1, 1, 1, 1, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 2, 3)
ROWS = 73_489


def models(folder: Path) -> Iterator[Figure]:
    """Search ARX's Adult under models of sensitive values, without suppression and with 5 %."""
    del folder
    data = SHARED / "arx_adult"
    if not data.is_dir():
        raise SkipError(f"no data of ARX at {SHARED}")
    for share in (0.0, 0.05):
        for name, model in MODELS.items():
            spent, checked = _searched(data, share, model)
            yield Figure(
                "models",
                f"ARX lattice of 2,160, {name}, s = {share:.0%}",
                spent,
                "s",
                note=f"{checked:,} class counts",
            )


def _searched(data: Path, share: float, model: dict[str, Any]) -> tuple[float, int]:
    """Return the least processor time of three searches, in seconds, and their class counts."""
    import aegis
    from aegis.advisor.plan import plan_of
    from aegis.advisor.search import Searcher

    attributes: dict[str, Any] = {
        name: {"role": "quasi-identifier", "hierarchy": str(data / f"adult_hierarchy_{name}.csv")}
        for name in QUASI
    }
    attributes["occupation"] = {
        "role": "sensitive",
        "masks": ["identity"],
        "hierarchy": str(data / "adult_hierarchy_occupation.csv"),
    }
    rule = {key: {"attribute": "occupation", **given} for key, given in model.items()}
    policy = aegis.load_policy(
        {
            "version": 1,
            "label": "sex",
            "privacy": {"k": 5, "suppression": share, **rule},
            "attributes": attributes,
        }
    )
    summary = aegis.summarize(str(data / "adult.csv"), policy)
    plan = plan_of(summary, policy)
    times, checked = [], 0
    for _ in range(3):
        began = time.process_time()
        searcher = Searcher(summary, plan, "nu-entropy(factor=0)", "adjusted-pillai")
        _, figures = searcher.run(policy.privacy, top=1, time_limit=None)
        times.append(time.process_time() - began)
        if not figures.optimal:
            raise RuntimeError("The search proved nothing.")
        checked = figures.work.checked
    return min(times), checked


def lattices(folder: Path) -> Iterator[Figure]:
    """Search 14 and 16 quasi-identifiers of an artificial table for the work of a second, and of a
    minute, on an idle machine.
    """
    import aegis

    for count in (14, 16):
        table, policy = _artificial(folder, count)
        study = aegis.Study(table, policy)
        for seconds in (1, 60):
            advice = study.search(objective="loss", top=1, work=seconds, explain_best=False)
            found = advice.search
            if found is None or found.best is None or found.gap is None:
                raise RuntimeError("Nothing admissible was found.")
            bound = "" if found.bound is None else f", bound {found.bound:.2f}"
            yield Figure(
                "lattices",
                f"{count} quasi-identifiers, loss, k = 5, s = 5 %, gap after the work of {seconds} s",
                found.gap,
                "",
                0.01 if seconds == 60 else None,
                note=f"{found.work.combinations:.1e} combinations, best {found.best:.2f}{bound}, "
                f"{found.work.nodes:,} boxes",
            )


def _artificial(folder: Path, count: int) -> tuple[str, Any]:
    """Write a seeded table of correlated attributes with hierarchies; return it and its policy."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import aegis

    random = np.random.default_rng(2019)
    common = random.normal(size=(ROWS, 3))
    columns: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for place, (size, levels) in enumerate(zip(SIZES[:count], LEVELS[:count], strict=True)):
        scores = common @ random.normal(size=3) * 0.6 + random.normal(size=ROWS)
        shares = np.sort(random.dirichlet(np.full(size, 0.7)))[::-1]
        codes = np.searchsorted(np.quantile(scores, np.cumsum(shares)[:-1]), scores)
        step = max(2, round(size ** (1 / levels)))
        lines = (
            ";".join([f"v{v:02d}", *(f"{h}_{v // step**h}" for h in range(1, levels)), "*"])
            for v in range(size)
        )
        name = f"a{place:02d}"
        path = folder / f"{name}.csv"
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        columns[name] = [f"v{code:02d}" for code in codes.tolist()]
        attributes[name] = {"role": "quasi-identifier", "hierarchy": str(path)}
    columns["label"] = ["yes" if code[-1] in "13579" else "no" for code in columns["a04"]]
    table = folder / f"lattice_{count}.parquet"
    pq.write_table(pa.table(columns), table)
    rule = {"k": 5, "suppression": 0.05}
    written = {"version": 1, "label": "label", "privacy": rule, "attributes": attributes}
    return str(table), aegis.load_policy(written)
