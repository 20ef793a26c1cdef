"""Completion and inspection of cells: in a real IPython shell, its terminal's completer and a real kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.terminal.ptutils import IPythonPTCompleter
from IPython.utils.capture import capture_output
from jupyter_client.manager import start_new_kernel
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from optiml_magic.chips import CHIPS
from optiml_magic.commands.parsers import cell_parser
from optiml_magic.kernels import functions
from optiml_magic.kernels.builtins import BUILTINS
from optiml_magic.magics import completing, on_line
from optiml_magic.magics.offer import Session
from optiml_magic.search.policies import POLICIES
from optiml_magic.settings import CHOICES
from optiml_magic.source import grammar

SETUP = """\
import numpy as np
alpha, rows = np.zeros(4, np.float32), 3
def transpose_ref(a): return a.T
class Own: pass
"""
KERNEL = """\
#pragma optiml tune TILE in {8, 16} = 8
#define PADDED 33
struct Point { float radius; };
__device__ float halved(float value) { return value / 2; }
__global__ void transpose(const float* a, float* out, int rows, int cols) {
    int column = blockIdx.x; // @comment
    float &other = out[0]; const char* text = "@string";
    @code
}
"""


def cell(line: str, **places: str) -> tuple[str, int]:
    """A cell with something typed in one place of its kernel, and the offset of the cursor."""
    text = KERNEL
    (where, typed), *rest = {**places}.items() or [("", "")]
    assert not rest
    text = text.replace(f"@{where}", f"{typed}|") if where else text
    return cursor(f"%%optiml {line}\n" + re.sub(r"@\w+", "", text))


def cursor(text: str) -> tuple[str, int]:
    assert text.count("|") == 1
    return text.replace("|", ""), text.index("|")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "optiml_magic")
    shell.run_line_magic("load_ext", "optiml_magic")
    shell.run_line_magic("reload_ext", "optiml_magic")
    shell.run_cell(SETUP)
    yield shell
    InteractiveShell.clear_instance()


@pytest.fixture
def shell(
    loaded: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> InteractiveShell:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a_file.cu").write_text("")
    return loaded


def typed(shell: InteractiveShell, place: tuple[str, int]) -> list[str]:
    """What the cell's line would be from the replaced piece on, for each completion."""
    text, offset = place
    with provisionalcompleter():
        found = list(shell.Completer.completions(text, offset))
    assert all(one.end == offset for one in found)
    return [one.text for one in found]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("%optiml opt|", ["optimize"]),
        ("%%optiml hea|", ["header"]),
        ("  %optiml his|", ["history"]),
        ("found = %optiml comp|", ["compare"]),
        ("%optiml help repl|", ["replay"]),
        ("%%optiml optimize --obj|", ["--objective"]),
        ("%%optiml optimize name --obj|", ["--objective"]),
        ("%%optiml optimize --budget 3 --bud|", []),
        ("%%optiml check --bud|", []),
        ("%%optiml check --out a --ou|", ["--out"]),
        ("%%optiml optimize --objective |", ["speed", "energy"]),
        ("%%optiml optimize --objective=e|", ["energy"]),
        ("%%optiml optimize --policy |", list(POLICIES)),
        ("%%optiml optimize --llm-effort m|", ["minimal", "medium"]),
        ("%%optiml check --compiler |", list(CHOICES["compiler"])),
        ("%%optiml check --device emulated:|", [f"emulated:{name}" for name in CHIPS]),
        ("%%optiml optimize --view t|", ["text"]),
        ("%%optiml optimize --ref |", ["transpose_ref"]),
        ("%%optiml optimize --ref pri|", []),
        ("%%optiml check --inputs a=|", ["alpha", "rows"]),
        ("%%optiml check --inputs a=alpha,rows=al|", ["alpha"]),
        ("%%optiml check --file a_|", ["a_file.cu"]),
        ("%%optiml check --budget '|", []),
        ("%optiml nonsense pri|", []),
        ("%optiml best nothing_of_that_name|", []),
    ],
)  # fmt: skip
def test_a_line_offers_what_may_follow_and_nothing_else(
    shell: InteractiveShell, line: str, wanted: list[str]
) -> None:
    assert typed(shell, cursor(line)) == wanted


def test_every_command_and_every_option_of_it_is_offered(shell: InteractiveShell) -> None:
    known = cell_parser().commands
    assert typed(shell, cursor("%optiml |")) == list(known)
    for verb, (parser, _) in known.items():
        flags = [flag for flag in parser.options if flag not in ("-h", "--help")]
        # Behind all positionals, where only options may follow.
        full = " ".join("x" for _ in parser.positionals)
        assert typed(shell, cursor(f"%optiml {verb} {full} -|")) == flags
    above = typed(shell, cursor("%%optiml |\n"))
    assert set(above) < set(known)
    assert {"optimize", "header"} <= set(above)
    assert "history" not in above


def test_what_is_known_of_arguments_is_known_of_ones_that_there_are() -> None:
    parsers = [parser for parser, _ in cell_parser().commands.values()]
    actions = {a.dest for p in parsers for a in (*p.options.values(), *p.positionals)}
    assert set(on_line.KNOWN) <= actions
    assert actions & set(CHOICES)


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ({"code": "colu"}, ["column"]),
        ({"code": "col"}, ["cols", "column"]),
        ({"code": "PAD"}, ["PADDED"]),
        ({"code": "TIL"}, ["TILE"]),
        ({"code": "halv"}, ["halved"]),
        ({"code": "othe"}, ["other"]),
        ({"code": "Poi"}, ["Point"]),
        ({"code": "other.rad"}, ["radius"]),
        ({"code": "threadIdx."}, ["x", "y", "z"]),
        ({"code": "__syncw"}, ["__syncwarp"]),
        ({"code": "whil"}, ["while"]),
        ({"code": "pri"}, ["printf", "private"]),
        ({"code": "a_fi"}, []),
        ({"code": "zz"}, []),
        ({"code": "0x"}, []),
        ({"comment": "pri"}, []),
        ({"string": "pri"}, []),
    ],
)
def test_a_body_offers_its_own_names_and_cudas(
    shell: InteractiveShell, place: dict[str, str], wanted: list[str]
) -> None:
    assert typed(shell, cell("check", **place)) == wanted


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("#|", ["define", "elif", "elifdef", "elifndef", "else", "endif", "if", "ifdef", "ifndef", "include", "pragma"]),
        ("#pragma |", ["optiml", "unroll"]),
        ("#pragma optiml |", list(grammar.FORMS)),
        ("#pragma optiml la|", ["launch"]),
        ("#pragma optiml launch |", ["halved", "transpose", *grammar.CLAUSES, "if", "else"]),
        ("#pragma optiml launch transpose bl|", ["block"]),
        ("#pragma optiml launch transpose grid(c|", ["cols", "cdiv"]),
        ("#pragma optiml launch transpose \\\n  block(TI|", ["TILE"]),
        ("#pragma optiml tune N |", ["in", "if"]),
        ("#pragma optiml zero(o|", ["out"]),
        ("#pragma optiml scratch part floa|", ["float", "float16", "float32", "float64"]),
        ("#pragma optiml require row|", ["rows"]),
        ("#pragma optiml launch // bl|", []),
        ("#include <st|", []),
    ],
)  # fmt: skip
def test_a_directive_offers_what_may_follow(
    shell: InteractiveShell, line: str, wanted: list[str]
) -> None:
    kernel = re.sub(r"@\w+", "", KERNEL)
    assert typed(shell, cursor(f"%%optiml optimize\n{line}\n{kernel}")) == wanted


def test_the_parameters_of_the_kernel_below_are_offered_above_it(shell: InteractiveShell) -> None:
    found = typed(shell, cursor("%%optiml check --args |\n" + re.sub(r"@\w+", "", KERNEL)))
    assert found == ["value", "a", "out", "rows", "cols"]


@pytest.mark.parametrize("odd", ["\ud800", "\0", "(" * 3000, "/*" * 3000, '"', 'R"('])
def test_no_text_is_too_odd(shell: InteractiveShell, odd: str) -> None:
    code = f"%%optiml check\n{odd}\n__syncw|"
    assert typed(shell, cursor(code)) in (["__syncwarp"], [])
    assert completing.about(code.replace("|", ""), len(code) - 3, Session({})) is not None


def test_prose_is_left_alone(shell: InteractiveShell) -> None:
    assert typed(shell, cursor("%%optiml synthesize\nsum the rows, pri|")) == []
    assert typed(shell, cursor("%%optiml synthesize --ref tr|\nsum")) == ["transpose_ref"]


def test_python_stays_what_it_is(shell: InteractiveShell) -> None:
    assert "print" in typed(shell, cursor("pri|"))
    assert "print" in typed(shell, cursor("%optiml doctor\npri|"))
    assert "print" in typed(shell, cursor("text = '%%optiml check'\npri|"))
    assert "%%optiml" in typed(shell, cursor("%%optim|"))
    assert "%optiml" in typed(shell, cursor("%optim|"))
    assert "a_file.cu" in typed(shell, cursor("open('a_fi|"))


def test_runs_results_and_searches_are_offered_by_name(shell: InteractiveShell, home: Path) -> None:
    (home / "runs").mkdir(parents=True)
    for name in ("transpose-1", "matmul-2"):
        (home / "runs" / f"{name}.jsonl").write_text("")
    assert sorted(typed(shell, cursor("%optiml replay |"))) == ["matmul-2", "transpose-1"]
    assert typed(shell, cursor("%optiml replay matmul-2 tr|")) == ["transpose-1"]
    assert typed(shell, cursor("%optiml compare transpose-1 m|")) == ["matmul-2"]
    assert typed(shell, cursor("%optiml stop |")) == []


def test_a_search_in_the_background_is_offered_to_be_stopped(shell: InteractiveShell) -> None:
    with capture_output():
        done = shell.run_cell(
            "def same(a): return a\n"
            "source = np.ones(64, np.float32)\n"
            "get_ipython().run_cell_magic('optiml', 'optimize slow --ref same --inputs a=source"
            " --budget 40 --background', '''"
            "__global__ void copied(const float* a, float* out, int n) {\n"
            "  int i = threadIdx.x; if (i < 64) out[i] = a[i]; }''')"
        )
    assert done.success
    try:
        assert typed(shell, cursor("%optiml stop |")) == ["slow"]
    finally:
        with capture_output():
            shell.run_line_magic("optiml", "stop slow")
            done.result.wait() if hasattr(done.result, "wait") else None


def test_the_terminal_shows_the_same(shell: InteractiveShell) -> None:
    def shown(place: tuple[str, int]) -> list[tuple[str, int]]:
        document = Document(*place)
        found = IPythonPTCompleter(shell.Completer).get_completions(document, CompleteEvent())
        return [(one.text, one.start_position) for one in found]

    assert shown(cursor("%%optiml optimize --devi|")) == [("--device", -6)]
    assert shown(cursor("%%optiml check --device emulated:rt|")) == [("emulated:rtx4090", -11)]
    assert shown(cell("check", code="__syncw")) == [("__syncwarp", -7)]
    assert shown(cell("check", code="zz")) == []


def test_a_question_mark_behind_a_command_is_for_its_help(shell: InteractiveShell) -> None:
    for line in ("%optiml annotate?", "%%optiml annotate --ref f?"):
        with capture_output() as captured:
            shell.run_cell(line)
        assert captured.stdout.startswith("usage: %%optiml annotate"), line


def test_the_first_completion_is_not_waited_for() -> None:
    told = subprocess.run(
        [sys.executable, "-c", FIRST], capture_output=True, text=True, check=True
    ).stdout.split()
    loading, first = map(float, told)
    assert loading < 0.1
    assert first < 0.5


FIRST = """
import time
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
begun = time.process_time()
shell.run_line_magic("load_ext", "optiml_magic")
print(time.process_time() - begun)
begun = time.process_time()
text = "%%optiml check --device emulated:\\n__global__ void k(float* out) { thr }"
with provisionalcompleter():
    assert list(shell.Completer.completions(text, text.index("thr") + 3))
    assert list(shell.Completer.completions(text, text.index("\\n")))
print(time.process_time() - begun)
"""


def test_what_a_parser_of_directives_knows_has_its_line_and_so_has_what_kernels_call() -> None:
    assert grammar.FORMS.keys() == grammar._DIRECTIVES.keys()
    for form in grammar.FORMS.values():
        grammar.parse_directive(f"#pragma optiml {form.usage.replace('KERNEL', 'k')}")
    called = functions.BLOCK_BARRIERS | functions.WARP_BARRIERS | set(functions.ATOMICS)
    assert called - {"barrier_sync"} <= set(BUILTINS)
    assert all(each.means and each.section for each in BUILTINS.values())


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        client.execute_interactive("%load_ext optiml_magic\n" + SETUP, timeout=60)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def reply(kernel: Any, message: str) -> dict[str, Any]:
    found = kernel.get_shell_msg(timeout=60)
    while found["parent_header"].get("msg_id") != message:
        found = kernel.get_shell_msg(timeout=60)
    content: dict[str, Any] = found["content"]
    return content


def completed(kernel: Any, place: tuple[str, int]) -> tuple[list[str], str]:
    content = reply(kernel, kernel.complete(*place))
    assert content["status"] == "ok"
    return content["matches"], place[0][content["cursor_start"] : content["cursor_end"]]


def test_a_kernel_completes(kernel: Any) -> None:
    assert completed(kernel, cursor("%%optiml optimize --obj|")) == (["--objective"], "--obj")
    assert completed(kernel, cursor("%%optiml check --ref |")) == (["transpose_ref"], "")
    device = completed(kernel, cursor("%%optiml check --device emulated:l|\n" + KERNEL))
    assert device == (["emulated:l4"], "emulated:l")
    assert completed(kernel, cell("check", code="colu")) == (["column"], "colu")
    assert completed(kernel, cell("check", code="zz"))[0] == []
    assert completed(kernel, cell("check", comment="pri"))[0] == []
    pragma = completed(kernel, cursor("%%optiml check\n#pragma optiml sc|\n" + KERNEL))
    assert pragma == (["scratch"], "sc")
    assert "print" in completed(kernel, cursor("pri|"))[0]
    assert completed(kernel, cursor("# \N{PILE OF POO}\n%optiml docto|")) == (["doctor"], "docto")
    content = reply(kernel, kernel.complete(*cell("check", code="colu")))
    (one,) = content["metadata"]["_jupyter_types_experimental"]
    assert (one["text"], one["type"]) == ("column", "instance")


def test_a_kernel_that_completes_line_by_line_does_so_on_the_line_of_a_command(kernel: Any) -> None:
    switch = "get_ipython().kernel.use_experimental_completions = "
    kernel.execute_interactive(f"{switch}False", timeout=60)
    try:
        assert completed(kernel, cursor("x = 1\n%optiml docto|")) == (["doctor"], "docto")
        assert completed(kernel, cursor("%%optiml check --ref |")) == (["transpose_ref"], "")
    finally:
        kernel.execute_interactive(f"{switch}True", timeout=60)


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ("%%optiml opti|mize --budget 3", "%optiml optimize: search for a faster kernel"),
        ("%%optiml optimize --bud|get 3", "--budget BUDGET: evaluations, input included (24)"),
        ("%%optiml optimize --budget 3|", "--budget BUDGET: evaluations, input included (24)"),
        ("%%optiml optimize --view=te|xt", "--view VIEW: how to watch (auto, widget, text)"),
        ("%optiml best na|me", "NAME: of the result of this name"),
        ("%%optiml check\n#pragma optiml tu|ne N in {1} = 1", f"#pragma optiml {grammar.FORMS['tune'].usage}: "),
        ("%%optiml check\n#pragma optiml launch k gr|id(1)", f"#pragma optiml {grammar.FORMS['launch'].usage}: "),
        ("%%optiml check\n#pragma unr|oll", "unroll: "),
        ("%%optiml check\n__global__ void k() { __syncth|reads(); }", "__syncthreads(): "),
        ("%%optiml check\n__global__ void k() { atomicAdd(&out[i], | ", "atomicAdd(address, value): "),
        ("%%optiml check\n__global__ void k(const float*\n  al|pha) {}", "const float* alpha: parameter of k; alpha of the notebook is float32[4]"),
        ('%%optiml check\n__global__ void k(int rows) { int i = "é"[0] + ro|ws; }', "int rows: parameter of k; rows of the notebook is 3"),
        ("%%optiml check\n__device__ void f(int v) {}\n__global__ void k(float v, float np) { v| }", "float v: parameter of k"),
        ("%%optiml check\n__global__ void k(float np) { if (n|p", "float np: parameter of k"),
    ],
)  # fmt: skip
def test_a_kernel_tells_in_a_line_what_stands_there(kernel: Any, place: str, wanted: str) -> None:
    content = reply(kernel, kernel.inspect(*cursor(place)))
    assert content["found"]
    told = content["data"]["text/plain"]
    assert told.startswith(wanted)
    assert "\n" not in told
    assert content["metadata"] == {"optiml": True}


@pytest.mark.parametrize(
    "place",
    [
        "%%optiml check\n__global__ void k() { // pri|nt",
        "%%optiml check\n__global__ void k() { pri|nt(); }",
        "%%optiml check\nint ro|ws = 0;",
        "%%optiml check\n__global__ void k(int rows) {}\nint other = ro|ws;",
        "%%optiml synthesize\nprin|t",
        "%%optiml nonsense pri|nt",
    ],
)  # fmt: skip
def test_a_kernel_tells_nothing_of_python_in_a_cell(kernel: Any, place: str) -> None:
    content = reply(kernel, kernel.inspect(*cursor(place)))
    assert (content["status"], content["found"], content["data"]) == ("ok", False, {})
    assert content["metadata"] == {"optiml": True}


def test_a_kernel_tells_of_python_what_it_told_before(kernel: Any) -> None:
    for place in ("pri|nt", "%optiml doctor\npri|nt"):
        content = reply(kernel, kernel.inspect(*cursor(place)))
        assert "Prints the values" in content["data"]["text/plain"]
        assert content["metadata"] == {}
    magic = reply(kernel, kernel.inspect("%%optiml", 4))
    assert magic["found"]
    assert "search for a faster kernel" in magic["data"]["text/plain"]
