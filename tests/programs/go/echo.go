// An echo server on the one-to-one sockets of github.com/ishidawataru/sctp, which makes its system
// calls itself, and its client, which compares each answer.
//
//	echo server PORT ADDRESS...
//	echo client PORT REMOTE COUNT ADDRESS...
//
// The server ends with its first association.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/ishidawataru/sctp"
)

const (
	streams = 4
	largest = 16000
)

var options = sctp.InitMsg{NumOstreams: streams, MaxInstreams: streams}

func main() {
	words := os.Args[1:]
	var err error
	switch {
	case len(words) >= 2 && words[0] == "server":
		err = serve(address(words[1], words[2:]))
	case len(words) >= 4 && words[0] == "client":
		var count int
		if count, err = strconv.Atoi(words[3]); err == nil {
			err = request(address("0", words[4:]), address(words[1], words[2:3]), count)
		}
	default:
		err = errors.New("neither server nor client")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func address(port string, ips []string) *sctp.SCTPAddr {
	number, err := strconv.Atoi(port)
	if err != nil {
		log.Fatal(err)
	}
	found := &sctp.SCTPAddr{Port: number}
	for _, ip := range ips {
		found.IPAddrs = append(found.IPAddrs, net.IPAddr{IP: net.ParseIP(ip)})
	}
	return found
}

// socket has the options of both sides; events of the association are printed.
func socket() sctp.SocketConfig {
	return sctp.SocketConfig{
		InitMsg: options,
		NotificationHandler: func(event []byte) error {
			fmt.Printf("event of %d bytes\n", len(event))
			return nil
		},
	}
}

func serve(local *sctp.SCTPAddr) error {
	config := socket()
	listener, err := config.Listen("sctp", local)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	conn, err := listener.AcceptSCTP()
	if err != nil {
		return err
	}
	if err := subscribe(conn); err != nil {
		return err
	}
	data := make([]byte, 1<<17)
	for {
		size, info, err := conn.SCTPRead(data)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		back := &sctp.SndRcvInfo{Stream: info.Stream, PPID: info.PPID}
		if _, err := conn.SCTPWrite(data[:size], back); err != nil {
			return err
		}
	}
	return errors.Join(conn.Close(), listener.Close())
}

func subscribe(conn *sctp.SCTPConn) error {
	return conn.SubscribeEvents(sctp.SCTP_EVENT_DATA_IO | sctp.SCTP_EVENT_ADDRESS | sctp.SCTP_EVENT_SHUTDOWN)
}

func request(local, remote *sctp.SCTPAddr, count int) error {
	config := socket()
	conn, err := config.Dial("sctp", local, remote)
	if err != nil {
		return err
	}
	if err := subscribe(conn); err != nil {
		return err
	}
	status, err := conn.GetStatus()
	if err != nil {
		return err
	}
	if status.Ostreams != streams {
		return fmt.Errorf("%d streams", status.Ostreams)
	}
	answers := make(chan error)
	numbers := make(chan int, 1)
	// One goroutine writes, the other one reads.
	go func() {
		answer := make([]byte, largest+1)
		for n := range numbers {
			answers <- compare(conn, n, answer)
		}
	}()
	for n := 1; n <= count; n++ {
		numbers <- n
		info := &sctp.SndRcvInfo{Stream: uint16(n % streams), PPID: uint32(n)}
		if _, err := conn.SCTPWrite(message(n), info); err != nil {
			return err
		}
		if err := <-answers; err != nil {
			return err
		}
		if n%10 == 0 {
			fmt.Printf("exchanged %d\n", n)
		}
		time.Sleep(10 * time.Millisecond)
	}
	remotes, err := conn.SCTPRemoteAddr(0)
	if err != nil {
		return err
	}
	var texts []string
	for _, ip := range remotes.IPAddrs {
		texts = append(texts, ip.String())
	}
	sort.Strings(texts)
	fmt.Println("remote", strings.Join(texts, " "))
	return conn.Close()
}

func message(n int) []byte {
	return bytes.Repeat([]byte{byte(n)}, 1+n*397%largest)
}

func compare(conn *sctp.SCTPConn, n int, answer []byte) error {
	size, info, err := conn.SCTPRead(answer)
	if err != nil {
		return err
	}
	if info == nil || int(info.Stream) != n%streams || info.PPID != uint32(n) {
		return fmt.Errorf("message %d: %v", n, info)
	}
	if !bytes.Equal(answer[:size], message(n)) {
		return fmt.Errorf("message %d: %d bytes", n, size)
	}
	return nil
}
