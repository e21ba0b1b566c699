"""A small resources server that speaks NeMo Gym's interface: capitals, with a tool and a verifier."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

from tests.packages.environments.capitals import CITIES

ATLAS = {
    "type": "function",
    "name": "atlas",
    "description": "Look up the capital of a country.",
    "parameters": {"type": "object", "properties": {"land": {"type": "string"}}, "required": ["land"]},
    "strict": True,
}


class GymServer(ThreadingHTTPServer):
    """``does`` says what goes wrong: verify raises or masks, the server steps."""

    def __init__(self, does="works"):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.does, self.lookups, self.verified = does, {}, []
        self.address = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        """Say nothing of a client that has gone."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        paths = ["/seed_session", "/verify", "/atlas", *(["/step"] if self.server.does == "steps" else [])]
        self._send({"paths": {path: {} for path in paths}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = self.headers.get("Cookie", "").partition("session=")[2]
        getattr(self, f"_{self.path[1:]}")(body, session)

    def _seed_session(self, body, session):
        made = uuid4().hex
        self.server.lookups[made] = 0
        self._send({}, cookie=made)

    def _atlas(self, body, session):
        if body["land"] not in CITIES:
            return self._send({"detail": "the atlas burnt down"}, status=500)
        self.server.lookups[session] += 1
        return self._send({"city": CITIES[body["land"]]})

    def _verify(self, body, session):
        self.server.verified.append(body)
        if self.server.does == "verify_raises":
            return self._send({"detail": "no such column"}, status=500)
        texts = [item["content"][0]["text"] for item in body["response"]["output"] if item["type"] == "message"]
        right = float(body["expected_answer"] in texts[-1])
        used = float(self.server.lookups[session] > 0) if body["responses_create_params"]["tools"] else 1.0
        parts = {"right": right, "used_the_tool": used}
        masked = {"mask_sample": self.server.does == "masks", "failure_reason": "the judge was away"}
        return self._send({"reward": 0.75 * right + 0.25 * used, "reward_components": parts, **masked})

    def _send(self, value, *, status=200, cookie=None):
        payload = json.dumps(value).encode()
        self.send_response(status)
        if cookie:
            self.send_header("Set-Cookie", f"session={cookie}; path=/; httponly; samesite=lax")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_):
        pass


def row(land, *, tool, **more):
    """A sample as NeMo Gym's files hold it."""
    options = "" if tool else f" Options: {CITIES[land]}, Springfield."
    told = {"role": "developer", "content": "You answer questions on geography."}
    asked = [{"type": "input_text", "text": f"Which city is the capital of {land}?{options}"}]
    parameters = {"input": [told, {"role": "user", "content": asked}], "tools": [ATLAS] if tool else []}
    return {"responses_create_params": parameters, "expected_answer": CITIES[land], **more}


def write_rows(folder, name="rows.jsonl", *, tool):
    """Write a file of samples and return its path."""
    file = folder / name
    file.write_text("".join(json.dumps(row(land, tool=tool)) + "\n" for land in CITIES))
    return file
