"""Advice, privacy reports and optional parts made by hand, small and of any shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from aegis.advisor.advice import Advice
from aegis.advisor.figures import Binding, FinerMask, Front, FrontPoint, Relaxation
from aegis.advisor.ranked import Ranked
from aegis.advisor.scoring import AttributeScore
from aegis.masks import Identity, Mask, Suppress
from aegis.policy import Configuration
from aegis.privacy import ClassTable, PrivacyReport, report

ROWS = 1000
RULE = {"k": 5, "suppression": 0.02}


def ranked(
    name: str = "c1",
    *,
    attributes: Sequence[str] = ("age", "sex"),
    utility_kept: float | None = 90.0,
    suppressed: int = 10,
    admissible: bool = True,
    violations: Sequence[str] = (),
    shares: Sequence[float] = (1.0, 0.5),
) -> Ranked:
    masks: dict[str, Mask] = {
        a: Identity() if i % 2 else Suppress() for i, a in enumerate(attributes)
    }
    return Ranked(
        configuration=Configuration(name, masks),
        score=0.3 if utility_kept is None else 0.4 * utility_kept / 100,
        utility_kept=utility_kept,
        admissible=admissible,
        smallest_class=5,
        suppressed_rows=suppressed,
        violations=tuple(violations),
        attributes={
            a: AttributeScore(0.2 * shares[i % len(shares)], 0.2) for i, a in enumerate(attributes)
        },
    )


def advice(
    ranking: Sequence[Ranked] | None = None,
    *,
    attributes: Sequence[str] = ("age", "sex"),
    label: str = "income",
    rule: dict[str, Any] | None = None,
    measure: str = "adjusted-pillai",
    optimal: bool = False,
    warnings: Sequence[str] = (),
    unnamed: Sequence[str] = (),
    more: dict[str, dict[str, Any]] | None = None,
) -> Advice:
    entries = tuple(ranking if ranking is not None else [ranked(attributes=attributes)])
    declared = {a: {"role": "quasi-identifier", "masks": ["identity"]} for a in attributes}
    summary = {
        "rows": ROWS,
        "label": label,
        "classes": {"high": 240, "low": 750},
        "unlabelled_rows": 10,
        "attributes": {
            a: {
                "role": "quasi-identifier",
                "kind": "text",
                "values": 7,
                "nulls": 3,
                "candidates": ["identity", "suppress"],
            }
            for a in attributes
        },
        "cooccurrence_rows": 990,
        "sampled": False,
        "quasi_identifier_classes": 400,
        "not_in_policy": list(unnamed),
        "digests": {"policy": "ab" * 32},
    }
    policy = {
        "version": 1,
        "label": label,
        "measure": measure,
        "privacy": RULE if rule is None else rule,
        "attributes": declared | (more or {}),
    }
    return Advice(
        measure=measure,
        ranking=entries,
        unmasked=0.4,
        optimal=optimal,
        combinations=48,
        summary=summary,
        policy=policy,
        warnings=tuple(warnings),
        timings={"total": 0.25},
    )


def many(count: int, attributes: Sequence[str], *, admissible: int) -> list[Ranked]:
    """Return a ranking of `count` configurations, the first `admissible` of which meet the rule."""
    random = np.random.default_rng(5)
    return [
        ranked(
            f"c{i:02d}",
            attributes=attributes,
            utility_kept=float(random.uniform(10, 101)),
            suppressed=int(random.integers(0, 20)) if i < admissible else 21 + i,
            admissible=i < admissible,
            violations=()
            if i < admissible
            else ("k-anonymity: 40 rows in classes smaller than 5",),
            shares=random.uniform(0, 1.05, size=len(attributes)).tolist(),
        )
        for i in range(count)
    ]


def privacy(sizes: Sequence[int], *, sensitive: str | None = None) -> PrivacyReport:
    """Return the report of classes of these sizes; the sensitive value alternates by row."""
    rows = sum(sizes)
    cells = np.repeat(np.arange(len(sizes)), sizes)
    values = {sensitive: (np.arange(rows) % 2, ("no", "yes"))} if sensitive else None
    return report(ClassTable.from_cells(cells, np.ones(rows, dtype=np.int64), values))


def point(value: float, utility_kept: float | None, suppressed: int, *, proven: bool) -> FrontPoint:
    return FrontPoint(
        value=value,
        score=None if utility_kept is None else utility_kept / 100,
        utility_kept=utility_kept,
        configuration=None,
        declared={"age": "bucketize(width=10)", "sex": "identity"},
        smallest_class=int(value),
        suppressed_rows=suppressed,
        proven=proven,
    )


FRONT = Front(
    "k",
    (
        point(2, 98.0, 0, proven=True),
        point(5, 94.0, 4, proven=True),
        point(10, 80.0, 9, proven=False),
    ),
    5,
)
BINDING = Binding(
    (
        FinerMask(
            "age", "bucketize(width=10)", "bucketize(width=5)", 0.01, 93.0, 2, 31, 4, ("k breaks",)
        ),
        FinerMask("sex", "suppress", "identity", 0.0, 91.0, 5, 0, 4, ()),
    ),
    (
        Relaxation(
            "k from 5 to 4", 0.955, 0.015, 95.5, True, {"sex": "identity", "age": "suppress"}
        ),
    ),
)
