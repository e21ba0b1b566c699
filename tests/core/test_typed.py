import gc
import subprocess
import sys

from ace_bench.core.encoding import collector_paused

CODE = """
import sys, threading
sys.setswitchinterval(1e-6)
from ace_bench.methods.ace_parts import parse_operations
from ace_bench.core.replies import parse
from ace_bench.methods.ace_parts import ReflectorReply
start = threading.Barrier(16)
def read():
    start.wait()
    parse('{"key_insight": "x", "bullet_tags": [{"id": "a", "tag": "helpful"}]}', ReflectorReply)
    parse_operations([{"type": "ADD", "section": "s", "content": "c"}, {"type": "TAG", "id": "a", "tag": "helpful"}])
threads = [threading.Thread(target=read) for _ in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_threads_that_meet_a_type_together_do_not_crash_the_interpreter():
    for _ in range(3):
        assert subprocess.run([sys.executable, "-c", CODE], check=False).returncode == 0


def test_the_collector_is_paused_and_then_as_it_was():
    assert gc.isenabled()
    with collector_paused():
        with collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
