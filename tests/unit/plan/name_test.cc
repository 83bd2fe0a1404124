// Promise: the scanner finds the base name in names mangled by nvcc and others, and never reads
// past the end of any text.
#include "shim/plan/name.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace {

std::string Base(const std::string &mangled) {
    char out[512];
    cus_name_base(mangled.c_str(), out, sizeof out);
    return out;
}

std::string Qualified(const std::string &mangled) {
    char out[512];
    cus_name_qualified(mangled.c_str(), out, sizeof out);
    return out;
}

struct Case {
    const char *mangled, *base, *qualified;
};

const Case cases[] = {
    // Plain: extern "C", Triton, XLA.
    {"attention_decode", "attention_decode", "attention_decode"},
    {"triton_poi_fused_add_0", "triton_poi_fused_add_0", "triton_poi_fused_add_0"},
    {"add_kernel_0d1d2de", "add_kernel_0d1d2de", "add_kernel_0d1d2de"},
    {"Z", "Z", "Z"},
    {"_Z", "_Z", "_Z"},
    {"_ZTV3foo", "_ZTV3foo", "_ZTV3foo"},
    {"", "", ""},
    // A constructor or destructor of nothing is no name.
    {"_ZNKD9C1a2aaaa_T", "_ZNKD9C1a2aaaa_T", "_ZNKD9C1a2aaaa_T"},
    {"_ZNC1Ev", "_ZNC1Ev", "_ZNC1Ev"},
    // Functions, templates, namespaces.
    {"_Z6kernelPi", "kernel", "kernel"},
    {"_Z6kernelv", "kernel", "kernel"},
    {"_Z9stat_tmplIPdEvPT_", "stat_tmpl", "stat_tmpl"},
    {"_ZL6kernelPi", "kernel", "kernel"},
    {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_"
     "addIfEESt5arrayIPcLm3EEEEviT0_T1_",
     "vectorized_elementwise_kernel", "at::native::vectorized_elementwise_kernel"},
    {"_ZN7cutlass13device_kernelIN4cute5tupleIJNS1_1CILi1EEES4_S4_EEEEEvNT_6ParamsE",
     "device_kernel", "cutlass::device_kernel"},
    {"_ZN1a11with_lambdaIZ4mainEUliE_JLi1ELi2ELi3EEEEvT_", "with_lambda", "a::with_lambda"},
    {"_ZN1a3fpkIXadL_Z4devfiEEEEvv", "fpk", "a::fpk"},
    {"_ZN1a5enumkILNS_1EE3ELb1ENS_1S2InIPFifPKcEEEEEvT1_", "enumk", "a::enumk"},
    {"_Z1kILd3ff0000000000000EEvv", "k", "k"},
    {"_ZSt4sortIPiEvT_S1_", "sort", "std::sort"},
    {"_ZN6thrust20THRUST_200500_900_NS8cuda_cub4core6detail13_kernel_agentINS1_14__parallel_"
     "for16ParallelForAgentIlEElEEvT0_",
     "_kernel_agent", "thrust::THRUST_200500_900_NS::cuda_cub::core::detail::_kernel_agent"},
    // What is local to a file, as nvcc names it.
    {"_ZN1a36_GLOBAL__N__000a1577_4_k_cu__Z4devfi11anon_kernelIfLi3EEEvPT_", "anon_kernel",
     "a::(anonymous namespace)::anon_kernel"},
    {"_ZN12_GLOBAL__N_16kernelEPi", "kernel", "(anonymous namespace)::kernel"},
    {"__nv_static_22__4219c7d7_5_k2_cu_main__Z11stat_kernelPi", "stat_kernel", "stat_kernel"},
    {"__nv_static_22__4219c7d7_5_k2_cu_main__ZN33_GLOBAL__N__4219c7d7_5_k2_cu_main3antIfEEvPT_",
     "ant", "(anonymous namespace)::ant"},
    {"__nv_static_22__4219c7d7_5_k2_cu_main_plain", "plain", "plain"},
    {"__nv_static_99__4219c7d7_5_k2_cu_main__Z1ki", "__nv_static_99__4219c7d7_5_k2_cu_main__Z1ki",
     "__nv_static_99__4219c7d7_5_k2_cu_main__Z1ki"},
    // ABI tags, operators, lambdas, constructors, local things, clones, modules.
    {"_Z6taggedB2v7Pi", "tagged", "tagged"},
    {"_ZN3foo3barB5cxx11B2v2Ev", "bar", "foo::bar"},
    {"_ZN7FunctorclEi", "operator()", "Functor::operator()"},
    {"_ZplRK1AS1_", "operator+", "operator+"},
    {"_ZnwmPv", "operator new", "operator new"},
    {"_ZN1AcvbEv", "operator cast", "A::operator cast"},
    {"_Zli3_kmy", "operator\"\"", "operator\"\""},
    {"_ZZ4mainENKUlvE_clEv", "operator()", "main::{lambda}::operator()"},
    {"_ZZN1a1fIiEEvT_E1g", "g", "a::f::g"},
    {"_ZN1AC2Ei", "A", "A::A"},
    {"_ZN1AD1Ev", "~A", "A::~A"},
    {"_ZNSaIiEC1Ev", "allocator", "std::allocator::allocator"},
    {"_Z6kerneli.constprop.0", "kernel", "kernel"},
    {"_ZNK3foo3barERKS_", "bar", "foo::bar"},
    {"_ZNKR3foo3barEv", "bar", "foo::bar"},
    // Template arguments whose text looks like names or ends.
    {"_Z1fI3EEEEvT_", "f", "f"},
    {"_Z1fIA10_iEvRT_", "f", "f"},
    {"_Z1fIM3fooFivEEvT_", "f", "f"},
    {"_Z1fIDpT_EvDpT_", "f", "f"},
    {"_Z1fIDF16_DF16bEvv", "f", "f"},
    {"_Z1fITnDaLi3EEvv", "f", "f"},
    {"_Z1fIiEDTclL_Z1gvEcvT__EEES0_", "f", "f"},
    {"_Z1kIXsr3std9is_same_vIiiEEEvv", "k", "k"},
    {"_ZN1x1kIXaaleLi2ELi3EltLi1ELi2EEE1lEv", "l", "x::k::l"},
    {"_ZN1x1kIXfLplLi1ELi2EEE1lEv", "l", "x::k::l"},
    {"_ZN1x1kIXfRplLi1ELi2EEE1lEv", "l", "x::k::l"},
    {"_ZN1x1kIXquLb1ELi1ELi2EEE1lEv", "l", "x::k::l"},
    {"_ZN1x1kIXcl1gfL0p_EEE1lEv", "l", "x::k::l"},
    {"_ZN1x1kIXdt1a1bEE1lEv", "l", "x::k::l"},
    {"_ZN1x1kIXcl1gfpTEEE1lEv", "l", "x::k::l"},
    {"_ZN1x1kIPDxFvvEE1lEv", "l", "x::k::l"},
    {"_ZN1x1kIPDOLb1EEFvvEE1lEv", "l", "x::k::l"},
    {"_ZN1x1kIDv_Li4E_fE1lEv", "l", "x::k::l"},
    {"_ZN1x1kITu3fooE1lEv", "l", "x::k::l"},
    {"_ZN1x1kIM1AFvvOEE1lEv", "l", "x::k::l"},
    {"_ZZ4mainENKUlTyT_E_clIiEEDaS_", "operator()", "main::{lambda}::operator()"},
    // Expressions that end too early, or that only their maker knows.
    {"_ZN1x1kIXfL", "k", "x::k"},
    {"_ZN1x1kIXfr", "k", "x::k"},
    {"_ZN1x1kIXfp", "k", "x::k"},
    {"_ZN1x1kIXu3fooEE1lEv", "k", "x::k"},
    // In a default argument; the second of its name; a guard is no function.
    {"_ZZ1fvEd_NKUlvE_clEv", "operator()", "f::{lambda}::operator()"},
    {"_ZZ1fvEd0_NKUlvE_clEv", "operator()", "f::{lambda}::operator()"},
    {"_ZN1xIXadL_ZZ1fvE1g__10_EEE1lEv", "l", "x::l"},
    {"_ZN1xIXadL_ZZ1fvE1g_0EEE1lEv", "l", "x::l"},
    {"_ZGVZ1fvE1g", "_ZGVZ1fvE1g", "_ZGVZ1fvE1g"},
};

TEST(Name, BaseAndQualified) {
    for (const Case &c : cases) {
        EXPECT_EQ(Base(c.mangled), c.base) << c.mangled;
        EXPECT_EQ(Qualified(c.mangled), c.qualified) << c.mangled;
    }
    char out[8];
    cus_name_base(nullptr, out, sizeof out);
    EXPECT_STREQ(out, "");
}

// Whatever the arguments of a template are, the name goes on behind them. So each is skipped whole,
// and no further.
TEST(Name, GoesOnBehindEachTypeAndExpression) {
    for (const char *type :
         {"i",           "Dn",          "Dp1a",    "DoFvvE",    "DxFvvE", "Dt1aE",     "DT1aE",
          "DOLb1EEFvvE", "DwiiEFvvE",   "DF16_",   "DF16b",     "DF64x",  "DB8_",      "DBLi8E_",
          "DU8_",        "DULi8E_",     "Dv4_f",   "Dv_Li4E_f", "Ts1a",   "Tu1a",      "Te1a",
          "Tyi",         "Tni",         "T_",      "T0_",       "TL0__",  "TL1_2_",    "T_IiE",
          "A_i",         "A10_i",       "ALi3E_i", "A10_A_i",   "FvvE",   "FYviE",     "FviRE",
          "FviOE",       "FviiE",       "M1aFvvE", "M1ai",      "U3fooi", "U3fooIiEi", "u3foo",
          "u3fooIiE",    "UlvE_",       "UlviE0_", "Ut_",       "Ut1_",   "N1a1bE",    "N1a1bIiEE",
          "Z1fvE1g",     "St4pairIiiE", "Sa",      "SaIiE",     "S_",     "S0_",       "SA1_",
          "S_IiE",       "PKi",         "rVKPi",   "ROi",       "CGd",    "JiiE",      "J1aIiEE",
          "IiE"}) {
        EXPECT_EQ(Qualified(std::string("_ZN1x1kI") + type + "E1lEv"), "x::k::l") << type;
        // Where one type stands alone, another one behind it would be no part of the name.
        if (*type != 'I' && *type != 'J') {
            EXPECT_EQ(Qualified(std::string("_ZN1xcv") + type + "1lEv"), "x::operator cast::l")
                << type;
        }
    }
    EXPECT_EQ(Qualified("_ZN1xcvL1a1lEv"), "x::operator cast::l");
    for (const char *expression : {"fp_",          "fp0_",     "fpT",           "fL1p_",
                                   "fL1p0_",       "cl1gfp_E", "cp1gLi1EE",     "ilLi1ELi2EE",
                                   "sP1aE",        "nwLi1EE",  "naLi1EE",       "tl1aLi1EE",
                                   "tl1aE",        "cviLi1E",  "cvi_Li1ELi2EE", "cvi_E",
                                   "sti",          "ati",      "tii",           "dciLi1E",
                                   "sciLi1E",      "cciLi1E",  "rciLi1E",       "sr1a1b",
                                   "sr1a1bIiE",    "gs1a",     "on1a",          "tr",
                                   "sZ1a",         "szLi1E",   "azLi1E",        "teLi1E",
                                   "nxLi1E",       "spLi1E",   "twLi1E",        "psLi1E",
                                   "ngLi1E",       "adLi1E",   "deLi1E",        "coLi1E",
                                   "ntLi1E",       "dlLi1E",   "daLi1E",        "ppLi1E",
                                   "pp_Li1E",      "mmLi1E",   "mm_Li1E",       "quLi1ELi2ELi3E",
                                   "flplLi1E",     "frplLi1E", "fLplLi1ELi2E",  "fRplLi1ELi2E",
                                   "fLmiLi1ELi2E", "dt1a1b",   "ds1a1b",        "plLi1ELi2E",
                                   "ssLi1ELi2E",   "T_",       "T0_IiE",        "1a",
                                   "1aIiE",        "Li1E",     "L_Z1fvE",       "LZ1fvE",
                                   "L_Z1fIiEvvE",  "JLi1EE",   "XLi1EE",        "XX1aEE",
                                   "Lb0E",         "LDnE",     "LS_3E"}) {
        EXPECT_EQ(Qualified(std::string("_ZN1x1kIX") + expression + "EE1lEv"), "x::k::l")
            << expression;
        // In the bounds of an array one expression stands alone.
        EXPECT_EQ(Qualified(std::string("_ZN1xcvDt") + expression + "E1lEv"), "x::operator cast::l")
            << expression;
    }
}

// They are deep only if they lie in each other.
TEST(Name, MayHaveAnyNumberOfArguments) {
    std::string types, expressions;
    for (int i = 0; i < 1000; i++) {
        types += "Pi";
        expressions += "X1aE";
    }
    EXPECT_EQ(Qualified("_ZN1x1kI" + types + "E1lEv"), "x::k::l");
    EXPECT_EQ(Qualified("_ZN1x1kI" + expressions + "E1lEv"), "x::k::l");
}

// What no type and no expression begins with ends the scan: the name is what came before.
TEST(Name, EndsAtATypeThatIsNone) {
    for (const char *type : {"k", "p", "q", "DZ", "D1", "DF16y", "Dv4f", "DB8f", "A10i", "TLi",
                             "T1i", "W", "H", "U0", "u0", "N1a", "Fvv"})
        EXPECT_EQ(Qualified(std::string("_ZN1x1kI") + type + "E1lEv"), "x::k") << type;
    for (const char *expression : {"xy", "pl", "u1a", "fl", "fLpl", "cv", "quLi1ELi2E", "Li1",
                                   "cl1g", "fp", "fL1p", "ppE", "LE"})
        EXPECT_EQ(Qualified(std::string("_ZN1x1kIX") + expression + "EE1lEv"), "x::k")
            << expression;
}

TEST(Name, OfOperatorsAndOfWhatHasNone) {
    const struct {
        const char *mangled, *qualified;
    } names[] = {
        {"_ZaNv", "operator&="},
        {"_ZaSv", "operator="},
        {"_Zaav", "operator&&"},
        {"_Zadv", "operator&"},
        {"_Zanv", "operator&"},
        {"_Zawv", "operator co_await"},
        {"_Zclv", "operator()"},
        {"_Zcmv", "operator,"},
        {"_Zcov", "operator~"},
        {"_ZdVv", "operator/="},
        {"_Zdav", "operator delete[]"},
        {"_Zdlv", "operator delete"},
        {"_Zixv", "operator[]"},
        {"_ZlSv", "operator<<="},
        {"_Zmmv", "operator--"},
        {"_Znav", "operator new[]"},
        {"_Zpmv", "operator->*"},
        {"_Zquv", "operator?"},
        {"_ZrSv", "operator>>="},
        {"_Zssv", "operator<=>"},
        {"_ZN1AcviEv", "A::operator cast"},
        {"_ZN1AcvN1B1CEEv", "A::operator cast"},
        {"_Zli3_kmy", "operator\"\""},
        {"_ZN1Ali3_km1fEv", "A::operator\"\"::f"},
        {"_Zxi1av", "_Zxi1av"},
        {"_Zlx1av", "_Zlx1av"},
        {"_Zzzv", "_Zzzv"},
        {"_ZN1AcwiEv", "A"},
        {"_ZN1AxviEv", "A"},
        {"_ZN1aUt_1fEv", "a::{unnamed}::f"},
        {"_ZN1aUt0_1fEv", "a::{unnamed}::f"},
        {"_ZN1aUlvE_1fEv", "a::{lambda}::f"},
        {"_ZN1aUliiE12_1fEv", "a::{lambda}::f"},
        {"_ZN1aUlvE1fEv", "a::{lambda}"}, // the number takes the length
        {"_ZNDC1b1cE1fEv", "{binding}::f"},
        {"_ZNSs1fEv", "std::string::f"},
        {"_ZNSb1fEv", "std::basic_string::f"},
        {"_ZNSi1fEv", "std::istream::f"},
        {"_ZNSo1fEv", "std::ostream::f"},
        {"_ZNSd1fEv", "std::iostream::f"},
        {"_ZNSt1a1fEv", "std::a::f"},
        {"_ZNS_1fEv", "f"},
        {"_ZNS0_1fEv", "f"},
        {"_ZNSZ1_1fEv", "f"},
        {"_ZNT_1fEv", "f"},
        {"_ZNTL0__1fEv", "f"},
        {"_ZNTL0_1_1fEv", "f"},
        {"_ZNDt1aE1fEv", "f"},
        {"_ZNDT1aE1fEv", "f"},
        {"_ZN1aM1fEv", "a::f"},
        {"_ZNH1a1fEv", "a::f"},
        {"_ZNrVK1a1fEv", "a::f"},
        {"_ZNKO1a1fEv", "a::f"},
        {"_ZN1aF1fEv", "a::f"},
        {"_ZN1aL1fEv", "a::f"},
        {"_ZN1aFL1fEv", "a::f"},
        {"_ZW3mod1fv", "f"},
        {"_ZN1aW3modW1m1fEv", "a::f"},
        {"_ZN1aB1t1fB1uB1vEv", "a::f"},
        {"_ZN1BC1Ev", "B::B"},
        {"_ZN1BC3Ev", "B::B"},
        {"_ZN1BCI11AEi", "B::B"},
        {"_ZN1BCI21A1fEi", "B::B::f"},
        {"_ZN1BD0Ev", "B::~B"},
        {"_ZN1BDEv", "B"},
        {"_ZN1a1BIiEC1IdEEv", "a::B::B"},
        {"_ZZ1fvEs", "f::{string}"},
        {"_ZZ1fvEs_0", "f::{string}"},
        {"_ZZ1fvEd_1g", "f::g"},
        {"_ZZ1fvEd12_1g", "f::g"},
        {"_ZZ1fvE1g_0", "f::g"},
        {"_ZZ1fvE1g__12_", "f::g"},
        {"_ZZN1a1fIiEEvvEN1b1gEv", "a::f::b::g"},
        {"_ZZ1fvEZ1gvE1h", "f::g::h"},
        {"_ZN10_GLOBAL__N1fEv", "_GLOBAL__N::f"},
        {"_ZN11_GLOBAL__N_1fEv", "(anonymous namespace)::f"},
        {"_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f"},
        {"_ZN11_GLOBAL__M_1fEv", "_GLOBAL__M_::f"},
        {"_Z1fv.cold", "f"},
        {"_ZG1f", "_ZG1f"},
        {"_ZT1f", "_ZT1f"},
        // nvcc: a length, and a text of that length between two lines.
        {"__nv_static_1_a_k", "k"},
        {"__nv_static_1_a__Z1fv", "f"},
        {"__nv_static_0__k", "k"},
        {"__nv_static_10_0123456789_k", "k"},
        {"__nv_static_1_a_", "__nv_static_1_a_"},
        {"__nv_static_2_a_k", "__nv_static_2_a_k"},
        {"__nv_static_1xa_k", "__nv_static_1xa_k"},
        {"__nv_static_1_axk", "__nv_static_1_axk"},
        {"__nv_static_", "__nv_static_"},
        {"__nv_statid_1_a_k", "__nv_statid_1_a_k"},
    };
    for (const auto &name : names)
        EXPECT_EQ(Qualified(name.mangled), name.qualified) << name.mangled;
}

TEST(Name, IsCutWhereThereIsNoRoom) {
    char out[5];
    memset(out, 'x', sizeof out);
    cus_name_base("_ZN2ns6kernelEv", out, sizeof out);
    EXPECT_STREQ(out, "kern");
    cus_name_qualified("_ZN2ns6kernelEv", out, sizeof out);
    EXPECT_STREQ(out, "ns::");
    cus_name_base("plainname", out, 1);
    EXPECT_STREQ(out, "");
    out[0] = 'y';
    cus_name_base("plainname", out, 0);
    EXPECT_EQ(out[0], 'y');
}

TEST(Name, LengthsThatLieAreNoIdentifiers) {
    EXPECT_EQ(Base("_Z99kernel"), "_Z99kernel");
    EXPECT_EQ(Base("_Z99999999999999999999999999kernel"), "_Z99999999999999999999999999kernel");
    EXPECT_EQ(Base("_Z0kernel"), "_Z0kernel");
    EXPECT_EQ(Base("_ZN2ns99kernelEv"), "ns");
}

TEST(Name, NestingWithoutEndIsLeftAlone) {
    for (const char *unit : {"N", "Z", "I", "L", "F", "X", "P", "1aI", "Z1f", "IX", "S_I", "Dp",
                             "Ul", "A_", "M", "Tn"}) {
        std::string text = "_Z1k";
        for (int i = 0; i < 20000; i++)
            text += unit;
        EXPECT_FALSE(Base(text).empty()) << unit;
        text.replace(0, 4, "_Z");
        Base(text);
    }
}

// Every text lies right before a page that cannot be read: one byte too far ends the test.
class Guarded {
  public:
    Guarded() : page_(sysconf(_SC_PAGESIZE)) {
        base_ = static_cast<char *>(
            mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(base_ + page_, page_, PROT_NONE);
    }
    ~Guarded() { munmap(base_, 2 * page_); }
    const char *Put(const std::string &text) {
        char *at = base_ + page_ - text.size() - 1;
        memcpy(at, text.c_str(), text.size() + 1);
        return at;
    }

  private:
    size_t page_;
    char *base_;
};

void Try(Guarded &guarded, const std::string &text) {
    const char *name = guarded.Put(text.c_str());
    char base[64], qualified[64];
    memset(base, 'x', sizeof base);
    memset(qualified, 'x', sizeof qualified);
    cus_name_base(name, base, sizeof base);
    cus_name_qualified(name, qualified, sizeof qualified);
    ASSERT_NE(memchr(base, 0, sizeof base), nullptr);
    ASSERT_NE(memchr(qualified, 0, sizeof qualified), nullptr);
    if (!text.empty() && text[0] != 0) {
        ASSERT_NE(base[0], 0) << text;
    }
}

TEST(Name, NoTextMakesItReadPastTheEnd) {
    Guarded guarded;
    unsigned seed = 4711;
    std::string alphabet = "_ZNSILETXDUlJKPRFAMQWBCtpsrcv0123456789abdefgk._";
    alphabet += '\xff';
    for (const Case &c : cases)
        for (size_t cut = 0; cut <= strlen(c.mangled); cut++)
            Try(guarded, std::string(c.mangled, cut));
    for (int round = 0; round < 200000; round++) {
        std::string text;
        if (round % 2) { // a real name with some bytes changed, dropped or doubled
            text = cases[(size_t)rand_r(&seed) % (sizeof cases / sizeof cases[0])].mangled;
            for (int i = rand_r(&seed) % 4; i >= 0 && !text.empty(); i--) {
                size_t at = (size_t)rand_r(&seed) % text.size();
                char byte = alphabet[(size_t)rand_r(&seed) % alphabet.size()];
                if (rand_r(&seed) % 3 == 0)
                    text.erase(at, 1);
                else if (rand_r(&seed) % 2)
                    text.insert(at, text.substr(at, (size_t)rand_r(&seed) % 9));
                else
                    text[at] = byte;
            }
        } else {
            text = "_Z";
            for (int i = rand_r(&seed) % 60; i > 0; i--)
                text += alphabet[(size_t)rand_r(&seed) % alphabet.size()];
        }
        Try(guarded, text);
    }
}

// "FORM BASE QUALIFIED"
std::string Shown(const std::string &text, const char *wild = "") {
    static const char *const forms[] = {"none", "base", "qualified", "demangled"};
    char base[512] = "x", qualified[512] = "x";
    enum cus_name_form form =
        cus_name_shown(text.c_str(), wild, base, sizeof base, qualified, sizeof qualified);
    return form == CUS_NAME_NONE ? "none" + std::string(base) + qualified
                                 : std::string(forms[form]) + " " + base + " " + qualified;
}

TEST(Shown, NamesAsDemanglersAndProfilersShowThem) {
    const struct {
        std::string text, found;
    } cases[] = {
        {"kernel", "base kernel kernel"},
        {"int azAZ_09(int)", "demangled azAZ_09 azAZ_09"},
        {"::kernel", "base kernel kernel"},
        {"a::b", "qualified b a::b"},
        {"void ns::kernel<float, 4>(float*, int)", "demangled kernel ns::kernel"},
        {"kernel(float*, int)", "demangled kernel kernel"},
        {"kernel<float>", "demangled kernel kernel"},
        {"void at::native::(anonymous namespace)::k<4, at::native::F<float>, std::array<char*, "
         "3ul> >(int, std::array<char*, 3ul>)",
         "demangled k at::native::(anonymous namespace)::k"},
        {"void at::<unnamed>::k<(bool)1>(int)", "demangled k at::(anonymous namespace)::k"},
        {"std::enable_if<(4)>(3), void>::type ns::k<4>(int) [clone .kd]", "demangled k ns::k"},
        {"void k<((1)<(2)), ((4)>(3)), (S::x->y)>(int)", "demangled k k"},
        {"void k<&(dev(int)), (a->b), 1>(void (*)(int))", "demangled k k"},
        {"foo(int)::{lambda(float)#1}::operator()(float) const",
         "demangled operator() foo::{lambda}::operator()"},
        {"void cutlass::device_kernel<flash::enable_sm90<flash::Fwd<cute::C<2>, "
         "(cutlass::Barrier)1>>>(T1::Params)",
         "demangled device_kernel cutlass::device_kernel"},
        {"decltype ((fp)(1)) ns::q<int>(int)", "demangled q ns::q"},
        {"int*k(int)", "demangled k k"},
        {"void a<1>::b<2>::k<3>(int)", "demangled k a::b::k"},
        {"gr\xc3\xb6\xc3\x9f"
         "e(int)",
         "demangled gr\xc3\xb6\xc3\x9f"
         "e gr\xc3\xb6\xc3\x9f"
         "e"},
        {"foo<unnamed>::bar()", "demangled bar foo::bar"},
        {"a::f() volatile", "demangled f a::f"},
        {"a::f() const volatile", "demangled f a::f"},
        {"a::operator()", "qualified operator() a::operator()"},
        {"f()::{lambda(int)#1}<int>(int)", "demangled {lambda} f::{lambda}"},
        {"%r k(int)", "demangled k k"},
        {"\x80"
         "k(int)",
         "demangled \x80"
         "k \x80"
         "k"},
    };
    for (const auto &c : cases)
        EXPECT_EQ(Shown(c.text), c.found) << c.text;
    for (const char *text : {"",
                             " ",
                             "attention decode",
                             "<<<>>>",
                             "foo(",
                             "k)",
                             "k>",
                             "a::",
                             "0k",
                             "7k",
                             "9k",
                             "flash*",
                             "re:^x",
                             "lib:foo",
                             "a:b",
                             "k<a>b",
                             "()",
                             "<>",
                             "k<",
                             "a b::c",
                             "[clone .kd]",
                             "(anonymous namespace)::"})
        EXPECT_EQ(Shown(text), "none") << text;
    EXPECT_EQ(Shown("ns::fl*sh<*>(?)", "*?"), "demangled fl*sh ns::fl*sh");
}

// The same parts as those of the mangled name.
TEST(Shown, IsCutWhereThereIsNoRoom) {
    char base[5], qualified[8];
    memset(base, 'x', sizeof base);
    memset(qualified, 'x', sizeof qualified);
    EXPECT_EQ(cus_name_shown("ns::kernel(int)", "", base, sizeof base, qualified, sizeof qualified),
              CUS_NAME_DEMANGLED);
    EXPECT_STREQ(base, "kern");
    EXPECT_STREQ(qualified, "ns::ker");
}

TEST(Shown, AgreesWithTheScanner) {
    const struct {
        const char *mangled, *shown;
    } pairs[] = {
        {"_Z6kernelPi", "kernel(int*)"},
        {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_"
         "addIfEESt5arrayIPcLm3EEEEviT0_T1_",
         "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
         "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, "
         "3ul>)"},
        {"_ZN1a3fpkIXadL_Z4devfiEEEEvv", "void a::fpk<&(devf(int))>()"},
        {"_ZSt4sortIPiEvT_S1_", "void std::sort<int*>(int*, int*)"},
        {"_ZN12_GLOBAL__N_11kEv", "(anonymous namespace)::k()"},
    };
    for (const auto &pair : pairs)
        EXPECT_EQ(Shown(pair.shown),
                  "demangled " + Base(pair.mangled) + " " + Qualified(pair.mangled));
}

TEST(Shown, NoTextMakesItFall) {
    const std::string letters("ab:: <>(){}[]*&,-#7operator()const", 34);
    unsigned seed = 11;
    for (int round = 0; round < 50000; round++) {
        std::string text;
        for (int i = rand_r(&seed) % 40; i > 0; i--)
            text += letters[(size_t)rand_r(&seed) % letters.size()];
        char base[8], qualified[8];
        cus_name_shown(text.c_str(), "", base, sizeof base, qualified, sizeof qualified);
        EXPECT_LT(strlen(base), sizeof base);
        EXPECT_LT(strlen(qualified), sizeof qualified);
    }
    Shown(std::string(100000, '<') + std::string(100000, '>'));
    Shown(std::string(100000, ')'));
    std::string deep = "k";
    for (int i = 0; i < 10000; i++)
        deep = "a::" + deep;
    EXPECT_EQ(Shown(deep), "none") << "more parts than anything has";
}

} // namespace
