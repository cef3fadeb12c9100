"""Reasons why a statement does not hold, or the runs that would decide it.

Numbers are those of the recorded full grid: ten transfers per point, thirty in Figure 4, and more
at points that decide a statement.
"""

REMARKS = {
    "F01": (
        "Debian's module begins with a window of 4380 bytes instead of 2 MTU, which alone makes "
        "0.09 s; with the profile `ns2-2.35` polypath has its 122.157 s."
    ),
    "F03": (
        "Of the first 300 transfers at PMR 0, 35 have a failover, 20 of them only at the end: if "
        "one of the last packets is lost, there are not enough reports for a fast retransmission. "
        "The other 15 are the paper's 5 %."
    ),
    "F11": (
        "All thresholds are alike but where 5 % are lost and the alternate path loses nothing: "
        "there PMR 0 is 7.9 % ± 0.7 quicker (300 transfers), and in ns-2 with the papers' "
        "constants 6.3 %. With each of some 60 failovers it sends over the lossless path until "
        "the primary has answered, so that 8 % fewer packets are lost (2719 fast retransmissions "
        "against 2952), and less time is spent in timeouts (68 s against 79 s, of 1220 s)."
    ),
    "F12": (
        "PMR 0 is quicker than PMR 5 by more than the paper's 4 %, which is the direction of the "
        "statement; ns-2's results have three transfers at this point, 4 % with an interval that "
        "includes both."
    ),
    "F13": (
        "PMR 0 is no slower than any other threshold. Its results are not those of 90 / 90 ms, "
        "here as in ns-2: after a failover data crosses the alternate path at its round trip. And "
        "that path times out although it loses nothing: its RTO comes down to its round trip of "
        "1040 ms, a SACK that is delayed by 200 ms comes too late, and with PMR 0 the path is "
        "given up as well: at 10 % / 0 % 777 times in a transfer, with 90 ms 8 times. That makes "
        "1753 timeouts instead of 278, of 1972 s instead of 305 s."
    ),
    "F14": (
        "As F11: with three paths PMR 0 is 16.9 % ± 3.1 quicker than PMR 5 at 5 % / 0 % (60 "
        "transfers)."
    ),
    "F15": (
        "Dormant LastDest stays on the path used last until another one answers a HEARTBEAT, so "
        "that more of a transfer crosses the alternate path: it is quicker than Dormant Hop where "
        "that path loses less (10 % / 3 %: by 33 % ± 5), slower where it loses more (8 % / 10 %: "
        "18 %), and about equal where both lose the same (8 % / 8 %: 2 %) or failovers are rare "
        "(3 %: within 1.3 %). This is with one timer for the HEARTBEATs of all paths, as in "
        "release 3.6; with a timer for each path, as in Debian's release, the primary answers "
        "sooner (8 % / 10 %: 1.3 % ± 0.6). Dormant Primary is within 5 %."
    ),
    "F16": (
        "Where the traces differ from the description is listed below, packet by packet: by ns-2's "
        "procedures new data leaves only in answer to a packet, so TSN 2 does not leave at the "
        "timeout; by RFC 9260's, four missing reports send TSN 1 again before its timer. The gains "
        "of equations (1) to (10) hold."
    ),
    "F18": (
        "At 1 % loss of the alternate path CPT 0 is 19.8 % ± 0.6 quicker than CPT 5 (60 "
        "transfers); the paper's 23 % are from an unknown number of runs. At both points of the "
        "statement "
        "polypath equals ns-2 with the papers' constants."
    ),
    "F20": (
        "At 10 % / 5 % CPT 0 is 6 % slower than CPT 1 (500 transfers). With CPT 0 each timeout "
        "changes the primary, so that one on the alternate path goes back to the worse one; CPT 1 "
        "asks for a lost heartbeat as well. In a transfer the worse path times out 76 times with "
        "CPT 0 and 46 times with CPT 1, and timeouts take 185 s and 141 s; the rest of the "
        "difference is its round trip of 210 ms."
    ),
    "F21": (
        "Where and why not (the table of Section IV.2 below has every point). With a lossless "
        "alternate path the model is behind CPT 0: a path is known when it has carried fifty "
        "chunks, and until then failovers are temporary (`policy/failover/model.rs`), while CPT 0 "
        "stays at the first timeout. At 3 % / 0 % the fourth failover is the lasting one, as with "
        "CPT 1, and timeouts are 100 s and more apart. Else it is the paper's formula, which knows "
        "no timeouts. With 10 % / 4 % over 90 / 210 ms it stays (28.5 against 42 ms a packet), has "
        "614 timeouts of 756 s in all, and CPT 0 has 61 of 106 s. With 5 % / 10 % over 210 / 90 ms "
        "it goes, has 780 of 966 s, and CPT 5, which stays, 111 of 194 s. A loss of 9 or 10 % "
        "leaves windows too small for fast retransmissions, whatever the round trip."
    ),
}
