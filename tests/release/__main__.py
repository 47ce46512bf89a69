# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collection as users get it, from a plain checkout:

python tests/release build              # builds the archive of what is checked out below build/
python tests/release release VERSION    # writes the version and the changelog, and makes the archive, which is checked
python tests/release import-check       # has the importer of the servers check an archive
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import collection_path

collection_path.register()

# Only now, as the collection is importable.
from ansible_collections.kubenode.cpu_manager.tests.release import archive, importer, publish  # noqa: E402

CHECKOUT = archive.checkout()


def build(_options: argparse.Namespace) -> str:
    archive.write_pages(CHECKOUT)
    made = archive.build(CHECKOUT, CHECKOUT / "build")
    return "%s  %s" % (archive.sha256(made), made.relative_to(CHECKOUT))


def release(options: argparse.Namespace) -> str:
    files = publish.release(CHECKOUT, options.version, CHECKOUT / "build")
    _remind_of_repository(files[0])
    print("%s is prepared, and nothing is committed: see RELEASING.md." % options.version)
    return "\n".join("%s  %s" % (archive.sha256(file), file.relative_to(CHECKOUT)) for file in files)


def import_check(_options: argparse.Namespace) -> str:
    with TemporaryDirectory() as temporary:
        made = archive.build(CHECKOUT, Path(temporary))
        _remind_of_repository(made)
        publish.check_archive(made)
    return "The importer takes the archive, without a remark."


def _remind_of_repository(made: Path) -> None:
    if not archive.metadata_of(made).get("repository"):
        print("galaxy.yml names no repository, which a server wants: %s stood in for it." % importer.NOWHERE)


def main() -> None:
    """Do one of these. Ends with the status 1 and the reason where it cannot be done."""
    parser = argparse.ArgumentParser(
        prog="python tests/release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for work in (build, release, import_check):
        command = commands.add_parser(work.__name__.replace("_", "-"))
        command.set_defaults(work=work)
        if work is release:
            command.add_argument("version", metavar="VERSION", help="a semantic version above the last release")
    options = parser.parse_args()
    try:
        print(options.work(options))
    except publish.RefusedError as error:
        parser.exit(1, "%s\n" % error)
    except subprocess.CalledProcessError as error:
        parser.exit(1, "%s failed with the status %d\n" % (error.cmd, error.returncode))


if __name__ == "__main__":
    main()
