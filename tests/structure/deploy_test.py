#!/usr/bin/env python3
"""Checks units, container files and manifests of deploy/ against the programs.

  deploy_test.py SOURCE_DIR BIN_DIR
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

try:
    import yaml
except ImportError:
    print("python3-yaml is missing: skipped")
    sys.exit(77)

SOURCE, BIN = sys.argv[1], sys.argv[2]
DEPLOY = os.path.join(SOURCE, "deploy")
PROGRAMS = ("tune-server", "rpc-worker", "tune", "tunec", "tune-builder",
            "tune-runner")


def read(*path):
    with open(os.path.join(DEPLOY, *path), encoding="utf-8") as file:
        return file.read()


def options_of(program):
    text = subprocess.run([os.path.join(BIN, program), "--help"],
                          capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", text, re.M))


OPTIONS = {name: options_of(name) for name in ("tune-server", "rpc-worker")}


class DeployTest(unittest.TestCase):
    def check_command(self, where, words):
        """words[0] is a path; its options are the program's."""
        program = os.path.basename(words[0])
        self.assertIn(program, PROGRAMS, where)
        for word in words[1:]:
            if word.startswith("--"):
                self.assertIn(word.split("=")[0], OPTIONS[program], where)

    def check_config(self, where, program, text):
        """All keys and values are good; files need not be here."""
        tomllib.loads(text)
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            done = subprocess.run(
                [os.path.join(BIN, program), "--check-config", "--config",
                 file.name], capture_output=True, text=True, check=False)
        self.assertNotIn(file.name, done.stderr, where)

    # --- Grafana ---

    def test_the_dashboard_asks_for_metrics_that_there_are(self):
        dashboard = json.loads(read("grafana", "tilefarm.json"))
        with open(os.path.join(SOURCE, "docs", "formats.md"),
                  encoding="utf-8") as file:
            formats = file.read()
        known = set(re.findall(r"^\| `(tilefarm_\w+)` \|", formats, re.M))
        self.assertGreater(len(known), 15)
        asked = set()
        for panel in dashboard["panels"]:
            self.assertTrue(panel["title"])
            for target in panel["targets"]:
                asked |= set(re.findall(r"\btilefarm_\w+", target["expr"]))
        asked = {re.sub("_bucket$", "", name) for name in asked}
        self.assertEqual(asked - known, set())

    # --- systemd ---

    def units(self):
        for name in sorted(os.listdir(os.path.join(DEPLOY, "systemd"))):
            yield name, read("systemd", name)

    def test_units_start_what_there_is(self):
        names = [name for name, _ in self.units()]
        self.assertEqual(names, ["rpc-worker.service", "tune-server.service"])
        for name, text in self.units():
            commands = re.findall(r"^Exec\w+=(.+)$", text, re.M)
            self.assertTrue(commands, name)
            for command in commands:
                self.check_command(name, shlex.split(command))
            for line in ("Type=notify", "Restart=on-failure",
                         "ProtectSystem=strict"):
                self.assertIn("\n" + line + "\n", text, name)
            self.assertRegex(text, r"\nWatchdogSec=\d+\n")

    def test_systemd_takes_the_units(self):
        tool = shutil.which("systemd-analyze")
        if tool is None:
            self.skipTest("systemd-analyze is missing")
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, text in self.units():
                # Users and documentation are the installation's.
                text = re.sub(r"^(User|Group|Documentation)=.*\n", "", text,
                              flags=re.M)
                paths.append(os.path.join(folder, name))
                with open(paths[-1], "w", encoding="utf-8") as file:
                    file.write(text.replace("/usr/local/bin", BIN))
            done = subprocess.run([tool, "verify", "--man=no"] + paths,
                                  capture_output=True, text=True, check=False)
            own = [line for line in done.stderr.splitlines()
                   if "tune-server" in line or "rpc-worker" in line]
            self.assertEqual(own, [])

    # --- containers ---

    def test_containers_run_what_they_hold(self):
        for part, program in (("server", "tune-server"),
                              ("worker", "rpc-worker")):
            name = "Containerfile." + part
            text = read("container", name).replace("\\\n", " ")
            words = []
            for key in ("ENTRYPOINT", "CMD"):
                found = re.findall(rf"^{key} \[(.*)\]$", text, re.M)
                self.assertEqual(len(found), 1, name)
                words += re.findall(r'"([^"]*)"', found[0])
            self.check_command(name, words)
            self.assertEqual(os.path.basename(words[0]), program)
            copied = re.findall(r"^COPY --from=build (.*) /usr/local/bin/$",
                                text, re.M)
            built = set(re.findall(r"--target ([a-z -]+?) *$", text,
                                   re.M)[0].split())
            held = {os.path.basename(path) for path in copied[0].split()}
            self.assertEqual(held, built, name)
            self.assertIn(program, held)
            for own in re.findall(r"^COPY (deploy/\S+) ", text, re.M):
                self.assertTrue(os.path.exists(os.path.join(SOURCE, own)), own)

    def test_labels_of_a_node_become_those_of_its_device(self):
        with tempfile.TemporaryDirectory() as folder:
            def write(name, text):
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                os.chmod(path, 0o755)
                return path
            write("token", "secret-of-the-pod")
            write("ca.crt", "")
            # Checks what it is asked with, and answers as the API does.
            write("curl", """#!/bin/bash
case "$*" in *secret*) exit 3 ;; esac
for word; do [[ $word != @* ]] || grep -q 'Bearer secret' "${word#@}" || exit 4; done
[[ ${!#} == */api/v1/nodes/n1 ]] || exit 5
echo '{"metadata": {"labels": {"device.tilefarm.dev/rack": "7",
  "device.tilefarm.dev/a.b": "x\\"y", "kubernetes.io/arch": "arm64"}}}'
""")
            template = write("in.toml", 'name = "n"\n')
            out = os.path.join(folder, "out.toml")
            done = subprocess.run(
                [os.path.join(DEPLOY, "container", "node-labels"), "n1",
                 template, out],
                env={"PATH": folder + ":/usr/bin:/bin",
                     "TILEFARM_POD_SECRETS": folder},
                capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out, encoding="utf-8") as file:
                text = file.read()
        self.assertEqual(tomllib.loads(text),
                         {"name": "n", "labels": {"rack": "7", "a.b": 'x"y'}})
        self.check_config("node-labels", "rpc-worker", text)

    # --- Kubernetes ---

    def documents(self):
        folder = os.path.join(DEPLOY, "kubernetes")
        for name in sorted(os.listdir(folder)):
            for document in yaml.safe_load_all(read("kubernetes", name)):
                yield name, document

    def pods(self):
        for name, document in self.documents():
            if document["kind"] in ("StatefulSet", "Deployment"):
                yield name, document, document["spec"]["template"]

    def test_manifests_are_complete(self):
        kinds = sorted(document["kind"] for _, document in self.documents())
        self.assertEqual(kinds, [
            "ClusterRole", "ClusterRoleBinding", "ConfigMap", "ConfigMap",
            "Deployment", "NetworkPolicy", "NetworkPolicy", "Service",
            "ServiceAccount", "StatefulSet"])
        for name, document in self.documents():
            self.assertIn("apiVersion", document, name)
            if not document["kind"].startswith("ClusterRole"):
                self.assertEqual(document["metadata"]["namespace"], "tilefarm")

    def test_containers_of_pods_have_options_and_volumes_that_exist(self):
        maps = {document["metadata"]["name"]: document["data"]
                for _, document in self.documents()
                if document["kind"] == "ConfigMap"}
        for name, owner, pod in self.pods():
            spec = pod["spec"]
            volumes = {volume["name"] for volume in spec["volumes"]}
            volumes |= {claim["metadata"]["name"] for claim in
                        owner["spec"].get("volumeClaimTemplates", [])}
            for volume in spec["volumes"]:
                if "configMap" in volume:
                    self.assertIn(volume["configMap"]["name"], maps, name)
                if "secret" in volume:
                    # A key that others may read is refused.
                    self.assertEqual(volume["secret"]["defaultMode"], 0o400)
            self.assertNotIn("fsGroup", spec.get("securityContext", {}), name)
            for container in spec["containers"]:
                self.check_command(name, [container["name"]] +
                                   container["args"])
            for container in (spec["containers"] +
                              spec.get("initContainers", [])):
                mounts = {mount["name"]
                          for mount in container["volumeMounts"]}
                self.assertLessEqual(mounts, volumes, name)
                for probe in ("startupProbe", "livenessProbe",
                              "readinessProbe"):
                    if probe in container:
                        self.assertRegex(
                            container[probe]["exec"]["command"][-1],
                            r"^http://127\.0\.0\.1:7071/(healthz|readyz)$")
            labels = pod["metadata"]["labels"]
            self.assertLessEqual(
                owner["spec"]["selector"]["matchLabels"].items(),
                labels.items(), name)
        self.check_config("server.yaml", "tune-server",
                          maps["tilefarm-server"]["tune-server.toml"])
        self.check_config("worker.yaml", "rpc-worker",
                          maps["tilefarm-worker"]["rpc-worker.toml"])

    def test_files_that_configurations_name_are_mounted(self):
        maps = {document["metadata"]["name"]: document["data"]
                for _, document in self.documents()
                if document["kind"] == "ConfigMap"}
        for name, _, pod in self.pods():
            container = pod["spec"]["containers"][0]
            mounts = [mount["mountPath"]
                      for mount in container["volumeMounts"]]
            data = maps[next(volume["configMap"]["name"]
                             for volume in pod["spec"]["volumes"]
                             if "configMap" in volume)]
            config = tomllib.loads(data[container["name"] + ".toml"])
            for key, value in config.items():
                if isinstance(value, str) and value.startswith("/"):
                    self.assertTrue(
                        any(value.startswith(mount) for mount in mounts),
                        f"{name}: {key} = {value}")

    def test_every_worker_has_an_identity_of_its_own(self):
        text = read("kubernetes", "worker-node.yaml")
        # As the file's head says.
        self.assertIn('make-certs certs --worker "$node"', text)
        seen = set()
        for node in ("n1", "n2.example.org"):
            workers = list(yaml.safe_load_all(text.replace("NODE", node)))
            self.assertEqual([one["kind"] for one in workers], ["Deployment"])
            spec = workers[0]["spec"]["template"]["spec"]
            self.assertEqual(workers[0]["spec"]["replicas"], 1)
            self.assertEqual(spec["nodeSelector"],
                             {"kubernetes.io/hostname": node})
            args = spec["containers"][0]["args"]
            # The name that the certificate covers.
            self.assertEqual(args[args.index("--name") + 1], node)
            secrets = {volume["secret"]["secretName"]
                       for volume in spec["volumes"] if "secret" in volume}
            self.assertEqual(secrets, {f"tilefarm-worker-{node}"})
            names = secrets | {workers[0]["metadata"]["name"]}
            self.assertTrue(seen.isdisjoint(names))
            seen |= names
        others = [volume["secret"]["secretName"] for name, _, pod in self.pods()
                  if name != "worker-node.yaml"
                  for volume in pod["spec"]["volumes"] if "secret" in volume]
        self.assertEqual(others, ["tilefarm-server"])

    def test_policies_and_services_select_pods_that_exist(self):
        labels = [pod["metadata"]["labels"] for _, _, pod in self.pods()]
        for name, document in self.documents():
            if document["kind"] == "Service":
                selector = document["spec"]["selector"]
            elif document["kind"] == "NetworkPolicy":
                selector = document["spec"]["podSelector"]["matchLabels"]
            else:
                continue
            self.assertTrue(any(selector.items() <= one.items()
                                for one in labels), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
