# A real OTLP receiver: the published protobuf definitions and gRPC's own server take what Flare exports. Each span and
# metric becomes a line of JSON on the standard output; lines on the standard input say how to answer from then on.
import json, ssl, sys, threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as traces_grpc

protocol, port = sys.argv[1], int(sys.argv[2])
# A certificate and its key, where it speaks TLS.
tls = sys.argv[3:5]
mode = ["take"]
lock = threading.Lock()


def say(value):
    with lock:
        print(json.dumps(value), flush=True)


def value(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


def attributes(pairs):
    return {pair.key: value(pair.value) for pair in pairs}


def known(message):
    """Insists that the published definitions know every field that was sent."""
    before = message.SerializeToString()
    message.DiscardUnknownFields()
    assert message.SerializeToString() == before, "there are fields that the definitions do not know"


def take_spans(request, headers):
    known(request)
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                say({
                    "kind": "span",
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "state": span.trace_state,
                    "name": span.name,
                    "spanKind": span.SpanKind.Name(span.kind),
                    "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano,
                    "attributes": attributes(span.attributes),
                    "status": span.status.StatusCode.Name(span.status.code),
                    "why": span.status.message,
                    "flags": span.flags,
                    "resource": attributes(resource_spans.resource.attributes),
                    "scope": scope_spans.scope.name,
                    "headers": headers,
                })


def take_metrics(request, headers):
    known(request)
    for resource_metrics in request.resource_metrics:
        for scope_metrics in resource_metrics.scope_metrics:
            for metric in scope_metrics.metrics:
                kind = metric.WhichOneof("data")
                for point in getattr(metric, kind).data_points:
                    line = {
                        "kind": "metric",
                        "name": metric.name,
                        "unit": metric.unit,
                        "description": metric.description,
                        "type": kind,
                        "attributes": attributes(point.attributes),
                        "start": point.start_time_unix_nano,
                        "time": point.time_unix_nano,
                        "resource": attributes(resource_metrics.resource.attributes),
                        "headers": headers,
                    }
                    if kind == "histogram":
                        line |= {"count": point.count, "sum": point.sum, "bounds": list(point.explicit_bounds),
                                 "buckets": list(point.bucket_counts)}
                        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
                        assert sum(point.bucket_counts) == point.count
                    else:
                        line["value"] = getattr(point, point.WhichOneof("value"))
                    if kind != "gauge":
                        line["temporality"] = getattr(metric, kind).aggregation_temporality
                    say(line)


def answer_to(kind, request, headers):
    """The answer, or a status for HTTP and a code for gRPC."""
    said = mode[0]
    if said == "hang":
        threading.Event().wait()
    if said == "later" or (said == "no-traces" and kind is traces):
        say({"kind": "refused"})
        return 503, grpc.StatusCode.UNAVAILABLE
    if said == "never":
        say({"kind": "refused"})
        return 400, grpc.StatusCode.INVALID_ARGUMENT
    (take_spans if kind is traces else take_metrics)(request, headers)
    if kind is traces:
        answer = traces.ExportTraceServiceResponse()
        if said == "partly":
            answer.partial_success.rejected_spans = 1
            answer.partial_success.error_message = "one is too old"
        return answer
    return metrics.ExportMetricsServiceResponse()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.headers["content-type"] == "application/x-protobuf"
        kind, name = {"/v1/traces": (traces, "Trace"), "/v1/metrics": (metrics, "Metrics")}[self.path]
        request = getattr(kind, f"Export{name}ServiceRequest").FromString(body)
        answer = answer_to(kind, request, {name.lower(): value for name, value in self.headers.items()})
        refused = isinstance(answer, tuple)
        body = b"refused" if refused else answer.SerializeToString()
        self.send_response(answer[0] if refused else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Servicer:
    def __init__(self, kind):
        self.kind = kind

    def Export(self, request, context):
        answer = answer_to(self.kind, request, dict(context.invocation_metadata()))
        if isinstance(answer, tuple):
            context.abort(answer[1], "refused")
        return answer


if protocol == "grpc":
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    traces_grpc.add_TraceServiceServicer_to_server(Servicer(traces), server)
    metrics_grpc.add_MetricsServiceServicer_to_server(Servicer(metrics), server)
    if tls:
        certificate, key = (open(path, "rb").read() for path in tls)
        port = server.add_secure_port(f"127.0.0.1:{port}", grpc.ssl_server_credentials([(key, certificate)]))
    else:
        port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
else:
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
say({"kind": "ready", "port": port})
for line in sys.stdin:
    mode[0] = line.strip()
    say({"kind": "mode", "mode": mode[0]})
