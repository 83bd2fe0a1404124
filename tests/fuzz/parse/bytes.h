// Reads a fuzzer's bytes as choices, one after another; after the last byte all are 0.
#ifndef TESTS_FUZZ_PARSE_BYTES_H
#define TESTS_FUZZ_PARSE_BYTES_H

#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <string>

class Bytes {
  public:
    Bytes(const uint8_t *data, size_t size) : at_(data), left_(size) {}
    bool Empty() const { return left_ == 0; }
    uint8_t Byte() { return Number<uint8_t>(); }
    unsigned Below(unsigned n) { return Byte() % n; }
    // Small ones mostly, so that several are the same; any one sometimes.
    int64_t Integer() {
        uint8_t first = Byte();
        return first < 0xf0 ? first % 16 : first < 0xf8 ? Number<int16_t>() : Number<int64_t>();
    }
    template <class T> T Number() {
        T number{};
        size_t bytes = std::min(sizeof number, left_);
        if (bytes) // an empty input may be nowhere
            memcpy(&number, at_, bytes);
        Skip(bytes);
        return number;
    }
    // Its length stands in front of it; up to a NUL.
    std::string Text() {
        size_t bytes = std::min<size_t>(Byte(), left_);
        std::string text(reinterpret_cast<const char *>(at_), bytes);
        Skip(bytes);
        return text.c_str();
    }

  private:
    void Skip(size_t bytes) {
        at_ += bytes;
        left_ -= bytes;
    }
    const uint8_t *at_;
    size_t left_;
};

#endif
