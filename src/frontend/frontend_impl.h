/* SPDX-License-Identifier: Apache-2.0 */
/* frontend_impl.h - what the files of this folder share.  Nobody else includes it.
 *
 *   text of a scalar --expr_lex--> tokens --expr_parse--> struct ast --expr_type--> struct expr
 *   YAML tree --schema--> known keys --problem*--> struct builder --> struct problem
 *
 * Errors are reported where they are found and building goes on with a poisoned part (NULL for expressions), so that
 * one mistake is one message and all mistakes of a file are found in one run.
 */
#ifndef PTXGEN_FRONTEND_IMPL_H
#define PTXGEN_FRONTEND_IMPL_H

#include "base/session.h"
#include "frontend/problem/problem.h"
#include "frontend/yaml/yaml_doc.h"

#include <string.h>

/* ---- where an expression's text comes from ---- */

/* Text of an expression: a YAML scalar of the user, or a row of operators.def (then every byte is at `fixed`). */
struct source {
    const char *text;
    uint32_t length;
    const struct ynode *node; /* NULL: built-in text */
    struct span fixed;
};
struct source source_of(const struct ynode *scalar);
struct source source_row(const char *text, uint32_t length, struct span at);
struct span source_span(const struct source *s, uint32_t from, uint32_t to);

/* ---- tokens ---- */

enum token_kind { TOK_END, TOK_INT, TOK_FLOAT, TOK_NAME, TOK_KEYWORD, TOK_OP, TOK_BAD };
/* Keywords and operators are known by their text, `||` as "or", `&&` as "and", `!` as "not". */
struct token {
    enum token_kind kind;
    uint32_t from, to;
    const char *text; /* NAME, KEYWORD, OP: NUL-terminated */
    uint64_t integer;
    double number;
};
struct lexer {
    struct arena *arena;
    struct diags *diags; /* NULL: silent */
    struct source source;
    uint32_t at;
};
struct token lex_next(struct lexer *l);
bool name_is_identifier(const char *name);
bool name_is_keyword(const char *name);

/* ---- syntax trees ---- */

enum ast_kind {
    AST_INT,
    AST_FLOAT,
    AST_BOOL,
    AST_NAME,
    AST_FIELD,
    AST_OFFSET,
    AST_CALL,
    AST_UNARY,
    AST_BINARY,
    AST_IF
};

/* Of one expression, of parentheses and prefixes, and of a let with the lets in it written out: everything that walks
 * expressions recurses through lets. */
enum { AST_DEPTH_MAX = 512, NEST_MAX = 512, LET_DEPTH_MAX = 2048 };

/* Types while typing: an enum ty, or one of these. */
enum {
    T_ANY = -1,       /* no wish */
    T_POISON = -2,    /* an error was or will be reported */
    T_LIT_INT = -3,   /* only integer literals: any numeric type, else i32 */
    T_LIT_LONG = -4,  /* the same, with a literal that i32 cannot hold: else i64 */
    T_LIT_FLOAT = -5, /* only literals: any float type, else f32 */
    T_UNKNOWN = -6,   /* not looked at yet */
};

struct ast {
    enum ast_kind kind;
    struct span at;    /* whole expression */
    struct span op_at; /* operator, name after a dot, name of a call */
    int op;            /* enum unary, enum binary; AST_BOOL: the value */
    int depth;
    int peeked;       /* memo of the type of this tree, see expr/type.c */
    const char *name; /* NAME, FIELD, CALL */
    uint64_t integer;
    double number;
    int noffsets;
    int32_t offset[OFFSET_MAX + 1];
    int nargs, cap_args;
    struct ast **arg;
};

/* NULL after a syntax error (reported). */
struct ast *expr_parse(struct arena *a, struct diags *d, const struct source *source);
const char *binary_text(enum binary op);
const char *unary_text(enum unary op);

/* ---- building a problem ---- */

struct let_slot {
    const char *name;
    struct ast *ast;
    int type;               /* enum ty, T_LIT_* for a let that takes the type of its use, T_POISON */
    int instance[TY_COUNT]; /* 1 + number in the table's let for each type it was used at; 0: none */
    int depth;              /* with the lets in it written out */
    struct span at;
    int nfields; /* a state: first + f is the number of field f in the table's let; 0: a scalar */
    const char *const *field_name;
    const enum ty *field;
    int first;
    unsigned takes, tried; /* bits by type: literals_take(), and whether it has been asked */
    unsigned allows;       /* what the place of the let allows: SC_INPUT, … */
    bool used;
};
/* Named expressions, of the problem or of one operator: as written, and as typed for their uses. */
struct let_table {
    enum expr_kind kind; /* EX_LET, EX_OP_LET */
    struct let_slot *slot;
    int nslots, cap_slots;
    struct let *let;
    unsigned *axes; /* of each let: axes of the space that its value varies along */
    int nlets, cap_lets, cap_axes;
};

/* What only building asks of a param. */
struct param_slot {
    struct span at;
    bool used;
};

/* What expressions do with a name, as far as their tokens tell: roles are known before expressions are typed.  In this order:
 * read its value, at(x, …), gather(…, x, …), sum(f, …), gather(x, …), max(f, …), which does not go over f. */
enum { AS_VALUE = 1, AS_TABLE = 2, AS_OFFSETS = 4, AS_SUMMED = 8, AS_GATHERED = 16, AS_FOLDED = 32 };
struct mention {
    const char *name;
    unsigned as;
};

/* What at() asks of a size. */
struct least {
    int size;
    int64_t value;
};

/* An entry of `operators`. */
struct own_op {
    const char *name;
    const struct op *op; /* NULL: in error */
    struct span at;
    bool used;
};

struct builder {
    struct ptxgen_session *s;
    struct arena *a;
    struct diags *d;
    const struct ynode *root;
    struct problem *p;

    struct dimension *size;
    int nsizes, cap_sizes;
    struct input *input;
    int ninputs, cap_inputs;
    struct prog_param *param;
    struct param_slot *param_slot;
    int nparams, cap_params, cap_param_slots;
    struct let_table lets;
    struct reduction *reduction;
    int *map_type; /* per reduction: type of a scalar map before it was widened to the accumulator, else T_ANY */
    int nreductions, cap_reductions, cap_map_types;
    bool incomplete; /* an input is in error: no complaints that follow from it */
    bool open_sizes; /* a dimension of the array that is being read may be one that nothing else has */
    bool flat;       /* a map of some elements, which is a scan of the whole array */
    bool named;      /* several named reductions or scans */
    bool quiet;      /* not all of it is the user's: no warnings of inputs that nothing uses */
    bool binned;     /* the dimensions that `by` adds are known */
    struct output *output;
    const struct ynode **output_node;
    int noutputs, cap_outputs, cap_output_nodes;
    struct mention *mention;
    int nmentions, cap_mentions;
    struct least *least;
    int nleast, cap_least;
    struct own_op *own_op;
    int nown_ops, cap_own_ops;
    struct gatherer *gatherer;
    int ngatherers, cap_gatherers;
    int nown; /* dimensions of the space as the spec has them, … */
    struct prog_dim own[PROG_RANK_MAX];
    int own_axis[PROG_RANK_MAX]; /* … and the axis that each one is, or is a part of */
    struct prog_dim segments;    /* with offsets: the number of segments */
    const struct expr *starts;   /* bool, of segments that begin where it holds; NULL: there are none, or an error */
};

/* ---- scopes and typing ---- */

enum {
    SC_INPUT = 1,     /* inputs at the element */
    SC_INVARIANT = 2, /* inputs and lets that do not vary along reduced dimensions; index() of the others */
    SC_OFFSETS = 4,   /* x[-1] */
    SC_LET = 8,
    SC_INDEX = 16,
    SC_STATE = 32,     /* r, s, names of reductions and scans */
    SC_TOTAL = 64,     /* total, NAME.total */
    SC_OUTPUT = 128,   /* names of outputs (reductions beside a stencil) */
    SC_OPERATOR = 256, /* a, b and the operator's lets */
    SC_GATHER = 512,
    SC_PARAM = 1024, /* params and sizes */
    SC_LAST = 4096,  /* last */
    SC_ROW = 2048,   /* text of operators.def: none of the user's names, but highest, lowest, … */
};

/* The dimensions that sums around an expression go over, the innermost first. */
struct summing {
    int size;
    const struct summing *outer;
};

struct scope {
    struct builder *b;
    unsigned allows;
    const char *place;         /* "the combine of an operator", for messages */
    const struct op *op;       /* SC_OPERATOR */
    struct let_table *op_lets; /* SC_OPERATOR */
    int lets_seen;             /* inside a let: 1 + how many come before it; 0: all are seen */
    int state;                 /* SC_ROW | SC_STATE: the reduction called r; else -1 */
    const char *neighbour;     /* inside gather: name of the neighbour's value */
    int neighbour_input;
    const struct summing *sums;
};

enum symbol_kind {
    SYM_NONE,
    SYM_INPUT,
    SYM_PARAM,
    SYM_SIZE,
    SYM_LET,
    SYM_OP_LET,
    SYM_LEFT,
    SYM_RIGHT,
    SYM_STATE,
    SYM_TOTAL,
    SYM_OUTPUT,
    SYM_NEIGHBOUR,
    SYM_EXTREME,
    SYM_LAST
};
struct symbol {
    enum symbol_kind kind;
    int which;
    int type;    /* of a scalar: enum ty or T_LIT_*; T_POISON: of something that was reported; with fields: T_ANY */
    int nfields; /* 0: a scalar */
    const char *const *field_name;
    const enum ty *field_type;
};
/* What a name means; kind SYM_NONE when nothing has that name. Reports nothing. */
struct symbol scope_lookup(const struct scope *sc, const char *name);

/* The symbol under a name, offset or field expression; *field: which field, -1 none.  false: reported (unless quiet). */
struct reference {
    struct symbol symbol;
    int field;
    int noffsets;
    int32_t offset[OFFSET_MAX];
};
bool reference_of(const struct scope *sc, const struct ast *e, struct reference *out, bool quiet);

/* Type of a tree without reporting: enum ty, T_LIT_*, or T_POISON. */
int type_peek(const struct scope *sc, struct ast *e);
enum ty type_default(int peeked); /* literals: i32, i64, f32 */
/* Typed expression of exactly type `want` (T_ANY: its own). NULL after an error (reported). */
const struct expr *type_build(const struct scope *sc, struct ast *e, int want);
/* The same, widening what is not of type `want` where that keeps every value. */
const struct expr *type_build_widened(const struct scope *sc, struct ast *e, enum ty want);
/* contract.c: with `contract: true`, the operation as it is computed; the value of a conversion to the type that it has; a
 * sum over a dimension; what maps give to an operator. */
const struct expr *contract_binary(const struct scope *sc, struct expr *e);
const struct expr *contract_converted(const struct builder *b, const struct expr *e);
void contract_sum(const struct builder *b, struct expr *e);
void contract_maps(const struct builder *b, struct reduction *r);
/* Does every value of `from` exist in `to`? */
bool type_widens(enum ty from, enum ty to);
struct expr *expr_new(struct arena *a, enum expr_kind kind, enum ty type, struct span at);
struct expr *expr_cast(struct arena *a, const struct expr *e, enum ty to);
struct expr *expr_binary(struct arena *a, enum binary op, enum ty type, const struct expr *left,
                         const struct expr *right);
struct expr *expr_leaf(struct arena *a, enum expr_kind kind, enum ty type, int which, int field, struct span at);
struct expr *expr_choose(struct arena *a, const struct expr *condition, const struct expr *yes, const struct expr *no);
const struct expr *call_build(const struct scope *sc, struct ast *e, int want);
int call_peek(const struct scope *sc, struct ast *e);
/* at(x, …) and at(x, …).field */
bool at_is(struct ast *e);
int at_peek(const struct scope *sc, struct ast *e);
const struct expr *at_build(const struct scope *sc, struct ast *e);
/* i64, from any integer. */
const struct expr *index_build(const struct scope *sc, struct ast *e);
void build_least(struct builder *b);
/* gather(x, …) and gather(x, …).field */
bool gather_is(const struct ast *e);
int gather_peek(const struct scope *sc, struct ast *e);
const struct expr *gather_build(const struct scope *sc, struct ast *e, int want);
/* Has what it combines several fields?  Their names. */
bool gather_names(const struct scope *sc, const struct ast *e, int *nfields, const char *const **names);
/* All fields of such a gather; NULL: reported. */
const struct op *gather_state(const struct scope *sc, struct ast *e, const struct expr **field);
/* sum(f, …) and its kin */
bool sum_is(const char *function); /* sum, product, least, … */
int sum_peek(const struct scope *sc, struct ast *e);
const struct expr *sum_build(const struct scope *sc, struct ast *e);
bool sum_runs(const struct scope *sc, int size); /* Does a sum around the expression go over it? */
/* Do sums go over the dimension?  Then it is none of the iteration space. */
bool sum_takes(const struct builder *b, struct prog_dim dim);
void sum_hint(const struct builder *b, struct diag *m, const char *dimension); /* …, if so */
void sum_hint_unknown(const struct builder *b, struct diag *m);                /* Is there a sum over something else? */
/* An input with such dimensions, where a sum around goes over each of them; else reports unless quiet. */
bool sum_permits(const struct scope *sc, int input, struct span at, bool quiet);
/* Its value there, offsets from the element added. */
const struct expr *sum_read(const struct scope *sc, const struct expr *read);
const char *sum_name(int fold);
void find_mentions(struct builder *b);
void mention(struct builder *b, const char *name, unsigned as);
unsigned mentioned(const struct builder *b, const char *name);
int type_unify(int a, int b); /* one of the types, or T_POISON */
const struct expr *literal_int(const struct scope *sc, struct span at, uint64_t magnitude, bool negative, enum ty t,
                               bool quiet);
/* Defines a let from its text; reports errors of its value. */
void let_define(const struct scope *sc, struct let_table *t, const char *name, struct ast *ast, struct span at);
const struct expr *let_use(const struct scope *sc, struct let_table *t, int which, int want, struct span at);
/* A field of a let of the problem that is a state. */
const struct expr *let_field(const struct scope *sc, int which, int field, struct span at);
const char *type_text(int t); /* "f32", "an integer literal" */

/* Axes of the iteration space that the value varies along, as bits. */
unsigned expr_axes(const struct builder *b, const struct expr *e);
unsigned input_axes(const struct builder *b, const struct input *in);
unsigned reduced_axes(const struct builder *b);

/* ---- parts of problem_build ---- */

/* The tree of a text; NULL: reported. */
const struct ynode *builder_root(struct ptxgen_session *s, const char *file, const char *text, size_t length);
struct builder *builder_new(struct ptxgen_session *s, const struct ynode *root);
const struct problem *builder_problem(struct builder *b, const char *default_name); /* NULL: reported */

void build_header(struct builder *b, const char *default_name);
void build_inputs(struct builder *b);
void build_space(struct builder *b);
/* The dimensions of the space as the spec has them; and why it lacks one: sums go over it, or at() alone reads it. */
const char *space_text(const struct builder *b);
void space_hint(const struct builder *b, struct diag *m, const char *name);
void build_segments(struct builder *b);
/* What says at each element whether a segment begins: an expression, or flags of several dimensions; NULL: none. */
const struct ynode *starts_node(const struct builder *b);
void build_params(struct builder *b);
void build_over(struct builder *b);
/* More than SPACE_MAX dimensions: those that are treated alike become one (merge.c).  False: still too many, which is
 * reported.  At the end, what is known of the sizes that they became. */
bool build_merged(struct builder *b);
/* The index along a dimension that the spec has. */
const struct expr *own_index(struct builder *b, int own, struct span at);
void build_joined(struct builder *b);
void build_reductions(struct builder *b, const struct ynode *entries);
void build_reduction_single(struct builder *b);
/* Types and shapes of the outputs, before params: a dimension that only an output at computed places has is a size. */
void build_output_arrays(struct builder *b);
void build_output_types(struct builder *b);
void build_output_values(struct builder *b, enum moment moment);
void build_boundary(struct builder *b);
void build_iterate(struct builder *b);
void build_steps(struct builder *b, const struct ynode *n);
void build_reads(struct builder *b);
void build_starts(struct builder *b);
/* `by`: how many indices; after lets, the indices; the shape of an output that then has bins (false: reported); and
 * what is asked of the reductions. */
void build_by(struct builder *b);
void build_indices(struct builder *b);
bool by_shape(struct builder *b, struct output *out);
void check_by(struct builder *b);
/* An index of any integer type, as i64; NULL: reported. */
const struct expr *bin_index(struct builder *b, const struct ynode *node);
/* Scans with `by` (scan_bins.c): is it one; how many bins there are, where the spec says so; its index; the shape of an
 * output with a total of each bin (false: reported); and what is asked of it, once all values are known. */
bool scans_bins(const struct builder *b);
void build_bins(struct builder *b);
void build_scan_bin(struct builder *b);
bool bin_totals_shape(struct builder *b, struct output *out);
void check_scan_bins(struct builder *b);
/* After the values of outputs: conditions become scans, and operators start anew with segments.  Before: a shape fits `where`. */
void build_where(struct builder *b);
bool kept_shape(struct builder *b, const struct output *out, const struct ynode *node);
/* Outputs at computed places (placed.c): is this one, and its places, where sc is that of its values. */
bool output_has_place(const struct ynode *node);
void build_places(const struct scope *sc, struct output *out, const struct ynode *node);
/* Expressions of a mapping with exactly the fields of the output's structures; what: "value", for messages. */
void structure_values(const struct scope *sc, const struct output *out, const struct ynode *node, const char *what,
                      const struct expr **value);
void drop_plain_places(struct builder *b); /* those that the shapes say, once the dimensions of the space are known */
void build_placed(struct builder *b);      /* once all outputs are known: what places cannot be together with */
const struct ynode *interior_of(const struct builder *b); /* where the boundary `interior` stands; NULL: nowhere */
/* The finished problem as a reduction by places, where it is one: problem.binned. */
void build_binned(struct builder *b);
/* Has the output a count in place of a value? */
bool output_counts(const struct ynode *node);
/* May the name not be the user's?  Names that the frontend makes begin like this. */
#define RESERVED "names that begin with ptxgen_ are ptxgen's own"
static inline bool name_is_reserved(const char *name) { return !strncmp(name, "ptxgen_", 7); }
#define KEPT_VALUE "ptxgen_value_" /* before the name of an output: its values, in a stage before that of `where` */
/* The name that the user gave to such an output, or to any other one. */
static inline const char *kept_own_name(const char *name)
{
    const size_t n = strlen(KEPT_VALUE);
    return strncmp(name, KEPT_VALUE, n) ? name : name + n;
}
/* Is there an output with `where`? */
bool keeps_some(const struct builder *b);
/* An expression of the operator, its lets written out, with states in place of a and b.  *left: how much may be written
 * out; below 0 afterwards where that was too little. */
enum { WRITTEN_OUT = 4096 };
const struct expr *with_states(const struct builder *b, const struct op *op, const struct expr *e,
                               const struct expr *const *x, const struct expr *const *y, int *left);
/* What the spec is, whose word for its kind is `node`: a map of some elements is a scan that combines nothing. */
int kept_kind(struct builder *b, const struct ynode *node, int kind);
/* bool: the element is the last one of its segment, in the order of the scan; NULL: reported. */
const struct expr *last_build(struct builder *b, struct span at);
void warn_unused_lets(struct builder *b, const struct let_table *t);

/* Texts of types and shapes. */
bool parse_array(struct builder *b, const struct ynode *node, const char *name, bool is_output, struct prog_array *out);
/* When e is a structure as a whole (an array of structures, a state): its fields of these names, as trees. */
bool structure_fields(const struct scope *sc, struct ast *e, int nfields, const char *const *names, struct ast **out);
/* A dimension by itself; one that no array has is a new size.  False: reported. */
bool parse_dimension(struct builder *b, const struct ynode *scalar, struct prog_dim *out);
enum ty parse_type_name(struct builder *b, const struct ynode *scalar);
int size_find(const struct builder *b, const char *name);
int input_find(const struct builder *b, const char *name);
int param_find(const struct builder *b, const char *name);
int output_find(const struct builder *b, const char *name);
/* Matches the dimensions of an array with the axes of the space; false when one has no axis (axis -1 there). */
bool match_axes(const struct builder *b, const struct prog_array *array, int *axis);
/* The same with the dimensions of the space as the spec has them. */
bool match_own(const struct builder *b, const struct prog_array *array, int *axis);
/* The same type and shape? */
bool array_same(const struct prog_array *x, const struct prog_array *y);
void dim_print(const struct builder *b, struct prog_dim d, struct str *out);

/* How to write what the language does not have under this word; NULL: not known. */
const char *way_out(const char *place, const char *word);
bool node_integer(struct builder *b, const struct ynode *n, int64_t lo, int64_t hi, int64_t *out);
bool node_is(struct builder *b, const struct ynode *n, enum ynode_kind kind, const char *what); /* reports */
bool node_name(struct builder *b, const struct ynode *n, const char *what); /* an identifier, reports */
bool node_bool(struct builder *b, const struct ynode *n, bool otherwise);
struct ast *node_expr(struct builder *b, const struct ynode *n); /* NULL: reported */
bool lets_fit(struct builder *b, const struct ynode *lets);      /* not too many; reports */
void warn_hidden(struct builder *b, const char *name, struct span at, const char *what);

/* ---- schema ---- */

enum { K_REDUCE = 1 << KIND_REDUCE, K_SCAN = 1 << KIND_SCAN, K_STENCIL = 1 << KIND_STENCIL, K_ALL = 7 };
enum schema_table {
    ST_TOP,
    ST_INPUT,
    ST_PARAM,
    ST_OPERATOR,
    ST_REDUCTION,
    ST_SEGMENTS,
    ST_ITERATE,
    ST_OUTPUT,
    ST_ASSUME,
    ST_STAGES,
    ST_LOOP,
    ST_COUNT
};
/* Checks the keys of a mapping against the rows of its table: unknown, missing, not for this kind, wrong sort of value.
 * kinds: the spec's kind as a bit, or K_ALL when it is not known. */
void schema_check(struct diags *d, enum schema_table table, const struct ynode *mapping, unsigned kinds);
/* The value under a key if its sort is one the schema allows there, else NULL (reported by schema_check). */
const struct ynode *schema_get(const struct ynode *mapping, enum schema_table table, const char *key);

extern const char *const boundary_names[];
int boundary_count(void);

#include "frontend/operators_impl.h"

#endif
