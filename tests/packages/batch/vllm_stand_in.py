"""Stands in for `vllm run-batch`: each answer is a word, unless the file BEHAVIOUR says fail, hang or refuse."""

import json
import os
import sys
import time
from pathlib import Path

options = dict(zip(sys.argv[2::2], sys.argv[3::2], strict=False))
behaviour = Path(os.environ["BEHAVIOUR"])
sys.stdout.write(f"loading {options['--model']}\n")
sys.stdout.flush()
while (does := behaviour.read_text()) == "hang":
    time.sleep(0.01)
if does == "fail":
    sys.exit("no memory for the cache")
choice = {"index": 0, "message": {"role": "assistant", "content": "billing"}, "finish_reason": "stop"}
body = {"model": options["--served-model-name"], "choices": [choice]}
body |= {"usage": {"prompt_tokens": 10, "completion_tokens": 1}}
answered = {"response": {"status_code": 200, "body": body}, "error": None}
error = {"error": {"message": "longer than max_model_len", "type": "BadRequestError", "code": 400}}
refused = {"response": {"status_code": 400, "body": None}, "error": error}
with open(options["-o"], "w", encoding="utf-8") as output:
    for line in Path(options["-i"]).read_text().splitlines():
        said = {"custom_id": json.loads(line)["custom_id"], **(refused if does == "refuse" else answered)}
        output.write(json.dumps(said) + "\n")
