// Promise: events that the program destroys while nodes hold them are destroyed once each, however
// many they are. One that goes in the midst of its record does no harm.
#include "tests/unit/stream/events.h"
#include "tests/unit/stream/program.h"

#include <map>

#include "shim/api/api.h"

namespace {

using fake::driver;
using fake::Event;

class OldEvents : public fake::ProgramTest {
  protected:
    void SetUp() override {
        fake::Reset();
        ASSERT_TRUE(
            fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"}, {"CUSPLICE_SEGMENT_MAX", "4"}}));
        ProgramTest::SetUp();
        fake::TableOfEvents();
        for (int step = 0; step < 6; step++)
            Step(0);
        driver().journal.clear();
    }
    void TearDown() override {
        cus_engine_copying(false);
        ProgramTest::TearDown();
        fake::EndEngine();
    }

    static void CountDestroyed() {
        destroyed.clear();
        driver().table.cuEventDestroy_v2 = [](CUevent event) {
            destroyed[event]++;
            return CUDA_SUCCESS;
        };
    }
    static inline std::map<CUevent, int> destroyed; // how often each was

    // A segment of four ops with a record of the event, which is made for it.
    void Step(uintptr_t event) {
        cus_engine_event_made(Event(event));
        Launch(0);
        Launch(1);
        EXPECT_EQ(fake::RecordOn(stream_, Event(event)), CUDA_SUCCESS);
        Launch(2);
        Sync();
    }
};

// While a thread copies pageable memory none is destroyed, so that many are left.
TEST_F(OldEvents, AreDestroyedOnceEachHoweverMany) {
    enum { MANY = 100 };
    CountDestroyed();
    cus_engine_copying(true);
    for (uintptr_t i = 1; i <= MANY; i++) {
        Step(i);
        EXPECT_TRUE(cus_engine_event_goes(Event(i), CUS_ROW_cuEventDestroy_v2)) << i;
    }
    Step(0); // the node holds another one
    EXPECT_TRUE(destroyed.empty());
    cus_engine_copying(false);
    cus_engine_event_made(Event(MANY + 1));
    ASSERT_EQ(destroyed.size(), (size_t)MANY);
    for (const auto &[event, times] : destroyed)
        EXPECT_EQ(times, 1);
}

// Its context went, so the driver gave its handle to another event.
TEST_F(OldEvents, OneWhoseHandleCameBackIsNotDestroyed) {
    CountDestroyed();
    cus_engine_copying(true);
    for (uintptr_t i : {1, 2}) {
        Step(i);
        EXPECT_TRUE(cus_engine_event_goes(Event(i), CUS_ROW_cuEventDestroy_v2));
    }
    cus_engine_event_made(Event(1));
    Step(0);
    cus_engine_copying(false);
    cus_engine_event_made(Event(3));
    EXPECT_EQ(destroyed, (std::map<CUevent, int>{{Event(2), 1}}));
}

// Another thread destroys the event between the two calls of the hook.
TEST_F(OldEvents, ARecordOfOneThatHasJustGoneIsMade) {
    cus_record record = {};
    record.stream = {stream_, CUS_ABI_LEGACY};
    record.event = Event(0);
    record.real = reinterpret_cast<void *>(fake::RealRecord);
    Launch(0);
    Launch(1);
    ASSERT_TRUE(cus_engine_record_begins(&record, 0, CUS_ROW_cuEventRecord));
    fake::Elsewhere([] { cus_engine_event_goes(Event(0), CUS_ROW_cuEventDestroy_v2); });
    EXPECT_EQ(cus_engine_record(&record), CUDA_SUCCESS);
    Sync();
    EXPECT_EQ(driver().journal, (std::vector<std::string>{Line(0, 0), Line(1, 0),
                                                          fake::RecordLine(Event(0), stream_)}));
}

} // namespace
