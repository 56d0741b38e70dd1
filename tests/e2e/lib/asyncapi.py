"""etc/asyncapi.yaml as read by AsyncAPI's own parser, and validation of records against it."""

import json
import os
import pathlib
import subprocess

import jsonschema

ROOT = pathlib.Path(__file__).parents[3]
PATH = ROOT / "etc" / "asyncapi.yaml"
SCHEMAS = ROOT / "etc" / "schemas"
MODULES = ROOT / "build" / "asyncapi" / "node_modules"
SECONDS = 120
PREFIX = "{prefix}"


def read(path=PATH):
    """Parse a file. Returns the parser's findings and the document with all references resolved."""
    assert (MODULES / "@asyncapi" / "parser").is_dir(), \
        f"{MODULES} has no @asyncapi/parser: `tests/run --prepare` installs it, and needs npm and its registry"
    done = subprocess.run(["node", ROOT / "tests" / "asyncapi" / "read.js", path], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=SECONDS, env=os.environ | {"NODE_PATH": MODULES})
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    return answer["diagnostics"], answer["document"]


def problems(schema, value):
    """The violations of a schema: AsyncAPI's schemas are JSON Schema draft 7 with extensions."""
    return [f"{error.json_path}: {error.message}" for error in jsonschema.Draft7Validator(schema).iter_errors(value)]


def property_names(schema):
    """The names of the top-level properties in the schema of an object."""
    names = set(schema.get("properties", ()))
    return names.union(*map(property_names, schema.get("allOf", ())))


class Channel:
    """A topic of the document with its message type: quarantine has markers of releases, too."""

    def __init__(self, description):
        self.topic = description["address"].removeprefix(PREFIX + ".")
        (self.use,) = [tag["name"] for tag in description["tags"]]
        self.binding = description["bindings"]["kafka"]
        self.marker = description["messages"].pop("releaseMarker", None)
        (self.message,) = description["messages"].values()
        self.headers = self.message["headers"]
        self.key = self.message["bindings"]["kafka"]["key"]
        self.payload = self.message["payload"]

    @property
    def header_names(self):
        return property_names(self.headers)

    def problems(self, record):
        """The violations of the document by a record."""
        headers = {name: value.decode() for name, value in record.headers}
        if self.marker and not record.value and "gatepost-reason" not in headers:
            return problems(self.marker["headers"], headers) + problems(self.key, record.key.decode())
        repeated = [] if len(headers) == len(record.headers) else ["a header appears twice"]
        return (repeated + problems(self.headers, headers) + problems(self.key, record.key.decode()) +
                self._problems_of_body(record.value))

    def _problems_of_body(self, body):
        if self.message["contentType"] != "application/json":
            return problems(self.payload, body.decode("latin-1"))
        try:
            return problems(self.payload, json.loads(body))
        except ValueError as error:
            return [f"the body is not JSON: {error}"]


class Document:
    def __init__(self):
        self.diagnostics, self.document = read()
        assert self.document, self.diagnostics
        self.channels = {channel.topic: channel for channel in map(Channel, self.document["channels"].values())}
