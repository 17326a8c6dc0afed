/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ptxgen.h
 * Reductions, scans and stencils with your own operators: from a YAML spec to GPU code.
 *
 *     ptxgen_session *s = NULL;
 *     ptxgen_problem *problem = NULL;
 *     ptxgen_plan *plan = NULL;
 *     ptxgen_program *program = NULL;
 *     char *text;
 *     if (ptxgen_session_create(&s) == PTXGEN_OK &&
 *         ptxgen_problem_from_file(s, "dot.yaml", &problem) == PTXGEN_OK &&
 *         ptxgen_plan_create(s, problem, NULL, &plan) == PTXGEN_OK &&
 *         ptxgen_compile(s, plan, NULL, &program) == PTXGEN_OK)
 *         text = ptxgen_program_ptx(program);
 *     else
 *         text = ptxgen_diagnostics_text(s, 0);
 *     puts(text ? text : "out of memory");
 *     ptxgen_free(text);
 *     ptxgen_program_destroy(program);
 *     ptxgen_session_destroy(s);
 *
 * Threads: different sessions may be used by different threads at the same time; one session by one thread at a time.
 * Programs are immutable and may be shared.  The only global state is a pool of stacks for runs on the host.
 *
 * Ownership:
 *
 *     what                                            belongs to  until
 *     ptxgen_session                                  the caller  ptxgen_session_destroy()
 *     ptxgen_program, ptxgen_host                     the caller  ptxgen_program_destroy(), ptxgen_host_destroy()
 *     ptxgen_gpu                                      the caller  ptxgen_gpu_close(), after all that was made from it
 *     ptxgen_loaded                                   the caller  ptxgen_loaded_destroy(), before its gpu and program
 *     device memory, stream, event, graph             the caller  ptxgen_gpu_free(), ptxgen_*_destroy(), before the gpu
 *     text returned as `char *`                       the caller  ptxgen_free()
 *     problem, plan, laws, arguments by name          a session   the session is destroyed
 *     what ptxgen_diagnostic_get() fills in           a session   ptxgen_diagnostics_clear()
 *     what a visitor or a log function is given       the call    the visitor or log function returns
 *     other `const char *`, other info                the object that was asked, or the library
 *     memory of arrays                                the caller  the run or launch is over; arguments by name point to it
 *     a log function and its `user`                   the caller  the next ptxgen_session_log(), or the session's end
 *     whatever else the caller passes                 the caller  the call returns: nothing keeps it
 *
 * Programs and hosts need neither their session nor their plan.  Every *_destroy accepts NULL.
 *
 * Failure: the library never prints, exits or aborts; every failure is a status with diagnostics in the session.  After
 * a failure the handle behind an `out` is NULL, except where a description says otherwise.
 *
 * NULL: pointers are required, except those marked PTXGEN_OPTIONAL.  For a required one that is NULL a call does nothing
 * and gives PTXGEN_USAGE, or NULL, 0 or -1 where it gives no status.
 *
 * Binary interface: a library with the same soname (libptxgen.so.0) keeps every function, the values of enumerations and
 * the layout of structures.  A minor release may add functions and values, and fields at the end of structures that
 * begin with `struct_size`.  Start these from their *_INIT, which says what the program knows of them: a newer library
 * takes the default, zero, for the rest, and an older one refuses fields that it does not know unless they are zero.
 */
#ifndef PTXGEN_H
#define PTXGEN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PTXGEN_API __attribute__((visibility("default")))
#else
#define PTXGEN_API
#endif
/** Marks a pointer that may be NULL. */
#define PTXGEN_OPTIONAL

#define PTXGEN_VERSION_MAJOR 0
#define PTXGEN_VERSION_MINOR 1
#define PTXGEN_VERSION_PATCH 0

/** Results of every call; also the exit status of the command line where one applies. */
typedef enum ptxgen_status {
    PTXGEN_OK = 0,
    PTXGEN_INVALID,     /**< the spec or the data is wrong; see the diagnostics */
    PTXGEN_USAGE,       /**< an argument of the call is wrong (unknown tunable, missing param, …) */
    PTXGEN_UNSUPPORTED, /**< no strategy fits, or not implemented yet; the diagnostics say why */
    PTXGEN_NO_DEVICE,   /**< no device, driver, or memory on the device */
    PTXGEN_NO_MEMORY,   /**< host memory is exhausted; the session must be destroyed */
    PTXGEN_IO,          /**< a file could not be read */
    PTXGEN_MISMATCH,    /**< verification found a difference */
    PTXGEN_FINDING,     /**< the host executor found a fault in a kernel (race, deadlock, …) */
    PTXGEN_INTERNAL,    /**< a fault of ptxgen; please report it */
    PTXGEN_RANKS,       /**< the ranks of a communicator do not agree, or one does not answer; dist.h */
    PTXGEN_STOPPED      /**< the watcher ended the run; outputs hold a part of the results, or nothing */
} ptxgen_status;

typedef struct ptxgen_session ptxgen_session;
typedef struct ptxgen_problem ptxgen_problem;
typedef struct ptxgen_plan ptxgen_plan;
typedef struct ptxgen_program ptxgen_program;

/** "0.1.0" */
PTXGEN_API const char *ptxgen_version(void);
PTXGEN_API const char *ptxgen_status_text(ptxgen_status status);
/** Frees a text returned through `char **`. NULL is fine. */
PTXGEN_API void ptxgen_free(void *PTXGEN_OPTIONAL p);

/* ---- sessions and diagnostics ------------------------------------------------------------------------------------ */
PTXGEN_API ptxgen_status ptxgen_session_create(ptxgen_session **out);
PTXGEN_API void ptxgen_session_destroy(ptxgen_session *PTXGEN_OPTIONAL s);
/** What happens, in a line of text: what was chosen, compiled or found in the cache, and how long that took. */
typedef enum ptxgen_log_level { PTXGEN_LOG_INFO, PTXGEN_LOG_DEBUG } ptxgen_log_level;
typedef void ptxgen_log_function(ptxgen_log_level level, const char *text, void *user);
/** Call `log` for events up to level `most`, in the thread that uses the session; NULL: no more. */
PTXGEN_API void ptxgen_session_log(ptxgen_session *s, ptxgen_log_level most, ptxgen_log_function *PTXGEN_OPTIONAL log,
                                   void *PTXGEN_OPTIONAL user);

typedef enum ptxgen_severity { PTXGEN_NOTE, PTXGEN_WARNING, PTXGEN_ERROR } ptxgen_severity;
typedef struct ptxgen_diagnostic {
    ptxgen_severity severity;
    int code;         /**< 1203 for PTXG-1203 */
    const char *file; /**< NULL when there is no place */
    int line, column; /**< 1-based; column in characters */
    int end_line, end_column;
    const char *message;
    const char *hint; /**< or NULL */
} ptxgen_diagnostic;
/** Messages since the session began or was cleared, in order of report. Borrowed from the session until cleared. */
PTXGEN_API int ptxgen_diagnostic_count(const ptxgen_session *s);
PTXGEN_API ptxgen_status ptxgen_diagnostic_get(const ptxgen_session *s, int i, ptxgen_diagnostic *out);
PTXGEN_API void ptxgen_diagnostics_clear(ptxgen_session *s);
/** All messages as text with source lines and carets (colour: ANSI escapes), or as JSON. Owned by the caller; NULL when
 * memory is exhausted. */
PTXGEN_API char *ptxgen_diagnostics_text(const ptxgen_session *s, int colour);
PTXGEN_API char *ptxgen_diagnostics_json(const ptxgen_session *s);
/** Title and explanation of a code; 0 when there is none such. */
PTXGEN_API int ptxgen_explain_code(int code, const char **title, const char **text);

/* ---- problems ---------------------------------------------------------------------------------------------------- */
PTXGEN_API ptxgen_status ptxgen_problem_from_file(ptxgen_session *s, const char *path, ptxgen_problem **out);
/** name: the problem's name where the spec gives none, and the file name in messages; text need not be NUL-terminated;
 * borrowed. */
PTXGEN_API ptxgen_status ptxgen_problem_from_string(ptxgen_session *s, const char *text, size_t length,
                                                    const char *PTXGEN_OPTIONAL name, ptxgen_problem **out);
PTXGEN_API const char *ptxgen_problem_name(const ptxgen_problem *p);
/** Which repetitions give the same bits. */
typedef enum ptxgen_determinism {
    PTXGEN_DETERMINISM_ANY,
    PTXGEN_DETERMINISM_RUN,
    PTXGEN_DETERMINISM_DEVICE
} ptxgen_determinism;
PTXGEN_API ptxgen_determinism ptxgen_problem_determinism(const ptxgen_problem *p);

/* clang-format off */
typedef enum ptxgen_type {
    PTXGEN_BOOL, PTXGEN_I8, PTXGEN_I16, PTXGEN_I32, PTXGEN_I64, PTXGEN_U8, PTXGEN_U16, PTXGEN_U32, PTXGEN_U64,
    PTXGEN_F16, PTXGEN_BF16, PTXGEN_F32, PTXGEN_F64
} ptxgen_type;
typedef enum ptxgen_role {
    PTXGEN_ROLE_ELEMENTS, /**< of inputs, and outputs with a value per element */
    PTXGEN_ROLE_SEGMENT_OFFSETS, PTXGEN_ROLE_SEGMENT_FLAGS, PTXGEN_ROLE_GATHER_OFFSETS,
    PTXGEN_ROLE_SEGMENT_RESULTS, /**< of outputs with a value per segment */
    PTXGEN_ROLE_TABLE,           /**< of inputs that are read with at() or inside sums alone */
    PTXGEN_ROLE_CONTINUED        /**< of outputs that elements are combined with: what they hold before counts */
} ptxgen_role;
/* clang-format on */
PTXGEN_API const char *ptxgen_type_name(ptxgen_type t);
PTXGEN_API size_t ptxgen_type_size(ptxgen_type t);
/** An input or output array: row-major, the last dimension contiguous. */
typedef struct ptxgen_array_info {
    const char *name;
    int rank;            /**< 0: one element */
    int size_index[6];   /**< per dimension: number of the size, or -1: constant */
    int64_t size_add[6]; /**< added to the size, or the constant */
    int field_count;     /**< 1 with an empty name, or the fields of a structure */
    const char *const *field_name;
    const ptxgen_type *field_type;
    const size_t *field_offset;
    size_t element_size; /**< bytes */
    ptxgen_role role;
    int is_output, index; /**< its place among the inputs or outputs */
} ptxgen_array_info;
/** A scalar: a param's value, or one element of an array. */
typedef union ptxgen_value {
    int64_t i; /**< integers and bool, sign- or zero-extended from their type */
    uint64_t u;
    double f; /**< floats; exactly representable in their type */
} ptxgen_value;
/** Memory image of a scalar of type t to value and back; p needs no alignment. A float that the type cannot hold is
 * rounded to nearest even. */
PTXGEN_API ptxgen_value ptxgen_value_load(ptxgen_type t, const void *p);
PTXGEN_API void ptxgen_value_store(ptxgen_type t, void *p, ptxgen_value v);
typedef struct ptxgen_param_info {
    const char *name;
    ptxgen_type type;
    int has_default;
    ptxgen_value default_value;
} ptxgen_param_info;
PTXGEN_API int ptxgen_problem_size_count(const ptxgen_problem *p);
PTXGEN_API const char *ptxgen_problem_size_name(const ptxgen_problem *p, int i);
PTXGEN_API int ptxgen_problem_input_count(const ptxgen_problem *p);
PTXGEN_API int ptxgen_problem_output_count(const ptxgen_problem *p);
PTXGEN_API int ptxgen_problem_param_count(const ptxgen_problem *p);
PTXGEN_API ptxgen_status ptxgen_problem_input(const ptxgen_problem *p, int i, ptxgen_array_info *out);
PTXGEN_API ptxgen_status ptxgen_problem_output(const ptxgen_problem *p, int i, ptxgen_array_info *out);
PTXGEN_API ptxgen_status ptxgen_problem_param(const ptxgen_problem *p, int i, ptxgen_param_info *out);
/** The input or output of that name; NULL: there is none. Borrowed from the problem. */
PTXGEN_API const ptxgen_array_info *ptxgen_problem_array(const ptxgen_problem *p, const char *name);
/** Canonical text, and a picture for Graphviz: arrays, stages, the loop. Both owned by the caller. */
PTXGEN_API char *ptxgen_problem_text(const ptxgen_problem *p);
PTXGEN_API char *ptxgen_problem_dot(const ptxgen_problem *p);
/** The JSON Schema of the spec language. Owned by the caller. */
PTXGEN_API char *ptxgen_schema(void);
/** The reference, Markdown: keys, types, functions, operators, boundaries, strategies, tunables and messages. Owned by
 * the caller. */
PTXGEN_API char *ptxgen_reference(void);

/* ---- laws of operators ------------------------------------------------------------------------------------------- */

typedef enum ptxgen_law {
    PTXGEN_ASSOCIATIVE, /**< (ab)c = a(bc): what every schedule relies on */
    PTXGEN_COMMUTATIVE, /**< ab = ba: allows faster schedules where it is declared or evident */
    PTXGEN_IDENTITY,    /**< ea = a = ae, for the identity e of the operator */
    PTXGEN_IDEMPOTENT   /**< aa = a; nothing relies on it */
} ptxgen_law;
typedef enum ptxgen_verdict {
    PTXGEN_PROVED,       /**< bit for bit, NaN and signs of zero included */
    PTXGEN_PROVED_IDEAL, /**< over the integers and reals: overflow, rounding and special values make a difference */
    PTXGEN_REFUTED,      /**< also over the integers and reals */
    PTXGEN_UNDECIDED,    /**< neither proved nor refuted: what is declared is believed */
    PTXGEN_NO_IDENTITY   /**< the operator has none */
} ptxgen_verdict;
/** One law of the operator of one reduction or scan. Texts belong to the session. */
typedef struct ptxgen_law_info {
    const char *reduction;     /**< name of the reduction or scan; r or s when there is one without a name */
    const char *operator_name; /**< "add", or "user"; with `starts` "add, anew in each segment" */
    ptxgen_law law;
    const char *law_name; /**< "associative", … */
    ptxgen_verdict verdict;
    const char *verdict_text; /**< "proved over the integers", … */
    int expected;             /**< declared, or relied upon without being declared */
    const char *example;      /**< states for which both sides differ, and the sides; or NULL */
    const char *cause; /**< why bits differ where the law is not refuted: "overflow", "rounding", "NaN", …; or NULL */
    const char *method;   /**< "trials", "all values", "proof"; "" where there is nothing to judge */
    const char *identity; /**< of PTXGEN_IDENTITY: one that was found where there is none or a wrong one; or NULL */
} ptxgen_law_info;
typedef struct ptxgen_laws_options {
    size_t struct_size; /**< PTXGEN_LAWS_OPTIONS_INIT sets it */
    const char *prover; /**< path of libz3, "off" for trials alone, or NULL: found by the system's loader, where it is
                           installed */
    int time_limit_ms;  /**< of a processor, for one of the some ten questions to the prover that an operator takes; 0:
                           1000 */
    const char *cache;  /**< as in ptxgen_jit_options: verdicts are kept there; NULL: what the environment says */
} ptxgen_laws_options;
typedef struct ptxgen_laws ptxgen_laws;
/**
 * Judge the operators of a problem. PTXGEN_INVALID: a law that is expected was refuted, and the diagnostics show for
 * which states; *out is made then, too. Takes milliseconds for what trials decide and up to seconds for proofs.
 * options: NULL for defaults; borrowed.
 */
PTXGEN_API ptxgen_status ptxgen_laws_check(ptxgen_session *s, const ptxgen_problem *p,
                                           const ptxgen_laws_options *PTXGEN_OPTIONAL options, ptxgen_laws **out);
PTXGEN_API int ptxgen_laws_count(const ptxgen_laws *laws);
PTXGEN_API ptxgen_status ptxgen_laws_get(const ptxgen_laws *laws, int i, ptxgen_law_info *out);
/** The problem, with operators marked commutative (and exact) where that is proved bit for bit; perhaps p itself. */
PTXGEN_API ptxgen_status ptxgen_laws_apply(ptxgen_session *s, ptxgen_problem *p, const ptxgen_laws *laws,
                                           ptxgen_problem **out);

/* ---- plans ------------------------------------------------------------------------------------------------------- */
typedef struct ptxgen_setting {
    const char *name, *value; /**< a tunable, or "strategy" */
} ptxgen_setting;
typedef struct ptxgen_plan_options {
    size_t struct_size; /**< PTXGEN_PLAN_OPTIONS_INIT sets it */
    const char *arch;   /**< "sm_90"; NULL: that of the GPU below if it is a known one, else "sm_80" */
    int ptx;            /**< 80 for PTX 8.0; 0: by policy */
    int setting_count;
    const ptxgen_setting *setting;
    const int64_t *size; /**< per size, -1 unknown; NULL: nothing known. Known ones leave the cases that they take. */
    const char *variant; /**< id of a variant, below: pins strategy and tunables; settings come on top. NULL: none */
    const char *gpu;     /**< "H200"; NULL: not known; entries of a tuning file for any device of arch count then */
    const char *tuning;  /**< path of a tuning file; NULL or "off": none, but ptxgen_jit() takes the default path */
    int only_these; /**< no cases but those that a launch at exactly the sizes above takes, of arrays that are aligned
                       to 16 bytes; other launches are refused.  Compiles in a fraction of the time */
    int multiprocessors; /**< of the device, for known sizes; 0: not known, but ptxgen_jit() asks its gpu */
} ptxgen_plan_options;
/** Choose strategies and parameters. Needs no GPU. The same inputs always give the same plan. options: NULL for
 * defaults; borrowed. */
PTXGEN_API ptxgen_status ptxgen_plan_create(ptxgen_session *s, const ptxgen_problem *p,
                                            const ptxgen_plan_options *PTXGEN_OPTIONAL options, ptxgen_plan **out);
/** Read a plan's text. */
PTXGEN_API ptxgen_status ptxgen_plan_from_string(ptxgen_session *s, const ptxgen_problem *p, const char *text,
                                                 size_t length, const char *PTXGEN_OPTIONAL name, ptxgen_plan **out);
PTXGEN_API char *ptxgen_plan_text(const ptxgen_plan *plan);
/** What was chosen and why, and why not the others; sizes may be NULL. */
PTXGEN_API char *ptxgen_plan_explain(ptxgen_session *s, const ptxgen_plan *plan, const int64_t *PTXGEN_OPTIONAL size);

/** What an assembler or a driver says about a compiled kernel. */
typedef struct ptxgen_kernel_resources {
    const char *kernel; /**< its entry point */
    int registers;      /**< of a thread; 0: unknown */
    int shared, local;  /**< static shared memory of a block; memory of a thread for spills and arrays; bytes */
} ptxgen_kernel_resources;
typedef enum ptxgen_form { PTXGEN_FORM_TEXT, PTXGEN_FORM_JSON, PTXGEN_FORM_HTML } ptxgen_form;
/** What an explanation is given beyond the plan; all of it is borrowed and optional. */
typedef struct ptxgen_explain_options {
    size_t struct_size;        /**< PTXGEN_EXPLAIN_OPTIONS_INIT sets it */
    const int64_t *size;       /**< per size, -1 unknown */
    const ptxgen_value *param; /**< per param; NULL: their defaults (1 where there is none) */
    const char *gpu;    /**< a known GPU such as "H200"; NULL: the device below, or a usual one of the architecture */
    const char *device; /**< name that a driver reports, with the facts behind it; NULL: no device */
    int sm, multiprocessors, memory_clock_khz, bus_bits;
    uint64_t l2;
    int resource_count;
    const ptxgen_kernel_resources *resource;
    const char *resource_source;          /**< who says so: "ptxas", "driver" */
    double stream_seconds, graph_seconds; /**< measured per launch at these sizes; 0: not measured */
    ptxgen_form form;                     /**< HTML: sections with tables, to be put into a page */
    int all; /**< text: also strategies that do not apply, all cases in full and the evidence behind their tunables */
} ptxgen_explain_options;
/** The same with what it costs: operations and bytes per element, the least time that the target allows (roofline),
 * registers and occupancy of the kernels, launches and passes over memory at the sizes, predicted and measured time.
 * NULL when memory is exhausted, or the GPU is unknown (a diagnostic names those that are known).  Owned by the caller. */
PTXGEN_API char *ptxgen_explain(ptxgen_session *s, const ptxgen_plan *plan,
                                const ptxgen_explain_options *PTXGEN_OPTIONAL options);
/** Index of the case whose kernels it shows: the one that takes options->size, with aligned arrays that do not overlap.
 * -1: a size is open, no case takes them, the GPU is unknown, or the plan has stages; an error leaves a diagnostic. */
PTXGEN_API int ptxgen_plan_case(ptxgen_session *s, const ptxgen_plan *plan, const ptxgen_explain_options *options);

/* ---- variants ---------------------------------------------------------------------------------------------------- */
/*
 * A variant is a strategy with a value for each of its tunables.  Its id is the strategy's name, `@`, and NAME=VALUE
 * for the tunables in their fixed order, separated by commas: reduce.block@threads=256,items=4.  Tunables that an id
 * leaves out have their defaults, so ids stay valid when a strategy gets new tunables.  "default" is the plan that is
 * chosen without pins.
 */
typedef struct ptxgen_variant {
    const char *id;
    const char *strategy;
    int tunable_count;
    const char *const *tunable; /**< names */
    const int *value;
    const char *why_not; /**< NULL: legal; else the reason: of the strategy (then without tunables) or of the tunables
                            together */
    double predicted_seconds; /**< of the model, when all sizes are known and the GPU is; else 0 */
} ptxgen_variant;
typedef struct ptxgen_variant_options {
    size_t struct_size; /**< PTXGEN_VARIANT_OPTIONS_INIT sets it */
    const ptxgen_plan_options
        *plan;       /**< arch, ptx and sizes; settings restrict the space: "strategy" to a list of names,
                            a tunable to a list of values ("128,256"), also unusual ones. NULL: defaults */
    const char *gpu; /**< of the prediction; NULL: a usual one of the architecture */
    int illegal;     /**< also those that do not fit */
    int main_only;   /**< vary only the tunables that matter most; the others keep their usual values */
    int64_t draw;  /**< so many legal ones at most, at random without repetition, shared among the strategies; 0: all */
    uint64_t seed; /**< of these: the same seed draws the same */
    int part, parts; /**< number `part` of `parts` of about the same size, for threads that share the work; 0: all */
} ptxgen_variant_options;
/**
 * Calls `visit` for every variant of a problem, in a fixed order, until it gives something else than 0.  The variant
 * lives until the visit returns.  The session holds nothing of it afterwards.  A problem may have millions.
 */
PTXGEN_API ptxgen_status ptxgen_variants(ptxgen_session *s, const ptxgen_problem *p,
                                         const ptxgen_variant_options *PTXGEN_OPTIONAL options,
                                         int (*visit)(const ptxgen_variant *v, void *user), void *PTXGEN_OPTIONAL user);
typedef struct ptxgen_variant_count {
    const char *strategy;
    const char *why_not;    /**< NULL, or why the strategy does not fit; then nothing is counted */
    int64_t legal, illegal; /**< combinations of values of its tunables */
} ptxgen_variant_count;
/** Calls `visit` for every strategy with how many variants ptxgen_variants() would visit (all of them: not what `draw`
 * says), in a fraction of the time. */
PTXGEN_API ptxgen_status ptxgen_variants_count(ptxgen_session *s, const ptxgen_problem *p,
                                               const ptxgen_variant_options *PTXGEN_OPTIONAL options,
                                               int (*visit)(const ptxgen_variant_count *c, void *user),
                                               void *PTXGEN_OPTIONAL user);
/** The id of what a plan with one pinned strategy is; "default" for others. Owned by the caller. */
PTXGEN_API char *ptxgen_plan_variant(const ptxgen_plan *plan);

/* ---- tuning ------------------------------------------------------------------------------------------------------ */
/*
 * A tuning file (docs/tuning.md) says which variant was the fastest for a problem, a device and sizes.  A plan made
 * with one gets a case for each entry that counts, for sizes within a factor of 1.41 of the entry's, before the usual
 * cases. Pinned strategies and settings win over it.
 */
typedef struct ptxgen_tuning_entry {
    const char *gpu, *arch, *variant;
    const int64_t *size;
    double seconds, default_seconds; /**< measured */
    int variants;                    /**< how many were measured */
} ptxgen_tuning_entry;
/** 16 hexadecimal digits that stand for what is computed: no names of problems, no pins. Owned by the caller. */
PTXGEN_API char *ptxgen_problem_key(ptxgen_session *s, const ptxgen_problem *p);
/** 1; 0 where `determinism: device` makes the combination tree follow from the sizes and the spec alone, so that there is
 * nothing to tune and entries do not count (operators that are exact in any order do not need that). */
PTXGEN_API int ptxgen_problem_tunable(const ptxgen_problem *p);
/** The text of a tuning file with the entry, in place of one for the same problem, device and sizes.  text: NULL for a
 * new file. Owned by the caller; NULL after a diagnostic when the text is no tuning file. */
PTXGEN_API char *ptxgen_tuning_merge(ptxgen_session *s, const ptxgen_problem *p, const char *PTXGEN_OPTIONAL text,
                                     const ptxgen_tuning_entry *entry);
/** Where tuning files are by default: PTXGEN_TUNING (a path, or "off"), else $XDG_DATA_HOME/ptxgen/tuning.yaml, else
 * $HOME/.local/share/ptxgen/tuning.yaml.  NULL: nowhere.  Owned by the caller. */
PTXGEN_API char *ptxgen_tuning_path(void);
/** A row for src/lower/tuning.def that makes a plan's tunables the default. Owned by the caller. */
PTXGEN_API char *ptxgen_tuning_row(const ptxgen_plan *plan, const char *evidence);

/* ---- programs ---------------------------------------------------------------------------------------------------- */
typedef struct ptxgen_compile_options {
    size_t struct_size;       /**< PTXGEN_COMPILE_OPTIONS_INIT sets it */
    int pipeline;             /**< 0 lean (default), 2, 3: LLVM's O2, O3 */
    const char *math_library; /**< path of a libdevice or libclc bitcode file; NULL: searched */
    int threads;              /**< 0: a thread for each case, ended before the call returns; 1: the caller's alone */
} ptxgen_compile_options;
/** PTX for all cases. The program is independent of the session. */
PTXGEN_API ptxgen_status ptxgen_compile(ptxgen_session *s, const ptxgen_plan *plan,
                                        const ptxgen_compile_options *PTXGEN_OPTIONAL options, ptxgen_program **out);
PTXGEN_API void ptxgen_program_destroy(ptxgen_program *PTXGEN_OPTIONAL program);
/** One combined PTX file. Owned by the caller, like all texts below. */
PTXGEN_API char *ptxgen_program_ptx(const ptxgen_program *program);
PTXGEN_API int ptxgen_program_case_count(const ptxgen_program *program);
PTXGEN_API const char *ptxgen_program_case_name(const ptxgen_program *program, int i);
/** PTX of one case; borrowed from the program.  Cases of stages are counted through, and called STAGE.CASE. */
PTXGEN_API const char *ptxgen_program_case_ptx(const ptxgen_program *program, int i);
PTXGEN_API char *ptxgen_program_manifest(const ptxgen_program *program);
PTXGEN_API char *ptxgen_program_header(const ptxgen_program *program);
PTXGEN_API char *ptxgen_program_tvm_ffi(const ptxgen_program *program); /**< C that makes it a function of tvm-ffi */
/** Machine code of case i (copied), a cubin of its PTX for arch, as "sm_90": headers and ptxgen_load() try it first. */
PTXGEN_API ptxgen_status ptxgen_program_add_code(ptxgen_program *program, int i, const char *arch, const void *code,
                                                 size_t bytes);
/** LLVM IR of the plan's kernels, after optimisation. */
PTXGEN_API char *ptxgen_plan_ir(ptxgen_session *s, const ptxgen_plan *plan,
                                const ptxgen_compile_options *PTXGEN_OPTIONAL options);

/* ---- running on the host ----------------------------------------------------------------------------------------- */
/** What a run is given. Pointers are host memory here, device memory in launch.h. */
typedef struct ptxgen_arguments {
    const int64_t *size;
    const void *const *input;
    void *const *output;
    const ptxgen_value *param; /**< NULL: their defaults */
} ptxgen_arguments;

/** One of them by its name; the macros make them. */
typedef enum ptxgen_kind { PTXGEN_KIND_INT, PTXGEN_KIND_REAL, PTXGEN_KIND_ARRAY } ptxgen_kind;
typedef struct ptxgen_argument {
    const char *name;
    ptxgen_kind kind;
    int64_t integer; /**< of a size or a param */
    double real;     /**< of a param of a float type, to which it is rounded */
    void *data;      /**< of an array */
    size_t bytes;    /**< that `data` has, at least what the sizes ask for; 0: not known, and not checked */
} ptxgen_argument;
/* clang-format off */
#define PTXGEN_INT(name, value) { name, PTXGEN_KIND_INT, value, 0, NULL, 0 }
#define PTXGEN_REAL(name, value) { name, PTXGEN_KIND_REAL, 0, value, NULL, 0 }
#define PTXGEN_ARRAY(name, data, bytes) { name, PTXGEN_KIND_ARRAY, 0, 0, (void *)(data), bytes }
/* clang-format on */
/** Every size and array, and the params that have no default, by name in any order.  *out belongs to the session. */
PTXGEN_API ptxgen_status ptxgen_arguments_create(ptxgen_session *s, const ptxgen_problem *p,
                                                 const ptxgen_argument *list, int count, const ptxgen_arguments **out);
/** From a spec's text to its results on the host, in one call.  name as in ptxgen_problem_from_string(). */
PTXGEN_API ptxgen_status ptxgen_run_string(ptxgen_session *s, const char *text, size_t length,
                                           const char *PTXGEN_OPTIONAL name, const ptxgen_argument *list, int count);

/** Number of elements of an array at the given sizes, or -1. */
PTXGEN_API int64_t ptxgen_array_elements(const ptxgen_array_info *a, const int64_t *size);

/** The sequential reference. */
PTXGEN_API ptxgen_status ptxgen_evaluate(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_arguments *args);
/**
 * For verifying: the outputs get the reference evaluated with floats carried in double, and bound[o] (a double per
 * element and field of output o, or NULL) how far a computation in the declared types, in any order of combination, may
 * be from them. 0: the bits must agree; infinity: nothing is known (a comparison may have gone either way, or a range
 * is left).
 */
PTXGEN_API ptxgen_status ptxgen_error_bound(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_arguments *args,
                                            double *const *PTXGEN_OPTIONAL bound);

/** The generated kernels as host code: the host executor. A case is compiled when a run first takes it. */
typedef struct ptxgen_host ptxgen_host;
PTXGEN_API ptxgen_status ptxgen_host_create(ptxgen_session *s, const ptxgen_plan *plan,
                                            const ptxgen_compile_options *PTXGEN_OPTIONAL options, ptxgen_host **out);
PTXGEN_API void ptxgen_host_destroy(ptxgen_host *PTXGEN_OPTIONAL host);
/** Run once; `modes` like "seed:7,race,weak" or NULL. PTXGEN_FINDING: the diagnostics hold the report. Control memory
 * is kept from run to run. */
PTXGEN_API ptxgen_status ptxgen_host_run(ptxgen_session *s, ptxgen_host *host, const ptxgen_arguments *args,
                                         const char *PTXGEN_OPTIONAL modes);
/** Name of the case that the last run took, or NULL. */
PTXGEN_API const char *ptxgen_host_case(const ptxgen_host *host);

/* Where structures with options start: with their size and the defaults. */
/* clang-format off */
#define PTXGEN_LAWS_OPTIONS_INIT { sizeof(ptxgen_laws_options), NULL, 0, NULL }
#define PTXGEN_PLAN_OPTIONS_INIT { sizeof(ptxgen_plan_options), NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, 0 }
#define PTXGEN_EXPLAIN_OPTIONS_INIT { sizeof(ptxgen_explain_options), NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, PTXGEN_FORM_TEXT, 0 }
#define PTXGEN_VARIANT_OPTIONS_INIT { sizeof(ptxgen_variant_options), NULL, NULL, 0, 0, 0, 0, 0, 0 }
#define PTXGEN_COMPILE_OPTIONS_INIT { sizeof(ptxgen_compile_options), 0, NULL, 0 }
/* clang-format on */

#ifdef __cplusplus
}
#endif
#endif
