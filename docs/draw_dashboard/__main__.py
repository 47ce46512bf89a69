# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draws the dashboard of extensions/monitoring as images/dashboard.png of the guide monitor.rst:
python docs/draw_dashboard

Prometheus gets the samples of samples.py and answers the expressions of the dashboard; Grafana's own components draw
the answers in Chromium. It takes prometheus, promtool, chromium, node and npm, and the package index at its first run.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
sys.path.insert(0, str(CHECKOUT / "tests"))

import collection_path

collection_path.register()

import samples

from ansible_collections.kubenode.cpu_manager.tests.browser.chromium import CHROMIUM

DASHBOARD = CHECKOUT / "extensions" / "monitoring" / "dashboard.json"
PICTURE = CHECKOUT / "docs" / "docsite" / "rst" / "images" / "dashboard.png"
PACKAGES = CHECKOUT / "build" / "dashboard"
# The keyword of the text in the picture that says of which dashboard it is: its SHA-256.
KEYWORD = b"dashboard.json"
# What is chosen above the panels.
CHOSEN = {"fleet": [samples.FLEET], "instance": [samples.STATIC, samples.DYNAMIC]}
SIGNATURE = b"\x89PNG\r\n\x1a\n"


# --- the data -----------------------------------------------------------------------------------------


@contextmanager
def prometheus(directory: Path) -> Iterator[str]:
    """Yield the address of a Prometheus on the loopback interface that has the samples."""
    with open(directory / "samples", "w", encoding="utf-8") as file:
        file.writelines(samples.samples())
    store = directory / "store"
    fill = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", "--max-block-duration=168h"]
    subprocess.run([*fill, file.name, str(store)], check=True)
    (directory / "prometheus.yml").write_text("{}\n", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    command = [
        "prometheus",
        "--config.file=%s" % (directory / "prometheus.yml"),
        "--storage.tsdb.path=%s" % store,
        # The samples stay, whatever today is.
        "--storage.tsdb.retention.time=100y",
        "--web.listen-address=127.0.0.1:%d" % port,
        "--log.level=error",
    ]
    address = "http://127.0.0.1:%d" % port
    with subprocess.Popen(command) as process:
        try:
            _wait(address, process)
            yield address
        finally:
            process.terminate()


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    for _attempt in range(300):
        if process.poll() is not None:
            break
        try:
            with urlopen(address + "/-/ready", timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise SystemExit("Prometheus did not start")


def answers(address: str, dashboard: dict[str, Any]) -> dict[int, list[Any]]:
    """Return what Prometheus answers to the expressions of each panel, by its id."""
    return {
        panel["id"]: [_asked(address, target) for target in panel["targets"]]
        for panel in dashboard["panels"]
        if panel["type"] != "row"
    }


def _asked(address: str, target: dict[str, Any]) -> Any:
    expression = re.sub(r"[$](\w+)", lambda name: "|".join(CHOSEN[name[1]]), target["expr"])
    end = int(samples.END.timestamp())
    if target.get("instant"):
        path, moments = "query", {"time": end}
    else:
        path, moments = "query_range", {"start": int(samples.BEGIN.timestamp()), "end": end, "step": samples.STEP}
    with urlopen(
        "%s/api/v1/%s?%s" % (address, path, urlencode({"query": expression, **moments})), timeout=60
    ) as answer:
        return json.load(answer)["data"]["result"]


# --- the picture --------------------------------------------------------------------------------------


def install() -> Path:
    """Return the folder of the packages of package.json, which are installed where they are not."""
    lock, installed = HERE / "package-lock.json", PACKAGES / "installed.json"
    if not installed.is_file() or installed.read_bytes() != lock.read_bytes():
        PACKAGES.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", lock.name):
            shutil.copy(HERE / name, PACKAGES / name)
        subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=PACKAGES, check=True
        )
        shutil.copy(lock, installed)
    return PACKAGES / "node_modules"


def labelled(picture: bytes, dashboard: bytes) -> bytes:
    """Return the picture with the SHA-256 of the dashboard in a chunk of text, right behind its header."""
    chunks = list(_chunks(picture))
    text = KEYWORD + b"\0" + hashlib.sha256(dashboard).hexdigest().encode("ascii")
    return SIGNATURE + b"".join(_chunk(*chunk) for chunk in (chunks[0], (b"tEXt", text), *chunks[1:]))


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(SIGNATURE)
    while place < len(picture):
        length, kind = struct.unpack_from(">I4s", picture, place)
        yield kind, picture[place + 8 : place + 8 + length]
        place += length + 12


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def main() -> None:
    """Draw the dashboard."""
    if CHROMIUM is None:
        raise SystemExit("there is no Chromium")
    text = DASHBOARD.read_bytes()
    dashboard = json.loads(text)
    modules = install()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        with prometheus(directory) as address:
            results = answers(address, dashboard)
        job = {
            "modules": str(modules),
            "chromium": CHROMIUM,
            "picture": str(directory / "dashboard.png"),
            "data": {
                "dashboard": dashboard,
                "answers": results,
                "chosen": {"source": ["Prometheus"], **CHOSEN},
                "begin": samples.BEGIN.timestamp() * 1000,
                "end": samples.END.timestamp() * 1000,
                "step": samples.STEP * 1000,
            },
        }
        (directory / "job.json").write_text(json.dumps(job), encoding="utf-8")
        subprocess.run(["node", str(HERE / "draw.js"), str(directory / "job.json")], check=True)
        PICTURE.write_bytes(labelled((directory / "dashboard.png").read_bytes(), text))


if __name__ == "__main__":
    main()
