"""Scenarios of files, notes and to-do lists: contents of a directory, a tag or a project, and the answer's format."""

from __future__ import annotations

from collections.abc import Iterator

from .household import PROJECTS, chores, files, notes
from .people import NOW, SUPERVISORS
from .tasks import ANSWER, DONE, FIRST_PAGE, NO_ANSWER, PAGES, Task, Test, answered, changed, login, solution

PROJECT = """
# Find the project by its exact name.
projects = all_pages(apis.todoist.show_projects, access_token=todoist_token)
project_id = [p["project_id"] for p in projects if p["name"] == project_name][0]
"""

TASKS = """
# The tasks in no section, and those in sections.
listed = apis.todoist.show_tasks(project_id=project_id, access_token=todoist_token)
tasks = listed["no_section_tasks"] + [task for section in listed["sections"] for task in section["tasks"]]
"""

_COMPLETE = """
for task in tasks:
    if not task["is_completed"] and {condition}:
        apis.todoist.update_task(task_id=task["task_id"], is_completed=True, access_token=todoist_token)
"""

_IN_SECTIONS = ' + [task for section in listed["sections"] for task in section["tasks"]]'

_TAGGED = "notes = all_pages(apis.simple_note.search_notes, tags=[tag], access_token=simple_note_token)"


def scenarios() -> Iterator[Task]:
    """Yield the tasks."""
    for number, where in enumerate(((".jpg", "photos"), (".png", "photos"), (".pdf", "documents")), start=1):
        yield _count_files(number, *where)
    for number, tag in enumerate(("recipes", "travel", "reading"), start=1):
        yield _list_notes(number, tag)
    for number, project in enumerate((PROJECTS[0], PROJECTS[1], PROJECTS[0]), start=1):
        yield _complete("7f1a07", "train", number, project, "overdue")
    for number, (project, which) in enumerate(
        ((PROJECTS[1], "high priority"), (PROJECTS[0], "medium priority"), (PROJECTS[1], "high priority")), start=1
    ):
        yield _complete("7f3a04", "test_normal", number, project, which)
    for number, tag in enumerate(("travel", "recipes", "travel"), start=1):
        yield _count_notes(number, tag)


def _count_files(number: int, extension: str, directory: str) -> Task:
    inside = f"{SUPERVISORS[number - 1].home}{directory}/"
    found = [path.removeprefix(inside) for path in files(number - 1) if path.startswith(inside)]
    return Task(
        scenario="7f1a02",
        split="train",
        number=number,
        difficulty=1,
        instruction=f"How many {extension} files are directly in the {directory} directory of my home folder, not "
        "counting its subdirectories?",
        answer=sum(path.endswith(extension) and "/" not in path for path in found),
        tests=(ANSWER, changed()),
        solution=solution(
            {"extension": extension, "directory": directory},
            login("file_system"),
            """
            # The home folder is ~/; without recursive=False the subdirectories are listed too.
            paths = apis.file_system.show_directory(directory_path="~/" + directory, entry_type="files",
                                                    recursive=False, access_token=file_system_token)
            """,
            answered("sum(path.endswith(extension) for path in paths)"),
        ),
        slips=(("recursive=False, ", ""),),
    )


def _list_notes(number: int, tag: str) -> Task:
    same = Test(
        requirement="assert answers match as comma-separated lists.",
        code='test.case([e.strip() for e in str(predicted_answer).split(",")], "==", private_data.titles)',
    )
    return Task(
        scenario="7f1a03",
        split="train",
        number=number,
        difficulty=1,
        instruction=f'List the titles of my notes tagged "{tag}" in Simple Note, in alphabetical order, as a '
        "comma-separated list.",
        answer=", ".join(_titles(number, tag)),
        private={"titles": _titles(number, tag)},
        tests=(same, changed()),
        solution=solution(
            {"tag": tag},
            PAGES,
            login("simple_note"),
            _TAGGED,
            answered('", ".join(sorted(note["title"] for note in notes))'),
        ),
        slips=FIRST_PAGE,
    )


def _count_notes(number: int, tag: str) -> Task:
    return Task(
        scenario="7f3a05",
        split="test_normal",
        number=number,
        difficulty=1,
        instruction=f'How many of my notes in Simple Note are tagged "{tag}"?',
        answer=len(_titles(number, tag)),
        tests=(ANSWER, changed()),
        solution=solution({"tag": tag}, PAGES, login("simple_note"), _TAGGED, answered("len(notes)")),
        slips=FIRST_PAGE,
    )


def _complete(scenario: str, split: str, number: int, project: str, which: str) -> Task:
    overdue, priority = which == "overdue", which.removesuffix(" priority")
    wanted = [
        chore
        for chore in chores(number - 1, project)
        if not chore.done and (chore.due < NOW if overdue else chore.priority == priority)
    ]
    listing = TASKS.replace("access_token", "overdue=True, access_token") if overdue else TASKS
    condition = 'task["due_date"]' if overdue else 'task["priority"] == priority'
    slots = {"project_name": project} | ({} if overdue else {"priority": priority})
    return Task(
        scenario=scenario,
        split=split,
        number=number,
        difficulty=2,
        instruction=f'Mark all the {which} tasks in my Todoist project "{project}" as completed.',
        tests=(NO_ANSWER, changed("todoist.Task"), _completed()),
        private={"titles": sorted(chore.title for chore in wanted), "project": project},
        solution=solution(
            slots, PAGES, login("todoist"), PROJECT, listing, _COMPLETE.format(condition=condition), DONE
        ),
        slips=((_IN_SECTIONS, ""),),
    )


def _completed() -> Test:
    code = """
        added, updated, removed = models.changed_records("todoist.Task")
        test.case(sorted(e.title for e in updated if e.is_completed), "==", private_data.titles)
        test.case({e.project.name for e in updated}, "==", {private_data.project})
        test.case([models.changed_field_names("todoist.Task", e.id) for e in updated if
                   models.changed_field_names("todoist.Task", e.id) != {"is_completed"}], "==", [])
        test.case(len(updated) - len(private_data.titles) + len(added) + len(removed), "==", 0)
    """
    return Test(requirement="assert exactly the wanted open tasks of the project are completed.", code=code)


def _titles(number: int, tag: str) -> list[str]:
    return sorted(title for title, has in notes(number - 1).items() if has == tag)
