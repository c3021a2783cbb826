"""A real S3 server for tests (moto's, in this process) behind a layer that can be told to misbehave.

Prints `port N` once it listens on 127.0.0.1, and ends when its standard input does. It is told what to do by requests
under `/__control/`, each with a JSON object as its body:

    bucket   {name}                                    makes a bucket
    preload  {bucket, prefix, n, bytes}                makes n objects `<prefix>000000`, ... without a request for each;
                                                       the content of each is its number, filled up with dots, and
                                                       everybody may read them
    fill     {bucket, prefix, ending, n, files}        makes n objects `<prefix>000000<ending>`, ... each with the content of
                                                       one of the local files, in turns
    put      {bucket, key, file}                       makes an object of a local file, whatever its key
    fault    {on, key, times, do, status, retry_after, after, to}
                                                       the next `times` requests of the kind `on` (any, if it is missing)
                                                       for keys that contain `key` get: `do: status`, an answer with
                                                       `status`; `do: cut`, a body that breaks off after `after` bytes;
                                                       `do: reset`, a closed connection; `do: whole`, an answer that
                                                       ignores the range that was asked for; `do: redirect`, one to `to`;
                                                       `do: hang`, no answer before the server ends; `do: lost`, what was
                                                       asked for is done, and then the connection is closed;
                                                       `do: lost_hang`, it is done, and then there is no answer;
                                                       `do: as`, what is at the path `to`; `do: gather`, an answer
                                                       once `times` of them are there at the same time
    empty    {bucket, key}                             makes an empty object, whatever its key
    begin    {bucket, key}                             begins an upload in parts
    delay    {ms}                                      every request takes so much longer
    counts   {key}                                     answers how many requests of each kind there were, for keys that
                                                       contain `key`
    forget   {}                                        forgets counts, faults and the delay
    uploads  {bucket}                                  answers the keys of the uploads in parts that are under way
"""

import json
import socket
import struct
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qs, unquote

from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import get_canned_acl, s3_backends
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


def backend():
    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


def kind_of(environ):
    """What sort of request it is, in S3's own terms."""
    method, query = environ["REQUEST_METHOD"], parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    key = unquote(environ["PATH_INFO"]).lstrip("/").partition("/")[2]
    if "uploadId" in query:
        return {"PUT": "part", "POST": "complete", "DELETE": "abort"}.get(method, "other")
    if "uploads" in query:
        return {"POST": "create", "GET": "list_uploads"}.get(method, "other")
    if not key:
        return "list" if method == "GET" else "other"
    return {"GET": "get", "HEAD": "head", "PUT": "put", "DELETE": "delete"}.get(method, "other")


class Misbehaving:
    """The layer in front of the server."""

    def __init__(self, app):
        self.app = app
        self.lock = threading.Lock()
        self.forget()

    def forget(self):
        self.asked, self.faults, self.delay = Counter(), [], 0

    def __call__(self, environ, start_response):
        path = environ["PATH_INFO"]
        if path.startswith("/__control/"):
            size = int(environ.get("CONTENT_LENGTH") or 0)
            told = json.loads(environ["wsgi.input"].read(size) or "{}")
            answer = json.dumps(getattr(self, "do_" + path.removeprefix("/__control/"))(**told)).encode()
            start_response("200 OK", [("Content-Length", str(len(answer)))])
            return [answer]
        kind = kind_of(environ)
        with self.lock:
            # The server takes doubled slashes for one: keys are told apart by what came.
            path = environ.get("RAW_URI", path).split("?")[0]
            self.asked[kind, unquote(path)] += 1
            fault, delay = self.fault_for(kind, unquote(path)), self.delay
        if delay:
            time.sleep(delay / 1000)
        if fault is None:
            return self.app(environ, start_response)
        return getattr(self, "fault_" + fault["do"])(fault, environ, start_response)

    def fault_for(self, kind, path):
        for fault in self.faults:
            if fault.get("on", kind) == kind and fault.get("key", "") in path and fault["times"] > 0:
                fault["times"] -= 1
                return fault
        return None

    def fault_status(self, fault, environ, start_response):
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        codes = {403: "AccessDenied", 404: "NoSuchKey", 429: "TooManyRequests", 503: "SlowDown"}
        code = codes.get(fault["status"], "InternalError")
        body = f"<Error><Code>{code}</Code><Message>As told.</Message><Query>{environ['QUERY_STRING']}</Query></Error>"
        headers = [("Content-Length", str(len(body))), ("Content-Type", "application/xml")]
        if "retry_after" in fault:
            headers.append(("Retry-After", fault["retry_after"]))
        start_response(f"{fault['status']} As-Told", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body.encode()]

    def fault_cut(self, fault, environ, start_response):
        body = b"".join(self.app(environ, start_response))
        assert len(body) > fault["after"], "there is nothing to cut off"
        yield body[: fault["after"]]
        self.hang_up(environ)

    def fault_reset(self, fault, environ, start_response):
        self.hang_up(environ)

    def fault_whole(self, fault, environ, start_response):
        environ.pop("HTTP_RANGE", None)
        if "after" in fault:
            return self.fault_cut(fault, environ, start_response)
        return self.app(environ, start_response)

    def fault_redirect(self, fault, environ, start_response):
        start_response("302 Found", [("Location", fault["to"]), ("Content-Length", "0")])
        return []

    def fault_lost(self, fault, environ, start_response):
        b"".join(self.app(environ, start_response))
        self.hang_up(environ)

    def fault_lost_hang(self, fault, environ, start_response):
        b"".join(self.app(environ, start_response))
        self.fault_hang(fault, environ, start_response)

    def fault_as(self, fault, environ, start_response):
        for name in ("PATH_INFO", "RAW_URI", "REQUEST_URI"):
            environ[name] = fault["to"]
        environ.pop("HTTP_IF_MATCH", None)
        return self.app(environ, start_response)

    def fault_gather(self, fault, environ, start_response):
        fault["gate"].wait(60)
        return self.app(environ, start_response)

    def fault_hang(self, fault, environ, start_response):
        threading.Event().wait()

    def hang_up(self, environ):
        connection = environ["werkzeug.socket"]
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
        connection.shutdown(socket.SHUT_RDWR)
        raise ConnectionResetError("as told")

    def do_bucket(self, name):
        backend().create_bucket(name, "us-east-1")

    def do_preload(self, bucket, prefix, n, bytes):
        for number in range(n):
            content = str(number).encode().ljust(bytes, b".")
            key = backend().put_object(bucket, f"{prefix}{number:06}", content, disable_notification=True)
            key.set_acl(get_canned_acl("public-read"))

    def do_fill(self, bucket, prefix, ending, n, files):
        contents = [Path(file).read_bytes() for file in files]
        for number in range(n):
            self.make(bucket, f"{prefix}{number:06}{ending}", contents[number % len(contents)])

    def do_put(self, bucket, key, file):
        self.make(bucket, key, Path(file).read_bytes())

    def make(self, bucket, key, content):
        made = backend().put_object(bucket, key, content, disable_notification=True)
        made.set_acl(get_canned_acl("public-read"))

    def do_empty(self, bucket, key):
        backend().put_object(bucket, key, b"", disable_notification=True)

    def do_begin(self, bucket, key):
        backend().create_multipart_upload(bucket, key, {}, "STANDARD", {}, None, None, None)

    def do_fault(self, **fault):
        if fault["do"] == "gather":
            fault["gate"] = threading.Barrier(fault["times"])
        with self.lock:
            self.faults.append(fault)

    def do_delay(self, ms):
        self.delay = ms

    def do_counts(self, key=""):
        counts = Counter()
        with self.lock:
            for (kind, path), n in self.asked.items():
                counts[kind] += n if key in path else 0
        return counts

    def do_forget(self):
        with self.lock:
            self.forget()

    def do_uploads(self, bucket):
        return [upload.key_name for upload in backend().get_bucket(bucket).multiparts.values()]


class Quiet(WSGIRequestHandler):
    def log(self, type, message, *args):
        pass


def main():
    app = Misbehaving(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"port {server.server_port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
