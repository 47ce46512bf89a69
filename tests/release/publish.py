# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A release: the version, the changelog, and the archive that servers take. All of it or nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from . import archive, importer, sbom

# Source: semver.org, without its metadata of builds, by which nothing is ordered.
_NUMBER = r"(0|[1-9][0-9]*)"
_WORD = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMANTIC = re.compile(r"%s\.%s\.%s(?:-(%s(?:\.%s)*))?" % (_NUMBER, _NUMBER, _NUMBER, _WORD, _WORD))
# Where the version stands: {file: what is before and behind it on its line}.
_VERSIONS = {
    "galaxy.yml": ("version: ", ""),
    "docs/docsite/rst/awx.rst": ("     - name: https://files.example.com/kubenode-cpu_manager-", ".tar.gz"),
    "docs/docsite/rst/pipeline.rst": ("       rev: ", ""),
    "plugins/module_utils/_saved/files_of_machine.py": ('COLLECTION = "', '"'),
}
# What a release changes, and nothing else.
_CHANGED = ("CHANGELOG.md", "changelogs", *_VERSIONS)


class RefusedError(Exception):
    """There is no such release. The message says why, and nothing was changed."""


# Numbers are compared as numbers, and are lower than words; a release comes after its candidates.
Key = tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]


def key_of(version: str) -> Key:
    """Return what orders versions. Raises RefusedError where it is no semantic version."""
    found = _SEMANTIC.fullmatch(version)
    if found is None:
        raise RefusedError("%r is no semantic version such as 1.4.0 or 1.4.0-rc.1" % version)
    major, minor, patch, candidate = found.groups()
    words = tuple(
        (not word.isdigit(), int(word) if word.isdigit() else 0, word) for word in (candidate or "").split(".") if word
    )
    return (int(major), int(minor), int(patch)), not words, words


def release(checkout: Path, version: str, output: Path) -> list[Path]:
    """Prepare a release of what is checked out, and return its files: the archive, its SBOM, and their checksums.

    Its changes are in the files of the checkout, to be committed and tagged by a person. It is prepared in a place of
    its own: until everything is there, the checkout stays as it is. Raises RefusedError and CalledProcessError.
    """
    _check(checkout, version)
    with TemporaryDirectory() as temporary:
        tree = Path(temporary) / "tree"
        _git(checkout, "worktree", "add", "--quiet", "--detach", str(tree), "HEAD")
        try:
            _write(tree, version)
            _git(tree, "add", "--all", *_CHANGED)
            changes = Path(temporary) / "changes"
            _git(tree, "diff", "--cached", "--binary", "--output", str(changes))
            # What the tools left there is in no release.
            _git(tree, "clean", "-dfx", "--quiet")
            made = archive.build(tree, Path(temporary))
            files = [made, sbom.write(made, tree)]
        finally:
            _git(checkout, "worktree", "remove", "--force", str(tree))
        check_archive(made)
        sums = made.with_suffix(".gz.sha256")
        sums.write_text("".join("%s  %s\n" % (archive.sha256(file), file.name) for file in files), encoding="utf-8")
        output.mkdir(parents=True, exist_ok=True)
        released = [Path(shutil.copy(file, output)) for file in [*files, sums]]
        _git(checkout, "apply", str(changes))
    return released


def check_archive(made: Path) -> None:
    """Raise RefusedError where a server would not take an archive, or has a remark on it."""
    verdict = importer.check_release(made)
    if not verdict.is_clean:
        raise RefusedError("the importer of the servers of collections refuses the archive:\n%s" % verdict.output)


def _check(checkout: Path, version: str) -> None:
    key = key_of(version)
    changed = _git(checkout, "status", "--porcelain")
    if changed:
        raise RefusedError("there are changes that are not committed:\n%s" % changed)
    tags = _git(checkout, "tag", "--list").splitlines()
    if version in tags:
        raise RefusedError("the tag %s is there already" % version)
    log = yaml.safe_load((checkout / "changelogs" / "changelog.yaml").read_text("utf-8"))
    done = {*(log.get("releases") or {}), *(tag for tag in tags if _SEMANTIC.fullmatch(tag))}
    last = max(done, key=key_of, default="")
    if last and key <= key_of(last):
        raise RefusedError("%s is not above %s, the last release" % (version, last))
    if not any((checkout / "changelogs" / "fragments").glob("*.y*ml")):
        raise RefusedError("changelogs/fragments says of no change that this release brings")


def _write(tree: Path, version: str) -> None:
    for name, (before, behind) in _VERSIONS.items():
        text = (tree / name).read_text("utf-8")
        text, found = re.subn("(?m)^%s.*$" % re.escape(before), before + version + behind, text)
        if found != 1:
            raise RefusedError("%s is to have one line that begins with %r" % (name, before))
        (tree / name).write_text(text, encoding="utf-8")
    # Cumulative: modules that were written for a version that was never released are new, too.
    command = ["antsibull-changelog", "release", "--cummulative-release", "--version", version]
    subprocess.run(command, check=True, cwd=tree)


def _git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(directory), *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()
