"""Device functions, inlined into the kernel that calls them; arguments travel in local memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from optiml_magic.emulator.faults import UnsupportedPtx
from optiml_magic.emulator.ptx import (
    Address,
    Call,
    Function,
    Immediate,
    Instruction,
    Item,
    Label,
    Negated,
    Operand,
    Pair,
    PtxModule,
    Register,
    Symbol,
    Variable,
    Vector,
)


def inline(module: PtxModule, entry: Function) -> Function:
    """``entry`` without calls; raises UnsupportedPtx for recursion and unknown functions."""
    return _Inliner(module, entry).run()


class _Inliner:
    def __init__(self, module: PtxModule, entry: Function) -> None:
        self._module = module
        self._entry = entry
        self._copies = 0
        self._out = replace(entry, variables=[], body=[], tables={})

    def run(self) -> Function:
        self._expand(self._entry, _Renaming("", {}), (self._entry.name,), "", 0)
        return self._out

    def _expand(
        self,
        function: Function,
        names: _Renaming,
        active: tuple[str, ...],
        end: str,
        line: int,
    ) -> None:
        self._out.variables += [replace(v, name=names.variable(v)) for v in function.variables]
        for table, labels in function.tables.items():
            self._out.tables[table + names.suffix] = tuple(n + names.suffix for n in labels)
        for item in function.body:
            if isinstance(item, Label):
                self._out.body.append(Label(item.name + names.suffix))
            elif isinstance(item, Call):
                self._call(replace(item, line=item.line or line), names, active)
            elif end and item.base == "ret":
                jump = names.instruction(item, line)
                self._out.body.append(replace(jump, opcode="bra", operands=(Symbol(end),)))
            else:
                self._out.body.append(names.instruction(item, line))

    def _call(self, call: Call, names: _Renaming, active: tuple[str, ...]) -> None:
        arguments = [names.symbol(a) for a in call.arguments]
        results = [names.symbol(r) for r in call.results]
        if call.guard is not None:
            raise UnsupportedPtx("call", call.line, "A predicated call is not supported.")
        if intrinsic := _INTRINSICS.get(call.target):
            self._out.body += intrinsic(arguments, results, call.line)
            return
        target = self._module.functions.get(call.target)
        if target is None:
            message = (
                f"The call of `{call.target}` is not supported: its code is not in the module."
            )
            raise UnsupportedPtx(f"call {call.target}", call.line, message)
        if call.target in active:
            message = f"The recursive call of `{call.target}` is not supported."
            raise UnsupportedPtx(f"call {call.target}", call.line, message)
        self._copies += 1
        suffix = f"@{self._copies}"
        bound = dict(zip((p.name for p in target.params), arguments, strict=True))
        bound |= dict(zip((r.name for r in target.results), results, strict=True))
        end = f"end{suffix}"
        self._expand(
            target, _Renaming(suffix, bound, target), (*active, call.target), end, call.line
        )
        self._out.body.append(Label(end))


class _Renaming:
    """What a function's own names become in one inlined copy of it."""

    def __init__(
        self, suffix: str, bound: dict[str, str], function: Function | None = None
    ) -> None:
        self.suffix = suffix
        self._map = dict(bound)
        if function is not None:
            for variable in function.variables:
                self._map[variable.name] = self.variable(variable)
            for item in function.body:
                if isinstance(item, Label):
                    self._map[item.name] = item.name + suffix

    def variable(self, variable: Variable) -> str:
        # A function's shared variable is one per block, however often the function is inlined.
        return variable.name if variable.space == "shared" else variable.name + self.suffix

    def symbol(self, name: str) -> str:
        return self._map.get(name, name)

    def instruction(self, instruction: Instruction, line: int) -> Instruction:
        guard = instruction.guard
        return replace(
            instruction,
            operands=tuple(self._operand(o) for o in instruction.operands),
            guard=self._register(guard) if guard else None,
            line=instruction.line or line,
        )

    def _register(self, register: Register) -> Register:
        return replace(register, name=register.name + self.suffix)

    def _operand(self, operand: Operand) -> Operand:
        match operand:
            case Register():
                return self._register(operand)
            case Symbol():
                return replace(operand, name=self.symbol(operand.name))
            case Address(base=Register() as base) | Address(base=Symbol() as base):
                return replace(operand, base=self._operand(base))  # type: ignore[arg-type]
            case Vector():
                return Vector(tuple(self._operand(o) for o in operand.items))
            case Pair():
                return Pair(self._operand(operand.first), self._operand(operand.second))
            case Negated():
                return Negated(self._register(operand.register))
            case _:
                return operand


def _assertfail(arguments: list[str], _results: list[str], line: int) -> list[Item]:
    return [Instruction("assertfail.param.u64", (Address(Symbol(arguments[0])),), line)]


def _vprintf(_arguments: list[str], results: list[str], line: int) -> list[Item]:
    """What a kernel prints is not shown; the call answers 0."""
    zero = Immediate(0)
    store = [Instruction("st.param.b32", (Address(Symbol(r)), zero), line) for r in results]
    return list(store)


_INTRINSICS: dict[str, Callable[[list[str], list[str], int], list[Item]]] = {
    "__assertfail": _assertfail,
    "vprintf": _vprintf,
}
