/* SPDX-License-Identifier: Apache-2.0 */
/* wrapper.cc - ptxgen.hpp: results, exceptions, moves, the log; run under valgrind, which sees what is not given back. */
#include <array>
#include <cstdio>
#include <cstring>

#include <ptxgen/ptxgen.hpp>

static int passed, failed;
static void expect(bool ok, const char *what)
{
    passed += ok;
    failed += !ok;
    if (!ok)
        std::printf("%s\n", what);
}
#define EXPECT(condition) expect(condition, #condition)

/* Where options start, in C++ as well. */
static const ptxgen_laws_options laws_options = PTXGEN_LAWS_OPTIONS_INIT;
static const ptxgen_plan_options plan_options = PTXGEN_PLAN_OPTIONS_INIT;
static const ptxgen_explain_options explain_options = PTXGEN_EXPLAIN_OPTIONS_INIT;
static const ptxgen_variant_options variant_options = PTXGEN_VARIANT_OPTIONS_INIT;
static const ptxgen_compile_options compile_options = PTXGEN_COMPILE_OPTIONS_INIT;
static const ptxgen_jit_options jit_options = PTXGEN_JIT_OPTIONS_INIT;
template <class T> static bool starts_as(const T &o)
{
    return o.struct_size == sizeof o && ptxgen::options<T>().struct_size == sizeof o;
}

template <class F> static ptxgen::error thrown(F f)
{
    try {
        f();
    } catch (const ptxgen::error &e) {
        return e;
    }
    return { PTXGEN_OK, "" };
}

static const char spec[] = "kind: reduce\ninputs: {x: 'f32[n]'}\nparams: {k: f32}\nmap: k * x\noperator: add\n"
                           "outputs: {sum: f32}\nstrategy: {name: reduce.block}\n";

static void on_the_host(const ptxgen::session &s)
{
    const std::vector<float> x{ 1, 2, 3 };
    float sum = 0;
    s.run(spec,
          { ptxgen::number("n", 3), ptxgen::number("k", 2.0f), ptxgen::array("x", x), ptxgen::array("sum", sum) });
    EXPECT(sum == 12);
    auto e = thrown([&] {
        s.run(spec,
              { ptxgen::number("n", 4), ptxgen::number("k", 1), ptxgen::array("x", x), ptxgen::array("sum", sum) });
    });
    EXPECT(e.status() == PTXGEN_USAGE && std::strstr(e.what(), "'x' has 12 bytes"));
    e = thrown([&] { s.problem("kind: reduse\n", "wrong"); });
    EXPECT(e.status() == PTXGEN_INVALID && std::strstr(e.what(), "reduce"));
    EXPECT(s.messages().empty());
    e = thrown([&] { s.problem_file("/no/such.yaml"); });
    EXPECT(e.status() == PTXGEN_IO);
}

static void handles_move(const ptxgen::session &s)
{
    auto options = ptxgen::options<ptxgen_plan_options>();
    options.arch = "sm_90";
    auto *problem = s.problem(spec);
    auto *plan = s.plan(problem, &options);
    ptxgen::program first = s.compile(plan), second = std::move(first);
    EXPECT(!first && second.ptx().find(".target sm_90") != std::string::npos);
    EXPECT(!second.manifest().empty() && !second.header().empty());
    first = s.compile(plan);
    second = std::move(first);
    const ptxgen::host host = s.compile_host(plan);
    const std::array<float, 2> x{ 1, 2 };
    float sum[1] = { 0 };
    s.run(host, s.named(problem, { ptxgen::number("n", 2), ptxgen::number("k", 1), ptxgen::array("x", x),
                                   ptxgen::array("sum", sum) }));
    EXPECT(sum[0] == 3);
}

static void on_a_gpu(const ptxgen::session &s)
{
    const ptxgen::gpu gpu = s.open(0);
    auto *problem = s.problem(spec);
    const ptxgen::loaded loaded = s.load(gpu, problem);
    void *x = nullptr, *sum = nullptr;
    s.check(ptxgen_gpu_alloc(s, gpu, 16, &x));
    s.check(ptxgen_gpu_alloc(s, gpu, 16, &sum));
    s.launch(loaded, s.named(problem, { ptxgen::number("n", 2), ptxgen::number("k", 1), PTXGEN_ARRAY("x", x, 0),
                                        PTXGEN_ARRAY("sum", sum, 0) }));
    ptxgen_gpu_free(gpu, x);
    ptxgen_gpu_free(gpu, sum);
    EXPECT(thrown([&] { s.open(99); }).status() == PTXGEN_USAGE);
}

int main()
{
    ptxgen::session s;
    std::string heard;
    s.log(PTXGEN_LOG_INFO, [&](ptxgen_log_level, std::string_view text) {
        heard += text;
        throw 1;
    });
    EXPECT(starts_as(laws_options) && starts_as(plan_options) && starts_as(explain_options));
    EXPECT(starts_as(variant_options) && starts_as(compile_options) && starts_as(jit_options));
    on_the_host(s);
    EXPECT(heard.find("prepared 1 case for the host") != std::string::npos);
    s.log(PTXGEN_LOG_INFO, nullptr);
    ptxgen::session moved = std::move(s);
    handles_move(moved);
    on_a_gpu(moved);
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
