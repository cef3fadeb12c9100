// A peer of the interoperability tests on pion/sctp, in UDP (RFC 6951). It takes the command line and
// the commands of peer.c; it has one address, and the SCTP ports are pion's.
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
	// Messages that may be given up are counted, and in no sum.
	partialPpid = 0x60000000
)

type peer struct {
	sync.Mutex
	association    *sctp.Association
	open           map[uint16]*sctp.Stream
	sent, received tally
	partial        int
	over           sync.Once
}

func main() {
	if len(os.Args) < 7 {
		fail("usage: peer listen|connect LOCAL PORT REMOTE|- UDP REMOTE_UDP")
	}
	local := endpoint(os.Args[2], os.Args[5])
	var conn net.Conn
	if os.Args[1] == "listen" {
		socket, err := net.ListenUDP("udp4", local)
		check(err)
		say("ready")
		conn, err = first(socket)
		check(err)
	} else {
		socket, err := net.DialUDP("udp4", local, endpoint(os.Args[4], os.Args[6]))
		check(err)
		conn = socket
	}
	config := sctp.Config{
		NetConn:              conn,
		MaxReceiveBufferSize: 4 << 20,
		MaxMessageSize:       mostMessage,
		LoggerFactory:        logging.NewDefaultLoggerFactory(),
	}
	make := sctp.Client
	if os.Args[1] == "listen" {
		make = sctp.Server
	}
	association, err := make(config)
	if err != nil {
		say("end reason=refused words=" + err.Error())
		return
	}
	say("up")
	p := &peer{association: association, open: map[uint16]*sctp.Stream{}}
	go p.accept()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		p.obey(strings.Fields(lines.Text()))
	}
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

func (p *peer) add(stream *sctp.Stream) {
	p.Lock()
	p.open[stream.StreamIdentifier()] = stream
	p.Unlock()
	go p.read(stream)
}

func (p *peer) read(stream *sctp.Stream) {
	buffer := make([]byte, mostMessage)
	for {
		n, ppid, err := stream.ReadSCTP(buffer)
		if err != nil {
			p.ended(err)
			return
		}
		if uint32(ppid) == partialPpid {
			p.partial++
			continue
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
	case len(words) == 5 && words[0] == "send":
		var numbers [3]int
		for i := range numbers {
			number, err := strconv.Atoi(words[i+1])
			check(err)
			numbers[i] = number
		}
		p.send(numbers[0], numbers[1], numbers[2], words[4])
	case words[0] == "totals":
		say("sent " + p.sent.String())
		say("received " + p.received.String())
		// It does not tell what it has given up.
		say(fmt.Sprintf("partial received=%d given_up=-1", p.partial))
	case words[0] == "shutdown":
		go func() { _ = p.association.Shutdown(context.Background()) }()
	case words[0] == "abort":
		p.association.Abort("enough of this")
	default:
		fail("no command " + words[0])
	}
}

func (p *peer) send(count, size, streams int, kind string) {
	for i := 0; i < count; i++ {
		if kind == "partial" {
			stream := p.stream(uint16(i % streams))
			stream.SetReliabilityParams(false, sctp.ReliabilityTypeRexmit, 0)
			_, err := stream.WriteSCTP(content(size, uint32(i)), partialPpid)
			check(err)
			continue
		}
		number := uint32(p.sent.messages)
		ppid := markPpid | number
		unordered := kind == "unordered" || kind == "mixed" && i%2 == 1
		if unordered {
			ppid |= markUnordered
		}
		id := uint16(i % streams)
		stream, message := p.stream(id), content(size, number)
		stream.SetReliabilityParams(unordered, sctp.ReliabilityTypeReliable, 0)
		for stream.BufferedAmount() > mostBuffered {
			time.Sleep(time.Millisecond)
		}
		_, err := stream.WriteSCTP(message, sctp.PayloadProtocolIdentifier(ppid))
		check(err)
		p.sent.add(message, id, ppid)
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
