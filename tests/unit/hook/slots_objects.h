// Objects as the loader maps them, and a look at them.
#ifndef CUSPLICE_TESTS_UNIT_HOOK_SLOTS_OBJECTS_H
#define CUSPLICE_TESTS_UNIT_HOOK_SLOTS_OBJECTS_H

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

extern "C" {
#include "shim/api/api.h"
#include "shim/hook/slots.h"
#include "tests/unit/hook/slots_world.h"
}

namespace {

const size_t kPage = (size_t)sysconf(_SC_PAGESIZE);
const size_t kSymbols = 16;
const int kRead = PF_R, kData = PF_R | PF_W, kCode = PF_R | PF_X;

void *Driver(const char *name) {
    return slots_driver + cus_api_find(name);
}

// An object as the loader maps it: a page of tables, one that it made read-only, `kWords` pages of
// data, and one of code.
class Object {
  public:
    enum { kTables, kRelro, kWords, kCodePage = kWords + 12, kPages };

    explicit Object(const char *name = "/lib/libplugin.so") : name_(name) {
        memory_ = static_cast<char *>(mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        phdrs = {Segment(PT_GNU_RELRO, kRead, At(kRelro), kPage),
                 Segment(PT_LOAD, kRead, At(kTables), kPage),
                 Segment(PT_LOAD, kData, At(kRelro), (kCodePage - kRelro) * kPage),
                 Segment(PT_LOAD, kCode, At(kCodePage), kPage),
                 Segment(PT_DYNAMIC, kData, At(kTables), 16 * sizeof(ElfW(Dyn)))};
    }
    ~Object() { munmap(memory_, kPages * kPage); }
    Object(const Object &) = delete;

    char *At(size_t page, size_t offset = 0) const { return memory_ + page * kPage + offset; }
    void **Word(size_t page, size_t offset) const {
        return reinterpret_cast<void **>(At(page, offset));
    }
    void *Code() const { return At(kCodePage, 64); }
    ElfW(Phdr) Segment(unsigned type, int flags, const char *at, size_t bytes) const {
        ElfW(Phdr) segment = {};
        segment.p_type = type;
        segment.p_flags = (unsigned)flags;
        segment.p_vaddr = (size_t)(at - memory_);
        segment.p_memsz = bytes;
        return segment;
    }
    // A symbol: one of another object, if it is not `defined`.
    size_t Symbol(const std::string &name, bool defined = false) {
        SymbolAt(n_symbols_)->st_name = (unsigned)texts_.size();
        SymbolAt(n_symbols_)->st_shndx = defined ? 1 : SHN_UNDEF;
        texts_ += name + '\0';
        return n_symbols_++;
    }
    ElfW(Sym) * SymbolAt(size_t i) const {
        return reinterpret_cast<ElfW(Sym) *>(At(kTables, kPage)) - kSymbols + i;
    }
    void Relocate(const void *slot, size_t symbol, unsigned type = slots_types[0],
                  bool data = false) {
        ElfW(Rela) entry = {};
        entry.r_offset = reinterpret_cast<uintptr_t>(slot) - reinterpret_cast<uintptr_t>(memory_);
        entry.r_info = ELF64_R_INFO(symbol, type);
        (data ? data_ : calls_).push_back(entry);
    }
    // The next slot of the data, with a word, of an undefined symbol.
    void **Slot(const std::string &name, void *word, bool defined = false) {
        void **slot = Word(kWords, 8 * next_++);
        *slot = word;
        Relocate(slot, Symbol(name, defined));
        return slot;
    }
    // Exports this function, which is elsewhere.
    void Export(const std::string &name, void *function) {
        size_t i = Symbol(name, true);
        SymbolAt(i)->st_value =
            reinterpret_cast<uintptr_t>(function) - reinterpret_cast<uintptr_t>(memory_);
        SymbolAt(i)->st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
        exported_ = i;
    }

    const dl_phdr_info *Info() {
        auto *dynamic = reinterpret_cast<ElfW(Dyn) *>(At(kTables));
        auto put = [&](long tag, uintptr_t value) {
            dynamic->d_tag = tag;
            dynamic++->d_un.d_val = value;
        };
        auto table = [&](long tag, size_t offset, const void *from, size_t bytes) {
            if (bytes)
                memcpy(At(kTables, offset), from, bytes);
            put(tag, offset);
            return bytes;
        };
        EXPECT_LE(texts_.size(), 768u);
        put(DT_STRSZ, table(DT_STRTAB, 256, texts_.data(), texts_.size()));
        size_t calls = table(DT_JMPREL, 1024, calls_.data(), calls_.size() * sizeof calls_[0]);
        size_t data = table(DT_RELA, 2048, data_.data(), data_.size() * sizeof data_[0]);
        put(DT_PLTRELSZ, calls - (short_tables ? sizeof calls_[0] : 0));
        put(DT_RELASZ, data - (short_tables ? sizeof data_[0] : 0));
        put(DT_PLTREL, DT_RELA);
        if (!no_symbols)
            put(DT_SYMTAB, kPage - kSymbols * sizeof(ElfW(Sym)));
        uint32_t hash[3 + kSymbols] = {1, kSymbols, (uint32_t)exported_}; // one bucket
        if (exported_)
            table(DT_HASH, 3072, hash, sizeof hash);
        put(DT_NULL, 0);
        info_ = {};
        info_.dlpi_addr = reinterpret_cast<uintptr_t>(memory_);
        info_.dlpi_name = name_.c_str();
        info_.dlpi_phdr = phdrs.data();
        info_.dlpi_phnum = (ElfW(Half))phdrs.size();
        return &info_;
    }

    std::vector<ElfW(Phdr)> phdrs;
    bool no_symbols = false, short_tables = false; // the last relocation is not in its table

  private:
    std::string name_, texts_ = std::string(1, '\0');
    char *memory_;
    size_t n_symbols_ = 1, next_ = 0, exported_ = 0;
    std::vector<ElfW(Rela)> calls_, data_;
    dl_phdr_info info_;
};

class Slots : public testing::Test {
  protected:
    void SetUp() override { slots_world_reset(); }
    // The loader has added these, and the library looks.
    const char *Look(std::vector<Object *> objects, bool from_open = false) {
        for (Object *object : objects)
            slots_world.objects[slots_world.n++] = object->Info();
        slots_world.adds += objects.size();
        return cus_slots_look(from_open);
    }
    // What is in a slot of this name and word after a look.
    void *After(const std::string &name, void *word, bool defined = false) {
        slots_world_reset_keeping_others();
        Object object;
        void **slot = object.Slot(name, word == kOwnCode ? object.Code() : word, defined);
        void *before = *slot;
        EXPECT_EQ(Look({&object}), nullptr);
        slots_world.n = 0; // it is unloaded
        return *slot == before ? word : *slot;
    }
    static void slots_world_reset_keeping_others() {
        cus_others others = slots_others;
        slots_world_reset();
        slots_others = others;
    }
    static std::vector<std::string> Found() {
        return std::vector<std::string>(slots_world.found, slots_world.found + slots_world.n_found);
    }

    char elsewhere_[8];
    char own_[1];
    void *const kOwnCode = own_; // stands for an address of the object's own code
};

} // namespace

#endif
