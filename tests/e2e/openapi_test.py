#!/usr/bin/env python3
"""Holds the API of a real server to docs/openapi.yaml.

  openapi_test.py BIN

Every route of the server is described and every described one is there; every
answer, errors included, fits its schema and has no key that the schema lacks.
"""
import sys
import unittest
import urllib.parse

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"{error.name} is missing: skipped")
    sys.exit(77)

from served import SOURCE, Served, programs_of

DOCUMENT = yaml.safe_load((SOURCE / "docs" / "openapi.yaml").read_text())
# What an answer may have beside the keys of its schema: these say so.
OPEN = {"Record", "options", "device_state"}


def resolve(schema):
    while "$ref" in schema:
        node = DOCUMENT
        for part in schema["$ref"].removeprefix("#/").split("/"):
            node = node[part]
        schema = node
    return schema


def operations():
    for path, item in DOCUMENT["paths"].items():
        for method in ("get", "post"):
            if method in item:
                yield method.upper(), path, item[method]


def schema_of(operation):
    """Of the answer 200; None: a stream."""
    answer = resolve(operation["responses"]["200"])
    content = answer["content"]
    return content["application/json"]["schema"] if (
        "application/json" in content) else None


def unknown_keys(schema, value, where=""):
    """Keys of objects that their schema does not have."""
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    schema = resolve(schema)
    if isinstance(value, list):
        for index, one in enumerate(value[:50]):
            yield from unknown_keys(schema.get("items", {}), one,
                                    f"{where}[{index}]")
        return
    if not isinstance(value, dict) or name in OPEN:
        return
    properties = dict(schema.get("properties", {}))
    for part in schema.get("allOf", []):
        properties |= resolve(part).get("properties", {})
    extra = schema.get("additionalProperties")
    for key, one in value.items():
        if key in properties and key not in OPEN:
            yield from unknown_keys(properties[key], one, f"{where}.{key}")
        elif key not in properties and not isinstance(extra, dict):
            yield f"{where}.{key}"


class OpenApiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.served = cls.enterClassContext(Served(
            BIN, ["--no-canary", "--allow-artifacts", "--artifact-isolation",
                  "none"]))
        cls.served.worker("desk")
        cls.job = cls.served.tuned("mm_relu.py", 12)
        cls.record = cls.served.get("/api/v1/records?status=ok")["records"][0]
        cls.values = {"job": cls.job, "device": "desk",
                      "record": cls.record["record"],
                      "workload": cls.record["workload"]}
        (cls.served.folder / "suite.toml").write_text(f"""
name = "kernels"
[[benchmark]]
name = "matmul"
program = "{SOURCE}/examples/mm_relu.py"
target = "host,cores=1"
schedule = "best"
""")
        for commit in ("first", "second"):
            cls.served.tune("regress", "run", "--suite", "suite.toml",
                            "--commit", commit)
        cls.history = cls.served.get("/api/v1/benchmarks")["benchmarks"][0]

    def values_of(self, operation):
        """A query with the parameters that the operation needs."""
        return {name: self.history[name] for name in (
            resolve(one)["name"] for one in operation.get("parameters", [])
            if resolve(one).get("required") and resolve(one)["in"] == "query")}

    def address(self, path, query):
        return (path.format(**self.values) +
                ("?" + urllib.parse.urlencode(query) if query else ""))

    def fits(self, schema, answer, where):
        whole = {**schema, "components": DOCUMENT["components"]}
        jsonschema.Draft202012Validator(whole).validate(answer)
        self.assertEqual(list(unknown_keys(schema, answer)), [], where)

    def test_the_document_is_complete_and_nothing_more(self):
        routes = {(one["method"], one["path"])
                  for one in self.served.get("/api/v1")["routes"]}
        described = {(method, path) for method, path, _ in operations()}
        self.assertEqual(routes - described, set(), "not described")
        self.assertEqual(described - routes, set(), "not served")

    def test_parameters_of_paths_are_declared(self):
        for method, path, operation in operations():
            declared = {resolve(one)["name"] for one in
                        DOCUMENT["paths"][path].get("parameters", []) +
                        operation.get("parameters", [])
                        if resolve(one)["in"] == "path"}
            named = {part[1:-1] for part in path.split("/")
                     if part.startswith("{")}
            self.assertEqual(declared, named, f"{method} {path}")

    def test_answers_fit(self):
        checked = 0
        for method, path, operation in operations():
            schema = schema_of(operation)
            if method != "GET" or schema is None:
                continue
            with self.subTest(path):
                answer = self.served.get(
                    self.address(path, self.values_of(operation)))
                self.fits(schema, answer, path)
                checked += 1
        self.assertGreater(checked, 15)

    def test_every_declared_parameter_is_taken(self):
        samples = {"integer": "1", "string": "x"}
        for method, path, operation in operations():
            for one in operation.get("parameters", []):
                parameter = resolve(one)
                schema = resolve(parameter["schema"])
                value = (schema["enum"][0] if "enum" in schema else
                         self.record["target"] if parameter["name"] == "target"
                         and "workloads" in path else samples[schema["type"]])
                where = self.address(path, {parameter["name"]: value} |
                                     self.values_of(operation))
                with self.subTest(where):
                    status, answer = self.served.ask(where)
                    self.assertEqual(status, 200, answer)

    def test_errors_fit(self):
        error = DOCUMENT["components"]["schemas"]["Error"]
        for path, status in (("/api/v1/nothing", 404),
                             ("/api/v1/jobs/none", 404),
                             ("/api/v1/jobs?limit=x", 400),
                             ("/api/v1/jobs/none/cancel", 405)):
            code, answer = self.served.ask(path)
            self.assertEqual(code, status)
            self.fits(error, answer, path)
        code, answer = self.served.ask("/api/v1/jobs", body={})
        self.assertEqual(code, 401)
        self.fits(error, answer, "POST")

    def test_orders_fit(self):
        schemas = {path: schema_of(operation) for method, path, operation in
                   operations() if method == "POST"}
        token = self.served.token("admin", "root")
        program = (SOURCE / "examples" / "mm_relu.py").read_text()
        status, job = self.served.ask(
            "/api/v1/jobs", token, {"program": program, "program_name": "x.py",
                                    "target": "aarch64:cortex-a72",
                                    "trials": 3})
        self.assertEqual(status, 200, job)
        self.fits(schemas["/api/v1/jobs"], job, "submit")
        status, cancelled = self.served.ask(
            f"/api/v1/jobs/{job['id']}/cancel", token, {})
        self.assertEqual(status, 200, cancelled)
        self.fits(schemas["/api/v1/jobs/{job}/cancel"], cancelled, "cancel")
        for action in ("drain", "resume"):
            status, device = self.served.ask(
                f"/api/v1/devices/desk/{action}", token, {"reason": "a test"})
            self.assertEqual(status, 200, device)
            self.fits(schemas["/api/v1/devices/{device}/{action}"], device,
                      action)
            self.fits(DOCUMENT["components"]["schemas"]["Device"], device,
                      action)


if __name__ == "__main__":
    BIN = programs_of(sys.argv)
    unittest.main()
