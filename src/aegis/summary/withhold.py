"""Remove counts that no mask shows from a summary, before the summary is passed on. A cell is a set
of values that no candidate mask distinguishes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from aegis.arrays import Int32s, exact_sums
from aegis.errors import PolicyError, member
from aegis.masks import common_refinement
from aegis.summary.attributes import pool, ranges_of
from aegis.summary.cooccurrence import PairCounts, PartOfPairs, added_pairs
from aegis.summary.frequency import FrequencyTable
from aegis.summary.model import (
    AttributeSummary,
    Candidate,
    Domain,
    Information,
    SeveralSummaries,
    Summary,
)


def withhold(summary: Summary, information: Information | str) -> Summary:
    """Return the summary without the joint counts that the candidate masks do not need.

    Values of an attribute that no candidate mask distinguishes form one *cell* (an atom of all
    candidates). The summary then has counts, joint counts with the label, co-occurrences and
    classes for cells instead of values. Scores, rankings, searches and checks of the rule do not
    change, because they use nothing finer than cells. Comparisons with the unmasked table use the
    cells in place of the raw values. A cell may be finer than what a single candidate shows,
    because all candidates together determine it. The label and its classes do not change.

    Parameters
    ----------
    summary
        A summary with the raw joint counts.
    information
        What to keep for each attribute in addition to its cells. `histogram` keeps the number of
        rows of each value, `nothing` keeps only the list of values, and `raw` removes nothing.

    Raises
    ------
    PolicyError
        The summary no longer has the raw joint counts. Or an attribute has a noise mask, which
        needs these counts. Or `information` is not one of the three values.
    """
    information = member(Information, str(information), "information of a summary")
    if information is Information.RAW:
        return summary
    if summary.information is not Information.RAW:
        raise PolicyError(
            f"The summary already holds only {summary.information}.",
            hint="Summarise the table again.",
        )
    withheld, cells, moved = {}, {}, []
    for name, attribute in summary.attributes.items():
        _refuse_noise(attribute)
        cells[name] = common_refinement([c.groups for c in attribute.candidates])
        withheld[name], atoms = _coarse(attribute, cells[name], information, summary.max_levels)
        moved.append(atoms)
    return replace(
        summary,
        attributes=withheld,
        pairs=_coarser(summary.pairs, moved),
        frequency=_counted(summary.frequency, cells),
        several=None if summary.several is None else _of_labels(summary.several, information),
    )


def _of_labels(several: SeveralSummaries, information: Information) -> SeveralSummaries:
    tasks = [replace(task, summary=withhold(task.summary, information)) for task in several.tasks]
    return replace(several, tasks=tuple(tasks))


def _refuse_noise(attribute: AttributeSummary) -> None:
    for candidate in attribute.candidates:
        if candidate.noise is not None:
            raise PolicyError(
                f"To predict the result of mask {str(candidate.declared)!r} of {attribute.name!r}, Aegis "
                "needs the raw joint, which you want the summary to leave out.",
                hint="Leave noise masks out of the policy, or keep the raw joints.",
            )


def _coarse(
    attribute: AttributeSummary, cells: Int32s, information: Information, max_levels: int
) -> tuple[AttributeSummary, Int32s]:
    """Merge the values of an attribute into `cells`. Return the attribute, with the counts of
    single values that `information` keeps, and the new atom of each old atom.
    """
    if int(cells.max(initial=-1)) + 1 == len(attribute.values):
        return attribute, np.arange(attribute.n_atoms, dtype=np.int32)  # a candidate shows it all
    first = np.unique(cells, return_index=True)[1]
    size = len(first)
    counts = exact_sums(cells, attribute.counts, size)
    partitions = [c.levels for c in attribute.candidates]
    partitions += [c.ranges for c in attribute.candidates if c.ranges is not None]
    atoms = common_refinement(partitions)
    of_cell = atoms[attribute.atoms][first]
    first_of_atom = np.unique(atoms, return_index=True)[1]
    candidates = tuple(
        replace(
            c,
            groups=c.groups[first],
            levels=c.levels[first_of_atom],
            ranges=None if c.ranges is None else c.ranges[first_of_atom],
        )
        for c in attribute.candidates
    )
    value_counts = attribute.joint.sum(axis=1) if information is Information.HISTOGRAM else None
    unmasked = attribute.unmasked
    baseline = Candidate(
        unmasked.mask,
        unmasked.declared,
        np.arange(size, dtype=np.int32),
        attribute.values.take(first),
        pool(
            np.arange(len(first_of_atom), dtype=np.int32),
            exact_sums(of_cell, counts, len(first_of_atom)),
            max_levels,
        ),
        _baseline_ranges(attribute, atoms, max_levels),
    )
    coarse = replace(
        attribute,
        values=attribute.values.take(first),
        counts=counts,
        joint=np.stack([exact_sums(cells, column, size) for column in attribute.joint.T], axis=1),
        atoms=of_cell,
        candidates=candidates,
        unmasked=baseline,
        domain=Domain(attribute.values, cells, value_counts),
    )
    return coarse, atoms


def _baseline_ranges(attribute: AttributeSummary, atoms: Int32s, max_levels: int) -> Int32s | None:
    """Return the range of each new atom if the attribute is unmasked; None if its values have no
    order. `atoms` has the new atom of each old atom.
    """
    if not attribute.kind.ordered:
        return None
    of_value = atoms[attribute.atoms]
    ranges = ranges_of(of_value, attribute.counts, max_levels, attribute.values)
    return ranges[np.unique(of_value, return_index=True)[1]]


def _coarser(pairs: PairCounts, moved: Sequence[Int32s]) -> PairCounts:
    """Return the counts of pairs after atoms are merged; `moved` has the new atom of each old one."""
    sizes = tuple(int(atoms.max(initial=-1)) + 1 for atoms in moved)
    part = PartOfPairs(pairs, moved, np.arange(pairs.classes))
    return added_pairs([part], sizes, pairs.classes)


def _counted(
    frequency: FrequencyTable | None, cells: Mapping[str, Int32s]
) -> FrequencyTable | None:
    """Return the frequency table with cells in place of values, for the columns in `cells`."""
    if frequency is None:
        return None
    codes, representatives = {}, {}
    for name, cell_codes in frequency.codes.items():
        values = frequency.representatives[name]
        if name in cells:
            reached, position = np.unique(cells[name][values], return_inverse=True)
            codes[name] = position[cell_codes].astype(np.int32)
            representatives[name] = reached.astype(np.int32)
        else:
            codes[name], representatives[name] = cell_codes, values
    names = frequency.quasi, frequency.sensitive, frequency.label
    merged, _ = FrequencyTable.of(names, codes, representatives, frequency.counts)
    return replace(
        frequency, codes=merged.codes, counts=merged.counts, representatives=representatives
    )
