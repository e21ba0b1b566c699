"""The original DDXPlus release: codes into readable profiles."""

from __future__ import annotations

import zipfile
from functools import partial
from pathlib import Path

import pytest

from ace_bench.core.errors import DataError
from ace_bench.tasks.ddxplus import CONDITIONS
from ace_bench.tasks.ddxplus_release import read_release, release_rows, render
from tests.cases import check_cases
from tests.tasks.tiny_release import CODES, HEADER, LINE, write_tiny_release


@pytest.fixture
def release(tmp_path):
    return partial(write_tiny_release, tmp_path)


def rows(folder, at_most=100):
    return dict(release_rows(folder, at_most))


def test_a_profile_quotes_questions_and_values(release):
    made = rows(release())
    assert set(made) == {"train.jsonl", "val.jsonl", "test.jsonl"}
    assert made["train.jsonl"] == [
        {
            "id": "1",
            "PATIENT_PROFILE": "Age: 40\nSex: female\nChief complaint: Do you sneeze? Yes\n\n"
            "Symptoms:\n- How itchy is the nose? 4 of 10\n- Where does it hurt? ear(L), ear(R)\n- Does it peel? Yes\n\n"
            "History:\n- Do you smoke? Yes",
            "PATHOLOGY": "Anemia",
        }
    ]


def test_french_names_and_default_values(release):
    row = rows(release("7,[],M,Anémie,\"['E_4_@_V_0', 'E_2_@_0']\",E_5"))["test.jsonl"][0]
    assert row["PATIENT_PROFILE"] == "Age: 7\nSex: male\nChief complaint: Do you smoke? Yes"
    assert row["PATHOLOGY"] == "Anemia"


def test_a_draw_is_the_same_every_time_and_in_file_order(release):
    folder = release(*(f"{age},[],F,Anemia,['E_1'],E_1" for age in range(1, 81)))
    drawn = rows(folder, 20)["train.jsonl"]
    numbers = [int(row["id"]) for row in drawn]
    assert len(set(numbers)) == 20
    assert numbers == sorted(numbers) != list(range(1, 21))
    assert rows(folder, 20)["train.jsonl"] == drawn
    assert drawn[0]["PATIENT_PROFILE"].startswith(f"Age: {numbers[0]}\n")


@pytest.mark.parametrize("ending", ["", ".zip"])
def test_patients_come_plain_or_zipped(release, ending):
    folder = release()
    expected = rows(folder)
    for path in folder.glob("*.csv"):
        plain = path.rename(path.with_suffix(""))
        if ending:
            with zipfile.ZipFile(path.with_suffix(ending), "w") as archive:
                archive.write(plain, plain.name)
            plain.unlink()
    assert rows(folder) == expected


def test_bad_patients_are_named_as_the_file_says(release, tmp_path):
    cases = {"patient": lambda line: rows(release(LINE, line))}
    check_cases(Path(__file__).with_name("ddxplus_release.txt"), cases, {str(tmp_path): "FOLDER"})
    with pytest.raises(DataError, match="EVIDENCES is not a list of codes"):
        rows(release(LINE.replace(CODES, "[" * 5_000)))


def test_bad_files_are_named(release, tmp_path):
    with pytest.raises(DataError, match="has no column INITIAL_EVIDENCE"):
        rows(release(header=HEADER.replace("INITIAL_EVIDENCE", "FIRST")))
    folder = release()
    (folder / "release_test_patients.csv").write_bytes(b"AGE,\xff\xfe\n")
    with pytest.raises(DataError, match=r"release_test_patients\.csv cannot be read as a patients file"):
        rows(folder)
    (folder / "release_test_patients.csv").unlink()
    with pytest.raises(DataError, match=r"has no release_test_patients \(plain, \.csv or \.zip\)"):
        rows(folder)
    (folder / "release_test_patients.zip").write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"release_test_patients\.zip cannot be read"):
        rows(folder)
    (folder / "release_evidences.json").write_text('{"E_1": {"name": 1}}')
    with pytest.raises(DataError, match=r"release_evidences\.json does not have the form of the DDXPlus release"):
        rows(folder)
    with pytest.raises(DataError, match=r"release_evidences\.json cannot be read"):
        rows(tmp_path / "nowhere")


def test_the_real_dictionaries_are_understood(real_data):
    """The release numbers its conditions as StreamBench does, and every value of every evidence has words."""
    release = read_release(Path(real_data("ddxplus", "release_evidences.json")))
    assert tuple(sorted(condition.english for condition in release.conditions.values())) == CONDITIONS
    assert set(release.names.values()) == set(CONDITIONS)
    codes = [
        code if evidence.data_type == "B" else f"{code}_@_{value}"
        for code, evidence in release.evidences.items()
        for value in (evidence.possible_values or [""])
    ]
    patient = {"AGE": "40", "SEX": "F", "PATHOLOGY": "GERD", "INITIAL_EVIDENCE": "E_53"}
    profiles = [render(release, {**patient, "EVIDENCES": str([code])})["PATIENT_PROFILE"] for code in codes]
    assert len(codes) > 500
    assert not any("_@_" in profile or " V_" in profile for profile in profiles)
