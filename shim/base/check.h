/*
 * Checks of conditions that comments promise.
 *
 * In builds with CUS_CHECKS (asan, tsan, mutate, libfuzzer: .bazelrc), a condition that does not
 * hold ends the process. The shipped library does not evaluate the conditions, and has no code for
 * them.
 */
#ifndef CUSPLICE_BASE_CHECK_H
#define CUSPLICE_BASE_CHECK_H

#ifdef CUS_CHECKS
/* Reports the condition and its place, and aborts. */
__attribute__((noreturn)) void cus_check_failed(const char *condition, const char *file, int line);
#define CUS_CHECK(condition)                                                                       \
    ((condition) ? (void)0 : cus_check_failed(#condition, __FILE__, __LINE__))
#else
#define CUS_CHECK(condition) ((void)0)
#endif

#endif
