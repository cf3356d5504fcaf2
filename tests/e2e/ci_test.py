#!/usr/bin/env python3
"""Runs the steps of deploy/ci against a farm: a good commit passes, a slowed
one fails with a report.

  tests/e2e/ci_test.py BIN

BIN has the programs. The steps are read from the workflow files, and run by a
shell as the CI systems do, in a repository with deploy/ci/regress.
"""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import yaml
except ImportError:
    print("python3-yaml is missing: skipped")
    sys.exit(77)

from served import MATMUL

ROOT = pathlib.Path(__file__).resolve().parents[2]
CI = ROOT / "deploy" / "ci"
BIN = pathlib.Path(sys.argv.pop(1)).resolve()

SUITE = '''name = "kernels"
[[benchmark]]
name = "matmul"
program = "mm.py"
trace = "mm.trace"
target = "host,cores=1"
'''


def trace(lanes):
    """Vectors of few lanes are slower."""
    return f'''b0 = sch.get_block(name="Y", func_name="mm")
l1, l2, l3 = sch.get_loops(block=b0)
l4, l5 = sch.split(loop=l2, factors=[{128 // lanes}, {lanes}])
sch.reorder(l1, l4, l3, l5)
sch.vectorize(loop=l5)
'''


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def evaluate(text, context):
    """Expressions ${{ a.b }} of GitHub, by their names."""
    def value(match):
        name = match.group(1)
        assert name in context, f"the test knows no {name}"
        return context[name]
    return re.sub(r"\$\{\{\s*([\w.]+)\s*\}\}", value, str(text))


class CiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        cls.address = f"127.0.0.1:{free_port()}"
        cls.processes = []
        cls.start("tune-server", "--db", cls.home / "tune.db", "--listen",
                  cls.address, "--no-canary", "--allow-artifacts",
                  "--artifact-isolation", "none")
        cls.start("rpc-worker", "--server", cls.address, "--name", "board",
                  "--state-dir", cls.home / "state", "--lock-dir",
                  cls.home / "locks")
        cls.await_device()
        cls.repository = cls.home / "repository"
        (cls.repository / "deploy" / "ci").mkdir(parents=True)
        shutil.copy(CI / "regress", cls.repository / "deploy" / "ci")
        cls.git("init", "-q", "-b", "main")
        (cls.repository / "mm.py").write_text(MATMUL)
        (cls.repository / "suite.toml").write_text(SUITE)

    @classmethod
    def start(cls, program, *arguments):
        log = open(cls.home / (program + ".log"), "w", encoding="utf-8")
        cls.processes.append(subprocess.Popen(
            [BIN / program, *map(str, arguments)], stdout=log, stderr=log))

    @classmethod
    def await_device(cls):
        for _ in range(600):
            done = subprocess.run(
                [BIN / "tune", "--server", cls.address, "devices", "--json"],
                capture_output=True, text=True, check=False)
            if done.returncode == 0 and '"idle"' in done.stdout:
                return
            time.sleep(0.1)
        raise AssertionError("the worker does not connect")

    @classmethod
    def tearDownClass(cls):
        for process in reversed(cls.processes):
            process.terminate()
        for process in cls.processes:
            process.wait()
        cls.folder.cleanup()

    @classmethod
    def git(cls, *arguments):
        return subprocess.run(
            ["git", "-C", cls.repository, "-c", "user.name=t", "-c",
             "user.email=t@example.org", *arguments],
            capture_output=True, text=True, check=True).stdout.strip()

    def commit(self, lanes):
        (self.repository / "mm.trace").write_text(trace(lanes))
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", f"{lanes} lanes")
        return self.git("rev-parse", "HEAD")

    def shell(self, script, environment):
        """Runs a step as a runner does. Returns its exit code and output."""
        everything = {"PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
                      "HOME": str(self.home), **environment}
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script], cwd=self.repository,
            env=everything, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=False, timeout=300)
        return done.returncode, done.stdout

    # --- GitHub ---

    def github(self, job, sha):
        """Runs all `run` steps of a job; the first that fails ends it.

        Returns the exit code, the output and the summary on the job's page.
        """
        workflow = yaml.safe_load((CI / "github-workflow.yaml").read_text())
        temp = self.home / "runner"
        temp.mkdir(exist_ok=True)
        context = {
            "vars.TUNE_SERVER": self.address, "secrets.TUNE_TOKEN": "",
            "secrets.TUNE_TLS_CA": "", "github.server_url": "https://example",
            "github.repository": "o/r", "github.run_id": "7",
            "github.event.pull_request.head.sha": sha,
            "github.base_ref": "main"}
        summary = temp / f"summary-{job}-{sha}"
        variables = temp / f"env-{job}-{sha}"
        variables.write_text("")
        environment = {
            "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ENV": str(variables),
            "GITHUB_SHA": sha, "RUNNER_TEMP": str(temp)}
        if job == "record":
            environment["GITHUB_REF_NAME"] = "main"
        for name, value in workflow["env"].items():
            environment[name] = evaluate(value, context)
        steps = workflow["jobs"][job]["steps"]
        output, code, ran = "", 0, 0
        for step in steps:
            if "run" not in step or code != 0:
                continue
            for line in variables.read_text().splitlines():
                name, _, value = line.partition("=")
                environment[name] = value
            own = {name: evaluate(value, context)
                   for name, value in step.get("env", {}).items()}
            code, text = self.shell(evaluate(step["run"], context),
                                    {**environment, **own})
            output += text
            ran += 1
        self.assertGreater(ran, 0, "the job has no steps to run")
        return code, output, summary.read_text() if summary.exists() else ""

    def gitlab(self, job, sha):
        jobs = yaml.safe_load((CI / "gitlab-ci.yaml").read_text())
        environment = {"TUNE_SERVER": self.address, "CI_COMMIT_SHA": sha,
                       "CI_COMMIT_REF_NAME": "main"}
        base = jobs[jobs[job]["extends"]]
        for variables in (base["variables"], jobs[job].get("variables", {})):
            for name, value in variables.items():
                value = value.replace("$CI_JOB_URL", "https://example/job/7")
                value = value.replace("$CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
                                      "main")
                self.assertNotIn("$", value)
                environment[name] = value
        return self.shell("\n".join(jobs[job]["script"]), environment)

    def test_the_workflows_judge_commits(self):
        good = self.commit(16)
        code, output, _ = self.github("record", good)
        self.assertEqual(code, 0, output)

        # A pull request that changes nothing that matters.
        (self.repository / "README").write_text("a program\n")
        same = self.commit(16)
        code, output, summary = self.github("gate", same)
        self.assertEqual(code, 0, output)
        self.assertIn("pass", summary.lower())

        # One with a slower schedule.
        slow = self.commit(4)
        code, output, summary = self.github("gate", slow)
        self.assertEqual(code, 1, output)
        self.assertIn("matmul", summary)
        self.assertIn("slower", summary)
        self.assertIn("schedule", summary)
        reports = self.repository / "regress-reports"
        self.assertIn("<failure", (reports / "junit.xml").read_text())
        self.assertIn("slower", (reports / "results.csv").read_text())
        values = json.loads((reports / "smaller-is-better.json").read_text())
        self.assertTrue(values and values[0]["value"] > 0)
        self.assertTrue(json.loads(
            (reports / "google-benchmark.json").read_text())["benchmarks"])

        # The same by GitLab's jobs.
        code, output = self.gitlab("regressions:gate", slow)
        self.assertEqual(code, 1, output)
        code, output = self.gitlab("regressions:record", slow)
        self.assertEqual(code, 1, output)
        history = json.loads(subprocess.run(
            [BIN / "tune", "--server", self.address, "regress", "history",
             "--json"], capture_output=True, text=True, check=True).stdout)
        commits = [point["commit"] for point in history[0]["points"]]
        self.assertEqual(commits, [good, slow])

    def test_a_farm_that_is_away_gives_no_verdict(self):
        sha = self.commit(16)
        environment = {"TUNE_SERVER": "127.0.0.1:1", "TUNE_COMMIT": sha}
        code, output = self.shell("deploy/ci/regress gate", environment)
        self.assertEqual(code, 4, output)
        code, output = self.shell("deploy/ci/regress gate",
                                  {**environment, "TUNE_NO_VERDICT": "pass"})
        self.assertEqual(code, 0, output)
        code, output = self.shell("deploy/ci/regress nonsense", environment)
        self.assertEqual(code, 2, output)


if __name__ == "__main__":
    unittest.main()
