"""Scenarios: the same schema as in files, the same errors as on the command line."""

import pickle
import re
import subprocess
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from polypath import Scenario, ScenarioError, quantity, schema
from polypath.scenario import labels, varying

from places import ROOT

GOOD = """
schema = 1
[[path]]
rate = "10 Mbit/s"
[workload]
size = "1 MB"
"""

#: Invalid files, and a pattern of the error line of each.
WRONG = {
    "unit": (GOOD.replace("10 Mbit/s", "10 Mbps"), r"path\[0\]\.rate: .*such as \"10 Mbit/s\""),
    "misspelt": (GOOD.replace("rate", "raet"), r"path\[0\]\.raet: .*did you mean \"rate\""),
    "negative loss": (
        GOOD.replace("[workload]", 'loss = "-1 %"\n[workload]'),
        r"path\[0\]\.loss: .*allowed: .*0 %",
    ),
    "path to nowhere": (
        GOOD + '[[fault]]\nat = "1 s"\npath = "third"\nkind = "down"',
        r"fault\[0\]\.path: no path \"third\".*allowed: path0",
    ),
    "load": (
        GOOD.replace("[workload]", 'cross_traffic = { load = "300 %" }\n[workload]'),
        r"path\[0\]\.cross_traffic\.load: \"300 %\" is not a load; allowed: \"0 %\" to \"200 %\"",
    ),
    "traffic to nowhere": (
        GOOD + '[[traffic]]\nfrom = "sender.0"\nto = "nowhere"\nrate = "1 Mbit/s"',
        r"traffic\[0\]\.to: no node \"nowhere\"; allowed: sender\.0, receiver\.0",
    ),
    "policy": (GOOD + '[policy]\nretransmission = "sane"', r"policy\.retransmission: .*\"same\""),
    "missing": (GOOD.replace('size = "1 MB"', ""), r"workload\.size: missing"),
    "schema": (GOOD.replace("schema = 1", "schema = 2"), r"schema: found 2; allowed: 1"),
    "range": (GOOD + '[transport]\nrto_min = "90 s"', r"transport\.rto_max: .*at least rto_min"),
    "not toml": (GOOD + "x = ", r"not TOML"),
}


@pytest.mark.parametrize("file", sorted((ROOT / "scenarios").glob("*.toml")), ids=lambda f: f.stem)
def test_files_survive_the_way_there_and_back(file: Path) -> None:
    scenario = Scenario.from_file(file)
    assert Scenario.from_toml(scenario.to_toml()) == scenario
    assert Scenario.from_dict(scenario.to_dict()) == scenario
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    assert len({scenario, Scenario.from_toml(scenario.to_toml())}) == 1


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_in_one_line(what: str, tmp_path: Path) -> None:
    text, line = WRONG[what]
    with pytest.raises(ScenarioError, match=line) as of_text:
        Scenario.from_toml(text)
    file = tmp_path / "scenario.toml"
    file.write_text(text)
    with pytest.raises(ScenarioError) as of_file:
        Scenario.from_file(file)
    assert "\n" not in str(of_file.value)
    of_text_line = str(of_text.value).replace("line ", f"{file}:", 1)
    assert str(of_file.value) in (of_text_line, f"{file}: {of_text.value}")


@pytest.mark.parametrize("what", WRONG)
def test_the_command_line_tells_the_same(what: str, tmp_path: Path, binary: str) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(WRONG[what][0])
    done = subprocess.run([binary, "sim", file], capture_output=True, text=True, check=False)
    with pytest.raises(ScenarioError) as error:
        Scenario.from_file(file)
    assert done.returncode != 0
    assert done.stderr.strip() == f"polypath: {error.value}"


def test_a_missing_file_is_an_os_error() -> None:
    with pytest.raises(FileNotFoundError, match="no-such"):
        Scenario.from_file("no-such.toml")


def test_files_extend_files(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(GOOD)
    more = tmp_path / "more.toml"
    more.write_text('extends = "base.toml"\nname = "more"\n[workload]\nsize = "2 MB"\n')
    assert Scenario.from_file(more).to_dict()["workload"]["size"] == "2 MB"
    with pytest.raises(ScenarioError, match="only a scenario in a file can extend"):
        Scenario.from_toml('extends = "base.toml"')


def test_arguments_are_the_sections_of_the_file() -> None:
    assert Scenario(path=[{"rate": "10 Mbit/s"}], workload={"size": "1 MB"}) == Scenario.from_toml(
        GOOD
    )


def test_networks_have_names() -> None:
    one = Scenario(topology="dual-dumbbell", workload={"size": "1 MB"})
    assert [path["name"] for path in one.to_dict()["path"]] == ["primary", "alternate"]
    loads: dict[str, Any] = {
        "path.primary.cross_traffic.load": "70 %",
        "path.1.cross_traffic.load": 1.1,
    }
    assert one.with_(loads) == Scenario(
        topology="dual-dumbbell",
        path=[
            {"name": "alternate", "cross_traffic": {"load": "110 %"}},
            {"name": "primary", "cross_traffic": {"load": "70 %"}},
        ],
        workload={"size": "1 MB"},
    )
    other = one.with_(topology="three-paths")
    assert "cross_traffic" not in other.to_toml()
    with pytest.raises(ScenarioError) as error:
        one.with_(topology="dumbbell")
    allowed = tuple(str(error.value).partition("allowed: ")[2].split(", "))
    assert allowed == get_args(schema.TopologyName)


def test_quantities_have_one_form() -> None:
    other = GOOD.replace("10 Mbit/s", "10000 kbit/s").replace("1 MB", "1000 kB")
    assert Scenario.from_toml(other) == Scenario.from_toml(GOOD)


def test_changes_make_another_scenario(failing: Scenario) -> None:
    changes: dict[str, Any] = {
        "transport.rto_min": "500 ms",
        "path.first.rate": "1 Mbit/s",
        "path.1.loss": 0.25,
        "policy.retransmission": "same",
        "transport.path_max_retrans": np.int64(3),
    }
    changed = failing.with_(**changes)
    assert changed == failing.with_(changes)
    table = changed.to_dict()
    assert table["transport"]["rto_min"] == "500 ms"
    assert table["transport"]["path_max_retrans"] == 3
    assert table["path"][0]["rate"] == "1 Mbit/s"
    assert table["path"][1]["loss"] == "25 %"
    assert table["policy"] == {"retransmission": "same"}
    assert failing.to_dict()["path"][0]["rate"] == "10 Mbit/s"
    assert changed.with_({"transport.rto_min": None}).to_dict()["transport"].get("rto_min") is None


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("transport.rto_mni", "1 s", 'transport.rto_mni: no such key; did you mean "rto_min"?'),
        ("path.0.rate", "fast", 'path[0].rate: "fast" is not a rate'),
        ("path.third.rate", "1 Mbit/s", "path.third: no such element; allowed: first, 0 to 1"),
        ("name.x", 1, "name: found string; allowed: a table"),
        ("path.0.rate", object(), "not a scenario: a value of type object"),
        ("path", [None], "not a scenario: "),
        ("seed", -1, "seed: found integer `-1`"),
    ],
)
def test_wrong_changes_are_told(failing: Scenario, key: str, value: Any, line: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(line)) as error:
        failing.with_({key: value})
    assert "\n" not in str(error.value)
    assert " line " not in str(error.value)  # of an internal text


def test_seeds_have_64_bits(lossy: Scenario) -> None:
    most = 2**64 - 1
    scenario = lossy.with_(seed=most)
    assert scenario.seed == most
    assert Scenario.from_toml(scenario.to_toml()).seed == most
    with pytest.raises(ScenarioError, match="seed"):
        lossy.with_(seed=most + 1)


def test_name_and_seed_do_not_change_the_key(lossy: Scenario) -> None:
    assert lossy.with_(name="other", seed=7).key == lossy.key
    assert lossy.with_({"path.0.loss": "4 %"}).key != lossy.key
    assert re.fullmatch("[0-9a-f]{16}", lossy.key)


def test_a_grid_has_every_combination(lossy: Scenario) -> None:
    axes = {"path.0.loss": ["1 %", "2 %"], "transport.rto_min": ["200 ms", "500 ms", "1 s"]}
    grid = lossy.grid(axes)
    assert len(set(grid)) == 6
    assert varying(grid) == {
        "path.0.loss": ["1 %"] * 3 + ["2 %"] * 3,
        "transport.rto_min": ["200 ms", "500 ms", "1 s"] * 2,
    }
    assert labels(grid)[:2] == ["loss 1 %, rto_min 200 ms", "loss 1 %, rto_min 500 ms"]


@pytest.mark.parametrize(
    ("key", "section"),
    [
        ("path.0", schema.Path),
        ("path.0.forward", schema.Link),
        ("path.0.cross_traffic", schema.CrossTraffic),
        ("path.0.cross_traffic.back", schema.Load),
        ("traffic.0", schema.Traffic),
        ("transport", schema.Transport),
        ("transport.sender", schema.Parameters),
        ("policy", schema.Policy),
        ("policy.receiver", schema.PolicyNames),
        ("workload", schema.Workload),
        ("fault.0", schema.Fault),
        ("run", schema.Run),
        ("series", schema.Series),
        ("emulator", schema.Emulator),
    ],
)
def test_the_types_have_the_keys_of_the_schema(failing: Scenario, key: str, section: Any) -> None:
    with pytest.raises(ScenarioError) as error:
        failing.with_({f"{key}.no_such_key_at_all": 1})
    allowed = str(error.value).partition("allowed: ")[2].split(", ")
    assert set(allowed) == set(section.__annotations__)


def test_the_types_of_addresses_have_the_keys_of_the_schema(failing: Scenario) -> None:
    with pytest.raises(ScenarioError) as error:
        failing.with_({"address": [{"no_such_key_at_all": 1}]})
    allowed = str(error.value).partition("allowed: ")[2].split(", ")
    assert set(allowed) == set(schema.Address.__annotations__)


def test_the_types_of_loss_have_the_keys_of_the_schema(failing: Scenario) -> None:
    with pytest.raises(ScenarioError) as error:
        failing.with_({"path.0.loss": {"no_such_key_at_all": 1}})
    allowed = set(str(error.value).partition("allowed: ")[2].split(", "))
    types = {*schema.GilbertElliott.__annotations__, *schema.LossScript.__annotations__}
    assert allowed == types


def test_the_sections_are_those_of_the_schema(failing: Scenario) -> None:
    with pytest.raises(ScenarioError) as error:
        failing.with_({"no_such_key_at_all": 1})
    allowed = set(str(error.value).partition("allowed: ")[2].split(", "))
    assert allowed == set(Scenario.__init__.__annotations__) - {"return"}


def test_quantities_as_numbers() -> None:
    texts = ["10 Mbit/s", "45 ms", "64 KiB", "8 %"]
    assert [quantity(text) for text in texts] == [1e7, 0.045, 65536, 0.08]
    with pytest.raises(ValueError, match="allowed: a rate"):
        quantity("10 Mbps")
