// Promise: a slot is changed if, and only if, it holds a function of the driver or of the loader
// past the library, and nothing outside of an object's own tables and data is read or written.
#include "tests/unit/hook/slots_objects.h"

#include <algorithm>
#include <cerrno>
#include <memory>

namespace {

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
    object.phdrs.push_back(object.Segment(PT_LOAD, kData, (char *)across - 64, 64 + 7));
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

TEST_F(Slots, ARelocationBehindItsTableIsNotMade) {
    Object object;
    const size_t symbol = object.Symbol("cuLaunchKernel");
    void **slots[4];
    for (size_t i = 0; i < 4; i++) {
        slots[i] = object.Word(Object::kWords, 8 * i);
        *slots[i] = Driver("cuLaunchKernel");
        object.Relocate(slots[i], symbol, slots_types[0], i % 2);
    }
    object.short_tables = true;
    Look({&object});
    for (size_t i = 0; i < 4; i++)
        EXPECT_EQ(*slots[i], i < 2 ? slots_resolved : Driver("cuLaunchKernel")) << i;
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
    void **slots[] = {object.Word(Object::kRelro, 0), object.Word(Object::kRelro, kPage - 8)};
    for (void **slot : slots) {
        *slot = Driver("cuLaunchKernel");
        object.Relocate(slot, symbol);
    }
    // The region begins within a page, and ends within the next one.
    object.phdrs[0] = object.Segment(PT_GNU_RELRO, kRead, object.At(Object::kRelro, 17), kPage);
    object.phdrs.reserve(8); // behind the list there is another one
    object.phdrs.push_back(object.Segment(PT_GNU_RELRO, kRead, object.At(Object::kWords), kPage));
    object.phdrs.pop_back();
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
        object.Relocate(slot, object.Symbol("cuLaunchKernel"));
        *slot = slots_hook;
        EXPECT_EQ(Look({&object}), nullptr) << "it is as it should be";
        slots_world.n = 0;
        *slot = Driver("cuLaunchKernel");
        errno = 77;
        EXPECT_STREQ(Look({&object}), "/lib/libplugin.so calls the driver past this library, and "
                                      "cannot be led");
        EXPECT_EQ(errno, 77);
        EXPECT_EQ(*slot, Driver("cuLaunchKernel"));
        EXPECT_TRUE(Found().empty());
    }
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

// The list was not searched from its beginning.
TEST_F(Slots, NothingIsWrittenIfThatThreadComesOutMeanwhile) {
    Object first, second;
    void **slot = second.Slot("cuLaunchKernel", Driver("cuLaunchKernel"));
    slots_world_opening(1);
    slots_world.between = [] { slots_world.within = [] { slots_world_opening(0); }; };
    EXPECT_EQ(Look({&first, &second}), nullptr);
    EXPECT_EQ(*slot, Driver("cuLaunchKernel"));
    EXPECT_EQ(cus_slots_look(false), nullptr);
    EXPECT_EQ(*slot, slots_resolved);
}

TEST_F(Slots, ObjectsThatComeMeanwhileAreLookedAtToo) {
    Object objects[3];
    static Object *late;
    late = &objects[1];
    void **slots[3];
    for (int i = 0; i < 3; i++)
        slots[i] = objects[i].Slot("cuLaunchKernel", Driver("cuLaunchKernel"));
    slots_world.between = [] {
        for (int i = 0; i < 2; i++)
            slots_world.objects[slots_world.n++] = late[i].Info();
        slots_world.adds += 2;
    };
    EXPECT_EQ(Look({&objects[0]}), nullptr);
    for (void **slot : slots)
        EXPECT_EQ(*slot, slots_resolved);
    EXPECT_EQ(Found().size(), 3u);
}

TEST_F(Slots, ALoaderThatDoesNotCountIsNotAsked) {
    Object object;
    void **slot = object.Slot("cuLaunchKernel", Driver("cuLaunchKernel"));
    slots_world.bytes = offsetof(dl_phdr_info, dlpi_subs) - 1;
    EXPECT_EQ(Look({&object}), nullptr);
    EXPECT_EQ(*slot, Driver("cuLaunchKernel"));
    slots_world.bytes++; // it has the count, and nothing behind it
    EXPECT_EQ(cus_slots_look(false), nullptr);
    EXPECT_EQ(*slot, slots_resolved);
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
    EXPECT_STREQ(Look({&object}), slots_world.route);
    EXPECT_STREQ(slots_world.seen, slots_world.route) << "and presets were asked";
}

} // namespace
