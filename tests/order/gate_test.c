/*
 * The gate: a thread that has shut it is alone, or hears that it was not; whoever waits in front of
 * it is woken.
 */
#include "shim/verify/gate.c"

static uint32_t memory;  /* what the verifier compares, and what a call in between changes */
static uint32_t touched; /* the same where a call may go in between: atomic, ordered as the driver's
                            own lock would */

static void launch(void) {
    cus_gate_enter();
    memory++;
    cus_gate_leave();
}

static void launch_in_passing(void) {
    cus_gate_enter();
    memory++;
    cus_gate_pass();
}

static void try_to_launch(void) {
    if (!cus_gate_try())
        return;
    memory++;
    cus_gate_leave();
}

static void verify(void) {
    cus_gate_enter();
    if (cus_gate_shut()) {
        memory++;
        ORDER_CHECK(!cus_gate_forced());
        cus_gate_open();
    }
    cus_gate_leave();
}

static void launch_by_force(void) {
    cus_gate_enter();
    __atomic_store_n(&touched, 1, __ATOMIC_RELEASE);
    cus_gate_leave();
}

static void verify_and_hear(void) {
    cus_gate_enter();
    if (cus_gate_shut()) {
        uint32_t before = __atomic_load_n(&touched, __ATOMIC_ACQUIRE);
        uint32_t after = __atomic_load_n(&touched, __ATOMIC_ACQUIRE);
        ORDER_CHECK(before == after || cus_gate_forced());
        cus_gate_open();
    }
    cus_gate_leave();
}

static void nobody_is_inside(void) {
    ORDER_CHECK(inside == 0 && shut_for == 0);
}

/* The clock passes ALONE_NS after three looks, and WAIT_NS never; or WAIT_NS after two. */
enum { SLOW = ALONE_NS / 3, FAST = WAIT_NS / 2 + 1 };

static const struct order_test tests[] = {
    {.name = "one launches",
     .threads = {verify, launch},
     .check = nobody_is_inside,
     .tick_ns = SLOW,
     .promised = {&shut_for}},
    {.name = "one tries",
     .threads = {verify, try_to_launch},
     .check = nobody_is_inside,
     .tick_ns = SLOW,
     .promised = {&shut_for}},
    {.name = "one passes",
     .threads = {verify, launch_in_passing},
     .check = nobody_is_inside,
     .tick_ns = SLOW,
     .promised = {&shut_for}},
    {.name = "two verify",
     .threads = {verify, verify},
     .check = nobody_is_inside,
     .tick_ns = SLOW,
     .preemptions = 3,
     .promised = {&shut_for}},
    {.name = "by force",
     .threads = {verify_and_hear, launch_by_force},
     .check = nobody_is_inside,
     .tick_ns = FAST,
     .impatient = true},
    {.name = NULL},
};
static const char *const files[] = {"gate.c", NULL};
static const struct order_weaker weaker[] = {
    {"gate.c cus_gate_forced LOAD &forced RELAXED", "the acquire of what was changed comes first"},
    {"gate.c cus_gate_open STORE &shut_for RELEASE",
     "nobody opens and then reads what another thread wrote before it looked"},
    {"gate.c cus_gate_shut LOAD &inside ACQUIRE", "the loop in front has read it in order already"},
    {"gate.c cus_gate_shut LOAD &inside RELAXED", "the read behind the loop decides"},
    {"gate.c cus_gate_leave SUB &inside RELEASE",
     "it publishes what was done inside, and reads nothing afterwards"},
    {"gate.c cus_gate_enter LOAD &shut_for RELAXED", "a hint for the futex, which compares again"},
    {"gate.c cus_gate_try SUB &inside RELAXED", "the thread did nothing inside"},
    {NULL, NULL},
};

int main(int argc, char **argv) {
    return order_main(argc, argv, tests, files, weaker);
}
