"""Collect the values that the report's templates show, from an advice.

This module does not use HTML or colours. If the key of a section is None or empty, the templates
leave the section out. So the report has no section without computed results.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml

from aegis._version import __version__
from aegis.advisor.scoring import utility_kept
from aegis.advisor.utility import Rows
from aegis.masks import Mask
from aegis.measures import MEASURES, Measure, Need
from aegis.present import ExpectedFigure, Finding, label_lines, label_words, ranked_words
from aegis.present.finding import strongest, why_above_release
from aegis.privacy import PrivacyRule
from aegis.report.charts import heat_step
from aegis.report.sections import (
    FINEST,
    LOSSES,
    KeyFigure,
    against_best,
    confidence_section,
    mask_words,
    privacy_section,
    release_facts,
    score_text,
    unique_figure,
)
from aegis.report.words import (
    clean,
    count,
    few,
    lines,
    measured,
    part,
    percent,
    portion,
    rows,
    sentence,
    share,
)
from aegis.words import counted, json_fields, jsonable, predicted, unquoted

if TYPE_CHECKING:
    from aegis.advisor.advice import Advice
    from aegis.advisor.owner_preview import ReleaseValues
    from aegis.advisor.ranked import Ranked

TOP = 20
"""Number of configurations that charts and tables show."""

SMALL_COLUMNS = 10
"""Number of configurations that the heat map shows on a small screen."""

SCATTER_LIMIT = 200
"""Number of configurations that the scatter chart shows."""

NAME_LIMIT = 120
"""Number of characters of a name that are shown; the policy has the whole name."""

HEADLINE_LIMIT = 60
"""Number of characters of a name that the recommendation and the masthead show."""

YAML_LIMIT = 60_000
"""Number of characters of YAML that are shown, because inline hierarchies can be long."""

LEAST = 10
"""A report without values shows no count below this number of rows, if the rule has no k."""

_NOT_RELEASED = {"identifier": "identifier", "ignore": "ignored by the policy"}


def build_context(
    advice: Advice,
    *,
    title: str,
    owner_preview: ReleaseValues | None = None,
) -> dict[str, Any]:
    """Return all values for the report's templates, except the charts; raise `PolicyError` if the
    measure, or a privacy model of the policy, is not registered.

    If no configuration is admissible, the report is on the closest one and the changes that would
    admit it. Without `owner_preview`, it shows no values. Without `privacy` of the advice, it has no
    section on privacy before and after masking.
    """
    measure = MEASURES.get(advice.measure)
    subject, values = advice.best or advice.closest, owner_preview is not None
    least = _least(advice, values=values)
    return {
        "title": clean(title, limit=NAME_LIMIT),
        "table": _table(advice),
        "release": release_facts(advice.policy),
        "shown": owner_preview,
        "measure": _measure(measure),
        "verdict": _verdict(advice, subject),
        "confidence": confidence_section(advice),
        "noise": None if subject is None else subject.differential_privacy,
        "key_figures": _key_figures(advice, subject, least=least),
        "warnings": [text if values else unquoted(text) for text in advice.warnings],
        "labels": label_lines(advice),
        "by_label": [r for r in advice.ranking[:TOP] if r.labels],
        "attributes": _attributes(subject, advice, measure, values=values) if subject else [],
        "withheld": _withheld(advice),
        "ranking": _ranking(advice, measure, values=values),
        "records": [r for r in advice.ranking if r.method is not None],
        "losses": LOSSES,
        "estimates": [r for r in advice.ranking if r.estimate is not None],
        "changes": () if advice.estimated is None else advice.estimated.changes,
        "shortfalls": _shortfalls(advice),
        "rule": _rule_section(advice),
        "privacy": None
        if advice.privacy is None
        else privacy_section(
            advice.privacy.before,
            advice.privacy.after,
            admissible=advice.best is not None,
            finest=advice.privacy.finest,
            least=least,
        ),
        "front": advice.front,
        "binding": advice.binding,
        "total": advice.summary["rows"],
        "top": TOP,
        "yaml": _documents(advice, subject, values=values),
        "provenance": _provenance(advice, values=values),
    }


def score_axis(advice: Advice) -> str:
    """Return the title of the axis that shows scores in charts: the utility kept, or the measure."""
    if is_relative(advice):
        return f"utility kept (% of {advice.baseline_word})"
    return f"score ({MEASURES.get(advice.measure).title})"


def is_relative(advice: Advice) -> bool:
    """Return whether the ranking shows percentages of the unmasked utility, not scores.

    This is decided once for the whole report, so that all axes agree. If the best entry's percentage
    was measured on its released rows, the others, on all rows, cannot be compared with it.
    """
    if any(r.utility is not None for r in advice.ranking) and len(advice.ranking) > 1:
        return False
    return any(r.utility_kept is not None for r in advice.ranking)


def _rule(policy: Mapping[str, Any]) -> PrivacyRule | None:
    """Return the privacy rule of a policy in JSON form; None if the rule has no criterion."""
    written = dict(policy.get("privacy") or {})
    return PrivacyRule.parse(written) if written.keys() - {"suppression"} else None


def _table(advice: Advice) -> dict[str, Any]:
    summary = advice.summary
    return {
        "of_all_rows": advice.estimated is None,
        "each_column": Need.COLUMNS in MEASURES.get(advice.measure).needs,
        "rows": advice.rows_words,
        "label": clean(_labels(summary), limit=HEADLINE_LIMIT),
        "classes": label_words(summary),
        "attributes": counted(len(summary["attributes"]), "attribute"),
    }


def _measure(measure: Measure) -> dict[str, str]:
    return {
        **json_fields(measure, "name", "title", "description", "formula", "range"),
        "unit": "a pure number" if measure.unit == "1" else measure.unit,
        "better": str(measure.direction),
        "reference": measure.reference,
    }


def _objective(advice: Advice) -> str | None:
    """Return the objective of the search; None if it is the measure of the report."""
    search = advice.search
    return search.objective if search and search.objective != advice.measure else None


def _verdict(advice: Advice, subject: Ranked | None) -> dict[str, Any]:
    """Return figures and texts of the recommendation, by their names in the template."""
    total = advice.summary["rows"]
    verdict: dict[str, Any] = {
        "admissible": advice.best is not None,
        "configurations": ranked_words(advice),
        "undecided": advice.undecided,
        "verdicts_known": advice.verdicts_known,
        "combinations": count(advice.combinations),
        "baseline": advice.baseline,
        "name": None,
        "of_all_rows": False,
        "above_release": "",
        **_proof(advice),
    }
    if subject is not None:
        left_out = subject.suppressed_rows
        verdict |= {
            "name": clean(subject.name, limit=HEADLINE_LIMIT),
            "of_all_rows": advice.stated_utility(subject).rows is Rows.ALL,
            "above_release": clean(why_above_release(advice, subject), limit=600),
            "kept": percent(subject.utility_kept) if subject.utility_kept is not None else None,
            "score": measured(subject.score),
            "checked": subject.admissible is not None,
            "probable": subject.probable,
            "suppressed": count(left_out),
            "suppressed_any": bool(left_out),
            "rows": rows(total),
            "share": None if left_out is None else share(left_out, total),
            "violations": [sentence(text) for text in subject.violations],
            "limit": None if left_out is None else _admitting_limit(left_out, total),
        }
    return verdict


def _proof(advice: Advice) -> dict[str, str | None]:
    """Return three texts or None: the proof, what is proven of a list, why the best comes first."""
    best, search = advice.best, advice.search
    proven = None if search is None or search.optimal else search.proven
    return {
        "proof": None if best is None else Finding.of(advice, best).proof.replace(" %", "\u00a0%"),
        "proven": None if proven is None else proven.words(),
        "preferred": None if advice.preferred is None else sentence(advice.preferred.words()),
    }


def _admitting_limit(suppressed: int, total: int) -> str | None:
    """Return the least suppression limit that admits a release, as text; None if none does."""
    if suppressed >= total:
        return None
    return percent(min(-(-suppressed * 10_000 // total) / 100, 99.999), 2)


def _key_figures(advice: Advice, subject: Ranked | None, *, least: int) -> list[KeyFigure]:
    """Return the key figures below the recommendation; numbers below `least` are not stated."""
    if subject is None:
        return []
    total, change = advice.summary["rows"], advice.privacy
    after = None if change is None else change.after
    utility = (
        percent(subject.utility_kept)
        if subject.utility_kept is not None
        else measured(subject.score)
    )
    note = "may be chance" if advice.by_chance else f"of what {advice.baseline} says beyond chance"
    figures = [("Utility kept", utility, note)]
    if (expected := ExpectedFigure.of(advice)) is not None:
        figures.append((expected.title, expected.value, expected.note))
    if (suppressed := subject.suppressed_rows) is None:
        note = "stated" if subject.admissible is not None else "to be checked"
        figures.append(("Rule", subject.verdict, f"{note} by the owner of the table"))
    else:
        label = "Rows suppressed" if advice.best else "Rows to suppress"
        note = f"{count(suppressed)} of {rows(total)}"
        figures.append((label, share(suppressed, total), note))
    unmasked = FINEST.lower() if change is not None and change.finest else "before masking"
    if after or subject.smallest_class is not None:
        smallest = count(after.k if after else subject.smallest_class)
        note = f"{few(change.before.k, least)} {unmasked}" if change else "rows that look alike"
        figures.append(("Smallest class", smallest, note))
    if change is not None and after is not None:
        note = f"{few(change.before.uniques, least)} {unmasked}"
        figures.append(("Unique by quasi-identifiers", count(after.uniques), note))
    alone = unique_figure(advice.uncovered)
    return figures if alone is None else [*figures, alone]


def _least(advice: Advice, *, values: bool) -> int:
    """Return the least number of rows to state: the k of the rule, else `LEAST`; 0 with `values`."""
    rule = _rule(advice.policy)
    minimum_size = 1 if rule is None else rule.minimum_size
    return 0 if values else minimum_size if minimum_size > 1 else LEAST


def _attributes(
    subject: Ranked, advice: Advice, measure: Measure, *, values: bool
) -> list[dict[str, Any]]:
    """Return the mask and utility of each attribute; without `values`, without learnt parameters."""
    summary_attributes, rows = advice.summary["attributes"], advice.label_rows
    columns = advice.stated_utility(subject).columns
    entries = []
    masks: Mapping[str, Any] = subject.configuration.masks
    if subject.method is not None or not masks:  # of a masked table its masks are not known
        masks = subject.mask_texts
    for name, mask in masks.items():
        about = summary_attributes.get(name, {})
        score, column = subject.attributes.get(name), columns.get(name)
        utility = utility_kept(score.score, score.unmasked, measure, rows) if score else None
        scores = (measured(score.unmasked), measured(score.score)) if score else (None, None)
        if column is not None:
            utility = column.kept
            scores = (
                portion(column.unmasked_explained),
                portion(column.explained),
            )
        entries.append(
            {
                "name": clean(name, limit=NAME_LIMIT),
                "role": "label"
                if name in (advice.summary["label"], *advice.summary.get("labels", ()))
                else about.get("role", ""),
                "mask": clean(mask if values else _unfitted(mask), limit=120),
                "words": mask_words(mask if values else _unfitted(mask)),
                "untouched": str(mask) == "identity",
                "dropped": str(mask) == "suppress",
                "meaning": clean(getattr(mask, "summary", ""), limit=NAME_LIMIT),
                "values": count(about.get("values")),
                "nulls": about.get("nulls", 0)
                and few(about["nulls"], _least(advice, values=values)),
                "unmasked": scores[0],
                "masked": scores[1],
                "kept": percent(utility),
                "lost": percent(advice.share_lost(name)) if advice.lost_alone else None,
                "width": None if utility is None else round(min(max(utility, 0.0), 100.0), 1),
            }
        )
    return entries


def _withheld(advice: Advice) -> list[dict[str, str]]:
    """Return the columns that the release leaves out or replaces by tokens, each with the reason."""
    columns = []
    for name, entry in advice.policy.get("attributes", {}).items():
        if entry["role"] in _NOT_RELEASED:
            token = entry["role"] == "identifier" and entry.get("masks")
            why = "identifier, replaced by a token" if token else _NOT_RELEASED[entry["role"]]
            columns.append({"name": clean(name, limit=NAME_LIMIT), "why": why})
    unnamed = advice.summary.get("not_in_policy", ())
    return columns + [
        {"name": clean(n, limit=NAME_LIMIT), "why": "not in the policy"} for n in unnamed
    ]


def _unfitted(mask: Any) -> Any:
    return mask.unfitted() if isinstance(mask, Mask) else mask


def _ranking(advice: Advice, measure: Measure, *, values: bool) -> dict[str, Any]:
    """Return the first entries of the ranking as a table, and the points of the ranking's charts."""
    total = advice.summary["rows"]
    entries = advice.ranking[:TOP]
    relative = is_relative(advice)
    attributes = entries[0].attributes if entries else {}
    names = strongest(attributes, measure)
    return {
        "total": ranked_words(advice),
        "shown": len(entries),
        "small": SMALL_COLUMNS,
        "cut": len(advice.ranking) > len(entries),
        "relative": relative,
        "objective": _objective(advice),
        "axis": score_axis(advice),
        "rows": [
            {
                **_ranked_row(rank, r, total, first=r is advice.best),
                "differs": _differences(r, entries[0], values=values),
            }
            for rank, r in enumerate(entries, 1)
        ],
        "differing": any(_changed(r, entries[0]) for r in entries),
        "baseline": advice.baseline,
        "pud": "PUD (finest)" if advice.against_finest else "PUD",
        "unmasked": advice.baseline_word.capitalize(),
        "compared": any(r.stderr is not None for r in entries),
        "points": [
            {**_point(r, relative, total, first=r is advice.best), "label": _label(r, entries[0])}
            for r in entries
        ],
        "scatter": [
            _point(r, relative, total, first=r is advice.best)
            for r in advice.ranking[:SCATTER_LIMIT]
        ],
        "by_class": all(
            r.suppressed_rows == 0 and r.smallest_class is not None
            for r in advice.ranking[:SCATTER_LIMIT]
        ),
        "scattered": all(r.suppressed_rows is not None for r in advice.ranking[:SCATTER_LIMIT]),
        "scatter_cut": len(advice.ranking) > SCATTER_LIMIT,
        "scatter_shown": min(len(advice.ranking), SCATTER_LIMIT),
        "heat_more": len(attributes) - len(names),
        "heat_names": [clean(name, limit=NAME_LIMIT) for name in names],
        "heat": [[_cell(r, name, measure, advice.label_rows) for name in names] for r in entries],
    }


def _ranked_row(rank: int, ranked: Ranked, total: int, *, first: bool) -> dict[str, Any]:
    return {
        "place": rank,
        "name": clean(ranked.name, limit=NAME_LIMIT),
        "admissible": ranked.admissible,
        "verdict": ranked.verdict,
        "kept": percent(ranked.utility_kept),
        "score": score_text(ranked),
        "objective": measured(ranked.objective),
        "against": against_best(ranked, first=first),
        "pud": measured(ranked.pud),
        "left_out": _part(ranked.suppressed_rows, total),
        "smallest_class": count(ranked.smallest_class),
    }


def _changed(ranked: Ranked, first: Ranked) -> dict[str, Any]:
    """Return the masks of `ranked` that differ from those of the best, by attribute."""
    masks, others = ranked.configuration.masks, first.configuration.masks
    if ranked.method is not None or first.method is not None or masks.keys() != others.keys():
        return {}
    return {name: mask for name, mask in masks.items() if str(mask) != str(others[name])}


def _differences(ranked: Ranked, first: Ranked, *, values: bool) -> str:
    """Return the masks of `_changed` as text."""
    changed = (
        f"{name}: {mask_words(mask if values else _unfitted(mask))}"
        for name, mask in _changed(ranked, first).items()
    )
    return clean("; ".join(changed), limit=400)


def _labels(summary: Mapping[str, Any]) -> str:
    """Return the names of the labels; if too long for a headline, the first and how many more."""
    first, *others = summary.get("labels") or [""]
    names = predicted(summary)
    if not others or len(names) <= HEADLINE_LIMIT:
        return names
    return f"{first} and {counted(len(others), 'other label')}"


def _label(ranked: Ranked, first: Ranked) -> str:
    """Return the name of a configuration, and the attributes that it masks differently from the
    best.
    """
    changed = ", ".join(_changed(ranked, first))
    return clean(f"{ranked.name}: {changed}" if changed else ranked.name, limit=NAME_LIMIT)


def _point(ranked: Ranked, relative: bool, total: int, *, first: bool) -> dict[str, Any]:
    """Return a configuration as a point of a chart, with its percentage if `relative`, else score."""
    return {
        "name": clean(ranked.name, limit=NAME_LIMIT),
        "utility": ranked.utility_kept if relative else ranked.score,
        "text": percent(ranked.utility_kept) if relative else measured(ranked.score),
        "admissible": ranked.admissible,
        "recommended": first,
        "left_out": 100 * (ranked.suppressed_rows or 0) / total if total else 0.0,
        "smallest_class": ranked.smallest_class,
    }


def _cell(ranked: Ranked, name: str, measure: Measure, rows: list[float] | None) -> dict[str, Any]:
    score = ranked.attributes[name]
    utility = utility_kept(score.score, score.unmasked, measure, rows)
    return {
        "kept": None if utility is None else str(round(utility)),
        "step": heat_step(utility),
    }


def _shortfalls(advice: Advice) -> dict[str, Any]:
    """Return the first configurations that break the rule, with what each violates, and `total`."""
    failing = [r for r in advice.ranking if r.violations]
    total = advice.summary["rows"]
    return {
        "total": len(failing),
        "shown": min(len(failing), TOP),
        "rows": [
            {
                "name": clean(r.name, limit=NAME_LIMIT),
                "kept": percent(r.utility_kept),
                "left_out": _part(r.suppressed_rows, total),
                "violations": [sentence(text) for text in r.violations],
            }
            for r in failing[:TOP]
        ],
    }


def _part(left_out: int | None, total: int) -> str:
    return "–" if left_out is None else part(left_out, total)


def _rule_section(advice: Advice) -> dict[str, Any]:
    """Return the requirements of the rule, and how many rows or persons it allows to suppress."""
    rule, policy = _rule(advice.policy), advice.policy
    limit = float((policy.get("privacy") or {}).get("suppression", 0.0))
    total = advice.summary["rows"]
    unit = "row" if policy.get("person") is None else "person"
    if unit == "person":
        total = None if advice.privacy is None else advice.privacy.before.persons
    allowed = total if total is None or rule is None else rule.allowed_rows(total)
    share_allowed = f"{100 * limit:g}\u00a0% of the {unit}s"
    return {
        "criteria": [sentence(str(criterion)) for criterion in rule.criteria] if rule else [],
        "short": _in_one_phrase([str(criterion) for criterion in rule.criteria]) if rule else "",
        "limit": 100 * limit,
        "share_allowed": share_allowed,
        "allowed": share_allowed if allowed is None else counted(allowed, unit),
    }


def _in_one_phrase(criteria: Sequence[str]) -> str:
    """Join criteria to one phrase, in which equations do not break across lines."""
    *first, last = criteria
    phrase = f"{', '.join(first)} and {last}" if first else last
    return clean(phrase, limit=200).replace(" = ", "\u00a0=\u00a0")


def _documents(advice: Advice, subject: Ranked | None, *, values: bool) -> dict[str, Any]:
    """Return policy and configuration as YAML; without `values`, without learnt parameters."""
    chosen: Mapping[str, Any] | None = None
    if subject is not None and not advice.masked_tables:  # whose masks are not known
        configuration = subject.configuration
        if not values:
            masks = {name: _unfitted(mask) for name, mask in configuration.masks.items()}
            configuration = replace(configuration, masks=masks)
        chosen = {"configurations": {subject.name: configuration.spec()}}
        if subject.method is not None:
            chosen = subject.method.recipe.to_dict()
        if advice.stated_measure is not None:  # as `aegis advise -o` writes it
            chosen = {"measure": advice.stated_measure, **chosen}
    # Configurations of a policy may list values of the table that their masks learnt.
    left_out = () if values else ("configurations",)
    policy = {key: entry for key, entry in advice.policy.items() if key not in left_out}
    return {"policy": _yaml(policy), "configuration": _yaml(chosen) if chosen else None}


def _yaml(data: Mapping[str, Any]) -> dict[str, Any]:
    text = yaml.safe_dump(jsonable(data), sort_keys=False, allow_unicode=True, width=96)
    cut = len(text) > YAML_LIMIT
    encoded = b64encode(text.encode("utf-8", "surrogatepass")).decode()
    start = lines(text[:YAML_LIMIT])
    return {"text": start, "cut": cut, "characters": count(len(text)), "encoded": encoded}


def _provenance(advice: Advice, *, values: bool) -> list[tuple[str, str, bool]]:
    """Return where figures come from: name, text, and whether the text is a digest."""
    summary = advice.summary
    facts = [("Aegis", __version__, False), ("Rows summarised", count(summary["rows"]), False)]
    if advice.estimated is None:
        facts += _exact_facts(advice, values=values)
    facts.append(("Ranked", ranked_words(advice), False))
    if not advice.masked_tables:
        facts.append(("Combinations of the candidates", count(advice.combinations), False))
    facts += [
        (f"SHA-256 of the {name}", digest, True)
        for name, digest in summary.get("digests", {}).items()
        if name != "input"  # with it, readers of a release could guess the suppressed rows
    ]
    if "total" in advice.timings:
        facts.append(("Time to advise", f"{advice.timings['total']:.2f}\u00a0s", False))
    return facts


def _exact_facts(advice: Advice, *, values: bool) -> list[tuple[str, str, bool]]:
    """Return the facts of `_provenance` that only a summary with exact counts has."""
    summary = advice.summary
    joint = summary["cooccurrence_rows"]
    how = f"a seeded sample of {rows(joint)}" if summary["sampled"] else f"all {rows(joint)}"
    unlabelled = few(summary["unlabelled_rows"], _least(advice, values=values))
    if unlabelled != count(summary["unlabelled_rows"]) and not summary["sampled"]:
        how = "all rows with a label"  # their number would reveal that of the others
    return [
        ("Rows without a label", unlabelled, False),
        *_weights(summary.get("weights")),
        ("Joint counts of attributes from", how, False),
    ]


def _weights(weights: Mapping[str, Any] | None) -> list[tuple[str, str, bool]]:
    """Return the column of weights, and how many equal rows carry as much; empty without."""
    if weights is None:
        return []
    worth = rows(round(weights["effective_rows"]))
    return [("Weights of the rows", f"{weights['column']}; worth {worth} of equal weight", False)]
