// Replaces libFuzzer if it is not linked: runs LLVMFuzzerTestOneInput on the files of a corpus, and
// on changed copies of them.
//
//   TARGET [-runs=N] [-seed=S] [-max_len=B] CORPUS...    a corpus: files, or folders of files
//
// Each input is first written into one file in memory. If an input ends the process, that file
// becomes crash-input. The same seed makes the same inputs. Under qemu a twentieth of the runs is
// made.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

std::string current;

void OnSignal(int number) {
    std::string name = "crash-input";
    int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t n = fd < 0 ? -1 : write(fd, current.data(), current.size());
    const char *said = n < 0 ? "the input could not be written\n" : "the input is in crash-input\n";
    n = write(2, said, strlen(said));
    signal(number, SIG_DFL);
    raise(number);
}

uint64_t state;

uint64_t Next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

size_t Below(size_t n) {
    return n == 0 ? 0 : static_cast<size_t>(Next() % n);
}

void Change(std::string *text, const std::vector<std::string> &corpus) {
    static const char *const words[] = {
        "[",         "]",        "*",       "?",          "\\",       "re:", "mangled:", "\n", "=",
        "[rules]\n", "[step]\n", "marker=", "sizes=",     "uniform=", "..",  "/",        ",",  "<=",
        "tokens",    "eager",    "#",       ";",          "\xff",     "_Z",  "N",        "E",  "I",
        "S_",        "S0_",      "T_",      "9999999999", "0",        "L",   "X",        "K",  "v"};
    size_t at = Below(text->size() + 1), length = 1 + Below(8);
    switch (Below(7)) {
    case 0:
        text->insert(at, 1, static_cast<char>(Next()));
        break;
    case 1:
        if (!text->empty()) {
            (*text)[Below(text->size())] ^= static_cast<char>(1u << Below(8));
        }
        break;
    case 2:
        text->erase(at, length);
        break;
    case 3:
        text->insert(at, text->substr(Below(text->size() + 1), length * 4));
        break;
    case 4: {
        const std::string &other = corpus[Below(corpus.size())];
        text->insert(at, other.substr(Below(other.size() + 1), length * 4));
        break;
    }
    default:
        text->insert(at, words[Below(sizeof words / sizeof *words)]);
    }
}

void Load(const std::string &path, std::vector<std::string> *corpus) {
    struct stat st;
    if (stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) {
        std::vector<std::string> names;
        DIR *dir = opendir(path.c_str());
        for (dirent *e; dir && (e = readdir(dir));) {
            if (e->d_name[0] != '.') {
                names.push_back(path + "/" + e->d_name);
            }
        }
        closedir(dir);
        std::sort(names.begin(), names.end());
        for (const auto &name : names) {
            Load(name, corpus);
        }
        return;
    }
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) {
        fprintf(stderr, "%s cannot be read\n", path.c_str());
        exit(2);
    }
    corpus->push_back(text.str());
}

void RunOne(const std::string &input) {
    current = input;
    // A copy of just that size, so that a read behind it is seen by a sanitizer.
    std::vector<uint8_t> copy(input.begin(), input.end());
    LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

} // namespace

int main(int argc, char **argv) {
    std::vector<std::string> corpus;
    unsigned long runs = 100000, seed = 1, longest = 600;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-runs=", 6) == 0) {
            runs = strtoul(argv[i] + 6, nullptr, 10);
        } else if (strncmp(argv[i], "-seed=", 6) == 0) {
            seed = strtoul(argv[i] + 6, nullptr, 10);
        } else if (strncmp(argv[i], "-max_len=", 9) == 0) {
            longest = strtoul(argv[i] + 9, nullptr, 10);
        } else if (argv[i][0] == '-') {
            fprintf(stderr, "usage: [-runs=N] [-seed=S] [-max_len=B] CORPUS...\n");
            return 2;
        } else {
            Load(argv[i], &corpus);
        }
    }
    if (getenv("CUS_TEST_EMULATED"))
        runs /= 20;
    signal(SIGABRT, OnSignal);
    signal(SIGSEGV, OnSignal);
    state = seed;
    for (const auto &input : corpus) {
        RunOne(input);
    }
    size_t files = corpus.size();
    corpus.push_back("");
    for (unsigned long run = 0; run < runs; run++) {
        std::string input = corpus[Below(corpus.size())];
        for (size_t changes = 1 + Below(6); changes > 0; changes--) {
            Change(&input, corpus);
        }
        RunOne(input.substr(0, longest));
    }
    printf("%zu files, %lu runs\n", files, runs);
    return 0;
}
