"""Register the masks, and convert masks from and to their form in a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from typing import Any

from aegis.errors import PolicyError, require_known
from aegis.masks.base import Identity, Kind, Mask, Suppress
from aegis.masks.categories import Group, KeepFrequent
from aegis.masks.grouping import Compose
from aegis.masks.hierarchy import Hierarchy, Level
from aegis.masks.noise.categories import Pram, RandomisedResponse, Shuffle
from aegis.masks.noise.numbers import AddUniform, DateNoise, Geometric, Laplace, ScaleUniform
from aegis.masks.numeric import (
    BottomCode,
    Bucketize,
    EqualWidth,
    EraseDigits,
    Quantiles,
    Round,
    TopCode,
)
from aegis.masks.text import Blur, Tokenise, Truncate
from aegis.registry import Registry


@dataclass(frozen=True)
class MaskParameter:
    """A parameter of a mask, as help texts and the reference describe it."""

    name: str
    doc: str
    required: bool
    default: Any


@dataclass(frozen=True)
class MaskType:
    """A registered mask: its name in policies, and its class.

    Attributes
    ----------
    name
        The name in a policy.
    mask
        The class; its fields are the parameters.
    """

    name: str
    mask: type[Mask]

    @classmethod
    def of(cls, mask: type[Mask]) -> MaskType:
        """Return the registry entry for a mask class."""
        return cls(mask.name, mask)

    @property
    def summary(self) -> str:
        """One sentence on the effect of the mask."""
        return self.mask.summary

    @property
    def example(self) -> str:
        """An example of the mask in a policy, YAML."""
        return self.mask.example

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds of column that the mask works on, in the order of `Kind`."""
        return tuple(kind for kind in Kind if kind in self.mask.fits)

    @property
    def parameters(self) -> tuple[MaskParameter, ...]:
        """The parameters that a policy may write."""
        return tuple(
            MaskParameter(
                field.name,
                field.metadata.get("doc", ""),
                field.default is MISSING,
                None if field.default is MISSING else field.default,
            )
            for field in self.mask.declared()
        )


MASKS: Registry[MaskType] = Registry("mask")
"""All masks by name; a package adds a `MaskType` through the entry-point group `aegis.masks`."""

for _mask in (
    Identity,
    Suppress,
    Bucketize,
    EqualWidth,
    Quantiles,
    Round,
    TopCode,
    BottomCode,
    EraseDigits,
    Truncate,
    Blur,
    KeepFrequent,
    Group,
    Level,
    Compose,
    Tokenise,
    Laplace,
    Geometric,
    AddUniform,
    ScaleUniform,
    DateNoise,
    RandomisedResponse,
    Pram,
    Shuffle,
):
    MASKS.register(MaskType.of(_mask))


def parse_mask(
    spec: str | Mapping[str, Any], *, hierarchy: Hierarchy | None = None, where: str = ""
) -> Mask:
    """Return the mask that a policy writes as `spec`. This is the inverse of `Mask.spec`.

    Parameters
    ----------
    spec
        A name, or a mapping with one name and its parameters: `suppress`,
        `{bucketize: {width: 10}}`, `{level: 2}`, `{compose: [...]}`.
    hierarchy
        The attribute's hierarchy, for `level`.
    where
        Where in the policy the mask is written, for messages.

    Raises
    ------
    PolicyError
        The mask or a parameter is unknown (the nearest name is suggested), a parameter is missing
        or has the wrong type or range, or the hierarchy lacks the level.
    """
    try:
        return _parse(spec, hierarchy)
    except PolicyError as error:
        if not where:
            raise
        raise PolicyError(f"{where}: {error.message}", hint=error.hint) from error


def _parse(spec: object, hierarchy: Hierarchy | None) -> Mask:
    if isinstance(spec, str):
        spec = {spec: {}}
    if not isinstance(spec, Mapping) or len(spec) != 1:
        raise PolicyError(
            f"{spec!r} is not a mask.",
            hint="Write a name, as in `suppress`, or {name: {parameter: value}}, as in "
            "{bucketize: {width: 10}}.",
        )
    [(name, entry)] = spec.items()
    mask = MASKS.get(str(name)).mask
    if issubclass(mask, Compose):
        return _composed(mask, entry, hierarchy)
    if issubclass(mask, Level):
        values = _checked(mask, entry if isinstance(entry, Mapping) else {"level": entry})
        return mask(**values, hierarchy=hierarchy)
    return mask(**_checked(mask, {} if entry is None else entry))


def _checked(mask: type[Mask], parameters: object) -> dict[str, Any]:
    """Return the parameters by name; refuse unknown and missing ones."""
    names = [field.name for field in mask.declared()]
    if not isinstance(parameters, Mapping):
        raise PolicyError(
            f"Mask {mask.name!r} is given {parameters!r}, not a mapping of parameters.",
            hint=f"For example {mask.example}.",
        )
    for name in parameters:
        require_known(f"parameter of mask {mask.name!r}:", name, names)
    missing = [name for name in mask.required() if name not in parameters]
    if missing:
        raise PolicyError(
            f"Mask {mask.name!r} lacks the parameter {missing[0]!r}.",
            hint=f"For example {mask.example}.",
        )
    return {str(name): value for name, value in parameters.items()}


def _composed(mask: type[Compose], masks: object, hierarchy: Hierarchy | None) -> Compose:
    if isinstance(masks, Mapping):
        masks = _checked(mask, masks)["masks"]
    if not isinstance(masks, (list, tuple)) or len(masks) < 2:
        raise PolicyError(
            f"Mask {mask.name!r} is given {masks!r}, not a list of two or more masks.",
            hint=f"For example {mask.example}.",
        )
    return mask(tuple(_parse(spec, hierarchy) for spec in masks))
