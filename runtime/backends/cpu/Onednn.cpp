// Written for oneDNN 2.x, where a primitive is made from an operation descriptor.

#include "runtime/backends/cpu/Onednn.h"

#include "runtime/base/Error.h"

#include <oneapi/dnnl/dnnl.hpp>

// Of libgomp; its header is gcc's own.
extern "C" void omp_set_num_threads(int);

using namespace sft;
using namespace sft::cpu;

namespace {

dnnl::engine &engine() {
  static dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

/// The number of OpenMP threads belongs to the thread that sets it.
void useOneThread() {
  thread_local bool done = false;
  if (!done)
    omp_set_num_threads(1);
  done = true;
}

dnnl::memory::data_type dataType(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return dnnl::memory::data_type::f32;
  case DType::BF16:
    return dnnl::memory::data_type::bf16;
  default:
    failInternal("matmul of ", dtypeName(dtype));
  }
}

} // namespace

struct Product::Parts {
  dnnl::memory::desc a, b, bias, c, scratch;
  dnnl::matmul primitive;
  bool hasBias;
};

Product::Product(const ProductShape &s) : parts_(std::make_unique<Parts>()) {
  useOneThread();
  Parts &p = *parts_;
  using Dims = dnnl::memory::dims;
  p.hasBias = s.hasBias;
  p.a = {Dims{s.rows, s.inner}, dataType(s.a), Dims{s.aRowStride, s.aInnerStride}};
  p.b = {Dims{s.inner, s.columns}, dataType(s.b), Dims{s.bInnerStride, s.bColumnStride}};
  p.c = {Dims{s.rows, s.columns}, dataType(s.c), Dims{s.cRowStride, 1}};
  if (s.hasBias)
    p.bias = {Dims{1, s.columns}, dataType(s.bias), Dims{s.columns, 1}};
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.accumulate) {
    dnnl::post_ops add;
    add.append_sum(1.0f);
    attributes.set_post_ops(add);
  }
  try {
    dnnl::matmul::desc operation =
        s.hasBias ? dnnl::matmul::desc(p.a, p.b, p.bias, p.c) : dnnl::matmul::desc(p.a, p.b, p.c);
    dnnl::matmul::primitive_desc description(operation, attributes, engine());
    p.scratch = description.scratchpad_desc();
    p.primitive = dnnl::matmul(description);
  } catch (const dnnl::error &error) {
    fail("oneDNN cannot multiply (", s.rows, " x ", s.inner, " by ", s.inner, " x ", s.columns,
         "): ", error.what(), "; use --reference");
  }
}

Product::~Product() = default;
Product::Product(Product &&) noexcept = default;

size_t Product::scratchBytes() const { return parts_->scratch.get_size(); }

void Product::run(const void *a, const void *b, const void *bias, void *c, void *scratch) const {
  useOneThread();
  thread_local dnnl::stream stream(engine());
  const Parts &p = *parts_;
  auto view = [](const dnnl::memory::desc &description, const void *data) {
    return dnnl::memory(description, engine(), const_cast<void *>(data));
  };
  std::unordered_map<int, dnnl::memory> arguments = {
      {DNNL_ARG_SRC, view(p.a, a)},
      {DNNL_ARG_WEIGHTS, view(p.b, b)},
      {DNNL_ARG_DST, view(p.c, c)},
      {DNNL_ARG_SCRATCHPAD, view(p.scratch, scratch)}};
  if (p.hasBias)
    arguments.emplace(DNNL_ARG_BIAS, view(p.bias, bias));
  p.primitive.execute(stream, arguments);
}
