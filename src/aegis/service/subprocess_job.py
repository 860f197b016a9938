"""Do one job of an agent in a separate process, under limits of time and memory.

The process keeps the job's lease and uploads the result, like the agent itself. It ends with the
agent, and its temporary files are deleted.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import IO, Any

from aegis.errors import EngineError
from aegis.service.agent_settings import AgentSettings
from aegis.service.catalog.limited import ENVIRONMENT, MIB, NO_MEMORY, LimitError, WorkLimits
from aegis.temporary import temporary_folder

_PAUSE = 0.2
NO_SERVICE = 4
"""Exit code of a process to which the service did not answer."""


def work_apart(
    settings: AgentSettings,
    job: Mapping[str, Any],
    limits: WorkLimits,
    say: Callable[[str], None],
) -> None:
    """Do a job of an agent in a separate process.

    Parameters
    ----------
    settings
        The settings of the agent.
    job
        The job as received from the service.
    limits
        The limits of the process.
    say
        Receives the output lines of the process.

    Raises
    ------
    LimitError
        The process exceeded the limits, or ended without an answer.
    EngineError
        The service did not answer.
    """
    with temporary_folder("agent") as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "aegis.service.job_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT, "TMPDIR": str(folder)},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        reader = threading.Thread(target=_read, args=(process.stdout, say), daemon=True)
        reader.start()
        try:
            with suppress(BrokenPipeError):  # how it ended is told by its exit code
                pickle.dump(_told(settings, job, limits), process.stdin)
                process.stdin.flush()
            code = _wait(process, limits)
        finally:
            process.kill()
            process.wait()
            reader.join()
            with suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()
    _judge(code, job["kind"], limits)


def _told(settings: AgentSettings, job: Mapping[str, Any], limits: WorkLimits) -> dict[str, Any]:
    return {
        "settings": replace(settings, work=None, key=None),  # type: ignore[arg-type]
        "key": settings.key.key.private_bytes_raw(),
        "job": dict(job),
        "memory": limits.memory,
    }


def _read(lines: IO[bytes], say: Callable[[str], None]) -> None:
    for line in lines:
        say(line.decode("utf-8", "replace").rstrip())


def _wait(process: subprocess.Popen[bytes], limits: WorkLimits) -> int:
    end = time.monotonic() + limits.seconds
    while time.monotonic() < end:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=_PAUSE)
    raise LimitError(
        f"The work took more than {limits.seconds:g} seconds.",
        hint="Use fewer candidate masks, or start the agent with a higher --job-seconds.",
    )


def _judge(code: int, kind: str, limits: WorkLimits) -> None:
    if code == 0:
        return
    if code == NO_SERVICE:
        raise EngineError(
            "The service does not answer.", hint="The job continues when the service answers again."
        )
    if code == NO_MEMORY and limits.memory is not None:
        said = f"The {kind} took more than the {limits.memory / MIB:.0f} MiB that a job may have."
    else:
        ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        said = f"The {kind} ended without an answer ({ended})."
    raise LimitError(
        said, hint="Use fewer candidate masks, or start the agent with a higher --job-memory."
    )
