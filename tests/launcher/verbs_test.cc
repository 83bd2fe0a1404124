// The other verbs: help, version, config; and that config/cusplice.conf is what the options table
// says.
#include <gtest/gtest.h>

#include "shim/base/options.h"
#include "shim/base/version.h"
#include "tests/launcher/launcher.h"

namespace {

bool Has(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}

TEST(Verbs, HelpAndVersionGoToStdout) {
    Result r = Cusplice({"--version"});
    EXPECT_EQ(r.out, "cusplice " CUSPLICE_VERSION "\n");
    EXPECT_EQ(r.Exit(), 0);
    for (const Strings &arguments :
         {Strings{"--help"}, Strings{"-h"}, Strings{"help"}, Strings{"run", "--help"},
          Strings{"help", "run"}, Strings{"run", "--set", "mode=off", "--help"},
          Strings{"config", "--help"}}) {
        r = Cusplice(arguments);
        EXPECT_EQ(r.Exit(), 0) << arguments[0];
        EXPECT_EQ(r.err, "");
        EXPECT_TRUE(Has(r.out, "usage: cusplice ")) << r.out;
        for (size_t at = 0, end; at < r.out.size(); at = end + 1) {
            end = r.out.find('\n', at);
            EXPECT_LE(end - at, 120u) << r.out.substr(at, end - at);
        }
    }
    for (const char *word : {"--set", "--stats", "-c", "Exit status"})
        EXPECT_TRUE(Has(Cusplice({"run", "--help"}).out, word)) << word;
}

TEST(Verbs, UnknownOnesAreToldTheNearest) {
    Result r = Cusplice({"rnu"});
    EXPECT_EQ(r.Exit(), 2);
    EXPECT_EQ(r.out, "");
    EXPECT_TRUE(Has(r.err, "the nearest is 'run'")) << r.err;
    EXPECT_TRUE(Has(Cusplice({"confgi"}).err, "the nearest is 'config'"));
    EXPECT_TRUE(Has(Cusplice({"./app"}).err, "cusplice run -- ./app"));
    EXPECT_EQ(Cusplice({}).Exit(), 2);
    EXPECT_TRUE(Has(Cusplice({"config", "--lst"}).err, "the nearest is --list"));
}

TEST(ConfigVerb, TheCheckedInFileIsFresh) {
    Result r = Cusplice({"config", "--template"});
    EXPECT_EQ(r.Exit(), 0);
    EXPECT_EQ(r.out, Read("config/cusplice.conf"))
        << "run: bazel-bin/tools/cusplice config --template > config/cusplice.conf";
}

TEST(ConfigVerb, TheTemplateIsAConfigurationWithEveryKey) {
    std::string text = Read("config/cusplice.conf"), all;
    for (unsigned i = 0; cus_options_row(i); i++) {
        std::string key = std::string("\n#") + cus_options_row(i)->key + " =";
        ASSERT_TRUE(Has(text, key)) << key;
    }
    EXPECT_EQ(Cusplice({"config", "--check", "config/cusplice.conf"}).Exit(), 0);
    // Every line that shows a setting or a rule, made into one.
    for (size_t at = 0, end; at < text.size(); at = end + 1) {
        end = text.find('\n', at);
        std::string line = text.substr(at, end - at);
        bool shown = line.size() > 1 && line[0] == '#' && line[1] != ' ' && Has(line, " =");
        all += (shown ? line.substr(1) : line) + "\n";
    }
    Result r = Cusplice({"config", "--check", Write("all.conf", all)});
    EXPECT_EQ(r.Exit(), 0) << r.err;
}

TEST(ConfigVerb, PresetsAreGood) {
    Result r = Cusplice({"config", "--check", "config/presets/decode.conf"});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    r = Cusplice({"config", "--explain", "attention_decode"},
                 {{"CUSPLICE_CONFIG", "config/presets/decode.conf"}});
    EXPECT_TRUE(Has(r.out, "policy     eager\n")) << r.out;
}

TEST(ConfigVerb, CheckTellsEveryProblem) {
    std::string path = Write("bad.conf", "mdoe = off\nhold_us = 1\n[rules]\neager = [\n");
    Result r = Cusplice({"config", "--check", path});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_EQ(r.out, "");
    EXPECT_TRUE(Has(r.err, path + ":1: unknown key 'mdoe' (nearest: mode)")) << r.err;
    EXPECT_TRUE(Has(r.err, path + ":2: hold_us = 1: must be")) << r.err;
    EXPECT_TRUE(Has(r.err, path + ":4: eager = [: bad pattern")) << r.err;
    EXPECT_EQ(Cusplice({"config", "--check", "/nowhere.conf"}).Exit(), 1);
    EXPECT_EQ(Cusplice({"config", "--check"}).Exit(), 2);
}

TEST(ConfigVerb, ListShowsValuesAndRulesAsTheyAre) {
    std::string path = Write("list.conf", "hold_us = 60\n[rules]\neager = k*\n");
    Result r =
        Cusplice({"config", "--list"},
                 {{"CUSPLICE_CONFIG", path}, {"CUSPLICE_WARMUP", "9"}, {"CUSPLICE_EAGER", "e"}});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.out, "hold_us = 60 ") && Has(r.out, "built-in: 1000")) << r.out;
    EXPECT_TRUE(Has(r.out, "warmup = 9 ")) << r.out;
    EXPECT_TRUE(Has(r.out, "eager = e    # CUSPLICE_EAGER\neager = k*    # " + path + ":3\n"))
        << r.out;
}

TEST(ConfigVerb, ExplainNamesTheRule) {
    std::string path = Write("explain.conf", "[rules]\ngraph = kernel_a\neager = kernel*\n");
    Environment with = {{"CUSPLICE_CONFIG", path}};
    Result r = Cusplice({"config", "--explain", "_ZN2ns8kernel_bIfEEvPT_"}, with);
    EXPECT_EQ(r.out, "base name  kernel_b\nfull name  ns::kernel_b\npolicy     eager\n"
                     "rule       eager = kernel*    # " +
                         path + ":3\n");
    r = Cusplice({"config", "--explain", "other"}, with);
    EXPECT_TRUE(Has(r.out, "policy     graph\nrule       none matches\n")) << r.out;
}

} // namespace
