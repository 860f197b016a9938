"""A record-level release in a ranking: its recipe and its cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aegis.anonymizers import InformationLoss, Recipe
    from aegis.privacy import PrivacyReport


@dataclass(frozen=True, eq=False)
class RecordLevel:
    """The recipe and the cost of a record-level release.

    Attributes
    ----------
    recipe
        Method, options and seed, all filled in: the same table gives the same release again.
    groups
        Groups of records.
    left_out
        Rows that the method itself left out.
    claims_k
        Whether the method promises that every released class has k rows.
    loss
        Information loss; it does not rank.
    seconds
        Time of the method alone.
    notes
        What a reader should know.
    report
        Privacy of the released rows; None if nothing is released.
    carried
        Mask of each column that is no quasi-identifier, as text.
    before
        Mask of each quasi-identifier that a mask shows before the method works on it, as text.
    held_out
        `held-out-pillai-values` of the release, where it was ranked by `adjusted-pillai`; else None.
    """

    recipe: Recipe
    groups: int
    left_out: int
    claims_k: bool
    loss: InformationLoss
    seconds: float
    notes: tuple[str, ...] = ()
    report: PrivacyReport | None = None
    carried: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)
    held_out: float | None = None

    @property
    def shown(self) -> str:
        """The method with its k, shown in place of a mask."""
        return f"{self.recipe.method}(k={self.recipe.options['k']})"

    def to_dict(self) -> dict[str, Any]:
        """Return all but the privacy report, as JSON values."""
        return {
            **self.recipe.to_dict(),
            "groups": self.groups,
            "left_out_rows": self.left_out,
            "claims_k": self.claims_k,
            "information_loss": asdict(self.loss),
            "seconds": self.seconds,
            "notes": list(self.notes),
        }
