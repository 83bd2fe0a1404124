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
    EXPECT_EQ(Named("variants"), Row(CUS_PAYS_VARIANTS_MANY) | Row(CUS_PAYS_VARIANTS_GUEST));
    EXPECT_EQ(Named("variants,repeat"), Named("variants") | Row(CUS_PAYS_REPEAT));
    EXPECT_EQ(Named(""), 0u);
}

TEST(Pays, WhatIsNoNameIsSaid) {
    for (const char *list :
         {"seconds", "repeat,patience_", "repeat,,second_exec", "variant", "repeat_"}) {
        const char *unknown;
        cus_pays_named(list, &unknown);
        ASSERT_NE(unknown, nullptr) << list;
    }
    const char *unknown;
    EXPECT_EQ(cus_pays_named("repeat,nothing,second_exec", &unknown),
              Row(CUS_PAYS_REPEAT) | Row(CUS_PAYS_SECOND_EXEC));
    EXPECT_EQ(std::string(unknown), "nothing,second_exec");
}

} // namespace
