"""Device functions, inlined into the kernel that calls them; arguments travel in local memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from optiml_magic.emulator.layout import FUNCTION_BASE
from optiml_magic.ptx.faults import UnsupportedPtx
from optiml_magic.ptx.nouns import (
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
from optiml_magic.ptx.traits import is_barrier


def inline(module: PtxModule, entry: Function) -> Function:
    """``entry`` without calls; raises UnsupportedPtx for recursion and unknown functions."""
    return _Inliner(module, entry).run()


def addresses(module: PtxModule) -> dict[str, int]:
    """A number for each device function that something points to."""
    return {name: FUNCTION_BASE + 16 * at for at, name in enumerate(module.pointed_to, 1)}


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
                continue
            after = self._skip(item, names, line)
            if isinstance(item, Call):
                self._call(replace(item, line=item.line or line), names, active)
            elif end and item.base == "ret":
                jump = names.instruction(item, line)
                self._out.body.append(replace(jump, opcode="bra", operands=(Symbol(end),)))
            else:
                plain = replace(item, guard=None) if after else item
                self._out.body.append(names.instruction(plain, line))
            self._out.body += after

    def _skip(self, item: Instruction | Call, names: _Renaming, line: int) -> list[Label]:
        """A branch around a predicated call, barrier or table of branches; the label to land at."""
        special = isinstance(item, Call) or is_barrier(item) or item.base == "brx"
        if item.guard is None or not special:
            return []
        after = self._label("after")
        guard = names.register(item.guard)
        self._jump(after.name, item.line or line, guard, unless=not item.unless)
        return [after]

    def _label(self, what: str) -> Label:
        self._copies += 1
        return Label(f"{what}@{self._copies}")

    def _jump(
        self, target: str, line: int, guard: Register | None = None, *, unless: bool = False
    ) -> None:
        """A branch of our own, which no counter counts."""
        jump = Instruction("bra", (Symbol(target),), line, guard, unless, counted=False)
        self._out.body.append(jump)

    def _call(self, call: Call, names: _Renaming, active: tuple[str, ...]) -> None:
        arguments = [names.symbol(a) for a in call.arguments]
        results = [names.symbol(r) for r in call.results]
        if call.pointer is not None:
            self._indirect(call, names.register(call.pointer), (arguments, results), active)
        elif intrinsic := _INTRINSICS.get(call.target):
            self._out.body += intrinsic(arguments, results, call.line)
        elif call.target not in self._module.functions:
            message = (
                f"The call of `{call.target}` is not supported: its code is not in the module."
            )
            raise UnsupportedPtx(f"call {call.target}", call.line, message)
        elif call.target in active:
            message = f"The recursive call of `{call.target}` is not supported."
            raise UnsupportedPtx(f"call {call.target}", call.line, message)
        else:
            target = self._module.functions[call.target]
            self._body(target, arguments, results, active, call.line)

    def _body(
        self,
        target: Function,
        arguments: Sequence[str],
        results: Sequence[str],
        active: tuple[str, ...],
        line: int,
    ) -> None:
        end = self._label("end")
        suffix = end.name.removeprefix("end")
        bound = dict(zip((p.name for p in target.params), arguments, strict=True))
        bound |= dict(zip((r.name for r in target.results), results, strict=True))
        renaming = _Renaming(suffix, bound, target)
        self._expand(target, renaming, (*active, target.name), end.name, line)
        self._out.body.append(end)

    def _indirect(
        self,
        call: Call,
        pointer: Register,
        passed: tuple[list[str], list[str]],
        active: tuple[str, ...],
    ) -> None:
        """One function after another is asked whether the pointer means it; none of them: a trap.

        Only functions with parameters and results of the same number can be meant. A function
        that is being called already is left out: a pointer to it would be a recursive call.
        """
        arguments, results = passed
        done = self._label("done")
        for name, address in addresses(self._module).items():
            target = self._module.functions[name]
            shape = len(target.params), len(target.results)
            if name in active or shape != (len(arguments), len(results)):
                continue
            other = self._label("other")
            meant = Register(f"%meant{other.name}", "pred")
            test = (meant, pointer, Immediate(address))
            self._out.body.append(Instruction("setp.eq.b64", test, call.line, counted=False))
            self._jump(other.name, call.line, meant, unless=True)
            self._body(target, arguments, results, active, call.line)
            self._jump(done.name, call.line)
            self._out.body.append(other)
        self._out.body.append(Instruction("trap", (), call.line, counted=False))
        self._out.body.append(done)


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
            guard=self.register(guard) if guard else None,
            line=instruction.line or line,
        )

    def register(self, register: Register) -> Register:
        return replace(register, name=register.name + self.suffix)

    def _operand(self, operand: Operand) -> Operand:
        match operand:
            case Register():
                return self.register(operand)
            case Symbol():
                return replace(operand, name=self.symbol(operand.name))
            case Address(base=Register() as base) | Address(base=Symbol() as base):
                return replace(operand, base=self._operand(base))  # type: ignore[arg-type]
            case Vector():
                return Vector(tuple(self._operand(o) for o in operand.items))
            case Pair():
                return Pair(self._operand(operand.first), self._operand(operand.second))
            case Negated():
                return Negated(self.register(operand.register))
            case _:
                return operand


def _assertfail(arguments: list[str], _results: list[str], line: int) -> list[Item]:
    return [Instruction("assertfail.param.u64", (Address(Symbol(arguments[0])),), line)]


def _vprintf(arguments: list[str], results: list[str], line: int) -> list[Item]:
    """The text is made after the launch; the call answers 0, not the number of arguments."""
    given = tuple(Address(Symbol(a)) for a in arguments)
    zero = Immediate(0)
    store = [Instruction("st.param.b32", (Address(Symbol(r)), zero), line) for r in results]
    return [Instruction("vprintf.param.u64", given, line), *store]


_INTRINSICS: dict[str, Callable[[list[str], list[str], int], list[Item]]] = {
    "__assertfail": _assertfail,
    "vprintf": _vprintf,
}
