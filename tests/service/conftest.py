from collections.abc import Iterator

import httpx
import pytest
from argon2 import PasswordHasher
from service_support import Furnished, House, house

from aegis.service import agent, agent_book, agent_settings, client, worker
from aegis.service.api import work
from aegis.service.catalog import limited, passwords


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords() -> Iterator[None]:
    """Hash passwords in no time: a real hash costs a tenth of a second, and each service makes six."""
    with pytest.MonkeyPatch.context() as patch:
        cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        patch.setattr(passwords, "_HASHER", cheap)
        yield


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """Wait a minute for an answer: HTTPX gives up after five seconds, which a busy machine may take."""
    with pytest.MonkeyPatch.context() as patch:
        for part in ("connect", "read", "write", "pool"):
            patch.setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, part, 60.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def short_pauses() -> Iterator[None]:
    """Look again soon where the service and the agent look again after a fifth of a second or more."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (agent_book, client, limited, work, worker):
            patch.setattr(module, "_PAUSE", 0.05)
        patch.setattr(agent, "LOOK_FOR_WORK", 0.05)
        patch.setattr(agent_settings, "_SAVING", 0.05)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_context() -> Iterator[None]:
    """Read the machine's certificates once: each client does so, in 20 ms, and the tests make thousands."""
    make = httpx._transports.default.create_ssl_context
    default = make()

    def made(verify=True, cert=None, trust_env=True):
        usual = verify is True and cert is None and trust_env
        return default if usual else make(verify=verify, cert=cert, trust_env=trust_env)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx._transports.default, "create_ssl_context", made)
        yield


@pytest.fixture(scope="session")
def furnished(tmp_path_factory) -> Furnished:
    """The folder of a service whose data set `census` is offered; each service gets a copy."""
    folder = tmp_path_factory.mktemp("furnished")
    with house(folder) as made:
        made.offer()
    made.catalog.database.close()
    return Furnished(folder, made.tokens)


@pytest.fixture(scope="session")
def requested(furnished, tmp_path_factory) -> Furnished:
    """The folder of such a service in which a request of clara is in review."""
    folder = tmp_path_factory.mktemp("requested")
    with house(folder, furnished=furnished) as made:
        number = made.ask()
    made.catalog.database.close()
    return Furnished(folder, made.tokens, number)


@pytest.fixture(scope="session")
def inhabited(tmp_path_factory) -> Furnished:
    """The folder of a service that has accounts and no data set."""
    folder = tmp_path_factory.mktemp("inhabited")
    with house(folder) as made:
        pass
    made.catalog.database.close()
    return Furnished(folder, made.tokens)


@pytest.fixture(scope="module")
def place(furnished, tmp_path_factory) -> Iterator[House]:
    """A service whose data set `census` is offered."""
    with house(tmp_path_factory.mktemp("service"), furnished=furnished) as made:
        yield made
