/*
 * Names of kernels without a demangler: finds the function's own identifier in a mangled name.
 * pattern.c, shim/stream and the tools use it.
 * Scans Itanium-mangled names, also with nvcc's __nv_static_ prefix. Pure functions of one text: no
 * allocation, lock or CUDA. They never read behind the final NUL, whatever the text is. A text that
 * is not a mangled name, or that the scanner does not know, is its own base name.
 */
#ifndef CUSPLICE_PLAN_NAME_H
#define CUSPLICE_PLAN_NAME_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The last identifier, without namespaces, classes, template arguments and parameters:
 * `_ZN2at6native6kernelIfEEvPT_` gives `kernel`. Always ends with a NUL; cut if `bytes` are too
 * few. NULL counts as "". */
void cus_name_base(const char *mangled, char *out, size_t bytes);

/* The same with namespaces and classes, but without template arguments: `at::native::kernel`. */
void cus_name_qualified(const char *mangled, char *out, size_t bytes);

/* The forms in which people have the name of a kernel. */
enum cus_name_form {
    CUS_NAME_NONE,      /* it is none of those below */
    CUS_NAME_BASE,      /* kernel */
    CUS_NAME_QUALIFIED, /* at::native::kernel */
    CUS_NAME_DEMANGLED, /* void at::native::kernel<float>(float*), as demanglers show it */
};
/* Finds both names of a kernel in a text that is not mangled. `wild`: characters that count as
 * letters, for patterns; else "". Both texts are "" for CUS_NAME_NONE, and cut if too long. */
enum cus_name_form cus_name_shown(const char *shown, const char *wild, char *base,
                                  size_t base_bytes, char *qualified, size_t qualified_bytes);

#ifdef __cplusplus
}
#endif

#endif
