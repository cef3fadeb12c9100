"""Which settings for my two links? Answers with a table and with two-links.png."""

import polypath

wired = polypath.schema.Path(name="wired", rate="20 Mbit/s", delay="15 ms", loss="0.5 %")
mobile = polypath.schema.Path(name="mobile", rate="5 Mbit/s", delay="60 ms", loss="2 %")
links = polypath.Scenario(path=[wired, mobile], workload={"kind": "bulk", "size": "20 MB"})
settings = {"transport.rto_min": ["200 ms", "1 s"], "policy.retransmission": ["same", "hybrid"]}
runs = polypath.sweep(links.grid(settings), stop=polypath.Stop(within=0.02, at_most=60))
print(polypath.summary(runs)[["scenario", "n", "mean", "half_width"]].round(2).to_string())
print(polypath.compare(runs)[["scenario", "difference", "low", "high", "differs"]].to_string())
polypath.plot(runs).savefig("two-links.png", dpi=150)
