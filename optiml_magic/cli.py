"""``optiml`` and ``python -m optiml_magic.cli``: say what begins, then load what does it."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from optiml_magic import early
from optiml_magic.errors import UsageError
from optiml_magic.widgets.line import Now, clear, first

_INTERRUPTED = 130  # what a shell says of a program that SIGINT ended
_KEPT = "; optiml history lists the runs, with what each evaluated so far"
_STAGED = ("optimize", "synthesize", "check", "profile", "demo")


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    try:
        return _command(sys.argv[1:] if words is None else words, time.monotonic())
    except KeyboardInterrupt:
        clear()
        sys.stderr.write(f"optiml: interrupted{_KEPT}\n")
        return _INTERRUPTED


def _command(given: Sequence[str], began: float) -> int:
    if not given or given[0] == "help":
        given = [*given[1:], "-h"]
    if given and given[0] in _STAGED:
        first(Now(given[0], "prepare"))
    from optiml_magic.commands import parsers  # a twentieth of a second

    try:
        options = parsers.parse(parsers.line_parser(), given)
    except parsers.HelpShown as page:
        clear()
        sys.stdout.write(str(page))
        return 0
    except UsageError as error:
        clear()
        sys.stderr.write(f"{error}\n")  # it begins with the command
        return 2
    if options.verb in _STAGED:
        early.begin(given)
    # The commands take a second to load, processes on a card longer, a task's file what it likes.
    from optiml_magic import terminal

    return terminal.run(options, given, began)


if __name__ == "__main__":
    sys.exit(main())
