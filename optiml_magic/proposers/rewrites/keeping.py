"""How many rounds threads keep in registers, and how many lanes share a row so that it fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optiml_magic.kernels.primitives.kept import room
from optiml_magic.model.space import Point

_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_ROOM = 512  # bytes that a thread keeps, in half of its registers
EASY = 128  # bytes of these that leave room for as many threads as hide latencies: ours
BLOCK = 256  # threads, where the tuner has not chosen
_UNKNOWN = 4  # rounds, where nothing is known of how many there are
_SHARE = 4  # a row of which less than one part in so many is kept is as good as read twice: ours


def counts(size: int, threads: int) -> tuple[int, ...]:
    """How many rounds of so many bytes each thread of a block has room for."""
    return tuple(n for n in _COUNTS if n * size <= min(_ROOM, room(threads))) or _COUNTS[:1]


def near(count: int, fit: Sequence[int]) -> tuple[int, ...]:
    """As many as there are rounds, if these fit, else as many as fit; and half of them."""
    most = next((n for n in fit if n >= count), fit[-1])
    less = max((n for n in fit if 2 * n <= most), default=fit[0])
    return tuple(dict.fromkeys((most, less)))


def points(
    lanes: str,
    keep: str,
    length: int,
    groups: Sequence[int],
    width: int,
    size: int,
    beside: int = 1,
) -> tuple[Point, ...]:
    """The fewest lanes whose registers hold a row easily, then twice and four times as many.

    Where none do, the most lanes that hold it; none where no lanes hold enough of it. ``lanes`` and
    ``keep`` are names; a round takes ``width`` of the row's elements and keeps ``size`` bytes. A
    block has as many of each lane as are ``beside`` each other, at least.
    """
    if not length:
        some = BLOCK if BLOCK in groups else groups[-1]
        return ({lanes: some, keep: near(_UNKNOWN, counts(size, BLOCK))[0]},)
    found = [*_held(length, groups, width, size, beside)]
    easy = [n for n, all_of_it, bytes_ in found if all_of_it and bytes_ <= EASY]
    whole = [n for n, all_of_it, _ in reversed(found) if all_of_it]
    part = [n for n, _, _ in found][-1:] if groups[-1] >= BLOCK else []  # of what no block holds
    chosen = (easy or whole or part)[:3]
    return tuple(
        {lanes: n, keep: near(-(-length // (n * width)), counts(size, max(n * beside, BLOCK)))[0]}
        for n in chosen
    )


def _held(
    length: int, groups: Sequence[int], width: int, size: int, beside: int
) -> Iterator[tuple[int, bool, int]]:
    """The lanes that hold a fair share of a row, whether all of it, and each how many bytes."""
    for n in groups:
        rounds = -(-length // (n * width))
        kept = min(rounds, counts(size, max(n * beside, BLOCK))[-1])
        if kept * _SHARE >= rounds:
            yield n, kept == rounds, kept * size
