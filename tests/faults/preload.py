"""Libraries to preload into a process: fail_malloc.c makes allocations fail, fake_clock.c sets the clock, hung_lookups.c
simulates unresponsive name servers, fail_disk.c makes the disk of a spool fail or hang, fail_state.c that of a state. None works with the address sanitizer."""

import ctypes
import mmap
import os
import pathlib
import struct
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ALL = ""  # calls from any object count
OWN = "gatepostd"
FOREVER = 1 << 62  # number of failures: all calls, until disarmed


class _Control(ctypes.Structure):
    """struct control of fail_malloc.c."""
    _fields_ = [("armed", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("first", ctypes.c_uint64),
                ("n", ctypes.c_uint64), ("object", ctypes.c_char * 32), ("n_counted", ctypes.c_uint64),
                ("n_failed", ctypes.c_uint64), ("failed_in", ctypes.c_char * 32), ("failed_at", ctypes.c_uint64)]


def build(name, directory):
    """Compile the preloadable object into this directory. Returns its path."""
    made = pathlib.Path(directory) / f"{name}.so"
    subprocess.run([os.environ.get("CC", "cc"), "-D_GNU_SOURCE", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror",
                    "-fno-builtin", "-fPIC", "-shared", "-o", made, HERE / f"{name}.c", "-ldl"], check=True, stdin=subprocess.DEVNULL)
    return made


class FailMalloc:
    """The memory shared with a process that runs with `environment`. One process at a time."""

    def __init__(self, directory):
        directory = pathlib.Path(directory)
        path = directory / "fail_malloc.control"
        path.write_bytes(bytes(mmap.PAGESIZE))
        self.environment = {"LD_PRELOAD": str(build("fail_malloc", directory)), "FAIL_MALLOC_CONTROL": str(path)}
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self._control = _Control.from_buffer(self._memory)

    def arm(self, object=OWN, first=0, n=1):
        """Start counting the calls from an object, and make n of them fail, beginning with number `first`. 0 only counts."""
        control = self._control
        control.armed = 0
        control.object, control.first, control.n = object.encode(), first, n
        control.n_counted, control.n_failed, control.failed_in, control.failed_at = 0, 0, b"", 0
        control.armed = 1

    def disarm(self):
        """Stop the failures. Returns the number of calls counted."""
        self._control.armed = 0
        return self._control.n_counted

    @property
    def counted(self):
        return self._control.n_counted

    @property
    def failed(self):
        """Return the number of calls that have failed."""
        return self._control.n_failed

    @property
    def place(self):
        """Return the origin of the first failed call as object+0xoffset, for addr2line."""
        return f"{self._control.failed_in.decode()}+{self._control.failed_at:#x}"


class FailDisk:
    """The environment of a process in which the given share of the calls on the disk of its spool fails."""

    def __init__(self, directory, per_thousand, is_full=False):
        self._log = pathlib.Path(directory) / "fail_disk.log"
        self.environment = {"LD_PRELOAD": str(build("fail_disk", directory)), "FAIL_DISK": str(per_thousand),
                            "FAIL_DISK_LOG": str(self._log)} | ({"FAIL_DISK_FULL": "1"} if is_full else {})

    @property
    def failed(self):
        """Return the number of calls that have failed."""
        return self._log.read_text().count("\n") if self._log.exists() else 0


class _Hung:
    """Within the block, calls of one daemon do not return. Made before it runs."""

    def __init__(self, daemon, library, variable):
        directory = daemon.config.directory
        self._file = directory / f"{daemon.name}.hung"
        daemon.environment.update({"LD_PRELOAD": str(build(library, directory)), variable: str(self._file)})

    def __enter__(self):
        self._file.touch()

    def __exit__(self, *_):
        self._file.unlink()


class HungLookups(_Hung):
    """Name servers do not answer, and connections are reset when records are appended."""

    def __init__(self, daemon):
        super().__init__(daemon, "hung_lookups", "HUNG_LOOKUPS_FILE")


class HungDisk(_Hung):
    """Segments of the spool cannot be read."""

    def __init__(self, daemon):
        super().__init__(daemon, "fail_disk", "HUNG_DISK_FILE")


class FakeClock:
    """A clock for one daemon that is not running yet."""

    def __init__(self, daemon):
        directory = daemon.config.directory
        self._file = directory / f"{daemon.name}.clock"
        self.set(0)
        daemon.environment.update({"LD_PRELOAD": str(build("fake_clock", directory)), "FAKE_CLOCK_FILE": str(self._file)})

    def set(self, seconds):
        """Set the clock ahead of the machine's clock by this much."""
        self.seconds = seconds
        with open(self._file, "r+b" if self._file.exists() else "wb") as file:  # the daemon has this file mapped
            file.write(struct.pack("=q", int(seconds * 1000)))
