"""PTX programs that apply many instructions to the same three operands, for differential tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from optiml_magic import emulator

from .conftest import launch

HEAD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 out)
{
  .reg .b64 %a, %b, %c, %o, %t, %n, %z;
  .reg .b32 %i;
  mov.u32 %i, %tid.x;
  mul.wide.u32 %t, %i, 8;
  ld.param.u64 %a, [pa];
  add.s64 %a, %a, %t;
  ld.global.u64 %a, [%a];
  ld.param.u64 %b, [pb];
  add.s64 %b, %b, %t;
  ld.global.u64 %b, [%b];
  ld.param.u64 %c, [pc];
  add.s64 %c, %c, %t;
  ld.global.u64 %c, [%c];
  ld.param.u64 %o, [out];
  add.s64 %o, %o, %t;
  mov.u32 %i, %ntid.x;
  mul.wide.u32 %n, %i, 8;
"""
SCOPE = """
  {
  .reg .b16 a16, b16, c16, d16, e16;
  .reg .b32 a, b, c, d, e, f;
  .reg .b64 A, B, C, D, E;
  .reg .f32 fa, fb, fc, fd;
  .reg .f64 Fa, Fb, Fc, Fd;
  .reg .pred p, q, r;
  mov.b64 A, %a; mov.b64 B, %b; mov.b64 C, %c; mov.b64 D, 0;
  cvt.u32.u64 a, %a; cvt.u32.u64 b, %b; cvt.u32.u64 c, %c; mov.b32 d, 0;
  cvt.u16.u64 a16, %a; cvt.u16.u64 b16, %b; cvt.u16.u64 c16, %c;
  mov.b32 fa, a; mov.b32 fb, b; mov.b32 fc, c;
  mov.b64 Fa, A; mov.b64 Fb, B; mov.b64 Fc, C;
"""
STORE = {
    "d": "cvt.u64.u32 D, d;",
    "fd": "mov.b32 d, fd; cvt.u64.u32 D, d;",
    "Fd": "mov.b64 D, Fd;",
    "D": "",
    "d16": "cvt.u64.u16 D, d16;",
    "p": "selp.u64 D, 1, 0, p;",
}


class Program:
    """Statements by name; each leaves its result in a register named in its last operand slot."""

    def __init__(self, cases: Mapping[str, str]) -> None:
        self.names = list(cases)
        body = []
        for statements in cases.values():
            text, _, result = statements.rpartition("->")
            body += [SCOPE, text, STORE[result.strip()], "st.global.u64 [%o], D;"]
            body += ["add.s64 %o, %o, %n;", "}"]
        self.module = emulator.load(HEAD + "\n".join(body) + "\nret;\n}\n")

    def results(self, a: Sequence[int], b: Sequence[int], c: Sequence[int]) -> dict[str, list[int]]:
        """For each case its 64-bit result for each triple of operands."""
        n = len(a)
        operands = [np.array([v & (1 << 64) - 1 for v in o], np.uint64) for o in (a, b, c)]
        out = np.zeros((len(self.names), n), np.uint64)
        run = launch(self.module, "k", 1, n, *operands, out, count=False)
        assert run.fault is None, run.fault
        return {name: row.tolist() for name, row in zip(self.names, out, strict=True)}
