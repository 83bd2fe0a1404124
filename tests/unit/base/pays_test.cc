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
    EXPECT_EQ(Named("evened"), Row(CUS_PAYS_EVENED_SIZES) | Row(CUS_PAYS_EVENED_REST));
    EXPECT_EQ(Named("evened,borrow"), Named("evened") | Row(CUS_PAYS_BORROW));
    EXPECT_EQ(Named(""), 0u);
}

TEST(Pays, WhatIsNoNameIsSaid) {
    for (const char *list : {"twin", "borrow,reform_", "borrow,,repeat", "even", "borrow_"}) {
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
