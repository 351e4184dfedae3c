// Table: reads a file in LevelDB's format.

#include "leveldb/table.h"

#include <memory>
#include <string>
#include <utility>

#include "block.h"
#include "coding.h"
#include "filter_block.h"
#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/options.h"
#include "table_format.h"
#include "table_iterator.h"

namespace leveldb {

struct Table::Rep {
  Rep(const Options& given, RandomAccessFile* from, uint64_t size, std::string index_block)
      : options(given), file(from), file_size(size), index(std::move(index_block)) {
    if (options.block_cache != nullptr) cache_id = options.block_cache->NewId();
  }

  const Options options;
  RandomAccessFile* const file;
  const uint64_t file_size;
  const Block index;
  uint64_t cache_id = 0;
  uint64_t metaindex_offset = 0;
  std::unique_ptr<FilterBlockReader> filter;
};

Status Table::Open(const Options& options, RandomAccessFile* file, uint64_t file_size, Table** table) {
  *table = nullptr;
  if (file_size < Footer::kBytes) return Status::Corruption("file is too short to be an sstable");
  char space[Footer::kBytes];
  Slice end;
  Status status = file->Read(file_size - sizeof(space), sizeof(space), &end, space);
  Footer footer;
  if (status.ok()) status = footer.DecodeFrom(end);
  std::string index;
  if (status.ok()) status = ReadBlock(file, file_size, footer.index, &index);
  if (!status.ok()) return status;
  *table = new Table(new Rep(options, file, file_size, std::move(index)));
  (*table)->ReadMeta(footer);
  return status;
}

Table::~Table() { delete rep_; }

// Filters only make reads faster: where there is none that can be read, there is none.
void Table::ReadMeta(const Footer& footer) {
  rep_->metaindex_offset = footer.metaindex.offset;
  if (rep_->options.filter_policy == nullptr) return;
  std::string contents;
  if (!ReadBlock(rep_->file, rep_->file_size, footer.metaindex, &contents).ok()) return;
  const Block metaindex(std::move(contents));
  const std::unique_ptr<Iterator> iterator(metaindex.NewIterator(BytewiseComparator()));
  const std::string key = std::string("filter.") + rep_->options.filter_policy->Name();
  iterator->Seek(key);
  if (iterator->Valid() && iterator->key() == Slice(key)) ReadFilter(iterator->value());
}

void Table::ReadFilter(const Slice& filter_handle_value) {
  Slice value = filter_handle_value;
  BlockHandle handle;
  std::string contents;
  if (!handle.DecodeFrom(&value).ok()) return;
  if (!ReadBlock(rep_->file, rep_->file_size, handle, &contents).ok()) return;
  rep_->filter = std::make_unique<FilterBlockReader>(rep_->options.filter_policy, std::move(contents));
}

namespace {

void DeleteBlock(void* block, void*) { delete static_cast<Block*>(block); }
void DeleteCachedBlock(const Slice&, void* block) { delete static_cast<Block*>(block); }
void ReleaseBlock(void* cache, void* handle) {
  static_cast<Cache*>(cache)->Release(static_cast<Cache::Handle*>(handle));
}

}  // namespace

Iterator* Table::BlockReader(void* arg, const ReadOptions& options, const Slice& index_value) {
  const Rep* rep = static_cast<Table*>(arg)->rep_;
  Cache* cache = rep->options.block_cache;
  Slice value = index_value;
  BlockHandle handle;
  Status status = handle.DecodeFrom(&value);
  if (!status.ok()) return NewErrorIterator(status);

  std::string cache_key;
  Cache::Handle* cached = nullptr;
  if (cache != nullptr) {
    coding::PutFixed64(&cache_key, rep->cache_id);
    coding::PutFixed64(&cache_key, handle.offset);
    cached = cache->Lookup(cache_key);
  }
  Block* block = nullptr;
  if (cached != nullptr) {
    block = static_cast<Block*>(cache->Value(cached));
  } else {
    std::string contents;
    status = ReadBlock(rep->file, rep->file_size, handle, &contents);
    if (!status.ok()) return NewErrorIterator(status);
    block = new Block(std::move(contents));
    if (cache != nullptr && options.fill_cache) {
      cached = cache->Insert(cache_key, block, block->size(), DeleteCachedBlock);
    }
  }
  Iterator* iterator = block->NewIterator(rep->options.comparator);
  if (cached != nullptr) {
    iterator->RegisterCleanup(ReleaseBlock, cache, cached);
  } else {
    iterator->RegisterCleanup(DeleteBlock, block, nullptr);
  }
  return iterator;
}

Iterator* Table::NewIterator(const ReadOptions& options) const {
  return NewTableIterator(rep_->index.NewIterator(rep_->options.comparator), &Table::BlockReader,
                          const_cast<Table*>(this), options);
}

Status Table::InternalGet(const ReadOptions& options, const Slice& key, void* arg,
                          void (*handle_result)(void*, const Slice&, const Slice&)) {
  const std::unique_ptr<Iterator> index(rep_->index.NewIterator(rep_->options.comparator));
  index->Seek(key);
  if (!index->Valid()) return index->status();
  Slice value = index->value();
  BlockHandle handle;
  const bool ruled_out = rep_->filter != nullptr && handle.DecodeFrom(&value).ok() &&
                         !rep_->filter->KeyMayMatch(handle.offset, key);
  if (ruled_out) return index->status();
  const std::unique_ptr<Iterator> block(BlockReader(this, options, index->value()));
  block->Seek(key);
  if (block->Valid()) handle_result(arg, block->key(), block->value());
  return block->status().ok() ? index->status() : block->status();
}

uint64_t Table::ApproximateOffsetOf(const Slice& key) const {
  const std::unique_ptr<Iterator> index(rep_->index.NewIterator(rep_->options.comparator));
  index->Seek(key);
  if (index->Valid()) {
    Slice value = index->value();
    BlockHandle handle;
    if (handle.DecodeFrom(&value).ok()) return handle.offset;
  }
  // Behind all entries, or about there.
  return rep_->metaindex_offset;
}

}  // namespace leveldb
