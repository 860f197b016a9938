"""A protected summary written for someone outside, and entered in the ledger of what was told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aegis.errors import PolicyError
from aegis.ledger import Ledger, Spend
from aegis.ledger.book import Spending
from aegis.policy import Policy
from aegis.progress import SILENT, Progress
from aegis.protect.accounting import Unit, budget_of
from aegis.protect.build import protect
from aegis.protect.file import save_protected
from aegis.protect.model import ProtectedSummary, ProtectionLevel


def release_protected(
    subject: Any,
    policy: Policy | str | Path,
    output: str | Path,
    *,
    ledger: str | Path | None = None,
    population: str | None = None,
    force: bool = False,
    progress: Progress = SILENT,
    **options: Any,
) -> ProtectedSummary:
    """Protect a table or its summary, pay for it where a ledger is named, and write the file.

    Parameters
    ----------
    subject, policy
        As of `protect`.
    output
        The file, with the extension `.protected`.
    ledger, population
        The ledger of what was told of which people, and the name of these people in it. The cost
        of level noise is reserved before anything is drawn, and entered once the file is there;
        level counts has no cost, and is listed.
    force
        Overwrite an existing file.
    progress
        Receives one step per stage.
    options
        The level and what it takes: see `protect`.

    Raises
    ------
    PolicyError
        Only one of ledger and population is named, the budget is spent, or the options of the
        level are not allowed.
    DataError
        The ledger was tampered with, or a file cannot be read or written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from aegis.protect import release_protected
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = release_protected(
    ...         "data/adult.parquet",
    ...         "examples/adult/policy.yaml",
    ...         pathlib.Path(folder, "adult.protected"),
    ...         epsilon=1,
    ...         delta=1e-6,
    ...         public=["*"],
    ...     )
    >>> made.protection.epsilon
    1
    """
    with _paying(ledger, population, options) as spending:
        made = protect(subject, policy, **options, progress=progress)
        if spending is not None:
            spending.begin()
        digest = save_protected(made, output, force=force)
        if spending is not None:
            rounds = made.protection.rounds
            spending.commit(
                digest,
                sensitivity="; ".join(f"{r.name} {r.sensitivity:.6g}" for r in rounds),
                sigma="; ".join(f"{r.name} {r.sigma:.6g}" for r in rounds),
            )
    return made


@contextmanager
def _paying(
    ledger: str | Path | None, population: str | None, options: Mapping[str, Any]
) -> Iterator[Spending | None]:
    """Reserve what level noise will cost; level counts has no cost, and is listed afterwards."""
    if (ledger is None) != (population is None):
        raise PolicyError("--ledger and --population go together.", hint="Name both, or neither.")
    if ledger is None or population is None:
        yield None
        return
    book = Ledger(Path(ledger))
    book.verify()
    if options.get("level", ProtectionLevel.NOISE) != ProtectionLevel.NOISE:
        book.population(population)
        yield None
        book.list_release(population, "protected summary of level counts", "")
        return
    with book.spending(population, _cost(options), note="protected summary") as spending:
        yield spending


def _cost(options: Mapping[str, Any]) -> Spend:
    """Return what level noise costs under these options: the whole of its epsilon."""
    epsilon, delta = options.get("epsilon"), options.get("delta")
    if epsilon is None or delta is None:
        raise PolicyError(
            "Protection by noise needs an epsilon and a delta.",
            hint="Give both, for example --epsilon 1 --delta 1e-6.",
        )
    return Spend(
        mechanism="discrete Gaussian: label tables and moments of codes",
        rho=budget_of(epsilon, delta),
        unit=str(options.get("unit", Unit.ROWS)),
        rows_per_person=int(options.get("rows_per_person", 1)),
    )
