"""A child that starts before its owner is there goes to who would start the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from optiml_magic import early
from optiml_magic.child import ahead, spare
from optiml_magic.child.spare import SPARES
from optiml_magic.compilers import wire
from optiml_magic.compilers.hosted import HostedCompiler
from optiml_magic.devices import probe
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.settings import resolve
from optiml_magic.verifiers.sanitizer import SanitizerInspector

HOST = "optiml_magic.compilers.host"


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    SPARES.end()
    yield
    early.end()
    SPARES.end()


def test_whoever_would_start_the_same_gets_it() -> None:
    ahead.begin(HOST, ["nvrtc"])
    begun = ahead._BEGUN[HOST]
    found = ahead.child(HOST, ["nvrtc"], wire.KINDS)
    assert found is begun
    assert isinstance(found.ask(wire.Describe(), 60.0)[0], wire.Described)
    other = ahead.child(HOST, ["nvrtc"], wire.KINDS)
    assert other is not begun
    for one in (found, other):
        one.kill()


@pytest.mark.parametrize("wanted", [["nvrtc", "/tmp"], ["nvcc"]])
def test_one_that_would_be_started_otherwise_is_ended(wanted: list[str]) -> None:
    ahead.begin(HOST, ["nvrtc"])
    begun = ahead._BEGUN[HOST]
    other = ahead.child(HOST, wanted, wire.KINDS)
    assert other is not begun
    assert not begun.alive
    other.kill()


def test_what_nobody_asks_for_is_ended() -> None:
    ahead.begin(HOST, ["nvrtc"])
    begun = ahead._BEGUN[HOST]
    early.end()
    assert not begun.alive


@pytest.mark.parametrize(
    ("words", "driver", "device"),
    [
        ("check task.py", True, "cuda:0"),
        ("check task.py --device cuda", True, "cuda:0"),
        ("check task.py --device=cuda:1", True, "cuda:1"),
        ("check task.py --device cuda:x", True, None),
        ("check task.py --device cuda", False, None),
        ("check task.py", False, "emulated:h200"),
        ("check task.py --device emulated", True, "emulated:h200"),
        ("check task.py --device emulated:t4", False, "emulated:t4"),
        ("check task.py --device emulated:x", False, None),
    ],
)
def test_a_command_begins_on_the_device_that_it_will_choose(
    monkeypatch: pytest.MonkeyPatch, words: str, *, driver: bool, device: str | None
) -> None:
    begun: list[str] = []
    monkeypatch.delenv("OPTIML_DEVICE", raising=False)
    monkeypatch.setattr(probe, "has_driver", lambda: driver)
    monkeypatch.setattr(probe, "begin", lambda _: None)
    monkeypatch.setattr(ahead, "begin", lambda _, arguments: begun.extend(arguments))
    monkeypatch.setattr(SanitizerInspector, "warm", lambda _: None)
    early.begin(words.split())
    card = device is not None and device.startswith("cuda")
    objects = [] if card else [str(resolve().objects.absolute())]
    assert begun == ([device, *objects, "nvrtc"] if device else [])
    assert (early.inspector(device or "") is not None) is card


def test_the_hosts_of_an_emulated_device_that_begin_are_those_that_a_session_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spare, "_RESET_SECONDS", 60.0)  # they may still be loading
    early.begin(["check", "task.py", "--device", "emulated:h200"])
    begun = set(ahead._BEGUN.values())
    device, compiler = HostedDevice("emulated:h200"), HostedCompiler("nvrtc")
    device.start()
    compiler._running()
    assert {device._child, compiler._child} == begun
    device.close()
    compiler.close()
    early.begin(["check", "task.py", "--device", "emulated:h200"])
    assert not ahead._BEGUN  # the next command has those that wait


def test_the_first_cell_begins_its_processes_before_it_loads_and_leaves_none() -> None:
    """A cell that fails before it opens a session, in a shell of its own process."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CELL], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    begun, left = done.stdout.splitlines()[-2:]
    assert begun == "optiml_magic.compilers.host optiml_magic.devices.host, magic loaded: False"
    assert left == "left: 0"


FIRST_CELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from optiml_magic.child import ahead

begin, begun, loaded = ahead.begin, {}, set()

def noted(module, arguments):
    begin(module, arguments)
    begun[module] = ahead._BEGUN[module]
    loaded.add("optiml_magic.magics.optiml" in sys.modules)

ahead.begin = noted
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "optiml_magic")
try:
    shell.run_cell_magic("optiml", "check --device emulated", "no kernel")
except Exception as error:
    print(error)
print(" ".join(sorted(begun)) + f", magic loaded: {loaded.pop()}")
print("left:", sum(child.alive for child in begun.values()))
"""
