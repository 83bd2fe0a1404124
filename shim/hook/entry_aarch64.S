/*
 * The entry points in machine code for AArch64 (AAPCS64): the same as entry_x86_64.S.
 *
 * A stub puts its number into w17 and branches to one of two common parts. Callers and callees
 * expect no value in x16 and x17. If the state is below ON, both parts go straight to the real
 * function. Each entry begins with `bti c`, and all jumps go through x16: this file runs with
 * branch target identification, too.
 */
#include "shim/hook/entry.h"

#if defined(__aarch64__)

    .text
    .set cus_number, 0

    /* An exported function, with the hidden name that the library itself uses. */
    .macro cus_begin symbol
    .p2align 4
    .globl cus_hook_\symbol
    .hidden cus_hook_\symbol
    .type cus_hook_\symbol, %function
    .globl \symbol
    .type \symbol, %function
cus_hook_\symbol:
\symbol:
    .cfi_startproc
    hint #34 /* bti c */
    .endm
    .macro cus_end symbol
    .cfi_endproc
    .size \symbol, . - \symbol
    .size cus_hook_\symbol, . - cus_hook_\symbol
    .endm

    .macro cus_stub symbol, common
    cus_begin \symbol
    mov w17, #cus_number
    b \common
    cus_end \symbol
    .endm

    /* The state of the library, into w16. An acquire, as in C (guard.h). */
    .macro cus_state
    adrp x16, cus_process+CUS_ENTRY_HOOKS_AT
    add x16, x16, :lo12:cus_process+CUS_ENTRY_HOOKS_AT
    ldar w16, [x16]
    cmp w16, #CUS_ENTRY_STATE_ON
    .endm

/* A prototype may use x0 to x7, x8 (for a large result), and q0 to q7. */
#define JUMP(symbol) cus_stub symbol, cus_jump
#define AROUND(symbol) cus_stub symbol, cus_around
#define RESTS(symbol) cus_stub symbol, cus_rests
#define FLAGS(symbol) cus_stub symbol, cus_flags
#define ALWAYS(symbol) cus_stub symbol, cus_slow
#define WRAP(symbol)
#define NONE(symbol)
#include "shim/hook/entry_rows.h"

#define CUS_API(symbol, class, scope, arg, abi, act, reason) STUB_##act(symbol); .set cus_number, cus_number + 1
#include "shim/api/cuda_api.def"

/*
 * The hook of cuLaunchKernel. Eight arguments are in registers; the stream, the params and `extra`
 * are on the stack. Each path is a jump that leaves all arguments where they are. The paths are
 * those of entry_x86_64.S.
 */
    .macro cus_launch symbol, abi
    cus_begin \symbol
    cus_state
    b.ne cus_other_\symbol
    mrs x16, tpidr_el0
    adrp x17, :gottprel:cus_thread_self
    ldr x17, [x17, :gottprel_lo12:cus_thread_self]
    add x16, x16, x17
    ldrb w17, [x16, #CUS_ENTRY_DEPTH_AT]
    cbnz w17, cus_other_\symbol
    ldr x17, [sp, #16]
    cbnz x17, cus_other_\symbol
    ldr x9, [sp]
    mov w17, #1
    strb w17, [x16, #CUS_ENTRY_DEPTH_AT]
    ldr x17, [x16, #CUS_ENTRY_CACHED_STREAM_AT(\abi)]
    cmp x17, x9
    b.eq cus_midst_\symbol
    strb wzr, [x16, #CUS_ENTRY_DEPTH_AT]
    b cus_passed_\symbol
    cus_end \symbol
    .endm
    cus_launch cuLaunchKernel, 0
    cus_launch cuLaunchKernel_ptsz, 1

    .p2align 4
    .globl cus_entry_spares
    .hidden cus_entry_spares
cus_entry_spares:
    .rept CUS_ENTRY_SPARE
    .p2align 4
    .cfi_startproc
    hint #34 /* bti c */
    mov w17, #cus_number
    b cus_slow
    .cfi_endproc
    .set cus_number, cus_number + 1
    .endr

    .macro cus_cupti symbol
    cus_stub \symbol, cus_slow
    .set cus_number, cus_number + 1
    .endm
#define CUPTI_STUB(symbol) cus_cupti symbol;
    CUS_CUPTI_FUNCTIONS(CUPTI_STUB)

    .p2align 4
    .type cus_flags, %function
cus_flags:
    .cfi_startproc
    cbnz w2, cus_around
    .cfi_endproc
    .size cus_flags, . - cus_flags

    .type cus_rests, %function
cus_rests:
    .cfi_startproc
    adrp x16, cus_process+CUS_ENTRY_RESTING_AT
    add x16, x16, :lo12:cus_process+CUS_ENTRY_RESTING_AT
    ldar w16, [x16]
    cbnz w16, cus_straight
    b cus_around
    .cfi_endproc
    .size cus_rests, . - cus_rests

/* In state ON, C makes the call. Such a row has at most six arguments, so x6 is free. */
    .p2align 4
    .type cus_around, %function
cus_around:
    .cfi_startproc
    cus_state
    b.lo cus_straight
    mov w6, w17
    b cus_entry_around
    .cfi_endproc
    .size cus_around, . - cus_around

    .p2align 4
    .type cus_jump, %function
cus_jump:
    .cfi_startproc
    cus_state
    b.hs cus_slow
/* Below the state ON: the real function of the row, if it is known already. */
cus_straight:
    adrp x16, cus_real_functions
    add x16, x16, :lo12:cus_real_functions
    ldr x16, [x16, w17, uxtw #3]
    cbz x16, cus_slow
    br x16
cus_slow:
    sub sp, sp, #CUS_ENTRY_FRAME_BYTES
    .cfi_adjust_cfa_offset CUS_ENTRY_FRAME_BYTES
    stp x29, x30, [sp, #208]
    .cfi_rel_offset x29, 208
    .cfi_rel_offset x30, 216
    add x29, sp, #208
    stp x0, x1, [sp, #0]
    stp x2, x3, [sp, #16]
    stp x4, x5, [sp, #32]
    stp x6, x7, [sp, #48]
    str x8, [sp, #64]
    stp q0, q1, [sp, #80]
    stp q2, q3, [sp, #112]
    stp q4, q5, [sp, #144]
    stp q6, q7, [sp, #176]
    mov w0, w17
    mov x1, sp
    bl cus_entry_before
    mov x16, x0
    ldp x0, x1, [sp, #0]
    ldp x2, x3, [sp, #16]
    ldp x4, x5, [sp, #32]
    ldp x6, x7, [sp, #48]
    ldr x8, [sp, #64]
    ldp q0, q1, [sp, #80]
    ldp q2, q3, [sp, #112]
    ldp q4, q5, [sp, #144]
    ldp q6, q7, [sp, #176]
    ldp x29, x30, [sp, #208]
    .cfi_restore x29
    .cfi_restore x30
    add sp, sp, #CUS_ENTRY_FRAME_BYTES
    .cfi_adjust_cfa_offset -CUS_ENTRY_FRAME_BYTES
    br x16
    .cfi_endproc
    .size cus_jump, . - cus_jump

/* Saves what dlsym's caller expects kept, around a call of C. */
    .macro cus_dlsym_save
    stp x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov x29, sp
    stp x0, x1, [sp, #16]
    .endm
    .macro cus_dlsym_restore
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_restore x29
    .cfi_restore x30
    .cfi_adjust_cfa_offset -32
    .endm

/* dlsym(handle, name): see entry_x86_64.S for why it jumps, and for the names. */
    .p2align 4
    .globl dlsym
    .type dlsym, %function
dlsym:
    .cfi_startproc
    hint #34 /* bti c */
    cbz x1, 1f
    ldrb w16, [x1]
    cmp w16, #'_'
    b.eq 4f
    cmp w16, #'c'
    b.ne 1f
    ldrb w16, [x1, #1]
    cmp w16, #'u'
    b.ne 1f
    ldrb w16, [x1, #2]
    cmp w16, #'p'
    b.eq 3f
    cmp w16, #'d'
    b.eq 3f
    sub w16, w16, #'A'
    cmp w16, #25
    b.ls 3f
1:
    adrp x16, cus_dlsym_function
    ldr x16, [x16, :lo12:cus_dlsym_function]
    cbz x16, 2f
    br x16
2:
    cus_dlsym_save
    bl cus_dlsym_next
    mov x16, x0
    cus_dlsym_restore
    br x16
4:
    ldrb w16, [x1, #1]
    cmp w16, #'_'
    b.ne 1b
    ldrb w16, [x1, #2]
    cmp w16, #'c'
    b.ne 1b
    ldrb w16, [x1, #3]
    cmp w16, #'u'
    b.ne 1b
    ldrb w16, [x1, #4]
    cmp w16, #'d'
    b.ne 1b
3:
    cus_dlsym_save
    mov x2, x30
    bl cus_dlsym_decide
    mov x16, x0
    mov x17, x1
    cus_dlsym_restore
    cbz x17, 5f
    mov x0, x16
    ret
5:
    br x16
    .cfi_endproc
    .size dlsym, . - dlsym

/*
 * cus_call_from(a0, a1, a2, function, there): calls function(a0, a1, a2) with the return address
 * `there`. At `there` stands the end of a function: `ldp x29, x30, [sp], #n`, perhaps `autiasp`,
 * and `ret` (cus_call_way_back). This code lays a frame of n bytes that brings it back to 1. With
 * `autiasp` the address in that frame is signed; the modifier is the stack pointer behind the frame.
 */
    .p2align 4
    .globl cus_call_from
    .hidden cus_call_from
    .type cus_call_from, %function
cus_call_from:
    .cfi_startproc
    stp x29, x30, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov x29, sp
    .cfi_def_cfa_register x29
    mov x16, x3
    adr x30, 1f
    ldp w5, w6, [x4]
    mov w7, #0x23bf /* autiasp */
    movk w7, #0xd503, lsl #16
    cmp w6, w7
    b.ne 2f
    hint #25 /* paciasp */
2:
    ubfx w5, w5, #15, #6 /* n in units of 8 bytes */
    sub sp, sp, x5, lsl #3
    stp x29, x30, [sp]
    mov x30, x4
    br x16
1:
    ldp x29, x30, [sp], #16
    .cfi_def_cfa sp, 0
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size cus_call_from, . - cus_call_from

#endif

    .section .note.GNU-stack, "", %progbits
