"""The method MO-OBAM: it forms clusters that balance information loss and the diversity of
sensitive attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from aegis.anonymizers.base import (
    Anonymizer,
    Options,
    Outcome,
    Style,
    TradeOff,
    at_least,
)
from aegis.anonymizers.records import Records
from aegis.errors import PolicyError
from aegis.files import SILENT, Progress
from aegis.records.obam.search import BALANCED_UP_TO, Solution, optimise
from aegis.records.obam.state import Instance

WEIGHTS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""The weights (lambda) that the paper tries."""


@dataclass(frozen=True)
class ObamOptions(Options):
    """Options of MO-OBAM.

    Attributes
    ----------
    clusters
        Number of clusters n_C. By default, each cluster has about 2k records, but there are at most
        100 clusters.
    weight
        Lambda: the weight of diversity against information loss, 0 or more. The paper tries 1e-4 to
        1.
    scaled
        Whether the information loss uses z-scores of numbers. Without them (as in the published
        figures), the attribute with the widest range dominates.
    starts
        Number of random starts. The default is 10 for up to 200 records, else 3.
    rounds
        Largest number of times that a search from one start switches between raising entropies and
        lowering information loss.
    """

    clusters: int | None = None
    weight: float = 0.01
    scaled: bool = True
    starts: int | None = None
    rounds: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clusters is not None:
            at_least("clusters", self.clusters, 1)
        at_least("weight", self.weight, 0)
        if self.starts is not None:
            at_least("starts", self.starts, 1)
        at_least("rounds", self.rounds, 1)

    def check(self, records: Records) -> None:
        """Raise an error if the records are too few or too alike for k or l, or if the requested
        number of clusters of k records needs more records than there are.
        """
        super().check(records)
        if self.clusters is not None and self.clusters * self.k > len(records):
            raise PolicyError(
                f"{self.clusters} clusters of at least {self.k} need {self.clusters * self.k} "
                f"records; the table has {len(records)}.",
                hint=f"With k = {self.k}, give at most {len(records) // self.k} clusters.",
            )

    def number_of_clusters(self, size: int) -> int:
        """Return the number of clusters n_C for a table of `size` records."""
        if self.clusters is not None:
            return self.clusters
        return max(1, min(100, size // (2 * self.k)))


def _run(
    records: Records, options: ObamOptions, random: np.random.Generator, progress: Progress
) -> Outcome:
    solution = _solve(records, options, [options.weight], random, progress)[0]
    return Outcome(solution.of, _notes(records, options, solution), _details(records, solution))


def _solve(
    records: Records,
    options: ObamOptions,
    weights: Sequence[float],
    random: np.random.Generator,
    progress: Progress,
) -> list[Solution]:
    instance = Instance.build(records, scaled=options.scaled)
    starts = options.starts or (10 if len(records) <= BALANCED_UP_TO else 3)
    with progress.step("mo-obam", starts * (1 + len(weights))) as step:
        return optimise(
            instance,
            options.number_of_clusters(len(records)),
            options.k,
            weights,
            starts=starts,
            rounds=options.rounds,
            random=random,
            step=step,
        )


def _notes(records: Records, options: ObamOptions, solution: Solution) -> tuple[str, ...]:
    notes = []
    if not records.sensitive and options.weight > 0:
        notes.append(
            "No attribute is sensitive, so the search minimised only the information loss."
        )
    if not solution.converged:
        notes.append(
            "The search stopped at its limit of rounds while it was still improving; raise `rounds`."
        )
    return tuple(notes)


def _details(records: Records, solution: Solution) -> dict[str, object]:
    return {
        "information_loss": solution.information_loss,
        "least_information_loss": solution.least,
        "least_entropy": dict(
            zip([a.name for a in records.sensitive], solution.diversity, strict=True)
        ),
        "objective": solution.value,
        "converged": solution.converged,
    }


def front(
    records: Records,
    options: ObamOptions,
    clusters: Sequence[int],
    weights: Sequence[float] = WEIGHTS,
    *,
    seed: int = 0,
    progress: Progress = SILENT,
) -> tuple[TradeOff, ...]:
    """Search with every number of clusters and every weight of diversity. Return all results, with
    a mark on the Pareto front: the results for which no other one has less information loss and
    more entropy.

    Searches with the same number of clusters start from the same clusters.

    Raises
    ------
    PolicyError, DataError
        A setting does not fit the records.
    """
    points: list[TradeOff] = []
    settings = [replace(options, clusters=count) for count in clusters]
    for chosen in settings:
        chosen.check(records)
    for count, chosen in zip(clusters, settings, strict=True):
        random = np.random.default_rng([seed, count])
        solutions = _solve(records, chosen, weights, random, progress)
        for weight, solution in zip(weights, solutions, strict=True):
            sizes = np.bincount(solution.of)
            points.append(
                TradeOff(
                    int(np.count_nonzero(sizes)),
                    weight,
                    solution.information_loss,
                    solution.diversity,
                    int(sizes[sizes > 0].min()),
                )
            )
    return tuple(replace(point, efficient=_efficient(point, points)) for point in points)


def _efficient(point: TradeOff, points: Sequence[TradeOff]) -> bool:
    return not any(
        other.information_loss <= point.information_loss
        and other.entropy >= point.entropy
        and (other.information_loss < point.information_loss or other.entropy > point.entropy)
        for other in points
    )


def _front(
    records: Records, options: ObamOptions, seed: int, progress: Progress
) -> tuple[TradeOff, ...]:
    """Return the results for the options' clusters, a half and a quarter, with the Pareto front
    marked.
    """
    most = options.number_of_clusters(len(records))
    grid = sorted({max(1, most // 4), max(1, most // 2), most})
    return front(records, options, grid, seed=seed, progress=progress)


OBAM = Anonymizer(
    "mo-obam",
    "Searches for clusters with low information loss and diverse sensitive values.",
    "Wei et al., Multi-objective optimization-based anonymization",
    ObamOptions,
    Style.CENTROID,
    "D n_C per sweep, with n_C clusters",
    False,
    _run,
    front=_front,
)
