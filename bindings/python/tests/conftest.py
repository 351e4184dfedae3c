import pytest

import esker


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def db(path):
    with esker.open(path) as db:
        yield db
