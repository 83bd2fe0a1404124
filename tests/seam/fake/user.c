/* A library that is linked to the profiler's library, as PyTorch's are. */
int cuptiActivityEnable(unsigned kind);

int user_enable(unsigned kind);
int user_enable(unsigned kind) {
    int result = cuptiActivityEnable(kind);
    return result + (result != 0); /* more than a jump: the call comes from here */
}
