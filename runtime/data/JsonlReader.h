//===- JsonlReader.h - the lines of one JSONL file -----------------------------===//
#ifndef RUNTIME_DATA_JSONLREADER_H
#define RUNTIME_DATA_JSONLREADER_H

#include "runtime/data/Data.h"

#include <functional>

namespace sft {

/// What readJsonl hands on for every line: the line's number in its file (from 1) and its sample,
/// complete but for the limits on length and position.
using TakeSample = std::function<void(int64_t line, Sample &&sample)>;

/// Reads one JSONL file. Lines end at LF alone. Samples are numbered from `first_number`; keys
/// without a meaning are counted in `ignored_keys`. An error in the file reads `FILE:LINE:COL:
/// error: WHAT`, the column counting bytes from 1.
///
/// Accepted is an object with `input_ids` and exactly one of `loss_mask` (weights, or booleans) and
/// `labels` (-100, or the token's own id); `position_ids` (strictly increasing) and
/// `attention_mask` (all ones) may come with them. A null stands for an absent key. Blank lines may
/// only stand at the end, and a UTF-8 byte order mark only at the start.
void readJsonl(const std::string &path, int64_t vocab_size, int64_t first_number,
               std::map<std::string, int64_t> &ignored_keys, const TakeSample &take);

} // namespace sft

#endif // RUNTIME_DATA_JSONLREADER_H
