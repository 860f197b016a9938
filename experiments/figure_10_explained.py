"""What would make Figure 10 of the AEGIS paper: its seconds, and a distance that falls?

Seconds. The published times for 50 configurations lie on a line in the number of groups of the
mask (domain / bin), whatever the domain. IPF written as a loop over groups in Python, which does not stop
when it is done but goes through all 1,000 sweeps, is timed beside ours for the same tables.

Distance. By 10,000 rows and an attribute that says nothing of the label the distance grows with
the domain. Three changes, one at a time: rows that grow with the domain (50 for each value), the
distance per cell instead of summed over cells, and a label that depends on the attribute.

    python experiments/figure_10_explained.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from aegis.papers.reconstruction import (
    Evidence,
    MaskedJoint,
    Settings,
    reconstruct,
    total_variation,
)
from common import write_json

NAME = "figure_10_explained"
ROWS, PER_VALUE, SWEEPS, CONFIGURATIONS = 10_000, 50, 1000, 50
PUBLISHED = (
    (200, 2, 90),
    (200, 5, 50),
    (200, 10, 25),
    (50, 10, 15),
    (500, 10, 55),
    (1200, 10, 120),
)
"""Domain, bin, seconds (section 5.6, lines 477 to 487 of the text)."""


def table_of(domain: int, rows: int, telling: float) -> np.ndarray:
    """Return the joint of a uniform attribute and a binary label, seeded.

    `telling`: how far the chance of the first class moves from the lowest to the highest value.
    """
    random = np.random.default_rng(1)
    values = random.integers(0, domain, rows)
    chance = 0.5 + telling * (values / max(1, domain - 1) - 0.5)
    joint = np.zeros((domain, 2))
    np.add.at(joint, (values, (random.random(rows) < chance).astype(int)), 1)
    return joint


def evidence_of(joint: np.ndarray, width: int) -> Evidence:
    """Return what a mask with bins of `width` values shows, and the histogram."""
    codes = np.arange(len(joint)) // width
    masked = np.zeros((int(codes.max()) + 1, 2))
    np.add.at(masked, codes, joint)
    mask = MaskedJoint("bins", codes, masked)
    return Evidence(len(joint), 2, (mask,), joint.sum(axis=1))


def looped(evidence: Evidence, sweeps: int) -> np.ndarray:
    """Return IPF from uniform as a loop over groups in Python, all sweeps gone through."""
    table = np.ones((evidence.atoms, evidence.labels))
    mask = evidence.masked[0]
    members = [np.flatnonzero(mask.codes == group) for group in range(len(mask.joint))]
    for _ in range(sweeps):
        for group, inside in enumerate(members):
            total = table[inside].sum(axis=0)
            table[inside] *= mask.joint[group] / np.where(total > 0, total, 1)
        total = table.sum(axis=1)
        table *= (evidence.histogram / np.where(total > 0, total, 1))[:, None]
    return table


def seconds() -> list[dict[str, Any]]:
    """Return published and own times by domain and bin."""
    rows = []
    for domain, width, published in PUBLISHED:
        evidence = evidence_of(table_of(domain, ROWS, 0.0), width)
        started = time.process_time()
        slow = looped(evidence, SWEEPS // 20)
        once = 20 * (time.process_time() - started)
        settings = Settings(tolerance=1e-6, max_sweeps=SWEEPS)
        started = time.process_time()
        ours = reconstruct(evidence, "ipf", settings=settings).table
        spent = time.process_time() - started
        rows.append(
            {
                "domain": domain,
                "bin": width,
                "groups": -(-domain // width),
                "published_seconds": published,
                "looped_seconds_of_50": round(CONFIGURATIONS * once, 1),
                "ours_seconds_of_50": round(CONFIGURATIONS * spent, 3),
                "largest_difference_of_tables": float(np.abs(slow - ours).max()),
            }
        )
    return rows


def distances() -> list[dict[str, Any]]:
    """Return the distance by the size of the domain under each change."""
    rows = []
    for domain in (50, 200, 500, 1200):
        row: dict[str, Any] = {"domain": domain}
        for name, count, telling in (
            ("as designed", ROWS, 0.0),
            ("50 rows for each value", PER_VALUE * domain, 0.0),
            ("label depends on the value", ROWS, 0.8),
        ):
            joint = table_of(domain, count, telling)
            found = reconstruct(evidence_of(joint, 10), "ipf").table
            row[name] = round(total_variation(found, joint), 4)
            if name == "as designed":
                row["mean per cell"] = round(row[name] / joint.size, 6)
        rows.append(row)
    return rows


def main() -> None:
    """Fit the line, time, measure and write."""
    timed = seconds()
    groups = [row["groups"] for row in timed]
    slope, start = np.polyfit(groups, [row["published_seconds"] for row in timed], 1)
    fit = np.corrcoef(groups, [row["published_seconds"] for row in timed])[0, 1] ** 2
    line = {"seconds_per_group": slope, "seconds_at_0": start, "r_squared": fit}
    found = distances()
    print(*timed, line, *found, sep="\n")
    write_json(NAME, {"seconds": timed, "line": line, "distances": found})


if __name__ == "__main__":
    main()
