"""What docs/security.md says is defended."""

from __future__ import annotations

import os
import re
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optiml_magic
from optiml_magic.child.process import environment
from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.hosted import HostedCompiler
from optiml_magic.compilers.includes import refused
from optiml_magic.compilers.nvcc import NvccCompiler
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.errors import OptimlError, SourceError
from optiml_magic.model.build import Build, CompileFailure
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step, Trajectory
from optiml_magic.model.finding import Action, Evidence, Finding
from optiml_magic.model.measurement import Bound, Measurement
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.optimize import optimize
from optiml_magic.printable import printable
from optiml_magic.reports import annotation_html, annotation_text, html, text
from optiml_magic.reports.annotation import (
    AnnotatedLine,
    Annotation,
    Instruction,
    LineCounts,
)
from optiml_magic.reports.summary import Summary
from optiml_magic.settings import resolve
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.program import parse_program
from optiml_magic.testing.contracts import DeviceContract
from optiml_magic.testing.kernels import known_task
from optiml_magic.widgets.line import Text
from tests.present import NVCC, examples, sampled

KERNEL = "__global__ void k(int* p) { p[0] = 1; }\n"
SECRET = "sk-never-to-be-seen-0123456789"


def compiled(compiler: HostedCompiler, source: str, **options: object) -> Build | CompileFailure:
    return compiler.compile(source, ("k",), chip("h200"), CompileOptions(**options))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def compiler() -> Iterator[HostedCompiler]:
    compiler = HostedCompiler("nvrtc", seconds=30)
    yield compiler
    compiler.close()


# Files: what a text may name, and what the compiler's process may open.


@pytest.mark.parametrize(
    "line",
    [
        '#include "/etc/passwd"',
        "#include </etc/passwd>",
        "#include <../../../../etc/passwd>",
        '#include "a/../../../etc/passwd"',
        '#include "etc/passwd"',
        "# /* a */ include /* b */ </etc/passwd>",
        "#inc\\\nlude \\\n</etc/passwd>",
        "#inc??/\nlude </etc/passwd>",
        "%:include </etc/passwd>",
        "??=include </etc/passwd>",
        "#include_next </etc/passwd>",
        '#import "/etc/passwd"',
        '#embed "/etc/passwd"',
        "#define F </etc/passwd>\n#include F",
        "#define Q(x) #x\n#include Q(/etc/passwd)",
        "#define A(x) x\n#define F A(</etc/passwd>)\n#include F",
        "#include __FILE__",
        "#/*" + "x" * 400 + "*/include </etc/passwd>",
        "#" + " " * 400 + "include </etc/passwd>",
        "#include" + " " * 400 + "</etc/passwd>",
        "#line" + " " * 400 + '1 "/etc/passwd"',
        "#include UNKNOWN",
        '#if __has_include("/etc/passwd")\n#endif',
        "#define H __has_include\n#if H(</etc/passwd>)\n#endif",
        '#if __has_embed("/etc/passwd")\n#endif',
        '#line 1 "/etc/passwd"',
        '# 1 "/etc/passwd" 1 3',
        '#define F 1 "/etc/passwd"\n#line F',
        '#include "C:\\secret.h"',
        '#include "//host/share/x.h"',
        "#include <~/x.h>",
        # A lone carriage return ends a line for g++.
        '#define F "cuda.h"\n#define A 1 //\r#define F "/etc/passwd"\n#include F',
        # Blanks behind a backslash: g++ joins these lines, NVRTC does not.
        '#define F "cuda.h"\n#define A // \\ \n#define F "/etc/passwd"\n#include F',
        '#define F "cuda.h"\n#define A // ??/\n#define F "/etc/passwd"\n#include F',
        "#inc\\\f\nlude </etc/passwd>",
        "#inc\\" + " " * 101 + "\nlude </etc/passwd>",
        # One directive begins in a comment and ends in another.
        '// # /*\n#include "/etc/passwd"\n// */ include <cuda.h>',
        '/* #include <x */ #include "/etc/passwd" // >',
        '#define F "cuda.h"\n/* #define A */ #define F "/etc/passwd"\n#include F',
        '#define /* \n */ F "/etc/passwd"\n#include F',
        # The name of a macro that is not all of the name.
        '#define F "cuda.h"\n#define F\u00c1 "/etc/passwd"\n#include F\\u00c1',
        '#define F "cuda.h"\n#define F$ "/etc/passwd"\n#include F$',
        "#define X\n#define F <X/etc/passwd>\n#include F",
        "#define X\n#define I(a) a\n#if I(__has_include(<X/etc/passwd>))\n#endif",
        "#define Q(a) __has_include(<a>)\n#if Q(/etc/passwd)\n#endif",
        '#define a "cuda.h"\n#define Q(a) __has_include(a)\n#if Q("/etc/passwd")\n#endif',
        "#define Q(a) /*\n*/ __has_include(<a>)\n#if Q(/etc/passwd)\n#endif",
        '#pragma GCC dependency "/etc/passwd"',
        '#pragma GCC /* */ dependency "/etc/passwd"',
        '_Pragma("GCC dependency \\"/etc/passwd\\"")',
        '#define P(x) _Pragma(#x)\n#define D dependency\nP(GCC D "/etc/passwd")',
        "%:line 9",
        "#/**/line 9",
        '#define F "/etc/passwd"\n# 1 F',
        '#define F\\u00c1 "/etc/passwd"\n# 1 F\u00c1',
    ],
)
def test_a_text_cannot_name_a_file_elsewhere(compiler: HostedCompiler, line: str) -> None:
    source = f"// first\n{line}\n{KERNEL}"
    complaint = refused(source, CompileOptions())
    assert complaint is not None
    assert complaint.line >= 2
    failure = compiled(compiler, source)
    assert isinstance(failure, CompileFailure)
    assert "root:" not in str(failure)
    assert "/etc/passwd" not in failure.errors[0].message


@pytest.mark.parametrize(
    "line",
    sampled(
        [
            "#include <cuda_fp16.h>",
            '#include "typed.cuh"',
            "#include <sub/../own.cuh>",
            '#define H "own.cuh"\n#include H',
            "#ifdef __has_include\n#endif",
            "#if defined(__has_include)\n#if __has_include(<own.cuh>)\n#endif\n#endif",
            "#line 7",
            "#define S(x) #x",
            "#define PASTE(a, b) a ## b",
            '#define H "own.cuh" // mine\r\n#include H // here\r',
            "// #1 load, \\\n#2 store, as #define says\n/*\n # 1 load\n */",
            "#define UNROLL(n) _Pragma(#n)",
            "// one \f two \v three \x85 four \u2028 five",
        ],
        4,
    ),
)
def test_what_the_task_has_is_open_to_it(
    compiler: HostedCompiler, tmp_path: Path, line: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "own.cuh").write_text("#pragma once\n")
    options = {"include": (str(tmp_path),), "headers": (("typed.cuh", "// typed\n"),)}
    assert isinstance(compiled(compiler, f"{line}\n{KERNEL}", **options), Build)


def test_the_compile_host_cannot_open_what_a_scan_does_not_see(
    compiler: HostedCompiler, tmp_path: Path
) -> None:
    """A header of the user's includes a file that is not the task's: the system refuses."""
    if not compiler.confined:
        pytest.skip("no Landlock in this kernel")
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.h").write_text("hidden words\n")
    answers = set()
    for name in ("secret", "absent"):
        (inside / "own.cuh").write_text(f'#include "{outside}/{name}.h"\n')
        failure = compiled(compiler, f'#include "own.cuh"\n{KERNEL}', include=(str(inside),))
        assert isinstance(failure, CompileFailure)
        assert "could not open" in failure.log or "cannot open" in failure.log
        assert "hidden words" not in failure.log
        answers.add(str(failure).replace("absent", "secret"))
    assert len(answers) == 1  # nor does it tell which one exists


@pytest.mark.skipif(not NVCC, reason="no nvcc with a host compiler on this machine")
@pytest.mark.parametrize(
    "line",
    sampled(
        [
            "#define H #\nH include {}",
            "#define H %:\nH include {}",
            "#define J(a, b) a##b\nJ(%, :) include {}",
            "#define S(x) x\nS(%\\)\n: include {}",
            "#define E\n#define I include\nE # I {}",
            "#define H #\nH 1 {}\nint a = b;",
        ],
        3,
    ),
)
def test_nvcc_shows_nothing_of_a_file_that_macros_spell(tmp_path: Path, line: str) -> None:
    """Its front end follows directives in what the host's preprocessor wrote."""
    secret = tmp_path / "secret.h"
    secret.write_text("hidden words\n")
    made = NvccCompiler().compile(
        line.format(f'"{secret}"') + "\n" + KERNEL, ("k",), chip("h200"), CompileOptions()
    )
    assert isinstance(made, CompileFailure)
    assert "hidden" not in str(made)
    assert made.errors[0].message.startswith("a directive made by a macro")


@given(st.text(st.sampled_from('#%: \t\n\\"<>/*.abcd?=includeline_'), max_size=60))
def test_any_text_is_scanned(source: str) -> None:
    refused(source, CompileOptions())


def test_the_scan_takes_time_in_proportion_to_the_text() -> None:
    """With its square these would take hours."""
    for piece in (
        "#/*", "#include ", "#include <", "# include /*", "__has_include(", "\\\n", "#line ",
        "#define A", "#/**/", "/*#", "#" + " " * 299, "defined ( ", "#if __has_include(<a>) ",
        "/*" + "#/*" * 90 + "*/", "\\ ", "GCC ", "# 1 ",
    ):  # fmt: skip
        refused(piece * (200_000 // len(piece)), CompileOptions())
    refused("#define F <h>\n" * 10_000 + "#include F\n" * 10_000, CompileOptions())


# Host code: compiled to nothing, linked with nothing, run never.


def host_code(marker: Path) -> str:
    """CUDA text with host code of every kind that runs without being called."""
    return f"""\
#include <cstdlib>
#if !defined(__CUDACC_RTC__)
static int touched() {{ return system("touch {marker}"); }}
static int at_start = touched();
__attribute__((constructor)) static void before_main() {{ touched(); }}
struct Global {{ Global() {{ touched(); }} }} global_object;
int main() {{ return touched(); }}
#endif
"""


def test_nvrtc_runs_no_host_code(compiler: HostedCompiler, tmp_path: Path) -> None:
    marker = tmp_path / "touched"
    assert isinstance(compiled(compiler, host_code(marker) + KERNEL), Build)
    assert not marker.exists()


@pytest.mark.skipif(not NVCC, reason="no nvcc with a host compiler on this machine")
def test_nvcc_runs_no_host_code(tmp_path: Path) -> None:
    marker, compiler = tmp_path / "touched", HostedCompiler("nvcc", seconds=100)
    try:
        assert isinstance(compiled(compiler, host_code(marker) + KERNEL), Build)
    finally:
        compiler.close()
    assert not marker.exists()


def test_nvcc_is_only_ever_asked_for_device_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program in nvcc's place writes down what it is asked for."""
    asked, fake = tmp_path / "asked", tmp_path / "nvcc"
    fake.write_text(
        f'#!/bin/sh\necho "$@" >> {asked}\n'
        'case "$1" in --version) echo "release 13.0, V13.0.48";; esac\nexit 0\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("OPTIML_NVCC", str(fake))
    monkeypatch.setenv("NVCC_CCBIN", sys.executable)
    with pytest.raises(OSError):  # it wrote no PTX
        NvccCompiler().compile(KERNEL, ("k",), chip("h200"), CompileOptions())
    lines = [line.split() for line in asked.read_text().splitlines()]
    assert len(lines) >= 2
    for words in lines:
        assert "--version" in words or "-ptx" in words or "-cubin" in words
        assert not {"-run", "--run", "-link", "-c", "-shared", "-dlink"} & set(words)


# Directives: a grammar of our own, which Python never sees.

PYTHONIC = st.lists(
    st.sampled_from([
        "__import__", "('os')", ".system", "(", ")", "[", "]", "lambda", ":", "n", "eval", "exec",
        "().__class__", ".__mro__", "{", "}", "f'{n}'", "open", "'x'", "import os", ";", "=", "**",
        "//", "1", "+", "cdiv", ",", "@", "if", "else", "for x in", "globals()", "\\", "\n", "`",
        "size(x)", "%s", "{0}", "$(id)", "|", "&&", "print",
    ]), max_size=12,
).map(" ".join)  # fmt: skip


class _Watch:
    """What Python is asked to do while somebody watches; an audit hook stays for good."""

    on = False
    seen: list[str] = []  # noqa: RUF012

    @classmethod
    def hear(cls, event: str, _: object) -> None:
        if cls.on and event in (
            "exec",
            "compile",
            "import",
            "open",
            "os.system",
            "subprocess.Popen",
        ):
            cls.seen.append(event)


@contextmanager
def watched() -> Iterator[None]:
    _Watch.seen.clear()
    _Watch.on = True
    try:
        yield
    finally:
        _Watch.on = False
    assert _Watch.seen == []


def test_directive_expressions_cannot_reach_python() -> None:
    sys.addaudithook(_Watch.hear)
    attempt("__import__('os').system('id')")  # loads what an error needs

    @given(PYTHONIC)
    @settings(max_examples=300)
    def fuzz(expression: str) -> None:
        with watched():
            attempt(expression)

    fuzz()
    with pytest.raises(AssertionError), watched():
        eval("1 + 1")


def attempt(expression: str) -> None:
    try:
        value = parse_expression(expression).evaluate({"n": 3}, {"x": (4, 5)})
        assert isinstance(value, int)
    except SourceError:
        pass
    with suppress(SourceError):
        parse_program.__wrapped__(f"#pragma optiml launch k grid({expression}) block(1)\n{KERNEL}")


# Text of models and kernels in HTML and on terminals.

MARKED = st.lists(
    st.one_of(
        st.sampled_from([
            "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</pre>", "</script>", "-->",
            "<!--", "<![CDATA[", '" onmouseover="alert(1)', "' style='x", "&lt;", "&#60;", "<svg/onload=",
            "javascript:", "</td></table>", "<style>", "\x00", "\x1b[2J", "\u202e", "]]>", "<", ">", "&",
        ]), st.text(max_size=8),
    ), max_size=6,
).map("".join)  # fmt: skip
TAGS = {
    "html", "head", "meta", "title", "body", "h1", "h3", "div", "details", "summary", "table", "tr",
    "th", "td", "pre", "span", "ul", "li", "p", "thead", "tbody", "code", "img", "textarea",
}  # fmt: skip
DRAWN = {"svg", "title", "desc", "style", "g", "path", "defs", "clippath", "rect", "text", "use"}
ATTRIBUTES = {
    "style", "open", "lang", "charset", "http-equiv", "content", "name", "scope",
    "alt", "src", "title", "rows", "readonly", "spellcheck",
}  # fmt: skip
DRAWING = {
    "viewbox", "width", "height", "role", "d", "id", "x", "y", "rx", "transform", "xmlns", "style",
    "xmlns:xlink", "xlink:href", "clip-path", "class", "stroke", "stroke-opacity", "stroke-linejoin",
}  # fmt: skip
FIXED = {
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    "click here, then Ctrl+A and Ctrl+C",
    "http://www.w3.org/2000/svg",
    "http://www.w3.org/1999/xlink",
}


IMAGE = "data:image/svg+xml;base64,"


class _Strict(HTMLParser):
    """Tags and attributes of ours alone; pictures are opened and looked into as strictly."""

    def __init__(self, tags: set[str] = TAGS, attributes: set[str] = ATTRIBUTES) -> None:
        super().__init__()
        self.tags, self.names = tags, attributes

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.tags
        assert {name for name, _ in attrs} <= self.names
        given = {name: value or "" for name, value in attrs}
        source = given.pop("src", "")
        given.pop("alt", "")  # words of the picture, escaped: they made no tag and no attribute
        assert all(re.fullmatch(r"[\w:;,.#%()\s-]*", v) for v in set(given.values()) - FIXED)
        if source:
            assert source.startswith(IMAGE)
            inside = _Strict(DRAWN, DRAWING)
            inside.feed(b64decode(source.removeprefix(IMAGE), validate=True).decode())
            inside.close()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {"path", "rect", "use", "defs", "g"}
        self.handle_starttag(tag, attrs)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)


def summary_of(said: str) -> Summary:
    """A run in which everything that can hold text holds this one."""
    finding = Finding(
        said, "critical", said, (Evidence(said, 1, 2, said, "emulated"),), (Action(said),), (1, 2)
    )
    steps = []
    for number, seconds in enumerate((4.0, 1.0, None)):
        verdict = Verdict(
            Outcome.WRONG if seconds is None else Outcome.PASSED, said, 3, said, notes=(said,)
        )
        measured = (
            Measurement(said, "estimated", seconds, 1.3, (), (Bound(said, seconds),), ())
            if seconds
            else None
        )
        evaluation = Evaluation(number, str(number), verdict, measured, findings=(finding,))
        proposal = Proposal(f"{said} {number}", said, said, said)
        steps.append(Step(Candidate(number, 0 if number else None, proposal), evaluation))
    return Summary(
        said, said, said, said, "given", (said,), Trajectory(tuple(steps), said), 1.0, None, said
    )


def annotation_of(said: str) -> Annotation:
    """An annotated kernel in which everything that can hold text holds this one."""
    instruction = Instruction(said, said, (said, said), 1)
    counts = LineCounts(
        instructions=1, machine=1, lanes=1.0, share=0.5, requests=1, sectors=1, ideal_sectors=1,
        sector_share=0.5, conflicts=1, conflict_share=0.5, shared_requests=1, accesses=(said,),
        stalls={said: 1}, stall_share=0.5,
    )  # fmt: skip
    found = (
        Finding(
            said, "note", said, (Evidence(said, 1, 2, said, "ncu", 1),), (Action(said),), (1, 2)
        ),
    )
    code = (instruction, Instruction("other", said, ()))
    line = AnnotatedLine(1, said, code, counts, found)
    return Annotation(said, (line,), ((said, said),), {said: said}, found)


@given(MARKED)
@settings(max_examples=examples(4, 1000))
def test_html_holds_no_tag_and_no_attribute_of_a_text(said: str) -> None:
    summary = summary_of(said)
    root = summary.root.evaluation
    assert root.measurement is not None
    for page in (
        html.page([summary], said),
        html.verdict(said, replace(root.verdict, outcome=Outcome.WRONG), [(said, said)]),
        html.profile(said, root.measurement, root.findings, [(said, said)]),
        annotation_html.page([annotation_of(said)], said),
    ):
        reader = _Strict()
        reader.feed(page)
        reader.close()


@given(MARKED)
def test_nothing_on_a_terminal_is_hidden(said: str) -> None:
    summary = summary_of(said)
    error = str(OptimlError(said, fix=said, line=1).quoting(said))
    shown = [annotation_text.render(annotation_of(said))]
    shown += [text.render(summary), text.describe(summary.root.evaluation.verdict), error]
    for line in (*shown, *text.findings(summary.root.evaluation.findings), repr(Text(said))):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", line)
        assert printable(line) == line


def test_the_widget_writes_text_and_never_markup() -> None:
    """The browser tests show that it is so; this keeps it so in every script.

    A report is parsed into a document of its own, of which only listed elements are built anew.
    """
    for script in (Path(optiml_magic.__file__).parent).rglob("*.js"):
        source = re.sub(r"//[^\n]*", "", script.read_text())
        source = source.replace('new DOMParser().parseFromString(html, "text/html")', "", 1)
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc"
            r"|createContextualFragment|DOMParser",
            source,
        ), script


# Keys.


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "MY_PASSWORD"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://user:{SECRET}@127.0.0.1:1/v1")


@pytest.mark.usefixtures("key")
def test_no_child_is_given_a_key() -> None:
    assert SECRET not in str(environment())
    assert environment().get("PATH") == os.environ.get("PATH")
    contract = DeviceContract()
    device, compiler = HostedDevice("emulated:h200"), HostedCompiler("nvrtc")
    try:
        device.put(contract.case())
        build = contract.build()
        assert device.execute(build, contract.job(build)).checks[0].passed
        compiled = compiler.compile(
            "__global__ void k() {}", ("k",), chip("h200"), CompileOptions()
        )
        assert isinstance(compiled, Build)
        for child in (device._child, compiler._child):
            assert child is not None
            held = Path(f"/proc/{child._process.pid}/environ").read_bytes()
            assert b"PATH=" in held
            assert SECRET.encode() not in held
    finally:
        device.close()
        compiler.close()


@pytest.mark.usefixtures("key")
def test_no_file_of_a_run_holds_a_key(own_caches: Path) -> None:
    task = known_task("saxpy", n=1000)
    result = optimize(task, resolve({"device": "emulated", "budget": 2, "llm": "none"}))
    files = [path for path in own_caches.rglob("*") if path.is_file()]
    assert any(path.suffix == ".jsonl" for path in files)
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in str(result._repr_mimebundle_())
