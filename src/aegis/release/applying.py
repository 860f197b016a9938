"""Apply a configuration: mask, suppress, write, verify what was written, document it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import aegis
from aegis.advisor import Scorer, as_it_is, kept
from aegis.errors import DataError, InternalError, NoAdmissibleConfiguration
from aegis.files import check_output, replacing, write_text
from aegis.measures import MEASURES
from aegis.policy import Configuration, Policy, Unseen, policy_digest, policy_mapping
from aegis.privacy import Verdict
from aegis.progress import SILENT, Progress
from aegis.release.auditing import Audit, audit
from aegis.release.masked import count_unseen, fit_masks, refuse_unseen, release_masks
from aegis.release.write import write_table
from aegis.sources import Source, open_table
from aegis.summary import masked_table, summarize, suppress

if TYPE_CHECKING:
    import polars

CERTIFICATE_VERSION = 1
"""Version of the JSON form of the certificate."""


@dataclass(frozen=True, eq=False)
class Utility:
    """Predictive value measured on the released rows.

    Attributes
    ----------
    measure
        Name of the measure.
    unmasked, released
        The measure of the input as it is, and of the output.
    kept
        Percent of the unmasked utility that the output keeps; None where there was none.
    """

    measure: str
    unmasked: float
    released: float
    kept: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "measure": self.measure,
            "unmasked": self.unmasked,
            "released": self.released,
            "kept": self.kept,
        }


@dataclass(frozen=True, eq=False)
class Release:
    """A masked table that was checked after it was made.

    Attributes
    ----------
    configuration
        The masks, all fitted: apply it to other tables and equal values are masked alike.
    rows, released_rows
        Rows of the input and of the output; the difference was suppressed.
    audit
        Privacy figures measured on the output.
    path
        The written file, or None when the release stayed in memory.
    data
        The masked rows when they stayed in memory, else None.
    unseen
        Per attribute the rows whose value its mask did not know, shown as `*`.
    utility
        Predictive value of the output, where it was asked for.
    dropped
        Columns of the input that are not in the output.
    certificate
        The JSON document, where it was asked for.
    timings
        Seconds per step.
    """

    configuration: Configuration
    rows: int
    released_rows: int
    audit: Audit
    path: Path | None = None
    data: pa.Table | None = None
    unseen: Mapping[str, int] = field(default_factory=dict)
    utility: Utility | None = None
    dropped: tuple[str, ...] = ()
    certificate: Mapping[str, Any] | None = None
    timings: Mapping[str, float] = field(default_factory=dict)

    @property
    def suppressed_rows(self) -> int:
        """Rows that were left out because their class was too small or too uniform."""
        return self.rows - self.released_rows

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the release as JSON values."""
        return {
            "path": None if self.path is None else str(self.path),
            "rows": self.rows,
            "released_rows": self.released_rows,
            "suppressed_rows": self.suppressed_rows,
            "unseen_rows": dict(self.unseen),
            "dropped_columns": list(self.dropped),
            "configuration": self.configuration.spec(),
            "utility": None if self.utility is None else self.utility.to_dict(),
            "privacy": self.audit.to_dict(),
            "timings": dict(self.timings),
        }

    def to_polars(self) -> polars.DataFrame:
        """Return the masked rows as a Polars frame (Polars must be installed)."""
        import polars

        if self.data is not None:
            frame = polars.from_arrow(self.data)
        elif self.path is not None:
            frame = polars.from_arrow(open_table(self.path).table.to_pyarrow())
        else:
            raise InternalError("A release has neither rows nor a file.")
        if not isinstance(frame, polars.DataFrame):
            raise InternalError("A release is not a table.")
        return frame

    def __repr__(self) -> str:
        where = f" in {self.path}" if self.path else ""
        return (
            f"Release({self.released_rows:,} of {self.rows:,} rows{where}, "
            f"k = {self.audit.report.k}, {self.suppressed_rows:,} suppressed)"
        )


def apply(
    table: Any,
    policy: Policy,
    configuration: Configuration,
    *,
    output: str | Path | None = None,
    certificate: str | Path | None = None,
    force: bool = False,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Release:
    """Mask a table, leave out what fails the rule, and verify the result.

    Privacy is measured on what was written: the file is read back and audited before it takes
    its final name. Without `output` the masked rows come back in memory, audited all the same.

    Parameters
    ----------
    table
        Anything that `aegis.sources.open_table` opens.
    policy
        Roles, the privacy rule, what happens to unseen values.
    configuration
        One mask per scored attribute. Masks that depend on the data and are not fitted yet are
        fitted to this table; the release holds the fitted configuration.
    output
        Path of the masked table: .parquet, .csv, .tsv, .arrow or .feather.
    certificate
        Path of the certificate (JSON).
    force
        Overwrite existing files.
    seed
        Seed of the samples behind the utility that the certificate states.
    progress
        Receives one step per stage.

    Raises
    ------
    NoAdmissibleConfiguration
        More rows than the rule allows would have to be suppressed; nothing is written.
    DataError
        The table holds values that a mask does not know and the policy says `unseen: error`.
    PolicyError
        An output exists and `force` is not set, or its extension names no format.
    """
    target = None if output is None else Path(output)
    paper = None if certificate is None else Path(certificate)
    if target is not None:
        check_output(target, force=force)
    if paper is not None:
        check_output(paper, force=force, formats=None)
    job = _Job(open_table(table), policy, configuration, seed, progress)
    release = job.in_memory() if target is None else job.written(target, certify=paper is not None)
    if paper is not None and release.certificate is not None:
        write_text(paper, json.dumps(release.certificate, indent=2, ensure_ascii=False) + "\n")
    return release


class _Job:
    """The steps of `apply`, sharing the masked query and what was counted."""

    def __init__(
        self,
        source: Source,
        policy: Policy,
        configuration: Configuration,
        seed: int,
        progress: Progress,
    ) -> None:
        self.started = time.perf_counter()
        self.source = source
        self.policy = policy
        self.seed = seed
        self.progress = progress
        if source.rows == 0:
            raise DataError(f"{source.origin} has no rows.", hint="Give a table with rows.")
        self.masks = fit_masks(source, release_masks(policy, configuration))
        self.configuration = Configuration(
            configuration.name,
            {n: m for n, m in self.masks.items() if n in configuration.masks and m},
        )
        self.unseen = count_unseen(source, self.masks)
        if policy.unseen is Unseen.ERROR:
            refuse_unseen(self.unseen)
        self.quasi = tuple(a.name for a in policy.quasi_identifiers)
        with progress.step("Checking classes"):
            masked = masked_table(source, self.masks)
            self.kept, self.verdict = suppress(
                source,
                masked,
                self.quasi,
                policy.privacy.sensitive,
                policy.privacy,
                policy.protected_hierarchies,
            )
        _require(self.verdict, configuration)
        self.timings = {"plan": time.perf_counter() - self.started}

    def in_memory(self) -> Release:
        """Return the masked rows themselves, audited."""
        data = self.source.collect(self.kept)
        return self._release(open_table(data), data=data)

    def written(self, target: Path, *, certify: bool) -> Release:
        """Write the masked rows, audit the written file, and only then give it its name."""
        with replacing(target) as temporary:
            started = time.perf_counter()
            with self.progress.step(f"Writing {target.name}"):
                write_table(self.source, self.kept, temporary)
            self.timings["write"] = time.perf_counter() - started
            with self.progress.step(f"Verifying {target.name}"):
                output = open_table(temporary)
                release = self._release(output, path=target)
            if certify:
                with self.progress.step("Measuring the utility that is kept"):
                    utility = self._utility(output)
                release = replace(release, utility=utility)
                release = replace(release, certificate=self._certificate(release, output))
        return release

    def _release(self, output: Source, **where: Any) -> Release:
        """Audit the output and describe the release.

        Raises
        ------
        InternalError
            The output does not meet the rule although the plan did: nothing is released.
        """
        started = time.perf_counter()
        checked = audit(output, policy=self.policy)
        expected = self.source.rows - self.verdict.suppressed_rows
        if checked.violations or checked.report.rows != expected:
            found = (
                "; ".join(checked.violations) or f"{checked.report.rows:,} rows, not {expected:,}"
            )
            raise InternalError(
                f"The written table is not what was planned: {found}.",
                hint="Nothing was released. Please report this with the policy and configuration.",
            )
        self.timings["verify"] = time.perf_counter() - started
        self.timings["total"] = time.perf_counter() - self.started
        return Release(
            configuration=self.configuration,
            rows=self.source.rows,
            released_rows=checked.report.rows,
            audit=checked,
            unseen=self.unseen,
            dropped=tuple(c for c in self.source.columns if c not in self.masks),
            timings=self.timings,
            **where,
        )

    def _utility(self, output: Source) -> Utility:
        """Measure the predictive value of the input and of the output, both as they stand."""
        measure = MEASURES.get(self.policy.measure)
        before = Scorer(summarize(self.source, as_it_is(self.policy, measure.name), seed=self.seed))
        after = Scorer(summarize(output, as_it_is(self.policy, measure.name), seed=self.seed))
        unmasked = before.value(before.unmasked, measure)
        released = after.value(after.unmasked, measure)
        return Utility(
            measure.name, unmasked, released, kept(released, unmasked, measure.direction)
        )

    def _certificate(self, release: Release, output: Source) -> dict[str, Any]:
        """Return the document that goes with the released file."""
        return {
            "certificate": CERTIFICATE_VERSION,
            "aegis": aegis.__version__,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "input": {
                "origin": self.source.origin,
                "rows": self.source.rows,
                "sha256": self.source.digest(),
            },
            "output": {
                "file": None if release.path is None else release.path.name,
                "rows": release.released_rows,
                "sha256": output.digest(),
            },
            "policy": {"sha256": policy_digest(self.policy), **policy_mapping(self.policy)},
            "configuration": {
                "name": self.configuration.name,
                "masks": self.configuration.spec(),
            },
            "suppressed_rows": release.suppressed_rows,
            "unseen_rows": dict(release.unseen),
            "dropped_columns": list(release.dropped),
            "utility": None if release.utility is None else release.utility.to_dict(),
            "privacy": release.audit.to_dict(),
        }


def _require(verdict: Verdict, configuration: Configuration) -> None:
    if not verdict.admissible:
        raise NoAdmissibleConfiguration(
            f"Configuration {configuration.name!r} does not meet the privacy rule on this table: "
            f"{'; '.join(verdict.violations)}.",
            hint="Choose a coarser configuration, or allow more suppression in the policy.",
        )
