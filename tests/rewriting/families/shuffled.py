"""Blocks whose warps combine what their lanes found by shuffles, and then what all warps found."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.rewriting.writing import Array, Made, indented, sizes_of

_COMBINED = {"sum": "{0} += {1};", "max": "{0} = {2}max{3}({0}, {1});", "min": "{0} = {2}min{3}({1}, {0});"}  # fmt: skip
_NOTHING = {("sum", "float"): ("0.0f", "0", "0.f"), ("max", "float"): ("-100.0f", "-1e30f"),
    ("min", "float"): ("100.0f", "1e30f"), ("sum", "int"): ("0",), ("max", "int"): ("-100",),
    ("min", "int"): ("100",)}  # fmt: skip


@dataclass
class _Words:
    """How one kernel spells its places, its type and its width; ``width`` is a number of threads."""

    rng: Random
    width: int
    kind: str
    above: list[str]
    named: bool

    def pick(self, *words: str) -> str:
        return self.rng.choice(words)

    @property
    def thread(self) -> str:
        return "t" if self.named else "threadIdx.x"

    @property
    def lane(self) -> str:
        return "lane" if self.named else self.pick("threadIdx.x % 32", "(threadIdx.x & 31)", "threadIdx.x % warpSize")  # fmt: skip

    @property
    def warp(self) -> str:
        return "warp" if self.named else self.pick("threadIdx.x / 32", "threadIdx.x >> 5")

    @property
    def warps(self) -> str:
        return self.pick("blockDim.x / 32", "(blockDim.x + 31) / 32", "(blockDim.x >> 5)", "blockDim.x / warpSize", str(self.width // 32))  # fmt: skip

    def combined(self, op: str, one: str, other: str) -> str:
        names = ("f", "f") if self.kind == "float" else ("", "")
        return _COMBINED[op].format(one, other, *names)

    def rounds(self, op: str, v: str) -> str:
        """The rounds in which a warp combines the values of its lanes."""
        shuffle = self.pick("__shfl_down_sync", "__shfl_xor_sync")
        mask = self.pick("0xffffffff", "~0u", "0xffffffffu", "-1")
        how = self.rng.randrange(6)
        if how == 0:
            return "\n".join(self.combined(op, v, f"{shuffle}({mask}, {v}, {d})") for d in (16, 8, 4, 2, 1))  # fmt: skip
        if how == 1 and self.kind == "int":
            word = {"sum": "add"}.get(op, op)
            return f"{v} = __reduce_{word}_sync({mask}, {v});"
        head = self.pick("int d = 16; d > 0; d /= 2", "int d = warpSize / 2; d > 0; d >>= 1", "int d = 16; d >= 1; d = d / 2", "int d = 1; d < 32; d *= 2")  # fmt: skip
        if how == 2:
            inner = f"{self.kind} other = {shuffle}({mask}, {v}, d);\n{self.combined(op, v, 'other')}"  # fmt: skip
            return f"for ({head}) {{\n{inner}\n}}"
        if how == 3:
            step = self.combined(op, "v", f"{shuffle}({mask}, v, d)")
            name = f"warp_{op}"
            function = f"__device__ {self.kind} {name}({self.kind} v) {{\n    for ({head}) {step}\n    return v;\n}}\n"  # fmt: skip
            if not any(name in known for known in self.above):
                self.above.append(function)
            return f"{v} = {name}({v});"
        pragma = self.pick("", "#pragma unroll\n")
        return f"{pragma}for ({head}) {self.combined(op, v, f'{shuffle}({mask}, {v}, d)')}"

    def whole(self, op: str, v: str, nothing: str, left: str) -> str:
        """The rounds of all warps, after which one thread puts the whole into ``left``."""
        first = self.pick(f"{self.lane} == 0", f"!({self.lane})")
        lines = [self.rounds(op, v), f"if ({first}) part[{self.warp}] = {v};", "__syncthreads();"]
        index = self.pick(self.thread, self.lane)
        taken = f"{v} = {index} < {self.warps} ? part[{index}] : {nothing};"
        if self.rng.choice([0, 0, 1]):
            taken = f"{v} = {nothing};\nif ({index} < {self.warps}) {v} = part[{index}];"
        alone = self.pick("t == 0", "threadIdx.x == 0", "!t") if self.named else "threadIdx.x == 0"
        ended = f"if ({alone}) {left} = {v};"
        if self.rng.choice([0, 1, 1]):
            test = self.pick(f"{self.thread} < 32", f"({self.warp}) == 0", f"{self.thread} < warpSize")  # fmt: skip
            inside = [taken, self.rounds(op, v), *([ended] if self.rng.choice([0, 1]) else [])]
            lines += [f"if ({test}) {{", *inside, "}"]
            lines += [ended] if ended not in inside else []
        else:
            lines += [taken, self.rounds(op, v), "__syncthreads();", ended]
        return "\n".join(lines)


def _words(rng: Random, kind: str = "") -> tuple[_Words, str]:
    """The words of a kernel, and the lines it begins with."""
    width = rng.choice([64, 64, 128, 32])
    kind = kind or rng.choice(["float", "float", "int"])
    words = _Words(rng, width, kind, [], rng.choice([0, 1]) == 1)
    size = rng.choice(["32", "32", str(width // 32), f"{width} / 32", "8"])
    head = [f"__shared__ {words.kind} part[{size}];", "int row = blockIdx.x;"]
    if words.named:
        head += [f"{rng.choice(['int', 'const int', 'unsigned'])} t = threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;"]  # fmt: skip
    return words, "\n".join(head)


def _rows(words: _Words, body: str, out: tuple[str, ...]) -> Made:
    dtype = {"float": "f4", "int": "i4"}[words.kind]
    text = (
        f"{''.join(words.above)}#pragma optiml launch shuffled grid(rows) block({words.width})\n"
        f"__global__ void shuffled(const {words.kind}* a, {words.kind}* out, int rows, int cols) {{\n"
        f"{indented(body)}\n}}\n"
    )
    arrays = {"a": Array(dtype, ("rows", "cols")), "out": Array(dtype, out, "zeros")}
    return Made("block_shuffles", text, arrays, *sizes_of(words.rng, ["rows", "cols"], (1, 2, 5, 31, 33, 65, 127, 200)))  # fmt: skip


def _loop(words: _Words, inner: str) -> str:
    step = words.pick("blockDim.x", str(words.width))
    return f"for (int j = {words.thread}; j < cols; j += {step}) {inner}"


def reduced(rng: Random) -> Made:
    """A block for every row, which thread 0 writes."""
    words, head = _words(rng)
    op = rng.choice(["sum", "sum", "max", "min"])
    nothing = words.pick(*_NOTHING[op, words.kind])
    rounds = words.whole(op, "s", nothing, "out[row]")
    step = words.combined(op, "s", "a[row * cols + j]")
    body = f"{head}\n{words.kind} s = {nothing};\n{_loop(words, step)}\n{rounds}"
    return _rows(words, body, ("rows",))


def spread(rng: Random) -> Made:
    """Two of these one after the other, whose results all threads of the block read."""
    words, head = _words(rng)
    op = rng.choice(["max", "max", "min", "sum"])
    nothing, zero = words.pick(*_NOTHING[op, words.kind]), words.pick(*_NOTHING["sum", words.kind])
    left = words.pick("most", "part[0]")
    first = words.whole(op, "m", nothing, left)
    second = words.whole("sum", "s", zero, "total")
    step = words.combined(op, "m", "a[row * cols + j]")
    kept = f"{words.kind} top = {left};\n__syncthreads();"
    body = (
        f"{head}\n__shared__ {words.kind} most, total;\n{words.kind} m = {nothing};\n{_loop(words, step)}\n"
        f"{first}\n__syncthreads();\n{kept}\n{words.kind} s = {zero};\n"
        f"{_loop(words, 's += a[row * cols + j] - top;')}\n{second}\n__syncthreads();\n"
        f"{_loop(words, 'out[row * cols + j] = a[row * cols + j] + total - top;')}"
    )
    return _rows(words, body, ("rows", "cols"))


def added(rng: Random) -> Made:
    """Whole numbers of a row that each warp adds to those of the others, or the block to none."""
    words, head = _words(rng, "int")
    place = words.pick("&out[row]", "out + row")
    if rng.choice([0, 1]):
        rounds = words.whole("sum", "s", "0", "out[row]").replace("out[row] = s", f"atomicAdd({place}, s)")  # fmt: skip
    else:
        rounds = f"{words.rounds('sum', 's')}\n__syncthreads();\nif ({words.lane} == 0) atomicAdd({place}, s);"  # fmt: skip
    step = words.pick("s += a[row * cols + j];", "if (a[row * cols + j] > 3) s += 1;")
    words.above.append("#pragma optiml init(out) = 0\n")
    return _rows(words, f"{head}\nint s = 0;\n{_loop(words, step)}\n{rounds}", ("rows",))


FAMILY = (reduced, reduced, spread, added)
