"""Waiting for conditions, never for times."""

import time


def until(condition, seconds, what, step=0.05):
    """Wait until the condition gives something true, and return it. `what` names it, or is a function that does so
    when the time is up. The condition is looked at every `step` seconds."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain: {what() if callable(what) else what}")
        time.sleep(step)
