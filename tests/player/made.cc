#include "tests/player/made.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define XXH_INLINE_ALL
#include "xxhash.h"

uint64_t Base() {
    const char *sanitizer = getenv("CUS_TEST_SANITIZER");
    return sanitizer && strcmp(sanitizer, "tsan") == 0 ? 0x6800000000 : 0x340000000000;
}

Made::Made(const std::string &path, bool packed) : s(path, packed), packed_(packed) {
    s.Facts("{\"gpu\":\"Simulated H200\",\"compute_capability\":90,\"options\":{\"mode\":"
            "\"piecewise\",\"warmup\":\"2\"},\"rules\":[]}");
    s.Thread(100, "main");
    Span(CST_SPAN_RESERVED, Base(), kBytes, "");
}

template <typename T> T *Made::Add(cst_type type, size_t more) {
    size_t bytes = (sizeof(T) + more + 7) & ~size_t{7};
    if (s.sink.used + bytes > CST_SINK)
        s.Block();
    T *record = static_cast<T *>(cst_sink_add(&s.sink, type, bytes));
    record->head.thread = s.thread;
    record->head.ns = s.now += 1000;
    return record;
}

uint32_t Made::Module(bool library) {
    std::string image = "an image that holds every kernel, number " + std::to_string(modules_);
    image.push_back('\0'); // as the text of PTX ends
    return Image(image, library);
}

uint32_t Made::Image(const std::string &image, bool library) {
    auto *module = Add<cst_module>(CST_MODULE);
    module->id = ++modules_;
    module->form = CST_MODULE_IMAGE;
    module->library = library;
    module->bytes = image.size();
    module->check = XXH3_64bits(image.data(), image.size());
    Data(CST_DATA_IMAGE, modules_, 0, image.substr(0, 10));
    if (image.size() > 10)
        Data(CST_DATA_IMAGE, modules_, 10, image.substr(10));
    return modules_;
}

uint32_t Made::FileModule(const std::string &path, uint64_t offset, uint64_t bytes, uint64_t check,
                          const std::string &build_id) {
    uint32_t file = s.String(path), id = s.String(build_id);
    auto *module = Add<cst_module>(CST_MODULE);
    module->id = ++modules_;
    module->form = CST_MODULE_FILE;
    module->library = 1;
    module->file = file;
    module->build_id = id;
    module->offset = offset;
    module->bytes = bytes;
    module->check = check;
    return modules_;
}

uint32_t Made::Code(uint32_t module, const std::string &name, const std::vector<uint32_t> &sizes) {
    s.Kernel(name);
    uint32_t text = s.String(name), at = 0;
    auto *code = Add<cst_code>(CST_CODE, sizes.size() * sizeof(cst_argument));
    code->id = static_cast<uint32_t>(sizes_.size());
    code->module = module;
    code->name = text;
    code->kernel = 1;
    code->n_arguments = static_cast<uint32_t>(sizes.size());
    auto *argument = reinterpret_cast<cst_argument *>(code + 1);
    for (uint32_t size : sizes) {
        at = (at + size - 1) / size * size;
        *argument++ = {at, size};
        at += size;
    }
    code->param_bytes = at;
    sizes_.push_back(sizes);
    return code->id;
}

uint32_t Made::Lane(uint32_t kind, uint32_t flags, int32_t priority) {
    auto *lane = Add<cst_lane>(CST_LANE);
    lane->id = ++lanes_;
    lane->kind = kind;
    lane->flags = flags;
    lane->priority = priority;
    return lanes_;
}

void Made::Span(uint32_t what, uint64_t address, uint64_t bytes, const std::string &name, bool gone,
                uint32_t module) {
    uint32_t text = s.String(name);
    auto *span = Add<cst_span>(CST_SPAN);
    span->what = what;
    span->module = module;
    span->name = text;
    span->gone = gone;
    span->address = address;
    span->bytes = bytes;
}

uint64_t Made::Alloc(uint64_t offset, uint64_t bytes) {
    Span(CST_SPAN_DEVICE, Base() + offset, bytes, "cuMemAlloc_v2");
    return Base() + offset;
}

void Made::Data(uint32_t of, uint32_t id, uint64_t offset, const std::string &bytes) {
    cst_data head = {of, id, offset, bytes.size()};
    std::string raw(reinterpret_cast<const char *>(&head), sizeof head);
    raw += bytes;
    if (!packed_) {
        cst_out_block(&s.out, CST_BLOCK_DATA, 0, raw.data(), raw.size(), raw.size());
        return;
    }
    std::string frame(ZSTD_compressBound(raw.size()), 0);
    frame.resize(ZSTD_compress(frame.data(), frame.size(), raw.data(), raw.size(), 3));
    cst_out_block(&s.out, CST_BLOCK_DATA, CST_BLOCK_ZSTD, frame.data(), frame.size(), raw.size());
}

void Made::Contents(uint64_t address, const std::vector<uint32_t> &words) {
    memcpy(At(address), words.data(), words.size() * 4);
    Data(CST_DATA_MEMORY, 0, address,
         std::string(reinterpret_cast<const char *>(words.data()), words.size() * 4));
}

cst_work *Made::Work(cst_work_what what, uint32_t lane, size_t more) {
    auto *work = Add<cst_work>(CST_WORK, more);
    work->head.flags = static_cast<uint8_t>(what);
    work->gap_ns = gap_ns;
    work->lane = lane;
    return work;
}

cst_work *Made::Launch(uint32_t lane, uint32_t code, uint32_t blocks, uint32_t threads,
                       const std::vector<uint64_t> &words,
                       const std::vector<cst_attribute> &attributes) {
    size_t before = attributes.size() * sizeof(cst_attribute), at = 0;
    cst_work *work = Work(CST_WORK_LAUNCH, lane, before + words.size() * 8);
    work->code = code;
    work->dims[0] = blocks;
    work->dims[3] = threads;
    work->dims[1] = work->dims[2] = work->dims[4] = work->dims[5] = 1;
    work->n_attributes = static_cast<uint32_t>(attributes.size());
    auto *behind = reinterpret_cast<uint8_t *>(work + 1);
    if (before)
        memcpy(behind, attributes.data(), before);
    for (size_t i = 0; i < words.size(); i++) {
        uint32_t size = sizes_[code][i];
        at = (at + size - 1) / size * size;
        memcpy(behind + before + at, &words[i], size < 8 ? size : 8);
        at += size;
    }
    return work;
}

void Made::Chain(uint32_t lane, uint64_t at, uint32_t a, uint32_t b, uint32_t n) {
    if (!chain_)
        chain_ = Code(modules_, "chain", {8, 4, 4, 4});
    Launch(lane, chain_, (n + 63) / 64, 64, {at, a, b, n});
    for (uint32_t i = 0; i < n; i++) {
        uint32_t word = a * Read(at + 4 * i) + b;
        memcpy(At(at + 4 * i), &word, 4);
    }
}

void Made::CopyWords(uint32_t lane, uint64_t to, uint64_t from, uint32_t n) {
    if (!copy_words_)
        copy_words_ = Code(modules_, "copy_words", {8, 8, 4});
    Launch(lane, copy_words_, (n + 63) / 64, 64, {to, from, n});
    memcpy(At(to), At(from), 4 * n);
}

cst_work *Made::Memset(uint32_t lane, uint64_t at, uint32_t elem, uint32_t value, uint64_t width,
                       uint64_t height, uint64_t pitch) {
    cst_work *work = Work(CST_WORK_MEMSET, lane);
    work->to = at;
    work->elem = elem;
    work->value = value;
    work->width = width;
    work->height = height;
    work->pitch = pitch;
    for (uint64_t row = 0; row < height; row++)
        for (uint64_t i = 0; i < width; i++)
            memcpy(At(at + row * pitch + i * elem), &value, elem);
    return work;
}

cst_work *Made::Upload(uint32_t lane, uint64_t to, const std::vector<uint32_t> &words,
                       uint64_t from) {
    Data(CST_DATA_INPUT, ++inputs_, 0,
         std::string(reinterpret_cast<const char *>(words.data()), words.size() * 4));
    cst_work *work = Work(CST_WORK_COPY, lane);
    work->input = inputs_;
    work->to = to;
    work->from = from;
    work->width = words.size() * 4;
    work->height = 1;
    memcpy(At(to), words.data(), words.size() * 4);
    return work;
}

cst_work *Made::Download(uint32_t lane, uint64_t from, uint64_t bytes, uint64_t to) {
    cst_work *work = Work(CST_WORK_COPY, lane);
    work->to_host = 1;
    work->from = from;
    work->to = to;
    work->width = bytes;
    work->height = 1;
    return work;
}

cst_work *Made::Move(uint32_t lane, uint64_t to, uint64_t from, uint64_t bytes) {
    cst_work *work = Work(CST_WORK_COPY, lane);
    work->from = from;
    work->to = to;
    work->width = bytes;
    work->height = 1;
    memcpy(At(to), At(from), bytes);
    return work;
}

cst_work *Made::Event(cst_work_what what, uint32_t lane, uint64_t event) {
    cst_work *work = Work(what, lane);
    work->event = event;
    return work;
}

void Made::Check(uint64_t address, uint64_t bytes, uint64_t off) {
    auto *check = Add<cst_check>(CST_CHECK);
    check->address = address;
    check->bytes = bytes;
    check->check = XXH3_64bits(At(address), bytes) + off;
}

void Made::Obstacle(const std::string &call, const std::string &why) {
    uint32_t name = s.String(call), text = s.String(why);
    auto *obstacle = Add<cst_obstacle>(CST_OBSTACLE);
    obstacle->call = name;
    obstacle->why = text;
}

int Made::Close() {
    return s.Close();
}

uint32_t Made::Read(uint64_t address) {
    uint32_t word;
    memcpy(&word, At(address), 4);
    return word;
}

std::string MakeSteps(const std::string &name, int steps, bool packed, bool wrong, bool both) {
    std::string path = Fresh(name);
    Made m(path, packed);
    constexpr uint32_t n = 512;
    const uint64_t pinned = 0x7f1000000000;
    m.Module();
    uint32_t main = m.Lane(CST_STREAM_CREATED, 1), side = m.Lane(CST_STREAM_CREATED, 1, -1);
    uint64_t a = m.Alloc(0, 4 * n), b = m.Alloc(4 * n, 4 * n); // in one granule
    uint64_t c = m.Alloc(3 * kGranule - 4096, 8192);           // across two
    m.Span(CST_SPAN_HOST, pinned, 1 << 20, "cuMemHostAlloc");
    std::vector<uint32_t> words(n);
    for (uint32_t i = 0; i < n; i++)
        words[i] = i * 2654435761u;
    m.Contents(a, words);
    for (int step = 0; step < steps; step++) {
        for (uint32_t &word : words)
            word = word * 3 + static_cast<uint32_t>(step);
        m.Upload(main, b, words, pinned);
        m.Chain(main, b, 3, 5, n);
        m.Chain(main, b, 7, static_cast<uint32_t>(step), n);
        m.Chain(main, a, 5, 11, n);
        m.CopyWords(main, c, b, n);
        m.Event(CST_WORK_RECORD, main, 0xe1);
        m.Event(CST_WORK_WAIT, side, 0xe1);
        m.Memset(side, b, 4, static_cast<uint32_t>(step) * 17, n / 2);
        m.Chain(side, c, 9, 1, n);
        m.Chain(side, b, 9, 2, n);
        m.Event(CST_WORK_RECORD, side, 0xe2);
        m.Event(CST_WORK_WAIT, main, 0xe2);
        m.Event(CST_WORK_WAIT, main, 0xe3); // never recorded
        m.Move(main, c + 4096, b, 4 * n);
        m.Chain(main, c + 4096, 13, 3, n);
        m.Chain(main, a, 2, m.Read(a) & 1, n);
        m.Download(main, a, 4 * n, pinned + 65536);
        m.Sync(main);
        if (both)
            m.Sync(side);
    }
    m.Span(CST_SPAN_DEVICE, c, 8192, "cuMemFree_v2", true);
    m.Check(a, 4 * n);
    m.Check(b, 4 * n);
    m.Check(c, 8192, wrong);
    return m.Close() == 0 ? path : "";
}
