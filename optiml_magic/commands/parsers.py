"""The words of every command, shared by the magics and the command line."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import Any, Never

from optiml_magic.commands import keeping, misspelt
from optiml_magic.errors import UsageError, nearest
from optiml_magic.version import package_version

_SUFFIXES = ".cu, .py or _torch.py"  # of every format; to load them takes half a second

STATUS = """\
exit codes:
  0    done, and every kernel passed
  1    a kernel failed
  2    the command or its task is wrong, or this machine lacks something
  3    the device cannot run the kernel (unsupported): nothing is said about the kernel
  130  interrupted while it prepared
  141  the reader of a pipe closed it
"""

_ALONE = ("-h", "--help", "--version")
_SEARCHED = ("optimize", "synthesize")
_SYNTHESIZE = "a kernel from a reference in NumPy or from words, then a search from it"
_REPLAY = "show a past search, or how another policy would have searched it"
_BENCH = "run the suite of naive kernels beside its peers"
_EXPERIENCE = "which tools, actions and rules paid off in earlier runs"


class HelpShown(Exception):  # noqa: N818  # not an error: the user asked for it
    """Raised in place of an exit; carries the text."""


class Parser(argparse.ArgumentParser):
    """argparse that neither prints nor exits: a notebook's kernel must survive ``-h``."""

    @property
    def commands(self) -> dict[str, tuple[Parser, str]]:
        """Each command with what it is for."""
        verbs = [a for a in self._actions if isinstance(a, argparse._SubParsersAction)]  # noqa: SLF001  # it has no other name
        return {
            each.dest: (action.choices[each.dest], each.help or "")
            for action in verbs
            for each in action._get_subactions()  # noqa: SLF001
        }

    @property
    def options(self) -> dict[str, argparse.Action]:
        """By each way to spell them."""
        return dict(self._option_string_actions)

    @property
    def positionals(self) -> list[argparse.Action]:
        """What is told apart by its place."""
        return [each for each in self._actions if not each.option_strings]

    def error(self, message: str) -> Never:
        raise UsageError(f"{self.prog}: {message}", fix=f"{self.prog} -h lists the options")

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ARG002
        raise HelpShown(message)

    def format_usage(self) -> str:
        return f"usage: {misspelt.usage(self.prog, self._actions)}\n"

    def format_help(self) -> str:
        self.usage = misspelt.usage(self.prog, self._actions).replace("%", "%%")
        return super().format_help()

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise misspelt.of_choices(self.prog, action, value)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, unknown = super().parse_known_args(args, namespace)
        flags = [flag for flag in unknown if flag.startswith("-")]
        if flags:
            known = [option for action in self._actions for option in action.option_strings]
            fix = nearest(flags[0].split("=")[0], known) or f"{self.prog} -h lists the options"
            raise UsageError(f"{self.prog}: unknown option {flags[0]}", fix=fix)
        return found, unknown


def cell_parser() -> Parser:
    """For ``%optiml`` and ``%%optiml``: the kernel is the cell, names come from the namespace."""
    parser = Parser("%optiml", description="CUDA kernels in a notebook.")
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", parser_class=Parser)
    for verb, summary in (
        ("optimize", "search for a faster kernel"),
        ("synthesize", _SYNTHESIZE),
        ("check", "compile and compare with the reference"),
        ("profile", "measure and say what limits the kernel"),
        ("annotate", "show what each line became"),
        ("run", "run once and return the outputs"),
    ):
        command = verbs.add_parser(verb, prog=f"%%optiml {verb}", help=summary, description=summary)
        command.add_argument("name", nargs="?", help="bind the result to this name")
        if verb == "synthesize":
            _confirming(command, "the name of a list of (inputs by name, output)")
        else:
            command.add_argument("--file", help="take the kernel from this file, not from the cell")
        _binding(command, kernel=verb != "synthesize")
        _running(command)
        _including(command)
        if verb == "profile":
            _profiling(command)
        if verb in _SEARCHED:
            _searching(command)
            command.add_argument(
                "--background", action="store_true", help="return a handle at once"
            )
            _watching(command)
    header = verbs.add_parser(
        "header", prog="%%optiml header", help="shared device code for later cells"
    )
    header.add_argument("name", nargs="?", help="what an #include calls it")
    best = verbs.add_parser("best", help="the best program of the last optimize")
    best.add_argument("name", nargs="?", help="of the result of this name")
    summary = "write the best program to a file that stands alone"
    export = verbs.add_parser("export", help=summary, description=summary)
    export.add_argument("name", nargs="?", help="of the result of this name, else of the last")
    export.add_argument("file", help=f"its end names the format: {_SUFFIXES}")
    export.add_argument("--force", action="store_true", help="replace the file if it is there")
    again = verbs.add_parser("replay", help=_REPLAY, description=_REPLAY)
    _replaying(again)
    _watching(again)
    verbs.add_parser("experience", help=_EXPERIENCE, description=_EXPERIENCE)
    keeping.in_a_cell(verbs)
    verbs.add_parser("doctor", help="what this machine can do")
    help_ = verbs.add_parser("help", help="all commands, or the options of one")
    help_.add_argument("command", nargs="?", choices=sorted(verbs.choices), help="of this command")
    return parser


def line_parser() -> Parser:
    """For the command line: the kernel is in the tasks that a Python file defines."""
    parser = Parser(
        "optiml",
        description="CUDA kernels proved right, measured and made faster.",
        epilog=STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"optiml {package_version()}")
    verbs = parser.add_subparsers(
        dest="verb", metavar="COMMAND", required=True, parser_class=Parser
    )
    for verb, summary in (
        ("optimize", "search for a faster kernel"),
        ("synthesize", _SYNTHESIZE),
        ("check", "compile and compare with the reference"),
        ("profile", "measure and say what limits the kernel"),
        ("annotate", "show what each line became"),
        ("run", "run once and print the outputs"),
    ):
        command = verbs.add_parser(verb, help=summary, description=summary)
        command.add_argument("file", metavar="TASK.py", help="defines task = Task(...) or tasks")
        if verb == "synthesize":
            command.add_argument(
                "--words", dest="comment", help="what the kernel is for: its comment"
            )
            _confirming(command, 'a JSON file: a list of {"inputs": {NAME: ...}, "output": ...}')
        else:
            command.add_argument("--kernel", metavar="FILE.cu", help="instead of the task's kernel")
        command.add_argument("--json", metavar="OUT", help="write the outcome to this file")
        _running(command)
        _including(command)
        if verb == "profile":
            _profiling(command)
        if verb in (*_SEARCHED, "annotate"):
            command.add_argument("--html", metavar="OUT", help="write a report to this file")
        if verb in _SEARCHED:
            command.add_argument(
                "--export", metavar="OUT", help=f"write the best program to this file: {_SUFFIXES}"
            )
            command.add_argument(
                "--force", action="store_true", help="replace that file if it is there"
            )
            _searching(command)
    demo = verbs.add_parser("demo", help="optimise three naive kernels that come with the package")
    demo.add_argument("--html", metavar="OUT", help="write a report to this file")
    demo.add_argument("--json", metavar="OUT", help="write the outcomes to this file")
    _running(demo)
    _searching(demo)
    _benching(verbs.add_parser("bench", help=_BENCH, description=_BENCH))
    again = verbs.add_parser("replay", help=_REPLAY, description=_REPLAY)
    _replaying(again)
    again.add_argument("--html", metavar="OUT", help="write a report to this file")
    again.add_argument("--json", metavar="OUT", help="write the outcome to this file")
    learned = verbs.add_parser("experience", help=_EXPERIENCE, description=_EXPERIENCE)
    learned.add_argument("--html", metavar="OUT", help="write the tables to this file")
    learned.add_argument("--json", metavar="OUT", help="write them to this file")
    keeping.on_a_line(verbs)
    verbs.add_parser("doctor", help="what this machine can do, and what is missing")
    return parser


def split(line: str) -> list[str]:
    """The words of a magic's line; UsageError where a quote is left open."""
    try:
        return shlex.split(line)
    except ValueError as cause:
        raise UsageError(f"{cause} in `{line}`", fix="close the quote") from None


def parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """Parsed words. Raises UsageError for wrong ones, HelpShown where help was asked for."""
    if words and words[0].startswith("-") and words[0] not in _ALONE:
        raise UsageError(
            f"{parser.prog}: `{words[0]}` comes before any command",
            fix=f"{parser.prog} optimize {' '.join(words)}, or another command",
        )
    return parser.parse_args(_joined(words))


def _joined(words: Sequence[str]) -> list[str]:
    """The value of --nvcc-args begins with a dash, and argparse would take it for an option."""
    joined = list(words)
    for at, word in enumerate(joined[:-1]):
        if word == "--nvcc-args":
            joined[at : at + 2] = [f"{word}={joined[at + 1]}"]
            break
    return joined


def _running(command: argparse.ArgumentParser) -> None:
    command.add_argument("--device", help="auto, emulated or emulated:CHIP (auto)")
    command.add_argument("--verify-seeds", type=whole_number, help="sets of inputs (3)")
    command.add_argument(
        "--run-seconds", type=float, help="limit of one run, after which it is killed (30)"
    )
    command.add_argument("--std", help="c++11, c++14, c++17 or c++20 (c++17)")
    command.add_argument(
        "--fast-math", action="store_true", default=None, help="as nvcc's --use_fast_math"
    )
    command.add_argument("--compiler", help="nvrtc or nvcc (nvrtc)")
    command.add_argument("--nvcc-args", metavar="ARGS", help="more arguments for nvcc, quoted")


def _profiling(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--energy",
        action="store_true",
        default=None,
        help="joules of a run: two seconds more",
    )


def _including(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-I", dest="include", metavar="DIR", action="append", help="a folder of headers; repeatable"
    )
    command.add_argument(
        "-D", dest="define", metavar="NAME[=VALUE]", action="append", help="a macro; repeatable"
    )


def _choosing(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--policy", help="mcts, greedy, beam, random or best-of-n: what is tried next (mcts)"
    )


def _searching(command: argparse.ArgumentParser) -> None:
    command.add_argument("--budget", type=whole_number, help="evaluations, input included (24)")
    command.add_argument("--seconds", type=float, help="limit of the whole search (300)")
    command.add_argument("--seed", type=int, help="of the search (0)")
    _choosing(command)
    command.add_argument(
        "--objective", help="speed, or energy: the fewest joules among the fastest kernels (speed)"
    )
    command.add_argument(
        "--llm", metavar="MODEL", help="a model beside the rules: its name, none, or auto (auto)"
    )
    command.add_argument("--llm-url", help="its endpoint; the key is OPTIML_LLM_KEY")
    command.add_argument(
        "--llm-budget",
        type=int,
        metavar="TOKENS",
        help="of the search, asked and answered (no limit)",
    )
    command.add_argument(
        "--llm-prices", metavar="IN,OUT", help="of a million tokens, to say what the model cost"
    )
    command.add_argument(
        "--llm-temperature", type=float, metavar="T", help="of its proposals, from 0 to 2 (0.7)"
    )
    command.add_argument(
        "--llm-effort", metavar="WORD",
        help="how much it reasons: none, minimal, low, medium, high or xhigh (its own default)",
    )  # fmt: skip
    command.add_argument(
        "--show-prompts", action="store_true", default=None,
        help="write all that is sent to the model and what comes back",
    )  # fmt: skip
    command.add_argument(
        "--experience",
        help="all: learn from earlier runs here and add to them, and from what others measured; "
        "shipped: from that alone; none (all)",
    )
    command.add_argument(
        "--exact", action="store_true", default=None,
        help="keep every bit of the outputs: no edit that changes the arithmetic",
    )  # fmt: skip
    command.add_argument("--resume", metavar="JOURNAL", help="continue this run")


def _replaying(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "runs", metavar="RUN", nargs="+", help="the name of a run, or the path of its journal"
    )
    command.add_argument(
        "--policy", help="search again with this policy over everything that these runs evaluated"
    )
    command.add_argument("--budget", type=whole_number, help="evaluations of that search (24)")
    command.add_argument("--seed", type=int, help="of that search (0)")


def _benching(command: argparse.ArgumentParser) -> None:
    command.add_argument("tasks", metavar="TASK", nargs="*", help="tasks or families (all)")
    command.add_argument("--device", help="auto, cuda:INDEX, emulated or emulated:CHIP (auto)")
    command.add_argument(
        "--budget", type=whole_number, default=48, help="evaluations a task, input included (48)"
    )
    command.add_argument("--seconds", type=float, default=60.0, help="of a search (60)")
    command.add_argument(
        "--out",
        metavar="FOLDER",
        default="bench",
        help="where its rows are kept; a later run continues from them (bench)",
    )
    command.add_argument(
        "--size", choices=("full", "small"), default="full", help="as in real work, or small (full)"
    )
    _choosing(command)
    command.add_argument("--part", choices=("open", "held-out"), help="only this part")
    command.add_argument(
        "--peers", action=argparse.BooleanOptionalAction, default=True,
        help="time CuPy, the vendor's libraries and torch as well",
    )  # fmt: skip
    command.add_argument(
        "--from-references", action="store_true",
        help="begin from kernels made from the references instead of the naive ones",
    )  # fmt: skip
    command.add_argument(
        "--retime", action="store_true",
        help="search nothing: time the programs of the folder again beside the peers of today",
    )  # fmt: skip
    command.add_argument("--list", action="store_true", help="list the tasks and run nothing")


def _watching(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--view", choices=("auto", "widget", "text"), default="auto", help="how to watch"
    )


def _confirming(command: argparse.ArgumentParser, form: str) -> None:
    command.add_argument(
        "--thoughts",
        type=int,
        help="strategies that the model develops; 0: only the reference (3)",
    )
    command.add_argument(
        "--accept", action="store_true",
        help="with words only: confirm the reference and the examples that were shown",
    )  # fmt: skip
    command.add_argument("--examples", metavar="EXAMPLES", help=f"with words only: yours; {form}")


def _binding(command: argparse.ArgumentParser, *, kernel: bool) -> None:
    command.add_argument("--ref", help="a Python function of the inputs by name")
    command.add_argument("--inputs", help="a,b=other: names in the notebook, where they differ")
    if kernel:
        command.add_argument("--args", help="a,b,out,n: what is passed, in order")
        command.add_argument("--out", action="append", help="out or out:f4[rows]; repeatable")
        command.add_argument(
            "--inout", action="append", help="a buffer read and written; repeatable"
        )
    command.add_argument("--rtol", type=float, help="relative tolerance, else by dtype")
    command.add_argument("--atol", type=float, help="absolute tolerance, else by dtype")


def whole_number(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value
