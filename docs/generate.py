"""Write the parts of the reference that come from the registries and the policy's schema.

`make docs` runs it; a test fails when a page in the repository is stale.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import aegis
from aegis.advisor.search.objective import OBJECTIVES
from aegis.anonymizers import ANONYMIZERS, OptionEntry, listed_options
from aegis.masks import MASKS
from aegis.measures import MEASURES
from aegis.options import options_of
from aegis.policy import lines as schema
from aegis.policy import model
from aegis.privacy import MODELS
from aegis.privacy.model import ModelNeed
from aegis.words import default_value

FOLDER = Path(__file__).parent / "reference"
EXAMPLE = """version: 1
label: income                       # or {column: price, bins: 5} for a numeric label
measure: adjusted-pillai
privacy:
  k: 5
  suppression: 0.02
  l_diversity: {attribute: occupation, kind: entropy, l: 2}
attributes:
  age:
    role: quasi-identifier
    masks: [identity, {bucketize: {width: 5}}, {bucketize: {width: 10}}, suppress]
  education:
    role: quasi-identifier
    weight: 2                       # how much it counts in additive measures
    hierarchy:                      # or a CSV file in ARX format; every level is a candidate
      higher: {degree: [Bachelors, Masters], other: [Some-college]}
      school: {finished: [HS-grad], unfinished: [10th, 11th, 12th]}
  zip:
    role: quasi-identifier
    masks: [{blur: {keep: 3}}, {blur: {keep: 2}}, suppress]
  satisfaction:
    role: quasi-identifier
    order: [low, middle, high]      # ordinal: methods that group records use ranks
  occupation:
    role: sensitive
  ssn:
    role: identifier
configurations:                     # optional: configurations to rank
  coarse: {age: {bucketize: {width: 10}}, education: {level: 2}, zip: suppress}
anonymizers: [mondrian, {mo-obam: {clusters: 50}}]   # optional: record-level methods to rank, too
release:                            # optional: facts for the report
  purpose: Teaching material on wages
  author: Statistics office, unit 4
  date: 2026-11-22"""
NOTE = "Written by `make docs` from {source}: do not edit.\n"


def masks() -> str:
    """Return the page of masks."""
    lines = ["# Masks\n", NOTE.format(source="the registry of masks")]
    lines.append(
        "A null stays null, unless a mask below says otherwise. NaN and the infinities count as "
        "separate values. Some masks learn from the data, for example cut points or frequent "
        "values. Aegis fits such a mask once. The fitted mask then masks every table in the same "
        "way.\n"
    )
    for entry in MASKS:
        kinds = ", ".join(map(str, entry.kinds))
        lines += [f"## {entry.name}\n", f"{entry.summary}\n", f"Works on: {kinds}.\n"]
        lines += ["```yaml", entry.example, "```\n"]
        if entry.parameters:
            lines += ["| parameter | meaning | default |", "|---|---|---|"]
            for parameter in entry.parameters:
                default = "required" if parameter.required else _default(parameter.default)
                lines.append(f"| `{parameter.name}` | {_cell(parameter.doc)} | {_cell(default)} |")
            lines.append("")
    return _page(lines)


def measures() -> str:
    """Return the page of measures and information losses."""
    lines = ["# Measures\n", NOTE.format(source="the registry of measures")]
    lines.append(
        "A measure with the scope *configuration* scores all attributes together. A measure with "
        "the scope *attribute* scores each attribute, and the score of a configuration is their "
        "weighted mean. A measure is *monotone* if no coarser mask can improve it. In the "
        "formulas, N is the number of rows, C the number of classes of the label, X an attribute "
        "and Y the label. n_x is the number of rows with the value x, and K_x the number of "
        "values of X.\n"
    )
    lines += ["| name | scope | better | monotone | range |", "|---|---|---|---|---|"]
    for m in MEASURES:
        monotone = "yes" if m.monotone else "no"
        lines.append(
            f"| [`{m.name}`](#{m.name}) | {m.scope} | {m.direction} | {monotone} | {_cell(m.range)} |"
        )
    for m in MEASURES:
        lines += [f"\n## {m.name}\n", f"**{m.title}.** {m.description}\n", f"    {m.formula}\n"]
        unit = "none" if m.unit == "1" else m.unit
        lines.append(f"Unit: {unit}. Computing cost: {m.cost}. Source: {m.reference}.")
    lines.append("\n# Information losses\n")
    lines.append(
        "A search can minimise one of these losses, so that you can compare with other tools. For "
        "example, run `aegis advise --search --objective loss`. Lower is better. *Original "
        "values* are the values of the hierarchy at level 0. Without a hierarchy, they are the "
        "values of the table.\n"
    )
    for loss in OBJECTIVES:
        lines += [
            f"## {loss.name}\n",
            f"**{loss.title}:** {loss.formula}.\n\nSource: {loss.reference}.\n",
        ]
    return _page(lines)


NEEDS = {
    ModelNeed.SENSITIVE: "the sensitive attribute",
    ModelNeed.HIERARCHY: "the hierarchy of this attribute",
    ModelNeed.LEAVES: "the number of original values that each shown value may represent",
    ModelNeed.POPULATION: "the size of each class in the population",
    ModelNeed.CROWD: "the size of each class in the population (in the table if the population is unknown)",
    ModelNeed.REFERENCE: "the whole table, not only single classes",
}
"""Data that a model needs, in the words of its page."""


def models() -> str:
    """Return the page of privacy models."""
    lines = ["# Privacy models\n", NOTE.format(source="the registry of privacy models")]
    lines.append(
        "In a policy, these are the keys of `privacy:`. A rule can require several models. A "
        "class is an equivalence class: all rows with the same quasi-identifiers. Aegis "
        "suppresses the rows of classes that fail any model of the rule, up to the share "
        "`suppression`. For example, with `{k: 5, suppression: 0.02}` Aegis may suppress 2 % of "
        "the rows. The presets `ema`, `health-canada` and `cms` require classes of at least 11 "
        "rows.\n"
    )
    lines.append(
        "A null counts as a value. For example, a class with nulls and one known value has two distinct values, so "
        "it meets l-diversity with l = 2.\n"
    )
    lines.append(
        "In the formulas, E is a class and |E| its number of rows. q_v is the share of the "
        "sensitive value v in the class, and p_v its share in the table. *Coarser tables* says "
        "whether a table that meets the model still meets it if you choose coarser masks, so that "
        "classes merge.\n"
    )
    told: dict[str, str] = {}
    for m in MODELS:
        variant = f" (`{m.variant[0]}: {m.variant[1]}`)" if m.variant else ""
        lines += [
            f"## {m.key}{variant}\n",
            f"**{m.title}.** {m.description}\n",
            f"    {m.formula}\n",
        ]
        if m.parameters:
            lines += ["| parameter | meaning | allowed | default |", "|---|---|---|---|"]
            for p in m.parameters:
                default = "required" if p.default is None else f"{p.default:g}"
                lines.append(f"| `{p.name}` | {_cell(p.description)} | {p.range} | {default} |")
            lines.append("")
        needs = " and ".join(text for need, text in NEEDS.items() if need in m.needs)
        if not m.monotone:
            coarser = "may fail the model."
        elif m.monotone_with_suppression:
            coarser = "also meet the model, with or without suppressed rows."
        else:
            coarser = "also meet the model if no row is suppressed. With suppressed rows, they may fail it."
        lines.append(
            f"To check this model, Aegis needs {needs or 'only the sizes of the classes'}. Coarser tables {coarser}\n"
        )
        why = "also meet" if m.monotone else "may fail"
        lines.append(f"Why coarser tables {why} it: {_told_once(m.argument, m.key, told)}\n")
        lines.append(f"Source: {m.reference}.\n")
    return _page(lines)


def _told_once(argument: str, key: str, told: dict[str, str]) -> str:
    """Return an argument; if a model above has the same one, name that model instead."""
    if told.setdefault(argument, key) != key:
        return f"the reason is the same as for `{told[argument]}`."
    return argument


def anonymizers() -> str:
    """Return the page of record-level methods."""
    lines = ["# Record-level methods\n", NOTE.format(source="the registry of anonymizers")]
    lines.append(
        "A record-level method changes single records, or groups records and shows common values "
        "for a group. `aegis anonymize` makes a release with a method. `aegis advise --with` "
        "ranks this release together with masking configurations. [Group "
        "records](../how-to/anonymizers.md) explains how to use the methods, and what they "
        "guarantee. The column *keeps l* says whether a method can guarantee l-diversity. In the "
        "costs, N is the number of rows, and D the number of distinct combinations of "
        "quasi-identifiers.\n"
    )
    lines += ["| name | what it does | cost | shows | keeps l |", "|---|---|---|---|---|"]
    for method in ANONYMIZERS:
        diverse = "yes" if method.diverse else "no"
        lines.append(
            f"| [`{method.name}`](#{method.name}) | {_cell(method.summary)} | {method.cost} | {method.style} | {diverse} |"
        )
    listed = [listed_options(method.options) for method in ANONYMIZERS]
    names = set.intersection(*({option.name for option in options} for options in listed))
    shared = [option for option in listed[0] if option.name in names]
    lines += [
        "\n## Options of every method\n",
        "If you do not give k and l, Aegis uses those of the policy's rule.\n",
    ]
    lines += _option_table(shared)
    for method, options in zip(ANONYMIZERS, listed, strict=True):
        own = [option for option in options if option not in shared]
        lines += [f"\n## {method.name}\n", f"{method.summary}\n"]
        lines += _option_table(own) if own else []
        quadratic = (
            " The method first cuts larger tables, see `partition_above`."
            if method.quadratic
            else ""
        )
        lines.append(f"\nCost: {method.cost}.{quadratic} Source: {method.reference}.")
    return _page(lines)


def _option_table(options: Iterable[OptionEntry]) -> list[str]:
    """Return the lines of a table of options."""
    rows = (
        f"| `{option.name}` | {_cell(option.description)} | {_cell(_default(option.default))} |"
        for option in options
    )
    return ["| option | meaning | default |", "|---|---|---|", *rows]


def policy() -> str:
    """Return the page of the policy file."""
    lines = ["# The policy file\n", NOTE.format(source="the schema of policies")]
    lines.append(
        "A policy is a YAML file in UTF-8. If the policy has an unknown key, Aegis refuses it, "
        "and names the line and the nearest known key. If the policy does not name a column, "
        "Aegis neither scores nor releases the column. Every run says so.\n"
    )
    lines.append(
        "A hierarchy is an inline tree, or a CSV file in the format of ARX. The CSV file has no "
        "header. Each line has a value, then one column per level. If you give a hierarchy and no "
        "`masks`, every level is a candidate. Level 0 is the value itself. If you give a "
        "quasi-identifier neither a hierarchy nor `masks`, its candidates are `identity` and "
        "`suppress`. A configuration may leave out an attribute that has one candidate, or that "
        "has `identity` among its candidates.\n"
    )
    lines += ["```yaml", EXAMPLE, "```\n"]
    lines += ["## Roles\n", "| role | meaning |", "|---|---|"]
    lines += [f"| `{role}` | {_cell(doc)} |" for role, doc in _members(model.Role)]
    lines.append("")
    lines.append(
        "The label may also have an entry among the attributes, with a role and candidate masks. "
        "Aegis then measures how well masked attributes predict the masked label. If its role is "
        "quasi-identifier, the label is part of the equivalence classes. If its role is feature "
        "and it has one mask of intervals, such as `masks: [{quantiles: {count: 5}}]`, the "
        "intervals are the label's classes, in scores and in every release.\n"
    )
    lines.append(
        "A mask may find a value that it does not know, for example in next month's rows. With "
        "`unseen: suppress`, the release shows `*` for this value. With `unseen: error`, Aegis "
        "refuses the table and counts such values.\n"
    )
    lines += ["## Kinds of quasi-identifiers\n"]
    lines.append(
        "Only [record-level methods](anonymizers.md) use `kind` and `order`, and only for "
        "quasi-identifiers. An attribute with an `order` is ordinal. The order must list every "
        'value of the column. Aegis compares values as texts, so 1, 1.0 and "1" are the same '
        "value. A null is a separate value, larger than all others.\n"
    )
    lines += ["| kind | how values compare |", "|---|---|"]
    lines += [f"| `{kind}` | {_cell(doc)} |" for kind, doc in _members(model.AttributeKind)]
    lines.append("")
    for title, shape in (
        ("Top level", schema.PolicyShape),
        ("label", schema.LabelEntry),
        ("reading", schema.ReadingShape),
        ("attributes", schema.AttributeEntry),
        ("release", schema.ReleaseShape),
    ):
        lines += [f"## {title}\n", "| key | meaning | default |", "|---|---|---|"]
        lines += [
            f"| `{name}` | {_cell(doc)} | {default} |" for name, doc, default in _fields(shape)
        ]
        lines.append("")
    return _page(lines)


API = {
    "One table, one policy": ["Study"],
    "One call each": [
        "advise",
        "search",
        "evaluate",
        "apply",
        "anonymize",
        "audit",
        "record_risk",
        "check_certificate",
        "render_report",
    ],
    "Policies": [
        "init_policy",
        "ProposedPolicy",
        "load_policy",
        "load_configurations",
        "dump_policy",
        "dump_configurations",
        "Policy",
        "Configuration",
    ],
    "Catalogs": ["connect"],
    "Summaries": ["summarize", "save_bundle", "load_bundle", "merge", "merge_bundles", "Summary"],
    "Results": [
        "Advice",
        "Release",
        "AnonymizedRelease",
        "Audit",
        "PrivacyReport",
        "RecordRisk",
        "Evaluation",
    ],
    "In pipelines and databases": ["MaskingTransformer", "release_sql"],
}
"""Public names by the heading under which they stand."""
_SECTION = re.compile(r"^(Parameters|Attributes|Returns|Raises|Examples|References)\n-+\n", re.M)


def python() -> str:
    """Return the page of the Python interface: every public name, from its docstring."""
    lines = [
        "# Python",
        "",
        NOTE.format(source="the docstrings"),
        "You can use all of these names after `import aegis`. A table may be a path, a glob, a URL of a",
        "database, a table of pandas, Polars or PyArrow, a DuckDB relation or an Ibis table. Every error is an",
        "`aegis.errors.AegisError`. For bad input it is a `PolicyError` or a `DataError`. If no configuration",
        "meets the rule, it is a `NoAdmissibleConfiguration`. You can run the examples in the folder of the",
        "repository, as our tests do.",
        "",
    ]
    for title, names in API.items():
        lines += [f"## {title}", ""]
        for name in names:
            lines += _described(name, getattr(aegis, name), "###")
    return _page(lines)


def _described(name: str, thing: Any, level: str) -> Iterator[str]:
    """Yield a class with its own methods, or a function.

    A method of `Study` refers to the function of the same name for its options, if there is one.
    """
    if inspect.isclass(thing):
        yield from (f"{level} `{name}`", "")
        yield from _docstring(thing)
        for own, member in _members_of(thing):
            if inspect.isfunction(member):
                yield from (f"{level}# `{name}.{_signature(own, member)}`", "")
                record, function = _request(member), getattr(aegis, own, None)
                if record is None or record is not _request(function):
                    yield from _docstring(member, record)
                else:
                    yield from _docstring(member, same_as=own)
            elif isinstance(member, property | cached_property):
                said = _SECTION.split(inspect.getdoc(member) or "")[0].strip()
                yield from (f"- `{name}.{own}`: {_cell(said)}", "")
        return
    yield from (f"{level} `{_signature(name, thing)}`", "")
    yield from _docstring(thing, _request(thing))


def _request(function: Any) -> type[Any] | None:
    """Return the record whose options a function accepts as keywords; None without one."""
    if function is None:
        return None
    request = inspect.signature(function).parameters.get("request")
    if request is None:
        return None
    name = request.annotation.removesuffix(" | None")
    record: type[Any] = inspect.unwrap(function).__globals__[name]
    return record


def _members_of(thing: type) -> Iterator[tuple[str, Any]]:
    """Yield the public members of a class, those of its bases in Aegis first."""
    members: dict[str, Any] = {}
    for base in reversed(inspect.getmro(thing)):
        if base.__module__.startswith("aegis"):
            members |= {n: m for n, m in vars(base).items() if not n.startswith("_")}
    yield from members.items()


def _signature(name: str, function: Any) -> str:
    """Return the parameters by name, with defaults that are short."""
    shown = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "=" + _written(parameter.default)
        given = "" if parameter.default is parameter.empty else default
        shown.append(f"{star}{parameter.name}{given}")
    return f"{name}({', '.join(shown)})"


def _written(default: Any) -> str:
    """Return a default as code writes it, where that is short."""
    if isinstance(default, Enum):
        return f"{type(default).__name__}.{default.name}"
    return repr(default) if isinstance(default, str | int | float | bool | None) else "..."


def _options(record: type[Any]) -> Iterator[str]:
    """Yield the options of a request, each as its record describes it."""
    yield from (f"Options (the fields of `{record.__module__}.{record.__name__}`):", "")
    yield from (f"- **{name}**: {_cell(option.text)}" for name, option in options_of(record))
    yield ""


def _docstring(
    thing: Any, record: type[Any] | None = None, same_as: str | None = None
) -> Iterator[str]:
    """Yield a docstring in numpy's form as Markdown, with the options of a request."""
    parts = _SECTION.split(inspect.getdoc(thing) or "")
    yield from (parts[0].strip(), "")
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title == "Examples":
            yield from ("```pycon", body.strip(), "```", "")
            continue
        yield from (f"{title}:", "")
        entry = ""
        for line in body.strip().splitlines():
            if line.startswith(" "):
                entry += f" {line.strip()}"
            elif line.strip():
                if entry:
                    yield entry
                entry = f"- **{line.strip()}**:"
        yield from (entry, "")
        if title == "Parameters" and record is not None:
            yield from _options(record)
        if title == "Parameters" and same_as is not None:
            yield from (f"Options: those of the function `aegis.{same_as}`, further below.", "")


def _members(kind: type[Enum]) -> Iterator[tuple[str, str]]:
    """Yield value and docstring of the members of an enumeration."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    for member, doc in pairwise(body.body):
        if isinstance(member, ast.Assign) and isinstance(doc, ast.Expr):
            yield ast.literal_eval(member.value), inspect.cleandoc(ast.literal_eval(doc.value))


def _fields(shape: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    """Yield name, docstring and default of the fields of a schema class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(shape))).body[0]
    assert isinstance(body, ast.ClassDef)
    documented = {}
    for field, doc in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr):
            assert isinstance(field.target, ast.Name)
            documented[field.target.id] = inspect.cleandoc(ast.literal_eval(doc.value))
    for name, info in shape.model_fields.items():
        default = info.get_default(call_default_factory=True)
        yield name, documented[name], "required" if info.is_required() else _default(default)


def _default(value: object) -> str:
    """Return the cell of a default: as a policy writes it, empty where nothing is set."""
    nothing = isinstance(value, BaseModel) and value == type(value)()
    written = "" if nothing else default_value(value)
    return f"`{written}`" if written else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _page(lines: list[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


PAGES = {
    "anonymizers.md": anonymizers,
    "masks.md": masks,
    "measures.md": measures,
    "privacy-models.md": models,
    "policy.md": policy,
    "python.md": python,
}
"""File name to the function that returns its content."""

if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
