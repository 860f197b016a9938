"""Recipes: a record-level method with its options and seed, as policies and files write them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from aegis.anonymizers.base import ANONYMIZERS, MINIMUM_K, Anonymizer, Options, Style
from aegis.anonymizers.records import Records
from aegis.errors import PolicyError, require_known
from aegis.policy import Located, MethodChoice, Policy, read_mapping, write_mapping
from aegis.words import jsonable

KEYS = ("measure", "method", "options", "seed", "style")
"""Keys of a file that holds a recipe."""


@dataclass(frozen=True)
class Recipe:
    """A record-level method with its options.

    Attributes
    ----------
    method
        Name of a registered anonymizer.
    options
        Options of the method by name. If k and l are not given, they come from the policy's rule.
    seed
        Seed of the random draws. None means the system's randomness if the draws protect the table
        (`by_chance`), and 0 otherwise.
    style
        How groups are shown: `centroid` or `generalised`; None for the method's default.
    name
        Name in a ranking; by default the method's name.

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
                f"{self.method} promises differential privacy, so it accepts no seed: a reader who "
                "knows the seed knows which records were drawn.",
                hint="Leave out the seed (in the command, the recipe and the file of defaults). "
                "Aegis then draws from the randomness of the system.",
            )
        if self.style is not None and self.style not in list(Style):
            raise PolicyError.unknown("style", self.style, list(Style))
        if not self.name:
            object.__setattr__(self, "name", self.method)

    @property
    def anonymizer(self) -> Anonymizer:
        """The method that the recipe names."""
        return ANONYMIZERS.get(self.method)

    @property
    def by_chance(self) -> bool:
        """Whether the random draws of the method protect the table.

        If they do, readers must not be able to repeat the draws.
        """
        return self.anonymizer.configure(**self.options).by_chance

    def for_draws(self, seed: int | None) -> int:
        """Return the seed for random draws: that of the recipe, else `seed`. If both are None, it
        is random if the draws protect the table, else 0.
        """
        if self.seed is not None:
            return self.seed
        if seed is not None:
            return seed
        return secrets.randbits(128) if self.by_chance else 0

    def repeating(self, seed: int) -> Recipe:
        """Return the recipe with this seed, unless it has one or its draws protect the table."""
        return replace(self, seed=seed) if self.seed is None and not self.by_chance else self

    def resolve(self, policy: Policy, records: Records) -> Options:
        """Return the options to use; k and l come from the policy's rule if the recipe does not set
        them.

        Raises
        ------
        PolicyError
            The rule requires more rows or sensitive values in a class than the table has; or the
            method does not accept the options that follow from the rule and the recipe together.
        """
        values = {a.name: len(np.unique(a.codes)) for a in records.sensitive}
        lacks = policy.privacy.shortage(records.subjects, values)
        if lacks is not None:
            # A sensitive attribute is released under its first mask.
            as_released = "" if "k" in lacks.parameters else " as it is released"
            raise PolicyError(
                f"The rule requires {lacks}{as_released}.",
                hint=f"No grouping can fix this: {lacks.remedy}.",
            )
        demanded = demanded_options(self.anonymizer, policy, records, self.options)
        return self.anonymizer.configure(**(demanded | dict(self.options)))

    def to_dict(self) -> dict[str, Any]:
        """Return the method and its options for publication, without the seed."""
        data: dict[str, Any] = {"method": self.method, "options": jsonable(self.options)}
        return data if self.style is None else data | {"style": str(self.style)}


def recipe_of(choice: MethodChoice) -> Recipe:
    """Return the recipe for a method that a policy names; errors state where."""
    try:
        return Recipe(choice.method, choice.options, name=choice.name)
    except PolicyError as error:
        if not choice.where:
            raise
        raise PolicyError(f"{choice.where}: {error.message}", hint=error.hint) from error


def load_recipe(source: str | Path | Located) -> Recipe:
    """Read a recipe from a YAML file, as `aegis advise -o` writes it: `method:`, `options:`,
    `seed:` and `style:`.

    The recipe does not include the key `measure:`, which `aegis.policy.measure_of_choice` reads.
    `source` is the file's path, or the result of `aegis.policy.read_document`.

    Raises
    ------
    PolicyError
        The file is missing or is not YAML, a key is unknown, or `Recipe` refuses the content.
    """
    data = read_mapping(source, "recipe")
    path = source.origin if isinstance(source, Located) else source
    if "configurations" in data:
        raise PolicyError(
            f"{path} holds masking configurations, not the recipe of a record-level release.",
            hint="`aegis apply` masks a table with a configuration.",
        )
    for key in data:
        require_known(f"key of recipe {path}:", key, KEYS)
    method, options, seed = data.get("method"), data.get("options") or {}, data.get("seed")
    if not isinstance(method, str):
        raise PolicyError(
            f"{path} does not name a method.",
            hint=f"Write `method:` and one of: {', '.join(ANONYMIZERS.names())}.",
        )
    if not isinstance(options, dict) or not isinstance(seed, int | None) or (seed or 0) < 0:
        raise PolicyError(
            f"{path}: the options {options!r} or the seed {seed!r} cannot be read.",
            hint="Write options as {NAME: VALUE} and the seed as a whole number from 0.",
        )
    return Recipe(method, options, seed, data.get("style"))


def dump_recipe(recipe: Recipe, *, measure: str | None = None) -> str:
    """Return the recipe as YAML, which `load_recipe` reads.

    The seed is left out if the draws protect the table. `measure` is the measure that chose the
    recipe; `aegis.policy.measure_of_choice` reads it.
    """
    chosen = {} if measure is None else {"measure": measure}
    seed = {} if recipe.by_chance else {"seed": recipe.seed or 0}
    return write_mapping(chosen | recipe.to_dict() | seed)


def demanded_options(
    anonymizer: Anonymizer, policy: Policy, records: Records, options: Mapping[str, Any]
) -> dict[str, int]:
    """Return the k and l that the policy's rule requires, as far as the method can guarantee them.

    Methods guarantee l for all sensitive attributes together, so l is left out if one of them has
    fewer values. Suppression ensures all other requirements of the rule.
    """
    demanded = {}
    if policy.privacy.minimum_size >= MINIMUM_K:
        demanded["k"] = policy.privacy.minimum_size
    demands = ((criterion, criterion.model.values) for criterion in policy.privacy.criteria)
    least_values = [
        demand.needed(criterion[demand.parameter])
        for criterion, demand in demands
        if demand is not None and demand.parameter == "l"  # the option that methods have
    ]
    if not least_values or not anonymizer.diverse or _needs_strict(anonymizer, options):
        return demanded
    l = max(least_values)  # noqa: E741 - the field's term
    others = [a for a in records.sensitive if a.name not in policy.privacy.sensitive]
    if all(len(np.unique(a.codes)) >= l for a in others):
        demanded["l"] = max(l, anonymizer.options().l)
    return demanded


def _needs_strict(anonymizer: Anonymizer, options: Mapping[str, Any]) -> bool:
    """Return whether the method guarantees l only with its option `strict`, and this is not set."""
    return any(f.name == "strict" for f in fields(anonymizer.options)) and not options.get("strict")
