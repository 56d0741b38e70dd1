"""The documents: run the commands of README and man pages."""

import pathlib
import re
import shlex
import subprocess

import pytest

from sandbox import Sandbox
from signing import Delivery, event_body

ROOT = pathlib.Path(__file__).parents[2]


def commands_in(text, indent):
    """The gatepost commands of an example, in order, without comments."""
    lines = [re.sub("^sudo (-u gatepost )?", "", line.partition("  #")[0].strip())
             for line in text.splitlines() if line.startswith(indent)]
    return [shlex.split(line)[1:] for line in lines if line.startswith("gatepost ")]


def run_all(installation, config, commands):
    for command in commands:
        output = None
        if ">" in command:
            *command, _, output = command
        if command[0] == "tail" and "--until-end" not in command:
            command = [*command, "--until-end"]  # otherwise it would follow forever
        done = installation.gatepost(*command, config=config)
        assert done.returncode == 0, (command, done.stderr)
        if output:
            (installation.directory / output).write_text(done.stdout)
        yield command, done.stdout


@pytest.fixture
def reached_by_socket(installation):
    """A configuration whose receiver the command line can find."""
    config = installation.config()
    config["receiver"]["listen"] = f"unix:{installation.directory}/receiver.sock"
    return config


def test_readme_commands_work_in_order(installation, reached_by_socket):
    _, *commands = commands_in((ROOT / "README").read_text(), "    ")  # the first one makes a secret, which exists
    assert [command[0] for command in commands] == ["check", "topics", "topics", "doctor", "send", "tail", "audit"]
    before, after = commands[:3], commands[3:]
    for _ in run_all(installation, reached_by_socket, before):
        pass
    installation.start(reached_by_socket)
    answers = list(run_all(installation, reached_by_socket, after[:2]))
    assert answers[0][1].endswith("no trouble found\n") and answers[1][1].startswith("200 ")
    installation.kafka.wait_until_routed()
    (_, printed), (_, audited) = run_all(installation, reached_by_socket, after[2:])
    assert f"{installation.prefix}.invoice.accepted" in printed
    assert audited.splitlines()[-1].split() == ["total", "1", "1", "0", "0", "0"]


def test_examples_in_gatepost_1_work(installation, reached_by_socket):
    page = (ROOT / "man" / "gatepost.1").read_text()
    commands = commands_in(page.partition(".Sh EXAMPLES")[2], "")
    assert [command[0] for command in commands] == \
        ["send", "tail", "doctor", "sign", "verify", "audit", *["quarantine"] * 3, *["subscriptions"] * 2]
    (installation.directory / "body.json").write_bytes(event_body())
    installation.create_topics(reached_by_socket)
    installation.start(reached_by_socket)
    for _ in run_all(installation, reached_by_socket, commands[:1]):
        pass
    installation.kafka.wait_until_routed()
    (_, printed), (_, checked), _, (_, verified), (_, audited) = run_all(installation, reached_by_socket, commands[1:6])
    assert checked.endswith("no trouble found\n")
    assert "invoice.accepted" in printed and "answer: 200" in verified
    assert audited.splitlines()[-1].split() == ["total", "1", "1", "0", "0", "0"]
    installation.kafka.append([Delivery(event_body("no.such_kind"))])
    installation.kafka.wait_until_routed()
    (_, listed), (_, tried), (_, released) = run_all(installation, reached_by_socket, commands[6:9])
    assert "no.such_kind" in listed and " would-be-released: " in tried and " released, " in released
    with Sandbox(installation.build, installation.directory) as sandbox:
        key_file = reached_by_socket.secret_file("key", sandbox.key.encode())
        reached_by_socket["service"].update(base_url=sandbox.url, api_key_file=key_file)
        secret = str(reached_by_socket["source invoicing"]["secret_file"])
        commands = [[secret if word == "/etc/gatepost/secrets/invoicing" else word for word in command]
                    for command in commands[9:]]
        (_, ensured), (_, listed) = run_all(installation, reached_by_socket, commands)
        assert ensured.startswith("added ") and "https://gateway.example/webhooks/invoicing" in listed


def commands_of_the_man_page():
    """{name of a command: {option: its argument}} by the items of gatepost(1)'s section COMMANDS; {"": the arguments}."""
    section = (ROOT / "man" / "gatepost.1").read_text().partition(".Sh COMMANDS\n")[2].partition(".Sh ")[0]
    commands = {}
    for item in section.split("\n.It Cm ")[1:]:
        heading = item.partition(".Xc\n")[0] if item.partition("\n")[0].endswith(" Xo") else item.partition("\n")[0]
        name = re.match(r"[a-z]+( [a-z]+)?", heading)[0]
        options = re.findall(r"(?:Fl|[|]) -([a-z-]+)(?: (?:Op )?Ar ([a-z]+))?", heading)
        arguments = re.findall(r"Ar ([a-z ]+)", re.sub(r"Fl -[a-z-]+ (?:Op )?Ar [a-z]+", "", heading))
        commands[name] = {f"--{option}": argument for option, argument in options} | {"": " ".join(arguments).split()}
    return commands


def commands_of_the_help(installation):
    """Likewise by --help."""
    listed = installation.gatepost("--help", config=False).stdout.partition("commands:\n")[2]
    commands = {}
    for name in [re.split(r"\s{2,}", line.strip())[0] for line in listed.splitlines()]:
        text = installation.gatepost(*name.split(), "--help", config=False).stdout
        rows = re.findall(r"^  (--[a-z-]+)?(?: ?\[?([A-Z]+)[^ ]*(?: \.\.\.\])?)?  ", text, re.M)
        commands[name] = {option: argument.lower() for option, argument in rows if option}
        commands[name][""] = [argument.lower() for option, argument in rows if not option and argument]
    return commands


def test_gatepost_1_has_each_command_with_its_options_and_arguments_and_no_others(installation):
    documented, known = commands_of_the_man_page(), commands_of_the_help(installation)
    assert documented == known and known["tail"]["--from"] == "where" and known["verify"][""] == ["headers", "body"]


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "man").iterdir()))
def test_commands_and_metrics_named_in_man_pages_exist(page):
    known, text = commands_of_the_man_page(), (ROOT / "man" / page).read_text()
    groups = {name.split()[0] for name in known}
    for words in map(str.split, re.findall(r"^\.Ql gatepost ([a-z].*?)(?: [,;.:)])?$", text, re.M)):
        name = " ".join(words[:2]) if " ".join(words[:2]) in known else words[0]
        assert name in known or name in groups and len(words) == 1, (page, words)
        assert {word for word in words if word.startswith("--")} <= set(known.get(name, {})), (page, words)
    metrics = set(re.findall(r"\bgatepost_[a-z_]+", (ROOT / "man" / "gatepostd.8").read_text().partition(".Ss Metrics")[2]
                             .partition(".Sh ")[0]))
    assert set(re.findall(r"\bgatepost_[a-z_]+", text)) <= metrics


def test_options_named_in_the_guide_exist():
    named = re.findall(r"^\.Cm (\S+)", (ROOT / "man" / "gatepost-guide.7").read_text(), re.M)
    described = re.findall(r"^\.It (?:Ic|Cm) (\S+)", (ROOT / "man" / "gatepost.conf.5").read_text(), re.M)
    others = {"sasl.mechanism", "offsets.retention.minutes", "min.insync.replicas", "TimeoutStopSec"}  # Kafka's, systemd's
    assert len(set(named)) > 8 and set(named) - others <= set(described), set(named) - others - set(described)


def test_refused_kafka_properties_are_listed_in_the_manual():
    source = (ROOT / "src" / "config" / "kafka_properties.c").read_text()
    refused = re.findall(r'^    \{"([a-z._]+)", ', source.partition("} refused[] = {")[2].partition("\n};")[0], re.M)
    page = (ROOT / "man" / "gatepost.conf.5").read_text()
    listed = re.findall(r"Li ([a-z._*]+)", "\n".join(re.findall(r"^\.It Li .*", page, re.M)))
    assert len(refused) > 30 and sorted(listed) == sorted([*refused, "test.mock.*"])


def test_every_quarantine_reason_is_documented():
    source = (ROOT / "src" / "model" / "judge.c").read_text()
    reasons = re.findall(r'^    \[QUARANTINE_[A-Z_]+\] = "([a-z-]+)"', source, re.M)
    page = (ROOT / "man" / "gatepost-consumers.7").read_text().partition("\n.Sh QUARANTINE")[2].partition("\n.Sh ")[0]
    assert len(reasons) >= 9 and re.findall(r"^\.It ([a-z-]+)$", page, re.M) == reasons


def test_man_pages_pass_mandoc_lint():
    if subprocess.run(["sh", "-c", "command -v mandoc"], stdout=subprocess.DEVNULL).returncode != 0:
        pytest.fail("mandoc is not installed; tests/run installs it")
    pages = sorted(str(page) for page in (ROOT / "man").iterdir())
    done = subprocess.run(["mandoc", "-Tlint", "-W", "warning", *pages], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stdout


def test_sample_configuration_is_valid_apart_from_its_secret(installation):
    secret = installation.directory / "invoicing"
    assert installation.gatepost("secret", "new", str(secret), config=False).returncode == 0
    sample = installation.directory / "sample.conf"
    sample.write_text((ROOT / "etc" / "gatepost.conf").read_text().replace("/etc/gatepost/secrets/invoicing", str(secret)))
    done = installation.gatepost("check", config=str(sample))
    assert done.returncode == 0, done.stderr


def test_every_variable_that_the_programs_read_is_in_a_manual():
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.[ch]"))
    read = set(re.findall(r'getenv\("([A-Z_]+)"\)', sources))
    named = set()
    for page in ("gatepost.1", "gatepostd.8", "gatepost-sandbox.1"):
        section = (ROOT / "man" / page).read_text().partition("\n.Sh ENVIRONMENT\n")[2].partition("\n.Sh ")[0]
        named |= set(re.findall(r"Ev ([A-Z_]+)", section))
    assert len(read) >= 7 and read == named, read ^ named
