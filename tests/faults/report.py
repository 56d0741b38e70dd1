"""What a fault scenario found."""

import collections
import dataclasses

from tally import tally


@dataclasses.dataclass
class Report:
    passes: int = 0
    lost: list = dataclasses.field(default_factory=list)
    duplicated: list = dataclasses.field(default_factory=list)
    unexpected: list = dataclasses.field(default_factory=list)  # records, and what the daemon must not do
    disordered: list = dataclasses.field(default_factory=list)  # events of one key that are not in the order of deliveries
    unnoticed: list = dataclasses.field(default_factory=list)  # ids of replays that no receiver has noticed
    cut: list = dataclasses.field(default_factory=list)  # ids of what was answered 200 and then lost by Kafka
    of_cut: list = dataclasses.field(default_factory=list)  # records that came of what Kafka then lost
    notes: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    def compare(self, kafka, must, may):
        """Add what a comparison of what was sent with what stands in the topics shows."""
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
