"""Generated calls of the API from its own description: no answer is a 5xx, or of a status that it lacks.

A few of them run with the tests; at length: `python tests/service/explore.py 200`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from service_support import House, house, request_of

STREAMS = ("/events",)
"""Ends of paths that are answered for as long as a job lasts."""


def explore(place: House, names: Sequence[str], examples: int) -> tuple[dict[str, int], list[str]]:
    """Call each operation with generated values, as each of some persons.

    Each call is made twice where it names something: as it is drawn, and then of things that are there, so
    that it comes further than "no such thing". To draw a call takes longer than to answer it.

    Returns
    -------
    How many calls each person made, and those that were answered with a 5xx or an undocumented status.
    """
    schema = schemathesis.openapi.from_url(f"{place.url}/api/v1/openapi.json")
    request_id, job_id = request_of(place, "census")
    there = {"identifier": "census", "request_id": request_id, "job_id": job_id, "name": "clara"}
    made, wrong = dict.fromkeys(names, 0), []

    def call(case: Any) -> None:
        for name in names:
            headers = {"Authorization": f"Bearer {place.tokens[name]}"}
            answer = case.call(headers=headers, timeout=60)
            made[name] += 1
            status = str(answer.status_code)
            documented = case.operation.definition.raw["responses"]
            if answer.status_code >= 500 or status not in documented:
                wrong.append(f"{name}: {status} {case.as_curl_command()}")

    def call_both(case: Any) -> None:
        call(case)
        if "{" in case.operation.path:
            known = {key: value for key, value in there.items() if key in case.path_parameters}
            case.path_parameters.update(known)
            call(case)

    for result in schema.get_all_operations():
        operation = result.ok()
        if not operation.path.endswith(STREAMS):
            run(operation, call_both, examples)
    return made, wrong


def run(operation: Any, call: Any, examples: int) -> None:
    """Draw calls of one operation, the same ones each time."""

    @given(case=operation.as_strategy())
    @settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def once(case: Any) -> None:
        call(case)

    once()


def main() -> None:
    """Explore as each person; exit code 1 where an answer was a 5xx or undocumented."""
    examples, failed = int(sys.argv[1]), False
    for name in sys.argv[2:] or ("paula", "otto", "clara", "ada"):
        with tempfile.TemporaryDirectory() as folder, house(Path(folder)) as place:
            place.offer()
            made, wrong = explore(place, [name], examples)
        sys.stdout.write(
            f"{name}: {made[name]} calls, {len(wrong)} with a 5xx or an undocumented status\n"
        )
        for line in dict.fromkeys(wrong):
            sys.stdout.write(f"  {line}\n")
        sys.stdout.flush()
        failed = failed or bool(wrong)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
