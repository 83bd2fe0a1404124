// Makes a case smaller as long as it still differs.
#ifndef TESTS_FUZZ_MINIMISE_H
#define TESTS_FUZZ_MINIMISE_H

#include <functional>

#include "tests/fuzz/case.h"

namespace fuzz {

// `differs` runs a case (more than once where chance has a say). Gives the smallest case that it
// found and that differs; asks at most `budget` times.
Case Minimise(const Case &c, const std::function<bool(const Case &)> &differs, unsigned budget);

} // namespace fuzz

#endif
