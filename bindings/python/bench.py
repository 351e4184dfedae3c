"""Fills, reads at random and scans a store through this package, and those of plyvel and lmdb beside it, where they are installed. A first
look at what the interpreter and the crossing cost, not a comparison of engines: `esker bench` is that."""

import random
import shutil
import sys
import tempfile
import time


def open_esker(path):
    import esker

    db = esker.open(path)
    return db.put, db.get, db.items, db.close


def open_plyvel(path):
    import plyvel

    db = plyvel.DB(path, create_if_missing=True)
    return db.put, db.get, db.iterator, db.close


def open_lmdb(path):
    import lmdb

    env = lmdb.open(path, map_size=1 << 32, sync=False)

    def put(key, value):
        with env.begin(write=True) as transaction:
            transaction.put(key, value)

    def get(key):
        with env.begin() as transaction:
            return transaction.get(key)

    def items():
        with env.begin() as transaction:
            yield from transaction.cursor()

    return put, get, items, env.close


def timed(name, row, count, work):
    began = time.perf_counter()
    work()
    print(f"{name:8} {row:12} {(time.perf_counter() - began) / count * 1e9:8.0f} ns an entry")


def run(name, put, get, items, close, count):
    keys = [b"%016d" % n for n in range(count)]
    random.Random(1).shuffle(keys)
    value = b"v" * 84

    def fill():
        for key in keys:
            put(key, key + value)

    def read():
        for key in keys:
            assert get(key)[:16] == key

    def scan():
        assert sum(1 for _ in items()) == count

    timed(name, "fill random", count, fill)
    timed(name, "read random", count, read)
    timed(name, "scan", count, scan)
    close()


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    for name, open_store in (("esker", open_esker), ("plyvel", open_plyvel), ("lmdb", open_lmdb)):
        path = tempfile.mkdtemp()
        try:
            opened = open_store(path)
        except ImportError as e:
            print(f"{name}: left out, {e}")
        else:
            run(name, *opened, count)
        finally:
            shutil.rmtree(path)


if __name__ == "__main__":
    main()
