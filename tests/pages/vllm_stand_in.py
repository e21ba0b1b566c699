"""Stands for the `vllm` executable: serves the embedded reader under any model's names, as `vllm serve` would.

STAND_IN_PORT is the port where the command line names none; vLLM's own choice, 8000, may be taken.
"""

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ace_rehearsal.reader.backbone import EmbeddedBackbone
from ace_rehearsal.server.replies import completion_body, error_body
from ace_rehearsal.server.requests import BadRequest, read_request

READER = EmbeddedBackbone()
TOTALS = {"queries": 0, "hits": 0}


def values(option):
    """The words after an option of the command line, up to the next option."""
    if option not in sys.argv:
        return []
    after = sys.argv[sys.argv.index(option) + 1 :]
    end = next((place for place, word in enumerate(after) if word.startswith("--")), len(after))
    return after[:end]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    names = values("--served-model-name") or sys.argv[2:3]
    length = int((values("--max-model-len") or ["32768"])[0])

    def do_GET(self):
        pages = {
            "/health": {},
            "/v1/models": {"data": [{"id": name, "max_model_len": self.length} for name in self.names]},
        }
        if self.path == "/metrics":
            lines = [f"vllm:prefix_cache_{name}_total {float(count)}" for name, count in TOTALS.items()]
            self._send(200, "\n".join(lines))
        else:
            self._send(200 if self.path in pages else 404, json.dumps(pages.get(self.path)))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        name = json.loads(body).get("model")
        try:
            request = read_request(body, name if name in self.names else " or ".join(self.names))
        except BadRequest as problem:
            self._send(problem.status, json.dumps(error_body(problem.status, problem.code, str(problem))))
            return
        completion = READER.complete(request.messages, role="", session="", schema=request.offer)
        TOTALS["queries"] += completion.usage.prompt
        TOTALS["hits"] += completion.usage.cached
        reply = {**completion_body(completion, request, number=1, created=0), "model": name}
        del reply["simulated"]  # it stands for a language model
        self._send(200, json.dumps(reply))

    def _send(self, status, text):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


port = int((values("--port") or [os.environ.get("STAND_IN_PORT", "8000")])[0])
server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
server.daemon_threads = True
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever(poll_interval=0.02)
