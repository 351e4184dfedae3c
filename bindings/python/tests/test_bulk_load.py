"""The program's iterable runs inside a load: it raises, calls back, and closes the store."""

import pytest

import esker


def numbers(count, at=lambda n: None):
    for n in range(count):
        at(n)
        yield b"%07d" % n, b"%060d" % n


def test_a_load(db):
    assert db.bulk_load(numbers(50_000)) == 50_000
    assert len(list(db)) == 50_000 and db[b"0049999"] == b"%060d" % 49_999
    assert db.bulk_load([]) == 0
    assert db.bulk_load(sorted({b"b": b"2", b"a": b"1"}.items())) == 2
    other = db.create_keyspace("other")
    assert other.bulk_load(db.items()) == 50_002


@pytest.mark.parametrize("at", [0, 1, 255, 256, 40_000])
def test_an_iterable_that_raises_loads_nothing(db, at):
    class Mine(Exception):
        pass

    def fail(n):
        if n == at:
            raise Mine(n)

    with pytest.raises(Mine) as caught:
        db.bulk_load(numbers(50_000, fail))
    assert caught.value.args == (at,) and list(db) == []


def test_entries_that_cannot_be(db):
    for entries, error in (
        ([(b"b", b""), (b"a", b"")], esker.InvalidArgumentError),
        ([(b"a", b""), (b"a", b"")], esker.InvalidArgumentError),
        ([(b"k" * 70_000, b"")], esker.InvalidArgumentError),
        ([(b"a", "text")], TypeError),
        ([(b"a",)], ValueError),
        ([b"ab"], TypeError),
        (5, TypeError),
    ):
        with pytest.raises(error):
            db.bulk_load(entries)
    assert list(db) == []


def test_an_iterable_that_uses_the_store(db):
    def use(n):
        db[b"put %d" % n] = b""
        if n == 500:
            db.flush()
            assert db.bulk_load(numbers(10)) == 10

    assert db.bulk_load(numbers(1000, use)) == 1000
    assert len(list(db)) == 2000


def test_an_iterable_that_closes_the_store(path):
    db = esker.open(path)
    with pytest.raises(esker.ClosedError):
        db.bulk_load(numbers(100_000, lambda n: db.close() if n == 50_000 else None))
    with esker.open(path) as db:
        assert list(db) == []
