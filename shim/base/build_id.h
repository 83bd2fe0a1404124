/*
 * The build id of a mapped program or library: what tells one build of it from another.
 */
#ifndef CUSPLICE_BASE_BUILD_ID_H
#define CUSPLICE_BASE_BUILD_ID_H

#include <link.h>
#include <stddef.h>

/* In hexadecimal digits; "" where it has none, or none that fits. In a callback of dl_iterate_phdr.
 */
void cus_build_id(const struct dl_phdr_info *info, char *to, size_t bytes);

#endif
