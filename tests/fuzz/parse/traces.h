// Makes traces from a fuzzer's bytes, for the targets that read traces.
#ifndef TESTS_FUZZ_PARSE_TRACES_H
#define TESTS_FUZZ_PARSE_TRACES_H

#include <stddef.h>
#include <stdint.h>

#include <string>

// Bytes that begin like a trace are the file, with the checksums of its blocks made right: nothing
// behind a wrong one would ever be reached. Other bytes become the records of a file's only block.
std::string TraceOf(const uint8_t *data, size_t size);

// Puts the bytes into a file in memory and returns its path. Each `file` (0 to 3) is one file,
// which is overwritten by the next call.
std::string InMemory(unsigned file, const std::string &bytes);

// A folder of this process for what needs a name: it is in memory where there is such a place.
const std::string &Folder();
// Puts the bytes into the file "in" there and returns its path.
std::string OnDisk(const std::string &bytes);
// Nothing but that file is there.
void CheckNothingElse();

#endif
