/*
 * A peer of the interoperability tests, on usrsctp or, with -DKERNEL, on the kernel's SCTP. Both
 * have the sockets API of RFC 6458. It speaks as crates/polypath/examples/peer.rs does: commands on
 * stdin, what happens on stdout (see tests/interop/peers.py).
 *
 *   peer listen|connect LOCAL[,LOCAL] PORT REMOTE[,REMOTE]|- UDP|- REMOTE_UDP|- OPTION...
 *
 * UDP ports are those of RFC 6951 ("-": IP protocol 132); the kernel's are set by sysctl. Options:
 * "brisk" notices failures within a second, "mtu=BYTES" sets the path MTU
 * of usrsctp, which does not look for it, "reconfig" grants requests to reset and add streams, "auth" takes
 * DATA only authenticated and has a secret, "interleave" offers user message interleaving, "nrsack"
 * NR-SACK, which the kernel does not have, "adaptation=NUMBER" tells an Adaptation Layer Indication.
 *
 *   gcc peer.c -lusrsctp -lpthread        gcc -DKERNEL peer.c -lsctp -lpthread
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#ifdef KERNEL
#include <netinet/sctp.h>
#define OF_SCTP(name) sctp_##name
#define OF_SOCKET(name) name
typedef int handle;
#define IS_HANDLE(s) ((s) >= 0)
#else
#include <usrsctp.h>
#define OF_SCTP(name) usrsctp_##name
#define OF_SOCKET(name) usrsctp_##name
typedef struct socket *handle;
#define IS_HANDLE(s) ((s) != NULL)
/* The library has it, its header has not. */
#ifndef SCTP_INTERLEAVING_SUPPORTED
#define SCTP_INTERLEAVING_SUPPORTED 0x00001206
#endif
#endif

#include "tally.h"

enum { BUFFER = 4 << 20, STREAMS = 64, MOST_ADDRESSES = 4, MESSAGE = 2 << 20 };

/* Of one family, one behind the other, as sctp_bindx and sctp_connectx have them. */
static struct addresses {
	int count, family;
	socklen_t size;
	unsigned char list[MOST_ADDRESSES * sizeof(struct sockaddr_in6)];
} locals, remotes;

static handle association;
static struct tally received, sent;
static unsigned limited_received;
static int port, listens, brisk, mtu, reconfig, auth, interleave, nrsack;
static const char *adaptation;

static void die(const char *what)
{
	printf("failed %s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

/* One line of news; both threads have some. */
#define SAY(...) \
	do { \
		flockfile(stdout); \
		printf(__VA_ARGS__); \
		putchar('\n'); \
		fflush(stdout); \
		funlockfile(stdout); \
	} while (0)

static struct addresses parse(char *text, int port)
{
	struct addresses found = { .family = strchr(text, ':') ? AF_INET6 : AF_INET };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int six = found.family == AF_INET6;
	found.size = six ? sizeof in6 : sizeof in;
	for (char *ip = strtok(text, ","); ip && strcmp(ip, "-"); ip = strtok(NULL, ",")) {
		if (found.count == MOST_ADDRESSES
		    || inet_pton(found.family, ip, six ? (void *)&in6.sin6_addr : &in.sin_addr) != 1)
			die(ip);
		memcpy(found.list + found.count++ * found.size, six ? (void *)&in6 : &in, found.size);
	}
	return found;
}

static void option(handle s, int name, const void *value, socklen_t size, const char *what)
{
	if (OF_SOCKET(setsockopt)(s, IPPROTO_SCTP, name, value, size) < 0)
		die(what);
}

static handle open_socket(int remote_udp)
{
#ifdef KERNEL
	handle s = socket(locals.family, SOCK_STREAM, IPPROTO_SCTP);
#else
	handle s = usrsctp_socket(locals.family, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
#endif
	if (!IS_HANDLE(s))
		die("socket");
	int size = BUFFER, on = 1;
	OF_SOCKET(setsockopt)(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	OF_SOCKET(setsockopt)(s, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	option(s, SCTP_NODELAY, &on, sizeof on, "SCTP_NODELAY");
	struct sctp_initmsg init = { .sinit_num_ostreams = STREAMS, .sinit_max_instreams = 2048 };
	option(s, SCTP_INITMSG, &init, sizeof init, "SCTP_INITMSG");
	int types[] = { SCTP_ASSOC_CHANGE, SCTP_PEER_ADDR_CHANGE, SCTP_REMOTE_ERROR,
			SCTP_ADAPTATION_INDICATION };
	for (int i = 0; i < 4; i++) {
		struct sctp_event event = { .se_type = types[i], .se_on = 1 };
		option(s, SCTP_EVENT, &event, sizeof event, "SCTP_EVENT");
	}
	option(s, SCTP_RECVRCVINFO, &on, sizeof on, "SCTP_RECVRCVINFO");
	if (reconfig) {
		int changes[] = { SCTP_STREAM_RESET_EVENT, SCTP_ASSOC_RESET_EVENT, SCTP_STREAM_CHANGE_EVENT };
		for (int i = 0; i < 3; i++) {
			struct sctp_event event = { .se_type = changes[i], .se_on = 1 };
			option(s, SCTP_EVENT, &event, sizeof event, "SCTP_EVENT");
		}
		struct sctp_assoc_value all = { .assoc_value = SCTP_ENABLE_RESET_STREAM_REQ
					| SCTP_ENABLE_RESET_ASSOC_REQ | SCTP_ENABLE_CHANGE_ASSOC_REQ };
		option(s, SCTP_ENABLE_STREAM_RESET, &all, sizeof all, "SCTP_ENABLE_STREAM_RESET");
	}
	if (auth) {
		struct sctp_authchunk data = { .sauth_chunk = 0 };
		option(s, SCTP_AUTH_CHUNK, &data, sizeof data, "SCTP_AUTH_CHUNK");
		static const char secret[] = "interoperability";
		char room[sizeof(struct sctp_authkey) + sizeof secret] = { 0 };
		struct sctp_authkey *key = (struct sctp_authkey *)room;
		key->sca_keynumber = 7;
		key->sca_keylength = sizeof secret - 1;
		memcpy(key->sca_key, secret, sizeof secret - 1);
		option(s, SCTP_AUTH_KEY, key, sizeof *key + sizeof secret - 1, "SCTP_AUTH_KEY");
		struct sctp_authkeyid active = { .scact_keynumber = 7 };
		option(s, SCTP_AUTH_ACTIVE_KEY, &active, sizeof active, "SCTP_AUTH_ACTIVE_KEY");
	}
	if (adaptation) {
		struct sctp_setadaptation layer = { .ssb_adaptation_ind = strtoul(adaptation, NULL, 10) };
		option(s, SCTP_ADAPTATION_LAYER, &layer, sizeof layer, "SCTP_ADAPTATION_LAYER");
	}
	if (brisk) {
		struct sctp_rtoinfo rto = { .srto_initial = 400, .srto_min = 200, .srto_max = 1000 };
		option(s, SCTP_RTOINFO, &rto, sizeof rto, "SCTP_RTOINFO");
	}
	struct sctp_assoc_value yes = { .assoc_value = 1 };
	if (interleave) {
		int level = 2;
#ifdef KERNEL
		level = 1;
#endif
		option(s, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level, "SCTP_FRAGMENT_INTERLEAVE");
		option(s, SCTP_INTERLEAVING_SUPPORTED, &yes, sizeof yes, "SCTP_INTERLEAVING_SUPPORTED");
	}
	struct sctp_paddrparams path;
	memset(&path, 0, sizeof path);
	((struct sockaddr *)&path.spp_address)->sa_family = locals.family;
	if (brisk) {
		path.spp_flags |= SPP_HB_ENABLE;
		path.spp_hbinterval = 500;
		path.spp_pathmaxrxt = 1;
	}
	if (mtu) {
		path.spp_flags |= SPP_PMTUD_DISABLE;
		/* usrsctp counts without the headers of IP, UDP and SCTP. */
		path.spp_pathmtu = mtu - 40;
	}
	if (brisk || mtu)
		option(s, SCTP_PEER_ADDR_PARAMS, &path, sizeof path, "SCTP_PEER_ADDR_PARAMS");
#ifndef KERNEL
	if (remote_udp) {
		struct sctp_udpencaps udp;
		memset(&udp, 0, sizeof udp);
		udp.sue_address.ss_family = locals.family;
		udp.sue_port = htons(remote_udp);
		option(s, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp, "SCTP_REMOTE_UDP_ENCAPS_PORT");
	}
#else
	(void)remote_udp;
#endif
	if (OF_SCTP(bindx)(s, (struct sockaddr *)(void *)locals.list, locals.count, SCTP_BINDX_ADD_ADDR) < 0)
		die("bindx");
	return s;
}

static const char *state_name(int state)
{
	switch (state) {
	case SCTP_ACTIVE: return "active";
	case SCTP_INACTIVE: return "inactive";
	case SCTP_UNCONFIRMED: return "unconfirmed";
#ifdef KERNEL
	case SCTP_PF: return "potentially-failed";
#endif
	default: return "other";
	}
}

static const char *ip_of(const void *address, char text[INET6_ADDRSTRLEN])
{
	struct sockaddr_in6 any;
	memcpy(&any, address, locals.size);
	int six = any.sin6_family == AF_INET6;
	const void *ip = six ? (void *)&any.sin6_addr : &((struct sockaddr_in *)&any)->sin_addr;
	return inet_ntop(any.sin6_family, ip, text, INET6_ADDRSTRLEN);
}

/* One line for each path, and the last one. */
static void tell_paths(void)
{
	struct sockaddr *list;
	int count = OF_SCTP(getpaddrs)(association, 0, &list), known = 0;
	for (int i = 0; i < count; i++) {
		const unsigned char *address = (unsigned char *)list + i * locals.size;
		struct sctp_paddrinfo info;
		memset(&info, 0, sizeof info);
		memcpy(&info.spinfo_address, address, locals.size);
		socklen_t size = sizeof info;
		char text[INET6_ADDRSTRLEN];
		if (OF_SCTP(opt_info)(association, 0, SCTP_GET_PEER_ADDR_INFO, &info, &size) < 0) {
			/* The peer may have removed the address since it was listed. */
			if (errno != EINVAL)
				die("SCTP_GET_PEER_ADDR_INFO");
			continue;
		}
		known++;
		SAY("path address=%s state=%s cwnd=%u mtu=%u", ip_of(address, text),
		    state_name(info.spinfo_state), info.spinfo_cwnd, info.spinfo_mtu);
	}
	SAY("paths count=%d", known);
}

/* The words that stand in the ABORT, if it has a cause. */
static void tell_abort(const struct sctp_assoc_change *change, size_t size)
{
	const unsigned char *raw = (const unsigned char *)change;
	char words[128] = "";
	unsigned code = 0;
	/* The ABORT chunk: usrsctp tells all of it, the kernel what comes behind its header. */
	size_t at = sizeof *change;
#ifndef KERNEL
	at += 4;
#endif
	/* A cause: code, length, contents. */
	if (size >= at + 4) {
		code = raw[at] << 8 | raw[at + 1];
		size_t length = (raw[at + 2] << 8 | raw[at + 3]) - 4u;
		for (size_t i = 0; i < length && i + 1 < sizeof words && at + 4 + i < size; i++)
			words[i] = raw[at + 4 + i] >= ' ' && raw[at + 4 + i] < 127 ? raw[at + 4 + i] : '?';
	}
	SAY("end reason=lost error=%u cause=%u words=%s", change->sac_error, code, words);
	_exit(0);
}

/* Ends, and an association with it. The kernel would go on to end it in grace, for minutes if the other side has gone, and
 * the next program could not have its addresses. */
static void leave(void)
{
#ifdef KERNEL
	struct linger now = { .l_onoff = 1 };
	setsockopt(association, SOL_SOCKET, SO_LINGER, &now, sizeof now);
#endif
	_exit(0);
}

static void notified(const union sctp_notification *n, size_t size)
{
	char text[INET6_ADDRSTRLEN];
	if (n->sn_header.sn_type == SCTP_ASSOC_CHANGE) {
		const struct sctp_assoc_change *change = &n->sn_assoc_change;
		switch (change->sac_state) {
		case SCTP_COMM_UP:
			if (!listens)
				SAY("up");
			break;
		case SCTP_CANT_STR_ASSOC:
			SAY("end reason=refused");
			_exit(0);
		case SCTP_RESTART:
			SAY("restart");
			break;
		case SCTP_COMM_LOST:
			tell_abort(change, size);
			break;
		case SCTP_SHUTDOWN_COMP:
			SAY("end reason=graceful");
			_exit(0);
		}
	} else if (n->sn_header.sn_type == SCTP_PEER_ADDR_CHANGE) {
		const struct sctp_paddr_change *change = &n->sn_paddr_change;
		SAY("change address=%s to=%d", ip_of(&change->spc_aaddr, text), change->spc_state);
	} else if (n->sn_header.sn_type == SCTP_STREAM_RESET_EVENT) {
		const struct sctp_stream_reset_event *reset = (const void *)n;
		int flags = reset->strreset_flags;
		SAY("reset incoming=%d result=%s", (flags & SCTP_STREAM_RESET_INCOMING_SSN) != 0,
		    flags & (SCTP_STREAM_RESET_DENIED | SCTP_STREAM_RESET_FAILED) ? "failed" : "performed");
	} else if (n->sn_header.sn_type == SCTP_ASSOC_RESET_EVENT) {
		const struct sctp_assoc_reset_event *reset = (const void *)n;
		SAY("reset-association result=%s", reset->assocreset_flags ? "failed" : "performed");
	} else if (n->sn_header.sn_type == SCTP_STREAM_CHANGE_EVENT) {
		struct sctp_status status;
		memset(&status, 0, sizeof status);
		socklen_t length = sizeof status;
		if (OF_SCTP(opt_info)(association, 0, SCTP_STATUS, &status, &length) < 0)
			die("SCTP_STATUS");
		SAY("streams outgoing=%u incoming=%u", status.sstat_outstrms, status.sstat_instrms);
	} else if (n->sn_header.sn_type == SCTP_ADAPTATION_INDICATION) {
		SAY("adaptation indication=%u", n->sn_adaptation_event.sai_adaptation_ind);
	} else if (n->sn_header.sn_type == SCTP_REMOTE_ERROR) {
		SAY("error code=%u", ntohs(n->sn_remote_error.sre_error));
	}
}

static void come_together(int remote_udp)
{
	handle s = open_socket(remote_udp);
	if (listens) {
		if (OF_SOCKET(listen)(s, 4) < 0)
			die("listen");
		SAY("ready");
		association = OF_SOCKET(accept)(s, NULL, NULL);
		if (!IS_HANDLE(association))
			die("accept");
		SAY("up");
	} else {
		sctp_assoc_t id;
		association = s;
		if (OF_SCTP(connectx)(s, (struct sockaddr *)(void *)remotes.list, remotes.count, &id) < 0)
			die("connectx");
	}
}

static void *receive(void *remote_udp)
{
	static unsigned char buffer[MESSAGE];
	come_together(*(int *)remote_udp);
	size_t have = 0;
	for (;;) {
		struct sctp_rcvinfo info;
		memset(&info, 0, sizeof info);
		socklen_t size = sizeof info;
		unsigned type = 0;
		int flags = 0;
#ifdef KERNEL
		struct iovec iov = { buffer + have, sizeof buffer - have };
		struct sockaddr_in6 from;
		socklen_t from_size = sizeof from;
		ssize_t n = sctp_recvv(association, &iov, 1, (struct sockaddr *)&from, &from_size, &info,
				       &size, &type, &flags);
#else
		ssize_t n = usrsctp_recvv(association, buffer + have, sizeof buffer - have, NULL, NULL,
					  &info, &size, &type, &flags);
#endif
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			/* The notification has said more, where there was one. */
			SAY("end reason=%s errno=%d", n == 0 ? "closed" : "lost", n ? errno : 0);
			_exit(0);
		}
		if (flags & MSG_NOTIFICATION) {
			/* Never between the pieces of a message. */
			notified((union sctp_notification *)(buffer + have), n);
			continue;
		}
		have += n;
		if (have == sizeof buffer)
			die("a message is too long");
		if (flags & MSG_EOR) {
			uint32_t ppid = ntohl(info.rcv_ppid);
			if (!(ppid & TALLY_LIMITED))
				tally_add(&received, buffer, have, info.rcv_sid, ppid,
					  info.rcv_flags & SCTP_UNORDERED);
			else if (tally_whole(buffer, have, ppid))
				limited_received++;
			else
				die("a message that may be given up is broken");
			have = 0;
		}
	}
}

static int send_one(const void *data, size_t size, int stream, uint32_t ppid, int flags,
		    struct sctp_prinfo limit)
{
	struct sctp_sendv_spa info = {
		.sendv_flags = SCTP_SEND_SNDINFO_VALID | SCTP_SEND_PRINFO_VALID,
		.sendv_sndinfo = { .snd_sid = stream, .snd_ppid = htonl(ppid), .snd_flags = flags },
		.sendv_prinfo = limit,
	};
	for (;;) {
#ifdef KERNEL
		struct iovec iov = { (void *)data, size };
		ssize_t n = sctp_sendv(association, &iov, 1, NULL, 0, &info, sizeof info,
				       SCTP_SENDV_SPA, 0);
#else
		ssize_t n = usrsctp_sendv(association, data, size, NULL, 0, &info, sizeof info,
					  SCTP_SENDV_SPA, 0);
#endif
		if (n >= 0 || (errno != EINTR && errno != EAGAIN))
			return n;
		/* EAGAIN: its stream is being reset. */
		usleep(1000);
	}
}

/* lifetime=MS: not sent after so long; retransmissions=N: not sent again more often (RFC 6458 5.3.7). */
static struct sctp_prinfo limit_of(const char *word)
{
	struct sctp_prinfo limit = { .pr_policy = SCTP_PR_SCTP_NONE };
	if (sscanf(word, "lifetime=%u", &limit.pr_value) == 1)
		limit.pr_policy = SCTP_PR_SCTP_TTL;
	else if (sscanf(word, "retransmissions=%u", &limit.pr_value) == 1)
		limit.pr_policy = SCTP_PR_SCTP_RTX;
	return limit;
}

/* send COUNT SIZE STREAMS ordered|unordered|mixed [lifetime=MS|retransmissions=N|prompt] */
static void send_many(const char *words)
{
	static unsigned char message[MESSAGE];
	unsigned count, size, streams;
	char kind[16], more[32] = "";
	if (sscanf(words, "%u %u %u %15s %31s", &count, &size, &streams, kind, more) < 4 || size > MESSAGE)
		die(words);
	struct sctp_prinfo limit = limit_of(more);
	int limited = limit.pr_policy != SCTP_PR_SCTP_NONE;
	int prompt = strcmp(more, "prompt") == 0 ? SCTP_SACK_IMMEDIATELY : 0;
	for (unsigned i = 0; i < count; i++) {
		uint32_t number = limited ? i : sent.messages;
		int unordered = strcmp(kind, "unordered") == 0 || (strcmp(kind, "mixed") == 0 && i % 2);
		uint32_t ppid = tally_ppid(number, unordered) | (limited ? TALLY_LIMITED : 0);
		tally_fill(message, size, number);
		if (send_one(message, size, i % streams, ppid, prompt | (unordered ? SCTP_UNORDERED : 0),
			     limit) < 0)
			die("send");
		if (!limited)
			tally_add(&sent, message, size, i % streams, ppid, unordered);
	}
	SAY("taken");
}

static void tell_totals(const char *name, const struct tally *t)
{
	SAY("%s messages=%llu bytes=%llu ordered=%016llx unordered=%016llx", name,
	    (unsigned long long)t->messages, (unsigned long long)t->bytes,
	    (unsigned long long)tally_ordered(t), (unsigned long long)t->unordered);
}

/* Waits while another request is in progress, or something has not been acknowledged. */
static void patiently(int name, const void *value, socklen_t size, const char *what)
{
	for (int tries = 0; tries < 250; tries++) {
		if (OF_SOCKET(setsockopt)(association, IPPROTO_SCTP, name, value, size) == 0)
			return;
		if (errno != EAGAIN && errno != EALREADY && errno != EINPROGRESS && errno != EBUSY)
			break;
		usleep(20000);
	}
	die(what);
}

/* outgoing | incoming | association */
static void reset(const char *what)
{
	if (strcmp(what, "association") == 0) {
		sctp_assoc_t all = 0;
		patiently(SCTP_RESET_ASSOC, &all, sizeof all, "SCTP_RESET_ASSOC");
	} else {
		struct sctp_reset_streams all;
		memset(&all, 0, sizeof all);
		all.srs_flags = strcmp(what, "incoming") == 0 ? SCTP_STREAM_RESET_INCOMING
							      : SCTP_STREAM_RESET_OUTGOING;
		patiently(SCTP_RESET_STREAMS, &all, sizeof all, "SCTP_RESET_STREAMS");
	}
}

/* OUTGOING INCOMING */
static void add(const char *words)
{
	unsigned outgoing, incoming;
	if (sscanf(words, "%u %u", &outgoing, &incoming) != 2)
		die(words);
	struct sctp_add_streams more;
	memset(&more, 0, sizeof more);
	more.sas_outstrms = outgoing;
	more.sas_instrms = incoming;
	patiently(SCTP_ADD_STREAMS, &more, sizeof more, "SCTP_ADD_STREAMS");
}

/* bind | unbind an address of this host */
static void change_address(char *ip, int flags)
{
	struct addresses one = parse(ip, port);
	if (OF_SCTP(bindx)(association, (struct sockaddr *)one.list, one.count, flags) < 0)
		die("bindx");
}

static void obey(char *line)
{
	line[strcspn(line, "\r\n")] = 0;
	if (strncmp(line, "send ", 5) == 0) {
		send_many(line + 5);
	} else if (strncmp(line, "reset ", 6) == 0) {
		reset(line + 6);
	} else if (strncmp(line, "add ", 4) == 0) {
		add(line + 4);
	} else if (strncmp(line, "bind ", 5) == 0) {
		change_address(line + 5, SCTP_BINDX_ADD_ADDR);
	} else if (strncmp(line, "unbind ", 7) == 0) {
		change_address(line + 7, SCTP_BINDX_REM_ADDR);
	} else if (strcmp(line, "totals") == 0) {
		tell_totals("sent", &sent);
		tell_totals("received", &received);
	} else if (strcmp(line, "limited") == 0) {
		SAY("limited messages=%u", limited_received);
	} else if (strcmp(line, "paths") == 0) {
		tell_paths();
	} else if (strcmp(line, "shutdown") == 0) {
		if (OF_SOCKET(shutdown)(association, SHUT_WR) < 0)
			die("shutdown");
	} else if (strcmp(line, "abort") == 0) {
#ifdef KERNEL
		/* SCTP_ABORT is not for sockets of this style. */
		leave();
#else
		/* The message is the cause: User-Initiated Abort (RFC 9260 3.3.10.12). */
		struct sctp_prinfo none = limit_of("");
		if (send_one("enough of this", 14, 0, 0, SCTP_ABORT, none) < 0 && errno != ECONNRESET)
			die("abort");
#endif
	} else if (strcmp(line, "leave") == 0) {
		leave();
	} else {
		die(line);
	}
}

int main(int argc, char **argv)
{
	if (argc < 7)
		die("usage: peer listen|connect LOCALS PORT REMOTES UDP REMOTE_UDP OPTION...");
	port = atoi(argv[3]);
	listens = strcmp(argv[1], "listen") == 0;
	locals = parse(argv[2], port);
	remotes = parse(argv[4], port);
	for (int i = 7; i < argc; i++) {
		brisk |= strcmp(argv[i], "brisk") == 0;
		reconfig |= strcmp(argv[i], "reconfig") == 0;
		interleave |= strcmp(argv[i], "interleave") == 0;
		auth |= strcmp(argv[i], "auth") == 0;
		nrsack |= strcmp(argv[i], "nrsack") == 0;
		sscanf(argv[i], "mtu=%d", &mtu);
		if (strncmp(argv[i], "adaptation=", 11) == 0)
			adaptation = argv[i] + 11;
	}
#ifndef KERNEL
	usrsctp_init(atoi(argv[5]), NULL, NULL);
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
	usrsctp_sysctl_set_sctp_ecn_enable(1);
	usrsctp_sysctl_set_sctp_nrsack_enable(nrsack);
#endif
	int remote_udp = atoi(argv[6]);
	pthread_t thread;
	pthread_create(&thread, NULL, receive, &remote_udp);
	char line[256];
	while (fgets(line, sizeof line, stdin))
		obey(line);
	pthread_join(thread, NULL);
	return 0;
}
