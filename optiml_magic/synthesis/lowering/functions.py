"""Functions of the device that kernels call where CUDA has none for what NumPy does."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

FUNCTIONS: Mapping[str, str] = MappingProxyType({
    "floor_divided": """\
__device__ int floor_divided(int a, int b) {
    int whole = a / b;
    return whole * b != a && (a < 0) != (b < 0) ? whole - 1 : whole;
}""",
    "floor_rest": """\
__device__ int floor_rest(int a, int b) {
    int rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}""",
    "floor_divided_wide": """\
__device__ long long floor_divided_wide(long long a, long long b) {
    long long whole = a / b;
    return whole * b != a && (a < 0) != (b < 0) ? whole - 1 : whole;
}""",
    "floor_rest_wide": """\
__device__ long long floor_rest_wide(long long a, long long b) {
    long long rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}""",
    "power_wide": """\
__device__ long long power_wide(long long base, long long power) {
    long long result = 1;
    for (; power > 0; power >>= 1) {
        if (power & 1) result *= base;
        base *= base;
    }
    return result;
}""",
    "gcd_wide": """\
__device__ long long gcd_wide(long long a, long long b) {
    while (b != 0) {
        long long rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}""",
    "floor_quotientf": """\
__device__ float floor_quotientf(float a, float b) {
    float rest = fmodf(a, b);
    float whole = (a - rest) / b;
    return floorf((rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? whole - 1.0f : whole) + 0.5f);
}""",
    "floor_quotient": """\
__device__ double floor_quotient(double a, double b) {
    double rest = fmod(a, b);
    double whole = (a - rest) / b;
    return floor((rest != 0.0 && (rest < 0.0) != (b < 0.0) ? whole - 1.0 : whole) + 0.5);
}""",
    "floor_modulof": """\
__device__ float floor_modulof(float a, float b) {
    float rest = fmodf(a, b);
    return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}""",
    "floor_modulo": """\
__device__ double floor_modulo(double a, double b) {
    double rest = fmod(a, b);
    return rest != 0.0 && (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}""",
    "atomic_max_float": """\
__device__ void atomic_max_float(float* place, float value) {
    int* bits = (int*)place;
    int seen = atomicCAS(bits, 0, 0);
    while (__int_as_float(seen) < value) {
        int before = atomicCAS(bits, seen, __float_as_int(value));
        if (before == seen) break;
        seen = before;
    }
}""",
    "atomic_min_float": """\
__device__ void atomic_min_float(float* place, float value) {
    int* bits = (int*)place;
    int seen = atomicCAS(bits, 0, 0);
    while (__int_as_float(seen) > value) {
        int before = atomicCAS(bits, seen, __float_as_int(value));
        if (before == seen) break;
        seen = before;
    }
}""",
    "heavisidef": """\
__device__ float heavisidef(float x, float middle) {
    return x > 0.0f ? 1.0f : x < 0.0f ? 0.0f : middle;
}""",
    "heaviside": """\
__device__ double heaviside(double x, double middle) {
    return x > 0.0 ? 1.0 : x < 0.0 ? 0.0 : middle;
}""",
    "logaddexpf": """\
__device__ float logaddexpf(float a, float b) {
    return a == b ? a + 0.6931472f : fmaxf(a, b) + log1pf(expf(-fabsf(a - b)));
}""",
    "logaddexp2f": """\
__device__ float logaddexp2f(float a, float b) {
    return a == b ? a + 1.0f : fmaxf(a, b) + log2f(1.0f + exp2f(-fabsf(a - b)));
}""",
    "logaddexp": """\
__device__ double logaddexp(double a, double b) {
    return a == b ? a + 0.6931471805599453 : fmax(a, b) + log1p(exp(-fabs(a - b)));
}""",
    "logaddexp2": """\
__device__ double logaddexp2(double a, double b) {
    return a == b ? a + 1.0 : fmax(a, b) + log2(1.0 + exp2(-fabs(a - b)));
}""",
})  # fmt: skip
