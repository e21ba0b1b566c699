"""Stands for the `vllm` executable: serves the embedded reader under any model's names, as `vllm serve` would.

STAND_IN_PORT is the port where the command line names none; vLLM's own choice, 8000, may be taken.
"""

import json
import os
import signal
import sys
import threading

from ace_bench.backbones.embedded.server.replies import completion_body
from ace_bench.backbones.embedded.server.requests import read_request
from ace_bench.backbones.embedded.server.serve import Handler, ReaderServer

TOTALS = {"queries": 0, "hits": 0}


def values(option):
    """The words after an option of the command line, up to the next option."""
    after = sys.argv[sys.argv.index(option) + 1 :] if option in sys.argv else []
    return after[: next((place for place, word in enumerate(after) if word.startswith("--")), None)]


class VllmHandler(Handler):
    names = values("--served-model-name") or sys.argv[2:3]
    length = int((values("--max-model-len") or ["32768"])[0])

    def do_GET(self):  # noqa: N802 - the name that the library calls
        if self.path == "/metrics":
            lines = [f"vllm:prefix_cache_{name}_total {float(count)}" for name, count in TOTALS.items()]
            text = "\n".join(lines).encode()
            self._write(200, {"Content-Length": str(len(text))}, [text], cut=False)
        elif self.path == "/v1/models":
            self._send(200, {"data": [{"id": name, "max_model_len": self.length} for name in self.names]})
        else:
            super().do_GET()

    def _answer(self, body, number, fault):
        name = json.loads(body).get("model")
        request = read_request(body, name if name in self.names else " or ".join(self.names))
        completion = self.server.backbone.complete(request.messages, role="", session="", schema=request.offer)
        TOTALS["queries"] += completion.usage.prompt
        TOTALS["hits"] += completion.usage.cached
        reply = {**completion_body(completion, request, number=number, created=0), "model": name}
        del reply["simulated"]  # it stands for a language model
        return request, reply


server = ReaderServer(host="127.0.0.1", port=int((values("--port") or [os.environ.get("STAND_IN_PORT", "8000")])[0]))
server.RequestHandlerClass = VllmHandler
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever(poll_interval=0.02)
