"""`python -m aegis` is the command `aegis`."""

from __future__ import annotations

from aegis.cli.main import main

if __name__ == "__main__":
    main()
