// Promise: on a terminal cusplice top fits the window, whatever a page says; q ends it, a new size
// of the window is followed, and the terminal is afterwards as it was.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <thread>

#include "shim/base/process.h"
#include "shim/stats/page.h"
#include "tests/sim/child.h"
#include "tests/terminal.h"
#include "tests/text.h"
#include "tests/within.h"

namespace sim {
namespace {

// A page of this process, which the test answers for: each look sees 1000 launches more.
class Page {
  public:
    explicit Page(const std::string &folder) {
        char path[CUS_PAGE_PATH];
        EXPECT_TRUE(cus_page_path(folder.c_str(), geteuid(), getpid(), path));
        path_ = path;
        memcpy(page_.magic, CUS_PAGE_MAGIC, sizeof CUS_PAGE_MAGIC);
        page_.version = CUS_PAGE_VERSION;
        page_.bytes = CUS_PAGE_BYTES;
        page_.pid = (uint64_t)getpid();
        page_.start = cus_process_start(0);
        strcpy(page_.program, "serve");
        strcpy(page_.facts.mode, "piecewise");
        page_.facts.launch_ns = 3000;
        page_.facts.graph_ns = 9000;
        page_.facts.n_breaks = CUS_PAGE_BREAKS;
        page_.facts.at_ns = 1;
        for (cus_page_break &one : page_.facts.breaks) {
            memset(one.name, 'n', 30);
            memset(one.what, 'w', sizeof one.what - 1);
            one.launches = one.runs = 123456789012;
        }
    }
    ~Page() {
        over_ = true;
        if (answers_.joinable())
            answers_.join();
        unlink(path_.c_str());
    }
    cus_page &Facts() { return page_; }
    void Show() {
        std::string bytes((const char *)&page_, sizeof page_);
        bytes.resize(CUS_PAGE_BYTES);
        std::ofstream(path_) << bytes;
        chmod(path_.c_str(), 0600);
        answers_ = std::thread([this] {
            for (; !over_; usleep(5000))
                if (!silent_)
                    Answer();
        });
    }
    void BeSilent() { silent_ = true; }

  private:
    void Answer() {
        page_.answers++;
        page_.facts.at_ns += 1000000000;
        page_.facts.ops += 1000;
        page_.facts.in_graphs += 900;
        int fd = open(path_.c_str(), O_RDWR);
        // as the library does: odd while facts are written
        page_.seq++;
        EXPECT_EQ(pwrite(fd, &page_.seq, 4, offsetof(cus_page, seq)), 4);
        cus_page_facts facts = page_.facts;
        EXPECT_EQ(pwrite(fd, &facts, sizeof facts, offsetof(cus_page, facts)),
                  (ssize_t)sizeof facts);
        EXPECT_EQ(pwrite(fd, &page_.answers, 4, offsetof(cus_page, answers)), 4);
        page_.seq++;
        EXPECT_EQ(pwrite(fd, &page_.seq, 4, offsetof(cus_page, seq)), 4);
        close(fd);
    }
    std::string path_;
    cus_page page_ = {};
    std::thread answers_;
    std::atomic<bool> over_{false}, silent_{false};
};

class TopScreen : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = TempDir();
        if (getenv("CUS_TEST_EMULATED"))
            GTEST_SKIP() << "qemu tells a process another start than others see";
    }
    void TearDown() override { rmdir(folder_.c_str()); }
    std::map<std::string, std::string> Env(const std::string &term = "xterm") {
        std::map<std::string, std::string> env = {{"XDG_RUNTIME_DIR", folder_},
                                                  {"ASAN_OPTIONS", "detect_leaks=0"}};
        if (!term.empty())
            env["TERM"] = term;
        return env;
    }
    std::vector<std::string> Top(const std::vector<std::string> &more) {
        std::vector<std::string> all = {Runfile("tools/cusplice"), "top", "--interval", "0.1"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    std::string Me() { return std::to_string(getpid()); }
    // Nothing was longer or higher than the window, and everything that was sent is understood.
    void ExpectFits(const Terminal &terminal) {
        EXPECT_FALSE(terminal.Wrapped()) << terminal.Text();
        EXPECT_FALSE(terminal.Scrolled()) << terminal.Text();
        EXPECT_EQ(terminal.Unknown(), "");
        EXPECT_EQ(terminal.Row(1).substr(0, 14), "cusplice top: ") << terminal.Text();
    }
    std::string folder_;
};

const struct {
    unsigned columns, rows;
} kWindows[] = {{80, 24}, {40, 10}, {120, 50}, {7, 3}, {1, 1}};

TEST_F(TopScreen, OneProcessFitsTheWindowAndQEndsIt) {
    Page page(folder_);
    page.Show();
    for (const auto &window : kWindows) {
        Terminal terminal(Top({Me()}), Env(), window.columns, window.rows);
        EXPECT_TRUE(Within(60, [&] {
            terminal.Pump();
            return Count(terminal.Raw(), "\033[1;1H") >= 3; // three looks
        })) << terminal.Raw();
        if (window.columns >= 40)
            ExpectFits(terminal);
        EXPECT_FALSE(terminal.Wrapped() || terminal.Scrolled()) << window.columns;
        EXPECT_TRUE(terminal.Alternate() && !terminal.Cursor() && !terminal.Echoes());
        if (window.columns == 80) {
            EXPECT_TRUE(Has(terminal.Row(1), "serve (pid " + Me() + ", mode piecewise)  q quits"));
            EXPECT_TRUE(Has(terminal.Row(3), " /s")) << terminal.Row(3);
            EXPECT_TRUE(Has(terminal.Row(4), "90.0 %")) << terminal.Row(4);
            EXPECT_EQ(terminal.Row(9).size(), 80u) << "the last column is used";
        }
        if (window.rows == 10) {
            EXPECT_EQ(terminal.Row(10), "and 9 lines more");
            EXPECT_TRUE(Has(terminal.Row(3), " /s") && Has(terminal.Row(3), "000"))
                << terminal.Row(3);
        }
        terminal.Send("xq");
        EXPECT_EQ(terminal.Wait(), 0);
        EXPECT_TRUE(!terminal.Alternate() && terminal.Cursor() && terminal.Echoes());
        EXPECT_TRUE(Has(terminal.Raw().substr(terminal.Raw().rfind("1049l")),
                        "cusplice top: serve (pid " + Me() + ", mode piecewise)\r\n"))
            << "what was seen last stays: " << terminal.Raw();
    }
}

TEST_F(TopScreen, AllProcessesFitTheWindow) {
    Page page(folder_);
    page.Show();
    for (const auto &window : kWindows) {
        Terminal terminal(Top({"--all"}), Env(), window.columns, window.rows);
        EXPECT_TRUE(Within(60, [&] {
            terminal.Pump();
            return Count(terminal.Raw(), "\033[1;1H") >= 3;
        })) << terminal.Raw();
        EXPECT_FALSE(terminal.Wrapped() || terminal.Scrolled()) << window.columns;
        if (window.columns >= 40) {
            ExpectFits(terminal);
            EXPECT_TRUE(Has(terminal.Text(), " serve ")) << terminal.Text();
            // The costliest break has room; the columns that say least went for that.
            std::string head = terminal.Row(2);
            EXPECT_TRUE(Has(head, " program ") && Has(head, " graphs ")) << head;
            EXPECT_TRUE(Has(terminal.Text(), " %  nnnnnnnnnnn")) << terminal.Text();
            EXPECT_EQ(Has(terminal.Text(), " %  " + std::string(24, 'n')), window.columns >= 80);
            EXPECT_EQ(Has(head, " so far "), window.columns >= 80) << head;
            EXPECT_EQ(Has(head, " launches "), window.columns >= 120) << head;
        }
        terminal.Send("Q");
        EXPECT_EQ(terminal.Wait(), 0);
        EXPECT_TRUE(!terminal.Alternate() && terminal.Cursor() && terminal.Echoes());
    }
}

TEST_F(TopScreen, ANewSizeIsFollowedAtOnce) {
    Page page(folder_);
    page.Show();
    // An hour between looks: what comes after the change of the window comes because of it.
    Terminal terminal({Runfile("tools/cusplice"), "top", Me(), "--interval", "3600"}, Env(), 120,
                      50);
    EXPECT_TRUE(Within(60, [&] {
        terminal.Pump();
        return Has(terminal.Text(), "wwww");
    }));
    terminal.Settle(); // what was drawn for the old size must not come behind the change
    EXPECT_GT(terminal.Row(9).size(), 80u);
    for (const auto &window : kWindows) {
        size_t before = terminal.Raw().size();
        terminal.Resize(window.columns, window.rows);
        EXPECT_TRUE(Within(60, [&] {
            terminal.Pump();
            return Has(terminal.Raw().substr(before), "\033[2J\033[1;1H") &&
                   terminal.Row(1)[0] == 'c';
        })) << window.columns;
        EXPECT_TRUE(window.columns < 40 ||
                    Within(60,
                           [&] {
                               terminal.Pump();
                               return terminal.Row(window.rows < 18 ? window.rows : 17).size() > 8;
                           }))
            << terminal.Text();
        terminal.Settle();
        EXPECT_FALSE(terminal.Wrapped() || terminal.Scrolled()) << window.columns;
    }
    terminal.Send("q");
    EXPECT_EQ(terminal.Wait(), 0);
}

TEST_F(TopScreen, ColoursAreThereUnlessNotWanted) {
    Page page(folder_);
    page.Show();
    for (const char *wanted : {"", "0", "1"}) { // a value that is empty says nothing
        auto env = Env();
        env["NO_COLOR"] = wanted;
        for (const char *which : {"--all", ""}) {
            Terminal terminal(Top({*which ? which : Me()}), env, 80, 24);
            EXPECT_TRUE(Within(60, [&] {
                terminal.Pump();
                return Has(terminal.Text(), "90.0 %");
            }));
            EXPECT_EQ(terminal.Coloured(), !*wanted) << "NO_COLOR=" << wanted;
            EXPECT_EQ(Has(terminal.Raw(), "\033[32m"), !*wanted);
            terminal.Send("q");
            EXPECT_EQ(terminal.Wait(), 0);
        }
    }
}

TEST_F(TopScreen, ATerminalThatCannotMoveItsCursorGetsPlainText) {
    Page page(folder_);
    page.Show();
    for (const char *term : {"dumb", ""}) {
        Terminal terminal(Top({Me()}), Env(term), 80, 24);
        EXPECT_TRUE(Within(60, [&] {
            terminal.Pump();
            return Count(terminal.Raw(), "cusplice top: serve") >= 3;
        }));
        EXPECT_FALSE(Has(terminal.Raw(), "\033")) << terminal.Raw();
        EXPECT_FALSE(Has(terminal.Raw(), "q quits"));
        EXPECT_TRUE(terminal.Echoes());
        terminal.Send("\003"); // the terminal makes SIGINT of it
        EXPECT_EQ(terminal.Wait(), -SIGINT);
    }
}

TEST_F(TopScreen, ASignalLeavesTheTerminalAsItWas) {
    Page page(folder_);
    page.Show();
    for (int number : {SIGTERM, SIGHUP, SIGQUIT, SIGINT}) {
        Terminal terminal(Top({Me()}), Env(), 80, 24);
        EXPECT_TRUE(Within(60, [&] {
            terminal.Pump();
            return Has(terminal.Text(), "wwww");
        }));
        EXPECT_TRUE(terminal.Alternate() && !terminal.Echoes());
        if (number == SIGINT)
            terminal.Send("\003");
        else
            kill(terminal.Pid(), number);
        EXPECT_EQ(terminal.Wait(), -number);
        EXPECT_TRUE(!terminal.Alternate() && terminal.Cursor() && terminal.Echoes()) << number;
    }
}

TEST_F(TopScreen, AStopGivesTheTerminalBackAndGoesOnLater) {
    Page page(folder_);
    page.Show();
    // A shell in front, as its parent in the same session: nobody goes on with an orphan.
    Terminal terminal({"/bin/sh", "-c",
                       "set -m; " + Runfile("tools/cusplice") + " top " + Me() +
                           " --interval 0.1; echo stopped; fg >/dev/null; "
                           "echo over $?"},
                      Env(), 80, 24);
    EXPECT_TRUE(Within(60, [&] {
        terminal.Pump();
        return Has(terminal.Text(), "wwww");
    }));
    terminal.Send("\032");
    EXPECT_TRUE(Within(60, [&] {
        terminal.Pump();
        return Has(terminal.Raw(), "stopped") && terminal.Alternate() &&
               Has(terminal.Text(), "wwww") && !terminal.Echoes();
    })) << terminal.Raw();
    size_t stop = terminal.Raw().find("stopped");
    EXPECT_LT(terminal.Raw().find("1049l"), stop) << "given back first";
    terminal.Send("q");
    EXPECT_EQ(terminal.Wait(), 0);
    EXPECT_TRUE(Has(terminal.Raw(), "over 0")) << terminal.Raw();
    EXPECT_TRUE(!terminal.Alternate() && terminal.Cursor() && terminal.Echoes());
}

TEST_F(TopScreen, SilenceIsSaidOnTheScreen) {
    Page page(folder_);
    page.Show();
    Terminal one(Top({Me()}), Env(), 80, 24), all(Top({"--all"}), Env(), 80, 24);
    EXPECT_TRUE(Within(60, [&] {
        one.Pump();
        all.Pump();
        return Has(one.Text(), "wwww") && Has(all.Text(), "nnn");
    }));
    page.BeSilent();
    EXPECT_TRUE(Within(60,
                       [&] {
                           one.Pump();
                           all.Pump();
                           return Has(one.Row(2), "does not answer: it is stopped") &&
                                  Has(all.Row(3), "does not answer");
                       }))
        << one.Text() << all.Text();
    ExpectFits(one);
    ExpectFits(all);
    one.Send("q"); // also while it waits for the answer
    all.Send("q");
    EXPECT_EQ(one.Wait(), 0);
    EXPECT_EQ(all.Wait(), 0);
}

// A page of the library itself, and its end.
TEST_F(TopScreen, AProgramIsShownUntilItEnds) {
    std::string libcuda = Runfile("harness/sim/lib/libcuda.so.1");
    const char *first = getenv("CUS_TEST_PRELOAD_FIRST");
    auto env = Env();
    env["LD_LIBRARY_PATH"] = libcuda.substr(0, libcuda.rfind('/'));
    env["LD_PRELOAD"] =
        (first && *first ? std::string(first) + ":" : "") + Runfile("shim/libcusplice.so");
    env["CUSPLICE_LIVE"] = "yes";
    Terminal program({Runfile("harness/scenario/scenario"), "launch_bound", "--steps", "100000000"},
                     env, 80, 24);
    std::string pid = std::to_string(program.Pid());
    std::unique_ptr<Terminal> viewer;
    EXPECT_TRUE(Within(60, [&] {
        program.Pump();
        viewer = std::make_unique<Terminal>(Top({pid}), Env(), 40, 10);
        return Within(1, [&] {
            viewer->Pump();
            return Has(viewer->Text(), "lines more");
        });
    })) << viewer->Raw();
    ExpectFits(*viewer);
    EXPECT_TRUE(Has(viewer->Text(), "axpy: ")) << viewer->Text();
    kill(program.Pid(), SIGKILL);
    program.Wait();
    EXPECT_EQ(viewer->Wait(), 0);
    EXPECT_FALSE(viewer->Alternate());
    EXPECT_TRUE(Has(viewer->Raw(), "process " + pid + " has ended\r\n")) << viewer->Raw();
    EXPECT_TRUE(Has(viewer->Raw().substr(viewer->Raw().rfind("1049l")), "cusplice top: scenario"));
}

} // namespace
} // namespace sim
