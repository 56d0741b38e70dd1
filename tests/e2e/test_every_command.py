"""Every command: help, wrong usage, output that cannot be written, missing files and services."""

import concurrent.futures
import os
import re
import subprocess

import pytest

import waiting
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from installation import BUILD
from signing import Delivery, event_body
from spool_side import Segment

EX_OK, EX_USAGE, EX_NOINPUT, EX_UNAVAILABLE, EX_IOERR, EX_TEMPFAIL, EX_CONFIG = 0, 64, 66, 69, 74, 75, 78
HOOK = ["--url", "https://gateway.example/in", "--events", "*", "--secret-file", "secret"]

# Each command with its arguments, and its exit status when no service answers.
COMMANDS = {
    "check": ([], EX_OK),
    "doctor": ([], EX_UNAVAILABLE),
    "config": ([], EX_OK),
    "topics create": ([], EX_UNAVAILABLE),
    "topics list": ([], EX_UNAVAILABLE),
    "topics fix": ([], EX_UNAVAILABLE),
    "sign": (["body.json"], EX_OK),
    "verify": (["headers.txt", "body.json"], EX_OK),
    "send": (["--to", "http://127.0.0.1:9/", "body.json"], EX_TEMPFAIL),
    "tail": (["--from", "beginning", "--until-end"], EX_UNAVAILABLE),
    "status": ([], EX_UNAVAILABLE),
    "audit": ([], EX_UNAVAILABLE),
    "quarantine list": ([], EX_UNAVAILABLE),
    "quarantine show": (["0-0"], EX_UNAVAILABLE),
    "quarantine release": (["0-0"], EX_UNAVAILABLE),
    "spool list": ([], EX_OK),
    "spool show": ([], EX_OK),
    "spool drain": ([], EX_UNAVAILABLE),
    "subscriptions list": ([], EX_UNAVAILABLE),
    "subscriptions add": (HOOK, EX_UNAVAILABLE),
    "subscriptions remove": (["any"], EX_UNAVAILABLE),
    "subscriptions ensure": (HOOK, EX_UNAVAILABLE),
    "secret new": (["new-secret"], EX_OK),
    "completion": (["bash"], EX_OK),
}
REPORT_ON_STDOUT = {"doctor"}  # which fails with a report
SILENT = {"secret new"}  # print nothing on stdout, so that nothing is lost
NEED_NO_CONFIGURATION = {"secret new", "completion"}
GROUPS = {name.split()[0] for name in COMMANDS if " " in name}
each_command = pytest.mark.parametrize("name", COMMANDS)


@pytest.fixture
def run(tmp_path):
    """Run the command line by a shell, which opens or closes what is to be."""
    def run(config, *arguments, redirect=""):
        path = config.write("every.conf") if hasattr(config, "write") else config
        done = subprocess.run(["sh", "-c", f'"$@" {redirect}', "sh", BUILD / "gatepost", "-c", path, *arguments],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env=ENVIRONMENT,
                              cwd=tmp_path)
        assert_no_sanitizer_report(done.stderr)
        return done
    (tmp_path / "body.json").write_bytes(event_body())
    delivery = Delivery((tmp_path / "body.json").read_bytes())
    (tmp_path / "headers.txt").write_text("".join(f"{name}: {value}\n" for name, value in delivery.headers().items()))
    return run


def spool_in(directory):
    """A spool with a delivery."""
    spool = directory / "spool"
    if not spool.exists():
        spool.mkdir(0o700)
        Segment().add(Delivery()).seal().write(spool, 1)
    return spool


@pytest.fixture
def config(offline, tmp_path):
    """A configuration by which nothing can be reached."""
    config = offline.config()
    config["admin"]["listen"] = f"unix:{tmp_path}/admin.sock"
    config["service"].update(base_url="http://127.0.0.1:9/v1", api_key_file=config.secret_file("key", b"the-api-key-of-the-tests"))
    config["receiver"]["spool"] = spool_in(tmp_path)
    (tmp_path / "secret").write_bytes(b"a secret of the tests, long enough")
    (tmp_path / "secret").chmod(0o600)
    return config


def test_help_lists_all_commands(offline):
    listed = offline.gatepost("--help", config=False).stdout.partition("commands:\n")[2]
    assert [line.strip().partition("  ")[0] for line in listed.splitlines()] == list(COMMANDS)


@each_command
def test_help_goes_to_stdout(run, name):
    done = run("/nonexistent", *name.split(), "--help")
    assert (done.returncode, done.stderr) == (EX_OK, "")
    assert done.stdout.startswith(f"usage: gatepost {name} ")
    for other in ([*name.split(), "-h"], ["help", *name.split()]):
        assert run("/nonexistent", *other).stdout == done.stdout


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_is_in_the_imperative(run, name):
    text = run("/nonexistent", *name.split(), "--help").stdout
    helps = re.findall(r"^  (?:-|\[?[A-Z]|[a-z ]+  )\S.*?  +(\S+)", text, re.M)
    assert helps and not [word for word in helps if word.endswith("s") or not word.rstrip(",").islower()], helps


def listed(text):
    """The commands in a list of commands, which ends the text."""
    return [line.strip().partition("  ")[0] for line in text.partition("commands:\n")[2].splitlines()]


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_help_of_a_group_lists_its_commands(run, group):
    done = run("/nonexistent", group, "--help")
    assert (done.returncode, done.stderr) == (EX_OK, "")
    assert done.stdout.startswith(f"usage: gatepost {group} ")
    assert listed(done.stdout) == [name for name in COMMANDS if name.startswith(group + " ")]
    assert run("/nonexistent", "help", group).stdout == done.stdout
    for arguments, told in (([], "missing command"), (["nonsense"], f"unknown command '{group} nonsense'")):
        done = run("/nonexistent", group, *arguments)
        assert (done.returncode, done.stdout) == (EX_USAGE, "") and told in done.stderr
        assert listed(done.stderr) == [name for name in COMMANDS if name.startswith(group + " ")]


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["check2", "--json"], ["help", "nonsense"]], ids=" ".join)
def test_without_a_command_all_are_listed(run, arguments):
    done = run("/nonexistent", *arguments)
    assert (done.returncode, done.stdout) == (EX_USAGE, "")
    assert listed(done.stderr) == list(COMMANDS)
    assert done.stderr.count("\nusage: gatepost ") == 1


def test_help_of_the_program(run):
    done = run("/nonexistent", "help")
    assert (done.returncode, done.stderr) == (EX_OK, "") and done.stdout == run("/nonexistent", "--help").stdout


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NEED_NO_CONFIGURATION])
def test_configuration_is_given_before_or_after_the_command(run, name):
    first, second = name.split()[0], name.split()[1:]
    for option in (["-c", "/nonexistent/2"], ["-c/nonexistent/2"], ["--config", "/nonexistent/2"], ["--config=/nonexistent/2"]):
        for arguments in ([first, *second, *option], [*option, first, *second]):
            done = run("/nonexistent/1", *arguments, *COMMANDS[name][0])
            said, silent = (done.stdout, done.stderr) if name in REPORT_ON_STDOUT else (done.stderr, done.stdout)
            assert (done.returncode, silent) == (EX_CONFIG, "") and "/nonexistent/2: No such file" in said, arguments


@each_command
def test_exactly_the_listed_options_are_accepted(run, name):
    text = run("/nonexistent", *name.split(), "--help").stdout
    for line in text.splitlines():
        if line.startswith("  --"):
            option, argument = line.split()[:2]
            given = [option, "1"] if argument.isupper() and argument.isalpha() else [option]
            assert "unknown option" not in run("/nonexistent", *name.split(), *given).stderr, option
            if given == [option]:
                done = run("/nonexistent", *name.split(), f"{option}=1")
                assert argument.startswith("[") or (done.returncode, done.stdout) == (EX_USAGE, ""), option
    for option in ("--nonsense", "-x"):
        done = run("/nonexistent", *name.split(), option)
        assert (done.returncode, done.stdout) == (EX_USAGE, "") and f"usage: gatepost {name} " in done.stderr
        assert f"unknown option {option}" in done.stderr


@each_command
@pytest.mark.parametrize("redirect", [">&-", ">/dev/full"])
def test_unwritable_help_exits_74(run, name, redirect):
    done = run("/nonexistent", *name.split(), "--help", redirect=redirect)
    assert (done.returncode, done.stderr) == (EX_IOERR, "gatepost: the output could not be written\n")


@each_command
@pytest.mark.parametrize("file", ["/nonexistent/gatepost.conf", "/", "/dev/null", "/proc/self/mem"])
def test_unreadable_configuration_exits_78(run, config, name, file):
    done = run(file, *name.split(), *COMMANDS[name][0])
    if name in NEED_NO_CONFIGURATION:
        assert done.returncode == EX_OK
    else:
        said, silent = (done.stdout, done.stderr) if name in REPORT_ON_STDOUT else (done.stderr, done.stdout)
        assert (done.returncode, silent) == (EX_CONFIG, "") and file in said


def test_unreachable_service_exits_with_an_error_message(run, config):
    path = config.write("every.conf")  # once: they read it side by side

    def try_it(name):
        return name, run(path, *name.split(), *COMMANDS[name][0])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:  # most commands wait
        ended = dict(pool.map(try_it, COMMANDS))
    assert {name: (done.returncode, done.stderr) for name, done in ended.items() if done.returncode != COMMANDS[name][1]} == {}
    assert {name for name, done in ended.items() if done.returncode and (done.stdout or not done.stderr)} == REPORT_ON_STDOUT


# With everything there

@pytest.fixture(scope="module")
def daemon(shared):
    config = shared.config()
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    config["receiver"]["listen"] = f"unix:{config.directory}/receiver.sock"
    shared.create_topics(config)
    daemon = shared.start(config)
    daemon.accept()
    daemon.accept(Delivery(b"no JSON"))
    shared.kafka.wait_until_routed()
    return daemon


def arguments_of(name, shared):
    if name == "send":
        return ["body.json"]
    if name.startswith("quarantine ") and name != "quarantine list":
        (record,) = shared.kafka.read(shared.kafka.quarantine)[:1]
        return [f"{record.partition}-{record.offset}"]
    if name.startswith("spool "):
        return [str(spool_in(shared.directory))]
    return COMMANDS[name][0]


@pytest.mark.parametrize("redirect", [">&-", ">/dev/full"])
@pytest.mark.parametrize("name", [name for name in COMMANDS if name.split()[0] != "subscriptions"])
def test_unwritable_output_exits_74(run, shared, daemon, name, redirect):
    done = run(daemon.config, *name.split(), *arguments_of(name, shared), redirect=redirect)
    if name in SILENT:
        assert done.returncode == EX_OK
    else:
        assert done.returncode == EX_IOERR and "the output could not be written" in done.stderr, done.stderr


@pytest.mark.parametrize("redirect", ["<&-", "2>&-", "<&- 2>&-"])
def test_closed_stdin_or_stderr_is_tolerated(run, shared, daemon, redirect):
    for name in ("config", "topics list", "tail", "status", "audit"):
        plain = run(daemon.config, *name.split(), *arguments_of(name, shared))
        done = run(daemon.config, *name.split(), *arguments_of(name, shared), redirect=redirect)
        assert (done.returncode, done.stderr) == (plain.returncode, "" if "2" in redirect else plain.stderr)
        assert len(done.stdout.splitlines()) == len(plain.stdout.splitlines()) > 0


def open_file(process, fd):
    """What FD of a process is, None while it is closed."""
    try:
        return os.readlink(f"/proc/{process.pid}/fd/{fd}")
    except FileNotFoundError:
        return None


@pytest.mark.parametrize("program", ["gatepost", "gatepostd", "gatepost-sandbox"])
def test_closed_standard_descriptors_are_opened_as_dev_null(config, program):
    arguments = {"gatepost": ["-c", config.write(), "tail"], "gatepostd": ["-c", config.write()],
                 "gatepost-sandbox": ["--listen", "127.0.0.1:0"]}[program]
    closed = "<&- 2>&- >/dev/null" if program == "gatepost-sandbox" else "<&- >&- 2>&-"  # it ends when it cannot write
    process = subprocess.Popen(["sh", "-c", f'exec "$@" {closed}', "sh", BUILD / program, *arguments], env=ENVIRONMENT)
    try:
        waiting.until(lambda: all(open_file(process, fd) == "/dev/null" for fd in range(3)), 30, "all three to be /dev/null")
    finally:
        process.kill()
        process.wait()


def test_body_from_closed_stdin_exits_66(run, config):
    done = run(config, "sign", "-", redirect="<&-")
    assert (done.returncode, done.stdout) == (EX_NOINPUT, "") and "standard input" in done.stderr
