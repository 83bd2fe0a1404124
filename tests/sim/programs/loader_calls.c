/*
 * loader_calls OPENER [cuda]: prints what dlopen and similar calls answer. OPENER opens a library
 * beside it by a bare name. With `cuda` the program launches first, so that the library defers ops.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef int cu_fn();

static void say(const char *what, void *handle) {
    const char *error = handle ? "opened" : dlerror();
    printf("%s: %s; ", what, error ? error : "no error");
    printf("then %s\n", dlerror() ? "an error more" : "none");
}

static void open_it(const char *what, const char *name, int flags) {
    errno = 0;
    void *handle = dlopen(name, flags);
    int error = errno;
    say(what, handle);
    printf("errno %d\n", handle ? error : 0);
    if (handle)
        printf("closed %d\n", dlclose(handle));
}

int main(int argc, char **argv) {
    if (argc > 2) {
        void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
        cu_fn *init = cuda ? (cu_fn *)dlsym(cuda, "cuInit") : NULL;
        printf("cuInit: %d\n", init ? init(0) : -1);
    }
    open_it("itself", NULL, RTLD_NOW);
    open_it("no such name", "libnosuchthing.so.7", RTLD_NOW);
    open_it("no such path", "/nosuch/libthing.so", RTLD_LAZY);
    open_it("no flags", "libm.so.6", 0);
    open_it("not there yet", "libm.so.6", RTLD_NOW | RTLD_NOLOAD);
    open_it("a bare name", "libm.so.6", RTLD_NOW);
    open_it("beside the program", "libplugin_opener.so", RTLD_NOW);
    open_it("from its origin", "$ORIGIN/nosuch.so", RTLD_NOW);
    open_it("by its path", argv[1], RTLD_NOW | RTLD_DEEPBIND);
    say("a space", dlmopen(LM_ID_BASE, argv[1], RTLD_NOW));
    say("a space by name", dlmopen(LM_ID_BASE, "libnosuchthing.so.7", RTLD_NOW));
    void *opener = dlopen(argv[1], RTLD_NOW);
    void *(*open_beside)(const char *, int) =
        (void *(*)(const char *, int))dlsym(opener, "plugin_open");
    if (!open_beside)
        return 1;
    say("beside the opener", open_beside("libplugin_looks_up.so", RTLD_NOW));
    say("beside the opener, none", open_beside("libplugin_nosuch.so", RTLD_NOW));
    return 0;
}
