"""Stands for `vllm` or `llama-server`: serves on --port, has children of its own, and misbehaves as FAKE_VLLM says.

FAKE_VLLM (words): slow (ready after a second), die (prints FAKE_VLLM_SAYS and exits 1), deaf (SIGTERM does nothing,
to it and its children), crash (ends at a GET of /crash, leaving its children behind). FAKE_VLLM_PIDS names a file
for the ids of all its processes.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEHAVIOUR = os.environ.get("FAKE_VLLM", "").split()
CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.{}); time.sleep(300)".format(
    "SIG_IGN" if "deaf" in BEHAVIOUR else "SIG_DFL"
)
METRICS = (
    'vllm:prefix_cache_queries_total{engine="0"} 10.0\nvllm:prefix_cache_hits_total{engine="0"} 4.0\n'
    'vllm:num_requests_running{engine="0"} 3.0\nvllm:num_requests_waiting{engine="0"} 2.0\n'
)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/crash":
            os._exit(1)
        option = "--alias" if "--alias" in sys.argv else "--served-model-name"
        name = sys.argv[sys.argv.index(option) + 1]
        pages = {
            "/health": "",
            "/metrics": METRICS,
            "/v1/models": json.dumps({"data": [{"id": name, "max_model_len": 16384}]}),
        }
        self._send(200 if self.path in pages else 404, pages.get(self.path, ""))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"role": "assistant", "content": json.dumps({"asked": body.get("response_format")})}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._send(200, json.dumps({"model": body["model"], "choices": [choice], "usage": usage}))

    def _send(self, status, text):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


def main():
    if "die" in BEHAVIOUR:
        sys.stderr.write(os.environ.get("FAKE_VLLM_SAYS", "") + "\n")
        sys.exit(1)
    if "deaf" in BEHAVIOUR:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    children = [
        subprocess.Popen([sys.executable, "-c", CHILD]),
        subprocess.Popen([sys.executable, "-c", CHILD], start_new_session=True),  # as daemons of Ray do
    ]
    if "FAKE_VLLM_PIDS" in os.environ:
        part = os.environ["FAKE_VLLM_PIDS"] + ".part"
        with open(part, "w") as file:
            json.dump([os.getpid(), *(child.pid for child in children)], file)
        os.replace(part, os.environ["FAKE_VLLM_PIDS"])
    sys.stderr.write("INFO Starting to load model\n")
    if "slow" in BEHAVIOUR:
        time.sleep(1)
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler)
    if "deaf" not in BEHAVIOUR:
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever(poll_interval=0.02)


main()
