"""What the package raises. Each message is one line: what failed, where, and the way out."""


class EskerError(Exception):
    """Any error of a store's."""


class NotFoundError(EskerError, KeyError):
    """The key has no value. Its argument is the key."""


class InvalidArgumentError(EskerError, ValueError):
    """An argument that cannot be: a key too long, keys out of order in a bulk load, a batch of another store, ..."""


class IoError(EskerError, OSError):
    """The operating system refused a call, or the disk is full. `errno` and `strerror` are its number and text, where there is one,
    `filename` the file or directory."""

    def __str__(self):
        # That of `OSError` would be made of these three, and not name the way out.
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()

    def __reduce__(self):
        # That of `OSError` knows file names, and the three only where they were among the arguments.
        made, args, *_ = super().__reduce__()
        told = {name: getattr(self, name) for name in ("errno", "strerror", "filename")}
        return (made, args, {**self.__dict__, **{name: value for name, value in told.items() if value is not None}})

    def __setstate__(self, state):
        for name, value in state.items():
            setattr(self, name, value)


class CorruptionError(EskerError):
    """Stored bytes are not what was written: `verify` lists all damage, `repair` saves what is intact."""


class NotAStoreError(EskerError):
    """The directory holds no store."""


class ForeignStoreError(EskerError):
    """The directory holds a store of LevelDB, RocksDB or another of that family, or some of its files."""


class StoreExistsError(EskerError):
    """A store is there, and `error_if_exists` was asked for."""


class LockedError(EskerError):
    """The store is open elsewhere, in this process or another."""


class UnsupportedError(EskerError):
    """The store has a format or a compression that this build does not have."""


class ComparatorError(EskerError):
    """A keyspace has another order than was given, or one of a program's own."""


class KeyspaceError(EskerError):
    """A keyspace of that name exists, or is missing, or was dropped."""


class ReadOnlyError(EskerError):
    """A write to a store that was opened read-only."""


class HaltedError(EskerError):
    """An earlier failure stopped all writes; reads go on. Remove the cause, then call `resume`."""


class ClosedError(EskerError, ValueError):
    """The store, or the object, was closed."""


class InternalError(EskerError):
    """A bug in Esker, which is to be reported."""
