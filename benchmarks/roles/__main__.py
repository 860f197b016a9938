"""`python -m benchmarks.roles [FOLDER]`: measure the tables of FOLDER anew, then score the roles."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.roles.score import CV_FOLDS, outcomes, person_keys, record, table_of


def main() -> None:
    """Print precision and recall by role, and what is wrong in the tables that rules may go by."""
    if len(sys.argv) > 1:
        record(Path(sys.argv[1]))
    for part in CV_FOLDS:
        print(f"\n{part}\n{table_of(part)}")
    print("\nkeys of persons:", person_keys())
    for outcome in outcomes():
        label = outcome.label
        if label.part == "tune" and not outcome.right:
            wanted = " or ".join(label.accepted)
            print(
                f"{label.table}.{label.column}: {wanted}, not {outcome.proposed} ({outcome.reason})"
            )


if __name__ == "__main__":
    main()
