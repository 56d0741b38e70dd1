"""Waiting for conditions, never for times."""

import time


def until(condition, seconds, what):
    """Wait until the condition gives something true, and return it. `what` names it, or is a function that does so
    when the time is up."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain: {what() if callable(what) else what}")
        time.sleep(0.05)
