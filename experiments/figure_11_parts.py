"""Figure 11 by its three parts: masking, reconstruction and utility of the published procedure.

A table of uniform attributes of 100 values and a binary label, in memory. Per configuration and
attribute: apply the mask to every row and count the masked joint with the label (masking), IPF from
uniform with the histogram (at most 1,000 sweeps, tolerance 1e-6) and randomised rounding
(reconstruction), mutual information of both joints (utility). Beside it the same three parts when
rows are counted once, by value and label, and every masked joint is added up from the counts, as
Aegis does. Processor seconds.

    python experiments/figure_11_parts.py [--rows 1e5,1e6] [--attributes 50,150,250]
        [--configurations 10,30,50]

Rows vary at 50 attributes and 10 configurations, attributes at 1e5 rows and 10 configurations,
configurations at 1e5 rows and 50 attributes.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.papers.reconstruction import (
    Evidence,
    MaskedJoint,
    Settings,
    randomised_rounding,
    reconstruct,
)
from common import write_csv
from mask_estimates import mutual_information

NAME = "figure_11_parts"
ROWS, ATTRIBUTES, CONFIGURATIONS, VALUES = 100_000, 50, 10, 100
WIDTHS = (2, 5, 10, 20, 25, 34, 50, 100)
"""Widths of bins: fine ones, 2 to 5 buckets, one digit erased, suppressed."""
SETTINGS = Settings(tolerance=1e-6, max_sweeps=1000)
Codes = npt.NDArray[np.integer]


def joint_of(codes: Codes, label: Codes, size: int) -> npt.NDArray[np.float64]:
    """Return the counts of codes and labels, shape (size, 2)."""
    return (
        np.bincount(2 * codes.astype(np.int64) + label, minlength=2 * size).reshape(size, 2) * 1.0
    )


def parts(rows: int, attributes: int, configurations: int, *, once: bool) -> dict[str, float]:
    """Return processor seconds of the parts."""
    random = np.random.default_rng(1)
    label = random.integers(0, 2, rows).astype(np.int64)
    columns = [random.integers(0, VALUES, rows, dtype=np.uint8) for _ in range(attributes)]
    spent = dict.fromkeys(("masking", "reconstruction", "utility"), 0.0)
    started = time.process_time()
    joints = [joint_of(column, label, VALUES) for column in columns] if once else []
    histograms = [np.bincount(column, minlength=VALUES) * 1.0 for column in columns]
    spent["masking"] += time.process_time() - started
    for number in range(configurations):
        for place, column in enumerate(columns):
            groups = np.arange(VALUES) // WIDTHS[random.integers(len(WIDTHS))]
            size = int(groups.max()) + 1
            at = time.process_time()
            if once:
                masked = np.zeros((size, 2))
                np.add.at(masked, groups, joints[place])
            else:
                masked = joint_of(groups.astype(np.uint8)[column], label, size)
            counted = time.process_time()
            evidence = Evidence(VALUES, 2, (MaskedJoint("m", groups, masked),), histograms[place])
            table = reconstruct(evidence, "ipf", settings=SETTINGS).table
            rounded = randomised_rounding(table, seed=number)
            fitted = time.process_time()
            mutual_information(rounded.astype(float))
            mutual_information(masked)
            spent["utility"] += time.process_time() - fitted
            spent["reconstruction"] += fitted - counted
            spent["masking"] += counted - at
    return spent


def main(argv: list[str] | None = None) -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default="1e5,1e6")
    parser.add_argument("--attributes", default="50,150,250")
    parser.add_argument("--configurations", default="10,30,50")
    given = parser.parse_args(argv)
    plans = [("rows", int(float(n)), ATTRIBUTES, CONFIGURATIONS) for n in given.rows.split(",")]
    plans += [("attributes", ROWS, int(n), CONFIGURATIONS) for n in given.attributes.split(",")]
    plans += [("configurations", ROWS, ATTRIBUTES, int(n)) for n in given.configurations.split(",")]
    rows: list[dict[str, Any]] = []
    for varied, *sizes in plans:
        for once in (False, True):
            spent = parts(*sizes, once=once)
            rows.append(
                {
                    "varied": varied,
                    **dict(zip(("rows", "attributes", "configurations"), sizes, strict=True)),
                    "counted": "once" if once else "for each configuration",
                    **{part: round(seconds, 3) for part, seconds in spent.items()},
                }
            )
            print(rows[-1], flush=True)
    write_csv(NAME, rows)


if __name__ == "__main__":
    main()
