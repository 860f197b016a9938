"""Loading the modules of a workbench before somebody waits for them."""

from __future__ import annotations

import threading

_ROWS = 64


def warm_in_background() -> None:
    """Begin to load it, on a thread that ends with the process.

    The engine, its compiler and the solvers take a second or two at their first use; a table that is
    opened while the person looks for theirs takes that away.
    """
    threading.Thread(target=warm, name="aegis-warm", daemon=True).start()


def warm() -> None:
    """Put a table that was made up on a bench, and search it."""
    import pyarrow as pa

    from aegis.service.workbench import Bench

    rows = range(_ROWS)
    table = pa.table(
        {
            "age": [20 + n % 40 for n in rows],
            "place": [f"place {n % 7}" for n in rows],
            "answer": [f"answer {n // 3 % 2}" for n in rows],
        }
    )
    bench = Bench.open(table, "answer")
    bench.view()
    bench.best(1.0)
