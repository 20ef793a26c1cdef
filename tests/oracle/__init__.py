"""A second reading of the PTX ISA: one thread at a time, exact rationals, no concern for speed.

It shares nothing with ``optiml_magic.emulator``: not the parser, not control flow, not memory. Each
thread is a generator with a program counter of its own that stops only where PTX says that threads
wait for each other. Where the two disagree, one of them misreads the ISA.

The flow, in file names: text -> machine (memory, operands) -> integers, floats (numbers), threads.
"""
