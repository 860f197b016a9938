"""`aegis sql`: write a release as SQL, to review it and to run it in the database."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Annotated

import typer

from aegis.cli.apply import choose, configuration_file
from aegis.cli.files import check_outputs, written
from aegis.cli.output import Output
from aegis.cli.parameters import (
    ConfigurationName,
    Force,
    Format,
    PolicyFile,
    Quiet,
    ReleasedConfiguration,
    takes_records,
)
from aegis.files import write_text
from aegis.options import option
from aegis.requests import Dialect, Form

SQL = (".sql",)
EXAMPLES = (
    "aegis sql -p policy.yaml -c best.yaml --dialect snowflake --table hr.staff "
    "--schema-from sample.parquet",
    "aegis sql -p policy.yaml -c best.yaml --dialect duckdb --as view --table staff "
    "--schema-from staff.parquet -o release.sql",
)


@dataclass(frozen=True, kw_only=True)
class SqlText:
    """Options for the query or statement to write."""

    dialect: Dialect = option(MISSING, "The SQL dialect to write.")
    table: str = option(
        MISSING,
        "The table that the SQL reads, spelled as in the database: name, schema.name or "
        "catalog.schema.name.",
        "NAME",
    )
    schema_from: str = option(
        MISSING,
        "A table with the same columns and types, such as a sample (file, folder, glob or URL).",
        "TABLE",
    )
    form: Annotated[
        Form,
        typer.Option(
            "--as", help="Whether to write a query, or a statement that makes a view or table."
        ),
    ] = Form.SELECT
    into: str | None = option(
        None,
        "The name of the view or table. By default: the name of the table with _masked at the end.",
        "NAME",
    )


@dataclass(frozen=True, kw_only=True)
class SqlCommand:
    """All options of `aegis sql`."""

    policy_file: PolicyFile
    text: SqlText
    configuration: ReleasedConfiguration = None
    name: ConfigurationName = None
    output: Path | None = option(
        None, "The file to write (.sql). By default, Aegis prints the SQL.", "FILE", short="-o"
    )
    force: Force = False
    quiet: Quiet = False


@takes_records
def command(options: SqlCommand) -> None:
    """Write a release as one SQL query, to review it and to run it without Aegis.

    You give a policy, a configuration and the columns of a table. The SQL masks the
    table and leaves out the rows of classes that break the rule. If it must leave out
    more rows than the rule allows, it returns no row. Aegis refuses a policy that
    replaces identifiers by tokens, because the SQL would contain the key. Check the
    result with aegis audit."""
    from aegis.policy import load_configurations, load_policy
    from aegis.release import release_sql

    policy_file, output, text = options.policy_file, options.output, options.text
    check_outputs(
        [(output, SQL)],
        force=options.force,
        inputs=(policy_file, options.configuration or policy_file, text.schema_from),
    )
    policy = load_policy(policy_file)
    configuration = configuration_file(options.configuration, policy_file, policy)
    chosen = choose(load_configurations(configuration, policy), options.name, configuration)
    query = release_sql(
        text.schema_from,
        policy,
        chosen,
        dialect=text.dialect,
        name=text.table,
        form=text.form,
        into=text.into,
    )
    if output is None:
        typer.echo(query.sql, nl=False)
        return
    write_text(output, query.sql)
    Output(Format.TABLE, options.quiet).say(*written([output]))
