/* Mangled C++ names as people read them. names.c and kind_names.c call it, on one thread. */
#ifndef CUSPLICE_TOOLS_TRACE_DEMANGLE_H
#define CUSPLICE_TOOLS_TRACE_DEMANGLE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Names that are longer before or behind are left as they are. */
enum { DEMANGLE_FROM = 16 << 10, DEMANGLE_TO = 64 << 10 };

/* What the C++ runtime makes of a mangled name; the caller frees it. NULL: it is none, or it would
 * take more time or memory than a name may (a tenth of a second, 32 MiB). */
char *demangle(const char *mangled);

#ifdef __cplusplus
}
#endif

#endif
