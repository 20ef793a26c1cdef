"""Random texts of macros and conditionals, of the kind that one seed makes again."""

from __future__ import annotations

import random

OBJECTS = ["A", "B", "C", "D", "E"]
FUNCTIONS = {"F": ["p"], "G": ["p", "q"], "H": ["p"], "V": ["p", "..."], "W": ["..."], "Z": []}
NAMES = [*OBJECTS, *FUNCTIONS]
OTHERS = ["x", "y2", "1", "-", "+", "0x1E", ".", " 'c' ", ' "s\\n" ', "(x)", ",", "<", ">", "=",
          "/*c*/", "->", "é"]  # fmt: skip
ATOMS = ["0", "1", "2", *OBJECTS, "UNDEF", "defined(A)", "defined B", "defined(UNDEF)", "3u", "-1",
         "'a'", "F(1)", "G(1,2)", "0x10", "1'000", "true"]  # fmt: skip
OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "<",
    ">",
    "<=",
    ">=",
    "==",
    "!=",
    "&&",
    "||",
    "&",
    "|",
    "^",
    "<<",
    ">>",
]


def _body(r: random.Random, parameters: list[str], hashes: bool) -> str:
    out: list[str] = []
    for _ in range(r.randint(0, 6)):
        kind = r.random()
        if kind < 0.25 and parameters:
            out.append(r.choice(parameters))
        elif kind < 0.45:
            out.append(r.choice(NAMES))
        elif kind < 0.6:
            name = r.choice(list(FUNCTIONS))
            choices = [*OBJECTS, *parameters, "1", "x", "", "(a,b)", f"{name}(2)", "-"]
            given = ",".join(r.choice(choices) for _ in FUNCTIONS[name])
            out.append(f"{name}{r.choice(['', ' '])}({given})")
        elif kind < 0.68 and parameters and hashes:
            out.append(f"#{r.choice(['', ' '])}{r.choice(parameters)}")
        elif kind < 0.74 and out and hashes and out[-1][-1].isalnum():
            out += ["##", r.choice([*parameters, "x", "A", "F"])]
        else:
            out.append(r.choice(OTHERS))
    return r.choice(["", " ", " "]).join(out)


def _define(r: random.Random, name: str) -> str:
    if name in OBJECTS:
        return f"#define {name} {_body(r, [], True).replace('#', '# ').replace('# # ', '##')}"
    spelled = FUNCTIONS[name]
    names = ["__VA_ARGS__" if one == "..." else one for one in spelled]
    text = f"#define {name}({','.join(spelled)}) {_body(r, names, True)}"
    if "..." in spelled and r.random() < 0.5:
        text += r.choice([" f(k, ## __VA_ARGS__)", " __VA_OPT__(, x __VA_ARGS__) +"])
    return text


def _condition(r: random.Random, depth: int = 0) -> str:
    kind = r.random()
    if depth > 3 or kind < 0.4:
        return r.choice(ATOMS)
    inner = [_condition(r, depth + 1) for _ in range(3)]
    if kind < 0.55:
        return f"{r.choice('!-~')}({inner[0]})"
    if kind < 0.6:
        return f"({inner[0]}) ? ({inner[1]}) : ({inner[2]})"
    return f"({inner[0]} {r.choice(OPERATORS)} {inner[1]})"


def _block(r: random.Random, lines: list[str], depth: int) -> None:
    for _ in range(r.randint(1, 4)):
        kind = r.random()
        if kind < 0.3:
            lines.append(_define(r, r.choice(NAMES)))
        elif kind < 0.38:
            lines.append(f"#undef {r.choice(NAMES)}")
        elif kind < 0.58 and depth < 3:
            asked = r.choice(OBJECTS)
            opening = [f"#if {_condition(r)}", f"# ifdef {asked}", f"#ifndef {asked}"]
            lines.append(r.choice(opening))
            _block(r, lines, depth + 1)
            while r.random() < 0.4:
                lines.append(r.choice([f"#elif {_condition(r)}", "#elifdef A", "#elifndef B"]))
                _block(r, lines, depth + 1)
            if r.random() < 0.5:
                lines.append("#else // x")
                _block(r, lines, depth + 1)
            lines.append("  #endif")
        else:
            text = _body(r, [], False)
            if r.random() < 0.3:
                text = text.replace(" ", "\n", 1)
            lines.append(text + r.choice([" ;", "", " // A", "(1)", " (\n 2)"]))


def macro_text(seed: int) -> str:
    r = random.Random(seed)
    lines = [_define(r, name) for name in NAMES if r.random() < 0.8]
    _block(r, lines, 0)
    _block(r, lines, 0)
    return "\n".join(lines) + "\n"
