/*
 * Sorts records by time. reader.c calls it. Records of one time never change their order in the
 * file.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/trace/reader_inside.h"

/* By time, and where that is one, as they stand: nearly sorted already, for each thread's records
 * are but for what a call set off. */
bool cst_sort(const struct cst_record ***list, size_t n) {
    const struct cst_record **at = *list, **other;
    bool sorted = true;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = at[i - 1]->ns <= at[i]->ns;
    if (sorted)
        return true;
    other = malloc(n * sizeof *other);
    if (!other)
        return false;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            size_t middle = low + width < n ? low + width : n;
            size_t high = middle + width < n ? middle + width : n;
            size_t a = low, b = middle, to = low;
            if (middle == high || at[middle - 1]->ns <= at[middle]->ns) {
                memcpy(other + low, at + low, (high - low) * sizeof *at);
                continue;
            }
            while (a < middle && b < high)
                other[to++] = at[b]->ns < at[a]->ns ? at[b++] : at[a++];
            while (a < middle)
                other[to++] = at[a++];
            while (b < high)
                other[to++] = at[b++];
        }
        const struct cst_record **swap = at;
        at = other;
        other = swap;
    }
    free(other);
    *list = at;
    return true;
}
