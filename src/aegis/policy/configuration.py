"""Define a configuration, which chooses one mask for each attribute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aegis.errors import PolicyError
from aegis.masks import Mask
from aegis.options import check_fields
from aegis.words import brief


@dataclass(frozen=True)
class Configuration:
    """A choice of one mask for each attribute.

    Attributes
    ----------
    name
        Name in the ranking.
    masks
        Masks by attribute. An attribute that is missing here gets its only candidate; if it has
        several, it gets `identity`.
    certificate
        Digest of the certificate from which the configuration was read; None for any other source.
    after
        The earlier releases that the certified release took into account; None if the configuration
        was not read from a certificate.
    certified
        Of the certified release: `rows` of its table, `suppressed_rows`, and its `rule`.

    Examples
    --------
    >>> import aegis
    >>> from aegis.masks import parse_mask
    >>> masks = {"age": parse_mask({"bucketize": {"width": 10}})}
    >>> aegis.Configuration("coarse", masks).name
    'coarse'
    """

    name: str
    masks: Mapping[str, Mask]
    certificate: str | None = None
    after: tuple[Mapping[str, Any], ...] | None = field(default=None, compare=False)
    certified: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        check_fields(self)
        for attribute, mask in self.masks.items():
            if not isinstance(mask, Mask):
                raise PolicyError(
                    f"The mask of {attribute!r} is {brief(mask)}, of type {type(mask).__name__}.",
                    hint=f"Give a mask: aegis.masks.parse_mask({mask!r}) reads it as in a policy.",
                )

    def spec(self) -> dict[str, Any]:
        """Return the masks as the mapping `{attribute: mask}` that a policy file would contain.

        Examples
        --------
        >>> import aegis
        >>> from aegis.masks import parse_mask
        >>> masks = {"age": parse_mask({"bucketize": {"width": 10}})}
        >>> aegis.Configuration("coarse", masks).spec()
        {'age': {'bucketize': {'width': 10}}}
        """
        return {attribute: mask.spec() for attribute, mask in self.masks.items()}


def required_mask(configuration: Configuration, attribute: str) -> Mask:
    """Return the mask of a scored attribute; raise `PolicyError` if the configuration has none."""
    mask = configuration.masks.get(attribute)
    if mask is None:
        raise PolicyError(
            f"Configuration {configuration.name!r} does not mask {attribute!r}.",
            hint="Name every scored attribute.",
        )
    return mask


def listed_configurations(configurations: object) -> tuple[Configuration, ...]:
    """Return the configurations of a mapping by name or of a sequence.

    Raises
    ------
    PolicyError
        The argument is neither a mapping nor a sequence.
    """
    listed = configurations.values() if isinstance(configurations, Mapping) else configurations
    if not isinstance(listed, Iterable) or isinstance(listed, str | bytes):
        raise _no_configuration(listed)
    every = tuple(listed)
    for configuration in every:
        if not isinstance(configuration, Configuration):
            raise _no_configuration(configuration)
    return every


def _no_configuration(value: object) -> PolicyError:
    return PolicyError(
        f"An object of type {type(value).__name__} is not a configuration.",
        hint="Allowed: configurations in a list, or in a mapping by name. If you have an entry of a "
        "ranking, give its `configuration`.",
    )
