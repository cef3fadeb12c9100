"""Why a statement does not hold or stays open, and where paper, ns-2 and polypath differ."""

REMARKS: dict[str, str] = {
    "P06": (
        "With equal delays and 4 % loss CMT has 4.9 % less goodput than CMT-PF, give or take 2.1 "
        "(30 transfers): on the border of the 5 % that count as equal. The other three checks hold."
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
