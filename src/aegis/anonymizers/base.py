"""The interface of all record-level methods: they take records and options, and return groups and
losses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from aegis.anonymizers.groups import InformationLoss, RecordGroups, information_loss
from aegis.anonymizers.method import (
    MINIMUM_K,
    Method,
    Options,
    Outcome,
    at_least,
    fitting_groups,
    typed,
    within,
)
from aegis.anonymizers.mondrian_cuts import mondrian
from aegis.anonymizers.records import Records
from aegis.errors import InternalError, PolicyError
from aegis.files import SILENT, Progress
from aegis.registry import Registry
from aegis.words import json_fields

if TYPE_CHECKING:
    import pyarrow as pa

    from aegis.policy import Policy

    FrontSearch = Callable[[Records, Any, int, Progress], tuple["TradeOff", ...]]
    DrawnMasks = Callable[[pa.Table, Policy, Any, int, Progress], Mapping[str, Any] | None]


class Style(StrEnum):
    """The ways a release shows a group: by its centroid or by generalised values."""

    CENTROID = "centroid"
    GENERALISED = "generalised"


@dataclass(frozen=True, eq=False)
class Grouped:
    """The result of a record-level method: the groups and their information loss.

    Attributes
    ----------
    method
        Name of the method.
    options
        The options of the method.
    style
        How the release shows a group.
    groups
        The partition of the records.
    loss
        Information loss.
    seconds
        Wall time of the method, without the computation of the loss.
    notes, details
        Sentences for readers; figures of the method, by name.
    columns
        The released values of each column by name; None if the release shows groups.
    claims_k
        Whether each released combination of values must occur k times.
    """

    method: str
    options: Options
    style: Style
    groups: RecordGroups
    loss: InformationLoss
    seconds: float
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, tuple[Any, ...]] | None = None
    claims_k: bool = True

    @property
    def smallest(self) -> int:
        """How many records the smallest group has; 0 if all records are suppressed."""
        return int(self.groups.sizes.min()) if len(self.groups) else 0

    @property
    def suppressed(self) -> int:
        """The number of suppressed records."""
        return self.groups.suppressed

    def to_dict(self) -> dict[str, Any]:
        """Return all fields except the groups, as JSON values, under the names that reports use."""
        return (
            json_fields(self, "method", "options", "style")
            | {"groups": len(self.groups)}
            | json_fields(self, "smallest", "suppressed", "seconds", "loss", "notes", "details")
            | {"claims_k": self.claims_k}
        )

    def __repr__(self) -> str:
        return (
            f"Grouped({self.method}, {len(self.groups)} groups of at least {self.smallest}, "
            f"IL {self.loss.scaled:.4f}, NCP {self.loss.penalty:.4f}, "
            f"{self.suppressed} suppressed, {self.seconds:.2f} s)"
        )


@dataclass(frozen=True, eq=False)
class TradeOff:
    """The result of a method that balances loss and diversity, for one number of clusters and one
    weight.

    Attributes
    ----------
    clusters, weight
        The number of clusters n_C and the weight lambda of diversity.
    information_loss
        Information loss (IL), in the scale that was minimised.
    entropies
        For each sensitive attribute, its entropy in the cluster where this is lowest, in bits.
    smallest
        The number of records in the smallest cluster.
    efficient
        Whether the point is Pareto-optimal in loss and entropy.
    """

    clusters: int
    weight: float
    information_loss: float
    entropies: tuple[float, ...]
    smallest: int
    efficient: bool = True

    @property
    def entropy(self) -> float:
        """The sum of the entropies of all sensitive attributes, in bits."""
        return float(sum(self.entropies))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and the entropy as JSON values."""
        return json_fields(self) | {"entropy": self.entropy}


@dataclass(frozen=True)
class Anonymizer:
    """A record-level method, with its options and what it can promise.

    Attributes
    ----------
    name
        The name under which users call it.
    summary
        One sentence for listings.
    reference
        The publication of the method.
    options
        The dataclass of its options.
    style
        How its release shows a group by default.
    cost
        Growth of its running time with the number of records N.
    diverse
        Whether the method can guarantee l distinct sensitive values in each group.
    method
        The function that takes records, options, random numbers and progress, and returns an
        `Outcome`.
    by_cell
        Whether it releases values record by record, from masked values. If the policy counts
        persons, such a method counts them itself.
    sampled
        Whether it releases a random sample of the records, under masks that learn nothing from the
        table. Such a release is differentially private.
    by_row
        Whether it moves values between rows. Such a method cannot count persons.
    quadratic
        Whether tables with more than `Options.partition_above` records are first cut into Mondrian
        cells.
    front
        Function that tries several settings near the options of a release, for a method that weighs
        information loss against diversity: it takes records, options, seed and progress, and returns
        the result of each setting. None for other methods.
    masks
        Function that draws masks of the quasi-identifiers with differential privacy before records
        are read: it takes table, policy, options, seed and progress, and returns the masks as a
        policy writes them, or None if the options name the masks. None if the method draws none.
    """

    name: str
    summary: str
    reference: str
    options: type[Options]
    style: Style
    cost: str
    diverse: bool
    method: Method
    quadratic: bool = False
    by_cell: bool = False
    sampled: bool = False
    by_row: bool = False
    front: FrontSearch | None = None
    masks: DrawnMasks | None = None

    def configure(self, **options_given: Any) -> Options:
        """Return the options of the method, with defaults for those that are not given.

        Raises
        ------
        PolicyError
            The method does not have an option, or a value has the wrong type or range.
        """
        return self.options(**typed(self.name, self.options, options_given))

    def group(
        self,
        records: Records,
        options: Options | None = None,
        *,
        seed: int = 0,
        progress: Progress = SILENT,
    ) -> Grouped:
        """Run the method on `records`, check that its groups have the promised size and diversity,
        and compute their information loss.

        Raises
        ------
        PolicyError
            The method does not accept the options, or no release can meet them.
        DataError
            The method cannot handle the records.
        InternalError
            The groups of the method do not have the promised size or diversity.
        """
        options = self.options() if options is None else options
        self._check(records, options)
        start = time.perf_counter()
        outcome = self._run(records, options, seed, progress)
        seconds = time.perf_counter() - start
        groups = RecordGroups.number(outcome.labels)
        if outcome.claims_k:
            _verify(records, groups, options)
        loss = outcome.loss
        if loss is None:
            loss = information_loss(records, groups, options.k, rounded=options.rounded)
        return Grouped(
            self.name,
            options,
            self.style,
            groups,
            loss,
            seconds,
            outcome.notes,
            outcome.details,
            outcome.columns,
            outcome.claims_k,
        )

    def _check(self, records: Records, options: Options) -> None:
        if not isinstance(options, self.options):
            raise PolicyError(
                f"Method {self.name!r} does not accept {type(options).__name__}.",
                hint=f"Give {self.options.__name__} instead.",
            )
        if options.l > 1 and not self.diverse:
            raise PolicyError(
                f"Method {self.name!r} ignores sensitive attributes, so it cannot keep l = {options.l}.",
                hint=f"Use {' or '.join(a.name for a in ANONYMIZERS if a.diverse)}, or leave l out.",
            )
        options.check(records)

    def _run(self, records: Records, options: Options, seed: int, progress: Progress) -> Outcome:
        random = np.random.default_rng(seed)
        if self.quadratic and len(records) > options.partition_above:
            return by_cells(self.method, records, options, random, progress)
        return self.method(records, options, random, progress)


def _verify(records: Records, groups: RecordGroups, options: Options) -> None:
    if not len(groups):
        return
    fitting = fitting_groups(records.take(groups.order), groups.of[groups.order], options)
    if not fitting.all():
        group = int(np.argmin(fitting))
        raise InternalError(
            f"A group of {groups.sizes[group]} records violates k = {options.k} or l = {options.l}."
        )


ANONYMIZERS: Registry[Anonymizer] = Registry("anonymizer")


def by_cells(
    method: Method,
    records: Records,
    options: Options,
    random: np.random.Generator,
    progress: Progress,
) -> Outcome:
    """Run `method` inside Mondrian cells of at least `cell_size` records.

    Each cell uses the domains and scales of the whole table, and contains l distinct sensitive values.
    So if the table can meet the options, each cell can. The result has the notes of all cells, but no
    details of the method.
    """
    least = max(options.cell_size, options.k)
    cells = RecordGroups.number(mondrian(records, least, distinct=options.l))
    labels = np.empty(len(records), dtype=np.int64)
    notes: dict[str, None] = {}
    offset = 0
    with progress.step("cells", len(records)) as step:
        for start, size in zip(cells.starts, cells.sizes, strict=True):
            rows = cells.order[start : start + size]
            outcome = method(records.take(rows), options, random, SILENT)
            labels[rows] = np.where(outcome.labels >= 0, outcome.labels + offset, -1)
            offset += int(outcome.labels.max()) + 1
            notes.update(dict.fromkeys(outcome.notes))
            step.advance(int(size))
    note = (
        f"There are more records ({len(records)}) than partition_above = {options.partition_above}, so "
        f"they were grouped inside {len(cells)} Mondrian cells of {cells.sizes.min()} to "
        f"{cells.sizes.max()} records."
    )
    return Outcome(labels, (note, *notes), {"cells": len(cells)})


__all__ = [
    "ANONYMIZERS",
    "MINIMUM_K",
    "Anonymizer",
    "Grouped",
    "Method",
    "Options",
    "Outcome",
    "Style",
    "TradeOff",
    "at_least",
    "within",
]
