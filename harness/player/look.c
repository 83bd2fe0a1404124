/*
 * Checks a trace before the player calls the driver for anything but the GPU's name. Gathers
 * everything that cannot be replayed. Neither this file nor the functions that it calls use the
 * driver.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/player/player.h"
#include "tools/trace/facts.h"

struct recorded {
    char gpu[256];
    int capability;
};

static void take_fact(void *context, const char *key, size_t key_bytes, const char *value,
                      size_t bytes) {
    struct recorded *recorded = context;
    if (key_bytes == 5 && memcmp(key, "\"gpu\"", 5) == 0 && bytes >= 2)
        snprintf(recorded->gpu, sizeof recorded->gpu, "%.*s", (int)bytes - 2, value + 1);
    if (key_bytes == 20 && memcmp(key, "\"compute_capability\"", 20) == 0)
        recorded->capability = atoi(value);
}

static void compare_gpu(struct player *p) {
    struct recorded recorded = {"", 0};
    bool cubins = false;
    char *line = facts_line(p->trace->facts);
    if (line)
        facts_each(line, take_fact, &recorded);
    free(line);
    for (uint32_t i = 1; i < p->trace->replay.n_modules; i++)
        cubins |= p->images[i].cubin;
    if (recorded.capability && recorded.capability != p->capability)
        notes_add(
            cubins ? &p->obstacles : &p->warnings,
            "it was recorded on a GPU of compute capability %d.%d%s%s%s, and this one has %d.%d",
            recorded.capability / 10, recorded.capability % 10, *recorded.gpu ? " (" : "",
            recorded.gpu, *recorded.gpu ? ")" : "", p->capability / 10, p->capability % 10);
    else if (*recorded.gpu && strcmp(recorded.gpu, p->gpu) != 0)
        notes_add(&p->warnings, "it was recorded on another GPU: %s, and this is %s", recorded.gpu,
                  p->gpu);
}

void player_look_alone(struct player *p) {
    player_memory_plan(p);
    player_plan(p);
    player_images(p);
}

void player_look(struct player *p) {
    player_look_alone(p);
    compare_gpu(p);
}

void player_forget(struct player *p) {
    for (uint32_t i = 1; i < p->trace->replay.n_modules; i++)
        free(p->images[i].bytes);
    while (p->chunks) {
        struct player_chunk *before = p->chunks->before;
        free(p->chunks);
        p->chunks = before;
    }
    void *const all[] = {p->images, p->used,        p->globals,     p->runs,
                         p->ops,    p->steps,       p->hosts,       p->patches,
                         p->inputs, p->input_bytes, p->input_pinned};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    notes_clear(&p->obstacles);
    notes_clear(&p->warnings);
}
