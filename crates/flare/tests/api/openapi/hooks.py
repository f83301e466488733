"""What schemathesis has to be told about Flare: media types, formats, and an answer that has no end.

Formats are names in the description for texts that a schema cannot say in full; here are some that are right, so that
requests made up from the description get past the door.
"""

import json

import schemathesis
from hypothesis import strategies as st

NAMES = st.text(alphabet="abcdefghij", min_size=3, max_size=10)

schemathesis.openapi.format("go-duration", st.sampled_from(["1ms", "300ms", "1s", "1.5s", "2s"]))
schemathesis.openapi.format("document-url", st.sampled_from([f"http://api.company.com/users/{n}" for n in range(1, 9)]))
schemathesis.openapi.format("endpoint", NAMES.map(lambda name: f"http://{name}.test/{name}/{{id}}"))
schemathesis.openapi.format("url-template", NAMES.map(lambda name: f"http://127.0.0.1:9/{name}/{{id}}"))
schemathesis.openapi.format("cel", st.sampled_from(["document.version > 1", "true", "revision == 2"]))
schemathesis.openapi.format("go-layout", st.sampled_from(["2006-01-02", "2006-01-02T15:04:05Z07:00", "Jan _2 2006"]))
schemathesis.openapi.format("flare-revision", st.integers(0, 99).map(str))


@schemathesis.serializer("application/x-ndjson")
def write_lines(context, value):
    if isinstance(value, list):
        return {"data": "".join(json.dumps(line) + "\n" for line in value).encode()}
    return {"data": json.dumps(value).encode()}


@schemathesis.deserializer("application/x-ndjson")
def read_lines(context, response):
    return [json.loads(line) for line in response.content.decode().splitlines() if line]


def read_one_line(response, **_):
    """`GET /tail` goes on until the reader leaves: it takes a line, and leaves."""
    if response.headers.get("content-type") == "application/x-ndjson":
        response._content = next(response.iter_lines(), b"") + b"\n"
        response.close()


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.operation.path == "/tail":
        kwargs["hooks"] = {"response": read_one_line}
