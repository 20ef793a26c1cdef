"""setp, set, selp, slct, testp. Source: PTX ISA, "Comparison and Selection Instructions"."""

from __future__ import annotations

from optiml_magic.emulator.instructions import half
from optiml_magic.emulator.instructions.floating import flushed
from optiml_magic.emulator.instructions.table import lowers
from optiml_magic.emulator.ir import constant, each, floats, integers, vector
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.emulator.ptx import Instruction, Operand, Pair, bits, is_type

_ORDERED = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_UNORDERED = {"equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge"}
_FLOAT = _ORDERED | _UNORDERED | {"num": "ord", "nan": "uno"}
_UNSIGNED = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}
_COMBINE = ("and", "or", "xor")


def compare(k: Lanes, i: Instruction, type_: str, a: Operand, b: Operand) -> str:
    """The predicate that the comparison named in the opcode gives."""
    name = i.parts[1]
    if "f" in type_:
        width = bits(type_)
        if type_ == "f16" and "ftz" not in i.parts:
            width = 64  # where every half and its order are exact
            x, y = (half.widened(k, k.read_float(o, "f16")) for o in (a, b))
        elif half.is_half(type_):
            raise k.unsupported()
        else:
            x, y = (flushed(k, i, k.read_float(o, type_), width) for o in (a, b))
        return k.code.let(f"fcmp {_FLOAT[name]} {floats(width)} {x}, {y}")
    if name in ("eq", "ne"):
        order = name
    else:
        order = _UNSIGNED.get(name) or ("s" if type_[0] == "s" else "u") + name
    t = integers(bits(type_))
    return k.code.let(f"icmp {order} {t} {k.read(a, type_)}, {k.read(b, type_)}")


def _combined(k: Lanes, i: Instruction, result: str, third: Operand | None) -> str:
    name = next((p for p in i.parts[2:] if p in _COMBINE), None)
    if name is None or third is None:
        return result
    return k.code.let(f"{name} {vector('i1')} {result}, {k.predicate(third)}")


def _third(i: Instruction) -> Operand | None:
    return i.operands[3] if len(i.operands) > 3 else None


@lowers("setp")
def set_predicate(k: Lanes, i: Instruction) -> None:
    target, a, b = i.operands[:3]
    result = compare(k, i, i.type, a, b)
    if isinstance(target, Pair):
        opposite = k.code.let(f"xor {vector('i1')} {result}, {each([1] * 32, 1)}")
        first, second = (_combined(k, i, r, _third(i)) for r in (result, opposite))
        k.write(target.first, first, "pred")
        k.write(target.second, second, "pred")
    else:
        k.write(target, _combined(k, i, result, _third(i)), "pred")


@lowers("set")
def set_value(k: Lanes, i: Instruction) -> None:
    target_type, source_type = [p for p in i.parts if is_type(p)]
    target, a, b = i.operands[:3]
    result = _combined(k, i, compare(k, i, source_type, a, b), _third(i))
    yes = constant(0x3F800000 if "f" in target_type else -1, 32)
    t = integers(32)
    k.write(
        target,
        k.code.let(f"select {vector('i1')} {result}, {t} {yes}, {t} zeroinitializer"),
        target_type,
    )


@lowers("selp")
def select(k: Lanes, i: Instruction) -> None:
    t = integers(bits(i.type))
    a, b = (k.read(o, i.type) for o in i.operands[1:3])
    p = k.predicate(i.operands[3])
    k.write(i.operands[0], k.code.let(f"select {vector('i1')} {p}, {t} {a}, {t} {b}"), i.type)


@lowers("slct")
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


@lowers("testp")
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
