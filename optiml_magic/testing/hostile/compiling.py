"""Texts that do harm to a compiler, or ask it for what they must not see."""

from __future__ import annotations

from optiml_magic.model.verdict import Outcome
from optiml_magic.testing.hostile.base import Hostile, doubling

_ERROR, _PASSED, _INVALID = Outcome.COMPILE_ERROR, Outcome.PASSED, Outcome.INVALID
_BOMB = """\
template <int N, int M> struct F {
    static constexpr int v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v;
};
template <int M> struct F<0, M> { static constexpr int v = M; };
"""
_CHAIN = (
    "template <int N> struct G { static constexpr int v = G<N - 1>::v; };\n"
    "template <> struct G<0> { static constexpr int v = 0; };\n"
)
_MACROS = "#define M0 out[0] += 1.0f;\n" + "".join(
    f"#define M{n} M{n - 1} M{n - 1}\n" for n in range(1, 26)
)
_KERNELS = "".join(f"__global__ void k{n}(int* p) {{ p[{n}] = 1; }}\n" for n in range(10_000))
_ENDLESS = "constexpr int f(int n) { while (true) n ^= 1; return n; }\n"
_SHARED = "__shared__ float s[1 << 20]; s[threadIdx.x] = x[0]; __syncthreads(); out[0] = s[n];"


def _including(line: str) -> Hostile:
    return Hostile(doubling("", before=f"{line}\n"), (_ERROR,))


COMPILING = {
    "no CUDA at all": Hostile(doubling("int 3x;"), (_ERROR,)),
    "huge static shared memory": Hostile(doubling(_SHARED), (_ERROR,)),
    "assembly that is none": Hostile(doubling('asm("format c:;");'), (_ERROR,)),
    "a launch from the device": Hostile(doubling("twice<<<1, 1>>>(x, out, n);"), (_ERROR,)),
    "10,000 kernels": Hostile(doubling("", before=_KERNELS), (_ERROR,), slow=True),
    "template bomb": Hostile(
        doubling("if (F<40, 0>::v == 5) out[0] = 1.0f;", before=_BOMB), (_ERROR,), slow=True
    ),
    "macro bomb": Hostile(doubling("if (i < 0) { M25 }", before=_MACROS), (_ERROR,), slow=True),
    "deep templates": Hostile(
        doubling("if (G<100000>::v == 5) out[0] = 1.0f;", before=_CHAIN), (_ERROR,)
    ),
    "deep parentheses": Hostile(
        doubling(f"if (i < {'(' * 20_000}0{')' * 20_000}) return;"), (_PASSED,), slow=True
    ),
    "deep blocks": Hostile(doubling("{" * 20_000 + "}" * 20_000), (_PASSED,), slow=True),
    "an endless constant": Hostile(
        doubling("constexpr int c = f(1); if (c == i) return;", before=_ENDLESS), (_ERROR,)
    ),
    "include of itself": _including("#include __FILE__"),
    "include of a password file": _including("#include </etc/passwd>"),
    "include up and out": _including('#include "../../../../../../etc/passwd"'),
    "include beside the cell": _including('#include "etc/passwd"'),
    "include through a macro": _including("#define FILE </etc/passwd>\n#include FILE"),
    "include of an endless file": _including("#include </dev/zero>"),
    "a question for a file": _including('#if __has_include("/etc/passwd")\n#endif'),
    "embedded file": _including('__device__ char d[] = {\n#embed "/etc/passwd"\n};'),
    "a false file name": Hostile(doubling("", before='#line 1 "/etc/passwd"\n'), (_INVALID,)),
    "assembly with a file": Hostile(doubling('asm(".incbin \\"/etc/passwd\\"");'), (_ERROR,)),
}
