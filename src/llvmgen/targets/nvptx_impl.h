/* SPDX-License-Identifier: Apache-2.0 */
/* nvptx_impl.h - what the files of the NVPTX target share. */
#ifndef PTXGEN_NVPTX_IMPL_H
#define PTXGEN_NVPTX_IMPL_H

#include "llvmgen/builder/kb_target.h"

/* Inline assembly with side effects: it stays where it is and keeps its order among its like. */
LLVMValueRef nv_asm(kb *k, LLVMTypeRef ret, const char *text, const char *constraints, int n, LLVMValueRef *args,
                    LLVMTypeRef *types);

/* nvptx_memory.c */
void nv_fence(kb *k, enum kb_order o, enum kb_scope_of s);
LLVMValueRef nv_load(kb *k, const struct kb_access *a);
void nv_store(kb *k, const struct kb_access *a, LLVMValueRef x);
LLVMValueRef nv_rmw(kb *k, enum kb_rmw op, const struct kb_access *a, LLVMValueRef x, bool is_signed, bool is_float);
LLVMValueRef nv_cas(kb *k, const struct kb_access *a, LLVMValueRef expected, LLVMValueRef desired);

/* nvptx_exchange.c */
void nv_exchange(kb *k, LLVMValueRef table);

/* nvptx_halo.c */
LLVMValueRef nv_halo_number(kb *k, LLVMValueRef window);
void nv_halo_send(kb *k, LLVMValueRef to, LLVMValueRef word, LLVMValueRef e);
void nv_halo_wait(kb *k, LLVMValueRef window, LLVMValueRef from, LLVMValueRef e);
LLVMValueRef nv_halo_read(kb *k, LLVMValueRef from);
LLVMValueRef nv_halo_peek(kb *k, LLVMValueRef from, LLVMValueRef e);
void nv_halo_done(kb *k, LLVMValueRef window, LLVMValueRef e, LLVMValueRef amount, LLVMValueRef total);

/* nvptx_async.c */
void nv_mbar_init(kb *k, LLVMValueRef bar, int arrivals, const char *name);
void nv_mbar_ready(kb *k);
void nv_mbar_arrive(kb *k, LLVMValueRef bar, LLVMValueRef bytes, const char *name);
void nv_mbar_wait(kb *k, LLVMValueRef bar, LLVMValueRef parity, const char *name);
void nv_prefetch(kb *k, LLVMValueRef from, int64_t bytes, const char *name);
void nv_bulk_load(kb *k, const struct kb_copy *c, LLVMValueRef bytes, LLVMValueRef bar);
void nv_bulk_store(kb *k, const struct kb_copy *c, LLVMValueRef bytes);
void nv_bulk_commit(kb *k);
void nv_bulk_wait(kb *k, int pending, bool read);
void nv_proxy_fence(kb *k);
void nv_copy(kb *k, const struct kb_copy *c, int bytes);
void nv_copy_commit(kb *k);
void nv_copy_wait(kb *k, int pending);

/* nvptx_math.c: calls to libdevice's names, bound by mathlib.c when the module is complete. */
LLVMValueRef nv_math(kb *k, int fn, enum ty ty, int n, LLVMValueRef *args);
LLVMValueRef nv_extreme(kb *k, bool maximum, enum ty ty, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef nv_narrow_fma(kb *k, enum ty ty, LLVMValueRef *args);

/* The libclc name of a libdevice function ("__nv_expf" -> "_Z3expf"), or NULL. */
const char *nv_libclc_name(const char *libdevice_name, char *buffer, int size);

#endif
