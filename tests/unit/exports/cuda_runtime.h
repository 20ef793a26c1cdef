// A CUDA runtime that launches nothing and writes down what it was asked to do, for g++.
#pragma once
#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;
inline void __syncthreads() {}
template <typename T> T __shfl_down_sync(unsigned, T v, int) { return v; }
template <typename T> T __shfl_xor_sync(unsigned, T v, int) { return v; }
template <typename T> T atomicAdd(T* p, T v) { return *p += v; }

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16 };
enum cudaMemcpyKind { cudaMemcpyDeviceToDevice = 3, cudaMemcpyDefault = 4 };
typedef void* cudaStream_t;

static std::string stub_text;
static int stub_sms = 132, stub_calls_left = 1 << 30;
static uintptr_t stub_next = 0x70000000;

extern "C" void stub_reset(int sms, int calls_left) {
    stub_text.clear();
    stub_sms = sms;
    stub_calls_left = calls_left;
    stub_next = 0x70000000;
}
extern "C" const char* stub_read() { return stub_text.c_str(); }

template <typename... A> cudaError_t stub_note(const char* format, A... arguments) {
    char line[512];
    snprintf(line, sizeof line, format, arguments...);
    stub_text += line;
    stub_text += "\n";
    return stub_calls_left-- > 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaGetDevice(int* device) { *device = 3; return cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int device) {
    *value = stub_sms;
    return device == 3 ? cudaSuccess : cudaErrorInvalidValue;
}
inline cudaError_t cudaMallocAsync(void** place, size_t bytes, cudaStream_t stream) {
    cudaError_t status = stub_note("malloc %lx %zu %lx", stub_next, bytes, (uintptr_t)stream);
    if (status != cudaSuccess) return status;
    *place = (void*)stub_next;
    stub_next += 0x1000;
    return status;
}
inline cudaError_t cudaFreeAsync(void* place, cudaStream_t stream) {
    return stub_note("free %lx %lx", (uintptr_t)place, (uintptr_t)stream);
}
inline cudaError_t cudaMemsetAsync(void* place, int value, size_t bytes, cudaStream_t stream) {
    return stub_note("memset %lx %d %zu %lx", (uintptr_t)place, value, bytes, (uintptr_t)stream);
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
    return stub_note("memcpy %lx %lx %zu %lx", (uintptr_t)to, (uintptr_t)from, bytes, (uintptr_t)stream);
}
template <typename T>
cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
    return stub_note("symbol %d %lx %zu %zu %d %lx", (int)sizeof symbol, (uintptr_t)from, bytes, offset, (int)kind, (uintptr_t)stream);
}
inline const char* stub_name(const void* function) {
    Dl_info found;
    return dladdr(function, &found) && found.dli_sname ? found.dli_sname : "?";
}
inline cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute, int value) {
    return stub_note("attribute %s %d", stub_name(function), value);
}
inline cudaError_t cudaLaunchKernel(const void* function, dim3 g, dim3 b, void** arguments, size_t shared, cudaStream_t stream) {
    std::string bytes;
    for (void** each = arguments; *each; ++each) {
        unsigned char raw[32];
        std::memcpy(raw, *each, sizeof raw);  // how many of them count, the test knows
        for (unsigned char one : raw) {
            char digits[3];
            snprintf(digits, sizeof digits, "%02x", one);
            bytes += digits;
        }
        bytes += ",";
    }
    return stub_note("launch %s %u %u %u %u %u %u %zu %lx %s", stub_name(function), g.x, g.y, g.z, b.x, b.y, b.z, shared,
                     (uintptr_t)stream, bytes.c_str());
}
