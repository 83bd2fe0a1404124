"""What tools/mutate-lines --self-test runs: a small C file with mutants whose fate is known, built by gcc and judged as any other."""
import pathlib
import subprocess

# Three cases, listed and chosen as those of GoogleTest are; the first and the last pass alone, and not together. `unseen` is not called, and nobody asks for the limit itself.
SOURCE = r"""
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int calls;
static void count(void) { calls++; }
bool below(int n) {
    count();
    return n < 10;
}
int sum(int n) {
    int all = 0;
    for (int i = 0; i < n; i++) {
        if (i == 2)
            continue;
        all += i;
    }
    return all;
}
int unseen(int n) { return n + 1; }
void *from(void) { return __builtin_return_address(0); }
#define CUS_HAZARD(id) 1
bool ruled(int n) { return CUS_HAZARD(A1) && n; }
"""
# The tests, which have no mutants.
MAIN = r"""
static int test_below(void) { return below(3) && !below(12) && calls == 2; }
static int test_again(void) { return below(9) && calls == 1; }
static int test_sum(void) { return sum(4) == 4; }
int main(int argc, char **argv) {
    const char *asked = getenv("GTEST_FILTER"), *shard = getenv("GTEST_SHARD_INDEX");
    if (shard && strcmp(shard, "0"))
        return 0; /* a case alone is in the first one */
    if (argc > 1 && !strcmp(argv[1], "--gtest_list_tests"))
        return puts("Small.\n  Below\n  Sum\n  Again") < 0;
    return (strstr(asked, "Small.Below") && !test_below()) || (strstr(asked, "Small.Sum") && !test_sum())
        || (strstr(asked, "Small.Again") && !test_again());
}
"""
EXPECTED = {
    ("count", "calls++ -> nothing"): "killed",
    ("below", "count() -> nothing"): "killed",
    ("below", "n < 10 -> !(n < 10)"): "killed",
    ("below", "n < 10 -> n <= 10"): "survived",
    ("below", "10 -> 10 + 1"): "survived",
    ("sum", "i < n -> !(i < n)"): "killed",
    ("sum", "continue; -> nothing"): "killed",
    ("sum", "all += i -> nothing"): "killed",
    ("unseen", "n + 1 -> n - 1"): "not reached",
    ("from", "0 -> 0 + 1"): "absent",
    ("ruled", "n -> true"): "not reached",
    ("ruled", "CUS_HAZARD(A1) -> true"): "absent",
}


def check(tool, scratch):
    """Prints what is not as it should be; returns whether all is."""
    import schemata
    path = pathlib.Path(scratch) / "small.c"
    path.write_text(SOURCE)
    found, text = schemata.mutate(tool.parse(str(path), ["-std=gnu11"]), str(path), 1)
    path.write_text(text + MAIN + schemata.DEFINITIONS % {"room": tool.ROOM})
    subprocess.run(["gcc", "-w", "-O1", str(path), "-o", f"{scratch}/small"], check=True)
    of_a_shard = {"TEST_TOTAL_SHARDS": "2", "TEST_SHARD_INDEX": "1", "GTEST_TOTAL_SHARDS": "2", "GTEST_SHARD_INDEX": "1"}
    test = {"//small": {"cwd": scratch, "env": tool.of_no_shard(of_a_shard), "argv": [f"{scratch}/small"]}}
    cases, left_out = tool.record(test, 5)
    judge = tool.Judge(test, cases)
    fate = {}
    for mutant in found:
        by = "not reached"
        if mutant.number in judge.by_mutant:
            by = "killed" if judge.judge(mutant.number) else "survived"
        fate[mutant.function, f"{mutant.was} -> {mutant.now or 'nothing'}"] = by
    wrong = [f"{function}: {change}: {fate.get((function, change), 'absent')}, and {wanted} was expected" for (function, change), wanted in EXPECTED.items()
             if fate.get((function, change), "absent") != wanted]
    wrong += [f"left out: {case}" for case in left_out]
    print("\n".join(wrong) if wrong else f"{len(found)} mutants of a small file, each of {len(EXPECTED)} as expected")
    return not wrong
