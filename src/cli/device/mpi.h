/* SPDX-License-Identifier: Apache-2.0 */
/* mpi.h - ranks that mpirun has started, by an MPI library that is opened at run time. */
#ifndef PTXGEN_CLI_MPI_H
#define PTXGEN_CLI_MPI_H

#include "ptxgen/dist.h"

struct mpi;
/* NULL: no MPI library is installed, or it does not start; `why` says which. */
struct mpi *mpi_open(int *rank, int *size, const char **why);
void mpi_close(struct mpi *m);
/* The callbacks of a communicator of all ranks; a wait of more than five minutes fails. */
ptxgen_comm_callbacks mpi_callbacks(struct mpi *m);

#endif
