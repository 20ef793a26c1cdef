#pragma once
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VALF INFINITY
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
// Arguments of several types count as double: [c.math], of which nvcc takes the first one as well.
template <bool> struct optiml_if {}; template <> struct optiml_if<true> { typedef double type; };
template <class T, class U> using optiml_mixed = typename optiml_if<!__is_class(T) && !__is_class(U)>::type;
template <class T, class U> inline __device__ optiml_mixed<T, U> pow(T a, U b) { return pow((double)a, (double)b); }
template <class T, class U> inline __device__ optiml_mixed<T, U> fmax(T a, U b) { return fmax((double)a, (double)b); }
template <class T, class U> inline __device__ optiml_mixed<T, U> fmin(T a, U b) { return fmin((double)a, (double)b); }
template <class T, class U> inline __device__ optiml_mixed<T, U> fmod(T a, U b) { return fmod((double)a, (double)b); }
template <class T, class U> inline __device__ optiml_mixed<T, U> atan2(T a, U b) { return atan2((double)a, (double)b); }
template <class T, class U> inline __device__ optiml_mixed<T, U> hypot(T a, U b) { return hypot((double)a, (double)b); }
// So does a whole number.
template <class T, class U = T> inline __device__ optiml_mixed<T, U> sqrt(T a) { return sqrt((double)a); }
template <class T, class U = T> inline __device__ optiml_mixed<T, U> exp(T a) { return exp((double)a); }
template <class T, class U = T> inline __device__ optiml_mixed<T, U> log(T a) { return log((double)a); }
template <class T, class U = T> inline __device__ optiml_mixed<T, U> sin(T a) { return sin((double)a); }
template <class T, class U = T> inline __device__ optiml_mixed<T, U> cos(T a) { return cos((double)a); }
namespace std { using ::isinf; }
namespace std { using ::isnan; }
namespace std { using ::isfinite; }
namespace std { using ::abs; }
namespace std { using ::acos; }
namespace std { using ::acosh; }
namespace std { using ::asin; }
namespace std { using ::asinh; }
namespace std { using ::atan; }
namespace std { using ::atanh; }
namespace std { using ::cbrt; }
namespace std { using ::ceil; }
namespace std { using ::cos; }
namespace std { using ::cosh; }
namespace std { using ::erf; }
namespace std { using ::erfc; }
namespace std { using ::exp; }
namespace std { using ::exp2; }
namespace std { using ::expm1; }
namespace std { using ::fabs; }
namespace std { using ::floor; }
namespace std { using ::lgamma; }
namespace std { using ::log; }
namespace std { using ::log10; }
namespace std { using ::log1p; }
namespace std { using ::log2; }
namespace std { using ::nearbyint; }
namespace std { using ::rint; }
namespace std { using ::round; }
namespace std { using ::sin; }
namespace std { using ::sinh; }
namespace std { using ::sqrt; }
namespace std { using ::tan; }
namespace std { using ::tanh; }
namespace std { using ::tgamma; }
namespace std { using ::trunc; }
namespace std { using ::atan2; }
namespace std { using ::copysign; }
namespace std { using ::fdim; }
namespace std { using ::fmax; }
namespace std { using ::fmin; }
namespace std { using ::fmod; }
namespace std { using ::hypot; }
namespace std { using ::nextafter; }
namespace std { using ::pow; }
namespace std { using ::remainder; }
namespace std { using ::fma; }
namespace std { using ::lround; }
namespace std { using ::llround; }
namespace std { using ::lrint; }
namespace std { using ::llrint; }
namespace std { using ::signbit; }
