"""Releases together: the classes that two or more of them form if their rows can be linked.

Two releases of one table, each k-anonymous, show two groupings of the same persons. Whoever can tell
which rows belong together (by columns that both release, by their order, by knowledge of the persons) sees
the common refinement of both, whose classes are smaller. The rule is held against those joint classes.

Rows that an earlier release left out count as if it had shown them. Suppression leaves out whole
classes, so that this only ever makes joint classes smaller: what is found admissible is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.advisor.plan import PrivacyPlan, require_same
from aegis.errors import DataError, PolicyError
from aegis.files import read_text
from aegis.masks import Mask, evaluate
from aegis.policy import Configuration, Policy, Role, load_configurations, read_document
from aegis.privacy import PrivacyRule, Verdict
from aegis.progress import SILENT, Progress
from aegis.sources import open_table
from aegis.summary import AttributeSummary, FrequencyTable, Summary, combine, summarize

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AttributeShare:
    """What joint classes would be if no release showed an attribute.

    Attributes
    ----------
    attribute
        Its name.
    suppressed_rows
        Rows in failing joint classes without it: how far it alone is the reason.
    """

    attribute: str
    suppressed_rows: int


@dataclass(frozen=True, eq=False)
class Composition:
    """What several releases of one table show together.

    Attributes
    ----------
    releases
        Their names.
    rows
        Rows of the table.
    classes
        Joint classes.
    alone
        Rows that are alone in their joint class.
    verdict
        What the rule says of the joint classes.
    each
        What it says of each release by itself.
    attributes
        Quasi-identifiers by how many rows would still fail without them, the most telling first.
    """

    releases: tuple[str, ...]
    rows: int
    classes: int
    alone: int
    verdict: Verdict
    each: tuple[Verdict, ...]
    attributes: tuple[AttributeShare, ...]

    @property
    def admissible(self) -> bool:
        """Whether the rule still holds for all of them together."""
        return self.verdict.admissible

    def to_dict(self) -> dict[str, Any]:
        """Return the documented JSON form (docs/reference/json.md)."""
        return {
            "releases": [
                {"name": name, "admissible": v.admissible, "suppressed_rows": v.suppressed_rows}
                for name, v in zip(self.releases, self.each, strict=True)
            ],
            "rows": self.rows,
            "classes": self.classes,
            "alone": self.alone,
            "admissible": self.admissible,
            "suppressed_rows": self.verdict.suppressed_rows,
            "allowed_rows": self.verdict.allowed_rows,
            "smallest_class": self.verdict.smallest_before,
            "violations": list(self.verdict.violations),
            "attributes": [
                {"attribute": a.attribute, "suppressed_rows": a.suppressed_rows}
                for a in self.attributes
            ],
        }


def read_release(path: str | Path, policy: Policy) -> Configuration:
    """Return the configuration of a release, from its certificate (JSON) or from YAML.

    Raises
    ------
    PolicyError
        The file holds several configurations, or masks that the policy's columns cannot have.
    DataError
        The certificate is damaged, or of a release that grouped records.
    """
    file = Path(path)
    if file.suffix.lower() == ".json":
        document = read_document(file, "configuration")
        said = _certificate(file)
        located = replace(document, data={"configurations": {file.stem: said}})
        found = load_configurations(located, policy)
    else:
        found = load_configurations(file, policy)
    if len(found) != 1:
        raise PolicyError(
            f"{file} holds {len(found)} configurations, and a release has one.",
            hint="Name a certificate, or a file with one configuration.",
        )
    return next(iter(found.values()))


def _certificate(file: Path) -> dict[str, Any]:
    """Return the masks that a certificate states."""
    try:
        document = json.loads(read_text(file, "certificate", DataError))
        masks = document["configuration"]["masks"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"{file} is no certificate of a masking configuration.",
            hint="Record-level releases have no masks, and cannot be composed.",
        ) from error
    return dict(masks)


def widened(policy: Policy, releases: Sequence[Configuration]) -> Policy:
    """Return the policy with the masks of releases among its candidates, so that both are counted."""
    attributes = dict(policy.attributes)
    for name, attribute in policy.attributes.items():
        own = (r.masks[name] for r in releases if name in r.masks)
        more = [m for m in dict.fromkeys(own) if m not in attribute.masks and m.deterministic]
        if more and attribute.role is Role.QUASI_IDENTIFIER:
            attributes[name] = replace(attribute, masks=(*attribute.masks, *more))
    return replace(policy, attributes=attributes)


def summary_after(
    table: Any,
    policy: Policy,
    releases: Sequence[Configuration],
    *,
    exact: bool = False,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Summary:
    """Return the summary of a table whose classes are those formed together with earlier releases.

    Ranking and search from it hold every configuration against the rule *beside* what is out already,
    with the same proof: classes only get finer, so that what was monotone stays so.

    Parameters
    ----------
    table
        Anything that `aegis.summarize` takes, or a `Summary`.
    policy
        Roles, candidate masks and the rule.
    releases
        What was released before.
    exact, seed, progress
        As of `aegis.summarize`.

    Raises
    ------
    PolicyError
        The rule is one whose verdict on joint classes says nothing of each release, or a summary
        knows the values of an attribute less well than an earlier release showed them.
    DataError
        The frequency table does not fit in memory.
    """
    _check_rule(policy)
    if isinstance(table, Summary):
        require_same(table, policy)
        return after(table, releases)
    wide = summarize(
        open_table(table, reading=policy.reading),
        widened(policy, releases),
        exact=exact,
        seed=seed,
        progress=progress,
    )
    return _narrowed(after(wide, releases), policy)


def _check_rule(policy: Policy) -> None:
    if policy.person is not None:
        raise PolicyError(
            "Releases are put together by rows, and the policy counts persons.",
            hint="Leave `person` out of the policy.",
        )
    if not policy.privacy.monotone:
        raise PolicyError(
            "The rule compares classes with the whole table, so that joint classes that meet it say "
            "nothing of a single release.",
            hint="Use criteria that coarser tables keep, such as k or l_diversity.",
        )


def _narrowed(summary: Summary, policy: Policy) -> Summary:
    """Return the summary with no other candidates than those of the policy."""
    attributes = {}
    for name, attribute in summary.attributes.items():
        own = len(policy.attributes[name].masks)
        attributes[name] = replace(attribute, candidates=attribute.candidates[:own])
    return replace(summary, attributes=attributes)


def after(summary: Summary, releases: Sequence[Configuration]) -> Summary:
    """Return a summary whose classes are told apart by what earlier releases showed, too."""
    frequency = _frequency(summary)
    codes = [_codes(summary, frequency, release) for release in releases]
    known = frequency.earlier
    columns = codes if known is None else [known, *codes]
    joint = np.unique(combine(columns, frequency.cells), return_inverse=True)[1].astype(np.int64)
    return replace(summary, frequency=replace(frequency, earlier=joint))


def _frequency(summary: Summary) -> FrequencyTable:
    if summary.frequency is None:
        raise DataError(
            "The frequency table of the quasi-identifiers is too large for memory, so that classes of "
            "several releases cannot be put together.",
            hint="Leave quasi-identifiers out, or give them coarser masks only.",
        )
    return summary.frequency


def _codes(summary: Summary, frequency: FrequencyTable, release: Configuration) -> Ints:
    """Return the class of each cell in one release, shape (cells,)."""
    columns = []
    for name in frequency.quasi:
        mask = release.masks.get(name)
        if mask is not None:
            groups = _groups(summary.attribute(name), mask, release.name)
            columns.append(groups[frequency.representatives[name]][frequency.codes[name]])
    return combine(columns, frequency.cells)


def _groups(attribute: AttributeSummary, mask: Mask, release: str) -> Ints:
    """Return what a mask shows alike of an attribute's values, shape (V,)."""
    for candidate in (*attribute.candidates, attribute.unmasked):
        if mask in (candidate.mask, candidate.declared):
            return candidate.groups.astype(np.int64)
    if not mask.deterministic:
        raise PolicyError(
            f"Release {release!r} masks {attribute.name!r} with noise, whose classes are a matter of "
            "chance.",
            hint="Releases with noise cannot be put together.",
        )
    if not getattr(mask, "fitted", True):
        raise PolicyError(
            f"Mask {mask} of {attribute.name!r} in release {release!r} is not fitted to its table.",
            hint="Give the certificate, or the configuration as it was released.",
        )
    [grouping] = evaluate([mask], attribute.values)
    for candidate in attribute.candidates:
        if _refines(candidate.groups, grouping.codes):
            return grouping.codes.astype(np.int64)
    raise PolicyError(
        f"Release {release!r} showed more of {attribute.name!r} ({mask}) than any candidate mask of "
        "the summary.",
        hint="Give the table itself, or add that mask to the policy and summarise again.",
    )


def _refines(finer: npt.NDArray[np.integer], coarser: npt.NDArray[np.integer]) -> bool:
    first = np.unique(finer, return_index=True)[1]
    return bool(np.array_equal(coarser[first][finer], coarser))


def compose(
    summary: Summary,
    releases: Sequence[Configuration],
    rule: PrivacyRule,
    hierarchies: Mapping[str, Any] | None = None,
) -> Composition:
    """Return what several releases of one table show together, held against a rule.

    Parameters
    ----------
    summary
        Of the table; `summary_of` makes one that knows all masks.
    releases
        Two or more configurations, as they were released.
    rule
        What joint classes must meet.
    hierarchies
        Hierarchies of protected attributes, for models that need them.

    Raises
    ------
    PolicyError
        Fewer than two releases, or one that cannot be put together.
    """
    if len(releases) < 2:
        raise PolicyError(
            f"{len(releases)} release was named.", hint="Name two or more to put together."
        )
    frequency = _frequency(summary)
    plan = _Joint(summary, frequency, rule, hierarchies or {})
    own = [plan.check([r]) for r in releases]
    ids = plan.ids(releases)
    sizes = np.bincount(np.unique(ids, return_inverse=True)[1], weights=frequency.counts).astype(
        np.int64
    )
    without = [
        AttributeShare(name, plan.check(releases, leave_out=name).suppressed_rows)
        for name in frequency.quasi
    ]
    without.sort(key=lambda share: (share.suppressed_rows, share.attribute))
    return Composition(
        releases=tuple(r.name for r in releases),
        rows=frequency.rows,
        classes=len(sizes),
        alone=int((sizes == 1).sum()),
        verdict=plan.check(releases),
        each=tuple(own),
        attributes=tuple(without),
    )


def summary_of(
    table: Any, policy: Policy, releases: Sequence[Configuration], progress: Progress = SILENT
) -> Summary:
    """Return a summary of a table that knows the masks of all releases."""
    _check_rule(policy)
    if isinstance(table, Summary):
        require_same(table, policy)
        return table
    source = open_table(table, reading=policy.reading)
    return summarize(source, widened(policy, releases), sample_rows=1, progress=progress)


class _Joint:
    """Verdicts on the classes of several releases."""

    def __init__(
        self,
        summary: Summary,
        frequency: FrequencyTable,
        rule: PrivacyRule,
        hierarchies: Mapping[str, Any],
    ) -> None:
        self.summary, self.frequency, self.rule = summary, frequency, rule
        self.plan = PrivacyPlan(summary, rule, hierarchies=hierarchies)
        self._known: dict[tuple[int, str], Ints] = {}

    def ids(self, releases: Sequence[Configuration], leave_out: str | None = None) -> Ints:
        """Return the joint class of each cell, shape (cells,)."""
        columns = []
        for release in releases:
            kept = {n: m for n, m in release.masks.items() if n != leave_out}
            columns.append(_codes(self.summary, self.frequency, Configuration(release.name, kept)))
        return combine(columns, self.frequency.cells)

    def check(self, releases: Sequence[Configuration], leave_out: str | None = None) -> Verdict:
        """Return what the rule says of joint classes, protected values as fine as any release."""
        ids = self.ids(releases, leave_out)
        frequency = self.frequency
        cells = {}
        for name in self.rule.sensitive:
            groups, labels = (
                self.plan.protected(name, {})
                if name not in self.summary.attributes
                else (self.summary.attributes[name].unmasked.in_order)
            )
            cells[name] = (groups[frequency.representatives[name]][frequency.codes[name]], labels)
        return self.rule.check(frequency.count(ids, cells))
