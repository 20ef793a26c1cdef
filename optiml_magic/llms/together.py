"""Several requests at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def together(calls: Sequence[Callable[[], T]]) -> list[T]:
    """What all calls give, each in a thread of its own; raises what the first of them raised.

    Neither Ctrl-C nor the end of the process waits for an endpoint that is silent.
    """
    found: dict[int, T] = {}
    raised: dict[int, Exception] = {}

    def call(number: int) -> None:
        try:
            found[number] = calls[number]()
        except Exception as error:  # noqa: BLE001  # raised again where it was asked
            raised[number] = error

    threads = [Thread(target=call, args=(number,), daemon=True) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[min(raised)]
    return [found[number] for number in range(len(calls))]
