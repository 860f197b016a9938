"""Define the search space (variables with candidate masks, ordered by refinement), and the clock
that limits the time, or the counted work, of all parts of a search together.

A domain is a set of candidates of one variable, as a bit mask: bit i is set if it has candidate i.
A box has one domain per variable; a configuration is a box of single candidates. The search removes
candidates from boxes until each domain is a single candidate. An atom is a set of values that all
candidates of an attribute treat in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from aegis.advisor.advise import AttributeWithMasks, CandidateMask
from aegis.arrays import Array, Flags, Floats, Int32s, Integers, Ints, cached_method
from aegis.masks import common_refinement
from aegis.requests import SearchRequest
from aegis.summary import AttributeSummary, Candidate, Summary, level_channel

_CHECK = 1e-4
"""Work between two looks at the clock, besides what is announced."""


class OutOfTimeError(Exception):
    """Raised when the time limit of a search has passed. The caller of the search catches it."""


class Work:
    """The work that a search has done so far, in seconds of an ordinary idle machine.

    The work is not measured: each fit, class count and score counts with its usual duration. So the
    same search does the same work on a fast, a slow and a busy machine.
    """

    def __init__(self) -> None:
        self.done = 0.0

    def add(self, seconds: float) -> None:
        """Record work that usually takes this many seconds."""
        self.done += seconds


class Clock:
    """A limit of time, or of work, that several searches share.

    Parameters
    ----------
    limit
        Seconds from now; None for no limit.
    work
        If given, the clock counts this work instead of elapsed seconds.
    """

    def __init__(self, limit: float | None, work: Work | None = None) -> None:
        self._work = work
        self._deadline = None if limit is None else self._now() + limit
        self._began: float | None = None
        self._longest = 0.0

    @classmethod
    def of(cls, limit: Clock | float | None) -> Clock:
        """Return a clock that stops after `limit` seconds (None: never); a clock is returned
        unchanged.
        """
        return limit if isinstance(limit, Clock) else cls(limit)

    @classmethod
    def of_request(cls, request: SearchRequest, work: Work) -> Clock:
        """Return a clock with the time limit of a request. If it limits only the work, the clock
        counts `work` instead of seconds.
        """
        if request.time_limit is None and request.work is not None:
            return cls(request.work, work)
        return cls(request.time_limit)

    def _now(self) -> float:
        return time.monotonic() if self._work is None else self._work.done

    def left(self) -> float | None:
        """Return how many seconds remain, at least 0; None if there is no limit."""
        return None if self._deadline is None else max(0.0, self._deadline - self._now())

    def part(self, share: float = 1.0) -> Clock:
        """Return a clock that stops after the given share of the remaining seconds."""
        remaining = self.left()
        return Clock(None if remaining is None else share * remaining, self._work)

    def check(self, seconds: float = 0.0) -> None:
        """Raise `OutOfTimeError` if work of this many seconds would not end before the limit; with
        0, if the limit has passed.
        """
        if self._work is not None:
            self._work.add(_CHECK)
        if not self.allows(seconds):
            raise OutOfTimeError

    def allows(self, seconds: float = 0.0, times: int = 1) -> bool:
        """Return whether so many pieces of work, of this many seconds each, would end before the
        limit. If an earlier piece took longer, its duration is used instead; 0 takes no time.
        """
        now = self._now()
        if self._began is not None:
            self._longest, self._began = max(self._longest, now - self._began), None
        if seconds > 0.0:
            self._began, seconds = now, max(seconds, self._longest)
        return self._deadline is None or now + times * seconds < self._deadline

    def stop(self) -> None:
        """Set the remaining time to 0, because the user has interrupted the search."""
        self._deadline = self._now()


Box = tuple[int, ...]
"""One domain for each variable, as a bit mask of candidates."""
Division = tuple[int, tuple[int, ...]]
"""The index of a variable, and domains that together cover its domain; domains with finer
candidates come first.
"""

_MANY = 16
"""With more candidates that are not comparable, a domain is divided, to get a good bound."""

_WORD = 64
"""Largest number of bits of a domain that is read bit by bit."""
_FEW = (32, 512)
"""Numbers of values to compare first, before all values, to test if one grouping refines another."""


def members(domain: int) -> list[int]:
    """Return the indices of the candidates in a domain, in ascending order."""
    size = domain.bit_length()
    if size <= _WORD:
        return [i for i in range(size) if domain >> i & 1]
    # Shifting a long integer bit by bit would read all of it each time.
    content = np.frombuffer(domain.to_bytes((size + 7) // 8, "little"), dtype=np.uint8)
    return [int(i) for i in np.flatnonzero(np.unpackbits(content, bitorder="little"))]


@dataclass(frozen=True, eq=False)
class MaskVariable:
    """What a search chooses for one attribute, from a summary of any format: one of its candidates."""

    attribute: AttributeWithMasks
    candidates: Sequence[CandidateMask]

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.attribute.name

    @property
    def full(self) -> int:
        """The domain of all candidates."""
        return (1 << len(self.candidates)) - 1

    @cached_property
    def _order(self) -> Flags:
        """Whether candidate i is at least as fine as candidate c, for all pairs, shape (n, n)."""
        return _refinements(np.stack([c.groups for c in self.candidates]))

    @cached_property
    def finer(self) -> tuple[int, ...]:
        """For each candidate, the domain of candidates that are at least as fine, with the
        candidate itself.
        """
        return tuple(_domain(column) for column in self._order.T)

    @cached_property
    def coarser(self) -> tuple[int, ...]:
        """For each candidate, the domain of candidates that are at least as coarse, with the
        candidate itself.
        """
        return tuple(_domain(row) for row in self._order)


@dataclass(frozen=True, eq=False)
class Variable(MaskVariable):
    """What a search chooses for one attribute, or for the label: one of its candidate masks.

    Attributes
    ----------
    attribute
        The attribute's summary.
    candidates
        Candidates; no two have the same grouping.
    quasi
        Whether the attribute is a quasi-identifier, so that its values form equivalence classes.
    channels
        For each noise mask among the candidates, by its index: the probability of each of L noisy
        values for each of A atoms, shape (A, L).
    people
        For each of n candidates, the group of each of the W values of the population, shape (n, W);
        None if there is no population. Two candidates may group the values of the table in the same
        way, but other values of the population differently.
    """

    attribute: AttributeSummary
    candidates: tuple[Candidate, ...]
    quasi: bool
    channels: Mapping[int, Floats] = field(default_factory=dict)
    people: Integers | None = None

    @cached_property
    def _order(self) -> Flags:
        """Whether candidate i is at least as fine as candidate c, for all pairs, shape (n, n).

        A noise mask is coarser than the unmasked values and finer than a mask with one group. It is
        not comparable with any other mask.
        """
        groups = np.stack([c.groups for c in self.candidates])
        if self.people is not None:
            groups = np.hstack([groups, self.people])
        order = _refinements(groups)
        noisy = np.array([c.noise is not None for c in self.candidates])
        if noisy.any():
            sizes = np.array([c.size for c in self.candidates])
            order &= ~(noisy[:, None] & (sizes[None, :] > 1))
            order &= ~(noisy[None, :] & (sizes[:, None] < sizes[None, :]))
            np.fill_diagonal(order, val=True)
        return order

    @cached_property
    def _level_order(self) -> Flags:
        """Whether the levels of candidate i are at least as fine as those of candidate c, shape (n,
        n).

        The levels of a candidate are its frequent groups, and one level for all rare groups
        together. So a finer mask may have coarser levels.
        """
        return _refinements(np.stack([c.levels for c in self.candidates]))

    def coarsest(self, domain: int) -> int | None:
        """Return the index of the coarsest candidate of a domain; None if not all others are finer."""
        for c in members(domain):
            if domain & ~self.finer[c] == 0:
                return c
        return None

    def finest(self, domain: int) -> int | None:
        """Return the index of the finest candidate of a domain; None if not all others are coarser."""
        for c in members(domain):
            if domain & ~self.coarser[c] == 0:
                return c
        return None

    @cached_method
    def meet(self, domain: int) -> Integers:
        """Return the finest grouping that is coarser than every candidate of a domain, as the group
        of each value, shape (V,). If many candidates are not comparable, the result has one group.
        """
        return _meet([self.candidates[i].groups for i in self._ends(domain, self._order)])

    @cached_method
    def join(self, domain: int) -> Integers:
        """Return the coarsest grouping that is finer than every candidate of a domain, as the group
        of each value, shape (V,). If many candidates are not comparable, the result is that of all
        candidates.
        """
        ends = self._ends(domain, self._order.T)
        if len(ends) > _MANY and domain != self.full:
            return self.join(self.full)
        return _join([self.candidates[i].groups for i in ends])

    @cached_method
    def covers(self, domain: int) -> tuple[int, ...]:
        """Return domains that together cover a domain, the finest first. Each has one candidate,
        and those whose levels are coarser. The result is empty if few candidates are incomparable:
        then the whole domain has a good bound.
        """
        few = domain.bit_count() <= _MANY
        ends = [] if few else self._ends(domain, self._level_order.T)
        ends.sort(key=lambda c: -self.candidates[c].size)
        parts = tuple(domain & _domain(self._level_order[c]) for c in ends)
        return parts if len(parts) > _MANY else ()

    def _ends(self, domain: int, beyond: Flags) -> list[int]:
        """Return the candidates of a domain beyond which there is no other: row c of `beyond` flags
        those that are at least as coarse (or as fine) as c. Of equal candidates, only the first is
        returned.
        """
        if domain & (domain - 1) == 0:
            return members(domain)
        chosen = np.array(members(domain))
        among = beyond[np.ix_(chosen, chosen)]
        alike = among & among.T
        first = ~np.tril(alike, -1).any(axis=1)
        return [int(c) for c in chosen[first & ~(among & ~alike).any(axis=1)]]

    @cached_method
    def level_join(self, domain: int) -> Array:
        """Return a partition of the A atoms that refines every candidate of a domain, as the part
        of each atom, shape (A,).

        A noise mask counts as if it showed the atoms, which carry at least as much information as
        the noisy values. If the domain is one noise mask, the result is instead the probability of
        each of its L levels for each atom, shape (A, L).
        """
        if (alone := self._channel(domain)) is not None:
            return alone
        ends = self._ends(domain, self._level_order.T)
        if len(ends) > _MANY and domain != self.full:
            return self.level_join(self.full)
        return _join([self.candidates[i].levels for i in ends])

    @cached_method
    def level_meet(self, domain: int) -> Array:
        """Return the finest partition of the A atoms that is coarser than every candidate of a
        domain, as the part of each atom, shape (A,). With a noise mask, there is only one part,
        because noise refines no grouping.
        """
        chosen = [self.candidates[i].levels for i in self._ends(domain, self._level_order)]
        if any(i in self.channels for i in members(domain)):
            chosen = [np.zeros_like(chosen[0])]
        return _meet(chosen)

    def most_levels(self, domain: int) -> int:
        """Return the largest number of levels of a noise mask of a domain; 0 if it has none."""
        return max(
            (self.channels[i].shape[1] for i in members(domain) if i in self.channels), default=0
        )

    def _channel(self, domain: int) -> Floats | None:
        return None if domain & (domain - 1) else self.channels.get(domain.bit_length() - 1)


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """What a search chooses from: one candidate mask for each variable. `work` counts the work that
    all searches of this space have done.
    """

    variables: Sequence[MaskVariable]
    work: Work = field(default_factory=Work, kw_only=True)

    @property
    def root(self) -> Box:
        """The box of all combinations."""
        return tuple(v.full for v in self.variables)

    def division(self, box: Box) -> Division | None:
        """Return the index of the first variable with several candidates in a box, and each of
        these as a domain; None if there is no such variable.
        """
        for index, domain in enumerate(box):
            if domain & (domain - 1):
                return index, tuple(1 << c for c in members(domain))
        return None

    def coarsest(self) -> Iterator[Box]:
        """Yield the configurations that are the most likely to meet a rule, those with the highest
        utility first: here, the one with the fewest groups of each variable.
        """
        sizes = [[candidate.size for candidate in v.candidates] for v in self.variables]
        yield tuple(1 << counts.index(min(counts)) for counts in sizes)


@dataclass(frozen=True, eq=False)
class Problem(SearchSpace):
    """What a search chooses from: the attributes, and the candidate masks of each.

    Attributes
    ----------
    variables
        The scored attributes in the summary's order, then the label if it has candidates.
    summary
        The counts on which the search is based.
    duplicates
        Sentences on candidates that were left out because another candidate has the same groups.
    """

    variables: tuple[Variable, ...]
    summary: Summary
    duplicates: tuple[str, ...]

    def division(self, box: Box) -> Division | None:
        """Return the index of the first variable of a box that has many candidates that are not
        comparable, with `covers`; None if there is none.

        Such candidates together distinguish more values than any single one, so a bound for the
        undivided domain is weak.
        """
        for index, (variable, domain) in enumerate(zip(self.variables, box, strict=True)):
            if covers := variable.covers(domain):
                return index, covers
        return None

    def coarsest(self) -> Iterator[Box]:
        """Yield the coarsest configurations. In the first, the protected attributes and the label
        have their finest candidate: l-diversity is then easiest to meet, and the scores are not 0.
        """
        frequency = self.summary.frequency
        sensitive = set(frequency.sensitive) if frequency is not None else set()
        if self.summary.label_attribute is not None:
            sensitive.add(self.summary.label_attribute.name)
        [few] = super().coarsest()
        first = []
        for variable, coarse in zip(self.variables, few, strict=True):
            sizes = [candidate.size for candidate in variable.candidates]
            protected = variable.name in sensitive and not variable.quasi
            first.append(1 << sizes.index(max(sizes)) if protected else coarse)
        yield tuple(first)
        if tuple(first) != few:
            yield few

    def corner(self, box: Box) -> Box | None:
        """Return the configuration in a box that is the most likely to meet a rule: the coarsest
        candidate of each quasi-identifier, and the finest one of each other variable. None if there
        is none.
        """
        corner = []
        for variable, domain in zip(self.variables, box, strict=True):
            chosen = variable.coarsest(domain) if variable.quasi else variable.finest(domain)
            if chosen is None:
                return None
            corner.append(1 << chosen)
        return tuple(corner)

    def choice(self, box: Box) -> dict[str, Candidate]:
        """Return the candidate of each attribute, by name, in a configuration."""
        return {
            v.name: v.candidates[domain.bit_length() - 1]
            for v, domain in zip(self.variables, box, strict=True)
        }


GroupsOfPeople = Callable[[str, Candidate], Integers | None]
"""A function that returns the group of each value of the population under a candidate; None if
there is no population.
"""


def make_problem(summary: Summary, of_people: GroupsOfPeople | None = None) -> Problem:
    """Return the search space of a summary. `of_people` returns the group of each value of the
    population; None if there is no population.
    """
    quasi = set(summary.frequency.quasi) if summary.frequency else set()
    variables = []
    duplicates: list[str] = []
    for attribute in summary.all_attributes:
        distinct: dict[tuple[bytes, bytes, object], Candidate] = {}
        people: dict[int, Integers | None] = {}
        for candidate in attribute.candidates:
            outside = None
            if of_people is not None and candidate.noise is None:
                outside = of_people(attribute.name, candidate)
            key = (candidate.groups.tobytes(), _grouping_key(candidate, outside), candidate.noise)
            first = distinct.setdefault(key, candidate)
            people.setdefault(id(first), outside)
            if first is not candidate:
                duplicates.append(
                    f"{attribute.name}: {candidate.mask} and {first.mask} give the same groups; one was skipped"
                )
        is_quasi = attribute.name in quasi or (
            summary.frequency is None and attribute.role == "quasi-identifier"
        )
        listed = tuple(distinct.values())
        channels = {
            i: level_channel(attribute, candidate, summary.max_levels)
            for i, candidate in enumerate(listed)
            if candidate.noise is not None
        }
        outsides = [groups for groups in people.values() if groups is not None]
        groups_of_people = np.stack(outsides) if len(outsides) == len(listed) > 0 else None
        variables.append(Variable(attribute, listed, is_quasi, channels, groups_of_people))
    return Problem(tuple(variables), summary, tuple(duplicates))


def _grouping_key(candidate: Candidate, outside: Integers | None) -> bytes:
    """Return a key of how a candidate groups the values of the table and those of the population
    (`outside`); empty without a population.
    """
    if outside is None:
        return b""
    return _first_alike(np.concatenate([candidate.groups, outside])).tobytes()


def _domain(chosen: Flags) -> int:
    """Return a set of candidates as a bit mask: bit i is set if `chosen[i]` is True."""
    return int.from_bytes(np.packbits(chosen, bitorder="little").tobytes(), "little")


def _refinements(groups: Int32s) -> Flags:
    """Return whether grouping i refines grouping c, shape (n, n). `groups` has the group of each of
    V values in each of n groupings, shape (n, V).
    """
    count, size = groups.shape
    first = np.stack([_first_alike(codes) for codes in groups])
    # A few values rule out most pairs, and some more most of the rest, before all are looked at.
    samples = [np.stack([_followers(row, few) for row in first]) for few in _FEW if few < size]
    pairs = [(np.take_along_axis(first, places, axis=1), places) for places in samples]
    order = np.zeros((count, count), dtype=np.bool_)
    for c, coarse in enumerate(groups):
        likely = np.arange(count)
        for level, other in pairs:
            likely = likely[(coarse[level[likely]] == coarse[other[likely]]).all(axis=1)]
        order[likely, c] = (coarse[first[likely]] == coarse).all(axis=1)
    return order


def _first_alike(codes: Int32s) -> Ints:
    """Return the index of the first value in the same group, for the group of each value, shape
    (V,).
    """
    places = np.arange(len(codes))
    first = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.int64)
    # Assigned in reverse: of several values of a group the first is the last one written.
    first[codes[::-1]] = places[::-1]
    return first[codes]


def _followers(first: Ints, few: int) -> Ints:
    """Return the indices of `few` sampled values that are not the first value of their group; only
    zeros if every group has one value. `first` is as `_first_alike` returns it.
    """
    others = np.flatnonzero(first != np.arange(len(first)))
    if not len(others):
        return np.zeros(few, dtype=np.int64)
    return others[np.linspace(0, len(others) - 1, few).astype(np.int64)]


def is_leaf(box: Box) -> bool:
    """Return whether a box has only one configuration."""
    return all(domain & (domain - 1) == 0 for domain in box)


def replaced(box: Box, index: int, domain: int) -> Box:
    """Return a copy of a box in which the variable at `index` has another domain."""
    return (*box[:index], domain, *box[index + 1 :])


def _join(groupings: Sequence[Integers]) -> Integers:
    return groupings[0] if len(groupings) == 1 else common_refinement(groupings)


def _meet(groupings: Sequence[Integers]) -> Integers:
    if len(groupings) == 1:
        return groupings[0]
    return _common_coarsening(groupings) if len(groupings) <= _MANY else np.zeros_like(groupings[0])


def _common_coarsening(groupings: Sequence[Integers]) -> Integers:
    """Return the finest grouping that all groupings refine, as the group of each value, shape (V,);
    groups that overlap are merged.
    """
    from scipy import sparse  # taking long to load, and only of groupings that cross
    from scipy.sparse.csgraph import connected_components

    size = len(groupings[0])
    rows, columns = [], []
    offset = size
    for groups in groupings:
        rows.append(np.arange(size))
        columns.append(groups + offset)
        offset += int(groups.max(initial=0)) + 1
    edges = (np.ones(size * len(groupings)), (np.concatenate(rows), np.concatenate(columns)))
    graph = sparse.coo_array(edges, shape=(offset, offset))
    labels = connected_components(graph, directed=False)[1][:size]
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)
