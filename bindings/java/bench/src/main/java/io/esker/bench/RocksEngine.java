package io.esker.bench;

import java.nio.file.Path;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.CompressionType;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;

/** RocksDB as its guides set it up: LZ4, Bloom filters of ten bits, half of the memory as block cache, the rest for writes. */
final class RocksEngine implements Engine {
    private final BloomFilter filter = new BloomFilter(10);
    private final LRUCache cache;
    private final Options options;
    private final WriteOptions writing = new WriteOptions();
    private final RocksDB db;

    RocksEngine(Path directory, long memoryBytes) throws RocksDBException {
        cache = new LRUCache(memoryBytes / 2);
        options = new Options().setCreateIfMissing(true).setCompressionType(CompressionType.LZ4_COMPRESSION)
                .setWriteBufferSize(memoryBytes / 4)
                .setTableFormatConfig(new BlockBasedTableConfig().setBlockCache(cache).setFilterPolicy(filter));
        db = RocksDB.open(options, directory.toString());
    }

    @Override
    public String name() {
        return "RocksDB";
    }

    @Override
    public void put(byte[] key, byte[] value) throws RocksDBException {
        db.put(writing, key, value);
    }

    @Override
    public void putAll(byte[][] keys, byte[][] values) throws RocksDBException {
        try (WriteBatch batch = new WriteBatch()) {
            for (int at = 0; at < keys.length; at++) batch.put(keys[at], values[at]);
            db.write(writing, batch);
        }
    }

    @Override
    public byte[] get(byte[] key) throws RocksDBException {
        return db.get(key);
    }

    @Override
    public long scan(boolean backwards) throws RocksDBException {
        long bytes = 0;
        try (RocksIterator iterator = db.newIterator()) {
            if (backwards) iterator.seekToLast();
            else iterator.seekToFirst();
            while (iterator.isValid()) {
                bytes += iterator.key().length + iterator.value().length;
                if (backwards) iterator.prev();
                else iterator.next();
            }
            iterator.status();
        }
        return bytes;
    }

    @Override
    public long seeks(byte[][] keys, int entries) throws RocksDBException {
        long bytes = 0;
        try (RocksIterator iterator = db.newIterator()) {
            for (byte[] key : keys) {
                iterator.seek(key);
                for (int at = 0; at < entries && iterator.isValid(); at++, iterator.next()) {
                    bytes += iterator.key().length + iterator.value().length;
                }
                iterator.status();
            }
        }
        return bytes;
    }

    @Override
    public void settle() throws RocksDBException {
        db.compactRange();
    }

    @Override
    public void close() throws RocksDBException {
        db.closeE();
        writing.close();
        options.close();
        cache.close();
        filter.close();
    }
}
