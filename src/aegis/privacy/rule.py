"""Define the privacy rule of a policy, check whether a table meets it, and compare the strength of
two rules.

**Suppression.** If a class fails any criterion, its rows are removed from the release. The release
is admissible if at most floor(suppression * N + 1e-9) of the N rows are removed and at least one
class remains. Some models compare a class with the whole table: t-closeness, beta-likeness,
delta-disclosure, marketer risk, delta-presence. For these models, the whole table means the *kept*
rows: failing classes are dropped, the comparison is repeated with the rest, and so on until no
class fails. So an audit of the released rows finds the same figures. With `reference: input`, a
class is compared only once, with all rows before suppression. Then an audit of the released rows
may find that they violate the limit.

**Strength.** Rule B is *at least as strong* as rule A if A also allows every release that B allows.
Aegis decides this from the rules, not by trying tables. Each criterion of A must follow from the
criteria of B. B must allow no more suppression than A, and count the same unit, rows or persons. If
the steps below do not show that a criterion follows, Aegis assumes that it does not. So if two
rules cannot be compared, each is *weaker* than the other, which is the safe answer to "is this rule
weak?".

A criterion follows from

- a criterion of the same model and attribute, if each of its parameters requires at least as much;
- a criterion of a model that implies it (`PrivacyModel.implies`), with the same parameters;
- the smallest class that B allows, if the criterion is on class sizes only. Criteria such as k,
  prosecutor risk, and a number of values (each value needs a row) imply a smallest class;
- the number of values that B requires of a class, if the criterion requires only a number of
  values. (c,l)-diversity, entropy l-diversity and (alpha,k)-anonymity all require some number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from aegis.arrays import Flags
from aegis.errors import PolicyError, at_entry
from aegis.privacy.classes import ClassTable
from aegis.privacy.model import (
    MODELS,
    Comparison,
    Criterion,
    ModelNeed,
    ModelParameter,
    PrivacyModel,
)
from aegis.words import brief, counted, joined, json_fields


@dataclass(frozen=True, eq=False)
class Verdict:
    """The result of checking whether a table meets a privacy rule after suppression.

    Attributes
    ----------
    admissible
        Whether the release, after suppression, meets the rule.
    suppressed_rows, suppressed_classes
        How many rows, and how many classes, must be removed so that every remaining class meets
        every criterion.
    allowed_rows
        How many rows may be removed.
    smallest_class
        Number of rows of the smallest kept class; 0 if no class is kept.
    smallest_before
        Number of rows of the smallest class before suppression; 0 for an empty table.
    violations
        One sentence for each violated criterion, which says by how much it is violated; empty if
        the release is admissible.
    kept_classes
        For each class, whether it is kept, shape (n_classes,).
    persons, suppressed_persons, allowed_persons
        The number of all persons, of persons who lose a row, and of persons who may lose a row;
        None if rows are counted. If persons are counted, `allowed_rows` is the number of all rows,
        and class sizes are numbers of persons.
    """

    admissible: bool
    suppressed_rows: int
    suppressed_classes: int
    allowed_rows: int
    smallest_class: int
    smallest_before: int
    violations: tuple[str, ...]
    kept_classes: Flags = field(repr=False)
    persons: int | None = None
    suppressed_persons: int | None = None
    allowed_persons: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields of the result except `kept_classes` as JSON values."""
        return json_fields(self, *(f.name for f in fields(self) if f.repr))


@dataclass(frozen=True)
class Shortage:
    """A requirement on each class that even the whole table, taken as a single class, does not
    meet: what is `required` and `available`, in words; how to change the rule, as a clause; and the
    names of the rule's parameters that set the requirement.
    """

    required: str
    available: str
    remedy: str
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.required}, but {self.available}"


@dataclass(frozen=True)
class PrivacyRule:
    """What a release must meet: the criteria, and the largest share of rows that may be suppressed.

    Attributes
    ----------
    criteria
        The criteria, all of which a release must meet. If there are none, every table with rows is
        admissible.
    suppression
        The share of the rows that may be removed, in [0, 1]; at least one class must be kept. If
        persons are counted, it is the share of persons who may lose a row.
    person
        The column that identifies persons, if persons are counted instead of rows; None if rows are
        counted.
    """

    criteria: tuple[Criterion, ...] = ()
    suppression: float = 0.0
    person: str | None = None

    def __post_init__(self) -> None:
        share = self.suppression
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if not number or not 0 <= share <= 1:
            raise PolicyError(
                f"'suppression' of the privacy rule is {brief(share)}.",
                hint="Give the share of rows that may be removed, from 0 to 1.",
            )

    @classmethod
    def parse(cls, mapping: Mapping[str, object]) -> PrivacyRule:
        """Return the privacy rule that the mapping `privacy:` of a policy describes.

        Keys are `suppression`, `preset` and the names of registered models. The value of a model is
        a mapping of its parameters, or a list of such mappings for several sensitive attributes.
        `k: 5` is short for `k: {k: 5}`. A preset adds its criteria. Of several values of k, the
        largest counts.

        Raises
        ------
        PolicyError
            A key, preset, kind or parameter is unknown (the message suggests the nearest name), a
            value is out of range, or there is no criterion at all.
        """
        if not isinstance(mapping, Mapping):
            raise PolicyError(
                f"The privacy rule is {mapping!r}.", hint="Write a mapping, for example {k: 5}."
            )
        criteria: list[Criterion] = []
        for key, value in mapping.items():
            with at_entry(key):
                if key == "preset":
                    criteria.extend(_preset(value))
                elif key != "suppression":
                    criteria.extend(_criteria(key, value))
        if not criteria:
            raise PolicyError(
                "The privacy rule requires nothing.",
                hint=f"Name a model, for example {{k: 5}}. Models: {', '.join(_keys())}.",
            )
        with at_entry("suppression"):
            return cls(_strictest(criteria), mapping.get("suppression", 0.0))  # type: ignore[arg-type]

    def to_mapping(self) -> dict[str, Any]:
        """Return the rule as the mapping in a policy file, from which `parse` makes the same rule."""
        written: dict[str, Any] = {}
        for criterion in self.criteria:
            key, bare = criterion.model.key, criterion.model.bare
            value = criterion.to_mapping() if bare is None else criterion[bare]
            if key not in written:
                written[key] = value
            elif isinstance(written[key], list):
                written[key].append(value)
            else:
                written[key] = [written[key], value]
        if self.suppression:
            written["suppression"] = self.suppression
        return written

    def __str__(self) -> str:
        demands = "; ".join(map(str, self.criteria)) or "no demand"
        return f"{demands}; {_most_suppressed(self)}"

    @cached_property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive attributes whose values by class must be counted, without duplicates."""
        names = (
            criterion.attribute for criterion in self.criteria if criterion.attribute is not None
        )
        return tuple(dict.fromkeys(names))

    def missing_classes(self, suppressed_rows: int) -> tuple[str, ...]:
        """Return a tuple with one sentence that says what suppressed rows reveal about the sensitive
        attributes of this rule; empty if the rule protects no attribute, or if so few rows are
        suppressed that each missing class may have been too small.
        """
        if not self.sensitive or suppressed_rows < self.implied_size:
            return ()
        unit = "rows" if self.person is None else "persons"
        return (
            f"Suppressed rows may reveal their values of {joined(self.sensitive)}: somebody who knows everybody's "
            "quasi-identifiers sees which classes are missing. If one of them has "
            f"{self.implied_size:,} {unit} or more, it was not too small, so its values broke the rule. "
            "To lower this risk, choose masks that suppress fewer rows "
            f"(now {suppressed_rows:,})",
        )

    @property
    def hierarchical(self) -> tuple[str, ...]:
        """The names of the sensitive attributes whose hierarchy is needed to check the rule."""
        names = (
            c.attribute
            for c in self.criteria
            if c.attribute is not None and ModelNeed.HIERARCHY in c.model.needs
        )
        return tuple(dict.fromkeys(names))

    @property
    def needs_population(self) -> bool:
        """Whether some criterion can be checked only if class sizes in the population are known."""
        return any(ModelNeed.POPULATION in criterion.model.needs for criterion in self.criteria)

    @property
    def by_leaves(self) -> bool:
        """Whether some criterion depends on how many original values a masked value represents."""
        return any(ModelNeed.LEAVES in criterion.model.needs for criterion in self.criteria)

    @property
    def by_crowd(self) -> bool:
        """Whether some criterion depends on class sizes in the population, if these are known."""
        return any(
            {ModelNeed.POPULATION, ModelNeed.CROWD} & criterion.model.needs
            for criterion in self.criteria
        )

    def comparing(self, population: str) -> str:
        """Return the path of a population; raise `PolicyError` if the rule compares no class with
        one.
        """
        if self.by_crowd:
            return population
        raise PolicyError(
            f"The rule ({self}) compares no class with a population, so {population} has no effect.",
            hint="Leave the population out, or require k_map, delta_presence, or a journalist or "
            "marketer risk in the policy.",
        )

    @property
    def without_crowd(self) -> PrivacyRule:
        """The rule without the criteria that depend on class sizes in the population."""
        beyond = {ModelNeed.POPULATION, ModelNeed.CROWD}
        rest = tuple(criterion for criterion in self.criteria if not beyond & criterion.model.needs)
        return replace(self, criteria=rest)

    @cached_property
    def monotone(self) -> bool:
        """Whether every table that is coarser than one that meets the rule also meets it.

        If the rule allows no suppression, this is so if `PrivacyModel.monotone` is True for every
        criterion. If it allows suppression, `monotone_with_suppression` must be True for every
        criterion: a merged class then fails only if all its parts fail the same criterion, so the
        number of removed rows cannot grow.
        """
        return all(map(self._keeps_order, self.criteria))

    @cached_property
    def monotone_part(self) -> PrivacyRule | None:
        """The rule with only those criteria that coarser masks never break (see `monotone`); None
        if there are none. If a table fails this part, the table and every finer table fail the
        whole rule.
        """
        if self.monotone:
            return self
        part = tuple(filter(self._keeps_order, self.criteria))
        return replace(self, criteria=part) if part else None

    def _keeps_order(self, criterion: Criterion) -> bool:
        model = criterion.model
        if self.person is not None:
            return model.monotone_by_person
        return model.monotone_with_suppression if self.suppression else model.monotone

    @cached_property
    def minimum_size(self) -> int:
        """The smallest class size that the criteria on class sizes allow, at least 1."""
        sizes = ((criterion.model.least_size, criterion) for criterion in self.criteria)
        return max([1, *(least(criterion) for least, criterion in sizes if least is not None)])

    @cached_property
    def implied_size(self) -> int:
        """The smallest size with which a class can meet the rule. It needs a row for each required
        sensitive value, unless persons are counted, because one person may have several.
        """
        if self.person is not None:
            return self.minimum_size
        values = (c.values_needed for c in self.criteria if c.local)
        return max([self.minimum_size, *values])

    def shortage(
        self, rows: int, values: Mapping[str, int] = MappingProxyType({})
    ) -> Shortage | None:
        """Return a requirement that even the whole table, taken as a single class, does not meet;
        None if there is none. Masks add neither rows (or persons) nor values, so no masks can make
        such a table meet the rule. `values` has the number of distinct values, with null, of each
        sensitive attribute to check.
        """
        unit = "row" if self.person is None else "person"
        if self.minimum_size > rows:
            return Shortage(
                f"{counted(self.minimum_size, unit)} in a class",
                f"the table has {counted(rows, unit)}",
                "choose a smaller k",
                ("k", "risk"),
            )
        for criterion in self.criteria:
            available = values.get(criterion.attribute or "")
            demand = criterion.model.values
            if available is not None and demand is not None and criterion.values_needed > available:
                return Shortage(
                    f"{criterion.values_needed:,} values of {criterion.attribute!r} in a class",
                    f"the table has {available:,}",
                    f"choose {demand.allowed(available)}",
                    (demand.parameter,),
                )
        return None

    def require_possible(self, rows: int, values: Mapping[str, int] = MappingProxyType({})) -> None:
        """Raise an error if no masks can make a table meet the rule (see `shortage`).

        Raises
        ------
        PolicyError
            A class would need more rows than the table has, or more sensitive values.
        """
        lacks = self.shortage(rows, values)
        if lacks is not None:
            raise PolicyError(
                f"The rule requires {lacks}.", hint=f"No mask can fix this: {lacks.remedy}."
            )

    @cached_property
    def sizes_only(self) -> bool:
        """Whether the rule requires nothing of a class except a size of at least `minimum_size`."""
        return all(criterion.model.least_size is not None for criterion in self.criteria)

    def allowed_rows(self, rows: int) -> int:
        """Return how many of `rows` rows suppression may remove: floor(suppression * rows +
        1e-9).
        """
        return math.floor(self.suppression * rows + 1e-9)

    def check(self, table: ClassTable) -> Verdict:
        """Check whether `table` meets the rule after suppression; the result also says which
        criteria it fails, and which classes are suppressed.

        Classes that fail a criterion are suppressed. Criteria that compare a class with the whole
        table are then checked again on the rest, until no class fails. If all criteria are on class
        sizes, a check takes only a few passes over the sizes.

        Raises
        ------
        PolicyError
            The table lacks a sensitive attribute, hierarchy or population that a criterion needs.
        """
        if self.sizes_only:
            large_enough = table.sizes >= self.minimum_size
            return self._verdict(table, self._without_lonely(table, large_enough), None)
        for criterion in self.criteria:
            criterion.require(table)
        failed = [np.zeros(len(table), dtype=np.bool_) for _ in self.criteria]
        kept_classes = np.ones(len(table), dtype=np.bool_)
        for criterion, fails in zip(self.criteria, failed, strict=True):
            if criterion.local:
                fails |= criterion.failing(table)
                kept_classes &= ~fails
        self._settle(table, kept_classes, failed)
        return self._verdict(table, self._without_lonely(table, kept_classes), failed)

    def _without_lonely(self, table: ClassTable, kept_classes: Flags) -> Flags:
        """Suppress more classes, if needed, so that suppressed rows are not isolated by earlier
        releases. `kept_classes` says which classes are kept so far.

        Somebody who has all releases can group the rows that this release lacks: rows that earlier
        releases show in the same way form a class. Each such class must meet the rule. As long as
        one fails, the smallest kept class that earlier releases show in the same way is suppressed,
        too.
        """
        if table.earlier is None:
            return kept_classes
        kept_classes = kept_classes.copy()
        while True:
            missing = ~kept_classes & (table.earlier > 0)
            left_out = table.keep(missing).as_shown_earlier() if missing.any() else None
            if left_out is None:
                return kept_classes
            lonely = left_out.kept_ids(~self.check(left_out).kept_classes)
            places = np.flatnonzero(kept_classes & np.isin(table.earlier, lonely))
            if not len(places):
                return kept_classes
            places = places[np.lexsort((table.sizes[places], table.earlier[places]))]
            first = np.unique(table.earlier[places], return_index=True)[1]
            kept_classes[places[first]] = False

    def _settle(self, table: ClassTable, kept_classes: Flags, failed: list[Flags]) -> None:
        """Drop classes that fail a criterion when they are compared with all kept rows, and repeat
        this with the remaining rows until none fails. The arguments are changed in place.
        """
        compared = [
            (criterion, fails)
            for criterion, fails in zip(self.criteria, failed, strict=True)
            if not criterion.local
        ]
        while compared and kept_classes.any():
            places = np.flatnonzero(kept_classes)
            rest = table.keep(kept_classes)
            for criterion, fails in compared:
                dropped = places[criterion.failing(rest)]
                fails[dropped] = True
                kept_classes[dropped] = False
            if len(places) == np.count_nonzero(kept_classes):
                return

    def _verdict(
        self, table: ClassTable, kept_classes: Flags, failed: list[Flags] | None
    ) -> Verdict:
        sizes = table.sizes
        remaining = sizes[kept_classes]
        removed = table.subjects_in(~kept_classes)
        allowed = self.allowed_rows(table.subjects)
        by_person = table.persons is not None
        some = len(remaining) > 0
        admissible = some and removed <= allowed
        return Verdict(
            admissible=admissible,
            suppressed_rows=int(table.class_rows[~kept_classes].sum()),
            suppressed_classes=len(sizes) - len(remaining),
            allowed_rows=table.rows if by_person else allowed,
            smallest_class=int(remaining.min()) if some else 0,
            smallest_before=int(sizes.min()) if len(sizes) else 0,
            violations=() if admissible else self._violations(table, kept_classes, failed, allowed),
            kept_classes=kept_classes,
            persons=table.subjects if by_person else None,
            suppressed_persons=removed if by_person else None,
            allowed_persons=allowed if by_person else None,
        )

    def _violations(
        self, table: ClassTable, kept_classes: Flags, failed: list[Flags] | None, allowed: int
    ) -> tuple[str, ...]:
        if not table.rows:
            return ("The table has no rows.",)
        masks = failed or [criterion.failing(table) for criterion in self.criteria]
        rows = [table.subjects_in(mask) for mask in masks]
        removed = table.subjects_in(~kept_classes)
        unit = "row" if table.persons is None else "person"
        worst = [
            _sentence(criterion, count, allowed, unit)
            for criterion, count in zip(self.criteria, rows, strict=True)
            if count > allowed
        ]
        if table.earlier is not None and removed > max([allowed, *rows]):
            worst.append(
                f"with earlier releases: {counted(removed, unit)} fail or must be left out so that "
                f"missing rows are not alone; {allowed:,} may be suppressed"
            )
        elif removed > max([allowed, *rows]):
            worst.append(
                f"together: {counted(removed, unit)} in classes that fail a criterion; "
                f"{allowed:,} may be suppressed"
            )
        return tuple(worst) or ("no class meets all criteria, so nothing would be released",)


def _sentence(criterion: Criterion, count: int, allowed: int, unit: str) -> str:
    of = f" of {criterion.attribute}" if criterion.attribute else ""
    chosen = {name: f"{value:g}" for name, value in criterion.parameters}
    where = criterion.model.shortfall.format(**chosen)
    return (
        f"{criterion.model.title}{of}: {counted(count, unit)} in classes {where}; "
        f"{allowed:,} may be suppressed"
    )


def _keys() -> list[str]:
    return list(dict.fromkeys(model.key for model in MODELS))


def _variants(key: str) -> list[PrivacyModel]:
    variants = [model for model in MODELS if model.key == key]
    if not variants:
        raise PolicyError.unknown(
            "key of the privacy rule",
            key,
            [*_keys(), "suppression", "preset"],
            meanings=_meanings(),
        )
    return variants


def _meanings() -> dict[str, str]:
    """Return the keys to suggest to users: that of each privacy model by its title, and of each
    parameter by its name, if only models with this key have it.
    """
    keys = {model.title.lower(): model.key for model in MODELS}
    by_parameter: dict[str, set[str]] = {}
    for model in MODELS:
        for parameter in model.parameters:
            by_parameter.setdefault(parameter.name, set()).add(model.key)
    return keys | {name: key for name, (key, *others) in by_parameter.items() if not others}


def _criteria(key: str, value: object) -> list[Criterion]:
    variants = _variants(key)
    if not isinstance(value, list | tuple):
        return [_criterion(key, variants, value)]
    if not value:
        raise PolicyError(f"{key!r} of the privacy rule is an empty list.", hint="Remove the key.")
    criteria = []
    for index, entry in enumerate(value):
        with at_entry(index):
            criteria.append(_criterion(key, variants, entry))
    return criteria


def _criterion(key: str, variants: list[PrivacyModel], entry: object) -> Criterion:
    if variants[0].bare is not None and not isinstance(entry, Mapping):
        entry = {variants[0].bare: entry}
    if not isinstance(entry, Mapping):
        attribute = ["attribute"] if ModelNeed.SENSITIVE in variants[0].needs else []
        names = ", ".join([*attribute, *(parameter.name for parameter in variants[0].parameters)])
        raise PolicyError(
            f"{key!r} of the privacy rule is {entry!r}.",
            hint=f"Write a mapping of its parameters ({names}), or a list of such mappings.",
        )
    parameters = dict(entry)
    chosen = variants[0]
    if chosen.variant is not None:
        option = chosen.variant[0]
        kinds = {model.variant[1]: model for model in variants if model.variant is not None}
        name = parameters.pop(option, chosen.variant[1])
        if not isinstance(name, str) or name not in kinds:
            with at_entry(option):
                raise PolicyError.unknown(f"{option} of {key}", name, kinds)
        chosen = kinds[name]
    return chosen.criterion(parameters)


def _preset(name: object) -> list[Criterion]:
    if not isinstance(name, str) or name not in PRESETS:
        raise PolicyError.unknown("privacy preset", name, PRESETS)
    return [MODELS.get("k").criterion({"k": PRESETS[name]})]


def _strictest(criteria: list[Criterion]) -> tuple[Criterion, ...]:
    """Return the criteria without repetitions, and without weaker ones of a model of which only the
    strictest counts.
    """
    largest: dict[str, float] = {}
    for criterion in criteria:
        if criterion.model.strictest_counts:
            limit = criterion[criterion.model.limit]
            largest[criterion.model.name] = max(limit, largest.get(criterion.model.name, limit))
    return tuple(
        criterion
        for criterion in dict.fromkeys(criteria)
        if criterion[criterion.model.limit] >= largest.get(criterion.model.name, -math.inf)
    )


PRESETS = {
    # EMA policy 0070: risk of at most 0.09, that is classes of at least 11
    "ema": 11,
    # Health Canada, public release of clinical information: risk of at most 0.09
    "health-canada": 11,
    # CMS cell size suppression policy: no cell of 1 to 10
    "cms": 11,
}
"""Minimum class sizes that regulators have set, by the name that a policy writes after `preset:`."""


def rule_at(rule: PrivacyRule, parameter: str, value: float) -> PrivacyRule:
    """Return a copy of `rule` in which one parameter has another value. `k` and `risk` (1 / k) both
    set the k of the rule; if it has no k, they add one.

    Raises
    ------
    PolicyError
        No criterion of the rule has the parameter, or its model does not allow the value.
    """
    if parameter == "suppression":
        return replace(rule, suppression=value)
    if parameter in ("k", "risk"):
        k = int(value) if parameter == "k" else math.ceil(1 / value - 1e-9)
        by_size = PrivacyRule.parse({"k": k}).criteria
        models = [criterion.model for criterion in by_size]
        others = tuple(c for c in rule.criteria if c.model not in models)
        return replace(rule, criteria=(*by_size, *others))
    varied = [c for c in rule.criteria if parameter in (p.name for p in c.model.parameters)]
    if not varied:
        keys = {m.key for m in MODELS if parameter in (p.name for p in m.parameters)}
        raise PolicyError(
            f"A front over {parameter} needs a rule with one of: {', '.join(sorted(keys))}.",
            hint="Add the criterion to `privacy` in the policy.",
        )
    criteria = (c.with_parameter(parameter, value) if c in varied else c for c in rule.criteria)
    return replace(rule, criteria=tuple(criteria))


_ALIKE = 1e-12


class Strength(StrEnum):
    """Whether one rule is weaker than another rule, as strong, or stronger."""

    SAME = "same"
    """Each rule is at least as strong as the other."""
    STRONGER = "stronger"
    """The rule is at least as strong as the other rule, but the other rule is not as strong as this
    one.
    """
    WEAKER = "weaker"
    """The rule is not at least as strong: it requires less, or the two rules cannot be compared."""


def strength(rule: PrivacyRule, other_rule: PrivacyRule) -> Strength:
    """Return whether `rule` is weaker than `other_rule`, as strong, or stronger."""
    if missing(rule, other_rule):
        return Strength.WEAKER
    return Strength.STRONGER if missing(other_rule, rule) else Strength.SAME


def missing(rule: PrivacyRule, other_rule: PrivacyRule) -> tuple[str, ...]:
    """Return the requirements of `other_rule`, in words, that a table may break although it meets
    `rule`.
    """
    return tuple(_missing(rule, other_rule))


def _missing(rule: PrivacyRule, other_rule: PrivacyRule) -> Iterator[str]:
    if rule.person != other_rule.person:
        yield f"it counts {_subjects(other_rule)}, not {_subjects(rule)}"
    for demand in other_rule.criteria:
        if not _follows(demand, rule):
            yield str(demand)
    if rule.suppression > other_rule.suppression + _ALIKE:
        yield _most_suppressed(other_rule)


def _most_suppressed(rule: PrivacyRule) -> str:
    """Return how much the rule allows to suppress, such as "at most 2 % of the rows suppressed"."""
    if not rule.suppression:
        return f"no {'row' if rule.person is None else f'person ({rule.person})'} suppressed"
    return f"at most {100 * rule.suppression:g} % of the {_subjects(rule)} suppressed"


def _subjects(rule: PrivacyRule) -> str:
    return "rows" if rule.person is None else f"persons ({rule.person})"


def _follows(demand: Criterion, rule: PrivacyRule) -> bool:
    """Return whether it is known that every table that meets `rule` meets the criterion `demand`."""
    if any(_asks_for(criterion, demand) for criterion in rule.criteria):
        return True
    least = demand.model.least_size
    if least is not None:
        return least(demand) <= rule.implied_size
    values = demand.model.values
    if values is None or not values.sufficient or rule.person is not None:
        # Of persons, a value that everybody in a class has is certain however many others there are.
        return False
    return demand.values_needed <= max(
        (c.values_needed for c in rule.criteria if c.attribute == demand.attribute), default=1
    )


def _asks_for(criterion: Criterion, demand: Criterion) -> bool:
    """Return whether `criterion` implies `demand`: both protect the same attribute, its model is or
    implies that of `demand`, and each parameter requires at least as much.
    """
    if criterion.attribute != demand.attribute or demand.model not in _implied(criterion.model):
        return False
    if demand.model.compares and criterion.reference is not demand.reference:
        return False
    parameters = dict(criterion.parameters)
    return all(
        parameter.name in parameters
        and _as_much(demand.model, parameter, parameters[parameter.name], demand[parameter.name])
        for parameter in demand.model.parameters
    )


def _implied(model: PrivacyModel) -> list[PrivacyModel]:
    """Return a model and all models that it implies, directly or indirectly."""
    reached = [model]
    for strength in reached:
        reached += [m for m in map(MODELS.get, strength.implies) if m not in reached]
    return reached


def _as_much(model: PrivacyModel, parameter: ModelParameter, value: float, demanded: float) -> bool:
    larger = larger_is_stronger(model, parameter)
    if math.isclose(value, demanded, rel_tol=_ALIKE, abs_tol=_ALIKE):
        return True
    return larger is not None and (value > demanded if larger else value < demanded)


def larger_is_stronger(model: PrivacyModel, parameter: ModelParameter) -> bool | None:
    """Return whether a larger value of a model's parameter requires more; None if this is not
    known.
    """
    if parameter.larger_is_stronger is not None:
        return parameter.larger_is_stronger
    if parameter.name == model.limit and model.fails is None:
        return model.direction is Comparison.AT_LEAST
    return None
