"""Add to a table the columns of its earlier releases, with their masked values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aegis.errors import PolicyError
from aegis.masking import fit_masks
from aegis.masks import Mask, NoiseMask
from aegis.policy import Configuration, Policy
from aegis.policy.terms import made_after, require_joint_rule, require_same_table
from aegis.sources import Source
from aegis.summary.classes import ShownColumns

PREFIX = "aegis earlier"
"""Prefix of the names of columns that show the values of an earlier release."""


@dataclass(frozen=True, eq=False)
class WithEarlier:
    """A table with additional columns that show the masked values of its earlier releases.

    Attributes
    ----------
    source
        The table, with an additional copy of each quasi-identifier for each earlier release.
    masks
        The mask of each column, including the copies.
    releases
        The added columns of each earlier release, in order. They divide rows into classes, but the
        new release does not contain them.
    """

    source: Source
    masks: Mapping[str, Mask | None]
    releases: tuple[ShownColumns, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the added copies, by which rows form the joint classes."""
        return tuple(name for release in self.releases for name in release.quasi)

    @property
    def protected(self) -> tuple[str, ...]:
        """The names of the added copies of columns whose values the rule protects."""
        return tuple(name for release in self.releases for name in release.sensitive.values())

    @classmethod
    def of(
        cls,
        source: Source,
        policy: Policy,
        masks: Mapping[str, Mask | None],
        releases: Sequence[Configuration],
    ) -> WithEarlier:
        """Add to the table `source` the masked columns of its earlier `releases`. `masks` are the
        masks of the new release.

        Raises
        ------
        PolicyError
            The rule cannot be checked on the joint classes of several releases, or a release has
            noise.
        """
        if not releases:
            return cls(source, masks)
        _check(policy, masks, releases)
        require_same_table(releases, source.rows)
        copies: dict[str, str] = {}
        earlier: dict[str, Mask | None] = {}
        columns = []
        for number, (release, after) in enumerate(zip(releases, made_after(releases), strict=True)):
            quasi = [a.name for a in policy.quasi_identifiers if a.name in release.masks]
            protected = policy.privacy.sensitive
            masks_shown = {n: release.masks.get(n, masks.get(n)) for n in (*quasi, *protected)}
            copy_names = {name: f"{PREFIX} {number} {name}" for name in masks_shown}
            for name, mask in fit_masks(source, masks_shown, policy.shared_rows).items():
                copies[copy_names[name]] = name
                earlier[copy_names[name]] = mask
            columns.append(
                ShownColumns(
                    tuple(copy_names[name] for name in quasi),
                    {name: copy_names[name] for name in protected},
                    after,
                    release,
                )
            )
        return cls(source.with_copies(copies), {**masks, **earlier}, tuple(columns))


def _check(
    policy: Policy, masks: Mapping[str, Mask | None], releases: Sequence[Configuration]
) -> None:
    require_joint_rule(policy)
    every = [*masks.values(), *(m for r in releases for m in r.masks.values())]
    if any(isinstance(mask, NoiseMask) for mask in every):
        raise PolicyError(
            "Aegis cannot check releases with noise together, because their classes depend on chance.",
            hint="Choose masks without noise.",
        )
