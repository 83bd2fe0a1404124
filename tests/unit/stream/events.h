// Events on the fake driver: the program's calls about them, as the hook makes them
// (hook/around.c). The journal has records as launches of `record`, and waits as launches of
// `wait`, with the event.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_EVENTS_H
#define CUSPLICE_TESTS_UNIT_STREAM_EVENTS_H

#include "tests/unit/stream/fake_driver.h"

#include <functional>
#include <string>

namespace fake {

CUevent Event(uintptr_t number);

// The driver's calls. Reset leaves them out of the table; these put in those that records need, and
// those that branches need too.
CUresult RealRecord(CUevent event, CUstream stream);
CUresult RealRecordWithFlags(CUevent event, CUstream stream, unsigned flags);
CUresult RealWait(CUstream stream, CUevent event, unsigned flags);
void TableOfEvents();
void TableOfBranches();

// What they write into the journal.
std::string RecordLine(CUevent event, CUstream stream);
std::string WaitLine(CUevent event, CUstream stream);

CUresult RecordOn(CUstream stream, CUevent event, unsigned flags = 0, bool with_flags = false);
CUresult WaitOn(CUstream stream, CUevent event, unsigned flags = 0);
// By another thread, until it is done.
void Elsewhere(const std::function<void()> &call);

// The library's own events so far (cuEventCreate).
uintptr_t OwnEvents();
CUevent OwnEvent(uintptr_t number);

} // namespace fake

#endif
