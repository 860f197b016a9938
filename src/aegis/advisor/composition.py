"""Check releases together: the classes that several releases form if their rows can be linked.

Two releases of one table, each k-anonymous, show two groupings of the same persons. An attacker may
link their rows by shared columns, by their order, or by knowledge of the persons. The attacker then
sees the common refinement of both groupings, whose classes are smaller. Aegis checks the rule on
these joint classes.

A missing row is information, too: rows that are in one release but not in another form separate
classes. Aegis processes releases in the order in which they were made. The certificate of a release
names the earlier releases that it took into account. Such a release also suppressed the rows that
`PrivacyRule.check` suppresses because of them. If a release took no earlier one into account, every
joint class must meet the rule, because it is too late to suppress rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from aegis.advisor.plan import PrivacyPlan, check_owner_rule, require_same
from aegis.arrays import Integers, Ints
from aegis.errors import DataError, PolicyError
from aegis.files import SILENT, TABLE_FORMATS, Progress, read_text
from aegis.masks import Mask, evaluate
from aegis.policy import (
    Configuration,
    Policy,
    Role,
    RuleOverride,
    load_configurations,
    read_document,
)
from aegis.policy.terms import (
    made_after,
    require_as_certified,
    require_joint_rule,
    require_same_table,
    rule_of,
)
from aegis.privacy import ClassTable, PrivacyRule, Verdict, joined, released_cells, traces
from aegis.signing import sealed_digest
from aegis.sources import open_table
from aegis.summary import AttributeSummary, FrequencyTable, Summary, combine, summarize
from aegis.words import joined as joined_words
from aegis.words import json_fields


@dataclass(frozen=True)
class AttributeShare:
    """The number of rows in failing joint classes (rows that look equal in every release) if no
    release showed one of the attributes.
    """

    attribute: str
    suppressed_rows: int


@dataclass(frozen=True, eq=False)
class Composition:
    """The result of checking whether several releases of one table together meet a rule. A joint
    class has the rows that look equal in every release.

    Attributes
    ----------
    releases
        Names of the releases.
    rows, classes, alone
        The numbers of rows, of joint classes, and of rows that are alone in theirs.
    verdict, each
        Whether the joint classes, and those of each release, meet the rule, and how many rows fail.
    attributes
        For each quasi-identifier, the number of rows that would still fail without it; the smallest
        number comes first.
    rule_override
        How the rule differs from the rule of the summary's owner; None if it does not differ.
    """

    releases: tuple[str, ...]
    rows: int
    classes: int
    alone: int
    verdict: Verdict
    each: tuple[Verdict, ...]
    attributes: tuple[AttributeShare, ...]
    rule_override: RuleOverride | None = None

    @property
    def admissible(self) -> bool:
        """Whether all releases together meet the rule after the failing rows are suppressed."""
        return self.verdict.admissible

    @property
    def holds(self) -> bool:
        """Whether every joint class meets the rule without any suppression."""
        return self.verdict.suppressed_rows == 0

    @property
    def breaking(self) -> tuple[str, ...]:
        """The quasi-identifiers without which fewer rows would fail, those with the largest effect
        first.
        """
        failing = self.verdict.suppressed_rows
        return tuple(a.attribute for a in self.attributes if a.suppressed_rows < failing)

    def to_dict(self) -> dict[str, Any]:
        """Return the result in the JSON form that docs/reference/json.md documents."""
        return {
            "releases": [
                {"name": name, **json_fields(v, "admissible", "suppressed_rows")}
                for name, v in zip(self.releases, self.each, strict=True)
            ],
            **json_fields(self, "rows", "classes", "alone", "admissible"),
            **json_fields(self.verdict, "suppressed_rows", "allowed_rows"),
            **json_fields(self.verdict, "smallest_class=smallest_before", "violations"),
            **json_fields(self, "attributes", "rule_override"),
        }


def read_release(path: str | Path, policy: Policy) -> Configuration:
    """Read the configuration of a release from its certificate (JSON) or from a YAML file. `policy`
    names the columns that the masks must fit.

    Raises
    ------
    PolicyError
        The path is a folder or a table; or the file has several configurations, or masks that do
        not fit the policy's columns.
    DataError
        The certificate is damaged, or belongs to a record-level release.
    """
    file, digest, after = Path(path), None, None
    certified: Mapping[str, Any] = {}
    if file.is_dir() or (file.is_file() and file.name.lower().endswith(TABLE_FORMATS)):
        raise PolicyError(
            f"{file} is a {'folder' if file.is_dir() else 'table'}, not the certificate or the "
            "configuration of a release.",
            hint="Give the certificate of the release, which `aegis apply --certificate` wrote (.json), "
            "or the configuration that was applied (.yaml).",
        )
    if file.suffix.lower() == ".json":
        document = read_document(file, "certificate")
        masks, digest, after, certified = _certificate(file, policy)
        located = replace(document, data={"configurations": {file.stem: masks}})
        configurations = load_configurations(located, policy)
    else:
        configurations = load_configurations(file, policy)
    if len(configurations) != 1:
        raise PolicyError(
            f"{file} has {len(configurations)} configurations, but a release has one.",
            hint="Name a certificate, or a file with one configuration.",
        )
    chosen = next(iter(configurations.values()))
    return replace(chosen, certificate=digest, after=after, certified=certified)


def _certificate(
    file: Path, policy: Policy
) -> tuple[dict[str, Any], str, tuple[Mapping[str, Any], ...], Mapping[str, Any]]:
    """Return the masks in a certificate for the columns of `policy`, its digest, the earlier
    releases that it lists, and `Configuration.certified`.
    """
    try:
        document = json.loads(read_text(file, "certificate", DataError))
        masks = _masks_under(policy, dict(document["configuration"]["masks"]), document)
        elsewhere = list(document["configuration"].get("learnt_elsewhere", ()))
        after = tuple(map(dict, document.get("after", ())))
        certified = certified_rows(document)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"{file} is not a certificate of a masking configuration.",
            hint="Give a certificate by `aegis apply`. Record-level releases have no masks, so Aegis "
            "cannot check them together.",
        ) from error
    digest = sealed_digest(document)
    if document.get("digest", digest) != digest:
        raise DataError(
            f"{file} was changed after it was written: its digest does not match its content.",
            hint="Give the certificate as `aegis apply` wrote it, or the configuration (YAML).",
        )
    if elsewhere:
        raise DataError(
            f"{file} does not list the values that the masks of {joined_words(elsewhere)} show, because they "
            "learnt them from another table, and the release does not show all of them.",
            hint="Give the configuration that you applied (YAML) instead of the certificate.",
        )
    return masks, digest, after, certified


def _masks_under(
    policy: Policy, masks: Mapping[str, Any], document: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the masks of a certificate for a policy that may have another label.

    The certificate states no mask for the label of its release, which showed the label. This policy
    needs no mask for a column that it does not score, such as its own label.
    """
    certified_policy = dict(document.get("policy", {}))
    entries, tasks = dict(certified_policy.get("attributes", {})), certified_policy.get("labels")
    tasks = tasks if isinstance(tasks, list) else [certified_policy.get("label")]
    labels = [task["column"] if isinstance(task, Mapping) else task for task in tasks]
    label_masks = {
        name: dict(entries.get(name, {})).get("masks", ["identity"]) for name in labels if name
    }
    scored = {a.name for a in policy.attributes.values() if a.scored}
    unscored = {*policy.attributes, *policy.label.columns} - scored
    labels_then = {n: m[0] for n, m in label_masks.items() if n in scored and len(m) == 1}
    return labels_then | {name: mask for name, mask in masks.items() if name not in unscored}


def certified_rows(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows of the table, the suppressed rows and the rule that a certificate states. A
    number that it does not state is None; a rule that it does not state requires nothing.


    Raises
    ------
    TypeError, ValueError
        The document is not a certificate.
    PolicyError
        The rule is not valid.
    """
    rows, lost = dict(document.get("input", {})).get("rows"), document.get("suppressed_rows")
    if not (isinstance(rows, int | None) and isinstance(lost, int | None)):
        raise TypeError(f"{rows!r} or {lost!r} is no number of rows")
    rule = rule_of(dict(document.get("policy", {})).get("privacy"))
    return {"rows": rows, "suppressed_rows": lost, "rule": rule}


def widened(policy: Policy, releases: Sequence[Configuration]) -> Policy:
    """Return a copy of the policy that also has the masks of the given releases as candidates."""
    attributes = dict(policy.attributes)
    for name, attribute in policy.attributes.items():
        applied = (r.masks[name] for r in releases if name in r.masks)
        more = [m for m in dict.fromkeys(applied) if m not in attribute.masks and m.deterministic]
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
    """Summarise a table (anything that `aegis.summarize` accepts, or a `Summary`) with equivalence
    classes that also distinguish the values that earlier releases showed.

    Ranking and search then check each configuration together with all earlier releases. Proofs that
    a configuration is the best stay valid.

    Raises
    ------
    PolicyError
        The rule does not support joint classes of several releases, or the values of an attribute
        in the summary are coarser than in an earlier release.
    DataError
        The frequency table does not fit in memory.
    """
    require_joint_rule(policy)
    if isinstance(table, Summary):
        require_same(table, policy)
        return after(table, releases, policy)
    wide = summarize(
        open_table(table, reading=policy.reading),
        widened(policy, releases),
        exact=exact,
        seed=seed,
        progress=progress,
    )
    return _narrowed(after(wide, releases, policy), policy)


def _narrowed(summary: Summary, policy: Policy) -> Summary:
    """Return a copy of the summary without the candidate masks that the policy does not list."""
    attributes = {}
    for name, attribute in summary.attributes.items():
        count = len(policy.attributes[name].masks)
        attributes[name] = replace(attribute, candidates=attribute.candidates[:count])
    return replace(summary, attributes=attributes)


def after(summary: Summary, releases: Sequence[Configuration], policy: Policy) -> Summary:
    """Return a copy of the summary whose classes also distinguish the values that earlier releases
    showed.
    """
    require_same_table(releases, summary.rows)
    frequency = _frequency(summary)
    joint = _Joint(summary, policy.privacy, policy.protected_hierarchies)
    earlier = joint.trace(releases, start=frequency.earlier)
    return replace(summary, frequency=replace(frequency, earlier=earlier))


def _frequency(summary: Summary) -> FrequencyTable:
    if summary.frequency is None:
        raise DataError(
            "The frequency table of the quasi-identifiers is too large for memory, so Aegis cannot "
            "combine the classes of several releases.",
            hint="Leave quasi-identifiers out, or give them coarser masks only.",
        )
    return summary.frequency


def _codes(summary: Summary, frequency: FrequencyTable, release: Configuration) -> Ints:
    """Return the equivalence class of each cell (combination of values) in one release, shape
    (cells,).
    """
    columns = []
    for name in frequency.quasi:
        mask = release.masks.get(name)
        if mask is not None:
            groups = _groups(summary.attribute(name), mask, release.name)
            columns.append(groups[frequency.representatives[name]][frequency.codes[name]])
    return combine(columns, frequency.cells)


def _groups(attribute: AttributeSummary, mask: Mask, release: str) -> Ints:
    """Return the group of each of the attribute's values under a mask, shape (V,). `release` is the
    name for error messages.

    Raises
    ------
    PolicyError
        The mask adds noise or is not fitted, or the summary's values are too coarse for it.
    """
    for candidate in (*attribute.candidates, attribute.unmasked):
        if mask in (candidate.mask, candidate.declared):
            return candidate.groups.astype(np.int64)
    if not mask.deterministic:
        raise PolicyError(
            f"Release {release!r} masks {attribute.name!r} with noise, so its classes depend on chance.",
            hint="Leave this release out: Aegis cannot check releases with noise together.",
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


def _refines(finer: Integers, coarser: Integers) -> bool:
    first = np.unique(finer, return_index=True)[1]
    return bool(np.array_equal(coarser[first][finer], coarser))


def compose(
    summary: Summary,
    releases: Sequence[Configuration],
    rule: PrivacyRule,
    hierarchies: Mapping[str, Any] | None = None,
    *,
    released_only: bool = False,
    rule_override: bool = False,
) -> Composition:
    """Check whether the classes that several releases of one table form together meet a rule.

    Parameters
    ----------
    summary
        The summary of the table; `summary_of` makes one with all masks.
    releases
        Two or more configurations, in the order in which they were released.
    rule
        The rule that joint classes must meet.
    hierarchies
        Hierarchies of protected attributes by name, for privacy models that need them.
    released_only
        Whether to ignore the earlier releases that certificates name.
    rule_override
        Whether to accept a rule that differs from the rule of the summary's owner.

    Raises
    ------
    PolicyError
        There are fewer than two releases, some cannot be combined, or the owner's rule differs.
    DataError
        The classes are unknown: they are too many for memory, or the policy counts persons.
    """
    if len(releases) < 2:
        raise PolicyError(
            f"A check of releases together needs at least two, and you named {len(releases)}.",
            hint="Name two or more releases of the table.",
        )
    require_same_table(releases, summary.rows)
    override = check_owner_rule(summary, rule, override=rule_override)
    joint = _Joint(summary, rule, hierarchies or {})
    each = [joint.check([release]) for release in releases]
    if released_only:
        releases = [replace(release, after=()) for release in releases]
    verdict, sizes = joint.judged(releases)
    without = [
        AttributeShare(name, joint.judged(releases, leave_out=name)[0].suppressed_rows)
        for name in joint.frequency.quasi
    ]
    without.sort(key=lambda share: (share.suppressed_rows, share.attribute))
    return Composition(
        releases=tuple(r.name for r in releases),
        rows=int(sizes.sum()),
        classes=len(sizes),
        alone=int((sizes == 1).sum()),
        verdict=verdict,
        each=tuple(each),
        attributes=tuple(without),
        rule_override=override,
    )


def summary_of(
    table: Any, policy: Policy, releases: Sequence[Configuration], progress: Progress = SILENT
) -> Summary:
    """Summarise a table with the masks of all releases as candidates. A summary is returned, if it
    was made under this policy.
    """
    require_joint_rule(policy)
    if isinstance(table, Summary):
        require_same(table, policy)
        return table
    source = open_table(table, reading=policy.reading)
    return summarize(source, widened(policy, releases), sample_rows=1, progress=progress)


class _Joint:
    """The joint classes of several releases (rows that look equal in every release), and checks of
    a rule on them. `leave_out` names an attribute to ignore. A cell is a combination of values in
    the frequency table.
    """

    def __init__(self, summary: Summary, rule: PrivacyRule, hierarchies: Mapping[str, Any]) -> None:
        self.summary, self.rule = summary, rule
        self.frequency = _frequency(summary)
        self.plan = PrivacyPlan(summary, rule, hierarchies=hierarchies)

    def codes(self, release: Configuration, leave_out: str | None = None) -> Ints:
        """Return the equivalence class of each cell in a release, shape (cells,)."""
        masks = {n: m for n, m in release.masks.items() if n != leave_out}
        return _codes(self.summary, self.frequency, Configuration(release.name, masks))

    def check(self, releases: Sequence[Configuration]) -> Verdict:
        """Return whether the joint classes meet the rule, and how many rows fail, as if every
        release showed all rows.
        """
        codes = [self.codes(release) for release in releases]
        return self.rule.check(self._count(combine(codes, self.frequency.cells), releases))

    def trace(
        self,
        releases: Sequence[Configuration],
        *,
        start: Ints | None = None,
        leave_out: str | None = None,
        as_made: bool = False,
    ) -> Ints:
        """Number the cells by what the releases show of them, shape (cells,): two cells have the
        same number if every release shows them in the same way, or suppresses both. A cell that no
        release shows has the number 0.

        `start` has the numbers in still earlier releases. If `as_made`, the cells that the real
        releases suppressed are suppressed, else those that they would suppress without the
        attribute `leave_out`.
        """
        codes = [self.codes(release, leave_out) for release in releases]
        before = np.zeros(self.frequency.cells, dtype=np.int64) if start is None else start
        released = released_cells(
            self.rule,
            [self.codes(release) for release in releases] if as_made else codes,
            lambda index, ids, trace: self._count(ids, releases[index : index + 1], trace),
            before,
            made_after(releases),
        )
        if start is None and leave_out is None:
            lost = [int(self.frequency.counts[~cells].sum()) for cells in released]
            require_as_certified(releases, lost, self.rule)
        return traces(codes, released, before)

    def judged(
        self, releases: Sequence[Configuration], leave_out: str | None = None
    ) -> tuple[Verdict, Ints]:
        """Check, for each release from the second on, whether it meets the rule together with those
        before it. Return the verdict on the first that fails (or on the last release), and the rows
        of each joint class before suppression, shape (classes,).
        """
        if leave_out is None:
            self.trace(releases)  # compares suppressed rows with those that each certificate states
        verdicts = []
        earlier = made_after(releases)
        for index in range(1, len(releases)):
            released = releases[: index + 1]
            if len(earlier[index]) == index:
                trace = self.trace(releases[:index], leave_out=leave_out)
                ids = joined(trace, self.codes(releases[index], leave_out))
                table = self._count(ids, released, trace)
                verdicts.append(self.rule.check(table))
            else:
                table = self._classes(released, leave_out)
                verdicts.append(PrivacyRule(self.rule.criteria).check(table))
        broken = (verdict for verdict in verdicts if not verdict.admissible)
        return next(broken, verdicts[-1]), table.sizes

    def _classes(self, releases: Sequence[Configuration], leave_out: str | None) -> ClassTable:
        """Return the joint classes of all rows that are in at least one release. These rows are
        already released, so none of them can be suppressed any more.

        Raises
        ------
        DataError
            The policy counts persons.
        """
        if self.frequency.persons is not None:
            raise DataError(
                "Aegis cannot know which rows were suppressed, because the policy counts persons.",
                hint="Leave `person` out of the policy.",
            )
        table = self._count(self.trace(releases, leave_out=leave_out, as_made=True), releases)
        return table.keep(table.kept_ids(np.ones(len(table), dtype=np.bool_)) > 0)

    def _count(
        self, ids: Ints, releases: Sequence[Configuration], earlier: Ints | None = None
    ) -> ClassTable:
        """Return the classes with their rows and their rows by protected value; values differ if
        one of the `releases` shows them as different. `ids` has the class of each cell, and
        `earlier` numbers what all earlier releases show of it, shape (cells,).
        """
        frequency = replace(self.frequency, earlier=earlier)
        sensitive = {}
        for name in self.rule.sensitive:
            groups, labels = self._protected(name, releases)
            codes = groups[frequency.representatives[name]][frequency.codes[name]]
            sensitive[name] = (codes, labels)
        return frequency.count(ids, sensitive)

    def _protected(
        self, name: str, releases: Sequence[Configuration]
    ) -> tuple[Integers, tuple[str, ...]]:
        """Return the group of each value of a protected attribute, and the names of the groups. Two
        values share a group if every release shows them as the same masked value.
        """
        attribute = self.summary.attributes.get(name)
        if attribute is None:
            return self.plan.protected(name, {})
        masks = {release.name: release.masks.get(name) for release in releases}
        if any(mask is None or not mask.deterministic for mask in masks.values()):
            return attribute.unmasked.in_order
        groups = [_groups(attribute, m, release) for release, m in masks.items() if m is not None]
        first, joint = np.unique(
            combine(groups, len(attribute.values)), return_index=True, return_inverse=True
        )[1:]
        for candidate in (*attribute.candidates, attribute.unmasked):
            if _refines(candidate.groups, joint) and _refines(joint, candidate.groups):
                return candidate.in_order
        codes, labels = attribute.unmasked.in_order
        return joint, tuple(labels[codes[index]] for index in first)
