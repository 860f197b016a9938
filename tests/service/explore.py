"""Generated calls of the API from its own description: no answer is a 5xx, or of a status that it lacks.

A few of them run with the tests; at length: `python tests/service/explore.py 200`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from service_support import House, house, request_of

STREAMS = ("/events",)
"""Ends of paths that are answered for as long as a job lasts."""


def explore(place: House, name: str, examples: int) -> tuple[int, list[str]]:
    """Call each operation with generated values, as one person.

    Half of the calls name things that are there, so that they come further than "no such thing".

    Returns
    -------
    How many calls were made, and those that were answered with a 5xx or an undocumented status.
    """
    headers = {"Authorization": f"Bearer {place.tokens[name]}"}
    schema = schemathesis.openapi.from_url(f"{place.url}/api/v1/openapi.json")
    request_id, job_id = request_of(place, "census")
    there = {"identifier": "census", "request_id": request_id, "job_id": job_id, "name": "clara"}
    made, wrong = 0, []

    def call(case: Any, known: bool) -> None:
        nonlocal made
        if known:
            case.path_parameters.update(
                {key: value for key, value in there.items() if key in case.path_parameters}
            )
        answer = case.call(headers=headers, timeout=60)
        made += 1
        status = str(answer.status_code)
        if answer.status_code >= 500 or status not in case.operation.definition.raw["responses"]:
            wrong.append(f"{name}: {status} {case.as_curl_command()}")

    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path.endswith(STREAMS):
            continue
        for known in (False, True):
            if known and "{" not in operation.path:
                continue
            run(operation, lambda case, known=known: call(case, known), examples)
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
            made, wrong = explore(place, name, examples)
        sys.stdout.write(
            f"{name}: {made} calls, {len(wrong)} with a 5xx or an undocumented status\n"
        )
        for line in dict.fromkeys(wrong):
            sys.stdout.write(f"  {line}\n")
        sys.stdout.flush()
        failed = failed or bool(wrong)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
