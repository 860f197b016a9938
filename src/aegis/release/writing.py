"""Write all releases in the same steps: rows, checks, utility, certificate, final names.

Masks and record-level methods differ only in how they produce the rows of a release. Aegis writes
the rows under a temporary name, reads them back and checks them against the rule. Then it measures
the utility and makes the certificate. Only then do file and certificate get their final names. So
nobody can mistake a file that failed a check for a release.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import ibis.expr.types as ir
import pyarrow as pa

from aegis.errors import PolicyError
from aegis.files import check_output, replacing, spare_input
from aegis.measures import MEASURES
from aegis.policy import Policy
from aegis.progress import Progress
from aegis.release.auditing import Audit
from aegis.release.released import Released, certify, utility_of, write_certificate
from aegis.release.write import is_text, target_of
from aegis.requests import ReleaseRequest
from aegis.signing import seal
from aegis.sources import Source, open_table
from aegis.sources.table_files import formulas_in, with_settled_floats
from aegis.summary.coded_rows import holding
from aegis.summary.outside import comparable

R = TypeVar("R", bound=Released)


def check_destination(source: Source, request: ReleaseRequest) -> None:
    """Check where a release of `source` is to be written, without creating anything.

    Raises
    ------
    PolicyError
        The output or the certificate exists and `force` is not set; the output is the input;
        the extension of the output is unknown; a certificate is requested without an output or
        with the same name as the output; or the measure is unknown.
    """
    output, force = request.output, request.force
    if output is not None:
        target_of(source, output, safe_csv=request.safe_csv, force=force).check()
    if request.certificate is not None:
        file = Path(request.certificate)
        _check_certificate(file, output, force=force)
        spare_input(source.files, file)
    if request.measure is not None:
        MEASURES.get(request.measure)
    if request.key is not None and request.certificate is None:
        raise PolicyError(
            "Aegis signs certificates, and you asked for none.",
            hint="Name a certificate, or leave the key out.",
        )


def _check_certificate(certificate: Path, output: str | Path | None, *, force: bool) -> None:
    if output is None:
        raise PolicyError(
            "A certificate describes a file, and you named no output.",
            hint="Name an output, or leave the certificate out.",
        )
    if certificate.resolve() == Path(output).resolve():
        raise PolicyError(
            f"The certificate and the masked table would both be {certificate}.",
            hint="Give the certificate another name.",
        )
    check_output(certificate, force=force, formats=None)


class ReleasePlan(ABC, Generic[R]):
    """A release that is planned: its rows are not written yet.

    Attributes
    ----------
    source
        The input table.
    policy
        Roles and the rule.
    engine
        The source whose engine runs the query `table`.
    table
        The released rows, as a query.
    suppressed_rows
        Number of rows of the input that `table` leaves out.
    persons, suppressed_persons
        Number of persons of the input, and of persons who lose a row; None if rows are counted.
    unseen
        For each attribute the number of rows with a value that its mask does not know.
    progress
        Receives one step per stage.
    started, timings
        The time when work began, and the seconds that each step took.
    measured
        The rows of `table` with their weights (`WEIGHT`) and persons (`PERSON`), from which the
        utility is measured; None if the policy names neither.
    """

    source: Source
    policy: Policy
    engine: Source
    table: ir.Table
    suppressed_rows: int
    persons: int | None = None
    suppressed_persons: int | None = None
    unseen: Mapping[str, int]
    progress: Progress
    started: float
    timings: dict[str, float]
    measured: Source | None = None

    @abstractmethod
    def verify(self, output: Source) -> Audit:
        """Audit the written table.

        Raises
        ------
        InternalError
            The written table is not as planned.
        """

    def batches(self) -> Iterator[pa.RecordBatch] | None:
        """Return the rows of `table` in batches, if they can be masked without a query; otherwise
        None.
        """
        return None

    @abstractmethod
    def describe(self, **common: Any) -> R:
        """Return the release object; `common` has the fields that all kinds of releases share."""

    @abstractmethod
    def how(self, release: R) -> Mapping[str, Any]:
        """Return a description of how the release was made, for the certificate."""

    def verified(self, output: Source, **where: Any) -> R:
        """Audit the written table and return the verified release; `where` states where the table
        is.
        """
        started = time.perf_counter()
        checked = self.verify(output)
        self.timings["verify"] = time.perf_counter() - started
        self.timings["total"] = time.perf_counter() - self.started
        return self.describe(
            rows=self.source.rows,
            released_rows=checked.report.rows,
            persons=self.persons,
            suppressed_persons=self.suppressed_persons,
            audit=checked,
            unseen=self.unseen,
            dropped=tuple(c for c in self.source.columns if c not in self.table.columns),
            timings=self.timings,
            **where,
        )


def release_rows(plan: ReleasePlan[R], request: ReleaseRequest) -> R:
    """Write the planned rows, or collect them in memory, and return the verified release.

    Raises
    ------
    InternalError
        The written table is not as planned. Nothing is released.
    EngineError
        The engine failed while it computed or wrote the rows.
    """
    plan.table = with_settled_floats(plan.table)
    if plan.policy.person is not None:
        plan.table = _sorted_by_values(plan.table)
    if request.output is None:
        data = plan.engine.collect(plan.table)
        return plan.verified(open_table(data), data=data)
    return _release_file(plan, request.output, request)


def _sorted_by_values(table: ir.Table) -> ir.Table:
    """Sort rows by their released values, so that their order does not show whose rows they are."""
    return table.order_by(comparable(table))


def _release_file(plan: ReleasePlan[R], output: str | Path, request: ReleaseRequest) -> R:
    """Write the rows, audit the written file, and only then give it its final name."""
    name = Path(output).name
    started = time.perf_counter()
    with ExitStack() as stack:
        # Left last: it is whole on disk before the table takes its name, and takes its own
        # after that, so that there is no certificate of a table that is not there.
        draft = None
        if request.certificate is not None:
            certificate = replacing(Path(request.certificate), force=request.force)
            draft = stack.enter_context(certificate)
        with plan.progress.step(f"Writing {name}"):
            target = target_of(
                plan.engine,
                output,
                safe_csv=request.safe_csv,
                force=request.force,
                batches=plan.batches,
            )
            made = stack.enter_context(target.written(plan.table))
        if draft is not None:
            stack.enter_context(holding(made))
        plan.timings["write"] = time.perf_counter() - started
        with plan.progress.step(f"Verifying {name}"):
            release = plan.verified(made, path=_path(plan.engine, output))
            if is_text(output) and not request.safe_csv:
                release = replace(release, formulas=tuple(formulas_in(made)))
        return release if draft is None else _certified(plan, release, made, draft, request)


def _path(source: Source, output: str | Path) -> str | Path:
    return str(output) if source.engine.rows_stay else Path(output)


def _certified(
    plan: ReleasePlan[R], release: R, made: Source, draft: Path, request: ReleaseRequest
) -> R:
    """Measure the utility of the written table `made`, and write its certificate to `draft`; return
    the release with both.
    """
    with plan.progress.step("Measuring the utility that is kept"):
        utility = utility_of(
            plan.source, made, plan.policy, measure=request.measure, measured=plan.measured
        )
    release = replace(release, utility=utility)
    stated = certify(release, plan.source, made, plan.policy, plan.how(release))
    document = seal(json.loads(json.dumps(stated)), request.key)  # as its JSON holds it
    write_certificate(draft, document)
    return replace(release, certificate=document)
