"""Define the schema of a policy file, which is checked before names are looked up."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from aegis.errors import PolicyError
from aegis.measures import MEASURES, merit_name
from aegis.policy.labels import Serve
from aegis.policy.model import AttributeKind, Role, SuppressedColumns, Unseen, ValueType

MaskSpec = str | dict[str, Any]
ByValue = Field(strict=False)
"""A member of an enumeration, which a policy names by its value."""


def _column(value: Any) -> Any:
    """Convert an integer to text, because a column may be called 2024."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _label(value: Any) -> Any:
    """Accept a bare column name for `{column: NAME}`."""
    return {"column": value} if isinstance(value, str | int) else value


def _day(value: Any) -> Any:
    """Convert a date that YAML has parsed to text."""
    return value.isoformat() if isinstance(value, date) else value


class PolicyMapping(BaseModel):
    """A part of a policy file that does not accept unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class LabelEntry(PolicyMapping):
    """The entry `label` of a policy file: `label: income`, `label: {column: price, kind: number}`,
    or `label: {column: price, bins: 5}`. For protected summaries, also give `classes` or `cuts`.
    """

    column: Annotated[str, BeforeValidator(_column), Field(min_length=1)]
    """Name of the label column."""
    kind: Literal["classes", "number"] | None = None
    """With `number`, Aegis predicts a number, such as a price, and the measure is R2. By default,
    each value is a class."""
    bins: int | None = Field(default=None, ge=2, le=100)
    """Number of quantile bins of a numeric label."""
    classes: list[str | int | float | bool] | None = Field(default=None, min_length=1)
    """All classes that the label can have. Declare them if they are public knowledge. `aegis protect` then spends no privacy budget on them."""
    cuts: list[int | float] | None = Field(default=None, min_length=1)
    """Cut points of a numeric label in ascending order, if they are public knowledge. They
    replace the quantiles of the table."""
    bounds: list[int | float] | None = Field(default=None, min_length=2, max_length=2)
    """Smallest and largest number of a numeric label, if they are public knowledge. `aegis protect`
    needs them. It counts a number outside of the bounds as the nearer bound."""


class TaskEntry(LabelEntry):
    """One entry in the list `labels` of a policy file: `income`, or `{column: hours, kind: number,
    weight: 2}`.
    """

    weight: float = Field(default=1.0, allow_inf_nan=False)
    """How much the label counts in the mean of the shares kept; above zero."""
    measure: str | None = None
    """The measure of this label. By default, it is the policy's measure if this suits the kind of
    label, and otherwise the default measure of the kind.
    """


class AttributeEntry(PolicyMapping):
    """One entry in the mapping `attributes` of a policy file."""

    role: Annotated[Role, ByValue]
    """Role of the attribute in privacy."""
    masks: list[MaskSpec] | None = Field(default=None, min_length=1)
    """Candidate masks. By default, they are all levels of the hierarchy. If there is no hierarchy,
    they are the default masks of the role.
    """
    hierarchy: str | dict[Any, Any] | None = None
    """A CSV file in ARX format, relative to the policy, or an inline tree."""
    weight: float = Field(default=1.0, ge=1e-9, le=1e9, allow_inf_nan=False)
    """Weight of the attribute in measures of single attributes and under `labels: any`, from 1e-9
    to 1e9. (The key `weight` at top level is for weights of rows.)
    """
    kind: Annotated[AttributeKind, ByValue] | None = None
    """How record-level methods compare values of a quasi-identifier. By default, it follows from
    the column's type."""
    order: list[str | int | float] | None = Field(default=None, min_length=2)
    """All values (texts or numbers, without null) of an ordinal quasi-identifier in ascending order."""
    type: Annotated[ValueType, ByValue] | None = None
    """Type of the values. Declare it if it is public knowledge. `aegis protect` then spends no privacy budget on it."""
    values: list[str | int | float | bool] | None = Field(default=None, min_length=1)
    """All values that the attribute can have, without null. Declare them if they are public knowledge. `aegis protect` then spends no privacy budget on them."""


class ReadingShape(PolicyMapping):
    """The entry of a policy file that states the format of text files and workbooks, if Aegis
    should not find it out from the files.
    """

    encoding: str | None = None
    """Name of the encoding: `utf-8`, `cp1252`, `latin-1`, `utf-16`, ..."""
    delimiter: str | None = None
    """The character between fields, or `tab`."""
    quote: str | None = None
    """Character around fields (default `"`), or `none` if fields have no quotation
    marks."""
    escape: str | None = None
    """Character before a quotation mark inside a quoted field. The default is a second
    quotation mark."""
    header: bool | None = None
    """Whether the first line names the columns. If not, they are named `c1`, `c2`,
    ..."""
    decimal: Literal[".", ","] | None = None
    """The decimal mark."""
    thousands: str | None = None
    """The thousands separator."""
    units: list[str] = Field(default_factory=list)
    """Units that Aegis removes from numbers: `$`, `%`, `kg`, ..."""
    null: list[str] = Field(default_factory=list)
    """Texts that mean null (without quotation marks), in addition to the empty text."""
    dates: Literal["day-first", "month-first"] | None = None
    """Order of dates such as 03/04/2024."""
    text: list[str] = Field(default_factory=list)
    """Columns to read as text."""
    numbers: list[str] = Field(default_factory=list)
    """Columns to read as numbers, even if different spellings such as 1 and 1.0 become the same
    value."""
    sheet: str | None = None
    """The sheet to read from a workbook."""


class ReleaseShape(PolicyMapping):
    """The entry `release` of a policy file, with facts for readers of the report. All its keys are
    optional.
    """

    data: str | None = None
    """Name of the data set."""
    purpose: str | None = None
    """Purpose of the release."""
    recipient: str | None = None
    """Recipient of the release."""
    legal_basis: str | None = None
    """Legal basis of the release."""
    author: str | None = None
    """Person who is responsible for the release."""
    date: Annotated[str | None, BeforeValidator(_day)] = None
    """Date of the decision to release."""


class PolicyShape(PolicyMapping):
    """The content of a policy file."""

    version: Literal[1]
    """Version of the format."""
    label: Annotated[LabelEntry | None, BeforeValidator(_label)] = None
    """The label: the column to predict. If there is no label, Aegis predicts each column from the
    others, as with `labels: any`.
    """
    labels: list[Annotated[TaskEntry, BeforeValidator(_label)]] | Literal["any"] | None = None
    """Several labels, instead of `label`. Give a list of columns, each as in `label`, with `weight`
    and `measure`. Aegis then combines the shares of utility that a configuration keeps for each
    label. Or give `any`: Aegis then predicts each column from all others, and weighs the columns
    by the `weight` of the attributes."""
    serve: Annotated[Serve, ByValue] | None = None
    """How to combine the shares of utility kept for several labels: by their weighted `mean` (the
    default), or by the `worst` of them."""
    labels_known: bool | None = None
    """Whether a model that predicts one of several labels may use the other labels. By default it
    may not."""
    reading: ReadingShape | None = None
    """How to read the table's text files. Options on the command line take
    precedence."""
    measure: str | None = None
    """The measure for rankings, searches and releases. The default is `held-out-auc`, or
    `held-out-pillai` (with a note) if Aegis cannot predict an AUC. For a numeric label, the default
    is `held-out-r2`. If there is no label, it is `held-out-any`.
    """
    merit: Literal["auc", "accuracy", "log-loss", "r2"] | None = None
    """A predicted metric of models, instead of a measure. The metric selects the measure
    `held-out-auc`, `held-out-accuracy`, `held-out-log-loss` or, for a numeric label, `held-out-r2`.
    """
    models: list[Literal["lr", "nb", "gbdt", "pairs"]] | None = None
    """The models for which the metric of `merit` is predicted: logistic regression, naive Bayes,
    boosted trees, or boosted trees with the strongest interaction of two attributes (AUC and R2
    only). Several models count equally. The default is the better of linear models and trees.
    """
    privacy: dict[str, Any] = Field(default_factory=dict)
    """The privacy rule."""
    person: Annotated[str, BeforeValidator(_column)] | None = None
    """Column that identifies the person, if a person can have several rows. The rule, its suppression
    limit and the risks then count persons. Aegis releases the column only as a token."""
    weight: Annotated[str, BeforeValidator(_column)] | None = None
    """Column of survey weights: how many people of the population a row represents. Scores, models
    and estimates of risk use the weights. Classes still count rows or persons. If a rule such as
    k-map needs a population and the policy names none, the number of people in a class is the sum
    of its weights. Aegis releases the column only under a mask.
    """
    population: str | None = None
    """Table of the population from which this table is a sample, with the same column names and
    values. Give the path relative to the policy.
    """
    unseen: Annotated[Unseen, ByValue] = Unseen.ERROR
    """How `apply` treats a value that a mask does not know."""
    suppressed_columns: Annotated[SuppressedColumns, ByValue] = SuppressedColumns.FILL
    """How a release shows a column whose mask is `suppress`. `fill` writes `*` in every row, and
    `leave-out` drops the column. Aegis always keeps a column that the rule protects."""
    attributes: dict[str, AttributeEntry]
    """Role and candidate masks of each column."""
    configurations: dict[str, dict[str, MaskSpec]] = Field(default_factory=dict)
    """Explicit configurations, by name."""
    anonymizers: list[str | dict[str, dict[str, Any]]] = Field(default_factory=list)
    """Record-level methods to rank together with the configurations: a name, or `{NAME: {OPTION: VALUE}}`."""
    release: ReleaseShape = Field(default_factory=ReleaseShape)
    """Facts for the report on the release: purpose, recipient, author and so on."""

    def asked_measure(self) -> str | None:
        """Return the name of the measure that the policy requests, either by its name or by the
        metric of models that it predicts.

        Raises
        ------
        PolicyError
            The policy names both a measure and a metric, or the measure is unknown.
        """
        models = None if self.models is None else ",".join(self.models)
        expected = merit_name(self.merit, models)
        if expected is not None and self.measure is not None:
            raise PolicyError(
                "`measure` is given together with `merit` or `models`.", hint="Give one of them."
            )
        return expected if self.measure is None else MEASURES.get(self.measure).name
