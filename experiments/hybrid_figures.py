"""The hybrid scheme of Majeed and Hwang on Adult by its tables III to VIII and figures 11 to 18.

The text of the paper holds next to no figure of these (see `docs/anonymizers.md`); ours stand for
themselves, with k-member as the plain k-anonymity beside them. One part for each axis:

- `k`: seven values of k (the paper does not name its seven): originality, disclosure risk, share of
  values changed in either partition, accuracy of a forest, run time;
- `epsilon`: both budgets alike, from .01 to 10: share of ages changed, disclosure risk, ages that are
  below the youngest of the raw table, and the distance of the distribution of ages; beside them
  the Laplace mechanism on every age with the range as its sensitivity, not held to the range;
- `steps`: time of each step of the scheme;
- `forest`: what shuffling an attribute costs a forest that is fitted once (ours), and one that is
  rebuilt on the shuffled attribute (the paper);
- `cleaning`: what the paper's preprocessing leaves out, and the release after it.

    python experiments/hybrid_figures.py [--part k,epsilon,steps,forest,cleaning]
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
import pyarrow as pa

from aegis.anonymizers import ANONYMIZERS, build_release, encode
from aegis.records.forest import Forest
from aegis.records.hybrid import HybridOptions, ReleasedCells, patterns
from aegis.records.members import k_member
from common import RESULTS, write_json
from hybrid import QUASI, SENSITIVE, hierarchies, table
from hybrid_metrics import disclosure_risk, forest_accuracy, originality

NAME = "hybrid_figures"
KS = (5, 10, 15, 20, 25, 30, 35)
BESIDE = (5, 20, 35)
"""Values of k for which k-member stands beside the scheme."""
BUDGETS = (0.01, 0.1, 1.0, 5.0, 10.0)
FRIENDLY = ("race", "native-country")
"""What the forest finds (`hybrid.py`); named, so that it is not grown again for every release."""
MINOR = 0.05
"""Values of a pattern-friendly attribute that are rarer make a record violating."""
TREES, FORESTS = 50, 2


def released(rows: pa.Table, records: Any, method: str, **given: Any) -> tuple[pa.Table, Any]:
    """Return the release of a method, and how it was grouped."""
    anonymizer = ANONYMIZERS.get(method)
    grouped = anonymizer.group(records, anonymizer.configure(**given), seed=1)
    return build_release(rows, records, grouped), grouped


def violating(rows: pa.Table) -> np.ndarray:
    """Return which records hold a rare value of a pattern-friendly attribute."""
    rare = np.zeros(rows.num_rows, dtype=bool)
    for name in FRIENDLY:
        _, codes, counts = np.unique(
            [str(value) for value in rows[name].to_pylist()],
            return_inverse=True,
            return_counts=True,
        )
        rare |= counts[codes] / rows.num_rows < MINOR
    return rare


def risk(release: pa.Table) -> dict[str, Any]:
    """Return the disclosure risk for one to four known attributes, and their mean."""
    known = [one.mean for one in disclosure_risk(release, QUASI, SENSITIVE)]
    return {"risk": known, "mean_risk": float(np.mean(known))}


def by_k(rows: pa.Table, records: Any) -> list[dict[str, Any]]:
    """Return one row per k and method."""
    rare = violating(rows)
    parts = {"violating": pa.array(rare), "non_violating": pa.array(~rare)}
    found = []
    for k in KS:
        methods: dict[str, dict[str, Any]] = {"hybrid": {"pattern_friendly": FRIENDLY}}
        if k in BESIDE:
            methods["k-member"] = {}
        for method, given in methods.items():
            release, grouped = released(rows, records, method, k=k, **given)
            changed = {
                part: 1 - originality(rows.filter(chosen), release.filter(chosen), QUASI)
                for part, chosen in parts.items()
            }
            found.append(
                {
                    "method": method,
                    "k": k,
                    "originality": originality(rows, release, QUASI),
                    **{f"changed_{part}": share for part, share in changed.items()},
                    **risk(release),
                    "accuracy": forest_accuracy(release, QUASI, SENSITIVE, trees=TREES),
                    "seconds": grouped.seconds,
                }
            )
            print(found[-1], flush=True)
    return found


def ages_of(values: np.ndarray, raw: np.ndarray) -> dict[str, float]:
    """Return how released ages differ from the raw ones."""
    span = range(int(min(raw.min(), values.min())), int(max(raw.max(), values.max())) + 2)
    shares = [np.histogram(one, bins=span)[0] / len(raw) for one in (raw, values)]
    return {
        "changed": float(np.mean(values != raw)),
        "distance": float(np.abs(shares[0] - shares[1]).sum() / 2),
        "below_youngest": float(np.mean(values < raw.min())),
        "negative": float(np.mean(values < 0)),
        "mean_error": float(np.abs(values - raw).mean()),
    }


def by_epsilon(rows: pa.Table, records: Any) -> list[dict[str, Any]]:
    """Return one row per epsilon and mechanism."""
    raw = np.array(rows["age"].to_pylist(), dtype=float)
    found = []
    for epsilon in BUDGETS:
        release, _ = released(
            rows,
            records,
            "hybrid",
            k=5,
            epsilon=epsilon,
            epsilon_violating=epsilon,
            pattern_friendly=FRIENDLY,
        )
        ages = np.array(release["age"].to_pylist(), dtype=float)
        found.append(
            {"epsilon": epsilon, "mechanism": "hybrid"} | ages_of(ages, raw) | risk(release)
        )
        noise = np.random.default_rng(1).laplace(0, (raw.max() - raw.min()) / epsilon, len(raw))
        free = np.round(raw + noise)
        found.append({"epsilon": epsilon, "mechanism": "Laplace on all ages"} | ages_of(free, raw))
        print(*found[-2:], sep="\n", flush=True)
    return found


def steps(records: Any, rows: pa.Table) -> dict[str, float]:
    """Return processor seconds of the three steps of Figure 18, k = 5."""
    options = HybridOptions(k=5)
    random = np.random.default_rng(1)
    started = time.process_time()
    patterns(records, options, random)
    first = time.process_time()
    rare = np.flatnonzero(violating(rows))
    cells = ReleasedCells(records)
    labels = k_member(records.take(rare), options.k, random)
    cells.generalise(rare, labels, options.diversity, numbers=False)
    second = time.process_time()
    cells.perturb(np.full(len(records), options.epsilon), options.sensitivity, random)
    third = time.process_time()
    return {
        "pattern_friendly": first - started,
        "k_anonymity": second - first,
        "noise": third - second,
        "violating_records": len(rare),
    }


def forests(records: Any) -> list[dict[str, Any]]:
    """Return the accuracy that shuffling costs, by attribute: fitted once, and rebuilt."""
    features = np.array([one.codes for one in records.attributes], dtype=np.int64).T
    target = records.sensitive[0].codes.astype(np.int64)
    found: dict[str, dict[str, list[float]]] = {}
    for seed in range(FORESTS):
        whole = Forest(features, target, np.random.default_rng(seed), trees=TREES)
        for number, attribute in enumerate(records.attributes):
            shuffled = features.copy()
            shuffled[:, number] = np.random.default_rng(seed + 100).permutation(features[:, number])
            rebuilt = Forest(shuffled, target, np.random.default_rng(seed), trees=TREES)
            once = whole.drop_without(number, np.random.default_rng(seed + 200))
            own = found.setdefault(attribute.name, {"fitted_once": [], "rebuilt": []})
            own["fitted_once"].append(once)
            own["rebuilt"].append(whole.accuracy() - rebuilt.accuracy())
    return [
        {"attribute": name, **{how: float(np.mean(costs)) for how, costs in of.items()}}
        for name, of in found.items()
    ]


def cleaning(rows: pa.Table, records: Any) -> list[dict[str, Any]]:
    """Return what preprocessing leaves out, and the release after it."""
    found = []
    for name, given in (
        ("off (default)", {}),
        ("duplicates left out", {"drop_duplicates": True}),
        (
            "incomplete left out, ages 17 to 90",
            {"drop_incomplete": True, "limits": [("age", 17, 90)]},
        ),
    ):
        given = {**given, "limits": tuple(given.get("limits", ()))} if given else given
        release, grouped = released(
            rows, records, "hybrid", k=5, pattern_friendly=FRIENDLY, **given
        )
        kept = rows.filter(pa.array(grouped.groups.of >= 0))
        found.append(
            {
                "preprocessing": name,
                "dropped": grouped.details["dropped"],
                "rows": release.num_rows,
                "originality": originality(kept, release, QUASI),
                "distortion": grouped.details["distortion"],
                **risk(release),
            }
        )
        print(found[-1], flush=True)
    return found


def main(argv: list[str] | None = None) -> None:
    """Run the parts asked for; parts run before are kept."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", default="steps,forest,cleaning,epsilon,k")
    chosen = parser.parse_args(argv).part.split(",")
    path = RESULTS / f"{NAME}.json"
    done = json.loads(path.read_text()) if path.exists() else {}
    rows = table()
    roles = dict.fromkeys(QUASI, "quasi-identifier") | {SENSITIVE: "sensitive"}
    records = encode(rows, roles, hierarchies=hierarchies(rows))
    work = {
        "k": lambda: by_k(rows, records),
        "epsilon": lambda: by_epsilon(rows, records),
        "steps": lambda: steps(records, rows),
        "forest": lambda: forests(records),
        "cleaning": lambda: cleaning(rows, records),
    }
    for part in chosen:
        done[part] = work[part]()
        print(part, done[part] if part in ("steps", "forest") else "", flush=True)
        write_json(NAME, done)


if __name__ == "__main__":
    main()
