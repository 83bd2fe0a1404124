// Promise: a weights file is read whole and exactly, or refused with a reason; every value is
// checked first.
#include "harness/decode/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

// A model with 2 tokens: dim 4, 1 layer, 2 heads, 1 key-value head, hidden 3.
class File {
  public:
    File() : bytes_(256, '\0') {
        std::memcpy(&bytes_[0], "CHARLLM", 8);
        const uint32_t numbers[] = {1, 4, 1, 2, 1, 3, 2, 16};
        for (int i = 0; i < 8; i++) {
            set(8 + 4 * i, numbers[i]);
        }
        set_float(40, 10000.0f);
        set_float(44, 1e-5f);
        bytes_[48] = '\n';
        bytes_[49] = 'a';
        // Weight i is the half with the bits 0x3c00 + i, which is 1 + i / 1024.
        for (int i = 0; i < count(); i++) {
            bytes_ += static_cast<char>(i);
            bytes_ += 0x3c;
        }
    }

    // Embedding, two norms, wq and wo, wk and wv, gate, up and down, the last norm.
    static int count() { return 2 * 4 + 2 * 4 + 2 * 4 * 4 + 2 * 2 * 4 + 3 * 3 * 4 + 4; }

    void set(size_t at, uint32_t value) {
        for (int i = 0; i < 4; i++) {
            bytes_[at + i] = static_cast<char>(value >> 8 * i);
        }
    }
    void set_float(size_t at, float value) {
        uint32_t bits;
        std::memcpy(&bits, &value, 4);
        set(at, bits);
    }
    std::string &bytes() { return bytes_; }

    // The reason for which the file is refused, or "" for a file that is read.
    std::string refused(decode_model *model) {
        std::string path = testing::TempDir() + "/weights.bin";
        FILE *file = fopen(path.c_str(), "wb");
        EXPECT_EQ(fwrite(bytes_.data(), 1, bytes_.size(), file), bytes_.size());
        fclose(file);
        char why[128] = "not set";
        int status = decode_model_read(path.c_str(), model, why, sizeof(why));
        EXPECT_EQ(status, why[0] ? -1 : 0);
        EXPECT_EQ(model->weights == nullptr, status == -1);
        return why;
    }

    std::string refused() {
        decode_model model;
        std::string why = refused(&model);
        decode_model_free(&model);
        return why;
    }

  private:
    std::string bytes_;
};

TEST(Model, IsReadExactly) {
    File file;
    decode_model model;
    ASSERT_EQ(file.refused(&model), "");
    EXPECT_EQ(model.shape.dim, 4);
    EXPECT_EQ(model.shape.layers, 1);
    EXPECT_EQ(model.shape.heads, 2);
    EXPECT_EQ(model.shape.kv_heads, 1);
    EXPECT_EQ(model.shape.hidden, 3);
    EXPECT_EQ(model.shape.vocab, 2);
    EXPECT_EQ(model.shape.context, 16);
    EXPECT_EQ(model.shape.rope_base, 10000.0f);
    EXPECT_EQ(model.shape.norm_eps, 1e-5f);
    EXPECT_EQ(decode_kv_dim(&model.shape), 2u);
    ASSERT_EQ(model.n_weights, static_cast<size_t>(File::count()));
    for (int i = 0; i < File::count(); i++) {
        EXPECT_EQ(model.weights[i], 1.0f + i / 1024.0f);
    }
    EXPECT_EQ(model.token_of[static_cast<int>('\n')], 0);
    EXPECT_EQ(model.token_of[static_cast<int>('a')], 1);
    EXPECT_EQ(model.token_of[static_cast<int>('b')], -1);
    EXPECT_EQ(model.byte_of[1], 'a');
    decode_model_free(&model);
    decode_model_free(&model);
}

TEST(Model, RefusesWhatIsNoModel) {
    File file;
    file.bytes()[3] = 'X';
    EXPECT_EQ(file.refused(), "this is no weights file of a character model");
    File cut;
    cut.bytes().resize(100);
    EXPECT_EQ(cut.refused(), "this is no weights file of a character model");
    File empty;
    empty.bytes().clear();
    EXPECT_EQ(empty.refused(), "this is no weights file of a character model");
    File later;
    later.set(8, 2);
    EXPECT_EQ(later.refused(), "format version 2 is not known here");
    char why[64];
    decode_model model;
    EXPECT_EQ(decode_model_read("/no/such/file", &model, why, sizeof(why)), -1);
    EXPECT_STREQ(why, "No such file or directory");
}

TEST(Model, RefusesSizesThatMakeNoSense) {
    for (size_t at = 12; at < 40; at += 4) {
        for (uint32_t value : {0u, 0x7fffffffu, 0xffffffffu}) {
            File file;
            file.set(at, value);
            EXPECT_NE(file.refused(), "") << "header byte " << at << " = " << value;
        }
    }
    File heads;
    heads.set(20, 3);
    EXPECT_EQ(heads.refused(), "dim 4, heads 3 and kv_heads 1 do not go together");
    File odd;
    odd.set(20, 4);
    EXPECT_EQ(odd.refused(), "dim 4, heads 4 and kv_heads 1 do not go together");
    File base;
    base.set_float(40, NAN);
    EXPECT_NE(base.refused(), "");
    File eps;
    eps.set_float(44, -1.0f);
    EXPECT_NE(eps.refused(), "");
}

TEST(Model, RefusesAWrongLength) {
    File shorter, longer;
    shorter.bytes().pop_back();
    EXPECT_NE(shorter.refused().find("too short"), std::string::npos);
    longer.bytes() += 'x';
    EXPECT_NE(longer.refused().find("too long"), std::string::npos);
}

TEST(Model, RefusesWeightsAndVocabulariesThatCannotBe) {
    File infinite;
    infinite.bytes()[256 + 2 * 5] = 0x00;
    infinite.bytes()[256 + 2 * 5 + 1] = 0x7c;
    EXPECT_EQ(infinite.refused(), "weight 5 is not a finite number");
    File twice;
    twice.bytes()[49] = '\n';
    EXPECT_EQ(twice.refused(), "the vocabulary has byte 10 twice");
}

TEST(Model, EveryHalfBecomesItsSingle) {
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
        float value = decode_half_to_float(static_cast<uint16_t>(bits));
        EXPECT_EQ(std::signbit(value), std::isnan(value) ? std::signbit(value) : bits >> 15 == 1);
        if (exponent == 31) {
            EXPECT_TRUE(fraction ? std::isnan(value) : std::isinf(value));
            continue;
        }
        double expected = exponent
                              ? (1 + fraction / 1024.0) * std::exp2(static_cast<int>(exponent) - 15)
                              : fraction * std::exp2(-24);
        EXPECT_EQ(std::fabs(value), expected);
    }
}

TEST(Model, TheOneInTheTreeIsReadAndSmall) {
    decode_model model;
    char why[128];
    ASSERT_EQ(decode_model_read("harness/decode/model/austen.bin", &model, why, sizeof(why)), 0)
        << why;
    EXPECT_EQ(model.n_weights, 1922080u);
    EXPECT_LE(256 + 2 * model.n_weights, 4000000u);
    EXPECT_EQ(model.shape.vocab, 96);
    for (int byte = 32; byte < 127; byte++) {
        EXPECT_GE(model.token_of[byte], 0);
    }
    decode_model_free(&model);
}

} // namespace
