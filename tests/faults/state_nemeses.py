"""Nemeses of routers with a state directory: they die while they write, merge, delete or load files, and files are damaged."""

import shutil

import waiting
from nemeses import CRASH_SECONDS, CrashPoints, Nemesis

STATE_POINTS = ("run-created", "run-written", "run-synced", "run-renamed", "state-sealed", "state-merged", "state-removing",
                "state-removed", "state-loading", "state-restored", "state-delivered")
LOADING = ("state-loading", "state-restored")  # once for each partition, at the start


class StateCrashes(CrashPoints):
    """A router dies while it writes, merges, deletes or loads its state."""
    points = STATE_POINTS

    def act(self):
        point = self.points[self.next % len(self.points)]
        self.next += 1
        daemon = self.rng.choice(self.world.routers)
        self.world.kill(daemon)
        daemon.environment["GATEPOST_CRASH_POINT"] = f"{point}:{1 if point in LOADING else self.rng.randint(1, 3)}"
        daemon.launch()
        waiting.until(lambda: not daemon.is_running(), 2 * CRASH_SECONDS, lambda: f"{daemon.name} to die at {point}:\n{daemon.log}")
        daemon.wait_for_exit(-9)
        self.world.note_restart(daemon)
        self.note(f"died at {point}")
        del daemon.environment["GATEPOST_CRASH_POINT"]
        self.world.revive(daemon)


class StateDamage(Nemesis):
    """While a router is down, a file of its state is damaged, cut, emptied, renamed, or exchanged for one of another router."""
    pause = (0.5, 2.0)

    def act(self):
        daemon = self.rng.choice(self.world.routers)
        self.world.kill(daemon)
        files = self._files(daemon)
        for each in self.rng.sample(files, min(len(files), self.rng.choice((1, 1, 2, 100)))):
            change = self.rng.choice((self._flip, self._flip, self._cut, self._rename, self._exchange, self._delete))
            change(each)
            self.note(change.__name__.strip("_"))
        if self.rng.random() < 0.1:
            shutil.rmtree(self._directory(daemon), ignore_errors=True)
            self.note("deleted a directory")
        self.world.revive(daemon)

    @staticmethod
    def _directory(daemon):
        return daemon.config.directory / f"{daemon.name}.state"

    def _files(self, daemon):
        return sorted(self._directory(daemon).glob("*.run"))

    def _flip(self, path):
        content = bytearray(path.read_bytes())
        for _ in range(self.rng.choice((1, 1, 5, 100)) if content else 0):
            content[self.rng.randrange(len(content))] ^= 1 << self.rng.randrange(8)
        path.write_bytes(content)

    def _cut(self, path):
        content = path.read_bytes()
        path.write_bytes(content[:self.rng.randrange(len(content) + 1)] if content else b"")

    def _delete(self, path):
        path.unlink(missing_ok=True)

    def _rename(self, path):
        """Give it the name of another one, whose content it replaces."""
        if path.exists():
            path.rename(self.rng.choice(sorted(path.parent.glob("*.run"))))

    def _exchange(self, path):
        """Replace it by a file of another router."""
        others = [each for router in self.world.routers for each in self._files(router) if each != path]
        if others:
            shutil.copy(self.rng.choice(others), path)
