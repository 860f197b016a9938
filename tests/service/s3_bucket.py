"""A store that speaks as much of S3 as the service needs, in memory; by itself it serves until it is ended."""

from __future__ import annotations

import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def settings(port: int) -> dict[str, str]:
    """Return the variables of the environment by which a service finds it."""
    told = {"ENDPOINT": f"http://127.0.0.1:{port}", "REGION": "eu-north-1"}
    told |= {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "ALLOW_HTTP": "true"}
    return {f"AWS_{name}": value for name, value in told.items()}


class Bucket(ThreadingHTTPServer):
    """As much of S3 as a store of files needs, in memory."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), S3)
        self.files: dict[str, bytes] = {}
        self.full = False
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class S3(BaseHTTPRequestHandler):
    """One call of a bucket."""

    server: Bucket

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.full:
            self.tell(403, b"<Error><Code>QuotaExceeded</Code></Error>")
            return
        self.server.files[self.path] = content
        self.tell(200, b"")

    def do_GET(self) -> None:
        content = self.server.files.get(self.path)
        if content is None or "AWS4-HMAC-SHA256" not in self.headers["Authorization"]:
            self.tell(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        wanted = self.headers.get("Range")
        if wanted is None:
            self.tell(200, content)
            return
        first, last = (int(n) for n in wanted.removeprefix("bytes=").split("-"))
        part = content[first : last + 1]
        self.tell(206, part, f"bytes {first}-{first + len(part) - 1}/{len(content)}")

    def do_POST(self) -> None:
        """Delete several, which is how one is deleted, too."""
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        keys = re.findall("<Key>(.*?)</Key>", asked)
        for key in keys:
            self.server.files.pop(f"{self.path.split('?')[0]}/{key}", None)
        told = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self.tell(200, f"<DeleteResult>{told}</DeleteResult>".encode())

    def tell(self, status: int, content: bytes, part: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", '"e"')
        self.send_header("Last-Modified", "Wed, 21 Oct 2026 07:28:00 GMT")
        if part:
            self.send_header("Content-Range", part)
        self.end_headers()
        self.wfile.write(content)


if __name__ == "__main__":
    serving = Bucket()
    sys.stdout.write(f"{serving.server_port}\n")
    sys.stdout.flush()
    threading.Event().wait()
