module polypath/peer

go 1.19

require (
	github.com/pion/logging v0.2.2
	github.com/pion/sctp v1.8.19
)

require github.com/pion/randutil v0.1.0 // indirect
