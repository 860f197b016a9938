"""How far MO-OBAM's local search stays from the optimum, on instances that HiGHS can solve.

12 to 20 records with a number, a category of three values and a sensitive attribute of three,
drawn at random. A cluster is one column of a set partition; per level of the least entropy the
cheapest partition that keeps it gives the optimum of the weighted sum for every lambda.

    python experiments/mo_obam_gap.py [--seeds 4]
"""

from __future__ import annotations

import argparse
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from aegis.anonymizers import ANONYMIZERS, Records, encode
from aegis.records.obam.state import Instance, entropy
from common import write_json

SIZES = ((12, 3, 3), (14, 4, 3), (16, 5, 3), (18, 5, 3), (20, 6, 3))
"""Records, clusters, k."""
WEIGHTS = (0.0, 1e-2, 1e-1, 1.0)


def records_of(rows: int, seed: int) -> Records:
    """Return a random instance."""
    random = np.random.default_rng([rows, seed])
    table = pa.table(
        {
            "age": random.integers(18, 90, rows),
            "place": random.choice(list("xyz"), rows),
            "illness": random.choice(list("abc"), rows),
        }
    )
    roles = {"age": "quasi-identifier", "place": "quasi-identifier", "illness": "sensitive"}
    return encode(table, roles)


def optima(records: Records, clusters: int, k: int) -> list[float]:
    """Return the optimum of the weighted sum for each weight."""
    instance = Instance.build(records, scaled=True)
    rows = len(records)
    blocks = [
        np.array(block)
        for size in range(k, rows - (clusters - 1) * k + 1)
        for block in combinations(range(rows), size)
    ]
    costs, levels = np.empty(len(blocks)), np.empty(len(blocks))
    for number, block in enumerate(blocks):
        points = instance.points[block]
        mismatches = sum(
            len(block) - np.bincount(codes).max() for codes in instance.nominal[block].T
        )
        costs[number] = ((points - points.mean(axis=0)) ** 2).sum() + mismatches
        levels[number] = round(float(entropy(np.bincount(instance.sensitive[block, 0]))), 12)
    where = np.concatenate(blocks)
    ends = np.concatenate([[0], np.cumsum([len(block) for block in blocks])])
    cover = sparse.csc_array((np.ones(len(where)), where, ends), shape=(rows, len(blocks)))
    reached: list[tuple[float, float]] = []
    bound = 0.0
    while True:
        allowed = np.flatnonzero(levels >= bound)
        chosen = _cheapest(costs[allowed], cover[:, allowed], clusters)
        if chosen is None:
            break
        least = float(levels[allowed[chosen]].min())
        reached.append((float(costs[allowed[chosen]].sum()), least))
        bound = least + 1e-9
    ceiling = np.log2(instance.sensitive_sizes[0])
    best = reached[0][0]
    return [
        min(1 - best / loss - weight * least / ceiling for loss, least in reached)
        for weight in WEIGHTS
    ]


def _cheapest(costs: np.ndarray, cover: Any, clusters: int) -> np.ndarray | None:
    if not len(costs):
        return None
    rows = sparse.vstack([cover, np.ones((1, len(costs)))])
    target = np.append(np.ones(cover.shape[0]), clusters)
    solved = milp(
        costs,
        constraints=LinearConstraint(rows, target, target),
        integrality=np.ones(len(costs)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    return None if solved.x is None else np.flatnonzero(solved.x > 0.5)


def main(argv: list[str] | None = None) -> None:
    """Solve, search, compare, and write the gaps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    seeds = parser.parse_args(argv).seeds
    method = ANONYMIZERS.get("mo-obam")
    found: list[dict[str, Any]] = []
    for seed in range(seeds):
        for rows, clusters, k in SIZES:
            records = records_of(rows, seed)
            exact = optima(records, clusters, k)
            for weight, optimum in zip(WEIGHTS, exact, strict=True):
                options = method.configure(k=k, clusters=clusters, weight=weight)
                value = method.group(records, options, seed=seed).details["objective"]
                gap = {"records": rows, "clusters": clusters, "k": k, "seed": seed}
                found.append(gap | {"weight": weight, "optimum": optimum, "gap": value - optimum})
            gaps = np.array([one["gap"] for one in found])
            summary = {
                "solved": int((gaps < 1e-9).sum()),
                "of": len(gaps),
                "largest": float(gaps.max()),
            }
            print(rows, seed, summary, flush=True)
            # After each instance: the largest take minutes.
            write_json("mo_obam_gap", {**summary, "instances": found})


if __name__ == "__main__":
    main()
