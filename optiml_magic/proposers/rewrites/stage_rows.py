"""Trees, keys, records, reads: threads that go along rows of their own, which a block brings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused, in_turn, where_legal
from optiml_magic.kernels.primitives.bounded import bounded
from optiml_magic.kernels.primitives.direct import direct
from optiml_magic.kernels.primitives.own_rows import BLOCKS, Row, bytes_of, rows_at_hand, rows_of
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.sized import sized
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts.sum"
_LONGEST = 1024  # elements of a row: ours
_LEAST = 8  # bytes of a row, below which lanes share its sectors: ours
_OFTEN = 0.5  # of a row that a thread reads, from which on it is worth to bring all of it: ours


class StageRows(KernelRule):
    """Decision trees, hashes of keys, reads of one length, small matrices and records."""

    name = "stage_rows"
    before = (bounded, unstrided, linear, direct)
    teaches = (
        "Each thread read a row of its own, and lanes that stand on one element of their rows ask "
        "for as many lines of memory as there are lanes. The rows of a block lie one behind the "
        "other: its threads bring them to shared memory together, neighbouring lanes neighbouring "
        "words, and each then reads its own from there, in whatever order its data ask for."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        lengths = _lengths(kernel)
        ready = where_legal(sized, kernel, lengths) if lengths else kernel
        found = list[Row]()
        for row in rows_of(ready):
            if isinstance(row, Refused):
                yield row
            elif row.length * row.size >= _LEAST:
                often = row.often(ready)
                if often is not None and often < _OFTEN:
                    continue
                if bytes_of([*found, row]) * BLOCKS[0] > SHARED:
                    yield Refused(f"rows of `{row.array}` are too long for a block", row.line)
                    continue
                found.append(row)
        if not found:
            return
        names = ", ".join(row.array for row in found)
        where = ", ".join(f"{name} is {size}" for name, size in lengths.items())
        title = f"bring rows of {names} into shared memory" + (f", where {where}" if where else "")
        blocks, arrays = _blocks(found), tuple(row.array for row in found)
        step = partial(rows_at_hand, arrays=arrays, block=blocks[0])
        steps = [partial(sized, values=lengths), step] if lengths else [step]
        yield Site(
            "rows", title, partial(in_turn, kernel, steps),
            0.5 if not lengths and all(_is_plain(ready, row) for row in found) else 0.82,
            Hypothesis(_WAVEFRONTS, "lower", "lanes bring neighbouring words", (1.2, 32.0)),
            tuple({kernel.fresh("BLOCK"): block} for block in blocks),
        )  # fmt: skip


def _is_plain(kernel: Kernel, row: Row) -> bool:
    """Whether the text says which elements a thread reads: then it may as well hold them."""
    reading = kernel.reading
    return all(
        load.index is not None and reading.symbols.known(load.index)
        and all(axis.trips is not None for axis in reading.loops(load))
        and not any(reading.symbols[n].kind == "load" for n in reading.symbols.inside(load.index))
        for load in row.loads
    )  # fmt: skip


def _lengths(kernel: Kernel) -> dict[str, int]:
    """The scalars that say how long rows of threads are, with their values."""
    given = kernel.facts.scalars if kernel.facts is not None else {}
    found = dict[str, int]()
    for access in kernel.reading.accesses:
        by = access.index.coefficient("threadIdx.x") if access.index is not None else None
        for name in sorted(by.symbols) if by is not None and access.mode == "load" else ():
            if name in given and name not in kernel.program.values and given[name] <= _LONGEST:
                found[name] = int(given[name])
    return found


def _blocks(found: Sequence[Row]) -> list[int]:
    """Blocks that leave room for two of them beside each other, the largest first."""
    each = bytes_of(found)
    fit = [block for block in BLOCKS if block * each <= SHARED]
    good = [block for block in fit if 2 * block * each <= SHARED] or fit[:1]
    return sorted(good, reverse=True)[:2] or fit[:1]
