"""Reasons why a statement does not hold, or why paper, ns-2 and polypath differ."""

from __future__ import annotations

REMARKS = {
    "C01": (
        "RTX-SAME hardly sends more than was dropped, here and in the released module alike: ns-2 "
        "with the papers' constants has 1.02 for RTX-SAME over all losses, 1.05 to 1.11 for the "
        "others (chunks sent beyond the file's, of packets dropped on the way forward). What a "
        "timeout marks although it is on its way is sent again only if some window has room before "
        "its SACK comes. With RTX-SAME that is the window of the path that timed out: one packet "
        "that the first retransmission takes, and the SACKs of the rest take the marks away before "
        "it opens. The other policies send it at once over the other path, as in the paper's "
        "Figure 4. How far above 1 the curves of Figure 5a lie cannot be read from its text; "
        "well above is taken as more than 5 %."
    ),
}
