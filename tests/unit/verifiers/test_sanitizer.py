"""Reports of compute-sanitizer, as its manual and public logs show them, become hazards."""

from __future__ import annotations

from optiml_magic.verifiers.sanitizer import kernels, parse

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at beyond(float *, int)+0x70 in /cell.cu:4
=========     by thread (63,0,0) in block (2,0,1)
=========     Access at 0x7f2a9800013c is out of bounds
=========     and is 5 bytes after the nearest allocation at 0x7f2a98000040 of size 1,252 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: cuLaunchKernel [0x123] in libcuda.so.1
=========
========= Invalid __global__ write of size 4 bytes
=========     at beyond(float *, int)+0x70 in /cell.cu:4
=========     by thread (64,0,0) in block (2,0,1)
=========     Access at 0x7f2a98000140 is out of bounds
=========     and is 9 bytes after the nearest allocation at 0x7f2a98000040 of size 1,252 bytes
=========
========= Invalid __shared__ read of size 16 bytes
=========     at odd(char *)+0x380 in /cell.cu:11
=========     by thread (9,0,0) in block (0,0,0)
=========     Access to 0x29 is misaligned
=========
========= Invalid __global__ read of size 4 bytes
=========     at cupy_copy__float32_float32+0x380
=========     by thread (9,0,0) in block (0,0,0)
=========     Address 0x7bd889c03041 is out of bounds
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure"
========= ERROR SUMMARY: 4 errors
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at matmul(const float *, float *)+0x150 in /cell.cu:7
=========     and Read access at matmul(const float *, float *)+0x160 in /cell.cu:10 [4194304 hazards]
=========     and Write access at matmul(const float *, float *)+0x150 in /cell.cu:7 [12 hazards]
=========
========= Warning: Race reported between Write access at fold(int)+0x550
=========     in /cell.cu:100
=========     and Read access at fold(int)+0x580 in /cell.cu:107 [1 hazard]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""
INITCHECK = """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at add(const float *, float *)+0x70 in /cell.cu:7
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
=========
========= ERROR SUMMARY: 1 error
"""
SYNCCHECK = """\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in warp.
=========     at flip(const int *)+0xa0 in /cell.cu:61
=========     by thread (19,0,0) in block (0,0,0)
=========
========= Barrier error detected. Invalid arguments.
=========     at __syncwarp(unsigned int)+0xe0 in sm_30_intrinsics.hpp:110
=========     by thread (16,0,0) in block (0,0,0)
=========         Device Frame: meet(float *, unsigned long)+0xb0 in /cell.cu:12
=========
========= ERROR SUMMARY: 2 errors
"""


def test_memcheck():
    beyond, odd = parse(MEMCHECK)
    assert (beyond.kind, beyond.lines, beyond.count) == ("out_of_bounds", (4,), 2)
    assert (beyond.block, beyond.thread) == ((2, 0, 1), (63, 0, 0))
    assert "5 bytes after" in beyond.message
    assert (odd.kind, odd.lines) == ("misaligned", (11,))
    assert beyond.fix != odd.fix


def test_racecheck():
    own, found, warned = parse(RACECHECK)
    assert (own.kind, own.line, own.other_line, own.count) == ("race", 7, 7, 12)
    assert (found.kind, found.lines, found.count) == ("race", (7, 10), 4194304)
    assert (warned.lines, warned.severity) == ((100, 107), "warning")


def test_initcheck_and_synccheck():
    (undefined,) = parse(INITCHECK)
    assert (undefined.kind, undefined.lines, undefined.thread) == (
        "uninitialised",
        (7,),
        (31, 0, 0),
    )
    outsider, divergent = parse(SYNCCHECK)
    assert (divergent.kind, divergent.lines) == ("barrier_divergence", (61,))
    assert "warp" in divergent.message
    assert (outsider.kind, outsider.lines) == ("invalid_lane", (12,))


def test_a_report_is_told_apart_by_kernel():
    both = RACECHECK + MEMCHECK
    assert {h.kind for h in parse(both)} == {"race", "out_of_bounds", "misaligned"}
    assert [h.lines for h in parse(both, kernel="fold")] == [(100, 107)]
    assert {"matmul", "fold", "beyond", "odd"} <= kernels(both)


def test_nothing_found_is_nothing():
    assert parse("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n") == ()
    assert parse("") == ()
