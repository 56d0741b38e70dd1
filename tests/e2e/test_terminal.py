"""The command line on terminals of several widths: no line is wider than the terminal, and nothing is lost."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading

import confluent_kafka
import pytest

import waiting
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from installation import BUILD
from signing import Delivery, event_body

WIDTHS = [40, 80, 200]
UTF_8 = {"LC_ALL": "C.UTF-8", "TERM": "xterm"}


class Terminal:
    """What a program writes to a terminal of this width; 0: a terminal that does not know its width."""

    def __init__(self, width):
        self._ours, self.its = pty.openpty()
        attributes = termios.tcgetattr(self.its)
        attributes[1] &= ~termios.ONLCR
        termios.tcsetattr(self.its, termios.TCSANOW, attributes)
        fcntl.ioctl(self.its, termios.TIOCSWINSZ, struct.pack("4H", 24, width, 0, 0))
        self._read = self.raw = b""
        self._reader = threading.Thread(target=self._read_all, daemon=True)
        self._reader.start()

    def _read_all(self):
        try:
            while read := os.read(self._ours, 65536):
                self._read += read
        except OSError:
            pass  # EIO: the other side is closed

    def text(self):
        """The lines as a person sees them: without colours, and without what was erased."""
        os.close(self.its)
        self._reader.join(60)
        os.close(self._ours)
        self.raw = self._read
        lines = self._read.decode().split("\n")
        return "\n".join(re.sub("\x1b\\[[0-9;]*[A-Za-z]", "", re.sub("^.*\r\x1b\\[K", "", line)) for line in lines)


def on_terminal(width, config, *arguments, **environment):
    """Returns what a command writes to stdout and stderr, each a terminal, and the exit status."""
    both = Terminal(width), Terminal(width)
    done = subprocess.run([BUILD / "gatepost", "-c", config, *arguments], stdin=subprocess.DEVNULL, stdout=both[0].its,
                          stderr=both[1].its, timeout=120, env=ENVIRONMENT | UTF_8 | environment)
    texts = [each.text() for each in both]
    assert_no_sanitizer_report(texts[1])
    return *texts, done.returncode


def elsewhere(config, *arguments):
    """The same, without a terminal."""
    done = subprocess.run([BUILD / "gatepost", "-c", config, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120, env=ENVIRONMENT | UTF_8)
    return done.stdout, done.stderr, done.returncode


def contents(text):
    """A text without the spaces between words, without times, which differ between two runs, and without the progress of an audit,
    which only a terminal gets."""
    joined = re.sub(r"differencesfound,.*?[0-9]pass(es)?", "", re.sub(r"\s+", "", text))
    return re.sub(r"[\d.]+(ms|us|µs|s|min|h)?", "#", joined)


def columns(text):
    """The letters of a table, whose cells are in another order on a narrow terminal."""
    return sorted(contents(text))


@pytest.fixture(scope="module")
def site(shared):
    """An installation with something to say: wrong topics, refusals, quarantined records."""
    shared.create_topics()
    kafka = shared.kafka
    kafka.configure(kafka.deliveries, "retention.ms", "260000000")
    kafka.configure(kafka.deliveries, "unclean.leader.election.enable", "true")
    config = shared.config()
    config["receiver"]["listen"] = f"unix:{config.directory}/receiver.sock"
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    config.source("the-subsidiary-in-the-far-north", b"the secret of the subsidiary")
    daemon = shared.start(config)
    for _ in range(2):
        daemon.accept()
    daemon.accept(Delivery(body=event_body("invoice.unheard-of")))
    daemon.accept(Delivery(body=b'{"event": "invoice.accepted", "rejectedAt": 7, "invoiceId": "1"}'))
    assert daemon.post(Delivery(secret=b"another secret of the tests")).status == 401
    assert daemon.post(Delivery(), "unknown-source").status == 404
    kafka.wait_until_routed()
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap})  # what the audit does not expect
    producer.produce(f"{shared.prefix}.held_unmapped_decision", b"{}", b"key", headers={"ce_id": b"of somebody else"})
    assert producer.flush(30) == 0
    waiting.until(lambda: daemon.metric("gatepost_quarantined_total") == 2, 30, "the quarantined deliveries")
    return str(daemon.config.directory / f"{daemon.name}.conf")


@pytest.fixture(scope="module")
def wrong(shared):
    """The file of a configuration with errors and warnings."""
    config = shared.config()
    config["receiver"].update({"listen": ["0.0.0.0:8443", "0.0.0.0:8444"], "ack_timout": "8 seconds", "max_body": "10MB"})
    config["kafka"].update({"enable.idempotence": "false", "bootstrap_servers": "kafka1:9092", "sasl.mechanism": "PLAIN"})
    config["source invoicing"].update({"tolerance": "5m", "ce_source": "not a URI", "secret_file": "/nonexistent/" + "directory/" * 20})
    return str(config.write("wrong.conf"))


COMMANDS = [["doctor", "--no-send"], ["check"], ["topics", "list"], ["audit"], ["quarantine", "list"], ["status"], ["help"],
            ["topics", "create"], ["audit", "--help"], ["nonsense"], ["tail", "--form"]]


def shows_the_same(width, config, arguments):
    """Whether a command shows on a terminal what it shows elsewhere. Ages and rates may differ between two runs."""
    plain, seen = elsewhere(config, *arguments), on_terminal(width, config, *arguments)
    assert plain[2] == seen[2] and len(plain[0] + plain[1]) > 40
    print(*seen[:2], sep="\n")
    for text in seen[:2]:
        assert [line for line in text.splitlines() if len(line) > width or line.endswith(" ")] == []
    in_order = columns if arguments[0] == "quarantine" else contents
    return [in_order(text) for text in plain[:2]] == [in_order(text) for text in seen[:2]]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_lines_fit_and_nothing_is_lost(site, arguments, width):
    waiting.until(lambda: shows_the_same(width, site, arguments), 60, "the same output")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", ["check", "doctor", "topics list"])
def test_errors_fit_and_nothing_is_lost(wrong, command, width):
    assert shows_the_same(width, wrong, command.split())


def test_words_are_not_broken(site):
    """All words of the output elsewhere are on the terminal, but those that are wider than its lines."""
    for arguments in (["doctor", "--no-send"], ["topics", "list"], ["audit"], ["quarantine", "list"], ["status"]):
        words = set(re.sub(r"[\d.]+", "#", "".join(elsewhere(site, *arguments)[:2])).split())
        seen = set(re.sub(r"[\d.]+", "#", "".join(on_terminal(80, site, *arguments)[:2])).split())
        assert [word for word in words - seen if len(word) < 70] == [], arguments


def test_width_is_that_of_columns_if_the_terminal_does_not_know_it(wrong):
    for columns, width in (("50", 50), ("nonsense", 80), ("0", 80), ("1", 20)):
        lines = on_terminal(0, wrong, "check", COLUMNS=columns)[1].splitlines()
        assert width - 20 < max(len(line) for line in lines) <= width, columns
    assert max(len(line) for line in on_terminal(60, wrong, "check", COLUMNS="30")[1].splitlines()) > 30


def test_json_is_not_wrapped(site):
    for arguments in (["doctor", "--no-send"], ["check"], ["topics", "list"], ["audit"], ["quarantine", "list"], ["status"]):
        plain, seen = elsewhere(site, *arguments, "--json")[0], on_terminal(40, site, *arguments, "--json")[0]
        assert plain.count("\n") == seen.count("\n") and max(len(line) for line in seen.splitlines()) > 40


def test_further_lines_are_indented(wrong):
    lines = on_terminal(100, wrong, "check")[1].splitlines()
    assert {len(line) - len(line.lstrip()) for line in lines} == {0, 4}
    assert all(line.startswith((wrong, "gatepost check: ")) for line in lines if not line.startswith(" "))


def test_lines_of_the_log_fit(shared):
    config = shared.config()
    config["kafka"]["bootstrap.servers"] = "127.0.0.1:1"  # nothing listens there
    stderr = on_terminal(80, str(config.write("away.conf")), "topics", "list")[1]
    assert "kafka is unreachable; waiting for it" in " ".join(stderr.split())
    assert max(map(len, stderr.splitlines())) <= 80


def test_what_is_waited_for_fits_and_is_erased(site):
    """It is on one line of the terminal, since only one is erased."""
    stdout = Terminal(30)
    subprocess.run([BUILD / "gatepost", "-c", site, "doctor", "--no-send"], stdin=subprocess.DEVNULL, stdout=stdout.its, timeout=120,
                   env=ENVIRONMENT | UTF_8)
    text = stdout.text()
    waits = [each.partition("\r")[0] for each in stdout.raw.decode().split("\r\x1b[K") if each.startswith("…")]
    assert len(waits) > 20 and max(map(len, waits)) < 30 and "…" not in text
