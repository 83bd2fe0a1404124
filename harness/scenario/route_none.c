/*
 * Replaces route_elf.c in a program that is not linked to libcuda and opens it late. Holds no code.
 */
#include "harness/scenario/sc.h"

bool (*const sc_route_elf)(struct sc_api *cu) = NULL;
