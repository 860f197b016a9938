import pytest
from catalog_support import World, world


@pytest.fixture
def place(tmp_path) -> World:
    made = world(tmp_path)
    yield made
    made.catalog.database.close()
