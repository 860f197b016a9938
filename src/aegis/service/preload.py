"""Load the libraries of a workbench before a person waits for them."""

from __future__ import annotations

import threading

_ROWS = 64


def warm_in_background() -> None:
    """Load the libraries in a thread that ends with the process.

    Engine, compiler and solvers take a second or two at their first use. They load while the user
    chooses a table.
    """
    threading.Thread(target=warm, name="aegis-warm", daemon=True).start()


def warm() -> None:
    """Open and search a small made-up table, so that all libraries are loaded."""
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
