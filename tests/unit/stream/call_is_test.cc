// Promise: a record or a wait is taken for the op that is expected if it is the same in all that a
// node cannot change, and for no other.
#include "tests/unit/stream/calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

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

// ---- launches ----

CUfunction F() {
    return (CUfunction)0xf;
}

cus_kind LaunchKind(std::vector<cus_attr> attrs, bool cooperative) {
    cus_kind kind = {};
    kind.handle = F();
    kind.type = CUS_OP_LAUNCH;
    kind.cooperative = cooperative;
    kind.n_attrs = (uint16_t)attrs.size();
    std::copy(attrs.begin(), attrs.end(), kind.attrs);
    return kind;
}

bool IsForm(const cus_kind &kind, cus_launch_form form) {
    cus_launch launch = {};
    launch.f = F();
    launch.form = form;
    return launch_is(&kind, &launch);
}

bool IsWith(const cus_kind &kind, const std::vector<CUlaunchAttribute> &attrs) {
    cus_launch launch = {};
    launch.f = F();
    launch.form = CUS_LAUNCH_EX;
    launch.attrs = attrs.data();
    launch.n_attrs = (uint32_t)attrs.size();
    return launch_is(&kind, &launch);
}

// Bytes of the value that the id does not define are 0xee.
CUlaunchAttribute Attribute(unsigned id, const std::vector<uint8_t> &value) {
    CUlaunchAttribute made;
    memset(&made, 0xee, sizeof made);
    made.id = (CUlaunchAttributeID)id;
    std::copy(value.begin(), value.end(), reinterpret_cast<uint8_t *>(&made.value));
    return made;
}

cus_attr Kept(unsigned id, const std::vector<uint8_t> &value) {
    cus_attr made = {};
    made.id = id;
    made.bytes = (uint32_t)value.size();
    memcpy(made.value, value.data(), value.size());
    return made;
}

TEST(CallIs, ALaunchOfTheSameFunctionInTheSameForm) {
    const cus_kind plain = LaunchKind({}, false), cooperative = LaunchKind({}, true);
    EXPECT_TRUE(IsForm(plain, CUS_LAUNCH_PLAIN));
    EXPECT_FALSE(IsForm(plain, CUS_LAUNCH_COOPERATIVE));
    EXPECT_TRUE(IsForm(plain, CUS_LAUNCH_EX)) << "without attributes it is a plain one";
    EXPECT_FALSE(IsForm(cooperative, CUS_LAUNCH_PLAIN));
    EXPECT_TRUE(IsForm(cooperative, CUS_LAUNCH_COOPERATIVE));
    EXPECT_FALSE(IsForm(cooperative, CUS_LAUNCH_EX));
    cus_kind other = plain;
    other.handle = (void *)0xe;
    EXPECT_FALSE(IsForm(other, CUS_LAUNCH_PLAIN));
    other = plain;
    other.type = CUS_OP_MEMSET;
    EXPECT_FALSE(IsForm(other, CUS_LAUNCH_PLAIN));
    const cus_kind with = LaunchKind({Kept(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, {1, 0, 0, 0})}, true);
    for (cus_launch_form form : {CUS_LAUNCH_PLAIN, CUS_LAUNCH_COOPERATIVE, CUS_LAUNCH_EX})
        EXPECT_FALSE(IsForm(with, form)) << form;
    EXPECT_TRUE(IsWith(with, {Attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, {1, 0, 0, 0})}));
}

TEST(CallIs, ALaunchWithTheSameAttributes) {
    const unsigned cluster = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                   map = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP;
    const std::vector<uint8_t> size = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, domains = {1, 2};
    cus_kind kind = LaunchKind({Kept(cluster, size), Kept(map, domains)}, false);
    const CUlaunchAttribute one = Attribute(cluster, size), two = Attribute(map, domains),
                            ignored = Attribute(CU_LAUNCH_ATTRIBUTE_IGNORE, {});
    EXPECT_TRUE(IsWith(kind, {one, two})) << "what is behind the value does not count";
    EXPECT_TRUE(IsWith(kind, {ignored, one, ignored, two, ignored}));
    EXPECT_FALSE(IsWith(kind, {one})) << "one less";
    EXPECT_FALSE(IsWith(kind, {two, one})) << "in another order";
    EXPECT_FALSE(IsWith(kind, {one, two, two})) << "one more";
    EXPECT_FALSE(IsWith(kind, {one, Attribute(cluster, domains)})) << "another id";
    for (size_t byte = 0; byte < size.size(); byte++) {
        std::vector<uint8_t> changed = size;
        changed[byte]++;
        EXPECT_FALSE(IsWith(kind, {Attribute(cluster, changed), two})) << byte;
    }
    for (size_t byte = 0; byte < domains.size(); byte++) {
        std::vector<uint8_t> changed = domains;
        changed[byte]++;
        EXPECT_FALSE(IsWith(kind, {one, Attribute(map, changed)})) << byte;
    }
    kind.n_attrs = 1; // the second one is still there, and counts no more
    EXPECT_FALSE(IsWith(kind, {one, two}));
    cus_launch none = {};
    none.f = F();
    none.form = CUS_LAUNCH_EX;
    none.n_attrs = 1;
    EXPECT_FALSE(launch_is(&kind, &none)) << "the driver refuses it";
}

} // namespace
