"""P11, combine: what the lanes of a group hold each becomes what all of them hold.

Sub-warps exchange by a butterfly of shuffles, after which every lane has the same bits, be they
neighbours or, for ``apart``, lanes with as many others between them; the warps of a block go
through shared memory, those of a ``plane``, a block of several rows, as well, and so do lanes that
are ``stacked``, each in a warp of its own.
Source: CUDA C++ Programming Guide, "Warp Shuffle Functions".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.types import CType

Group = Literal["warp", "apart", "stacked", "block", "plane"]
_SCOPES: Mapping[Group, str] = {"warp": "lanes", "apart": "apart", "stacked": "stacked",
                                "block": "block", "plane": "plane"}  # fmt: skip
_WORDS = {"+": "sum", "*": "product", "&": "and", "|": "or", "^": "xor", "min": "min", "max": "max",
          "<": "least", ">": "greatest"}  # fmt: skip
_INFIX = frozenset("+*&|^")
_OPPOSITE = {"!<=": ">", "!<": ">=", "!>=": "<", "!>": "<="}  # but for a NaN
_IDEMPOTENT = frozenset({"&", "|", "min", "max", "<", ">"})
_EXTREMES = {"float": "f", "double": "double_", "__half": "half_"}  # by a function of each
_ZEROS = {"float": "0.0f", "double": "0.0", "__half": "__half(0.0f)"}
_ONES = {"float": "1.0f", "double": "1.0", "__half": "__half(1.0f)"}

#: The greatest and the least value.
_FINITE = {
    "float": ("3.402823466e+38f", "-3.402823466e+38f"),
    "double": ("1.7976931348623157e+308", "-1.7976931348623157e+308"),
}
_ENDS = {
    "float": ("__int_as_float(0x7f800000)", "__int_as_float(0xff800000)"),
    "double": ("__longlong_as_double(0x7ff0000000000000)",
               "__longlong_as_double(0xfff0000000000000)"),
}  # fmt: skip
_WHOLE_ENDS = {
    (1, True): ("127", "-128"),
    (1, False): ("255", "0"),
    (2, True): ("32767", "-32768"),
    (2, False): ("65535", "0"),
    (4, True): ("0x7fffffff", "(-0x7fffffff - 1)"),
    (4, False): ("0xffffffffu", "0u"),
    (8, True): ("0x7fffffffffffffffLL", "(-0x7fffffffffffffffLL - 1)"),
    (8, False): ("0xffffffffffffffffULL", "0ULL"),
}

#: The number of a thread in its block, counted along x first.
THREAD = "threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)"

MASK = """\
// The lanes of a warp that work together: LANES of them, a power of two.
template <int LANES> __device__ __forceinline__ unsigned group_mask() {
    return (~0u >> (32 - LANES)) << (threadIdx.x % 32 / LANES * LANES);
}"""
APART_MASK = """\
// The lanes of a warp that work together: LANES of them, a power of two, 32 / LANES apart.
template <int LANES> __device__ __forceinline__ unsigned apart_mask() {
    return ~0u / (~0u >> (32 - 32 / LANES)) << (threadIdx.x % (32 / LANES));
}"""
_APART = """\
// Combines the values of lanes that are 32 / LANES apart; each of them gets the whole.
template <int LANES, class T> __device__ __forceinline__ T apart_{word}(T value) {{
    for (int apart = 16; apart >= 32 / LANES; apart /= 2) {{
        const T other = __shfl_xor_sync(apart_mask<LANES>(), value, apart);
        value = {combined};
    }}
    return value;
}}"""
_STACKED = """\
// Combines the values of threads of a block that are BLOCK / LANES apart; each gets the whole.
template <int LANES, int BLOCK, class T> __device__ __forceinline__ T stacked_{word}(T value) {{
    __shared__ T parts[BLOCK];
    __syncthreads();  // the round before has read its parts
    parts[threadIdx.x] = value;
    __syncthreads();
    const int own = threadIdx.x % (BLOCK / LANES);
    value = parts[own];
    for (int lane = 1; lane < LANES; ++lane) {{
        const T other = parts[lane * (BLOCK / LANES) + own];
        value = {combined};
    }}
    return value;
}}"""
_WARP = """\
// Combines the values of a group's lanes; each of them gets the whole.
template <int LANES, class T> __device__ __forceinline__ T lanes_{word}(T value) {{
    for (int apart = LANES / 2; apart > 0; apart /= 2) {{
        const T other = __shfl_xor_sync(group_mask<LANES>(), value, apart, LANES);
        value = {combined};
    }}
    return value;
}}"""
_BLOCK = """\
// Combines the values of a block's threads, a multiple of 32; each of them gets the whole.
template <int THREADS, class T> __device__ __forceinline__ T {group}_{word}(T value) {{
    __shared__ T parts[THREADS / 32];
{counted}    for (int apart = 16; apart > 0; apart /= 2) {{
        const T other = __shfl_xor_sync(~0u, value, apart);
        value = {combined};
    }}
    __syncthreads();  // the round before has read its parts
    if ({thread} % 32 == 0) parts[{thread} / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int warp = 1; warp < THREADS / 32; ++warp) {{
        const T other = parts[warp];
        value = {combined};
    }}
    return value;
}}"""


def helpers(reductions: Iterable[Reduction], group: Group, *, mask: bool) -> list[str]:
    """The functions that the combinations of these need, each once."""
    found, rows = {}, group == "plane"
    thread = "thread" if rows else "threadIdx.x"
    counted = f"    const int thread = {THREAD};\n" if rows else ""
    for reduction in reductions:
        shape = {"warp": _WARP, "apart": _APART, "stacked": _STACKED}.get(group, _BLOCK)
        word = word_of(reduction)
        found[word] = shape.format(
            word=word, combined=joined(reduction, "value", "other"),
            group=group, thread=thread, counted=counted,
        )  # fmt: skip
    first = {"warp": [MASK], "apart": [APART_MASK]}.get(group, [])
    return [*(first if found or mask else []), *found.values()]


def combined(reduction: Reduction, group: Group, count: str, value: str) -> str:
    """The call that combines ``value`` over ``count`` lanes."""
    return f"{_SCOPES[group]}_{word_of(reduction)}<{count}>({value})"


def joined(reduction: Reduction, value: str, other: str) -> str:
    """What two parts are together, ``value`` the one that is kept of equals."""
    op, kind = reduction.op, reduction.type
    if op in _INFIX:
        return f"{value} {op} {other}"
    if op in "<>":
        return f"{other} {op} {value} ? {other} : {value}"
    return extreme(kind, op, value, other)


def extreme(kind: CType, op: str, value: str, other: str) -> str:
    """The ``min`` or ``max`` of two values, by the function for their type."""
    if kind.name == "__half":
        return f"__h{op}({value}, {other})"
    return f"f{op}{'f' if kind.name == 'float' else ''}({value}, {other})" if kind.floating else (
        f"{op}({value}, {other})"
    )  # fmt: skip


def joining(reduction: Reduction, value: str, other: str) -> str:
    """The statement by which ``value`` takes another part in."""
    if reduction.op in _INFIX:
        return f"{value} {reduction.op}= {other};"
    return f"{value} = {joined(reduction, value, other)};"


def waiting(group: Group, count: str) -> str:
    """Where lanes see what the others have stored."""
    mask = "apart_mask" if group == "apart" else "group_mask"
    return (
        "__syncthreads();" if group in ("stacked", "block") else f"__syncwarp({mask}<{count}>());"
    )


def idempotent(reduction: Reduction) -> bool:
    """Whether the value that all lanes begin with may enter the result more than once."""
    return reduction.op in _IDEMPOTENT


def identity(reduction: Reduction) -> str:
    """What changes nothing when it is combined."""
    kind = reduction.type
    if kind.integral:
        return "1" if reduction.op == "*" else "0"
    table = _ONES if reduction.op == "*" else _ZEROS
    if kind.name not in table:
        raise NotLegal(f"no value of {kind.name or 'its type'} is known to change nothing")
    return table[kind.name]


def nothing(reduction: Reduction) -> str:
    """A value that every other one is kept beside, for extremes and bits as well."""
    kind, op = reduction.type, reduction.op
    if op not in _IDEMPOTENT or op == "|":
        return identity(reduction)
    if op == "&":
        return f"({kind.name})-1"
    return beyond(kind, op)


def beyond(kind: CType, op: str) -> str:
    """What every value is kept beside by ``min`` or ``<``, or by ``max`` or ``>``."""
    whole = _WHOLE_ENDS.get((kind.size or 0, kind.signed)) if kind.integral else None
    ends = _ENDS.get(kind.name, whole)
    if ends is not None:
        return ends[op in ("max", ">")]
    raise NotLegal(f"no {kind.name or 'value of its type'} is known to be beyond all others")


def finite(kind: CType, op: str) -> str:
    """The same of floats, where an infinity would not do: the greatest number, or the least."""
    ends = _FINITE.get(kind.name)
    if ends is None:
        raise NotLegal(f"`{kind.name or 'its type'}` is not a type of plain floats")
    return ends[op in ("max", ">")]


def supported(reduction: Reduction) -> None:
    """Raise NotLegal for what shuffles cannot carry."""
    if reduction.op not in _WORDS:
        raise NotLegal(f"`{reduction.op}` is not combined over lanes", reduction.line)
    if not reduction.type.integral and any(test.startswith("!") for test in reduction.tests):
        raise NotLegal(f"`{reduction.place}` takes a NaN, and then what follows it", reduction.line)
    if not reduction.fits:
        raise NotLegal(f"`{reduction.place}` cuts off what it is the extreme of", reduction.line)
    carries(reduction.type, reduction.line)


def carries(kind: CType, line: int) -> None:
    """Raise NotLegal for a type that shuffles cannot carry."""
    whole = kind.kind == "int" and kind.size in (1, 2, 4, 8)
    plain = whole or kind.name in ("float", "double", "__half")
    if kind.depth or kind.lanes != 1 or not plain:
        called = "a pointer" if kind.depth else kind.name or "its type"
        raise NotLegal(f"a shuffle does not carry {called}", line)


def test(reduction: Reduction) -> str:
    """How a value must compare with what is selected so far: ``>``, or ``>=`` for the last."""
    tests = {_OPPOSITE.get(one, one) for one in reduction.tests}
    if len(tests) != 1 or not tests <= {"<", "<=", ">", ">="}:
        raise NotLegal("which of equals it keeps is not certain", reduction.line)
    return tests.pop()


def word_of(reduction: Reduction) -> str:
    """What helpers are named by, each for all types that it is right for."""
    own = _EXTREMES.get(reduction.type.name, "") if reduction.op in ("min", "max") else ""
    return own + _WORDS[reduction.op]
