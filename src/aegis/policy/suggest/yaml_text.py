"""Write a proposed policy as commented YAML that you can edit, with the column of survey weights if
there is one.

Find the column with the weights of a survey, and propose how to treat it.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import yaml

from aegis.errors import DataError
from aegis.masks import Kind
from aegis.measures import LabelKind
from aegis.policy.labels import Label
from aegis.policy.load import VERSION
from aegis.policy.model import Policy, Role
from aegis.policy.suggest.facts import ColumnFacts, ColumnProfile
from aegis.policy.suggest.names import names_survey_weight, read_words, word_list
from aegis.policy.suggest.roles import stands_for_many
from aegis.privacy.report import UNPROTECTED
from aegis.words import in_sentence, percent

if TYPE_CHECKING:
    from aegis.sources import Source

FEWEST_WEIGHTS = 5
"""A column with fewer values than this is not considered to contain weights."""
MOST_KILOGRAMS = 400
"""If the numbers are at most this, a column called weight may contain weights of bodies, in
kilograms.
"""
UNEQUAL = 30
"""If a tenth of the numbers are at least this many times another tenth, and some are above
`MOST_KILOGRAMS`, a column called weight does not contain weights of bodies.
"""
LEAST_RELATIVE, MOST_RELATIVE = 0.5, 20
"""Weights of a survey with a mean of 1 have a median from the first number to 1, as most are right-skewed,
and a 99 % quantile of at most the second.
"""
ASKED_OF_WEIGHT = (
    "does this column say how many people a row represents, as in a survey? Then uncomment the line "
    "`weight`; if not, give the column another role than ignore"
)
"""The question about a column that looks like survey weights."""


def declared_weight(facts: ColumnFacts) -> ColumnProfile:
    """Return the profile of the column that the user declares as survey weights, with the role
    *ignore*: it is not released. Raise `DataError` if it has no numbers, or some below 0.
    """
    numeric = facts.numeric
    if not numeric or facts.low is None or facts.low < 0 or facts.nulls or facts.special:
        values = f"of type {facts.dtype}" if not numeric else f"from {facts.low} to {facts.high}"
        missing = f", {facts.nulls:,} of them null" if facts.nulls else ""
        raise DataError(
            f"The weight {facts.name!r} holds values {values}{missing}.",
            hint="A weight is a number of 0 or more in every row. Name another column, or leave "
            "--weight out.",
        )
    reason = "the weight of a row, which can single it out: it weights scores, and is not released"
    return ColumnProfile(facts, Role.IGNORE, reason, (), "")


def likely_weight(facts: Iterable[ColumnFacts]) -> str | None:
    """Return the column that most likely contains survey weights; None if none is likely."""
    return next((column.name for column in facts if is_likely_weight(column)), None)


def is_likely_weight(facts: ColumnFacts) -> bool:
    """Return whether a column's name suggests survey weights, and its values are numbers of 0 or
    more.
    """
    weights = facts.numeric and facts.low is not None and facts.low >= 0
    if not weights or facts.nulls or facts.special or not names_survey_weight(facts.spoken):
        return False
    if facts.distinct < FEWEST_WEIGHTS:
        return False
    words = set(read_words(facts.spoken).bare)
    of_surveys = words & word_list("survey_weight")
    if of_surveys - word_list("body_weight") or words & word_list("of_survey"):
        return True
    low, middle, high, highest = (
        (facts.quantiles or {}).get(s, 0.0) for s in (0.1, 0.5, 0.9, 0.99)
    )
    unequal = high >= UNEQUAL * low and highest > MOST_KILOGRAMS
    relative = facts.fractional and LEAST_RELATIVE <= middle <= 1 and 1 < highest <= MOST_RELATIVE
    return middle > MOST_KILOGRAMS or unequal or relative


MOST_SHOWN = 40
"""Largest number of characters of a name or value in a comment."""
_LONGEST_KEY = 120
"""Longest key in the usual form. Longer keys need YAML's explicit form, "? key".

YAML's own limit is 1,024 characters on one line.
"""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def show(value: object, *, most: int = MOST_SHOWN) -> str:
    """Return a value as text for a YAML comment: one line with at most `most` printable characters."""
    text = str(value)
    cut = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def scalar(text: str) -> str:
    """Return a text as a YAML value on one line, in quotation marks if YAML needs them."""
    if _PLAIN.fullmatch(text) and yaml.safe_load(text) == text:
        return text
    written: str = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=math.inf)
    return written.rstrip("\n")


def flow(value: Any) -> str:
    """Return a list, a mapping, a number or a flag as YAML text on one line."""
    written: str = yaml.safe_dump(
        value, default_flow_style=True, allow_unicode=True, sort_keys=False, width=math.inf
    )
    # After a single number or flag, PyYAML writes "...", the end of a document.
    return written.removesuffix("...\n").rstrip("\n")


def describe(facts: ColumnFacts) -> str:
    """Describe a column: type, number of values, their range or the most frequent ones, nulls."""
    parts = [show(facts.dtype)]
    if facts.kind is not None:
        about = "" if facts.exact else "about "
        values = "value" if facts.distinct == 1 else "values"
        # Summaries count null as a value: who compares the two finds the same.
        null = " and null" if facts.nulls else ""
        parts.append(f"{about}{facts.distinct:,} {values}{null}")
    if facts.low is not None:
        parts.append(f"{_number(facts.low)} to {_number(facts.high)}")
    if facts.special:
        parts.append(f"{facts.special:,} NaN or infinite")
    if facts.nulls:
        parts.append(f"{facts.nulls:,} null ({percent(100 * facts.nulls / facts.rows)})")
    else:
        parts.append("no nulls")
    return ", ".join(parts)


def frequent_values(facts: ColumnFacts) -> str:
    """Return the most frequent values and their shares of the rows; empty if they may not be shown."""
    shares = ((in_sentence(show(text)), percent(100 * share)) for text, share in facts.frequent)
    return ", ".join(f"{text} ({share})" for text, share in shares)


def _number(value: object) -> str:
    # So many digits show a decimal number whole and drop what binary fractions add to it.
    return f"{value:.12g}" if isinstance(value, float) else show(value)


def render(
    policy: Policy,
    labels: tuple[ColumnProfile, ...],
    columns: tuple[ColumnProfile, ...],
    *,
    source: Source,
    persons: Sequence[ColumnFacts] = (),
    path: str = "policy.yaml",
) -> str:
    """Return the commented YAML text of a proposed policy, with the profile of each label and of
    every other column. Only the last part of an absolute path of `source` is shown. `persons` are
    columns that may identify the rows of one person, the most likely first. The command in the
    header names `path`.
    """
    lines = [
        *_header(policy, (*labels, *columns), source, target=path),
        "",
        f"version: {VERSION}",
        "",
        *_reading(policy),
        *_labels(policy, labels),
        "",
        "# How configurations are scored; `aegis measures` lists all.",
        _measure(policy),
        "",
        *_privacy(policy, columns),
        *_person(persons),
        *_weight(policy.weight, columns),
        "",
        "# A value that a mask does not know when it is applied: error | suppress",
        "# unseen: error",
        "",
        "attributes:",
    ]
    for column in columns:
        lines += _attribute(column)
        lines.append("")
    lines += [
        "# To compare a few configurations of your own instead of generated ones, name them here:",
        "# configurations:",
        "#   coarse: {ATTRIBUTE: MASK, ATTRIBUTE: MASK}",
    ]
    return "\n".join(lines) + "\n"


def _reading(policy: Policy) -> Iterator[str]:
    """Yield the lines that state how the table's file is written, if that must be stated."""
    if policy.reading is None:
        return
    yield "# How the table's file is written; options such as --encoding and --null go first."
    yield "reading:"
    for name, value in policy.reading.to_dict().items():
        text = scalar(value) if isinstance(value, str) else flow(value)
        yield f"  {name}: {text}"
    yield ""


def _header(
    policy: Policy,
    profiles: tuple[ColumnProfile, ...],
    source: Source,
    *,
    target: str,
) -> Iterator[str]:
    rows, origin, file = source.rows, source.origin, bool(source.files)
    count = len(profiles)
    path = PurePath(origin)
    name = show(path.name or origin)
    table = shlex.quote(show(name if path.is_absolute() else origin, most=200)) if file else "TABLE"
    yield f"# A first policy for {name} ({rows:,} rows, {count:,} columns), proposed by `aegis init`."
    yield "#"
    yield "# It is a guess from names and values. Read every entry: correct the roles, delete masks that make"
    yield "# no sense, add others (`aegis masks` lists all), then run"
    yield "#"
    yield f"#   aegis advise {table} --policy {shlex.quote(show(target, most=200))}"
    yield "#"
    yield "# Roles: identifier        names a person; dropped, or released as a keyed token"
    yield "#        quasi-identifier  known to others, identifying in combination; forms the classes of the rule"
    yield "#        sensitive         must not be learned about a person; released and protected by the rule"
    yield "#        feature           neither; released, and no part of the classes"
    yield "#        ignore            neither scored nor released"
    yield "#"
    yield "# Comments quote ranges and frequent values of the table: delete them before you pass this file on."
    if not all(profile.facts.exact for profile in profiles):
        yield '# "About": estimated from a sample of the rows, as the table is large; likely too low where'
        yield "# some values are much more frequent than others."
    if not policy.quasi_identifiers:
        yield "#"
        yield from (f"# {line}" for line in wrap(f"WARNING: {UNPROTECTED}.", width=98))


def _measure(policy: Policy) -> str:
    kind = LabelKind.SEVERAL if policy.tasks else policy.label.kind
    meaning = {
        LabelKind.SEVERAL: "the mean of the shares kept of the labels",
        LabelKind.NONE: "how well each column is predicted from the others",
        LabelKind.CLASSES: "the AUC that models are expected to reach",
        LabelKind.NUMBER: "the R2 that models are expected to reach",
    }[kind]
    if policy.tasks:
        return f"# serve: worst   # in place of {meaning}, the smallest of them"
    return f"# measure: {kind.default_measure}   # the default: {meaning}"


def _labels(policy: Policy, labels: tuple[ColumnProfile, ...]) -> Iterator[str]:
    """Yield the lines on the label, or on several labels, with the facts about each."""
    if not labels:
        yield "# Nobody knows yet which column will be predicted: each one is, from all others. Name one if the"
        yield "# release is for predicting it."
        yield "labels: any"
        yield "# label: COLUMN   # in place of `labels`"
    elif len(labels) == 1:
        yield from _label(policy.label, labels[0])
    else:
        yield "# The columns to predict, each with its own measure. A weight says how much one counts:"
        yield "# {column: NAME, weight: 2}."
        yield "labels:"
        for task, profile in zip(policy.tasks, labels, strict=True):
            yield from (f"  {line}" for line in _label_comments(task.label, profile))
            column = scalar(task.label.column)
            if profile.question:
                yield f"  # ASK: {profile.question} For a number: {{column: {column}, kind: number}}"
            number = f"{{column: {column}, kind: number}}"
            yield f"  - {number if task.label.is_number else column}"


def _label_comments(label: Label, profile: ColumnProfile) -> Iterator[str]:
    """Yield comment lines for the policy file with the facts that Aegis found about a label."""
    yield f"# The {'number' if label.is_number else 'class'} to predict: {describe(profile.facts)}"
    if values := frequent_values(profile.facts):
        yield f"# most frequent: {values}"
    if profile.warning:
        yield f"# WARNING: {profile.warning}"


def _label(declared: Label, label: ColumnProfile) -> Iterator[str]:
    facts, column = label.facts, scalar(declared.column)
    yield from _label_comments(declared, label)
    if label.alternative:
        yield f"# To release ranges instead, write `label: {column}`, and under `attributes`"
        yield f"#   {column}: {{role: {Role.FEATURE}, masks: {flow([m.spec() for m in label.alternative])}}}"
    if declared.is_number:
        if label.alternative:
            yield "# To release rounded numbers, leave the label as it is, and write under `attributes`"
            yield f"#   {column}: {{role: {Role.FEATURE}, masks: [{{round: {{digits: 2}}}}]}}"
        yield f"# {label.reason}"
        yield f"label: {{column: {column}, kind: number}}"
        yield f"# label: {{column: {column}, bins: 5}}   # or classes: so many quantile bins"
        return
    if label.question:
        yield f"# ASK: {label.question} For a number:"
        yield f"# label: {{column: {column}, kind: number}}"
    yield f"label: {column}"
    if facts.numeric and facts.distinct > 2:
        yield f"# label: {{column: {column}, bins: 2}}   # cut into quantile bins instead"


def _privacy(policy: Policy, columns: tuple[ColumnProfile, ...]) -> Iterator[str]:
    yield "# What a release must meet; `aegis privacy-models` lists all models."
    yield "privacy:"
    rule = policy.privacy.to_mapping()
    yield f"  k: {rule['k']}                # every combination of quasi-identifiers is shared by so many rows"
    yield f"  suppression: {rule['suppression']}   # share of rows that may be removed to get there"
    protected = rule.get("l_diversity")
    if protected is not None:
        yield "  # every class holds at least so many different values of the sensitive attribute"
        yield f"  l_diversity: {_diversity(protected['attribute'])}"
    others = [
        c for c in columns if c.role is Role.SENSITIVE and c.name not in policy.privacy.sensitive
    ]
    for column in others:
        option = _diversity(column.name)
        why = (
            "too few values, or one that dominates"
            if protected is None
            else "a second one: make it a list"
        )
        yield f"  # l_diversity: {option}   # {why}"
    if protected is None and not others:
        yield "  # l_diversity: {attribute: NAME, kind: distinct, l: 2}   # NAME needs the role sensitive"


def _person(persons: Sequence[ColumnFacts]) -> Iterator[str]:
    if not persons:
        return
    person, *others = persons
    yield ""
    yield f"# Several rows per person: {person.distinct:,} different values in {person.values:,} rows. The rule, its"
    yield "# limit and risks count persons; without this line they count rows."
    if stands_for_many(person):
        yield f"# One value has {percent(100 * person.peak, 0)} of the rows. If it means that the person is unknown: the rule"
        yield "# counts all such rows of a class as one person, which is safe, but suppresses more."
    if others:
        yield f"# Name another column if it numbers the persons: {', '.join(show(o.name) for o in others)}"
    yield f"person: {scalar(person.name)}"


def _weight(declared: str | None, columns: Iterable[ColumnProfile]) -> Iterator[str]:
    likely = likely_weight(column.facts for column in columns)
    if declared is not None:
        yield ""
        yield "# How many people a row stands for: scores and models are weighted, classes count rows."
        yield f"weight: {scalar(declared)}"
    elif likely is not None:
        yield from _likely_weight(likely)


def _likely_weight(likely: str) -> Iterator[str]:
    yield ""
    yield "# Does this column say how many people a row stands for, as in a survey? Then uncomment this line:"
    yield "# scores are weighted, and no weight is released. If not, give it another role than ignore below."
    yield f"# weight: {scalar(likely)}"


def _diversity(attribute: str) -> str:
    return f"{{attribute: {scalar(attribute)}, kind: distinct, l: 2}}"


def _attribute(column: ColumnProfile) -> Iterator[str]:
    facts = column.facts
    quoted = column.quoted
    about = describe(facts) if quoted else describe(replace(facts, low=None, high=None, special=0))
    yield f"  # {about}"
    if quoted and (values := frequent_values(facts)):
        yield f"  # most frequent: {values}"
    yield f"  # {column.role}: {column.reason}"
    if column.warning:
        yield f"  # WARNING: {column.warning}"
    if column.question:
        yield f"  # ASK: {column.question}."
    if column.masks_reason:
        yield f"  # masks: {column.masks_reason}"
    yield from _entry(column)
    if column.question:
        yield f"    # role: {Role.QUASI_IDENTIFIER}   # if somebody could, in place of the two lines above"
        yield f"    # masks: {flow([mask.spec() for mask in column.alternative])}"
        return
    for mask, why in column.unused:
        yield f"    # masks: [{flow([mask.spec()])[1:-1]}]   # {why}"
    if column.role is Role.QUASI_IDENTIFIER and facts.kind is Kind.TEXT and facts.distinct > 2:
        yield "    # hierarchy: FILE.csv   # generalisation in ARX format; each level becomes a candidate"


def _entry(column: ColumnProfile) -> Iterator[str]:
    key = scalar(column.name)
    if len(key) > _LONGEST_KEY:
        yield f"  ? {key}"
        yield f"  : role: {column.role}"
    else:
        yield f"  {key}:"
        yield f"    role: {column.role}"
    if column.ordered:
        yield f"    order: {flow(list(column.facts.ranges))}"
    if column.masks:
        yield f"    masks: {flow([mask.spec() for mask in column.masks])}"
