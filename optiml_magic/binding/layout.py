"""Structs laid out alike on both sides: the compiler is asked, behind the kernel's text.

NumPy packs the fields of a dtype unless it is told ``align=True``, and C++ does not; a kernel that
reads one layout as the other gives garbage. So size, members, offsets and kinds are asserted in the
compilation that makes the code, and what it answers is told in the terms of the array.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.binding.elements import suggested
from optiml_magic.binding.interface import Interface, launched, pairs
from optiml_magic.binding.plan import bound_variables
from optiml_magic.errors import BindingError
from optiml_magic.kernels.signature import Parameter
from optiml_magic.kernels.unit import lift_program
from optiml_magic.kernels.variables import DeviceVariable
from optiml_magic.model.build import CompileFailure
from optiml_magic.model.dtypes import DType, numbers, title
from optiml_magic.source.program import Program

# A cell may have macros of one letter, so no name here is one.
# NVRTC 13.0 has no __builtin_offsetof; what its front end makes of one, __INTADDR__, it has.
_FIRST_LINE = 1_000_001  # beyond every line of a cell
_HEAD = """
#line 1000001
template <int optiml_at, class optiml_function> struct optiml_parameter;
template <class optiml_result, class optiml_first, class... optiml_others> struct optiml_parameter<0, optiml_result (*)(optiml_first, optiml_others...)> { using type = optiml_first; };
template <int optiml_at, class optiml_result, class optiml_first, class... optiml_others> struct optiml_parameter<optiml_at, optiml_result (*)(optiml_first, optiml_others...)> : optiml_parameter<optiml_at - 1, optiml_result (*)(optiml_others...)> {};
template <class optiml_type> struct optiml_bare { using type = optiml_type; };
template <class optiml_type> struct optiml_bare<const optiml_type> : optiml_bare<optiml_type> {};
template <class optiml_type> struct optiml_bare<optiml_type*> : optiml_bare<optiml_type> {};
template <class optiml_type, decltype(sizeof(0)) optiml_count> struct optiml_bare<optiml_type[optiml_count]> : optiml_bare<optiml_type> {};
template <int line, unsigned long long compiler, unsigned long long array> struct optiml_layout { static_assert(compiler == array, "layout"); };
#ifdef __CUDACC_RTC__
#define OPTIML_OFFSET(optiml_struct, member) __INTADDR__(&((optiml_struct*)0)->member)
#else
#define OPTIML_OFFSET(optiml_struct, member) __builtin_offsetof(optiml_struct, member)
#endif
"""  # noqa: E501
_ERROR = re.compile(r"\((?P<line>\d+)\): error[^:\n]*: (?P<text>.*)")
_INSTANCE = re.compile(r"\[with line=(?P<line>\d+), compiler=(?P<compiler>\d+)")


@dataclass(frozen=True)
class _Check:
    code: str
    place: Parameter | DeviceVariable
    name: str
    message: str  # with {} for what the compiler says


def checked_text(program: Program, found: Interface) -> str:
    """The text to compile: the program's own, and behind it what its structs must be like."""
    checks = "\n".join(check.code for check in _checks(program, found))
    return program.compiled_text() + (_HEAD + checks + "\n" if checks else "")


def misfit(program: Program, found: Interface, failure: CompileFailure) -> BindingError | None:
    """What is wrong with a struct, if that is why a checked text did not compile."""
    error = _ERROR.search(failure.log)
    if error is None or int(error["line"]) < _FIRST_LINE:
        return None
    instance = _INSTANCE.search(failure.log)
    at = int((instance or error)["line"]) - _FIRST_LINE - _HEAD.count("\n") + 2
    checks = list(_checks(program, found))
    if not 0 <= at < len(checks):
        return None  # the text numbers its own lines
    check = checks[at]
    ctype, dtype = check.place.ctype, found.structs[check.name]
    told = check.message.format(instance["compiler"]) if instance else error["text"]
    unit = lift_program(program, found.defines)
    return BindingError(
        f"`{check.name}` holds {title(dtype)}, and its struct is `{ctype}`: {told}",
        fix=f"give it the layout of the struct: {suggested(unit, ctype)}",
        line=check.place.line,
    )


def _checks(program: Program, found: Interface) -> Iterator[_Check]:
    seen: set[tuple[str, DType]] = set()
    for launch, kernel in launched(program, found.defines):
        function = launch.kernel or kernel.name
        for at, (parameter, expression) in enumerate(pairs(launch, kernel)):
            name = expression.text
            dtype = found.structs.get(name)
            if dtype is None or parameter.dtype is not None or (parameter.ctype, dtype) in seen:
                continue
            seen.add((parameter.ctype, dtype))
            spelled = f"optiml_parameter<{at}, decltype(&{function})>::type"
            for code, message in _asserted(f"optiml_{len(seen)}", spelled, dtype):
                yield _Check(code, parameter, name, message)
    for variable, bound in bound_variables(program, found):
        if variable.dtype is None and (variable.ctype, bound.dtype) not in seen:
            seen.add((variable.ctype, bound.dtype))
            spelled = f"decltype({variable.name})"
            for code, message in _asserted(f"optiml_{len(seen)}", spelled, bound.dtype):
                yield _Check(code, variable, bound.name, message)


def _asserted(struct: str, spelled: str, dtype: DType) -> Iterator[tuple[str, str]]:
    yield f"using {struct} = optiml_bare<{spelled}>::type;", "{}"
    yield (
        _equal(f"sizeof({struct})", dtype.itemsize),
        f"it has {{}} bytes for the compiler, and {dtype.itemsize} in the array",
    )
    for number in numbers(dtype):
        path, size = number.path, number.count * number.dtype.itemsize
        value = f"(({struct}*)0)->{path}"
        yield (
            _equal(f"OPTIML_OFFSET({struct}, {path})", number.offset),
            f"`{path}` begins at byte {{}} for the compiler, and at {number.offset} in the array",
        )
        yield (
            _equal(f"sizeof({value})", size),
            f"`{path}` has {{}} bytes for the compiler, and {size} in the array",
        )
        if number.count == 1 and number.dtype in ("f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4",
                                                  "i8", "u8"):  # fmt: skip
            real = int(number.dtype.kind == "f")
            yield (
                _equal(f"((decltype({value}))0.5 != 0)", real),
                f"`{path}` is {'no' if real else 'a'} floating point number in the code",
            )


def _equal(compiler: str, array: int) -> str:
    return f"template struct optiml_layout<__LINE__, {compiler}, {array}>;"
