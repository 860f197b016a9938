"""Hold the details of a record-level release in a ranking: its recipe and its losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aegis.anonymizers import InformationLoss, Recipe
    from aegis.privacy import PrivacyReport


@dataclass(frozen=True, eq=False)
class RecordLevel:
    """How a record-level release was made, and how much information it loses.

    Attributes
    ----------
    recipe
        Method, all options and seed, so that the same table gives the same release.
    groups
        Number of groups of records.
    left_out
        Number of rows that the method left out.
    claims_k
        Whether the method promises that every released class has k rows.
    loss
        Information loss; it is not used for ranking.
    seconds
        Time that the method took, without scores and checks.
    notes
        Notes for the reader.
    report
        Privacy of the released rows; None if nothing is released.
    carried
        Mask of each column that is not a quasi-identifier, as text.
    before
        Mask of each quasi-identifier that is masked before the method runs, as text.
    held_out
        The score by `held-out-pillai-values`, if the release was ranked by `adjusted-pillai`; else
        None.
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
        """The method and its k, which reports show in the place of masks."""
        return f"{self.recipe.method}(k={self.recipe.options['k']})"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields except the privacy report as JSON values."""
        return {
            **self.recipe.to_dict(),
            "groups": self.groups,
            "left_out_rows": self.left_out,
            "claims_k": self.claims_k,
            "information_loss": asdict(self.loss),
            "seconds": self.seconds,
            "notes": list(self.notes),
        }
