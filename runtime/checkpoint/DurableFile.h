//===- DurableFile.h - files that are whole or not there -----------------------===//
#ifndef RUNTIME_CHECKPOINT_DURABLEFILE_H
#define RUNTIME_CHECKPOINT_DURABLEFILE_H

#include <string>
#include <string_view>
#include <vector>

namespace sft {

/// Writes the pieces one after another to `path` + ".tmp", syncs it, and renames it to `path`.
/// Throws with the path, the system's reason, the bytes needed and the bytes free; the temporary
/// file is then gone.
void writeDurably(const std::string &path, const std::vector<std::string_view> &pieces);

/// Makes the names inside a folder durable (after files were created or renamed in it).
void syncFolder(const std::string &folder);

} // namespace sft

#endif // RUNTIME_CHECKPOINT_DURABLEFILE_H
