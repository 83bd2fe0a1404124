// Promise: with presets = auto a loaded library brings its preset's rules, behind all others, once;
// and nothing else does.
#include <errno.h>

#include <set>
#include <thread>

#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/presets.h"
#include "shim/plan/preset_choice.h"
#include "tests/unit/plan/rule_files.h"

namespace {

const char installed[] = "config/presets";

class PresetChoice : public ConfigFiles {
  protected:
    void SetUp() override {
        ConfigFiles::SetUp();
        setenv(CUS_PRESETS_OFFERED, "auto", 1);
        Forget();
        cus_preset_folder = installed;
    }
    void TearDown() override {
        Forget();
        cus_preset_folder = nullptr;
    }
    void Forget() {
        cus_preset_drop();
        cus_rules_drop();
        cus_options_drop();
    }
    static unsigned Rules() { return cus_rules_count(cus_rules()); }
    static void Load(const char *path) {
        cus_preset_see(path);
        cus_preset_choose();
    }
    static std::string Decide(const char *kernel) {
        return cus_policy_name(cus_rules_decide(cus_rules(), kernel).policy);
    }
};

std::set<std::string> ChosenBy(const std::string &path) {
    std::set<std::string> presets;
    for (unsigned i = 0; const cus_preset_choice *row = cus_preset_choice_get(i); i++)
        if (cus_glob_matches(row->library, path.c_str()))
            presets.insert(row->preset);
    return presets;
}

TEST_F(PresetChoice, GoesByThePathOfALibrary) {
    using Set = std::set<std::string>;
    const std::string site = "/usr/lib/python3/site-packages/";
    EXPECT_EQ(ChosenBy(site + "vllm/_C.abi3.so"), Set{"vllm"});
    EXPECT_EQ(ChosenBy(site + "vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so"), Set{"vllm"});
    EXPECT_EQ(ChosenBy(site + "sgl_kernel/sm90/common_ops.abi3.so"), Set{"sglang"});
    EXPECT_EQ(ChosenBy(site + "nvidia/nccl/lib/libnccl.so.2"), Set{"nccl"});
    EXPECT_EQ(ChosenBy(site + "torch/lib/libtorch_cuda.so"), Set{"peer"});
    EXPECT_EQ(ChosenBy("/opt/trt/libtensorrt_llm.so"), (Set{"tensorrt_llm", "peer"}));
    EXPECT_EQ(ChosenBy(site + "llama_cpp/lib/libggml-cuda.so"), Set{"llama_cpp"});
    EXPECT_EQ(ChosenBy(site + "nvidia/nvshmem/lib/libnvshmem_host.so.3"), Set{"peer"});
    for (const char *path : {"", "/usr/lib/libc.so.6", "/home/vllm/a.out", "/opt/libnccl-notes.txt",
                             "/usr/lib/libtorch_cpu.so", "/usr/lib/libggml-base.so"})
        EXPECT_EQ(ChosenBy(path), Set{}) << path;
}

// What a library brings must be rules alone: the other things are read once, before.
TEST_F(PresetChoice, NamesInstalledPresetsOfRulesAboutKernels) {
    for (unsigned i = 0; const cus_preset_choice *row = cus_preset_choice_get(i); i++) {
        Strings wrong, problems;
        std::string path = std::string(installed) + "/" + row->preset + ".conf";
        cus_config_read_named(
            path.c_str(), false,
            [](void *to, const cus_setting *setting) {
                bool rule = std::string(setting->section) == "rules";
                if (!rule || (setting->key && std::string(setting->value).find("api:") == 0))
                    static_cast<Strings *>(to)->push_back(setting->section);
            },
            nullptr, &wrong);
        EXPECT_EQ(wrong, Strings{}) << row->preset;
        struct cus_rules *rules =
            cus_rules_load_file(path.c_str(), TakeProblem, &problems, nullptr);
        EXPECT_GT(cus_rules_count(rules), 0u) << row->preset;
        EXPECT_EQ(problems, Strings{});
        cus_rules_free(rules);
    }
}

TEST_F(PresetChoice, TheTableOfTheReadmeIsThisOne) {
    std::string text = ReadFile("config/README.md");
    for (unsigned i = 0; const cus_preset_choice *row = cus_preset_choice_get(i); i++) {
        std::string line = std::string("| `") + row->library + "` | " + row->preset + " |\n";
        EXPECT_TRUE(Has(text, line)) << line;
    }
}

TEST_F(PresetChoice, ItsRulesComeBehindAllOthersAndOnce) {
    setenv("CUSPLICE_EAGER", "cross_device_reduce_1stage;mine", 1);
    unsigned before = Rules();
    ASSERT_EQ(before, 2u);
    EXPECT_EQ(Decide("ncclDevKernel_AllReduce"), "graph");
    errno = 77;
    Load("/x/libnccl.so.2");
    EXPECT_EQ(errno, 77);
    unsigned nccl = Rules();
    EXPECT_GT(nccl, before);
    EXPECT_EQ(Decide("ncclDevKernel_AllReduce"), "never_defer");
    EXPECT_EQ(cus_rules_decide(cus_rules(), "mine").rule, 1);
    Load("/x/libnccl.so.2");
    Load("/y/libnccl.so.2.27");
    EXPECT_EQ(Rules(), nccl) << "its rules are there";

    Load("/x/vllm/_C.abi3.so"); // includes nccl
    EXPECT_EQ(Decide("flash_fwd_splitkv_kernel"), "uniform");
    EXPECT_EQ(Decide("cross_device_reduce_1stage"), "eager") << "the user's word counts";
    EXPECT_EQ(Decide("cross_device_reduce_2stage"), "never_defer");
    std::multiset<std::string> places;
    for (unsigned i = 0; const cus_rule *rule = cus_rules_get(cus_rules(), i); i++) {
        places.insert(std::string(rule->file) + ":" + std::to_string(rule->line));
        EXPECT_EQ(rule->chosen_by != nullptr, i >= before);
        if (rule->line) {
            EXPECT_EQ(places.count(std::string(rule->file) + ":" + std::to_string(rule->line)), 1u);
        }
    }
    EXPECT_STREQ(cus_rules_get(cus_rules(), before)->chosen_by, "x/libnccl.so.2");
    unsigned all = Rules();
    Load("/x/libtorch_cuda.so"); // peer, which vllm includes
    EXPECT_EQ(Rules(), all);
}

TEST_F(PresetChoice, APresetThatTheUserNamedIsNotAddedAgain) {
    setenv("CUSPLICE_CONFIG", "nccl", 1);
    unsigned before = Rules();
    EXPECT_GT(before, 0u);
    Load("/x/libnccl.so.2");
    EXPECT_EQ(Rules(), before);
    Load("/x/libtorch_cuda.so");
    EXPECT_GT(Rules(), before);
}

TEST_F(PresetChoice, OnlyWhereItIsAskedFor) {
    WriteFile(User(), "presets = off\n"); // stronger than what the launcher offers
    Load("/x/libnccl.so.2");
    EXPECT_EQ(Rules(), 0u);
    EXPECT_FALSE(cus_rules_have(cus_rules(), CUS_PATTERN_LIB));
    Forget();
    unlink(User().c_str());
    unsetenv(CUS_PRESETS_OFFERED);
    Load("/x/libnccl.so.2");
    EXPECT_EQ(Rules(), 0u);
    Forget();
    setenv("CUSPLICE_PRESETS", "auto", 1);
    EXPECT_TRUE(cus_rules_have(cus_rules(), CUS_PATTERN_LIB))
        << "rules about libraries may come for code that is loaded before";
    Load("/x/libnccl.so.2");
    EXPECT_GT(Rules(), 0u);
}

TEST_F(PresetChoice, OnlyItsRulesCount) {
    std::string folder = TempPath("presets");
    mkdir(folder.c_str(), 0700);
    WriteFile(folder + "/nccl.conf", "hold_us = 77\ninclude = other.conf\n[rules]\neager = one\n"
                                     "[step]\nmarker = two\n[rules]\ngraph = three\n");
    WriteFile(folder + "/other.conf", "mode = off\n[rules]\nnever_defer = four\n");
    cus_preset_folder = folder.c_str();
    std::string said = Captured([] { Load("/x/libnccl.so.2"); });
    EXPECT_EQ(said, "");
    Load("/x/libnccl.so.2");
    ASSERT_EQ(Rules(), 3u);
    EXPECT_EQ(Decide("one"), "eager");
    EXPECT_EQ(Decide("four"), "never_defer");
    EXPECT_EQ(cus_rules_steps(cus_rules()), 0u);
    EXPECT_EQ(cus_options()->hold_us, 1000u);
    cus_preset_folder = installed;
}

TEST_F(PresetChoice, AFolderWithoutPresetsIsSaidOnceAndHarmsNothing) {
    cus_preset_folder = "/nowhere";
    std::string said = Captured([] {
        Load("/x/libnccl.so.2");
        Load("/x/libtorch_cuda.so");
    });
    EXPECT_EQ(Rules(), 0u);
    EXPECT_NE(said.find("presets = auto: x/libnccl.so.2 is loaded, and no preset nccl is "
                        "installed"),
              std::string::npos)
        << said;
    EXPECT_EQ(said.find("libtorch"), std::string::npos) << said;
}

TEST_F(PresetChoice, OnlyALibraryWithAPathIsSeen) {
    cus_preset_see(nullptr);
    cus_preset_choose();
    EXPECT_EQ(Rules(), 0u);
    cus_preset_folder = "/nowhere";
    std::string said = Captured([] { Load("lib/libnccl.so.2"); });
    EXPECT_NE(said.find("auto: lib/libnccl.so.2 is loaded"), std::string::npos) << said;
}

// A file is named once, and a rule of the user is none of a preset.
TEST_F(PresetChoice, SaysEachFileOfAPresetOnce) {
    WriteFile(User(), "[rules]\neager = mine\n");
    std::string folder = TempPath("presets");
    mkdir(folder.c_str(), 0700);
    WriteFile(folder + "/nccl.conf", "[rules]\neager = one\neager = two\n");
    cus_preset_folder = folder.c_str();
    Load("/x/libnccl.so.2");
    ASSERT_EQ(Rules(), 3u);
    for (const char *name : {"mine", "one", "two"}) {
        const cus_subject subject = {name, nullptr, nullptr, nullptr, nullptr};
        cus_rules_note(cus_rules(), &subject);
    }
    char held[100];
    ASSERT_TRUE(cus_preset_held(held, sizeof held));
    EXPECT_STREQ(held, "nccl.conf (x/libnccl.so.2)");
    cus_preset_folder = installed;
}

TEST_F(PresetChoice, SaysWhichFilesNamedAKernel) {
    char held[100];
    Load("/opt/lib/libnccl.so.2");
    Load("/opt/site/vllm/_C.abi3.so");
    EXPECT_FALSE(cus_preset_held(held, sizeof held));
    for (const char *name : {"flash_fwd_kernel", "ncclDevKernel_X", "other"}) {
        const cus_subject subject = {name, nullptr, nullptr, nullptr, nullptr};
        cus_rules_note(cus_rules(), &subject);
    }
    ASSERT_TRUE(cus_preset_held(held, sizeof held));
    EXPECT_STREQ(held, "nccl.conf (lib/libnccl.so.2), flash_attention.conf (vllm/_C.abi3.so)");
    char little[12];
    EXPECT_TRUE(cus_preset_held(little, sizeof little));
    EXPECT_STREQ(little, "nccl.conf (");
}

// Run under TSan: threads decide while others load libraries.
TEST_F(PresetChoice, RulesAreAddedWhileThreadsAsk) {
    std::vector<std::thread> threads;
    const char *paths[] = {"/x/libnccl.so.2", "/x/vllm/_C.abi3.so", "/x/libtorch_cuda.so",
                           "/x/sgl_kernel/a.so"};
    for (const char *path : paths) {
        threads.emplace_back([path] { Load(path); });
        threads.emplace_back([] {
            for (int i = 0; i < 200; i++) {
                const cus_subject subject = {"flash_fwd_kernel", "a.so", nullptr, nullptr, nullptr};
                cus_verdict verdict = cus_rules_ask(cus_rules(), &subject, -1);
                cus_rules_note(cus_rules(), &subject);
                if (verdict.rule >= 0) {
                    EXPECT_LT((unsigned)verdict.rule, Rules());
                    EXPECT_STREQ(cus_rules_get(cus_rules(), (unsigned)verdict.rule)->pattern,
                                 "flash_fwd_kernel");
                }
            }
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(Decide("flash_fwd_kernel"), "uniform");
    std::set<std::string> places;
    for (unsigned i = 0; const cus_rule *rule = cus_rules_get(cus_rules(), i); i++)
        EXPECT_TRUE(
            places.insert(std::string(rule->file) + ":" + std::to_string(rule->line)).second);
}

} // namespace
