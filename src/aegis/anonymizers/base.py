"""One interface for all record-level methods: options in, groups and their cost out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from aegis.anonymizers.groups import RecordGroups
from aegis.anonymizers.losses import InformationLoss, information_loss
from aegis.anonymizers.method import (
    MINIMUM_K,
    Method,
    Options,
    Outcome,
    at_least,
    fitting_groups,
    within,
)
from aegis.anonymizers.options import typed
from aegis.anonymizers.partition import by_cells
from aegis.anonymizers.records import Records
from aegis.errors import InternalError, PolicyError
from aegis.progress import SILENT, Progress
from aegis.registry import Registry

if TYPE_CHECKING:
    import pyarrow as pa

    from aegis.policy import Policy


class Style(StrEnum):
    """How the release shows a group."""

    CENTROID = "centroid"
    GENERALISED = "generalised"


@dataclass(frozen=True, eq=False)
class Grouped:
    """The result of one record-level method: groups, their cost, and how they came about.

    Attributes
    ----------
    method
        Name of the method.
    options
        What it was asked for.
    style
        How the release shows a group.
    groups
        The partition of the records.
    loss
        Information loss.
    seconds
        Wall time of the method, without the figures of loss.
    notes, details, columns, claims_k
        As in `Outcome`.
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
        """Records in the smallest group; 0 where all records are suppressed."""
        return int(self.groups.sizes.min()) if len(self.groups) else 0

    @property
    def suppressed(self) -> int:
        """Records left out of the release."""
        return self.groups.suppressed

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the groups themselves, as plain values."""
        return {
            "method": self.method,
            "options": asdict(self.options),
            "style": str(self.style),
            "groups": len(self.groups),
            "smallest": self.smallest,
            "suppressed": self.suppressed,
            "seconds": self.seconds,
            "loss": asdict(self.loss),
            "notes": list(self.notes),
            "details": dict(self.details),
            "claims_k": self.claims_k,
        }

    def __repr__(self) -> str:
        return (
            f"Grouped({self.method}, {len(self.groups)} groups of at least {self.smallest}, "
            f"IL {self.loss.scaled:.4f}, NCP {self.loss.penalty:.4f}, "
            f"{self.suppressed} suppressed, {self.seconds:.2f} s)"
        )


@dataclass(frozen=True, eq=False)
class TradeOff:
    """One setting of a method that weighs loss against diversity, over n_C and lambda.

    Attributes
    ----------
    clusters, weight
        The setting.
    information_loss
        IL in the scale that was minimised.
    entropies
        Least entropy over clusters of each sensitive attribute, bits.
    efficient
        Whether no other point has as little loss and as much entropy, one of them strictly.
    grouped
        The groups themselves.
    """

    clusters: int
    weight: float
    information_loss: float
    entropies: tuple[float, ...]
    efficient: bool
    grouped: Grouped

    @property
    def entropy(self) -> float:
        """Sum of the least entropies."""
        return float(sum(self.entropies))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, without the groups."""
        return {
            "clusters": self.clusters,
            "weight": self.weight,
            "information_loss": self.information_loss,
            "entropies": list(self.entropies),
            "entropy": self.entropy,
            "smallest": self.grouped.smallest,
            "efficient": self.efficient,
        }


class FrontSearch(Protocol):
    """Searches the settings around one, for a method that weighs two aims."""

    def __call__(
        self, records: Records, options: Options, seed: int, progress: Progress
    ) -> tuple[TradeOff, ...]:
        """Return the points, the efficient ones marked."""


class DrawnMasks(Protocol):
    """Draws the masks of a method that shows masked values, with differential privacy."""

    def __call__(
        self, table: pa.Table, policy: Policy, options: Options, seed: int, progress: Progress
    ) -> Mapping[str, Any] | None:
        """Return masks as a policy writes them; None if the options name them."""


@dataclass(frozen=True)
class Anonymizer:
    """One record-level method.

    Attributes
    ----------
    name
        The name under which users call it.
    summary
        One sentence for listings.
    reference
        Where the method is published.
    options
        The dataclass of its options.
    style
        How its release shows a group unless asked otherwise.
    cost
        Growth of its running time with the number of records N.
    diverse
        Whether it can ask for l distinct sensitive values in each group.
    method
        The method itself: records, options, random numbers and progress in, outcome out.
    by_cell
        Whether it shows values record by record and works on them as masks show them; it counts
        persons itself where the policy does.
    sampled
        Whether it works on values as masks show them that learn nothing from the table, and draws
        records, so that the release is differentially private.
    by_row
        Whether it moves values between rows, and so cannot count persons.
    quadratic
        Whether tables above `Options.partition_above` are cut into Mondrian cells first.
    front
        Searches the settings around a release; None if the method weighs no two aims.
    masks
        Draws masks of the quasi-identifiers before records are read; None if it draws none.
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

    def configure(self, **given: Any) -> Options:
        """Return the method's options.

        Raises
        ------
        PolicyError
            A name that the method does not have, or a value of the wrong type or range.
        """
        return self.options(**typed(self.name, self.options, given))

    def group(
        self,
        records: Records,
        options: Options | None = None,
        *,
        seed: int = 0,
        progress: Progress = SILENT,
    ) -> Grouped:
        """Group `records`.

        Raises
        ------
        PolicyError
            Options that the method does not take, or that no release can meet.
        DataError
            Records that the method cannot work on.
        InternalError
            The method broke its promise of group size or diversity.
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
                f"Method {self.name!r} was given {type(options).__name__}.",
                hint=f"Give it {self.options.__name__}.",
            )
        if options.l > 1 and not self.diverse:
            raise PolicyError(
                f"Method {self.name!r} does not look at sensitive attributes; l = {options.l}.",
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
            f"A group of {groups.sizes[group]} records lacks k = {options.k} or l = {options.l}."
        )


ANONYMIZERS: Registry[Anonymizer] = Registry("anonymizer")


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
