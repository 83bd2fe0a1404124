// Kinds of ops on a stream and its branches, for tests of segments and graphs with branches.
#ifndef CUSPLICE_TESTS_UNIT_PLAN_BRANCH_KINDS_H
#define CUSPLICE_TESTS_UNIT_PLAN_BRANCH_KINDS_H

extern "C" {
#include "shim/plan/op.h"
}

inline cus_kind KindOn(cus_op_type type, uint8_t branch) {
    static const cus_layout none = {};
    cus_kind kind = {};
    kind.type = (uint8_t)type;
    kind.branch = branch;
    kind.deferrable = true;
    kind.layout = type == CUS_OP_LAUNCH ? &none : nullptr;
    kind.param_bytes = type == CUS_OP_LAUNCH ? 0 : sizeof(cus_record_params);
    return kind;
}

inline cus_kind LaunchOn(uint8_t branch) {
    return KindOn(CUS_OP_LAUNCH, branch);
}

inline cus_kind RecordOn(uint8_t branch) {
    return KindOn(CUS_OP_RECORD, branch);
}

// The branch waits for the record that came `back` ops before, on branch `from`.
inline cus_kind WaitOn(uint8_t branch, uint8_t from, uint16_t back) {
    cus_kind kind = KindOn(CUS_OP_WAIT, branch);
    kind.from = from;
    kind.back = back;
    return kind;
}

#endif
