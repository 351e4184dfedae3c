"""Esker: an embedded, ordered, persistent key-value store.

    import esker

    with esker.open("trees") as db:  # made when it is missing
        db[b"ash"] = b"Fraxinus"
        for key, value in db.items():
            print(key, value)

A store is a directory. Keys and values are bytes, and any object with a buffer is taken for them. An open store is a mapping, in the
order of its keys, of its default keyspace; others have names. All objects may be used by any number of threads.
"""

from ._errors import (
    ClosedError,
    ComparatorError,
    CorruptionError,
    EskerError,
    ForeignStoreError,
    HaltedError,
    InternalError,
    InvalidArgumentError,
    IoError,
    KeyspaceError,
    LockedError,
    NotAStoreError,
    NotFoundError,
    ReadOnlyError,
    StoreExistsError,
    UnsupportedError,
)
from ._esker import (
    DB,
    MAX_KEY_LEN,
    MAX_VALUE_LEN,
    Cursor,
    Keyspace,
    Reader,
    Snapshot,
    View,
    Walk,
    WriteBatch,
    __version__,
    destroy,
    open,
    repair,
    verify,
)

__all__ = [
    "DB",
    "MAX_KEY_LEN",
    "MAX_VALUE_LEN",
    "ClosedError",
    "ComparatorError",
    "CorruptionError",
    "Cursor",
    "EskerError",
    "ForeignStoreError",
    "HaltedError",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "Keyspace",
    "KeyspaceError",
    "LockedError",
    "NotAStoreError",
    "NotFoundError",
    "ReadOnlyError",
    "Reader",
    "Snapshot",
    "StoreExistsError",
    "UnsupportedError",
    "View",
    "Walk",
    "WriteBatch",
    "__version__",
    "destroy",
    "open",
    "repair",
    "verify",
]
