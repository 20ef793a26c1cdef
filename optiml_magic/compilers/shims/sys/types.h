// The short names of unsigned integers that glibc has; a macro or the text itself may have taken one.
#pragma once
#if !defined(uint) && !defined(OPTIML_OWN_uint)
typedef unsigned int uint;
#endif
#if !defined(ushort) && !defined(OPTIML_OWN_ushort)
typedef unsigned short ushort;
#endif
#if !defined(ulong) && !defined(OPTIML_OWN_ulong)
typedef unsigned long ulong;
#endif
