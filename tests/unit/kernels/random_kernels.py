"""Random kernels whose accesses are hard to follow, and all inside of their arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from .random_numbers import (
    INT,
    LONG,
    MIDDLE,
    NARROW,
    PRELUDE,
    SIGNATURE,
    SIZE,
    UINT,
    UNSIGNED,
    Local,
    Walk,
    Writer,
)


@dataclass
class Maker(Writer):
    """Writes one kernel."""

    # -- statements

    def body(self, count: int) -> None:
        for _ in range(count):
            if self.left <= 0:
                break
            self.left -= 1
            self.rng.choice(self._STATEMENTS)(self)

    def declare(self) -> None:
        kind = self.rng.choice([INT, INT, INT, UINT, SIZE, LONG, *NARROW, "const int"])
        value = self.small()
        if kind in (SIZE, LONG) and value.type == UINT and value.low < 0:
            value = self._reduced(value)
        name = self.fresh("v", value.text)
        self.line(f"{kind} {name} = {value.text};")
        if kind == "const int":
            self.locals.append(Local(name, INT, value.low, value.high, fixed=True))
        elif kind in NARROW:
            self.locals.append(Local(name, kind, *NARROW[kind], spare=10**6))
        else:
            self.locals.append(Local(name, kind))

    def _assignable(self) -> Local | None:
        found = [v for v in self.visible if not v.fixed]
        return self.rng.choice(found) if found else None

    def assign(self) -> None:
        found = self._assignable()
        if found is None:
            return self.declare()
        by = self.rng.randrange(1, 4)
        if self.rng.random() < 0.5 and found.spare > by * self.rounds:
            found.spare -= by * self.rounds
            forms = [
                f"{found.name} += {by}",
                f"{found.name} -= {by}",
                f"{found.name} = {found.name} + {by}",
                f"{found.name} = {by} + {found.name}",
            ]
            if by == 1:
                forms += [f"{found.name}++", f"--{found.name}"]
            if found.type == INT and by > 1:
                forms.append(f"bump({found.name}, {by})")
            self.line(self.rng.choice(forms) + ";")
            return None
        value = self.small()
        if found.type in (SIZE, LONG) and value.type == UINT and value.low < 0:
            value = self._reduced(value)
        if self.rng.random() < 0.2:
            other = self._assignable()
            if other is not None and other is not found and other.spare > self.rounds:
                other.spare -= self.rounds
                self.line(f"{found.name} = {value.text}, {other.name} += 1;")
                return None
        self.line(f"{found.name} = {value.text};")
        return None

    def store(self) -> None:
        self.stepping_off = False
        index = self.index(2)
        self.stepping_off = True
        match self.rng.randrange(6):
            case 0:
                self.line(f"atomicAdd(&cnt[{index}], 1);")
            case 1:
                self.line(f"*(out + ({index})) = acc;")
            case 2:
                self.line(f"cnt[{index}] = {self.rng.randrange(90)};")
            case 3:
                self.line(f"(&out[{self.rng.randrange(4)}])[{index}] = 1.5f;")
            case _:
                self.line(f"out[{index}] = {self.rng.choice(['acc', '2.0f', 'acc * 2.0f'])};")

    def load(self) -> None:
        self.stepping_off = False
        self.line(f"acc += in[{self.index(2)}];")
        self.stepping_off = True

    def guard(self) -> None:
        with self.block(f"if ({self.condition(2)})"):
            self.body(self.rng.randrange(1, 4))
        if self.rng.random() < 0.4:
            with self.block("else"):
                self.body(self.rng.randrange(1, 3))

    def leave(self) -> None:
        if self.left > 9:
            return self.store()
        if self.loops and self.rng.random() < 0.7:
            word = self.rng.choice(["break", "continue"]) if not self.endless else "break"
            self.line(f"if ({self.condition(1)}) {word};")
        else:
            self.line(f"if ({self.condition(1)}) return;")
        return None

    endless = False

    def reference(self) -> None:
        found = [v for v in self.visible if not v.fixed and v.type == INT]
        if not found:
            return self.declare()
        target, name = self.rng.choice(found), f"r{self.made}"
        self.made += 1
        self.line(f"int& {name} = {target.name};")
        by = self.rng.randrange(1, 3)
        if target.spare > by * self.rounds:
            target.spare -= by * self.rounds
            self.line(f"{name} += {by};")
        if target.spare > 4:  # what it may move by is the target's
            target.spare //= 2
            self.locals.append(Local(name, INT, spare=target.spare))
        return None

    def pointer(self) -> None:
        array = self.rng.choice(["in", "out"])
        name = f"p{self.made}"
        self.made += 1
        const = "const " if array == "in" else ""
        offset = self.small(60)
        start = self.rng.choice([f"{array} + {MIDDLE} + {{}}", f"&{array}[base + {{}}]"])
        self.line(f"{const}float* {name} = {start.format(offset.text)};")
        self.walks.append(Walk(name, array))

    def walk(self) -> None:
        if not self.walks:
            return self.pointer()
        found = self.rng.choice(self.walks)
        by = self.rng.randrange(1, 4)
        moved = found.spare > 4 * self.rounds
        offset = self.small(30)
        place = self.rng.choice(
            [f"*({found.name} + {offset.text})", f"{found.name}[{offset.text}]"]
        )
        if offset.type in UNSIGNED and offset.low < 0:
            place = f"*{found.name}"
        if moved and self.rng.random() < 0.6:
            found.spare -= by * self.rounds
            place = self.rng.choice([f"*{found.name}++", f"*++{found.name}", f"*{found.name}--"])
        if found.array == "in":
            self.line(f"acc += {place};")
        else:
            self.line(f"{place} = {self.rng.choice(['acc', '4.0f'])};")
        if moved and self.rng.random() < 0.3 and found.spare > by * self.rounds:
            found.spare -= by * self.rounds
            self.line(f"{found.name} += {by};")
        if self.rng.random() < 0.2:
            name = self.fresh("v")
            self.line(f"int {name} = (int)({found.name} - {found.array}) - {MIDDLE};")
            self.locals.append(Local(name, INT, -900, 900, fixed=True))
        return None

    def bare_block(self) -> None:
        with self.block(""):
            self.body(self.rng.randrange(1, 3))

    def switch(self) -> None:
        test = self._as_int(self.positive(4))
        with self.block(f"switch ({test.text})"):
            self.line("case 1:")
            self.assign()
            if self.rng.random() < 0.7:
                self.line("break;")
            self.line("default:")
            self.store()
            if self.rng.random() < 0.3:
                self.line("case 2:")
                self.assign()

    def loop(self) -> None:
        if self.loops >= 3 or self.rounds > 60:
            return self.store()
        from .random_loops import LOOPS

        self.rng.choice(LOOPS)(self)
        return None

    @contextmanager
    def inside(self, most: int, counter: Local | None) -> Iterator[None]:
        """The rounds of a loop; its counter is read there and not assigned."""
        before = self.rounds, self.loops, self.endless
        self.rounds, self.loops = self.rounds * max(most, 1), self.loops + 1
        if counter is not None:
            counter.fixed, kept = True, counter.fixed
        yield
        if counter is not None:
            counter.fixed = kept
        self.rounds, self.loops, self.endless = before

    _STATEMENTS: ClassVar[tuple[Callable[[Maker], None], ...]] = (
        declare, declare, assign, assign, assign, store, store, store, load, guard, guard, leave,
        reference, pointer, walk, walk, loop, loop, loop, loop, bare_block, switch,
    )  # fmt: skip


def kernel(rng: Random, name: str) -> str:
    """A kernel and its launch."""
    axes = rng.randrange(1, 4)
    grid = ", ".join(str(rng.randrange(1, 3)) for _ in range(axes))
    block = ", ".join(str(rng.choice([(3, 7), (2, 5), (2, 3)][axes - 1])) for _ in range(axes))
    maker = Maker(rng, axes, left=rng.randrange(4, 17))
    maker.line("float acc = 0.0f;")
    maker.line("int i = blockIdx.x * blockDim.x + threadIdx.x;")
    maker.locals.append(Local("i", INT, spare=80))
    while maker.left > 0:
        maker.body(3)
    maker.line("out[base + i] = acc;")
    body = "\n".join(maker.lines)
    return (
        f"#pragma optiml launch {name} grid({grid}) block({block})\n"
        f"__global__ void {name}({SIGNATURE}) {{\n{body}\n}}\n"
    )


def program(rng: Random, kernels: int) -> str:
    return PRELUDE + "\n" + "\n".join(kernel(rng, f"k{at}") for at in range(kernels))
