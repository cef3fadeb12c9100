/*
 * What was sent and what arrived, by a sum over the contents: equal at both ends if and only if
 * every message arrived whole, once, on its stream, and in order where it was ordered.
 * crates/polypath/examples/peer/tally.rs and pion/tally.go have the same.
 */
#ifndef TALLY_H
#define TALLY_H

#include <stdint.h>
#include <string.h>

enum { TALLY_STREAMS = 2048 };

/* The payload protocol identifier of a message: a mark that means nothing to a dissector, and whether
 * it is unordered, which pion does not tell its receiver. */
static inline uint32_t tally_ppid(uint32_t number, int unordered)
{
	return 0x70000000u | (unordered ? 0x08000000u : 0) | number;
}

/* The mark of a message that may be given up: it is no part of the sums. */
enum { TALLY_LIMITED = 0x04000000, TALLY_NUMBER = 0x03ffffff };

struct tally {
	uint64_t messages, bytes, unordered;
	uint64_t streams[TALLY_STREAMS];
};

/* The contents of the message with this number. */
static inline void tally_fill(unsigned char *message, size_t size, uint32_t number)
{
	uint64_t x = number + 1;
	for (size_t at = 0; at < size; at += 8) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		uint64_t word = x ^ x >> 32;
		for (size_t i = 0; i < 8 && at + i < size; i++)
			message[at + i] = word >> 8 * i;
	}
}

static inline uint64_t tally_hash(const unsigned char *message, size_t size, uint64_t seed)
{
	uint64_t h = seed;
	for (size_t at = 0; at < size; at += 8) {
		uint64_t word = 0;
		for (size_t i = 0; i < 8 && at + i < size; i++)
			word |= (uint64_t)message[at + i] << 8 * i;
		h = (h ^ word) * 1099511628211u;
		h ^= h >> 29;
	}
	return h;
}

static inline void tally_add(struct tally *t, const unsigned char *message, size_t size,
			     unsigned stream, uint32_t ppid, int unordered)
{
	uint64_t h = tally_hash(message, size, (uint64_t)ppid << 32 ^ size ^ (uint64_t)stream << 16);
	t->messages++;
	t->bytes += size;
	if (unordered)
		t->unordered += h;
	else
		t->streams[stream % TALLY_STREAMS] = t->streams[stream % TALLY_STREAMS] * 31 + h;
}

/* A message that may be given up is what its number says. */
static inline int tally_whole(const unsigned char *message, size_t size, uint32_t ppid)
{
	static unsigned char expected[1 << 20];
	tally_fill(expected, size, ppid & TALLY_NUMBER);
	return memcmp(message, expected, size) == 0;
}

static inline uint64_t tally_ordered(const struct tally *t)
{
	uint64_t sum = 0;
	for (int stream = 0; stream < TALLY_STREAMS; stream++)
		sum = sum * 31 + t->streams[stream];
	return sum;
}

#endif
