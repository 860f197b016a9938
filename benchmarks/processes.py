"""Processor time and peak memory of a process and of those that it started, from /proc."""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def seconds_of(process: int) -> float:
    """Return the processor time of a process and of all below it, those that have ended included."""
    return sum(sum(map(int, fields[11:15])) for fields in _tree(process).values()) / TICKS


def peaks(process: int) -> dict[str, float]:
    """Return the peak memory (MB) of a process and of those below it: by program, of the largest."""
    found: dict[str, float] = {}
    for one in _tree(process):
        name, size = peak(one)
        found[name] = max(found.get(name, 0), size)
    return found


def peak(process: int | str) -> tuple[str, float]:
    """Return the name of a process's program, and its peak resident memory in MB.

    What the operating system states when a process has ended includes the memory of the process
    that started it.
    """
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return fields["Name"], int(fields.get("VmHWM", "0 kB").split()[0]) / 1024


def _tree(process: int) -> dict[int, list[str]]:
    """Return the fields of `stat`, from the state on, of a process and of all below it."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = (folder / "stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue  # it has just ended
    below = {process} & found.keys()
    while more := {one for one, fields in found.items() if int(fields[1]) in below} - below:
        below |= more
    return {one: found[one] for one in below}
