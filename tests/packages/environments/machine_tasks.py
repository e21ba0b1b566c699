"""Writes small Harbor tasks: a note names the command that the tests want to see done."""

FILES = ("river", "season", "colour", "fruit", "metal", "planet", "tree", "bird", "spice", "stone")
SETTINGS = """version = "1.0"

[verifier]
timeout_sec = 60.0

[agent]
timeout_sec = 60.0

[environment]
memory_mb = 512
"""
TEST = """#!/bin/bash
if [ -f /app/{name}.txt ]; then echo 1; else echo "there is no {name}.txt"; echo 0; fi | tee /dev/stderr | tail -n 1 \
> /logs/verifier/reward.txt
"""


def write_tasks(folder, names=FILES, *, test=TEST, settings=SETTINGS, dockerfile="FROM debian\nWORKDIR /app\n", **more):
    """Write a folder of tasks; ``more`` are further files of each environment."""
    for name in names:
        place = folder / name
        files = {
            "task.toml": settings,
            "instruction.md": f"Somebody left a note that says 'touch {name}.txt'.\n",
            "environment/Dockerfile": dockerfile,
            "tests/test.sh": test.format(name=name),
            "solution/solve.sh": f"#!/bin/bash\ntouch {name}.txt\n",
            **{f"environment/{other}": text for other, text in more.items()},
        }
        for path, text in files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text)
    return folder
