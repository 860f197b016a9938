"""Other packages' ways to group records, run by a Python that has them: `peers.py NAME CSV`.

It imports nothing of Aegis. The seconds that it prints leave imports and reading out.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any


def anonypyx_mdav(frame: Any) -> int:
    """Group all columns by MDAV of anonypyx, k = 5."""
    from anonypyx import Anonymiser

    made = Anonymiser(
        frame.astype("float64"),  # it writes z-scores back into the columns
        k=5,
        algorithm="MDAV-generic",
        feature_columns=list(frame.columns),
        generalisation_strategy="microaggregation",
    )
    return len(made.anonymise())


def anonypy_mondrian(frame: Any) -> int:
    """Cut all columns but the last, which is sensitive, by Mondrian of anonypy, k = 5."""
    from anonypy import Preserver

    for name in frame.columns:
        if frame[name].dtype.kind not in "if":
            frame[name] = frame[name].astype("category")
    quasi = list(frame.columns[:-1])
    return len(Preserver(frame, quasi, frame.columns[-1]).anonymize_k_anonymity(5))


PEERS: dict[str, Callable[[Any], int]] = {
    "anonypyx_mdav": anonypyx_mdav,
    "anonypy_mondrian": anonypy_mondrian,
}


def main() -> None:
    """Run one peer on one file and print what it took as JSON."""
    import pandas as pd

    frame = pd.read_csv(sys.argv[2])
    wall, cpu = time.perf_counter(), time.process_time()
    rows = PEERS[sys.argv[1]](frame)
    seconds, spent = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"seconds": seconds, "cpu": spent, "result": {"rows": rows}}))


if __name__ == "__main__":
    main()
