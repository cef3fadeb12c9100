"""Why a statement does not hold or stays open, and where paper, ns-2 and polypath differ."""

REMARKS: dict[str, str] = {}
