import pytest
from service_support import House, house


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> House:
    """A service whose data set `census` is offered."""
    with house(tmp_path_factory.mktemp("service")) as made:
        made.offer()
        yield made
