"""A server that answers those requests alone whose signature is right: python3 aws_server.py CERTIFICATE KEY SECRET

Speaks no TLS if CERTIFICATE is `-`. Prints its port, then a line for each request: `good` or `bad`, method and path.
"""

import http.server
import ssl
import sys
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

CERTIFICATE, KEY, SECRET = sys.argv[1:]


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        sent = self.headers["Authorization"]
        parts = dict(part.strip().split("=", 1) for part in sent.split(" ", 1)[1].split(","))
        key_id, _, region, service, _ = parts["Credential"].split("/")
        host = self.headers["Host"]
        request = AWSRequest(method=self.command, url=f"https://{host}{self.path}", data=body)
        for name in parts["SignedHeaders"].split(";"):
            request.headers[name] = self.headers[name]
        kind = S3SigV4Auth if service == "s3" else SigV4Auth
        auth = kind(Credentials(key_id, SECRET), service, region)
        request.context["timestamp"] = self.headers["X-Amz-Date"]
        if "X-Amz-Content-SHA256" in self.headers:
            auth.payload = lambda _: self.headers["X-Amz-Content-SHA256"]
        request.params = {}
        canonical = auth.canonical_request(request)
        signature = auth.signature(auth.string_to_sign(request, canonical), request)
        is_good = signature == parts["Signature"] and urlsplit(self.path).path.startswith("/")
        print("good" if is_good else "bad", self.command, self.path, key_id, flush=True)
        text = b"<R><GetCallerIdentityResult><Arn>" + sent.encode() + b"</Arn></GetCallerIdentityResult></R>"
        self.send_response(200 if is_good else 403)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Content-Type", "text/xml")
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else text)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
if CERTIFICATE != "-":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
