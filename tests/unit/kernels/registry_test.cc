// Promise: every kernel file is in the CPU library, in kernels.h and in the README. Its parameters
// are at the offsets that the driver reports.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "kernels/kernels.h"
#include "tests/unit/kernels/run.h"

namespace {

std::string text(const std::string &path) {
    std::ifstream file(path);
    EXPECT_TRUE(file.good()) << path;
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
}

const char *const names[] = {
#define NAME(name) #name,
#include "tests/unit/kernels/names.inc"
#undef NAME
};

TEST(Registry, HoldsEveryKernelFileOnce) {
    unsigned listed = 0;
    for (const struct cusim_kernel *k = cusim_kernel_head; k; k = k->next) {
        if (!std::string(k->name).compare(0, 6, "cublas")) {
            continue; /* the libraries' own kernels are not of this folder */
        }
        listed++;
        EXPECT_NE(std::find_if(std::begin(names), std::end(names),
                               [&](const char *n) { return !strcmp(n, k->name); }),
                  std::end(names))
            << k->name;
    }
    EXPECT_EQ(listed, std::size(names));
    for (const char *name : names) {
        EXPECT_NE(cusim_kernel_find(name), nullptr) << name;
    }
    EXPECT_EQ(cusim_kernel_find("no_such_kernel"), nullptr);
}

TEST(Registry, HeaderAndReadmeAndImagesKnowEveryKernel) {
    std::string header = text("kernels/kernels.h"), readme = text("kernels/README.md"),
                images = text("kernels/micro.cu") + text("kernels/decode.cu");
    for (const char *name : names) {
        EXPECT_NE(header.find("void " + std::string(name) + "("), std::string::npos) << name;
        EXPECT_NE(readme.find("| `" + std::string(name) + "` |"), std::string::npos) << name;
        EXPECT_NE(images.find("kernels/" + std::string(name) + ".cu\""), std::string::npos) << name;
    }
}

// The simulator knows every kernel whatever the image holds: only a GPU would miss it.
TEST(Registry, TheScenariosImageHoldsTheirKernels) {
    std::string image = text("harness/scenario/scenario_kernels.cu");
    std::istringstream list(text("harness/scenario/kernels.def"));
    unsigned n = 0;
    for (std::string line; std::getline(list, line);) {
        if (line.rfind("SC_KERNEL(", 0)) {
            continue;
        }
        std::string name = line.substr(10, line.find(')') - 10);
        EXPECT_NE(image.find("kernels/" + name + ".cu\""), std::string::npos) << name;
        n++;
    }
    EXPECT_GT(n, 20u);
}

TEST(Registry, ParametersLieAsInAStructure) {
    struct Packed {
        unsigned long long *out;
        char a;
        short b;
        int c;
        long long d;
        float e;
        double f;
        unsigned char g;
        struct cus_mixed h;
        unsigned short i;
        const unsigned *j;
        unsigned long long k;
    };
    const unsigned offsets[] = {offsetof(Packed, out), offsetof(Packed, a), offsetof(Packed, b),
                                offsetof(Packed, c),   offsetof(Packed, d), offsetof(Packed, e),
                                offsetof(Packed, f),   offsetof(Packed, g), offsetof(Packed, h),
                                offsetof(Packed, i),   offsetof(Packed, j), offsetof(Packed, k)};
    const struct cusim_kernel *kernel = cusim_kernel_find("many_params");
    ASSERT_NE(kernel, nullptr);
    ASSERT_EQ(kernel->n_params, 12u);
    for (unsigned i = 0; i < 12; i++) {
        EXPECT_EQ(kernel->offset[i], offsets[i]) << i;
    }
    EXPECT_EQ(kernel->size[8], sizeof(struct cus_mixed));
    EXPECT_EQ(cusim_kernel_find("big_params")->size[1], 1024u);
    EXPECT_EQ(cusim_kernel_find("big_params")->offset[1], 8u);
}

} // namespace
