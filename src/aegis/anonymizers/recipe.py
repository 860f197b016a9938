"""A record-level method with its options and seed, as policies and files write it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from aegis.anonymizers.base import ANONYMIZERS, MINIMUM_K, Anonymizer, Options, Style
from aegis.anonymizers.records import Records
from aegis.errors import PolicyError
from aegis.policy import Located, MethodChoice, Policy, read_mapping, write_mapping

KEYS = ("measure", "method", "options", "seed", "style")
"""Keys of a file that holds a recipe."""


@dataclass(frozen=True)
class Recipe:
    """A record-level method with all its options.

    Attributes
    ----------
    method
        Name of a registered anonymizer.
    options
        Its options by name; k and l come from the policy's rule where they are not given.
    seed
        Seed of the draws. None leaves them to the system's randomness where they protect
        (`by_chance`), and is 0 elsewhere.
    style
        How groups are shown: `centroid` or `generalised`; None for the method's own way.
    name
        How a ranking calls it; the method's name unless given.

    Raises
    ------
    PolicyError
        The method, an option or the style is unknown, or an option has the wrong type or range; or
        a seed is given for a method that promises differential privacy.
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    style: str | None = None
    name: str = ""

    def __post_init__(self) -> None:
        self.anonymizer.configure(**self.options)
        if self.seed is not None and self.anonymizer.sampled:
            raise PolicyError(
                f"{self.method} promises differential privacy, and a seed was given: a reader who "
                "knows the seed knows which records were drawn.",
                hint="Leave the seed out, in the command, the recipe and the file of defaults: "
                "records are then drawn from the randomness of the system.",
            )
        if self.style is not None and self.style not in list(Style):
            raise PolicyError.unknown("style", self.style, list(Style))
        if not self.name:
            object.__setattr__(self, "name", self.method)

    @property
    def anonymizer(self) -> Anonymizer:
        """The method itself."""
        return ANONYMIZERS.get(self.method)

    @property
    def by_chance(self) -> bool:
        """Whether the random draws protect the table, so that no reader may repeat them."""
        return self.anonymizer.configure(**self.options).by_chance

    def for_draws(self, seed: int | None) -> int:
        """Return the seed of the draws: that of the recipe, otherwise `seed`. Without both, a
        random one if the draws protect the table, and 0 if they do not.
        """
        for given in (self.seed, seed):
            if given is not None:
                return given
        return secrets.randbits(128) if self.by_chance else 0

    def repeating(self, seed: int) -> Recipe:
        """Return the recipe with a seed if it has none, unless its draws protect the table."""
        return replace(self, seed=seed) if self.seed is None and not self.by_chance else self

    def resolve(self, policy: Policy, records: Records) -> Options:
        """Return all options: the given ones, with k and l from the policy's rule if they are
        missing.

        Raises
        ------
        PolicyError
            The rule requires more rows or sensitive values in a class than there are, or the method
            does not take what the rule and the recipe ask for together.
        """
        held = {attribute.name: len(np.unique(attribute.codes)) for attribute in records.sensitive}
        lacks = policy.privacy.shortage(records.subjects, held)
        if lacks is not None:
            # A sensitive attribute is released under its first mask.
            shown = "" if "k" in lacks.parameters else " as it is released"
            raise PolicyError(
                f"The rule requires {lacks}{shown}.",
                hint=f"No grouping can mend that: {lacks.remedy}.",
            )
        demanded = demanded_options(self.anonymizer, policy, records, self.options)
        return self.anonymizer.configure(**(demanded | dict(self.options)))

    def to_dict(self) -> dict[str, Any]:
        """Return the method and its options without a seed, because no output may hold one."""
        data: dict[str, Any] = {"method": self.method, "options": _plain(self.options)}
        return data if self.style is None else data | {"style": str(self.style)}


def recipe_of(choice: MethodChoice) -> Recipe:
    """Return the recipe that a policy names; errors name its place in the policy."""
    try:
        return Recipe(choice.method, choice.options, name=choice.name)
    except PolicyError as error:
        if not choice.where:
            raise
        raise PolicyError(f"{choice.where}: {error.message}", hint=error.hint) from error


def options_dict(options: Options) -> dict[str, Any]:
    """Return options as plain values, in the form that a recipe accepts."""
    return {name: _plain(value) for name, value in asdict(options).items()}


def load_recipe(source: str | Path | Located) -> Recipe:
    """Read a recipe: `method:`, `options:`, `seed:` and `style:`, as `aegis advise -o` writes it.

    The `measure:` by which it was chosen is no part of it: `aegis.policy.measure_of_choice`.
    `source` is the file's path, or what `aegis.policy.read_document` made of it.

    Raises
    ------
    PolicyError
        The file is missing or not YAML, a key is unknown, or as `Recipe`.
    """
    data = read_mapping(source, "recipe")
    path = source.origin if isinstance(source, Located) else source
    if "configurations" in data:
        raise PolicyError(
            f"{path} holds masking configurations, not the recipe of a record-level release.",
            hint="`aegis apply` masks a table with a configuration.",
        )
    for key in data:
        if key not in KEYS:
            raise PolicyError.unknown(f"key of recipe {path}:", key, KEYS)
    method, options, seed = data.get("method"), data.get("options") or {}, data.get("seed")
    if not isinstance(method, str):
        raise PolicyError(
            f"{path} names no method.", hint=f"Write `method:` and one of: {_methods()}."
        )
    if not isinstance(options, dict) or not _is_seed(seed):
        raise PolicyError(
            f"{path}: options {options!r}, seed {seed!r}.",
            hint="Write options as {NAME: VALUE} and the seed as a whole number from 0.",
        )
    return Recipe(method, options, seed, data.get("style"))


def _is_seed(given: Any) -> bool:
    return given is None or (isinstance(given, int) and given >= 0)


def dump_recipe(recipe: Recipe, *, measure: str | None = None) -> str:
    """Return the recipe as YAML that `load_recipe` reads back, without a seed whose draws protect.

    `measure` is the one by which it was chosen, which `aegis.policy.measure_of_choice` reads back.
    """
    chosen = {} if measure is None else {"measure": measure}
    seed = {} if recipe.by_chance else {"seed": recipe.seed or 0}
    return write_mapping(chosen | recipe.to_dict() | seed)


def demanded_options(
    anonymizer: Anonymizer, policy: Policy, records: Records, given: Mapping[str, Any]
) -> dict[str, int]:
    """Return the k and l that the policy's rule requires, for methods that can keep them.

    An l is passed on where every sensitive attribute, protected or not, has as many values: the
    methods keep l for all of them. Whatever the rule requires beyond that is left to suppression.
    """
    demanded = {}
    if policy.privacy.minimum_size >= MINIMUM_K:
        demanded["k"] = policy.privacy.minimum_size
    demands = ((criterion, criterion.model.values) for criterion in policy.privacy.criteria)
    wanted = [
        demand.needed(criterion[demand.parameter])
        for criterion, demand in demands
        if demand is not None and demand.parameter == "l"  # the option that methods have
    ]
    if not wanted or not anonymizer.diverse or _needs_strict(anonymizer, given):
        return demanded
    l = max(wanted)  # noqa: E741 - the field's term
    others = [a for a in records.sensitive if a.name not in policy.privacy.sensitive]
    if all(len(np.unique(a.codes)) >= l for a in others):
        demanded["l"] = max(l, anonymizer.options().l)
    return demanded


def _needs_strict(anonymizer: Anonymizer, given: Mapping[str, Any]) -> bool:
    """Whether the method keeps l in its strict form only, and that was not asked for."""
    return any(f.name == "strict" for f in fields(anonymizer.options)) and not given.get("strict")


def _methods() -> str:
    return ", ".join(ANONYMIZERS.names())


def _plain(value: Any) -> Any:
    """Return nested mappings and tuples as the plain dicts and lists that YAML and JSON write."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
