// Promise: copies that an object made of the driver's functions are found in all of its data, and
// in nothing else.
#include "tests/unit/hook/slots_objects.h"

#include <algorithm>
#include <cerrno>

namespace {

const char kCopies[] = "/lib/libplugin.so holds functions of the driver that it found past this "
                       "library";

class Copies : public Slots {
  protected:
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

TEST_F(Copies, AreNoOtherWords) {
    void *const others[] = {elsewhere_, slots_driver + slots_passed,
                            slots_driver + SLOTS_FUNCTIONS - 1, nullptr};
    for (void *word : others) {
        slots_world_reset();
        Object object;
        EXPECT_EQ(Says(object.Word(Object::kWords, 512), word, &object), "");
    }
}

// Data ends before the word, which a note has, a segment that is read only, and what is behind the
// list.
TEST_F(Copies, AreNotInWhatIsNoDataOfTheObject) {
    Object object;
    object.phdrs[2].p_memsz = 3 * kPage;
    void **place = object.Word(Object::kRelro, 3 * kPage);
    object.phdrs.push_back(object.Segment(PT_NOTE, kData, (char *)place, 64));
    object.phdrs.push_back(object.Segment(PT_LOAD, kRead, (char *)place, 64));
    object.phdrs.push_back(object.Segment(PT_LOAD, kData, (char *)place, 64));
    object.phdrs.pop_back();
    EXPECT_EQ(Says(place, Driver("cuLaunchKernel"), &object), "");
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
    Object object, other;
    slots_world.read_error = EFAULT;
    EXPECT_EQ(Says(object.Word(Object::kWords, 512), nullptr, &object),
              "/lib/libplugin.so has data that cannot be read, and was bound past this library");
    slots_world_reset();
    slots_world.read_error = EPERM;
    EXPECT_EQ(Says(other.Word(Object::kWords, 512), nullptr, &other),
              "/lib/libplugin.so was bound past this library, and process_vm_readv is refused, by "
              "which its data is read");
}

TEST_F(Copies, AreFoundIfReadsEndEarly) {
    Object object;
    slots_world.read_most = kPage + 5;
    EXPECT_EQ(Says(object.Word(Object::kWords, 5 * kPage), Driver("cuLaunchKernel"), &object),
              kCopies);
}

TEST_F(Copies, BesideASegmentAreNotItsOwn) {
    for (size_t at : {1024, 1025, 1031})
        for (size_t word : {1008, 1016, 1024, 1032, 1040}) {
            SCOPED_TRACE(testing::Message() << at << " " << word);
            slots_world_reset();
            Object object; // words of the segment: that at 1024, if it begins there, and at 1032
            object.phdrs[2].p_memsz = 2 * kPage;
            object.phdrs.push_back(
                object.Segment(PT_LOAD, kData, object.At(Object::kCodePage, at), 1040 - at));
            const bool within = word >= at && word < 1040;
            EXPECT_EQ(Says(object.Word(Object::kCodePage, word), Driver("cuLaunchKernel"), &object),
                      within ? kCopies : "");
        }
}

TEST_F(Copies, OfAnotherObjectAreNotItsOwn) {
    Object first, second;
    EXPECT_EQ(Says(first.Word(Object::kRelro, 16), Driver("cuLaunchKernel"), &first), kCopies);
    slots_world_reset();
    second.phdrs[2] = second.Segment(PT_LOAD, kData, second.At(Object::kWords), 16);
    EXPECT_EQ(Says(second.Word(Object::kWords, 8), nullptr, &second), "");
}

} // namespace
