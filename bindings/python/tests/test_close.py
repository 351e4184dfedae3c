"""What comes too late, and what threads do to each other."""

import gc
import os
import subprocess
import sys
import threading
import time

import pytest

import esker


def test_everything_says_that_it_is_closed(path):
    db = esker.open(path)
    other = db.create_keyspace("other")
    other[b"a"] = b"1"
    snapshot = db.snapshot()
    view, cursor, walk = other.at(snapshot), other.cursor(), other.items()
    batch = db.batch()
    batch.put(b"b", b"", keyspace=other)
    db.close()
    db.close()
    for call in (
        lambda: db[b"a"], lambda: db.get(b"a"), lambda: db.get_view(b"a"), lambda: db.multi_get([b"a"]), lambda: b"a" in db,
        lambda: iter(db), lambda: db.items(), lambda: db.prefix(b"a"), lambda: db.cursor(), lambda: db.put(b"a", b""),
        lambda: db.delete(b"a"), lambda: db.bulk_load([(b"a", b"")]), lambda: db.compact_range(),
        lambda: db.at(snapshot), lambda: db.write(batch), lambda: db.batch(), db.flush, db.sync, db.wait_for_compactions, db.resume,
        lambda: db.checkpoint("x"), lambda: db.property("esker.stats"), db.snapshot, lambda: db.keyspace("other"),
        lambda: db.create_keyspace("x"), lambda: db.drop_keyspace("x"), db.keyspaces, db.verify, db.stats, db.__enter__,
        lambda: other[b"a"], lambda: other.put(b"a", b""), lambda: list(other), lambda: view[b"a"], lambda: list(view),
        lambda: batch.__exit__(None, None, None),
    ):  # fmt: skip
        with pytest.raises(esker.ClosedError):
            call()
    assert "closed" in repr(db)
    # What walks keeps what it walks over, and the lock.
    with pytest.raises(esker.LockedError):
        esker.open(path)
    assert list(walk) == [(b"a", b"1")] and cursor.first() and cursor.value == b"1"
    cursor.close()
    del walk
    esker.open(path).close()


def test_a_store_that_is_forgotten_is_closed(path):
    db = esker.open(path)
    db[b"a"] = b"1"
    keyspace = db.create_keyspace("other")
    del db
    gc.collect()
    keyspace[b"a"] = b"2"  # its last handle
    del keyspace
    gc.collect()
    with esker.open(path) as db:
        assert db[b"a"] == b"1" and db.keyspace("other")[b"a"] == b"2"


@pytest.mark.parametrize("wait", [0, 0.002, 0.01, 0.03])
def test_closing_while_threads_use_it(path, wait):
    db = esker.open(path)
    for n in range(2000):
        db[b"%04d" % n] = b"x" * 50
    other = db.create_keyspace("other")
    cursor = db.cursor()
    wrong, late = [], []

    def use(work):
        try:
            while True:
                work()
        except esker.ClosedError:
            late.append(work)
        except BaseException as e:  # noqa: BLE001
            wrong.append(e)

    def batch():
        with db.batch() as b:
            b.put(b"a", b"1", keyspace=other)

    works = [
        lambda: db[b"0001"], lambda: other.put(b"a", b"x" * 100), batch, lambda: [None for _ in db.items()],
        lambda: (cursor.last(), cursor.prev(), cursor.value), lambda: db.at(db.snapshot())[b"0001"], db.sync,
        lambda: bytes(db.get_view(b"0002")),
    ]  # fmt: skip
    threads = [threading.Thread(target=use, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    time.sleep(wait)
    closing = [threading.Thread(target=call) for call in (db.close, db.close, cursor.close)]
    for thread in closing:
        thread.start()
    for thread in threads + closing:
        thread.join(60)
        assert not thread.is_alive()
    assert not wrong and len(late) == len(works)
    with esker.open(path) as db:
        assert len(list(db)) == 2000


def test_threads_share_a_walk_and_a_batch(db):
    for n in range(20000):
        db[b"%05d" % n] = b""
    walk, batch = iter(db), esker.WriteBatch()
    taken = [[] for _ in range(4)]

    def take(mine):
        for key in walk:
            mine.append(key)
            batch.put(key, b"1")

    threads = [threading.Thread(target=take, args=(mine,)) for mine in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(sum(taken, [])) == [b"%05d" % n for n in range(20000)] and len(batch) == 20000
    db.write(batch)
    assert set(db.values()) == {b"1"}


def test_a_call_that_waits_lets_others_run(db):
    """While one thread is in a long call, another one goes on."""
    for n in range(400):
        db[b"%d" % n] = b"x" * 100_000
    calls = []

    def wait():
        for call in (db.flush, db.compact_range, db.verify, db.sync):
            began = time.perf_counter()
            call()
            calls.append((time.perf_counter() - began, began))

    thread = threading.Thread(target=wait)
    ticks = []
    thread.start()
    while thread.is_alive():
        ticks.append(time.perf_counter())
    took, began = max(calls)
    meanwhile = [tick for tick in ticks if began + took * 0.1 < tick < began + took * 0.9]
    assert len(meanwhile) > 10, (took, len(meanwhile))


def test_the_interpreter_ends_under_daemon_threads(path):
    program = f"""
import esker, threading, time
db = esker.open({str(path)!r})
db[b"a"] = b"1"
kept = iter(db), db.get_view(b"a"), db.cursor(), db.snapshot()
def forever():
    while True:
        db.put(b"k", b"v" * 1000, durability="synced")
        next(iter(db))
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.2)
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
    assert esker.verify(path)["problems"] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_forked_beside_a_call_ends_without_waiting_for_it(path):
    """The calls of threads that the child does not have are over there; one that the forking thread is in is not."""
    program = f"""
import esker, os, sys, threading
db = esker.open({str(path)!r})
db[b"a"] = b"1"
db.flush()

def ends(child):
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

inside, leave = threading.Event(), threading.Event()
def entries():
    inside.set()
    leave.wait()
    yield b"b", b"2"
thread = threading.Thread(target=db.bulk_load, args=(entries(),), daemon=True)
thread.start()
inside.wait()

child = os.fork()
if child == 0:
    sys.exit(0)
ends(child)

forked = []
def forks(done, total):
    forked.append(os.fork())
    if forked[-1] == 0:
        sys.exit(0)
    ends(forked[-1])
db.verify(progress=forks)
assert forked

leave.set()
thread.join()
assert list(db) == [b"a", b"b"]
db.close()
"""
    done = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", program], capture_output=True, text=True, timeout=60)
    # None had to give up after ten seconds, which it would warn of.
    assert (done.returncode, done.stderr) == (0, "")


def run(program):
    done = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("what", ["cursor", "batch", "walk"])
def test_a_child_forked_while_a_thread_uses_an_object_is_told_so(path, what):
    """What another thread has locked nobody unlocks in the child, which does not wait for it."""
    run(f"""
import esker, os, signal, threading
db = esker.open({str(path)!r})
large = b"x" * (32 << 20)
db[b"a"] = large
cursor, batch, walk, stop = db.cursor(), esker.WriteBatch(), db.values(), False
snapshot = db.snapshot()
cursor.first()

# Each holds its lock nearly all the time in which another thread runs.
def use_cursor():
    cursor.value
def use_batch():
    batch.put(b"a", large)
    batch.clear()
def use_walk():
    global walk
    walk = db.values()
    next(walk)

def forever():
    while not stop:
        use_{what}()
thread = threading.Thread(target=forever)
thread.start()
uses = dict(cursor=[lambda: cursor.value, cursor.next], batch=[lambda: batch.put(b"b", b""), lambda: db.write(batch), lambda: len(batch)],
            walk=[lambda: next(walk)])[{what!r}] + [lambda: snapshot.sequence, lambda: db.at(snapshot), lambda: db[b"a"]]
ended = []
for _ in range(10):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        for use in uses:
            try:
                use()
            except esker.ClosedError as e:
                if "forked" in str(e):
                    continue
            os._exit(1)
        cursor.close()
        snapshot.close()
        os._exit(0)
    ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop = True
thread.join()
assert ended == [0] * 10, ended
db.close()
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_forked_while_the_interpreter_ends_has_stores_of_its_own(path):
    """Threads are stopped at the end of the interpreter; the child of one is not at its end, and comes to one of its own."""
    run(f"""
import esker, atexit, os, signal, sys, threading, time
db = esker.open({str(path)!r})
inside, ending, leave = threading.Event(), threading.Event(), threading.Event()
def entries():
    inside.set()
    leave.wait()
    yield b"a", b"1"
def forks():
    ending.wait()
    time.sleep(0.2)  # the interpreter waits for the load meanwhile
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        with esker.open({str(path)!r} + "-child") as own:
            own[b"a"] = b"1"
            assert list(own.items()) == [(b"a", b"1")]
            cursor = own.cursor()
            atexit._run_exitfuncs()
            assert cursor.first() and cursor.value == b"1"
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print("the child ended with", status, file=sys.stderr) if status else None
    sys.stderr.flush()
    leave.set()
for work in (lambda: db.bulk_load(entries()), forks):
    threading.Thread(target=work, daemon=True).start()
inside.wait()
atexit.register(ending.set)
""")


def test_a_thread_that_is_stopped_keeps_no_walk_from_the_one_that_ends_the_interpreter(path):
    run(f"""
import atexit, faulthandler
last = []
atexit.register(lambda: [work() for work in last])  # after what the package has registered
faulthandler.dump_traceback_later(30, exit=True)
import esker, threading, time
db = esker.open({str(path)!r})
db[b"a"] = b"x" * (32 << 20)
def forever():
    global walk
    while True:
        walk = db.values()
        next(walk)
last.append(lambda: next(walk, None))
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.3)
""")


def test_a_handler_at_exit_waits_for_a_thread_that_uses_a_store(path):
    """A handler from before the import runs after what the package has registered; from then on each call of another thread waited for
    ever, and the handler for the thread."""
    run(f"""
import atexit, faulthandler, logging, logging.handlers, queue, time
faulthandler.dump_traceback_later(30, exit=True)
listener = None
atexit.register(lambda: (listener.enqueue_sentinel(), listener._thread.join(), db.close()))
import esker
db = esker.open({str(path)!r})

class Stores(logging.Handler):
    count = 0
    def emit(self, record):
        db.put(b"%05d" % self.count, record.getMessage().encode(), durability="synced")
        self.count += 1
        if self.count == 1:
            db.flush()
        assert db[b"00000"] and next(iter(db)) and db.verify()["problems"] == []

records = queue.Queue()
listener = logging.handlers.QueueListener(records, Stores())
listener.start()
log = logging.getLogger("stores")
log.setLevel(logging.INFO)
log.addHandler(logging.handlers.QueueHandler(records))
for n in range(2000):
    log.info("record %d", n)
""")
    with esker.open(path) as db:
        assert len(list(db)) == 2000 and db[b"01999"] == b"record 1999"


def test_a_handler_at_exit_waits_for_a_verification_that_was_under_way(path):
    """Between blocks it looks for Ctrl-C, and for that asked for the interpreter's lock, where its thread was stopped for ever."""
    run(f"""
import atexit, faulthandler
faulthandler.dump_traceback_later(30, exit=True)
ends = []
atexit.register(lambda: [end() for end in ends])
import esker, threading, time
db = esker.open({str(path)!r})
for n in range(3000):
    db[b"%05d" % n] = b"%d" % n * 200
db.flush()
stop = threading.Event()
def verifies():
    while not stop.is_set():
        assert db.verify()["problems"] == []
thread = threading.Thread(target=verifies, daemon=True)
thread.start()
ends += [stop.set, thread.join, db.close]
time.sleep(0.3)
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_c_forked_waits_for_no_threads_of_its_parents_at_its_end(path):
    """Python does not say so of such a fork, and the child had the numbers of its parent's threads in calls."""
    run(f"""
import atexit, ctypes, esker, os, signal, threading, time
db = esker.open({str(path)!r})
inside, leave = threading.Event(), threading.Event()
def entries():
    inside.set()
    leave.wait()
    yield b"b", b"1"
# Nobody asks for the interpreter's lock during the fork: Python's own lock would not survive that.
thread = threading.Thread(target=lambda: db.bulk_load(entries()))
fork = ctypes.PyDLL(None).fork
thread.start()
inside.wait()
time.sleep(0.1)
child = fork()
if child == 0:
    signal.alarm(60)
    atexit._run_exitfuncs()
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
leave.set()
thread.join()
assert status == 0, status
""")


def test_the_interpreter_ends_under_daemon_threads_that_load_and_verify(path):
    """Their calls want the interpreter's lock, which is not to be asked for at the end."""
    program = f"""
import atexit, time
atexit.register(time.sleep, 0.3)
import esker, threading
db = esker.open({str(path)!r})
def forever(work):
    while True:
        work()
def load():
    db.bulk_load((b"%06d" % n, b"x" * 100) for n in range(2000))
for work in (load, db.verify, lambda: db.verify(progress=lambda done, total: sum(range(1000))), db.flush, lambda: list(db)):
    threading.Thread(target=forever, args=(work,), daemon=True).start()
time.sleep(0.3)
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
    assert esker.verify(path)["problems"] == []


def test_what_is_dropped_is_dropped_without_the_lock(db):
    db[b"a"] = b"1" * 100_000
    snapshot = db.snapshot()
    counted, stop = 0, False

    def count():
        nonlocal counted
        while not stop:
            counted += 1
            time.sleep(0)

    # Nobody takes the lock from a thread that does not give it away.
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    other = threading.Thread(target=count)
    try:
        other.start()
        for make in (db.snapshot, db.items, db.cursor, lambda: db.at(snapshot), lambda: db.get_view(b"a")):
            deadline = time.monotonic() + 20
            while True:
                things = [make() for _ in range(100)]
                seen = counted
                things.clear()
                if counted > seen:
                    break
                assert time.monotonic() < deadline, make
    finally:
        stop = True
        sys.setswitchinterval(before)
        other.join()
