#include "tests/fuzz/parse/traces.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include "shim/trace/format.h"
#include "tests/fuzz/parse/check.h"
#include "xxhash.h"

namespace {

void Append(std::string *file, const void *bytes, size_t n) {
    file->append(static_cast<const char *>(bytes), n);
}

void Sum(cst_block *block, const char *payload) {
    block->check = XXH3_64bits_withSeed(payload, block->bytes,
                                        block->type + (static_cast<uint64_t>(block->flags) << 32));
}

// Each block that is whole gets its checksum.
void MakeRight(std::string *file) {
    size_t at = sizeof(cst_file);
    while (at + sizeof(cst_block) <= file->size()) {
        cst_block block;
        memcpy(&block, &(*file)[at], sizeof block);
        if (block.bytes > file->size() - at - sizeof block)
            return;
        Sum(&block, &(*file)[at + sizeof block]);
        memcpy(&(*file)[at], &block, sizeof block);
        at += sizeof block + ((block.bytes + 7) & ~uint64_t{7});
    }
}

// What the bytes are as the records of a file's only block.
std::string Wrap(const uint8_t *data, size_t size) {
    std::string file, payload(reinterpret_cast<const char *>(data), size);
    payload.resize((size + 7) / 8 * 8);
    cst_file head = {};
    memcpy(head.magic, CST_MAGIC, sizeof head.magic);
    head.version = CST_VERSION;
    head.mark = CST_MARK;
    cst_block block = {CST_BLOCK_RECORDS, 0, payload.size(), payload.size(), 0};
    Sum(&block, payload.data());
    cst_block end = {CST_BLOCK_END, 0, 0, 0, 0};
    Sum(&end, "");
    Append(&file, &head, sizeof head);
    Append(&file, &block, sizeof block);
    file += payload;
    Append(&file, &end, sizeof end);
    return file;
}

} // namespace

std::string TraceOf(const uint8_t *data, size_t size) {
    if (size < 8 || memcmp(data, CST_MAGIC, 8) != 0)
        return Wrap(data, size);
    std::string file(reinterpret_cast<const char *>(data), size);
    MakeRight(&file);
    return file;
}

std::string InMemory(unsigned file, const std::string &bytes) {
    static int files[4] = {-1, -1, -1, -1};
    int &fd = files[file % 4];
    if (fd < 0)
        fd = memfd_create("input", MFD_CLOEXEC);
    CHECK(fd >= 0 && fchmod(fd, 0600) == 0 && ftruncate(fd, 0) == 0 &&
          pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    return "/proc/self/fd/" + std::to_string(fd);
}

const std::string &Folder() {
    static const std::string &folder = *new std::string([] { // it is still there at exit
        const char *tests = getenv("TEST_TMPDIR");
        bool shared = access("/dev/shm", W_OK) == 0;
        std::string made = std::string(tests    ? tests
                                       : shared ? "/dev/shm"
                                                : "/tmp") +
                           "/import-XXXXXX";
        CHECK(mkdtemp(&made[0]));
        atexit([] {
            unlink((Folder() + "/in").c_str());
            rmdir(Folder().c_str());
        });
        return made;
    }());
    return folder;
}

std::string OnDisk(const std::string &bytes) {
    std::string path = Folder() + "/in";
    FILE *file = fopen(path.c_str(), "w");
    CHECK(file && fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() && !fclose(file));
    return path;
}

void CheckNothingElse() {
    DIR *folder = opendir(Folder().c_str());
    while (dirent *entry = readdir(folder))
        CHECK(*entry->d_name == '.' || strcmp(entry->d_name, "in") == 0);
    closedir(folder);
}
