"""A program for module_test.py: memsets on the simulator, by ctypes, and what the module says of them. guest.py [interface | spawn | forkserver]"""
import ctypes
import multiprocessing
import os
import sys

import cusplice


class Stream:
    """A stream with memory. Each step has the same memsets."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.stream, self.memory = ctypes.c_void_p(), ctypes.c_uint64()
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuMemAlloc_v2", ctypes.byref(self.memory), ctypes.c_size_t(4096))
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)

    def call(self, name, *words):
        result = getattr(self.cuda, name)(*words)
        assert result == 0, f"{name}: {result}"

    def launch(self, memsets=8):
        for i in range(memsets):
            self.call("cuMemsetD8Async", self.memory, ctypes.c_ubyte(i), ctypes.c_size_t(64 + i), self.stream)

    def wait(self):
        self.call("cuStreamSynchronize", self.stream)


    def steps(self, n):
        """Steps that wait for the GPU."""
        for _ in range(n):
            self.launch()
            self.wait()


def waiting(now):
    """The ops that are not issued yet."""
    return now.memsets - now.in_graphs - now.eager


def steps(_=None):
    """Whether there was a library, and what it counted."""
    Stream().steps(20)
    return cusplice.loaded(), cusplice.counters()


def interface():
    """Each call of the module does with the stream's work what it says."""
    assert cusplice.loaded() and cusplice.interface() >= 1
    stream = Stream()
    stream.steps(10)
    for ends, more in ((cusplice.step, 1), (cusplice.force_break, 0)):
        stream.launch(3)
        before = cusplice.counters()
        assert waiting(before) > 0, before
        ends()
        after = cusplice.counters()
        assert waiting(after) == 0, after
        assert after.steps == before.steps + more, (before, after)
    stream.wait()
    before = cusplice.counters()
    cusplice.resume()  # one too many
    try:
        with cusplice.suspended():
            cusplice.suspend()
            stream.launch()
            cusplice.resume()
            stream.launch()
            now = cusplice.counters()
            assert (now.eager - before.eager, now.in_graphs) == (16, before.in_graphs), (before, now)
            raise KeyError
    except KeyError:
        pass
    stream.steps(10)
    assert cusplice.counters().in_graphs > now.in_graphs, "it has resumed"


def children(method):
    """Those of multiprocessing are preloaded from the moment on at which os.environ is filled in, and this process is not."""
    context = multiprocessing.get_context(method)
    if method == "spawn":  # the server of "forkserver" starts once
        with context.Pool(1) as pool:
            assert pool.map(steps, [0]) == [(False, (0,) * len(cusplice.Counters._fields))]
    cusplice.configure_subprocess(os.environ)
    with context.Pool(2) as pool:
        for there, counted in pool.map(steps, range(2), chunksize=1):
            assert there and counted.in_graphs > 0, counted
    assert not cusplice.loaded()


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(*steps())
    elif sys.argv[1] == "interface":
        interface()
    else:
        children(sys.argv[1])
