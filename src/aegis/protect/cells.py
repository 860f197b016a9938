"""The exact cells behind a protected summary: they stay in this process."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from aegis.errors import PolicyError
from aegis.masks import Kind, Mask, ValueCounts, common_refinement, evaluate
from aegis.policy import Role
from aegis.protect.model import ProtectedCandidate
from aegis.summary import AttributeSummary, Summary

Ints = npt.NDArray[np.int64]
UNNAMED = -1
"""Cell of a value that belongs to none."""
UNNAMED_SHOWN = "(values not named)"
"""What a protected summary calls the group of values that it must not name."""


@dataclass(frozen=True, eq=False)
class Cells:
    """What all candidate masks together tell apart of one attribute, with exact counts.

    Attributes
    ----------
    name, role, kind, weight
        As of the attribute.
    of_value
        Cell of each distinct value, shape (V,); `UNNAMED` where it has none.
    joint
        Labelled rows per cell and class, shape (K, C).
    candidates
        The candidate masks and their groups of cells.
    public
        Whether the names of all cells are known without the table.
    """

    name: str
    role: Role
    kind: Kind
    weight: float
    of_value: Ints
    joint: Ints
    candidates: tuple[ProtectedCandidate, ...]
    public: bool = True

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.joint)

    @property
    def has_unnamed(self) -> bool:
        """Whether names of cells were to be bought, so that there may be values without one."""
        return not self.public

    def keep(self, chosen: npt.NDArray[np.bool_]) -> Cells:
        """Return the cells that `chosen` (K,) selects; values of the others have none."""
        place = np.where(chosen, np.cumsum(chosen) - 1, UNNAMED)
        named = self.of_value >= 0
        of_value = np.where(named, place[np.where(named, self.of_value, 0)], UNNAMED)
        return replace(
            self,
            of_value=of_value,
            joint=self.joint[chosen],
            candidates=tuple(_shrunk(c, c.groups[chosen]) for c in self.candidates),
        )

    def join(self, target: Ints) -> Cells:
        """Return cells of which each goes into the cell `target` (K,), which stays itself."""
        stays = target == np.arange(self.count)
        place = (np.cumsum(stays) - 1)[target]
        joint = np.zeros((int(stays.sum()), self.joint.shape[1]), dtype=np.int64)
        np.add.at(joint, place, self.joint)
        named = self.of_value >= 0
        of_value = np.where(named, place[np.where(named, self.of_value, 0)], UNNAMED)
        return replace(
            self,
            of_value=of_value,
            joint=joint,
            candidates=tuple(_shrunk(c, c.groups[stays]) for c in self.candidates),
        )


def _shrunk(candidate: ProtectedCandidate, groups: Ints) -> ProtectedCandidate:
    """Return a candidate with only the groups that are left, renumbered."""
    left, renumbered = np.unique(groups, return_inverse=True)
    return replace(
        candidate,
        groups=renumbered.astype(np.int64),
        shown=tuple(candidate.shown[i] for i in left.tolist()),
    )


def with_unnamed(candidate: ProtectedCandidate, table: Ints) -> ProtectedCandidate:
    """Return a candidate with one more cell, that of all unnamed values.

    Where the mask tells all named cells apart it tells the unnamed ones from them, too. A coarser
    mask puts them somewhere among its groups: into the largest one, so that its score says no more
    than it keeps.

    Parameters
    ----------
    candidate
        A mask of the attribute.
    table
        Rows per named cell and class, shape (K, C).
    """
    if candidate.size in (0, len(table)) and len(table) != 1:
        group, shown = candidate.size, (*candidate.shown, UNNAMED_SHOWN)
    else:
        rows = np.bincount(candidate.groups, weights=table.sum(axis=1))
        group, shown = int(rows.argmax()), candidate.shown
    return replace(candidate, groups=np.append(candidate.groups, group), shown=shown)


def check_summary(summary: Summary) -> None:
    """Raise `PolicyError` where a summary has what a protected one cannot hold."""
    if summary.label_attribute is not None:
        raise PolicyError(
            f"The label {summary.label.column!r} has candidate masks of its own, which a protected "
            "summary cannot hold.",
            hint="Give the label no role in the policy.",
        )
    for attribute in summary.attributes.values():
        for candidate in attribute.candidates:
            if candidate.noise is not None:
                raise PolicyError(
                    f"What mask {str(candidate.declared)!r} of {attribute.name!r} will show is "
                    "computed from exact counts, which a protected summary does not hold.",
                    hint="Leave noise masks out of the policy.",
                )


def learned(attribute: AttributeSummary) -> bool:
    """Whether a candidate of the attribute learns from the data."""
    return any(c.mask != c.declared for c in attribute.candidates)


def cells_of(attribute: AttributeSummary, masks: Sequence[Mask] | None = None) -> Cells:
    """Return the cells of an attribute under its candidates, or under newly fitted ones.

    Parameters
    ----------
    attribute
        The exact attribute.
    masks
        In place of each candidate's mask the same one fitted to other counts.
    """
    listed = attribute.candidates
    if masks is None:
        groupings = [(c.mask, c.groups, c.labels) for c in listed]
    else:
        evaluated = evaluate(list(masks), attribute.values)
        groupings = [(m, g.codes, g.labels) for m, g in zip(masks, evaluated, strict=True)]
    of_value = common_refinement([groups for _, groups, _ in groupings]).astype(np.int64)
    first = np.unique(of_value, return_index=True)[1]
    joint = np.zeros((len(first), attribute.joint.shape[1]), dtype=np.int64)
    np.add.at(joint, of_value, attribute.joint)
    candidates = tuple(
        ProtectedCandidate(mask, candidate.declared, groups[first].astype(np.int64), labels)
        for candidate, (mask, groups, labels) in zip(listed, groupings, strict=True)
    )
    return Cells(
        attribute.name,
        attribute.role,
        attribute.kind,
        attribute.weight,
        of_value=of_value,
        joint=joint,
        candidates=tuple(_shrunk(c, c.groups) for c in candidates),
    )


def fit_to(attribute: AttributeSummary, counts: Ints, named: npt.NDArray[np.bool_]) -> list[Mask]:
    """Return the candidates' masks fitted to protected counts of the named values, (V,) each."""
    import pyarrow as pa

    values = attribute.values.filter(pa.array(named.tolist(), pa.bool_()))
    data = ValueCounts(attribute.kind, values, np.maximum(counts[named], 0))
    return [candidate.declared.fit(data) for candidate in attribute.candidates]


def public_names(given: Collection[str], summary: Summary) -> frozenset[str]:
    """Return which attributes are public; `*` stands for all.

    Raises
    ------
    PolicyError
        A name is no scored attribute.
    """
    if "*" in given:
        return frozenset(summary.attributes)
    for name in given:
        if name not in summary.attributes:
            raise PolicyError.unknown("attribute", name, summary.attributes)
    return frozenset(given)


def without_small(cells: Cells, threshold: int) -> Cells:
    """Return cells of at least `threshold` rows each: smaller ones join the most similar one.

    A smaller cell, whose very name would tell that somebody has its values, goes to the cell that
    most candidates treat like it, the largest of them; under the others it counts as what that
    one shows. The attribute has no cell where the table has fewer rows than the threshold.
    """
    totals = cells.joint.sum(axis=1)
    groups = np.array([c.groups for c in cells.candidates], dtype=np.int64)
    into = np.arange(cells.count)
    stays = np.ones(cells.count, dtype=bool)
    while True:
        small = np.flatnonzero(stays & (totals < threshold))
        if not small.size:
            break
        if stays.sum() == 1:
            return cells.keep(totals >= threshold)
        cell = int(small[np.argmin(totals[small])])
        goal = _most_alike(groups, totals, cell, stays)
        totals[goal] += totals[cell]
        into[into == cell] = goal
        stays[cell] = False
    return cells if stays.all() else cells.join(into)


def _most_alike(groups: Ints, totals: Ints, cell: int, stays: npt.NDArray[np.bool_]) -> int:
    """Return the cell that most candidates treat like one, the largest of them.

    Parameters
    ----------
    groups
        Group of each cell under each candidate, shape (G, K).
    totals, stays
        Rows of each cell, and whether it may be taken, shape (K,).
    """
    alike = (groups == groups[:, [cell]]).sum(axis=0)
    alike[~stays] = -1
    alike[cell] = -1
    return int(np.lexsort((totals, alike))[-1])


def join_similar(cells: Cells, cell: int) -> Cells:
    """Return cells of which one goes to that which most candidates treat like it, the largest."""
    groups = np.array([c.groups for c in cells.candidates], dtype=np.int64)
    totals = cells.joint.sum(axis=1)
    target = np.arange(cells.count)
    target[cell] = _most_alike(groups, totals, cell, np.ones(cells.count, dtype=bool))
    return cells.join(target)
