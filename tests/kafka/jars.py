"""Jars of the broker, or of another pom.xml: downloaded once from Maven Central into build/kafka, again when it changes.

    jars.py POM    print the class path of another pom.xml
"""

import fcntl
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CACHE = HERE.parent.parent / "build" / "kafka"
ATTEMPTS = 3


def class_path(pom=HERE / "pom.xml"):
    """Return the class path of the jars, downloading them if necessary."""
    wanted = CACHE / ("jars-" + hashlib.sha256(pom.read_bytes()).hexdigest()[:12])
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not wanted.is_dir():
            _download(pom, wanted)
    return str(wanted / "*")


def _download(pom, wanted):
    """Create the directory in one step, so that an interrupted download leaves no directory of this name."""
    for left_over in CACHE.glob("download-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="download-", dir=CACHE))
    command = ["mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(pom),
               "dependency:copy-dependencies", f"-DoutputDirectory={scratch}"]
    for attempt in range(ATTEMPTS):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode == 0:
            scratch.rename(wanted)
            return
    raise RuntimeError(f"mvn could not download the jars of {pom}:\n{done.stdout}")


if __name__ == "__main__":
    print(class_path(pathlib.Path(sys.argv[1])))
