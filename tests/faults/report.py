"""The findings of a fault scenario."""

import collections
import dataclasses

from tally import tally


@dataclasses.dataclass
class Report:
    passes: int = 0
    lost: list = dataclasses.field(default_factory=list)
    duplicated: list = dataclasses.field(default_factory=list)
    unexpected: list = dataclasses.field(default_factory=list)  # wrong records, and wrong behaviour of the daemon
    disordered: list = dataclasses.field(default_factory=list)  # events of a key that are not in the order of `deliveries`
    unnoticed: list = dataclasses.field(default_factory=list)  # ids of replays that no receiver has noticed
    cut: list = dataclasses.field(default_factory=list)  # ids of deliveries that were answered 200 and then lost by Kafka
    of_cut: list = dataclasses.field(default_factory=list)  # published records whose source records Kafka lost later
    notes: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    def compare(self, kafka, must, may):
        """Compare the topics with the deliveries sent, and add the findings."""
        found = tally(kafka, must, may)
        self.lost += found.lost
        self.duplicated += found.duplicated
        self.unexpected += found.unexpected

    @property
    def is_clean(self):
        return not (self.lost or self.duplicated or self.unexpected or self.disordered)

    def counts(self):
        return {"passes": self.passes, "lost": len(self.lost), "duplicated": len(self.duplicated),
                "unexpected": len(self.unexpected), "notes": dict(self.notes)}

    def __str__(self):
        lines = [f"{self.passes} passes"]
        lines += [f"{name}: {each}" for name in ("lost", "duplicated", "unexpected") for each in getattr(self, name)]
        lines += [f"{n} times: {note}" for note, n in sorted(self.notes.items())]
        return "\n".join(lines)
