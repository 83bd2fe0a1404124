/*
 * Changes relocation slots that bypass this library (HAZARDS G1). An object opened with
 * RTLD_DEEPBIND, or bound before this library, has the driver's functions or the C library's dlsym
 * in its slots. Any thread, in look-ups and after each dlopen; takes no lock of its own. All of it
 * runs in the callback of dl_iterate_phdr, the only function of the loader that it calls: no object
 * comes or goes meanwhile. A slot is written only while no other thread is inside a dlopen, since
 * the loader may be relocating.
 */
#define _GNU_SOURCE
#include "shim/hook/slots.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/hook/elf.h"
#include "shim/hook/handshake.h"
#include "shim/hook/real.h"
#include "shim/hook/resolve.h"
#include "shim/plan/preset_choice.h"
#include "shim/stream/state.h"

#include "shim/base/forbid.h"

enum { LED_NAMES = 8, NAME_BYTES = 128, WHY_BYTES = 512, CHUNK_WORDS = 4096 };

static uint64_t seen_adds; /* atomic: the loader's count of added objects at the last look */

/* Written in the callback, hence by one thread at a time. */
static void *chunk[CHUNK_WORDS];
static char why_text[WHY_BYTES];
static bool why_given; /* atomic */

struct look {
    uint64_t adds;
    unsigned opening; /* dlopens of the caller's own */
    unsigned index, n;
    bool disturbed, moved; /* another thread is inside a dlopen; objects came between two walks */
    const char *why;
    unsigned led; /* number of objects with changed slots */
    char names[LED_NAMES][NAME_BYTES];
};

/* The object under examination. */
struct around {
    struct cus_object object;
    uintptr_t relro_low, relro_high; /* whole pages that the loader made read-only */
    bool open;                       /* these pages are writable for the moment */
    bool stuck;                      /* a slot could not be written */
    unsigned led;
    bool looks_up; /* a changed slot led to the driver or to dlsym */
};

static const struct {
    const char *name;
    void *here;
} loader[CUS_LOADERS] = {
#define FUNCTION(name) {#name, (void *)name},
    CUS_LOADER_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

/* ---- a slot ---- */

/* What holds the address of a function. */
#if defined(__x86_64__)
enum { CALL_SLOT = R_X86_64_JUMP_SLOT, DATA_SLOT = R_X86_64_GLOB_DAT, DATA_WORD = R_X86_64_64 };
#elif defined(__aarch64__)
enum {
    CALL_SLOT = R_AARCH64_JUMP_SLOT,
    DATA_SLOT = R_AARCH64_GLOB_DAT,
    DATA_WORD = R_AARCH64_ABS64
};
#else
#error "which relocations hold the address of a function?"
#endif

/* True: the loader has not searched for the function yet. The slot still leads into the object's
 * own stub. */
static bool is_unbound(const struct around *around, const ElfW(Sym) * symbol, uintptr_t word) {
    const ElfW(Phdr) *segment = cus_elf_segment(around->object.info, word);
    return symbol->st_shndx == SHN_UNDEF && segment && segment->p_flags & PF_X;
}

struct exporter {
    const char *name;
    uint32_t hash;
    void *function;
};

static int find_exporter(struct dl_phdr_info *info, size_t bytes, void *context) {
    struct exporter *exporter = context;
    struct cus_object object;
    (void)bytes;
    if (cus_elf_read(info, &object))
        exporter->function = cus_elf_exported(&object, exporter->name, exporter->hash);
    return exporter->function != NULL;
}

/* The stub of a driver function that the table does not know (HAZARDS G13). The loader would search
 * for it at the first call, and finds the first object that exports it. */
static void *unknown_here(const char *name, void *word) {
    struct exporter exporter = {.name = name, .hash = cus_elf_hash(name)};
    if (CUS_HAZARD(G13))
        dl_iterate_phdr(find_exporter, &exporter);
    return cus_real_holds(exporter.function) ? cus_resolve(exporter.function, name, 0) : word;
}

/* What a slot that holds `word` must hold; `word` itself if the slot is right. */
static void *driver_here(const struct around *around, const ElfW(Sym) * symbol, const char *name,
                         void *word) {
    if (cus_real_holds(word))
        return cus_resolve(word, name, 0);
    if (!is_unbound(around, symbol, (uintptr_t)word))
        return word;
    int row = cus_api_find(name);
    if (row < 0)
        return unknown_here(name, word);
    return cus_entry_hooks[row] && !cus_real_others()->front[row] ? cus_entry_hooks[row] : word;
}

static void *loader_here(const struct around *around, const ElfW(Sym) * symbol, const char *name,
                         void *word) {
    for (unsigned i = 0; i < CUS_LOADERS; i++) {
        if (strcmp(name, loader[i].name) != 0 || word == loader[i].here)
            continue;
        const struct cus_others *others = cus_real_others();
        uintptr_t at = (uintptr_t)word;
        bool unbound = !others->loader_in_front[i] && is_unbound(around, symbol, at);
        bool c_library = at >= others->loader_low && at < others->loader_high;
        return unbound || c_library ? loader[i].here : word;
    }
    return word;
}

static bool open_pages(struct around *around, uintptr_t slot) {
    const ElfW(Phdr) *segment = cus_elf_segment(around->object.info, slot);
    if (!segment || !(segment->p_flags & PF_W))
        return false;
    if (slot < around->relro_low || slot >= around->relro_high || around->open)
        return true;
    around->open = mprotect((void *)around->relro_low, around->relro_high - around->relro_low,
                            PROT_READ | PROT_WRITE) == 0;
    return around->open;
}

/* A quick check: the first letters of most names show that they are not of interest. */
static bool may_concern(const struct cus_object *object, size_t offset) {
    if (offset + 2 >= (size_t)(object->texts_end - object->texts))
        return false;
    const char *name = object->texts + offset;
    return (name[0] == 'c' && name[1] == 'u') || (name[0] == 'd' && name[1] == 'l');
}

static void lead(struct around *around, const ElfW(Rela) * entry) {
    const struct cus_object *object = &around->object;
    unsigned type = (unsigned)ELF64_R_TYPE(entry->r_info);
    if (type != CALL_SLOT && type != DATA_SLOT && type != DATA_WORD)
        return;
    const ElfW(Sym) *symbol = object->symbols + ELF64_R_SYM(entry->r_info);
    if (!object->symbols || symbol >= object->symbols_end || !may_concern(object, symbol->st_name))
        return;
    const char *name = cus_elf_text(object, symbol->st_name);
    bool driver = name[0] == 'c' && name[2] >= 'A' && name[2] <= 'Z';
    if (name[0] == 'c' && !driver)
        return;
    uintptr_t slot = object->base + entry->r_offset;
    const ElfW(Phdr) *segment = cus_elf_segment(object->info, slot);
    if (!segment || !(segment->p_flags & PF_R) || slot % sizeof(void *) ||
        cus_elf_segment(object->info, slot + sizeof(void *) - 1) != segment)
        return;
    void *word = __atomic_load_n((void **)slot, __ATOMIC_RELAXED);
    void *here = (driver ? driver_here : loader_here)(around, symbol, name, word);
    if (here == word)
        return;
    if (!open_pages(around, slot)) {
        around->stuck = true;
        return;
    }
    __atomic_store_n((void **)slot, here, __ATOMIC_RELEASE);
    /* A slot that was not bound yet might have been bound to this library, so it does not count. */
    bool past = !is_unbound(around, symbol, (uintptr_t)word);
    around->led += past;
    around->looks_up |= past && (driver || here == loader[CUS_LOADER_dlsym].here);
}

/* ---- copies that a constructor made ---- */

/* True: one of the words that were read is a function of the driver that this library watches. */
static bool any_copy(size_t words) {
    for (size_t i = 0; i < words; i++) {
        int row = cus_real_holds(chunk[i]) ? cus_real_row(chunk[i], NULL) : -1;
        if (row >= 0 && cus_entry_hooks[row])
            return true;
    }
    return false;
}

/* What is wrong with the object's data; NULL: nothing. The system call that reads the data fails
 * if the object has protected its memory, or if a filter of the process (seccomp) refuses the
 * call. */
static const char *find_copy(const struct around *around) {
    const struct dl_phdr_info *info = around->object.info;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W))
            continue;
        uintptr_t at = info->dlpi_addr + segment->p_vaddr, end = at + segment->p_memsz;
        at = (at + sizeof(void *) - 1) & ~(sizeof(void *) - 1);
        while (at + sizeof(void *) <= end) {
            size_t bytes = end - at < sizeof chunk ? end - at : sizeof chunk;
            struct iovec to = {chunk, bytes}, from = {(void *)at, bytes};
            ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
            if (got < (ssize_t)sizeof(void *))
                return got < 0 && errno == EFAULT
                           ? " has data that cannot be read, and was bound past this library"
                           : " was bound past this library, and process_vm_readv is refused, by "
                             "which its data is read";
            if (any_copy((size_t)got / sizeof(void *)))
                return " holds functions of the driver that it found past this library";
            at += (size_t)got & ~(sizeof(void *) - 1);
        }
    }
    return NULL;
}

/* ---- an object ---- */

static void find_relro(struct around *around) {
    const struct dl_phdr_info *info = around->object.info;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_GNU_RELRO)
            continue;
        around->relro_low = low & ~(page - 1);
        around->relro_high = (low + segment->p_memsz) & ~(page - 1);
    }
}

static bool is_left_alone(const struct dl_phdr_info *info) {
    const struct cus_others *others = cus_real_others();
    bool alone = cus_elf_holds(info, (uintptr_t)&is_left_alone) ||
                 cus_elf_holds(info, (uintptr_t)cus_dlsym_find()) ||
                 cus_elf_holds(info, (uintptr_t)cus_real_own(CUS_ROW_cuInit));
    for (unsigned i = 0; i < others->n; i++)
        alone |= cus_elf_holds(info, others->list[i].low);
    return alone;
}

static const char *give_why(const char *path, const char *what) {
    const char *parts[] = {path, what};
    char *at = why_text;
    if (__atomic_exchange_n(&why_given, true, __ATOMIC_RELAXED))
        return NULL;
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *from = parts[i]; *from && at + 1 < why_text + sizeof why_text; from++)
            *at++ = *from;
    *at = 0;
    return why_text;
}

static void note_led(struct look *look, const struct dl_phdr_info *info) {
    if (look->led < LED_NAMES) {
        const char *from = *info->dlpi_name ? cus_elf_base(info->dlpi_name) : "the program";
        char *to = look->names[look->led];
        for (unsigned i = 0; from[i] && i + 1 < NAME_BYTES; i++)
            to[i] = from[i];
    }
    look->led++;
}

static void look_at(struct look *look, const struct dl_phdr_info *info) {
    struct around around = {0};
    const char *route = cus_routes_see(info->dlpi_name);
    cus_preset_see(info->dlpi_name);
    if (route)
        look->why = route;
    if (!CUS_HAZARD(G1) || is_left_alone(info) || !cus_elf_read(info, &around.object))
        return;
    find_relro(&around);
    for (size_t i = 0; i < around.object.calls.n; i++)
        lead(&around, &around.object.calls.first[i]);
    for (size_t i = 0; i < around.object.data.n; i++)
        lead(&around, &around.object.data.first[i]);
    if (around.open)
        mprotect((void *)around.relro_low, around.relro_high - around.relro_low, PROT_READ);
    if (around.led)
        note_led(look, info);
    const char *what = NULL;
    if (around.stuck)
        what = " calls the driver past this library, and cannot be led";
    else if (around.looks_up)
        what = find_copy(&around);
    if (what && !look->why)
        look->why = give_why(*info->dlpi_name ? info->dlpi_name : "the program", what);
}

/* ---- which objects are new ---- */

static int count_objects(struct dl_phdr_info *info, size_t bytes, void *context) {
    struct look *look = context;
    if (bytes < offsetof(struct dl_phdr_info, dlpi_subs))
        return 1;
    look->adds = info->dlpi_adds;
    if (look->adds == __atomic_load_n(&seen_adds, __ATOMIC_RELAXED))
        return 1;
    look->n++;
    return 0;
}

/* The loader appends new objects. Those added since the last look are therefore the last of the
 * list, if they are still there. */
static int visit(struct dl_phdr_info *info, size_t bytes, void *context) {
    struct look *look = context;
    (void)bytes;
    if (look->index == 0) {
        look->disturbed = cus_opening_threads() != look->opening;
        look->moved = look->adds != info->dlpi_adds;
    }
    if (look->disturbed || look->moved)
        return 1;
    unsigned index = look->index++;
    uint64_t added = look->adds - __atomic_load_n(&seen_adds, __ATOMIC_RELAXED);
    if (look->n - index <= added)
        look_at(look, info);
    return 0;
}

static void tell(const struct look *look) {
    for (unsigned i = 0; i < look->led && i < LED_NAMES; i++) {
        cus_log(CUS_INFO, "hook", "%s was bound past this library: led here", look->names[i]);
        cus_handshake_found(CUS_FOUND_LED, look->names[i]);
    }
}

/* True: the search is complete, or another thread will complete it. */
static bool look_once(unsigned opening, const char **why) {
    struct look look = {.opening = opening};
    dl_iterate_phdr(count_objects, &look);
    if (!look.n)
        return true;
    dl_iterate_phdr(visit, &look);
    if (look.disturbed || look.moved)
        return look.disturbed;
    tell(&look);
    *why = look.why;
    __atomic_store_n(&seen_adds, look.adds, __ATOMIC_RELAXED);
    return true;
}

const char *cus_slots_look(bool from_open) {
    int error = errno;
    const char *why = NULL;
    while (!look_once(from_open, &why))
        ;
    cus_preset_choose();
    errno = error;
    return why;
}
