#!/usr/bin/env python3
"""What the dashboard costs: the server with many open pages, and a browser
with much to draw.

  dashboard_load.py BIN [--pages 50] [--seconds 30] [--large FILE] [--json]

A demo server replays its recorded run, once without pages and once with them, so
slowly that the job runs as long as is measured. The open
pages show in turn the jobs, the job that runs and the devices; each reads what
its view reads, follows its stream of events, and asks again as the view does.
Prints the server's processor time as a share of one core without pages and
with them, and the bytes that were sent.

--large FILE: a database of tests/bin/large_database (a job of 10,000 trials,
1,000 devices). The same pages, on a server with it; and, where Chromium and
Selenium are installed, the time from a click to the second frame after the
view stands, the first time and the median of the following ones.
"""
import argparse
import contextlib
import json
import os
import pathlib
import socket
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from served import Served, until  # noqa: E402

# server/web/views/devices.js
HISTORY_PERIOD = 30  # seconds
# At this speed the recorded job takes about 25 seconds.
DEMO_SPEED, DEMO_SECONDS = 0.2, 20
TIMES_DRAWN = 5


def processor_seconds(served):
    text = served.text("/metrics")
    for line in text.splitlines():
        if line.startswith("process_cpu_seconds_total "):
            return float(line.split()[1])
    raise SystemExit("no process_cpu_seconds_total")


class Page:
    """What one open view asks of the server."""

    # By view: what it reads at first, its stream, and what it reads again.
    @staticmethod
    def views(job):
        return [
            (["/api/v1/jobs?limit=500"], "/api/v1/events", None),
            ([f"/api/v1/jobs/{job}", f"/api/v1/jobs/{job}/candidates"],
             f"/api/v1/jobs/{job}/events", None),
            (["/api/v1/devices", "/api/v1/history"], "/api/v1/events",
             "/api/v1/history"),
        ]

    def __init__(self, served, view, phase):
        """phase: when it asks again for the first time, in seconds."""
        self.served = served
        self.first, self.stream, self.again = view
        self.phase = phase
        self.received = 0
        self.ends = threading.Event()
        self.host, port = served.pages.removeprefix("http://").split(":")
        self.socket = socket.create_connection((self.host, int(port)))
        self.threads = [threading.Thread(target=self.follow, daemon=True)]
        if self.again:
            self.threads.append(threading.Thread(target=self.ask, daemon=True))

    def open(self):
        for path in self.first:
            self.received += len(self.served.text(path))
        self.socket.sendall(f"GET {self.stream} HTTP/1.1\r\n"
                            f"Host: {self.host}\r\n\r\n".encode())
        answer = self.socket.recv(1 << 16)
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise SystemExit(f"GET {self.stream}: {answer[:200]}")
        self.received += len(answer)
        for thread in self.threads:
            thread.start()

    def follow(self):
        try:
            while data := self.socket.recv(1 << 16):
                self.received += len(data)
        except OSError:
            pass  # closed below

    def ask(self):
        wait = self.phase
        while not self.ends.wait(wait):
            self.received += len(self.served.text(self.again))
            wait = HISTORY_PERIOD

    def close(self):
        self.ends.set()
        self.socket.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        self.socket.close()


def share(served, seconds):
    before, start = processor_seconds(served), time.monotonic()
    time.sleep(seconds)
    return (processor_seconds(served) - before) / (time.monotonic() - start)


def with_pages(served, job, options):
    """The server's share of a core with pages, and the bytes that they get in a
    second."""
    views = Page.views(job)
    pages = [Page(served, views[i % len(views)],
                  HISTORY_PERIOD * i / options.pages)
             for i in range(options.pages)]
    for page in pages:
        page.open()
    before = sum(page.received for page in pages)
    of_core = share(served, options.seconds)
    received = sum(page.received for page in pages) - before
    for page in pages:
        page.close()
    return of_core, received / options.seconds


def cost(without, with_them, bytes_per_second):
    return {"share_without": without, "share_with": with_them,
            "share_of_pages": with_them - without,
            "bytes_per_second": bytes_per_second}


@contextlib.contextmanager
def replay(options):
    """A demo server and its job, which has begun."""
    speed = DEMO_SPEED * DEMO_SECONDS / options.seconds
    with Served(os.path.abspath(options.bin),
                ["--demo", "--demo-speed", f"{speed:.3f}"]) as served:
        def running():
            return next((one for one in served.get("/api/v1/jobs")["jobs"]
                         if one["state"] == "running"), None)
        job = until("a running job",
                    lambda: (one := running()) and one["trials_done"] and one)
        yield served, job["id"]
        if running() is None:
            print("the job ended before the measurement: --seconds is wrong",
                  file=sys.stderr)


def drawing_times(served, job):
    """Milliseconds by name: the first time and the median of the others."""
    import dashboard_test
    browser = dashboard_test.start_browser()
    try:
        page = dashboard_test.Page(browser, served)
        page.look(1400, 900, "light")
        times = {}
        for name, address, heading in (
                ("10,000 trials", f"jobs/{job}", "large.py"),
                ("1,000 devices", "devices", "Devices")):
            taken = []
            for _ in range(TIMES_DRAWN):
                page.open("database", "Database")
                taken.append(page.drawn(address, heading))
            times[name] = {"first": taken[0],
                           "later": statistics.median(taken[1:])}
        return times
    finally:
        browser.quit()


def measure(options):
    programs = os.path.abspath(options.bin)
    result = {"pages": options.pages, "seconds": options.seconds}
    with replay(options) as (served, job):
        without = share(served, options.seconds)
    with replay(options) as (served, job):
        result["demo"] = cost(without, *with_pages(served, job, options))
    if options.large:
        large = pathlib.Path(options.large).resolve()
        with Served(programs, ["--no-canary"], database=large) as served:
            job = served.get("/api/v1/jobs")["jobs"][-1]["id"]
            without = share(served, options.seconds)
            result["large"] = cost(without, *with_pages(served, job, options))
            try:
                result["drawn_ms"] = drawing_times(served, job)
            except SystemExit:  # it said what is missing
                pass
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--large")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = measure(options)
    if options.json:
        print(json.dumps(result))
        return
    for name in ("demo", "large"):
        if name not in result:
            continue
        one = result[name]
        print(f"{name}: {options.pages} pages take "
              f"{one['share_of_pages']:.1%} of a core "
              f"({one['share_with']:.1%} with them, "
              f"{one['share_without']:.1%} without) and "
              f"{one['bytes_per_second'] / 1e3:.1f} kB a second")
    for name, one in result.get("drawn_ms", {}).items():
        print(f"{name}: drawn after {one['first']:.0f} ms, then "
              f"{one['later']:.0f} ms")


if __name__ == "__main__":
    main()
