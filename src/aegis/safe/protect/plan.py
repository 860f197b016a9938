"""Decide the source of each item of level `noise`: the policy, the privacy budget or public data.

The decision depends only on the policy and on the attributes that are declared public, never on the
table. So the choice of noise rounds reveals nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from aegis.errors import PolicyError
from aegis.masks import Mask
from aegis.policy import Attribute, Policy, Unseen
from aegis.safe.protect.budget import Budget
from aegis.safe.protect.cells import (
    Cells,
    NamedClasses,
    by_declaration,
    cells_in,
    fit_to,
    learned,
    named,
    refuse_cut_at_values,
    tallied,
)
from aegis.safe.protect.columns import (
    ColumnType,
    TypedColumn,
    agreed_type,
    as_stored,
    implied_type,
    read_column,
    types_allowed,
    votes_of,
)
from aegis.safe.protect.model import DomainSource, PublishedDomain
from aegis.summary import AttributeSummary, Summary

FITTING = 0.1
"""Share of the budget for fitting masks, if any must be fitted."""
KINDS = 0.05
"""Share of the budget for kinds of columns, if any are paid for."""
CLASSES = 0.1
"""Share of the budget for the names of classes, if they are paid for."""


@dataclass(frozen=True, eq=False)
class _Planned:
    """Where the type, the values and the bounds of an attribute come from, such as the policy or
    noisy counts.

    Attributes
    ----------
    attribute, declared
        The attribute in the summary, and its entry in the policy.
    types
        The types that the column may have; empty if the values in the table are public.
    kind, values
        Where the column's type and its values come from.
    bounds
        Where the parameters come from that masks learn; None if no mask learns any.
    """

    attribute: AttributeSummary
    declared: Attribute
    types: tuple[ColumnType, ...]
    kind: DomainSource
    values: DomainSource
    bounds: DomainSource | None

    @property
    def name(self) -> str:
        return self.attribute.name


class Plan:
    """Decides where published items other than counts come from at level `noise`: the policy, noisy
    counts or public knowledge.

    Parameters
    ----------
    summary
        The exact summary.
    policy
        Declares classes, cuts, types and values.
    public
        Attributes whose values and cuts in the table are public knowledge.

    Raises
    ------
    PolicyError
        The label would be cut at values of the table, or the summary does not have the data to
        parse a column value by value.
    """

    def __init__(self, summary: Summary, policy: Policy, public: Collection[str]) -> None:
        refuse_cut_at_values(policy.label)
        self._summary = summary
        self._policy = policy
        self._strict = policy.unseen is Unseen.ERROR
        self.attributes = [
            _planned(attribute, policy.attributes[name], name in public)
            for name, attribute in summary.attributes.items()
        ]
        self._classes = DomainSource.POLICY if policy.label.declared else DomainSource.BUDGET

    @property
    def _fitted(self) -> list[_Planned]:
        """The attributes whose masks are fitted to noisy counts."""
        return [a for a in self.attributes if a.bounds is DomainSource.BUDGET]

    @property
    def named(self) -> list[str]:
        """The attributes for which publishing the names of cells costs budget."""
        return [a.name for a in self.attributes if a.values is DomainSource.BUDGET]

    @property
    def namings(self) -> int:
        """The number of sets of names whose thresholds cost budget."""
        fitted = any(a.values is DomainSource.BUDGET for a in self._fitted)
        return sum((self._classes is DomainSource.BUDGET, fitted, bool(self.named)))

    def fitted_to_noise(self, name: str) -> bool:
        """Whether masks of the attribute called `name` are fitted to noisy counts."""
        return any(a.name == name for a in self._fitted)

    def domains(self) -> Iterable[PublishedDomain]:
        """Yield where each published item that is not a count comes from."""
        label = self._policy.label
        yield PublishedDomain("cuts" if label.cuts else "classes", label.column, self._classes)
        for planned in self.attributes:
            yield PublishedDomain("kind", planned.name, planned.kind)
            yield PublishedDomain("values", planned.name, planned.values)
            if planned.bounds is not None:
                yield PublishedDomain("bounds", planned.name, planned.bounds)

    def classes(self, budget: Budget) -> NamedClasses:
        """Return the declared label classes, or those with enough noisy rows, paid from `budget`."""
        label = self._summary.label
        if self._classes is DomainSource.POLICY:
            return by_declaration(label, self._policy.label, others_refused=self._strict)
        texts, rows = tallied(label)
        [noisy], sigma = budget.spend(
            "label classes", [rows], 1.0, CLASSES * budget.total, keys=[texts]
        )
        return named(label, noisy >= budget.threshold("label classes", sigma, 1, 1))

    def columns(self, budget: Budget) -> list[TypedColumn]:
        """Parse each column as the declared type, or as the one of most values by noisy counts."""
        bought = [a for a in self.attributes if a.kind is DomainSource.BUDGET]
        chosen = {a.name: a.types[0] for a in self.attributes if a.types}
        if bought:
            votes, sigma = budget.spend(
                "kinds of columns",
                [votes_of(a.attribute) for a in bought],
                math.sqrt(len(bought)),
                KINDS * budget.total,
            )
            for planned, counts in zip(bought, votes, strict=True):
                chosen[planned.name] = agreed_type(counts, sigma, planned.types)
        return [self._column(a, chosen.get(a.name)) for a in self.attributes]

    def _column(self, planned: _Planned, chosen: ColumnType | None) -> TypedColumn:
        if chosen is None or planned.attribute.domain is not None:
            return as_stored(planned.attribute)
        column = read_column(planned.attribute, chosen, planned.declared.values)
        declaration = planned.declared.values or planned.declared.type
        if declaration and self._strict and (column.value_index < 0).any():
            raise PolicyError(
                f"The table holds values of {planned.name!r} that the policy does not declare.",
                hint="Declare all `values` (or the `type`) that the column can have, or write "
                "`unseen: suppress`: other values then have no name.",
            )
        return column

    def cells(
        self, columns: list[TypedColumn], classes: NamedClasses, budget: Budget
    ) -> list[Cells]:
        """Return the cells of every attribute; masks that learn are fitted to noisy counts."""
        by_name = {c.attribute.name: c for c in columns}
        masks = self._masks([by_name[a.name] for a in self._fitted], classes, budget)
        attribute_cells = []
        for planned in self.attributes:
            column = by_name[planned.name]
            cells = classes.within(cells_in(column, masks.get(planned.name)))
            # Not whether all values have a cell, which the table would tell: whether all must.
            complete = planned.values is DomainSource.TABLE or (
                planned.values is DomainSource.POLICY and self._strict
            )
            bought = planned.values is DomainSource.BUDGET
            attribute_cells.append(replace(cells, bought=bought, complete=complete))
        return attribute_cells

    def _masks(
        self, columns: list[TypedColumn], classes: NamedClasses, budget: Budget
    ) -> dict[str, list[Mask]]:
        if not columns:
            return {}
        rows = [classes.of(c.joint).sum(axis=1) for c in columns]
        keys = [[str(v) for v in c.values.to_pylist()] for c in columns]
        noisy, sigma = budget.spend(
            "rows per value", rows, math.sqrt(len(columns)), FITTING * budget.total, keys
        )
        bought = [a.values is DomainSource.BUDGET for a in self._fitted]
        least = budget.threshold("rows per value", sigma, 1, sum(bought)) if any(bought) else 0.0
        return {
            column.attribute.name: fit_to(column, counts, (counts >= least) | (not is_bought))
            for column, counts, is_bought in zip(columns, noisy, bought, strict=True)
        }


def refuse_read_by_context(
    columns: Collection[str] | None, policy: Policy, public: Collection[str]
) -> None:
    """Raise `PolicyError` if a single value could change how all values of a column are parsed.

    `columns` are those in which other values decide how a value is parsed; None if unknown. A type or
    classes that the policy declares fix the parsing; the values of `public` attributes are known.
    """
    strict, columns_known = policy.unseen is Unseen.ERROR, columns is not None
    if columns is None:
        columns = {policy.label.column, *policy.attributes}
    label = policy.label
    turning = [label.column] if label.column in columns and not (strict and label.declared) else []
    for attribute in policy.features:
        type_fixed = strict and bool(attribute.type or attribute.values)
        if attribute.scored and attribute.name in columns and not type_fixed:
            turning += [] if attribute.name in public or "*" in public else [attribute.name]
    if turning and not columns_known:
        raise PolicyError(
            f"The summary does not say how the text of {', '.join(map(repr, turning))} was read: an earlier "
            "version of Aegis made it, and one row could change how the whole column is read.",
            hint="Give the table, or its summary of this version. Or declare the `type` with "
            "`unseen: error`.",
        )
    if turning:
        raise PolicyError(
            f"Other values decide how each value of {', '.join(map(repr, turning))} is read (day or month "
            "first, marks or units of numbers): one row could change the whole column, which would reveal the row.",
            hint="Write dates as 2024-12-31 and numbers as 1234.5, or store the table as Parquet. Or "
            "declare the `type` with `unseen: error`.",
        )


def _planned(attribute: AttributeSummary, declared: Attribute, public: bool) -> _Planned:
    """Decide where the type, the values and the learnt bounds of an attribute come from."""
    values, kind, bounds = DomainSource.BUDGET, DomainSource.BUDGET, None
    if declared.values:
        values = DomainSource.POLICY
    elif public:
        values = DomainSource.TABLE
    types = types_allowed(attribute, declared.type or implied_type(declared.values))
    if values is DomainSource.TABLE:
        kind, types = DomainSource.TABLE, ()
    elif len(types) == 1:
        kind = DomainSource.POLICY
    elif not types:
        raise PolicyError(
            f"The masks of {attribute.name!r} fit no column of the type or of the values that the "
            "policy declares for it.",
            hint="Declare another `type`, or other masks.",
        )
    if learned(attribute):
        bounds = DomainSource.TABLE if public else DomainSource.BUDGET
    if values is not DomainSource.TABLE and attribute.domain is not None:
        _check_withheld(attribute, declared, bounds)
    return _Planned(attribute, declared, types, kind, values, bounds)


def _check_withheld(
    attribute: AttributeSummary, declared: Attribute, bounds: DomainSource | None
) -> None:
    """Refuse values that must be parsed again if the summary lacks their counts by class."""
    typed = declared.type is not None and declared.type.value == attribute.kind.value
    if typed and not declared.values and bounds is not DomainSource.BUDGET:
        return
    if bounds is DomainSource.BUDGET:
        raise PolicyError(
            f"Masks of {attribute.name!r} learn from counts of single values, which this "
            "summary does not hold.",
            hint="Give a summary with the raw joints, or declare the attribute public.",
        )
    raise PolicyError(
        f"The kind of {attribute.name!r} follows from single values, which this summary does not hold.",
        hint=f"Give a summary with the raw joints, declare the attribute public, or its type in the "
        f"policy: `type: {attribute.kind}`, without `values`.",
    )
