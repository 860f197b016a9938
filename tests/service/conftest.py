from collections.abc import Iterator

import httpx
import pytest
from argon2 import PasswordHasher
from service_support import House, house

from aegis.service.catalog import passwords


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


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> House:
    """A service whose data set `census` is offered."""
    with house(tmp_path_factory.mktemp("service")) as made:
        made.offer()
        yield made
