// Promise: a thread of the library inherits nothing from the thread that starts it, and starts even
// if the kernel refuses some of its settings.
#include "shim/base/thread.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "tests/within.h"

namespace {

// What a thread finds of itself when it begins.
struct Seen {
    std::string name;
    int policy = -1, priority = -1, niceness = -1;
    cpu_set_t processors;
    sigset_t blocked;
    std::atomic<bool> done{false};
};

void *Look(void *argument) {
    Seen *seen = static_cast<Seen *>(argument);
    char name[16] = "";
    sched_param param = {};
    prctl(PR_GET_NAME, name);
    seen->name = name;
    seen->policy = sched_getscheduler(0);
    sched_getparam(0, &param);
    seen->priority = param.sched_priority;
    seen->niceness = getpriority(PRIO_PROCESS, 0);
    CPU_ZERO(&seen->processors);
    sched_getaffinity(0, sizeof seen->processors, &seen->processors);
    pthread_sigmask(SIG_SETMASK, nullptr, &seen->blocked);
    seen->done = true;
    return nullptr;
}

int Start(Seen *seen) {
    static cus_own_thread start;
    start = {"cusplice-test", Look, seen, 0};
    errno = 77;
    int error = cus_thread_start(&start, nullptr);
    EXPECT_EQ(errno, 77);
    cus_thread_await(&start); // at once, if there is none
    EXPECT_EQ(seen->done, !error);
    return error;
}

cpu_set_t Now() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    return set;
}

void PinToOne() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

bool Become(int policy, int priority) {
    sched_param param = {};
    param.sched_priority = priority;
    return sched_setscheduler(0, policy, &param) == 0;
}

void OnThread(const std::function<void()> &body) {
    std::thread(body).join();
}

class FromPolicy : public testing::TestWithParam<int> {};

TEST_P(FromPolicy, NothingIsInherited) {
    const cpu_set_t process = Now();
    cus_thread_note();
    int niceness = getpriority(PRIO_PROCESS, 0);
    OnThread([&] {
        PinToOne();
        setpriority(PRIO_PROCESS, 0, niceness + 5);
        if (!Become(GetParam(), GetParam() == SCHED_FIFO || GetParam() == SCHED_RR ? 50 : 0))
            GTEST_SKIP() << "no right to this policy";
        Seen seen;
        ASSERT_EQ(Start(&seen), 0);
        EXPECT_EQ(seen.name, "cusplice-test");
        EXPECT_EQ(seen.policy, SCHED_OTHER);
        EXPECT_EQ(seen.priority, 0);
        EXPECT_TRUE(CPU_EQUAL(&seen.processors, &process));
        for (int signal : {SIGINT, SIGTERM, SIGUSR1, SIGPROF})
            EXPECT_TRUE(sigismember(&seen.blocked, signal)) << signal;
        // Less niceness takes a right of its own.
        if (geteuid() == 0) {
            EXPECT_EQ(seen.niceness, niceness);
        }
    });
}
INSTANTIATE_TEST_SUITE_P(All, FromPolicy,
                         testing::Values(SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO,
                                         SCHED_RR));

TEST(Thread, StaysWithinTheProcessorsThatTheProcessBeganWith) {
    const cpu_set_t before = Now();
    PinToOne(); // as by taskset
    const cpu_set_t one = Now();
    cus_thread_note();
    sched_setaffinity(0, sizeof before, &before);
    Seen seen;
    ASSERT_EQ(Start(&seen), 0);
    EXPECT_TRUE(CPU_EQUAL(&seen.processors, &one));
    cus_thread_note();
}

// Every call that sets a policy or processors fails with EPERM, as in a sandbox.
bool Refuse() {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setscheduler, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setpriority, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(Thread, StartsWhereTheKernelRefusesEverything) {
    cus_thread_note();
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        if (!Refuse())
            _exit(9);
        Seen seen;
        int error = Start(&seen);
        _exit(error ? 1 : !sigismember(&seen.blocked, SIGINT));
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 9)
        GTEST_SKIP() << "no seccomp here";
    EXPECT_EQ(status, 0);
}

TEST(Thread, UrgencyIsThePriorityOfRealTimeThreadsAlone) {
    EXPECT_EQ(cus_thread_urgency(0), CUS_URGENCY_NONE);
    OnThread([] {
        if (!Become(SCHED_FIFO, 7))
            GTEST_SKIP() << "no right to SCHED_FIFO";
        EXPECT_EQ(cus_thread_urgency(0), 7);
        ASSERT_TRUE(Become(SCHED_RR | SCHED_RESET_ON_FORK, 8));
        EXPECT_EQ(cus_thread_urgency(0), 8);
        ASSERT_TRUE(Become(SCHED_BATCH, 0));
        EXPECT_EQ(cus_thread_urgency(0), CUS_URGENCY_NONE);
    });
}

TEST(Thread, OthersAreCountedFromAPriorityOn) {
    int highest = -1;
    EXPECT_EQ(cus_thread_urgent(1, &highest), 0u);
    EXPECT_EQ(highest, 0);
    OnThread([] {
        if (!Become(SCHED_FIFO, 20))
            GTEST_SKIP() << "no right to SCHED_FIFO";
        int highest = -1;
        EXPECT_EQ(cus_thread_urgent(1, &highest), 0u) << "itself is not among them";
        std::thread([] { // is as its maker
            int highest = -1;
            EXPECT_EQ(cus_thread_urgent(1, &highest), 1u);
            EXPECT_EQ(highest, 20);
            EXPECT_EQ(cus_thread_urgent(21, &highest), 0u);
        })
            .join();
    });
}

// SCHED_DEADLINE, which no header of this age declares.
struct Deadline {
    uint32_t size = sizeof(Deadline), policy = 6;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t runtime = 1000000, deadline = 100000000, period = 100000000;
};

// What the watchdog asks of a thread that makes no launch.
TEST(Thread, OneThatSleepsIsNotRunnableAndOneThatWorksHasRun) {
    std::atomic<pid_t> tid{0};
    std::atomic<bool> work{false}, end{false};
    std::thread thread([&] {
        prctl(PR_SET_NAME, "a) R (b");
        tid = (pid_t)syscall(SYS_gettid);
        while (!work)
            usleep(1000);
        while (!end)
            ;
    });
    while (!tid)
        usleep(100);
    unsigned asleep = 0;
    for (int i = 0; i < 50; i++) {
        usleep(300);
        asleep += !cus_thread_runnable(tid);
    }
    EXPECT_GT(asleep, 10u);
    work = true;
    uint64_t before = cus_thread_ran_ns(tid);
    EXPECT_GT(before, 0u);
    while (cus_thread_ran_ns(tid) < before + 20000000)
        usleep(100);
    EXPECT_TRUE(cus_thread_runnable(tid));
    end = true;
    thread.join();
    // The kernel has it a moment longer.
    EXPECT_TRUE(Within(5, [&] { return !cus_thread_runnable(tid) && !cus_thread_ran_ns(tid); }));
    EXPECT_EQ(cus_thread_ran_ns(1), 0u) << "of another process";
}

TEST(Thread, DeadlineIsBeforeEveryPriority) {
    OnThread([] {
        Deadline deadline;
        if (syscall(SYS_sched_setattr, 0, &deadline, 0) != 0)
            GTEST_SKIP() << "no right to SCHED_DEADLINE: " << strerror(errno);
        EXPECT_EQ(cus_thread_urgency(0), CUS_URGENCY_DEADLINE);
        Seen seen; // the kernel lets such a thread start none
        EXPECT_EQ(Start(&seen), EAGAIN);
    });
}

TEST(Thread, NoneIsRaisedThatTheKernelWouldEndForIt) {
    pid_t child = fork();
    if (child == 0) {
        rlimit limit = {100000000, 100000000};
        bool before = cus_thread_raise(pthread_self(), 1);
        Become(SCHED_OTHER, 0);
        setrlimit(RLIMIT_RTTIME, &limit);
        _exit(!before ? 9 : cus_thread_raise(pthread_self(), 1));
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 9)
        GTEST_SKIP() << "no right to SCHED_FIFO";
    EXPECT_EQ(status, 0);
}

} // namespace
