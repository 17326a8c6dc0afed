/* SPDX-License-Identifier: Apache-2.0 */
/* kb_impl.h - the builder's state, private to the kb_*.c files. */
#ifndef PTXGEN_KB_IMPL_H
#define PTXGEN_KB_IMPL_H

#include "kb_target.h"

enum {
    KB_KNOWN = 512 /* variables, by number */,
    KB_PARAM_MAX = 128,
    KB_SECTION_MAX = 48,
    KB_NAME_MAX = 192,
    KB_ERROR_MAX = 384
};

/* One open scope of the device program. */
struct kb_flow {
    LLVMBasicBlockRef next;  /* if: the else arm; loop: the exit.  NULL: an `if` decided while generating */
    LLVMBasicBlockRef head;  /* loop: where it starts over; NULL: an `if` */
    LLVMBasicBlockRef after; /* if: the join */
    kb_var counter;          /* kb_for */
    kb_val step, index;
    kb_uni uni;  /* how different the threads inside may be */
    kb_uni need; /* the least difference that an operation inside tolerates, and which */
    const char *need_what;
    int team, team_threads; /* number of the team's barrier (0: no team), and its size */
    unsigned place;         /* number of the current arm, unique in the builder */
    const char *file;
    int line;
};

/* What a variable holds as long as emission stays in a block. */
struct kb_known {
    LLVMValueRef slot, value;
    LLVMValueRef store; /* which nothing has read; NULL: an earlier block's */
    LLVMBasicBlockRef block;
};

/* Memory of kb_scratch(). */
struct kb_scratch {
    struct kb_scratch *older;
    _Alignas(16) char bytes[];
};

/* A declared parameter.  Its function type is not known before the last one is declared, so values stand for the
 * arguments until the kernel ends. */
struct kb_parameter {
    LLVMValueRef stand_in;
    LLVMTypeRef type;
    int align;      /* pointers; 0: a scalar */
    unsigned flags; /* pointers */
};

struct kb {
    LLVMContextRef cx;
    LLVMModuleRef mod;
    const struct kb_target *target;
    struct kb_options options;
    LLVMBuilderRef b;     /* here */
    LLVMBuilderRef entry; /* end of the entry block: variables, special registers, shared memory */
    LLVMTypeRef ty[TY_COUNT];
    /* the kernel being built */
    LLVMValueRef fn; /* NULL until all parameters are declared */
    LLVMBasicBlockRef entry_block, body_block;
    char name[KB_NAME_MAX];
    char section[KB_SECTION_MAX];
    int threads, cluster, min_blocks;
    int nparams, ndeclared;
    struct kb_parameter param[KB_PARAM_MAX + 1]; /* the last: for one too many */
    unsigned nvars;
    struct kb_known known[KB_KNOWN];
    struct kb_flow flow[KB_FLOW_MAX];
    int depth;
    unsigned places; /* arms opened so far */
    kb_val sreg[KB_SREG_COUNT];
    kb_val lane, warp;
    LLVMValueRef shared;
    int shared_bytes;
    bool dependent;             /* starts before the previous kernel has ended */
    bool tight_sums;            /* see kb_tighten_sums() */
    bool arrive_omitted;        /* the last cluster arrive was left out, so its wait is too */
    struct kb_scratch *scratch; /* newest first */
    /* ordering points of the builder */
    int npoints, cap_points;
    char **point;
    char error[KB_ERROR_MAX];
};

static inline kb_val kb_make(LLVMValueRef ir, enum ty ty, kb_uni uni) { return (kb_val){ ir, ty, uni }; }
static inline kb_uni kb_uni_max(kb_uni a, kb_uni b) { return a > b ? a : b; }
static inline LLVMTypeRef kb_int_ty(kb *k, int bits) { return LLVMIntTypeInContext(k->cx, (unsigned)bits); }
/* What an element is in memory: bool is a byte. */
static inline LLVMTypeRef kb_memory_ty(kb *k, enum ty ty) { return ty == TY_BOOL ? kb_int_ty(k, 8) : k->ty[ty]; }

/* Creates the function if that has not happened; every instruction that needs one goes through here. */
void kb_ready(kb *k);
/* A new block after the current one, named after the section. */
LLVMBasicBlockRef kb_block_after(kb *k, const char *what);
/* An intrinsic whose name ends in the type of its first argument ("llvm.minnum" -> "llvm.minnum.f32"). */
LLVMValueRef kb_overloaded(kb *k, const char *name, enum ty ty, int n, LLVMValueRef *args);
/* Emit at the end of the entry block between these two. */
LLVMBuilderRef kb_enter_entry(kb *k);
void kb_leave_entry(kb *k, LLVMBuilderRef saved);
/* Threads of this uniformity must be together here, in all open scopes. */
void kb_require(kb *k, kb_uni need, const char *what);
/* The same where a team may stand for the block. */
void kb_require_team(kb *k, kb_uni need, const char *what);
/* The innermost open team, or NULL. */
const struct kb_flow *kb_team_of(const kb *k);
/* Numbers an ordering point; true when it is the one to leave out. */
bool kb_omit(kb *k, const char *what, const char *file, int line);
const char *kb_file_name(const char *path);

/* Where emission is now, and whether what was emitted at a place is still visible here. */
unsigned kb_place(const kb *k);
bool kb_reaches(const kb *k, unsigned place);

#endif
