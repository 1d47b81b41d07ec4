"""A collector for tests: decodes OTLP with the generated messages of the opentelemetry-proto package, and writes a line of JSON
for each request that it takes. How it answers stands in the file that is its first argument, read anew for each request:
`take`, a status such as `503`, `partial`, or `400 TEXT`, which refuses every request that has this text in it."""
import http.server
import json
import pathlib
import ssl
import sys

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

MODE = pathlib.Path(sys.argv[1])
REQUESTS = {
    "/v1/logs": logs.ExportLogsServiceRequest,
    "/v1/metrics": metrics.ExportMetricsServiceRequest,
    "/v1/traces": traces.ExportTraceServiceRequest,
}


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        mode, _, text = MODE.read_text().strip().partition(" ")
        status, answer = 200, b""
        if mode.isdigit() and (not text or text.encode() in body):
            status = int(mode)
        elif self.headers["Content-Type"] != "application/x-protobuf":
            status = 415
        else:
            request = REQUESTS[self.path]()
            request.ParseFromString(body)
            if mode == "partial" and self.path == "/v1/logs":
                partial = logs.ExportLogsServiceResponse()
                partial.partial_success.rejected_log_records = 1
                answer = partial.SerializeToString()
            headers = {name.lower(): value for name, value in self.headers.items()}
            said = {"path": self.path, "headers": headers, "body": MessageToDict(request)}
            print(json.dumps(said), flush=True)
        self.send_response(status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Collector)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
