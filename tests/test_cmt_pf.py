"""CMT and CMT-PF between real processes: the second path is cut during the transfer, with a receive buffer of
64 KB and Path.Max.Retrans 5. Compares the goodput until the failure is detected with the simulator's
(Natarajan 2009, Figure 2)."""

import dataclasses
import json
import math
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import geometric_mean as mean

import pytest

from support.agreement import agreement
from support.program import Processes, arrived, binary, wait_until

# RTO.Min, seconds: a tenth of the paper's, so that 1 + 2 + .. + 32 timeouts take some six seconds.
RTO = 0.1
CONSTANTS = {
    "path_max_retrans": 5, "receive_buffer": "64KiB", "send_buffer": "4MiB",
    "rto_min": f"{RTO * 1000:g}ms", "rto_initial": "300ms", "sack_delay": "20ms",
}
SIZE = 32 << 20
# Seconds of data before the cut: of a transfer between sockets, and of each one in the simulator.
CUT_AFTER = 1.5
SIMULATED_CUTS = [CUT_AFTER + 0.01 * number for number in range(8)]
# Transfers of each profile between sockets, all at the same time.
TRANSFERS = 3
# Two ratios agree if their quotient is less than this.
ALIKE = 1.5


@dataclasses.dataclass(frozen=True)
class Goodput:
    """Bytes a second from the cut until the path is inactive, and how many seconds that takes."""

    value: float
    detected: float


def scenario(profile: str, number: int, run: str = "") -> str:
    """The scenario for the simulator, and without the fault for the emulator."""
    constants = "".join(f"{key} = {json.dumps(value)}\n" for key, value in CONSTANTS.items())
    return (
        f'schema = 1\nname = "{profile}"\n'
        + "".join(f'[[path]]\nname = "{name}"\nrate = "5 Mbit/s"\ndelay = "10 ms"\nqueue = "50 packets"\n'
                  for name in ("first", "second"))
        + f'[transport]\nprofile = "{profile}"\nencapsulation = "udp"\n{constants}'
        # The message size of `polypath send`.
        + f'[workload]\nkind = "bulk"\nsize = "{SIZE} B"\nmessage_size = "64 KiB"\n{run}'
        f"[emulator]\nsenders = {json.dumps(addresses(number, 1))}\n"
        f"receivers = {json.dumps(addresses(number, 2))}\n")


def addresses(number: int, host: int) -> list[str]:
    return [f"127.{121 + path}.{number}.{host}" for path in (0, 1)]


def simulated(profile: str, folder: Path, cut: float) -> Goodput:
    """Goodput in the simulator, from runs that end at the cut and at its detection."""
    def run(limit: float) -> dict:
        file = folder / f"{profile}-{cut:.3f}-{limit:.6f}.toml"
        fault = f'[[fault]]\nat = "{cut:.3f} s"\npath = "second"\nkind = "down"\n'
        file.write_text(scenario(profile, 1, f'{fault}[run]\nlimit = "{limit:.9f} s"\n'))
        done = subprocess.run([binary(), "sim", str(file), "--json"], capture_output=True, text=True,
                              timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["associations"][0]
    whole = run(60.0)
    detected = next(change["at"] for change in whole["changes"]
                    if (change["side"], change["path"], change["to"]) == ("sender", 1, "inactive"))
    before, after = (run(limit)["forward"]["bytes_delivered"] for limit in (cut, detected))
    return Goodput((after - before) / (detected - cut), detected - cut)


def between_sockets(profile: str, number: int, folder: Path) -> Goodput:
    """Goodput between real processes, from the file that the receiver has written."""
    out = folder / "received"
    out.mkdir(parents=True)
    (folder / "scenario.toml").write_text(scenario(profile, number))
    (folder / "file").write_bytes(bytes(SIZE))
    tuning = ["--profile", profile]
    for key, value in CONSTANTS.items():
        tuning += ["--config", f"{key}={value}"]

    with Processes(folder) as processes:
        start = processes.polypath
        own, theirs = addresses(number, 1), addresses(number, 2)
        emulator = start("emulate", folder / "scenario.toml", stdin=subprocess.PIPE).said("ready")
        start("recv", "--bind", ",".join(theirs), "-o", out, "--json", "--timeout", 60, "--plain",
              *tuning).said("waiting on ")
        sender = start("send", folder / "file", f"{theirs[0]}:9900", "--via", f"{theirs[1]}:9900",
                       "--bind", ",".join(own), "--json", "--timeout", 60, "--plain", *tuning)
        wait_until(lambda: arrived(out) > 0, 15, lambda: f"no data: {sender.err}", alive=sender.popen)
        time.sleep(CUT_AFTER)
        emulator.say("down second")
        cut, before = time.monotonic(), arrived(out)
        wait_until(lambda: "inactive" in sender.err, 30, lambda: f"not detected: {sender.err}",
                   alive=sender.popen)
        took, after = time.monotonic() - cut, arrived(out)
        assert 0 < after < SIZE, "the file is too short"
        return Goodput((after - before) / took, took)


@pytest.mark.clock
def test_a_cut_path_stops_cmt_again_and_again_and_cmt_pf_once(tmp_path, clock):
    cases = [(profile, 1 + 2 * number + place) for number in range(TRANSFERS)
             for place, profile in enumerate(("cmt", "cmt-pf"))]
    with ThreadPoolExecutor(len(cases)) as pool:
        real = list(pool.map(lambda case: between_sockets(*case, tmp_path / str(case[1])), cases))
    model = [simulated(profile, tmp_path, cut) for cut in SIMULATED_CUTS for profile in ("cmt", "cmt-pf")]
    story = f"sockets: {real}, simulator: {model}"
    # 63 RTOs, the first of which may be longer than RTO.Min.
    late = clock.late()
    for one in (*real, *model):
        assert 63 * RTO < one.detected < 2.5 * 63 * RTO + late.seconds, story
    # CMT-PF continues over the other path, CMT hardly does: the same order ...
    ratios, theirs = ([failed.value / plain.value for plain, failed in zip(ones[::2], ones[1::2], strict=True)]
                      for ones in (real, model))
    assert min(*ratios, *theirs) > 3 * (1 - late.share), story
    # ... and a similar ratio: the interval of the quotient of the two reaches below ALIKE, and is narrow
    # enough to distinguish orders of magnitude.
    found = agreement(*([math.log(ratio) for ratio in sample] for sample in (ratios, theirs)))
    print(f"CMT-PF against CMT: {mean(ratios):.1f} times between sockets, {mean(theirs):.1f} in the simulator; "
          f"quotient {math.exp(found.difference):.2f}, from {math.exp(found.difference - found.half):.2f} "
          f"to {math.exp(found.difference + found.half):.2f} (95 %)")
    more = -math.log(1 - late.share)
    assert abs(found.difference) - found.half < math.log(ALIKE) + more, story
    assert abs(found.difference) < math.log(2) + more, story
    assert found.half < math.log(3) + more, story
