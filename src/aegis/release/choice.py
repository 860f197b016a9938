"""Which masks a release uses."""

from __future__ import annotations

from aegis.errors import PolicyError
from aegis.masks import Mask
from aegis.policy import Configuration, Policy, Role


def release_masks(policy: Policy, configuration: Configuration) -> dict[str, Mask | None]:
    """Return what becomes of each released column: its mask, or None where it is kept as it is.

    Identifiers are left out, unless the policy gives them a mask (`tokenise`), which is then
    used. The label is kept unless the policy masks it.

    Raises
    ------
    PolicyError
        The configuration leaves out a scored attribute.
    """
    masks: dict[str, Mask | None] = {}
    for attribute in policy.released():
        if attribute.role is Role.IDENTIFIER:
            masks[attribute.name] = attribute.masks[0]
        elif attribute.name in configuration.masks:
            masks[attribute.name] = configuration.masks[attribute.name]
        else:
            raise PolicyError(
                f"Configuration {configuration.name!r} does not mask {attribute.name!r}.",
                hint="Name every scored attribute.",
            )
    return policy.with_label(masks)
