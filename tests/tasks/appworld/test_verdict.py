"""Agent code that did too much and hides it: what the verdict rests on must be out of its reach."""

from __future__ import annotations

import time

import pytest

from tests.tasks.appworld.conftest import RUN

TOO_MUCH = """
passwords = {one["account_name"]: one["password"] for one in apis.supervisor.show_account_passwords()}
email = apis.supervisor.show_profile()["email"]
token = apis.simple_note.login(username=email, password=passwords["simple_note"])["access_token"]
apis.simple_note.create_note(title="x", content="nobody asked for this", access_token=token)
"""
FORGED_FILES = """
import json
write = __import__('_io').open
def forge():
    for _ in range(300):
        for folder in FOLDERS:
            try:
                with write(folder + '/model_hashes.json') as file:
                    hashes = json.loads(file.read())
                hashes.pop('simple_note', None)
                with write(folder + '/model_hashes.json', 'w') as file:
                    file.write(json.dumps(hashes))
                with write(folder + '/simple_note.jsonl') as file:
                    lines = file.read().splitlines()
                with write(folder + '/simple_note.jsonl', 'w') as file:
                    file.write(''.join(line + chr(10) for line in lines if 'nobody asked' not in line))
            except Exception: pass
        __import__('threading').Event().wait(0.005)
__import__('threading').Thread(target=forge, daemon=True).start()
"""
FORGED_HASHES = """
handler = __import__('appworld.apps.model_lib', fromlist=['x']).ModelHashHandler
for apps in handler.data.values():
    apps['simple_note'].clear()
"""
FORGED_ROWS = """
notes = __import__('appworld.apps.simple_note.models', fromlist=['x'])
notes.Note.db.connection.execute("DELETE FROM notes WHERE title = 'x'")
notes.Note.db.tracker.changes[:] = [one for one in notes.Note.db.tracker.changes if 'nobody' not in str(one)]
handler = __import__('appworld.apps.model_lib', fromlist=['x']).ModelHashHandler
for apps in handler.data.values():
    apps['simple_note'].clear()
"""


@pytest.mark.parametrize("program", ["", FORGED_FILES, FORGED_HASHES, FORGED_ROWS], ids=["", "files", "hashes", "rows"])
def test_an_episode_that_did_too_much_is_wrong_whatever_its_code_forges(task, program):
    sample = task.samples("train")[0]
    with task.open(sample) as session:
        assert session.step(TOO_MUCH) == "Execution successful."
        folders = [str(path) for path in session._server.folder.rglob("dbs")]
        assert folders
        session.step(task.failing_grade(sample).gold + RUN + program.replace("FOLDERS", repr(folders)))
        assert session.finished
        time.sleep(0.3 if program == FORGED_FILES else 0)
        grade = session.grade("done")
    assert (grade.correct, grade.detail["tests"], grade.detail["passes"]) == (False, 2, 1)
