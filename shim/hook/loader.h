/*
 * The loader's functions that this library exports, so that it sees objects come and go.
 */
#ifndef CUSPLICE_HOOK_LOADER_H
#define CUSPLICE_HOOK_LOADER_H

/* For calls that this library makes itself: they call the next dlopen or dlclose in the global
 * scope, which may be a tool's. The library does not look at what they open. */
void *cus_loader_open(const char *name, int flags);
int cus_loader_close(void *handle);

/* In assembly: calls function(a0, a1, a2). The return address is `there`, in the object for which
 * the call is made. What has to stand there, find_way_back in loader.c looks for. */
void *cus_call_from(const void *a0, const void *a1, const void *a2, void *function,
                    const void *there);

#endif
