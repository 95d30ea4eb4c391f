"""Threads of Penstock in this process, for tests that none is left."""

import threading


def local_threads() -> list[threading.Thread]:
    """Return the threads of Penstock that are alive, without those that send requests to object stores.

    The latter serve the whole process and end by themselves two seconds after their last request, so that a
    test can find those of the test before it.
    """
    return [
        each
        for each in threading.enumerate()
        if each.name.startswith("penstock") and each.name != "penstock-store" and each.is_alive()
    ]
