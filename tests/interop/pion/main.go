// A peer of the interoperability tests on pion/sctp, in UDP (RFC 6951). It takes the command line and
// the commands of peer.c; it has one address, and the SCTP ports are pion's. With the option `dtls` DTLS lies
// between (RFC 8261), as in WebRTC; `keylog=FILE` writes its secrets there, and `zero-checksum` takes packets
// without checksum (RFC 9653).
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

const (
	mostMessage  = 2 << 20
	mostBuffered = 1 << 20
)

type peer struct {
	sync.Mutex
	association    *sctp.Association
	open           map[uint16]*sctp.Stream
	sent, received tally
	over           sync.Once
}

func main() {
	if len(os.Args) < 7 {
		fail("usage: peer listen|connect LOCAL PORT REMOTE|- UDP REMOTE_UDP")
	}
	local := endpoint(os.Args[2], os.Args[5])
	lines := bufio.NewScanner(os.Stdin)
	var secure *security
	zeroChecksum := false
	for _, option := range os.Args[7:] {
		name, value, _ := strings.Cut(option, "=")
		switch name {
		case "dtls":
			secure = introduce(lines)
		case "keylog":
			file, err := os.Create(value)
			check(err)
			secure.log = file
		case "zero-checksum":
			zeroChecksum = true
		}
	}
	var conn net.Conn
	if os.Args[1] == "listen" {
		socket, err := net.ListenUDP("udp", local)
		check(err)
		say("ready")
		conn, err = first(socket)
		check(err)
	} else {
		socket, err := net.DialUDP("udp", local, endpoint(os.Args[4], os.Args[6]))
		check(err)
		conn = socket
	}
	if secure != nil {
		encrypted, err := secure.over(conn, os.Args[1] == "connect")
		if err != nil {
			refused(err)
			return
		}
		conn = encrypted
	}
	config := sctp.Config{
		NetConn:              conn,
		MaxReceiveBufferSize: 4 << 20,
		MaxMessageSize:       mostMessage,
		EnableZeroChecksum:   zeroChecksum,
		LoggerFactory:        logging.NewDefaultLoggerFactory(),
	}
	make := sctp.Client
	if os.Args[1] == "listen" {
		make = sctp.Server
	}
	association, err := make(config)
	if err != nil {
		refused(err)
		return
	}
	say("up")
	p := &peer{association: association, open: map[uint16]*sctp.Stream{}}
	go p.accept()
	for lines.Scan() {
		p.obey(strings.Fields(lines.Text()))
	}
}

func refused(err error) {
	say("end reason=refused words=" + strings.ReplaceAll(err.Error(), "\n", " "))
}

func endpoint(address, port string) *net.UDPAddr {
	number, err := strconv.Atoi(port)
	check(err)
	return &net.UDPAddr{IP: net.ParseIP(address), Port: number}
}

// fixed is a listening socket, and who has spoken to it first.
type fixed struct {
	*net.UDPConn
	remote *net.UDPAddr
	begin  []byte
}

func first(socket *net.UDPConn) (net.Conn, error) {
	buffer := make([]byte, 65536)
	n, remote, err := socket.ReadFromUDP(buffer)
	return &fixed{socket, remote, buffer[:n]}, err
}

func (c *fixed) RemoteAddr() net.Addr { return c.remote }

func (c *fixed) Read(buffer []byte) (int, error) {
	if n := copy(buffer, c.begin); n > 0 {
		c.begin = nil
		return n, nil
	}
	n, _, err := c.ReadFromUDP(buffer)
	return n, err
}

func (c *fixed) Write(packet []byte) (int, error) { return c.WriteToUDP(packet, c.remote) }

func (p *peer) accept() {
	for {
		stream, err := p.association.AcceptStream()
		if err != nil {
			// A stream that still reads knows the reason better.
			time.Sleep(200 * time.Millisecond)
			p.ended(err)
			return
		}
		p.add(stream)
	}
}

// add has a stream read, once: OpenStream also returns one that the other side has opened and that AcceptStream
// has yet to return, and two readers would swap its messages.
func (p *peer) add(stream *sctp.Stream) {
	id := stream.StreamIdentifier()
	p.Lock()
	defer p.Unlock()
	if p.open[id] == nil {
		p.open[id] = stream
		go p.read(stream)
	}
}

func (p *peer) read(stream *sctp.Stream) {
	buffer := make([]byte, mostMessage)
	for {
		n, ppid, err := stream.ReadSCTP(buffer)
		if err != nil {
			p.ended(err)
			return
		}
		p.received.add(buffer[:n], stream.StreamIdentifier(), uint32(ppid))
	}
}

func (p *peer) ended(err error) {
	p.over.Do(func() {
		// pion closes its socket when a shutdown is complete, and then tells of that.
		if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
			say("end reason=closed")
		} else {
			say("end reason=lost words=" + strings.ReplaceAll(err.Error(), "\n", " "))
		}
		// The last packets go out.
		time.Sleep(200 * time.Millisecond)
		os.Exit(0)
	})
}

// stream opens one, or finds the one that the other side has opened.
func (p *peer) stream(id uint16) *sctp.Stream {
	for {
		p.Lock()
		stream := p.open[id]
		p.Unlock()
		if stream != nil {
			return stream
		}
		if stream, err := p.association.OpenStream(id, sctp.PayloadTypeWebRTCBinary); err == nil {
			p.add(stream)
			return stream
		}
		time.Sleep(time.Millisecond)
	}
}

func (p *peer) obey(words []string) {
	switch {
	case len(words) >= 5 && words[0] == "send":
		var numbers [3]int
		for i := range numbers {
			number, err := strconv.Atoi(words[i+1])
			check(err)
			numbers[i] = number
		}
		p.send(numbers[0], numbers[1], numbers[2], words[4], words[5:])
	case words[0] == "totals":
		say("sent " + p.sent.String())
		say("received " + p.received.String())
	case words[0] == "limited":
		say(fmt.Sprint("limited messages=", p.received.limited))
	case words[0] == "shutdown":
		go func() { _ = p.association.Shutdown(context.Background()) }()
	case words[0] == "abort":
		p.association.Abort("enough of this")
	default:
		fail("no command " + words[0])
	}
}

// send obeys; with "lifetime=MS" or "retransmissions=N" messages may be given up.
func (p *peer) send(count, size, streams int, kind string, limit []string) {
	reliability, value := sctp.ReliabilityTypeReliable, 0
	for _, word := range limit {
		name, number, _ := strings.Cut(word, "=")
		var err error
		value, err = strconv.Atoi(number)
		check(err)
		switch name {
		case "lifetime":
			reliability = sctp.ReliabilityTypeTimed
		case "retransmissions":
			reliability = sctp.ReliabilityTypeRexmit
		default:
			fail("no limit " + word)
		}
	}
	for i := 0; i < count; i++ {
		number := uint32(p.sent.messages)
		if len(limit) > 0 {
			number = uint32(i) | markLimited
		}
		ppid := markPpid | number
		unordered := kind == "unordered" || kind == "mixed" && i%2 == 1
		if unordered {
			ppid |= markUnordered
		}
		id := uint16(i % streams)
		stream, message := p.stream(id), content(size, number&numberOfPpid)
		stream.SetReliabilityParams(unordered, reliability, uint32(value))
		for stream.BufferedAmount() > mostBuffered {
			time.Sleep(time.Millisecond)
		}
		_, err := stream.WriteSCTP(message, sctp.PayloadProtocolIdentifier(ppid))
		check(err)
		if len(limit) == 0 {
			p.sent.add(message, id, ppid)
		}
	}
	say("taken")
}

func say(line string) { fmt.Println(line) }

func fail(what string) {
	say("failed " + what)
	os.Exit(1)
}

func check(err error) {
	if err != nil {
		fail(err.Error())
	}
}
