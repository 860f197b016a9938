"""Small tables and policies for the tests of evaluation."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from aegis.policy import Policy, load_policy


def make_table(rows: int = 240, seed: int = 0, nulls: bool = True) -> pa.Table:
    """Return a table whose label depends on age and town, with nulls and unlabelled rows."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 80, rows)
    town = random.choice(["a", "b", "c", "d", "e"], rows, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    noise = random.normal(size=rows)
    sick = (age / 40 + (town == "a") + noise) > 2
    label = ["yes" if one else "no" for one in sick]
    return pa.table(
        {
            "age": pa.array([None if nulls and i % 17 == 0 else int(a) for i, a in enumerate(age)]),
            "town": pa.array(
                [None if nulls and i % 23 == 0 else str(t) for i, t in enumerate(town)]
            ),
            "size": pa.array(np.round(random.normal(170, 10, rows), 1)),
            "sick": pa.array(
                [None if nulls and i % 40 == 0 else y for i, y in enumerate(label)], pa.string()
            ),
        }
    )


def make_policy(**changes: object) -> Policy:
    """Return a policy for `make_table`."""
    content: dict[str, object] = {
        "version": 1,
        "label": "sick",
        "privacy": {"k": 3, "suppression": 0.2},
        "attributes": {
            "age": {
                "role": "quasi-identifier",
                "masks": ["identity", {"bucketize": {"width": 10}}, "suppress"],
            },
            "town": {
                "role": "quasi-identifier",
                "masks": ["identity", {"keep_frequent": {"count": 2}}, "suppress"],
            },
            "size": {"role": "feature", "masks": [{"quantiles": {"count": 4}}, "suppress"]},
        },
    }
    content.update(changes)
    return load_policy(content)
