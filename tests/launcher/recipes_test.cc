// Promise: the files of tools/recipes name nothing that does not exist, and run as they are: on the
// simulator, with stand-ins for torchrun, srun and docker.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <regex>
#include <set>

#include "tests/launcher/launcher.h"

namespace {

const std::string kRecipes = "tools/recipes/";

std::set<std::string> FilesIn(const std::string &path) {
    std::set<std::string> files;
    DIR *folder = opendir(path.c_str());
    EXPECT_NE(folder, nullptr) << path;
    while (struct dirent *entry = folder ? readdir(folder) : nullptr)
        if (*entry->d_name != '.')
            files.insert(entry->d_name);
    if (folder)
        closedir(folder);
    return files;
}

// What the expression finds in the text; of its first group, if it has one.
std::set<std::string> All(const std::string &text, const std::string &expression) {
    std::set<std::string> found;
    const std::regex re(expression);
    for (std::sregex_iterator at(text.begin(), text.end(), re), end; at != end; ++at)
        found.insert((*at)[at->size() > 1 ? 1 : 0]);
    return found;
}

std::string AllText() {
    std::string text;
    for (const std::string &name : FilesIn(kRecipes))
        text += ReadFile(kRecipes + name) + "\n";
    return text;
}

// Made by the recipe itself, once.
std::string Installation() {
    static std::string root;
    if (root.empty()) {
        root = Folder() + "/prefix";
        Result r = RunProgram({"/bin/sh", kRecipes + "install.sh", root, "."});
        EXPECT_EQ(r.Exit(), 0) << r.err;
    }
    return root;
}

std::string Absolute(const std::string &path) {
    char out[4096];
    return realpath(path.c_str(), out) ? out : path;
}

// In front of the program in each recipe; two ranks.
std::string StandIns() {
    static std::string folder;
    if (!folder.empty())
        return folder;
    folder = Folder() + "/stand-ins";
    mkdir(folder.c_str(), 0700);
    const std::string two = "for r in 0 1; do ", wait = " \"$@\" & done; wait\n";
    Write("stand-ins/torchrun",
          "#!/bin/bash\nshift 3\n" + two + "RANK=$r LOCAL_RANK=$r WORLD_SIZE=2" + wait);
    Write("stand-ins/srun", "#!/bin/bash\n" + two + "SLURM_PROCID=$r" + wait);
    // Variables are those of -e, with the folders of -v where the container would have them.
    Write("stand-ins/docker", R"(#!/bin/bash
[ "$1" = run ] && shift || exit 9
from=() to=() set=()
while [[ $1 = -* ]]; do
    case $1 in
    --rm) shift; continue ;;
    -v) IFS=: read -r a b _ <<<"$2"; from+=("$a"); to+=("$b") ;;
    -e) set+=("$2") ;;
    --gpus) ;;
    *) echo "docker has no $1" >&2; exit 9 ;;
    esac
    shift 2
done
for i in "${!set[@]}"; do
    for j in "${!to[@]}"; do set[i]=${set[i]/"${to[j]}"/"${from[j]}"}; done
done
shift
exec env "${set[@]}" "$@"
)");
    for (const char *name : {"torchrun", "srun", "docker"})
        chmod((folder + "/" + name).c_str(), 0700);
    return folder;
}

Environment Here(const std::string &run) {
    return {{"PREFIX", Installation()},
            {"RUN", run},
            {"LD_LIBRARY_PATH", Absolute("harness/sim/lib")},
            {"PATH", StandIns() + ":" + getenv("PATH")}};
}

const Strings kProgram = {"harness/scenario/scenario", "launch_bound", "--steps", "20"};

Strings With(Strings before) {
    before.insert(before.end(), kProgram.begin(), kProgram.end());
    return before;
}

// The host's name as cusplice writes it, for a name that needs no change.
std::string Host() {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return name;
}

void ExpectNames(const std::string &folder, const Strings &patterns) {
    std::set<std::string> files = FilesIn(folder);
    for (const std::string &pattern : patterns) {
        unsigned n = 0;
        for (const std::string &file : files)
            n += std::regex_match(file, std::regex(pattern));
        EXPECT_EQ(n, 1u) << pattern << " in " << folder;
    }
}

void ExpectATable(const Result &r, const std::string &folder) {
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.err, "cusplice: 2 processes\n")) << r.err;
    EXPECT_TRUE(Has(r.err, "\n       0 ") && Has(r.err, "\n       1 ")) << r.err;
    ExpectNames(folder, {"rank-0.pid-[0-9]+.json", "rank-1.pid-[0-9]+.json",
                         "rank-0.pid-[0-9]+.why", "rank-1.pid-[0-9]+.why"});
}

// ---- names ----

TEST(Recipes, NameVariablesThatExist) {
    std::set<std::string> names = All(AllText(), "CUSPLICE_[A-Z_]+");
    EXPECT_GT(names.size(), 4u);
    for (const std::string &name : names) {
        Result r = Cusplice({"config", "--list"}, {{name, "1"}});
        EXPECT_FALSE(Has(r.err, "no such variable")) << r.err;
    }
    EXPECT_TRUE(
        Has(Cusplice({"config", "--list"}, {{"CUSPLICE_XYZ", "1"}}).err, "no such variable"))
        << "the question above is a good one";
}

TEST(Recipes, NameOptionsThatExist) {
    const std::string help = Cusplice({"run", "--help"}).out;
    std::set<std::string> options;
    for (const std::string &line : All(AllText(), "cusplice\"? run ([^\n]*?) -- "))
        for (const std::string &option : All(line, "--[a-z-]+"))
            options.insert(option);
    EXPECT_EQ(options.count("--stats"), 1u);
    for (const std::string &option : options)
        EXPECT_TRUE(Has(help, option + " ")) << option;
}

TEST(Recipes, NamePathsAndMarksThatExist) {
    const std::string text = AllText();
    for (const std::string &path : All(text, "/((?:bin|lib|share)/(?:lib)?cusplice[a-z/.]*)"))
        EXPECT_EQ(access((Installation() + "/" + path).c_str(), F_OK), 0) << path;
    for (const std::string &path : All(text, "(?:tools/recipes|tests/launcher)/[A-Za-z._-]+"))
        EXPECT_EQ(access(path.c_str(), F_OK), 0) << path;
    EXPECT_EQ(All(text, "[^$](\\{[a-z]+\\})"), (std::set<std::string>{"{host}", "{process}"}))
        << "shim/base/path.c knows these two, and each of them is used";
    const std::string readme = ReadFile(kRecipes + "README.md");
    for (const std::string &name : FilesIn(kRecipes))
        EXPECT_TRUE(name == "README.md" || Has(readme, "`" + name + "`")) << name;
}

// ---- YAML, as text ----

TEST(Recipes, TheYamlIsOfTheSimpleKind) {
    std::istringstream in(ReadFile(kRecipes + "kubernetes.yaml"));
    std::string line;
    const std::regex good(" *(- )?([A-Za-z./]+: ?(\\||[^\\s].*)?|[A-Z][^:]*|---)");
    bool literal = false;
    size_t before = 0, n = 0;
    while (std::getline(in, line) && ++n) {
        size_t indent = line.find_first_not_of(' ');
        if (indent == std::string::npos || line[indent] == '#')
            continue;
        literal &= indent > before;
        if (literal)
            continue; // the text of a file
        EXPECT_TRUE(std::regex_match(line, good)) << n << ": " << line;
        EXPECT_EQ(indent % 2, 0u) << n << ": " << line;
        EXPECT_LE(indent, before + 4) << n << ": " << line;
        EXPECT_FALSE(Has(line, "\t") || line.back() == ' ') << n << ": " << line;
        EXPECT_FALSE(
            std::regex_match(line, std::regex(" *value: ([0-9.]+|yes|no|on|off|true|false)")))
            << "the value of a variable is a text: " << line;
        literal = line.back() == '|';
        before = indent;
    }
    const std::string text = ReadFile(kRecipes + "kubernetes.yaml");
    std::set<std::string> mounted = All(text, "- name: ([a-z-]+)\n +mountPath"),
                          volumes =
                              All(text, "- name: ([a-z-]+)\n +(?:emptyDir|configMap|persist)");
    EXPECT_EQ(mounted, volumes);
    EXPECT_EQ(volumes.size(), 3u);
}

// ---- runs ----

TEST(Recipes, TorchrunRuns) {
    const std::string run = Folder() + "/torchrun";
    ExpectATable(RunProgram(With({"/bin/sh", kRecipes + "torchrun.sh", "--nproc-per-node", "2",
                                  "--no-python"}),
                            Here(run)),
                 run);
}

TEST(Recipes, SlurmRuns) {
    const std::string submit = Folder();
    Environment here = Here("");
    here["SLURM_SUBMIT_DIR"] = submit;
    here["SLURM_JOB_ID"] = "7";
    ExpectATable(RunProgram(With({"/bin/sh", kRecipes + "slurm.sbatch"}), here), submit + "/run.7");
}

TEST(Recipes, SlurmRunsByTheEnvironment) {
    if (Sanitized())
        GTEST_SKIP() << "a sanitizer's runtime wants to be the first library";
    const std::string run = Folder() + "/slurm-environment";
    Result r = RunProgram(With({"/bin/sh", kRecipes + "slurm-environment.sbatch"}), Here(run));
    EXPECT_EQ(r.Exit(), 0) << r.err;
    ExpectNames(run, {".*rank-0.pid-[0-9]+.json", ".*rank-1.pid-[0-9]+.json"});
    ExpectNames(run, {Host() + ".rank-0.pid-[0-9]+.json"});
}

TEST(Recipes, RaysEnvironmentRuns) {
    if (Sanitized())
        GTEST_SKIP() << "as above";
    const std::string run = Folder() + "/ray";
    ASSERT_EQ(mkdir(run.c_str(), 0700), 0);
    Environment here = Here(run);
    here["PYTHONPATH"] = Absolute(kRecipes);
    Result r =
        RunProgram(With({"/usr/bin/env", "python3", "-Bc",
                         "import os, sys, ray_cusplice as r\n"
                         "e = r.runtime_env(sys.argv[1], RANK='4')\n"
                         "os.execvpe(sys.argv[2], sys.argv[2:], {**os.environ, **e['env_vars']})",
                         run}),
                   here);
    EXPECT_EQ(r.Exit(), 0) << r.err;
    ExpectNames(run, {Host() + ".rank-4.pid-[0-9]+.json"});
}

TEST(Recipes, DockerRuns) {
    if (Sanitized())
        GTEST_SKIP() << "as above";
    const std::string run = Folder() + "/docker";
    Result r = RunProgram(With({"/bin/sh", kRecipes + "docker-run.sh", "image"}), Here(run));
    EXPECT_EQ(r.Exit(), 0) << r.err;
    ExpectNames(run, {Host() + ".pid-[0-9]+.json"});
}

// The variables of the main container, with its folders where they are here.
TEST(Recipes, ThePodsEnvironmentRuns) {
    if (Sanitized())
        GTEST_SKIP() << "as above";
    const std::string text = ReadFile(kRecipes + "kubernetes.yaml"), run = Folder() + "/pod";
    ASSERT_EQ(mkdir(run.c_str(), 0700), 0);
    const std::string rules =
        Write("pod/site.conf", "[rules]\n" + *All(text, "never_defer = .*").begin());
    Environment here = Here(run);
    const std::regex pair("- name: ([A-Z_]+)\n +value: \"?([^\"\n]*)");
    for (std::sregex_iterator at(text.begin(), text.end(), pair), end; at != end; ++at) {
        std::string value = std::regex_replace((*at)[2].str(), std::regex("^/stats"), run);
        value = std::regex_replace(value, std::regex("^/cusplice"), Installation());
        here[(*at)[1]] = std::regex_replace(value, std::regex("^/etc/cusplice/site.conf"), rules);
    }
    EXPECT_EQ(here.count("CUSPLICE_STATS") + here.count("LD_PRELOAD"), 2u);
    Result r = RunProgram(kProgram, here);
    EXPECT_EQ(r.Exit(), 0) << r.err;
    EXPECT_TRUE(Has(r.err, "never_defer = my_allreduce*"))
        << "it was read, and matched nothing: " << r.err;
    ExpectNames(run, {Host() + ".pid-[0-9]+.json"});
}

} // namespace
