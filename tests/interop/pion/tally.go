package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
)

const (
	streams       = 2048
	markPpid      = 0x70000000
	markUnordered = 0x08000000
	markLimited   = 0x04000000
	numberOfPpid  = 0x03ffffff
)

// tally is a sum over what was sent or what arrived, as in tally.h.
type tally struct {
	sync.Mutex
	messages, bytes, unordered uint64
	limited                    uint64
	streams                    [streams]uint64
}

func content(size int, number uint32) []byte {
	message := make([]byte, (size+7)/8*8)
	x := uint64(number) + 1
	for at := 0; at < size; at += 8 {
		x = x*6364136223846793005 + 1442695040888963407
		binary.LittleEndian.PutUint64(message[at:], x^x>>32)
	}
	return message[:size]
}

func (t *tally) add(message []byte, stream uint16, ppid uint32) {
	h := uint64(ppid)<<32 ^ uint64(len(message)) ^ uint64(stream)<<16
	for at := 0; at < len(message); at += 8 {
		var word [8]byte
		copy(word[:], message[at:])
		h = (h ^ binary.LittleEndian.Uint64(word[:])) * 1099511628211
		h ^= h >> 29
	}
	t.Lock()
	defer t.Unlock()
	if ppid&markLimited != 0 {
		if !bytes.Equal(message, content(len(message), ppid&numberOfPpid)) {
			fail("a message that may be given up is broken")
		}
		t.limited++
		return
	}
	t.messages++
	t.bytes += uint64(len(message))
	if ppid&markUnordered != 0 {
		t.unordered += h
	} else {
		t.streams[stream%streams] = t.streams[stream%streams]*31 + h
	}
}

func (t *tally) String() string {
	t.Lock()
	defer t.Unlock()
	var ordered uint64
	for _, sum := range t.streams {
		ordered = ordered*31 + sum
	}
	return fmt.Sprintf("messages=%d bytes=%d ordered=%016x unordered=%016x",
		t.messages, t.bytes, ordered, t.unordered)
}
