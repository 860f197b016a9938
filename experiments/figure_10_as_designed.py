"""Figure 10 as the AEGIS paper designs it: one uniform attribute of 10,000 rows, a binary label.

Time and total variation distance of the reconstruction by the width of bins (domain of 200) and by the
size of the domain (bins of 10), with the histogram and without.

    python experiments/figure_10_as_designed.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from aegis.papers.reconstruction import Evidence, MaskedJoint, Settings, reconstruct
from common import write_csv

ROWS = 10_000
BINS, DOMAINS = (2, 5, 10, 20), (50, 500, 1200)


def reconstructed(domain: int, width: int, seed: int) -> dict[str, Any]:
    """Return milliseconds and distance of both settings."""
    random = np.random.default_rng(seed)
    joint = np.zeros((domain, 2))
    np.add.at(joint, (random.integers(0, domain, ROWS), random.integers(0, 2, ROWS)), 1)
    codes = np.arange(domain) // width
    masked = np.zeros((int(codes.max()) + 1, 2))
    np.add.at(masked, codes, joint)
    row: dict[str, Any] = {"domain": domain, "bin": width}
    for name, histogram in (("+1D", joint.sum(axis=1)), ("-1D", None)):
        evidence = Evidence(domain, 2, (MaskedJoint("bins", codes, masked),), histogram)
        started = time.perf_counter()
        settings = Settings(tolerance=1e-6, max_sweeps=1000)
        table = reconstruct(evidence, "ipf", settings=settings).table
        row[f"ms{name}"] = round(1000 * (time.perf_counter() - started), 2)
        row[f"tvd{name}"] = round(float(np.abs(table - joint).sum() / 2 / ROWS), 3)
    return row


def main() -> None:
    """Measure and write."""
    reconstructed(DOMAINS[0], 10, 0)  # the first call loads what the others use
    rows = [reconstructed(200, width, 1) for width in BINS]
    rows += [reconstructed(domain, 10, 1) for domain in DOMAINS]
    for row in rows:
        print(row)
    write_csv("figure_10_as_designed", rows)


if __name__ == "__main__":
    main()
