"""Kernels that compile, and do harm when they run."""

from __future__ import annotations

from optiml_magic.model.verdict import Outcome
from optiml_magic.testing.hostile.base import Hostile, doubling

_NEVER = "((volatile float*)out)[0] != 12345.0f"
_RECURSIVE = """\
__device__ __noinline__ float deep(const volatile float* x, int left) {
    volatile float kept[64];
    kept[left & 63] = x[left & 7];
    return left > 0 ? deep(x, left - 1) + kept[left & 63] : 0.0f;
}
"""
_HUNGRY = "float r[240]; for (int k = 0; k < 240; ++k) r[k] = x[(i + k) % n];\n" + "".join(
    f"    #pragma unroll\n    for (int k = 0; k < 240; ++k) r[k] = r[k] * r[(k + {step}) % 240];\n"
    for step in (1, 7, 31)
)
_PASSED, _WRONG, _TIMEOUT = Outcome.PASSED, Outcome.WRONG, Outcome.TIMEOUT
_OUT, _TRAP, _BARRIER = Outcome.OUT_OF_BOUNDS, Outcome.TRAP, Outcome.BARRIER
_LAUNCH, _INVALID, _UNSUPPORTED = Outcome.LAUNCH_ERROR, Outcome.INVALID, Outcome.UNSUPPORTED

RUNNING = {
    "endless loop": Hostile(doubling(f"while ({_NEVER}) {{}}"), (_TIMEOUT,)),
    "endless loop with a barrier": Hostile(
        doubling(f"while ({_NEVER}) __syncthreads();"), (_TIMEOUT,)
    ),
    "endless sleep": Hostile(doubling(f"while ({_NEVER}) __nanosleep(1000000);"), (_TIMEOUT,)),
    "just out of bounds": Hostile(doubling("if (i == 0) out[n] = 1.0f;"), (_OUT,)),
    "just before the buffer": Hostile(doubling("if (i == 0) out[-1] = 1.0f;"), (_OUT,)),
    "far out of bounds": Hostile(doubling("out[i + (1ll << 40)] = 1.0f;"), (_OUT,)),
    "null pointer": Hostile(doubling("if (n > 5) *(volatile float*)nullptr = 1.0f;"), (_OUT,)),
    "shared memory out of bounds": Hostile(
        doubling("__shared__ volatile float s[32]; s[i + 1000000] = x[0];"), (_OUT,), (_OUT, _TRAP)
    ),
    "misaligned": Hostile(
        doubling("*(volatile double*)((char*)out + 4) = 1.0;"), (Outcome.MISALIGNED,)
    ),
    "stack overflow": Hostile(
        doubling("if (deep(x, 1 << 24) == 5.0f) out[0] = 1.0f;", before=_RECURSIVE),
        (_UNSUPPORTED,),
        (_TRAP, _OUT),
    ),
    "recursion": Hostile(
        doubling("if (deep(x, 3) == 12345.0f) out[0] = 1.0f;", before=_RECURSIVE),
        (_UNSUPPORTED,),
        (_OUT,),  # an H200 says so: four such frames are more than a stack of 1 KB
    ),
    "a jump to nowhere": Hostile(doubling("((void (*)())(n * 16ll))();"), (_TRAP,), (_TRAP, _OUT)),
    "trap": Hostile(doubling("if (i == 5) __trap();"), (_TRAP,)),
    "failed assertion": Hostile(
        doubling("assert(i < 5);", before="#include <assert.h>\n"), (_TRAP,)
    ),
    "printf flood": Hostile(
        doubling(
            'for (int k = 0; k < 100; ++k) printf("%d %d ", i, k);', before="#include <stdio.h>\n"
        ),
        (_PASSED,),
    ),
    "huge dynamic shared memory": Hostile(
        doubling("", launch="grid(cdiv(n, 128)) block(128) shared(1 << 20)"), (_INVALID, _LAUNCH)
    ),
    "huge grid": Hostile(doubling("", launch="grid(2147483647) block(128)"), (_TIMEOUT, _OUT)),
    "too many registers for its block": Hostile(
        doubling(
            _HUNGRY + "    if (r[i % 240] == 12345.0f) out[0] = 1.0f;",
            launch="grid(cdiv(n, 1024)) block(1024)",
        ),
        (_INVALID, _LAUNCH),
    ),
    "deadlock of a named barrier": Hostile(
        doubling('if (threadIdx.x < 64) asm volatile("bar.sync 1, 128;");'),
        (_BARRIER,),
        (_TIMEOUT,),
    ),
    "race between warps": Hostile(
        doubling(
            "__shared__ float s[128]; s[threadIdx.x ^ 32] = (i ^ 32) < n ? x[i ^ 32] : 0.0f;\n"
            "    if (i < n) out[i] = 2.0f * s[threadIdx.x]; return;"
        ),
        (_WRONG,),
    ),
    "NaN": Hostile(doubling("if (i < n) out[i] = NAN; return;"), (_WRONG,)),
    "nothing written": Hostile(doubling("return;"), (_WRONG,)),
    "every thread exits": Hostile(doubling('asm volatile("exit;");'), (_WRONG,)),
    "writes its input": Hostile(
        doubling("if (i < n) ((float*)x)[i] = 0.0f;"), (Outcome.INPUT_MODIFIED,)
    ),
    "a device array of terabytes": Hostile(
        doubling(
            "if (i == 0) big[n * 1000000ll] = 1.0f;", before="__device__ float big[1ull << 40];\n"
        ),
        (_LAUNCH, _UNSUPPORTED, Outcome.COMPILE_ERROR),
    ),
    "a stack of gigabytes": Hostile(
        doubling("volatile float big[1 << 28]; big[i * 1000] = x[0];"),
        (_LAUNCH, _UNSUPPORTED, Outcome.COMPILE_ERROR),
    ),
}
