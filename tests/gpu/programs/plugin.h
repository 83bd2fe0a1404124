/* What plugin_host and its plugins share. Both launch `chain` of kernels/ on one stream. */
#ifndef CUSPLICE_TESTS_GPU_PROGRAMS_PLUGIN_H
#define CUSPLICE_TESTS_GPU_PROGRAMS_PLUGIN_H

#include <cuda.h>

struct plugin_call {
    CUfunction chain;
    CUstream stream;
    CUdeviceptr x;
    unsigned a, b; /* x = a * x + b */
    int n;
    void (*before)(void); /* what the program does before a constructor's call; NULL: nothing */
};

/* The plugin's export of this name: one launch. */
typedef CUresult plugin_launch_fn(const struct plugin_call *call);
#define PLUGIN_LAUNCH "plugin_launch"
/* The environment variable with the address of a call that a plugin's constructor makes. */
#define PLUGIN_AT_ONCE "PLUGIN_AT_ONCE"
/* The export of libplugin_opener.so: dlopen on its own behalf, for what lies beside it. */
typedef void *plugin_open_fn(const char *name, int flags);
#define PLUGIN_OPEN "plugin_open"

#endif
