"""What a store does, told from one end to the other."""

import copy
import errno
import os
import pickle
import shutil
import subprocess
import sys

import pytest

import esker


def test_a_store_is_a_mapping_that_is_found_again(path):
    with esker.open(path) as db:
        db[b"ash"] = b"Fraxinus"
        db[bytearray(b"beech")] = memoryview(b"Fagus")
        assert db[b"ash"] == b"Fraxinus"
        assert db.get(memoryview(b"beech")) == b"Fagus"
        assert db.get(b"elm") is None and db.get(b"elm", 7) == 7
        assert b"ash" in db and b"elm" not in db
        assert list(db) == [b"ash", b"beech"] and list(reversed(db)) == [b"beech", b"ash"]
        with pytest.raises(KeyError) as caught:
            db[b"elm"]
        assert isinstance(caught.value, esker.NotFoundError) and caught.value.args == (b"elm",)
        with pytest.raises(esker.NotFoundError):
            del db[b"elm"]
        del db[b"ash"]
        db.delete(b"ash")
        with pytest.raises(TypeError):
            len(db)
    assert db.closed
    with esker.open(path, create_if_missing=False, read_only=True) as db:
        assert dict(db.items()) == {b"beech": b"Fagus"}
        with pytest.raises(esker.ReadOnlyError):
            db[b"ash"] = b""


@pytest.mark.parametrize("wrong", ["text", 5, None, [1, 2], object()])
def test_what_is_no_bytes(db, wrong):
    for call in (lambda: db[wrong], lambda: db.put(b"", wrong), lambda: wrong in db, lambda: db.delete(wrong)):
        with pytest.raises(TypeError, match="bytes-like"):
            call()


def test_limits(db):
    db[b""] = b""
    assert db[b""] == b"" and list(db.items()) == [(b"", b"")]
    db[b"k" * esker.MAX_KEY_LEN] = b"longest"
    with pytest.raises(ValueError, match="65537 bytes"):
        db[b"k" * (esker.MAX_KEY_LEN + 1)] = b""
    batch = esker.WriteBatch()
    with pytest.raises(esker.InvalidArgumentError):
        batch.put(b"k" * (esker.MAX_KEY_LEN + 1), b"")
    assert len(batch) == 0


def test_what_cannot_be_opened_says_why(path):
    with pytest.raises(esker.NotAStoreError, match="store"):
        esker.open(path, create_if_missing=False)
    with esker.open(str(path)):
        with pytest.raises(esker.LockedError):
            esker.open(path)
        with pytest.raises(esker.LockedError):
            esker.destroy(path)
    with pytest.raises(esker.StoreExistsError):
        esker.open(path, error_if_exists=True)
    with pytest.raises(esker.IoError) as caught:
        esker.open("/proc/none/store")
    assert isinstance(caught.value, OSError) and caught.value.errno
    for options in ({"memory": 1}, {"durability": "x"}, {"compression": "x"}, {"order": "x"}, {"block_size": 1}):
        with pytest.raises(esker.InvalidArgumentError):
            esker.open(path, **options)
    with pytest.raises(OverflowError):
        esker.open(path, memory=-1)
    with pytest.raises(esker.IoError, match="NUL"):
        esker.open("a\0b")


def test_ranges(db):
    for n in range(1000):
        db[b"%03d" % n] = b"value %d" % n
    assert list(db.keys(b"010", b"013")) == [b"010", b"011", b"012"]
    assert list(db.keys(b"010", b"013", reverse=True)) == [b"012", b"011", b"010"]
    assert list(db.values(b"998")) == [b"value 998", b"value 999"]
    assert list(db.items(stop=b"001")) == [(b"000", b"value 0")]
    assert list(db.prefix(b"01")) == list(db.items(b"010", b"020"))
    assert list(db.prefix(b"01", reverse=True)) == list(db.items(b"010", b"020"))[::-1]
    assert list(db.keys(prefix=b"99")) == [b"%d" % n for n in range(990, 1000)]
    assert list(db.items(b"5", b"4")) == []
    assert len(list(db)) == 1000
    with pytest.raises(esker.InvalidArgumentError):
        db.items(b"a", prefix=b"b")


def test_a_walk_sees_one_moment(db):
    for n in range(1000):
        db[b"%03d" % n] = b""
    seen = 0
    for key in db:
        del db[key]
        db[b"new" + key] = b""
        seen += 1
    assert seen == 1000 and next(iter(db)) == b"new000"
    walk = iter(db)
    next(walk)
    del walk


def test_cursors(db):
    for key in (b"a", b"c", b"e"):
        db[key] = key.upper()
    with db.cursor() as cursor:
        assert cursor.key is None and not cursor.next()
        assert cursor.seek(b"b") and (cursor.key, cursor.value) == (b"c", b"C")
        assert cursor.seek_for_prev(b"b") and cursor.key == b"a"
        assert not cursor.prev() and cursor.key is None and cursor.value is None
        assert cursor.last() and cursor.prev() and cursor.key == b"c"
        assert cursor.first() and cursor.next() and cursor.key == b"c"
    with pytest.raises(esker.ClosedError):
        cursor.first()
    with db.cursor(keys_only=True) as cursor:
        assert cursor.first() and cursor.value == b""


def test_batches(db):
    other = db.create_keyspace("other")
    with db.batch(durability="synced") as batch:
        batch[b"a"] = b"1"
        batch.put(b"b", b"2", keyspace=other)
        batch.put(b"c", b"3")
        del batch[b"c"]
        assert len(batch) == 4 and b"a" not in db
    assert db[b"a"] == b"1" and other[b"b"] == b"2" and b"c" not in db and len(batch) == 0
    with pytest.raises(ZeroDivisionError):
        with db.batch() as batch:
            batch[b"d"] = b""
            1 / 0
    assert b"d" not in db and len(batch) == 0
    batch = esker.WriteBatch()
    batch.delete(b"b", keyspace=other)
    with pytest.raises(esker.InvalidArgumentError):
        batch.__enter__()
    db.write(batch)
    db.write(batch, durability="buffered")
    assert b"b" not in other


def test_keyspaces(db, tmp_path):
    with pytest.raises(esker.KeyspaceError):
        db.keyspace("log")
    log = db.create_keyspace("log", order="reverse", compression="zstd", blob_threshold=100)
    with pytest.raises(esker.KeyspaceError):
        db.create_keyspace("log")
    log[b"a"], log[b"b"] = b"1", b"2"
    assert list(log) == [b"b", b"a"] and list(log.keys(b"b", b"a")) == [b"b"]
    assert db.keyspaces() == ["default", "log"] and log.name == "log" and db.name == "default"
    with esker.open(tmp_path / "another") as another:
        batch = esker.WriteBatch()
        batch.put(b"a", b"", keyspace=log)
        with pytest.raises(esker.InvalidArgumentError):
            another.write(batch)
        with another.snapshot() as foreign:
            with pytest.raises(esker.InvalidArgumentError):
                db.at(foreign)
    db.drop_keyspace("log")
    with pytest.raises(esker.KeyspaceError):
        log[b"a"]
    with pytest.raises(esker.KeyspaceError):
        list(log)
    with pytest.raises(esker.InvalidArgumentError):
        db.drop_keyspace("default")


def test_snapshots(db):
    db[b"stock"] = b"17"
    with db.snapshot() as before:
        db[b"stock"] = b"16"
        view = db.at(before)
        assert before.sequence > 0
    assert view[b"stock"] == b"17" and db[b"stock"] == b"16"
    assert list(view.items()) == [(b"stock", b"17")] and not hasattr(view, "put")
    with pytest.raises(esker.ClosedError):
        db.at(before)
    assert db.stats()["snapshots"] == 1
    del view
    assert db.stats()["snapshots"] == 0


def test_multi_get_and_figures(db, tmp_path):
    for n in range(2000):
        db[b"%04d" % n] = os.urandom(100)
    values = db.multi_get([b"0000", b"none", bytearray(b"1999")])
    assert values == [db[b"0000"], None, db[b"1999"]] and db.multi_get([]) == []
    db.sync()
    db.flush()
    db.compact_range()
    db.wait_for_compactions()
    db.resume()
    stats = db.stats()
    assert stats["sequence"] >= 2000 and stats["halted"] is None
    assert stats["keyspaces"][0]["name"] == "default" and stats["keyspaces"][0]["entries"] == 2000
    assert 0 < db.approximate_size(b"1000") < db.approximate_size()
    assert db.property("esker.stats") and db.property("none") is None
    db.checkpoint(tmp_path / "copy")
    with pytest.raises(esker.IoError):
        db.checkpoint(tmp_path / "copy")
    with esker.open(tmp_path / "copy") as other:
        assert list(other.items()) == list(db.items())


def test_damage_is_found_and_repaired(path):
    with esker.open(path) as db:
        for n in range(5000):
            db[b"%04d" % n] = os.urandom(50)
        db.flush()
        told = []
        assert db.verify(progress=lambda done, total: told.append((done, total)))["problems"] == []
        assert told and told[-1][0] == told[-1][1]

        def enough(done, total):
            raise RuntimeError("enough")

        with pytest.raises(RuntimeError, match="enough"):
            db.verify(progress=enough)
    table = sorted(path.glob("*.tbl"))[0]
    data = bytearray(table.read_bytes())
    for n in range(4096, 4160):
        data[n] ^= 0xFF
    table.write_bytes(data)
    with esker.open(path) as db:
        with pytest.raises(esker.CorruptionError, match=table.name):
            list(db)
    report = esker.verify(path)
    assert any(table.name in problem for problem in report["problems"])
    report = esker.repair(path)
    assert report["changed"] and report["lost"]
    with esker.open(path) as db:
        assert 0 < len(list(db)) < 5000
    assert esker.repair(path)["changed"] is False


def test_a_repair_takes_options(path):
    # All is in the log, and what the manifest said about it is lost.
    with esker.open(path, order="reverse", flush_on_close=False) as db:
        for n in range(1000):
            db[b"%04d" % n] = b"value" * 20
    for manifest in path.glob("MANIFEST*"):
        manifest.unlink()
    second, other = path.parent / "copy", path.parent / "other"
    shutil.copytree(path, second)
    shutil.copytree(path, other)

    def repaired(path, **options):
        assert esker.repair(path, **options)["entries"] == 1000
        with esker.open(path) as db:
            return list(db), db.stats()["table_bytes"]

    guessed, small = repaired(path)
    known, large = repaired(second, order="reverse", compression="none")
    assert guessed == known[::-1] and known[0] == b"0999"
    assert 2 * small < large
    for options in ({"order": "x"}, {"compression": "x"}, {"block_size": 1}):
        with pytest.raises(esker.InvalidArgumentError):
            esker.repair(other, **options)
    with pytest.raises(TypeError):
        esker.repair(other, "reverse")


def test_destroy(path):
    esker.open(path).close()
    esker.destroy(path)
    esker.destroy(path)  # nothing is there
    assert not path.exists()


def test_views_of_values(db):
    values = {b"empty": b"", b"short": b"abc", b"long": os.urandom(100_000)}
    for key, value in values.items():
        db[key] = value
    for key, value in values.items():
        view = db.get_view(key)
        assert view.readonly and view.format == "B" and view.nbytes == len(value) and bytes(view) == value
        assert bytes(view[1:3]) == value[1:3] and view == value
        with pytest.raises(TypeError):
            view[0:1] = b"x"
    assert db.get_view(b"none") is None
    part = db.get_view(b"long")[10:20]  # keeps what it is part of
    db[b"long"] = b""
    db.compact_range()
    db.close()
    assert bytes(part) == values[b"long"][10:20]
    import io

    with pytest.raises((TypeError, BufferError)):
        io.BytesIO(b"xxxx").readinto(view)
    owner = view.obj
    with pytest.raises(BufferError):  # one that nobody gave a value
        memoryview(type(owner)())


def test_objects_of_a_store_are_not_copied(db):
    db[b"a"] = b""
    snapshot = db.snapshot()
    for thing in (db, db.create_keyspace("x"), snapshot, db.at(snapshot), db.cursor(), iter(db), esker.WriteBatch()):
        for refused in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                refused(thing)


def test_a_walk_is_generic_at_run_time_too():
    assert esker.Walk[bytes].__origin__ is esker.Walk and esker.Walk[bytes].__args__ == (bytes,)


def test_exceptions_may_be_pickled(tmp_path):
    classes = [c for c in vars(esker).values() if isinstance(c, type) and issubclass(c, esker.EskerError)]
    assert len(classes) > 15
    for made in classes:
        for copied in (lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy):
            error = copied(made("the store"))
            assert type(error) is made and str(error) == str(made("the store")) and error.args == ("the store",)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(esker.IoError) as raised:
        esker.open(tmp_path / "file" / "db")
    error = pickle.loads(pickle.dumps(raised.value))
    assert error.errno == raised.value.errno == errno.ENOTDIR and str(error) == str(raised.value)
    assert error.strerror == raised.value.strerror and error.filename == raised.value.filename
    for given in ((errno.ENOENT, "no"), (errno.ENOENT, "no", "from"), (errno.ENOENT, "no", "from", None, "to")):
        of_program = esker.IoError(*given)
        of_program.note = "kept"
        error = pickle.loads(pickle.dumps(of_program))
        for name in ("args", "errno", "strerror", "filename", "filename2", "note"):
            assert getattr(error, name) == getattr(of_program, name), name
        assert str(error) == str(of_program)


def test_an_io_error_has_what_an_os_error_has(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    inside = tmp_path / "file" / "db"
    with pytest.raises(esker.IoError) as raised:
        esker.open(inside)
    error = raised.value
    assert (error.errno, error.strerror) == (errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    assert isinstance(error.filename, str) and os.path.commonpath([error.filename, tmp_path]) == str(tmp_path)
    # Its message is still the store's.
    assert error.args == (str(error),) and str(error).startswith("open ") and "[Errno" not in str(error)
    with esker.open(tmp_path / "store") as db:
        with pytest.raises(esker.EskerError) as raised:
            db.keyspace("none")
        assert not hasattr(raised.value, "errno") and not hasattr(raised.value, "filename")


def test_a_panic_is_an_error_and_not_waited_for_at_the_end():
    """It was a `PanicException`, which is no `Exception`, and its call counted as under way: the interpreter's end waited for it."""
    program = """
import esker
try:
    esker._esker._panic()
except esker.InternalError as e:
    assert "for the tests" in str(e), e
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "more than ten seconds" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_leaves_the_store_alone(path):
    program = f"""
import os, sys, esker
db = esker.open({str(path)!r})
db[b"a"] = b"1"
walk, cursor, view = iter(db), db.cursor(), db.get_view(b"a")
child = os.fork()
if child == 0:
    for call in (lambda: db[b"a"], lambda: db.put(b"a", b"2"), lambda: next(walk), cursor.first, db.close, db.batch):
        try:
            call()
        except esker.ClosedError as e:
            assert "forked" in str(e)
        else:
            sys.exit(3)
    del db, walk, cursor, view
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
db[b"b"] = b"2"
try:
    esker.open({str(path)!r})
except esker.LockedError:
    pass
else:
    sys.exit(4)
db.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert esker.verify(path)["problems"] == []
    with esker.open(path) as db:
        assert list(db) == ([b"b"] if b"a" not in db else [b"a", b"b"])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the system for less memory, and for what is in use")
def test_a_value_without_memory_for_it_is_a_memory_error(path):
    """Making the bytes panicked, and copying them ended the process."""
    program = f"""if True:
        import esker, resource
        with esker.open({str(path)!r}) as db:
            db[b"large"] = b"v" * (256 << 20)
            db[b"small"] = b"1"
        with esker.open({str(path)!r}) as db:
            cursor, items, values = db.cursor(), db.items(), db.values()
            assert cursor.seek(b"large") and db[b"small"] == b"1"
            before = resource.getrlimit(resource.RLIMIT_AS)
            with open("/proc/self/statm") as statm:
                used = int(statm.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + (128 << 20), before[1]))
            reads = [lambda: db[b"large"], lambda: db.get(b"large"), lambda: db.multi_get([b"large"])]
            for read in [*reads, lambda: cursor.value, *2 * [lambda: next(items)], lambda: next(values)]:
                try:
                    read()
                except MemoryError:
                    continue
                raise SystemExit("no MemoryError")
            assert db[b"small"] == b"1" and cursor.key == b"large" and len(db.get_view(b"large")) == 256 << 20
            resource.setrlimit(resource.RLIMIT_AS, before)
            assert len(cursor.value) == 256 << 20
        """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_c_forked_is_refused_too(path):
    """Only forks of Python's own were noticed: both processes wrote into one log, and were told that all is well."""
    program = f"""
import ctypes, esker, os, sys
db = esker.open({str(path)!r})
cursor, walk, batch, snapshot = db.cursor(), iter(db.items()), db.batch(), db.snapshot()
db[b"before"] = b"1"
child = ctypes.PyDLL(None).fork()
if child == 0:
    calls = [lambda: db.put(b"child", b"x" * 1000), lambda: db[b"before"], cursor.first, lambda: next(walk), lambda: batch.put(b"a", b"b"),
             lambda: snapshot.sequence, db.flush, db.close]
    for call in calls:
        try:
            call()
        except esker.ClosedError as e:
            if "forked" in str(e):
                continue
        os._exit(1)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
for n in range(100):
    db[b"after %d" % n] = b"2" * 50
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (-9, "")
    assert esker.verify(path)["problems"] == []
    with esker.open(path) as db:
        assert len(list(db)) == 101


def test_closing_without_a_flush(path):
    for flushes in (False, True):
        with esker.open(path, flush_on_close=flushes) as db:
            db[b"key"] = b"value"
        assert bool(list(path.glob("*.tbl"))) == flushes
    with esker.open(path) as db:
        assert db[b"key"] == b"value"
