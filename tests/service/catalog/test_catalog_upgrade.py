"""A catalog of the version before keeps its approvals, and its populations get owners."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from first_tables import create
from sqlalchemy import create_engine, inspect, text

from aegis.errors import EngineError
from aegis.service.catalog import database as databases
from aegis.service.catalog import signs
from aegis.service.catalog.database import Database
from aegis.service.catalog.records import Base, SecondFactor

BEFORE = (
    "INSERT INTO accounts (id, name, roles, disabled, failures, created) VALUES "
    "('p', 'paula', '[\"provider\"]', false, 0, '2026-01-01'), "
    "('q', 'peter', '[\"provider\"]', false, 0, '2026-01-01'), "
    "('o', 'otto', '[\"operator\"]', false, 0, '2026-01-01')",
    "INSERT INTO data_sets (id, title, description, provider_id, source, terms, population, public, "
    "published, approvals, days, public_key, created) VALUES "
    "('b', 'b', '', 'p', 's', '', 'persons', true, true, 1, 9, 'k', '2026-01-01'), "
    "('a', 'a', '', 'q', 's', '', 'persons', true, true, 1, 9, 'k', '2026-01-02')",
    "INSERT INTO versions (id, data_set_id, number, policy, policy_digest, columns, summary_key, "
    "summary_digest, protection, created) VALUES ('v', 'b', 1, '', '', '[]', '', '', '{}', '2026-01-01')",
    "INSERT INTO requests (id, data_set_id, version_id, consumer_id, state, purpose, models, "
    "terms_accepted, message, created, changed) VALUES "
    "('r', 'b', 'v', 'p', 'approved', 'x', '[]', true, '', '2026-01-01', '2026-01-01')",
    "INSERT INTO approvals (id, request_id, account_id, digest, created) VALUES "
    "('1', 'r', 'o', 'd', '2026-01-01')",
)


FACTOR = (
    "INSERT INTO second_factors (account_id, secret, confirmed, step, recovery, failures, created) VALUES "
    "('p', 'KEY', true, 1, '[\"0123\"]', 0, '2026-01-01')"
)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'catalog.db'}"
        return
    yield request.getfixturevalue("postgres").new_database()


def first(url):
    """Make a catalog of the first version; return its engine and the settings of its migrations."""
    engine = create_engine(url.replace("postgres://", "postgresql+psycopg://"))
    settings = Config()
    folder = Path(databases.__file__).with_name("migrations")
    settings.set_main_option("script_location", str(folder))
    with engine.connect() as connection:
        settings.attributes["connection"] = connection
        with Operations.context(MigrationContext.configure(connection)):
            create()
        command.stamp(settings, "0001")
        connection.commit()
    return engine, settings


def test_a_catalog_of_the_version_before_is_brought_to_this_one(url):
    engine, settings = first(url)
    with engine.connect() as connection:
        settings.attributes["connection"] = connection
        command.upgrade(settings, "0002")
        for statement in BEFORE:
            connection.execute(text(statement))
        connection.commit()
    engine.dispose()
    with engine.connect() as connection:
        settings.attributes["connection"] = connection
        command.upgrade(settings, "0004")
        connection.execute(text(FACTOR))
        connection.commit()
    engine.dispose()
    upgraded = Database(url)
    with upgraded.reading() as session:
        approvals = session.execute(text("SELECT id, account_id, step FROM approvals")).all()
        assert approvals == [("1", "o", "approve")]
        owners = session.execute(text("SELECT name, owner_id FROM populations")).all()
        assert owners == [("persons", "p")]
    with upgraded.reading() as session:
        factor = session.get(SecondFactor, "p")
        assert (factor.secret, factor.confirmed, factor.recovery) == ("KEY", True, [])
    with upgraded.writing() as session:
        signs.note(session, "worker", "one")
        signs.note(session, "agent", "paula/one", "p")
    with upgraded.reading() as session:
        seen = {(one.place, one.name): one.silent for one in signs.programs(session)}
        assert seen == {("worker", "one"): False, ("agent", "paula/one"): False}
    upgraded.close()


def differences(url):
    """Open a catalog; return what its tables lack of those that the records describe."""
    database = Database(url)
    with database.engine.connect() as connection:
        opened = MigrationContext.configure(connection, opts={"compare_type": True})
        told = compare_metadata(opened, Base.metadata), opened.get_current_revision()
        lies = inspect(connection)
        assert "tokens_by_maker" in [key["name"] for key in lies.get_foreign_keys("tokens")]
        tables = Base.metadata.tables
        columns = [(name, own) for name in tables for own in lies.get_columns(name)]
        with_default = {(name, own["name"]) for name, own in columns if own["default"] is not None}
        described = {(name, c.name) for name in tables for c in tables[name].c if c.server_default}
        numbered = {
            (name, own["name"]) for name, own in columns if own.get("autoincrement") is True
        }
        assert with_default - numbered == described
    database.close()
    return told


def test_the_migrations_bring_the_first_tables_to_those_that_the_records_describe(url):
    first(url)[0].dispose()
    assert differences(url) == ([], "0005")


def test_a_new_catalog_has_the_tables_that_the_records_describe(url):
    assert differences(url) == ([], "0005")
    assert differences(url) == ([], "0005")


def test_a_catalog_whose_making_was_cut_short_is_made_when_it_is_opened_again(tmp_path):
    url = str(tmp_path / "catalog.db")
    database = Database(url)
    with database.engine.connect() as connection:
        connection.execute(text("DROP TABLE alembic_version"))
        connection.execute(text("DROP TABLE signs"))
    database.close()
    assert differences(url) == ([], "0005")


def test_a_catalog_of_a_newer_version_and_a_file_of_another_program_are_refused(tmp_path):
    """The first was called a bug, and the second got 19 tables in addition to its own."""
    Database(str(tmp_path / "newer.db")).close()
    for name, statement, said in (
        ("newer", "UPDATE alembic_version SET version_num = '9999'", "a newer version of Aegis"),
        ("other", "CREATE TABLE bills (total INTEGER)", "of another program: bills"),
    ):
        engine = create_engine(f"sqlite:///{tmp_path}/{name}.db")
        with engine.begin() as connection:
            connection.execute(text(statement))
        before = inspect(engine).get_table_names()
        with pytest.raises(EngineError, match=said):
            Database(str(tmp_path / f"{name}.db"))
        assert inspect(engine).get_table_names() == before
        engine.dispose()
