/*
 * Conditions that comments promise.
 *
 * Builds with CUS_CHECKS (asan, tsan, mutate, libfuzzer: .bazelrc) end the process where one does not
 * hold. In the library that is shipped a condition is not evaluated, and leaves no code.
 */
#ifndef CUSPLICE_BASE_CHECK_H
#define CUSPLICE_BASE_CHECK_H

#ifdef CUS_CHECKS
/* Says what did not hold, and where, and aborts. */
__attribute__((noreturn)) void cus_check_failed(const char *condition, const char *file, int line);
#define CUS_CHECK(condition)                                                                       \
    ((condition) ? (void)0 : cus_check_failed(#condition, __FILE__, __LINE__))
#else
#define CUS_CHECK(condition) ((void)0)
#endif

#endif
