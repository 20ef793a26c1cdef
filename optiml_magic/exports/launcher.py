"""The functions that a launcher in C++ may need, each written once into the file that needs it."""

from __future__ import annotations

HELPERS = {
    "cdiv": """\
// a / b rounded up.
inline long long cdiv(long long a, long long b, bool& invalid) {
    if (b == 0) {
        invalid = true;
        return 0;
    }
    return a / b + (a % b != 0 && (a % b > 0) == (b > 0));
}
""",
    "min": """\
inline long long min(long long a, long long b) { return a < b ? a : b; }
""",
    "max": """\
inline long long max(long long a, long long b) { return a > b ? a : b; }
""",
    "nonzero": """\
// A divisor.
inline long long nonzero(long long value, bool& invalid) {
    if (value == 0) invalid = true;
    return value == 0 ? 1 : value;
}
""",
    "shift": """\
// How many bits to shift by.
inline int shift(long long bits, bool& invalid) {
    if (bits < 0 || bits > 63) invalid = true;
    return (int)(bits & 63);
}
""",
    "fits": """\
// The value in a parameter's type.
template <typename T>
T fits(long long value, bool& invalid) {
    const T narrow = (T)value;
    if ((long long)narrow != value || (narrow > 0) != (value > 0)) invalid = true;
    return narrow;
}
""",
    "extent": """\
// One side of a grid or a block.
inline unsigned extent(long long value, long long limit, bool& invalid) {
    if (value < 1 || value > limit) invalid = true;
    return (unsigned)value;
}
""",
    "fill": """\
template <typename T>
__global__ void fill(T* first, long long count, T value) {
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        first[i] = value;
    }
}
""",
}

# Arguments convert to the parameters' own types: their addresses go to the driver untyped.
LAUNCH = """\
template <typename T>
struct exactly {
    typedef T type;
};

template <typename... P>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                   typename exactly<P>::type... arguments) {
    if (shared > 48 << 10) {
        const cudaError_t status = cudaFuncSetAttribute(
            (const void*)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
        if (status != cudaSuccess) return status;
    }
    void* addresses[] = {(void*)&arguments..., nullptr};
    return cudaLaunchKernel((const void*)kernel, grid, block, addresses, shared, stream);
}
"""
