// TableBuilder: sorted entries become a file in LevelDB's format. Esker's stores have tables of their own; this is for
// programs that write such files themselves.

#include "leveldb/table_builder.h"

#include <cassert>
#include <memory>
#include <string>

#include "block_builder.h"
#include "coding.h"
#include "crc32c.h"
#include "filter_block.h"
#include "leveldb/comparator.h"
#include "table_format.h"

namespace leveldb {

struct TableBuilder::Rep {
  Rep(const Options& given, WritableFile* to)
      : options(given), index_options(WithoutSharing(given)), file(to), data(&options), index(&index_options) {
    if (options.filter_policy != nullptr) filter = std::make_unique<FilterBlockBuilder>(options.filter_policy);
  }

  // Each key of the index is whole.
  static Options WithoutSharing(Options options) {
    options.block_restart_interval = 1;
    return options;
  }

  Options options;
  Options index_options;
  WritableFile* const file;
  uint64_t offset = 0;
  Status status;
  BlockBuilder data;
  BlockBuilder index;
  std::string last_key;
  uint64_t entries = 0;
  bool closed = false;
  std::unique_ptr<FilterBlockBuilder> filter;
  // The last block, which goes into the index when the key behind it is known: the shorter a key between the two, the
  // shorter the index.
  bool unindexed = false;
  BlockHandle last_block;
  std::string packed;
};

TableBuilder::TableBuilder(const Options& options, WritableFile* file) : rep_(new Rep(options, file)) {}

TableBuilder::~TableBuilder() {
  assert(rep_->closed);
  delete rep_;
}

Status TableBuilder::ChangeOptions(const Options& options) {
  if (options.comparator != rep_->options.comparator) {
    return Status::InvalidArgument("changing comparator while building table");
  }
  rep_->options = options;
  rep_->index_options = Rep::WithoutSharing(options);
  return Status::OK();
}

void TableBuilder::Add(const Slice& key, const Slice& value) {
  Rep* r = rep_;
  assert(!r->closed);
  if (!ok()) return;
  assert(r->entries == 0 || r->options.comparator->Compare(key, r->last_key) > 0);
  if (r->unindexed) {
    r->options.comparator->FindShortestSeparator(&r->last_key, key);
    std::string handle;
    r->last_block.EncodeTo(&handle);
    r->index.Add(r->last_key, handle);
    r->unindexed = false;
  }
  if (r->filter != nullptr) r->filter->AddKey(key);
  r->last_key.assign(key.data(), key.size());
  ++r->entries;
  r->data.Add(key, value);
  if (r->data.SizeEstimate() >= r->options.block_size) Flush();
}

void TableBuilder::Flush() {
  Rep* r = rep_;
  assert(!r->closed);
  if (!ok() || r->data.empty()) return;
  WriteBlock(&r->data, &r->last_block);
  if (ok()) {
    r->unindexed = true;
    r->status = r->file->Flush();
  }
  if (r->filter != nullptr) r->filter->StartBlock(r->offset);
}

void TableBuilder::WriteBlock(BlockBuilder* block, BlockHandle* handle) {
  Rep* r = rep_;
  const Slice whole = block->Finish();
  if (Pack(r->options.compression, whole, &r->packed)) {
    WriteRawBlock(r->packed, r->options.compression, handle);
  } else {
    WriteRawBlock(whole, kNoCompression, handle);
  }
  block->Reset();
}

void TableBuilder::WriteRawBlock(const Slice& data, CompressionType type, BlockHandle* handle) {
  Rep* r = rep_;
  handle->offset = r->offset;
  handle->size = data.size();
  std::string trailer(1, static_cast<char>(type));
  coding::PutFixed32(&trailer, crc32c::Mask(crc32c::Extend(crc32c::Of(data), trailer)));
  r->status = r->file->Append(data);
  if (ok()) r->status = r->file->Append(trailer);
  if (ok()) r->offset += data.size() + kBlockTrailer;
}

Status TableBuilder::status() const { return rep_->status; }

Status TableBuilder::Finish() {
  Rep* r = rep_;
  Flush();
  assert(!r->closed);
  r->closed = true;

  BlockHandle filter_block;
  Footer footer;
  if (ok() && r->filter != nullptr) WriteRawBlock(r->filter->Finish(), kNoCompression, &filter_block);
  if (ok()) {
    BlockBuilder metaindex(&r->options);
    if (r->filter != nullptr) {
      std::string handle;
      filter_block.EncodeTo(&handle);
      metaindex.Add(std::string("filter.") + r->options.filter_policy->Name(), handle);
    }
    WriteBlock(&metaindex, &footer.metaindex);
  }
  if (ok()) {
    if (r->unindexed) {
      r->options.comparator->FindShortSuccessor(&r->last_key);
      std::string handle;
      r->last_block.EncodeTo(&handle);
      r->index.Add(r->last_key, handle);
      r->unindexed = false;
    }
    WriteBlock(&r->index, &footer.index);
  }
  if (ok()) {
    std::string end;
    footer.EncodeTo(&end);
    r->status = r->file->Append(end);
    if (ok()) r->offset += end.size();
  }
  return r->status;
}

void TableBuilder::Abandon() {
  assert(!rep_->closed);
  rep_->closed = true;
}

uint64_t TableBuilder::NumEntries() const { return rep_->entries; }
uint64_t TableBuilder::FileSize() const { return rep_->offset; }

}  // namespace leveldb
