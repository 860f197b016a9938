"""Write all releases in the same steps: configuration, rows, checks, utility, certificate, final
names. The checks compare a masked table with its masks, and measure the weight of its rows.

Masks and record-level methods differ only in how they produce the rows of a release. Aegis writes
the rows under a temporary name, reads them back and checks them against the rule. Then it measures
the utility and makes the certificate. Only then do file and certificate get their final names. So
nobody can mistake a file that failed a check for a release.
"""

from __future__ import annotations

import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.compute as pc

from aegis.advisor import Advice, Ranked
from aegis.errors import DataError, InternalError, PolicyError
from aegis.files import Progress, check_output, format_of, replacing, spare_input
from aegis.masking import fit_masks
from aegis.masks import Mask, Suppress, parts_of
from aegis.masks.base import SUPPRESSED, Kind
from aegis.masks.categories import among, text_of
from aegis.masks.grouping import evaluate_columns
from aegis.measures import MEASURES
from aegis.policy import Configuration, OwnerRule, Policy, Role, SuppressedColumns, required_mask
from aegis.release.auditing import Audit
from aegis.release.possible import brief
from aegis.release.released import Released, certify, utility_of
from aegis.release.risk_of_records import record_risk
from aegis.requests import ReleaseRequest
from aegis.signing import seal
from aegis.sources import Source, open_table
from aegis.sources.spark import SparkFolder
from aegis.sources.table_files import (
    formulas_in,
    reading_of,
    with_settled_floats,
    without_formulas,
    write_parquet,
    write_table,
)
from aegis.summary.classes import WEIGHT
from aegis.summary.coded_rows import holding, read_rows
from aegis.summary.outside import comparable
from aegis.words import json_fields

Batches = Callable[[], Iterator[pa.RecordBatch] | None]


@dataclass(frozen=True)
class FileTarget:
    """A file to which this process writes a release.

    Attributes
    ----------
    source
        The table whose engine runs the query.
    path
        The file; its extension determines the format.
    safe_csv
        Whether texts are written in a form that spreadsheets do not interpret as formulas.
    force
        Whether an existing file is replaced.
    batches
        Function that returns the rows, if they need no query.
    """

    source: Source
    path: Path
    safe_csv: bool = False
    force: bool = False
    batches: Batches = lambda: None

    def check(self) -> None:
        """Raise `PolicyError` unless the file can be created."""
        check_output(self.path, force=self.force)
        spare_input(self.source.files, self.path)
        if self.safe_csv and not is_text(self.path):
            raise PolicyError(
                f"{self.path} is not CSV, in which texts could be taken for formulas.",
                hint="Leave out --safe-csv.",
            )

    @contextmanager
    def written(self, table: ir.Table) -> Iterator[Source]:
        """Write the result of a query to a temporary file, yield it for checks, then rename it."""
        rows = without_formulas(table) if self.safe_csv else table
        with replacing(self.path, force=self.force) as temporary:
            batches = self.batches() if format_of(self.path) == ".parquet" else None
            if batches is None:
                write_table(self.source, rows, temporary)
            else:
                write_parquet(self.source, table.schema().to_pyarrow(), batches, temporary)
            yield open_table(temporary, reading=reading_of(rows, self.path))


def is_text(path: str | Path) -> bool:
    """Return whether a file with this name is CSV, including compressed and tab-separated files."""
    return format_of(Path(path)).startswith((".csv", ".tsv"))


def target_of(
    source: Source,
    output: str | Path,
    *,
    safe_csv: bool = False,
    force: bool = False,
    batches: Batches = lambda: None,
) -> FileTarget | SparkFolder:
    """Return the target of a release: a folder if rows stay on the engine, else a file."""
    if source.engine.rows_stay:
        return SparkFolder(source, str(output), force)
    return FileTarget(source, Path(output), safe_csv, force, batches)


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

    def input_changed(self) -> bool:
        """Return whether the input has another number of rows than when it was first counted."""
        return replace(self.source).rows != self.source.rows

    def batches(self) -> Iterator[pa.RecordBatch] | None:
        """Return the rows of `table` in batches; None if they need a query."""
        return None

    @abstractmethod
    def describe(self, **common: Any) -> R:
        """Return the release object; `common` has the fields that all kinds of releases share."""

    @abstractmethod
    def how(self, release: R, output: Source) -> Mapping[str, Any]:
        """Return how the release was made, for the certificate of the written `output`."""

    def verified(self, output: Source, **where: Any) -> R:
        """Audit the written table, which is at `where`; return the verified release."""
        started = time.perf_counter()
        try:
            checked = self.verify(output)
        except InternalError as error:
            self.source.require_unchanged()
            if not self.input_changed():
                raise
            raise DataError(
                f"{self.source.origin} changed while Aegis read it, so Aegis released nothing: the "
                "written rows are not those on which it checked the rule.",
                hint="Does a program write to the table, or does a view draw rows at random? Copy the "
                "rows into a table that nobody changes, and release that one.",
            ) from error
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
            written = stack.enter_context(target.written(plan.table))
        if draft is not None:
            stack.enter_context(holding(written))
        plan.timings["write"] = time.perf_counter() - started
        with plan.progress.step(f"Verifying {name}"):
            on_engine = plan.engine.engine.rows_stay
            release = plan.verified(written, path=str(output) if on_engine else Path(output))
            release = replace(release, reading=written.reading)
            if is_text(output) and not request.safe_csv:
                release = replace(release, formulas=tuple(formulas_in(written)))
        return release if draft is None else _certified(plan, release, written, draft, request)


def _certified(
    plan: ReleasePlan[R], release: R, written: Source, draft: Path, request: ReleaseRequest
) -> R:
    """Measure the utility of what was written, and write its certificate to `draft`."""
    with plan.progress.step("Measuring the utility that is kept"):
        utility = utility_of(
            plan.source, written, plan.policy, measure=request.measure, measured=plan.measured
        )
    release = replace(release, utility=utility)
    how = plan.how(release, written)
    certificate = certify(release, plan.source, written, plan.policy, how, request.key)
    document = seal(json.loads(json.dumps(certificate)), request.key)  # as its JSON holds it
    text = json.dumps(document, indent=2, ensure_ascii=False)
    draft.write_text(f"{text}\n", encoding="utf-8")
    return replace(release, certificate=document)


def configuration_under(choice: Configuration | Ranked | Advice, policy: Policy) -> Configuration:
    """Return a configuration; refuse it if its owner's rule differs from the policy's."""
    configuration, _, owner = configuration_to_apply(choice)
    if owner is not None:
        what = f"The summary that {configuration.name!r} was chosen from"
        owner.require(policy.privacy, override=False, what=what)
    return configuration


def configuration_to_apply(
    choice: Configuration | Ranked | Advice,
) -> tuple[Configuration, str | None, OwnerRule | None]:
    """Return a configuration, the measure that chose it, and the rule of the summary's owner.

    The measure and the rule are None if they are not known.

    Raises
    ------
    NoAdmissibleConfiguration
        The advice has no admissible configuration.
    PolicyError
        `choice` has another type, or the best entry is a record-level release, which has no masks.
    """
    if isinstance(choice, Configuration):
        return choice, None, None
    if not isinstance(choice, Ranked | Advice):
        raise PolicyError(
            f"{choice!r} is not a configuration.",
            hint="Give the advice, an entry of its ranking, or one of "
            "aegis.load_configurations(path, policy).",
        )
    measure, owner = None, None
    if isinstance(choice, Advice):
        measure, owner, choice = choice.measure, choice.owner_rule, choice.require_best()
    elif choice.utility is not None:
        measure = choice.utility.measure
    if choice.method is not None:
        raise PolicyError(
            f"{choice.name} is a record-level release, so it has no masks to apply.",
            hint="Give its recipe to `anonymize`.",
        )
    return choice.configuration, measure, owner


def release_masks(policy: Policy, configuration: Configuration) -> dict[str, Mask | None]:
    """Return the mask of each released column, or None for columns that are not changed.

    Identifiers are left out, unless the policy gives them a mask (`tokenise`). The label is not
    changed unless the policy masks it.

    Raises
    ------
    PolicyError
        The configuration leaves out a scored attribute.
    """
    masks: dict[str, Mask | None] = {}
    for attribute in policy.released():
        if attribute.role is Role.IDENTIFIER:
            masks[attribute.name] = attribute.masks[0]
        elif attribute.name == policy.label.column and attribute.name not in configuration.masks:
            masks[attribute.name] = policy.label_mask or required_mask(
                configuration, attribute.name
            )
        else:
            masks[attribute.name] = required_mask(configuration, attribute.name)
    return policy.with_label(masks)


def hidden_columns(policy: Policy, masks: Mapping[str, Mask | None]) -> tuple[str, ...]:
    """Return the columns that a release omits because their mask suppresses every value.

    None are omitted if the policy fills them with `*`, or if there would be no others. Columns that the
    rule protects stay, because an audit measures them.
    """
    if policy.suppressed_columns is SuppressedColumns.FILL:
        return ()
    hidden = tuple(
        name
        for name, mask in masks.items()
        if isinstance(mask, Suppress) and name not in policy.privacy.sensitive
    )
    return hidden if len(hidden) < len(masks) else ()


def learnt_bounds(masks: Mapping[str, Mask], rows: int) -> dict[str, str]:
    """Return, by column, sentences on what learnt bounds, each shared by `rows` rows, reveal."""
    return {
        name: " ".join(dict.fromkeys(learns))
        for name, mask in masks.items()
        if (learns := [m.learns.format(rows=rows) for m in parts_of(mask) if m.learns])
    }


@dataclass(frozen=True)
class StatedMasks:
    """The masks of a release as its certificate states them: no mask lists a learnt value that the
    release does not show.

    Attributes
    ----------
    masks
        Masks by column.
    learnt_elsewhere
        Columns whose mask is stated without its list, and learnt this list from another table. The
        table of the release does not show how their values were grouped.
    """

    masks: Mapping[str, Mask]
    learnt_elsewhere: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, masks: Mapping[str, Mask], policy: Policy, source: Source, output: Source
    ) -> StatedMasks:
        """Return the fitted `masks` of the release `output` of the table `source`."""
        all_rows = source.rows == output.rows
        masks_stated, elsewhere = dict(masks), []
        for name, mask in masks.items():
            unlisted = mask.unlisted()
            if unlisted == mask:
                continue
            learnt = fit_masks(source, {name: unlisted}, policy.shared_rows)[name]
            here = learnt is not None and _same_groups(learnt, mask)
            if _shows_list(output, name, mask) or (all_rows and here):
                continue
            masks_stated[name] = unlisted
            if mask.deterministic and not here:
                elsewhere.append(name)
        return cls(masks_stated, tuple(elsewhere))

    def to_dict(self) -> dict[str, Any]:
        """Return the masks, and the columns that learnt elsewhere, if there are any."""
        masks = {name: mask.spec() for name, mask in self.masks.items()}
        elsewhere = list(self.learnt_elsewhere)
        return {"masks": masks} | ({"learnt_elsewhere": elsewhere} if elsewhere else {})


def _shows_list(output: Source, name: str, mask: Mask) -> bool:
    """Return whether a released column must and does show each value that its mask lists."""
    values = getattr(mask, "values", None)
    if values is None or not mask.deterministic or name not in output.columns:
        return False
    column = output.table[name]
    rows = output.collect(output.table.select(v=column).distinct())["v"].to_pylist()
    texts = {str(text_of(value)) for value in rows if value is not None}
    return all(among(str(text_of(value)), texts) for value in values)


def _same_groups(mask: Mask, other: Mask) -> bool:
    """Return whether two fitted masks differ at most in the order of their lists of values."""

    def listed(fitted: Mask) -> list[tuple[str, dict[str, Any]]]:
        parts = [(part.name, part.parameters()) for part in parts_of(fitted)]
        return [
            (
                name,
                more | ({"values": sorted(map(str, more["values"]))} if "values" in more else {}),
            )
            for name, more in parts
        ]

    return listed(mask) == listed(other)


_NUMERIC = (Kind.INTEGER, Kind.NUMBER)


def unfitting(
    table: Any, policy: Policy, configuration: Configuration, kinds: Mapping[str, Kind]
) -> list[str]:
    """Describe everything in a masked table that its configuration cannot have produced.

    It must have exactly the released columns, with the types and values that their masks produce.
    `kinds` are those of the unmasked columns; one that is not listed may have any type.
    """
    source = open_table(table)
    masks = release_masks(policy, configuration)
    hidden = hidden_columns(policy, masks)
    expected = [name for name in masks if name not in hidden]
    wrong = [f"it has the column {n!r}" for n in source.columns if n not in expected]
    wrong += [f"it lacks the column {name!r}" for name in expected if name not in source.columns]
    there = {name: masks[name] for name in expected if name in source.columns}
    odd_of = odd_values(source, {name: mask for name, mask in there.items() if mask is not None})
    for name, mask in there.items():
        stored = Kind.of(source.table[name].type())
        kind = kinds.get(name)
        masked_kind = kind if mask is None or kind is None else mask.output_kind(kind)
        if masked_kind is not None and not _holds(stored, masked_kind):
            wrong.append(f"{name} holds {stored or 'another type'}, and {mask} shows {masked_kind}")
            continue
        odd = odd_of.get(name)
        if odd:
            wrong.append(f"{name} shows {', '.join(map(brief, odd))}, which {mask} cannot")
    return wrong


def odd_values(source: Source, masks: Mapping[str, Mask]) -> dict[str, list[str] | None]:
    """Return, by column, up to five values that its mask cannot show; None if the mask does not determine
    its values.

    Columns are read together, and masked together: a query for each of many columns would take long.
    """
    odd_of: dict[str, list[str] | None] = {}
    again: dict[str, pa.Array] = {}
    coded_rows = read_rows(source, tuple(masks)) if masks else None
    for name, mask in masks.items():
        odd_of[name] = None
        if not _determines_values(mask):
            continue
        column = source.table[name]
        if coded_rows is None:
            query = source.table.select(v=column).distinct()
            distinct = source.collect(query)["v"].combine_chunks()
        else:
            distinct = coded_rows.values[name]
        values = pc.drop_null(distinct)
        if not mask.idempotent:
            odd_of[name] = [text for text in map(str, values.to_pylist()) if not mask.shows(text)]
        elif len(values) and Kind.of(column.type()) not in mask.fits:
            odd_of[name] = list(map(str, values.to_pylist()))
        else:
            again[name] = values
    groupings = evaluate_columns([((masks[name],), values) for name, values in again.items()])
    for (name, values), [grouping] in zip(again.items(), groupings, strict=True):
        masked = grouping.masked_values.take(pa.array(grouping.codes)).to_pylist()
        pairs = zip(values.to_pylist(), masked, strict=True)
        odd_of[name] = [str(value) for value, remasked in pairs if value != remasked]
    return {name: None if odd is None else sorted(odd)[:5] for name, odd in odd_of.items()}


def _determines_values(mask: Mask) -> bool:
    """Return whether a mask, perhaps without its hierarchy, determines its values."""
    try:
        return mask.idempotent or mask.shows(SUPPRESSED) is not None
    except InternalError:
        return False


def _holds(stored: Kind | None, masked: Kind) -> bool:
    """Return whether a stored column can have the kind that a mask produces.

    Whole numbers may be stored as integers or as other numbers: pandas stores integers with nulls as
    floats, and a noisy summary learns from the values, not from the type, that numbers are whole.
    """
    return stored is masked or (stored in _NUMERIC and masked in _NUMERIC)


_FEWEST_STEPS = 10
"""Smallest sum of all weights, in units of the last digit that a certificate states, for which the
certificate states a share of it.
"""
MOST_ROWS = 2_000_000
"""Largest number of rows of a release for which the expected number of people found is estimated.
"""


@dataclass(frozen=True)
class KeptWeight:
    """The weight of released rows, and how many people an attacker could find with them.

    Attributes
    ----------
    column
        Column of the weights in the input; the release does not contain it.
    total, released
        Sum of the weights of all rows, and sum of the weights of the released rows.
    heaviest
        The largest weight of a row.
    expected
        Expected number of people whom an attacker finds by trying all released records. None if
        weights are not numbers of people, or if the quasi-identifiers are not read.
    largest
        Largest probability, over all records, that an attacker finds the person of the record; None
        if `expected` is None.
    """

    column: str
    total: float
    released: float
    heaviest: float
    expected: float | None = None
    largest: float | None = None

    @property
    def suppressed_share(self) -> float:
        """Share of the weight that was suppressed, from 0 to 1."""
        return 1 - self.released / self.total if self.total else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        figures = ("expected_found=expected", "largest_chance=largest")
        return json_fields(self, "column", "total", "released", "suppressed_share", *figures)

    def for_certificate(self) -> dict[str, Any]:
        """Return the figures for a certificate. Exact sums would reveal the weight of a suppressed row,
        so they are rounded to a power of ten above all weights. The share follows from them; it is
        None if it could be wrong by more than 0.1.
        """
        step = 10.0 ** math.ceil(math.log10(self.heaviest)) if self.heaviest > 0 else 1.0
        total, released = (
            float(f"{round(x / step) * step:.12g}") for x in (self.total, self.released)
        )
        figures = replace(self, total=total, released=released).to_dict()
        if total < _FEWEST_STEPS * step:
            figures["suppressed_share"] = None
        return figures | {
            key: None if value is None else float(f"{value:.3g}")
            for key, value in figures.items()
            if key not in ("column", "total", "released")
        }


def not_released(weight: str) -> str:
    """Return a warning that the release lacks the weights of its rows, with a remedy."""
    return (
        f"The release does not show the weights in {weight!r}, because a rare weight singles out its row. People who "
        "use the release count each row once. To release rounded weights, give the column masks such as "
        "[{round: {step: 100}}, suppress]"
    )


def kept_weight(source: Source, rows: Source, column: str, quasi: Sequence[str]) -> KeptWeight:
    """Measure the weight of the released `rows` (in `WEIGHT`) against that of the table (in `column`), and
    the risk in the classes by `quasi`.
    """
    weights = source.table[column]
    input_sums = source.collect(
        source.table.aggregate(
            total=weights.sum().cast("float64"), heaviest=weights.max().cast("float64")
        )
    )
    kept_weights = rows.table[WEIGHT]
    kept_sums = rows.collect(
        rows.table.aggregate(
            total=kept_weights.sum().cast("float64"),
            least=kept_weights.min().cast("float64"),
            rows=rows.table.count(),
        )
    )
    total, released = (float(of["total"][0].as_py() or 0.0) for of in (input_sums, kept_sums))
    heaviest = float(input_sums["heaviest"][0].as_py() or 0.0)
    count, least = int(kept_sums["rows"][0].as_py()), float(kept_sums["least"][0].as_py() or 0.0)
    # People are counted where each record stands for at least itself.
    if not quasi or not 0 < count <= MOST_ROWS or least < 1 or not rows.engine.in_process:
        return KeptWeight(column, total, released, heaviest)
    risk = record_risk(rows, quasi_identifiers=tuple(quasi), weight=WEIGHT)
    return KeptWeight(column, total, released, heaviest, risk.expected, float(risk.risks.max()))
