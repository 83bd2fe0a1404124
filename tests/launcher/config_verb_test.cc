// Promise: the verb config works, and config/cusplice.conf agrees with the options table.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "shim/base/options.h"
#include "tests/launcher/launcher.h"

namespace {

// What Python's reader of JSON makes of a text: an expression of it, d.
std::string Json(const std::string &text, const std::string &expression) {
    Result r = RunProgram({"/usr/bin/env", "-u", "LD_PRELOAD", "python3", "-c",
                           "import json,sys; d=json.load(sys.stdin); print((" + expression + "))"},
                          {}, text);
    return r.out + r.err;
}

TEST(ConfigVerb, OutputGoesWhereItIsTold) {
    EXPECT_EQ(Cusplice({"config", "--list", "--json"}).out,
              Cusplice({"config", "--list", "--format", "json"}).out);
    for (const char *which : {"--list", "--template"}) {
        std::string out = Folder() + "/config.txt";
        unlink(out.c_str());
        EXPECT_EQ(Cusplice({"config", which, "-o", out}).out, "");
        EXPECT_EQ(ReadFile(out), Cusplice({"config", which}).out);
        EXPECT_EQ(Cusplice({"config", which, "-o", "-"}).out, ReadFile(out));
        Result r = Cusplice({"config", which, "-o", out});
        EXPECT_EQ(r.Exit(), 1);
        EXPECT_TRUE(Has(r.err, out + ": cannot be written: it is there already (--force replaces"))
            << r.err;
        EXPECT_EQ(Cusplice({"config", which, "-o", out, "--force"}).Exit(), 0);
    }
}

TEST(ConfigVerb, TheCheckedInFileIsFresh) {
    Result r = Cusplice({"config", "--template"});
    EXPECT_EQ(r.Exit(), 0);
    EXPECT_EQ(r.out, ReadFile("config/cusplice.conf"))
        << "run: bazel-bin/tools/cusplice config --template > config/cusplice.conf";
}

TEST(ConfigVerb, TheTemplateIsAConfigurationWithEveryKey) {
    std::string text = ReadFile("config/cusplice.conf"), all;
    for (unsigned i = 0; cus_options_row(i); i++) {
        std::string key = std::string("\n#") + cus_options_row(i)->key + " =";
        ASSERT_TRUE(Has(text, key)) << key;
    }
    EXPECT_EQ(Cusplice({"config", "--check", "config/cusplice.conf"}).Exit(), 0);
    // Every line that shows a setting, a rule or a section's head, made into one.
    for (size_t at = 0, end; at < text.size(); at = end + 1) {
        end = text.find('\n', at);
        std::string line = text.substr(at, end - at);
        bool shown = line.size() > 1 && line[0] == '#' && line[1] != ' ' &&
                     (Has(line, " =") || line[1] == '[');
        all += (shown ? line.substr(1) : line) + "\n";
    }
    Result r = Cusplice({"config", "--check", Write("all.conf", all)});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    for (const char *policy : {"graph", "uniform", "uniform_single", "eager", "never_defer"})
        EXPECT_TRUE(Has(text, std::string("#   ") + policy + " = PATTERN")) << policy;
    for (const char *key : {"marker", "tokens", "tokens_each", "uniform", "single", "sizes"})
        EXPECT_TRUE(Has(text, std::string("\n#") + key + " = ")) << key;
    r = Cusplice({"config", "--explain", "embedding"},
                 {{"CUSPLICE_CONFIG", Write("all.conf", all)}});
    EXPECT_TRUE(Has(r.out, "marker of  [step decode]")) << r.out;
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
    r = Cusplice({"config", "--check", "/nowhere.conf"});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(r.err, "cusplice: /nowhere.conf: cannot be opened: No such file or directory\n");
    EXPECT_EQ(Cusplice({"config", "--check"}).Exit(), 2);
}

TEST(ConfigVerb, CheckTakesSeveralFiles) {
    std::string good = Write("several.conf", "mode = full\n"), bad = Write("wrong.conf", "x = 1\n");
    Result r = Cusplice({"config", "--check", good, good});
    EXPECT_EQ(r.out, good + ": ok\n" + good + ": ok\n");
    EXPECT_EQ(r.Exit(), 0);
    r = Cusplice({"config", "--check", good, bad, good});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_EQ(r.out, good + ": ok\n" + good + ": ok\n");
    EXPECT_TRUE(Has(r.err, bad + ":1: unknown key 'x'")) << r.err;
    EXPECT_EQ(Cusplice({"config", "--list", good}).Exit(), 2);
}

TEST(ConfigVerb, CheckTellsInTheOrderOfLinesAndOnlyOnce) {
    // Settings, rules and steps are told of by three readers.
    std::string path = Write("order.conf", "hold_us = 60\n[step a]\nsizes = 8..4\nmarkr = k\n"
                                           "marker = k\nmarker = k\nnothing\n[rules]\neagr = x\n"
                                           "[step]\n[stpe]\nx = y\n");
    Result r = Cusplice({"config", "--check", path});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_EQ(r.out, "");
    std::string at = "cusplice: " + path;
    EXPECT_EQ(r.err, at + ":3: [step a] sizes = 8..4: '8..4': ends before it begins\n" + at +
                         ":4: [step a] unknown key 'markr' (nearest: marker)\n" + at +
                         ":6: [step a] marker is there twice\n" + at +
                         ":7: neither 'key = value' nor '[section]' nor a comment\n" + at +
                         ":9: unknown kind of rule 'eagr' (nearest: eager)\n" + at +
                         ":10: [step] has no marker\n" + at +
                         ":11: unknown section [stpe] (nearest: step)\n");
    r = Cusplice({"config", "--check", path, "--json"});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_EQ(r.err, "");
    EXPECT_EQ(Json(r.out, "[p['line'] for p in d['problems']]"), "[3, 4, 6, 7, 9, 10, 11]\n");
    EXPECT_EQ(Json(r.out, "d['ok'], d['problems'][1]['nearest'], d['problems'][0]['nearest']"),
              "(False, 'marker', None)\n");
}

TEST(ConfigVerb, CheckSaysWhereAFileIsGood) {
    std::string path = Write("good \"1\".conf", "mode = full\n[rules]\neager = a\n[step]\nmarker = "
                                                "k\n");
    Result r = Cusplice({"config", "--check", path});
    EXPECT_EQ(r.Exit(), 0);
    EXPECT_EQ(r.out, path + ": ok\n");
    EXPECT_EQ(r.err, "");
    r = Cusplice({"config", "--json", "--check", path});
    EXPECT_EQ(r.Exit(), 0);
    EXPECT_EQ(Json(r.out, "d['ok'], d['problems'], d['file']"), "(True, [], '" + path + "')\n");
}

TEST(ConfigVerb, JsonIsForWhatShowsSomething) {
    for (const Strings &arguments :
         {Strings{"config", "--json"}, Strings{"config", "--template", "--json"},
          Strings{"config", "--check", "--json"}, Strings{"config", "--explain", "--json"}})
        EXPECT_EQ(Cusplice(arguments).Exit(), 2) << arguments[1];
}

TEST(ConfigVerb, ListShowsValuesAndRulesAsTheyAre) {
    std::string path = Write("list.conf", "hold_us = 60\n[rules]\neager = k*\n");
    Result r =
        Cusplice({"config", "--list"},
                 {{"CUSPLICE_CONFIG", path}, {"CUSPLICE_WARMUP", "9"}, {"CUSPLICE_EAGER", "e"}});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.out, "\n# " + path + ":1; 50 .. 1000000; built-in: 1000\nhold_us = 60\n"))
        << r.out;
    EXPECT_TRUE(Has(r.out, "\n# CUSPLICE_WARMUP; 1 .. 1000; built-in: 2\nwarmup = 9\n")) << r.out;
    EXPECT_TRUE(Has(r.out, "\n# built-in; 1 .. 65536\n#variants = 16384\n")) << r.out;
    EXPECT_TRUE(Has(r.out, "\n# CUSPLICE_EAGER\neager = e\n# " + path + ":3\neager = k*\n"))
        << r.out;
    for (unsigned i = 0; cus_options_row(i); i++) {
        const std::string key = cus_options_row(i)->key;
        EXPECT_TRUE(Has(r.out, "\n#" + key + " =") || Has(r.out, "\n" + key + " =")) << key;
    }
}

TEST(ConfigVerb, ListSaysWhichPlaceWon) {
    std::string home = Folder() + "/places";
    ASSERT_TRUE(mkdir(home.c_str(), 0700) == 0 && mkdir((home + "/cusplice").c_str(), 0700) == 0);
    std::string user = Write("places/cusplice/cusplice.conf", "warmup = 3\nhold_us = 70\n"
                                                              "variants = 2\nwarmup = 4\n"
                                                              "mode = full\n");
    std::string named = Write("places.conf", "\nhold_us = 80\nvariants = 99999\n");
    Environment with = {{"XDG_CONFIG_HOME", home}, {"CUSPLICE_CONFIG", named}, {"CUSPLICE", "off"}};
    Result r = Cusplice({"config", "--list"}, with);
    EXPECT_EQ(r.Exit(), 1) << "variants = 99999 is a problem";
    EXPECT_TRUE(Has(r.err, named + ":3: variants = 99999: must be")) << r.err;
    EXPECT_TRUE(Has(r.out, "\n# CUSPLICE; off, observe, eager, piecewise, full, full_decode_only, "
                           "full_and_piecewise, verify; built-in: piecewise\nmode = off\n"))
        << r.out;
    EXPECT_TRUE(Has(r.out, "\n# " + named + ":2; 50 .. 1000000; built-in: 1000\nhold_us = 80\n"))
        << r.out;
    EXPECT_TRUE(Has(r.out, "\n# " + user + ":4; 1 .. 1000; built-in: 2\nwarmup = 4\n")) << r.out;
    EXPECT_TRUE(Has(r.out, "\n# " + user + ":3; 1 .. 65536; built-in: 16384\nvariants = 2\n"))
        << r.out;
    r = Cusplice({"config", "--list", "--json"}, with);
    EXPECT_EQ(Json(r.out, "[(s['value'], s['file'], s['line']) for s in d['settings'] if s['key'] "
                          "in ('mode', 'hold_us', 'demote')]"),
              "[('off', 'CUSPLICE', 0), ('80', '" + named + "', 2), ('yes', None, 0)]\n");
}

TEST(ConfigVerb, ListShowsSteps) {
    std::string path = Write("steps.conf", "[step decode]\nmarker = k*\nuniform = y==1\n"
                                           "sizes = 1, 2, 8 .. 64/8\n[rules]\nuniform = u\n"
                                           "[step]\nmarker = other\ntokens = z\n");
    Result r = Cusplice({"config", "--list"}, {{"CUSPLICE_CONFIG", path}});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.out, "\n[rules]\n# " + path + ":6\nuniform = u\n\n# " + path +
                               ":2\n[step decode]\nmarker = k*\ntokens = x\ntokens_each = "
                               "1\nuniform = y == 1\nsizes = 1,2,8..64/8\n\n# " +
                               path + ":8\n[step]\nmarker = other\ntokens = z\ntokens_each = 1\n"))
        << r.out;
    r = Cusplice({"config", "--list", "--json"}, {{"CUSPLICE_CONFIG", path}});
    EXPECT_EQ(Json(r.out, "d['rules'] == [{'policy': 'uniform', 'pattern': 'u', 'file': '" + path +
                              "', 'line': 6}]"),
              "True\n")
        << r.out;
    EXPECT_EQ(Json(r.out, "[list(s.values()) for s in d['steps']]"),
              "[['decode', 'k*', 'x', '1', 'y == 1', None, '1,2,8..64/8', '" + path +
                  "', 2], ['', 'other', 'z', '1', None, None, None, '" + path + "', 8]]\n");
}

TEST(ConfigVerb, ExplainNamesTheRule) {
    std::string path = Write("explain.conf", "[rules]\ngraph = kernel_a\neager = kernel*\n");
    Environment with = {{"CUSPLICE_CONFIG", path}};
    Result r = Cusplice({"config", "--explain", "_ZN2ns8kernel_bIfEEvPT_"}, with);
    EXPECT_EQ(r.out, "taken as   mangled name\nbase name  kernel_b\nfull name  ns::kernel_b\n"
                     "policy     eager\nrule       eager = kernel*    # " +
                         path +
                         ":3\notherwise  none matches: the kernel may go into any graph\n"
                         "marker of  no step\n");
    r = Cusplice({"config", "--explain", "other"}, with);
    EXPECT_EQ(r.out, "taken as   base name\nbase name  other\nfull name  other\npolicy     graph\n"
                     "rule       none matches: the kernel may go into any graph\n"
                     "marker of  no step\n");
    r = Cusplice({"config", "--explain", "other", "--json"}, with);
    EXPECT_EQ(Json(r.out, "list(d.items())[3:]"),
              "[('policy', 'graph'), ('rule', None), ('otherwise', None), ('marker_of', None), "
              "('library', None), ('call', None), ('taken_as', 'base name')]\n");
}

TEST(ConfigVerb, ExplainSaysWhatWouldDecideOtherwiseAndWhichStepItMarks) {
    std::string path =
        Write("otherwise.conf", "[rules]\ngraph = kernel_a\neager = other\nuniform = kernel*\n"
                                "[step first]\nmarker = x\n[step decode]\nmarker = re:^ns::ker\n"
                                "[step]\nmarker = kernel_a\n");
    Environment with = {{"CUSPLICE_CONFIG", path}, {"CUSPLICE_EAGER", "mangled:_ZN2ns8kernel_a*"}};
    Result r = Cusplice({"config", "--explain", "_ZN2ns8kernel_aIfEEvPT_"}, with);
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_EQ(
        r.out,
        "taken as   mangled name\nbase name  kernel_a\nfull name  ns::kernel_a\npolicy     eager\n"
        "rule       eager = mangled:_ZN2ns8kernel_a*    # CUSPLICE_EAGER\n"
        "otherwise  graph = kernel_a    # " +
            path + ":2\nmarker of  [step decode]    # " + path + ":8\n");
    // By its base name the answer is another one, which is said to be unsure.
    r = Cusplice({"config", "--explain", "kernel_a"}, with);
    EXPECT_EQ(r.out,
              "taken as   base name\nbase name  kernel_a\nfull name  kernel_a\npolicy     graph\n"
              "rule       graph = kernel_a    # " +
                  path + ":2\notherwise  uniform = kernel*    # " + path +
                  ":4\nmarker of  [step]    # " + path +
                  ":10\nnote       kernel_a is no mangled name: patterns of mangled names "
                  "were compared with it as it stands\n");
    r = Cusplice({"config", "--explain", "kernel_b", "--json"},
                 {{"CUSPLICE_CONFIG", path}, {"CUSPLICE_EAGER", "kernel_b"}});
    EXPECT_EQ(Json(r.out, "d['rule']['policy'], d['rule']['file'], d['rule']['line'], "
                          "d['otherwise']['policy'], d['otherwise']['line'], d['marker_of']"),
              "('eager', 'CUSPLICE_EAGER', 0, 'uniform', 4, None)\n");
}

TEST(ConfigVerb, ExplainKnowsLibraries) {
    std::string path =
        Write("libraries.conf", "[rules]\ngraph = safe*\nnever_defer = lib:libnccl*\n"
                                "eager = k*\n");
    Environment with = {{"CUSPLICE_CONFIG", path}};
    Result r = Cusplice({"config", "--explain", "k", "--lib", "libnccl.so.2"}, with);
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_EQ(r.out, "taken as   base name\nbase name  k\nfull name  k\nlibrary    "
                     "libnccl.so.2\npolicy     never_defer\n"
                     "rule       never_defer = lib:libnccl*    # " +
                         path + ":3\notherwise  eager = k*    # " + path +
                         ":4\nmarker of  no step\n");
    r = Cusplice({"config", "--explain", "k"}, with);
    EXPECT_EQ(r.out, "taken as   base name\nbase name  k\nfull name  k\npolicy     eager\nrule     "
                     "  eager = k*    # " +
                         path +
                         ":4\notherwise  none matches: the kernel may go into any graph\n"
                         "marker of  no step\n"
                         "note       rules by library come first and were not asked: say --lib "
                         "FILE\n");
    r = Cusplice({"config", "--explain", "safe_one"}, with);
    EXPECT_FALSE(Has(r.out, "note")) << "decided before: " << r.out;
    r = Cusplice({"config", "--explain", "lib:libnccl.so.2"}, with);
    EXPECT_EQ(r.out, "taken as   file name of a library or program\nlibrary    "
                     "libnccl.so.2\npolicy     never_defer\n"
                     "rule       never_defer = lib:libnccl*    # " +
                         path +
                         ":3\notherwise  none matches: the kernel may go into any graph\n"
                         "note       rules that name kernels were not asked\n");
    r = Cusplice({"config", "--json", "--explain", "k", "--lib", "libnccl.so.2"}, with);
    EXPECT_EQ(
        Json(r.out, "d['library'], d['rule']['pattern'], d['otherwise']['pattern'], d['call']"),
        "('libnccl.so.2', 'lib:libnccl*', 'k*', None)\n");
    for (const Strings &arguments :
         {Strings{"config", "--list", "--lib", "x"}, Strings{"config", "--explain", "k", "--lib"},
          Strings{"config", "--explain", "lib:x", "--lib", "x"}})
        EXPECT_EQ(Cusplice(arguments, with).Exit(), 2) << arguments[1];
}

TEST(ConfigVerb, ExplainKnowsCalls) {
    std::string path =
        Write("calls.conf", "[rules]\neager = api:cuMemcpyDtoDAsync\ngraph = api:cuMemset*_ptsz\n"
                            "never_defer = api:cuMemset*\n");
    Environment with = {{"CUSPLICE_CONFIG", path}};
    for (const char *name : {"api:cuMemcpyDtoDAsync", "api:cuMemcpyDtoDAsync_v2"}) {
        Result r = Cusplice({"config", "--explain", name}, with);
        EXPECT_EQ(r.Exit(), 0) << r.err;
        EXPECT_EQ(r.out, "call       cuMemcpyDtoDAsync_v2\npolicy     eager\n"
                         "rule       eager = api:cuMemcpyDtoDAsync    # " +
                             path +
                             ":2\notherwise  none matches: the call may go into any graph\n");
    }
    Result r = Cusplice({"config", "--explain", "api:cuMemsetD8Async"}, with);
    EXPECT_EQ(r.out, "call       cuMemsetD8Async\npolicy     never_defer\n"
                     "rule       never_defer = api:cuMemset*    # " +
                         path +
                         ":4\notherwise  none matches: the call may go into any graph\n"
                         "note       cuMemsetD8Async_ptsz is decided on otherwise: ask for it by "
                         "its whole name\n");
    r = Cusplice({"config", "--explain", "api:cuMemsetD8Async_ptsz", "--json"}, with);
    EXPECT_EQ(Json(r.out, "d['call'], d['policy'], d['rule']['line'], d['name'], d['library']"),
              "('cuMemsetD8Async_ptsz', 'graph', 3, None, None)\n");
    r = Cusplice({"config", "--explain", "api:cuMemAlloc_v2"}, with);
    EXPECT_EQ(r.out,
              "call       cuMemAlloc_v2\nnote       it is no memset, copy or record that may be "
              "in a graph: no rule changes what it does\n");
    r = Cusplice({"config", "--explain", "api:cuEventRecord"}, with);
    EXPECT_EQ(r.out, "call       cuEventRecord\npolicy     graph\n"
                     "rule       none matches: the call may go into any graph\n");
    r = Cusplice({"config", "--explain", "api:cuMemsetD8Asinc"}, with);
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(r.err, "cusplice: the driver has no call cuMemsetD8Asinc; the nearest is "
                     "cuMemsetD8Async\n");
}

TEST(ConfigVerb, LibrariesAndCallsAreListedAndChecked) {
    std::string path = Write("sorts.conf", "[rules]\nnever_defer = lib:libnccl*\n"
                                           "eager = api:cuMemcpyDtoDAsync\n");
    EXPECT_EQ(Cusplice({"config", "--check", path}).Exit(), 0);
    Result r = Cusplice({"config", "--list"}, {{"CUSPLICE_CONFIG", path}});
    EXPECT_TRUE(Has(r.out, "\n# " + path + ":2\nnever_defer = lib:libnccl*\n# " + path +
                               ":3\neager = api:cuMemcpyDtoDAsync\n"))
        << r.out;
    path = Write("sorts_bad.conf", "[rules]\nnever_defer = lib:lib/nccl*\n"
                                   "eager = api:cuMemcpyDtoDAsnc\n");
    r = Cusplice({"config", "--check", path});
    EXPECT_EQ(r.Exit(), 1);
    EXPECT_TRUE(Has(r.err, path +
                               ":2: never_defer = lib:lib/nccl*: bad pattern: a library is named "
                               "by its file name, without folders\n"))
        << r.err;
    EXPECT_TRUE(Has(r.err, path + ":3: eager = api:cuMemcpyDtoDAsnc: the driver has no such call "
                                  "(nearest: cuMemcpyDtoDAsync)\n"))
        << r.err;
    r = Cusplice({"run", "-c", path, "--", "/bin/true"});
    EXPECT_NE(r.Exit(), 0);
    EXPECT_TRUE(Has(r.err, "nearest: cuMemcpyDtoDAsync")) << r.err;
}

// The forms in which profilers and people have a name.
TEST(ConfigVerb, ExplainTakesEachFormOfAName) {
    std::string path =
        Write("forms.conf", "[rules]\nnever_defer = re:^ns::kernel$\neager = kernel\n"
                            "uniform = lib:libnccl.so*\neager = mangled:_Z9*\n");
    Environment with = {{"CUSPLICE_CONFIG", path}};
    const struct {
        std::string asked, taken_as, policy;
    } forms[] = {
        {"_ZN2ns6kernelIfEEvPT_i", "mangled name", "never_defer"},
        {"void ns::kernel<float, 4>(float*, int)", "demangled name with arguments", "never_defer"},
        {"ns::kernel<std::array<char*, 3ul>, (bool)1>", "demangled name with arguments",
         "never_defer"},
        {"ns::kernel", "name with namespaces", "never_defer"},
        {"void (anonymous namespace)::kernel<4>(int)", "demangled name with arguments", "eager"},
        {"kernel(float*, int)", "demangled name with arguments", "eager"},
        {"kernel", "base name", "eager"},
        {"other", "base name", "graph"},
        {"lib:libnccl.so.2", "file name of a library or program", "uniform"},
        {"lib:/usr/lib/libnccl.so.2", "path of a library or program: its file name counts",
         "uniform"},
    };
    for (const auto &form : forms) {
        Result r = Cusplice({"config", "--explain", form.asked}, with);
        EXPECT_EQ(r.Exit(), 0) << r.err;
        EXPECT_EQ(r.out.find("taken as   " + form.taken_as + "\n"), 0u) << r.out;
        EXPECT_TRUE(Has(r.out, "policy     " + form.policy + "\n")) << form.asked << r.out;
        r = Cusplice({"config", "--explain", form.asked, "--json"}, with);
        EXPECT_EQ(Json(r.out, "d['taken_as'], d['policy']"),
                  "('" + form.taken_as + "', '" + form.policy + "')\n");
    }
    Result r = Cusplice({"config", "--explain", "void ns::other<1>(int)"}, with);
    EXPECT_TRUE(Has(r.out, "full name  ns::other\n")) << r.out;
    EXPECT_TRUE(Has(r.out, "patterns of mangled names were not asked: ask by the mangled name\n"))
        << r.out;
    // By the base name alone it is eager.
    r = Cusplice({"config", "--explain", "kernel"}, with);
    EXPECT_TRUE(Has(r.out, "rules by namespaces come first and were compared with the base name "
                           "alone: ask by the name with namespaces\n"))
        << r.out;
    r = Cusplice({"config", "--explain", "k", "--lib", "/opt/libnccl.so.2"}, with);
    EXPECT_TRUE(Has(r.out, "library    libnccl.so.2\npolicy     uniform\n")) << r.out;
}

TEST(ConfigVerb, ExplainRefusesWhatIsNoName) {
    const struct {
        std::string asked, says;
    } cases[] = {
        {"", " is no name of a kernel"},
        {"attention decode", "attention decode is no name of a kernel"},
        {"<<<>>>", "<<<>>> is no name of a kernel"},
        {"kernel(float", "kernel(float is no name of a kernel"},
        {"7kernel", "7kernel is no name of a kernel"},
        {"lib:/usr/lib/", "lib:/usr/lib/ is no name of a kernel"},
        {"flash*", "flash* is a pattern; ask for a name\n"},
        {"lib:libnccl*", "lib:libnccl* is a pattern; ask for a name\n"},
        {"re:^nccl", "re:^nccl is a pattern; ask for a name\n"},
        {"mangled:_Z1kv", "mangled:_Z1kv is a pattern; ask for a name: _Z1kv\n"},
    };
    for (const auto &c : cases) {
        Result r = Cusplice({"config", "--explain", c.asked});
        EXPECT_EQ(r.Exit(), 1) << c.asked;
        EXPECT_EQ(r.out, "") << c.asked;
        EXPECT_TRUE(Has(r.err, c.says)) << r.err;
    }
}

// Settings, rules and steps, from all places, in one file that means the same.
TEST(ConfigVerb, WhatListPrintsIsAFileThatMeansTheSame) {
    std::string low =
        Write("low.conf", "hold_us = 60\ncache_dir = /c d\n[rules]\neager = re:a ;b|c\n"
                          "uniform = lib:lib # x\n[step one]\nmarker = k\nsizes = 1,4..8/2\n");
    std::string high = Write("high.conf", "warmup = 5\ninclude = " + low +
                                              "\n[rules]\ngraph = *_x\n"
                                              "[step]\nmarker = mangled:_Z1k*\nuniform = x <= 3\n");
    Environment with = {{"CUSPLICE_CONFIG", high},
                        {"CUSPLICE_EAGER", "first;second*"},
                        {"CUSPLICE_SUBMIT_NS", "7"},
                        {"CUSPLICE_CACHE_DIR", ""}};
    std::string text = Cusplice({"config", "--list"}, with).out;
    std::string pasted = Write("pasted.conf", text);
    // Without what the file names say.
    const std::string what = "[(s['key'], s['value']) for s in d['settings']], [(r['policy'], "
                             "r['pattern']) for r in d['rules']], [list(s.values())[:-2] for s in "
                             "d['steps']]";
    std::string before = Json(Cusplice({"config", "--list", "--json"}, with).out, what);
    EXPECT_TRUE(Has(before, "('hold_us', '60')") && Has(before, "('submit_ns', '7')")) << before;
    EXPECT_TRUE(Has(before, "('graph', '*_x'), ('eager', 're:a ;b|c'), ('uniform', 'lib:lib # x')"))
        << before;
    EXPECT_EQ(Json(Cusplice({"config", "--list", "--json"},
                            {{"CUSPLICE_CONFIG", pasted}, {"CUSPLICE_CACHE_DIR", ""}})
                       .out,
                   what),
              before);
    EXPECT_TRUE(Has(text, "#   " + low + ", included by high.conf:2\n#   " + high + "\n")) << text;
    // What nobody set stays unset: a line `live = no` would be the user's word.
    EXPECT_TRUE(Has(text, "\n#live = no\n")) << text;
    Result r = Cusplice({"config", "--check", pasted});
    EXPECT_EQ(r.Exit(), 0) << r.err;
}

// The user may never have named the file that is wrong.
TEST(ConfigVerb, AProblemOfAnIncludedFileSaysWhoIncludesIt) {
    std::string c = Write("by_c.conf", "holdus = 5\n[rules]\neager = n::k\n[step]\nsizes = 1,x\n"
                                       "[step two]\nuniform = k\ngarbage\n[stp]\n");
    std::string b = Write("by_b.conf", "include = by_c.conf\ninclude = nowhere.conf\n");
    std::string a = Write("by_a.conf", "\ninclude = by_b.conf\nmode = peicewise\n");
    std::string above = "; included by " + a + ":2",
                all = "; included by " + b + ":1, by " + a + ":2";
    auto judge = [&](const Result &r) {
        std::istringstream lines(r.err);
        unsigned of_c = 0;
        for (std::string line; std::getline(lines, line);) {
            size_t at = line.find("; included by ");
            std::string by = at == std::string::npos ? "" : line.substr(at);
            bool is_c = Has(line, "cusplice: " + c + ":");
            EXPECT_EQ(by, is_c ? all : Has(line, "cusplice: " + b + ":") ? above : "") << r.err;
            of_c += is_c;
        }
        EXPECT_EQ(of_c, 8u) << r.err;
        EXPECT_TRUE(Has(r.err, "holdus") && Has(r.err, "nowhere.conf") && Has(r.err, "peicewise"));
    };
    judge(Cusplice({"config", "--check", a}));
    judge(Cusplice({"run", "-c", a, "--", Target(), "out=started"}));
    judge(Cusplice({"config", "--list"}, {{"CUSPLICE_CONFIG", a}}));
    EXPECT_EQ(Json(Cusplice({"config", "--check", a, "--format", "json"}).out,
                   "d['problems'][0]['included_by'], d['problems'][-1]['included_by']"),
              "(None, '" + all.substr(14) + "')\n");
}

TEST(ConfigVerb, SeveralFilesAndPresetsByName) {
    std::string one = Write("one.conf", "hold_us = 60\nwarmup = 6\n[rules]\neager = k\n");
    std::string two = Write("two.conf", "hold_us = 70\n[rules]\ngraph = k\n");
    Result r = Cusplice({"config", "--list", "-c", one, "-c", two});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.out, "\nhold_us = 70\n") && Has(r.out, "\nwarmup = 6\n")) << r.out;
    EXPECT_TRUE(Has(r.out, ":3\ngraph = k\n# " + one + ":4\neager = k\n")) << r.out;
    r = Cusplice({"config", "--explain", "k", "-c", two, "-c", one});
    EXPECT_TRUE(Has(r.out, "policy     eager\n")) << r.out;
    std::string presets = Folder() + "/install/share/cusplice/presets";
    ASSERT_EQ(system(("mkdir -p " + presets).c_str()), 0);
    Write("install/share/cusplice/presets/nccl.conf", "[rules]\nnever_defer = nccl*\n");
    Write("install/share/cusplice/presets/vllm.conf", "include = nccl\n[rules]\neager = flash*\n");
    r = Cusplice({"config", "--list", "-c", "vllm", "-c", one});
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.out, "#   " + presets + "/nccl.conf, included by vllm.conf:1\n#   " +
                               presets + "/vllm.conf\n#   " + one + "\n"))
        << r.out;
    EXPECT_TRUE(Has(r.out, "eager = k\n# " + presets + "/vllm.conf:3\neager = flash*\n# " +
                               presets + "/nccl.conf:2\nnever_defer = nccl*\n"))
        << r.out;
    r = Cusplice({"run", "-c", "vlm", "--", Target(), "out=started"});
    EXPECT_EQ(r.Exit(), 125);
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(r.err,
              "cusplice: --config vlm: there is no such file and no such preset; the nearest "
              "preset is vllm\n");
    EXPECT_EQ(Cusplice({"config", "--check", "vllm"}).out, presets + "/vllm.conf: ok\n");
    EXPECT_EQ(Cusplice({"config", "--check", one, "-c", two}).Exit(), 2);
}

TEST(ConfigVerb, CheckFollowsIncludesAndTellsWhatIsHardlyMeant) {
    std::string bad = Write("included.conf", "hold_us = 1\n[rules]\neager = a b\n");
    std::string path = Write("odd.conf", "log = warn,garph:debug\nhold_us = 60\nhold_us = 70\n"
                                         "include = included.conf\ninclude = gone.conf\n"
                                         "stats = /tmp/x # y\n[rules]\neager = a\ngraph = *\n"
                                         "eager = b\nnever_defer = lib:c\neager = a\n"
                                         "eager = api:*\neager = api:cuMemsetD8Async\n");
    Result r = Cusplice({"config", "--check", path});
    EXPECT_EQ(r.Exit(), 1);
    std::string at = "cusplice: " + path, by = "; included by " + path + ":4\n";
    EXPECT_EQ(
        r.err,
        at + ":1: log = warn,garph:debug: no line has the domain 'garph' (nearest: graph)\n" + at +
            ":3: hold_us is in line 2, too: this line counts\n" + at +
            ":5: include = gone.conf: cannot be opened: No such file or directory\n" + at +
            ":6: stats = /tmp/x # y: nothing behind a value is a comment, which stands on a line "
            "of its own\n" +
            at +
            ":9: graph = *: matches every kernel, so that 3 rules behind it never decide, from " +
            path + ":10 on\n" + at + ":12: eager = a: never decides: " + path +
            ":8 has the same pattern\n" + at +
            ":13: eager = api:*: matches every call, so that 1 rule behind it never decides, "
            "from " +
            path + ":14 on\ncusplice: " + bad +
            ":1: hold_us = 1: must be a whole number from 50 to " + "1000000" + by +
            "cusplice: " + bad +
            ":3: eager = a b: matches nothing: a kernel's name has no blanks, and a rule has one "
            "pattern" +
            by);
    std::string fine = Write("fine.conf", "log = warn,graph:debug\nhold_us = 60\n[rules]\n"
                                          "graph = *\n");
    r = Cusplice({"config", "--check", fine});
    EXPECT_EQ(r.out, fine + ": ok\n");
    EXPECT_EQ(r.err, "");
    // Notices alone: the file is good.
    r = Cusplice({"config", "--check", Write("twice.conf", "hold_us = 60\nhold_us = 70\n")});
    EXPECT_EQ(r.Exit(), 0);
    EXPECT_TRUE(Has(r.err, ":2: hold_us is in line 1, too: this line counts\n")) << r.err;
}

TEST(ConfigVerb, CheckShowsNoByteThatATerminalObeys) {
    std::string path = Write("bytes.conf", "m\x1b]0;x\x07 = 1\n[rules]\neager = a\x1b[31mb\xff\n");
    Result r = Cusplice({"config", "--check", path});
    EXPECT_EQ(r.Exit(), 1);
    for (char c : r.err)
        EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 0x7f)) << (int)c;
    Json(Cusplice({"config", "--check", path, "--json"}).out, "d['problems'][0]['text']");
}

} // namespace
