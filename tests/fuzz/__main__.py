"""Run the fuzzing at length, and say at the end what was tried and what failed."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from dataclasses import replace

from aegis.files import temporary_folder

from . import faults, games, inputs, kills, releases, workers
from .inputs import Failure
from .kinds import KINDS, SHARES


def main() -> int:
    """Return 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=0, help="mutated inputs over all kinds")
    parser.add_argument("--releases", type=int, default=0, help="releases to recheck")
    parser.add_argument("--kills", type=int, default=0, help="commands to kill")
    parser.add_argument("--games", type=int, default=0, help="pairs of each distinguishing game")
    parser.add_argument("--faults", action="store_true", help="every command under every fault")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--only", metavar="KIND:SEED", help="one case again, with its trace")
    parser.add_argument("--kind", choices=sorted(KINDS), help="inputs of this kind only")
    given = parser.parse_args()
    if given.only:
        return _again(given.only)
    failures = [
        *_inputs(given.inputs, given.seed, given.kind),
        *_releases(given.releases, given.seed),
        *_kills(given.kills, given.seed),
        *(games.failures(given.games) if given.games else ()),
        *(_faults() if given.faults else ()),
    ]
    print(f"\n{len(failures)} failures")
    for problem, count in Counter(f.problem[:100] for f in failures).most_common():
        example = next(f for f in failures if f.problem.startswith(problem))
        print(f"  {count:>5}  {problem}\n         for example --only {example.case}")
    return 1 if failures else 0


def _again(case: str) -> int:
    kind, _, seed = case.partition(":")
    if kind == "release":
        failure = releases.attempt(int(seed))[1]
    else:
        failure = inputs.attempt(kind, int(seed)).failure
    print("fine" if failure is None else f"{failure.problem}\n{failure.trace}")
    return 0 if failure is None else 1


class _Progress:
    """A line now and then."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.started, self.said = what, total, time.monotonic(), 0.0

    def show(self, done: int, failures: int) -> None:
        now = time.monotonic()
        if now - self.said >= 20 or done == self.total:
            self.said = now
            seconds = now - self.started
            print(
                f"{self.what}: {done:,} of {self.total:,}, {failures} failed, {seconds:,.0f} s",
                flush=True,
            )


def _inputs(count: int, first: int, kind: str | None) -> list[Failure]:
    failures, ends = [], defaultdict(list)
    progress = _Progress("inputs", count)
    wheel = [name for name, share in SHARES.items() for _ in range(share)]
    cases = [(kind or wheel[i * 37 % len(wheel)], first + i) for i in range(count)]
    for number, ((name, _), outcome) in enumerate(workers.outcomes(cases), start=1):
        ends[name].append(replace(outcome, failure=None))
        if outcome.failure is not None:
            failures.append(outcome.failure)
            print(f"  {outcome.failure.case}: {outcome.failure.problem}", flush=True)
        progress.show(number, len(failures))
    for name, all_of_kind in sorted(ends.items()):
        refused = sum(outcome.refused for outcome in all_of_kind)
        print(
            f"  {name}: {len(all_of_kind) - refused:,} read, {refused:,} refused; at most "
            f"{max(o.seconds for o in all_of_kind):.1f} s and "
            f"{max(o.megabytes for o in all_of_kind):,.0f} MB"
        )
    return failures


def _releases(count: int, first: int) -> list[Failure]:
    failures, made, tried = [], 0, 0
    progress = _Progress("releases", count)
    while made < count:
        released, failure = releases.attempt(first + tried)
        tried, made = tried + 1, made + released
        if failure is not None:
            failures.append(failure)
            print(f"  {failure.case}: {failure.problem}", flush=True)
        progress.show(made, len(failures))
    if count:
        print(f"  {made:,} releases rechecked, {tried - made:,} tables met no rule")
    return failures


def _kills(count: int, first: int) -> list[Failure]:
    failures: list[Failure] = []
    if not count:
        return failures
    ends: Counter[str] = Counter()
    with temporary_folder("kills") as folder:
        bench = kills.Bench.at(folder)
        progress = _Progress("kills", count)
        number = 0
        while ends.total() - ends["finished"] < count:
            ended, failure = kills.attempt(bench, first + number)
            number += 1
            ends[ended] += 1
            if failure is not None:
                failures.append(failure)
                print(f"  {failure.case}: {failure.problem}", flush=True)
            progress.show(ends.total() - ends["finished"], len(failures))
    print(f"  {dict(ends)}")
    return failures


def _faults() -> list[Failure]:
    """Run every command under every fault that can be made here."""
    failures: list[Failure] = []
    ends: Counter[int] = Counter()
    possible = {**faults.FAULTS, **{n: f for n, f in faults.PLACES.items() if faults.can_place(n)}}
    tried = [
        (name, command)
        for name, fault in possible.items()
        for command in (*faults.COMMANDS, *(() if fault.place else faults.SHOWN))
    ]
    with temporary_folder("faults") as folder:
        bench = faults.Bench.at(folder)
        progress = _Progress("faults", len(tried))
        for number, (name, command) in enumerate(tried, start=1):
            code, failure = faults.attempt(bench, command, possible[name])
            ends[code] += 1
            if failure is not None:
                failures.append(replace(failure, case=f"{command} under {name}"))
                print(f"  {failures[-1].case}: {failure.problem}", flush=True)
            progress.show(number, len(failures))
    print(f"  exit codes: {dict(ends)}")
    return failures


if __name__ == "__main__":  # workers import this module
    sys.exit(main())
