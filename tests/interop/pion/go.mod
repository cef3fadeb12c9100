module polypath/peer

go 1.19

require (
	github.com/pion/dtls/v2 v2.2.12
	github.com/pion/logging v0.2.2
	github.com/pion/sctp v1.8.19
)

require (
	github.com/pion/randutil v0.1.0 // indirect
	github.com/pion/transport/v2 v2.2.4 // indirect
	golang.org/x/crypto v0.18.0 // indirect
	golang.org/x/net v0.20.0 // indirect
	golang.org/x/sys v0.16.0 // indirect
)
