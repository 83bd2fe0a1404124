/*
 * Names of kernels without a demangler: which identifier of a mangled name is the function's own?
 *
 * A scanner over Itanium-mangled names (and nvcc's __nv_static_ prefix). Pure functions of one
 * text: no allocation, no lock, no CUDA; never reads behind the final NUL whatever the text is. A
 * text that is no mangled name, or one that the scanner does not understand, is its own base name.
 */
#ifndef CUSPLICE_PLAN_NAME_H
#define CUSPLICE_PLAN_NAME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The last identifier, without namespaces, classes, template arguments and parameters:
 * `_ZN2at6native6kernelIfEEvPT_` gives `kernel`. Always NUL-terminated, cut where `bytes` are too
 * few. NULL counts as "". */
void cus_name_base(const char *mangled, char *out, size_t bytes);

/* The same with its namespaces and classes: `at::native::kernel`. Template arguments are left out.
 */
void cus_name_qualified(const char *mangled, char *out, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
