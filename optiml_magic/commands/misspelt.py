"""What a user may have meant: commands, values and cells that are not what they should be."""

from __future__ import annotations

import argparse
import builtins
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from typing import Any

from optiml_magic.errors import UsageError, nearest

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PYTHON = re.compile(
    r"^(?:import \w|from [\w.]+ import |def \w+\(.*:|class \w+.*:\s*$|print\(|\w+ = np\.)",
    re.MULTILINE,
)
_FUNCTION = re.compile(r"^[\w:<>*&\s]*?\b(\w+)\s*\([^;{}]*\)\s*\{", re.MULTILINE)
#: What others call what a command here does.
_MEANT = {
    "explain": "annotate", "inspect": "annotate", "disassemble": "annotate", "ptx": "annotate",
    "bench": "profile", "benchmark": "profile", "time": "profile", "timeit": "profile",
    "analyze": "profile", "verify": "check", "test": "check", "compile": "check",
    "improve": "optimize", "tune": "optimize", "search": "optimize", "speedup": "optimize",
    "generate": "synthesize", "create": "synthesize", "list": "history", "runs": "history",
    "cancel": "stop", "continue": "resume", "diff": "compare", "info": "doctor",
}  # fmt: skip
_FROM_A_FILE = re.compile(r'^\s*#\s*include\s*"', re.MULTILINE)


def of_choices(prog: str, action: argparse.Action, value: Any) -> UsageError:
    """For a value that is none of the action's choices."""
    known = [str(choice) for choice in action.choices or ()]
    flag = "/".join(action.option_strings)
    what = f"a value of {flag}" if flag else "a command"
    meant = _MEANT.get(str(value).lower()) if not flag else None
    said = f"did you mean `{meant}`?" if meant in known else nearest(str(value), known)
    fix = said or f"choose one of {', '.join(known)}"
    return UsageError(f"{prog}: `{value}` is not {what}", fix=fix)


def reference(name: str, namespace: Mapping[str, Any]) -> UsageError:
    """For a name of a reference that is not that of a function."""
    if name in namespace:
        what = f"is not a function but of type {type(namespace[name]).__name__}"
    else:
        what = "is not defined"
    own = functions(namespace)
    callables = [n for n, value in namespace.items() if callable(value) and not _ours(value)]
    fix = nearest(name, own) or nearest(name, callables)
    if not fix and own:
        fix = f"functions here: {', '.join(own[-5:])}; or define a function {name}"
    if not name.isidentifier():
        fix = f"define a function of the inputs that calls {name}, and name that one"
    wanted = f"define it: def {name}(...), of the inputs by name, that returns the outputs"
    return UsageError(f"the reference `{name}` {what}", fix=fix or wanted)


def is_value(value: Any) -> bool:
    """Whether a kernel may be given it: an array, a number or a list."""
    return isinstance(value, (Number, list)) or hasattr(value, "dtype")


def functions(namespace: Mapping[str, Any]) -> list[str]:
    """The names of the functions that a user wrote, in the order of their definition."""
    return [n for n, f in namespace.items() if inspect.isfunction(f) and _typed(n, f)]


def _ours(value: Any) -> bool:
    """Whether it is a result, which can be called and is nobody's reference."""
    return type(value).__module__.partition(".")[0] == __package__.partition(".")[0]


def _typed(name: str, function: Any) -> bool:
    """Whether it is the user's and not one of those that IPython puts into every namespace."""
    ours = name[0] != "_" and not hasattr(builtins, name)
    return ours and not function.__module__.startswith("IPython")


def require_kernel(text: str) -> None:
    """Raise UsageError for a cell without a kernel, and say what is in it instead.

    A header may define what a kernel begins with, so where one is included the compiler decides.
    """
    if "__global__" in text or _FROM_A_FILE.search(text):
        return
    found, fix = _instead(_COMMENT.sub(" ", text))
    raise UsageError(f"there is no kernel here, only {found}", fix=fix)


def _instead(code: str) -> tuple[str, str]:
    """What is there, and what to do."""
    if not code.strip():
        return "comments", "write a `__global__ void name(...)` function"
    if _PYTHON.search(code):
        return "what looks like Python", "run Python in a cell of its own, without %%optiml"
    functions = [n for n in _FUNCTION.findall(code) if n not in ("if", "for", "while", "switch")]
    if functions:
        return _quoted(functions), (
            "a kernel is a `__global__ void name(...)` function: two underscores on each side"
        )
    if not re.search(r"[;{}#]", code):
        words = f"words (`{' '.join(code.split())[:40]}`)"
        return words, "%%optiml synthesize makes a kernel from words, or from --ref FUNCTION"
    return "declarations", "write a `__global__ void name(...)` function"


def _quoted(functions: Sequence[str]) -> str:
    names = ", ".join(f"`{name}`" for name in functions[:3])
    more = ", ..." if functions[3:] else ""
    return f"the function{'s' if functions[1:] else ''} {names}{more} without `__global__`"


def usage(prog: str, actions: Iterable[argparse.Action]) -> str:
    """One line in the place of all options in brackets, which the list below has anyway."""
    words = [prog]
    for action in actions:
        if not action.option_strings:
            name = str(action.metavar or action.dest)
            words.append(f"[{name}]" if action.nargs in ("?", "*") else name)
    return " ".join([*words, "[options]"])
