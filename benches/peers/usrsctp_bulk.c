/*
 * One-way bulk over one association of usrsctp, encapsulated in UDP (RFC 6951).
 *
 *   usrsctp_bulk recv ADDRESS UDP_PORT
 *   usrsctp_bulk send ADDRESS UDP_PORT PEER PEER_UDP_PORT SECONDS MESSAGE_SIZE
 *
 * recv takes one association, reads until it ends and prints one JSON line; send sends for so long
 * and prints one after the last byte was acknowledged. Build: gcc -O2 usrsctp_bulk.c -lusrsctp
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <unistd.h>
#include <usrsctp.h>

#include "bench.h"

enum { SCTP_PORT = 5001, BUFFER = 4 << 20, PATH_MTU = 1460 /* makes IP packets of 1500 */ };

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

static struct socket *open_socket(const char *ip)
{
	struct socket *s = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	if (s == NULL)
		die("usrsctp_socket");
	int size = BUFFER, on = 1;
	usrsctp_setsockopt(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	usrsctp_setsockopt(s, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	usrsctp_setsockopt(s, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on);
	/* Packets of the size that a path of 1500 bytes allows, not of loopback's 64 KiB. */
	struct sctp_paddrparams path;
	memset(&path, 0, sizeof path);
	path.spp_address.ss_family = AF_INET;
	path.spp_pathmtu = PATH_MTU;
	path.spp_flags = SPP_PMTUD_DISABLE | SPP_HB_DISABLE;
	if (usrsctp_setsockopt(s, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path, sizeof path) < 0)
		die("SCTP_PEER_ADDR_PARAMS");
	struct sockaddr_in local = address(ip, strcmp(ip, "") ? SCTP_PORT : 0);
	if (usrsctp_bind(s, (struct sockaddr *)&local, sizeof local) < 0)
		die("usrsctp_bind");
	return s;
}

static void receive(const char *ip)
{
	struct socket *listener = open_socket(ip);
	if (usrsctp_listen(listener, 1) < 0)
		die("usrsctp_listen");
	fprintf(stderr, "ready\n");
	struct socket *s = usrsctp_accept(listener, NULL, NULL);
	if (s == NULL)
		die("usrsctp_accept");
	static char buffer[1 << 18];
	unsigned long long bytes = 0;
	double first = 0, last = 0;
	for (;;) {
		int flags = 0;
		struct sctp_rcvinfo info;
		socklen_t info_length = sizeof info;
		unsigned info_type = 0;
		ssize_t n = usrsctp_recvv(s, buffer, sizeof buffer, NULL, NULL, &info, &info_length,
					  &info_type, &flags);
		if (n <= 0)
			break;
		last = now_seconds();
		if (bytes == 0)
			first = last;
		bytes += n;
	}
	report("recv", bytes, last - first);
	usrsctp_close(s);
	usrsctp_close(listener);
}

static void transmit(const char *ip, const char *peer, int peer_udp, double seconds, size_t size)
{
	struct socket *s = open_socket(ip);
	struct sctp_udpencaps encaps;
	memset(&encaps, 0, sizeof encaps);
	encaps.sue_address.ss_family = AF_INET;
	encaps.sue_port = htons(peer_udp);
	if (usrsctp_setsockopt(s, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encaps, sizeof encaps) < 0)
		die("SCTP_REMOTE_UDP_ENCAPS_PORT");
	struct sockaddr_in remote = address(peer, SCTP_PORT);
	if (usrsctp_connect(s, (struct sockaddr *)&remote, sizeof remote) < 0)
		die("usrsctp_connect");
	char *message = calloc(1, size);
	struct sctp_sndinfo info;
	memset(&info, 0, sizeof info);
	unsigned long long sent = 0;
	double start = now_seconds();
	while (now_seconds() - start < seconds) {
		ssize_t n = usrsctp_sendv(s, message, size, NULL, 0, &info, sizeof info,
					  SCTP_SENDV_SNDINFO, 0);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			die("usrsctp_sendv");
		}
		sent += n;
	}
	/* SHUTDOWN completes when the peer has acknowledged everything; recv then reads the end. */
	usrsctp_shutdown(s, SHUT_WR);
	char end;
	struct sctp_rcvinfo rinfo;
	socklen_t length = sizeof rinfo;
	unsigned type = 0;
	int flags = 0;
	while (usrsctp_recvv(s, &end, 1, NULL, NULL, &rinfo, &length, &type, &flags) > 0)
		;
	report("send", sent, now_seconds() - start);
	usrsctp_close(s);
	free(message);
}

int main(int argc, char **argv)
{
	int receiving = argc == 4 && strcmp(argv[1], "recv") == 0;
	int sending = argc == 8 && strcmp(argv[1], "send") == 0;
	if (!receiving && !sending) {
		fprintf(stderr, "usage: %s recv ADDRESS UDP_PORT | send ADDRESS UDP_PORT PEER "
			"PEER_UDP_PORT SECONDS MESSAGE_SIZE\n", argv[0]);
		return 2;
	}
	usrsctp_init(atoi(argv[3]), NULL, NULL);
	/* Both ends compute and check every CRC32c, as over a real network. */
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
	usrsctp_sysctl_set_sctp_blackhole(2);
	if (receiving)
		receive(argv[2]);
	else
		transmit(argv[2], argv[4], atoi(argv[5]), atof(argv[6]), strtoul(argv[7], NULL, 10));
	for (int i = 0; i < 50 && usrsctp_finish() != 0; i++)
		usleep(10000);
	return 0;
}
