// Promise: a slot is changed if, and only if, it holds a function of the driver or of the loader
// past the library, and nothing outside of an object's own tables and data is read or written.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
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
        put(DT_PLTRELSZ, table(DT_JMPREL, 1024, calls_.data(), calls_.size() * sizeof calls_[0]));
        put(DT_RELASZ, table(DT_RELA, 2048, data_.data(), data_.size() * sizeof data_[0]));
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
    bool no_symbols = false;

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

// ---- which slots

TEST_F(Slots, AFunctionOfTheDriverBecomesWhatALookUpGives) {
    void *launch = Driver("cuLaunchKernel");
    for (unsigned type : slots_types)
        for (bool data : {false, true}) {
            slots_world_reset();
            Object object;
            void **slot = object.Word(Object::kWords, 8);
            *slot = launch;
            object.Relocate(slot, object.Symbol("cuLaunchKernel"), type, data);
            EXPECT_EQ(Look({&object}), nullptr);
            EXPECT_EQ(*slot, slots_resolved);
            EXPECT_EQ(slots_world.version, 0);
            EXPECT_EQ(Found(), std::vector<std::string>{"libplugin.so"});
        }
    EXPECT_EQ(After("cuLaunchKernel", elsewhere_), elsewhere_) << "somebody else's";
    EXPECT_EQ(After("cuA", launch), slots_resolved);
    EXPECT_EQ(After("cuZ", launch), slots_resolved);
}

TEST_F(Slots, OtherNamesAndRelocationsAreLeftAlone) {
    void *launch = Driver("cuLaunchKernel");
    for (const char *name : {"cudaMalloc", "cudA", "cu1Abc", "cu@b", "cu[b", "cu", "cXLaunch",
                             "xuLaunch", "dlAddress", "dlsym", ""})
        EXPECT_EQ(After(name, launch), launch) << name;
    Object object;
    void **slot = object.Word(Object::kWords, 8);
    *slot = launch;
    const unsigned most = *std::max_element(slots_types, slots_types + 3);
    object.Relocate(slot, object.Symbol("cuLaunchKernel"), most + 1);
    EXPECT_EQ(Look({&object}), nullptr);
    EXPECT_EQ(*slot, launch);
    EXPECT_TRUE(Found().empty());
}

// The loader has not searched yet: the slot leads into the object's own code.
TEST_F(Slots, AnUnboundSlotOfARowHasItsHook) {
    EXPECT_EQ(After("cuLaunchKernel", kOwnCode), slots_hook);
    EXPECT_EQ(After(cus_api_rows[0].name, kOwnCode), slots_hook);
    EXPECT_TRUE(Found().empty()) << "it might have been bound to the library";
    EXPECT_EQ(After(cus_api_rows[slots_passed].name, kOwnCode), kOwnCode) << "it has no hook";
    EXPECT_EQ(After("cuLaunchKernel", kOwnCode, true), kOwnCode) << "the object's own function";
    EXPECT_EQ(After("cuNewFunction", kOwnCode), kOwnCode) << "nobody exports it";
    slots_others.front[CUS_ROW_cuLaunchKernel] = true;
    EXPECT_EQ(After("cuLaunchKernel", kOwnCode), kOwnCode) << "an object in front would be bound";
    EXPECT_EQ(After("cuLaunchKernel", Driver("cuLaunchKernel")), slots_resolved);
}

TEST_F(Slots, AWordInTheObjectsDataIsNotUnbound) {
    Object object;
    void **slot = object.Slot("cuLaunchKernel", object.At(Object::kWords, 512));
    EXPECT_EQ(Look({&object}), nullptr);
    EXPECT_EQ(*slot, object.At(Object::kWords, 512));
}

TEST_F(Slots, AnUnboundSlotOfANewFunctionIsWhatWouldBeFound) {
    for (bool driver : {false, true}) {
        slots_world_reset();
        Object object, exporter("/lib/libexporter.so");
        exporter.Export("cuNewFunction", driver ? slots_driver + SLOTS_FUNCTIONS - 1 : elsewhere_);
        void **slot = object.Slot("cuNewFunction", object.Code());
        EXPECT_EQ(Look({&object, &exporter}), nullptr);
        EXPECT_EQ(*slot, driver ? slots_resolved : object.Code());
        EXPECT_EQ(slots_world.version, driver ? 0 : -1);
    }
}

TEST_F(Slots, TheLoadersFunctionsBecomeTheLibrarys) {
    const char *const names[] = {"dlsym", "dlopen", "dlmopen", "dlclose"};
    char c_library[64];
    for (unsigned i = 0; i < CUS_LOADERS; i++) {
        SCOPED_TRACE(names[i]);
        slots_others = {};
        slots_others.loader_low = reinterpret_cast<uintptr_t>(c_library + 8);
        slots_others.loader_high = reinterpret_cast<uintptr_t>(c_library + 16);
        EXPECT_EQ(After(names[i], c_library + 8), slots_loader[i]);
        EXPECT_EQ(After(names[i], c_library + 15), slots_loader[i]);
        EXPECT_EQ(After(names[i], c_library + 7), c_library + 7);
        EXPECT_EQ(After(names[i], c_library + 16), c_library + 16);
        EXPECT_EQ(After(names[i], slots_loader[i]), slots_loader[i]);
        EXPECT_EQ(After(names[i], kOwnCode), slots_loader[i]);
        EXPECT_EQ(After(names[i], kOwnCode, true), kOwnCode);
        EXPECT_EQ(After("dlother", c_library + 8), c_library + 8);
        slots_others.loader_in_front[i] = true;
        EXPECT_EQ(After(names[i], kOwnCode), kOwnCode);
        EXPECT_EQ(After(names[i], c_library + 8), slots_loader[i]);
    }
}

// ---- what is never read or written

TEST_F(Slots, ASlotIsWithinOneReadableSegment) {
    void *launch = Driver("cuLaunchKernel");
    Object object, other;
    const size_t symbol = object.Symbol("cuLaunchKernel");
    void **outside = other.Word(Object::kWords, 0);
    char *odd = object.At(Object::kWords, 4);
    void **across = object.Word(Object::kWords, 2 * kPage), **hidden = across + 8;
    void **last = object.Word(Object::kWords, kPage - 8);
    for (void **slot : {outside, across, hidden, last})
        *slot = launch;
    memcpy(odd, &launch, sizeof launch);
    for (void *slot : std::vector<void *>{outside, odd, across, hidden, last})
        object.Relocate(slot, symbol);
    // Data ends behind `last`; then comes a segment that ends within `across`, and one of `hidden`.
    object.phdrs[2].p_memsz = 2 * kPage;
    object.phdrs.push_back(object.Segment(PT_LOAD, kData, (char *)across - 64, 64 + 4));
    object.phdrs.push_back(object.Segment(PT_LOAD, PF_W, (char *)hidden, 64));
    Look({&object}); // what stays is found among the data
    EXPECT_EQ(*outside, launch);
    EXPECT_EQ(memcmp(odd, &launch, sizeof launch), 0);
    EXPECT_EQ(*across, launch);
    EXPECT_EQ(*hidden, launch);
    EXPECT_EQ(*last, slots_resolved);
}

TEST_F(Slots, ASymbolBehindTheTableIsNotRead) {
    Object object;
    void **slot = object.Slot("cuLaunchKernel", Driver("cuLaunchKernel"));
    void **behind = object.Word(Object::kWords, 512);
    *behind = *slot;
    *object.SymbolAt(kSymbols) = *object.SymbolAt(1); // the first bytes of the next segment
    object.Relocate(behind, kSymbols);
    Look({&object}); // what stays is found among the data
    EXPECT_EQ(*behind, Driver("cuLaunchKernel"));
    EXPECT_EQ(*slot, slots_resolved);
    Object none;
    none.no_symbols = true;
    slot = none.Slot("cuLaunchKernel", Driver("cuLaunchKernel"));
    EXPECT_EQ(Look({&none}), nullptr);
    EXPECT_EQ(*slot, Driver("cuLaunchKernel"));
}

TEST_F(Slots, SomeObjectsAreLeftAlone) {
    const char *(*const look)(bool) = cus_slots_look;
    char(*const code)[1] = reinterpret_cast<char(*)[1]>(reinterpret_cast<uintptr_t>(look));
    for (int which = 0; which < 5; which++) {
        SCOPED_TRACE(which);
        slots_world_reset();
        Object object;
        void **slot = object.Slot("cuLaunchKernel", Driver("cuLaunchKernel"));
        if (which == 0) // the library itself
            object.phdrs.push_back(object.Segment(PT_LOAD, kCode, *code - kPage * 4, kPage * 8));
        if (which == 1)
            slots_world.dlsym = object.Code();
        if (which == 2)
            slots_world.cuda = object.Code();
        slots_others.n = which >= 3 ? 2 : 0;
        if (which >= 3)
            slots_others.list[which - 3].low = reinterpret_cast<uintptr_t>(object.Code());
        EXPECT_EQ(Look({&object}), nullptr);
        EXPECT_EQ(*slot, Driver("cuLaunchKernel"));
    }
    slots_world_reset();
    Object object; // what is behind the list is not in it
    void **slot = object.Slot("cuLaunchKernel", Driver("cuLaunchKernel"));
    slots_others.list[0].low = reinterpret_cast<uintptr_t>(object.Code());
    EXPECT_EQ(Look({&object}), nullptr);
    EXPECT_EQ(*slot, slots_resolved);
}

TEST_F(Slots, ReadOnlyPagesAreOpenForTheMomentOnly) {
    Object object;
    const size_t symbol = object.Symbol("cuLaunchKernel");
    void **slots[] = {object.Word(Object::kRelro, 512), object.Word(Object::kRelro, kPage - 8)};
    for (void **slot : slots) {
        *slot = Driver("cuLaunchKernel");
        object.Relocate(slot, symbol);
    }
    // The region begins within a page, and ends within the next one.
    object.phdrs[0] = object.Segment(PT_GNU_RELRO, kRead, object.At(Object::kRelro, 16), kPage);
    ASSERT_EQ(mprotect(object.At(Object::kRelro), kPage, PROT_READ), 0);
    EXPECT_EQ(Look({&object}), nullptr);
    for (void **slot : slots)
        EXPECT_EQ(*slot, slots_resolved);
    ASSERT_EQ(slots_world.n_changes, 2u) << "once for both";
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(slots_world.changes[i].at, reinterpret_cast<uintptr_t>(slots[0]) & ~(kPage - 1));
        EXPECT_EQ(slots_world.changes[i].bytes, kPage);
        EXPECT_EQ(slots_world.changes[i].prot, i ? PROT_READ : PROT_READ | PROT_WRITE);
    }
}

TEST_F(Slots, NoPageIsOpenedForASlotBesideThem) {
    Object object;
    const size_t symbol = object.Symbol("cuLaunchKernel");
    object.phdrs[0] = object.Segment(PT_GNU_RELRO, kRead, object.At(Object::kWords, kPage), kPage);
    void **slots[] = {object.Word(Object::kWords, kPage - 8),
                      object.Word(Object::kWords, 2 * kPage)};
    for (void **slot : slots) {
        *slot = Driver("cuLaunchKernel");
        object.Relocate(slot, symbol);
    }
    EXPECT_EQ(Look({&object}), nullptr);
    for (void **slot : slots)
        EXPECT_EQ(*slot, slots_resolved);
    EXPECT_EQ(slots_world.n_changes, 0u);
}

TEST_F(Slots, ASlotThatCannotBeWrittenStaysAndEndsDeferring) {
    for (bool relro : {false, true}) {
        slots_world_reset();
        slots_world.no_mprotect = true;
        Object object;
        void **slot = relro ? object.Word(Object::kRelro, 8) : object.Word(Object::kCodePage, 8);
        *slot = Driver("cuLaunchKernel");
        object.Relocate(slot, object.Symbol("cuLaunchKernel"));
        EXPECT_STREQ(Look({&object}), "/lib/libplugin.so calls the driver past this library, and "
                                      "cannot be led");
        EXPECT_EQ(*slot, Driver("cuLaunchKernel"));
        EXPECT_TRUE(Found().empty());
    }
}

// ---- copies of functions

const char kCopies[] = "/lib/libplugin.so holds functions of the driver that it found past this "
                       "library";

class Copies : public Slots {
  protected:
    void SetUp() override {
        Slots::SetUp();
        if (getenv("CUS_TEST_EMULATED"))
            GTEST_SKIP() << "qemu has no process_vm_readv";
    }
    // What a look says of an object that was bound past the library and has this word.
    std::string Says(void **place, void *word, Object *object) {
        object->Slot("cuLaunchKernel", Driver("cuLaunchKernel"));
        *place = word;
        const char *why = Look({object});
        return why ? why : "";
    }
};

TEST_F(Copies, AreFoundWhereverTheyAre) {
    void *const launch = Driver("cuLaunchKernel"), *const first = slots_driver;
    const size_t end = (Object::kCodePage - Object::kWords) * kPage;
    for (size_t at : {(size_t)512, 7 * kPage - 8, 7 * kPage, 8 * kPage, end - 8})
        for (void *word : {launch, first}) {
            SCOPED_TRACE(at);
            slots_world_reset();
            Object object;
            EXPECT_EQ(Says(object.Word(Object::kWords, at), word, &object), kCopies);
        }
    slots_world_reset();
    Object object; // of one word, first of the list, and not aligned
    std::rotate(object.phdrs.begin(), object.phdrs.begin() + 2, object.phdrs.begin() + 3);
    object.phdrs.insert(object.phdrs.begin(),
                        object.Segment(PT_LOAD, kData, object.At(Object::kCodePage, 1025), 15));
    object.phdrs[4].p_memsz = 1024;
    EXPECT_EQ(Says(object.Word(Object::kCodePage, 1032), launch, &object), kCopies);
}

TEST_F(Copies, AreNoOtherWordsAndInNoOtherSegment) {
    void *const launch = Driver("cuLaunchKernel");
    void *const others[] = {elsewhere_, slots_driver + slots_passed,
                            slots_driver + SLOTS_FUNCTIONS - 1, nullptr};
    for (void *word : others) {
        slots_world_reset();
        Object object;
        EXPECT_EQ(Says(object.Word(Object::kWords, 512), word, &object), "");
    }
    slots_world_reset();
    Object object; // data ends before the word, which a note has, and what is behind the list
    object.phdrs[2].p_memsz = 3 * kPage;
    void **place = object.Word(Object::kRelro, 3 * kPage);
    object.phdrs.push_back(object.Segment(PT_NOTE, kData, (char *)place, 64));
    object.phdrs.push_back(object.Segment(PT_LOAD, kRead, (char *)place, 64));
    object.phdrs.push_back(object.Segment(PT_LOAD, kData, (char *)place, 64));
    object.phdrs.pop_back();
    EXPECT_EQ(Says(place, launch, &object), "");
}

TEST_F(Copies, AreLookedForWhereTheObjectCouldLookThemUp) {
    const struct {
        const char *name;
        bool unbound, found;
    } cases[] = {{"cuLaunchKernel", false, true},
                 {"cuLaunchKernel", true, false},
                 {"dlsym", false, true},
                 {"dlsym", true, false},
                 {"dlopen", false, false}};
    for (const auto &c : cases) {
        SCOPED_TRACE(c.name);
        slots_world_reset();
        Object object;
        char c_library[8];
        slots_others.loader_low = reinterpret_cast<uintptr_t>(c_library);
        slots_others.loader_high = slots_others.loader_low + sizeof c_library;
        void *word = c.unbound        ? object.Code()
                     : *c.name == 'c' ? Driver(c.name)
                                      : static_cast<void *>(c_library);
        void **slot = object.Slot(c.name, word);
        *object.Word(Object::kWords, 512) = Driver("cuLaunchKernel");
        EXPECT_EQ(Look({&object}) != nullptr, c.found);
        EXPECT_NE(*slot, word);
        EXPECT_EQ(Found().size(), c.unbound ? 0u : 1u);
    }
}

TEST_F(Copies, InDataThatCannotBeReadMayBeThere) {
    Object object;
    ASSERT_EQ(mprotect(object.At(Object::kWords, kPage), kPage, PROT_NONE), 0);
    EXPECT_EQ(Says(object.Word(Object::kWords, 512), nullptr, &object),
              "/lib/libplugin.so has data that cannot be read, and was bound past this library");
}

// ---- which objects, and what is said

TEST_F(Slots, OnlyNewObjectsAreLookedAt) {
    Object first, second;
    void **old = first.Slot("cuLaunchKernel", elsewhere_);
    EXPECT_EQ(Look({&first}), nullptr);
    *old = Driver("cuLaunchKernel");
    void **slot = second.Slot("cuLaunchKernel", Driver("cuLaunchKernel"));
    EXPECT_EQ(Look({&second}), nullptr);
    EXPECT_EQ(*slot, slots_resolved);
    EXPECT_EQ(*old, Driver("cuLaunchKernel")) << "it was looked at before";
    unsigned walks = slots_world.walks;
    EXPECT_EQ(Look({}), nullptr);
    EXPECT_EQ(slots_world.walks, walks + 1) << "the count says that nothing came";
    EXPECT_EQ(slots_world.chosen, 3u);
}

TEST_F(Slots, NothingIsWrittenWhileAnotherThreadIsInsideADlopen) {
    Object object;
    void **slot = object.Slot("cuLaunchKernel", Driver("cuLaunchKernel"));
    slots_world_opening(1);
    EXPECT_EQ(Look({&object}), nullptr);
    EXPECT_EQ(*slot, Driver("cuLaunchKernel"));
    slots_world_opening(2);
    EXPECT_EQ(cus_slots_look(true), nullptr);
    EXPECT_EQ(*slot, Driver("cuLaunchKernel"));
    slots_world_opening(1);
    EXPECT_EQ(cus_slots_look(true), nullptr);
    EXPECT_EQ(*slot, slots_resolved) << "it is the caller's own";
}

TEST_F(Slots, ObjectsThatComeMeanwhileAreLookedAtToo) {
    Object first;
    static Object *late;
    Object second;
    late = &second;
    void **slots[] = {first.Slot("cuLaunchKernel", Driver("cuLaunchKernel")),
                      second.Slot("cuLaunchKernel", Driver("cuLaunchKernel"))};
    slots_world.between = [] {
        slots_world.objects[slots_world.n++] = late->Info();
        slots_world.adds++;
    };
    EXPECT_EQ(Look({&first}), nullptr);
    for (void **slot : slots)
        EXPECT_EQ(*slot, slots_resolved);
    EXPECT_EQ(Found().size(), 2u);
}

TEST_F(Slots, ALoaderThatDoesNotCountIsNotAsked) {
    Object object;
    void **slot = object.Slot("cuLaunchKernel", Driver("cuLaunchKernel"));
    slots_world.bytes = offsetof(dl_phdr_info, dlpi_subs) - 1;
    EXPECT_EQ(Look({&object}), nullptr);
    EXPECT_EQ(*slot, Driver("cuLaunchKernel"));
}

TEST_F(Slots, NamesAreCutAndSomeAreLeftOut) {
    const std::string name(300, 'n');
    std::vector<std::unique_ptr<Object>> objects;
    std::vector<Object *> list;
    for (int i = 0; i < 10; i++) {
        objects.push_back(std::make_unique<Object>(i == 0 ? "" : ("/lib/" + name).c_str()));
        objects.back()->Slot("cuLaunchKernel", Driver("cuLaunchKernel"));
        list.push_back(objects.back().get());
    }
    EXPECT_EQ(Look(list), nullptr);
    std::vector<std::string> found(8, name.substr(0, 127));
    found[0] = "the program";
    EXPECT_EQ(Found(), found);
}

TEST_F(Slots, TheFirstReasonIsGivenOnceAndCut) {
    slots_world.no_mprotect = true;
    const std::string path(600, 'p');
    Object first(path.c_str()), second("/lib/libother.so");
    for (Object *object : {&first, &second}) {
        void **slot = object->Word(Object::kRelro, 8);
        *slot = Driver("cuLaunchKernel");
        object->Relocate(slot, object->Symbol("cuLaunchKernel"));
    }
    EXPECT_EQ(Look({&first, &second}), path.substr(0, 511));
    Object third("");
    void **slot = third.Word(Object::kRelro, 8);
    *slot = Driver("cuLaunchKernel");
    third.Relocate(slot, third.Symbol("cuLaunchKernel"));
    EXPECT_EQ(Look({&third}), nullptr);
}

TEST_F(Slots, ALibraryWithItsOwnRouteIsTheReason) {
    Object object;
    slots_world.route = "/lib/libplugin.so";
    errno = 77;
    EXPECT_STREQ(Look({&object}), slots_world.route);
    EXPECT_EQ(errno, 77);
}

} // namespace
