"""Apply a configuration: mask, suppress, write, verify and certify."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from aegis.errors import DataError, NoAdmissibleConfiguration, PolicyError
from aegis.files import SILENT, Progress, record
from aegis.masking import (
    CheckedClasses,
    check_classes,
    count_unseen,
    draw,
    fit_masks,
    masked_population,
    masked_table,
    noise_of,
    refuse_unseen,
    seeded_noise,
)
from aegis.masking.masked import WithOriginals
from aegis.masking.masked_codes import masked_batches
from aegis.masking.noised import DrawnTable
from aegis.options import checks_types, request_with
from aegis.policy import (
    Configuration,
    OwnerRule,
    Policy,
    RuleOverride,
    Unseen,
    as_policy,
    listed_configurations,
)
from aegis.privacy import PrivacyAccount, PrivacyRule
from aegis.privacy.diversity import distinct_values
from aegis.release.after import WithEarlier
from aegis.release.auditing import Audit, audit
from aegis.release.released import Released, refuse_other_classes, refuse_unplanned, seed_note
from aegis.release.sql.query import create_statements, require_database
from aegis.release.writing import (
    KeptWeight,
    ReleasePlan,
    StatedMasks,
    check_destination,
    configuration_to_apply,
    hidden_columns,
    kept_weight,
    learnt_bounds,
    not_released,
    release_masks,
    release_rows,
)
from aegis.requests import ApplyOptions, ApplyRequest, Form
from aegis.sources import Source, open_named, open_table, transaction
from aegis.summary import PERSON, count_classes
from aegis.summary.attributes import check_noise
from aegis.summary.classes import WEIGHT
from aegis.summary.coded_rows import holding
from aegis.summary.leaves import shown_leaves
from aegis.words import brief, json_fields

if TYPE_CHECKING:  # so `checks_types` leaves the configuration to `configuration_to_apply`
    from aegis.advisor import Advice, Ranked


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Release(Released):
    """A masked table that was verified after it was made.

    Attributes
    ----------
    configuration
        The masks, all fitted, so that they mask equal values in the same way in any table.
    noised_quasi_identifiers
        Quasi-identifiers with a noise mask. Aegis checked the rule on their true values. `audit`
        measures the noisy values.
    seeded_noise
        Attributes with noise from a seed: a reader who knows the seed can remove the noise.
    into
        The table or view that was created in the database; None if the release is a file or in
        memory.
    rule_override
        The rule that was used instead of the rule of the summary from which the configuration was
        chosen. None if no rule was replaced, or if the configuration was chosen from the table
        itself.
    weight
        The total weight of the released rows, and the risk of their people; None if each row counts
        once.

    Examples
    --------
    >>> import aegis
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> advice = study.rank(generate_count=5)
    >>> release = study.apply(advice)
    >>> release.rows, release.audit.passed
    (32561, True)
    """

    configuration: Configuration
    noised_quasi_identifiers: tuple[str, ...] = ()
    seeded_noise: tuple[str, ...] = ()
    into: str | None = None
    rule_override: RuleOverride | None = None
    weight: KeptWeight | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the release as JSON values.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.rank(generate_count=5)
        >>> release = study.apply(advice)
        >>> release.to_dict()["privacy"]["passed"]
        True
        """
        return super().to_dict() | {
            "configuration": self.configuration.spec(),
            **json_fields(
                self, "noised_quasi_identifiers", "seeded_noise", "into", "rule_override"
            ),
            **({} if self.weight is None else {"weight": self.weight.to_dict()}),
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings to read before you pass the release on."""
        sentences = list(super().warnings)
        if self.audit.rule is not None:
            sentences += self.audit.rule.missing_classes(self.suppressed_rows)
        if self.rule_override is not None:
            sentences.append(self.rule_override.sentence)
        if self.seeded_noise:
            sentences.append(seed_note(self.seeded_noise))
        if self.weight is not None and self.weight.column in self.dropped:
            sentences.append(not_released(self.weight.column))
        return tuple(sentences)

    @property
    def differential_privacy(self) -> PrivacyAccount | None:
        """Differential privacy of the noise of all attributes; None if no noise has an epsilon."""
        return self.audit.differential_privacy


@checks_types
def apply(
    table: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    configuration: Configuration | Ranked | Advice,
    request: ApplyRequest | None = None,
    *,
    progress: Progress = SILENT,
    **options: Unpack[ApplyOptions],
) -> Release:
    """Mask a table, suppress rows that fail the rule, and verify the result.

    Aegis reads the written file back and audits it before the file gets its final name. Without
    `output`, it audits the masked rows in memory in the same way, and returns them.

    Parameters
    ----------
    table
        Anything that `aegis.sources.open_table` opens.
    policy
        Roles, the privacy rule, and the treatment of unseen values.
    configuration
        One mask per scored attribute: a configuration, an entry of a ranking, or an advice, whose
        best entry Aegis applies. If a mask learns from data and is not fitted yet, Aegis fits it to
        this table. The release contains the fitted configuration.
    request, options
        Where to write the release and how to make it: an `ApplyRequest`, or its fields as
        keywords.
    progress
        Receives one step per stage.

    Raises
    ------
    NoAdmissibleConfiguration
        The release would have to suppress more rows than the rule allows. Aegis writes nothing.
    DataError
        The table has values that a mask does not know, and the policy has `unseen: error`.
    EngineError
        `into` is given, but the table is a file or rows in memory, not in a database.
    PolicyError
        The output exists and `force` is not set; its extension is unknown; you request a
        certificate without an output, or with the same name as the output; no masks can meet the
        rule; you give `into`, and SQL cannot express the rule or a mask; the rule differs from
        `made_under` and `rule_override` is not set; or the rule is weaker than a locked rule.

    Examples
    --------
    >>> import aegis
    >>> policy = aegis.load_policy("examples/adult/policy.yaml")
    >>> best = aegis.advise("data/adult.parquet", policy, generate_count=20, seed=1).best
    >>> release = aegis.apply("data/adult.parquet", policy, best.configuration)
    >>> release.audit.passed, release.released_rows + release.suppressed_rows
    (True, 32561)
    """
    request = request_with(ApplyRequest, request, options)
    chosen, measure, owner = configuration_to_apply(configuration)
    request = replace(request, made_under=request.made_under or owner)
    if request.output is not None:
        request = replace(request, measure=request.measure or measure)
    return _apply(table, as_policy(policy), chosen, request, progress)


def _apply(
    table: Any,
    policy: Policy,
    configuration: Configuration,
    request: ApplyRequest,
    progress: Progress,
) -> Release:
    """Make the release for a request."""
    output, into, instead = request.output, request.into, None
    if request.made_under is not None:
        if not isinstance(request.made_under, OwnerRule):
            raise PolicyError(
                f"made_under is {brief(request.made_under)}.",
                hint="Allowed: an OwnerRule, as `aegis.policy.owner_of_choice` reads it, or None.",
            )
        what = f"The summary that {configuration.name!r} was chosen from"
        override = request.rule_override
        instead = request.made_under.require(policy.privacy, override=override, what=what)
    if into is not None and output is not None:
        raise PolicyError(
            f"You asked for the release both in {output} and in {into}.", hint="Give one of them."
        )
    source = open_table(table, reading=policy.reading)
    if into is not None:
        require_database(source, into)
    check_destination(source, request)
    if output is None and into is None:
        source.engine.require_here(
            "The masked rows would all come", "Name an output, which the executors write."
        )
    with holding(source):
        plan = _MaskedPlan(source, policy, configuration, request, progress)
        plan.rule_override = instead
        if into is not None:
            return plan.in_database(into, request.form, force=request.force)
        return release_rows(plan, request)


def first_admissible(
    table: Any,
    policy: Policy,
    configurations: Sequence[Configuration],
    *,
    after: Sequence[Configuration] = (),
    progress: Progress = SILENT,
) -> Configuration | None:
    """Return the first of several configurations whose release of a table meets the privacy rule;
    None if there is none. Nothing is written.

    `after` has earlier releases of the table.
    """
    source, request = open_table(table, reading=policy.reading), ApplyRequest(after=tuple(after))
    with holding(source):
        for configuration in configurations:
            try:
                _MaskedPlan(source, policy, configuration, request, progress)
            except (NoAdmissibleConfiguration, DataError, PolicyError):
                continue  # it cannot be released either
            return configuration
    return None


def _stated_earlier(earlier: Configuration) -> dict[str, Any]:
    """Return an earlier release as a later certificate states it, without learnt values."""
    masks = {name: mask.unlisted() for name, mask in earlier.masks.items()}
    configuration = earlier if earlier.certificate else replace(earlier, masks=masks)
    return {"certificate": earlier.certificate, "masks": configuration.spec()}


class _MaskedPlan(ReleasePlan[Release]):
    """The masked rows of a table, without the rows that fail the rule."""

    rule_override: RuleOverride | None = None

    def __init__(
        self,
        source: Source,
        policy: Policy,
        configuration: Configuration,
        request: ApplyRequest,
        progress: Progress,
    ) -> None:
        self.started = time.perf_counter()
        self.source = source
        self.policy = policy
        self.progress = progress
        self.weight: KeptWeight | None = None
        self.after = listed_configurations(request.after)
        self.quasi = tuple(a.name for a in policy.quasi_identifiers)
        with progress.step("Reading the table"):
            self._fit(configuration)
        self.seeded_noise = seeded_noise(self.masks, request.seed)
        widened = WithEarlier.of(source, policy, self.masks, self.after)
        self.originals = WithOriginals.of(widened.source, self.masks)
        self.noised = self._draw(request.seed)
        self.engine = source if self.noised is None else self.noised.source
        self.population = masked_population(policy, source, self.masks)
        by_leaves = policy.privacy.by_leaves
        self.leaves = shown_leaves(source, policy, self.masks) if by_leaves else None
        with progress.step("Checking classes"):
            self._judge(widened)
        self._require(configuration)
        self.suppressed_rows = self.verdict.suppressed_rows
        self.suppressed_persons = self.verdict.suppressed_persons
        self.persons = self.verdict.persons
        self.timings = {"plan": time.perf_counter() - self.started}

    def _fit(self, configuration: Configuration) -> None:
        """Fit the masks to the table; raise an error for values or noise that the policy does not allow."""
        source, policy = self.source, self.policy
        if source.rows == 0:
            raise DataError(f"{source.origin} has no rows.", hint="Give a table with rows.")
        self.masks = fit_masks(source, release_masks(policy, configuration), policy.shared_rows)
        self.configuration = Configuration(
            configuration.name,
            {
                n: m
                for n, m in self.masks.items()
                if m and n in (*configuration.masks, self.policy.label.column)
            },
            after=tuple(map(_stated_earlier, self.after)),
        )
        self.unseen = count_unseen(source, self.masks)
        if policy.unseen is Unseen.ERROR:
            refuse_unseen(self.unseen)
        check_noise(policy, self.masks)

    def _draw(self, seed: int | None) -> DrawnTable | None:
        """Return the table with the noise of its masks drawn from `seed`; None without noise."""
        if not noise_of(self.masks):
            return None
        self.source.engine.require_here(
            f"{', '.join(map(repr, noise_of(self.masks)))} would show noise, for which all rows would come",
            "Choose masks without noise on Spark.",
        )
        with self.progress.step("Drawing noise"):
            person = self.policy.person
            return draw(
                self.source,
                self.masks,
                self.quasi,
                seed=seed,
                person=person,
                weight=self.policy.weight,
            )

    def _check(self, widened: WithEarlier) -> CheckedClasses:
        """Check the rule on the masked table, alone or together with earlier releases."""
        policy, noised, narrow = self.policy, self.noised, None
        if noised is None:
            masked = masked_table(
                self.originals.source,
                {**widened.masks, **self.originals.masks},
                numbered=True,
                person=policy.person,
                weight=policy.weight,
            )
            rule_columns = {*self.quasi, *policy.privacy.sensitive}
            needed = {name: mask for name, mask in self.masks.items() if name in rule_columns}
            if needed:
                narrow = masked_table(self.source, needed, person=policy.person)
        else:
            masked = self.engine.table
        return check_classes(
            self.engine,
            masked,
            self.quasi if noised is None else noised.quasi,
            policy.privacy.sensitive,
            policy.privacy,
            policy.protected_hierarchies,
            self.population,
            self.leaves,
            widened.releases,
            narrow=narrow,
        )

    def _judge(self, widened: WithEarlier) -> None:
        """Suppress the rows that fail the rule, alone or together with earlier releases."""
        policy, noised = self.policy, self.noised
        self.checked = self._check(widened)
        self.widened = widened
        self.verdict = self.checked.verdict
        judged = self.checked.kept_rows()
        earlier_columns = {*widened.columns, *widened.protected}
        judged = judged.drop(*earlier_columns) if earlier_columns else judged
        weightless = judged.drop(WEIGHT) if policy.weight is not None else judged
        self.with_originals = weightless
        self.judged = Source(weightless.drop(*self.originals.masks), self.source.origin)
        judged = judged.drop(*self.originals.masks)
        self.table = judged if noised is None else noised.released(judged)
        extra = [name for name in (PERSON, WEIGHT) if name in judged.columns]
        hidden = {*hidden_columns(policy, self.masks), *extra} & {*self.table.columns}
        if hidden:
            self.table = self.table.drop(*hidden)
        if extra:
            self.measured = Source(judged.select(*self.table.columns, *extra), self.source.origin)
        if policy.weight is not None and self.measured is not None:
            quasi = [name for name in self.quasi if name in self.table.columns]
            self.weight = kept_weight(self.source, self.measured, policy.weight, quasi)

    def _require(self, configuration: Configuration) -> None:
        """Raise `NoAdmissibleConfiguration`, with a remedy, unless the rule is met."""
        if self.verdict.admissible:
            return
        hint = "Choose a coarser configuration, or allow more suppression in the policy."
        together = ""
        if self.after:
            together = ", together with what was released before, if rows can be linked"
            hint = "Choose a coarser configuration; aegis advise --after finds the best together with the others."
        if (
            not self.verdict.smallest_class
        ):  # no row is kept: it may be that no masks could keep any
            rule, rows = self.policy.privacy, self.verdict.persons or self.source.rows
            rule.require_possible(rows, self._values(masked=False))
            lacks = rule.shortage(rows, self._values(masked=True))
            if lacks is not None:
                hint = f"The rule requires {lacks} under its mask: choose a finer mask."
        raise NoAdmissibleConfiguration(
            f"Configuration {configuration.name!r} does not meet the privacy rule on this table{together}: "
            f"{'; '.join(self.verdict.violations)}.",
            hint=hint,
        )

    def _values(self, *, masked: bool) -> dict[str, int]:
        """Return how many distinct values the protected attributes have, masked or not."""
        sizes = {}
        for name in self.policy.privacy.sensitive:
            table = masked_table(self.source, {name: self.masks[name]}) if masked else None
            counted = count_classes(self.source, (), (name,), table=table).table
            sizes[name] = int(distinct_values(counted.sensitive[name])[0])
        return sizes

    def in_database(self, into: str, form: Form | str, *, force: bool) -> Release:
        """Create the table or view `into` in the input's database; undo this if its audit fails."""
        if self.after:
            raise PolicyError(
                "The database cannot check the classes that the release forms with earlier ones.",
                hint="Release into a file and load that.",
            )
        if self.noised is not None:
            raise PolicyError(
                "A configuration with noise masks cannot be applied in the database.",
                hint="Release into a file and load that.",
            )
        statements = create_statements(
            self.source, self.policy, self.configuration, into=into, form=form, force=force
        )
        started = time.perf_counter()
        with transaction(self.source) as run:
            with self.progress.step(f"Making {into}"):
                for statement in statements:
                    run(statement)
            self.timings["write"] = time.perf_counter() - started
            with self.progress.step(f"Verifying {into}"):
                output = open_named(self.source.backend, into, into)
                release = self.verified(output, into=into, stored=output)
        record(into)
        return release

    def verify(self, output: Source) -> Audit:
        """Audit the written table; raise `InternalError` if it breaks the rule, as far as noise
        lets this be checked.
        """
        rows = output
        if self.policy.person is not None:
            quasi = [name for name in self.quasi if name in output.columns]
            refuse_other_classes(output, self.judged, quasi, self.policy.privacy.sensitive)
            rows = self.judged
        checked = audit(
            rows,
            policy=self.policy,
            person=self._person(),
            configuration=None if self.noised is None else self.configuration,
            population=self.population,
            leaves=self.leaves,
        )
        refuse_unplanned(self._verifiable(rows, checked), self.source.rows - self.suppressed_rows)
        outside = checked.outside
        if outside is not None:
            outside = replace(outside, implied=self.originals.implied(self.with_originals))
        return replace(checked, person=self.policy.person, outside=outside)

    def input_changed(self) -> bool:
        """Return whether the input has other rows or classes than when the rule was checked."""
        again = self._check(self.widened).verdict
        return super().input_changed() or again.to_dict() != self.verdict.to_dict()

    def batches(self) -> Iterator[pa.RecordBatch] | None:
        """Return the released rows in batches; None if only a query can mask them."""
        if self.noised is not None or self.after or self.policy.person is not None:
            return None
        return masked_batches(self.source, self.table, self.masks, self.checked)

    def describe(self, **common: Any) -> Release:
        """Return the release object; `common` has the fields that all kinds of releases share."""
        return Release(
            configuration=self.configuration,
            noised_quasi_identifiers=self._noised(),
            seeded_noise=self.seeded_noise,
            rule_override=self.rule_override,
            weight=self.weight,
            **common,
        )

    def how(self, release: Release, output: Source) -> Mapping[str, Any]:
        """Return the certificate's entries on the configuration and what follows from it."""
        applied = release.configuration.masks
        stated_masks = StatedMasks.of(applied, self.policy, self.source, output)
        return {
            "configuration": {"name": release.configuration.name, **stated_masks.to_dict()},
            "learnt_bounds": learnt_bounds(release.configuration.masks, self.policy.shared_rows),
            "noised_quasi_identifiers": list(release.noised_quasi_identifiers),
            **({"seeded_noise": list(self.seeded_noise)} if self.seeded_noise else {}),
            **({} if release.weight is None else {"weight": release.weight.for_certificate()}),
            **({"after": list(release.configuration.after)} if release.configuration.after else {}),
            **(
                {}
                if self.rule_override is None
                else {"rule_override": self.rule_override.to_dict()}
            ),
        }

    def _verifiable(self, output: Source, checked: Audit) -> Audit:
        """Return the audit without criteria that cannot be verified because of noise.

        The output does not show the true values, by whose classes the rule was checked. Classes by
        the quasi-identifiers without noise are unions of those, so only criteria that merged
        classes never break are verified.
        """
        noised = self._noised()
        if not noised:
            return checked
        criteria = tuple(c for c in self.policy.privacy.criteria if c.model.monotone)
        rest = [n for n in self.quasi if n not in noised and n in output.columns]
        rule = PrivacyRule(criteria, person=self.policy.person)
        return audit(
            output,
            quasi_identifiers=rest,
            policy=self.policy,
            rule=rule,
            person=self._person(),
        )

    def _person(self) -> str | None:
        return None if self.policy.person is None else PERSON

    def _noised(self) -> tuple[str, ...]:
        return () if self.noised is None else self.noised.noised_quasi_identifiers
