"""Networks of exchanges, pairs of places of which the first gets the lesser value.

Of all in order: merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M). What
nobody asks for a compiler leaves out, so that the least and the greatest of n take n - 1 operations
and the middle of nine 36. For the middle there are networks with fewer, 30 for nine: those of five,
seven and nine are Devillard's (Fast median search, 1998), of five and nine after Paeth (Graphics
Gems, 1990). That of 25 was found by random changes to one that sorts, with 168 operations where
Devillard's has 174. Those of nine and 25 put rows of three and five in order first, which windows
one below the other have in common.
"""

from __future__ import annotations

from collections.abc import Iterator

_A = ord("a")
_MIDDLES = {
    5: "ab de ad be bc cd bc",
    7: "af ad bg ce ab df cg cd dg ef be bd de",
    9: "bc ef hi ab de gh bc ef hi ad fi eh dg be cf eh ec ge ec",
    25: "ad fi kn ps ux be gj lo qt vy ac fh km pr uw bd gi ln qs vx ab fg kl pq uv ce hj mo rt"
    " wy bc gh lm qr vw de ij no st xy cd hi mn rs wx mw bg rc pa hc rw ye rf ie id yt jo xn"
    " jy pm xs vq ql dl gi bx hm hu dx gq ni jm fj mw uk fk ak nq qs mc vn da nq jk au qy un"
    " xo mn tx kn jm mk tk tq tm",
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
