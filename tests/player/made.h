// Makes replayable traces of programs that never ran. A plain array holds the effect of their work
// on memory, so the final sums are known.
//
// Device memory is reserved at kBase, kBytes long; nothing is mapped until Alloc. Code is the
// simulator's, where every image holds every kernel of kernels/.
#ifndef CUSPLICE_TESTS_PLAYER_MADE_H
#define CUSPLICE_TESTS_PLAYER_MADE_H

#include <map>
#include <string>
#include <vector>

#include "tests/unit/trace/synth.h"

uint64_t Base(); // where the simulator leaves room
constexpr uint64_t kBytes = 64 << 20, kGranule = 2 << 20;

class Made {
  public:
    explicit Made(const std::string &path, bool packed = false);

    // Code. `library`: loaded by cuLibraryLoadData.
    uint32_t Module(bool library = true);
    uint32_t Image(const std::string &image, bool library = true);
    uint32_t FileModule(const std::string &path, uint64_t offset, uint64_t bytes, uint64_t check,
                        const std::string &build_id);
    // A function of kernels/, with arguments of those sizes at their natural places.
    uint32_t Code(uint32_t module, const std::string &name, const std::vector<uint32_t> &sizes);
    uint32_t Lane(uint32_t kind, uint32_t flags = 0, int32_t priority = 0);

    void Span(uint32_t what, uint64_t address, uint64_t bytes, const std::string &name,
              bool gone = false, uint32_t module = 0);
    // Device memory at kBase + offset; returns its address.
    uint64_t Alloc(uint64_t offset, uint64_t bytes);
    // What is there when the recording begins.
    void Contents(uint64_t address, const std::vector<uint32_t> &words);
    void Data(uint32_t of, uint32_t id, uint64_t offset, const std::string &bytes);

    cst_work *Work(cst_work_what what, uint32_t lane, size_t more = 0);
    // `words`: of the arguments, one 8-byte word each, cut to its size.
    cst_work *Launch(uint32_t lane, uint32_t code, uint32_t blocks, uint32_t threads,
                     const std::vector<uint64_t> &words,
                     const std::vector<cst_attribute> &attributes = {});
    // The kernels chain and copy_words, done here too; n words.
    void Chain(uint32_t lane, uint64_t at, uint32_t a, uint32_t b, uint32_t n);
    void CopyWords(uint32_t lane, uint64_t to, uint64_t from, uint32_t n);
    cst_work *Memset(uint32_t lane, uint64_t at, uint32_t elem, uint32_t value, uint64_t width,
                     uint64_t height = 1, uint64_t pitch = 0);
    cst_work *Upload(uint32_t lane, uint64_t to, const std::vector<uint32_t> &words,
                     uint64_t from = 0);
    cst_work *Download(uint32_t lane, uint64_t from, uint64_t bytes, uint64_t to = 0);
    cst_work *Move(uint32_t lane, uint64_t to, uint64_t from, uint64_t bytes);
    cst_work *Event(cst_work_what what, uint32_t lane, uint64_t event);
    void Sync(uint32_t lane) { Work(CST_WORK_SYNC, lane)->sync = 1; }

    void Check(uint64_t address, uint64_t bytes, uint64_t off = 0);
    void Obstacle(const std::string &call, const std::string &why);
    int Close();

    uint32_t Read(uint64_t address); // a word of the memory now
    uint64_t gap_ns = 0;
    Synth s;

  private:
    template <typename T> T *Add(cst_type type, size_t more = 0);
    uint8_t *At(uint64_t address) { return memory_.data() + (address - Base()); }
    std::vector<uint8_t> memory_ = std::vector<uint8_t>(kBytes);
    std::vector<std::vector<uint32_t>> sizes_{{}}; // by code
    uint32_t modules_ = 0, lanes_ = 0, inputs_ = 0, chain_ = 0, copy_words_ = 0;
    bool packed_;
};

// A program of `steps` steps on a stream of its own: uploads, kernels, memsets, copies, a download,
// a wait; the second stream meets it by events. `wrong`: one of its sums is not right. `both`: it
// is waited for too, so that it is no loop without waits.
std::string MakeSteps(const std::string &name, int steps, bool packed = false, bool wrong = false,
                      bool both = false);

#endif
