const split = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

export const KEYWORDS = split(`
  alignas alignof asm auto break case catch class co_await co_return co_yield concept const
  const_cast consteval constexpr constinit continue decltype default delete do dynamic_cast else
  enum explicit export extern final for friend goto if inline mutable namespace new noexcept
  operator override private protected public register reinterpret_cast requires return sizeof
  static static_assert static_cast struct switch template this thread_local throw try typedef
  typeid typename union using virtual volatile while
  __global__ __device__ __host__ __shared__ __constant__ __managed__ __restrict__ __restrict
  __launch_bounds__ __forceinline__ __noinline__ __inline__ __grid_constant__ __cluster_dims__
  __maxnreg__ __align__ __asm__ __volatile__ __attribute__
`);

export const BLOCKS = split('case catch class do else enum for if namespace struct switch try union while');
export const DEFINING = split('class concept enum namespace struct union');
export const ATOMS = split('true false nullptr NULL INFINITY NAN');

const TYPES = split(`
  bool char double float int long short signed unsigned void wchar_t char8_t char16_t char32_t
  size_t ptrdiff_t intptr_t uintptr_t uchar ushort uint ulong dim3 half half2 __half __half2
  nv_bfloat16 nv_bfloat162 __nv_bfloat16 __nv_bfloat162 __nv_fp8_e4m3 __nv_fp8_e5m2 __int128
  cudaStream_t cudaEvent_t cudaError_t cudaTextureObject_t cuFloatComplex cuDoubleComplex
  clock_t
`);
const FAMILIES = [
  /^u?int(?:_least|_fast)?(?:8|16|32|64)_t$/,
  /^(?:u?(?:char|short|int|long|longlong)|float|double)[1-4](?:_(?:16|32)a)?$/
];

/** Whether a name is a type of C++ or of CUDA. */
export function isType(name: string): boolean {
  return TYPES.has(name) || FAMILIES.some(family => family.test(name));
}

/** Where a thread is. */
export const INDICES = split('threadIdx blockIdx blockDim gridDim warpSize');
const BUILTINS = split(`
  printf assert memcpy memset clock clock64
  min max abs fabs fabsf fmin fminf fmax fmaxf fma fmaf sqrt sqrtf rsqrt rsqrtf cbrt cbrtf exp expf
  exp2 exp2f expm1 expm1f log logf log2 log2f log10 log10f log1p log1pf pow powf sin sinf cos cosf
  tan tanf asin asinf acos acosf atan atanf atan2 atan2f sinh sinhf cosh coshf tanh tanhf erf erff
  erfc erfcf floor floorf ceil ceilf round roundf rint rintf trunc truncf fmod fmodf hypot hypotf
  isnan isinf isfinite signbit copysign copysignf saturate
  make_char2 make_char3 make_char4 make_uchar2 make_uchar3 make_uchar4 make_short2 make_short4
  make_int2 make_int3 make_int4 make_uint2 make_uint3 make_uint4 make_float2 make_float3 make_float4
  make_double2 make_double3 make_double4 make_longlong2 make_ulonglong2
  cooperative_groups nvcuda wmma cudaMalloc cudaFree cudaMemcpy cudaMemset cudaMallocManaged
  cudaDeviceSynchronize cudaGetLastError cudaStreamCreate cudaStreamSynchronize
`);
const INTRINSICS = [
  /^__\w+$/,
  /^atomic[A-Z]\w*$/,
  /^(?:tex|surf)[123]D\w*$/,
  /^cuda::\w[\w:]*$/,
  /^h(?:add|sub|mul|fma|exp|log|sqrt|max|min)2?$/
];

/** Whether CUDA brings a name with it: an index, an intrinsic, a function of its library. */
export function isBuiltin(name: string): boolean {
  return INDICES.has(name) || BUILTINS.has(name) || INTRINSICS.some(known => known.test(name));
}

/** The words of `#pragma optiml` directives, and what their expressions may call. */
export const DIRECTIVE = split(
  'launch tune require scratch zero init size repeat swap grid block shared args if else in'
);
export const DIRECTIVE_BUILTINS = split('cdiv min max size shape sizeof sm_count');
