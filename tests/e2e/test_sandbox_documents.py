"""gatepost-sandbox(1): it names every option, and its examples work as they stand, but for addresses and secrets."""

import json
import pathlib
import re
import shlex
import subprocess

import pytest

import http_client
from daemon import ENVIRONMENT
from endpoint import Endpoint
from installation import BUILD
from sandbox import Sandbox
from signing import SECRET

PAGE = (pathlib.Path(__file__).parents[2] / "man" / "gatepost-sandbox.1").read_text()


def examples(program):
    """The examples that call the program, as lists of arguments."""
    blocks = re.findall(r"^\.Bd -literal\n(.*?)^\.Ed$", PAGE.partition(".Sh EXAMPLES")[2], re.M | re.S)
    lines = re.split(r"\n\n", "\n".join(blocks).replace("\\e\n", " "))
    return [shlex.split(line)[1:] for line in lines if line.startswith(program + " ")]


@pytest.mark.parametrize("arguments", [[], ["fire"]])
def test_every_option_is_documented(arguments):
    done = subprocess.run([BUILD / "gatepost-sandbox", *arguments, "--help"], capture_output=True, text=True, timeout=60)
    options = re.findall(r"--([a-z-]+)", done.stdout)
    assert len(set(options)) >= 10
    synopsis = PAGE.partition(".Sh DESCRIPTION")[0]
    for option in options:
        assert f"Fl -{option}" in PAGE or f", -{option}" in PAGE, option
        assert option in ("help", "version") or f"Fl -{option}" in synopsis, option


def call(sandbox, arguments):
    """What curl would do."""
    *options, url = arguments
    headers = dict(value.split(": ", 1) for name, value in zip(options, options[1:]) if name == "-H")
    bodies = [value.encode() for name, value in zip(options, options[1:]) if name == "-d"]
    assert set(options[::2]) <= {"-H", "-d"}
    path = url.removeprefix("http://127.0.0.1:8500")
    reply = http_client.request(sandbox.address, "POST" if bodies else "GET", path, headers, b"".join(bodies))
    assert reply.status in (200, 201, 202), reply.body
    return reply.json


def test_api_examples_work(tmp_path):
    ((*options, key),) = [arguments for arguments in examples("gatepost-sandbox") if arguments[0] != "fire"]
    assert options == ["--listen", "127.0.0.1:8500", "--key"]
    register, submit, poll, remind = examples("curl")
    with Sandbox(BUILD, tmp_path, "--delay", "1ms", key=key) as sandbox:
        assert call(sandbox, register)["url"] == "http://127.0.0.1:8080/webhooks/invoicing"
        invoice_id = call(sandbox, submit)["invoiceId"]
        poll[-1] = poll[-1].replace("INVOICE-ID", invoice_id)
        assert call(sandbox, poll)["invoiceId"] == invoice_id
        assert len(call(sandbox, remind)["deliveries"]) == 1


def test_load_example_works(tmp_path):
    (arguments,) = [arguments for arguments in examples("gatepost-sandbox") if arguments[0] == "fire"]
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    with Endpoint() as endpoint:
        replaced = {"http://127.0.0.1:8080/webhooks/invoicing": endpoint.url, "/etc/gatepost/secrets/invoicing": secret}
        done = subprocess.run([BUILD / "gatepost-sandbox", *(replaced.get(each, each) for each in arguments), "--json"],
                              capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    report = json.loads(done.stdout)
    # The endpoint takes forged ones, too.
    assert (report["sent"], report["repeated"], report["forged"], report["noAnswer"]) == (1000, 95, 50, 0), done.stderr
