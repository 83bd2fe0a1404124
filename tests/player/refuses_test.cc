// Promise: on the simulator the player says what it cannot replay before it starts.
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>
#include <vector>

#include "tests/player/play.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace {

// Every sentence that a trace is refused with; nothing may have been called that changes anything.
std::string Refused(const std::string &trace, const Environment &more = {}) {
    std::string calls = Folder() + "/calls.json";
    unlink(calls.c_str());
    Environment with = more;
    with["CUSIM_STATS"] = calls;
    Result r = Play(trace, "check\nrun 1\nquit\n", with);
    EXPECT_EQ(r.Exit(), 3) << r.out << r.err;
    EXPECT_EQ(Lines(r.out).size(), 1u) << r.out;
    sim::Json json = Answer(r, 0), called = sim::ParseJson(ReadFile(calls));
    EXPECT_EQ(json.text["ready"], "false") << r.out;
    EXPECT_TRUE(called.valid);
    for (const auto &[path, number] : called.number)
        EXPECT_FALSE(Has(path, "cuLaunchKernel") || Has(path, "cuMemcpy") || Has(path, "cuMemset"))
            << path;
    std::string all;
    for (const auto &[path, text] : json.text)
        if (path.compare(0, 10, "obstacles.") == 0)
            all += text + "\n";
    return all;
}

TEST(Refuses, ATraceWithoutAnythingToReplay) {
    std::string path = Fresh("nothing.cst");
    Synth s(path);
    s.Thread(1, "");
    ASSERT_EQ(s.Close(), 0);
    EXPECT_TRUE(Has(Refused(path), "record it with cusplice record --replayable"));
}

TEST(Refuses, EverythingAtOnceBeforeAnythingBegins) {
    Small t("all.cst");
    uint64_t pinned = 0x7f0000001000, managed = 0x7f0000100000;
    t.m.Obstacle("cuGraphLaunch", "graphs of the program are not replayed");
    t.m.Obstacle("cuIpcOpenMemHandle_v2", "memory of another process");
    uint32_t nowhere = t.m.Code(0, "of_no_module", {8});
    uint32_t copy = t.m.Code(t.module, "copy_words", {8, 8, 4});
    t.m.Span(CST_SPAN_HOST, pinned, 4096, "cuMemHostAlloc");
    t.m.Span(CST_SPAN_FOREIGN, managed, 4096, "cuMemAllocManaged");
    t.m.Launch(t.lane, nowhere, 1, 1, {t.a});
    t.m.Launch(t.lane, copy, 1, 1, {t.a, pinned + 4088, 1});
    t.m.Launch(t.lane, copy, 1, 1, {managed, t.a, 1});
    cst_work *work = t.m.Work(CST_WORK_COPY, t.lane);
    work->to = t.a;
    work->from = managed + 8;
    work->width = 16;
    work = t.m.Work(CST_WORK_COPY, t.lane);
    work->to = t.a;
    work->from = pinned;
    work->width = 16;
    work = t.m.Work(CST_WORK_MEMSET, t.lane);
    work->to = Base() + kBytes / 2;
    work->elem = 4;
    work->width = 16;
    t.m.Upload(t.lane, t.a, {1, 2})->width = 12;
    t.m.s.Lost(3, 2);
    std::string all = Refused(t.End());
    for (const char *part :
         {"3 records were lost", "cuGraphLaunch: graphs of the program",
          "cuIpcOpenMemHandle_v2: memory", "kernel of_no_module: which module",
          "kernel copy_words: reads or writes host memory (an argument is in that at "
          "0x7f0000001000, "
          "cuMemHostAlloc)",
          "kernel copy_words: an argument is in memory that a replay cannot make (0x7f0000100000, "
          "cuMemAllocManaged)",
          "a copy reads: memory at 0x7f0000100000 (cuMemAllocManaged)",
          "a copy reads: host memory at 0x7f0000001000", "memset: 0x",
          "a copy of 12 bytes from the host: 8 bytes of it are in the trace"})
        EXPECT_TRUE(Has(all, part)) << part << " in:\n" << all;
}

// What looks like an address of host memory that is no more, or not yet, is a number.
TEST(Refuses, OnlyMemoryOfThatMoment) {
    Small t("moment.cst");
    uint32_t copy = t.m.Code(t.module, "touch", {8});
    t.m.Span(CST_SPAN_HOST, t.a + kBytes, 4096, "cuMemHostAlloc");
    t.m.Span(CST_SPAN_HOST, t.a + kBytes, 4096, "cuMemFreeHost", true);
    t.m.Launch(t.lane, copy, 1, 1, {t.a + kBytes + 8});
    std::string path = t.End();
    Result r = Play(path, "quit\n");
    EXPECT_EQ(r.Exit(), 0) << r.out;
    Small u("moment2.cst");
    copy = u.m.Code(u.module, "touch", {8});
    u.m.Span(CST_SPAN_HOST, u.a + kBytes, 4096, "cuMemHostAlloc");
    u.m.Launch(u.lane, copy, 1, 1, {u.a + kBytes + 8});
    u.m.Span(CST_SPAN_HOST, u.a + kBytes, 4096, "cuMemFreeHost", true);
    EXPECT_TRUE(Has(Refused(u.End()), "kernel touch: reads or writes host memory"));
}

TEST(Refuses, LengthsThatNoNumberHolds) {
    Small s("player_wraps.cst");
    cst_work *set = s.m.Work(CST_WORK_MEMSET, s.lane), *copy;
    set->to = s.a;
    set->elem = 4;
    set->width = (uint64_t{1} << 62) + 4; // times 4: 16
    set->height = 1;
    set = s.m.Work(CST_WORK_MEMSET, s.lane);
    set->to = s.a;
    set->elem = 1;
    set->width = 8;
    set->height = 3;
    set->pitch = uint64_t{1} << 63; // two of them: 0
    copy = s.m.Work(CST_WORK_COPY, s.lane);
    copy->to = s.a;
    copy->from = s.a + 256;
    copy->width = (uint64_t{1} << 63) + 4;
    copy->height = 2; // 8
    std::string all = Refused(s.End());
    EXPECT_TRUE(Has(all, "a memset of more bytes than there can be")) << all;
    EXPECT_TRUE(Has(all, "a copy of more bytes than there can be")) << all;
}

TEST(Refuses, FilesThatAreNotWhatTheyWere) {
    std::string file = Folder() + "/code.bin", bytes(8192, 'x');
    bytes[299] = 0; // the end of a text
    WriteAll(file, bytes);
    uint64_t check = XXH3_64bits(bytes.data() + 100, 200);
    auto with = [&](const std::string &path, uint64_t offset, uint64_t length, uint64_t sum,
                    const std::string &id) {
        Small t("file.cst");
        uint32_t module = t.m.FileModule(path, offset, length, sum, id);
        t.m.Launch(t.lane, t.m.Code(module, "touch", {8}), 1, 1, {t.a});
        return t.End();
    };
    EXPECT_EQ(Play(with(file, 100, 200, check, ""), "check\n").Exit(), 0);
    EXPECT_TRUE(Has(Refused(with(file, 100, 200, check + 1, "")),
                    file + ": the code of module 2 is not what was recorded"));
    EXPECT_TRUE(Has(Refused(with(file, 8000, 200, check, "")), file + ": not the file that was"));
    EXPECT_TRUE(Has(Refused(with(file, 100, 200, check, "0123abcd")),
                    "its build id is not there and was 0123abcd"));
    EXPECT_TRUE(
        Has(Refused(with("/nowhere/libx.so", 0, 200, check, "")),
            "/nowhere/libx.so: its code was launched, and it cannot be read: No such file"));
    // A file with a build id: the player's own.
    std::string self = "harness/player/player", all = ReadFile(self);
    uint64_t sum = XXH3_64bits(all.data(), all.size());
    std::string why = Refused(with(self, 0, all.size(), sum, "ffff"));
    EXPECT_TRUE(Has(why, self + ": not the file that was recorded: its build id is ")) << why;
    size_t at = why.find("its build id is ") + 16;
    std::string id = why.substr(at, why.find(' ', at) - at);
    ASSERT_NE(id, "not") << "the linker gives no build ids here";
    EXPECT_EQ(Play(with(self, 0, all.size(), sum, id), "check\n").Exit(), 0);
}

std::string Elf(const std::vector<Elf64_Shdr> &sections, size_t more = 0) {
    Elf64_Ehdr head = {};
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_shentsize = sizeof(Elf64_Shdr);
    head.e_shoff = sizeof head;
    head.e_shnum = static_cast<uint16_t>(sections.size());
    std::string elf(reinterpret_cast<char *>(&head), sizeof head);
    elf.append(reinterpret_cast<const char *>(sections.data()),
               sections.size() * sizeof sections[0]);
    return elf.append(more, 'x');
}

Elf64_Shdr Section(uint32_t type, uint64_t offset, uint64_t bytes) {
    Elf64_Shdr section = {};
    section.sh_type = type;
    section.sh_offset = offset;
    section.sh_size = bytes;
    return section;
}

std::string FatBinary(uint32_t magic, uint16_t head, uint64_t bytes, size_t more) {
    std::string text(16 + more, 'x');
    memcpy(&text[0], &magic, 4);
    memcpy(&text[6], &head, 2);
    memcpy(&text[8], &bytes, 8);
    return text;
}

// The driver reads as far as the image says, and would read the player's memory.
TEST(Refuses, CodeThatSaysThatItIsLonger) {
    const uint64_t all = ~uint64_t{0};
    const uint32_t fat = 0xba55ed50, wrapper = 0x466243b1;
    const std::string plain =
        Elf({Section(SHT_PROGBITS, 192, 8), Section(SHT_NOBITS, 192, all)}, 8);
    std::string far = plain, programs = plain, entries = plain, small = plain, segment = plain;
    auto *head = reinterpret_cast<Elf64_Ehdr *>(&far[0]);
    head->e_shoff = all - 63;
    head = reinterpret_cast<Elf64_Ehdr *>(&programs[0]);
    head->e_phoff = 192;
    head->e_phnum = 1;
    head->e_phentsize = sizeof(Elf64_Phdr);
    std::string beyond = programs;
    reinterpret_cast<Elf64_Ehdr *>(&beyond[0])->e_phoff = uint64_t{1} << 46;
    Elf64_Phdr program = {};
    small.append(reinterpret_cast<const char *>(&program), sizeof program);
    head = reinterpret_cast<Elf64_Ehdr *>(&small[0]);
    head->e_phoff = plain.size();
    head->e_phnum = 1;
    head->e_phentsize = 8;
    program.p_filesz = 256;
    segment.append(reinterpret_cast<const char *>(&program), sizeof program);
    head = reinterpret_cast<Elf64_Ehdr *>(&segment[0]);
    head->e_phoff = plain.size();
    head->e_phnum = 1;
    head->e_phentsize = sizeof program;
    std::string longer = segment;
    reinterpret_cast<Elf64_Phdr *>(&longer[plain.size()])->p_filesz++;
    head = reinterpret_cast<Elf64_Ehdr *>(&entries[0]);
    head->e_shentsize = 32;
    const std::vector<std::pair<std::string, bool>> images = {
        {std::string("PTX\0", 4), true},
        {"PTX", false},
        {std::string(1, 0), true},
        {FatBinary(fat, 16, 40, 40), true},
        {FatBinary(fat, 16, 41, 40), false},
        {FatBinary(fat, 16, all - 8, 40), false},
        {FatBinary(fat, 57, 0, 40), false},
        {FatBinary(fat, 15, 40, 40), false},
        {FatBinary(fat, 16, 0, 0).substr(0, 15), false},
        {FatBinary(wrapper, 16, 40, 40), false},
        {plain, true},
        {plain.substr(0, plain.size() - 1), false},
        {plain.substr(0, 191), false},
        {plain.substr(0, 63), false},
        {Elf({Section(SHT_PROGBITS, 129, all)}, 8), false},
        {far, false},
        {programs, false},
        {beyond, false},
        {small, false},
        {segment, true},
        {longer, false},
        {entries, false},
    };
    for (size_t i = 0; i < images.size(); i++) {
        SCOPED_TRACE(i);
        Small t("longer.cst");
        uint32_t module = t.m.Image(images[i].first);
        t.m.Launch(t.lane, t.m.Code(module, "touch", {8}), 1, 1, {t.a});
        std::string trace = t.End();
        if (images[i].second)
            EXPECT_EQ(Play(trace, "check\n").Exit(), 0);
        else
            EXPECT_TRUE(Has(Refused(trace), "the code of module 2 does not end within its "));
    }
}

TEST(Refuses, CodeThatIsNotWholeOrNotThere) {
    std::string path = Fresh("cut.cst");
    Made m(path);
    uint64_t a = m.Alloc(0, 4096);
    uint32_t id = m.s.String("");
    auto *module =
        static_cast<cst_module *>(cst_sink_add(&m.s.sink, CST_MODULE, sizeof(cst_module)));
    module->id = 1;
    module->form = CST_MODULE_IMAGE;
    module->bytes = 100 + id;
    m.Data(CST_DATA_IMAGE, 1, 0, std::string(60, 'c'));
    m.Launch(0, m.Code(1, "touch", {8}), 1, 1, {a});
    ASSERT_EQ(m.Close(), 0);
    EXPECT_TRUE(Has(Refused(path), "not whole in the trace: 60 of 100 bytes"));
    Small t("absent.cst");
    t.m.Launch(t.lane, t.m.Code(t.module, "no_such_kernel", {8}), 1, 1, {t.a});
    EXPECT_TRUE(Has(Refused(t.End()),
                    "kernel no_such_kernel: not as it was in module 1: CUDA_ERROR_NOT_FOUND"));
}

// The parts of a module say where they belong: all of it, and nothing beyond.
TEST(Refuses, CodeWhosePartsDoNotFollowEachOther) {
    for (uint64_t second :
         {uint64_t{101}, uint64_t{4096}, uint64_t{1} << 40, uint64_t{99}, uint64_t{0}}) {
        std::string path = Fresh("parts.cst");
        Made m(path);
        uint64_t a = m.Alloc(0, 4096);
        auto *module =
            static_cast<cst_module *>(cst_sink_add(&m.s.sink, CST_MODULE, sizeof(cst_module)));
        module->id = 1;
        module->form = CST_MODULE_IMAGE;
        module->bytes = 100;
        std::string code(100, 'c');
        module->check = XXH3_64bits(code.data(), code.size());
        m.Data(CST_DATA_IMAGE, 1, 0, code);
        m.Data(CST_DATA_IMAGE, 1, second, std::string(1 << 16, 'd'));
        m.Launch(0, m.Code(1, "touch", {8}), 1, 1, {a});
        ASSERT_EQ(m.Close(), 0);
        EXPECT_TRUE(Has(Refused(path), "the code of module 1 is not whole in the trace")) << second;
        EXPECT_TRUE(Has(Refused(path), "blocks of module 1 overlap")) << second;
    }
}

TEST(Refuses, CodeInAPipeOrADevice) {
    std::string pipe = Folder() + "/code.pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    for (const std::string &path : {pipe, std::string("/dev/zero"), std::string("/")}) {
        Small t("pipe.cst");
        uint32_t module = t.m.FileModule(path, 0, 200, 1, "");
        t.m.Launch(t.lane, t.m.Code(module, "touch", {8}), 1, 1, {t.a});
        EXPECT_TRUE(Has(Refused(t.End()), path + ": its code was launched, and it is no regular"));
    }
}

TEST(Refuses, MoreOfTheHostsMemoryThanItMayTake) {
    // Two bytes at the ends of a pinned terabyte.
    Small t("wide.cst");
    t.m.Span(CST_SPAN_HOST, 0x7e0000000000, uint64_t{1} << 40, "cuMemHostAlloc");
    t.m.Download(t.lane, t.a, 4, 0x7e0000000000);
    t.m.Download(t.lane, t.a, 4, 0x7e0000000000 + (uint64_t{1} << 40) - 4);
    EXPECT_TRUE(Has(Refused(t.End()), "copies to the host would take more of the host's memory"));
}

TEST(Refuses, SizesThatDoNotFitIntoANumber) {
    Small t("large.cst");
    t.m.Memset(t.lane, t.a, 4, 7, 2)->width = uint64_t{1} << 62;
    cst_work *rows = t.m.Memset(t.lane, t.a, 1, 7, 2);
    rows->height = uint64_t{1} << 33;
    rows->pitch = uint64_t{1} << 32;
    cst_work *copy = t.m.Move(t.lane, t.a, t.a, 16);
    copy->width = uint64_t{1} << 33;
    copy->height = uint64_t{1} << 33;
    std::string why = Refused(t.End());
    EXPECT_TRUE(Has(why, "a memset of more bytes than there can be")) << why;
    EXPECT_TRUE(Has(why, "a copy of more bytes than there can be")) << why;
}

TEST(Refuses, ADataBlockThatWasChanged) {
    for (bool packed : {false, true}) {
        std::string path = MakeSteps("flipped.cst", 2, packed), bytes = ReadFile(path);
        // The last byte of the last input: behind it only records and the end.
        cst_block block;
        size_t at = sizeof(cst_file), last = 0;
        while (at + sizeof block <= bytes.size()) {
            memcpy(&block, &bytes[at], sizeof block);
            if (block.type == CST_BLOCK_DATA)
                last = at + sizeof block + block.bytes - 1;
            at += sizeof block + (block.bytes + 7) / 8 * 8;
        }
        bytes[last] ^= 1;
        WriteAll(path, bytes);
        EXPECT_TRUE(Has(Refused(path), "corrupt: a data block (input, 2048 bytes) does not match"));
    }
}

TEST(Refuses, ARecordingThatWasCutShort) {
    std::string path = MakeSteps("torn.cst", 2), bytes = ReadFile(path);
    WriteAll(path, bytes.substr(0, bytes.size() - sizeof(cst_block) - 8));
    EXPECT_TRUE(Has(Refused(path), "did not end in good order"));
}

TEST(Refuses, TooLittleMemoryAndTakenAddresses) {
    std::string path = MakeSteps("large.cst", 1);
    std::string why = Refused(path, {{"CUSIM_MEM_MB", "5"}});
    EXPECT_TRUE(Has(why, "it needs 6 MiB of device memory, and ")) << why;
    // Nobody can have these.
    std::string high = Fresh("high.cst");
    Made m(high);
    m.Module();
    m.Span(CST_SPAN_RESERVED, 0x10000, 2 << 20, "");
    m.Chain(0, m.Alloc(0, 4096), 1, 1, 1);
    ASSERT_EQ(m.Close(), 0);
    EXPECT_TRUE(Has(Refused(high), "the addresses 0x10000 to 0x210000")) << Refused(high);
    std::string outside = Fresh("outside.cst");
    Made o(outside);
    o.Module();
    o.Span(CST_SPAN_DEVICE, Base() + 2 * kBytes, 4096, "cuMemAlloc_v2");
    o.Chain(0, o.Alloc(0, 4096), 1, 1, 1);
    ASSERT_EQ(o.Close(), 0);
    EXPECT_TRUE(Has(Refused(outside), "lies outside of what was reserved"));
}

// No variable is in the simulator's images: what can be seen is that they are asked for.
TEST(Refuses, VariablesThatAModuleDoesNotHave) {
    Small t("global.cst");
    t.m.Span(CST_SPAN_GLOBAL, 0x7f2000000000, 64, "table", false, t.module);
    t.m.Launch(t.lane, t.m.Code(t.module, "touch", {8}), 1, 1, {0x7f2000000010});
    EXPECT_TRUE(Has(Refused(t.End()), "module 1 has no variable table"));
}

TEST(Refuses, AnotherGpu) {
    Small t("gpu.cst");
    t.m.s.Facts("{\"gpu\":\"NVIDIA B200\",\"compute_capability\":100}");
    Result r = Play(t.End(), "check\nquit\n");
    EXPECT_EQ(r.Exit(), 0) << r.out; // the image may have code for this one
    EXPECT_TRUE(Has(Answer(r, 0).text["warnings.0"],
                    "compute capability 10.0 (NVIDIA B200), and this one has 9.0"))
        << r.out;
    std::string file = Folder() + "/cubin", bytes = Elf({});
    WriteAll(file, bytes);
    Small u("cubin.cst");
    u.m.s.Facts("{\"gpu\":\"NVIDIA B200\",\"compute_capability\":100}");
    uint32_t module =
        u.m.FileModule(file, 0, bytes.size(), XXH3_64bits(bytes.data(), bytes.size()), "");
    u.m.Launch(u.lane, u.m.Code(module, "touch", {8}), 1, 1, {u.a});
    EXPECT_TRUE(Has(Refused(u.End()), "compute capability 10.0"));
}

} // namespace
