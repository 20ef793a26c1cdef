from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from optiml_magic.child import spare
from optiml_magic.child.spare import SPARES
from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.hosted import HostedCompiler
from optiml_magic.devices.base import Buffer, Case
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.errors import InternalError, MachineError
from optiml_magic.model.build import Build, CompileFailure
from optiml_magic.testing.contracts import DeviceContract
from tests.processes import gone, resident, runs

CONTRACT = DeviceContract()


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """What other tests left does not wait here, nor what these leave anywhere else."""
    SPARES.end()
    yield
    SPARES.end()


def device() -> HostedDevice:
    """One with a host, which is the spare if one fits."""
    found = HostedDevice("emulated:h200", seconds=20)
    found.start()
    return found


def compiler(*include: str) -> HostedCompiler:
    """The same, once its host has loaded the compiler."""
    found = HostedCompiler("nvrtc", include=include)
    found._asked()
    return found


def pid(owner: HostedDevice | HostedCompiler) -> int:
    assert owner._child is not None
    return owner._child._process.pid


def compiled(owner: HostedCompiler, folder: Path) -> Build | CompileFailure:
    options = CompileOptions(include=(str(folder),))
    text = '#include "value.h"\n__global__ void k(int* x) { *x = VALUE; }'
    return owner.compile(text, ("k",), chip("h200"), options)


def test_the_next_device_has_the_same_host_and_none_of_its_cases() -> None:
    build, first = CONTRACT.build(), device()
    job = CONTRACT.job(build, count=True)
    first.put(CONTRACT.case())
    fresh, host = first.execute(build, job), pid(first)
    before = resident(host)
    first.put(Case("large", (Buffer("x", "input", np.ones(1 << 24, np.float32)),)))
    assert resident(host) > before + (50 << 20)
    first.close()
    second = device()
    assert pid(second) == host
    assert resident(host) < before + (10 << 20)
    second.put(CONTRACT.case())
    assert second.execute(build, job) == fresh
    second.close()
    third = device()
    assert pid(third) == host
    with pytest.raises(InternalError, match="is not on the device"):
        third.execute(build, job)
    third.close()  # a defect is no good health
    assert gone([host])


def test_one_whose_memory_ran_out_is_not_kept() -> None:
    own = device()
    host, endless = pid(own), np.broadcast_to(np.float32(0), 1 << 45)
    with pytest.raises(MachineError, match="not enough memory"):
        own.put(Case("endless", (Buffer("x", "output", endless),)))
    own.close()
    assert gone([host])


def test_an_open_one_is_no_spare() -> None:
    first, second = compiler(), compiler()
    hosts = pid(first), pid(second)
    assert hosts[0] != hosts[1]
    first.close()
    second.close()
    assert gone(hosts[:1])
    assert runs(hosts[1])


def _stopped(own: HostedCompiler) -> None:
    os.kill(pid(own), signal.SIGSTOP)


def _killed(own: HostedCompiler) -> None:
    os.kill(pid(own), signal.SIGKILL)


def _interrupted(own: HostedCompiler) -> None:
    assert own._child is not None

    def interrupt(timeout: float) -> None:
        raise KeyboardInterrupt

    own._child._answers.get = interrupt  # type: ignore[method-assign,assignment]
    with pytest.raises(KeyboardInterrupt):
        own.compile("__global__ void k() {}", ("k",), chip("h200"), CompileOptions())


def _busy(own: HostedCompiler) -> None:
    assert own._child is not None
    own._child._in_step = False  # as while another thread waits for an answer


@pytest.mark.parametrize("spoil", [_stopped, _killed, _interrupted, _busy])
def test_one_in_bad_health_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, spoil: Callable[[HostedCompiler], None]
) -> None:
    monkeypatch.setattr(spare, "_RESET_SECONDS", 0.2)
    own = compiler()
    host = pid(own)
    spoil(own)
    own.close()
    assert gone([host])


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_one_that_fails_while_it_waits_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    own = compiler()
    host = pid(own)
    own.close()
    monkeypatch.setattr(spare, "_RESET_SECONDS", 0.2)
    os.kill(host, end)
    other = compiler()
    assert pid(other) != host
    assert gone([host])
    other.close()


def test_a_wrapped_host_is_not_kept() -> None:
    own = HostedDevice("emulated:h200", prefix=("env",))
    own.start()
    host = pid(own)
    own.close()
    assert gone([host])


def test_only_another_folder_that_is_read_gets_another_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = device()
    host = pid(first)
    first.close()
    monkeypatch.setenv("OPTIML_HOME", "/elsewhere")
    monkeypatch.setenv("OPTIML_SEED", "7")
    second = device()
    assert pid(second) == host
    second.close()
    monkeypatch.setenv("OPTIML_CACHE", str(tmp_path))
    third = device()
    assert pid(third) != host
    build = CONTRACT.build()
    third.put(CONTRACT.case())
    assert third.execute(build, CONTRACT.job(build)).checks[0].passed
    third.close()
    assert any((tmp_path / "objects").iterdir())


def test_other_arguments_or_variables_get_another_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = compiler()
    host = pid(first)
    first.close()
    others = []
    for variable, include in (("", str(tmp_path)), ("CUDA_HOME", "")):
        with monkeypatch.context() as patch:
            if variable:
                patch.setenv(variable, "/elsewhere")
            others.append(compiler(*filter(None, [include])))
    again = compiler()
    assert pid(again) == host
    assert host not in map(pid, others)
    for other in (again, *others):
        other.close()


def test_a_header_is_read_anew_also_in_a_folder_that_was_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "headers"
    folder.mkdir()
    codes, hosts = [], []
    for value in (1, 2, 3):
        if value == 3:
            folder.rename(tmp_path / "old")
            folder.mkdir()
        (folder / "value.h").write_text(f"#define VALUE {value}\n")
        own = compiler(str(folder))
        build = compiled(own, folder)
        assert isinstance(build, Build), build
        codes.append(build.digest)
        hosts.append(pid(own))
        confined = own.confined
        own.close()
    assert len(set(codes)) == 3
    assert hosts[0] == hosts[1]
    assert (hosts[2] == hosts[1]) is not confined


def test_one_that_nobody_takes_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare, "_IDLE_SECONDS", 0.3)
    own = compiler()
    host = pid(own)
    own.close()
    assert gone([host])


LAST = """
import os
from optiml_magic.compilers.hosted import HostedCompiler
from optiml_magic.child.spare import SPARES

def pid():
    own = HostedCompiler("nvrtc")
    found = own._running()._process.pid
    own.close()
    return found

kept = pid()
if not (forked := os.fork()):
    assert pid() != kept
    raise SystemExit(0)
assert os.waitpid(forked, 0)[1] == 0
assert pid() == kept
print(kept)
"""


def test_nothing_is_left_at_the_end_and_a_forked_process_has_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LAST], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert gone([int(done.stdout)], 5)
