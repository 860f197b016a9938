"""One interface for all record-level methods: options in, groups and their cost out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from aegis.anonymizers.groups import RecordGroups
from aegis.anonymizers.losses import InformationLoss, information_loss
from aegis.anonymizers.options import typed
from aegis.anonymizers.records import Integers, Records
from aegis.errors import DataError, InternalError, PolicyError
from aegis.progress import SILENT, Progress
from aegis.registry import Registry

MINIMUM_K = 2


class Style(StrEnum):
    """How a group shows itself in the release."""

    CENTROID = "centroid"
    GENERALISED = "generalised"


@dataclass(frozen=True)
class Options:
    """What every method takes.

    Attributes
    ----------
    k
        The least number of records in a group, at least 2.
    l
        The least number of distinct values of every sensitive attribute in a group; 1 asks for
        nothing. Only methods that say so accept more than 1.
    rounded
        Put numeric centroids on the resolution of their attribute; whole numbers then stay whole.
        By default means are exact, so that a column of whole numbers becomes one of decimals.
    partition_above
        Methods of quadratic cost first cut a table of more records than this into Mondrian cells
        and group inside each.
    cell_size
        The least number of records in such a cell.

    Raises
    ------
    PolicyError
        An option outside its range.
    """

    k: int = 5
    l: int = 1  # noqa: E741 - the field's term
    rounded: bool = False
    partition_above: int = 50_000
    cell_size: int = 5_000

    def __post_init__(self) -> None:
        at_least("k", self.k, MINIMUM_K)
        at_least("l", self.l, 1)
        at_least("partition_above", self.partition_above, 1)
        at_least("cell_size", self.cell_size, 1)

    def check(self, records: Records) -> None:
        """Raise where no release of `records` can meet these options.

        Raises
        ------
        PolicyError
            k above N, or l without a sensitive attribute.
        DataError
            A sensitive attribute with fewer than l values.
        """
        if self.k > len(records):
            raise PolicyError(
                f"k = {self.k} is above the number of records, {len(records)}.",
                hint=f"Give a k of {MINIMUM_K} to {len(records)}, or more records.",
            )
        if self.l > 1 and not records.sensitive:
            raise PolicyError(
                f"l = {self.l} asks for diversity, but no attribute is sensitive.",
                hint="Give a column the role 'sensitive', or leave l out.",
            )
        for attribute in records.sensitive:
            held = len(np.unique(attribute.codes))
            if held < self.l:
                raise DataError(
                    f"l = {self.l} asks for {self.l} distinct values of {attribute.name!r} in each "
                    f"group, but the table holds {held}.",
                    hint=f"The most that is possible is l = {held}.",
                )


def at_least(name: str, given: float, least: float, *, strictly: bool = False) -> None:
    """Raise `PolicyError` where option `name` is not a number of at least (above) `least`."""
    if not (given > least if strictly else given >= least):
        bound = "above" if strictly else "at least"
        raise PolicyError(f"{name} = {given}.", hint=f"It must be {bound} {least}.")


def within(name: str, given: float, low: float, high: float) -> None:
    """Raise `PolicyError` where option `name` lies outside [low, high]."""
    if not low <= given <= high:
        raise PolicyError(f"{name} = {given}.", hint=f"It must lie between {low} and {high}.")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method hands back.

    Attributes
    ----------
    labels
        Shape (N,), int64: any number per group, negative for suppressed records.
    notes
        Sentences that a reader of the release should know.
    details
        Figures of the method's own, by name.
    columns
        Methods that do not show groups: the released values per quasi-identifier, each of N
        values; None shows groups by the method's style.
    claims_k
        Whether each released combination of values must occur at least k times.
    loss
        Information loss, where it does not follow from the groups.
    """

    labels: Integers
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, tuple[Any, ...]] | None = None
    claims_k: bool = True
    loss: InformationLoss | None = None


@dataclass(frozen=True, eq=False)
class Grouped:
    """The result of one record-level method: groups, their cost, and how they came about.

    Attributes
    ----------
    method
        Name of the method.
    options, seed
        What it was asked for; the same options and seed give the same groups.
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
    seed: int
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
            "seed": self.seed,
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


Method = Callable[[Records, Any, np.random.Generator, Progress], Outcome]


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
    quadratic
        Whether tables above `Options.partition_above` are cut into Mondrian cells first.
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
            seed,
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
            from aegis.anonymizers.partition import by_cells

            return by_cells(self.method, records, options, random, progress)
        return self.method(records, options, random, progress)


def _verify(records: Records, groups: RecordGroups, options: Options) -> None:
    if len(groups) and groups.sizes.min() < options.k:
        raise InternalError(f"A group of {groups.sizes.min()} records for k = {options.k}.")
    for attribute in records.sensitive if options.l > 1 else ():
        pairs = np.unique(groups.of[groups.order] * attribute.size + attribute.codes[groups.order])
        held = np.bincount(pairs // attribute.size, minlength=len(groups))
        if len(held) and held.min() < options.l:
            raise InternalError(
                f"A group with {held.min()} values of {attribute.name!r} for l = {options.l}."
            )


ANONYMIZERS: Registry[Anonymizer] = Registry("anonymizer")
