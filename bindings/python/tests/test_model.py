"""Random operations on two keyspaces beside sorted maps. ESKER_SEED repeats a run, ESKER_OPS says how long it is."""

import os
import random
import time

import esker


class World:
    def __init__(self, path, seed):
        self.path, self.random = path, random.Random(seed)
        self.models = [{}, {}]
        with esker.open(path) as db:
            db.create_keyspace("reversed", order="reverse")
        self.open()

    def open(self):
        self.db = esker.open(self.path, memory=1 << 20, segment_size=64 << 10, blob_threshold=2000)
        self.keyspaces = [self.db, self.db.keyspace("reversed")]
        self.snapshot = self.then = None

    def key(self):
        return bytes(self.random.choice(b"\0ab\xff") for _ in range(self.random.randrange(5)))

    def value(self):
        most = 9000 if self.random.randrange(20) == 0 else 60
        return bytes([self.random.randrange(256)]) * self.random.randrange(most)

    def bound(self):
        return None if self.random.randrange(3) == 0 else self.key()

    def check(self, reader, model, reverse):
        """A walk, some keys and a cursor."""
        entries = sorted(model.items(), reverse=reverse)
        back = self.random.random() < 0.5
        if self.random.random() < 0.5:
            prefix = self.key()
            expected = [e for e in entries if e[0].startswith(prefix)]
            found = list(reader.items(prefix=prefix, reverse=back))
        else:
            start, stop = self.bound(), self.bound()
            inside = lambda key: (start is None or (key <= start if reverse else key >= start)) and (  # noqa: E731
                stop is None or (key > stop if reverse else key < stop)
            )
            expected = [e for e in entries if inside(e[0])]
            found = list(reader.items(start, stop, reverse=back))
        assert found == (expected[::-1] if back else expected)
        keys = [self.key() for _ in range(3)]
        assert reader.multi_get(keys) == [model.get(key) for key in keys] == [reader.get(key) for key in keys]
        assert [key in reader for key in keys] == [key in model for key in keys]
        with reader.cursor() as cursor:
            key = keys[0]
            after = [e for e in entries if (e[0] <= key if reverse else e[0] >= key)]
            assert cursor.seek(key) == bool(after)
            if after:
                assert (cursor.key, cursor.value) == after[0]
                assert cursor.next() == (len(after) > 1)

    def write(self):
        batch = esker.WriteBatch()
        for _ in range(self.random.randrange(8)):
            n, key, value = self.random.randrange(2), self.key(), self.value()
            if self.random.randrange(3) == 0:
                batch.delete(key, keyspace=self.keyspaces[n])
                self.models[n].pop(key, None)
            else:
                batch.put(key, value, keyspace=self.keyspaces[n])
                self.models[n][key] = value
        self.db.write(batch)

    def step(self):
        n, choice = self.random.randrange(2), self.random.randrange(100)
        keyspace, model, reverse = self.keyspaces[n], self.models[n], n == 1
        if choice < 35:
            key, value = self.key(), self.value()
            keyspace[key] = value
            model[key] = value
        elif choice < 45:
            key = self.key()
            keyspace.delete(key)
            model.pop(key, None)
        elif choice < 60:
            self.write()
        elif choice < 80:
            self.check(keyspace, model, reverse)
        elif choice < 90:
            if self.snapshot is None:
                self.snapshot, self.then = self.db.snapshot(), [dict(m) for m in self.models]
            else:
                self.check(keyspace.at(self.snapshot), self.then[n], reverse)
                if self.random.randrange(3) == 0:
                    self.snapshot.close()
                    self.snapshot = None
        elif choice < 94:
            more = {self.key(): self.value() for _ in range(self.random.randrange(20))}
            assert keyspace.bulk_load(sorted(more.items(), reverse=reverse)) == len(more)
            model.update(more)
        elif choice < 97:
            self.db.flush()
        elif choice < 98:
            keyspace.compact_range(self.bound(), self.bound())
        else:
            self.db.close()
            self.open()


def test_a_store_is_a_sorted_map(path):
    seed = int(os.environ.get("ESKER_SEED", time.time_ns()))
    print(f"ESKER_SEED={seed}")
    world = World(path, seed)
    for _ in range(int(os.environ.get("ESKER_OPS", 3000))):
        world.step()
    assert world.db.verify()["problems"] == []
    world.db.close()
