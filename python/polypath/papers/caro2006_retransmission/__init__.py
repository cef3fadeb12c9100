"""Caro, Amer, Stewart: Retransmission policies for multihomed transport protocols.

Policies differ in the destination of a retransmission: the address that the chunk was sent to
(AllRtxSame), another (AllRtxAlt), or the same after a fast retransmission and another after a
timeout (FrSameRtoAlt). Extensions are heartbeats after a timeout (HAR), timestamps (TS) and
multiple fast retransmits (MFR).
"""

from polypath.papers.caro2006_retransmission.claims import CLAIMS
from polypath.papers.caro2006_retransmission.cross_traffic import figure_3, ns2_frames
from polypath.papers.caro2006_retransmission.figures import (
    figure_6,
    figure_8,
    figure_9,
    figure_10,
    figure_12,
    figure_13,
    figure_15,
    figure_16,
    section_5_3,
    section_5_4,
)
from polypath.papers.caro2006_retransmission.flag import section_4_2
from polypath.papers.caro2006_retransmission.settings import cause, nearest, samples
from polypath.papers.caro2006_retransmission.traces import figure_4, section_6_1
from polypath.papers.registry import Paper

PAPER = Paper(
    key="caro2006-retransmission",
    source="caro2006-retransmission",
    title="Retransmission policies for multihomed transport protocols (Caro, Amer, Stewart 2006)",
    figures=(
        figure_3,
        figure_4,
        figure_6,
        section_4_2,
        figure_8,
        figure_9,
        figure_10,
        figure_12,
        figure_13,
        section_5_3,
        section_5_4,
        section_6_1,
        figure_15,
        figure_16,
    ),
    claims=CLAIMS,
    samples=samples,
    nearest=nearest,
    frames=ns2_frames,
    cause=cause,
)
