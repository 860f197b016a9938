"""Write a release as one SQL query that can be read, reviewed and run without Aegis.

The query masks the columns, counts the classes by window functions, and leaves out the rows of
classes that violate the rule. It returns no rows at all in two cases: if it would have to leave out
more rows than the rule allows, and if a mask does not know a value that the policy says is an error
(`unseen: error`). So every result meets the rule, as with `apply`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import ibis
import ibis.expr.types as ir
import sqlglot
from ibis.common.exceptions import IbisError
from ibis.expr.operations import DatabaseTable
from sqlglot import exp

from aegis._version import __version__
from aegis.errors import DataError, EngineError, PolicyError, member
from aegis.masking import fit_masks
from aegis.masks import Mask, Tokenise, parts_of
from aegis.options import checks_types
from aegis.policy import Configuration, Policy, Unseen, as_policy, policy_digest
from aegis.release.sql.rule import PERSON, RuleQuery, rule_query
from aegis.release.writing import configuration_under, hidden_columns, release_masks
from aegis.requests import Dialect, Form
from aegis.sources import Source, open_table, table_names
from aegis.sources.database import compile_query

if TYPE_CHECKING:
    from aegis.advisor import Advice, Ranked


def counting(rule: RuleQuery, listed: list[str], auxiliary: list[str]) -> list[tuple[str, str]]:
    """Return the steps that count classes and check rows, passing on `listed` and `auxiliary`."""
    if not rule.conditions:
        return []
    steps = []
    carried = [*listed, *auxiliary]
    steps.append(("counted", with_columns(carried, rule.counts, "masked")))
    carried += [name for name, _ in rule.counts]
    if rule.figures:
        steps.append(("figured", with_columns(carried, rule.figures, "counted")))
        carried += [name for name, _ in rule.figures]
    if rule.comparisons:
        steps.append(("compared", with_columns(carried, rule.comparisons, "figured")))
    met = "\n      AND ".join(rule.conditions)
    stays = f"CASE WHEN {met}\n    THEN 1 ELSE 0 END"
    carried = [*listed, *auxiliary]
    steps.append(("judged", with_columns(carried, [("aegis_kept", stays)], steps[-1][0])))
    return steps


LOST = (
    ("aegis_lost", f"MAX(1 - aegis_kept) OVER (PARTITION BY {PERSON})"),
    ("aegis_turn", f"ROW_NUMBER() OVER (PARTITION BY {PERSON} ORDER BY {PERSON})"),
)
"""Name and SQL of two columns: whether the person of a row loses any row, and the number of the row
among the rows of the person, from 1.
"""


def limits(listed: list[str], rule: RuleQuery, before: str, *, unseen: bool, person: bool) -> str:
    """Return the query that adds the numbers by which a later step checks the limits: of all and of
    suppressed rows (or persons) and, if `unseen`, of rows with unknown values.
    """
    carried = list(listed)
    numbers = []
    if rule.conditions:
        carried.append("aegis_kept")
        lost = "CASE WHEN aegis_turn = 1 THEN aegis_lost ELSE 0 END" if person else "1 - aegis_kept"
        each = "SUM(CASE WHEN aegis_turn = 1 THEN 1 ELSE 0 END)" if person else "COUNT(*)"
        numbers.append(("aegis_suppressed", f"SUM({lost}) OVER ()"))
        numbers.append(("aegis_total", f"{each} OVER ()"))
    if unseen:
        numbers.append(("aegis_unseen_rows", "SUM(aegis_unseen) OVER ()"))
    return with_columns(carried, numbers, before)


def with_columns(carried: Sequence[str], computed: Sequence[tuple[str, str]], before: str) -> str:
    """Return SQL that selects the columns `carried`, and `computed` expressions by name."""
    columns = [*carried, *(f"{expression} AS {name}" for name, expression in computed)]
    return "SELECT\n  " + ",\n  ".join(columns) + f"\nFROM {before}"


def assemble(steps: list[tuple[str, str]], listed: list[str], conditions: list[str]) -> str:
    """Return the whole query: all named steps, then the listed columns of rows that meet all conditions."""
    # A first query that is not laid out has a name or text of several lines: see `_compiled`.
    margin = "  " if steps[0][1].startswith("SELECT\n") else ""
    queries = ",\n".join(f"{name} AS (\n{indent(query, margin)}\n)" for name, query in steps)
    where = "\nWHERE " + "\n  AND ".join(conditions) if conditions else ""
    return f"WITH {queries}\nSELECT\n  " + ",\n  ".join(listed) + f"\nFROM {steps[-1][0]}{where}"


def plain(number: float) -> str:
    """Return a number as text without an exponent, which not every dialect reads exactly."""
    return f"{number:.12f}".rstrip("0")


_BREAK = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Characters at which a text is split into lines."""
RESERVED = "aegis_"
"""Prefix of the auxiliary columns of the query."""


@dataclass(frozen=True)
class ReleaseQuery:
    """A release as an SQL statement.

    Attributes
    ----------
    sql
        The statement, with a comment that explains it.
    dialect
        The dialect of the statement.
    columns
        The columns of the result.
    configuration
        The masks, all fitted.
    """

    sql: str
    dialect: Dialect
    columns: tuple[str, ...]
    configuration: Configuration

    def __str__(self) -> str:
        return self.sql


def _check_columns(columns: Sequence[str], dialect: Dialect) -> None:
    """Raise an error for column names that the query cannot contain."""
    for column in columns:
        if column.lower().startswith(RESERVED):
            raise DataError(
                f"Column {column!r} starts with {RESERVED!r}, which names the columns of the query.",
                hint="Rename it.",
            )
        if _BREAK.search(column) and dialect not in (Dialect.DUCKDB, Dialect.POSTGRES):
            raise DataError(
                f"Column {' '.join(column.split())!r} has a line break in its name, which {dialect} may "
                "not read.",
                hint="Write a space there.",
            )


def _choice(
    configuration: Configuration, fitted: Mapping[str, Mask | None], label: str
) -> Configuration:
    """Return a configuration with the `fitted` masks of its attributes and of the label."""
    named = (*configuration.masks, label)
    masks = {n: m for n, m in fitted.items() if m and n in named}
    return Configuration(configuration.name, masks)


def _fitted(source: Source, policy: Policy, configuration: Configuration) -> dict[str, Mask | None]:
    """Fit the masks of a release; raise an error if a mask needs a secret."""
    masks = release_masks(policy, configuration)
    _refuse_secrets(masks)
    return fit_masks(source, masks, policy.shared_rows)


@checks_types
def release_sql(
    table: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    configuration: Configuration | Ranked | Advice,
    *,
    dialect: Dialect | str,
    name: str,
    form: Form | str = Form.SELECT,
    into: str | None = None,
) -> ReleaseQuery:
    """Return the release of a table as SQL.

    Parameters
    ----------
    table
        Anything that `aegis.sources.open_table` opens, with the columns and types of the table that
        the SQL will run on. Aegis reads its rows only to fit masks that are not fitted yet.
    policy, configuration
        Roles, rule, treatment of unseen values; and a configuration, an entry of a ranking or an advice.
    dialect, form
        The SQL dialect; and whether to write a query or a statement that creates a view or table.
    name
        Name of the table that the SQL reads, with dots between its parts; case matters.
    into
        Name of the view or table; by default the name of the table with `_masked` appended.

    Raises
    ------
    PolicyError
        The dialect or form is unknown; the rule or a mask cannot be written as SQL; an identifier
        is tokenised (the SQL would show the key); or the owner of an advice has another rule.
    DataError
        A column is missing or its name starts with `aegis_`.

    Examples
    --------
    >>> import aegis
    >>> policy = aegis.load_policy("examples/adult/policy.yaml")
    >>> table = "data/adult.parquet"
    >>> best = aegis.advise(table, policy, generate_count=5).best.configuration
    >>> query = aegis.release_sql(table, policy, best, dialect="postgres", name="staff", form="view")
    >>> "CREATE VIEW" in str(query)
    True
    """
    chosen, shape = member(Dialect, dialect, "SQL dialect"), member(Form, form, "form of the SQL")
    rules = as_policy(policy)
    configuration = configuration_under(configuration, rules)
    source = open_table(table, reading=rules.reading)
    fitted = _fitted(source, rules, configuration)
    columns = tuple(column for column in source.columns if column in fitted)
    _check_columns(columns, chosen)
    parts = _parse_name(name, chosen)
    target = _target(into, parts, shape, chosen)
    writer = _QueryWriter(chosen, rules, columns, source.table.schema(), fitted)
    fitted_choice = _choice(configuration, fitted, rules.label.column)
    opening = _opening(shape, target, chosen)
    lines = [_comment(rules, fitted_choice), *opening, writer.select(parts)]
    hidden = hidden_columns(rules, fitted)
    names = tuple(column for column in columns if column not in hidden)
    return ReleaseQuery("\n".join(lines) + "\n", chosen, names, fitted_choice)


def require_database(source: Source, into: str) -> tuple[DatabaseTable, Dialect]:
    """Return the database table of a source, and the SQL dialect of the database.

    Raises
    ------
    EngineError
        The table is not in a database in which `into` could be created.
    """
    node, name = source.table.op(), source.engine.name
    if not isinstance(node, DatabaseTable) or not source.is_stored or name not in list(Dialect):
        raise EngineError(
            f"{source.origin} is not a table of a database, so {into} cannot be made next to it.",
            hint="Release into a file (-o FILE), or give a table of a database: its URL, such as "
            "duckdb:///path/to/file.db or postgres://..., and --table.",
        )
    return node, Dialect(name)


def create_statements(
    source: Source,
    policy: Policy,
    configuration: Configuration,
    *,
    into: str,
    form: Form | str,
    force: bool,
) -> list[str]:
    """Return the statements that create the release `into` (a view or a table, as `form` says) in
    the database of the table.

    Raises
    ------
    PolicyError
        The table exists and `force` is not set, it is the input itself, or the release cannot be
        written as SQL.
    EngineError
        The table is not in a database.
    """
    shape = member(Form, form, "form of the release")
    if shape is Form.SELECT:
        raise PolicyError(
            "The form `select` creates no table or view.", hint="Allowed: table, view."
        )
    node, dialect = require_database(source, into)
    parts = (node.namespace.catalog, node.namespace.database, node.name)
    table = ".".join(_quoted(part, dialect) for part in parts if part)
    target = _parse_name(into, dialect)
    new_name = ".".join(_quoted(part, dialect) for part in target)
    if target[-1] == node.name and (len(target) == 1 or target[-2] == node.namespace.database):
        raise PolicyError(f"{into} is the input itself.", hint="Choose another name.")
    there = target[-1] in table_names(source.backend, into)
    if there and not force:
        raise PolicyError(
            f"{into} exists in the database.", hint="Choose another name, or add --force."
        )
    query = release_sql(
        source, policy, configuration, dialect=dialect, name=table, form=shape, into=new_name
    )
    drop = f"DROP {shape.upper()} {new_name}"
    return [drop, query.sql] if there else [query.sql]


def _target(
    into: str | None, parts: tuple[str, ...], form: Form, dialect: Dialect
) -> tuple[str, ...]:
    """Return the parts of the new name: those of `into`, else the input's with `_masked`. Refuse the
    input itself, and a name for a query.
    """
    if into is None:
        return (*parts[:-1], f"{parts[-1]}_masked")
    if form is Form.SELECT:
        raise PolicyError(
            f"A query has no name, but you gave {into!r}.",
            hint="Ask for a view or a table, or leave the name out.",
        )
    target = _parse_name(into, dialect)
    if target == parts:
        raise PolicyError(f"{into} is the input itself.", hint="Choose another name.")
    return target


def _refuse_secrets(masks: Mapping[str, Mask | None]) -> None:
    for name, mask in masks.items():
        if mask is not None and any(isinstance(part, Tokenise) for part in parts_of(mask)):
            raise PolicyError(
                f"The SQL cannot tokenise {name!r}: it would hold the key.",
                hint="Release with `aegis apply`, or leave the masks of the identifier out, so that it is dropped.",
            )
        if mask is not None and not mask.deterministic:
            raise PolicyError(
                f"Mask {mask} of {name!r} is random, so the SQL would give other rows each time.",
                hint="Release with `aegis apply`, which has a seed.",
            )


def _parse_name(name: str, dialect: Dialect) -> tuple[str, ...]:
    """Return the parts of a table's name: catalog, database and table, as far as given."""
    try:
        table = exp.to_table(name, dialect=str(dialect))
    except sqlglot.errors.SqlglotError as error:
        raise PolicyError(
            f"{name!r} is not a table name of {dialect}.",
            hint="Quote each part that has characters other than letters, digits and _.",
        ) from error
    parts = tuple(part.name for part in table.parts)
    plain = all(isinstance(part, exp.Identifier) and part.name for part in table.parts)
    if not plain or table.args.get("alias") or len(parts) > 3:
        raise PolicyError(
            f"{name!r} is not a table name of {dialect}.",
            hint="Write table, schema.table or catalog.schema.table.",
        )
    return parts


def _quoted(name: str, dialect: Dialect) -> str:
    return str(exp.to_identifier(name, quoted=True).sql(dialect=str(dialect)))


def _comment(policy: Policy, configuration: Configuration) -> str:
    """Return the comment above the query; names are reduced to one line, so that none can end it."""
    lines = [
        f"Masked release by Aegis {__version__}, configuration {configuration.name}.",
        f"Rule: {policy.privacy}.",
        "Rows of classes that break the rule are left out; there is no row at all when more",
        "than the rule allows would have to be.",
        f"Policy (SHA-256): {policy_digest(policy)}",
    ]
    return "\n".join(f"-- {' '.join(line.split())}" for line in lines)


def _opening(form: Form, target: Sequence[str], dialect: Dialect) -> list[str]:
    if form is Form.SELECT:
        return []
    new_name = ".".join(_quoted(part, dialect) for part in target)
    engine = ""
    if form is Form.TABLE and dialect is Dialect.CLICKHOUSE:
        engine = " ENGINE = MergeTree ORDER BY tuple()"
    return [f"CREATE {form.upper()} {new_name}{engine} AS"]


class _QueryWriter:
    """Writes the SQL query of one release."""

    def __init__(
        self,
        dialect: Dialect,
        policy: Policy,
        columns: tuple[str, ...],
        schema: ibis.Schema,
        masks: Mapping[str, Mask | None],
    ) -> None:
        self.dialect = dialect
        self.policy = policy
        self.columns = columns
        self.schema = schema
        self.masks = masks
        self.quasi = [a.name for a in policy.quasi_identifiers if a.name in columns]

    def select(self, parts: tuple[str, ...]) -> str:
        """Return the query on the table whose name has `parts`: catalog, database and table."""
        quote = partial(_quoted, dialect=self.dialect)
        rule = rule_query(self.policy.privacy, self.quasi, quote)
        unseen = self.policy.unseen is Unseen.ERROR and any(
            mask is not None and mask.known(ibis.table(self.schema, name="t")[name]) is not None
            for name, mask in self.masks.items()
        )
        steps = [("masked", self._masked(parts, unseen=unseen))]
        listed = [quote(name) for name in self.columns]
        person = self.policy.person is not None and bool(rule.conditions)
        auxiliary = (["aegis_unseen"] if unseen else []) + ([PERSON] if person else [])
        steps += counting(rule, listed, auxiliary)
        conditions = [f"aegis_suppressed <= {self._allowed()}"] if rule.conditions else []
        conditions = (["aegis_kept = 1"] if rule.conditions else []) + conditions
        if unseen:
            conditions.append("aegis_unseen_rows = 0")
        if conditions and person:
            carried = [*listed, "aegis_kept", *auxiliary]
            steps.append(("persons", with_columns(carried, LOST, steps[-1][0])))
        if conditions:
            allowed = limits(listed, rule, steps[-1][0], unseen=unseen, person=person)
            steps.append(("limited", allowed))
        hidden = hidden_columns(self.policy, self.masks)
        names = [quote(name) for name in self.columns if name not in hidden]
        return assemble(steps, names, conditions)

    def _allowed(self) -> str:
        share = self.policy.privacy.suppression
        if not share:
            return "0"
        return f"FLOOR({plain(share)} * aegis_total + 0.000000001)"

    def _masked(self, parts: tuple[str, ...], *, unseen: bool) -> str:
        """Return the query that masks each column and, if `unseen`, flags rows with unknown values."""
        *path, last = parts
        location: Any = tuple(path) if len(path) > 1 else (path[0] if path else None)
        table = ibis.table(self.schema, name=last, **_located(location))
        expressions: dict[str, ir.Value] = {}
        for name in self.columns:
            mask = self.masks[name]
            expressions[name] = table[name] if mask is None else mask.expression(table[name])
        if unseen:
            expressions["aegis_unseen"] = _unseen(table, self.masks)
        if self.policy.person is not None:
            expressions[PERSON] = table[self.policy.person]
        self._check_partitions(expressions)
        return _compiled(table.select(expressions), self.dialect)

    def _check_partitions(self, expressions: Mapping[str, ir.Value]) -> None:
        """Raise an error if the SQL dialect cannot group by the masked columns (`expressions`)."""
        if self.dialect is not Dialect.BIGQUERY:
            return
        person = [] if self.policy.person is None else [PERSON]
        for name in (*self.quasi, *self.policy.privacy.sensitive, *person):
            if expressions[name].type().is_floating():
                raise EngineError(
                    f"{self.dialect} cannot group by {name!r}: it is a floating-point number.",
                    hint="Mask it so that it shows intervals (bucketize), or cast it in a view first.",
                )


def _located(location: Any) -> dict[str, Any]:
    if isinstance(location, tuple):
        return {"catalog": location[0], "database": location[1]}
    return {} if location is None else {"database": location}


def _unseen(table: ir.Table, masks: Mapping[str, Mask | None]) -> ir.Value:
    """Return an expression that is 1 for a row with a value unknown to its mask, else 0."""
    conditions = [m.known(table[n]) for n, m in masks.items() if m is not None]
    cases: list[tuple[Any, Any]] = [
        ((~holds).fill_null(False), ibis.literal(1)) for holds in conditions if holds is not None
    ]
    return ibis.cases(*cases, else_=ibis.literal(0))


def _compiled(query: ir.Table, dialect: Dialect) -> str:
    """Write a query in an SQL dialect, whose engine need not be installed."""
    try:
        compiler, tree = compile_query(query, str(dialect))
        tree = tree.transform(_fold)
        # Indented, a name or text of several lines would become another one.
        broken = any(
            _BREAK.search(str(node.this)) for node in tree.find_all(exp.Identifier, exp.Literal)
        )
        return str(tree.sql(dialect=compiler, pretty=not broken))
    except (IbisError, sqlglot.errors.SqlglotError, NotImplementedError) as error:
        raise EngineError(
            f"A mask of this configuration cannot be written for {dialect}: "
            f"{str(error).splitlines()[0]}",
            hint="Choose another mask for it, or another dialect.",
        ) from error


def _fold(node: exp.Expression) -> exp.Expression:
    """Replace the CASE that the compiler writes for the first position of a text by the number 1."""
    if not isinstance(node, exp.Substring):
        return node
    start = node.args.get("start")
    branch = start.args.get("ifs", [None])[0] if isinstance(start, exp.Case) else start
    if isinstance(branch, exp.If) and branch.this.sql() in ("(0 + 1) >= 1", "0 + 1 >= 1"):
        node.set("start", exp.Literal.number(1))
    return node
