"""Run one job in a separate process, which reads it from standard input.

See `aegis.service.subprocess_job`.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from dataclasses import replace
from importlib import import_module

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from aegis.errors import EngineError
from aegis.service.agent import Agent
from aegis.service.agent_settings import AgentSettings
from aegis.service.catalog.limited import NO_MEMORY, limit_memory
from aegis.service.subprocess_job import NO_SERVICE
from aegis.signing import PrivateKey
from aegis.sources.embedded import limit_embedded

_NEEDED = (
    "aegis.service.catalog.checking",
    "aegis.service.catalog.summaries",
    "aegis.release",
    "scipy.optimize",
    "scipy.linalg.lapack",
)


def _end_with_agent() -> None:
    """End this process when the agent ends, which closes the pipe to standard input."""
    sys.stdin.buffer.read()
    os._exit(1)


def _limit(memory: int) -> None:
    for name in _NEEDED:
        import_module(name)
    limit_embedded(memory // 2)
    limit_memory(memory)


def main() -> None:
    """Read a job from standard input, do it, and print one line for each event."""
    told = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_agent, daemon=True).start()
    key = PrivateKey(Ed25519PrivateKey.from_private_bytes(told["key"]))
    settings: AgentSettings = replace(told["settings"], key=key)

    def say(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    agent = Agent(settings, say=say)
    memory = told["memory"]
    try:
        agent.do(told["job"], before=lambda: None if memory is None else _limit(memory))
    except EngineError:
        os._exit(NO_SERVICE)
    except MemoryError:
        os._exit(NO_MEMORY)  # to end in order takes memory, too
    os._exit(0)  # without waiting for the thread that reads


if __name__ == "__main__":
    main()
