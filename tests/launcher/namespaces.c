/* A program that could load code into a namespace of its own. cusplice doctor reads it. */
#define _GNU_SOURCE
#include <dlfcn.h>

int main(int argc, char **argv) {
    return argc > 1 ? !dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : 0;
}
