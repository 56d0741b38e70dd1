"""Wait for conditions instead of fixed times."""

import time


def until(condition, seconds, what, step=0.05):
    """Wait until the condition returns a true value, and return it. `what` names it for the error message, or is a function
    that returns the name. The condition is checked every `step` seconds."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out after {seconds} s waiting for {what() if callable(what) else what}")
        time.sleep(step)
