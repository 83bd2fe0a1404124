// Promise: the functions that replace the driver's give the driver's answer, and leave the
// program's errno.
#include <gtest/gtest.h>

#include <cerrno>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "shim/api/api.h"

extern "C" {
struct cus_keep_place {
    unsigned row;
    void *instead;
    void **real;
};
extern const cus_keep_place cus_keep_places[];
extern const unsigned cus_keep_n_places;
}

namespace {

CUresult Record(CUevent, CUstream) {
    errno = EIO;
    return CUDA_ERROR_INVALID_HANDLE;
}

TEST(Places, TheAnswerIsTheDriversAndErrnoTheProgramsOwn) {
    bool found = false;
    for (unsigned i = 0; i < cus_keep_n_places; i++) {
        if (cus_keep_places[i].row != CUS_ROW_cuEventRecord)
            continue;
        found = true;
        *cus_keep_places[i].real = reinterpret_cast<void *>(Record);
        auto instead =
            reinterpret_cast<CUresult (*)(CUevent, CUstream)>(cus_keep_places[i].instead);
        errno = 4711;
        EXPECT_EQ(instead(nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
        EXPECT_EQ(errno, 4711);
    }
    EXPECT_TRUE(found);
}

// Nobody stands in for two functions, and what is stood in for is one that the hooks go through.
TEST(Places, AreRowsOfTheTable) {
    for (unsigned i = 0; i < cus_keep_n_places; i++) {
        const cus_api_row &row = cus_api_rows[cus_keep_places[i].row];
        EXPECT_NE(row.act, CUS_ACT_PASS) << row.name << " does not come by the table";
        for (unsigned k = 0; k < i; k++)
            EXPECT_NE(cus_keep_places[i].row, cus_keep_places[k].row) << row.name;
    }
}

} // namespace
