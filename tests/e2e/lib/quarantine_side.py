"""`gatepost quarantine` as used by an admin, and its effects."""

import json


class Quarantine:
    """The commands of one installation, with the configuration of its daemon."""

    def __init__(self, installation, daemon):
        self.installation = installation
        self.daemon = daemon
        self.kafka = installation.kafka

    def run(self, *arguments, expect=0):
        done = self.installation.gatepost("quarantine", *arguments, config=self.daemon.config)
        assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *arguments, expect=0):
        return json.loads(self.run(*arguments, "--json", expect=expect).stdout)

    def list(self, *arguments):
        """All records, those that were released, too."""
        return self.json("list", "--all", *arguments)

    def entry(self, delivery_id):
        """The oldest record in quarantine of a delivery."""
        return next(each for each in self.list() if each["deliveryId"] == delivery_id)

    def send(self, delivery, **options):
        """Send a delivery that is quarantined. Returns its ID in quarantine."""
        self.daemon.accept(delivery, **options)
        self.kafka.wait_until_routed()
        return self.entry(delivery.delivery_id)["id"]

    def release(self, *arguments, expect=0):
        """Release records, and wait for the results. Returns the outcomes."""
        outcomes = self.json("release", *arguments, expect=expect)
        self.kafka.wait_until_routed()
        return outcomes

    def events(self):
        return [record for record in self.kafka.read() if record.topic != self.kafka.quarantine]

    def published(self, delivery_id):
        return [record for record in self.events() if record.delivery_id == delivery_id]

    def quarantined(self, delivery_id):
        return [record for record in self.kafka.read(self.kafka.quarantine)
                if record.delivery_id == delivery_id and record.header("gatepost-reason")]

    def markers(self, delivery_id):
        """The markers that releases of a delivery have left in quarantine."""
        return [record for record in self.kafka.read(self.kafka.quarantine)
                if record.delivery_id == delivery_id and not record.header("gatepost-reason")]

    def deliveries(self, delivery_id):
        return sorted((record for record in self.kafka.read(self.kafka.deliveries) if record.delivery_id == delivery_id),
                      key=lambda record: record.place)

    def map_kinds(self, **events):
        """Restart the daemon with topics for additional kinds."""
        self.daemon.stop()
        config = self.daemon.config
        config["events"].update({"invoice.*": f"{self.kafka.prefix}.invoice.accepted"}
                                | {kind.replace("_", "."): topic for kind, topic in events.items()})
        self.daemon.restart()
