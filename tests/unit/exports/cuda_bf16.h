// What the tests need of bfloat16, for g++.
#pragma once
struct __nv_bfloat16 { unsigned short bits; };
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 v) { return v.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return {bits}; }
inline float __uint_as_float(unsigned) { return 0; }
inline unsigned __float_as_uint(float) { return 0; }
