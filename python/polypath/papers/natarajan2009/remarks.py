"""Reasons why a statement fails or stays open, and where paper, ns-2 and polypath differ."""

REMARKS: dict[str, str] = {
    "P01": (
        "Of CMT's transfers with PMR 2 and more one or two in 120 are not counted: after twice the "
        "usual time path 2 was not inactive yet. A chunk that path 1 had delivered was sent again "
        "on path 2 just before its SACK came, which then counted for path 2 and cleared its error "
        "counter: the ambiguity of RFC 9260 8.2, which ns-2's module resolves in the same way."
    ),
    "P04": (
        "CMT-PF beats CMT at every threshold. Whether its two policies equal each other at PMR 1 "
        "is not decided: 120 transfers know their quotient within 8 %, and the limit is 10 %."
    ),
    "P08": (
        "CMT-PF has no two timeouts in a row on path 2 here, where the paper has a fifth of one a "
        "transfer, six or seven in its thirty; none is outside what that mean allows. CMT has "
        "about half as many as the paper with 90 % cross-traffic, and as many with 100 %: near 90 "
        "% their number depends much on how bursty the traffic is. That CMT-PF has less than a "
        "tenth of CMT's holds everywhere."
    ),
    "P09": (
        "With 100 % cross-traffic path 1 carries 2.9 times what path 2 does, with CMT and CMT-PF "
        "alike; the paper has 2.3 and 3.6. The goodputs in these settings agree with ns-2's; why "
        "the paper's CMT-PF uses path 2 so much less than its CMT is not known."
    ),
}
