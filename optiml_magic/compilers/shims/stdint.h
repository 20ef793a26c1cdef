#pragma once
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef signed long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int64_t intptr_t;
typedef uint64_t uintptr_t;
#define INT8_C(x) x
#define UINT8_C(x) x
#define INT16_C(x) x
#define UINT16_C(x) x
#define INT32_C(x) x
#define UINT32_C(x) x##U
#define INT64_C(x) x##LL
#define UINT64_C(x) x##ULL
#define INT8_MAX 127
#define INT8_MIN (-127 - 1)
#define UINT8_MAX 255
#define INT16_MAX 32767
#define INT16_MIN (-32767 - 1)
#define UINT16_MAX 65535
#define INT32_MAX 2147483647
#define INT32_MIN (-2147483647 - 1)
#define UINT32_MAX 4294967295U
#define INT64_MAX 9223372036854775807LL
#define INT64_MIN (-9223372036854775807LL - 1)
#define UINT64_MAX 18446744073709551615ULL
#define SIZE_MAX 18446744073709551615UL
namespace std { using ::int8_t; }
namespace std { using ::int16_t; }
namespace std { using ::int32_t; }
namespace std { using ::int64_t; }
namespace std { using ::uint8_t; }
namespace std { using ::uint16_t; }
namespace std { using ::uint32_t; }
namespace std { using ::uint64_t; }
namespace std { using ::intptr_t; }
namespace std { using ::uintptr_t; }
namespace std { using ::size_t; }
namespace std { using ::ptrdiff_t; }
