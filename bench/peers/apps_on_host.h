/* SPDX-License-Identifier: Apache-2.0 */
/* apps_on_host.h - CUDA's words for a C++ compiler, so that a dry run can run the kernels of apps_by_hand.cuh.
 *
 * Blocks run one after the other.  The threads of a block are contexts of one thread of the host, which change at
 * __syncthreads() only; so nothing here shows a missing barrier.
 */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__ static
#define __shared__ static

struct place {
    int x, y, z;
};
static place blockIdx, threadIdx, blockDim, gridDim;
static ucontext_t scheduler, *running;

static void __syncthreads() { swapcontext(running, &scheduler); }

template <class T> static T added(T *to, T value)
{
    T old = *to;
    *to += value;
    return old;
}
template <class T> static T atomicAdd(T *to, T value) { return added(to, value); }
static void atomicMax(int *to, int value) { *to = std::max(*to, value); }
static int atomicCAS(int *to, int expected, int value)
{
    int old = *to;
    if (old == expected)
        *to = value;
    return old;
}
static int __float_as_int(float x)
{
    int bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static float rsqrtf(float x) { return 1 / sqrtf(x); }

struct thread {
    ucontext_t context;
    std::vector<char> stack;
    bool over;
};
static void (*body)(void *);
static void *body_data;

static void begin(unsigned low, unsigned high)
{
    thread *self = (thread *)((size_t)high << 32 | low);
    body(body_data);
    self->over = true;
}

static void run_block(std::vector<thread> &threads)
{
    for (thread &t : threads) {
        t.over = false;
        getcontext(&t.context);
        t.context.uc_stack.ss_sp = t.stack.data(), t.context.uc_stack.ss_size = t.stack.size();
        t.context.uc_link = &scheduler;
        size_t self = (size_t)&t;
        makecontext(&t.context, (void (*)())begin, 2, (unsigned)self, (unsigned)(self >> 32));
    }
    for (bool some = true; some;) {
        some = false;
        for (size_t i = 0; i < threads.size(); i++)
            if (!threads[i].over) {
                threadIdx = { (int)i % blockDim.x, (int)i / blockDim.x, 0 };
                running = &threads[i].context;
                swapcontext(&scheduler, running);
                some = true;
            }
    }
}

/* The arguments as cuLaunchKernel() takes them. */
template <class... A, size_t... I> static void launch(void (*kernel)(A...), void **args, std::index_sequence<I...>)
{
    struct call {
        void (*kernel)(A...);
        void **args;
    } what = { kernel, args };
    body = [](void *data) { ((call *)data)->kernel(*(A *)((call *)data)->args[I]...); };
    body_data = &what;
    std::vector<thread> threads(blockDim.x * blockDim.y);
    for (thread &t : threads)
        t.stack.resize(32 << 10);
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
            run_block(threads);
}
template <class... A> static void on_host(void (*kernel)(A...), const int *shape, void **args)
{
    gridDim = { shape[0], shape[1], 1 }, blockDim = { shape[2], shape[3], 1 };
    launch(kernel, args, std::index_sequence_for<A...>());
}
