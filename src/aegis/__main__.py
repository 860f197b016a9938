"""`python -m aegis` is the command `aegis`."""

from __future__ import annotations

from aegis.cli.main import process

if __name__ == "__main__":
    process()
