"""The Debian package as a file: reproducible, hardened and clean in lintian."""

import hashlib
import re
import subprocess

import pytest

from conftest import WORK

PROGRAMS = ["usr/sbin/gatepostd", "usr/bin/gatepost", "usr/bin/gatepost-sandbox"]


def output(*command):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def unpacked(deb, tmp_path_factory):
    directory = tmp_path_factory.mktemp("unpacked")
    output("dpkg-deb", "-x", deb, directory)
    return directory


@pytest.mark.slow
def test_package_is_reproducible(deb):
    """Includes the packages of debugging symbols, which contain all paths that the compiler saw."""
    digests = {}
    for directory in (deb.parent, WORK / "second"):
        packages = sorted(directory.glob("*.deb"))
        assert len(packages) == 2, packages
        digests[directory] = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in packages}
    first, second = digests.values()
    assert first == second


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_are_hardened(unpacked, program):
    facts = output("readelf", "-W", "-h", "-l", "-d", unpacked / program)
    imported = output("readelf", "-W", "--dyn-syms", unpacked / program)
    assert "DYN (Position-Independent Executable file)" in facts
    assert re.search(r"FLAGS_1\).*NOW.*PIE", facts), "not bound at start"
    assert "GNU_RELRO" in facts
    assert re.search(r"GNU_STACK .* RW +0x", facts), "an executable stack"
    assert "__stack_chk_fail" in imported
    assert re.search(r"__\w+_chk@", imported.replace("__stack_chk_fail", "")), "nothing is fortified"


def test_compiler_gets_hardening_flags_not_visible_in_programs(deb):
    """Small functions need no stack probes, and the control-flow note is lost if libc's startup code has none."""
    compiled = [line for line in (deb.parent / "log").read_text().splitlines() if re.search(r"^\S*gcc .* -c -o src/", line)]
    wanted = ["-fstack-clash-protection"]
    if output("dpkg", "--print-architecture").strip() in ("amd64", "i386"):
        wanted.append("-fcf-protection")
    assert compiled and all(flag in line.split() for line in compiled for flag in wanted)


def test_programs_contain_no_build_path(unpacked):
    for program in PROGRAMS:
        assert str(WORK).encode() not in (unpacked / program).read_bytes()


def test_no_program_has_a_crash_point(unpacked):
    for program in PROGRAMS:
        assert b"GATEPOST_CRASH_POINT" not in (unpacked / program).read_bytes()


def test_daemon_links_only_permitted_libraries(unpacked):
    needed = set(re.findall(r"Shared library: \[lib(\w+)", output("readelf", "-d", unpacked / "usr/sbin/gatepostd")))
    assert needed <= {"c", "m", "event_core", "event_extra", "event_openssl", "ssl", "crypto", "yajl", "rdkafka"}


def test_package_depends_on_sysusers_and_tmpfiles(deb):
    """For systems without systemd, such as containers, both have separate packages."""
    needed = output("dpkg-deb", "-f", deb, "Depends").replace(" ", "").strip().split(",")
    for what in ("sysusers", "tmpfiles"):
        assert f"systemd|systemd-standalone-{what}|systemd-{what}" in needed, needed


def test_lintian_finds_nothing(deb):
    changes, = deb.parent.glob("*.changes")
    assert output("lintian", "--allow-root", "--display-info", "--fail-on=error,warning,info", changes) == ""


def test_shells_complete_by_what_is_installed(unpacked):
    script = unpacked / "usr/share/bash-completion/completions/gatepost"
    assert "complete " in script.read_text()
    output("bash", "-n", script)


def test_building_leaves_foreign_files_alone(deb):
    """tests/package/run creates them before it builds."""
    assert (deb.parent / "gatepost_notes").read_text() == "foreign\n"
    assert (deb.parent / deb.name.partition("-")[0].replace("_", "-") / "foreign").exists()
