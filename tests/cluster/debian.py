# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages of the Debian release that runs here, and of newer ones, unpacked and never installed.

No need to be root, and nothing changes. They come from where apt is configured to get them. Its lists and downloads are
kept apart from those of the machine.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Sequence

_CONFIGURATION = """\
Dir::Etc::sourcelist "{directory}/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "{directory}/lists";
Dir::Cache "{directory}/cache";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
Acquire::Retries "5";
"""


class UnavailableError(Exception):
    """What is asked for cannot be had on this machine. The message says why."""


class Archive:
    """The archive of a release, by its code name. `directory` is for its files, and is made.

    newer: another release, whose packages come from the same place.
    Raises UnavailableError where this machine has another release, or cannot reach the archive.
    """

    def __init__(self, codename: str, directory: Path, newer: str = "") -> None:
        found = release()
        if found != codename:
            raise UnavailableError("this machine runs %s, not Debian %s" % (found or "no Debian", codename))
        for command in ("apt-get", "dpkg-deb", "dpkg-source"):
            if shutil.which(command) is None:
                raise UnavailableError("the command %s is missing" % command)
        self.directory = directory
        for name in ("lists/partial", "cache/archives/partial"):
            (directory / name).mkdir(parents=True)
        sources = _sources_of_newer(codename, newer) if newer else _sources(codename)
        (directory / "sources.list").write_text("".join(line + "\n" for line in sources), encoding="utf-8")
        (directory / "apt.conf").write_text(_CONFIGURATION.format(directory=directory), encoding="utf-8")
        self._apt("update")

    def unpack(self, packages: Sequence[str], target: Path) -> None:
        """Unpack binary packages, without what they depend on."""
        for archive in self._download(["download", *packages], ".deb"):
            _run(["dpkg-deb", "--extract", str(archive), str(target)])

    def unpack_source(self, package: str, target: Path) -> None:
        """Unpack a source package with Debian's patches."""
        (description,) = self._download(["source", "--download-only", package], ".dsc")
        # apt has checked it already.
        _run(["dpkg-source", "--no-check", "--extract", str(description), str(target)])

    def _download(self, arguments: Sequence[str], ending: str) -> list[Path]:
        downloads = self.directory / "downloads"
        shutil.rmtree(downloads, ignore_errors=True)
        downloads.mkdir()
        self._apt(*arguments, directory=downloads)
        return sorted(downloads.glob("*" + ending))

    def _apt(self, *arguments: str, directory: Path | None = None) -> None:
        environment = {**os.environ, "APT_CONFIG": str(self.directory / "apt.conf")}
        try:
            _run(["apt-get", "-qq", *arguments], directory, environment)
        except subprocess.CalledProcessError as error:
            raise UnavailableError("apt-get %s: %s" % (" ".join(arguments), error.output.strip())) from error


def release() -> str:
    """Return the code name of the Debian release that runs here; empty where it is another system."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        return ""
    return system.get("VERSION_CODENAME", "") if system["ID"] == "debian" else ""


def _sources(codename: str) -> list[str]:
    """Return the entries of apt's configuration for a release, each also for source packages."""
    entries = _entries(codename, (codename, codename + "-security"))
    return ["%s %s" % (kind, " ".join(entry)) for kind in ("deb", "deb-src") for entry in entries]


def _sources_of_newer(codename: str, newer: str) -> list[str]:
    """Return the entries of apt's configuration for a release as they are for another one."""
    entries = _entries(codename, (codename,))
    return ["deb %s %s %s" % (place, newer, component) for place, _release, component in entries]


def _entries(codename: str, names: Sequence[str]) -> list[list[str]]:
    """Place, release and component of what apt is configured for, of these names of a release."""
    form = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
    listed = _run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"]).splitlines()
    entries = [entry for entry in map(str.split, listed) if entry[1] in names]
    if not entries:
        raise UnavailableError("apt is not configured for Debian %s" % codename)
    return entries


def _run(command: Sequence[str], directory: Path | None = None, environment: dict[str, str] | None = None) -> str:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        cwd=directory,
        env=environment,
    ).stdout
