/*
 * One-way bulk of plain UDP: what the same host's datagrams cost without any protocol above them.
 *
 *   udp_bulk recv ADDRESS PORT plain|offload
 *   udp_bulk send ADDRESS PORT plain|offload SECONDS DATAGRAM_SIZE
 *
 * plain: a system call for each datagram. offload: UDP_SEGMENT cuts up to 64 KiB into datagrams,
 * UDP_GRO joins them again. UDP has no flow control; what overruns the receive buffer is lost, and
 * the receiver's bytes are the goodput. A datagram of one byte, repeated, ends the run.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { BUFFER = 4 << 20, BATCH = 64 * 1024 - 64, MAX_SEGMENTS = 64 };

static struct sockaddr_in address(const char *ip, int port)
{
	struct sockaddr_in a;
	memset(&a, 0, sizeof a);
	a.sin_family = AF_INET;
	a.sin_port = htons(port);
	if (inet_pton(AF_INET, ip, &a.sin_addr) != 1) {
		fprintf(stderr, "%s is no IPv4 address\n", ip);
		exit(1);
	}
	return a;
}

static void receive(const char *ip, int port, int offload)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0), size = BUFFER, on = 1;
	struct sockaddr_in a = address(ip, port);
	struct timeval patience = { .tv_sec = 20 };
	setsockopt(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	if (offload && setsockopt(s, IPPROTO_UDP, UDP_GRO, &on, sizeof on) < 0)
		die("UDP_GRO");
	if (bind(s, (struct sockaddr *)&a, sizeof a) < 0)
		die("bind");
	fprintf(stderr, "ready\n");
	static char buffer[1 << 16];
	unsigned long long bytes = 0;
	double first = 0, last = 0;
	for (;;) {
		ssize_t n = recv(s, buffer, sizeof buffer, 0);
		if (n < 0)
			die("recv");
		if (n <= 1)
			break;
		last = now_seconds();
		if (bytes == 0)
			first = last;
		bytes += n;
	}
	report("recv", bytes, last - first);
	close(s);
}

static void transmit(const char *ip, int port, int offload, double duration, size_t size)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0), buffer = BUFFER;
	struct sockaddr_in a = address(ip, port);
	setsockopt(s, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
	if (connect(s, (struct sockaddr *)&a, sizeof a) < 0)
		die("connect");
	size_t batch = size;
	if (offload) {
		int segment = size;
		if (setsockopt(s, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) < 0)
			die("UDP_SEGMENT");
		size_t segments = BATCH / size;
		batch = size * (segments > MAX_SEGMENTS ? MAX_SEGMENTS : segments);
	}
	static char data[1 << 16];
	unsigned long long sent = 0;
	double start = now_seconds();
	while (now_seconds() - start < duration) {
		ssize_t n = send(s, data, batch, 0);
		if (n < 0) {
			if (errno == EINTR || errno == ENOBUFS)
				continue;
			die("send");
		}
		sent += n;
	}
	double seconds = now_seconds() - start;
	for (int i = 0; i < 20; i++) {
		usleep(20000);
		if (send(s, data, 1, 0) < 0)
			break; /* refused: the receiver has seen the end */
	}
	report("send", sent, seconds);
	close(s);
}

int main(int argc, char **argv)
{
	int receiving = argc == 5 && strcmp(argv[1], "recv") == 0;
	int sending = argc == 7 && strcmp(argv[1], "send") == 0;
	if (!receiving && !sending) {
		fprintf(stderr, "usage: %s recv ADDRESS PORT plain|offload | send ADDRESS PORT "
			"plain|offload SECONDS DATAGRAM_SIZE\n", argv[0]);
		return 2;
	}
	int offload = strcmp(argv[4], "offload") == 0;
	if (receiving) {
		receive(argv[2], atoi(argv[3]), offload);
		return 0;
	}
	size_t size = strtoul(argv[6], NULL, 10);
	if (size < 2 || size > BATCH) {
		fprintf(stderr, "a datagram holds 2 to %d bytes\n", BATCH);
		return 2;
	}
	transmit(argv[2], atoi(argv[3]), offload, atof(argv[5]), size);
	return 0;
}
