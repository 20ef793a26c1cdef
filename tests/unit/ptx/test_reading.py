"""PTX as it is read: nouns, blocks, loops, and what an instruction reads and writes."""

from __future__ import annotations

import pytest

from optiml_magic.ptx.cfg import EXIT, Graph, build
from optiml_magic.ptx.faults import UnsupportedPtx
from optiml_magic.ptx.loops import innermost
from optiml_magic.ptx.nouns import Instruction
from optiml_magic.ptx.parser import parse
from optiml_magic.ptx.traits import defined, kind, used

NESTED = """\
.version 8.0
.target sm_90
.address_size 64
.func helper()
{
  ret;
}
.visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  mov.u64 %rd1, helper;
  ld.param.u32 %r1, [k_param_1];
  mov.u32 %r2, 0;
outer:
  mov.u32 %r3, 0;
inner:
  add.s32 %r3, %r3, 1;
  setp.lt.s32 %p1, %r3, %r1;
  @%p1 bra inner;
  add.s32 %r2, %r2, 1;
  setp.lt.s32 %p2, %r2, %r1;
  @%p2 bra outer;
  ret;
}
"""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return build(parse(NESTED).functions["k"])


def test_a_module_says_which_functions_something_points_to():
    module = parse(NESTED)
    assert set(module.functions) == {"helper", "k"}
    assert module.pointed_to == ("helper",)


def test_only_the_inner_of_two_loops_is_innermost(graph: Graph):
    ((block,),) = innermost(graph)
    assert [i.base for i in block.every] == ["add", "setp", "bra"]
    assert block.index in block.successors


def test_what_a_loop_carries_outlives_its_block(graph: Graph):
    ((block,),) = innermost(graph)
    assert {"%r1", "%r2", "%r3"} <= {name.split("@")[0] for name in block.live_out}
    assert graph.blocks[-1].meet == EXIT


def test_an_instruction_reads_and_writes_its_registers(graph: Graph):
    ((block,),) = innermost(graph)
    add, compare, jump = block.every
    assert [r.name for r in defined(add)] == [r.name for r in used(add)]
    assert [r.type for r in defined(compare)] == ["pred"]
    assert list(used(jump)) == list(defined(compare))
    assert [kind(i) for i in block.every] == ["int", "int", "control"]
    assert isinstance(add, Instruction)


def test_a_directive_that_is_unknown_is_named():
    with pytest.raises(UnsupportedPtx) as caught:
        parse(".mystery 3;")
    assert ".mystery" in caught.value.message
