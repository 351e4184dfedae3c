"""A program as a user would type it: it is checked by mypy, and never run."""

from pathlib import Path
from typing import Optional

import esker


def fill(path: Path) -> None:
    with esker.open(path, memory=64 << 20, durability="synced", compression="zstd") as db:
        db[b"ash"] = b"Fraxinus"
        db.put(b"oak", memoryview(b"Quercus"), durability="buffered")
        names = db.create_keyspace("names", order="reverse")
        with db.batch() as batch:
            batch[b"elm"] = b"Ulmus"
            batch.put(b"elm", b"a tree", keyspace=names)
        loaded: int = names.bulk_load((bytes([n]), b"") for n in range(9))
        assert loaded == 9


def read(db: esker.DB) -> list[bytes]:
    found: Optional[bytes] = db.get(b"ash")
    known: bytes = db.get(b"ash", b"")
    several: list[Optional[bytes]] = db.multi_get([b"ash", b"oak"])
    with db.snapshot() as snapshot, db.cursor(keys_only=True) as cursor:
        view: esker.View = db.at(snapshot)
        if cursor.seek(b"b") and cursor.key is not None:
            known += cursor.key
        return [key + value for key, value in view.items(b"a", prefix=None, reverse=True)] + [
            value for value in (found, *several) if value is not None
        ]


def damaged(path: Path) -> int:
    try:
        return len(esker.verify(path, progress=lambda done, total: print(done, total))["problems"])
    except esker.CorruptionError as error:
        print(error)
        return len(esker.repair(path, compression="none", order="reverse")["lost"])
