/*
 * Finds modules, functions and variables in the player's context. Whatever is missing is an
 * obstacle.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "harness/player/player.h"

static bool lacks(struct player *p, bool there) {
    if (!there)
        notes_add(&p->obstacles, "the driver is older than 12.0, and the trace has libraries");
    return !there;
}

static void load_module(struct player *p, const struct cst_module *module) {
    struct player_image *image = &p->images[module->id];
    const char *file = cst_string(p->trace, module->file);
    CUresult result;
    if (!image->bytes || (module->library && lacks(p, player_cu.cuLibraryLoadData != NULL)))
        return;
    if (module->library)
        result = player_cu.cuLibraryLoadData(&image->library, image->bytes, NULL, NULL, 0, NULL,
                                             NULL, 0);
    else
        result = player_cu.cuModuleLoadData(&image->module, image->bytes);
    if (result != CUDA_SUCCESS)
        notes_add(&p->obstacles,
                  "the code of module %u (%s, %" PRIu64 " bytes) cannot be loaded: %s", module->id,
                  *file ? file : "out of the trace", module->bytes, player_api_error(result));
}

CUresult player_set(const struct player *p, uint32_t id) {
    const struct cst_code *code = p->trace->replay.codes[id];
    const struct cst_setting *settings = cst_code_settings(code);
    CUfunction function = p->functions[id];
    bool kernel = code->kernel && p->images[code->module].library;
    CUresult result = CUDA_SUCCESS;
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < code->n_attributes; i++) {
        CUfunction_attribute attribute = (CUfunction_attribute)settings[i].attribute;
        if (kernel)
            result = player_cu.cuKernelSetAttribute(attribute, settings[i].value,
                                                    (CUkernel)function, p->device);
        else
            result = player_cu.cuFuncSetAttribute(function, attribute, settings[i].value);
    }
    return result;
}

/* Finds the function as the kind of handle that the program used. */
static CUresult find_function(struct player *p, const struct cst_code *code) {
    const struct player_image *image = &p->images[code->module];
    const char *name = cst_string(p->trace, code->name);
    CUfunction *function = &p->functions[code->id];
    CUkernel kernel = NULL;
    CUresult result;
    if (!image->library)
        result = player_cu.cuModuleGetFunction(function, image->module, name);
    else
        result = player_cu.cuLibraryGetKernel(&kernel, image->library, name);
    if (result == CUDA_SUCCESS && kernel && code->kernel)
        *function = (CUfunction)kernel;
    else if (result == CUDA_SUCCESS && kernel)
        result = player_cu.cuKernelGetFunction(function, kernel);
    return result == CUDA_SUCCESS ? player_set(p, code->id) : result;
}

static void find_global(struct player *p, struct player_global *global) {
    const struct cst_span *span = global->span;
    const struct player_image *image = &p->images[span->module];
    const char *name = cst_string(p->trace, span->name);
    size_t bytes = 0;
    CUresult result = CUDA_ERROR_NOT_FOUND;
    if (image->library)
        result = player_cu.cuLibraryGetGlobal(&global->here, &bytes, image->library, name);
    else if (image->module)
        result = player_cu.cuModuleGetGlobal(&global->here, &bytes, image->module, name);
    if (result != CUDA_SUCCESS || bytes < span->bytes) {
        global->here = 0;
        return;
    }
    global->contents = player_need(malloc(span->bytes + 1));
    player_check(player_cu.cuMemcpyDtoH(global->contents, global->here, span->bytes),
                 "cuMemcpyDtoH");
}

static int by_span(const void *a, const void *b) {
    const struct cst_span *x = ((const struct player_global *)a)->span,
                          *y = ((const struct player_global *)b)->span;
    return x < y ? -1 : x > y;
}

CUdeviceptr player_global_at(const struct player *p, const struct cst_span *span) {
    struct player_global asked = {.span = span};
    const struct player_global *found =
        p->n_globals ? bsearch(&asked, p->globals, p->n_globals, sizeof asked, by_span) : NULL;
    return found ? found->here : 0;
}

static int by_address(const void *a, const void *b) {
    const struct cst_span *x = (*(const struct player_global *const *)a)->span,
                          *y = (*(const struct player_global *const *)b)->span;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->head.ns < y->head.ns ? -1 : x->head.ns > y->head.ns;
}

/* If several variables were at one address one after the other, finds the first. */
static void find_places(struct player *p) {
    size_t n = 0;
    p->places = player_need(calloc(p->n_globals + 1, sizeof *p->places));
    for (size_t i = 0; i < p->n_globals; i++)
        if (p->globals[i].here)
            p->places[n++] = &p->globals[i];
    qsort(p->places, n, sizeof *p->places, by_address);
    for (size_t i = 0; i < n; i++)
        if (!i || p->places[i]->span->address != p->places[p->n_places - 1]->span->address)
            p->places[p->n_places++] = p->places[i];
}

void player_load(struct player *p) {
    const struct cst_replay *replay = &p->trace->replay;
    for (uint32_t i = 1; i < replay->n_modules; i++)
        if (replay->modules[i])
            load_module(p, replay->modules[i]);
    p->functions = player_need(calloc(replay->n_codes + (size_t)1, sizeof *p->functions));
    for (uint32_t i = 1; i < replay->n_codes; i++) {
        const struct cst_code *code = replay->codes[i];
        if (!code || !p->used[i] ||
            (!p->images[code->module].library && !p->images[code->module].module))
            continue;
        CUresult result = find_function(p, code);
        if (result != CUDA_SUCCESS)
            notes_add(&p->obstacles, "kernel %s: not as it was in module %u: %s",
                      cst_string(p->trace, code->name), code->module, player_api_error(result));
    }
    for (size_t i = 0; i < p->n_globals; i++)
        find_global(p, &p->globals[i]);
    find_places(p);
}
