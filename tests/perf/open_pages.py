#!/usr/bin/env python3
"""What open pages of the dashboard cost the server.

  open_pages.py BIN [--pages 50] [--seconds 30] [--json]

A demo server replays its recorded run; half of the pages show the farm, half
the job that runs. Prints the server's processor time as a share of one core
without pages and with them, and the bytes that were sent.
"""
import argparse
import json
import os
import pathlib
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from served import Served, until  # noqa: E402


def processor_seconds(served):
    text = served.text("/metrics")
    for line in text.splitlines():
        if line.startswith("process_cpu_seconds_total "):
            return float(line.split()[1])
    raise SystemExit("no process_cpu_seconds_total")


class Page(threading.Thread):
    """Reads one stream of events until it is closed."""

    def __init__(self, pages, path):
        super().__init__(daemon=True)
        host, port = pages.removeprefix("http://").split(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"
                            .encode())
        self.received = 0

    def run(self):
        try:
            while data := self.socket.recv(1 << 16):
                self.received += len(data)
        except OSError:
            pass  # closed below


def share(served, seconds):
    before, start = processor_seconds(served), time.monotonic()
    time.sleep(seconds)
    return (processor_seconds(served) - before) / (time.monotonic() - start)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    # Slow enough that the job runs the whole time.
    with Served(os.path.abspath(options.bin),
                ["--demo", "--demo-speed", "0.2"]) as served:
        job = until("a running job", lambda: next(
            (one["id"] for one in served.get("/api/v1/jobs")["jobs"]
             if one["state"] == "running" and one["trials_done"] > 0), None))
        without = share(served, options.seconds)
        paths = ["/api/v1/events", f"/api/v1/jobs/{job}/events"]
        pages = [Page(served.pages, paths[i % 2])
                 for i in range(options.pages)]
        for page in pages:
            page.start()
        time.sleep(2)
        with_pages = share(served, options.seconds)
        for page in pages:
            page.socket.shutdown(socket.SHUT_RDWR)
        result = {"pages": options.pages, "seconds": options.seconds,
                  "share_without": without, "share_with": with_pages,
                  "share_of_pages": with_pages - without,
                  "bytes": sum(page.received for page in pages)}
    if options.json:
        print(json.dumps(result))
    else:
        print(f"{options.pages} pages: {with_pages:.1%} of a core with them, "
              f"{without:.1%} without, {result['bytes'] / 1e6:.1f} MB sent")


if __name__ == "__main__":
    main()
