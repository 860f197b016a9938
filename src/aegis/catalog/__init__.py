"""The catalog between providers, operators and consumers: schemas, protected summaries, requests.

It holds no row of a provider's data that was not masked and released.
"""

from aegis.catalog.access import Action, Actor, Role
from aegis.catalog.catalog import Catalog, Limits
from aegis.catalog.errors import CatalogError, NotAllowed, NotSignedIn, NotThere, WrongState
from aegis.catalog.states import State

__all__ = [
    "Action",
    "Actor",
    "Catalog",
    "CatalogError",
    "Limits",
    "NotAllowed",
    "NotSignedIn",
    "NotThere",
    "Role",
    "State",
    "WrongState",
]
