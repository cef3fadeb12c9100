/* SCTP's socket functions as a program uses them: one-way transfers, ping-pong, many associations.
 *
 *     sctp_sockets recv PORT
 *     sctp_sockets send PORT SECONDS SIZE
 *     sctp_sockets echo PORT
 *     sctp_sockets ping PORT COUNT SIZE
 *     sctp_sockets serve PORT COUNT ROUNDS one|many
 *     sctp_sockets clients PORT COUNT ROUNDS
 *
 * The peer is 127.0.0.1. With POLYPATH the functions are libpolypath's, otherwise the system's. Servers
 * print a line on stderr when they listen; each side prints one line of JSON. */
#define _GNU_SOURCE

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef POLYPATH
#include <polypath.h>
#include <polypath/sctp_compat.h>
#else
#include <netinet/sctp.h>
#endif

#include "bench.h"

enum { LARGEST = 192 * 1024, WARM_UP = 200 };

static char buffer[LARGEST];

static struct sockaddr_in address(const char *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return at;
}

static int listening(const char *port, int kind)
{
	struct sockaddr_in at = address(port);
	int fd = socket(AF_INET, kind, IPPROTO_SCTP);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 128) < 0)
		die("listen");
	fprintf(stderr, "listening\n");
	return fd;
}

static int accepted(int listener)
{
	int fd = accept(listener, NULL, NULL);
	if (fd < 0)
		die("accept");
	return fd;
}

static int connected(const char *port)
{
	struct sockaddr_in to = address(port);
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
		die("connect");
	return fd;
}

static ssize_t received(int fd)
{
	struct sctp_sndrcvinfo info;
	int flags = 0;
	ssize_t size = sctp_recvmsg(fd, buffer, sizeof buffer, NULL, NULL, &info, &flags);
	if (size < 0)
		die("sctp_recvmsg");
	return size;
}

static void sent(int fd, size_t size)
{
	if (sctp_sendmsg(fd, buffer, size, NULL, 0, 0, 0, 0, 0, 0) != (int)size)
		die("sctp_sendmsg");
}

static void receive_all(const char *port)
{
	int fd = accepted(listening(port, SOCK_STREAM));
	unsigned long long bytes = 0;
	double start = now_seconds();
	for (ssize_t size; (size = received(fd)) > 0;)
		bytes += size;
	report("recv", bytes, now_seconds() - start);
}

static void send_for(const char *port, double seconds, size_t size)
{
	int fd = connected(port);
	unsigned long long bytes = 0;
	double start = now_seconds(), end = start + seconds;
	while (now_seconds() < end)
		for (int i = 0; i < 16; i++, bytes += size)
			sent(fd, size);
	shutdown(fd, SHUT_WR);
	/* Until everything has arrived; recv would then fail with ENOTCONN. */
	struct pollfd over = {.fd = fd};
	while (poll(&over, 1, -1) != 1 || !(over.revents & POLLHUP))
		;
	report("send", bytes, now_seconds() - start);
}

static void echo_all(const char *port)
{
	int fd = accepted(listening(port, SOCK_STREAM));
	unsigned long long bytes = 0;
	double start = now_seconds();
	for (ssize_t size; (size = received(fd)) > 0; bytes += size)
		sent(fd, size);
	report("echo", bytes, now_seconds() - start);
}

static int ordered(const void *one, const void *other)
{
	double difference = *(const double *)one - *(const double *)other;
	return (difference > 0) - (difference < 0);
}

static void ping(const char *port, int count, size_t size)
{
	int fd = connected(port);
	double *times = malloc(count * sizeof *times);
	for (int i = -WARM_UP; i < count; i++) {
		double start = now_seconds();
		sent(fd, size);
		if (received(fd) != (ssize_t)size)
			die("ping");
		if (i >= 0)
			times[i] = now_seconds() - start;
	}
	qsort(times, count, sizeof *times, ordered);
	printf("{\"role\": \"ping\", \"median_us\": %.2f, \"p99_us\": %.2f, \"cpu_s\": %.6f}\n",
	       times[count / 2] * 1e6, times[count * 99 / 100] * 1e6, cpu_seconds());
}

/* Resident memory in KiB: now, and at most. */
static long resident(const char *name)
{
	char line[256];
	long found = 0;
	FILE *file = fopen("/proc/self/status", "r");
	while (file && fgets(line, sizeof line, file))
		if (!strncmp(line, name, strlen(name)))
			found = atol(line + strlen(name));
	if (file)
		fclose(file);
	return found;
}

static void report_many(const char *role, int count, double setup, double exchange, long before)
{
	printf("{\"role\": \"%s\", \"associations\": %d, \"setup_s\": %.6f, \"exchange_s\": %.6f, \"cpu_s\": %.6f, "
	       "\"kib_each\": %.1f}\n", role, count, setup, exchange, cpu_seconds(),
	       (double)(resident("VmHWM:") - before) / count);
}

/* Returns every message on COUNT associations of accepted sockets, ROUNDS on each, until their ends. */
static void serve_one(const char *port, int count, int rounds)
{
	int listener = listening(port, SOCK_STREAM);
	struct pollfd *all = calloc(count, sizeof *all);
	long before = resident("VmRSS:");
	double start = now_seconds();
	for (int i = 0; i < count; i++)
		all[i] = (struct pollfd){.fd = accepted(listener), .events = POLLIN};
	double setup = now_seconds() - start;
	start = now_seconds();
	for (long left = (long)count * rounds; left > 0;) {
		if (poll(all, count, 10000) <= 0)
			die("poll");
		for (int i = 0; i < count; i++)
			if (all[i].revents) {
				sent(all[i].fd, received(all[i].fd));
				left--;
			}
	}
	report_many("serve", count, setup, now_seconds() - start, before);
}

/* The same on one socket for all associations. */
static void serve_many(const char *port, int count, int rounds)
{
	int fd = listening(port, SOCK_SEQPACKET);
	struct sctp_event_subscribe events = {.sctp_data_io_event = 1};
	if (setsockopt(fd, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events) < 0)
		die("SCTP_EVENTS");
	long before = resident("VmRSS:");
	double start = now_seconds();
	for (long left = (long)count * rounds; left > 0; left--) {
		struct sctp_sndrcvinfo info;
		int flags = 0;
		int size = sctp_recvmsg(fd, buffer, sizeof buffer, NULL, NULL, &info, &flags);
		struct sctp_sndrcvinfo back = {.sinfo_assoc_id = info.sinfo_assoc_id};
		if (size <= 0 || sctp_send(fd, buffer, size, &back, 0) != size)
			die("serve");
	}
	report_many("serve", count, 0, now_seconds() - start, before);
}

static void clients(const char *port, int count, int rounds)
{
	long before = resident("VmRSS:");
	int *all = calloc(count, sizeof *all);
	double start = now_seconds();
	for (int i = 0; i < count; i++)
		all[i] = connected(port);
	double setup = now_seconds() - start;
	start = now_seconds();
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < count; i++)
			sent(all[i], 64);
		for (int i = 0; i < count; i++)
			if (received(all[i]) != 64)
				die("clients");
	}
	report_many("clients", count, setup, now_seconds() - start, before);
	for (int i = 0; i < count; i++)
		close(all[i]);
}

int main(int count, char **words)
{
	const char *role = count > 2 ? words[1] : "";
	memset(buffer, 0x5a, sizeof buffer);
	if (!strcmp(role, "recv") && count == 3)
		receive_all(words[2]);
	else if (!strcmp(role, "send") && count == 5)
		send_for(words[2], atof(words[3]), atol(words[4]));
	else if (!strcmp(role, "echo") && count == 3)
		echo_all(words[2]);
	else if (!strcmp(role, "ping") && count == 5)
		ping(words[2], atoi(words[3]), atol(words[4]));
	else if (!strcmp(role, "serve") && count == 6)
		(!strcmp(words[5], "many") ? serve_many : serve_one)(words[2], atoi(words[3]), atoi(words[4]));
	else if (!strcmp(role, "clients") && count == 5)
		clients(words[2], atoi(words[3]), atoi(words[4]));
	else
		return 2;
	return 0;
}
