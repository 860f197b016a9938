"""Choose the configuration and the masks of a release."""

from __future__ import annotations

from collections.abc import Mapping

from aegis.advisor import Advice, Ranked
from aegis.errors import PolicyError
from aegis.masks import Mask, Suppress, parts_of
from aegis.policy import Configuration, OwnerRule, Policy, Role, SuppressedColumns


def configuration_under(given: Configuration | Ranked | Advice, policy: Policy) -> Configuration:
    """Return a configuration; raise `PolicyError` if the owner of the summary that it was chosen
    from has another rule than the policy.
    """
    configuration, _, owner = configuration_to_apply(given)
    if owner is not None:
        what = f"The summary that {configuration.name!r} was chosen from"
        owner.require(policy.privacy, override=False, what=what)
    return configuration


def configuration_to_apply(
    given: Configuration | Ranked | Advice,
) -> tuple[Configuration, str | None, OwnerRule | None]:
    """Return a configuration, the measure that chose it, and the owner's rule of its summary.

    The measure and the rule are None if they are not known.

    Raises
    ------
    NoAdmissibleConfiguration
        The advice has no admissible configuration.
    PolicyError
        `given` has another type, or the best entry is a record-level release, which has no masks.
    """
    if isinstance(given, Configuration):
        return given, None, None
    if not isinstance(given, Ranked | Advice):
        raise PolicyError(
            f"{given!r} is not a configuration.",
            hint="Give the advice, an entry of its ranking, or one of "
            "aegis.load_configurations(path, policy).",
        )
    measure, owner = None, None
    if isinstance(given, Advice):
        measure, owner, given = given.measure, given.owner_rule, given.require_best()
    elif given.utility is not None:
        measure = given.utility.measure
    if given.method is not None:
        raise PolicyError(
            f"{given.name} is a record-level release, so it has no masks to apply.",
            hint="Give its recipe to `anonymize`.",
        )
    return given.configuration, measure, owner


def release_masks(policy: Policy, configuration: Configuration) -> dict[str, Mask | None]:
    """Return the mask of each released column, or None for columns that are not changed.

    Identifiers are left out, unless the policy gives them a mask (`tokenise`). The label is not
    changed unless the policy masks it.

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
        elif attribute.name == policy.label.column and policy.label_mask is not None:
            masks[attribute.name] = policy.label_mask
        else:
            raise PolicyError(
                f"Configuration {configuration.name!r} does not mask {attribute.name!r}.",
                hint="Name every scored attribute.",
            )
    return policy.with_label(masks)


def hidden_columns(policy: Policy, masks: Mapping[str, Mask | None]) -> tuple[str, ...]:
    """Return the columns that a release omits because their mask suppresses every value.

    The result is empty if the policy fills such columns with `*`. Columns that the rule protects
    are not omitted, because an audit measures them. If the release would have no other columns,
    none is omitted.
    """
    if policy.suppressed_columns is SuppressedColumns.FILL:
        return ()
    hidden = tuple(
        name
        for name, mask in masks.items()
        if isinstance(mask, Suppress) and name not in policy.privacy.sensitive
    )
    return hidden if len(hidden) < len(masks) else ()


def learnt_bounds(masks: Mapping[str, Mask], rows: int) -> dict[str, str]:
    """Return, for each column, sentences on the values that the learnt bounds of its mask reveal.

    Only columns whose masks learn bounds from the data are included. Each bound is shared by `rows`
    rows.
    """
    return {
        name: " ".join(dict.fromkeys(learns))
        for name, mask in masks.items()
        if (learns := [m.learns.format(rows=rows) for m in parts_of(mask) if m.learns])
    }
