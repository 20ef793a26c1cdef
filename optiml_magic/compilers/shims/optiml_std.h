// What device code uses of the headers of hosts, in a few lines: those under cuda/std take seconds to
// compile. NVRTC itself has move and forward.
#pragma once
namespace std {
template <class T, T V> struct integral_constant { typedef T value_type; typedef integral_constant type; static constexpr T value = V; constexpr operator T() const { return V; } };
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;
template <class, class> struct is_same : false_type {};
template <class T> struct is_same<T, T> : true_type {};
template <bool, class T, class U> struct conditional { typedef T type; };
template <class T, class U> struct conditional<false, T, U> { typedef U type; };
template <bool, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <class T> struct remove_reference { typedef T type; };
template <class T> struct remove_reference<T&> { typedef T type; };
template <class T> struct remove_reference<T&&> { typedef T type; };
template <class T> struct remove_const { typedef T type; };
template <class T> struct remove_const<const T> { typedef T type; };
template <class T> struct remove_volatile { typedef T type; };
template <class T> struct remove_volatile<volatile T> { typedef T type; };
template <class T> struct remove_cv { typedef typename remove_const<typename remove_volatile<T>::type>::type type; };
template <class, class...> struct optiml_one_of : false_type {};
template <class T, class U, class... More> struct optiml_one_of<T, U, More...> : integral_constant<bool, is_same<T, U>::value || optiml_one_of<T, More...>::value> {};
template <class T> struct is_integral : optiml_one_of<typename remove_cv<T>::type, bool, char, signed char, unsigned char, short, unsigned short, int, unsigned, long, unsigned long, long long, unsigned long long, wchar_t, char16_t, char32_t> {};
template <class T> struct is_floating_point : optiml_one_of<typename remove_cv<T>::type, float, double> {};
template <class T> struct is_arithmetic : integral_constant<bool, is_integral<T>::value || is_floating_point<T>::value> {};
template <class T> T&& declval() noexcept;
template <class...> struct common_type {};
template <class T> struct common_type<T> : common_type<T, T> {};
template <class T, class U> struct common_type<T, U> { typedef typename remove_cv<typename remove_reference<decltype(false ? declval<T>() : declval<U>())>::type>::type type; };
template <class T, class U, class V, class... Rest> struct common_type<T, U, V, Rest...> : common_type<typename common_type<T, U>::type, V, Rest...> {};
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <bool B, class T, class U> using conditional_t = typename conditional<B, T, U>::type;
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <class... T> using common_type_t = typename common_type<T...>::type;
#if __cplusplus >= 201402L
template <class T, class U> constexpr bool is_same_v = is_same<T, U>::value;
template <class T> constexpr bool is_integral_v = is_integral<T>::value;
template <class T> constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T> constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
#endif
template <class T> inline void swap(T& a, T& b) { T kept = move(a); a = move(b); b = move(kept); }
template <class T> constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T> constexpr const T& clamp(const T& v, const T& low, const T& high) { return v < low ? low : high < v ? high : v; }
template <class T> struct numeric_limits;
#define OPTIML_WHOLE(LEAST, MOST, ...) template <> struct numeric_limits<__VA_ARGS__> { \
    static constexpr bool is_specialized = true, is_integer = true, is_signed = LEAST < 0, has_infinity = false; \
    static constexpr int digits = sizeof(__VA_ARGS__) * 8 - is_signed; \
    typedef __VA_ARGS__ kind; \
    static constexpr kind min() { return LEAST; } static constexpr kind lowest() { return LEAST; } static constexpr kind max() { return MOST; } };
OPTIML_WHOLE(-128, 127, char)
OPTIML_WHOLE(-128, 127, signed char)
OPTIML_WHOLE(0, 255, unsigned char)
OPTIML_WHOLE(-32768, 32767, short)
OPTIML_WHOLE(0, 65535, unsigned short)
OPTIML_WHOLE(-2147483647 - 1, 2147483647, int)
OPTIML_WHOLE(0, 4294967295u, unsigned int)
OPTIML_WHOLE(-9223372036854775807L - 1, 9223372036854775807L, long)
OPTIML_WHOLE(0, 18446744073709551615UL, unsigned long)
OPTIML_WHOLE(-9223372036854775807LL - 1, 9223372036854775807LL, long long)
OPTIML_WHOLE(0, 18446744073709551615ULL, unsigned long long)
#undef OPTIML_WHOLE
#define OPTIML_REAL(T, DIGITS, LEAST, MOST, EPSILON, DENORMAL, HUGE, NONE) template <> struct numeric_limits<T> { \
    static constexpr bool is_specialized = true, is_integer = false, is_signed = true, has_infinity = true; \
    static constexpr int digits = DIGITS; \
    static constexpr T min() { return LEAST; } static constexpr T lowest() { return -MOST; } static constexpr T max() { return MOST; } \
    static constexpr T epsilon() { return EPSILON; } static constexpr T denorm_min() { return DENORMAL; } \
    static constexpr T infinity() { return HUGE; } static constexpr T quiet_NaN() { return NONE; } };
OPTIML_REAL(float, 24, 1.17549435e-38f, 3.40282347e+38f, 1.1920929e-07f, 1.40129846e-45f, __builtin_bit_cast(float, 0x7f800000), __builtin_bit_cast(float, 0x7fc00000))
OPTIML_REAL(double, 53, 2.2250738585072014e-308, 1.7976931348623157e+308, 2.2204460492503131e-16, 4.9406564584124654e-324, __builtin_bit_cast(double, 0x7ff0000000000000), __builtin_bit_cast(double, 0x7ff8000000000000))
#undef OPTIML_REAL
}
