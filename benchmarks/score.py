"""What scores cost: linear algebra on a busy machine, and the expected AUC beside other choosers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.measure import ADULT, POLICY, Figure, command, timed

THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
"""Variables that hold BLAS to a number of threads from outside."""


DESIGNS = 10
"""Configurations on which the logistic regression is trained; it takes seconds for each."""


def blas(settings: Any) -> Iterator[Figure]:
    """Advise on Adult, and release it, beside busy processes: as it is, against BLAS held to one thread."""
    best, masked = (settings.folder / name for name in ("busy.yaml", "busy.parquet"))
    advise = ("advise", ADULT, "-p", POLICY, "--generate", 50, "--quiet", "-o", best, "--force")
    yield _beside_busy("advise", *advise)
    yield _beside_busy(
        "apply", "apply", ADULT, "-p", POLICY, "-c", best, "-o", masked, "--quiet", "--force"
    )


def _beside_busy(what: str, *words: object) -> Figure:
    free = {name: value for name, value in os.environ.items() if name not in THREADS}
    held = free | dict.fromkeys(THREADS, "1")
    ours, theirs = [], []
    with _busy(os.cpu_count() or 1):
        for _turn in range(3):  # in turns, so that both see the same load
            ours.append(command(*words, environment=free))
            theirs.append(command(*words, environment=held))
    mine, other = (min(run[1] for run in runs) for runs in (ours, theirs))
    wall = min(ours)[0] / min(theirs)[0]
    return Figure(
        "blas",
        f"{what} beside busy processes / BLAS held from outside",
        mine / other,
        "x",
        1.2,
        note=f"{mine:.1f} s / {other:.1f} s; {wall:.2f} in elapsed time",
    )


def expected(_: object) -> Iterator[Figure]:
    """Score 50 configurations of Adult by the expected AUC, with errors, against other choosers."""
    import aegis
    from aegis.advisor import Scorer, generate
    from aegis.advisor.confidence import jackknife
    from aegis.blas import one_blas_thread
    from aegis.measures import FALLBACK_MEASURE, MEASURES
    from aegis.papers.evaluation.coding import code_table
    from aegis.sources import open_table

    policy = aegis.load_policy(POLICY)
    summary = aegis.summarize(ADULT, policy)
    listed = generate(summary, 50, seed=1)

    @one_blas_thread  # as every study does
    def score(name: str) -> None:
        scorer, measure = Scorer(summary), MEASURES.get(name)
        choices = [scorer.choose(configuration) for configuration in listed]
        for choice in choices:
            scorer.value(choice, measure)
        if measure.without_folds is not None:
            jackknife(scorer, choices, measure)

    spent = {name: timed(lambda n=name: score(n), 3) for name in ("held-out-auc", FALLBACK_MEASURE)}
    wall, cpu = spent["held-out-auc"]
    yield Figure(
        "expected",
        "50 configurations, expected AUC and standard errors",
        cpu,
        "s",
        0.3,
        note=f"{wall:.2f} s elapsed",
    )
    ratio = cpu / spent[FALLBACK_MEASURE][1]
    yield Figure("expected", "expected AUC / held-out-pillai", ratio, "x", 1.0)
    rows = code_table(open_table(ADULT), summary, policy, seed=1)
    scorer = Scorer(summary)
    designs = [rows.design(scorer.choose(configuration)) for configuration in listed[:DESIGNS]]
    _wall, proxy = timed(one_blas_thread(lambda: [_proxy(rows, design) for design in designs]))
    yield Figure(
        "expected",
        "times faster than logistic regression on 2,000 rows",
        proxy * len(listed) / DESIGNS / cpu,
        "x",
        100,
        False,
        note=f"three folds, {DESIGNS} of the configurations; processor time of both once the table "
        "is read and masked, on one BLAS thread",
    )


def _proxy(rows: Any, design: Any) -> float:
    """Return the AUC of a logistic regression on 2,000 rows of a masked table, three folds."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    drawn = np.sort(np.random.default_rng(1).choice(rows.labelled, 2_000, replace=False))
    features, label = design.one_hot(drawn), rows.label[drawn]
    model = LogisticRegression(max_iter=200)
    return float(np.mean(cross_val_score(model, features, label, cv=3, scoring="roc_auc")))


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """Keep `count` processes computing meanwhile."""
    words = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(words) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()
