#include "runtime/plan/PlanFile.h"

#include "runtime/base/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <xxhash.h>

using namespace sft;

namespace {

constexpr char kMagic[8] = {'S', 'F', 'T', 'P', 'L', 'A', 'N', '\n'};
constexpr uint32_t kHeaderBytes = 64;
/// FlatBuffers offsets are 32 bits.
constexpr uint64_t kMaxPayloadBytes = FLATBUFFERS_MAX_BUFFER_SIZE - 1;

/// The header as it stands in the file (little endian, like every machine we run on).
struct Header {
  char magic[8];
  uint16_t major, minor;
  uint32_t header_bytes;
  uint64_t payload_bytes;
  uint64_t hash_low, hash_high;
  uint8_t zeros[24];
};
static_assert(sizeof(Header) == kHeaderBytes);

std::string versionText(uint16_t major, uint16_t minor) { return concat(major, '.', minor); }

/// Two names, so that a half-read file is not mistaken for a foreign one.
[[noreturn]] void failNotAPlan(const std::string &name) {
  fail("not a plan file (", name,
       "): it does not begin with \"SFTPLAN\"; make one with sftc compile");
}
[[noreturn]] void failTruncated(const std::string &name, uint64_t size, uint64_t expected) {
  fail("plan file has the wrong length (", name, "): ", size, " bytes, its header promises ",
       expected, "; copy it again or re-run the compiler");
}

/// Magic and completeness of the header; nothing else is trusted yet.
Header readHeader(const std::string &name, const uint8_t *bytes, size_t size) {
  if (size < sizeof(kMagic) || std::memcmp(bytes, kMagic, sizeof(kMagic)) != 0)
    failNotAPlan(name);
  if (size < kHeaderBytes)
    failTruncated(name, size, kHeaderBytes);
  Header header;
  std::memcpy(&header, bytes, kHeaderBytes);
  return header;
}

bool lengthMatches(const Header &header, size_t size) {
  return header.payload_bytes == size - kHeaderBytes && header.payload_bytes <= kMaxPayloadBytes;
}

bool hashMatches(const Header &header, const uint8_t *payload) {
  XXH128_hash_t hash = XXH3_128bits(payload, header.payload_bytes);
  return hash.low64 == header.hash_low && hash.high64 == header.hash_high;
}

bool structureIsSound(const uint8_t *payload, size_t size) {
  flatbuffers::Verifier::Options options;
  options.max_depth = 64;
  // A table that is not shared takes at least 8 bytes (its own offset and the one that leads to
  // it), so this bound refuses small files that unpack into huge plans.
  options.max_tables = flatbuffers::uoffset_t(size / 8 + 1);
  flatbuffers::Verifier verifier(payload, size, options);
  return fb::VerifyPlanBuffer(verifier);
}

/// The command line inside a plan of another version, as far as this build can read it.
std::string storedCommandLine(const Header &header, const uint8_t *bytes, size_t size) {
  const uint8_t *payload = bytes + kHeaderBytes;
  if (!lengthMatches(header, size) || !hashMatches(header, payload) ||
      !structureIsSound(payload, size - kHeaderBytes))
    return "";
  const flatbuffers::String *line = fb::GetPlan(payload)->command_line();
  return line && line->size() ? ": " + line->str() : "";
}

void checkVersion(const std::string &name, const Header &header, const uint8_t *bytes,
                  size_t size) {
  if (header.major == kPlanMajor && header.minor <= kPlanMinor)
    return;
  fail("plan version ",
       header.major == kPlanMajor ? "is newer than this runtime" : "does not fit this runtime",
       " (", name, "): plan version ", versionText(header.major, header.minor),
       ", runtime version ", versionText(kPlanMajor, kPlanMinor),
       "; re-run the compiler of this installation", storedCommandLine(header, bytes, size));
}

std::string hashText(const Header &header) {
  char text[33];
  std::snprintf(text, sizeof(text), "%016llx%016llx",
                static_cast<unsigned long long>(header.hash_high),
                static_cast<unsigned long long>(header.hash_low));
  return text;
}

std::string joinProblems(const std::string &name, const std::vector<std::string> &problems) {
  std::string message =
      concat("plan is not valid (", name, "): ", problems.size(),
             problems.size() == 1 ? " problem" : " problems", "; re-run the compiler");
  for (const std::string &problem : problems)
    message += "\n  " + problem;
  return message;
}

std::vector<uint8_t> readFile(const std::string &path, size_t limit) {
  std::error_code unreadable; // said below, when the file is opened
  if (std::filesystem::is_directory(path, unreadable))
    fail("cannot read plan (", path, "): it is a folder; name a plan file");
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail("cannot read plan (", path, "): ", std::strerror(errno),
         "; name a file made by sftc compile");
  std::vector<uint8_t> bytes;
  file.seekg(0, std::ios::end);
  bytes.resize(std::min(limit, size_t(std::max<std::streamoff>(file.tellg(), 0))));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char *>(bytes.data()), std::streamsize(bytes.size())))
    fail("cannot read plan (", path, "): ", std::strerror(errno), "; name a regular file");
  return bytes;
}

} // namespace

std::vector<uint8_t> sft::serializePlan(const fb::PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, &plan));
  Header header = {};
  std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
  header.major = kPlanMajor;
  header.minor = kPlanMinor;
  header.header_bytes = kHeaderBytes;
  header.payload_bytes = builder.GetSize();
  XXH128_hash_t hash = XXH3_128bits(builder.GetBufferPointer(), builder.GetSize());
  header.hash_low = hash.low64;
  header.hash_high = hash.high64;

  std::vector<uint8_t> bytes(kHeaderBytes + builder.GetSize());
  std::memcpy(bytes.data(), &header, kHeaderBytes);
  std::memcpy(bytes.data() + kHeaderBytes, builder.GetBufferPointer(), builder.GetSize());
  return bytes;
}

void sft::writePlan(const std::string &path, const std::vector<uint8_t> &bytes) {
  std::string temporary = path + ".tmp";
  std::ofstream file(temporary, std::ios::binary);
  file.write(reinterpret_cast<const char *>(bytes.data()), std::streamsize(bytes.size()));
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::string reason = std::strerror(errno);
    std::remove(temporary.c_str());
    fail("cannot write plan (", path, "): ", reason,
         "; choose a folder that can be written and has ", bytes.size(), " bytes left");
  }
}

PlanFile sft::readPlan(const std::string &path) {
  std::vector<uint8_t> bytes = readFile(path, SIZE_MAX);
  return readPlan(path, bytes.data(), bytes.size());
}

PlanFile sft::readPlan(const std::string &name, const uint8_t *bytes, size_t size) {
  // FlatBuffers reads 8-byte scalars in place.
  if (reinterpret_cast<uintptr_t>(bytes) % alignof(uint64_t) != 0) {
    std::vector<uint8_t> aligned(bytes, bytes + size);
    return readPlan(name, aligned.data(), aligned.size());
  }
  Header header = readHeader(name, bytes, size);
  checkVersion(name, header, bytes, size);
  if (!lengthMatches(header, size))
    failTruncated(name, size, header.payload_bytes + kHeaderBytes);
  const uint8_t *payload = bytes + kHeaderBytes;
  if (header.header_bytes != kHeaderBytes ||
      std::any_of(std::begin(header.zeros), std::end(header.zeros),
                  [](uint8_t byte) { return byte != 0; }) ||
      !hashMatches(header, payload))
    fail("plan file is damaged (", name, "): its contents do not match the hash ", hashText(header),
         " in its header; copy it again or re-run the compiler");
  if (!structureIsSound(payload, header.payload_bytes))
    fail("plan file has an unsound structure (", name,
         "): its hash is right but FlatBuffers refuses it; it was not "
         "written by sftc, re-run the compiler");

  PlanFile file;
  fb::GetPlan(payload)->UnPackTo(&file.plan);
  file.major = header.major;
  file.minor = header.minor;
  file.hash = hashText(header);
  std::vector<std::string> problems = verifyPlan(file.plan);
  if (!problems.empty())
    fail(joinProblems(name, problems));
  return file;
}

void sft::readPlanVersion(const std::string &path, uint16_t &major, uint16_t &minor) {
  std::vector<uint8_t> bytes = readFile(path, kHeaderBytes);
  Header header = readHeader(path, bytes.data(), bytes.size());
  major = header.major;
  minor = header.minor;
}
