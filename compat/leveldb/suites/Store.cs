// What a program in C# does with a store, through Debian's binding. Prints a line for each test, in TAP.
using System;
using System.Collections.Generic;
using System.IO;
using System.Text;
using LevelDB;

static class Store {
    static int tests;

    static void Check(string what, bool holds) {
        tests++;
        Console.WriteLine("{0} {1} - {2}", holds ? "ok" : "not ok", tests, what);
    }

    static bool Throws(Action action, string part) {
        try {
            action();
        } catch (Exception e) {
            return e.Message.Contains(part);
        }
        return false;
    }

    static string Key(int n) { return "key " + n.ToString("D6"); }

    // Not the name of a method: this class is called as one of its own.
    static Options Fresh() {
        return new Options { CreateIfMissing = true, BlockCache = new Cache(8 << 20), WriteBufferSize = 1 << 20,
                             Compression = CompressionType.SnappyCompression };
    }

    static void Main(string[] arguments) {
        string path = arguments[0];
        Check("a store that is missing", Throws(() => DB.Open(new Options(), path), "does not exist"));
        using (var db = DB.Open(Fresh(), path)) {
            Writes(db);
            Walks(db);
            Moments(db);
            Check("it is open", Throws(() => DB.Open(Fresh(), path), "lock"));
            Check("its statistics", db.GetProperty("leveldb.stats").Contains("Level"));
            Check("no such property", db.GetProperty("leveldb.nothing") == null);
            db.CompactRange(Key(100), Key(900));
            Check("compacted", db[Key(500)] == "value 500");
            // The binding gives iterators and snapshots back when they are collected; LevelDB wants that first.
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
        Check("it exists", Throws(() => DB.Open(new Options { ErrorIfExists = true }, path), "exists"));
        using (var db = DB.Open(new Options { ParanoidChecks = true }, path)) {
            Check("opened again", db[Key(999)] == "value 999" && db["ünïcödé"] == "zwölf");
        }
        DB.Repair(new Options(), path);
        using (var db = DB.Open(new Options(), path)) {
            Check("repaired", db[Key(1)] == "value 1" && db[Key(0)] == null);
        }
        DB.Destroy(new Options(), path);
        Check("destroyed", Throws(() => DB.Open(new Options(), path), "does not exist"));
        Console.WriteLine("1..{0}", tests);
    }

    static void Writes(DB db) {
        db.Put("a", "1");
        Check("what was put", db.Get("a") == "1" && db["a"] == "1");
        db["ünïcödé"] = "zwölf";
        Check("letters of more than a byte", db["ünïcödé"] == "zwölf");
        Check("what was not", db.Get("b") == null);
        db.Delete("a");
        Check("what was deleted", db["a"] == null);
        db.Put(new WriteOptions { Sync = true }, "synced", "yes");
        Check("synced", db["synced"] == "yes");
        using (var text = new StringWriter()) {
            for (int i = 0; i < 100000; i++) text.Write((char)('a' + i % 26));
            db["large"] = text.ToString();
            Check("a large value", db["large"] == text.ToString());
        }
        var batch = new WriteBatch();
        for (int n = 0; n < 1000; n++) batch.Put(Key(n), "value " + n);
        batch.Delete(Key(0));
        db.Write(batch);
        Check("a batch", db[Key(999)] == "value 999" && db[Key(0)] == null);
        batch.Clear();
        db.Write(batch);
        Check("an empty batch", db[Key(999)] == "value 999");
    }

    static void Walks(DB db) {
        var keys = new List<string>();
        using (var i = new Iterator(db, new ReadOptions())) {
            for (i.Seek(Key(0)); i.IsValid && i.Key.StartsWith("key "); i.Next()) keys.Add(i.Key);
            Check("a walk", keys.Count == 999 && keys[0] == Key(1) && keys[998] == Key(999));
            i.SeekToLast();
            Check("the last", i.Key == "ünïcödé" && i.Value == "zwölf");
            i.Previous();
            Check("the one before", i.Key == "synced");
            i.SeekToFirst();
            Check("the first", i.Key == Key(1));
            i.Previous();
            Check("nothing before it", !i.IsValid);
        }
        int all = 0;
        foreach (var entry in db) all += entry.Key.Length > 0 ? 1 : 0;
        Check("all in a loop", all == 1002);
    }

    static void Moments(DB db) {
        var before = db.CreateSnapshot();
        db["synced"] = "no more";
        db["new"] = "entry";
        var then = new ReadOptions { Snapshot = before };
        Check("a moment", db.Get(then, "synced") == "yes" && db.Get(then, "new") == null);
        Check("now", db["synced"] == "no more" && db["new"] == "entry");
    }
}
