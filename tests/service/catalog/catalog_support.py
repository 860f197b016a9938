"""A catalog with an account of each kind, and a data set in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from aegis.service.catalog import Actor, Catalog, accounts, data_sets
from aegis.service.catalog.records import Version

PASSWORD = "a sentence that is long enough"
PEOPLE = {
    "paula": ("provider",),
    "peter": ("provider",),
    "otto": ("operator",),
    "anna": ("approver",),
    "clara": ("consumer",),
    "carl": ("consumer",),
    "boris": ("consumer", "operator"),
    "aude": ("auditor",),
    "ada": ("admin",),
}
POLICY = """version: 1
label: income
privacy: {k: 3, suppression: 0.1}
attributes:
  age: {role: quasi-identifier, masks: [{bucketize: {width: 10}}, suppress]}
  sex: {role: quasi-identifier, masks: [identity, suppress]}
"""
CONFIGURATION = "configurations: {c: {age: {bucketize: {width: 10}}, sex: identity}}\n"
KEY = "ab" * 32


@dataclass(frozen=True)
class World:
    """A catalog and who is in it."""

    catalog: Catalog
    actors: dict[str, Actor]

    def __getattr__(self, name: str) -> Actor:
        try:
            return self.actors[name]
        except KeyError:
            raise AttributeError(name) from None


def world(folder: Path) -> World:
    """Return a catalog with all kinds of accounts: a copy of one that is made once."""
    content, actors = _template()
    (folder / "catalog.db").write_bytes(content)
    return World(Catalog.open(str(folder / "catalog.db")), dict(actors))


@cache
def _template() -> tuple[bytes, dict[str, Actor]]:
    """Return a database with the accounts of all people, and who acts for each."""
    actors = {}
    with TemporaryDirectory() as folder:
        path = Path(folder, "catalog.db")
        catalog = Catalog.open(str(path))
        with catalog.database.writing() as session:
            for name, roles in PEOPLE.items():
                actors[name] = accounts.actor_of(accounts.create(session, name, roles))
        catalog.database.close()
        return path.read_bytes(), actors


def offered(world: World, name: str = "census", **about: object) -> Version:
    """Return the first version of a published data set of paula, worked on by otto and anna."""
    with world.catalog.database.writing() as session:
        data_sets.register(
            session, world.paula, name, source="adult", public_key=KEY, public=True, **about
        )
        version = add_version(world, session, name)
        data_sets.publish(session, world.paula, name)
        data_sets.grant(session, world.paula, name, "otto", "operator")
        data_sets.grant(session, world.paula, name, "boris", "operator")
        data_sets.grant(session, world.paula, name, "anna", "approver")
    return version


def add_version(world: World, session: object, name: str, digest: str = "d1") -> Version:
    version = Version(
        policy=POLICY,
        policy_digest="p",
        columns=[{"name": "age", "role": "quasi-identifier", "kind": "integer", "masks": []}],
        summary_key="none",
        summary_digest=digest,
        protection={"level": "noise", "epsilon": 1.0, "delta": 1e-6},
    )
    return data_sets.add_version(session, world.paula, name, version)
