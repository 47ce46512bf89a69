# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes and names the files of reports, on the controller. Several may be written to one directory at once."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from typing import Iterable
from urllib.parse import quote

from ...files import cannot_write

_MODE = 0o644
# Of what takes the name's place while a file is written: no two runs have the same.
_RANDOM = 8
# What runs that are killed leave: below the directory of a report, and below its results.
_LEFT = {
    "": re.compile(r"drift\.[a-z]+\.[0-9a-f]{1,16}~|\.progress-[0-9a-f]{1,16}"),
    "nodes": re.compile(r".+\.json\.[0-9a-f]{1,16}~", re.DOTALL),
}
# Another machine may write to the same directory, so its processes are unknown here. No run takes so long, in seconds.
_AGE = 86400
# Of a file's name; the system takes 255.
_LONGEST_NAME = 200


def stem_of(*names: str) -> str:
    """A part of a file's name that is made of names, such as of a host, and that no other ones give.

    No name leads out of the directory, whatever the inventory calls a host.
    """
    # Half a character, as JSON may have it, is a part of a name, too.
    first, *more = (quote(name, safe="", errors="surrogatepass") for name in names)
    stem = "-".join([first, *(name.replace("-", "%2D") for name in more)])
    stem = stem if stem.strip(".") else stem.replace(".", "%2E")
    if len(stem) > _LONGEST_NAME:
        # Imported here: hardly any name is so long.
        from hashlib import sha256

        stem = stem[:_LONGEST_NAME] + "-" + sha256(stem.encode("ascii")).hexdigest()[:16]
    return stem


def put_file(path: str, parts: Iterable[str]) -> None:
    """Write a text to `path`, as put_bytes() does."""
    # Half a character, as JSON may have it, is no UTF-8.
    put_bytes(path, (part.encode("utf-8", "backslashreplace") for part in parts))


def put_bytes(path: str, parts: Iterable[bytes]) -> None:
    """Write a file to `path`, whole or not at all; its directory is made where there is none.

    A reader sees the old or the new content. A link in the place of the file is replaced, not followed.
    Raises NodeError.
    """
    temporary = "%s.%s~" % (path, os.urandom(_RANDOM).hex())
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
        try:
            with open(descriptor, "wb") as file:
                file.writelines(parts)
                file.flush()
                os.fsync(descriptor)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise cannot_write(path, error) from error


def sweep(directory: str, now: float) -> None:
    """Remove what killed runs left in the directory of a report, where that can be done."""
    for place, pattern in _LEFT.items():
        with suppress(OSError), os.scandir(os.path.join(directory, place)) as entries:
            for entry in entries:
                if pattern.fullmatch(entry.name):
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode) and now - status.st_mtime > _AGE:
                            os.unlink(entry.path)
