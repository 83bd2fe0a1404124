// Promise: place and length of an image of code are found: fat binaries with and without nvcc's
// wrapper, cubins, text; in a mapped file or not.
#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

extern "C" {
#include "shim/keep/image.h"
}

namespace {

struct Head {
    uint32_t magic = 0xba55ed50;
    uint16_t version = 1, head_bytes = 16;
    uint64_t bytes = 48;
    uint8_t code[48] = {};
};

struct Wrapper {
    uint32_t magic = 0x466243b1, version = 1;
    const void *data;
    void *file = nullptr;
};

// Of this program itself: read only, part of its file. Volatile: not made up at the place of use.
const Head in_program = {};
Head writable = {};

TEST(Image, AFatBinary) {
    std::vector<uint8_t> copy(sizeof(Head));
    memcpy(copy.data(), &in_program, sizeof(Head));
    cus_keep_image image;
    ASSERT_TRUE(cus_keep_image_find(copy.data(), &image));
    EXPECT_EQ(image.at, copy.data());
    EXPECT_EQ(image.bytes, 64u);
    EXPECT_STREQ(image.path, "");
}

TEST(Image, WhatIsAroundOneIsLeftOut) {
    std::vector<uint8_t> copy(sizeof(Head));
    memcpy(copy.data(), &in_program, sizeof(Head));
    Wrapper wrapper;
    wrapper.data = copy.data();
    cus_keep_image image;
    ASSERT_TRUE(cus_keep_image_find(&wrapper, &image));
    EXPECT_EQ(image.at, copy.data());
    EXPECT_EQ(image.bytes, 64u);
    wrapper.data = nullptr;
    EXPECT_FALSE(cus_keep_image_find(&wrapper, &image));
}

TEST(Image, InAMappedFile) {
    cus_keep_image image;
    ASSERT_TRUE(cus_keep_image_find(&in_program, &image));
    char self[4096] = "";
    ASSERT_GT(readlink("/proc/self/exe", self, sizeof self - 1), 0);
    EXPECT_STREQ(image.path, self);
    // The file holds there what memory does.
    FILE *file = fopen(self, "rb");
    ASSERT_TRUE(file);
    Head there;
    there.magic = 0;
    fseek(file, static_cast<long>(image.offset), SEEK_SET);
    EXPECT_EQ(fread(&there, sizeof there, 1, file), 1u);
    fclose(file);
    EXPECT_EQ(memcmp(&there, &in_program, sizeof there), 0);
    // What may be written may be another thing by now.
    ASSERT_TRUE(cus_keep_image_find(&writable, &image));
    EXPECT_STREQ(image.path, "");
}

TEST(Image, ACubinEndsWithItsLastSection) {
    std::vector<uint8_t> cubin(400);
    Elf64_Ehdr head = {};
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_shoff = 64;
    head.e_shnum = 3;
    head.e_shentsize = sizeof(Elf64_Shdr);
    Elf64_Shdr sections[3] = {};
    sections[1].sh_type = SHT_PROGBITS;
    sections[1].sh_offset = 300;
    sections[1].sh_size = 100;
    sections[2].sh_type = SHT_NOBITS; // takes no room in the file
    sections[2].sh_offset = 300;
    sections[2].sh_size = 1 << 20;
    memcpy(cubin.data(), &head, sizeof head);
    memcpy(cubin.data() + 64, sections, sizeof sections);
    cus_keep_image image;
    ASSERT_TRUE(cus_keep_image_find(cubin.data(), &image));
    EXPECT_EQ(image.bytes, 400u);
    sections[1].sh_size = 10;
    memcpy(cubin.data() + 64, sections, sizeof sections);
    ASSERT_TRUE(cus_keep_image_find(cubin.data(), &image));
    EXPECT_EQ(image.bytes, 310u);
}

TEST(Image, TextEndsWithItsNul) {
    std::string ptx = ".version 8.0\n.target sm_80\n";
    cus_keep_image image;
    ASSERT_TRUE(cus_keep_image_find(ptx.c_str(), &image));
    EXPECT_EQ(image.bytes, ptx.size() + 1);
}

} // namespace
