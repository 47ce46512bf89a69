# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A directory of another user, as that of node_exporter's textfiles is on Debian, and what he puts into it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

NOBODY = 65534
# What can stand in a file's place that a rename replaces.
KINDS = ("nothing", "file", "fifo", "device", "link", "link to nothing", "hard link")
_JOURNAL = b"the journal\n"


class Foreign:
    """Attributes: directory, of the other user; figures, the file that is to be written there; journal, of root's."""

    def __init__(self, root: Path) -> None:
        self.directory = root / "metrics/textfiles"
        self.directory.mkdir(parents=True)
        self.figures = self.directory / "cpu.prom"
        self.journal = root / "journal/change.json"
        self.journal.parent.mkdir()
        self.journal.write_bytes(_JOURNAL)
        self.journal.chmod(0o600)
        if os.geteuid() == 0:
            for path in (self.directory.parent, self.directory):
                os.chown(path, NOBODY, NOBODY)
        else:
            self.directory.parent.chmod(0o777)

    def put(self, kind: str) -> None:
        """Put something in the place of the figures."""
        if kind == "file":
            self.figures.write_text("old\n")
        elif kind == "fifo":
            os.mkfifo(self.figures)
        elif kind == "device":
            # The terminal of who opens it: an error where there is none.
            os.mknod(self.figures, stat.S_IFCHR | 0o666, os.makedev(5, 0))
        elif kind == "link":
            self.figures.symlink_to(self.journal)
        elif kind == "link to nothing":
            self.figures.symlink_to(self.journal.parent / "new.json")
        elif kind == "hard link":
            os.link(self.journal, self.figures)

    def check(self, line: bytes) -> None:
        """Check that the figures are a file of root's with this line, and that nothing else was touched."""
        status = self.figures.lstat()
        assert stat.S_ISREG(status.st_mode)
        assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_nlink) == (0o644, os.geteuid(), 1)
        assert line in self.figures.read_bytes()
        assert os.listdir(self.directory) == [self.figures.name]
        self.check_journal()

    def check_journal(self) -> None:
        """Check that root's journal is as it was."""
        assert os.listdir(self.journal.parent) == [self.journal.name]
        assert self.journal.read_bytes() == _JOURNAL
        assert stat.S_IMODE(self.journal.stat().st_mode) == 0o600
