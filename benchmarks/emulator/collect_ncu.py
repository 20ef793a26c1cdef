"""On a machine with a GPU: what ncu counts for the kernels of ``counted.py``, as golden data.

    python benchmarks/emulator/collect_ncu.py            # into tests/golden/counters

Needs CuPy, ncu and this package. Every kernel becomes one file: its text, PTX and cubin, the
compiler's version, the launch, and ncu's figures; a test replays that PTX on the emulated device.
One ncu process counts all kernels that have no figures yet, so a run that was cut short goes on
where it stopped. Caches are flushed before each pass of ncu; clocks are left alone.
"""

from __future__ import annotations

import argparse
import base64
import csv
import json
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.emulator.counted import PROGRAMS, Program, values

GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "counters"
CHIP = "h200"
SECONDS = 230.0

_OPS = ("ld", "st", "atom", "red")
_SASS_SPACES = ("global", "shared", "local")
_PIPES = ("alu", "fma", "fmaheavy", "fp16", "fp64", "xu", "lsu", "adu", "cbu", "uniform", "ipa")
METRICS = (
    "smsp__inst_executed.sum",
    "smsp__inst_issued.sum",
    "smsp__thread_inst_executed.sum",
    "smsp__thread_inst_executed_pred_on.sum",
    "smsp__thread_inst_executed_per_inst_executed.ratio",
    *(f"smsp__inst_executed_pipe_{pipe}.sum" for pipe in _PIPES),
    *(f"smsp__sass_thread_inst_executed_op_{o}_pred_on.sum" for o in ("fadd", "fmul", "ffma")),
    *(f"smsp__sass_thread_inst_executed_op_{o}_pred_on.sum" for o in ("dadd", "dmul", "dfma")),
    *(f"smsp__sass_thread_inst_executed_op_{o}_pred_on.sum" for o in ("hadd", "hmul", "hfma")),
    *(f"smsp__sass_inst_executed_op_{s}_{o}.sum" for s in _SASS_SPACES for o in ("ld", "st")),
    *(f"smsp__inst_executed_op_{s}_{o}.sum" for s in _SASS_SPACES for o in _OPS),
    *(f"l1tex__t_requests_pipe_lsu_mem_global_op_{o}.sum" for o in _OPS),
    *(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{o}.sum" for o in _OPS),
    *(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{o}_lookup_hit.sum" for o in ("ld", "st")),
    *(f"l1tex__t_requests_pipe_lsu_mem_local_op_{o}.sum" for o in ("ld", "st")),
    *(f"l1tex__t_sectors_pipe_lsu_mem_local_op_{o}.sum" for o in ("ld", "st")),
    *(f"l1tex__t_sectors_pipe_lsu_mem_local_op_{o}_lookup_hit.sum" for o in ("ld", "st")),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    *(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{o}.sum" for o in _OPS),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    *(f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{o}.sum" for o in _OPS),
    "l1tex__data_pipe_lsu_wavefronts.sum",
    "l1tex__m_xbar2l1tex_read_sectors.sum",
    "l1tex__m_l1tex2xbar_write_sectors.sum",
    "lts__t_sectors.sum",
    "lts__t_sectors_srcunit_tex.sum",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "lts__t_sectors_srcunit_tex_op_write.sum",
    "lts__t_sectors_srcunit_tex_op_red.sum",
    "lts__t_sectors_srcunit_tex_op_atom.sum",
    "lts__t_sectors_srcunit_tex_lookup_hit.sum",
    "lts__t_sectors_srcunit_tex_lookup_miss.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "sm__maximum_warps_per_active_cycle_pct",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "launch__registers_per_thread",
    "launch__shared_mem_per_block_static",
    "launch__waves_per_multiprocessor",
    *(f"launch__occupancy_limit_{x}" for x in ("blocks", "registers", "shared_mem", "warps")),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=GOLDEN)
    parser.add_argument("--child", action="store_true", help="launch what ncu is to count")
    options = parser.parse_args()
    if options.child:
        launch(options.folder)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        if not path_of(options.folder, program.name).exists():
            write(options.folder, compiled(program))
    waiting = pending(options.folder)
    if waiting:
        count(options.folder, waiting)
    print(f"{len(PROGRAMS) - len(pending(options.folder))} of {len(PROGRAMS)} kernels have figures")


def path_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def write(folder: Path, record: dict[str, Any]) -> None:
    text = json.dumps(record, indent=1) + "\n"
    path_of(folder, record["name"]).write_text(text, encoding="utf-8")


def pending(folder: Path) -> list[dict[str, Any]]:
    """The records without figures, in the order of the table."""
    records = [json.loads(path_of(folder, p.name).read_text(encoding="utf-8")) for p in PROGRAMS]
    return [record for record in records if "ncu" not in record]


def compiled(program: Program) -> dict[str, Any]:
    """A record without figures: everything that a replay needs."""
    from dataclasses import asdict

    from optiml_magic.chips import chip
    from optiml_magic.compilers.base import CompileOptions
    from optiml_magic.compilers.nvrtc import NvrtcCompiler
    from optiml_magic.model.build import Build

    compiler = NvrtcCompiler()
    build = compiler.compile(program.text, (program.name,), chip(CHIP), CompileOptions())
    assert isinstance(build, Build), build
    lowered = build.names[program.name]
    return {
        **program.described(),
        "lowered": lowered,
        "chip": CHIP,
        "compiler": compiler.version,
        "resources": asdict(build.resources[lowered]),
        "ptx": build.ptx,
        "cubin": base64.b64encode(zlib.compress(build.cubin, 9)).decode(),
    }


def launch(folder: Path) -> None:
    """Each waiting kernel once, between profiler start and stop; what ncu wraps."""
    import cupy as cp

    for record in pending(folder):
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(zlib.decompress(base64.b64decode(record["cubin"])))
            file.flush()
            function = cp.RawModule(path=file.name).get_function(record["lowered"])
        arguments = tuple(
            cp.asarray(v) if isinstance(v, np.ndarray) else v for v in values(record["arguments"])
        )
        cp.cuda.Device().synchronize()
        cp.cuda.profiler.start()
        function(tuple(record["grid"]), tuple(record["block"]), arguments)
        cp.cuda.Device().synchronize()
        cp.cuda.profiler.stop()
        del arguments
        cp.get_default_memory_pool().free_all_blocks()


def count(folder: Path, waiting: list[dict[str, Any]]) -> None:
    """One ncu process over all waiting kernels; what it managed is kept."""
    tool = shutil.which("ncu")
    if tool is None:
        sys.exit("ncu is not on the PATH; install Nsight Compute")
    wanted = known_metrics(tool)
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary, "report.ncu-rep")
        command = [
            tool, "--profile-from-start", "off", "--clock-control", "none",
            "--metrics", ",".join(wanted), "--section", "SourceCounters",
            "--force-overwrite", "-o", str(report.with_suffix("")),
            sys.executable, str(Path(__file__).resolve()), "--child", "--folder", str(folder),
        ]  # fmt: skip
        began = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        print(f"ncu: {time.monotonic() - began:.0f} s, exit {done.returncode}", flush=True)
        if not report.exists():
            sys.exit(f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        rows = figures(tool, report)
        sources = per_instruction(tool, report, folder, len(rows))
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True)
    about = {
        "command": "python benchmarks/emulator/collect_ncu.py",
        "date": time.strftime("%Y-%m-%d"),
        "ncu": version.stdout.strip().splitlines()[-1],
        "gpu": gpu(),
    }
    for at, (record, row) in enumerate(zip(waiting, rows, strict=False)):
        if record["name"] not in row["Kernel Name"]:
            sys.exit(f"ncu's launch of {row['Kernel Name']} is not that of {record['name']}")
        found = {name: number(row[name]) for name in wanted if name in row}
        record["ncu"] = {name: value for name, value in found.items() if value is not None}
        record["instructions"] = sources[at] if at < len(sources) else []
        record["about"] = about
        write(folder, record)


def known_metrics(tool: str) -> list[str]:
    """Of ``METRICS``, those that this ncu has for this chip; it refuses a list with others."""
    done = subprocess.run([tool, "--query-metrics"], capture_output=True, text=True, check=False)
    bases = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    if len(bases) < 100:
        return list(METRICS)
    left_out = [m for m in METRICS if not m.startswith("launch__") and m.split(".")[0] not in bases]
    if left_out:
        print(f"not known to this ncu: {', '.join(left_out)}", flush=True)
    return [m for m in METRICS if m not in left_out]


def figures(tool: str, report: Path) -> list[dict[str, str]]:
    """One row a launch; ncu's first row holds the units and is left out."""
    command = [tool, "--import", str(report), "--csv", "--page", "raw", "--print-units", "base"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith('"ID"'))
    return list(csv.DictReader(lines[start:]))[1:]


def per_instruction(tool: str, report: Path, folder: Path, launches: int) -> list[list[list[Any]]]:
    """For each launch: machine instruction, warps and threads that executed it."""
    command = [tool, "--import", str(report), "--csv", "--page", "source"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: list[list[list[Any]]] = []
    columns: dict[str, int] = {}
    for row in csv.reader(done.stdout.splitlines()):
        if "Source" in row and any("Instructions Executed" in cell for cell in row):
            columns = {cell.lstrip("# "): at for at, cell in enumerate(row)}
            found.append([])
        elif columns and len(row) >= len(columns):
            warps = columns.get("Warp Instructions Executed", columns.get("Instructions Executed"))
            threads = columns.get("Thread Instructions Executed")
            if warps is not None and threads is not None:
                cells = row[columns["Source"]], number(row[warps]), number(row[threads])
                found[-1].append(list(cells))
    if len(found) == launches and all(found):
        return found
    # Another layout than the one known: a person has to read it.
    (folder / "source-page.csv").write_text(done.stdout, encoding="utf-8")
    print(f"the source page is not as expected; see {folder / 'source-page.csv'}", flush=True)
    return []


def number(text: str) -> float | None:
    """A figure of ncu's CSV; None for an empty field, ``nan`` or ``n/a``."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if value == value else None  # noqa: PLR0124  # NaN is not itself


def gpu() -> str:
    import cupy as cp

    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return f"{name}, CUDA {cp.cuda.runtime.driverGetVersion()}, CuPy {cp.__version__}"


if __name__ == "__main__":
    main()
