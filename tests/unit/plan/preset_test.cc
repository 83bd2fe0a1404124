// Promise: the presets of config/presets decide on kernels by their real names (preset_names.def).
#include <dirent.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "shim/base/options.h"
#include "shim/plan/pattern.h"
#include "shim/plan/rules.h"
#include "tests/unit/base/config_files.h"

namespace {

const char folder[] = "config/presets/";
const size_t names_each = 5; // of a family, at least

struct Kernel {
    const char *preset; // "": none
    cus_policy policy;
    const char *name;
};

const cus_policy graph = CUS_POLICY_GRAPH, uniform = CUS_POLICY_UNIFORM,
                 uniform_single = CUS_POLICY_UNIFORM_SINGLE, eager = CUS_POLICY_EAGER,
                 never_defer = CUS_POLICY_NEVER_DEFER;

const Kernel kernels[] = {
#define PRESET_NAME(preset, policy, how, name, source) {#preset, policy, name},
#define PRESET_NONE(how, name, source) {"", graph, name},
#define PRESET_LIBRARY(preset, policy, file, source)
#define PRESET_NO_LIBRARY(file, source)
#include "tests/unit/plan/preset_names.def"
};

// The same of files that kernels are from.
const Kernel libraries[] = {
#define PRESET_NAME(preset, policy, how, name, source)
#define PRESET_NONE(how, name, source)
#define PRESET_LIBRARY(preset, policy, file, source) {#preset, policy, file},
#define PRESET_NO_LIBRARY(file, source) {"", graph, file},
#include "tests/unit/plan/preset_names.def"
};

cus_verdict OfLibrary(const struct cus_rules *rules, const char *file) {
    cus_subject subject = {"a_name_that_no_preset_knows", file, nullptr, nullptr, nullptr};
    return cus_rules_ask(rules, &subject, -1);
}

// A bundle includes its parts, and has no rules of its own. The last part is asked first.
const std::map<std::string, Strings> bundles = {
    {"vllm",
     {"nccl", "peer", "flash_attention", "flashinfer", "vllm_attention", "mla", "gated_delta_net",
      "mamba", "lightning_attention", "flex_attention", "cutlass_fmha", "tensorrt_llm"}},
    {"sglang",
     {"nccl", "peer", "flash_attention", "flashinfer", "mla", "gated_delta_net", "mamba",
      "lightning_attention", "flex_attention", "cutlass_fmha", "tensorrt_llm", "sglang_attention"}},
    {"pytorch",
     {"nccl", "peer", "flash_attention", "flex_attention", "sage_attention", "cudnn",
      "cutlass_fmha"}},
};

// For the decode host of harness/decode alone.
const std::set<std::string> demos = {"decode", "decode-modes"};

struct File {
    struct cus_rules *rules;
    Strings problems;
};

// Every file of the folder, by its name without ".conf"; loaded once, never freed.
const std::map<std::string, File> &Presets() {
    static std::map<std::string, File> *presets = [] {
        auto *all = new std::map<std::string, File>;
        DIR *dir = opendir(folder);
        for (dirent *file; dir && (file = readdir(dir));) {
            std::string name = file->d_name;
            if (name.size() <= 5 || name.substr(name.size() - 5) != ".conf")
                continue;
            File &preset = (*all)[name.substr(0, name.size() - 5)];
            preset.rules = cus_rules_load_file((folder + name).c_str(), TakeProblem,
                                               &preset.problems, nullptr);
        }
        if (dir)
            closedir(dir);
        return all;
    }();
    return *presets;
}

// What the list has for this name of this family. Null: nothing.
const Kernel *Listed(const std::string &preset, const std::string &name) {
    for (const Kernel &kernel : kernels)
        if (preset == kernel.preset && name == kernel.name)
            return &kernel;
    return nullptr;
}

// The policy and the pattern that decides, or "none".
std::string Decide(const struct cus_rules *rules, const char *name) {
    cus_verdict verdict = cus_rules_decide(rules, name);
    if (verdict.rule < 0)
        return "none";
    return std::string(cus_policy_name(verdict.policy)) + " = " +
           cus_rules_get(rules, (unsigned)verdict.rule)->pattern;
}

Strings Written(const struct cus_rules *rules) {
    Strings all;
    for (unsigned i = 0; const cus_rule *rule = cus_rules_get(rules, i); i++)
        all.push_back(std::string(cus_policy_name(rule->policy)) + " = " + rule->pattern);
    return all;
}

TEST(Preset, EachIsReadWithoutAProblem) {
    EXPECT_GE(Presets().size(), 15u);
    for (const auto &[name, preset] : Presets()) {
        EXPECT_EQ(preset.problems, Strings{}) << name;
        EXPECT_GT(cus_rules_count(preset.rules), 0u) << name;
        // What reads the settings of a program sees no problem either.
        std::string path = folder + name + ".conf";
        Strings problems;
        cus_config_read_file(
            path.c_str(), false, [](void *, const cus_setting *) {}, TakeProblem, &problems);
        EXPECT_EQ(problems, Strings{}) << name;
    }
}

TEST(Preset, AKernelIsDecidedByItsFamilyAndByNoOther) {
    std::map<std::string, size_t> names;
    for (const Kernel &kernel : kernels) {
        names[kernel.preset]++;
        for (const auto &[name, preset] : Presets()) {
            if (bundles.count(name))
                continue;
            cus_verdict verdict = cus_rules_decide(preset.rules, kernel.name);
            if (name != kernel.preset && Listed(name, kernel.name))
                continue; // two ways with the same kernel, or two kernels of one name
            if (name != kernel.preset) {
                EXPECT_EQ(Decide(preset.rules, kernel.name), "none") << name << ": " << kernel.name;
                continue;
            }
            EXPECT_GE(verdict.rule, 0) << name << ": " << kernel.name;
            EXPECT_STREQ(cus_policy_name(verdict.policy), cus_policy_name(kernel.policy))
                << name << ": " << kernel.name;
        }
    }
    for (const auto &[name, preset] : Presets()) {
        bool family = !bundles.count(name) && !demos.count(name);
        EXPECT_TRUE(!family || names[name] >= names_each) << name << ": " << names[name];
    }
    for (const auto &[name, count] : names)
        EXPECT_TRUE(name.empty() || Presets().count(name)) << name << ".conf is not there";
    EXPECT_GE(names[""], 60u);
}

TEST(Preset, ALibraryIsDecidedByItsFamilyAndByNoOther) {
    for (const Kernel &library : libraries) {
        for (const auto &[name, preset] : Presets()) {
            bool inside = name == library.preset;
            if (bundles.count(name))
                for (const std::string &part : bundles.at(name))
                    inside |= part == library.preset;
            cus_verdict verdict = OfLibrary(preset.rules, library.name);
            EXPECT_EQ(verdict.rule >= 0, inside) << name << ": " << library.name;
            EXPECT_EQ(verdict.policy, inside ? library.policy : graph)
                << name << ": " << library.name;
        }
    }
}

TEST(Preset, NoPatternIsDead) {
    for (const auto &[name, preset] : Presets()) {
        if (bundles.count(name))
            continue;
        std::set<int> alive;
        for (const Kernel &kernel : kernels)
            alive.insert(cus_rules_decide(preset.rules, kernel.name).rule);
        for (const Kernel &library : libraries)
            alive.insert(OfLibrary(preset.rules, library.name).rule);
        for (unsigned i = 0; const cus_rule *rule = cus_rules_get(preset.rules, i); i++)
            EXPECT_TRUE(alive.count((int)i))
                << name << ".conf:" << rule->line << ": no listed kernel is decided by "
                << rule->pattern;
    }
}

TEST(Preset, ABundleIsItsPartsInOrder) {
    for (const auto &[bundle, parts] : bundles) {
        ASSERT_TRUE(Presets().count(bundle)) << bundle;
        Strings written;
        for (size_t i = parts.size(); i-- > 0;) {
            ASSERT_TRUE(Presets().count(parts[i])) << parts[i];
            Strings rules = Written(Presets().at(parts[i]).rules);
            written.insert(written.end(), rules.begin(), rules.end());
        }
        EXPECT_EQ(Written(Presets().at(bundle).rules), written) << bundle;
        for (const Kernel &kernel : kernels) {
            const Kernel *listed = nullptr;
            for (size_t i = parts.size(); i-- > 0 && !listed;)
                listed = Listed(parts[i], kernel.name);
            cus_verdict verdict = cus_rules_decide(Presets().at(bundle).rules, kernel.name);
            EXPECT_EQ(verdict.rule >= 0, listed != nullptr) << bundle << ": " << kernel.name;
            EXPECT_EQ(verdict.policy, listed ? listed->policy : graph)
                << bundle << ": " << kernel.name;
        }
    }
}

// What a file says it is for is the first thing that a reader sees; and the table of
// config/README.md has a row for each.
TEST(Preset, EachSaysWhatItIsForAndIsInTheTable) {
    std::string readme = ReadFile("config/README.md");
    for (const auto &[name, preset] : Presets()) {
        std::string path = folder + name + ".conf";
        EXPECT_EQ(ReadFile(path).rfind("# For ", 0), 0u) << path;
        EXPECT_EQ(Count(readme, "| `presets/" + name + ".conf` |"), 1u) << name;
    }
}

} // namespace
