"""How an address is put together from a register and an offset."""

import numpy as np

from optiml_magic import emulator

from .conftest import launch

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 out)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 s[128];
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, s;
  mad.lo.s32 %r3, %r1, 4, %r2;
  add.s32 %r4, %r3, -1024;
  st.shared.u32 [%r4+1024], %r1;
  ld.shared.u32 %r2, [%r4+1024];
  mul.wide.s32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}
"""


def test_a_shared_address_wraps_at_32_bits():
    """A compiler may fold a negative start into the register and make up for it in the offset."""
    out = np.zeros(32, np.int32)
    assert launch(emulator.load(PTX), "store", 1, 32, out).fault is None
    np.testing.assert_array_equal(out, np.arange(32))
