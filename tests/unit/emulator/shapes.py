"""Random programs of every shape of control flow: CUDA C++ with structure, PTX without any."""

from __future__ import annotations

import random

HEAD = """
__device__ __noinline__ int twist(int x, int n) {
  for (int i = 0; i < (n & 3); i++) { if (x & 1) x = x * 5 + i; else x = (x >> 1) ^ n; }
  return x;
}
__device__ __noinline__ int pick(int x) {
  if (x & 4) return x * 3;
  if (x & 2) return x - 7;
  return x ^ 0x55;
}
"""


class Writer:
    """One kernel. ``members`` names the mask of the lanes that run the current statement."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0

    def kernel(self, name: str) -> str:
        self.lines = []
        for _ in range(self.random.randint(2, 4)):
            self.statement(self.random.randint(1, 3), "m0", loop="", top=True)
        body = "\n".join(self.lines)
        return f"""
extern "C" __global__ void {name}(const int* in, int* out) {{
  __shared__ int s[96];
  int t = threadIdx.x, n = blockDim.x, a = in[t], b = in[n + t], c = in[2 * n + t];
  unsigned m0 = 0;
  asm volatile("mov.u32 %0, %1;" : "=r"(m0) : "r"((t / 32 + 1) * 32 <= n ? ~0u : (1u << n % 32) - 1));
  s[t] = 0;
  {body}
  out[t] = a * 31 + b * 7 + c;
}}
"""

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def variable(self) -> str:
        return self.random.choice("abc")

    def expression(self) -> str:
        x, y, k = self.variable(), self.variable(), self.random.randint(1, 97)
        return self.random.choice(
            [
                f"{x} + {y}",
                f"{x} * {k} + {y}",
                f"{x} ^ ({y} >> 3)",
                f"{x} - {k}",
                f"pick({x})",
                f"twist({x}, {y})",
                f"min({x}, {y})",
                f"{x} / {k} + {y}",
            ]
        )

    def condition(self) -> str:
        x, y, k = self.variable(), self.variable(), self.random.randint(1, 9)
        tests = [f"({x} & {k}) == 0", f"{x} < {y}", f"{x} % {k + 1} > {k // 2}", f"(t & {k}) != 0"]
        return self.random.choice(tests)

    def statement(self, depth: int, members: str, loop: str, *, top: bool = False) -> None:
        kinds = ["assign", "assign", "together"]
        if depth:
            kinds += ["if", "if", "for", "while", "switch", "chain"]
        if loop == "plain":
            kinds += ["leave", "leave"]
        if depth < 3 and loop != "shared":
            kinds += ["return"] if self.random.random() < 0.3 else []
        if top:
            kinds += ["barrier", "rounds"]
        getattr(self, "do_" + self.random.choice(kinds))(depth, members, loop)

    def several(self, depth: int, members: str, loop: str) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth - 1, members, loop)

    def do_assign(self, depth: int, members: str, loop: str) -> None:
        self.lines.append(f"{self.variable()} = {self.expression()};")

    def do_leave(self, depth: int, members: str, loop: str) -> None:
        word = self.random.choice(["break", "continue"])
        self.lines.append(f"if ({self.condition()}) {{ {self.variable()} += 3; {word}; }}")

    def do_return(self, depth: int, members: str, loop: str) -> None:
        self.lines.append(f"if ({self.condition()}) {{ out[t] = {self.variable()}; return; }}")

    def do_if(self, depth: int, members: str, loop: str) -> None:
        test, mask = self.fresh("p"), self.fresh("m")
        self.lines.append(f"{{ bool {test} = {self.condition()}; unsigned {mask} = 0, {mask}n = 0;")
        if members:
            self.lines.append(f"{mask} = __ballot_sync({members}, {test}); ")
            self.lines.append(f"{mask}n = {members} & ~{mask};")
        self.lines.append(f"if ({test}) {{")
        # Lanes that return leave holes in their masks, which only matter to what reads them.
        self.several(depth, mask if members else "", loop)
        if self.random.random() < 0.6:
            self.lines.append("} else {")
            self.several(depth, f"{mask}n" if members else "", loop)
        self.lines.append("} }")

    def do_chain(self, depth: int, members: str, loop: str) -> None:
        tests = " || ".join(self.condition() for _ in range(3))
        self.lines.append(f"if (({tests}) && {self.condition()}) {{")
        self.several(depth, "", loop)
        self.lines.append("}")

    def do_for(self, depth: int, members: str, loop: str) -> None:
        """Trip counts from data; members of the loop are asked anew in each turn."""
        i, n, mask = self.fresh("i"), self.fresh("n"), self.fresh("m")
        self.lines.append(f"{{ int {n} = {self.variable()} & 7; unsigned {mask} = {members or 0};")
        if members and self.random.random() < 0.5:
            self.lines.append(f"for (int {i} = 0;; {i}++) {{")
            self.lines.append(f"{mask} = __ballot_sync({mask}, {i} < {n}); if ({i} >= {n}) break;")
            self.several(depth, mask, "shared")
        else:
            self.lines.append(f"for (int {i} = 0; {i} < {n}; {i}++) {{ a += {i};")
            self.several(depth, "", "plain")
        self.lines.append("} }")

    def do_while(self, depth: int, members: str, loop: str) -> None:
        left = self.fresh("w")
        self.lines.append(f"{{ int {left} = {self.random.randint(3, 9)};")
        self.lines.append(f"while ({left}-- > 0 && ({self.condition()})) {{ b += {left};")
        self.several(depth, "", "plain")
        self.lines.append("} }")

    def do_switch(self, depth: int, members: str, loop: str) -> None:
        inner = "" if loop == "plain" else loop  # `break` would leave the switch
        self.lines.append(f"switch ({self.variable()} & 7) {{")
        for case in range(self.random.randint(3, 7)):
            self.lines.append(f"case {case}:")
            self.several(depth, "", inner)
            if self.random.random() < 0.7:
                self.lines.append("break;")
        self.lines.append("default: c ^= 77; }")

    def do_together(self, depth: int, members: str, loop: str) -> None:
        """Only lanes that are there are read."""
        if not members:
            self.do_assign(depth, members, loop)
            return
        x = self.variable()
        first = f"__ffs(__ballot_sync({members}, 1)) - 1"
        self.lines.append(
            self.random.choice(
                [
                    f"{x} += __shfl_sync({members}, {self.variable()}, {first});",
                    f"{x} ^= __popc(__ballot_sync({members}, {self.condition()}));",
                    f"if (__any_sync({members}, {self.condition()})) {x} += 11;",
                    f"{x} += __popc(__match_any_sync({members}, {x} & 3));",
                    f"__syncwarp({members});",
                ]
            )
        )

    def do_barrier(self, depth: int, members: str, loop: str) -> None:
        self.lines.append("__syncthreads(); s[t] = a; __syncthreads(); b ^= s[(t * 7 + 1) % n];")
        self.lines.append(f"c += __syncthreads_count({self.condition()});")

    def do_rounds(self, depth: int, members: str, loop: str) -> None:
        i = self.fresh("r")
        self.lines.append(f"for (int {i} = 0; {i} < {self.random.randint(2, 4)}; {i}++) {{")
        self.lines.append(f"__syncthreads(); s[t] = a + {i}; __syncthreads();")
        self.lines.append(f"a += s[(t + {i} + 1) % n];")
        self.several(1, "m0", "shared")
        self.lines.append("}")


def graph(seed: int, name: str) -> str:
    """PTX: blocks that jump anywhere, so that loops have many entries; fuel ends each thread."""
    r = random.Random(seed)
    count = r.randint(3, 12)
    blocks = []
    for at in range(count):
        target = lambda: f"B{r.randrange(count)}"  # noqa: E731
        bit = 1 << r.randrange(8)
        step = f"""B{at}:
  mad.lo.s32 x, x, {2 * r.randrange(50) + 1}, {r.randrange(1000)};
  shr.u32 y, x, {r.randrange(1, 7)}; xor.b32 x, x, y;
  add.s32 fuel, fuel, -1; setp.lt.s32 p, fuel, 0; @p bra DONE;
  and.b32 y, x, {bit}; setp.eq.s32 q, y, 0;
"""
        way = r.random()
        if way < 0.45:
            step += f"  @q bra {target()};\n"
        elif way < 0.6:
            step += f"  @!q bra {target()};\n  bra {target()};\n"
        elif way < 0.75:
            names = ", ".join(target() for _ in range(r.randint(2, 5)))
            limit = names.count(",")
            step += f"  and.b32 y, x, 7; min.u32 y, y, {limit};\nT{at}: .branchtargets {names};\n"
            step += f"  {'@q ' if r.random() < 0.3 else ''}brx.idx y, T{at};\n"
        elif way < 0.85:
            step += "  @q st.global.u32 [o], x;\n  @q exit;\n"
        elif way < 0.95:
            step += f"  @q add.s32 x, x, {r.randrange(99)};\n  @q bra {target()};\n"
        blocks.append(step)
    body = "".join(blocks)
    return f"""
.visible .entry {name}(.param .u64 pin, .param .u64 pout)
{{
  .reg .b32 x, y, fuel, t; .reg .b64 i, o, w; .reg .pred p, q;
  ld.param.u64 i, [pin]; ld.param.u64 o, [pout];
  mov.u32 t, %tid.x; mul.wide.u32 w, t, 4; add.s64 i, i, w; add.s64 o, o, w;
  ld.global.u32 x, [i]; and.b32 fuel, x, 31;
{body}
DONE:
  st.global.u32 [o], x;
  ret;
}}
"""
