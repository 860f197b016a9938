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


def blas(_: object) -> Iterator[Figure]:
    """Advise on Adult beside busy processes: as it is, against BLAS held to one thread outside."""
    free = {name: value for name, value in os.environ.items() if name not in THREADS}
    held = free | dict.fromkeys(THREADS, "1")
    words = ("advise", ADULT, "-p", POLICY, "--generate", 50, "--quiet")
    ours, theirs = [], []
    with _busy(os.cpu_count() or 1):
        for _turn in range(3):  # in turns, so that both see the same load
            ours.append(command(*words, environment=free))
            theirs.append(command(*words, environment=held))
    mine, other = min(ours), min(theirs)
    yield Figure(
        "blas",
        "advise beside busy processes / BLAS held from outside",
        mine[0] / other[0],
        "x",
        1.2,
        note=f"{mine[0]:.1f} s / {other[0]:.1f} s; {mine[1] / other[1]:.2f} by processor time",
    )


def expected(_: object) -> Iterator[Figure]:
    """Score 50 configurations of Adult by the expected AUC, with errors, against other choosers."""
    import aegis
    from aegis.advisor import Scorer, generate
    from aegis.advisor.confidence import jackknife
    from aegis.measures import DEFAULT_MEASURE, MEASURES

    summary = aegis.summarize(ADULT, aegis.load_policy(POLICY))
    listed = generate(summary, 50, seed=1)

    def score(name: str) -> None:
        scorer, measure = Scorer(summary), MEASURES.get(name)
        choices = [scorer.choose(configuration) for configuration in listed]
        for choice in choices:
            scorer.value(choice, measure)
        if measure.without_parts is not None:
            jackknife(scorer, choices, measure)

    spent = {name: timed(lambda n=name: score(n), 3) for name in ("held-out-auc", DEFAULT_MEASURE)}
    wall, cpu = spent["held-out-auc"]
    yield Figure(
        "expected",
        "50 configurations, expected AUC and standard errors",
        wall,
        "s",
        0.3,
        note=f"{cpu:.2f} s processor time",
    )
    ratio = cpu / spent[DEFAULT_MEASURE][1]
    yield Figure("expected", "expected AUC / default measure, processor time", ratio, "x", 1.0)
    _wall, proxy = timed(lambda: [_proxy(configuration) for configuration in listed[:5]])
    yield Figure(
        "expected",
        "times faster than logistic regression on 2,000 rows",
        10 * proxy / cpu,
        "x",
        100,
        False,
        note="three folds, processor time, from 5 of the 50",
    )


def _proxy(configuration: Any) -> float:
    """Return the AUC of a logistic regression on 2,000 rows of a masked table, three folds."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from aegis.masking import masked_table
    from aegis.sources import open_table

    source = open_table(ADULT)
    masks = {**configuration.masks, "income": None}
    table = source.collect(masked_table(source, masks)).to_pandas()
    drawn = table.sample(2_000, random_state=1)
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000))
    features = drawn.drop(columns="income").astype(str)
    found = cross_val_score(model, features, drawn["income"], cv=3, scoring="roc_auc")
    return float(np.mean(found))


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
