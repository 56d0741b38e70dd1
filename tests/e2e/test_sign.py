"""gatepost sign: the headers of a delivery, computed offline."""

import os
import shutil
import subprocess

import pytest

import signing
from daemon import ENVIRONMENT
from installation import BUILD
from signing import SECRET, Delivery

EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_NOPERM, EX_CONFIG = 64, 65, 66, 77, 78
WEBHOOK_ID = "6f0d2c1e-0000-4000-8000-000000000002"
CHOSEN = ["--timestamp", "1795230245", "--delivery-id", "d-1", "--webhook-id", "w-1"]


@pytest.fixture
def config(offline):
    return offline.config()


@pytest.fixture
def body_file(tmp_path):
    path = tmp_path / "body.json"
    path.write_bytes(b'{"event":"invoice.accepted","text":"\xc3\x9f"}\r\n\n')
    return path


@pytest.fixture
def sign(offline, config):
    """Run `gatepost sign`; returns the headers that it prints."""
    def run(*arguments, **options):
        done = offline.gatepost("sign", *map(str, arguments), **{"config": config} | options)
        assert (done.returncode, done.stderr) == (0, "")
        return dict(line.split(": ") for line in done.stdout.splitlines())
    return run


def test_headers_equal_those_of_the_service(sign, body_file):
    delivery = Delivery(body_file.read_bytes(), "d-1", "w-1", 1795230245)
    assert sign(*CHOSEN, body_file) == delivery.headers()


def test_dash_reads_the_body_from_stdin(sign):
    assert sign(*CHOSEN, "-", input="{}\n") == Delivery(b"{}\n", "d-1", "w-1", 1795230245).headers()


def test_default_ids_and_time_are_fresh(sign, body_file):
    before = signing.now()
    one, other = sign(body_file), sign(body_file)
    assert one["x-invoicing-delivery-id"] != other["x-invoicing-delivery-id"]
    assert before <= int(one["x-invoicing-timestamp"]) <= signing.now()
    assert one == Delivery(body_file.read_bytes(), one["x-invoicing-delivery-id"], one["x-invoicing-webhook-id"],
                           int(one["x-invoicing-timestamp"])).headers()


def test_source_determines_secret_prefix_and_webhook_id(sign, config, body_file):
    config.source("other", b"the secret of the other source", webhook_id=WEBHOOK_ID)
    headers = sign("--source", "other", "--timestamp", "1795230245", "--delivery-id", "d-1", body_file)
    assert headers == Delivery(body_file.read_bytes(), "d-1", WEBHOOK_ID, 1795230245,
                               b"the secret of the other source").headers("x-other")


def test_secret_file_needs_no_configuration(sign, config, body_file):
    headers = sign("--secret-file", config.secret_file("own", SECRET), "--header-prefix", "x-own", *CHOSEN, body_file,
                   config="/nonexistent/gatepost.conf")
    assert headers == Delivery(body_file.read_bytes(), "d-1", "w-1", 1795230245).headers("x-own")


@pytest.mark.parametrize("arguments, message", [
    ([], "needs BODY"), (["a", "b"], "unexpected argument 'b'"), (["--nonsense", "a"], "unknown option"),
    (["--he", "a"], "unknown option --he"),
    (["--header-prefix", "x-own", "a"], "go together"), (["--secret-file", "secret", "a"], "go together"),
    (["--source", "invoicing", "--secret-file", "s", "--header-prefix", "x-own", "a"], "not both"),
    (["--timestamp", "yesterday", "-"], "not a whole number"), (["--timestamp", "99999999999", "-"], "between"),
    (["--source", "missing", "-"], "no source missing"),
    (["--secret-file", "good", "--header-prefix", "no good", "-"], "is not the beginning of a header's name"),
])
def test_wrong_usage_exits_64(offline, config, arguments, message):
    arguments = [str(config.secret_file("good", SECRET)) if each == "good" else each for each in arguments]
    done = offline.gatepost("sign", *arguments, config=config)
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and message in done.stderr


def test_unreadable_files_are_reported(offline, config, tmp_path):
    own = ["--header-prefix", "x-own", "--secret-file"]
    loose = config.secret_file("loose", SECRET, 0o644)
    for arguments, message, status in ((["no-such-file"], "no-such-file: No such file", EX_NOINPUT),
                                    ([tmp_path], "Is a directory", EX_NOINPUT),
                                    ([*own, "/no-such-secret", "-"], "cannot open /no-such-secret", EX_NOINPUT),
                                    ([*own, loose, "-"], "others can read it", EX_DATAERR)):
        done = offline.gatepost("sign", *map(str, arguments), config=config)
        assert (done.returncode, done.stdout) == (status, "") and message in done.stderr
        assert SECRET.decode() not in done.stderr
    assert offline.gatepost("sign", "-", config="/nonexistent/gatepost.conf").returncode == EX_CONFIG


def test_secret_in_place_of_its_file_is_not_shown(offline):
    done = offline.gatepost("sign", "--secret-file", "8b4f94c01d27a7e3", "--header-prefix", "x-own", "-")
    assert done.returncode == EX_NOINPUT and "may be the secret itself" in done.stderr and "8b4f94" not in done.stderr, done.stderr
    for arguments in (["--secret=8b4f94c01d27a7e3"], ["--secret", "8b4f94c01d27a7e3"]):
        done = offline.gatepost("sign", *arguments, "-")
        assert done.returncode == EX_USAGE and "unknown option --secret;" in done.stderr and "8b4f94" not in done.stderr, done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can switch accounts")
def test_missing_file_permission_is_reported(config, body_file):
    """Another account's secret, by its file and by a readable configuration."""
    secret = config.secret_file("own", SECRET)
    os.chown(config["source invoicing"]["secret_file"], 1, 1)
    file = config.write()
    for path in (file, body_file):
        path.chmod(0o644)
    for path in [file, *file.parents]:
        if str(path).startswith("/tmp/pytest") and path.is_dir():
            path.chmod(path.stat().st_mode | 0o711)

    program = shutil.copy(BUILD / "gatepost", config.directory)

    def run(*arguments):
        return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, *arguments],
                              capture_output=True, text=True, timeout=60, env=ENVIRONMENT, cwd="/")
    done = run("sign", "--header-prefix", "x-own", "--secret-file", secret, body_file)
    assert (done.returncode, done.stdout) == (EX_NOPERM, "") and f"cannot open {secret}: Permission denied" in done.stderr
    for command in (["check"], ["config"], ["sign", body_file]):
        done = run("-c", file, *command)
        assert (done.returncode, done.stdout) == (EX_CONFIG, "") and "Permission denied" in done.stderr
