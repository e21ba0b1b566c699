"""Data that is made of a data set of the hub, by the command that downloads."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ace_bench.cli.data import hub_rows
from ace_bench.cli.main import start
from ace_bench.core.errors import DataError
from ace_bench.tasks.catalog import make_task
from ace_bench.tasks.ddxplus import Ddxplus

CARD = """---
configs:
- config_name: ddxplus
  data_files:
  - {split: train, path: ddxplus/train.parquet}
  - {split: validate, path: ddxplus/validate.parquet}
  - {split: test, path: ddxplus/test.parquet}
---
"""


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Lay out a data set as the hub has it, in a local folder that the task takes for the hub."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    datasets.disable_progress_bars()

    def lay_out(card=CARD, **columns):
        folder = tmp_path / "StreamBench"
        (folder / "ddxplus").mkdir(parents=True)
        (folder / "README.md").write_text(card)
        for split, count in (("train", 3), ("validate", 2), ("test", 4)):
            fields = {
                "AGE": [40] * count,
                "PATIENT_PROFILE": [f"Patient {n} of {split} coughs: é.\nYes." for n in range(count)],
                "PATHOLOGY": ["Anemia", "GERD", "Myocarditis", "Croup"][:count],
            }
            made = datasets.Dataset.from_dict({columns.get(name, name): values for name, values in fields.items()})
            made.to_parquet(folder / "ddxplus" / f"{split}.parquet")
        monkeypatch.setattr(Ddxplus, "hub", replace(Ddxplus.hub, path=str(folder)))
        return folder

    return lay_out


def test_a_data_set_of_the_hub_becomes_the_files_of_the_task(hub, tmp_path, capsys):
    hub()
    arguments = ["ddxplus", "--dir", str(tmp_path / "data")]
    assert start("data", arguments) == 0
    assert "test.jsonl: 4 rows, written" in capsys.readouterr().err
    lines = (tmp_path / "data" / "val.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"PATIENT_PROFILE": "Patient 0 of validate coughs: é.\nYes.", "PATHOLOGY": "Anemia"},
        {"PATIENT_PROFILE": "Patient 1 of validate coughs: é.\nYes.", "PATHOLOGY": "GERD"},
    ]
    task = make_task("ddxplus", data_dir=str(tmp_path / "data"), train_size=4, sample_allowed=False)
    assert [len(task.samples(split)) for split in ("train", "val", "test")] == [4, 1, 4]
    assert start("data", arguments) == 0
    assert capsys.readouterr().err.count("already there and the same") == 3


def test_files_that_differ_are_left_alone(hub, tmp_path, capsys):
    hub()
    (tmp_path / "val.jsonl").write_text("my own\n")
    assert start("data", ["ddxplus", "--dir", str(tmp_path)]) == 2
    assert "val.jsonl exists and differs; move it away" in " ".join(capsys.readouterr().err.split())
    assert (tmp_path / "val.jsonl").read_text() == "my own\n"
    assert not list(tmp_path.glob("*.part"))


def test_what_the_hub_lacks_is_named(hub):
    hub(PATHOLOGY="LABEL")
    with pytest.raises(DataError, match="split train: no field PATHOLOGY; check --revision"):
        list(hub_rows(Ddxplus.hub))
    with pytest.raises(DataError, match="has no split dev, only train, validate, test"):
        list(hub_rows(replace(Ddxplus.hub, fields=("AGE",), splits={"dev": "val"})))
    with pytest.raises(DataError, match=r"\(medqa\) at [0-9a-f]{40} cannot be loaded from the hub: "):
        list(hub_rows(replace(Ddxplus.hub, config="medqa")))
