"""``optiml`` and ``python -m optiml_magic.cli``: say what begins, then load what does it."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from optiml_magic import early
from optiml_magic.timings import DOING
from optiml_magic.widgets.line import TerminalLine

_STAGED = ("optimize", "synthesize", "check", "profile", "demo")


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    began = time.monotonic()
    given = sys.argv[1:] if words is None else words
    if given and given[0] in _STAGED:
        TerminalLine().write(f"{given[0]}: {DOING['prepare']}")
        early.begin(given)
    # The commands take a second to load, processes on a card longer, a task's file what it likes.
    from optiml_magic import terminal

    return terminal.run(given, began)


if __name__ == "__main__":
    sys.exit(main())
