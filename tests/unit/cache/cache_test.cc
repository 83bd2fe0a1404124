// Promise: the signature cache returns what was written, and rejects a file with any wrong byte or
// another owner. Nobody waits for it, and processes lose none of each other's entries.
#include "shim/cache/cache.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <random>
#include <vector>

#include "tests/unit/base/captured.h"

namespace {

using Entries = std::vector<cus_cache_entry>;

cus_cache_entry Entry(uint64_t path, uint32_t ops = 8, uint32_t used = 0) {
    return {path, ops, 0, used, 1};
}

// Paths are hashes.
uint64_t Path(uint64_t i) {
    return cus_cache_hash(&i, sizeof i, 0);
}

Entries Many(unsigned n, unsigned from = 0) {
    Entries entries;
    for (unsigned i = 0; i < n; i++)
        entries.push_back(Entry(Path(from + i)));
    entries.resize(cus_cache_sort(entries.data(), n));
    return entries;
}

class Cache : public testing::Test {
  protected:
    void SetUp() override {
        static int number;
        folder = TempPath("cache." + std::to_string(number++));
    }
    std::string File() const { return folder + "/" CUS_CACHE_FILE; }
    cus_cache_state Update(const Entries &add, const Entries &drop = {}, uint32_t room = 100000) {
        return cus_cache_update(folder.c_str(), room, add.data(), (uint32_t)add.size(), drop.data(),
                                (uint32_t)drop.size(), &n, &wrote, &why);
    }
    // What a process that starts now reads.
    cus_cache_state Read(Entries *entries = nullptr) {
        cus_cache cache;
        cus_cache_state state = cus_cache_read(folder.c_str(), &cache, &why);
        if (entries)
            entries->assign(cache.entries, cache.entries + cache.n);
        generation = cache.generation;
        EXPECT_EQ(why == nullptr, state == CUS_CACHE_GOOD || state == CUS_CACHE_NONE);
        cus_cache_free(&cache);
        return state;
    }

    std::string folder;
    uint32_t n = 0, generation = 0;
    bool wrote = false;
    const char *why = nullptr;
};

TEST_F(Cache, WhatIsWrittenComesBack) {
    Entries entries = Many(1000), back;
    EXPECT_EQ(Read(), CUS_CACHE_NONE);
    ASSERT_EQ(Update(entries), CUS_CACHE_GOOD) << why;
    EXPECT_TRUE(wrote);
    EXPECT_EQ(n, 1000u);
    ASSERT_EQ(Read(&back), CUS_CACHE_GOOD) << why;
    ASSERT_EQ(back.size(), 1000u);
    for (size_t i = 0; i < back.size(); i++) {
        EXPECT_EQ(back[i].path, entries[i].path);
        EXPECT_EQ(back[i].ops, 8u);
        EXPECT_EQ(back[i].used, 1u) << "the generation that wrote it";
    }
    struct stat info;
    ASSERT_EQ(stat(File().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0600u);
    ASSERT_EQ(stat(folder.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST_F(Cache, WhatIsKnownAlreadyIsNotWrittenAgain) {
    ASSERT_EQ(Update(Many(100)), CUS_CACHE_GOOD);
    EXPECT_EQ(Update(Many(100)), CUS_CACHE_GOOD);
    EXPECT_FALSE(wrote);
    EXPECT_EQ(n, 100u);
    Entries other = Many(100);
    other[7].ops = 9;
    EXPECT_EQ(Update(other), CUS_CACHE_GOOD);
    EXPECT_TRUE(wrote) << "it is cut elsewhere now";
}

// A program that runs for days writes every minute, if there is something to write.
TEST_F(Cache, InAFullFileWhatIsMarkedAsUsedLastIsNotMarkedAgain) {
    Entries mine = Many(60), others = Many(20, 1000);
    ASSERT_EQ(Update(mine, {}, 100), CUS_CACHE_GOOD);
    EXPECT_EQ(Update(mine, {}, 100), CUS_CACHE_GOOD);
    EXPECT_FALSE(wrote) << "nothing was used later";
    ASSERT_EQ(Update(others, {}, 100), CUS_CACHE_GOOD);
    EXPECT_TRUE(wrote);
    EXPECT_EQ(Update(mine, {}, 100), CUS_CACHE_GOOD);
    EXPECT_TRUE(wrote) << "the others' were used later";
    EXPECT_EQ(Update(mine, {}, 100), CUS_CACHE_GOOD);
    EXPECT_FALSE(wrote);
    EXPECT_EQ(Update(mine, {}, 1000), CUS_CACHE_GOOD);
    EXPECT_EQ(Update(others, {}, 1000), CUS_CACHE_GOOD);
    EXPECT_FALSE(wrote) << "there is room";
}

TEST_F(Cache, ProcessesAddToWhatOthersLeft) {
    Entries back;
    ASSERT_EQ(Update(Many(10, 0)), CUS_CACHE_GOOD);
    ASSERT_EQ(Update(Many(10, 5)), CUS_CACHE_GOOD);
    EXPECT_EQ(n, 15u);
    ASSERT_EQ(Update({}, Many(4)), CUS_CACHE_GOOD);
    ASSERT_EQ(Read(&back), CUS_CACHE_GOOD);
    EXPECT_EQ(back.size(), 11u);
    for (const cus_cache_entry &entry : back)
        for (unsigned i = 0; i < 4; i++)
            EXPECT_NE(entry.path, Path(i)) << "it was dropped";
}

TEST_F(Cache, BeyondItsSizeTheOneUsedLongestAgoGoes) {
    Entries back, first = Many(60, 0);
    ASSERT_EQ(Update(first, {}, 100), CUS_CACHE_GOOD);
    ASSERT_EQ(Update(Many(60, 1000), {}, 100), CUS_CACHE_GOOD);
    EXPECT_EQ(n, 100u);
    ASSERT_EQ(Update(Entries(first.begin(), first.begin() + 1), {}, 100), CUS_CACHE_GOOD);
    ASSERT_EQ(Update(Many(80, 2000), {}, 100), CUS_CACHE_GOOD);
    ASSERT_EQ(Read(&back), CUS_CACHE_GOOD);
    ASSERT_EQ(back.size(), 100u);
    unsigned old = 0;
    bool used = false;
    for (const cus_cache_entry &entry : back) {
        old += entry.used == 1;
        used |= entry.path == first[0].path;
    }
    EXPECT_EQ(old, 0u);
    EXPECT_TRUE(used);
    EXPECT_EQ(cus_cache_room(1 << 20), (1048576u - 40) / 24);
    EXPECT_EQ(cus_cache_room(39), 0u);
}

TEST_F(Cache, AnyByteThatIsWrongIsNoticed) {
    ASSERT_EQ(Update(Many(3)), CUS_CACHE_GOOD);
    const std::string good = ReadFile(File());
    ASSERT_EQ(good.size(), 40u + 3 * 24);
    for (size_t at = 0; at < good.size(); at++) {
        std::string bad = good;
        bad[at] = (char)(bad[at] ^ 0x10);
        WriteFile(File(), bad);
        cus_cache_state state = Read();
        EXPECT_TRUE(state == CUS_CACHE_CORRUPT || (at >= 8 && at < 12 && state == CUS_CACHE_NEWER))
            << "byte " << at;
    }
    for (size_t bytes = 0; bytes < good.size(); bytes++) {
        WriteFile(File(), good.substr(0, bytes));
        EXPECT_EQ(Read(), CUS_CACHE_CORRUPT) << bytes << " bytes of it";
    }
    WriteFile(File(), good + "x");
    EXPECT_EQ(Read(), CUS_CACHE_CORRUPT);
    ASSERT_EQ(Update(Many(2)), CUS_CACHE_GOOD) << "what is corrupt is replaced";
    EXPECT_EQ(Read(), CUS_CACHE_GOOD);
}

// With the checksum right: what an enemy writes, or a bug.
TEST_F(Cache, EntriesWithoutSenseAreNotTaken) {
    auto state_of = [&](Entries entries) {
        cus_cache_head head = {};
        memcpy(head.magic, CUS_CACHE_MAGIC, 8);
        head.version = CUS_CACHE_VERSION;
        head.entry_bytes = sizeof(cus_cache_entry);
        head.n = entries.size();
        size_t bytes = entries.size() * sizeof entries[0];
        head.check = cus_cache_hash(entries.data(), bytes, cus_cache_hash(&head, sizeof head, 0));
        std::string file((const char *)&head, sizeof head);
        file.append((const char *)entries.data(), bytes);
        cus_cache cache;
        const char *what;
        cus_cache_state state = cus_cache_parse(file.data(), file.size(), &cache, &what);
        EXPECT_EQ(state == CUS_CACHE_GOOD, what == nullptr);
        cus_cache_free(&cache);
        return state;
    };
    EXPECT_EQ(state_of({}), CUS_CACHE_GOOD);
    EXPECT_EQ(state_of({Entry(1, 2), Entry(2, 1024)}), CUS_CACHE_GOOD);
    EXPECT_EQ(state_of({Entry(1, 1)}), CUS_CACHE_CORRUPT);
    EXPECT_EQ(state_of({Entry(1, 1025)}), CUS_CACHE_CORRUPT);
    EXPECT_EQ(state_of({Entry(2), Entry(1)}), CUS_CACHE_CORRUPT);
    EXPECT_EQ(state_of({Entry(1), Entry(1)}), CUS_CACHE_CORRUPT);
}

TEST_F(Cache, AFileOfALaterVersionIsLeftAsItIs) {
    ASSERT_EQ(Update(Many(3)), CUS_CACHE_GOOD);
    std::string later = ReadFile(File());
    later[8] = CUS_CACHE_VERSION + 1;
    WriteFile(File(), later);
    EXPECT_EQ(Read(), CUS_CACHE_NEWER);
    EXPECT_EQ(Update(Many(5)), CUS_CACHE_NEWER);
    EXPECT_FALSE(wrote);
    EXPECT_EQ(ReadFile(File()), later);
}

TEST_F(Cache, LinksAndOddFilesAreNotOpened) {
    ASSERT_EQ(Update(Many(3)), CUS_CACHE_GOOD);
    std::string aside = folder + "/aside";
    ASSERT_EQ(rename(File().c_str(), aside.c_str()), 0);
    ASSERT_EQ(symlink(aside.c_str(), File().c_str()), 0);
    EXPECT_EQ(Read(), CUS_CACHE_REFUSED);
    EXPECT_EQ(Update(Many(5)), CUS_CACHE_REFUSED);
    unlink(File().c_str());
    ASSERT_EQ(mkfifo(File().c_str(), 0600), 0);
    EXPECT_EQ(Read(), CUS_CACHE_REFUSED) << "and nobody waits for a writer";
    unlink(File().c_str());
    ASSERT_EQ(mkdir(File().c_str(), 0700), 0);
    EXPECT_EQ(Read(), CUS_CACHE_REFUSED);
    rmdir(File().c_str());
    ASSERT_EQ(rename(aside.c_str(), File().c_str()), 0);
    EXPECT_EQ(Read(), CUS_CACHE_GOOD);
    std::string link = folder + ".link";
    ASSERT_EQ(symlink(folder.c_str(), link.c_str()), 0);
    folder = link;
    EXPECT_EQ(Read(), CUS_CACHE_REFUSED);
    EXPECT_EQ(Update(Many(9)), CUS_CACHE_REFUSED);
}

TEST_F(Cache, WhatOthersMayWriteIsNotRead) {
    ASSERT_EQ(Update(Many(3)), CUS_CACHE_GOOD);
    for (mode_t mode : {0602, 0620, 0666}) {
        ASSERT_EQ(chmod(File().c_str(), mode), 0);
        EXPECT_EQ(Read(), CUS_CACHE_REFUSED);
    }
    ASSERT_EQ(chmod(File().c_str(), 0644), 0);
    EXPECT_EQ(Read(), CUS_CACHE_GOOD);
    ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
    EXPECT_EQ(Read(), CUS_CACHE_REFUSED);
    EXPECT_EQ(Update(Many(5)), CUS_CACHE_REFUSED);
    ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
    EXPECT_EQ(Read(), CUS_CACHE_GOOD);
    if (geteuid() != 0)
        GTEST_SKIP() << "only root can give a file to another user";
    ASSERT_EQ(chown(File().c_str(), 12345, (gid_t)-1), 0);
    EXPECT_EQ(Read(), CUS_CACHE_REFUSED);
    ASSERT_EQ(chown(File().c_str(), 0, (gid_t)-1), 0);
    ASSERT_EQ(chown(folder.c_str(), 12345, (gid_t)-1), 0);
    EXPECT_EQ(Read(), CUS_CACHE_REFUSED);
    ASSERT_EQ(chown(folder.c_str(), 0, (gid_t)-1), 0);
}

TEST_F(Cache, NobodyWaitsForTheLock) {
    ASSERT_EQ(Update(Many(3)), CUS_CACHE_GOOD);
    int lock = open((File() + ".lock").c_str(), O_RDWR);
    ASSERT_GE(lock, 0);
    ASSERT_EQ(flock(lock, LOCK_EX), 0);
    EXPECT_EQ(Update(Many(5)), CUS_CACHE_BUSY);
    EXPECT_FALSE(wrote);
    EXPECT_EQ(cus_cache_clear(folder.c_str(), &why), CUS_CACHE_BUSY);
    EXPECT_EQ(Read(), CUS_CACHE_GOOD) << "who reads needs no lock";
    close(lock);
    EXPECT_EQ(Update(Many(5)), CUS_CACHE_GOOD);
    EXPECT_EQ(cus_cache_clear(folder.c_str(), &why), CUS_CACHE_GOOD);
    EXPECT_EQ(cus_cache_clear(folder.c_str(), &why), CUS_CACHE_NONE);
    EXPECT_EQ(Read(), CUS_CACHE_NONE);
}

TEST_F(Cache, ADiskThatIsFullLeavesTheOldFile) {
    Entries back;
    ASSERT_EQ(Update(Many(3)), CUS_CACHE_GOOD);
    std::string before = ReadFile(File());
    // What a process that was ended in the midst of writing left behind is in nobody's way.
    WriteFile(File() + ".new", "half");
    rlimit limit, small = {64, 64};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small.rlim_max = limit.rlim_max;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    errno = 7;
    cus_cache_state state = Update(Many(50)); // a signal, were it written
    EXPECT_EQ(errno, 7);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_EQ(state, CUS_CACHE_FAILED);
    EXPECT_EQ(ReadFile(File()), before);
    EXPECT_EQ(Update(Many(50)), CUS_CACHE_GOOD);
    ASSERT_EQ(Read(&back), CUS_CACHE_GOOD);
    EXPECT_EQ(back.size(), 50u);
    EXPECT_NE(access((File() + ".new").c_str(), F_OK), 0);
}

TEST_F(Cache, AFolderThatCannotBeMadeIsSaid) {
    folder = "/proc/cusplice-cache";
    EXPECT_EQ(Read(), CUS_CACHE_NONE);
    EXPECT_EQ(Update(Many(3)), CUS_CACHE_FAILED);
    EXPECT_NE(why, nullptr);
}

TEST_F(Cache, WhatManyProcessesWriteAtOnceIsWholeAtAnyTime) {
    ASSERT_EQ(Update(Many(1, 999999)), CUS_CACHE_GOOD);
    std::vector<pid_t> children;
    for (unsigned child = 0; child < 4; child++) {
        pid_t pid = fork();
        if (pid == 0) {
            bool good = true;
            for (unsigned i = 0; i < 50; i++) {
                cus_cache_state state;
                while ((state = Update(Many(20, (child * 50 + i) * 20))) == CUS_CACHE_BUSY)
                    sched_yield();
                good &= state == CUS_CACHE_GOOD && Read() == CUS_CACHE_GOOD;
            }
            _exit(good ? 0 : 1);
        }
        children.push_back(pid);
    }
    for (pid_t pid : children) {
        int status = 1;
        waitpid(pid, &status, 0);
        EXPECT_EQ(status, 0);
    }
    Entries back;
    ASSERT_EQ(Read(&back), CUS_CACHE_GOOD);
    EXPECT_EQ(back.size(), 4u * 50 * 20 + 1) << "nobody undid what another one had done";
}

TEST_F(Cache, LookUpFindsWhatIsThereAndNothingElse) {
    std::mt19937_64 random(1);
    for (unsigned size : {0u, 1u, 2u, 3u, 10u, 1000u}) {
        // Hashes, and what an enemy might write: all at one end, or all but one.
        for (int shape = 0; shape < 4; shape++) {
            Entries entries;
            for (unsigned i = 0; i < size; i++)
                entries.push_back(Entry(shape == 0   ? random()
                                        : shape == 1 ? i
                                        : shape == 2 ? UINT64_MAX - i
                                                     : i * i * i));
            uint32_t count = cus_cache_sort(entries.data(), size);
            for (uint32_t i = 0; i < count; i++) {
                ASSERT_EQ(cus_cache_find(entries.data(), count, entries[i].path), i);
                if (i + 1 < count && entries[i].path + 1 < entries[i + 1].path) {
                    ASSERT_EQ(cus_cache_find(entries.data(), count, entries[i].path + 1), count);
                }
            }
            ASSERT_EQ(cus_cache_find(entries.data(), count, random() | 1u << 31), count);
        }
    }
}

TEST_F(Cache, OfTwoWithOnePathTheOneUsedLastStays) {
    Entries entries = {Entry(5, 8, 1), Entry(3, 9, 7), Entry(5, 7, 4), Entry(5, 6, 2)};
    ASSERT_EQ(cus_cache_sort(entries.data(), 4), 2u);
    EXPECT_EQ(entries[0].path, 3u);
    EXPECT_EQ(entries[1].ops, 7u);
}

} // namespace
