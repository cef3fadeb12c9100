/* Statements about libpolypath that the programs run-*.c, compiled against it, do not make: its
 * settings, what it leaves alone, and the functions that they do not call. One line for each. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <polypath.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run-common.h"

static const int on = 1;

/* Whether a setting is refused with this errno, and a reason with these words. */
static int refused(const char *key, const char *value, int number, const char *words) {
    errno = 0;
    return polypath_configure(key, value) == -1 && errno == number && strstr(polypath_configure_error(), words);
}

static void settings(void) {
    check("configure: no reason before a failure", !*polypath_configure_error());
    check("configure: an unknown key", refused("prot", "1", EINVAL, "there is no setting \"prot\""));
    check("configure: a port", refused("port", "70000", EINVAL, "a port from 1 to 65535"));
    check("configure: an address", refused("bind", "localhost", EINVAL, "IP addresses"));
    check("configure: a profile", refused("profile", "fast", EINVAL, "rfc9260"));
    check("configure: a constant", refused("rto_min", "soon", EINVAL, "rto_min"));
    check("configure: bytes that are not UTF-8", refused("profile", "\xff", EINVAL, "UTF-8"));
    check("configure: NULL", refused(NULL, "1", EFAULT, "no key") && refused("port", NULL, EFAULT, "no value"));
    check("configure: a constant is set", polypath_configure("rto_min", "150ms") == 0);
    check("configure: the version", !strcmp(polypath_version(), POLYPATH_VERSION));
}

/* The signals with a handler, as bits. */
static uint64_t handlers(void) {
    uint64_t found = 0;
    for (int number = 1; number <= SIGRTMAX; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            found |= 1ull << (number - 1);
    }
    return found;
}

static rlim_t descriptors(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}

/* A pair of connected sockets; `listener` accepts. */
static void connected(int type, int *listener, int *client, int *server, int port) {
    struct sockaddr_in here = loopback(port);
    *listener = polypath_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    check("bindx", polypath_sctp_bindx(*listener, (struct sockaddr *)&here, 1, SCTP_BINDX_ADD_ADDR) == 0);
    check("listen", polypath_listen(*listener, 1) == 0);
    *client = polypath_socket(AF_INET, type, IPPROTO_SCTP);
    sctp_assoc_t id = 0;
    check("connectx", polypath_sctp_connectx(*client, (struct sockaddr *)&here, 1, &id) == 0);
    *server = polypath_accept4(*listener, NULL, NULL, SOCK_CLOEXEC);
    check("accept4", *server >= 0);
}

/* sctp_sendv, sctp_recvv, sctp_send and the rest of RFC 6458, section 9. */
static void section_9(int client, int server) {
    char buffer[64];
    struct iovec parts[2] = {{"mess", 4}, {"age", 3}}, room = {buffer, sizeof buffer};
    check("setsockopt", polypath_setsockopt(server, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) == 0);

    struct sctp_sendv_spa spa = {.sendv_flags = SCTP_SEND_SNDINFO_VALID | SCTP_SEND_PRINFO_VALID,
                                 .sendv_sndinfo = {.snd_sid = 3, .snd_ppid = htonl(39)},
                                 .sendv_prinfo = {.pr_policy = SCTP_PR_SCTP_TTL, .pr_value = 5000}};
    check("sctp_sendv: SPA", polypath_sctp_sendv(client, parts, 2, NULL, 0, &spa, sizeof spa, SCTP_SENDV_SPA, 0) == 7);
    struct sctp_rcvinfo received;
    struct sockaddr_in from;
    socklen_t from_size = sizeof from, size = sizeof received;
    unsigned type = 99;
    int flags = 0;
    check("sctp_recvv", polypath_sctp_recvv(server, &room, 1, (struct sockaddr *)&from, &from_size, &received, &size,
                                            &type, &flags) == 7 && !memcmp(buffer, "message", 7));
    check("sctp_recvv: information", type == SCTP_RECVV_RCVINFO && size == sizeof received && received.rcv_sid == 3 &&
                                         ntohl(received.rcv_ppid) == 39 && flags & MSG_EOR);
    check("sctp_recvv: address", from_size == sizeof from && from.sin_addr.s_addr == htonl(INADDR_LOOPBACK));

    struct sctp_sndinfo info = {.snd_sid = 2};
    check("sctp_sendv: SNDINFO",
          polypath_sctp_sendv(client, parts, 1, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) == 4);
    size = 3;
    check("sctp_recvv: no room for the information",
          polypath_sctp_recvv(server, &room, 1, NULL, NULL, &received, &size, &type, NULL) == 4 && size == 0 &&
              type == SCTP_RECVV_NOINFO);
    errno = 0;
    check("sctp_sendv: a short structure",
          polypath_sctp_sendv(client, parts, 1, NULL, 0, &info, 3, SCTP_SENDV_SNDINFO, 0) == -1 && errno == EINVAL);
    errno = 0;
    check("sctp_sendv: an unknown type",
          polypath_sctp_sendv(client, parts, 1, NULL, 0, &info, sizeof info, 77, 0) == -1 && errno == EINVAL);
    check("sctp_sendv: nothing but data", polypath_sctp_sendv(client, parts, 2, NULL, 0, NULL, 0, 0, 0) == 7);
    check("ioctl", wait_for(server, POLLIN) && polypath_ioctl(server, FIONREAD, &flags) == 0 && flags == 7);
    check("readv", polypath_readv(server, &room, 1) == 7);

    struct sctp_sndrcvinfo sndrcv = {.sinfo_stream = 1, .sinfo_ppid = 7};
    check("sctp_send", polypath_sctp_send(client, "abc", 3, &sndrcv, 0) == 3);
    struct sctp_event_subscribe events = {.sctp_data_io_event = 1};
    check("setsockopt: events", polypath_setsockopt(server, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events) == 0);
    memset(&sndrcv, 0, sizeof sndrcv);
    flags = 0;
    check("sctp_recvmsg", polypath_sctp_recvmsg(server, buffer, sizeof buffer, NULL, NULL, &sndrcv, &flags) == 3 &&
                              sndrcv.sinfo_stream == 1 && sndrcv.sinfo_ppid == 7 && flags & MSG_EOR);
    errno = 0;
    check("sctp_sendmsg: an unknown flag",
          polypath_sctp_sendmsg(client, "a", 1, NULL, 0, 0, 1u << 31, 0, 0, 0) == -1 && errno == EINVAL);

    struct sctp_status status;
    size = sizeof status;
    check("sctp_opt_info", polypath_sctp_opt_info(client, 0, SCTP_STATUS, &status, &size) == 0 &&
                               size == sizeof status && status.sstat_state == SCTP_ESTABLISHED);
    errno = 0;
    check("sctp_opt_info: NULL", polypath_sctp_opt_info(client, 0, SCTP_STATUS, NULL, &size) == -1 && errno == EINVAL);
    struct sockaddr *found = NULL;
    check("sctp_getladdrs", polypath_sctp_getladdrs(server, 0, &found) == 1 && found->sa_family == AF_INET &&
                                polypath_sctp_freeladdrs(found) == 0);
    check("sctp_getpaddrs", polypath_sctp_getpaddrs(client, 0, &found) == 1 && found->sa_family == AF_INET &&
                                polypath_sctp_freepaddrs(found) == 0);
    check("sctp_getaddrlen", polypath_sctp_getaddrlen(AF_INET) == sizeof(struct sockaddr_in) &&
                                 polypath_sctp_getaddrlen(AF_INET6) == sizeof(struct sockaddr_in6) &&
                                 polypath_sctp_getaddrlen(AF_UNIX) == -1);
    errno = 0;
    check("sctp_bindx: flags", polypath_sctp_bindx(client, found, 1, 7) == -1 && errno == EINVAL);
    errno = 0;
    check("sctp_connectx: no address", polypath_sctp_connectx(client, NULL, 1, NULL) == -1 && errno == EFAULT);
}

/* Several messages at once. */
static void several(int client, int server) {
    char buffers[3][8];
    struct iovec out[2] = {{"one", 3}, {"three", 5}}, in[3];
    struct mmsghdr messages[3];
    memset(messages, 0, sizeof messages);
    for (int at = 0; at < 2; at++) {
        messages[at].msg_hdr.msg_iov = &out[at];
        messages[at].msg_hdr.msg_iovlen = 1;
    }
    check("sendmmsg", polypath_sendmmsg(client, messages, 2, 0) == 2 && messages[1].msg_len == 5);
    int waiting = 0;
    for (int at = 0; at < 3; at++) {
        in[at].iov_base = buffers[at];
        in[at].iov_len = sizeof buffers[at];
        messages[at].msg_hdr.msg_iov = &in[at];
        messages[at].msg_hdr.msg_iovlen = 1;
    }
    while (waiting < 2) {
        int got = polypath_recvmmsg(server, messages + waiting, 3 - waiting, 0, NULL);
        if (got < 1)
            break;
        waiting += got;
    }
    check("recvmmsg", waiting == 2 && messages[0].msg_len == 3 && !memcmp(buffers[1], "three", 5));
}

/* The kernel's functions that wait for descriptors. */
static void waiting(int client, int server) {
    struct epoll_event event = {.events = EPOLLIN}, got = {.events = 0};
    int epoll = epoll_create1(0);
    check("epoll: registered", epoll_ctl(epoll, EPOLL_CTL_ADD, server, &event) == 0);
    check("epoll: nothing", epoll_wait(epoll, &got, 1, 0) == 0);
    check("send", polypath_send(client, "x", 1, 0) == 1);
    check("epoll: a message", epoll_wait(epoll, &got, 1, 20000) == 1 && got.events == EPOLLIN);
    fd_set readable;
    FD_ZERO(&readable);
    FD_SET(server, &readable);
    check("select: a message", select(server + 1, &readable, NULL, NULL, NULL) == 1);
    char byte;
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    check("recvfrom", polypath_recvfrom(server, &byte, 1, 0, (struct sockaddr *)&from, &size) == 1 && byte == 'x' &&
                          from.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    check("fcntl", polypath_fcntl(server, F_SETFL, O_NONBLOCK) == 0);
    errno = 0;
    check("recv: nothing", polypath_recv(server, &byte, 1, 0) == -1 && errno == EAGAIN);
    close(epoll);
}

/* Descriptors that are not SCTP sockets. */
static void others(void) {
    int ends[2];
    char buffer[8];
    check("others: socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    check("others: send", polypath_send(ends[0], "ab", 2, 0) == 2 && polypath_write(ends[0], "c", 1) == 1);
    check("others: recv", polypath_recv(ends[1], buffer, 2, 0) == 2 && polypath_read(ends[1], buffer, 8) == 1);
    int copy = polypath_dup(ends[0]);
    check("others: dup", copy >= 0 && polypath_dup2(ends[0], copy) == copy &&
                             polypath_dup3(ends[0], copy, O_CLOEXEC) == copy && polypath_close(copy) == 0);
    check("others: close", polypath_close(ends[0]) == 0 && polypath_close(ends[1]) == 0);
    errno = 0;
    check("others: closed", polypath_close(ends[1]) == -1 && errno == EBADF);
    int udp = polypath_socket(AF_INET, SOCK_DGRAM, 0);
    socklen_t size = sizeof(int);
    int protocol = 0;
    check("others: UDP", getsockopt(udp, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == IPPROTO_UDP);
    polypath_close(udp);
}

/* One-to-many sockets: an association becomes a socket of its own. */
static void peeled(int listener, int port) {
    struct sockaddr_in here = loopback(port);
    int many = polypath_socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    sctp_assoc_t id = 0;
    check("sctp_connectx: an id", polypath_sctp_connectx(many, (struct sockaddr *)&here, 1, &id) == 0 && id != 0);
    int server = polypath_accept(listener, NULL, NULL);
    int own = polypath_sctp_peeloff_flags(many, id, SOCK_NONBLOCK);
    check("sctp_peeloff_flags", own >= 0 && polypath_fcntl(own, F_GETFL) & O_NONBLOCK);
    check("sctp_peeloff_flags: sends", polypath_send(own, "x", 1, 0) == 1 && wait_for(server, POLLIN) & POLLIN);
    errno = 0;
    check("sctp_peeloff: no more", polypath_sctp_peeloff(many, id) == -1 && errno == EINVAL);
    check("close", polypath_close(many) == 0 && polypath_close(own) == 0 && polypath_close(server) == 0);
}

/* A child of fork has an engine of its own, and ends when the peer has its messages. */
static void exits(int listener, int port) {
    enum { MESSAGES = 100, SIZE = 1000 };
    static char message[SIZE];
    if (fork() == 0) {
        struct sockaddr_in here = loopback(port);
        int fd = polypath_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
        if (polypath_connect(fd, (struct sockaddr *)&here, sizeof here) != 0)
            _exit(1);
        for (int number = 0; number < MESSAGES; number++)
            if (polypath_send(fd, message, SIZE, 0) != SIZE)
                _exit(2);
        polypath__exit(3);
    }
    int server = polypath_accept(listener, NULL, NULL), received = 0, status = -1;
    while (polypath_recv(server, message, SIZE, 0) == SIZE)
        received++;
    check("_exit: the peer receives everything", received == MESSAGES);
    check("_exit: the status", wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    check("close", polypath_close(server) == 0);
}

/* A child of fork that lives on does not keep the ports of its parent in use. */
static void forked(int port) {
    struct sockaddr_in here = loopback(port);
    int lives[2], listener[2];
    check("fork: a pipe", pipe(lives) == 0);
    for (int at = 0; at < 2; at++) {
        listener[at] = polypath_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
        check("fork: bind", polypath_bind(listener[at], (struct sockaddr *)&here, sizeof here) == 0);
        check("fork: listen", polypath_listen(listener[at], 1) == 0);
        if (at == 0 && fork() == 0) {
            char byte;
            close(lives[1]);
            _exit(polypath_close(listener[0]) == 0 && read(lives[0], &byte, 1) == 0 ? 0 : 1);
        }
        check("fork: close", polypath_close(listener[at]) == 0);
    }
    int status = -1;
    close(lives[1]);
    check("fork: the child", wait(&status) > 0 && status == 0);
    close(lives[0]);
}

int main(void) {
    uint64_t before = handlers();
    rlim_t limit = descriptors();
    settings();
    others();
    int listener, client, server, port = 7000;
    connected(SOCK_STREAM, &listener, &client, &server, port);
    check("configure: too late", refused("port", "9000", EBUSY, "opened an SCTP socket already"));
    section_9(client, server);
    several(client, server);
    waiting(client, server);
    peeled(listener, port);
    exits(listener, port);
    check("handlers of signals", handlers() == before);
    check("limit of descriptors", descriptors() == limit);
    check("close", polypath_close(client) == 0 && polypath_close(server) == 0 && polypath_close(listener) == 0);
    forked(port);
    return failures != 0;
}
