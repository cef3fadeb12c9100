/* What the kernel does with a descriptor of an SCTP socket outside of the calls of RFC 6458: ioctl, SOL_SOCKET
 * options, fcntl, files, pipes and other processes. Prints what it finds, to be compared with Linux's SCTP. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "run-common.h"

static int listener, client, peer;
static char buffer[4096], text[8][200];
static unsigned next;

static void connected(void) {
    struct sockaddr_in server = loopback(5000);
    client = socket_with_limit(AF_INET, SOCK_STREAM);
    if (connect(client, (struct sockaddr *)&server, sizeof server) != 0)
        exit(2);
    peer = accept(listener, NULL, NULL);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

static void over(void) {
    struct linger linger = {.l_onoff = 1};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(client);
    close(peer);
}

/* The next message of a socket, or why there is none. */
static const char *received(int fd) {
    int size = recv(fd, buffer, sizeof buffer - 1, 0);
    if (size < 0)
        return result(size);
    char *to = text[next++ % 8];
    snprintf(to, sizeof text[0], "%.*s", size, buffer);
    return to;
}

static const char *asks(int fd, unsigned long request) {
    int value = 77, got = ioctl(fd, request, &value);
    char *to = text[next++ % 8];
    snprintf(to, sizeof text[0], "%s %d", result(got), value);
    return to;
}

static void requests(void) {
    connected();
    send(client, "first", 5, 0);
    send(client, "second message", 14, 0);
    wait_for(peer, POLLIN);
    usleep(100000);
    found("FIONREAD: SIOCINQ, of the next message", "%s", asks(peer, SIOCINQ));
    recv(peer, buffer, 2, 0);
    found("FIONREAD: SIOCINQ, after a part of it", "%s", asks(peer, SIOCINQ));
    found("SIOCOUTQ: of a connected socket", "%s", asks(client, SIOCOUTQ));
    found("SIOCOUTQ: SIOCOUTQNSD of a connected socket", "%s", asks(client, SIOCOUTQNSD));
    found("SIOCATMARK: of a connected socket", "%s", asks(peer, SIOCATMARK));
    found("SIOCATMARK: sockatmark", "%s", result(sockatmark(peer)));
    int value = 1;
    found("ioctl: FIONBIO on", "%s", result(ioctl(peer, FIONBIO, &value)));
    found("ioctl: FIONBIO has set O_NONBLOCK", "%d", !!(fcntl(peer, F_GETFL) & O_NONBLOCK));
    value = 0;
    ioctl(peer, FIONBIO, &value);
    found("ioctl: FIONBIO off", "%d", !!(fcntl(peer, F_GETFL) & O_NONBLOCK));
    found("ioctl: FIOCLEX", "%s", result(ioctl(peer, FIOCLEX)));
    found("ioctl: FIOCLEX has set FD_CLOEXEC", "%d", fcntl(peer, F_GETFD));
    ioctl(peer, FIONCLEX);
    found("ioctl: one that does not exist", "%s", result(ioctl(peer, 0x5499, &value)));
    found("ioctl: of a terminal", "%s", result(ioctl(peer, TIOCGWINSZ, buffer)));
    found("fstat: isatty of a socket", "%s", result(isatty(peer) ? 1 : -1));
    struct stat about = {0};
    int known = fstat(peer, &about);
    found("fstat: of a socket", "%s %d", result(known), S_ISSOCK(about.st_mode));
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", peer);
    int size = readlink(path, buffer, sizeof buffer - 1);
    found("fstat: readlink of its entry in /proc", "%.*s", size < 8 ? 0 : 8, buffer);
    found("fstat: open of its entry in /proc", "%s", result(open(path, O_RDWR)));
    found("pread: lseek of a socket", "%s", result(lseek(peer, 0, SEEK_CUR)));
    found("pread: of a socket", "%s", result(pread(peer, buffer, 5, 0)));
    found("pread: pwrite of a socket", "%s", result(pwrite(peer, buffer, 5, 0)));
    struct iovec part = {buffer, 5};
    found("pread: preadv of a socket", "%s", result(preadv(peer, &part, 1, 0)));
    found("pread: pwritev of a socket", "%s", result(pwritev(client, &part, 1, 0)));
    found("fstat: ftruncate of a socket", "%s", result(ftruncate(peer, 0)));
    found("fstat: fsync of a socket", "%s", result(fsync(peer)));
    found("fstat: fallocate of a socket", "%s", result(fallocate(peer, 0, 0, 1)));
    found("fstat: mmap of a socket", "%s", result(mmap(NULL, 4096, PROT_READ, MAP_SHARED, peer, 0) == MAP_FAILED ? -1 : 0));
    found("recv: what is left of the first message", "%s", received(peer));
    found("recv: the second message", "%s", received(peer));
    part.iov_base = "through preadv2";
    part.iov_len = 15;
    found("preadv2: pwritev2 without a position", "%s", result(pwritev2(client, &part, 1, -1, 0)));
    wait_for(peer, POLLIN);
    part.iov_base = buffer;
    part.iov_len = sizeof buffer;
    found("preadv2: without a position", "%s", result(preadv2(peer, &part, 1, -1, 0)));
    found("preadv2: pwritev2 with a position", "%s", result(pwritev2(client, &part, 1, 5, 0)));
    found("preadv2: RWF_NOWAIT without a message", "%s", result(preadv2(peer, &part, 1, -1, RWF_NOWAIT)));
    over();
}

static volatile sig_atomic_t signals;

static void on_io(int number) { signals += number == SIGIO; }

static void files(void) {
    connected();
    int file = memfd_create("file", 0), ends[2];
    if (write(file, "from a file", 11) != 11 || pipe(ends) != 0)
        exit(2);
    off_t at = 0;
    found("sendfile: from a file", "%s", result(sendfile(client, file, &at, 11)));
    found("recv: what sendfile has sent", "%s", wait_for(peer, POLLIN) ? received(peer) : "nothing");
    at = 0;
    found("sendfile: from a socket", "%s", result(sendfile(file, peer, NULL, 5)));
    if (write(ends[1], "from a pipe", 11) != 11)
        exit(2);
    found("splice: from a pipe", "%s", result(splice(ends[0], NULL, client, NULL, 11, 0)));
    struct pollfd one = {.fd = peer, .events = POLLIN};
    found("recv: what splice has sent", "%s", poll(&one, 1, 1000) == 1 ? received(peer) : "nothing");
    send(client, "to a pipe", 9, 0);
    wait_for(peer, POLLIN);
    found("splice: to a pipe", "%s", result(splice(peer, NULL, ends[1], NULL, 100, SPLICE_F_NONBLOCK)));
    found("splice: copy_file_range to a socket", "%s", result(copy_file_range(file, &(off_t){0}, client, NULL, 5, 0)));
    found("splice: tee of a socket", "%s", result(tee(peer, ends[1], 5, 0)));
    struct iovec part = {buffer, 5};
    found("splice: vmsplice of a socket", "%s", result(vmsplice(client, &part, 1, 0)));
    close(file);
    close(ends[0]);
    close(ends[1]);
    over();

    connected();
    signal(SIGIO, on_io);
    found("SIGIO: F_SETOWN, this process", "%s", result(fcntl(peer, F_SETOWN, getpid())));
    found("SIGIO: F_GETOWN, this process", "%d", fcntl(peer, F_GETOWN) == getpid());
    found("SIGIO: O_ASYNC on", "%s", result(fcntl(peer, F_SETFL, O_ASYNC)));
    send(client, "signal", 6, 0);
    wait_for(peer, POLLIN);
    for (int i = 0; i < 100 && signals == 0; i++)
        usleep(10000);
    found("SIGIO: when a message arrives", "%d", signals > 0);
    over();
}

#define OPTION(name) {#name, name}

/* Those whose value is that of every socket, or of none of SCTP. */
static const struct {
    const char *name;
    int number;
} options[] = {
    OPTION(SO_DEBUG), OPTION(SO_DONTROUTE), OPTION(SO_BROADCAST), OPTION(SO_KEEPALIVE), OPTION(SO_OOBINLINE),
    OPTION(SO_PRIORITY), OPTION(SO_REUSEPORT), OPTION(SO_PASSCRED), OPTION(SO_RCVLOWAT), OPTION(SO_SNDLOWAT),
    OPTION(SO_TIMESTAMP), OPTION(SO_TIMESTAMPNS), OPTION(SO_MARK), OPTION(SO_RXQ_OVFL), OPTION(SO_PEEK_OFF),
    OPTION(SO_NOFCS), OPTION(SO_BUSY_POLL), OPTION(SO_ZEROCOPY), OPTION(SO_NO_CHECK), OPTION(SO_PEERCRED),
    OPTION(SO_PEERSEC), OPTION(SO_ACCEPTCONN), OPTION(SO_TYPE), OPTION(SO_DOMAIN), OPTION(SO_PROTOCOL),
    OPTION(SO_ERROR), OPTION(SO_BSDCOMPAT), OPTION(SO_PASSSEC), OPTION(SO_INCOMING_NAPI_ID), OPTION(SO_TXTIME),
    OPTION(SO_SNDBUF), OPTION(SO_RCVBUF), OPTION(SO_REUSEADDR), OPTION(SO_PEERGROUPS), OPTION(SO_LOCK_FILTER),
};

static void socket_options(void) {
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    for (unsigned i = 0; i < sizeof options / sizeof *options; i++) {
        char what[80];
        int number = options[i].number, value = 0x55555555;
        socklen_t size = sizeof value;
        memset(buffer, 0, sizeof buffer);
        int got = getsockopt(fd, SOL_SOCKET, number, &value, &size);
        snprintf(what, sizeof what, "getsockopt: %s at first", options[i].name);
        found(what, "%s %d, %d bytes", result(got), value, (int)size);
        value = 1;
        got = setsockopt(fd, SOL_SOCKET, number, &value, sizeof value);
        snprintf(what, sizeof what, "setsockopt: %s to 1", options[i].name);
        found(what, "%s", result(got));
        value = 0x55555555;
        size = sizeof value;
        got = getsockopt(fd, SOL_SOCKET, number, &value, &size);
        snprintf(what, sizeof what, "getsockopt: %s after that", options[i].name);
        found(what, "%s %d, %d bytes", result(got), value, (int)size);
        size = 2;
        got = getsockopt(fd, SOL_SOCKET, number, &value, &size);
        snprintf(what, sizeof what, "getsockopt: %s into 2 bytes", options[i].name);
        found(what, "%s, %d bytes", result(got), (int)size);
        got = setsockopt(fd, SOL_SOCKET, number, &value, 2);
        snprintf(what, sizeof what, "setsockopt: %s with 2 bytes", options[i].name);
        found(what, "%s", result(got));
    }
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct timeval limit = {.tv_sec = 3, .tv_usec = 240000}, got;
    socklen_t size = sizeof got;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &got, &size);
    found("SO_RCVTIMEO: read again", "%ld.%06ld, %d bytes", (long)got.tv_sec, (long)got.tv_usec, (int)size);
    limit.tv_usec = 1000000;
    found("SO_RCVTIMEO: a million microseconds", "%s", result(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit)));
    limit = (struct timeval){.tv_sec = -1};
    found("SO_SNDTIMEO: a negative time", "%s", result(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit)));
    found("SO_SNDTIMEO: with 8 bytes", "%s", result(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, 8)));
    struct linger linger = {.l_onoff = 1, .l_linger = 7};
    found("SO_LINGER: with 4 bytes", "%s", result(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, 4)));
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    linger = (struct linger){0};
    size = sizeof linger;
    getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &size);
    found("SO_LINGER: read again", "%d %d, %d bytes", linger.l_onoff, linger.l_linger, (int)size);
    found("SO_BINDTODEVICE: no device", "%s", result(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "", 1)));
    found("SO_BINDTODEVICE: one that does not exist", "%s",
          result(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "none7", 6)));
    close(fd);
}

static void waiting(void) {
    connected();
    struct timeval short_time = {.tv_usec = 100000};
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &short_time, sizeof short_time);
    double begin = now();
    int got = accept(listener, NULL, NULL);
    found("SO_RCVTIMEO: of accept", "%s, %d", result(got), now() - begin > 0.08);
    short_time.tv_usec = 0;
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &short_time, sizeof short_time);

    /* Only the messages that are there. */
    struct mmsghdr messages[3];
    struct iovec parts[3];
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < 3; i++) {
        parts[i] = (struct iovec){buffer + 100 * i, 100};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    send(client, "one", 3, 0);
    send(client, "three", 5, 0);
    usleep(200000);
    got = recvmmsg(peer, messages, 3, MSG_WAITFORONE, NULL);
    found("recvmmsg: MSG_WAITFORONE", "%s, %u %u", result(got), messages[0].msg_len, messages[1].msg_len);
    found("recvmmsg: MSG_DONTWAIT without messages", "%s", result(recvmmsg(peer, messages, 3, MSG_DONTWAIT, NULL)));
    parts[1].iov_len = 0;
    found("sendmmsg: the second is empty", "%s", result(sendmmsg(client, messages, 3, 0)));
    found("recvmmsg: what was sent", "%s", result(recvmmsg(peer, messages, 3, MSG_WAITFORONE, NULL)));
    over();

    /* SO_LINGER with time. */
    connected();
    struct linger linger = {.l_onoff = 1, .l_linger = 5};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    send(client, "last", 4, 0);
    begin = now();
    found("SO_LINGER: close with 5 seconds", "%s, %s", result(close(client)), now() - begin < 2 ? "soon" : "late");
    found("recv: after that", "%s", received(peer));
    found("recv: the end after that", "%s", result(recv(peer, buffer, 10, 0)));
    close(peer);

    /* The peer does not read, so its window is full. */
    int small = 3000;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    connected();
    linger.l_linger = 1;
    setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    fcntl(client, F_SETFL, O_NONBLOCK);
    while (send(client, buffer, 1000, 0) == 1000)
        usleep(100);
    fcntl(client, F_SETFL, 0);
    begin = now();
    got = close(client);
    double took = now() - begin;
    found("SO_LINGER: close with 1 second and a full window", "%s, %s", result(got),
          took < 0.9 ? "early" : took > 10 ? "late" : "in time");
    struct linger zero = {.l_onoff = 1};
    setsockopt(peer, SOL_SOCKET, SO_LINGER, &zero, sizeof zero);
    close(peer);
}

int main(void) {
    alarm(80);
    struct sockaddr_in name = loopback(5000);
    listener = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    if (bind(listener, (struct sockaddr *)&name, sizeof name) != 0 || listen(listener, 5) != 0)
        return 2;
    requests();
    files();
    socket_options();
    waiting();
    return failures != 0;
}
