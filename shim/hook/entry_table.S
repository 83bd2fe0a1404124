/*
 * The addresses of the entry points, in the order of their numbers.
 */
#include "shim/hook/entry.h"

    .section .data.rel.ro, "aw", %progbits
    .p2align 3
    .globl cus_entry_hooks
    .hidden cus_entry_hooks
    .type cus_entry_hooks, %object
cus_entry_hooks:
#define HOOK(symbol) .quad cus_hook_##symbol
#define NONE(symbol) .quad 0
#define WRAP(symbol) HOOK(symbol)
#define JUMP(symbol) HOOK(symbol)
#define AROUND(symbol) HOOK(symbol)
#define RESTS(symbol) HOOK(symbol)
#define FLAGS(symbol) HOOK(symbol)
#define ALWAYS(symbol) HOOK(symbol)
#include "shim/hook/entry_rows.h"
#define CUS_API(symbol, class, scope, arg, abi, act, reason) STUB_##act(symbol)
#include "shim/api/cuda_api.def"
    .size cus_entry_hooks, . - cus_entry_hooks

    .globl cus_entry_cuptis
    .hidden cus_entry_cuptis
    .type cus_entry_cuptis, %object
cus_entry_cuptis:
#define CUPTI_HOOK(symbol) HOOK(symbol);
    CUS_CUPTI_FUNCTIONS(CUPTI_HOOK)
    .size cus_entry_cuptis, . - cus_entry_cuptis

    .section .note.GNU-stack, "", %progbits
