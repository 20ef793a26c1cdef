"""The command line as scripts use it: its exit status, its JSON, what it prints."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from optiml_magic.cli import main
from optiml_magic.exports import FORMATS
from optiml_magic.timings import STAGES
from tests.present import SOAK, sampled

TASK = """\
import numpy as np
from optiml_magic import Task

task = Task(
    kernel='''
__global__ void scale(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3.0f * x[i];
}
''',
    reference=lambda x: 3 * x,
    inputs=lambda rng, n: {"x": rng.random(n, dtype=np.float32)},
    sizes={"n": 3000},
)
"""


def optiml(*words: str, cwd: Path, real: bool = SOAK) -> subprocess.CompletedProcess[str]:
    """A real process, which imports all anew, where that is asked for."""
    command = [sys.executable, "-m", "optiml_magic.cli", *words]
    if real:
        return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(list(words))
        except SystemExit as end:
            status = int(end.code or 0)
    return subprocess.CompletedProcess(command, status, out.getvalue(), err.getvalue())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a space in its name and a task in it."""
    place = tmp_path / "a folder"
    place.mkdir()
    (place / "task.py").write_text(TASK)
    return place


def test_optimize_writes_the_contract_and_the_page(folder: Path) -> None:
    done = optiml(
        "optimize", "task.py", "--device", "emulated:h200", "--llm", "none", "--budget", "2",
        "--seconds", "60", "--seed", "1", "--json", "out.json", "--html", "out.html", cwd=folder,
        real=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outcome = json.loads((folder / "out.json").read_text())
    assert outcome["task"] == "scale"
    assert (outcome["device"], outcome["source"]) == ("emulated:h200", "estimated")
    assert outcome["launch"] == "inferred"
    assert outcome["baseline"]["verdict"] == "passed"
    assert outcome["evaluations"] == len(outcome["steps"]) == 2
    assert outcome["best"]["speedup"] >= 1.0
    assert "#pragma optiml launch" in outcome["best"]["program"]
    assert (folder / "out.html").read_text().startswith("<!doctype html>")


def test_optimize_exports_the_best_program(folder: Path) -> None:
    words = ("optimize", "task.py", "--budget", "1", "--export", "best.py")
    done = optiml(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "export: best.py" in done.stdout
    assert "def scale(x, n=None, *, out=None):" in (folder / "best.py").read_text()
    again = optiml(*words, cwd=folder)
    assert again.returncode == 2
    assert "fix:" in again.stderr
    assert "Traceback" not in again.stderr
    assert optiml(*words, "--force", cwd=folder).returncode == 0


def test_a_kernel_in_another_file_is_what_the_search_begins_with(folder: Path) -> None:
    text = TASK.split("'''")[1].replace("3.0f * x[i]", "x[i] + x[i] + x[i]")
    (folder / "other.cu").write_text(text)
    words = ("optimize", "task.py", "--kernel", "other.cu", "--budget", "1", "--json", "out.json")
    done = optiml(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    outcome = json.loads((folder / "out.json").read_text())
    assert "x[i] + x[i] + x[i]" in outcome["best"]["program"]
    (folder / "other.cu").write_text(text.replace("x[i] + x[i] + x[i]", "2.0f * x[i]"))
    assert optiml(*words, cwd=folder).returncode == 1


def test_check_exits_1_on_a_wrong_kernel_and_says_where(folder: Path) -> None:
    assert optiml("check", "task.py", cwd=folder).returncode == 0
    (folder / "wrong.cu").write_text(
        "#pragma optiml launch scale grid(cdiv(n, 64)) block(64)\n"
        "__global__ void scale(const float* x, float* out, int n) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n && i != 77) out[i] = 3.0f * x[i];\n}\n"
    )
    done = optiml("check", "task.py", "--kernel", "wrong.cu", "--json", "v.json", cwd=folder)
    assert done.returncode == 1
    verdict = json.loads((folder / "v.json").read_text())["verdict"]
    assert verdict["outcome"] == "wrong"
    assert set(json.loads((folder / "v.json").read_text())["timings"]) == set(STAGES)
    (evidence,) = verdict["checks"]
    assert (evidence["wrong"], evidence["unwritten"], evidence["first_index"]) == (1, 1, [77])


def test_profile_writes_measurement_and_findings(folder: Path) -> None:
    done = optiml("profile", "task.py", "--json", "p.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    outcome = json.loads((folder / "p.json").read_text())
    names = {m["name"]: m for m in outcome["measurement"]["metrics"]}
    loads = names["l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"]
    assert loads["source"] == "emulated"
    assert 3.9 <= loads["value"] <= 4.0
    assert outcome["measurement"]["source"] == "estimated"
    assert isinstance(outcome["findings"], list)
    assert outcome["timings"].keys() == set(STAGES)
    assert outcome["timings"]["measure"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["optimize", "missing.py"], "there is no file missing.py"),
        (["optimize", "task.py", "--devcie", "x"], "did you mean `--device`?"),
        (["optimise", "task.py"], "did you mean `optimize`?"),
        (["check", "task.py", "--device", "tpu"], "no device named 'tpu'"),
        (["check", "task.py", "--kernel", "missing.cu"], "there is no file missing.cu"),
        (["optimize", "task.py", "--resume", "missing"], "no journal"),
        (["optimize", "task.py", "--objective", "cost"], "choose one of speed, energy"),
        (
            ["optimize", "task.py", "--objective", "energy", "--device", "emulated"],
            "draws no power",
        ),
        (["optimize", "task.py", "--export", "best.ptx"], "`.ptx` is not a format of an export"),
        (["optimize", "task.py", "--export", "task.py"], "task.py exists"),
        (["optimize", "two.py", "--export", "best.cu"], "--export takes one program"),
        (["check", "scale.cu"], "scale.cu is a kernel"),
        (["check", "gone.py"], "there is no file gone.cu"),
        (["check", "latin.py"], "latin.cu is not UTF-8 text"),
        (["check", "task.py", "--json", "."], "--json . is a folder"),
        (["check", "task.py", "--json", "/dev/full"], "No space left"),
    ],
)
def test_usage_errors_exit_2_with_a_fix(
    folder: Path,
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this process: another that only says so starts for a second each time."""
    (folder / "two.py").write_text(f"{TASK}\ntasks = [task, task]\n")
    (folder / "scale.cu").write_text("__global__ void scale() {}")
    (folder / "latin.cu").write_bytes("// \xfcber\n".encode("latin-1"))
    for name in ("gone", "latin"):
        text = f"from optiml_magic import Task\ntask = Task('{name}.cu', inputs={{}})\n"
        (folder / f"{name}.py").write_text(text)
    monkeypatch.chdir(folder)
    assert main(words) == 2
    told = capsys.readouterr().err
    assert message in told
    assert "fix:" in told


def test_a_kernel_that_does_not_compile_ends_the_search_with_exit_1(folder: Path) -> None:
    (folder / "task.py").write_text(TASK.replace("3.0f * x[i]", "3.0f * y[i]"))
    done = optiml("optimize", "task.py", "--json", "out.json", cwd=folder)
    assert done.returncode == 1
    assert "compile_error" in done.stdout
    assert '"y" is undefined' in done.stdout


def test_run_prints_the_outputs_and_doctor_the_machine(folder: Path) -> None:
    assert "array(" in optiml("run", "task.py", cwd=folder).stdout
    done = optiml("doctor", cwd=folder)
    assert done.returncode == 0, done.stdout
    assert "end to end" in done.stdout


@pytest.mark.slow
def test_a_pasted_program_with_a_main_works(folder: Path) -> None:
    (folder / "task.py").write_text(
        TASK.replace(
            "'''\n__global__",
            "'''\n#include <cstdio>\n#include <cuda_runtime.h>\n__global__",
        ).replace(
            "}\n''',",
            "}\nint main() {\n    int n = 3000;\n    float *dx, *dout;\n"
            "    cudaMalloc(&dx, n * 4);\n    cudaMalloc(&dout, n * 4);\n"
            "    scale<<<(n + 255) / 256, 256>>>(dx, dout, n);\n    return 0;\n}\n''',",
        )
    )
    done = optiml("check", "task.py", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "main" in done.stdout


@pytest.mark.slow
def test_annotate_prints_the_lines_and_writes_page_and_json(folder: Path) -> None:
    done = optiml(
        "annotate", "task.py", "--device", "emulated:h200", "--html", "out.html",
        "--json", "out.json", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^ *4 .* 3.99 +if \(i < n\) out\[i\] = 3.0f \* x\[i\];$", done.stdout, re.MULTILINE
    )
    assert "report: out.html" in done.stdout
    page = (folder / "out.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<details" in page
    outcome = json.loads((folder / "out.json").read_text())
    hot = max(outcome["lines"], key=lambda line: (line["counts"] or {"sectors": 0})["sectors"])
    assert hot["number"] == 4
    assert hot["counts"]["sectors"] == 2 * 3000 * 4 // 32
    assert {"st.global.f32"} == {
        i["text"].split()[0] for i in hot["instructions"] if i["text"].startswith("st.")
    }


@pytest.mark.parametrize("verb", sampled(["check", "optimize", "profile"], 3))
def test_the_first_line_names_the_stage_before_anything_is_done(folder: Path, verb: str) -> None:
    """The task's file waits until the line was read, so it comes before that is even run."""
    os.mkfifo(folder / "go")
    (folder / "task.py").write_text(f"open('go').read()\n{TASK}")
    mine, its = pty.openpty()
    command = [sys.executable, "-m", "optiml_magic.cli", verb, "task.py"]
    environ = {**os.environ, "OPTIML_LLM": "none", "OPTIML_BUDGET": "2", "TERM": "xterm"}
    pipe = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=pipe, stderr=its, cwd=folder, env=environ) as process:
        os.close(its)
        first = os.read(mine, 4096).decode()
        (folder / "go").write_text("")
        rest = "".join(iter(partial(_read, mine), ""))
    os.close(mine)
    assert process.returncode == 0
    assert first == f"\r\033[K  {verb}: preparing"
    assert "compiling" in rest or "verifying" in rest
    assert rest.endswith("\033[1A\033[2K")  # nothing of it stays


@pytest.fixture
def interruptible() -> Iterator[None]:
    """What a job in the background starts ignores interrupts, unless the job does something else."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("when", ["preparing", "1 of 99"])
def test_ctrl_c_ends_a_command_without_a_traceback(folder: Path, when: str) -> None:
    (folder / "task.py").write_text(TASK.replace("3000", "1 << 18"))
    mine, its = pty.openpty()
    command = [sys.executable, "-m", "optiml_magic.cli", "optimize", "task.py", "--budget", "99"]
    environ = {**os.environ, "OPTIML_LLM": "none", "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=its, cwd=folder, env=environ, text=True
    ) as process:
        os.close(its)
        told = ""
        while when not in told:
            told += _read(mine)
        process.send_signal(signal.SIGINT)
        told += "".join(iter(partial(_read, mine), ""))
        assert process.stdout is not None
        report = process.stdout.read()
    os.close(mine)
    assert "Traceback" not in told
    if when == "preparing":
        assert process.returncode == 130
        assert "optiml: interrupted" in told
    else:
        assert process.returncode == 0, told
        assert re.search(r"ended +interrupted", report)


def test_help_is_there_by_every_name(folder: Path) -> None:
    page = optiml("--help", cwd=folder).stdout
    assert optiml(cwd=folder).stdout == optiml("help", cwd=folder).stdout == page
    of_check = optiml("help", "check", cwd=folder).stdout
    assert of_check == optiml("check", "-h", cwd=folder).stdout != page


def test_a_task_is_found_with_its_kernel_and_its_modules_from_another_folder(folder: Path) -> None:
    (folder / "scale.cu").write_text(TASK.split("'''")[1])
    (folder / "beside.py").write_text("def reference(x):\n    return 3 * x\n")
    before, _, after = TASK.split("'''")
    text = f"from beside import reference\n{before}'scale.cu'{after}"
    (folder / "task.py").write_text(text.replace("lambda x: 3 * x", "reference"))
    done = optiml("check", f"{folder.name}/task.py", cwd=folder.parent)
    assert done.returncode == 0, done.stderr


def _read(terminal: int) -> str:
    """What it says next; "" once nobody has it open any more."""
    try:
        return os.read(terminal, 4096).decode()
    except OSError:
        return ""


@pytest.mark.parametrize(
    "words", sampled([("run", "task.py"), ("annotate", "task.py"), ("--help",)], 3)
)
def test_a_reader_that_has_enough_ends_it_quietly(folder: Path, words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "optiml_magic.cli", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=folder) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
    assert (process.returncode, told) == (141, "")


LIGHT = """\
import sys
from optiml_magic.cli import main
assert main(sys.argv[1:]) in (0, 2)
print(" ".join({name.split(".")[0] for name in sys.modules}))
"""


@pytest.mark.parametrize(
    "words", [["--version"], ["-h"], ["check", "-h"], ["check", "--dvice", "x"]]
)
def test_help_the_version_and_wrong_options_load_nothing_heavy(words: list[str]) -> None:
    command = [sys.executable, "-c", LIGHT, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert not {"numpy", "rich", "tree_sitter", "llvmlite", "pydantic", "IPython"} & set(loaded)


def test_the_help_names_the_exit_codes_and_every_format(folder: Path) -> None:
    page = optiml("-h", cwd=folder).stdout
    assert "3    the device cannot run the kernel (unsupported)" in page
    options = optiml("optimize", "-h", cwd=folder).stdout
    assert all(form.suffix in options for form in FORMATS)


def test_a_kernel_that_the_device_cannot_run_has_an_exit_code_of_its_own(folder: Path) -> None:
    beyond = TASK.replace("if (i < n)", '__shared__ int s[1]; asm("nanosleep.u32 1;"); if (i < n)')
    (folder / "task.py").write_text(beyond.replace("nanosleep.u32 1", "griddepcontrol.wait"))
    device = ("--device", "emulated:h200")
    done = optiml("check", "task.py", *device, cwd=folder)
    assert (done.returncode, "unsupported" in done.stdout) == (3, True)
    done = optiml("run", "task.py", *device, cwd=folder)
    assert done.returncode == 3
    assert "the device cannot run the kernel" in done.stderr


def test_a_profile_has_its_findings_before_its_metrics_and_what_was_printed_last(
    folder: Path,
) -> None:
    apart = "int j = i % 30 * 100 + i / 30; if (i < n) out[j] = 3.0f * x[j];"
    spoken = f'{apart} if (i == 0) printf("\\\\033[2J!");'
    launch = "\n#pragma optiml launch scale grid(cdiv(n, 256)) block(256)\n__global__"
    task = TASK.replace("if (i < n) out[i] = 3.0f * x[i];", spoken)
    (folder / "task.py").write_text(task.replace("\n__global__", launch))
    done = optiml("profile", "task.py", "--device", "emulated:h200", cwd=folder)
    assert done.returncode == 0
    shown = done.stdout
    assert (
        shown.index("findings:") < shown.index("metrics:") < shown.index("printed by the kernel:")
    )
    assert "  | \\x1b[2J!" in shown
    assert "\033" not in shown


def test_a_reference_that_fails_at_another_size_is_named(folder: Path) -> None:
    fixed = TASK.replace("lambda x: 3 * x", "lambda x: 3 * x.reshape(3000)")
    (folder / "task.py").write_text(fixed)
    done = optiml("check", "task.py", "--device", "emulated:h200", cwd=folder)
    assert "the reference raised ValueError: cannot reshape array" in done.stdout
    assert "the input kernel is wrong" not in done.stdout
