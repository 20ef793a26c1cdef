"""setp, set, selp, slct, testp. Source: PTX ISA, "Comparison and Selection Instructions"."""

from __future__ import annotations

from optiml_magic.emulator.instructions import half
from optiml_magic.emulator.instructions.floating import flushed
from optiml_magic.emulator.instructions.table import lowers
from optiml_magic.emulator.ir import constant, each, floats, integers, vector
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.ptx.nouns import Instruction, Operand, Pair, bits, is_type

_ORDERED = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_UNORDERED = {"equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge"}
_FLOAT = _ORDERED | _UNORDERED | {"num": "ord", "nan": "uno"}
_UNSIGNED = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}
_COMBINE = ("and", "or", "xor")


def compare(k: Lanes, i: Instruction, type_: str, a: Operand, b: Operand) -> list[str]:
    """What the comparison named in the opcode gives: a predicate, or one for each half of pairs."""
    name = i.parts[1]
    if half.is_half(type_):
        kind = half.kind_of(type_)
        sides = []
        for operand in (a, b):
            values = half.parts(k, operand, type_)
            sides.append([half.single(k, half.flushed(k, i, v, kind), kind) for v in values])
        return [
            k.code.let(f"fcmp {_FLOAT[name]} {floats(32)} {x}, {y}")
            for x, y in zip(*sides, strict=True)
        ]
    if "f" in type_:
        width = bits(type_)
        x, y = (flushed(k, i, k.read_float(o, type_), width) for o in (a, b))
        return [k.code.let(f"fcmp {_FLOAT[name]} {floats(width)} {x}, {y}")]
    if name in ("eq", "ne"):
        order = name
    else:
        order = _UNSIGNED.get(name) or ("s" if type_[0] == "s" else "u") + name
    t = integers(bits(type_))
    return [k.code.let(f"icmp {order} {t} {k.read(a, type_)}, {k.read(b, type_)}")]


def _combined(k: Lanes, i: Instruction, result: str, third: Operand | None) -> str:
    name = next((p for p in i.parts[2:] if p in _COMBINE), None)
    if name is None or third is None:
        return result
    return k.code.let(f"{name} {vector('i1')} {result}, {k.predicate(third)}")


def _third(i: Instruction) -> Operand | None:
    return i.operands[3] if len(i.operands) > 3 else None


_TAKES = " ".join((*_FLOAT, *_UNSIGNED, *_COMBINE, "ftz"))


@lowers("setp", takes=_TAKES)
def set_predicate(k: Lanes, i: Instruction) -> None:
    target, a, b = i.operands[:3]
    results = compare(k, i, i.type, a, b)
    if isinstance(target, Pair):
        if len(results) == 1:  # the second predicate is the opposite; pairs have one for each half
            results.append(k.code.let(f"xor {vector('i1')} {results[0]}, {each([1] * 32, 1)}"))
        first, second = (_combined(k, i, r, _third(i)) for r in results)
        k.write(target.first, first, "pred")
        k.write(target.second, second, "pred")
    else:
        k.write(target, _combined(k, i, results[0], _third(i)), "pred")


_ONE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


@lowers("set", takes=_TAKES)
def set_value(k: Lanes, i: Instruction) -> None:
    target_type, source_type = [p for p in i.parts if is_type(p)]
    target, a, b = i.operands[:3]
    results = [_combined(k, i, r, _third(i)) for r in compare(k, i, source_type, a, b)]
    width = bits(target_type) // len(results)
    yes = constant(_ONE.get(half.kind_of(target_type), -1), width)
    t = integers(width)
    values = [
        k.code.let(f"select {vector('i1')} {r}, {t} {yes}, {t} zeroinitializer") for r in results
    ]
    if len(values) == 2:
        half.join(k, target, values)
    else:
        k.write(target, values[0], target_type)


@lowers("selp")
def select(k: Lanes, i: Instruction) -> None:
    t = integers(bits(i.type))
    a, b = (k.read(o, i.type) for o in i.operands[1:3])
    p = k.predicate(i.operands[3])
    k.write(i.operands[0], k.code.let(f"select {vector('i1')} {p}, {t} {a}, {t} {b}"), i.type)


@lowers("slct", takes="ftz")
def select_by_sign(k: Lanes, i: Instruction) -> None:
    """A where c >= 0, else b."""
    type_, sign_type = [p for p in i.parts if is_type(p)]
    t = integers(bits(type_))
    a, b = (k.read(o, type_) for o in i.operands[1:3])
    if sign_type == "f32":
        c = flushed(k, i, k.read_float(i.operands[3], "f32"), 32)
        p = k.code.let(f"fcmp oge {floats(32)} {c}, zeroinitializer")
    else:
        p = k.code.let(f"icmp sge {integers(32)} {k.read(i.operands[3], 's32')}, zeroinitializer")
    k.write(i.operands[0], k.code.let(f"select {vector('i1')} {p}, {t} {a}, {t} {b}"), type_)


@lowers("testp", takes="finite infinite number notanumber normal subnormal")
def test_property(k: Lanes, i: Instruction) -> None:
    width = bits(i.type)
    t = integers(width)
    fraction = 23 if width == 32 else 52
    sign_free = k.code.let(
        f"and {t} {k.read(i.operands[1], i.type)}, {constant((1 << width - 1) - 1, width)}"
    )
    infinity = constant((((1 << width - 1) - 1) >> fraction) << fraction, width)
    smallest = constant(1 << fraction, width)
    less = k.code.let(f"icmp ult {t} {sign_free}, {infinity}")
    tests = {
        "finite": less,
        "infinite": f"icmp eq {t} {sign_free}, {infinity}",
        "number": f"icmp ule {t} {sign_free}, {infinity}",
        "notanumber": f"icmp ugt {t} {sign_free}, {infinity}",
    }
    below = k.code.let(f"icmp ult {t} {sign_free}, {smallest}")
    name = i.parts[1]
    if name == "normal":
        above = k.code.let(f"xor {vector('i1')} {below}, {each([1] * 32, 1)}")
        result = k.code.let(f"and {vector('i1')} {less}, {above}")
    elif name == "subnormal":
        nonzero = k.code.let(f"icmp ne {t} {sign_free}, zeroinitializer")
        result = k.code.let(f"and {vector('i1')} {below}, {nonzero}")
    else:
        result = tests[name] if name == "finite" else k.code.let(tests[name])
    k.write(i.operands[0], result, "pred")
