"""The words of the commands on runs that were: listed, compared, kept in a file, gone on with."""

from __future__ import annotations

import argparse
from typing import Any

_HISTORY = "the runs of this home, newest first"
_COMPARE = "two results beside each other: speed, verdicts, what differs, the winners' difference"
_SAVE = "write a result to one JSON file that needs no kernel, GPU or key to be read"
_LOAD = "read a result that was saved"
_RESUME = "go on with a search that is paused, or with a run that was stopped or killed"
_NAMED = "a result in the notebook, the name of a run or its beginning, or a saved file"
_RUN = "the name of a run or its beginning, a journal, or a saved file"


def in_a_cell(verbs: Any) -> None:
    """For the magics: results have names in the notebook."""
    _listing(verbs)
    _comparing(verbs, _NAMED)
    save = _command(verbs, "save", _SAVE)
    save.add_argument("name", nargs="?", help=f"{_NAMED}; else the last result")
    save.add_argument("file", help="ends in .json")
    save.add_argument("--force", action="store_true", help="replace the file if it is there")
    load = _command(verbs, "load", _LOAD)
    load.add_argument("file", help="what %%optiml save wrote")
    load.add_argument("name", nargs="?", help="bind the result to this name, else to the kernel's")
    _command(verbs, "status", "the searches that run now, here and in other processes")
    stop = _command(verbs, "stop", "end a search in the background; the best so far is its result")
    stop.add_argument("name", nargs="?", help="of the search, where several run")
    pause = _command(verbs, "pause", "let a search in the background wait; resume goes on")
    pause.add_argument("name", nargs="?", help="of the search, where several run")
    again = _command(verbs, "resume", _RESUME)
    again.add_argument(
        "name", nargs="?", help="of a search, a result or a kernel, or the name of a run"
    )
    _going_on(again)
    again.add_argument("--background", action="store_true", help="return a handle at once")


def on_a_line(verbs: Any) -> None:
    """For the command line: results are runs of this home, or files."""
    _written(_listing(verbs), html=False)
    _comparing(verbs, _RUN).add_argument("--html", metavar="OUT", help="write it to this file")
    save = _command(verbs, "save", _SAVE)
    save.add_argument("name", metavar="RUN", help=_RUN)
    save.add_argument("file", metavar="FILE", help="ends in .json")
    save.add_argument("--force", action="store_true", help="replace the file if it is there")
    load = _command(verbs, "load", _LOAD)
    load.add_argument("file", metavar="FILE", help="what optiml save wrote")
    _written(load)
    again = _command(verbs, "resume", "go on with a run that was stopped or killed")
    again.add_argument("name", metavar="RUN", help="the name of a run or its beginning")
    _going_on(again)


def _command(verbs: Any, verb: str, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(verb, help=summary, description=summary)
    return parser


def _listing(verbs: Any) -> argparse.ArgumentParser:
    command = _command(verbs, "history", _HISTORY)
    command.add_argument("--last", type=int, default=20, metavar="N", help="so many (20)")
    return command


def _comparing(verbs: Any, names: str) -> argparse.ArgumentParser:
    command = _command(verbs, "compare", _COMPARE)
    command.add_argument("one", metavar="A", help=names)
    command.add_argument("two", metavar="B", help="another")
    return command


def _going_on(command: argparse.ArgumentParser) -> None:
    command.add_argument("--budget", type=int, help="evaluations in all, those of before included")
    command.add_argument("--seconds", type=float, help="limit of what is still to come")


def _written(command: argparse.ArgumentParser, *, html: bool = True) -> None:
    command.add_argument("--json", metavar="OUT", help="write the outcome to this file")
    if html:
        command.add_argument("--html", metavar="OUT", help="write a report to this file")
