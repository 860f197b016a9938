"""Protect a summary, write it for others, and charge its cost to a ledger: the only way from exact
counts to a file that may leave your organisation.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from aegis.advisor import PrivacyPlan, Scorer
from aegis.advisor.plan import check_owner_rule, require_same
from aegis.blas import one_blas_thread
from aegis.errors import DataError, PolicyError, member
from aegis.files import SILENT, Progress
from aegis.options import checks_types, request_with
from aegis.policy import (
    Configuration,
    OwnerRule,
    Policy,
    as_policy,
    listed_configurations,
    policy_digest,
    policy_mapping,
)
from aegis.safe.ledger import EntryState, Ledger, Spend, TableVersion
from aegis.safe.ledger.book import Spending
from aegis.safe.protect.budget import Unit, budget_of
from aegis.safe.protect.cells import check_summary, public_names
from aegis.safe.protect.counts import Perturbation, protect_counts
from aegis.safe.protect.file import save_protected
from aegis.safe.protect.mechanisms import MAKE_KEY
from aegis.safe.protect.model import (
    CellMethod,
    ProtectedSummary,
    ProtectionLevel,
    StatedVerdict,
    note_on_rounding,
    with_bounds,
    with_rounded_label,
)
from aegis.safe.protect.moments import rows_per_person as counted_rows
from aegis.safe.protect.noise import Noise, protect_with_noise
from aegis.safe.protect.plan import refuse_read_by_context
from aegis.safe.requests import NoiseRequest, ProtectOptions, ProtectRequest
from aegis.sources import Source, open_table
from aegis.summary import Summary, summarize
from aegis.words import amount, counted

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
        Anything that `aegis.summarize` accepts, or a `Summary`. With the table itself, statistics
        of two attributes together need less noise.
    policy
        The policy: roles, candidate masks, label and privacy rule.
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
        output. If the error's attribute `noise_drawn` is True, it has cost privacy budget.
    """
    request = request_with(ProtectRequest, request, options)
    policy = as_policy(policy)
    policy.require_label("A protected summary", number=True)
    policy.refuse_weight("A protected summary")
    level = _level(request.level)
    declared, digest = policy.label, policy_digest(policy)
    if declared.is_number:
        subject, policy = _rounded(subject, policy, request)
    summary, source = _exact(subject, policy, progress)
    check_summary(summary, policy)
    override = None
    if source is None:
        require_same(summary, policy)
        override = check_owner_rule(summary, policy.privacy, override=request.rule_override)
    owner = OwnerRule(policy.privacy) if summary.terms is None else summary.terms.owner
    by_level = _with_noise if level is ProtectionLevel.NOISE else _with_counts
    protected = by_level(summary, source, policy, request, progress)
    rule = dict(policy_mapping(policy).get("privacy") or {}) if protected.verdicts else None
    notes = () if override is None else (override.sentence,)
    if declared.is_number:
        protection = with_bounds(protected.protection, declared)
        protected = replace(protected, policy=digest, protection=protection)
        notes = (*notes, note_on_rounding(declared))
    notes = (*notes, *_notes_on_delta(protected), *protected.notes)
    return replace(protected, owner=owner, rule=rule, notes=notes)


def _with_noise(
    summary: Summary,
    source: Source | None,
    policy: Policy,
    request: ProtectRequest,
    progress: Progress,
) -> ProtectedSummary:
    """Return the summary protected at level `noise`; `source` is the table, if it was given."""
    noise, counts = request.noise, request.counts
    _refuse_given(ProtectionLevel.NOISE, key=counts.key, step=counts.step, variance=counts.variance)
    promise = Noise(
        *_epsilon_and_delta(noise),
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
    """Return the summary protected at level `counts`; `source` is the table, if it was given."""
    noise, counts = request.noise, request.counts
    _refuse_given(
        ProtectionLevel.COUNTS, epsilon=noise.epsilon, delta=noise.delta, person=noise.person
    )
    if counts.key is None:
        raise PolicyError(
            "Level counts needs a secret key, and you gave none.",
            hint=f"{MAKE_KEY} Give it with --key-file secret.key, in Python key=...: the same key "
            "changes the same count in the same way.",
        )
    method = member(CellMethod, counts.method, "method of perturbation")
    perturbation = Perturbation(counts.key, method, counts.threshold, counts.step, counts.variance)
    verdicts = _verdicts(summary, policy, _listed(request.verdicts, summary))
    return protect_counts(
        summary, perturbation, policy, verdicts=verdicts, source=source, progress=progress
    )


def _notes_on_delta(protected: ProtectedSummary) -> tuple[str, ...]:
    """Return a warning if delta allows publishing a random row. It compares with protected rows, so it
    reveals nothing.
    """
    delta = protected.protection.delta
    if delta is None or delta * protected.rows < 1:
        return ()
    return (
        f"delta {delta:g} is too large: choose less than 1 / rows. At this delta, a file that publishes one "
        "random row would keep the guarantee, too",
    )


def _level(level: ProtectionLevel | str) -> ProtectionLevel:
    level = member(ProtectionLevel, level, "level of protection")
    if level is ProtectionLevel.NONE:
        raise PolicyError(
            "Level none protects nothing, so there is nothing to write.",
            hint="Choose noise or counts, or summarise without protection.",
        )
    return level


def _refuse_given(level: ProtectionLevel, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise PolicyError(
                f"Level {level} takes no {name}.",
                hint="Leave it out, or choose the other level.",
            )


def _exact(subject: Any, policy: Policy, progress: Progress) -> tuple[Summary, Source | None]:
    """Return the exact summary and the table; if `subject` is a summary, return it and None."""
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
    """Return table and policy with the numeric label rounded to two bounds, its classes."""
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
    verdicts: Sequence[Configuration] | Mapping[str, Configuration] | int,
    summary: Summary,
) -> tuple[Configuration, ...]:
    """Return the configurations that get verdicts: those given or, for a number, all combinations;
    raise `PolicyError` if there are more.
    """
    if not isinstance(verdicts, int):
        return listed_configurations(verdicts)
    if verdicts < 0 or verdicts > MOST_VERDICTS:
        raise PolicyError(
            f"Verdicts on up to {verdicts:,} combinations were asked for.",
            hint=f"Allowed: 0 to {MOST_VERDICTS:,}.",
        )
    attributes = list(summary.attributes.values())
    size = math.prod(len(a.candidates) for a in attributes)
    if size > verdicts:
        raise PolicyError(
            f"The candidate masks make {amount(size)} combinations, more than the {verdicts:,} for which you want "
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
    scorer, verdicts = Scorer(summary), []
    for configuration in configurations:
        choice = scorer.choose(configuration)
        places = tuple(a.candidates.index(choice[n]) for n, a in summary.attributes.items())
        verdicts.append(StatedVerdict(places, plan.check(choice).admissible))
    return verdicts


_NOT_REMEMBERED = (
    "without a ledger, Aegis does not know which files you made before. Two versions of a table "
    "under one key reveal the rows that changed, and files of one table under several keys average "
    "to its exact counts. With --ledger and --population, Aegis refuses both"
)


@checks_types
def release_protected(
    subject: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    output: str | Path,
    request: ProtectRequest | None = None,
    *,
    ledger: str | Path | None = None,
    population: str | None = None,
    new_version: bool = False,
    force: bool = False,
    progress: Progress = SILENT,
    **options: Unpack[ProtectOptions],
) -> ProtectedSummary:
    """Protect a table or its summary, charge its cost to a ledger if one is given, and write the
    file.

    Parameters
    ----------
    subject, policy
        The table or its summary, and its policy.
    output
        The file, with the extension `.protected`.
    ledger, population
        The ledger, and the name of the population in it. The cost of noise is reserved before any
        is drawn, and spent once the file exists. Level `counts` has no cost.
    new_version
        Whether the table is a new version of the table that the ledger has recorded.
    request, options
        The level and its options: a `ProtectRequest`, or its options as keywords.
    force
        Whether to overwrite an existing file.
    progress
        Receives one step per stage.

    Raises
    ------
    PolicyError
        Only one of ledger and population is given, the budget is exhausted, the ledger has recorded
        another table or key, or the options do not belong to the level.
    DataError
        The ledger was tampered with, or a file cannot be read or written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from aegis.safe.protect import release_protected
    >>> table, policy = "data/adult.parquet", "examples/adult/policy.yaml"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "adult.protected")
    ...     made = release_protected(table, policy, file, epsilon=1, delta=1e-6, public=["*"])
    >>> made.protection.epsilon
    1
    """
    request = request_with(ProtectRequest, request, options)
    with _paying(ledger, population, subject, new_version, request) as spending:
        protected = protect(subject, policy, request, progress=progress)
        if spending is not None:
            spending.begin()
        digest = save_protected(protected, output, force=force)
        return _entered(protected, spending, digest)


def _entered(
    protected: ProtectedSummary, spending: Spending | None, digest: str
) -> ProtectedSummary:
    """Record the file in the ledger (None: no ledger); return the summary with notes on what it
    records.
    """
    if spending is None:
        if protected.protection.level is ProtectionLevel.COUNTS:
            return replace(protected, notes=(*protected.notes, _NOT_REMEMBERED))
        return protected
    rounds = protected.protection.rounds
    spending.commit(
        digest,
        sensitivity="; ".join(f"{r.name} {r.sensitivity:.6g}" for r in rounds),
        sigma="; ".join(f"{r.name} {r.sigma:.6g}" for r in rounds),
    )
    notes = (*protected.notes, *_notes_on_versions(spending), *_notes_on_unfinished(spending))
    return replace(protected, notes=notes)


@contextmanager
def _paying(
    ledger: str | Path | None,
    population: str | None,
    subject: Any,
    new_version: bool,
    request: ProtectRequest,
) -> Iterator[Spending | None]:
    """Reserve the cost in the ledger, and yield the reservation; None without a ledger. Level `counts`
    costs nothing, but is recorded. `new_version` says that the table is one.
    """
    if (ledger is None) != (population is None):
        noise = request.level == ProtectionLevel.NOISE
        budget = noise and (request.noise.epsilon is None or request.noise.delta is None)
        raise PolicyError(
            "--ledger and --population go together.",
            hint="Name both, or neither."
            + " Level noise also needs a budget, for example --epsilon 1 --delta 1e-6." * budget,
        )
    if ledger is None or population is None:
        if new_version:
            raise PolicyError(
                "--new-version works only with a ledger.", hint="Name --ledger and --population."
            )
        yield None
        return
    book = Ledger(Path(ledger))
    book.verify()
    book.population(population)
    key = request.counts.key
    noise = request.level == ProtectionLevel.NOISE
    spend = _cost(request.noise) if noise else None
    version = TableVersion(
        _table_digest(subject),
        # A hash that identifies the key without revealing it.
        "" if noise or key is None else hmac.new(key, b"aegis ledger", "sha256").hexdigest(),
        new_version,
    )
    note = "protected summary" if noise else "protected summary of level counts"
    with book.spending(population, spend, note=note, version=version) as spending:
        yield spending


def _table_digest(subject: Any) -> str:
    """Return the SHA-256 of a table, or of the values and counts of its exact summary."""
    if not isinstance(subject, Summary):
        return open_table(subject).content_digest()
    sha = sha256(f"{subject.rows}\n{subject.label.column}\n".encode())
    for name, attribute in sorted(subject.attributes.items()):
        sha.update(f"{name}\n{attribute.values.to_pylist()!r}\n".encode())
        sha.update(np.ascontiguousarray(attribute.joint, dtype=np.int64).tobytes())
    return sha.hexdigest()


def _notes_on_versions(spending: Spending) -> tuple[str, ...]:
    """Warn if several versions left at level `counts`, because readers can compare them."""
    entries = {entry.number: entry for entry in spending.ledger.entries()}
    entry = entries[spending.entry]
    versions = {e.table for e in entries.values() if e.key and e.population == entry.population}
    if not entry.key or len(versions) < 2:
        return ()
    return (
        f"{len(versions)} versions of the table have left at level counts: a reader of all files comes "
        "closer to the exact counts with each; level noise accounts for that",
    )


def _notes_on_unfinished(spending: Spending) -> tuple[str, ...]:
    """Return a note on costs of outputs that a stopped command never finished."""
    entries = spending.ledger.entries()
    population = next(e.population for e in entries if e.number == spending.entry)
    unfinished = (EntryState.RESERVED, EntryState.BEGUN)
    numbers = [
        str(entry.number)
        for entry in entries
        if entry.population == population and entry.spend and entry.state in unfinished
    ]
    if not numbers:
        return ()
    return (
        f"the ledger has no output for {counted(len(numbers), 'cost', 'costs')} of {population!r} "
        f"(entry {', '.join(numbers)}): a command was stopped, or still runs; a stopped command that "
        "you repeat is charged again, and aegis ledger FILE cancel NUMBER refunds a cost that is only "
        "reserved",
    )


def _cost(noise: NoiseRequest) -> Spend:
    """Return the cost to charge: the whole epsilon of the request, even if less noise is drawn."""
    return Spend(
        mechanism="discrete Gaussian: label tables and moments of codes",
        rho=budget_of(*_epsilon_and_delta(noise)),
        unit=str(noise.unit),
        rows_per_person=int(noise.rows_per_person),
    )


def _epsilon_and_delta(noise: NoiseRequest) -> tuple[float, float]:
    if noise.epsilon is None or noise.delta is None:
        raise PolicyError(
            "Level noise needs an epsilon and a delta.",
            hint="Give both, for example --epsilon 1 --delta 1e-6, in Python epsilon=1, delta=1e-6.",
        )
    return noise.epsilon, noise.delta
