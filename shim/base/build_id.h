/*
 * The build id of a mapped program or library, which tells its builds apart.
 */
#ifndef CUSPLICE_BASE_BUILD_ID_H
#define CUSPLICE_BASE_BUILD_ID_H

#include <link.h>
#include <stddef.h>

/* Writes the build id in hexadecimal digits; "" if there is none or it does not fit. For use in
 * a callback of dl_iterate_phdr. */
void cus_build_id(const struct dl_phdr_info *info, char *to, size_t bytes);

#endif
