"""Make a record-level release: group records, mask by group, suppress, write and verify."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Unpack

from aegis.anonymizers import (
    ANONYMIZERS,
    Anonymized,
    Grouped,
    Recipe,
    RecordTable,
    TradeOff,
    anonymize_records,
    check_release,
    read_records,
)
from aegis.errors import InternalError, NoAdmissibleConfiguration, PolicyError
from aegis.files import SILENT, Progress
from aegis.masking import ORDERED_ROWS
from aegis.masks import Identity, parse_mask
from aegis.options import checks_types, request_with
from aegis.policy import Policy, as_policy
from aegis.release.auditing import Audit, audit
from aegis.release.released import SEEDED, Released, refuse_other_classes, refuse_unplanned
from aegis.release.writing import ReleasePlan, check_destination, release_rows
from aegis.requests import AnonymizeOptions, AnonymizeRequest
from aegis.sources import Source, open_table
from aegis.summary import PERSON
from aegis.words import joined


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AnonymizedRelease(Released):
    """A record-level release that was verified after it was made.

    Attributes
    ----------
    recipe
        Method, all options, and the seed. The same recipe and table give the same release, unless
        the random draws of the method protect the table.
    grouped
        The groups of records, their information loss, and the notes and figures of the method.
    notes
        Notes for the reader of the release.
    front
        Pareto-optimal settings of the method MO-OBAM with their losses and entropies, if requested.

    Examples
    --------
    >>> import aegis
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> release = study.anonymize("mondrian")
    >>> release.recipe.anonymizer.name, release.suppressed_rows
    ('mondrian', 0)
    """

    recipe: Recipe
    grouped: Grouped
    notes: tuple[str, ...] = ()
    front: tuple[TradeOff, ...] = ()

    @property
    def claims(self) -> dict[str, int] | None:
        """The k and l that the method guarantees for every released class. They are None if the
        method guarantees nothing.
        """
        options = self.grouped.options
        return {"k": options.k, "l": options.l} if self.grouped.claims_k else None

    def how(self) -> dict[str, Any]:
        """Return a description of how the release was made, and its losses, as JSON values.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> release = study.anonymize("mondrian")
        >>> release.how()["groups"]["smallest"] >= 5
        True
        """
        grouping = self.grouped.to_dict()
        return {
            "anonymizer": self.recipe.to_dict()
            | {"style": self.recipe.style or grouping["style"], "claims": self.claims},
            "groups": {
                "count": grouping["groups"],
                "smallest": grouping["smallest"],
                "left_out_rows": grouping["suppressed"],
                "seconds": grouping["seconds"],
            },
            "information_loss": grouping["loss"],
            "details": grouping["details"],
            "notes": list(self.notes),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the release as JSON values.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> release = study.anonymize("mondrian")
        >>> release.to_dict()["released_rows"]
        32561
        """
        front = {"points": [point.to_dict() for point in self.front]} if self.front else None
        return super().to_dict() | self.how() | {"front": front}


@checks_types
def anonymize(
    table: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    method: str | Recipe,
    request: AnonymizeRequest | None = None,
    *,
    progress: Progress = SILENT,
    **options: Unpack[AnonymizeOptions],
) -> AnonymizedRelease:
    """Make a record-level release, suppress classes that fail the rule, and verify the result.

    The method replaces the quasi-identifiers group by group. Other columns stay unchanged, unless
    they have candidate masks and `identity` is not among them; then they get the first candidate.
    Aegis drops identifiers or replaces them by tokens, as the policy says. Before the written file
    gets its final name, Aegis reads it back and checks it against the policy's rule and the k that
    the method guarantees. Without `output`, it audits the rows in memory in the same way, and
    returns them.

    Parameters
    ----------
    table
        Anything that `aegis.sources.open_table` opens. Aegis reads its rows into memory.
    policy
        Roles, hierarchies and the privacy rule.
    method
        Name of a registered anonymizer (`aegis anonymizers` lists them), or a `Recipe`, which has
        its own options, seed and style.
    request, options
        Where to write the release and how to make it: an `AnonymizeRequest`, or its fields as
        keywords. If you give a `seed`, a note in the release warns that anyone who knows the seed
        can repeat the random draws.
    progress
        Receives one step per stage.

    Raises
    ------
    NoAdmissibleConfiguration
        The release would have to suppress more rows than the rule allows. Aegis writes nothing.
    PolicyError
        The method, an option or the style is unknown or out of range; the output exists and
        `force` is not set; or its extension is unknown.
    DataError
        The method cannot use the table: see `aegis.anonymizers.encode`.

    Examples
    --------
    >>> import aegis
    >>> policy = aegis.load_policy("examples/adult/policy.yaml")
    >>> aegis.anonymize("data/adult.parquet", policy, "mondrian").audit.report.k >= 5
    True
    """
    request, policy = request_with(AnonymizeRequest, request, options), as_policy(policy)
    policy.refuse_several("A record-level release")
    recipe = _recipe(method, request)
    source = open_table(table, reading=policy.reading)
    check_destination(source, request)
    plan = _GroupedPlan(source, policy, recipe, request, progress)
    points = plan.front() if request.front else ()
    return replace(release_rows(plan, request), front=points)


def _recipe(method: str | Recipe, request: AnonymizeRequest) -> Recipe:
    if isinstance(method, str):
        recipe = Recipe(method, request.options or {}, request.seed, request.style)
    elif request.options is not None or request.style is not None:
        raise PolicyError(
            "The recipe already sets options and style, so you cannot give them again.",
            hint="Name the method instead, or give the recipe alone.",
        )
    else:
        recipe = method
    if request.front and recipe.anonymizer.front is None:
        weighing = [a.name for a in ANONYMIZERS if a.front is not None]
        raise PolicyError(
            f"Method {recipe.method!r} cannot make a front.",
            hint=f"Only {', '.join(weighing)} weighs two aims.",
        )
    return recipe


class _GroupedPlan(ReleasePlan[AnonymizedRelease]):
    """A record-level release before it is written: its rows, without those that fail the rule."""

    def __init__(
        self,
        source: Source,
        policy: Policy,
        recipe: Recipe,
        request: AnonymizeRequest,
        progress: Progress,
    ) -> None:
        self.started = time.perf_counter()
        self.source = source
        self.policy = policy
        self.progress = progress
        with progress.step("Reading records"):
            self.read: RecordTable = read_records(
                source, policy, kinds=request.kinds, orders=request.orders
            )
        read = time.perf_counter()
        self.anonymized: Anonymized = anonymize_records(self.read, recipe, progress=progress)
        grouped = time.perf_counter()
        with progress.step("Checking classes"):
            self.engine, kept_rows, verdict = check_release(self.anonymized, policy)
        if not verdict.admissible:
            raise _refused(self.anonymized, verdict.violations)
        self.judged = kept_rows
        self.table = kept_rows.table
        if policy.person is not None:
            self.table, self.measured = self.table.drop(PERSON), kept_rows
        self.persons = verdict.persons
        self.suppressed_persons = verdict.suppressed_persons
        self.suppressed_rows = verdict.suppressed_rows
        self.unseen = self.read.unseen
        self.timings = {
            "read": read - self.started,
            "group": grouped - read,
            "check": time.perf_counter() - grouped,
        }

    def front(self) -> tuple[TradeOff, ...]:
        """Return each setting that the method tried, with its information loss and its entropies."""
        if self.policy.person is not None:
            raise PolicyError(
                f"A front counts rows, but the policy counts persons ({self.policy.person}).",
                hint="Leave the front out.",
            )
        started = time.perf_counter()
        search = self.anonymized.recipe.anonymizer.front
        if search is None:
            raise InternalError("The method cannot make a front.")
        points = search(
            self.read.records,
            self.anonymized.grouped.options,
            self.anonymized.recipe.seed or 0,
            self.progress,
        )
        self.timings["front"] = time.perf_counter() - started
        return points

    def verify(self, output: Source) -> Audit:
        """Audit the written table; refuse it if it fails the rule or the claimed k."""
        person = self.policy.person
        if person is None:
            checked = audit(output, policy=self.policy)
        else:
            quasi = [attribute.name for attribute in self.policy.quasi_identifiers]
            refuse_other_classes(output, self.judged, quasi, self.policy.privacy.sensitive)
            judged = audit(self.judged, policy=self.policy, person=PERSON)
            checked = replace(judged, person=person)
        grouped = self.anonymized.grouped
        refuse_unplanned(checked, self.source.rows - self.suppressed_rows)
        if grouped.claims_k and checked.report.k < grouped.options.k:
            raise InternalError(
                f"The written table has k = {checked.report.k}, not the {grouped.options.k} that "
                f"{grouped.method} claims.",
                hint="Nothing was released. Please report this with the policy and options.",
            )
        return checked

    def describe(self, **common: Any) -> AnonymizedRelease:
        """Return the release object; `common` has the fields that all kinds of releases share."""
        grouped, recipe = self.anonymized.grouped, self.anonymized.recipe
        notes = [*grouped.notes]
        if recipe.seed is not None and recipe.by_chance:
            notes.append(f"a seed was given: {SEEDED}")
        notes += self.read.notes
        finer = [
            a.name for a in self.policy.quasi_identifiers if a.masks and Identity() not in a.masks
        ]
        if finer and not (recipe.anonymizer.by_cell or recipe.anonymizer.sampled):
            notes.append(
                f"the release may show single values of {joined(finer)}, for which the policy lists "
                "only coarser masks: the method ignores the masks of quasi-identifiers"
            )
        if self.source.rows <= ORDERED_ROWS:  # a larger table loses its order
            notes.append(
                "rows stay in the order of the table: where another table of the same people may "
                "have that order, sort the release by all its columns"
            )
        return AnonymizedRelease(recipe=recipe, grouped=grouped, notes=tuple(notes), **common)

    def how(self, release: AnonymizedRelease, output: Source) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the recipe and its loss for the certificate, without values that masks learnt."""
        recipe = release.how()
        options = recipe["anonymizer"]["options"]
        masks = options.get("masks")
        if masks:
            options["masks"] = {name: _unlisted(self.policy, name, masks[name]) for name in masks}
        return recipe


def _unlisted(policy: Policy, name: str, spec: Any) -> Any:
    """Return the mask of a quasi-identifier without the values that it learnt."""
    attribute = policy.attributes.get(name)
    mask = parse_mask(spec, hierarchy=None if attribute is None else attribute.hierarchy)
    return mask.unlisted().spec()


def _refused(release: Anonymized, violations: Sequence[str]) -> NoAdmissibleConfiguration:
    hint = "Raise k, or allow more suppression in the policy."
    if not release.grouped.claims_k:
        has_strict = "strict" in {field.name for field in fields(release.recipe.anonymizer.options)}
        strict = "use its strict form (strict=true), or " if has_strict else ""
        hint = f"{release.recipe.method}, as published, guarantees no k: {strict}choose another method."
    return NoAdmissibleConfiguration(
        f"The release of {release.recipe.method!r} does not meet the privacy rule: "
        f"{'; '.join(violations)}.",
        hint=hint,
    )
