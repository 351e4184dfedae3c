package io.esker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.esker.EskerException.Code;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Stores as a whole: opening, keyspaces, durability, damage. */
class StoreTest {
    @TempDir
    Path directory;

    private static EskerException refused(Code code, Executable call) {
        EskerException e = assertThrows(EskerException.class, call);
        assertEquals(code, e.code(), e.getMessage());
        return e;
    }

    @Test
    void openingSaysWhatIsInTheWay() throws Exception {
        Path path = directory.resolve("store");
        assertEquals(0, refused(Code.NOT_A_STORE, () -> Esker.open(path, new Options().createIfMissing(false))).osCode());
        Esker.open(path).close();
        refused(Code.STORE_EXISTS, () -> Esker.open(path, new Options().errorIfExists(true)));
        refused(Code.COMPARATOR, () -> Esker.open(path, new Options().order(Order.REVERSE)));
        Path file = Files.createFile(directory.resolve("file"));
        assertTrue(refused(Code.IO, () -> Esker.open(file)).getMessage().contains(file.toString()));
        // ENOTDIR.
        assertEquals(20, refused(Code.IO, () -> Esker.open(file.resolve("store"))).osCode());
        Path leveldb = Files.createDirectory(directory.resolve("leveldb"));
        Files.writeString(leveldb.resolve("CURRENT"), "MANIFEST-000002\n");
        Files.writeString(leveldb.resolve("MANIFEST-000002"), "");
        refused(Code.FOREIGN_STORE, () -> Esker.open(leveldb));
    }

    /** Opens a store and waits until its input ends. */
    public static final class Holder {
        public static void main(String[] arguments) throws Exception {
            try (Esker db = Esker.open(Path.of(arguments[0]))) {
                db.keyspace().put(Tools.key(1), Tools.value(1));
                System.out.println("open");
                System.in.read();
            }
            System.out.println("closed");
        }
    }

    @Test
    void anotherProcessLocksTheDirectory() throws Exception {
        Path path = directory.resolve("store");
        Process holder = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp",
                System.getProperty("java.class.path"), Holder.class.getName(), path.toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (var out = holder.inputReader()) {
            assertEquals("open", out.readLine());
            assertTrue(refused(Code.LOCKED, () -> Esker.open(path)).getMessage().contains("LOCK"));
            refused(Code.LOCKED, () -> Esker.destroy(path));
            refused(Code.LOCKED, () -> Esker.repair(path));
            holder.getOutputStream().close();
            assertEquals("closed", out.readLine());
            assertEquals(0, holder.waitFor());
        } finally {
            holder.destroyForcibly();
        }
        try (Esker db = Esker.open(path)) {
            assertArrayEquals(Tools.value(1), db.keyspace().get(Tools.key(1)));
        }
    }

    /** Writes, says what was written, and ends without closing. */
    public static final class Dier {
        public static void main(String[] arguments) {
            Esker db = Esker.open(Path.of(arguments[0]));
            for (int at = 0; at < 1000; at++) db.keyspace().put(Tools.key(at), Tools.value(at));
            Runtime.getRuntime().halt(7);
        }
    }

    @Test
    void whatWasWrittenSurvivesTheEndOfTheProcess() throws Exception {
        Path path = directory.resolve("store");
        assertEquals(List.of("exit 7"), Tools.java(Dier.class, List.of(), path.toString()));
        try (Esker db = Esker.open(path)) {
            assertEquals(1000, db.keyspace().entries().stream().count());
        }
    }

    @Test
    void readersWriteNothing() {
        Path path = directory.resolve("store");
        try (Esker db = Esker.open(path)) {
            db.keyspace().put(Tools.key(1), Tools.value(1));
        }
        Options reading = new Options().readOnly(true);
        try (Esker one = Esker.open(path, reading); Esker two = Esker.open(path, reading)) {
            assertTrue(one.keyspace().contains(Tools.key(1)) && two.keyspace().contains(Tools.key(1)));
            refused(Code.READ_ONLY, () -> one.keyspace().put(Tools.key(2), Tools.value(2)));
            refused(Code.READ_ONLY, () -> one.write(new WriteBatch().delete(Tools.key(1))));
            refused(Code.READ_ONLY, () -> one.createKeyspace("new"));
            refused(Code.LOCKED, () -> Esker.open(path));
        }
    }

    @Test
    void keyspacesAreMadeOpenedAndDropped() {
        Path path = directory.resolve("store");
        try (Esker db = Esker.open(path)) {
            assertSame(db.keyspace(), db.keyspace());
            assertSame(db.keyspace(), db.keyspace("default"));
            assertTrue(refused(Code.KEYSPACE, () -> db.keyspace("none")).getMessage().contains("none"));
            KeyspaceOptions options = new KeyspaceOptions().order(Order.REVERSE).compression(Compression.NONE).blobThreshold(64);
            Keyspace made = db.createKeyspace("ключи \ud83d\udd11", options);
            assertEquals(Order.REVERSE, made.order());
            refused(Code.KEYSPACE, () -> db.createKeyspace(made.name()));
            assertThrows(IllegalArgumentException.class, () -> db.createKeyspace(""));
            assertThrows(IllegalArgumentException.class, () -> db.createKeyspace("x".repeat(256)));
            assertThrows(IllegalArgumentException.class, () -> db.dropKeyspace("default"));
            made.put(Tools.key(1), Tools.value(1));
            made.put(Tools.key(2), Tools.value(2));
            assertEquals(List.of("default", made.name()), db.keyspaces());
        }
        try (Esker db = Esker.open(path)) {
            String name = db.keyspaces().get(1);
            Keyspace again = db.keyspace(name);
            assertEquals(Order.REVERSE, again.order());
            assertEquals("key0000002", Tools.text(again.entries().iterator().next().key()));
            KeyspaceStats stats = again.stats();
            assertEquals(List.of(name, "esker.reverse", "none", 64L),
                    List.of(stats.name(), stats.comparator(), stats.compression(), stats.blobThresholdBytes()));
            refused(Code.COMPARATOR, () -> db.openOrCreateKeyspace(name));
            db.openOrCreateKeyspace(name, new KeyspaceOptions().order(Order.REVERSE)).delete(Tools.key(1));
            db.dropKeyspace(name);
            refused(Code.KEYSPACE, () -> again.get(Tools.key(2)));
            refused(Code.KEYSPACE, () -> again.put(Tools.key(2), Tools.value(2)));
            refused(Code.KEYSPACE, () -> again.stats());
            refused(Code.KEYSPACE, () -> db.write(new WriteBatch().put(again, Tools.key(2), Tools.value(2))));
            refused(Code.KEYSPACE, () -> db.dropKeyspace(name));
            assertEquals(List.of("default"), db.keyspaces());
        }
    }

    /** They were told of the keyspace that had the name of the dropped one by then. */
    @Test
    void aDroppedKeyspaceIsNotTakenForItsSuccessor() {
        try (Esker db = Esker.open(directory.resolve("store"))) {
            db.createKeyspace("name", new KeyspaceOptions().order(Order.REVERSE));
            Keyspace dropped = db.keyspace("name");
            db.dropKeyspace("name");
            Keyspace next = db.createKeyspace("name");
            next.put(Tools.key(1), Tools.value(1));
            refused(Code.KEYSPACE, () -> dropped.stats());
            refused(Code.KEYSPACE, () -> dropped.order());
            assertEquals(1, next.stats().memtableEntries());
            assertEquals(Order.BYTEWISE, db.keyspace("name").order());
        }
    }

    @Test
    void ordersAreKnownHoweverAStoreIsOpened() {
        Path path = directory.resolve("store");
        try (Esker db = Esker.open(path, new Options().order(Order.REVERSE))) {
            assertEquals(Order.REVERSE, db.keyspace().order());
        }
        try (Esker db = Esker.open(path)) {
            assertEquals(Order.REVERSE, db.keyspace().order());
            db.keyspace().put(Tools.bytes("a1"), new byte[0]);
            db.keyspace().put(Tools.bytes("a2"), new byte[0]);
            db.keyspace().put(Tools.bytes("b"), new byte[0]);
            List<String> keys = db.keyspace().entries(Range.prefix(Tools.bytes("a"))).stream()
                    .map(entry -> Tools.text(entry.key())).toList();
            assertEquals(List.of("a2", "a1"), keys);
        }
    }

    @Test
    void aBatchIsWrittenAsAWhole() {
        try (Esker db = Esker.open(directory.resolve("store"))) {
            Keyspace other = db.createKeyspace("other");
            Keyspace gone = db.createKeyspace("gone");
            WriteBatch batch = new WriteBatch();
            for (int at = 0; at < 50_000; at++) batch.put(at % 2 == 0 ? db.keyspace() : other, Tools.key(at), Tools.value(at));
            batch.put(Tools.key(7), Tools.bytes("first")).put(Tools.key(7), Tools.bytes("last"));
            batch.put(other, Tools.key(-1), Tools.large(1 << 20, 1));
            assertEquals(50_003, batch.count());
            batch.put(gone, Tools.key(1), Tools.value(1));
            db.dropKeyspace("gone");
            refused(Code.KEYSPACE, () -> db.write(batch));
            assertNull(other.get(Tools.key(1)));
            batch.clear();
            assertEquals(0, batch.count());
            assertEquals(0, batch.byteSize());
            db.write(batch);
            for (int at = 0; at < 50_000; at++) batch.put(at % 2 == 0 ? db.keyspace() : other, Tools.key(at), Tools.value(at));
            batch.put(Tools.key(7), Tools.bytes("first")).put(Tools.key(7), Tools.bytes("last"));
            batch.put(other, Tools.key(-1), Tools.large(1 << 20, 1));
            db.write(batch, Durability.SYNCED);
            db.write(batch);
            assertEquals(25_001, db.keyspace().entries().stream().count());
            assertEquals(25_001, other.entries().stream().count());
            assertEquals("last", Tools.text(db.keyspace().get(Tools.key(7))));
            assertArrayEquals(Tools.large(1 << 20, 1), other.get(Tools.key(-1)));
        }
    }

    @Test
    void aSyncedWriteIsSynced() {
        try (Esker db = Esker.open(directory.resolve("a"))) {
            long before = db.stats().logSyncs();
            db.keyspace().put(Tools.key(1), Tools.value(1));
            db.keyspace().delete(Tools.key(1), Durability.BUFFERED);
            assertEquals(before, db.stats().logSyncs());
            db.keyspace().put(Tools.key(1), Tools.value(1), Durability.SYNCED);
            db.keyspace().put(ByteBuffer.wrap(Tools.key(1)), ByteBuffer.allocate(1), Durability.SYNCED);
            db.keyspace().delete(Tools.key(1), Durability.SYNCED);
            db.write(new WriteBatch().put(Tools.key(1), Tools.value(1)), Durability.SYNCED);
            assertEquals(before + 4, db.stats().logSyncs());
            db.keyspace().put(Tools.key(1), Tools.value(1));
            db.sync();
            assertEquals(before + 5, db.stats().logSyncs());
        }
        try (Esker db = Esker.open(directory.resolve("b"), new Options().durability(Durability.SYNCED))) {
            long before = db.stats().logSyncs();
            db.keyspace().put(Tools.key(1), Tools.value(1));
            db.keyspace().put(Tools.key(1), Tools.value(1), Durability.BUFFERED);
            assertEquals(before + 1, db.stats().logSyncs());
        }
    }

    @Test
    void checkpointsAreStores() {
        try (Esker db = Esker.open(directory.resolve("store"))) {
            db.keyspace().put(Tools.key(1), Tools.value(1));
            db.checkpoint(directory.resolve("copy"));
            db.keyspace().put(Tools.key(2), Tools.value(2));
            refused(Code.IO, () -> db.checkpoint(directory.resolve("copy")));
        }
        try (Esker copy = Esker.open(directory.resolve("copy"))) {
            assertEquals(1, copy.keyspace().entries().stream().count());
        }
        Esker.destroy(directory.resolve("copy"));
        assertFalse(Files.exists(directory.resolve("copy")));
    }

    @Test
    void figuresAddUp() {
        try (Esker db = Esker.open(directory.resolve("store"), Tools.small())) {
            for (int at = 0; at < 5000; at++) db.keyspace().put(Tools.key(at), Tools.large(100, at));
            Stats filled = db.stats();
            assertEquals(5000, filled.keyspaces().get(0).memtableEntries()
                    + filled.keyspaces().get(0).runs().stream().mapToLong(RunStats::entries).sum());
            assertEquals(5000 * 110, filled.bytesWritten());
            db.waitForCompactions();
            try (Snapshot snapshot = db.snapshot()) {
                Stats stats = db.stats();
                assertEquals(1, stats.snapshots());
                assertEquals(stats.sequence(), snapshot.sequence());
                assertEquals(4 << 20, stats.memoryBudgetBytes());
                assertEquals(1, stats.keyspaces().get(0).runs().size());
                assertEquals(stats.tableBytes(), stats.keyspaces().get(0).runs().get(0).bytes());
                assertTrue(stats.diskBytes() >= stats.tableBytes());
                assertTrue(stats.compactions() > 0 && stats.openFiles() > 0 && stats.mappings() > 0);
                assertTrue(stats.writeAmplification() > 0);
                assertEquals(Optional.empty(), stats.halted());
            }
            assertEquals(db.stats().sequence(), Long.parseLong(db.property("esker.sequence").orElseThrow()));
            assertTrue(db.property("esker.stats").orElseThrow().contains("memory_budget"));
            assertEquals(Optional.empty(), db.property("esker.none"));
            long all = db.keyspace().approximateSize(Range.all());
            long half = db.keyspace().approximateSize(Range.of(null, Tools.key(2500)));
            assertTrue(all > 0 && half > all / 4 && half < 3 * all / 4, half + " of " + all);
            for (int at = 0; at < 5000; at++) db.keyspace().delete(Tools.key(at));
            db.keyspace().compactRange(Range.all());
            assertTrue(db.keyspace().approximateSize(Range.all()) < all / 10);
        }
    }

    @Test
    void damageIsNamedAndRepaired() throws Exception {
        Path path = directory.resolve("store");
        try (Esker db = Esker.open(path, new Options().compression(Compression.NONE))) {
            for (int at = 0; at < 20_000; at++) db.keyspace().put(Tools.key(at), Tools.large(100, at));
            // In one table, so that the damage is in the middle: what was put in order is in several that do not meet.
            db.keyspace().compactRange(Range.all());
        }
        Path table = Tools.files(path, ".tbl").stream().findFirst().orElseThrow(() -> new AssertionError("no table"));
        byte[] bytes = Files.readAllBytes(table);
        bytes[bytes.length / 2] ^= 1;
        Files.write(table, bytes);
        String file = table.getFileName().toString();
        try (Esker db = Esker.open(path)) {
            Keyspace keyspace = db.keyspace();
            EskerException met = refused(Code.CORRUPTION, () -> keyspace.entries().forEach(entry -> {}));
            assertTrue(met.getMessage().contains(file), met.getMessage());
            // All before it can be read, the error stays, and behind it one goes on by a seek.
            try (Cursor cursor = keyspace.cursor()) {
                cursor.first();
                int[] read = {1};
                String message = refused(Code.CORRUPTION, () -> {
                    while (cursor.next()) read[0]++;
                }).getMessage();
                assertTrue(read[0] > 5000 && read[0] < 15_000, read[0] + " entries");
                assertFalse(cursor.isValid());
                assertEquals(message, refused(Code.CORRUPTION, cursor::next).getMessage());
                assertEquals(message, refused(Code.CORRUPTION, cursor::previous).getMessage());
                assertTrue(cursor.seek(Tools.key(read[0] + 1000)));
                assertTrue(cursor.last());
                assertArrayEquals(Tools.key(19_999), cursor.key());
            }
            VerifyReport report = db.verify();
            assertFalse(report.isSound());
            assertEquals(file, report.problems().get(0).file());
        }
        VerifyReport report = Esker.verify(path);
        assertFalse(report.isSound());
        assertTrue(report.files() > 0 && report.bytes() > 0 && report.entries() > 10_000);
        refused(Code.CORRUPTION, () -> Esker.open(path, new Options().paranoidChecks(true)));
        RepairReport repaired = Esker.repair(path);
        assertTrue(repaired.changed() && repaired.entries() > 10_000);
        Finding lost = repaired.lost().get(0);
        assertEquals(file, lost.file());
        assertTrue(lost.firstKey().isPresent() && lost.lastKey().isPresent() && lost.toString().contains(file), lost.toString());
        assertTrue(Esker.verify(path).isSound());
        assertFalse(Esker.repair(path).changed());
        try (Esker db = Esker.open(path)) {
            assertEquals(repaired.entries(), db.keyspace().entries().stream().count());
        }
    }

    @Test
    void aRepairTakesWhatTheStoreIsOpenedWith() throws Exception {
        Path path = directory.resolve("store");
        long[] sizes = new long[2];
        Options[] all = {new Options(), new Options().order(Order.REVERSE).compression(Compression.NONE)};
        for (int round = 0; round < 2; round++) {
            // All is in the log, and what the manifest said about it is lost.
            try (Esker db = Esker.open(path, new Options().order(Order.REVERSE).flushOnClose(false))) {
                for (int at = 0; at < 1000; at++) db.keyspace().put(Tools.key(at), new byte[100]);
            }
            try (DirectoryStream<Path> manifests = Files.newDirectoryStream(path, "MANIFEST*")) {
                for (Path manifest : manifests) Files.delete(manifest);
            }
            assertEquals(1000, Esker.repair(path, all[round]).entries());
            try (Esker db = Esker.open(path)) {
                // Without the order it guesses.
                assertEquals(round == 0 ? Order.BYTEWISE : Order.REVERSE, db.keyspace().order());
                assertArrayEquals(Tools.key(round == 0 ? 0 : 999), db.keyspace().entries().iterator().next().key());
                sizes[round] = db.stats().tableBytes();
            }
            Esker.destroy(path);
        }
        assertTrue(2 * sizes[0] < sizes[1], sizes[0] + " " + sizes[1]);
        assertThrows(NullPointerException.class, () -> Esker.repair(path, null));
    }

    @Test
    void pathsAreAnyOfTheMachine() throws Exception {
        for (String name : List.of("with space", "100%", "a+b?c#d", "ä€\ud83d\udd11", "colon:and;semi")) {
            Path path = directory.resolve(name);
            Esker.open(path).close();
            assertTrue(Files.exists(path.resolve("CURRENT")), name);
            assertTrue(Esker.verify(path).isSound());
        }
        Path here = Path.of("").toAbsolutePath().relativize(directory.resolve("relative"));
        Esker.open(here).close();
        assertTrue(Files.exists(directory.resolve("relative").resolve("CURRENT")));
        URI archive = URI.create("jar:" + directory.resolve("a.zip").toUri());
        try (FileSystem zip = FileSystems.newFileSystem(archive, Map.of("create", "true"))) {
            assertThrows(IllegalArgumentException.class, () -> Esker.open(zip.getPath("/store")));
        }
    }
}
