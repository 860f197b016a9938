"""Define the record of a privacy model, and criteria: a criterion is a model with its parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from aegis.arrays import Flags, Floats, Ints
from aegis.errors import InternalError, PolicyError, at_entry, member
from aegis.privacy.classes import ClassTable, SensitiveCounts
from aegis.privacy.diversity import TOLERANCE
from aegis.privacy.histograms import Bounds, Histograms, ShareCaps
from aegis.registry import Registry
from aegis.words import brief

Figures = Ints | Floats


class ModelNeed(StrEnum):
    """What a privacy model needs to know about a table in addition to the sizes of its classes."""

    SENSITIVE = "sensitive attribute"
    REFERENCE = "distribution in the whole table"
    POPULATION = "population class sizes"
    CROWD = "population class sizes, or class sizes if the population is unknown"
    HIERARCHY = "hierarchy of the sensitive attribute"
    LEAVES = "how many values each shown value may represent"


class Window(StrEnum):
    """The quantity that an SQL window function computes to decide whether a class meets a privacy
    model.
    """

    ROWS = "rows of the class"
    DISTINCT = "distinct values in the class"
    ENTROPY = "entropy of the values in the class"
    SHARE = "share of the most frequent value in the class"


class Compared(StrEnum):
    """The rows with which a privacy model compares a class."""

    RELEASED = "released"
    """The kept rows, so that people who have only the release get the same figures."""
    INPUT = "input"
    """All rows of the table before suppression, as in ARX."""


class Comparison(StrEnum):
    """How the figure of a class must compare with the limit so that the class is safe: at least, at
    most or below.
    """

    AT_LEAST = "at least"
    AT_MOST = "at most"
    BELOW = "below"


LARGEST = 1e15
"""Largest value of any parameter; floats represent all whole numbers up to this one exactly."""


def _huge(value: object) -> bool:
    return isinstance(value, int | float) and not -LARGEST <= value <= LARGEST


@dataclass(frozen=True)
class ModelParameter:
    """A parameter of a privacy model whose value the user chooses.

    Attributes
    ----------
    name
        The key in the policy.
    description
        What the parameter means, in one phrase.
    low, high
        The smallest and the largest allowed value.
    above
        Whether the value must be above `low`, so that `low` itself is not allowed.
    whole
        Whether only whole numbers are allowed.
    default
        The value if the parameter is not given. None: the parameter must be given.
    larger_is_stronger
        Whether a larger number is a stronger requirement if all other parameters are equal. If
        None, the `direction` of the model answers this for the parameter that is its limit. For
        other parameters, and for a model that decides by its own function `fails`, None means that
        different numbers cannot be compared.
    """

    name: str
    description: str
    low: float = 0.0
    high: float = math.inf
    above: bool = False
    whole: bool = False
    default: float | None = None
    larger_is_stronger: bool | None = None

    @property
    def range(self) -> str:
        """The values that the parameter may have, in words."""
        kind = "a whole number" if self.whole else "a number"
        start = f"above {self.low:g}" if self.above else f"from {self.low:g}"
        return f"{kind} {start}" + ("" if math.isinf(self.high) else f" up to {self.high:g}")

    @property
    def limits(self) -> str:
        """The values that the parameter may have, in words, with the largest number that Aegis
        accepts.
        """
        return self.range + (f" up to {LARGEST:g}" if math.isinf(self.high) else "")

    def check(self, value: object, where: str) -> float:
        """Return `value` as a number if the parameter may have this value; otherwise raise
        `PolicyError`, which says `where` the value is written.
        """
        if isinstance(value, int | float) and not isinstance(value, bool) and self._inside(value):
            return int(value) if self.whole else float(value)
        raise PolicyError(
            f"{self.name!r} of {where} is {brief(value)}.",
            hint=f"Give {self.limits if _huge(value) else self.range}: {self.description}.",
        )

    def _inside(self, value: float) -> bool:
        # Compared before anything is computed: a whole number may be too large for a float.
        if not -LARGEST <= value <= LARGEST or (self.whole and value != int(value)):
            return False
        return (value > self.low if self.above else value >= self.low) and value <= self.high


@dataclass(frozen=True)
class Criterion:
    """One requirement of a privacy rule: a privacy model, the values of its parameters, and the
    attribute that it protects.

    Attributes
    ----------
    model
        The record of the model in the registry.
    parameters
        All parameters as (name, value), in the order of the model.
    attribute
        The sensitive attribute; None for models of identity disclosure.
    reference
        The rows with which a class is compared, if the model compares distributions of values.
    """

    model: PrivacyModel
    parameters: tuple[tuple[str, float], ...] = ()
    attribute: str | None = None
    reference: Compared = Compared.RELEASED

    def __getitem__(self, name: str) -> float:
        for key, value in self.parameters:
            if key == name:
                return value
        raise InternalError(f"{self.model.name!r} has no parameter {name!r}.")

    def with_parameter(self, name: str, value: float) -> Criterion:
        """Return a copy of the criterion in which the parameter `name` has another value; raise
        `PolicyError` if this value is not allowed.
        """
        parameter = next((p for p in self.model.parameters if p.name == name), None)
        if parameter is None:
            raise InternalError(f"{self.model.name!r} has no parameter {name!r}.")
        checked = parameter.check(value, self.model.title)
        changed = tuple((key, checked if key == name else old) for key, old in self.parameters)
        return replace(self, parameters=changed)

    def __str__(self) -> str:
        of = f" of {self.attribute}" if self.attribute else ""
        chosen = ", ".join(f"{name} = {value:g}" for name, value in self.parameters)
        compared = "" if self.reference is Compared.RELEASED else ", compared with the input"
        return f"{self.model.title}{of} ({chosen}{compared})"

    @property
    def local(self) -> bool:
        """Whether each class can be checked alone, because other classes do not affect whether it
        meets the criterion.
        """
        return self.model.local or self.reference is Compared.INPUT

    def counts(self, table: ClassTable) -> SensitiveCounts:
        """Return the number of rows by equivalence class and value, for the sensitive attribute
        that the criterion protects.
        """
        return table.sensitive[self.attribute or ""]

    @property
    def values_needed(self) -> int:
        """The smallest number of distinct sensitive values with which a class can meet the
        criterion.
        """
        demand = self.model.values
        return 1 if demand is None else demand.needed(self[demand.parameter])

    def weaker(self) -> Criterion | None:
        """Return a criterion that is one step weaker, as the model's `weakening` defines it; None
        if there is none.
        """
        step = self.model.weakening
        if step is None or self[step.parameter] + step.change < step.least:
            return None
        return self.with_parameter(step.parameter, self[step.parameter] + step.change)

    def figures(self, table: ClassTable) -> Figures:
        """Return the figure of each class that the criterion compares with its limit, shape
        (n_classes,).
        """
        return self.model.figures(table, self)

    def failing(self, table: ClassTable) -> Flags:
        """Return, for each class, whether it fails the criterion, shape (n_classes,)."""
        if self.model.fails is not None:
            return self.model.fails(table, self)
        return self.beyond(self.model.figures(table, self))

    def beyond(self, figures: Figures) -> Flags:
        """Return, for each class, whether its figure violates the limit of the criterion. `figures`
        has the figure of each class, shape (n_classes,).
        """
        limit = self[self.model.limit]
        if self.model.direction is Comparison.AT_LEAST:
            return np.asarray(figures < limit - TOLERANCE)
        if self.model.direction is Comparison.AT_MOST:
            return np.asarray(figures > limit + TOLERANCE)
        return np.asarray(figures >= limit * (1 - TOLERANCE))

    def require_people(self, subjects: int) -> None:
        """Raise `PolicyError` if the population, as the user states it, has fewer people than the
        table has rows or persons (`subjects`).
        """
        people = dict(self.parameters).get("population")
        if people is not None and people < subjects:
            raise PolicyError(
                f"{self} says that the population has {people:,} people, but the table, a sample of it, "
                f"has {subjects:,}.",
                hint="Give the size of the population that the table was drawn from, at least that.",
            )

    def require(self, table: ClassTable) -> None:
        """Raise `PolicyError` if `table` lacks data without which the criterion cannot be
        checked.
        """
        self.require_people(table.subjects)
        needs = self.model.needs
        if ModelNeed.SENSITIVE in needs and self.attribute not in table.sensitive:
            raise PolicyError(
                f"{self} needs the counts of sensitive attribute {self.attribute!r}, which the "
                "frequency table lacks.",
                hint=f"It has: {', '.join(table.sensitive) or 'no sensitive attribute'}.",
            )
        if ModelNeed.POPULATION in needs and table.population is None:
            raise PolicyError(
                f"{self} needs the class sizes of the population.",
                hint="Name the table of the population: in the policy (population: FILE, or weight: COLUMN "
                "for a survey) for advice; for an audit as --population, or with weights by --certificate and "
                "--original. Or ask for k or a prosecutor risk, which take the table for "
                "the whole population.",
            )
        if ModelNeed.HIERARCHY in needs and self.counts(table).levels is None:
            raise PolicyError(
                f"{self} needs a hierarchy of {self.attribute!r}.",
                hint="Give the attribute a hierarchy, or use distance: equal or ordered.",
            )

        if ModelNeed.LEAVES in needs and table.hidden is None:
            raise PolicyError(
                f"{self} depends on how many values each shown value may represent, which is not known here.",
                hint="It can be searched for and released by masks (aegis advise, aegis apply); an audit "
                "needs a policy with a hierarchy of every quasi-identifier.",
            )

    def to_mapping(self) -> dict[str, Any]:
        """Return the criterion with all its parameters, as the mapping in a policy file."""
        written: dict[str, Any] = {}
        if self.attribute is not None:
            written["attribute"] = self.attribute
        if self.model.variant is not None:
            written[self.model.variant[0]] = self.model.variant[1]
        if self.reference is not Compared.RELEASED:
            written["reference"] = str(self.reference)
        return written | dict(self.parameters)


@dataclass(frozen=True)
class ValueDemand:
    """How many distinct sensitive values a privacy model requires in each class, whatever their
    shares are.

    Attributes
    ----------
    parameter
        Name of the parameter that determines the number.
    needed
        Function that converts a value of the parameter to the number of sensitive values that a
        class needs.
    allowed
        Function that converts the number of sensitive values in a table to the allowed values of
        the parameter, as a noun phrase.
    sufficient
        Whether a class with the needed number of values always meets the criterion.
    """

    parameter: str
    needed: Callable[[float], int]
    allowed: Callable[[int], str]
    sufficient: bool = False


@dataclass(frozen=True)
class Weakening:
    """One step to a weaker criterion. A search uses it to show how much utility a weaker rule would
    gain.

    Attributes
    ----------
    parameter, change
        The parameter, and the amount that is added to it.
    least
        The smallest value of the parameter; no step goes below it.
    """

    parameter: str
    change: float
    least: float


@dataclass(frozen=True, eq=False)
class PrivacyModel:
    """A registered privacy model: what it requires of each equivalence class, and the properties of
    this requirement.

    Attributes
    ----------
    name
        Unique name: the key in the policy, followed by `.variant` if several models share the key.
    title
        The usual name of the model, for people.
    description
        The attack against which it protects, in one or two sentences.
    formula
        The requirement on a class E, as a formula.
    reference
        Where the model is defined.
    direction
        How the figure of a safe class compares with the limit: at least, at most or below.
    parameters
        All parameters of the model.
    needs
        Data that it needs in addition to class sizes.
    limit
        Name of the parameter that is the limit; by default, the first parameter.
    monotone
        Whether coarser tables stay safe: if every class of a table is safe, every class of a table
        with merged classes is safe, too.
    monotone_with_suppression
        Whether a merged class fails only if all its parts fail. Then the number of rows in failing
        classes cannot grow when classes merge. This also holds for several such models together.
    monotone_by_person
        Whether the same holds if distinct persons are counted. A person may be in both of two
        classes that merge, so the distribution of the merged class is not a mixture of the
        distributions of the two classes.
    argument
        Why these properties hold, or a counterexample, in words.
    figures
        Function that returns the figure of each class, shape (n_classes,).
    shortfall
        Template of the text about a failing class, with parameters in braces.
    variant
        If several records share a key, the parameter and its value that select this record.
    fails
        Function that returns, for each class, whether it fails. None: a class fails if its figure
        violates the limit.
    least_size
        Function that returns the number of rows of the smallest safe class. None: the model depends
        on more than class sizes.
    values
        How many sensitive values a class must have. None: the model requires no number.
    weakening
        The step to a weaker criterion, for which a search shows the gain. None: there is no such
        step.
    strictest_counts
        Whether only the criterion with the largest limit counts if a rule has several criteria with
        this model.
    window
        The SQL window of the model. None: the model cannot be checked by a query.
    window_by_person
        Whether the query can also count distinct persons.
    hopeless
        Function that returns whether the table and all finer tables fail the criterion, whatever is
        suppressed. None: this is unknown.
    ordered
        Names of two parameters. If the first exceeded the second, no table would meet the
        criterion, so this is not allowed.
    implies
        Names of implied models: a table that meets this model also meets each of them with the same
        parameters.
    dense
        Function that computes `figures` faster, from a plain matrix of rows by class and value.
        None: there is no such function. A model with `fails` cannot have it.
    caps
        Function that returns the largest shares of values that a kept part of a class can have
        (`ShareCaps`). None: there are no such limits.
    """

    name: str
    title: str
    description: str
    formula: str
    reference: str
    direction: Comparison
    parameters: tuple[ModelParameter, ...]
    argument: str
    figures: Callable[[ClassTable, Criterion], Figures]
    shortfall: str
    limit: str = ""
    monotone: bool = False
    monotone_with_suppression: bool = False
    needs: frozenset[ModelNeed] = frozenset()
    variant: tuple[str, str] | None = None
    fails: Callable[[ClassTable, Criterion], Flags] | None = None
    monotone_by_person: bool = False
    least_size: Callable[[Criterion], int] | None = None
    values: ValueDemand | None = None
    weakening: Weakening | None = None
    strictest_counts: bool = False
    window: Window | None = None
    window_by_person: bool = True
    hopeless: Callable[[ClassTable, Criterion], bool] | None = None
    ordered: tuple[str, str] | None = None
    implies: tuple[str, ...] = ()
    dense: Callable[[Histograms, Criterion], Figures] | None = None
    caps: Callable[[Bounds, Criterion], ShareCaps | None] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", self.limit or self.parameters[0].name)
        if self.fails is not None and self.dense is not None:
            raise InternalError(
                f"The privacy model {self.name!r} has `fails` and `dense`, but a search that uses `dense` "
                "compares only figures with the limit. Leave out one of them."
            )

    def __reduce__(self) -> tuple[Callable[[str], PrivacyModel], tuple[str]]:
        # A copy, also one in another process, is the registered record itself.
        return _registered, (self.name,)

    @property
    def key(self) -> str:
        """The key of the model in the mapping `privacy:` of a policy."""
        return self.name.partition(".")[0]

    @property
    def bare(self) -> str | None:
        """The parameter that a policy may give without its name, as in `k: 5`; None if the model
        has no such parameter.
        """
        alone = len(self.parameters) == 1 and self.variant is None
        return self.parameters[0].name if alone and ModelNeed.SENSITIVE not in self.needs else None

    @property
    def local(self) -> bool:
        """Whether each class can be checked alone, because other classes do not affect whether it
        meets the model.
        """
        return ModelNeed.REFERENCE not in self.needs

    def criterion(self, entry: Mapping[str, object]) -> Criterion:
        """Build the criterion from its entry in a policy; raise `PolicyError` if the value of a
        parameter is not allowed.

        Parameters
        ----------
        entry
            The parameters, and `attribute` if the model needs it. It does not have the key that
            selects a variant of the model (`variant`).
        """
        allowed = [parameter.name for parameter in self.parameters]
        if ModelNeed.SENSITIVE in self.needs:
            allowed.insert(0, "attribute")
        if self.compares:
            allowed.append("reference")
        for key in entry:
            if key not in allowed:
                with at_entry(key):
                    raise PolicyError.unknown(f"parameter of {self.title}", key, allowed)
        values = tuple(
            (parameter.name, self._value(parameter, entry)) for parameter in self.parameters
        )
        self._check_order(dict(values))
        return Criterion(self, values, self._attribute(entry), self._reference(entry))

    def _check_order(self, values: Mapping[str, float]) -> None:
        if self.ordered is None:
            return
        low, high = self.ordered
        if values[low] > values[high]:
            raise PolicyError(
                f"{self.title} requires {low} = {values[low]:g} and {high} = {values[high]:g}: no class "
                "meets both.",
                hint=f"Give a {low} that is not above the {high}.",
            )

    @property
    def compares(self) -> bool:
        """Whether the model compares the values of a class with the values of the whole table or of
        the population.
        """
        subjects = {ModelNeed.SENSITIVE, ModelNeed.POPULATION} & self.needs
        return bool(subjects) and ModelNeed.REFERENCE in self.needs

    def _reference(self, entry: Mapping[str, object]) -> Compared:
        named = entry.get("reference", str(Compared.RELEASED)) if self.compares else "released"
        with at_entry("reference"):
            return member(Compared, str(named), f"reference of {self.title}")

    def _value(self, parameter: ModelParameter, entry: Mapping[str, object]) -> float:
        value = entry.get(parameter.name, parameter.default)
        if value is None:
            raise PolicyError(
                f"{self.title} lacks {parameter.name!r}.",
                hint=f"Give {parameter.range}: {parameter.description}.",
            )
        with at_entry(parameter.name):
            return parameter.check(value, self.title)

    def _attribute(self, entry: Mapping[str, object]) -> str | None:
        if ModelNeed.SENSITIVE not in self.needs:
            return None
        attribute = entry.get("attribute")
        if not isinstance(attribute, str) or not attribute:
            with at_entry("attribute"):
                raise PolicyError(
                    f"{self.title} lacks the sensitive attribute that it protects (given: {attribute!r}).",
                    hint="Write attribute: and the name of a column.",
                )
        return attribute


MODELS: Registry[PrivacyModel] = Registry("privacy model")


def _registered(name: str) -> PrivacyModel:
    return MODELS.get(name)
