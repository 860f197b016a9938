"""The catalog between providers, operators and consumers: schemas, protected summaries, requests.

It stores rows of a provider's data only if they were masked and released.
"""

from aegis.service.catalog.access import AccountRole, Action, Actor
from aegis.service.catalog.catalog import Catalog, UploadLimits
from aegis.service.catalog.errors import CatalogError, NotAllowed, NotSignedIn, NotThere, WrongState
from aegis.service.catalog.states import RequestState

__all__ = [
    "AccountRole",
    "Action",
    "Actor",
    "Catalog",
    "CatalogError",
    "NotAllowed",
    "NotSignedIn",
    "NotThere",
    "RequestState",
    "UploadLimits",
    "WrongState",
]
