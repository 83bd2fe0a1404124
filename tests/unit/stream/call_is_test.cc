// Promise: a record or a wait is taken for the op that is expected if it is the same in all that a
// node cannot change, and for no other.
#include "tests/unit/stream/calls.h"

#include <gtest/gtest.h>

#include <string>

namespace {

const CUcontext kContext = (CUcontext)0x1000, kOther = (CUcontext)0x2000;

cus_kind KindOf(const call_asked &asked, unsigned abis) {
    cus_kind kind = {};
    kind.type = (uint8_t)asked.type;
    kind.branch = asked.branch;
    kind.from = asked.from;
    kind.back = asked.back;
    kind.goes_on = asked.goes_on;
    kind.abis = (uint8_t)abis;
    return kind;
}

TEST(CallIs, TheKindThatIsTheSameInAllThatANodeCannotChange) {
    for (cus_op_type type : {CUS_OP_RECORD, CUS_OP_WAIT}) {
        SCOPED_TRACE(type);
        const call_asked asked = {type, CUS_ABI_LEGACY, kContext, 1, 2, 3, 1};
        const cus_kind kind = KindOf(asked, 3);
        EXPECT_TRUE(call_is(&kind, &asked, kContext));
        call_asked other = asked;
        other.type = type == CUS_OP_RECORD ? CUS_OP_WAIT : CUS_OP_RECORD;
        EXPECT_FALSE(call_is(&kind, &other, kContext)) << "another type";
        other = asked;
        other.branch = 0;
        EXPECT_FALSE(call_is(&kind, &other, kContext)) << "another branch";
        bool is_record = type == CUS_OP_RECORD;
        other = asked;
        other.of_event = kOther;
        EXPECT_EQ(call_is(&kind, &other, kContext), !is_record) << "an event of another context";
        other = asked;
        other.from = 3;
        EXPECT_EQ(call_is(&kind, &other, kContext), is_record) << "waits for another branch";
        other = asked;
        other.back = 4;
        EXPECT_EQ(call_is(&kind, &other, kContext), is_record) << "for another record";
        other = asked;
        other.goes_on = 0;
        EXPECT_EQ(call_is(&kind, &other, kContext), is_record) << "begins a branch";
    }
}

// The bits of `abis` are those of enum cus_abi.
TEST(CallIs, OfTheFormsThatTheSameRuleDecidesOn) {
    static_assert(CUS_ABI_LEGACY == 0 && CUS_ABI_PTSZ == 1, "bits of abis");
    for (cus_op_type type : {CUS_OP_RECORD, CUS_OP_WAIT})
        for (unsigned abis = 0; abis < 4; abis++)
            for (cus_abi abi : {CUS_ABI_LEGACY, CUS_ABI_PTSZ}) {
                const call_asked asked = {type, abi, kContext, 0, 0, 0, 0};
                const cus_kind kind = KindOf(asked, abis);
                EXPECT_EQ(call_is(&kind, &asked, kContext), (abis & (1u << abi)) != 0)
                    << type << " " << abis << " " << abi;
            }
}

} // namespace
