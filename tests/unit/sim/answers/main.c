/*
 * Prints the answers of the libcuda.so.1 that the loader finds: `answers > h200.txt` on a machine
 * with a GPU.
 */
#include "tests/unit/sim/answers/answers.h"

int main(void) {
    ask_all(stdout);
    return 0;
}
