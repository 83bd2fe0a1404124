/*
 * In the library with points alone: were it in libsched.so, the simulator would take that for
 * ThreadSanitizer's runtime, which leaves other addresses free.
 */
void __tsan_init(void);
void __tsan_init(void) {}
