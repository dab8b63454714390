# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Applications as data: how a server and a client are started, and what the client's words mean.

Real servers and clients, with configurations of their own in a private folder: nothing of this
machine's is read or touched. The numbers are what users of a function feel: payload, not frames.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convoy.errors import ConvoyError
from convoy.run.two_hosts import FTP, FTP_DATA, HTTP, IPERF, SERVER

UDP_OVERHEAD_BYTES = 14 + 20 + 8 + 4  # Ethernet, IPv4, UDP, FCS
PAGE_BYTES = 1024  # of the web page
FILE_BYTES = 1 << 34  # of the file: more than anybody fetches; it has holes and takes no space
CONNECTIONS = 16  # of the web's client
_CURL_TIME_IS_UP = 28
_SBIN = ":/usr/sbin:/sbin"

Figures = dict[str, float]


@dataclass(frozen=True)
class Application:
    """A server, a client, and the meaning of what that prints."""

    name: str
    title: str
    figure: str  # of its figures, the one that is compared
    programs: Mapping[str, str]  # what it needs, and Debian's packages
    port: int  # TCP, where the server listens
    server: Callable[[Path], list[str]]  # by the folder that holds files
    client: Callable[[Path, int, int], list[str]]  # folder, seconds, frame bytes (0: any)
    read: Callable[[str, int], Figures]  # what the client printed, how it ended
    files: Callable[[Path], Mapping[str, str]] = lambda folder: {}
    by_size: bool = False

    def missing(self) -> str:
        """Return what is not installed, or the empty string."""
        for program, package in self.programs.items():
            if shutil.which(program, path=_path()) is None:
                return f"not installed: {program} (Debian: apt-get install {package})"
        return ""


def _path() -> str:

    return os.environ.get("PATH", os.defpath) + _SBIN


def _program(name: str) -> str:
    return shutil.which(name, path=_path()) or name


def _json(text: str) -> dict[str, Any]:
    try:
        output = json.loads(text)
    except ValueError:
        output = None
    if not isinstance(output, dict):
        raise ConvoyError(f"no JSON but: {text.strip()[-200:] or 'nothing'}")
    return output


def _iperf(text: str, exit_code: int) -> dict[str, Any]:
    output = _json(text)
    if exit_code or "error" in output:
        raise ConvoyError(f"iperf3: {output.get('error', f'exit code {exit_code}')}")
    return dict(output["end"])


def read_iperf_tcp(text: str, exit_code: int) -> Figures:
    """Return what arrived, and what had to be sent again."""
    end = _iperf(text, exit_code)
    return {
        "mbps": end["sum_received"]["bits_per_second"] / 1e6,
        "retransmits": float(end["sum_sent"].get("retransmits", 0)),
    }


def read_iperf_udp(text: str, exit_code: int) -> Figures:
    """Return what arrived, by the server's count, and which share did not."""
    total = _iperf(text, exit_code)["sum"]
    packets, lost = float(total["packets"]), float(total["lost_packets"])
    if packets <= 0 or total["seconds"] <= 0:
        raise ConvoyError("iperf3: it sent nothing")
    kept = 1 - lost / packets
    return {
        "mbps": total["bytes"] * 8 / total["seconds"] / 1e6 * kept,
        "pps": packets * kept / total["seconds"],
        "lost_ratio": lost / packets,
    }


def read_wrk(text: str, exit_code: int) -> Figures:
    """Return pages per second, and how long one took, as our script for wrk prints it."""
    output = _json(text[max(text.rfind("{"), 0) :])
    if exit_code or output["errors"] or not output["requests"]:
        raise ConvoyError(f"wrk: {output['requests']} requests, {output['errors']} errors")
    seconds = output["duration_us"] / 1e6
    return {
        "requests_per_s": output["requests"] / seconds,
        "mbps": output["bytes"] * 8 / seconds / 1e6,
        "p50_ns": output["p50_us"] * 1e3,
        "p99_ns": output["p99_us"] * 1e3,
    }


def read_curl(text: str, exit_code: int) -> Figures:
    """Return what arrived from the first byte on. That it was not the whole file is meant."""
    output = _json(text)
    seconds = float(output["time_total"]) - float(output["time_starttransfer"])
    if exit_code not in (0, _CURL_TIME_IS_UP) or not output["size_download"] or seconds <= 0:
        raise ConvoyError(f"curl: {output.get('errormsg') or f'exit code {exit_code}'}")
    return {"mbps": float(output["size_download"]) * 8 / seconds / 1e6}


_NGINX = """\
daemon off;
master_process off;
user root;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
	access_log off;
	keepalive_requests 1000000000;
	client_body_temp_path {folder}/body;
	proxy_temp_path {folder}/proxy;
	fastcgi_temp_path {folder}/fastcgi;
	uwsgi_temp_path {folder}/uwsgi;
	scgi_temp_path {folder}/scgi;
	server {{
		listen {port};
		root {folder}/served;
	}}
}}
"""

_VSFTPD = """\
listen=YES
background=NO
listen_port={port}
anonymous_enable=YES
no_anon_password=YES
anon_root={folder}/served
secure_chroot_dir={folder}/empty
connect_from_port_20=YES
ftp_data_port={data}
pasv_enable=NO
use_localtime=NO
seccomp_sandbox=NO
xferlog_enable=NO
"""

_WRK = """\
done = function(summary, latency, requests)
	local e = summary.errors
	io.write(string.format(
		'{"requests":%d,"duration_us":%d,"bytes":%d,"errors":%d,"p50_us":%d,"p99_us":%d}\\n',
		summary.requests, summary.duration, summary.bytes,
		e.connect + e.read + e.write + e.status,
		latency:percentile(50), latency:percentile(99)))
end
"""


def _iperf_client(folder: Path, seconds: int, frame_bytes: int) -> list[str]:
    own = ["-u", "-b", "0", "-l", str(frame_bytes - UDP_OVERHEAD_BYTES)] if frame_bytes else []
    return ["iperf3", "-c", SERVER, "-p", str(IPERF), "-J", "-t", str(seconds), *own]


_IPERF = {"iperf3": "iperf3"}

APPLICATIONS = (
    Application(
        "iperf3-tcp", "iperf3, TCP", "mbps", _IPERF, IPERF,
        lambda folder: ["iperf3", "-s", "-p", str(IPERF)], _iperf_client, read_iperf_tcp,
    ),
    Application(
        "iperf3-udp", "iperf3, UDP, as fast as it sends", "mbps", _IPERF, IPERF,
        lambda folder: ["iperf3", "-s", "-p", str(IPERF)], _iperf_client, read_iperf_udp,
        by_size=True,
    ),
    Application(
        "http", f"nginx, pages of {PAGE_BYTES} B to {CONNECTIONS} clients", "requests_per_s",
        {"nginx": "nginx-light", "wrk": "wrk"}, HTTP,
        lambda folder: [_program("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"),
                        "-e", "stderr"],
        lambda folder, seconds, frame_bytes: [
            "wrk", "-t", "1", "-c", str(CONNECTIONS), "-d", f"{seconds}s",
            "-s", str(folder / "done.lua"), f"http://{SERVER}:{HTTP}/page.html",
        ],
        read_wrk,
        lambda folder: {
            "nginx.conf": _NGINX.format(folder=folder, port=HTTP),
            "done.lua": _WRK,
            "served/page.html": "x" * PAGE_BYTES,
        },
    ),
    Application(
        "ftp", "vsftpd, one file", "mbps", {"vsftpd": "vsftpd", "curl": "curl"}, FTP,
        lambda folder: [_program("vsftpd"), str(folder / "vsftpd.conf")],
        # From port 20 to the client, as the paper's rules have it.
        lambda folder, seconds, frame_bytes: [
            "curl", "--silent", "--ftp-port", "-", "--disable-eprt", "--max-time", str(seconds),
            "--output", "/dev/null", "--write-out", "%{json}", f"ftp://{SERVER}:{FTP}/file",
        ],
        read_curl,
        lambda folder: {
            "vsftpd.conf": _VSFTPD.format(folder=folder, port=FTP, data=FTP_DATA),
            "served/file": "",
        },
    ),
)  # fmt: skip


def application(name: str) -> Application:
    """Return one by its name. Raises KeyError."""
    return {each.name: each for each in APPLICATIONS}[name]


def prepare(app: Application, folder: Path) -> None:
    """Write what it needs. Servers that give up root must be able to enter the folder."""
    for place in (folder, folder / "served", folder / "empty"):
        place.mkdir(exist_ok=True)
        place.chmod(0o755)
    for name, text in app.files(folder).items():
        path = folder / name
        path.write_text(text)
        path.chmod(0o644)
    if (folder / "served/file").exists():
        with (folder / "served/file").open("r+b") as file:
            file.truncate(FILE_BYTES)
