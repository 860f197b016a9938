"""Measure the utility for each of several labels again, and compare it with the certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aegis.advisor import Scorer, as_it_is, measure_for, tells_classes_apart, utility_kept
from aegis.advisor.utility import Reference, Rows, UtilityFigure
from aegis.measures.several import combined
from aegis.policy import LabelTask, Policy
from aegis.release.mismatch import Mismatch
from aegis.release.possible import is_number
from aegis.release.released import with_hidden
from aegis.sources import Source
from aegis.summary import summarize

OF_INPUT = ("reference", "stderr", "lost_classes", "reference_rmse")
"""Fields of a label's utility that can be computed only from the table before masking."""


def labels_differ(
    said: Any, released: Source, policy: Policy, *, whole: bool
) -> Iterator[Mismatch]:
    """Yield each utility figure of the labels in a certificate, together with the same figure
    measured on the released file.

    Each item has the path of the field, the certified value and the measured value. Equal values
    are included, because the caller compares them.

    Parameters
    ----------
    said
        The entry `utility` of the certificate.
    whole
        Whether no row was suppressed. Then the input and the released file have the same label
        classes.
    """
    several = policy.label.several
    assert several is not None
    stated = said.get("labels") if isinstance(said, Mapping) else None
    if not isinstance(stated, Mapping) or set(stated) != set(several.columns):
        yield Mismatch("utility.labels", stated, list(several.columns))
        return
    source, shares = with_hidden(released, policy), []
    for task in policy.tasks:
        own, what = stated[task.label.column], f"utility.labels.{task.label.column}"
        percent = own.get("kept", "") if isinstance(own, Mapping) else ""
        if not (percent is None or is_number(percent)):
            yield Mismatch(what, own, "what is kept of the label")
            return
        shares.append(None if percent is None else percent / 100)
        for key, certified, measured in _label(own, source, policy, task, whole=whole):
            yield Mismatch(f"{what}.{key}", certified, measured)
    value = combined(several.serve, shares, [task.weight for task in policy.tasks])
    there = any(share is not None for share in shares)
    for key, measured in {
        "measure": several.measure,
        "value": value,
        "reference": float(there),
        "kept": 100 * value if there else None,
        "reference_name": str(Reference.UNMASKED),
        "rows": str(Rows.RELEASED),
        "lost_classes": {},
        "stderr": None,
    }.items():
        yield Mismatch(f"utility.{key}", said.get(key), measured)


def _label(
    said: Mapping[str, Any], source: Source, policy: Policy, task: LabelTask, *, whole: bool
) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, stated value and measured value of each field in `said`, the figures of one
    label. `whole` says that no row was suppressed.
    """
    own, rows = policy.of_task(task), None
    yield "reference_name", said.get("reference_name"), str(Reference.UNMASKED)
    yield "rows", said.get("rows"), str(Rows.RELEASED)
    if whole:
        yield "lost_classes", said.get("lost_classes"), {}
    chosen = task.measure_by(str(said.get("measure")))
    if tells_classes_apart(source, own):
        scorer = Scorer(summarize(source, as_it_is(own)))
        chosen, _ = measure_for(scorer.summary, chosen.name)
        value, rows = scorer.value(scorer.unmasked, chosen), scorer.label_rows
        yield "value", said.get("value"), value
        figure = UtilityFigure(chosen.name, value, value)
        number = scorer.summary.number
        errors = figure.with_errors(number, number).to_dict()
        for key in ("rmse", "one_row"):
            yield key, said.get(key), errors.get(key)
    else:
        value = chosen.worst()
        if chosen.constant is None:
            yield "value", said.get("value"), value
    yield "measure", said.get("measure"), task.measure or chosen.name
    reference = said.get("reference")
    if not is_number(reference):
        yield "reference", reference, "a number"
    elif chosen.constant is None or (whole and rows is not None):
        yield "kept", said.get("kept"), utility_kept(value, float(reference), chosen, rows)
