"""Search one case with Aegis for each line of standard input: `python -m benchmarks.arx.ours NUMBER`.

The answers have the form of those of ArxSearch.java, with one more word at the end: `proven` or `open`.
The processor time is that of all threads of the process.
"""

from __future__ import annotations

import sys
import time

from benchmarks.arx.cases import CASES


def main() -> None:
    """Load the table of a case once, and search it as often as lines arrive."""
    import aegis

    case = CASES[int(sys.argv[1])]
    study = aegis.Study(str(case.table.path), aegis.load_policy(case.rules()))
    _ = study.summary
    print("loaded", flush=True)
    for _line in sys.stdin:
        before = time.process_time()
        advice = study.search(objective=case.objective, top=1, explain_best=False)
        best, found = advice.best, advice.search
        spent = time.process_time() - before
        assert found is not None
        assert best is not None
        levels = [_level(best.masks[name]) for name in case.quasi]
        state = "proven" if advice.optimal else "open"
        loss = "nan" if found.best is None else repr(float(found.best))
        print(round(spent * 1e9), found.work.checked, loss, *levels, state, flush=True)


def _level(mask: object) -> int:
    """Return the level of a mask: `identity` is level 0."""
    return int(mask["level"]) if isinstance(mask, dict) else 0


if __name__ == "__main__":
    main()
