"""Read policies and configurations from YAML, and write them.

Convert a policy to the mapping in its YAML file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from aegis.errors import (
    DataError,
    PolicyError,
    allowed_names,
    allowed_value,
    choices,
    require_known,
)
from aegis.files import TABLE_FORMATS, read_text
from aegis.masks import Hierarchy, Identity, Mask, Suppress, parse_mask
from aegis.measures import MEASURES, LabelKind
from aegis.options import checks_types
from aegis.policy.configuration import Configuration, listed_configurations
from aegis.policy.labels import (
    ANY_LABEL,
    NO_LABEL,
    Label,
    LabelTask,
    Serve,
    SeveralLabels,
    several_labels,
)
from aegis.policy.lines import (
    AttributeEntry,
    LabelEntry,
    Located,
    PolicyMapping,
    PolicyShape,
    ReadingShape,
    ReleaseShape,
    TaskEntry,
    read_yaml,
    write_yaml,
)
from aegis.policy.model import (
    Attribute,
    AttributeKind,
    MethodChoice,
    Policy,
    Role,
    SuppressedColumns,
)
from aegis.privacy import PrivacyRule
from aegis.sources.dialect import Reading
from aegis.words import brief

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

VERSION = 1


def policy_mapping(policy: Policy) -> dict[str, Any]:
    """Return the policy as the mapping that its YAML file would contain."""
    label, columns = policy.label, policy.suppressed_columns
    filled = columns is SuppressedColumns.FILL
    return {
        "version": VERSION,
        **_without_none(label=_label_entry(label) if label else None),
        **({} if label.several is None else _several_entries(label.several)),
        **_without_none(
            reading=None if policy.reading is None else policy.reading.to_dict(),
            measure=policy.measure,
            person=policy.person,
            weight=policy.weight,
            population=policy.population,
        ),
        "privacy": policy.privacy.to_mapping(),
        "unseen": str(policy.unseen),
        **_without_none(suppressed_columns=None if filled else str(columns)),
        "attributes": {a.name: _attribute_entry(a) for a in policy.attributes.values()},
        **_without_none(
            configurations={n: c.spec() for n, c in policy.configurations.items()} or None,
            anonymizers=[
                {choice.method: plain(choice.options)} if choice.options else choice.method
                for choice in policy.anonymizers
            ]
            or None,
            release=dict(policy.release) or None,
        ),
    }


def _without_none(**entries: Any) -> dict[str, Any]:
    """Return the entries that have a value, since a policy leaves out what it does not state."""
    return {name: value for name, value in entries.items() if value is not None}


def _attribute_entry(attribute: Attribute) -> dict[str, Any]:
    return _without_none(
        role=str(attribute.role),
        hierarchy=attribute.hierarchy_source,
        masks=[mask.spec() for mask in attribute.masks] or None,
        weight=None if attribute.weight == 1.0 else attribute.weight,
        kind=attribute.kind and str(attribute.kind),
        type=attribute.type and str(attribute.type),
        order=list(attribute.order) or None,
        values=list(attribute.values) or None,
    )


def _several_entries(several: SeveralLabels) -> dict[str, Any]:
    """Return the entries of a policy file that state several labels, without default values."""
    return _without_none(
        labels="any" if several.any_column else [_task_entry(task) for task in several.tasks],
        serve=None if several.serve is Serve.MEAN else str(several.serve),
        labels_known=several.labels_known or None,
    )


def _task_entry(task: LabelTask) -> str | dict[str, Any]:
    entry = _label_entry(task.label)
    more = _without_none(weight=None if task.weight == 1.0 else task.weight, measure=task.measure)
    if not more:
        return entry
    return {**(entry if isinstance(entry, dict) else {"column": entry}), **more}


def _label_entry(label: Label) -> str | dict[str, Any]:
    more = _without_none(
        kind=str(label.kind) if label.is_number else None,
        bins=label.bins or None,
        classes=list(label.classes) or None,
        cuts=list(label.cuts) or None,
        bounds=None if label.bounds is None else list(label.bounds),
    )
    return {"column": label.column, **more} if more else label.column


def plain(value: Any) -> Any:
    """Return nested mappings and sequences as plain dicts and lists, which YAML can write."""
    if isinstance(value, Mapping):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return value


def shown_policy(policy: Policy) -> Policy:
    """Return the policy as certificates state it: without lists that masks learnt from a table."""
    attributes = {
        name: replace(each, masks=tuple(dict.fromkeys(mask.unlisted() for mask in each.masks)))
        for name, each in policy.attributes.items()
    }
    return replace(policy, attributes=attributes, configurations=_unlisted(policy))


def _unlisted(policy: Policy) -> dict[str, Configuration]:
    """Return the configurations of a policy; their masks list no values that they learnt."""
    return {
        name: replace(chosen, masks={n: mask.unlisted() for n, mask in chosen.masks.items()})
        for name, chosen in policy.configurations.items()
    }


def policy_digest(policy: Policy) -> str:
    """Return the SHA-256 of the canonical text, which covers the content of hierarchies."""
    return hashlib.sha256(canonical_policy(policy).encode()).hexdigest()


def canonical_policy(policy: Policy) -> str:
    """Return everything that the policy declares as one JSON text. Equal policies give equal texts.

    A hierarchy is stated by the digest of its content. Values that the masks of configurations
    learnt are left out: otherwise readers of the digest could confirm a guess of such a value. The
    text has the lists of the masks that an attribute declares; so certificates state the digest of
    `shown_policy`.
    """
    data = policy_mapping(replace(policy, configurations=_unlisted(policy)))
    for attribute in policy.attributes.values():
        if attribute.hierarchy is not None:
            data["attributes"][attribute.name]["hierarchy"] = attribute.hierarchy.digest
    return json.dumps(data, sort_keys=True, default=str)


_BY_HAND = (
    "`aegis advise TABLE --policy POLICY -o best.yaml` writes one. By hand: "
    "`configurations: {NAME: {ATTRIBUTE: MASK}}`."
)
_WRITERS = {
    "policy": "`aegis init TABLE --label COLUMN -o policy.yaml` writes a first policy.",
    "configuration": _BY_HAND,
    "certificate": "`aegis apply --certificate FILE` writes the certificate of a release.",
    "recipe": "`aegis advise TABLE --policy POLICY --with METHOD -o recipe.yaml` writes one where a "
    "record-level release is best. By hand: `method: NAME`.",
}
"""Advice for an empty file, by the kind of file."""
_START = f"A policy starts with `version: {VERSION}`."
_SHAPES: Mapping[object, type[PolicyMapping]] = {
    "attributes": AttributeEntry,
    "label": LabelEntry,
    "labels": TaskEntry,
    "reading": ReadingShape,
    "release": ReleaseShape,
}
"""The keys that entries of a policy allow, by the key at the top."""
_TEXTS = {"population": "the path of a table with the rows of the population"}
"""Meaning of a text in a policy, by its key."""


def _hint(path: Sequence[str | int], forms: Sequence[ErrorDetails]) -> str:
    """Return what to write for a wrong entry, from the schema's errors for each form it may have."""
    first, key = forms[0], str(path[-1])
    if len(forms) > 1:
        shapes = [
            allowed_value(form).partition(":")[0] for form in forms if not allowed_names(form)
        ]
        if "a number" in shapes:
            shapes = [shape for shape in shapes if shape != "a whole number"]
        names = [name for form in forms for name in allowed_names(form)]
        return f"Write {' or '.join(dict.fromkeys((*shapes, *names)))}."
    if key == "version":
        return _START
    if names := allowed_names(first):
        return choices(str(first["input"]), names)
    if first["type"] == "string_type":
        text = _TEXTS.get(key, allowed_value(first))
        return f"Write {text}, in quotes where it looks like something else."
    if first["type"] == "too_short" and first["input"] == []:
        return f"Write {allowed_value(first)}, or leave the key out."
    return f"Write {allowed_value(first)}."


def load_policy(source: str | Path | Mapping[str, Any]) -> Policy:
    """Read a policy from a YAML file or a mapping, check it, and return it.

    Parameters
    ----------
    source
        Path of a YAML file, or the same content as a mapping.

    Raises
    ------
    PolicyError
        The file is missing or not YAML; or a key, role, mask, measure or privacy model is unknown;
        or a parameter has the wrong type or is out of range. The message names the line.
    DataError
        A hierarchy file cannot be read or is not a hierarchy. The message also names the line of
        the policy.

    Examples
    --------
    >>> import aegis
    >>> policy = aegis.load_policy("examples/adult/policy.yaml")
    >>> policy.label.column, str(policy.privacy)
    ('income', 'k-anonymity (k = 5); at most 2 % of the rows suppressed')
    """
    if not isinstance(source, str | PathLike | Mapping):
        raise PolicyError(
            f"The policy is {brief(source)}, of type {type(source).__name__}.",
            hint="Allowed: a Policy, the path of a YAML file, or a mapping.",
        )
    if isinstance(source, Mapping):
        return _Loader(read_yaml(write_yaml(plain(source)), "policy"), Path()).load()
    return _Loader(read_document(source, "policy"), Path(source).parent).load()


def as_policy(policy: Policy | str | Path | Mapping[str, Any]) -> Policy:
    """Return a policy, read from a path or a mapping if need be."""
    return policy if isinstance(policy, Policy) else load_policy(policy)


def read_document(path: str | Path, what: str) -> Located:
    """Read a YAML file once, so that several functions can use its content. A path may be a pipe,
    which can be read only once, such as `<(command)` of a shell. `what` names the file in messages.
    Raise `PolicyError` if the file is missing, empty, a table, or not YAML.
    """
    if "\n" in str(path):
        raise PolicyError(
            f"You gave the text of a {what}, not the path of its file.",
            hint="Write the text to a file, or give what `yaml.safe_load(text)` returns.",
        )
    file = Path(path)
    if file.is_file() and file.name.lower().endswith(TABLE_FORMATS):
        raise PolicyError(f"{file} is a table, not a {what} (YAML).", hint=_WRITERS[what])
    text = read_text(file, what, PolicyError)
    return read_yaml(text, str(file), remedy=_WRITERS[what])


def _refuse_other_documents(
    file: Path, data: Mapping[str, Any], attributes: Mapping[str, Attribute]
) -> None:
    """Refuse a recipe, certificate or policy, unless its keys are names of attributes."""
    if "method" in data and "method" not in attributes:
        raise PolicyError(
            f"{file} holds the recipe of a record-level release, not masking configurations.",
            hint="`aegis anonymize TABLE --policy POLICY --recipe FILE -o OUTPUT` follows it.",
        )
    if {"certificate", "configuration"} <= data.keys() - attributes.keys():
        raise PolicyError(
            f"{file} is the certificate of a release, not a configuration.",
            hint="Give the file that `aegis advise -o` wrote. `aegis compose` and `--after` take "
            "certificates.",
        )
    if {"attributes", "label"} <= data.keys() - attributes.keys() and (
        "configurations" not in data
    ):
        raise PolicyError(
            f"{file} is a policy without configurations; a configuration names one mask for each "
            "attribute.",
            hint=_BY_HAND,
        )


@checks_types
def load_configurations(
    source: str | Path | Located, policy: Policy | str | Path | Mapping[str, Any]
) -> dict[str, Configuration]:
    """Read explicit configurations for `policy` from a file with the form `configurations: {name:
    {attribute: mask}}`.

    `source` is a path, or the result of `read_document`. If the file is a single mapping
    `{attribute: mask}`, it is one configuration with the name of the file.

    Examples
    --------
    >>> import aegis, tempfile, pathlib
    >>> policy = aegis.load_policy(
    ...     {
    ...         "version": 1,
    ...         "label": "income",
    ...         "attributes": {"age": {"role": "quasi-identifier", "masks": ["identity", "suppress"]}},
    ...     }
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "all.yaml")
    ...     _ = path.write_text("configurations: {hidden: {age: suppress}, shown: {age: identity}}")
    ...     list(aegis.load_configurations(path, policy))
    ['hidden', 'shown']
    """
    located, attributes = _document(source, "configuration"), as_policy(policy).attributes
    file, data = Path(located.origin), located.data
    if not isinstance(data, dict):
        raise PolicyError(
            f"{file} is not a mapping.", hint="Write `configurations: {NAME: {ATTRIBUTE: MASK}}`."
        )
    _refuse_other_documents(file, data, attributes)
    if "configurations" not in data:
        return {file.stem: _configuration(file.stem, data, attributes, located, ())}
    listed = data["configurations"]
    if not isinstance(listed, dict) or not listed:
        raise PolicyError(
            f"{located.where('configurations')}: no configurations.", hint="Give at least one."
        )
    return {
        name: _configuration(name, masks, attributes, located, ("configurations", name))
        for name, masks in listed.items()
    }


def read_mapping(source: str | Path | Located, what: str) -> dict[str, Any]:
    """Read a YAML file (its path or its `read_document`) that contains a single mapping. Error
    messages call it `what`. Raise `PolicyError` if the file is missing, not YAML or not a mapping.
    """
    located = _document(source, what)
    if not isinstance(located.data, dict):
        raise PolicyError(f"{located.origin} is not a mapping.", hint="Write {KEY: VALUE}.")
    return located.data


def _document(source: str | Path | Located, what: str) -> Located:
    return source if isinstance(source, Located) else read_document(source, what)


def parse_value(text: str, origin: str) -> Any:
    """Return the value that `text` would have in a YAML file; an empty text means null."""
    return read_yaml(text, origin).data if text else None


def write_mapping(data: Mapping[str, Any]) -> str:
    """Return plain data as YAML that readers of YAML 1.1 and 1.2 interpret in the same way."""
    return write_yaml(plain(data))


@checks_types
def dump_policy(policy: Policy) -> str:
    """Return the policy as YAML text from which `load_policy` reads an equal policy.

    Examples
    --------
    >>> import aegis, pathlib, tempfile
    >>> policy = aegis.load_policy("examples/adult/policy.yaml").without(["age"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "policy.yaml")
    ...     _ = path.write_text(aegis.dump_policy(policy), encoding="utf-8")
    ...     aegis.load_policy(path) == policy
    True
    """
    return write_yaml(policy_mapping(policy))


@checks_types
def dump_configurations(
    configurations: Mapping[str, Configuration],
    *,
    measure: str | None = None,
    made_under: Mapping[str, Any] | None = None,
) -> str:
    """Return configurations as YAML text from which `load_configurations` reads them again.

    `measure` is the measure by which the configurations were chosen; `measure_of_choice` reads it
    from the file. If they were chosen from a summary, `made_under` is the rule of its owner as
    plain data; `owner_of_choice` reads it from the file.

    Examples
    --------
    >>> import aegis
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> advice = study.rank(generate_count=5)
    >>> best = advice.require_best().configuration
    >>> text = aegis.dump_configurations({"best": best}, measure=advice.stated_measure)
    >>> text.splitlines()[0]
    'measure: adjusted-pillai'
    """
    chosen: dict[str, Any] = {} if measure is None else {"measure": measure}
    if made_under is not None:
        chosen["made_under"] = plain(made_under)
    listed = zip(configurations, listed_configurations(configurations), strict=True)
    return write_yaml(chosen | {"configurations": {name: c.spec() for name, c in listed}})


def choice(source: str | Path | Located) -> dict[str, Any]:
    """Return the entries of a file with `configurations` or a `method`, else an empty mapping."""
    data = read_mapping(source, "configuration")
    return data if {"configurations", "method"} & data.keys() else {}


def measure_of_choice(source: str | Path | Located) -> str | None:
    """Return the measure by which a file's configurations or recipe were chosen, or None."""
    data = choice(source)
    return MEASURES.get(str(data["measure"])).name if "measure" in data else None


@contextmanager
def _at(located: Located, *path: str | int, usual: tuple[str | int, ...] = ()) -> Iterator[None]:
    """Add file and line to errors in this context: of the entry that they name, else of `usual`."""
    try:
        yield
    except (PolicyError, DataError) as error:
        where = located.where(*path, *(error.entry or usual))
        raise type(error)(f"{where}: {error.message}", hint=error.hint) from error


class _Loader:
    """Converts a located YAML document into a `Policy`."""

    def __init__(self, located: Located, folder: Path) -> None:
        self.located = located
        self.folder = folder

    def load(self) -> Policy:
        shape = self._shape()
        with _at(self.located, "measure"):
            measure = shape.asked_measure()
        with _at(self.located, "privacy"):
            privacy = PrivacyRule.parse(shape.privacy) if shape.privacy else PrivacyRule()
        attributes = {
            name: self._attribute(name, entry) for name, entry in shape.attributes.items()
        }
        self._check_weight(shape.weight, attributes)
        configurations = {
            name: _configuration(name, masks, attributes, self.located, ("configurations", name))
            for name, masks in shape.configurations.items()
        }
        methods = self._methods(shape.anonymizers)
        label = self._label(shape)
        with _at(self.located, usual=("attributes",)):
            return Policy(
                label=label,
                attributes=attributes,
                privacy=replace(privacy, person=shape.person),
                measure=measure,
                configurations=configurations,
                unseen=shape.unseen,
                suppressed_columns=shape.suppressed_columns,
                release=shape.release.model_dump(exclude_none=True),
                anonymizers=methods,
                reading=self._reading(shape),
                weight=shape.weight,
                population=None
                if shape.population is None
                else str(self.folder / shape.population),
            )

    def _label(self, shape: PolicyShape) -> Label:
        """Return the label of the policy, or several labels as one, or none."""
        if shape.labels is None:
            for key in ("serve", "labels_known"):
                if getattr(shape, key) is not None:
                    raise PolicyError(
                        f"{self.located.where(key)}: {key!r} is given without `labels`.",
                        hint=f"{key!r} states how to combine several labels: name them in `labels`, or leave {key!r} out.",
                    )
            with _at(self.located, "label"):
                return NO_LABEL if shape.label is None else _label(shape.label)
        if shape.label is not None:
            raise PolicyError(
                f"{self.located.where('labels')}: `label` and `labels` are both given.",
                hint="Name all labels in `labels`, or one in `label`.",
            )
        serve, labels_known = shape.serve or Serve.MEAN, bool(shape.labels_known)
        if shape.labels == "any":
            for key in ("serve", "labels_known"):
                if getattr(shape, key) is not None:
                    raise PolicyError(
                        f"{self.located.where(key)}: {key!r} cannot be used with `labels: any`.",
                        hint="Aegis then predicts every column from all others and takes the mean: leave "
                        f"{key!r} out, or list the labels. A `weight` of an attribute states how much it counts.",
                    )
            return ANY_LABEL
        tasks = []
        for index, entry in enumerate(shape.labels):
            with _at(self.located, "labels", index):
                tasks.append(LabelTask(_label(entry), entry.weight, entry.measure))
        with _at(self.located, "labels"):
            if not tasks:
                raise PolicyError(
                    "`labels` names no column.", hint="Name at least one, or leave it out."
                )
            return several_labels(tasks, serve, labels_known=labels_known)

    def _check_weight(self, name: str | None, attributes: Mapping[str, Attribute]) -> None:
        """Refuse a column of weights that would be released unmasked: it can identify persons."""
        attribute = None if name is None else attributes.get(name)
        if attribute is not None and any(isinstance(mask, Identity) for mask in attribute.masks):
            raise PolicyError(
                f"{self.located.where('attributes', attribute.name)}: {attribute.name!r} contains the weights of rows, and "
                "its mask `identity` would release them.",
                hint="A weight that few rows have identifies them. List masks without `identity`, such as "
                "`[{round: {step: 100}}, suppress]`, or leave the column out of the attributes: it is "
                "then not released.",
            )

    def _reading(self, shape: PolicyShape) -> Reading | None:
        if shape.reading is None:
            return None
        with _at(self.located, "reading"):
            entries: dict[str, Any] = shape.reading.model_dump(exclude_none=True)
            lists = {
                name: tuple(value) for name, value in entries.items() if isinstance(value, list)
            }
            return Reading(**(entries | lists))

    def _shape(self) -> PolicyShape:
        data = self.located.data
        if not isinstance(data, dict):
            raise PolicyError(
                f"{self.located.origin} is not a mapping.",
                hint=_START,
            )
        if {"certificate", "configuration"} <= data.keys():
            raise PolicyError(
                f"{self.located.origin} is the certificate of a release, not a policy.",
                hint="Give the policy with which you made the release. `aegis audit RELEASE --certificate FILE` "
                "checks a certificate.",
            )
        if "attributes" not in data and data.keys() & {"configurations", "method"}:
            content = "configurations" if "configurations" in data else "a record-level recipe"
            raise PolicyError(
                f"{self.located.origin} holds {content}, not a policy.",
                hint="A policy names the attributes: `aegis init TABLE -o policy.yaml` proposes one.",
            )
        try:
            return PolicyShape.model_validate(data)
        except ValidationError as error:
            raise self._shape_error(error) from error

    def _shape_error(self, error: ValidationError) -> PolicyError:
        """Return the first schema error with its line and, for an unknown key, the nearest one."""
        # A misspelt key also makes the right one missing: it is the better thing to say.
        details = error.errors()
        first = min(details, key=lambda detail: detail["type"] != "extra_forbidden")
        path = self._path(first)
        name, where = ".".join(map(str, path)), self.located.where(*path)
        if first["type"] == "extra_forbidden":
            shape = _SHAPES.get(path[0], PolicyShape) if len(path) > 1 else PolicyShape
            return PolicyError(
                f"{where}: unknown key {path[-1]!r}.",
                hint=choices(str(path[-1]), shape.model_fields),
            )
        if first["type"] == "missing":
            due = {"role": f"Add one of: {', '.join(Role)}.", "version": _START}
            hint = due.get(str(path[-1]), "Add it.")
            return PolicyError(f"{where}: {name!r} is missing.", hint=hint)
        # Each form that a value may have, such as text or mapping, is an error of its own.
        forms = [detail for detail in details if self._path(detail) == path]
        return PolicyError(f"{where}: {name} is {brief(first['input'])}.", hint=_hint(path, forms))

    def _path(self, detail: ErrorDetails) -> tuple[str | int, ...]:
        """Return the path of a wrong entry, without the parts that name forms of an entry."""
        data, path = self.located.data, []
        *parts, last = detail["loc"]
        for part in (*parts, last):
            inside = part in data if isinstance(data, dict) else isinstance(data, list)
            if inside and isinstance(part, int if isinstance(data, list) else str):
                data = data[part]
                path.append(part)
        return (*path, last) if detail["type"] == "missing" else tuple(path)

    def _attribute(self, name: str, entry: AttributeEntry) -> Attribute:
        role, path = entry.role, ("attributes", name)
        hierarchy = None
        if entry.hierarchy is not None:
            with _at(self.located, *path, "hierarchy"):
                source = entry.hierarchy
                hierarchy = (
                    Hierarchy.from_csv(self.folder / source)
                    if isinstance(source, str)
                    else Hierarchy.from_tree(source, name=name)
                )
        declared = []
        for index, spec in enumerate(entry.masks or ()):
            with _at(self.located, *path, "masks", index):
                declared.append(parse_mask(spec, hierarchy=hierarchy, where=f"attribute {name!r}"))
        masks = list(dict.fromkeys(declared))
        if entry.masks is None:
            masks = _default_masks(role, hierarchy)
        kind, order = self._kind(entry, path)
        values = tuple(entry.values or ())
        self._refuse_twice(values, (*path, "values"), "List every value once.")
        return Attribute(
            name,
            role,
            tuple(masks),
            hierarchy,
            entry.weight,
            entry.hierarchy,
            kind,
            order,
            entry.type,
            values,
        )

    def _kind(
        self, entry: AttributeEntry, path: tuple[str, str]
    ) -> tuple[AttributeKind | None, tuple[Any, ...]]:
        """Return how values are compared, and their order, which makes them ordinal."""
        key = "kind" if entry.order is None else "order"
        if (entry.kind or entry.order) and entry.role is not Role.QUASI_IDENTIFIER:
            raise PolicyError(
                f"{self.located.where(*path, key)}: {path[1]!r} has the role {entry.role}, so it cannot have {key!r}.",
                hint=f"Leave {key!r} out: only quasi-identifiers have one.",
            )
        if entry.order is None:
            return entry.kind, ()
        if entry.kind not in (None, AttributeKind.ORDINAL):
            raise PolicyError(
                f"{self.located.where(*path, 'kind')}: {path[1]!r} has an order, but its kind is "
                f"{entry.kind}.",
                hint="Leave the order out, or write `kind: ordinal`.",
            )
        self._refuse_twice(entry.order, (*path, "order"), "List every value once, the least first.")
        return AttributeKind.ORDINAL, tuple(entry.order)

    def _refuse_twice(self, values: Iterable[Any], path: tuple[str, ...], hint: str) -> None:
        texts: set[str] = set()
        for index, value in enumerate(values):
            if str(value) in texts:
                where = self.located.where(*path, index)
                raise PolicyError(f"{where}: {value!r} is given twice.", hint=hint)
            texts.add(str(value))

    def _methods(self, entries: list[str | dict[str, dict[str, Any]]]) -> tuple[MethodChoice, ...]:
        """Return the record-level methods in `entries` of a policy; equal names get a number."""
        choices: list[MethodChoice] = []
        for index, entry in enumerate(entries):
            if isinstance(entry, dict) and len(entry) != 1:
                raise PolicyError(
                    f"{self.located.where('anonymizers', index)}: {len(entry)} methods in one entry "
                    "of anonymizers.",
                    hint="Write NAME, or {NAME: {OPTION: VALUE}}.",
                )
            method, options = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
            before = sum(choice.method == method for choice in choices)
            name = f"{method} {before + 1}" if before else method
            where = self.located.where("anonymizers", index)
            choices.append(MethodChoice(name, method, options, where))
        return tuple(choices)


def _label(entry: LabelEntry) -> Label:
    kind = LabelKind(entry.kind or LabelKind.CLASSES)
    classes, cuts = tuple(entry.classes or ()), tuple(entry.cuts or ())
    bounds = None if entry.bounds is None else (entry.bounds[0], entry.bounds[1])
    return Label(entry.column, entry.bins, classes, cuts, kind, bounds=bounds)


def _default_masks(role: Role, hierarchy: Hierarchy | None) -> list[Mask]:
    """Return the candidate masks of an attribute for which the policy lists none."""
    if hierarchy is not None:
        levels: list[Mask] = [
            parse_mask({"level": n}, hierarchy=hierarchy) for n in range(1, hierarchy.height + 1)
        ]
        return [Identity(), *levels]
    if role is Role.QUASI_IDENTIFIER:
        return [Identity(), Suppress()]
    return [Identity()] if role in (Role.SENSITIVE, Role.FEATURE) else []


def _configuration(
    name: str,
    masks: Any,
    attributes: Mapping[str, Attribute],
    located: Located,
    path: tuple[str | int, ...],
) -> Configuration:
    """Return a configuration; attributes left out get their only candidate, else `identity`."""
    if not isinstance(masks, dict):
        raise PolicyError(
            f"{located.where(*path)}: configuration {name!r} is {masks!r}.",
            hint="Write {ATTRIBUTE: MASK}.",
        )
    parsed: dict[str, Mask] = {}
    scored = {n: a for n, a in attributes.items() if a.scored}
    for column, spec in masks.items():
        with _at(located, *path, column):
            require_known(f"attribute in configuration {name!r}:", column, scored)
            attribute = scored[column]
            where = f"attribute {attribute.name!r}"
            parsed[attribute.name] = parse_mask(spec, hierarchy=attribute.hierarchy, where=where)
    for attribute in scored.values():
        if attribute.name not in parsed:
            with _at(located, *path):
                parsed[attribute.name] = _unstated(name, attribute)
    return Configuration(name, {n: parsed[n] for n in scored})


def _unstated(configuration: str, attribute: Attribute) -> Mask:
    """Return the mask of an attribute that a configuration does not list."""
    if len(attribute.masks) == 1:
        return attribute.masks[0]
    if Identity() in attribute.masks:
        return Identity()
    raise PolicyError(
        f"Configuration {configuration!r} does not say how to mask {attribute.name!r}.",
        hint="You may leave an attribute out only if it has a single candidate mask, or the candidate `identity`.",
    )
