"""Which advice the options of the command line ask for: a ranking, or a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aegis.errors import PolicyError
from aegis.progress import Progress

if TYPE_CHECKING:
    from aegis.advisor import Advice, Prepared
    from aegis.cli.figures import Advisor
    from aegis.policy import Policy
    from aegis.sources import Source
    from aegis.summary import Summary


def make_advisor(
    policy: Policy,
    *,
    configurations: Path | None = None,
    generate: int | None = None,
    measure: str | None = None,
    search: bool = False,
    objective: str | None = None,
    time_limit: float | None = None,
    front: str | None = None,
    methods: Sequence[str] | None = None,
    top: int = 10,
    seed: int = 0,
    progress: Progress,
) -> Advisor:
    """Return what gives the advice that the options ask for.

    Raises
    ------
    PolicyError
        Options of a search and of a ranking are mixed, or the file of configurations is bad.
    """
    ranking = {"--configurations": configurations, "--generate": generate}
    searching = {"--objective": objective, "--time-limit": time_limit, "--front": front}
    if search:
        _refuse(
            ranking,
            "is not for a search, which tries all combinations",
            "Leave out {} or --search.",
        )
        from aegis.advisor.search import search as run

        searcher = partial(
            run,
            policy=policy,
            objective=objective,
            measure=measure,
            top=top or 10,
            time_limit=time_limit,
            front=front,
            seed=seed,
            progress=progress,
        )
        return _beside_methods(searcher, policy, methods, seed, progress)
    _refuse(searching, "is for a search", "Add --search.")
    from aegis.advisor import advise
    from aegis.policy import load_configurations

    return partial(
        advise,
        policy=policy,
        configurations=None
        if configurations is None
        else load_configurations(configurations, policy),
        generate_count=generate,
        measure=measure,
        methods=methods,
        seed=seed,
        progress=progress,
    )


def _beside_methods(
    searcher: Advisor,
    policy: Policy,
    methods: Sequence[str] | None,
    seed: int,
    progress: Progress,
) -> Advisor:
    """Return a search whose result is ranked beside record-level releases, where there are any."""
    if methods is None and not policy.anonymizers:
        return searcher
    from aegis.advisor import prepare
    from aegis.advisor.methods import choose_recipes, with_methods

    choose_recipes(policy, methods, seed=seed)

    def run(subject: str | Source | Summary | Prepared) -> Advice:
        prepared = prepare(subject, policy, seed=seed, progress=progress)
        found = searcher(prepared)
        return with_methods(found, prepared, policy, methods, seed=seed, progress=progress)

    return run


def _refuse(options: Mapping[str, object], why: str, hint: str) -> None:
    for name, given in options.items():
        if given is not None:
            raise PolicyError(f"{name} {why}.", hint=hint.format(name))
