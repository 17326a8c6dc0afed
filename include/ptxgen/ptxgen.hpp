/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ptxgen.hpp
 * The library for C++17: handles that give back what they hold, and exceptions in place of statuses.
 *
 *     ptxgen::session s;
 *     const std::vector<float> x{1, 2, 3};
 *     float sum = 0;
 *     s.run("kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n",
 *           {ptxgen::number("n", 3), ptxgen::array("x", x), ptxgen::array("sum", sum)});
 *     auto problem = s.problem("kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n");
 *     auto options = ptxgen::options<ptxgen_plan_options>();
 *     options.arch = "sm_90";
 *     std::puts(s.compile(s.plan(problem, &options)).ptx().c_str());
 *     std::printf("%g\n", sum);
 *
 * Every handle converts to the pointer of the C library, for the calls that are not here.  Problems and plans are those
 * pointers themselves, because they belong to the session, which must outlive their use.  A moved-from handle is empty.
 */
#ifndef PTXGEN_HPP
#define PTXGEN_HPP

#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "launch.h"

namespace ptxgen
{

/** A status that is not PTXGEN_OK, with the messages of the session. */
class error : public std::runtime_error
{
  public:
    error(ptxgen_status status, const std::string &text) : std::runtime_error(text), status_(status) {}
    ptxgen_status status() const noexcept { return status_; }

  private:
    ptxgen_status status_;
};

/** Options with their defaults. */
template <class T> T options()
{
    T o{};
    o.struct_size = sizeof o;
    return o;
}

/** Arguments by name. */
template <class T> ptxgen_argument number(const char *name, T value)
{
    static_assert(std::is_arithmetic_v<T>, "sizes and params are numbers");
    if constexpr (std::is_floating_point_v<T>)
        return PTXGEN_REAL(name, static_cast<double>(value));
    else
        return PTXGEN_INT(name, static_cast<int64_t>(value));
}
/** A scalar, a C array, or anything with data() and size(): with its bytes, so that a wrong size is an error. */
template <class T> ptxgen_argument array(const char *name, T &values)
{
    const void *data = nullptr;
    size_t bytes = 0;
    if constexpr (std::is_array_v<T> || std::is_arithmetic_v<T>) {
        data = &values;
        bytes = sizeof values;
    } else {
        data = values.data();
        bytes = values.size() * sizeof *values.data();
    }
    return PTXGEN_ARRAY(name, const_cast<void *>(data), bytes);
}
using arguments = std::initializer_list<ptxgen_argument>;

namespace detail
{
template <class T, void (*destroy)(T *)> struct destroyer {
    void operator()(T *p) const noexcept { destroy(p); }
};
template <class T, void (*destroy)(T *)> class handle
{
  public:
    handle() = default;
    explicit handle(T *p) noexcept : p_(p) {}
    operator T *() const noexcept { return p_.get(); }

  private:
    std::unique_ptr<T, destroyer<T, destroy>> p_;
};
inline std::string taken(char *text)
{
    const std::unique_ptr<char, destroyer<void, ptxgen_free>> owner(text);
    if (!text)
        throw std::bad_alloc();
    return text;
}
} // namespace detail

class program : public detail::handle<ptxgen_program, ptxgen_program_destroy>
{
  public:
    using handle::handle;
    std::string ptx() const { return detail::taken(ptxgen_program_ptx(*this)); }
    std::string manifest() const { return detail::taken(ptxgen_program_manifest(*this)); }
    std::string header() const { return detail::taken(ptxgen_program_header(*this)); }
    std::string tvm_ffi() const { return detail::taken(ptxgen_program_tvm_ffi(*this)); }
    /** False: there is no such case, or no such architecture. */
    bool add_code(int i, const std::string &arch, std::string_view code)
    {
        return ptxgen_program_add_code(*this, i, arch.c_str(), code.data(), code.size()) == PTXGEN_OK;
    }
};
using host = detail::handle<ptxgen_host, ptxgen_host_destroy>;
using gpu = detail::handle<ptxgen_gpu, ptxgen_gpu_close>;
using loaded = detail::handle<ptxgen_loaded, ptxgen_loaded_destroy>;

class session : public detail::handle<ptxgen_session, ptxgen_session_destroy>
{
  public:
    using log_function = std::function<void(ptxgen_log_level, std::string_view)>;

    session() : handle(made()) {}

    /** Throws what a call of the C library with this session returned. */
    void check(ptxgen_status status) const
    {
        if (status == PTXGEN_OK)
            return;
        std::string text = messages();
        ptxgen_diagnostics_clear(*this);
        throw error(status, text.empty() ? ptxgen_status_text(status) : text);
    }
    std::string messages(bool colour = false) const { return detail::taken(ptxgen_diagnostics_text(*this, colour)); }
    /** An exception that the function throws is lost: it would pass through C. */
    void log(ptxgen_log_level most, log_function function)
    {
        log_ = std::make_unique<log_function>(std::move(function));
        ptxgen_session_log(*this, most, *log_ ? call_log : nullptr, log_.get());
    }

    ptxgen_problem *problem(std::string_view text, const char *name = nullptr) const
    {
        return get<ptxgen_problem *>(ptxgen_problem_from_string, text.data(), text.size(), name);
    }
    ptxgen_problem *problem_file(const std::string &path) const
    {
        return get<ptxgen_problem *>(ptxgen_problem_from_file, path.c_str());
    }
    ptxgen_plan *plan(const ptxgen_problem *p, const ptxgen_plan_options *o = nullptr) const
    {
        return get<ptxgen_plan *>(ptxgen_plan_create, p, o);
    }
    ptxgen::program compile(const ptxgen_plan *plan, const ptxgen_compile_options *o = nullptr) const
    {
        return ptxgen::program(get<ptxgen_program *>(ptxgen_compile, plan, o));
    }
    ptxgen::host compile_host(const ptxgen_plan *plan, const ptxgen_compile_options *o = nullptr) const
    {
        return ptxgen::host(get<ptxgen_host *>(ptxgen_host_create, plan, o));
    }
    const ptxgen_arguments *named(const ptxgen_problem *p, arguments list) const
    {
        return get<const ptxgen_arguments *>(ptxgen_arguments_create, p, list.begin(), static_cast<int>(list.size()));
    }
    void run(ptxgen_host *host, const ptxgen_arguments *args, const char *modes = nullptr) const
    {
        check(ptxgen_host_run(*this, host, args, modes));
    }
    void run(std::string_view spec, arguments list, const char *name = nullptr) const
    {
        check(ptxgen_run_string(*this, spec.data(), spec.size(), name, list.begin(), static_cast<int>(list.size())));
    }
    ptxgen::gpu open(int ordinal = PTXGEN_GPU_CURRENT) const
    {
        return ptxgen::gpu(get<ptxgen_gpu *>(ptxgen_gpu_open, ordinal));
    }
    ptxgen::loaded load(ptxgen_gpu *gpu, const ptxgen_problem *p, const ptxgen_jit_options *o = nullptr) const
    {
        return ptxgen::loaded(get<ptxgen_loaded *>(ptxgen_jit, gpu, p, o));
    }
    void launch(ptxgen_loaded *loaded, const ptxgen_arguments *args, ptxgen_stream stream = nullptr) const
    {
        check(ptxgen_launch(*this, loaded, args, stream, nullptr));
    }

  private:
    static ptxgen_session *made()
    {
        ptxgen_session *s = nullptr;
        if (ptxgen_session_create(&s) != PTXGEN_OK)
            throw std::bad_alloc();
        return s;
    }
    template <class T, class F, class... A> T get(F function, A... rest) const
    {
        T out = nullptr;
        check(function(*this, rest..., &out));
        return out;
    }
    static void call_log(ptxgen_log_level level, const char *text, void *function) noexcept
    {
        try {
            (*static_cast<log_function *>(function))(level, text);
        } catch (...) {
        }
    }
    std::unique_ptr<log_function> log_; // where it is known to the C library, also after a move
};

} // namespace ptxgen
#endif
