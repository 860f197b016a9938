"""Define what the user declares: roles, candidate masks, the privacy rule and the measure.

All classes are frozen. `aegis.policy.load` reads their objects from YAML and writes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from html import escape
from typing import Any

from aegis.errors import PolicyError, at_entry, choices, require_known
from aegis.masks import SHARED_ROWS, Hierarchy, Kind, Mask, Suppress, Tokenise
from aegis.measures import MEASURES, Measure, chosen_measure
from aegis.options import checks_types
from aegis.policy.configuration import Configuration
from aegis.policy.labels import Label, LabelTask
from aegis.privacy import PrivacyRule
from aegis.sources.dialect import Reading
from aegis.words import html_table


class Role(StrEnum):
    """The role of an attribute for privacy. Aegis scores and releases all attributes except those
    with the roles `identifier` and `ignore`.
    """

    IDENTIFIER = "identifier"
    """Identifies a person. Aegis never releases the values: it drops the column, or replaces each
    value by a token."""
    QUASI_IDENTIFIER = "quasi-identifier"
    """Other people may know the value, and several such values together can identify a person.
    Quasi-identifiers form the equivalence classes."""
    SENSITIVE = "sensitive"
    """Nobody should learn a person's value."""
    FEATURE = "feature"
    """The attribute has none of the other roles. Aegis releases and scores the column, but the
    column does not form equivalence classes.
    """
    IGNORE = "ignore"
    """Aegis neither scores nor releases the column."""

    @property
    def scored(self) -> bool:
        """Whether Aegis scores attributes with this role, and releases their masked values."""
        return self not in (Role.IDENTIFIER, Role.IGNORE)


class Unseen(StrEnum):
    """What a release does with a value that the mask of its column does not know."""

    ERROR = "error"
    SUPPRESS = "suppress"


class SuppressedColumns(StrEnum):
    """How a release shows a column whose mask is `suppress`."""

    FILL = "fill"
    """The column has `*` in every row, so that the table keeps its columns."""
    LEAVE_OUT = "leave-out"
    """The column is left out."""


class ValueType(StrEnum):
    """The type of a column's values, as stated by the policy."""

    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    BOOLEAN = "boolean"


class AttributeKind(StrEnum):
    """How methods that group records compare two values of a quasi-identifier."""

    NUMERIC = "numeric"
    """By their distances. This is the default for numbers."""
    ORDINAL = "ordinal"
    """Only by their ranks, either in the stated `order` or in the natural order of numbers, dates
    and times."""
    CATEGORICAL = "categorical"
    """Only as equal or different. This is the default for texts and booleans. It also suits numeric
    codes."""


@dataclass(frozen=True)
class Attribute:
    """One column of the table, with its role and its candidate masks.

    Attributes
    ----------
    name
        The column's name.
    role
        Role of the attribute in privacy.
    masks
        Candidate masks, in the declared order. Masks that learn from data are not fitted yet.
    hierarchy
        The generalisation hierarchy of `level` masks, or None.
    weight
        Weight of the attribute in additive measures; by default 1.
    hierarchy_source
        What the policy file says about the hierarchy: a path or an inline tree.
    kind
        How the values of a quasi-identifier are compared; None for the default of the column's
        type.
    order
        All values of an ordinal attribute in ascending order; empty if it has its natural order.
    type
        Type of the values; None if Aegis determines it from the table.
    values
        All possible values, without null; empty if Aegis determines them from the table.
    """

    name: str
    role: Role
    masks: tuple[Mask, ...]
    hierarchy: Hierarchy | None = None
    weight: float = 1.0
    hierarchy_source: Any = None
    kind: AttributeKind | None = None
    order: tuple[Any, ...] = ()
    type: ValueType | None = None
    values: tuple[Any, ...] = ()

    @property
    def scored(self) -> bool:
        """Whether Aegis scores and releases the attribute."""
        return self.role.scored


@dataclass(frozen=True)
class MethodChoice:
    """A record-level method that the policy wants ranked together with the configurations.

    Attributes
    ----------
    name
        Name in the ranking.
    method
        Name of the method, which is looked up when it runs.
    options
        Options by name, as written in the policy.
    where
        File and line of the policy, for messages; empty if the policy does not come from a file.
    """

    name: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    where: str = field(default="", compare=False)


@dataclass(frozen=True, repr=False)
class Policy:
    """Everything that you declare about one table.

    Attributes
    ----------
    label
        The label, or `NO_LABEL`.
    attributes
        Attributes by name, in the order of the file. Aegis neither scores nor releases any other
        column. The label may be among the attributes, with a role and candidate masks.
    privacy
        The rule that a release must meet.
    measure
        Name of the measure for rankings and searches. If None, rankings, searches and releases use
        their defaults.
    configurations
        Explicit configurations, by name.
    unseen
        How `apply` treats values that a mask does not know.
    anonymizers
        Record-level methods to rank together with the configurations.
    reading
        How to read the table's text files; None if Aegis determines encoding, separators and the
        rest from the files.
    release
        Facts for the report on the release, such as `purpose` and `author`; all are optional.
    population
        Path of a table of the population from which this table is a sample. Both have the same
        quasi-identifiers.
    suppressed_columns
        How a release shows a column whose mask is `suppress`.
    weight
        Column of survey weights for scores and models. If None, each row counts once.

    Examples
    --------
    >>> import aegis
    >>> policy = aegis.load_policy("examples/adult/policy.yaml")
    >>> policy.label.column, len(policy.features)
    ('income', 11)
    >>> print(policy.privacy)
    k-anonymity (k = 5); at most 2 % of the rows suppressed
    """

    label: Label
    attributes: Mapping[str, Attribute]
    privacy: PrivacyRule
    measure: str | None = None
    configurations: Mapping[str, Configuration] = field(default_factory=dict)
    unseen: Unseen = Unseen.ERROR
    anonymizers: tuple[MethodChoice, ...] = ()
    reading: Reading | None = None
    release: Mapping[str, str] = field(default_factory=dict)
    population: str | None = None
    suppressed_columns: SuppressedColumns = SuppressedColumns.FILL
    weight: str | None = None

    def __post_init__(self) -> None:
        if not self.features:
            raise PolicyError(
                "The policy names no attribute that can be scored.",
                hint="Give at least one attribute besides the label the role quasi-identifier, sensitive or feature.",
            )
        self._check_label()
        self._check_identifiers()
        self._check_sensitive()
        self._check_bins()
        self._check_number()
        self._check_person()
        self._check_weight()
        self._check_several()

    @property
    def tasks(self) -> tuple[LabelTask, ...]:
        """The labels with their weights and measures if the policy has several labels; otherwise
        empty.
        """
        return () if self.label.several is None else self.label.several.tasks

    @checks_types
    def of_task(self, task: LabelTask) -> Policy:
        """Return a policy in which only one of several labels remains, and which has no privacy
        rule.

        The other labels are not among its attributes, unless this policy states that they are
        known.

        Examples
        --------
        >>> import aegis
        >>> policy = aegis.load_policy(
        ...     {
        ...         "version": 1,
        ...         "labels": ["income", "occupation"],
        ...         "attributes": {n: {"role": "feature"} for n in ("age", "occupation")},
        ...     }
        ... )
        >>> [list(policy.of_task(task).attributes) for task in policy.tasks]
        [['age'], ['age', 'occupation']]
        """
        several = self.label.several
        unknown = set() if several is None or several.labels_known else set(several.columns)
        unknown.discard(task.label.column)
        return replace(
            self,
            label=task.label,
            attributes={n: a for n, a in self.attributes.items() if n not in unknown},
            privacy=PrivacyRule(person=self.person),
            measure=task.named_measure(self.measure),
            configurations={},
            anonymizers=(),
        )

    def _check_several(self) -> None:
        """Check each of several labels as if it were the only one."""
        if self.measure is not None and self.tasks:
            kinds = {task.label.kind for task in self.tasks}
            chosen = MEASURES.get(self.measure)
            if not chosen.reads_label or chosen.label not in kinds:
                raise PolicyError(
                    f"Measure {chosen.name!r} suits none of the labels "
                    f"{', '.join(task.label.column for task in self.tasks)}.",
                    hint="Leave the measure out, or name a measure for a single label: "
                    "`labels: [{column: NAME, measure: NAME}]`.",
                )
        for task in self.tasks:
            column = task.label.column
            if column == self.person:
                raise PolicyError(
                    f"{column!r} is both a label and the column of persons.",
                    hint="Name two different columns.",
                )
            if column in self.privacy.sensitive and (task.label.cut or task.label.is_number):
                raise PolicyError(
                    f"The label {column!r} is protected by the privacy rule, and is "
                    f"{'a number' if task.label.is_number else 'cut into bins'}.",
                    hint="Protect another column, or predict its classes: leave `kind` and `bins` out.",
                )
            self.of_task(task)

    @property
    def person(self) -> str | None:
        """The column that identifies persons, if the rule counts persons instead of rows; otherwise
        None.
        """
        return self.privacy.person

    @property
    def shared_rows(self) -> int:
        """The number of rows on which each bound that a mask learns must rest: the smallest class
        size of the rule, but at least 11.
        """
        return max(SHARED_ROWS, self.privacy.minimum_size)

    @checks_types
    def measure_by(self, *names: str | None) -> Measure:
        """Return the first given measure that is not None. If all are None, return the measure that
        the policy names; if it names none, return the default measure.

        If there is no label, the default is the measure that treats all columns equally.

        Raises
        ------
        PolicyError
            The measure is unknown, or it needs a label and the policy has none.

        Examples
        --------
        >>> import aegis
        >>> policy = aegis.load_policy("examples/adult/policy.yaml")
        >>> policy.measure_by("mi").name, policy.measure_by(None).name
        ('mi', 'adjusted-pillai')
        """
        if self.label.several is not None and self.tasks:
            return MEASURES.get(self.label.several.measure)
        return chosen_measure(*names, self.measure, label=self.label.kind)

    @checks_types
    def measured_by(self, measure: str | None) -> Policy:
        """If the policy has several labels, return a policy in which every label without a measure
        gets this measure.

        If the policy has one label or none, the method returns it unchanged. Then give the measure
        to the ranking or search instead.

        Examples
        --------
        >>> import aegis
        >>> policy = aegis.load_policy("examples/adult/policy.yaml")
        >>> policy.measured_by("mi") is policy
        True
        """
        if measure is None or not self.tasks or measure == self.measure_by().name:
            return self
        return replace(self, measure=measure)

    @checks_types
    def require_label(self, what: str, *, number: bool = False) -> None:
        """Raise `PolicyError` if the policy has no label with classes, which the operation `what`
        needs.

        The message names the operation. If `number` is True, a numeric label is accepted, too.

        Examples
        --------
        >>> import aegis
        >>> policy = aegis.load_policy("examples/adult/policy.yaml")
        >>> policy.require_label("An evaluation")
        """
        self.refuse_several(what)
        if not self.label:
            raise PolicyError(
                f"{what} needs a label, but the policy names none.",
                hint="Name the column to predict in the policy: `label: COLUMN`.",
            )
        if self.label.is_number and not number:
            raise PolicyError(
                f"{what} needs classes, but the label {self.label.column!r} is a number to predict.",
                hint=f"Cut it into classes: `label: {{column: {self.label.column}, bins: 5}}`.",
            )

    @checks_types
    def refuse_several(self, what: str) -> None:
        """Raise `PolicyError` if the policy has several labels, with which the operation `what`
        does not work.

        Examples
        --------
        >>> import aegis
        >>> policy = aegis.load_policy("examples/adult/policy.yaml")
        >>> policy.refuse_several("A protected summary")
        """
        if self.tasks:
            raise PolicyError(
                f"{what} works with one label, but the policy names several: {self.label}.",
                hint="Name one of them in a policy for it: `label: COLUMN` in place of `labels`.",
            )

    @checks_types
    def with_label(
        self, masks: Mapping[str, Mask | None], fitted: Mask | None = None
    ) -> dict[str, Mask | None]:
        """Return the masks of a release after adding the mask of the label; the label's mask is
        None if the label is shown unmasked.

        `fitted` is the single mask of the label (`label_mask`), fitted to a table.

        Examples
        --------
        >>> import aegis
        >>> policy = aegis.load_policy("examples/adult/policy.yaml")
        >>> policy.with_label({"age": None})
        {'age': None, 'income': None}
        """
        masks = dict(masks)
        for column in () if self.label else self.label.columns:
            masks.setdefault(column, None)
        if self.label:
            chosen = self.label_mask if fitted is None or self.label_mask is None else fitted
            masks.setdefault(self.label.column, chosen)
        return masks

    def _check_person(self) -> None:
        """Raise `PolicyError` if the person key would be released unmasked, or is the label."""
        name = self.person
        if name is None:
            return
        if name == self.label.column:
            raise PolicyError(
                f"{name!r} is both the label and the column of persons.",
                hint="Name two different columns.",
            )
        attribute = self.attributes.get(name)
        if attribute is not None and attribute.scored:
            raise PolicyError(
                f"{name!r} names persons and has the role {attribute.role}, which would release it.",
                hint="Give it the role identifier, or leave it out of the attributes: Aegis releases it "
                "only as a token.",
            )

    def _check_weight(self) -> None:
        """Raise `PolicyError` if the weight column has another use in the policy."""
        name = self.weight
        uses: dict[str | None, str] = dict.fromkeys(self.label.columns, "is the label")
        uses |= {self.person: "names persons"}
        uses |= dict.fromkeys(self.privacy.sensitive, "is protected by the rule")
        if name is not None and name in uses:
            raise PolicyError(
                f"{name!r} {uses[name]} and is the weight of a row.",
                hint="Name two different columns.",
            )

    @checks_types
    def refuse_weight(self, what: str) -> None:
        """Raise `PolicyError` if the rows have survey weights, with which the operation `what` does
        not work.

        Examples
        --------
        >>> import aegis
        >>> policy = aegis.load_policy("examples/adult/policy.yaml")
        >>> policy.refuse_weight("A protected summary")
        """
        if self.weight is not None:
            raise PolicyError(
                f"{what} counts each row once, but the policy weights rows by {self.weight!r}.",
                hint="Leave `weight` out of the policy to count each row once.",
            )

    def _check_bins(self) -> None:
        """Raise `PolicyError` if a label in bins, which are not released, is masked or protected."""
        name = self.label.column
        scored = self.label_attribute is not None and self.label_attribute.scored
        if self.label.cut and (scored or name in self.privacy.sensitive):
            raise PolicyError(
                f"The label {name!r} is cut into bins and also has a role or is protected by the rule.",
                hint="Bins only serve to compute scores. Mask the column by `quantiles` before, or drop `bins`.",
            )

    def _check_number(self) -> None:
        """Raise `PolicyError` if the rule protects a numeric label, or its mask shows no number."""
        name, attribute = self.label.column, self.label_attribute
        if not self.label.is_number:
            return
        if name in self.privacy.sensitive:
            raise PolicyError(
                f"The label {name!r} is a number, and the privacy rule protects it by its classes.",
                hint="Protect another column, or cut the number into classes by a mask: leave `kind` "
                "out, and give the label one mask such as `{quantiles: {count: 5}}`.",
            )
        if attribute is not None and attribute.scored:
            _check_number_masks(attribute)

    def _check_label(self) -> None:
        attribute = self.label_attribute
        if attribute is not None and not attribute.scored:
            raise PolicyError(
                f"The label {attribute.name!r} has the role {attribute.role}, but a label is always released.",
                hint="Leave it out of the attributes, or give it the role quasi-identifier, sensitive or feature.",
            )

    def _check_identifiers(self) -> None:
        """Raise `PolicyError` if masks would release an identifier unmasked or in part."""
        for attribute in self.with_role(Role.IDENTIFIER):
            if any(not isinstance(mask, Tokenise | Suppress) for mask in attribute.masks):
                masks = ", ".join(map(str, attribute.masks))
                raise PolicyError(
                    f"The identifier {attribute.name!r} has the masks {masks}, which would release it.",
                    hint="Leave the masks out and it is dropped, or write `masks: [{tokenise: {key_env: NAME}}]`.",
                )
            if len(attribute.masks) > 1:
                raise PolicyError(
                    f"The identifier {attribute.name!r} has {len(attribute.masks)} masks.",
                    hint="Give it one: identifiers have no part in the search.",
                )

    def _check_sensitive(self) -> None:
        for criterion in self.privacy.criteria:
            if criterion.attribute is not None:
                with at_entry("privacy", criterion.model.key, "attribute"):
                    self._check_protected(criterion.attribute)

    def _check_protected(self, name: str) -> None:
        attribute = self.attributes.get(name)
        if attribute is None and name != self.label.column:
            names = [*self.attributes, *([self.label.column] if self.label else [])]
            hint = f"{choices(name, names)} List another column first: {name}: {{role: sensitive}}."
            raise PolicyError(f"Unknown attribute in the privacy rule {name!r}.", hint=hint)
        if attribute is None or attribute.role is Role.SENSITIVE:
            return
        if name != self.label.column or attribute.role is Role.QUASI_IDENTIFIER:
            raise PolicyError(
                f"The privacy rule protects {name!r}, whose role is {attribute.role}.",
                hint="Give it the role sensitive.",
            )

    def __repr__(self) -> str:
        roles = [f"{len(named):,} {role}" for role in Role if (named := self.with_role(role))]
        label = f"label {self.label.column!r}" if self.label else "no label"
        label = label if self.label.several is None else f"labels {self.label}"
        return f"Policy({label}, {', '.join(roles)}; {self.privacy})"

    def _repr_html_(self) -> str:
        rows = (
            (a.name, str(a.role), ", ".join(map(str, a.masks))) for a in self.attributes.values()
        )
        table = html_table(("attribute", "role", "candidate masks"), rows)
        return f"<p>{escape(repr(self))}</p>{table}"

    @checks_types
    def drawn_from(self, population: str | None) -> Policy:
        """Return a copy of the policy that reads its population from the path `population`, which
        the rule must need. If `population` is None, return the policy itself.

        Examples
        --------
        >>> import aegis
        >>> policy = aegis.load_policy("examples/adult/policy.yaml")
        >>> policy.drawn_from(None) is policy
        True
        """
        new_population = None if population is None else self.privacy.comparing(population)
        return self if new_population is None else replace(self, population=new_population)

    @checks_types
    def without(self, names: Collection[str]) -> Policy:
        """Return a copy of the policy that ignores these attributes, so that Aegis neither scores
        nor releases them.

        Raises
        ------
        PolicyError
            A name is not an attribute, or it is the label, or the rule protects it.

        Examples
        --------
        >>> import aegis
        >>> policy = aegis.load_policy("examples/adult/policy.yaml")
        >>> fewer = policy.without(["age"])
        >>> len(policy.features) - len(fewer.features)
        1
        """
        dropped = set(names)
        for name in dropped:
            require_known("attribute to leave out", name, self.attributes)
        return replace(
            self,
            attributes={
                name: Attribute(name, Role.IGNORE, ()) if name in dropped else attribute
                for name, attribute in self.attributes.items()
            },
            configurations={
                name: Configuration(
                    name, {a: mask for a, mask in listed.masks.items() if a not in dropped}
                )
                for name, listed in self.configurations.items()
            },
        )

    @checks_types
    def with_role(self, *roles: Role) -> tuple[Attribute, ...]:
        """Return the attributes that have one of these roles, in the order of the policy.

        Examples
        --------
        >>> import aegis
        >>> policy = aegis.load_policy("examples/adult/policy.yaml")
        >>> from aegis.policy import Role
        >>> [attribute.name for attribute in policy.with_role(Role.FEATURE)]
        ['capital-gain', 'capital-loss', 'hours-per-week']
        """
        return tuple(a for a in self.attributes.values() if a.role in roles)

    @property
    def features(self) -> tuple[Attribute, ...]:
        """The attributes that Aegis scores, without the label."""
        return tuple(
            a for a in self.attributes.values() if a.scored and a.name != self.label.column
        )

    @property
    def protected_hierarchies(self) -> dict[str, Hierarchy]:
        """The hierarchies of those sensitive attributes for which the rule measures distances
        between values.
        """
        return {
            name: hierarchy
            for name in self.privacy.hierarchical
            if (attribute := self.attributes.get(name)) is not None
            and (hierarchy := attribute.hierarchy) is not None
        }

    @property
    def label_attribute(self) -> Attribute | None:
        """The entry of the label in `attributes`; None if the label has no entry there."""
        return self.attributes.get(self.label.column)

    @property
    def label_mask(self) -> Mask | None:
        """The mask of the label, if the label is a feature with a single mask that shows classes or
        a number; otherwise None.
        """
        attribute = self.label_attribute
        if attribute is None or attribute.role is not Role.FEATURE or len(attribute.masks) != 1:
            return None
        only = attribute.masks[0]
        return only if only.shows_intervals or self.label.is_number else None

    @property
    def chosen_label(self) -> Attribute | None:
        """The entry of the label in `attributes`, if each configuration chooses a mask for the
        label; otherwise None.
        """
        attribute = self.label_attribute if self.label_mask is None else None
        return attribute if attribute is not None and attribute.scored else None

    @property
    def quasi_identifiers(self) -> tuple[Attribute, ...]:
        """The attributes whose masked values form the equivalence classes."""
        return self.with_role(Role.QUASI_IDENTIFIER)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns that have the role `sensitive` or that a criterion of the rule protects. The
        label may be one of them.
        """
        declared = [a.name for a in self.with_role(Role.SENSITIVE)]
        return tuple(dict.fromkeys([*declared, *self.privacy.sensitive]))

    @property
    def shown_labels(self) -> tuple[str, ...]:
        """The labels that every release shows. If there are several labels, a release may leave
        some out.
        """
        leaves_out = self.suppressed_columns is SuppressedColumns.LEAVE_OUT and bool(self.tasks)
        return tuple(c for c in self.label.columns if not (leaves_out and c in self.attributes))

    def released(self) -> Iterator[Attribute]:
        """Yield the attributes that a release shows, including identifiers whose values are
        replaced by tokens.

        Examples
        --------
        >>> import aegis
        >>> policy = aegis.load_policy("examples/adult/policy.yaml")
        >>> len(list(policy.released()))
        11
        """
        for attribute in self.attributes.values():
            tokenised = attribute.role is Role.IDENTIFIER and attribute.masks
            if attribute.scored or tokenised:
                yield attribute


def _check_number_masks(label: Attribute) -> None:
    """Raise `PolicyError` unless a numeric label is a feature with one mask that shows a number."""
    name, masks = label.name, label.masks
    ranges = (
        "To release ranges, leave `kind` out: they are classes, with one mask such as "
        "`{quantiles: {count: 5}}`."
    )
    if label.role is not Role.FEATURE:
        raise PolicyError(
            f"The label {name!r} is a number and has the role {label.role}.",
            hint="A number to predict has no role, or the role feature with one mask such as "
            f"`{{round: {{step: 100}}}}`. {ranges}",
        )
    if len(masks) != 1:
        raise PolicyError(
            f"The label {name!r} is a number and has {len(masks)} masks.",
            hint="Give it one: Aegis does not search for the mask of a number to predict.",
        )
    if not all(masks[0].output_kind(kind).numeric for kind in (Kind.INTEGER, Kind.NUMBER)):
        raise PolicyError(
            f"The label {name!r} is a number, and its mask {str(masks[0])!r} shows no number.",
            hint=f"Give it a mask that shows a number, such as `{{round: {{step: 100}}}}` or "
            f"`{{top_code: {{at: 1000}}}}`. {ranges}",
        )
