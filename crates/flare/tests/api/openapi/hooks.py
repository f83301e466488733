"""What schemathesis has to be told about Flare: formats, media types, answers without an end, and the reasons for which
a request that fits its schema may be refused all the same.
"""

import itertools
import json
import os
import re
from urllib.parse import urlsplit, urlunsplit

import requests
import schemathesis
from hypothesis import strategies as st

# Formats are names in the description for texts that a schema cannot say in full. These are right, so that what is made
# up from the description gets past the door.
NAMES = st.text(alphabet="abcdefghij", min_size=3, max_size=10)
schemathesis.openapi.format("go-duration", st.sampled_from(["1ms", "300ms", "1s", "1.5s", "2s"]))
schemathesis.openapi.format("document-url", st.sampled_from([f"http://api.company.com/users/{n}" for n in range(1, 9)]))
schemathesis.openapi.format("endpoint", NAMES.map(lambda name: f"http://{name}.test/{name}/{{id}}"))
schemathesis.openapi.format("url-template", NAMES.map(lambda name: f"http://127.0.0.1:9/{name}/{{id}}"))
schemathesis.openapi.format("cel", st.sampled_from(["document.version > 1", "true", "revision == 2"]))
schemathesis.openapi.format("go-layout", st.sampled_from(["2006-01-02", "2006-01-02T15:04:05Z07:00", "Jan _2 2006"]))
schemathesis.openapi.format("flare-revision", st.integers(0, 99).map(str))

# Why a request that fits its schema is refused: rules between fields, bounds of durations, and what depends on what is
# stored. Any other refusal of such a request is a failure, of the API or of its description.
ANYWHERE = [
    # JSON Schema takes 89.0 for an integer, Flare does not: a revision must never go through a float.
    r"a number stands where an integer .*is expected",
    # A schema cannot compare durations.
    r"must be (above 0 and )?at most \w+(\.\d+)?\w*, got",
    r"must be between 1ms and 24h, got",
    r"must be longer than 0s",
]
SUBSCRIPTION = [
    r"^endpoint\.url: is required, or",
    # Certificates are texts that a schema cannot describe.
    r"^endpoint\.tls",
    r"\d+ is in delivery\.success too",
    r"maxInterval must be at least the interval",
    r"^shards: must be at most",
    r"rateLimit\.burst: must be from 1 to the quantity",
    r"(needs|belongs to) (content\.|the format)",
    r"^content\.patch: needs content\.document",
    r"^endpoint\.\S+: (belongs to the protocol|begins like a header of Flare's own|belongs to the event)",
    r"is how a client tells",
    r"^data\.\S*: (becomes an attribute|is an attribute)",
    r"^data\.\S*: .*(wildcard|brace|\{)",
]
# Which fields a source or a target has depends on its type, and so does what they may be; a schema has them all.
CONSUMER = [r"^(source|payload)\b"]
PRODUCER = SUBSCRIPTION + [
    r"^(target|metadata|ttl|content)\b",
    # What is written as a whole may have all of it, and not all of it can be changed.
    r"^(secret|start): cannot be",
    r"missing field",
]
REASONS = {
    "createConsumer": CONSUMER,
    "replaceConsumer": CONSUMER,
    "createProducer": PRODUCER,
    "changeProducer": PRODUCER,
    "replaceProducer": PRODUCER,
    "testProducer": [r"^action: the document is deleted", r"is not a document of"],
    "createSubscription": SUBSCRIPTION,
    "changeSubscription": SUBSCRIPTION
    + [
        # A patch takes something away that what is left cannot be without.
        r"missing field",
    ],
    "simulateRetry": [r"maxInterval must be at least the interval"],
    "deliver": [r"^concurrency: must be between 1 and"],
    "replay": [
        r"^(since|status|error): goes with the scope",
        r"^error: goes without a status",
        r"is not a document of this (resource|consumer)",
    ],
    "listDrift": [r"^offset may be \d+ at most here"],
    "rotateSecret": [r"^secret: is the one that is being replaced"],
    "reroute": [r"^commands: there is no (unit|node)"],
    "settle": [r"delay: goes with the status `release` only", r"for: (has to be there|goes) with the status `extend`"],
    "testSubscription": [r"^action: the document is deleted", r"is not a document of this resource"],
    "putDocument": [r"has no field \"version\"", r"field \"version\""],
    "deleteDocument": [r"Flare-Revision"],
}


@schemathesis.hook
def filter_failure(context, failure, case, response):
    if type(failure).__name__ != "RejectedPositiveData" or response.status_code != 400:
        return True
    detail = json.loads(response.content)["error"]["detail"]
    # What is below a producer is what is below a subscription.
    name = case.operation.definition.raw["operationId"].removesuffix("OfProducer")
    return not any(re.search(reason, detail) for reason in ANYWHERE + REASONS.get(name, []))


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
    # There is nothing that would be waited for.
    if case.operation.path == "/cluster/health" and case.query:
        case.query.pop("timeout", None)
    # A long poll need not be that long here.
    if case.query and case.query.get("wait") in ("15s", "1m30s"):
        case.query["wait"] = "100ms"


# Of several nodes each request goes to the next one.
NODES = os.environ.get("FLARE_NODES", "").split()
if NODES:
    send_there, turns = requests.adapters.HTTPAdapter.send, itertools.cycle(NODES)

    def send_to_the_next(adapter, request, **how):
        request.url = urlunsplit(urlsplit(request.url)._replace(netloc=next(turns)))
        return send_there(adapter, request, **how)

    requests.adapters.HTTPAdapter.send = send_to_the_next
