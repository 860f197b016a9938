"""Write a protected summary for others, and charge its cost to a ledger."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from aegis.errors import PolicyError
from aegis.options import asked, checks_types
from aegis.policy import Policy
from aegis.progress import SILENT, Progress
from aegis.safe.ledger import Ledger, Spend, TableVersion
from aegis.safe.ledger.book import Spending
from aegis.safe.protect.accounting import budget_of
from aegis.safe.protect.build import protect
from aegis.safe.protect.file import save_protected
from aegis.safe.protect.model import ProtectedSummary, ProtectionLevel
from aegis.safe.requests import NoiseRequest, ProtectOptions, ProtectRequest
from aegis.sources import open_table
from aegis.summary import Summary

_NOT_REMEMBERED = (
    "no ledger remembers this file: two versions of a table under one key show the rows that changed, "
    "and files of one table under several keys average to its exact counts; name --ledger and "
    "--population, and both are refused"
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
        The ledger, and the name of the population in it. The cost of level noise is reserved before
        any noise is drawn, and committed once the file exists. Level counts has no cost.
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
    given = asked(ProtectRequest, request, options)
    with _paying(ledger, population, subject, new_version, given) as spending:
        made = protect(subject, policy, given, progress=progress)
        if spending is not None:
            spending.begin()
        digest = save_protected(made, output, force=force)
        return _entered(made, spending, digest)


def _entered(made: ProtectedSummary, spending: Spending | None, digest: str) -> ProtectedSummary:
    """Record the written file in the ledger, and return the summary with a note if the ledger has
    several versions of the table. Without a ledger (`spending` is None), the note says at level
    `counts` that no ledger records the file. `digest` is the digest of the file.
    """
    if spending is None:
        counts = made.protection.level is ProtectionLevel.COUNTS
        return replace(made, notes=(*made.notes, _NOT_REMEMBERED)) if counts else made
    rounds = made.protection.rounds
    spending.commit(
        digest,
        sensitivity="; ".join(f"{r.name} {r.sensitivity:.6g}" for r in rounds),
        sigma="; ".join(f"{r.name} {r.sigma:.6g}" for r in rounds),
    )
    return replace(made, notes=(*made.notes, *_notes_on_versions(spending)))


@contextmanager
def _paying(
    ledger: str | Path | None,
    population: str | None,
    subject: Any,
    new_version: bool,
    request: ProtectRequest,
) -> Iterator[Spending | None]:
    """Reserve the cost of the output in the ledger, and yield the reservation; yield None without a
    ledger.

    Level counts has no cost, but the ledger records the output.
    """
    if (ledger is None) != (population is None):
        raise PolicyError("--ledger and --population go together.", hint="Name both, or neither.")
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
    """Return a warning if several versions of a table were published at level counts."""
    entries = {entry.number: entry for entry in spending.ledger.entries()}
    own = entries[spending.entry]
    versions = {e.table for e in entries.values() if e.key and e.population == own.population}
    if not own.key or len(versions) < 2:
        return ()
    return (
        f"{len(versions)} versions of the table have left at level counts: a reader of all files comes "
        "closer to the exact counts with each; level noise accounts for that",
    )


def _cost(noise: NoiseRequest) -> Spend:
    """Return the cost of level noise: its whole epsilon, even if the noise that is drawn costs
    less.
    """
    if noise.epsilon is None or noise.delta is None:
        raise PolicyError(
            "Protection by noise needs an epsilon and a delta.",
            hint="Give both, for example --epsilon 1 --delta 1e-6.",
        )
    return Spend(
        mechanism="discrete Gaussian: label tables and moments of codes",
        rho=budget_of(noise.epsilon, noise.delta),
        unit=str(noise.unit),
        rows_per_person=int(noise.rows_per_person),
    )
