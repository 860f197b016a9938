"""The shape of a policy file, before names are looked up."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from aegis.errors import PolicyError
from aegis.measures import MEASURES, merit_name

MaskSpec = str | dict[str, Any]


def _column(value: Any) -> Any:
    """Accept a whole number for a column's name: a column may be called 2024."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _label(value: Any) -> Any:
    """Accept a bare column name for `{column: NAME}`."""
    return {"column": value} if isinstance(value, str | int) else value


def _day(value: Any) -> Any:
    """Accept what YAML reads as a date."""
    return value.isoformat() if isinstance(value, date) else value


class PolicyMapping(BaseModel):
    """A mapping that accepts known keys only."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class LabelEntry(PolicyMapping):
    """`label: income`, `label: {column: price, kind: number}`, or `label: {column: price, bins: 5}`; protected summaries want `classes` or `cuts`."""

    column: Annotated[str, BeforeValidator(_column), Field(min_length=1)]
    """Name of the label column."""
    kind: Literal["classes", "number"] | None = None
    """`number` for a number to predict, such as a price: R2 then says what is kept. By default its values are classes."""
    bins: int | None = Field(default=None, ge=2, le=100)
    """Number of quantile bins of a numeric label."""
    classes: list[str | int | float | bool] | None = Field(default=None, min_length=1)
    """All classes that the label can have: public knowledge, which `aegis protect` then need not buy."""
    cuts: list[int | float] | None = Field(default=None, min_length=1)
    """Where a numeric label is cut, ascending: public knowledge, in place of quantiles of the table."""


class AttributeEntry(PolicyMapping):
    """One entry of `attributes`."""

    role: Literal["identifier", "quasi-identifier", "sensitive", "feature", "ignore"]
    """Role of the attribute in privacy."""
    masks: list[MaskSpec] | None = Field(default=None, min_length=1)
    """Candidate masks; by default every level of the hierarchy, else what the role suggests."""
    hierarchy: str | dict[Any, Any] | None = None
    """A CSV file in ARX format, relative to the policy, or an inline tree."""
    weight: float = Field(default=1.0, ge=1e-9, le=1e9, allow_inf_nan=False)
    """How much the attribute counts in additive measures, from 1e-9 to 1e9; all rows count equally."""
    kind: Literal["numeric", "ordinal", "categorical"] | None = None
    """How values of a quasi-identifier compare when records are grouped; natural where not given."""
    order: list[str | int | float] | None = Field(default=None, min_length=2)
    """All values of an ordinal quasi-identifier, ascending, texts or numbers; null is not listed."""
    type: Literal["integer", "number", "text", "date", "boolean"] | None = None
    """Type of the values: public knowledge, which `aegis protect` then need not buy."""
    values: list[str | int | float | bool] | None = Field(default=None, min_length=1)
    """All values that the attribute can have, null aside: public knowledge, which `aegis protect` then need not buy."""


class ReadingShape(PolicyMapping):
    """How text files and workbooks are written, if Aegis shall not detect it."""

    encoding: str | None = None
    """Name of the encoding: `utf-8`, `cp1252`, `latin-1`, `utf-16`, ..."""
    delimiter: str | None = None
    """The character between fields, or `tab`."""
    quote: str | None = None
    """Character around fields, `"` where not given; `none` where nothing does."""
    escape: str | None = None
    """What is before a quote within quotes; the quote itself where not given."""
    header: bool | None = None
    """Whether the first line names the columns; without one they are `c1`, `c2`, ..."""
    decimal: Literal[".", ","] | None = None
    """Mark before decimals."""
    thousands: str | None = None
    """The separator of thousands."""
    units: list[str] = Field(default_factory=list)
    """Texts before or behind all numbers of a column that are no part of them: `$`, `%`, `kg`, ..."""
    null: list[str] = Field(default_factory=list)
    """Texts without quotes that are null, in addition to the empty one."""
    dates: Literal["day-first", "month-first"] | None = None
    """Order of dates such as 03/04/2024."""
    text: list[str] = Field(default_factory=list)
    """Columns that are read as text."""
    numbers: list[str] = Field(default_factory=list)
    """Columns that are read as numbers although spellings such as 1 and 1.0 become one value."""
    sheet: str | None = None
    """The sheet of a workbook."""


class ReleaseShape(PolicyMapping):
    """Information on the release for the reader of the report; every key is optional."""

    data: str | None = None
    """Name of the data set."""
    purpose: str | None = None
    """What the release is for."""
    recipient: str | None = None
    """Who receives it."""
    legal_basis: str | None = None
    """On what ground it may be handed on."""
    author: str | None = None
    """Who answers for it."""
    date: Annotated[str | None, BeforeValidator(_day)] = None
    """Of the decision."""


class PolicyShape(PolicyMapping):
    """A policy file."""

    version: Literal[1]
    """Version of the format."""
    label: Annotated[LabelEntry | None, BeforeValidator(_label)] = None
    """The label: the column to predict. Without one, what is kept is association among all columns."""
    reading: ReadingShape | None = None
    """How the table's text files are written; options of the command line go first."""
    measure: str | None = None
    """The measure that ranks configurations, that a search maximises, and that releases are measured by. By default `held-out-auc` (`held-out-pillai` where no AUC can be expected, which is said); `held-out-r2` of a number; without a label `adjusted-contingency`."""
    merit: Literal["auc", "accuracy", "log-loss"] | None = None
    """Instead of a measure: a predicted metric of models (measures `held-out-auc`, `held-out-accuracy`, `held-out-log-loss`)."""
    models: list[Literal["lr", "nb", "gbdt", "pairs"]] | None = None
    """The models whose merit is expected, with equal weights: logistic regression, naive Bayes, boosted trees, boosted trees with the strongest interaction of two attributes (AUC only). By default the better one of linear models and trees."""
    privacy: dict[str, Any] = Field(default_factory=dict)
    """The privacy rule."""
    person: Annotated[str, BeforeValidator(_column)] | None = None
    """Column that names the person a row is about, where a person may have several: the rule, its limit and risks then count distinct persons. Never released but as a token."""
    population: str | None = None
    """A table that this one is a sample of, relative to the policy: same names and values."""
    unseen: Literal["error", "suppress"] = "error"
    """How `apply` treats a value that a mask does not know."""
    suppressed_columns: Literal["fill", "leave-out"] = "fill"
    """How a release shows a column whose mask is `suppress`: `*` in every row, or no column. One that the rule protects stays."""
    attributes: dict[str, AttributeEntry]
    """Role and candidate masks of each column."""
    configurations: dict[str, dict[str, MaskSpec]] = Field(default_factory=dict)
    """Explicit configurations, by name."""
    anonymizers: list[str | dict[str, dict[str, Any]]] = Field(default_factory=list)
    """Record-level methods to rank together with the configurations: a name, or `{NAME: {OPTION: VALUE}}`."""
    release: ReleaseShape = Field(default_factory=ReleaseShape)
    """Facts for the report on the release: purpose, recipient, author and so on."""

    def asked_measure(self) -> str | None:
        """Return the name of the requested measure, given by its name or by a metric.

        Raises
        ------
        PolicyError
            Both are given, or the measure is unknown.
        """
        models = None if self.models is None else ",".join(self.models)
        expected = merit_name(self.merit, models)
        if expected is not None and self.measure is not None:
            raise PolicyError(
                "Both measure and merit or models are given.", hint="Give one of them."
            )
        return expected if self.measure is None else MEASURES.get(self.measure).name
