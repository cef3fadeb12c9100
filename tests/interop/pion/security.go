package main

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/pion/dtls/v2"
	"github.com/pion/dtls/v2/pkg/crypto/selfsign"
)

// security is who this side is, and the fingerprint that the other one has to have.
type security struct {
	certificate tls.Certificate
	expected    string
	// Where its secrets are written, for who is to read along.
	log io.Writer
}

// introduce tells this side's fingerprint and is told the other one's, as WebRTC does it beforehand (RFC 8827 5).
func introduce(lines *bufio.Scanner) *security {
	certificate, err := selfsign.GenerateSelfSigned()
	check(err)
	say("fingerprint sha256=" + fingerprint(certificate.Certificate[0]))
	if !lines.Scan() {
		fail("no fingerprint to expect")
	}
	_, expected, _ := strings.Cut(lines.Text(), "expect ")
	return &security{certificate, strings.NewReplacer("-", "", ":", "").Replace(expected), nil}
}

func fingerprint(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}

// over makes a connection with what pion/webrtc sets.
func (s *security) over(conn net.Conn, connects bool) (net.Conn, error) {
	config := &dtls.Config{
		Certificates:         []tls.Certificate{s.certificate},
		KeyLogWriter:         s.log,
		ClientAuth:           dtls.RequireAnyClientCert,
		InsecureSkipVerify:   true,
		ExtendedMasterSecret: dtls.RequireExtendedMasterSecret,
		SRTPProtectionProfiles: []dtls.SRTPProtectionProfile{
			dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80,
		},
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			if len(raw) == 0 || fingerprint(raw[0]) != s.expected {
				return errors.New("another fingerprint than expected")
			}
			return nil
		},
	}
	if connects {
		return dtls.Client(conn, config)
	}
	return dtls.Server(conn, config)
}
