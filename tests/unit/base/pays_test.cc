/* Promise: CUSPLICE_WITHOUT switches off exactly the named mechanisms. */
#include <gtest/gtest.h>
#include <string>

#include "shim/base/pays.h"

namespace {

uint32_t Named(const char *list) {
    const char *unknown;
    uint32_t named = cus_pays_named(list, &unknown);
    EXPECT_EQ(unknown, nullptr) << unknown;
    return named;
}

uint32_t Row(enum cus_pays row) {
    return (uint32_t)1 << row;
}

TEST(Pays, EachNameIsItsRow) {
    static const char *const names[] = {
#define PAYS(id, name, what) name,
#include "shim/base/pays.def"
#undef PAYS
    };
    for (unsigned i = 0; i < CUS_PAYS_ROWS; i++) {
        EXPECT_EQ(Named(names[i]), (uint32_t)1 << i) << names[i];
    }
}

TEST(Pays, TheFirstWordOfSeveralNamesIsAllOfThem) {
    uint32_t variants = 0;
#define PAYS(id, name, what)                                                                       \
    variants |= std::string(name).rfind("variants_", 0) == 0 ? Row(CUS_PAYS_##id) : 0;
#include "shim/base/pays.def"
#undef PAYS
    EXPECT_NE(variants & (variants - 1), 0u) << "there are several";
    EXPECT_EQ(Named("variants"), variants);
    EXPECT_EQ(Named("variants,repeat"), variants | Row(CUS_PAYS_REPEAT));
    EXPECT_EQ(Named(""), 0u);
}

TEST(Pays, WhatIsNoNameIsSaid) {
    for (const char *list : {"twin", "borrow,reform_", "borrow,,repeat", "variant", "borrow_"}) {
        const char *unknown;
        cus_pays_named(list, &unknown);
        ASSERT_NE(unknown, nullptr) << list;
    }
    const char *unknown;
    EXPECT_EQ(cus_pays_named("borrow,nothing,repeat", &unknown),
              Row(CUS_PAYS_BORROW) | Row(CUS_PAYS_REPEAT));
    EXPECT_EQ(std::string(unknown), "nothing,repeat");
}

} // namespace
