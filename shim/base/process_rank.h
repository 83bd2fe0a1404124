/*
 * The rank of this process among those of one run, as what started the process says it in the
 * environment: torchrun, mpirun, srun and others. And the name of its machine.
 */
#ifndef CUSPLICE_BASE_PROCESS_RANK_H
#define CUSPLICE_BASE_PROCESS_RANK_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUS_PROCESS_RANK_MAX = 999999, /* a larger number is none */
    CUS_PROCESS_NAME = 40,         /* bytes of the name below, with its final NUL */
    CUS_PROCESS_HOST = 65,         /* the same, of a machine */
};

/* -1: none is known. The first variable that holds a number decides: RANK,
 * OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, SLURM_PROCID, VLLM_DP_RANK, LOCAL_RANK. The first
 * call of a process reads the environment and must come from a thread of the program; the answer
 * stays. No lock, no allocation, keeps errno. */
int cus_process_rank(void);

/* "rank-R.pid-P", or "pid-P" where no rank is known: letters, digits, '-' and '.' alone. */
void cus_process_name(int rank, long pid, char out[CUS_PROCESS_NAME]);

/* The name of this machine, container or pod: letters, digits, '-', '_' and '.' alone, and no '.'
 * first. "host" if it has none. One system call. */
void cus_process_host(char out[CUS_PROCESS_HOST]);

#ifdef __cplusplus
}
#endif

#endif
