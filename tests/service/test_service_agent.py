"""An agent whose jobs have limits: each in a process of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from service_support import POLICY

from aegis.catalog.limited import WorkLimits
from aegis.service.agent import Agent


def asked(place, limits: WorkLimits) -> tuple[dict, list[str]]:
    """Have a summary made under limits; return the data set as it is then, and what was said."""
    said: list[str] = []
    with place.client("paula") as paula:
        job = paula.ask_summary("census", POLICY, protect="noise", epsilon=8.0)["id"]
        agent = Agent(replace(place.agent.settings, work=limits), say=said.append)
        assert agent.once()
        agent.client.close()
        return paula._object("GET", f"/jobs/{job}"), said


def test_a_job_in_a_process_of_its_own_is_done(place):
    job, said = asked(place, WorkLimits(600, 4 << 30))
    assert job["state"] == "done", said
    assert said[-1].startswith("done in")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (WorkLimits(0.1, None), "The work took more than 0.1 seconds."),
        (WorkLimits(600, 40 << 20), "At most 40 MiB of memory are allowed, and the work takes"),
    ],
)
def test_a_job_that_takes_too_much_is_ended_and_says_so(place, limits, words):
    job, said = asked(place, limits)
    assert job["state"] == "failed"
    assert words in job["error"]
    assert any(words in line for line in said)
