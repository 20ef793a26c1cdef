"""Numbers of a program's command line, by a directive for what it is run with."""

from __future__ import annotations

import pytest

from optiml_magic.errors import SourceError, UsageError
from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.kernels.prepared import with_launches
from optiml_magic.model.task import Task
from optiml_magic.problem import prepare

ONE = "__global__ void k(const float* x, float* y, int n) { y[n] = x[n]; }\n"
READS = "__global__ void k(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }\n"
RUN = "#pragma optiml argv({})\n"


def number(host: str, given: str) -> object:
    """What the host's ``c`` is where it launches."""
    text = f"{RUN.format(given)}{ONE}int main(int argc, char** argv) {{ {host} k<<<1, 64>>>(a, b, c); }}"
    _, notes = drop_host_code(text)
    return next((note.value for note in notes if note.kind == "literal"), None)


@pytest.mark.parametrize(
    ("host", "given", "found"),
    [
        ("int c = atoi(argv[1]);", "16", 16),
        ("int c = std::stoi(argv[2]);", "1, 16", 16),
        ("int c = strtol(argv[1], NULL, 10) * 2;", "8", 16),
        ("const size_t c = 1 << atoi( argv[1] );", "4", 16),
        ("float r = atof(argv[1]); int c = r * 2;", "8.5", 17),
        ("int c = 3; if (argc > 1) c = atoi(argv[1]);", "16", 16),
        ("int c = 3; if (argc > 2) c = atoi(argv[2]);", "16", 3),
        ("if (argc != 3) { usage(); return 1; } int c = atoi(argv[2]);", "input.txt, 16", 16),
        ("int c = atoi(argv[1]);", '"16"', 16),
        ("int c = atoi(argv[3]);", "16", None),
        ("int c = atoi(argv[1]);", "many", None),
        ("int c = parse(argv[1]);", "16", None),
    ],
)  # fmt: skip
def test_a_number_of_the_command_line_is_what_the_program_is_run_with(
    host: str, given: str, found: object
) -> None:
    assert number(host, given) == found


def test_the_directive_is_no_part_of_the_program() -> None:
    text, _ = drop_host_code(
        RUN.format(8) + ONE + "int main(int c, char** v) { k<<<1, 1>>>(a, b, 1); }"
    )
    assert "argv" not in text
    assert text.splitlines().index(ONE.rstrip()) == 1


def test_without_it_the_error_says_how_to_write_it() -> None:
    host = (
        "int main(int argc, char** argv) { int elements = atoi(argv[1]); long times; times = atol(argv[3]);"
        " k<<<elements / 8, 64>>>(a, b); }"
    )
    with pytest.raises(SourceError) as error:
        with_launches(READS + host)
    wanted = "#pragma optiml argv(ELEMENTS, ARGUMENT_2, TIMES)"
    assert (
        error.value.fix
        == f"say what the program is run with, your numbers for the words in capitals: {wanted}"
    )
    with pytest.raises(UsageError) as asked:
        prepare(Task(ONE + host.replace("(a, b)", "(a, b, elements)")), seeds=1)
    assert wanted in asked.value.fix


def test_it_is_for_programs_with_a_main() -> None:
    with pytest.raises(SourceError, match="is for a program with a `main` that launches") as error:
        with_launches(ONE + RUN.format(8))
    assert error.value.line == 2


def test_functions_that_are_handed_the_command_line_are_asked_as_well() -> None:
    text = (
        f"{RUN.format(16)}{ONE}void run(int argc, char** argv) {{ k<<<1, 64>>>(a, b, atoi(argv[1])); }}\n"
        "int main(int argc, char** argv) { run(argc, argv); }"
    )
    _, notes = drop_host_code(text)
    assert [note.value for note in notes if note.kind == "literal"] == [16]
