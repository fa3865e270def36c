"""schemathesis against a control API, by its OpenAPI document: bounded, and the same requests each time."""

import json
import subprocess

from tests.lib.build import FULL, ROOT, patience
from tests.lib.pinned import pinned_import, pinned_program

DOCUMENT = ROOT / "ragent/control/openapi.yaml"
METHODS = {"get", "post", "put"}
EXAMPLES = 50 if FULL else 12  # per operation and phase
SECONDS = 180


def document():
    pinned_import()
    import yaml  # pylint: disable=import-outside-toplevel
    described = yaml.safe_load(DOCUMENT.read_text())
    del described["paths"]["/readyz"]  # its 503 is no fault
    return described


def operations():
    return {f"{method.upper()} {path}" for path, row in document()["paths"].items() for method in METHODS & row.keys()}


def _with_examples(known):
    """The document with values that exist: random values would name none."""
    made = document()
    for parameter in made["components"]["parameters"].values():
        if parameter["in"] == "path" and parameter["name"] in known:
            parameter.pop("example", None)
            parameter["examples"] = {f"e{i}": {"value": value} for i, value in enumerate(known[parameter["name"]])}
    _spare_ourselves(made, known)
    return made


def _spare_ourselves(made, known):
    """The requests come over connections of the cluster, from addresses that others need."""
    parameters = made["components"]["parameters"]
    parameters["BlockedNetwork"]["schema"] = {"type": "string", "pattern": r"^198\.51\.100\.([1-9]|[1-9][0-9])$"}
    parameters["Id"].update(required=True, examples={f"e{i}": {"value": one} for i, one in enumerate(known["to end"])})
    made["paths"]["/v1/connections/end"]["post"]["parameters"] = [{"$ref": "#/components/parameters/Id"}]


def _answers(report):
    """({operation: statuses it answered}, operations of the phase that tries everything)"""
    seen, fuzzed = {}, set()
    for line in report.read_text().splitlines():
        scenario = json.loads(line).get("ScenarioFinished")
        if not scenario or scenario["phase"] == "stateful":
            continue
        recorder = scenario["recorder"]
        answers = [a["response"]["status_code"] for a in recorder.get("interactions", {}).values() if a["response"]]
        seen.setdefault(recorder["label"], set()).update(answers)
        if answers and scenario["phase"] == "fuzzing":
            fuzzed.add(recorder["label"])
    return seen, fuzzed


def fuzz_api(url, token, folder, known, ca=None):
    """Asserts that nothing is found. Returns the statuses of every operation. `known`: values that exist, by name of the
    parameter."""
    described, report = folder / "openapi.json", folder / "report.ndjson"
    described.write_text(json.dumps(_with_examples(known)))
    command = [*pinned_program("st"), "run", str(described), "--url", url, "--header", f"Authorization: Bearer {token}",
               "--checks", "all", "--exclude-checks", "ignored_auth",  # who guesses tokens is locked out
               "--generation-deterministic", "--max-examples", str(EXAMPLES), "--continue-on-failure", "--no-color",
               "--request-timeout", str(patience(20)), "--report", "ndjson", "--report-ndjson-path", str(report)]
    done = subprocess.run(command + (["--tls-verify", ca] if ca else []), cwd=folder, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=patience(SECONDS))
    assert done.returncode == 0 and "Traceback" not in done.stdout, done.stdout
    seen, fuzzed = _answers(report)
    assert fuzzed == operations(), "schemathesis left operations out"
    return seen
