# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Releases: what is refused, what one makes, and the same archive to the byte from any clone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Mapping, Sequence

import pytest
import yaml

from . import archive, publish
from .conftest import CHECKOUT, copied
from .importer import NOWHERE

AUTHOR = {
    "GIT_AUTHOR_NAME": "Somebody",
    "GIT_AUTHOR_EMAIL": "somebody@example.org",
    "GIT_COMMITTER_NAME": "Somebody",
    "GIT_COMMITTER_EMAIL": "somebody@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


def git(directory: Path, *arguments: str) -> str:
    command = ["git", "-C", str(directory), *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **AUTHOR})
    return done.stdout.strip()


def python(checkout: Path, *arguments: str, umask: int = -1, prefix: Sequence[str] = (), **environment: str) -> str:
    """Return what the command of a checkout prints, whatever its status is."""
    done = subprocess.run(
        [*prefix, sys.executable, "tests/release", *arguments],
        cwd=checkout,
        env={**os.environ, **AUTHOR, **environment},
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        umask=umask,
    )
    return done.stdout


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with what is checked out here as its one commit."""
    directory = tmp_path_factory.mktemp("origin") / "repository"
    copied([], directory)
    # As before the first release, whatever was released since.
    fragment = directory / "changelogs" / "fragments" / "one.yml"
    fragment.parent.mkdir(exist_ok=True)
    fragment.write_text("minor_changes:\n  - A change.\n", encoding="utf-8")
    (directory / "changelogs" / "changelog.yaml").write_text("ancestor: 0.0.0\nreleases: {}\n", encoding="utf-8")
    git(directory.parent, "init", "--quiet", "--initial-branch=main", str(directory))
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message=All")
    return directory


@pytest.fixture
def clone(origin: Path, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "--quiet", "--no-hardlinks", str(origin), "clone")
    return tmp_path / "clone"


@pytest.fixture
def checked(clone: Path, tools: Path) -> Path:
    """Return a clone with the importer of this checkout, which takes a minute to install."""
    (clone / ".cache").mkdir()
    (clone / ".cache" / "release-tools").symlink_to(CHECKOUT / ".cache" / "release-tools")
    return clone


def state(checkout: Path) -> tuple[str, str, str, str]:
    """Return what a release may change: the branch, the tags, the files, the other places of the repository."""
    return (
        git(checkout, "rev-parse", "HEAD"),
        git(checkout, "tag", "--list"),
        git(checkout, "status", "--porcelain"),
        git(checkout, "worktree", "list").split()[0],
    )


def name_of_archive(checkout: Path) -> str:
    version = yaml.safe_load((checkout / "galaxy.yml").read_text("utf-8"))["version"]
    return "kubenode-cpu_manager-%s.tar.gz" % version


# Of what a release is said to be, beside its archive.
NAME = "kubenode-cpu_manager-1.0.0"
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
sys.exit(str(error) if error else 0)
"""


def test_a_release_is_prepared_and_nothing_is_committed(checked: Path, tools: Path) -> None:
    clone = checked
    fragments = {path.name for path in (clone / "changelogs" / "fragments").iterdir()}
    assert fragments
    before = state(clone)
    said = python(clone, "release", "1.0.0")
    made = clone / "build" / (NAME + ".tar.gz")
    assert made.exists(), said
    assert archive.sha256(made) in said
    # What stands in for the repository in the check is not in what is released.
    assert archive.metadata_of(made).get("repository") != NOWHERE
    assert archive.metadata_of(made)["version"] == "1.0.0"
    head, tags, _status, places = state(clone)
    assert (head, tags, places) == (before[0], before[1], before[3])
    # The fragments are in the changelog, and gone.
    assert list((clone / "changelogs").glob("fragments/*")) == []
    log = yaml.safe_load((clone / "changelogs" / "changelog.yaml").read_text("utf-8"))
    assert set(log["releases"]["1.0.0"]["fragments"]) == fragments
    page = (clone / "CHANGELOG.md").read_text("utf-8")
    assert r"## v1\.0\.0" in page
    with tarfile.open(made) as tar:
        assert tar.extractfile("CHANGELOG.md").read().decode("utf-8") == page  # type: ignore[union-attr]
    # Modules of 0.1.0, which was not released here, are new, too.
    modules = {path.stem for path in (clone / "plugins" / "modules").glob("*.py")} - {"__init__"}
    assert {module["name"] for module in log["releases"]["1.0.0"]["modules"]} == modules
    assert git(clone, "diff", "--name-only", "--diff-filter=d").split() == [
        "CHANGELOG.md",
        "changelogs/changelog.yaml",
        "docs/docsite/rst/awx.rst",
        "docs/docsite/rst/pipeline.rst",
        "galaxy.yml",
        "plugins/module_utils/_saved/files_of_machine.py",
    ]
    # The version before is nowhere else, but where it says since when something is there.
    lines = git(clone, "grep", "-hF", "0.1.0", "--", ":!changelogs", ":!tests", ":!*package-lock.json").splitlines()
    assert {line.split(":")[0].strip() for line in lines} == {"version_added"}

    # Its checksums are those of its files, and what it needs is a valid list with the hash of each.
    said = subprocess.check_output(["sha256sum", "--check", NAME + ".tar.gz.sha256"], cwd=made.parent, text=True)
    assert said.split() == [NAME + ".tar.gz:", "OK", NAME + ".cdx.json:", "OK"]
    needed = (made.parent / (NAME + ".cdx.json")).read_text("utf-8")
    subprocess.run([tools / "python", "-c", VALIDATE], input=needed, text=True, check=True)
    names = {component["name"]: component for component in json.loads(needed)["components"]}
    assert {"ansible-core", "kubernetes", "jinja2", "pyyaml", "kubernetes.core"} <= set(names)
    assert all(len(component["hashes"]) == 1 for name, component in names.items() if name != "kubernetes.core")

    # A person commits and tags it. Whoever doubts it builds it again.
    git(clone, "commit", "--quiet", "--all", "--message=Release 1.0.0")
    git(clone, "tag", "1.0.0")
    assert git(clone, "status", "--porcelain") == ""
    git(clone.parent, "clone", "--quiet", "--branch=1.0.0", str(clone), "again")
    assert archive.sha256(made) in python(clone.parent / "again", "build")
    # Only once, and only upwards.
    again = state(clone)
    assert "the tag 1.0.0 is there already" in python(clone, "release", "1.0.0")
    assert "1.0.0-rc.1 is not above 1.0.0" in python(clone, "release", "1.0.0-rc.1")
    assert "0.9.9 is not above 1.0.0" in python(clone, "release", "0.9.9")
    assert "says of no change" in python(clone, "release", "1.1.0")
    assert state(clone) == again


def dirty(clone: Path) -> None:
    (clone / "README.md").write_text("other\n", encoding="utf-8")


def untracked(clone: Path) -> None:
    (clone / "plugins" / "other.py").write_text("", encoding="utf-8")


def tagged(clone: Path) -> None:
    git(clone, "tag", "0.2.0")


def tagged_above(clone: Path) -> None:
    git(clone, "tag", "0.10.0")


def unchanged(clone: Path) -> None:
    pass


def without_changelog(clone: Path) -> None:
    """Have antsibull-changelog fail after the first file was written."""
    (clone / "changelogs" / "config.yaml").write_text("sections: no list\n", encoding="utf-8")
    git(clone, "commit", "--quiet", "--all", "--message=Damage it")


@pytest.mark.parametrize(
    ("prepare", "version", "message"),
    [
        (dirty, "0.2.0", "there are changes that are not committed:\nM README.md"),
        (untracked, "0.2.0", "there are changes that are not committed:\n?? plugins/other.py"),
        (tagged, "0.2.0", "the tag 0.2.0 is there already"),
        (tagged_above, "0.2.0", "0.2.0 is not above 0.10.0, the last release"),
        (tagged_above, "0.10.0-rc.1", "0.10.0-rc.1 is not above 0.10.0, the last release"),
        (unchanged, "0.2", "'0.2' is no semantic version"),
        (unchanged, "v0.2.0", "'v0.2.0' is no semantic version"),
        (unchanged, "0.02.0", "'0.02.0' is no semantic version"),
        (unchanged, "0.2.0-01", "'0.2.0-01' is no semantic version"),
        (unchanged, "", "'' is no semantic version"),
        (without_changelog, "0.2.0", "antsibull-changelog"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_is_refused_changes_nothing(clone: Path, prepare: object, version: str, message: str) -> None:
    assert callable(prepare)
    prepare(clone)
    before = state(clone)
    assert message in python(clone, "release", version)
    assert state(clone) == before


def test_what_a_server_refuses_is_no_release(checked: Path) -> None:
    galaxy = checked / "galaxy.yml"
    wrong = galaxy.read_text("utf-8").replace("- GPL-3.0-or-later", "- no such licence")
    galaxy.write_text(wrong, encoding="utf-8")
    git(checked, "commit", "--quiet", "--all", "--message=Damage it")
    before = state(checked)
    said = python(checked, "release", "0.2.0")
    assert "the importer of the servers of collections refuses the archive" in said
    assert "no such licence" in said
    assert state(checked) == before
    assert not list(checked.glob("build/*.tar.gz"))


def test_versions_are_ordered_as_semver_says() -> None:
    ordered = [
        "0.9.0", "0.10.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2",
        "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1",
    ]  # fmt: skip
    backwards = ordered[::-1]
    assert sorted(backwards, key=publish.key_of) == ordered


@pytest.mark.needs("unshare")
def test_the_same_archive_from_any_clone(origin: Path, tmp_path: Path) -> None:
    """At other times, in other places, with another umask, language, time zone, and as another user."""
    ways: dict[str, tuple[int, Sequence[str], Mapping[str, str]]] = {
        "one": (0o022, (), {}),
        "two": (0o077, (), {"TZ": "Asia/Kolkata", "LC_ALL": "C.UTF-8"}),
        # All files are this user's, too.
        "three": (0o002, ("unshare", "--user", "--map-user=1234", "--map-group=2345"), {"HOME": str(tmp_path)}),
    }
    checksums = {}
    for number, (name, (umask, prefix, environment)) in enumerate(ways.items()):
        checkout = tmp_path / name / ("deeper" * number) / "clone"
        checkout.parent.mkdir(parents=True)
        git(tmp_path, "clone", "--quiet", "--no-hardlinks", str(origin), str(checkout))
        for path in [checkout, *checkout.rglob("*")]:
            if number and ".git" not in path.parts:
                os.utime(path, (1e9 * number, 1e9 * number), follow_symlinks=False)
        # What work leaves behind is in no archive.
        (checkout / "plugins" / "left-over").mkdir()
        said = python(checkout, "build", umask=umask, prefix=prefix, **environment)
        made = checkout / "build" / name_of_archive(checkout)
        assert made.is_file(), said
        checksums[name] = archive.sha256(made)
        assert checksums[name] in said
    assert len(set(checksums.values())) == 1, checksums
    with tarfile.open(made) as tar:
        members = tar.getmembers()
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members} == {(0, 0, "", "")}
    assert {member.mode for member in members} <= {0o644, 0o755}
    assert {int(member.mtime) for member in members} == {int(git(origin, "log", "-1", "--format=%ct"))}


def test_a_user_gets_nothing_that_is_only_for_work_on_it(origin: Path, tmp_path: Path) -> None:
    shutil.copytree(origin, tmp_path / "copy")
    with tarfile.open(archive.build(tmp_path / "copy", tmp_path)) as tar:
        names = tar.getnames()
    sections = yaml.safe_load((origin / "docs/docsite/extra-docs.yml").read_text("utf-8"))["sections"]
    guides = {"docs/docsite/rst/%s.rst" % page for section in sections for page in section["toctree"]}
    assert guides - set(names) == set()
    tops = {name.partition("/")[0] for name in names}
    assert {"plugins", "roles", "playbooks", "meta", "docs", "README.md", "LICENSE", "CHANGELOG.md"} <= tops
    assert not tops & {
        "tests",
        "demo",
        "build",
        "Makefile",
        "RELEASING.md",
        "pyproject.toml",
        "requirements.txt",
        ".git",
        ".venv",
    }
    assert not [name for name in names if name.endswith((".pyc", "~", ".orig", ".swp"))]
