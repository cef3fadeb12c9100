"""Why a statement does not hold, or what it would take to decide it.

Numbers are those of the recorded full grid: ten transfers a point, thirty in Figure 4. How many
transfers would decide an open one follows from its interval and its distance from the border.
"""

REMARKS = {
    "F02": (
        "Open at two borders, PMR 0 at 1 % and PMR 4 at 10 %: some 90 independent transfers of "
        "each would decide them."
    ),
    "F03": "The share at PMR 0 is so near its border that it would take some 1300 transfers.",
    "F04": "Both shares are near their borders: some 500 and 700 transfers.",
    "F07": "The share of 45.5 % is within two points of its border: some 2600 transfers.",
    "F09": "PMR 4 at 10 %: some 90 independent transfers would decide it.",
    "F11": (
        "All thresholds are alike but where 5 % are lost and the alternate path loses nothing: "
        "there PMR 0, which goes to the better path with each timeout, is 7.3 % quicker, and in "
        "ns-2 with the papers' constants 6.3 %."
    ),
    "F13": (
        "PMR 0 is no slower than any other threshold. Its results are not those of 90 / 90 ms, "
        "here as in ns-2: after a failover data crosses the alternate path at its round trip."
    ),
    "F14": "As F11; some 15 transfers would decide 5 % / 0 %.",
    "F15": "8 % / 0 % is near the border: some 900 transfers would decide it.",
    "F16": (
        "Where the traces differ from the description is listed below, packet by packet: by ns-2's "
        "procedures new data leaves only in answer to a packet, so TSN 2 does not leave at the "
        "timeout; by RFC 9260's, four missing reports send TSN 1 again before its timer. The gains "
        "of equations (1) to (10) hold."
    ),
    "F17": "The 87.3 % are one point from the border; sixteen transfers decide it (small grid).",
    "F20": (
        "At 10 % / 5 % CPT 0 is slower than CPT 1. With CPT 0 each timeout changes the primary, so "
        "that one on the alternate path goes back to the worse one; CPT 1 asks for a lost "
        "heartbeat as well. Some 70 transfers would decide CPT 1 against 2."
    ),
    "F21": (
        "The model is behind CPT 0 where the primary path loses little and the alternate less: a "
        "path is known when it has carried fifty chunks, and until then failovers are temporary "
        "(two or three of them, `policy/failover/model.rs`), while CPT 0 stays at the first "
        "timeout: up to 187 % where the alternate path loses nothing. And the paper's formula "
        "knows no timeouts: with 10 % / 4 % over 90 / 210 ms it stays (28.5 against 42 ms), though "
        "the other path is 28 % quicker. At 107 of 132 points it is within 10 %."
    ),
    "F22": "Some 15 transfers would decide the point at 8 %, and some 200 that at 10 %.",
}
