/*
 * The entry points in machine code for x86-64: the exported symbols of all rows but PASS and WRAP,
 * the spare stubs, the functions of CUPTI, and dlsym. entry_aarch64.S has the same for AArch64.
 *
 * A stub puts its number into r11 and jumps to one of two common parts. In r11 alone neither callers
 * nor callees expect a value. If the state is below ON, both parts go straight to the real
 * function.
 */
#include "shim/hook/entry.h"

#if defined(__x86_64__)

    .text
    .set cus_number, 0

    /* An exported function, with the hidden name that the library itself uses. */
    .macro cus_begin symbol
    .p2align 4
    .globl cus_hook_\symbol
    .hidden cus_hook_\symbol
    .type cus_hook_\symbol, @function
    .globl \symbol
    .type \symbol, @function
cus_hook_\symbol:
\symbol:
    .cfi_startproc
    .endm
    .macro cus_end symbol
    .cfi_endproc
    .size \symbol, . - \symbol
    .size cus_hook_\symbol, . - cus_hook_\symbol
    .endm

    .macro cus_stub symbol, common
    cus_begin \symbol
    endbr64
    movl $cus_number, %r11d
    jmp \common
    cus_end \symbol
    .endm

/* A prototype may use six integer registers, rax (for variadic calls), r10, and xmm0 to xmm7. */
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
 * The hook of cuLaunchKernel. Each path is a jump that leaves all arguments where they are.
 *
 *   cus_midst_*   the stream is the one on which the thread has deferred ops. The depth is set
 *                 before the stream is compared: a signal handler launches before that, or its
 *                 launch goes straight to the driver.
 *   cus_passed_*  any other stream.
 *   cus_other_*   the library is not on, the thread is inside a hook, or `extra` is not NULL.
 */
    .macro cus_launch symbol, abi
    cus_begin \symbol
    movq cus_thread_self@gottpoff(%rip), %rax
    cmpl $CUS_ENTRY_STATE_ON, cus_process+CUS_ENTRY_HOOKS_AT(%rip)
    jne cus_other_\symbol
    cmpb $0, %fs:CUS_ENTRY_DEPTH_AT(%rax)
    jne cus_other_\symbol
    cmpq $0, 40(%rsp)
    jne cus_other_\symbol
    movq 24(%rsp), %r10
    movb $1, %fs:CUS_ENTRY_DEPTH_AT(%rax)
    cmpq %fs:CUS_ENTRY_CACHED_STREAM_AT(\abi)(%rax), %r10
    je cus_midst_\symbol
    movb $0, %fs:CUS_ENTRY_DEPTH_AT(%rax)
    jmp cus_passed_\symbol
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
    endbr64
    movl $cus_number, %r11d
    jmp cus_slow
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
    .type cus_flags, @function
cus_flags:
    .cfi_startproc
    testl %edx, %edx
    jnz cus_around
    .cfi_endproc
    .size cus_flags, . - cus_flags

    .type cus_rests, @function
cus_rests:
    .cfi_startproc
    cmpl $0, cus_process+CUS_ENTRY_RESTING_AT(%rip)
    jne cus_straight
    jmp cus_around
    .cfi_endproc
    .size cus_rests, . - cus_rests

/* Below the state ON: the real function of the row, if it is known already. */
    .p2align 4
    .type cus_around, @function
cus_around:
    .cfi_startproc
    cmpl $CUS_ENTRY_STATE_ON, cus_process+CUS_ENTRY_HOOKS_AT(%rip)
    jb cus_straight
    pushq %r11
    .cfi_adjust_cfa_offset 8
    call cus_entry_around
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size cus_around, . - cus_around

    .p2align 4
    .type cus_jump, @function
cus_jump:
    .cfi_startproc
    cmpl $CUS_ENTRY_STATE_ON, cus_process+CUS_ENTRY_HOOKS_AT(%rip)
    jae cus_slow
cus_straight:
    pushq %rax
    .cfi_adjust_cfa_offset 8
    leaq cus_real_functions(%rip), %rax
    movq (%rax,%r11,8), %rax
    testq %rax, %rax
    jz 1f
    movq %rax, %r11
    popq %rax
    .cfi_adjust_cfa_offset -8
    jmp *%r11
1:
    .cfi_adjust_cfa_offset 8
    popq %rax
    .cfi_adjust_cfa_offset -8
cus_slow:
    subq $200, %rsp
    .cfi_adjust_cfa_offset 200
    movq %rdi, 0(%rsp)
    movq %rsi, 8(%rsp)
    movq %rdx, 16(%rsp)
    movq %rcx, 24(%rsp)
    movq %r8, 32(%rsp)
    movq %r9, 40(%rsp)
    movq %rax, 48(%rsp)
    movq %r10, 56(%rsp)
    movaps %xmm0, 64(%rsp)
    movaps %xmm1, 80(%rsp)
    movaps %xmm2, 96(%rsp)
    movaps %xmm3, 112(%rsp)
    movaps %xmm4, 128(%rsp)
    movaps %xmm5, 144(%rsp)
    movaps %xmm6, 160(%rsp)
    movaps %xmm7, 176(%rsp)
    movl %r11d, %edi
    movq %rsp, %rsi
    call cus_entry_before
    movq %rax, %r11
    movq 0(%rsp), %rdi
    movq 8(%rsp), %rsi
    movq 16(%rsp), %rdx
    movq 24(%rsp), %rcx
    movq 32(%rsp), %r8
    movq 40(%rsp), %r9
    movq 48(%rsp), %rax
    movq 56(%rsp), %r10
    movaps 64(%rsp), %xmm0
    movaps 80(%rsp), %xmm1
    movaps 96(%rsp), %xmm2
    movaps 112(%rsp), %xmm3
    movaps 128(%rsp), %xmm4
    movaps 144(%rsp), %xmm5
    movaps 160(%rsp), %xmm6
    movaps 176(%rsp), %xmm7
    addq $200, %rsp
    .cfi_adjust_cfa_offset -200
    jmp *%r11
    .cfi_endproc
    .size cus_jump, . - cus_jump

/*
 * dlsym(handle, name). The real dlsym finds by its return address for which object it searches
 * (RTLD_NEXT, RTLD_DEFAULT). For names without a hook, this code therefore jumps to the real
 * dlsym with the frame as it came. Names that may have a hook begin with cu[A-Z], cup, cud or
 * __cud; for these, cus_dlsym_decide decides.
 */
    .p2align 4
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    testq %rsi, %rsi
    jz 1f
    cmpb $'_', (%rsi)
    je 4f
    cmpb $'c', (%rsi)
    jne 1f
    cmpb $'u', 1(%rsi)
    jne 1f
    movzbl 2(%rsi), %eax
    cmpl $'p', %eax
    je 3f
    cmpl $'d', %eax
    je 3f
    subl $'A', %eax
    cmpl $25, %eax
    jbe 3f
1:
    movq cus_dlsym_function(%rip), %rax
    testq %rax, %rax
    jz 2f
    jmp *%rax
2:
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call cus_dlsym_next
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
4:
    cmpb $'_', 1(%rsi)
    jne 1b
    cmpb $'c', 2(%rsi)
    jne 1b
    cmpb $'u', 3(%rsi)
    jne 1b
    cmpb $'d', 4(%rsi)
    jne 1b
3:
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq 24(%rsp), %rdx
    call cus_dlsym_decide
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rdx, %rdx
    jz 5f
    ret
5:
    jmp *%rax
    .cfi_endproc
    .size dlsym, . - dlsym

/*
 * cus_call_from(a0, a1, a2, function, there): calls function(a0, a1, a2) with the return address
 * `there`. A `ret` stands at `there`, in the object for which the call is made: the loader's
 * functions find their caller by the return address. A shadow stack would forbid this. The loader
 * enables none in a process with an object that is not marked for it, and this file's object is not
 * marked.
 */
    .p2align 4
    .globl cus_call_from
    .hidden cus_call_from
    .type cus_call_from, @function
cus_call_from:
    .cfi_startproc
    leaq 1f(%rip), %rax
    pushq %rax
    .cfi_adjust_cfa_offset 8
    pushq %r8
    .cfi_adjust_cfa_offset 8
    jmp *%rcx
    .cfi_adjust_cfa_offset -16
1:
    ret
    .cfi_endproc
    .size cus_call_from, . - cus_call_from

#endif

    .section .note.GNU-stack, "", @progbits
