"""Networks of exchanges, pairs of places of which the first gets the lesser value.

Of all in order: merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M). What
nobody asks for a compiler leaves out, so that the least and the greatest of n take n - 1 operations
and the middle of nine 36. For the middle there are networks with fewer, 30 for nine; these are the
ones that Devillard gives (Fast median search, 1998), of seven and of 25 as they are, of five and of
nine after Paeth (Graphics Gems, 1990). That of nine puts its rows of three in order first, which
windows one below the other have in common.
"""

from __future__ import annotations

from collections.abc import Iterator

_A = ord("a")
_MIDDLES = {
    5: "ab de ad be bc cd bc",
    7: "af ad bg ce ab df cg cd dg ef be bd de",
    9: "bc ef hi ab de gh bc ef hi ad fi eh dg be cf eh ec ge ec",
    25: "ab de ce cd gh fh fg jk ik ij mn ln lm pq oq op st rt rs vw uw uv xy cf dg ag ad eh bh be"
    " lo io il mp jp jm nq kq kn ux rx ru vy sy sv tw ir js as aj kt bt bk lu cu cl mv dv dm nw"
    " ew en ox fx fo py gy gp hq ht nv px hn hp bj dl fr lr jr ek gm ho eg eh mo ko gh km gk gr"
    " mr hr hk ms hm ks mu ku km",
}


def exchanges(count: int) -> Iterator[tuple[int, int]]:
    """The pairs of a network that sorts so many elements, by merge exchange."""
    most = 1 << (count - 1).bit_length() - 1
    part = most
    while part:
        step, rest, apart = most, 0, part
        while True:
            yield from ((i, i + apart) for i in range(count - apart) if i & part == rest)
            if step == part:
                break
            apart, step, rest = step - part, step // 2, part
        part //= 2


def middle(count: int) -> Iterator[tuple[int, int]] | None:
    """The pairs of one that puts the middle of so many in its place, where one is known."""
    pairs = _MIDDLES.get(count)
    return ((ord(pair[0]) - _A, ord(pair[1]) - _A) for pair in pairs.split()) if pairs else None
