"""What first kernels use beyond arithmetic: memory spaces, atomics, warps, device functions."""

import numpy as np
import pytest

from .conftest import launch, module_of, ptx_of

SOURCE = r"""
#include <cuda_fp16.h>
__constant__ float table[4] = {1, 2, 4, 8};
__device__ int counter = 5;
__device__ int* pointer = &counter;
struct Pair { char tag; double value; short extra; };
__device__ __noinline__ float helper(float x, int n, float* out) {
  float t[4];
  for (int i = 0; i < 4; i++) t[i] = x * i;
  *out = t[n & 3];
  return t[(n + 1) & 3];
}
extern "C" {
__global__ void spaces(float* out, int n) {
  __shared__ float s[32];
  float local[4];
  s[threadIdx.x] = 100 + threadIdx.x;
  for (int i = 0; i < 4; i++) local[i] = 200 + i + n;
  __syncthreads();
  int k = threadIdx.x & 3;
  const float* choices[4] = {s + threadIdx.x, local + k, table + k, out + 32};
  out[threadIdx.x] = *choices[(threadIdx.x + n) & 3];
}
__global__ void device_variable(int* out) { *pointer += 2; out[0] = counter; }
__global__ void by_value(Pair p, double* out, short* extra) {
  out[0] = p.value * p.tag;
  *extra = p.extra;
}
__global__ void calls(float* out) {
  float other;
  float r = helper(threadIdx.x, threadIdx.x, &other);
  out[threadIdx.x] = r * 1000 + other;
}
__global__ void vectors(float4* v, uchar4* c, double2* d, short* s) {
  float4 a = v[threadIdx.x];
  v[threadIdx.x] = make_float4(a.w, a.z, a.y, a.x);
  uchar4 b = c[threadIdx.x];
  c[threadIdx.x] = make_uchar4(b.y + 1, b.x, b.w, b.z);
  d[threadIdx.x].y = d[threadIdx.x].x + 0.5;
  s[threadIdx.x] = s[threadIdx.x] * 3 - 70;
}
__global__ void shuffles(int* out, int* ok) {
  int i = threadIdx.x, v = i * 10;
  out[i] = __shfl_down_sync(~0u, v, 3, 8);
  out[32 + i] = __shfl_up_sync(~0u, v, 2, 16);
  out[64 + i] = __shfl_xor_sync(~0u, v, 5);
  out[96 + i] = __shfl_sync(~0u, v, 9, 4);
  out[128 + i] = (int)__shfl_sync(~0u, 1ll << 40 | i, i ^ 1) ;
}
__global__ void votes(unsigned* out, int n) {
  unsigned i = threadIdx.x;
  out[i] = __ballot_sync(~0u, i % 3 == 0);
  out[32 + i] = __any_sync(~0u, i == n) + 2 * __all_sync(~0u, i < n);
  out[64 + i] = __match_any_sync(~0u, i / 5);
  out[96 + i] = __reduce_add_sync(~0u, i) + __reduce_max_sync(~0u, i * 7 % 32);
  if (i % 2) out[128 + i] = __activemask(); else out[128 + i] = 0;
}
__global__ void block_votes(int* out, int n) {
  int i = threadIdx.x;
  out[i] = __syncthreads_count(i < n) + 1000 * __syncthreads_or(i == n);
  out[i] += 10000 * __syncthreads_and(i < n);
}
__global__ void atomics(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
  int t = threadIdx.x;
  atomicAdd(i, t); atomicSub(i + 1, t); atomicMin(i + 2, -t); atomicMax(i + 3, t);
  atomicExch(i + 4, 7);
  atomicAnd(i + 5, ~t); atomicOr(i + 6, t); atomicXor(i + 7, t); atomicCAS(i + 8, 0, 40 + t);
  atomicInc(u, 10); atomicDec(u + 1, 10); atomicMax(u + 2, 0x80000000u + t);
  atomicAdd(l, 1ull << 33);
  atomicAdd(f, 0.5f); atomicAdd(d, 0.25);
  __shared__ int s; __shared__ float sf; __shared__ unsigned su;
  if (t == 0) { s = 1; sf = 0; su = 0; }
  __syncthreads();
  atomicAdd(&s, 2); atomicAdd(&sf, 1.0f); atomicInc(&su, 99);
  int old = atomicMax(i + 3, 0);
  __syncthreads();
  if (t == 0) { i[9] = s; i[10] = (int)sf; i[11] = su; i[12] = old; }
  int seen, want = i[13];
  do { seen = want; want = atomicCAS(i + 13, seen, seen + 3); } while (want != seen);
}
__global__ void functions(const float* x, float* out, int n) {
  int i = threadIdx.x;
  float a = x[i];
  float b = fabsf(a);
  float r[] = {expf(a), logf(b + 1), sinf(a * 100), cosf(a), tanhf(a), powf(b, 1.7f),
               rsqrtf(a * a + 1), sqrtf(b), erff(a), atan2f(a, 2), __expf(a), __sinf(a),
               fmodf(a, 0.7f), roundf(a * 3), cbrtf(a), log2f(b + 2)};
  for (int k = 0; k < 16; k++) out[k * n + i] = r[k];
}
__global__ void doubles(const double* x, double* out, int n) {
  int i = threadIdx.x;
  double a = x[i];
  double b = fabs(a);
  double r[] = {exp(a), log(b + 1), sin(a * 1e9), cos(a), a / 3, sqrt(b), tanh(a), pow(b, 1.7)};
  for (int k = 0; k < 8; k++) out[k * n + i] = r[k];
}
__global__ void halves(const half* x, half* out, half2* two) {
  int i = threadIdx.x;
  half a = x[i];
  out[i] = __float2half(__half2float(a) * 3.1f) + a * a;
  two[i] = __hmax2(__hfma2(two[i], two[i], __half2half2(a)), __float2half2_rn(0.25f));
  if (a > __float2half(0.5f)) out[i] = -a;
}
__global__ void prints(int* out) { printf("%d\n", out[0]); out[0] = clock() != 0; }
__global__ void named(int* out) {
  __shared__ int s[64];
  int warp = threadIdx.x / 32;
  if (warp < 2) {
    s[threadIdx.x] = threadIdx.x;
    asm volatile("bar.sync 3, 64;" ::: "memory");
    out[threadIdx.x] = s[63 - threadIdx.x];
  }
  __syncthreads();
  if (warp == 2) out[threadIdx.x] = s[threadIdx.x - 64];
}
__global__ void polls(int* out) {
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x < 32) { while (flag == 0) ; out[0] = flag; }
  else if (threadIdx.x == 40) flag = 9;
}
}
"""
i32 = np.int32


def ran(run, *arguments, **named):
    outcome = run(SOURCE, *arguments, **named)
    assert outcome.fault is None, outcome.fault
    return outcome


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_generic_pointers(run, n):
    out = np.zeros(33, np.float32)
    out[32] = 300
    counters = ran(run, "spaces", 1, 32, out, i32(n)).counters
    i = np.arange(32)
    choices = [100 + i, 200 + (i & 3) + n, 2.0 ** (i & 3), np.full(32, 300)]
    np.testing.assert_array_equal(out[:32], np.choose((i + n) & 3, choices))
    met = {(m.space, m.lanes) for m in counters.memory if m.access == "load" and m.lanes in (8, 16)}
    assert met == {("shared", 8), ("local", 8), ("global", 16)}


def test_device_variables_start_anew_at_each_launch(run):
    for _ in range(2):
        out = np.zeros(1, i32)
        ran(run, "device_variable", 1, 1, out)
        assert out[0] == 7
    module = module_of(SOURCE)
    assert {"table", "counter", "pointer"} <= set(module.globals_)
    assert module.globals_["table"].image.view(np.float32).tolist() == [1, 2, 4, 8]
    assert "spaces" in module.entries


def test_struct_by_value(run):
    pair = np.zeros((), np.dtype([("tag", "i1"), ("value", "f8"), ("extra", "i2")], align=True))
    pair["tag"], pair["value"], pair["extra"] = 3, 1.5, -9
    out, extra = np.zeros(1), np.zeros(1, np.int16)
    ran(run, "by_value", 1, 1, pair.tobytes(), out, extra)
    assert (out[0], extra[0]) == (4.5, -9)


def test_device_function(run):
    out = np.zeros(32, np.float32)
    ran(run, "calls", 1, 32, out)
    i = np.arange(32)
    np.testing.assert_array_equal(out, i * ((i + 1) & 3) * 1000 + i * (i & 3))


def test_vectors(run):
    rng = np.random.default_rng(0)
    v, d = rng.random((64, 4), np.float32), rng.random((64, 2))
    c, s = rng.integers(0, 256, (64, 4), np.uint8), rng.integers(-999, 999, 64).astype(np.int16)
    want = v[:, ::-1].copy(), c[:, [1, 0, 3, 2]] + np.array([1, 0, 0, 0], np.uint8), s * 3 - 70
    ran(run, "vectors", 1, 64, v, c, d, s)
    for got, wanted in zip((v, c, s), want, strict=True):
        np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(d[:, 1], d[:, 0] + 0.5)


def test_shuffles(run):
    out, ok = np.zeros(160, i32), np.zeros(1, i32)
    ran(run, "shuffles", 1, 32, out, ok)
    i = np.arange(32)
    down = np.where(i % 8 + 3 < 8, i + 3, i)
    up = np.where(i % 16 >= 2, i - 2, i)
    np.testing.assert_array_equal(
        out.reshape(5, 32), [down * 10, up * 10, (i ^ 5) * 10, (i // 4 * 4 + 1) * 10, i ^ 1]
    )


def test_votes(run):
    out = np.zeros(160, np.uint32)
    ran(run, "votes", 1, 32, out, i32(40))
    i = np.arange(32)
    rows = out.reshape(5, 32)
    assert (rows[0] == sum(1 << k for k in range(0, 32, 3))).all()
    assert (rows[1] == 2).all()
    np.testing.assert_array_equal(
        rows[2], [sum(1 << int(k) for k in i[i // 5 == x // 5]) for x in i]
    )
    assert (rows[3] == i.sum() + 31).all()
    np.testing.assert_array_equal(rows[4], np.where(i % 2, 0xAAAAAAAA, 0))


@pytest.mark.parametrize(("n", "wanted"), [(10, 10 + 1000), (70, 70 + 10000)])
def test_block_votes(run, n, wanted):
    out = np.zeros(70, i32)
    ran(run, "block_votes", 1, 70, out, i32(n))
    assert (out == wanted).all()


def test_atomics(run):
    i, u = np.zeros(14, i32), np.zeros(3, np.uint32)
    i[5], long, single, double = -1, np.zeros(1, np.uint64), np.zeros(1, np.float32), np.zeros(1)
    ran(run, "atomics", 4, 64, i, u, long, single, double)
    total = 4 * sum(range(64))
    assert i[:9].tolist() == [total, -total, -63, 63, 7, ~63, 63, 0, 40]
    assert i[9:].tolist() == [129, 64, 64, i[12], 3 * 256]
    wraps = 256 % 11
    assert u.tolist() == [wraps, -wraps % 11, 0x80000000 + 63]
    assert (long[0], single[0], double[0]) == (256 << 33, 128, 64)


def test_functions(run):
    x = np.linspace(-3, 3, 64, dtype=np.float32)
    out = np.zeros((16, 64), np.float32)
    ran(run, "functions", 1, 64, x, out, i32(64))
    a = x.astype(np.float64)
    import math

    b = np.abs(a)
    wide = (x * np.float32(100)).astype(np.float64)
    wanted = [np.exp(a), np.log(b + 1), np.sin(wide), np.cos(a), np.tanh(a), b**1.7]
    wanted += [1 / np.sqrt(a * a + 1), np.sqrt(b), [math.erf(v) for v in a], np.arctan2(a, 2)]
    wanted += [np.exp(a), np.sin(a), np.fmod(a, np.float32(0.7)), np.round(a * 3), np.cbrt(a)]
    wanted += [np.log2(b + 2)]
    np.testing.assert_allclose(out, wanted, rtol=3e-6, atol=1e-6)


def test_doubles(run):
    x = np.linspace(-3, 3, 64)
    out = np.zeros((8, 64))
    ran(run, "doubles", 1, 64, x, out, i32(64))
    b = np.abs(x)
    wanted = [np.exp(x), np.log(b + 1), np.sin(x * 1e9), np.cos(x), x / 3, np.sqrt(b), np.tanh(x)]
    np.testing.assert_allclose(out, [*wanted, b**1.7], rtol=1e-14, atol=1e-15)


def test_halves(run):
    h = np.float16
    x = np.linspace(-1, 1, 32).astype(h)
    out, two = np.zeros(32, h), np.linspace(0, 1, 64).astype(h)
    before = two.reshape(32, 2).astype(np.float64)
    ran(run, "halves", 1, 32, x, out, two)
    product = (x.astype(np.float32) * np.float32(3.1)).astype(h)
    total = x * x + product  # operators do not fuse
    np.testing.assert_array_equal(out, np.where(x > 0.5, -x, total))
    wanted = np.maximum((before**2 + x.astype(np.float64)[:, None]).astype(h), h(0.25))
    np.testing.assert_array_equal(two.reshape(32, 2), wanted)


def test_printf_and_clock(run):
    out = np.zeros(1, i32)
    ran(run, "prints", 1, 1, out)
    assert out[0] == 1


def test_named_barrier_with_a_count(run):
    out = np.zeros(96, i32)
    ran(run, "named", 1, 96, out)
    np.testing.assert_array_equal(out, [*range(63, -1, -1), *range(32)])


def test_a_warp_may_wait_for_another(run):
    out = np.zeros(1, i32)
    ran(run, "polls", 1, 64, out)
    assert out[0] == 9


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [("--gpu-architecture=sm_75",), ("--gpu-architecture=sm_90", "--use_fast_math")],
)
def test_other_ways_to_compile(options):
    source = SOURCE.replace("+ __reduce_max_sync(~0u, i * 7 % 32)", "+ 31")
    source = source.replace("__reduce_add_sync(~0u, i)", "496")
    module = module_of(source, *options)
    out = np.zeros((16, 64), np.float32)
    x = np.linspace(0.1, 3, 64, dtype=np.float32)
    assert launch(module, "functions", 1, 64, x, out, i32(64)).fault is None
    np.testing.assert_allclose(out[0], np.exp(x), rtol=1e-5)
    assert "sm_75" in ptx_of(source, *options) or "sm_90" in ptx_of(source, *options)


HINTS = r"""
extern "C" __global__ void hints(const float4* v, float4* out, int* sum) {
  unsigned long long last, first;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
  asm volatile("{ .reg .pred some; setp.ge.u32 some, %1, 1; mov.b64 %0, 0;"
               "@some createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %0, 0.5; }"
               : "=l"(first) : "r"(threadIdx.x));
  __shared__ float4 kept[32];
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, 16, %2;"
               :: "r"((unsigned)__cvta_generic_to_shared(kept + threadIdx.x)),
                  "l"(v + threadIdx.x), "l"(first) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  float4 a;
  asm volatile("ld.global.L1::evict_last.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
               : "=f"(a.x), "=f"(a.y), "=f"(a.z), "=f"(a.w) : "l"(v + threadIdx.x), "l"(last));
  asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;"
               :: "l"(out + threadIdx.x), "f"(a.w), "f"(a.z), "f"(a.y), "f"(kept[threadIdx.x].x),
                  "l"(first)
               : "memory");
  int old;
  asm volatile("atom.global.add.L2::cache_hint.s32 %0, [%1], %2, %3;"
               : "=r"(old) : "l"(sum), "r"((int)threadIdx.x), "l"(last) : "memory");
  asm volatile("red.global.add.L2::cache_hint.s32 [%0], %1, %2;"
               :: "l"(sum + 1), "r"(old - old + 1), "l"(first) : "memory");
}
extern "C" __global__ void decimal(float* out, double* wide) {
  asm volatile("{ .reg .f32 t; mul.f32 t, %1, -2.5; add.f32 %0, t, 1e2; }"
               : "=f"(out[threadIdx.x]) : "f"((float)threadIdx.x));
  asm volatile("add.f64 %0, %1, 0.1;" : "=d"(wide[threadIdx.x]) : "d"((double)threadIdx.x));
}
"""


def test_policies_of_the_l2_change_no_value() -> None:
    v, out, total = np.arange(128, dtype=np.float32), np.zeros(128, np.float32), np.zeros(2, "i4")
    launch(module_of(HINTS), "hints", 1, 32, v, out, total)
    np.testing.assert_array_equal(out, v.reshape(32, 4)[:, ::-1].ravel())
    assert total.tolist() == [496, 32]


def test_constants_of_inline_assembly_in_decimal() -> None:
    out, wide = np.zeros(32, np.float32), np.zeros(32)
    launch(module_of(HINTS), "decimal", 1, 32, out, wide)
    np.testing.assert_array_equal(out, np.arange(32, dtype=np.float32) * np.float32(-2.5) + 100)
    np.testing.assert_array_equal(wide, np.arange(32) + 0.1)
