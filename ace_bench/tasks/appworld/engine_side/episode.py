"""One episode in two confined processes: the world, and the interpreter that runs the agent's code.

The world holds the databases, answers API calls and saves its state. The interpreter is a fork of it that reaches the
APIs of the apps through a socket, and nothing else of the world. So agent code changes the world by API calls only, and
cannot write what is graded.

Two socket pairs connect them: ``commands`` carries code and its output, ``calls`` the HTTP requests that the engine
makes for API calls, and their responses.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httpx

from .processes import INTERPRETER_KILLED, MAX_OUTPUT, close_all_but, receive, run_in_fork, send
from .shared import Bounds, confine

if TYPE_CHECKING:
    from appworld.environment import AppWorld

_RANDOM_SEED = 123
"""The world's seed in the official experiments; the engine's default is 100."""
_PRIVATE_APPS = frozenset({"admin"})
"""Apps that the engine documents as not for agents."""
_SERVER = "http://testserver"
_ENDED_BY_EXCEPTION = "Execution failed: the code raised an exception that ends the interpreter."
_ENDING_MS = 1000


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The ``task`` to set up, the seconds that a piece of code may take, and what each process may do."""

    task: str
    timeout: int
    world: Bounds
    interpreter: Bounds


class World:
    """The world's process from now on, with the interpreter as its child; both end with the process ``monitor``."""

    def __init__(self, setup: Setup, monitor: int):
        self._world = _set_up(setup)
        self._commands, commands = socket.socketpair()
        self._calls, calls = socket.socketpair()
        state = random.getstate()  # Python changes it in a fork
        this, self._interpreter = os.getpid(), os.fork()
        if self._interpreter == 0:
            random.setstate(state)
            run_in_fork(lambda: _run_interpreter(setup, self._world, commands, calls, this))
        commands.close()
        calls.close()
        self._interpreter_ended = os.pidfd_open(self._interpreter)
        layers = confine(setup.world, monitor)
        self._world.requester.client.__enter__()
        self.layers = sorted({*layers} & {*json.loads(receive(self._commands.recv))})
        """What confines both processes."""

    def serve(self, harness: socket.socket) -> None:
        """Pass code on to the interpreter and its output back, and answer API calls; raises when a connection ends."""
        running = False
        while True:
            for end in select.select([harness, self._calls, self._commands], [], [])[0]:
                message = receive(end.recv)
                if end is self._calls:
                    send(end, self._answer(message))
                elif end is harness:
                    send(self._commands, message)
                    running = True
                elif running:
                    send(harness, self._save(message))
                    running = False
                else:
                    raise ValueError("an output without code")

    def exit(self) -> None:
        """End this process. Its status says whether the interpreter was killed: agent code cannot send SIGKILL."""
        poll = select.poll()
        poll.register(self._interpreter_ended, select.POLLIN)
        if poll.poll(_ENDING_MS) and os.waitpid(self._interpreter, 0)[1] == signal.SIGKILL:
            os._exit(INTERPRETER_KILLED)
        os._exit(1)

    def _save(self, message: bytearray) -> bytes:
        """Save the world after a piece of code, and add to the code's output whether the task is complete."""
        output, left_out = json.loads(message)
        self._world._save_state(self._world.output_db_home_path_on_disk)
        completed = self._world.task_completed()
        return json.dumps({"output": output, "left_out": left_out, "completed": completed}).encode()

    def _answer(self, message: bytearray) -> bytes:
        """Answer a request to one of the apps; the engine's own requests, such as for other databases, are refused."""
        (method, target, headers, drawn), body = _unpack(message)
        before = _take_over(drawn)
        request = httpx.Request(method, _SERVER + target, headers=headers, content=body)
        requester = self._world.requester
        app = unquote(request.url.path).split("/")[1]
        if request.url.host != "testserver" or app not in {*requester.apps} - _PRIVATE_APPS:
            return _pack([404, [], None, None], json.dumps({"message": f"No app named '{app}' found."}).encode())
        try:
            response = requester.client._transport.handle_request(request)
        except Exception as error:  # in one process, the agent's code would see it
            raised = type(error).__module__, type(error).__qualname__, str(error)
            return _pack([500, [], raised, _drawn_since(before)], b"")
        head = [response.status_code, response.headers.multi_items(), None, _drawn_since(before)]
        return _pack(head, response.read())


def _set_up(setup: Setup) -> AppWorld:
    from appworld.environment import AppWorld

    world = AppWorld(
        task_id=setup.task,
        experiment_name=f"{setup.world.folder}/out",
        load_ground_truth=False,
        random_seed=_RANDOM_SEED,
        timeout_seconds=setup.timeout,
    )
    # The client's thread would be lost in the fork, and would not be confined.
    world.requester.client.__exit__(None, None, None)
    if len(threading.enumerate()) > 1:
        raise RuntimeError(f"threads would not be confined: {threading.enumerate()}")
    uid = setup.world.uid
    if uid is not None:
        for folder, _, _ in os.walk(setup.world.folder):
            os.chown(folder, uid, uid)
    return world


def _run_interpreter(setup: Setup, world: AppWorld, commands: socket.socket, calls: socket.socket, parent: int) -> None:
    from appworld.apps.model_lib import CachedDBHandler

    CachedDBHandler.reset()  # this process's copies of the databases
    close_all_but(commands.fileno(), calls.fileno())
    world.requester.client._transport = _Calls(calls)
    world._save_state = lambda _: None  # the world's process does
    world.output_logs_directory = f"{setup.interpreter.folder}/logs"
    layers = confine(setup.interpreter, parent)
    os.mkdir(world.output_logs_directory)
    world.save_logs()
    send(commands, json.dumps(layers).encode())
    while True:
        output = _execute(world, receive(commands.recv).decode())
        printed = output[:MAX_OUTPUT].encode(errors="replace").decode()
        send(commands, json.dumps([printed, len(output) - len(printed)]).encode())


def _execute(world: AppWorld, code: str) -> str:
    try:
        output: str = world.execute(code)
    except BaseException:  # the engine lets what code raises on purpose, such as SystemExit, through
        world.safety_guard.disable()
        return _ENDED_BY_EXCEPTION
    return output


class _Calls(httpx.BaseTransport):
    """Sends the requests of the engine's client to the world."""

    def __init__(self, end: socket.socket):
        self._end = end
        self._lock = threading.Lock()
        self._random = random.getstate()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        target, headers = request.url.raw_path.decode("ascii"), request.headers.multi_items()
        # The engine's time limit, an alarm, must not leave half a message behind.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        try:
            with self._lock:
                head = [request.method, target, headers, _drawn_since(self._random)]
                send(self._end, _pack(head, request.read()))
                (status, headers, raised, drawn), body = _unpack(receive(self._end.recv))
                self._random = _take_over(drawn)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if raised:
            module, name, text = raised
            raise type(name, (Exception,), {"__module__": module})(text)
        return httpx.Response(status, headers=headers, content=body, request=request)


def _drawn_since(before: Any) -> Any:
    """Return the state of the random generator, ``None`` if it is still ``before``.

    Each process takes it over from the other: the engine, in one process, has one generator for agent code and apps.
    """
    state = random.getstate()
    return None if state == before else state


def _take_over(drawn: Any) -> Any:
    """Continue with the other process's state of the random generator, if it has one; return the state now."""
    if drawn:
        version, numbers, gauss = drawn
        random.setstate((version, tuple(numbers), gauss))
    return random.getstate()


def _pack(head: Any, body: bytes) -> bytes:
    return json.dumps(head).encode() + b"\n" + body


def _unpack(message: bytearray) -> tuple[Any, bytes]:
    head, _, body = message.partition(b"\n")
    return json.loads(head), bytes(body)
