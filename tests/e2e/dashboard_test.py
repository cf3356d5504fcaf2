#!/usr/bin/env python3
"""The dashboard in headless Chromium, by Selenium.

  dashboard_test.py BIN SHOTS LARGE [AXE.js]

Every view on the data of the demo, at 400 and 1400 pixels and in the dark: it
says what it should, nothing is written to the console, nothing is asked of
another host, and, where axe-core is given, none of its rules is violated. A
view follows a job while it runs. A job of 10,000 trials and a farm of 1,000
devices are drawn; how long that takes is printed. LARGE is their database
(large_database.cc). Screenshots go to SHOTS.
"""
import base64
import json
import pathlib
import sys
import unittest

try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError as error:
    print(f"{error.name} is missing: skipped")
    sys.exit(77)

from served import Served, programs_of, until

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
LOOKS = [("phone", 400, 800, "light"), ("desk", 1400, 900, "light"),
         ("dark", 1400, 900, "dark")]


def start_browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    # The sandbox needs what a container may not have; the page is our own.
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu",
                 "--disable-dev-shm-usage", "--force-color-profile=srgb"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs",
                           {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service(DRIVER), options=options)


class Page:
    """The browser on one server."""

    def __init__(self, browser, served):
        self.browser = browser
        self.served = served
        # What earlier pages did is theirs.
        self.complaints()
        self.foreign_requests()

    def look(self, width, height, scheme):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": False})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, address, heading):
        """Opens a view and waits until it stands with what it draws."""
        self.browser.get("about:blank")
        self.browser.get(f"{self.served.pages}/#/{address}")
        self.wait(heading)

    def drawn(self, address, heading):
        """Goes to another view of the page that is open. Milliseconds from the
        click to the second frame after the view stands."""
        return self.browser.execute_async_script(
            "const [address, heading, done] = arguments;"
            "const start = performance.now();"
            "location.hash = '#/' + address;"
            "const look = () => {"
            "  const h1 = document.querySelector('h1');"
            "  if (!h1 || !h1.textContent.includes(heading))"
            "    return setTimeout(look, 1);"
            "  requestAnimationFrame(() => requestAnimationFrame(() =>"
            "    requestAnimationFrame(() =>"
            "      done(performance.now() - start))));"
            "}; look();", address, heading)

    def wait(self, heading):
        until(f"a page about {heading}", lambda: heading in self.text("h1"))
        self.browser.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() =>"
            " requestAnimationFrame(done)))")

    def text(self, selector):
        found = self.browser.find_elements(By.CSS_SELECTOR, selector)
        try:
            return found[0].text if found else ""
        except WebDriverException:
            return ""  # replaced meanwhile

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def run(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def complaints(self):
        """What the console says, but for a stream of events that the server closed:
        it does so to slow readers, and the page opens it again."""
        return [one["message"] for one in self.browser.get_log("browser")
                if not ("/events" in one["message"]
                        and "ERR_CONNECTION_CLOSED" in one["message"])]

    def foreign_requests(self):
        """Addresses beyond the server that were asked for."""
        foreign = []
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] != "Network.requestWillBeSent":
                continue
            url = message["params"]["request"]["url"]
            if not url.startswith((self.served.pages, "about:", "data:",
                                   "blob:")):
                foreign.append(url)
        return foreign

    def shot(self, name):
        """The whole page as a picture."""
        height = self.run("return document.documentElement.scrollHeight")
        width = self.run("return innerWidth")
        picture = self.browser.execute_cdp_cmd("Page.captureScreenshot", {
            "captureBeyondViewport": True, "clip": {
                "x": 0, "y": 0, "width": width, "height": min(height, 6000),
                "scale": 1}})
        (SHOTS / f"{name}.png").write_bytes(
            base64.b64decode(picture["data"]))

    def violations(self):
        """What axe-core finds."""
        if AXE is None:
            return []
        # Put into the page by the debugger, since the page's own policy
        # permits no script but the server's.
        self.run(AXE)
        found = self.browser.execute_async_script(
            "const done = arguments[0];"
            "axe.run(document, {resultTypes: ['violations']}).then(done)")
        return [f"{one['id']}: {one['help']}: {node['html'][:200]}"
                for one in found["violations"] for node in one["nodes"]]


class DashboardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = start_browser()
        cls.addClassCleanup(cls.browser.quit)

    def views(self, served):
        """Address, heading and a text of each view."""
        jobs = served.get("/api/v1/jobs")["jobs"]
        model = max(jobs, key=lambda one: one["tasks"])
        single = next(one for one in jobs
                      if one["tasks"] == 1 and one["state"] == "done")
        records = served.get(f"/api/v1/records?job={single['id']}&status=ok")
        record = records["records"][0]
        other = records["records"][1]
        device = served.get("/api/v1/devices")["devices"][0]["name"]
        workload = f"workloads/{record['workload']}?target={record['target']}"
        views = {
            "jobs": ("jobs", "Jobs", single["program"]),
            "job": (f"jobs/{single['id']}", single["program"], "Fastest"),
            "model": (f"jobs/{model['id']}", model["program"],
                      "Share before"),
            "workloads": ("workloads", "Workloads", record["workload"][:12]),
            "workload": (workload, single["program"], "Roofline"),
            "devices": ("devices", "Devices", device),
            "device": (f"devices/{device}", device, "Use in the last hour"),
            "database": ("database", "Database", "Every candidate"),
            "record": (f"records/{record['record']}",
                       f"Record {record['record']}", "Build and run"),
            "compare": (f"compare?a={record['record']}&b={other['record']}",
                        "Records", "Scheduled programs"),
        }
        return views

    def test_every_view_at_every_size(self):
        with Served(BIN, ["--demo"]) as served:
            # Something is known of each view only once the replay has begun.
            until("a trial of the replay", lambda: served.get(
                "/api/v1/jobs")["jobs"][-1]["trials_done"] > 2)
            page = Page(self.browser, served)
            for name, (address, heading, text) in self.views(served).items():
                for look, width, height, scheme in LOOKS:
                    with self.subTest(view=name, look=look):
                        page.look(width, height, scheme)
                        page.open(address, heading)
                        self.assertIn(text, page.text("main"))
                        if name == "database":
                            self.shows_recent_records(served, page)
                        page.shot(f"{name}-{look}")
                        self.assertLessEqual(
                            page.run("return document.documentElement."
                                     "scrollWidth"), width, "it is too wide")
                        self.assertEqual(page.violations(), [])
                        self.assertEqual(page.complaints(), [])
                        self.assertEqual(page.foreign_requests(), [])

    def shows_recent_records(self, served, page):
        """The replay adds records meanwhile."""
        until("a recent record", lambda: any(
            str(one["record"]) in page.text("main").split()
            for one in served.get("/api/v1/records")["records"]))

    def test_texts_of_a_record_open(self):
        with Served(BIN, ["--demo"]) as served:
            page = Page(self.browser, served)
            record = served.get("/api/v1/records?status=ok")["records"][-1]
            page.look(1400, 900, "light")
            page.open(f"records/{record['record']}", "Record")
            for summary in page.all("details > summary"):
                summary.send_keys(Keys.ENTER)
            until("program, trace and assembly", lambda: len(
                page.all("details pre")) >= 2)
            self.assertIn("sch.", page.text("main"))
            page.shot("texts-desk")
            self.assertEqual(page.violations(), [])

    def test_a_report_stands_alone(self):
        with Served(BIN, ["--demo"]) as served:
            jobs = served.get("/api/v1/jobs")["jobs"]
            model = max(jobs, key=lambda one: one["tasks"])
            file = (SHOTS / "report.html").resolve()
            served.tune("report", model["id"], "-o", str(file))
            curve = served.tune("plot", jobs[0]["id"], "--ascii",
                                "--columns", "80")
            self.assertIn("trials", curve)
            self.assertIn("|", curve)
        # The server is gone.
        page = Page(self.browser, served)
        for look, width, height, scheme in LOOKS:
            page.look(width, height, scheme)
            page.browser.get(file.as_uri())
            page.wait(model["program"])
            page.shot(f"report-{look}")
            self.assertIn("Share before", page.text("main"))
            self.assertEqual(page.violations(), [])
            self.assertEqual(page.complaints(), [])
            # Also what the page of the file before asked for.
            self.assertEqual([url for url in page.foreign_requests()
                              if not url.startswith("file:")], [])

    def test_a_running_job_is_followed_and_cancelled(self):
        with Served(BIN, ["--no-canary"]) as served:
            token = served.token("admin", "root")
            page = Page(self.browser, served)
            page.look(1400, 900, "light")
            page.open("jobs", "Jobs")
            served.worker("desk")
            served.tune("submit", str(EXAMPLES / "mm_relu.py"), "--target",
                        "host,cores=1", "--trials", "100000")
            # Without loading the page again.
            until("the job in the list",
                  lambda: "mm_relu.py" in page.text("main"))
            until("its trials in the list", lambda: page.run(
                "const one = document.querySelector('tbody tr td.number');"
                "return one && parseInt(one.textContent, 10) > 3"))
            job = served.get("/api/v1/jobs")["jobs"][-1]["id"]
            page.run("document.querySelector('tbody a').click()")
            page.wait("mm_relu.py")
            trials = ("return Number(document.querySelector('progress')"
                      "?.value ?? 0)")
            before = page.run(trials)
            until("more trials", lambda: page.run(trials) > before + 5)
            page.shot("running-desk")
            self.assertIn("live", page.text("#live"))
            self.assertEqual(page.all(".danger"), [])

            # Signing in, by keyboard.
            page.all("#sign-in")[0].send_keys(Keys.ENTER)
            until("the dialog", lambda: page.all("#token")[0].is_displayed())
            page.shot("sign-in-desk")
            self.assertEqual(page.violations(), [])
            page.all("#token")[0].send_keys(token, Keys.ENTER)
            until("the button", lambda: page.all(".danger"))
            # It keeps the focus, and tables their order, while the page changes.
            button = page.all(".danger")[0]
            sort = "//th[normalize-space()='Median']/button"
            page.browser.find_element(By.XPATH, sort).click()
            page.run("document.querySelector('.danger').focus()")
            before = page.run(trials)
            until("more trials", lambda: page.run(trials) > before + 5)
            self.assertEqual(page.run("return document.activeElement.className"),
                             "danger")
            self.assertEqual(page.run(
                "return document.querySelector('th[aria-sort]')?.textContent"),
                             "Median")
            button.send_keys(Keys.ENTER)
            until("it cancelled", lambda: served.get(
                f"/api/v1/jobs/{job}")["state"] == "cancelled")
            until("the page saying so",
                  lambda: "cancelled" in page.text("h1"))
            self.assertEqual(page.complaints(), [])

    def test_histories_of_benchmarks(self):
        with Served(BIN, ["--no-canary"], database=LARGE) as served:
            page = Page(self.browser, served)
            for look, width, height, scheme in LOOKS:
                page.look(width, height, scheme)
                for name in ("benchmarks", "benchmark"):
                    if name == "benchmarks":
                        page.open(name, "Regressions")
                        self.assertIn("layer norm", page.text("main"))
                    else:
                        page.browser.find_element(
                            By.LINK_TEXT, "matmul 512").click()
                        page.wait("matmul 512")
                        text = page.text("main")
                        for one in ("open", "acknowledged", "faster",
                                    "double precision"):
                            self.assertIn(one, text)
                    page.shot(f"{name}-{look}")
                    self.assertLessEqual(
                        page.run("return document.documentElement."
                                 "scrollWidth"), width, "it is too wide")
                    self.assertEqual(page.violations(), [])
                    self.assertEqual(page.complaints(), [])

    def test_tables_keep_order_and_focus_while_rows_change(self):
        with Served(BIN, ["--no-canary"], database=LARGE) as served:
            page = Page(self.browser, served)
            page.open("database", "Database")
            texts, same, sorted_down = self.browser.execute_async_script("""
                const done = arguments[0];
                import("/assets/dom.js").then(({el, liveTable}) => {
                  const list = liveTable("Numbers", [{
                    title: "Number", value: (row) => row.number,
                    cell: (row) => el("button", {}, row.number)
                  }], {sort: 0});
                  document.body.append(list.element);
                  list.update([{number: "2"}, {number: "2"}, {number: "10"}]);
                  list.element.querySelector("thead button").click();
                  list.element.querySelector("thead button").click();
                  const texts = [];
                  const note = () => texts.push(
                      [...list.element.querySelectorAll("tbody tr")]
                          .map((row) => row.textContent).join());
                  note();
                  const first = list.element.querySelector("tbody button");
                  first.focus();
                  list.update([{number: "2"}, {number: "10"}, {number: "3"}]);
                  note();
                  const same = document.activeElement === first;
                  list.update([{number: "7"}]);
                  note();
                  list.update([]);
                  note();
                  const head = list.element.querySelector("th");
                  done([texts, same, head.getAttribute("aria-sort")]);
                });""")
            self.assertEqual(sorted_down, "ascending")
            self.assertEqual(texts, ["2,2,10", "2,3,10", "7", "none"])
            self.assertTrue(same)
            self.assertEqual(page.complaints(), [])

    def test_large_jobs_and_farms_are_drawn(self):
        with Served(BIN, ["--no-canary"], database=LARGE) as served:
            page = Page(self.browser, served)
            page.look(1400, 900, "light")
            job = served.get("/api/v1/jobs")["jobs"][-1]["id"]
            for name, address, heading, shown in (
                    ("10,000 trials", f"jobs/{job}", "large.py",
                     "10,000"),
                    ("1,000 devices", "devices", "Devices", "board.0999")):
                page.open("database", "Database")
                took = page.drawn(address, heading)
                print(f"{name}: drawn after {took:.0f} ms")
                self.assertIn(shown, page.text("main"))
                page.shot(name.replace(",", "").replace(" ", "-"))
            failed = served.get("/api/v1/records?status=run_error")["records"]
            page.open(f"records/{failed[0]['record']}", "Record")
            self.assertIn("What went wrong", page.text("main"))
            self.assertIn("made to fail", page.text("main"))
            page.shot("failure")
            self.assertEqual(page.violations(), [])
            self.assertEqual(page.complaints(), [])


if __name__ == "__main__":
    BIN = programs_of(sys.argv)
    SHOTS = pathlib.Path(sys.argv.pop(1))
    SHOTS.mkdir(parents=True, exist_ok=True)
    LARGE = pathlib.Path(sys.argv.pop(1)).resolve()
    AXE = None
    if len(sys.argv) > 1 and sys.argv[1].endswith(".js"):
        AXE = pathlib.Path(sys.argv.pop(1)).read_text()
    else:
        print("axe-core is not given: its rules are not checked")
    EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
    unittest.main()
