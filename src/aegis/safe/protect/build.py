"""Protect a summary: the only way from exact counts to a file that may leave your organisation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Unpack

from aegis.advisor import PrivacyPlan, Scorer
from aegis.advisor.owner import check_owner_rule
from aegis.advisor.plan import require_same
from aegis.blas import one_blas_thread
from aegis.errors import DataError, PolicyError, member
from aegis.options import asked
from aegis.policy import (
    Configuration,
    OwnerRule,
    Policy,
    as_policy,
    listed_configurations,
    policy_digest,
    policy_mapping,
)
from aegis.progress import SILENT, Progress
from aegis.safe.protect.accounting import Unit
from aegis.safe.protect.cells import check_summary, public_names
from aegis.safe.protect.counts import Perturbation, protect_counts
from aegis.safe.protect.model import CellMethod, ProtectedSummary, ProtectionLevel, StatedVerdict
from aegis.safe.protect.moments import rows_per_person as counted_rows
from aegis.safe.protect.noise import Noise, protect_with_noise
from aegis.safe.protect.plan import refuse_read_by_context
from aegis.safe.protect.rounded_label import note_on_rounding, with_bounds, with_rounded_label
from aegis.safe.requests import ProtectOptions, ProtectRequest
from aegis.sources import Source, open_table
from aegis.summary import Summary, summarize
from aegis.words import amount

MOST_VERDICTS = 100_000
"""Largest number of combinations for which verdicts are stated."""
_SAMPLE = 1
"""Number of rows whose co-occurrences are counted if none are needed."""


@one_blas_thread
def protect(
    subject: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    request: ProtectRequest | None = None,
    *,
    progress: Progress = SILENT,
    **options: Unpack[ProtectOptions],
) -> ProtectedSummary:
    """Return the protected summary of a table or of its summary.

    Parameters
    ----------
    subject
        Anything that `aegis.summarize` accepts, or a `Summary`. If you give the table itself,
        moments (mean products of codes) need less noise, and no sample is used.
    policy
        Roles, candidate masks, label, the privacy rule.
    request, options
        The protection: a `ProtectRequest`, or its options as keywords.
    progress
        Receives one step per stage.

    Raises
    ------
    PolicyError
        An option is out of range or belongs to the other level; a person has more rows than stated;
        the summary was made from a sample, with other masks or under another rule, or it has
        content that a protected summary cannot have; or small cells can be derived from the planned
        output. The error has cost no budget, unless its attribute `noise_drawn` is True.
    """
    given = asked(ProtectRequest, request, options)
    policy = as_policy(policy)
    policy.require_label("A protected summary", number=True)
    policy.refuse_weight("A protected summary")
    level = _level(given.level)
    declared, digest = policy.label, policy_digest(policy)
    if declared.is_number:
        subject, policy = _rounded(subject, policy, given)
    summary, source = _exact(subject, policy, progress)
    check_summary(summary, policy)
    override = None
    if source is None:
        require_same(summary, policy)
        override = check_owner_rule(summary, policy.privacy, override=given.rule_override)
    owner = OwnerRule(policy.privacy) if summary.terms is None else summary.terms.owner
    by_level = _with_noise if level is ProtectionLevel.NOISE else _with_counts
    made = by_level(summary, source, policy, given, progress)
    rule = dict(policy_mapping(policy).get("privacy") or {}) if made.verdicts else None
    notes = () if override is None else (override.sentence,)
    if declared.is_number:
        made = replace(made, policy=digest, protection=with_bounds(made.protection, declared))
        notes = (*notes, note_on_rounding(declared))
    return replace(
        made, owner=owner, rule=rule, notes=(*notes, *_notes_on_delta(made), *made.notes)
    )


def _with_noise(
    summary: Summary,
    source: Source | None,
    policy: Policy,
    request: ProtectRequest,
    progress: Progress,
) -> ProtectedSummary:
    """Return the summary protected with discrete Gaussian noise (level `noise`); `source` is the
    table, if it was given.
    """
    noise, counts = request.noise, request.counts
    _refuse_given(ProtectionLevel.NOISE, key=counts.key, step=counts.step, variance=counts.variance)
    if noise.epsilon is None or noise.delta is None:
        raise PolicyError(
            "Protection by noise needs an epsilon and a delta.",
            hint="Give both, for example epsilon 1 and delta 1e-6.",
        )
    promise = Noise(
        noise.epsilon,
        noise.delta,
        member(Unit, noise.unit, "unit"),
        noise.rows_per_person,
        public_names(noise.public, summary),
        _listed(request.verdicts, summary),
    )
    _check_persons(source, noise.person, noise.rows_per_person)
    refuse_read_by_context(summary.read_by_context, policy, promise.public)
    return protect_with_noise(summary, promise, policy, source=source, progress=progress)


def _with_counts(
    summary: Summary,
    source: Source | None,
    policy: Policy,
    request: ProtectRequest,
    progress: Progress,
) -> ProtectedSummary:
    """Return the summary protected by perturbing counts (level `counts`); `source` is the table, if
    it was given.
    """
    noise, counts = request.noise, request.counts
    _refuse_given(
        ProtectionLevel.COUNTS, epsilon=noise.epsilon, delta=noise.delta, person=noise.person
    )
    if counts.key is None:
        raise PolicyError(
            "Protection by counts is seeded by a secret key, and none was given.",
            hint="Give at least 16 random bytes, and keep them: the same key perturbs the same "
            "cell in the same way.",
        )
    method = member(CellMethod, counts.method, "method of perturbation")
    perturbation = Perturbation(counts.key, method, counts.threshold, counts.step, counts.variance)
    stated = _verdicts(summary, policy, _listed(request.verdicts, summary))
    return protect_counts(
        summary, perturbation, policy, verdicts=stated, source=source, progress=progress
    )


def _notes_on_delta(made: ProtectedSummary) -> tuple[str, ...]:
    """Return a warning if delta is so large that it allows publishing a random row.

    The number of rows comes from the protected summary, so the warning reveals nothing.
    """
    delta = made.protection.delta
    if delta is None or delta * made.rows < 1:
        return ()
    return (
        f"delta {delta:g} is not below one over the number of rows: to publish a row drawn at random would "
        "keep a promise at that delta, so that a smaller one should be taken",
    )


def _level(given: ProtectionLevel | str) -> ProtectionLevel:
    chosen = member(ProtectionLevel, given, "level of protection")
    if chosen is ProtectionLevel.NONE:
        raise PolicyError(
            "Level none protects nothing, so there is nothing to write.",
            hint="Take noise or counts, or summarise without protection.",
        )
    return chosen


def _refuse_given(level: ProtectionLevel, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise PolicyError(
                f"Level {level} takes no {name}.",
                hint="Leave it out, or take the other level.",
            )


def _exact(subject: Any, policy: Policy, progress: Progress) -> tuple[Summary, Source | None]:
    """Return the exact summary of `subject`, which is a table or already a summary; and the table,
    or None if a summary was given.
    """
    if isinstance(subject, ProtectedSummary):
        raise PolicyError(
            "The summary is protected already, and cannot be protected again.",
            hint="Give the table or its exact summary.",
        )
    if isinstance(subject, Summary):
        return subject, None
    source = open_table(subject)
    return summarize(source, policy, sample_rows=_SAMPLE, progress=progress), source


def _rounded(subject: Any, policy: Policy, request: ProtectRequest) -> tuple[Source, Policy]:
    """Return the table and its policy with the numeric label rounded at random to one of two
    bounds, which become two classes.
    """
    if isinstance(subject, Summary | ProtectedSummary):
        raise PolicyError(
            f"The label {policy.label.column!r} is a number. To protect it, Aegis rounds the number of each row to a "
            "bound, but a summary has no rows.",
            hint="Give the table.",
        )
    source = open_table(subject, reading=policy.reading)
    return with_rounded_label(source, policy, person=request.noise.person, key=request.counts.key)


def _check_persons(source: Source | None, person: str | None, allowed: int) -> None:
    if person is None:
        return
    if source is None:
        raise PolicyError(
            "A summary holds no persons, so Aegis cannot count them.",
            hint="Give the table, or leave the column out.",
        )
    most = counted_rows(source, person)
    if most > allowed:
        raise PolicyError(
            f"A person of column {person!r} has more than {allowed} rows.",
            hint="State a larger number of rows per person, or leave surplus rows out first.",
        )


def _listed(
    asked: Sequence[Configuration] | Mapping[str, Configuration] | int,
    summary: Summary,
) -> tuple[Configuration, ...]:
    """Return the configurations for which the file will state whether they meet the rule. `asked`
    has the configurations, or the largest number of combinations for which all are listed.
    """
    if not isinstance(asked, int):
        return listed_configurations(asked)
    if asked < 0 or asked > MOST_VERDICTS:
        raise PolicyError(
            f"Verdicts on up to {asked:,} combinations were asked for.",
            hint=f"Allowed: 0 to {MOST_VERDICTS:,}.",
        )
    attributes = list(summary.attributes.values())
    size = math.prod(len(a.candidates) for a in attributes)
    if size > asked:
        raise PolicyError(
            f"The candidate masks make {amount(size)} combinations, more than the {asked:,} for which you want "
            "verdicts.",
            hint="Name the configurations, or leave out masks.",
        )
    return tuple(
        Configuration(f"c{i}", {a.name: c.mask for a, c in zip(attributes, chosen, strict=True)})
        for i, chosen in enumerate(product(*(a.candidates for a in attributes)))
    )


def _verdicts(
    summary: Summary, policy: Policy, configurations: Sequence[Configuration]
) -> list[StatedVerdict]:
    if not configurations:
        return []
    if summary.frequency is None:
        raise DataError(
            "The summary holds no frequency table of the quasi-identifiers, so Aegis cannot state "
            "verdicts on the rule.",
            hint="Leave out --verdicts.",
        )
    plan = PrivacyPlan(summary, policy.privacy, hierarchies=policy.protected_hierarchies)
    scorer, stated = Scorer(summary), []
    for configuration in configurations:
        choice = scorer.choose(configuration)
        places = tuple(a.candidates.index(choice[n]) for n, a in summary.attributes.items())
        stated.append(StatedVerdict(places, plan.check(choice).admissible))
    return stated
