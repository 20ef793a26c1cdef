"""Timings on one card take turns."""

from __future__ import annotations

import subprocess
import sys
import threading

from optiml_magic.devices.turns import turn

HOLDER = """
from optiml_magic.devices.turns import turn
with turn("cuda:77"):
    print("mine", flush=True)
    input()
"""


def test_who_comes_second_waits_until_the_first_is_gone() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "mine\n"
        came = threading.Event()

        def second() -> None:
            with turn("cuda:77"):
                came.set()

        waiting = threading.Thread(target=second)
        waiting.start()
        with turn("cuda:78"):  # another card
            assert not came.wait(0.2)
        first.kill()  # the lock goes with its holder
        assert came.wait(30)
        waiting.join()
