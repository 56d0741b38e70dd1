"""The release: complete and reproducible."""

import hashlib
import os
import stat
import subprocess
import tarfile

import pytest

from conftest import ROOT, WORK

# Added by autotools.
GENERATED = {"Makefile.in", "aclocal.m4", "configure", *(f"build-aux/{name}" for name in (
    "ar-lib", "compile", "depcomp", "install-sh", "missing", "test-driver"))}


def git(*arguments):
    return subprocess.run(["git", "-c", "safe.directory=*", "-C", ROOT, *arguments], stdout=subprocess.PIPE, check=True,
                          text=True).stdout


@pytest.fixture(scope="module")
def members(tarball):
    with tarfile.open(tarball) as archive:
        return {member.name.partition("/")[2]: member for member in archive if not member.isdir()}


@pytest.fixture(scope="module")
def tree(tarball, tmp_path_factory):
    """An unpacked release."""
    directory = tmp_path_factory.mktemp("release")
    with tarfile.open(tarball) as archive:
        archive.extractall(directory)
    return directory / tarball.name.removesuffix(".tar.gz")


def run_in(tree, script, *arguments):
    return subprocess.run([f"./{script}", *arguments], cwd=tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a release has no git")
def test_release_has_exactly_the_files_of_the_repository(members):
    assert set(members) - GENERATED == set(git("ls-files").splitlines())


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a release has no git")
def test_release_keeps_executable_permissions(members):
    executable = {line.partition("\t")[2] for line in git("ls-files", "-s").splitlines() if line.startswith("100755")}
    assert {name for name, member in members.items() if member.mode & stat.S_IXUSR} - GENERATED == executable


def test_only_one_script_installs_packages(tree):
    """Packages installed by another script would be missing where that script has not run."""
    scripts = [path for path in tree.rglob("*") if path.is_file() and path.read_bytes().startswith(b"#!")]
    assert {path.relative_to(tree).as_posix() for path in scripts if "apt-get" in path.read_text(errors="replace")
            } == {"packaging/install-packages"}


def test_release_has_no_builder_metadata(members):
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members.values()} == {(0, 0, "", "")}
    assert len({member.mtime for member in members.values()}) == 1
    assert {member.mode for member in members.values()} == {0o644, 0o755}


def test_release_is_reproducible(tarball, tmp_path):
    made = WORK / "release" / tarball.name
    made.unlink(missing_ok=True)
    (ROOT / "COPYING").touch()
    subprocess.run(["make", "-C", WORK / "release", "-s", "--no-print-directory", "dist"], check=True, umask=0o077,
                   env={**os.environ, "LC_ALL": "C", "TZ": "Asia/Tokyo"}, stdin=subprocess.DEVNULL)
    assert hashlib.sha256(made.read_bytes()).digest() == hashlib.sha256(tarball.read_bytes()).digest()


@pytest.mark.parametrize("script", ["tests/layers", "tests/format", "tests/run --help", "tests/fuzz/run --help",
                                    "tests/package/run --help", "quickstart --help",
                                    "packaging/install-packages --help"])
def test_scripts_work_in_an_unpacked_release(tree, script):
    done = run_in(tree, *script.split())
    assert done.returncode == 0, done.stdout
