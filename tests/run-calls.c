/* Calls other than those that move messages: sockets, names, listen and accept, connect, shutdown, and what
 * poll and epoll report in each state. Prints what it finds, to be compared with Linux's SCTP. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "run-common.h"

#define ADD 1 /* SCTP_BINDX_ADD_ADDR */
#define REMOVE 2

static struct sockaddr_in at(const char *ip, int port) {
    struct sockaddr_in it = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, ip, &it.sin_addr);
    return it;
}

/* Sockets that give up after 20 seconds. */
static int opened(int style) {
    int fd = socket(AF_INET, style, IPPROTO_SCTP);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

static int one(void) { return opened(SOCK_STREAM); }
static int many(void) { return opened(SOCK_SEQPACKET); }

static int binds(int fd, const char *ip, int port) {
    struct sockaddr_in name = at(ip, port);
    return bind(fd, (struct sockaddr *)&name, sizeof name);
}

static int connects(int fd, const char *ip, int port) {
    struct sockaddr_in name = at(ip, port);
    return connect(fd, (struct sockaddr *)&name, sizeof name);
}

static int listener;

static int connected(int *accepted) {
    int client = one();
    if (connects(client, "127.0.0.1", 5000) != 0)
        exit(2);
    *accepted = accept(listener, NULL, NULL);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(*accepted, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return client;
}

static void aborts(int fd) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

static char text[8][128];
static unsigned next;

/* The address and port of a name, with "port" for any that is not 0 or 5000 to 5009. */
static const char *shown(const struct sockaddr *address, socklen_t size) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)address;
    char *to = text[next++ % 8], ip[64] = "?";
    int port = ntohs(in->sin_port);
    inet_ntop(AF_INET, &in->sin_addr, ip, sizeof ip);
    int known = port == 0 || (port >= 5000 && port < 5010);
    snprintf(to, sizeof text[0], "family %d, %s, %s, %d bytes", in->sin_family, ip, known ? "" : "port", (int)size);
    if (known)
        snprintf(to, sizeof text[0], "family %d, %s, %d, %d bytes", in->sin_family, ip, port, (int)size);
    return to;
}

static const char *name_of(int fd, int (*function)(int, struct sockaddr *, socklen_t *), socklen_t room) {
    struct sockaddr_storage name = {0};
    if (function(fd, (struct sockaddr *)&name, &room) != 0)
        return result(-1);
    return shown((struct sockaddr *)&name, room);
}

static const char *own(int fd) { return name_of(fd, (void *)getsockname, sizeof(struct sockaddr_in)); }
static const char *peers(int fd) { return name_of(fd, (void *)getpeername, sizeof(struct sockaddr_in)); }

static const char *flags(unsigned found) {
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {{POLLIN, "IN"}, {POLLPRI, "PRI"}, {POLLOUT, "OUT"}, {POLLRDHUP, "RDHUP"},
                 {POLLERR, "ERR"}, {POLLHUP, "HUP"}, {POLLNVAL, "NVAL"}};
    char *to = text[next++ % 8];
    *to = 0;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (found & names[i].bit)
            strcat(strcat(to, *to ? " " : ""), names[i].name);
    return *to ? to : "nothing";
}

/* What poll reports now. */
static const char *ready(int fd) {
    struct pollfd it = {.fd = fd, .events = POLLIN | POLLPRI | POLLOUT | POLLRDHUP};
    poll(&it, 1, 0);
    return flags(it.revents);
}

/* The same once poll reports any of these events. */
static const char *ready_for(int fd, int events) {
    wait_for(fd, events);
    return ready(fd);
}

/* Waits until a socket has no association any more, and then for what is left to do. */
static void over(int fd) {
    struct sctp_status status;
    for (int i = 0; i < 4000; i++) {
        socklen_t size = sizeof status;
        memset(&status, 0, sizeof status);
        if (getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &status, &size) != 0)
            break;
        usleep(5000);
    }
    usleep(50000);
}

static const char *error_of(int fd) {
    int error = -1;
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0 ? "0" : strerrorname_np(error);
}

static const char *receives(int fd, int how) {
    char buffer[64];
    return result(recv(fd, buffer, sizeof buffer, how));
}

static const char *sends(int fd) { return result(send(fd, "x", 1, MSG_NOSIGNAL)); }

static void sockets(void) {
    found("socket: SOCK_DGRAM", "%s", result(socket(AF_INET, SOCK_DGRAM, IPPROTO_SCTP)));
    found("socket: flags that do not exist", "%s", result(socket(AF_INET, SOCK_STREAM | 0x100, IPPROTO_SCTP)));
    found("socket: of AF_UNIX", "%s", result(socket(AF_UNIX, SOCK_STREAM, IPPROTO_SCTP)));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_SCTP);
    found("socket: SOCK_NONBLOCK and SOCK_CLOEXEC", "%d %d", fcntl(fd, F_GETFD), fcntl(fd, F_GETFL));
    close(fd);
    char byte = 0;
    int value = 0;
    socklen_t size = sizeof value;
    found("bind: of a closed descriptor", "%s", result(binds(fd, "127.0.0.1", 0)));
    found("listen: of a closed descriptor", "%s", result(listen(fd, 1)));
    found("accept: of a closed descriptor", "%s", result(accept(fd, NULL, NULL)));
    found("connect: of a closed descriptor", "%s", result(connects(fd, "127.0.0.1", 5000)));
    found("send: of a closed descriptor", "%s", result(send(fd, &byte, 1, 0)));
    found("recv: of a closed descriptor", "%s", result(recv(fd, &byte, 1, 0)));
    found("shutdown: of a closed descriptor", "%s", result(shutdown(fd, SHUT_WR)));
    found("getsockopt: of a closed descriptor", "%s",
          result(getsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &value, &size)));
    found("setsockopt: of a closed descriptor", "%s",
          result(setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &value, size)));
    found("sctp_peeloff: of a closed descriptor", "%s", result(sctp_peeloff(fd, 3)));

    fd = one();
    found("setsockopt: TCP_NODELAY", "%s", result(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, size)));
    found("getsockopt: TCP_NODELAY", "%s", result(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &size)));
    found("setsockopt: a level that does not exist", "%s", result(setsockopt(fd, 200, 1, &value, size)));
    found("setsockopt: IP_TOS", "%s", result(setsockopt(fd, IPPROTO_IP, IP_TOS, &value, sizeof value)));
    static const struct {
        const char *name;
        int number;
    } generic[] = {{"SO_DOMAIN", SO_DOMAIN}, {"SO_ACCEPTCONN", SO_ACCEPTCONN}, {"SO_REUSEADDR", SO_REUSEADDR},
                   {"SO_KEEPALIVE", SO_KEEPALIVE}, {"SO_SNDBUF", SO_SNDBUF}, {"SO_RCVBUF", SO_RCVBUF},
                   {"SO_BROADCAST", SO_BROADCAST}};
    for (unsigned i = 0; i < sizeof generic / sizeof *generic; i++) {
        char statement[64];
        size = sizeof value;
        int got = getsockopt(fd, SOL_SOCKET, generic[i].number, &value, &size);
        snprintf(statement, sizeof statement, "%s: default", generic[i].name);
        found(statement, "%s %d", result(got), value);
    }
    value = 50000;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, sizeof value);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof value);
    getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, &size);
    found("SO_SNDBUF: 50000 once set", "%d", value);
    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, &size);
    found("SO_RCVBUF: 50000 once set", "%d", value);
    found("setsockopt: SO_LINGER with 4 bytes", "%s", result(setsockopt(fd, SOL_SOCKET, SO_LINGER, &value, 4)));
    found("setsockopt: SO_REUSEADDR with 2 bytes", "%s", result(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, 2)));
    struct linger linger = {.l_onoff = 1, .l_linger = 3}, got = {0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    size = sizeof got;
    getsockopt(fd, SOL_SOCKET, SO_LINGER, &got, &size);
    found("SO_LINGER: is returned as set", "%d %d %d", got.l_onoff, got.l_linger, (int)size);
    close(fd);
}

static void names(void) {
    int fd = one(), other = one();
    struct sockaddr_in local = at("127.0.0.1", 5001);
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    found("getsockname: before bind", "%s", own(fd));
    found("bind: an address that is too short", "%s", result(bind(fd, (struct sockaddr *)&local, 7)));
    found("bind: an IPv6 address on an IPv4 socket", "%s", result(bind(fd, (struct sockaddr *)&six, sizeof six)));
    struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = "/nowhere"};
    struct sockaddr_in unspecified = {.sin_family = AF_UNSPEC};
    found("bind: an AF_UNIX address", "%s", result(bind(fd, (struct sockaddr *)&path, sizeof path)));
    found("bind: an AF_UNIX address of 4 bytes", "%s", result(bind(fd, (struct sockaddr *)&path, 4)));
    found("connect: an AF_UNIX address", "%s", result(connect(fd, (struct sockaddr *)&path, sizeof path)));
    found("bind: AF_UNSPEC and the wildcard address", "%s",
          result(bind(other, (struct sockaddr *)&unspecified, sizeof unspecified)));
    close(other);
    other = one();
    found("bind: one byte", "%s", result(bind(fd, (struct sockaddr *)&local, 1)));
    found("sctp_bindx: an AF_UNIX address", "%s", result(sctp_bindx(fd, (struct sockaddr *)&path, 1, ADD)));
    found("sctp_connectx: an AF_UNIX address", "%s", result(sctp_connectx(fd, (struct sockaddr *)&path, 1, NULL)));
    found("shutdown: a direction that does not exist", "%s", result(shutdown(fd, 7)));
    found("bind: a multicast address", "%s", result(binds(fd, "224.0.0.5", 5001)));
    found("bind: the broadcast address", "%s", result(binds(fd, "255.255.255.255", 5001)));
    found("bind: an address", "%s", result(binds(fd, "127.0.0.1", 5001)));
    found("getsockname: after bind", "%s", own(fd));
    found("getsockname: with room for 8 bytes", "%s", name_of(fd, (void *)getsockname, 8));
    found("getpeername: after bind", "%s", peers(fd));
    found("bind: an address and port in use", "%s", result(binds(other, "127.0.0.1", 5001)));
    int reuse = 1;
    setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
    found("SO_REUSEADDR: of one socket of two", "%s", result(binds(other, "127.0.0.1", 5001)));
    found("bind: another address and the same port", "%s", result(binds(other, "127.0.0.2", 5001)));
    close(fd);
    close(other);
    fd = one();
    found("bind: the wildcard address", "%s", result(binds(fd, "0.0.0.0", 0)));
    found("getsockname: of the wildcard address", "%s", own(fd));
    struct sockaddr *list = NULL;
    int count = sctp_getladdrs(fd, 0, &list), any = 0, loop = 0;
    struct sockaddr_in *in = (struct sockaddr_in *)list;
    for (int i = 0; i < count; i++) {
        any |= in[i].sin_addr.s_addr == INADDR_ANY;
        loop |= in[i].sin_addr.s_addr == htonl(INADDR_LOOPBACK);
    }
    found("sctp_getladdrs: of the wildcard address", "wildcard %d, loopback %d", any, loop);
    if (count > 0)
        sctp_freeladdrs(list);
    close(fd);
    fd = one();
    count = sctp_getladdrs(fd, 0, &list);
    found("sctp_getladdrs: before bind", "%s", result(count));
    if (count > 0)
        sctp_freeladdrs(list);
    found("sctp_getpaddrs: before connect", "%s", result(sctp_getpaddrs(fd, 0, &list)));
    close(fd);
}

static void several_names(void) {
    int fd = one();
    struct sockaddr_in two[2] = {at("127.0.0.1", 5001), at("127.0.0.2", 5002)}, far = at("192.0.2.1", 5001);
    struct sockaddr *all = (struct sockaddr *)two;
    found("sctp_bindx: no address", "%s", result(sctp_bindx(fd, all, 0, ADD)));
    found("sctp_bindx: flags that do not exist", "%s", result(sctp_bindx(fd, all, 1, 7)));
    found("sctp_bindx: different ports", "%s", result(sctp_bindx(fd, all, 2, ADD)));
    close(fd);
    fd = one();
    two[1] = at("127.0.0.2", 5001);
    found("sctp_bindx: removal before bind", "%s", result(sctp_bindx(fd, all, 1, REMOVE)));
    found("sctp_bindx: two addresses", "%s", result(sctp_bindx(fd, all, 2, ADD)));
    struct sockaddr *list = NULL;
    int count = sctp_getladdrs(fd, 0, &list);
    found("sctp_getladdrs: of two addresses", "%s, first %s", result(count), shown(list, sizeof *two));
    sctp_freeladdrs(list);
    found("sctp_bindx: an address again", "%s", result(sctp_bindx(fd, all, 1, ADD)));
    found("sctp_bindx: another host's address", "%s", result(sctp_bindx(fd, (struct sockaddr *)&far, 1, ADD)));
    struct sockaddr_in third = at("127.0.0.3", 5002);
    found("sctp_bindx: another port", "%s", result(sctp_bindx(fd, (struct sockaddr *)&third, 1, ADD)));
    third.sin_port = 0;
    found("sctp_bindx: port 0 is the socket's", "%s", result(sctp_bindx(fd, (struct sockaddr *)&third, 1, ADD)));
    found("sctp_bindx: removal of an address", "%s", result(sctp_bindx(fd, (struct sockaddr *)&third, 1, REMOVE)));
    third = at("127.0.0.4", 5001);
    found("sctp_bindx: removal of an unknown address", "%s",
          result(sctp_bindx(fd, (struct sockaddr *)&third, 1, REMOVE)));
    found("sctp_bindx: removal of all addresses", "%s", result(sctp_bindx(fd, all, 2, REMOVE)));
    sctp_bindx(fd, all, 1, REMOVE);
    found("sctp_bindx: removal of the last address", "%s", result(sctp_bindx(fd, all + 1, 1, REMOVE)));
    close(fd);
    fd = one();
    struct sockaddr_in any = at("0.0.0.0", 5001);
    found("sctp_bindx: the wildcard address", "%s", result(sctp_bindx(fd, (struct sockaddr *)&any, 1, ADD)));
    found("sctp_bindx: an address after the wildcard address", "%s", result(sctp_bindx(fd, all, 1, ADD)));
    close(fd);
}

static void listening(void) {
    int fd = one(), peer;
    found("accept: before listen", "%s", result(accept(fd, NULL, NULL)));
    found("poll: of a new socket", "%s", ready(fd));
    close(fd);
    found("poll: of a listening socket", "%s", ready(listener));
    int accepts = -1;
    socklen_t size = sizeof accepts;
    getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size);
    found("SO_ACCEPTCONN: of a listening socket", "%d", accepts);
    found("listen: again", "%s", result(listen(listener, 9)));
    found("connect: of a listening socket", "%s", result(connects(listener, "127.0.0.1", 5000)));
    found("recv: of a listening socket", "%s", receives(listener, 0));
    found("send: on a listening socket", "%s", sends(listener));
    found("getpeername: of a listening socket", "%s", peers(listener));
    found("accept4: flags that do not exist", "%s", result(accept4(listener, NULL, NULL, 0x100)));
    int client = connected(&peer);
    found("accept: of a connected socket", "%s", result(accept(client, NULL, NULL)));
    found("setsockopt: SO_REUSEADDR of a connected socket", "%s",
          result(setsockopt(client, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int))));
    found("listen: of a connected socket", "%s", result(listen(client, 1)));
    found("bind: of a connected socket", "%s", result(binds(client, "127.0.0.1", 5003)));
    found("getsockname: of an accepted socket", "%s", own(peer));
    found("getsockname: of a connected socket", "%s", own(client));
    found("getpeername: of a connected socket", "%s", peers(client));
    found("getpeername: with room for 8 bytes", "%s", name_of(client, (void *)getpeername, 8));
    close(client);
    close(peer);

    fd = one();
    binds(fd, "127.0.0.2", 5000);
    found("listen: 0 on a new socket", "%s", result(listen(fd, 0)));
    client = one();
    found("connect: to a socket with a backlog of 0", "%s", result(connects(client, "127.0.0.2", 5000)));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    found("accept: with a backlog of 0", "%s", result(accept(fd, NULL, NULL)));
    found("listen: 1 after 0", "%s", result(listen(fd, 1)));
    found("connect: after that", "%s", result(connects(client, "127.0.0.2", 5000)));
    wait_for(fd, POLLIN);
    int accepted = accept(fd, NULL, NULL);
    found("accept: after that", "%s", accepted >= 0 ? "a descriptor" : result(accepted));
    close(accepted);
    close(client);
    found("listen: 0 on a listening socket", "%s", result(listen(fd, 0)));
    found("accept: after listen with 0", "%s", result(accept(fd, NULL, NULL)));
    client = one();
    found("connect: after listen with 0", "%s", result(connects(client, "127.0.0.2", 5000)));
    close(client);
    close(fd);

    /* Associations that end before accept. */
    client = one();
    connects(client, "127.0.0.1", 5000);
    aborts(client);
    usleep(200000);
    fcntl(listener, F_SETFL, O_NONBLOCK);
    accepted = accept(listener, NULL, NULL);
    found("accept: an association that the peer has aborted", "%s", accepted >= 0 ? "a descriptor" : result(accepted));
    close(accepted);
    client = one();
    connects(client, "127.0.0.1", 5000);
    send(client, "left", 4, 0);
    close(client);
    usleep(200000);
    accepted = accept(listener, NULL, NULL);
    found("accept: an association that the peer has shut down", "%s",
          accepted >= 0 ? "a descriptor" : result(accepted));
    found("recv: its message", "%s", receives(accepted, 0));
    found("recv: its end", "%s", receives(accepted, 0));
    close(accepted);
    fcntl(listener, F_SETFL, 0);
}

static void connecting(void) {
    int fd = one(), peer;
    struct sockaddr_in server = at("127.0.0.1", 5000);
    struct sockaddr unspecified = {.sa_family = AF_UNSPEC};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(5000)};
    six.sin6_addr = in6addr_loopback;
    found("connect: an address that is too short", "%s", result(connect(fd, (struct sockaddr *)&server, 7)));
    found("connect: one byte of an address", "%s", result(connect(fd, (struct sockaddr *)&server, 1)));
    found("connect: AF_UNSPEC", "%s", result(connect(fd, &unspecified, sizeof unspecified)));
    found("connect: an IPv6 address on an IPv4 socket", "%s", result(connect(fd, (struct sockaddr *)&six, sizeof six)));
    found("connect: port 0", "%s", result(connects(fd, "127.0.0.1", 0)));
    found("connect: a multicast address", "%s", result(connects(fd, "224.0.0.5", 5000)));
    found("connect: the broadcast address", "%s", result(connects(fd, "255.255.255.255", 5000)));
    close(fd);
    fd = one();
    fcntl(fd, F_SETFL, O_NONBLOCK);
    found("connect: non-blocking, where no socket listens", "%s", result(connects(fd, "127.0.0.1", 5009)));
    found("poll: once it has failed", "%s", ready_for(fd, POLLIN | POLLRDHUP));
    found("SO_ERROR: once it has failed", "%s", error_of(fd));
    found("SO_ERROR: read again", "%s", error_of(fd));
    found("recv: once it has failed", "%s", receives(fd, 0));
    found("send: once it has failed", "%s", sends(fd));
    found("getpeername: once it has failed", "%s", peers(fd));
    fcntl(fd, F_SETFL, 0);
    int again = connects(fd, "127.0.0.1", 5000);
    found("connect: again after a non-blocking failure", "%s", result(again));
    if (again == 0)
        close(accept(listener, NULL, NULL));
    close(fd);
    fd = one();
    found("connect: where no socket listens", "%s", result(connects(fd, "127.0.0.1", 5009)));
    found("SO_ERROR: after connect has reported it", "%s", error_of(fd));
    found("poll: after connect has failed", "%s", ready(fd));
    found("listen: after connect has failed", "%s", result(listen(fd, 1)));
    close(fd);

    struct sockaddr_in two[2] = {server, at("127.0.0.2", 5001)};
    struct {
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } mixed = {server, six};
    fd = one();
    sctp_assoc_t id = 77;
    found("sctp_connectx: no address", "%s", result(sctp_connectx(fd, (struct sockaddr *)two, 0, &id)));
    found("sctp_connectx: different ports", "%s", result(sctp_connectx(fd, (struct sockaddr *)two, 2, &id)));
    found("sctp_connectx: an IPv6 address on an IPv4 socket", "%s",
          result(sctp_connectx(fd, (struct sockaddr *)&mixed, 2, &id)));
    found("sctp_connectx: an address", "%s", result(sctp_connectx(fd, (struct sockaddr *)two, 1, &id)));
    found("sctp_connectx: the id of a one-to-one socket's association", "%s", id == 0 || id == 77 ? "none" : "its own");
    found("sctp_connectx: again", "%s", result(sctp_connectx(fd, (struct sockaddr *)two, 1, &id)));
    peer = accept(listener, NULL, NULL);
    found("poll: of an association without messages", "%s", ready(fd));
    send(fd, "x", 1, 0);
    found("poll: of an association with a message", "%s", ready_for(peer, POLLIN));
    int bytes = -1;
    found("FIONREAD: of an association with a message", "%s", result(ioctl(peer, FIONREAD, &bytes)));
    found("FIONREAD: its size", "%d", bytes);
    found("FIONREAD: of a listening socket", "%s", result(ioctl(listener, FIONREAD, &bytes)));
    found("SIOCOUTQ: is not supported", "%s", result(ioctl(peer, SIOCOUTQ, &bytes)));
    close(peer);
    close(fd);
    /* To the wildcard address: this host. */
    fd = one();
    found("connect: the wildcard address", "%s", result(connects(fd, "0.0.0.0", 5000)));
    found("getpeername: of the wildcard address", "%s", peers(fd));
    close(fd);
}

static volatile sig_atomic_t pipes;

static void on_pipe(int number) { pipes += number == SIGPIPE; }

static void ending(void) {
    int peer, client = connected(&peer), unconnected = one();
    signal(SIGPIPE, on_pipe);
    found("send: without MSG_NOSIGNAL before connect", "%s", result(send(unconnected, "x", 1, 0)));
    found("SIGPIPE: of a socket that is not connected", "%d", (int)pipes);
    found("shutdown: SHUT_WR before connect", "%s", result(shutdown(unconnected, SHUT_WR)));
    found("shutdown: SHUT_RDWR before connect", "%s", result(shutdown(unconnected, SHUT_RDWR)));
    close(unconnected);

    send(client, "last", 4, 0);
    found("shutdown: SHUT_WR", "%s", result(shutdown(client, SHUT_WR)));
    /* Until the peer has acknowledged "last", Linux returns ESHUTDOWN. */
    usleep(200000);
    found("send: after shutdown", "%s", sends(client));
    found("recv: after shutdown", "%s", receives(client, 0));
    over(client);
    found("poll: of the side that has shut down", "%s", ready(client));
    found("getpeername: of the side that has shut down", "%s", peers(client));
    found("shutdown: again", "%s", result(shutdown(client, SHUT_WR)));
    struct sockaddr *list = NULL;
    int count = sctp_getpaddrs(client, 0, &list);
    found("sctp_getpaddrs: after the end", "%s", result(count));
    if (count > 0)
        sctp_freepaddrs(list);
    found("recv: at the peer, a message", "%s", receives(peer, 0));
    found("recv: at the peer, the end", "%s", receives(peer, 0));
    found("recv: at the peer, the end again", "%s", receives(peer, 0));
    over(peer);
    found("poll: at the peer after the end", "%s", ready(peer));
    found("SO_ERROR: at the peer after the end", "%s", error_of(peer));
    pipes = 0;
    found("send: at the peer after the end", "%s", result(send(peer, "x", 1, 0)));
    found("SIGPIPE: at the peer after the end", "%d", (int)pipes);
    found("getpeername: at the peer after the end", "%s", peers(peer));
    found("shutdown: at the peer after the end", "%s", result(shutdown(peer, SHUT_WR)));
    found("connect: at the peer after the end", "%s", result(connects(peer, "127.0.0.1", 5009)));
    close(client);
    close(peer);

    client = connected(&peer);
    send(client, "x", 1, 0);
    wait_for(peer, POLLIN);
    aborts(client);
    over(peer);
    found("poll: after the peer's abort, a message", "%s", ready(peer));
    found("recv: after the peer's abort, a message", "%s", receives(peer, 0));
    found("recv: after the peer's abort", "%s", receives(peer, 0));
    found("recv: after the peer's abort, again", "%s", receives(peer, 0));
    found("poll: after the peer's abort", "%s", ready(peer));
    found("send: after the peer's abort", "%s", sends(peer));
    close(peer);

    client = connected(&peer);
    aborts(client);
    over(peer);
    found("getpeername: after the peer's abort", "%s", peers(peer));
    found("SO_ERROR: after the peer's abort", "%s", error_of(peer));
    found("recv: after the peer's abort and SO_ERROR", "%s", receives(peer, 0));
    close(peer);

    client = connected(&peer);
    aborts(client);
    over(peer);
    found("send: as the first call after the peer's abort", "%s", sends(peer));
    found("send: as the second call after the peer's abort", "%s", sends(peer));
    close(peer);

    client = connected(&peer);
    found("shutdown: SHUT_RD", "%s", result(shutdown(client, SHUT_RD)));
    found("recv: after SHUT_RD", "%s", receives(client, MSG_DONTWAIT));
    found("send: after SHUT_RD", "%s", sends(client));
    found("shutdown: SHUT_RDWR", "%s", result(shutdown(peer, SHUT_RDWR)));
    over(peer);
    found("poll: after SHUT_RDWR", "%s", ready(peer));
    close(client);
    close(peer);
}

static void readiness(void) {
    int peer, client = connected(&peer), queue = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
    epoll_ctl(queue, EPOLL_CTL_ADD, peer, &event);
    int events = epoll_wait(queue, &event, 1, 0);
    found("epoll: of an association", "%d %s", events, flags(event.events));
    send(client, "x", 1, 0);
    wait_for(peer, POLLIN);
    events = epoll_wait(queue, &event, 1, 2000);
    found("epoll: with a message", "%d %s", events, flags(event.events));
    fd_set reads, writes;
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_SET(peer, &reads);
    FD_SET(peer, &writes);
    struct timeval none = {0};
    int selected = select(peer + 1, &reads, &writes, NULL, &none);
    found("select: with a message", "%d %d %d", selected, !!FD_ISSET(peer, &reads), !!FD_ISSET(peer, &writes));
    char buffer[8];
    recv(peer, buffer, 8, 0);
    struct timeval limit = {.tv_usec = 50000};
    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    found("SO_RCVTIMEO: when it expires", "%s", receives(peer, 0));
    static char block[20000];
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ssize_t sent;
    while ((sent = send(client, block, sizeof block, 0)) == sizeof block)
        ;
    found("SO_SNDTIMEO: when it expires", "%s", result(sent));
    found("MSG_DONTWAIT: without room", "%s", result(send(client, block, sizeof block, MSG_DONTWAIT)));
    fcntl(client, F_SETFL, O_NONBLOCK);
    found("O_NONBLOCK: without room", "%s", result(send(client, block, sizeof block, 0)));
    found("poll: without room", "%s", ready(client));
    aborts(client);
    close(peer);
    close(queue);
}

static void one_to_many(void) {
    int server = many(), client = many();
    binds(server, "127.0.0.3", 5000);
    found("poll: of a one-to-many socket", "%s", ready(client));
    found("shutdown: of a one-to-many socket", "%s", result(shutdown(client, SHUT_WR)));
    found("listen: 0 on a new one-to-many socket", "%s", result(listen(server, 0)));
    found("connect: to a one-to-many socket that does not listen", "%s", result(connects(client, "127.0.0.3", 5000)));
    found("SO_ERROR: of a one-to-many socket after that", "%s", error_of(client));
    found("listen: of a one-to-many socket", "%s", result(listen(server, 5)));
    found("poll: of a listening one-to-many socket", "%s", ready(server));
    found("connect: of a one-to-many socket", "%s", result(connects(client, "127.0.0.3", 5000)));
    found("getpeername: of a one-to-many socket", "%s", peers(client));
    found("getsockname: of a one-to-many socket", "%s", own(server));
    found("connect: again to the same peer", "%s", result(connects(client, "127.0.0.3", 5000)));
    found("sctp_peeloff: an unknown association", "%s", result(sctp_peeloff(client, 12345)));
    found("sctp_peeloff: association 0", "%s", result(sctp_peeloff(client, 0)));
    int stream = one();
    found("sctp_peeloff: of a one-to-one socket", "%s", result(sctp_peeloff(stream, 3)));
    close(stream);
    struct {
        uint32_t count;
        sctp_assoc_t ids[4];
    } list = {0};
    socklen_t size = sizeof list;
    getsockopt(client, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, &list, &size);
    found("SCTP_GET_ASSOC_ID_LIST: size and number", "%d %d", (int)size, (int)list.count);
    int peeled = sctp_peeloff(client, list.ids[0]), type = -1;
    size = sizeof type;
    getsockopt(peeled, SOL_SOCKET, SO_TYPE, &type, &size);
    found("SO_TYPE: of a peeled-off socket", "%d", type);
    found("getpeername: of a peeled-off socket", "%s", peers(peeled));
    found("accept: of a peeled-off socket", "%s", result(accept(peeled, NULL, NULL)));
    found("listen: of a peeled-off socket", "%s", result(listen(peeled, 1)));
    found("connect: of a peeled-off socket", "%s", result(connects(peeled, "127.0.0.1", 5000)));
    found("send: on a peeled-off socket", "%s", sends(peeled));
    found("sctp_peeloff: of a peeled-off socket", "%s", result(sctp_peeloff(peeled, list.ids[0])));
    found("sctp_peeloff: the same association again", "%s", result(sctp_peeloff(client, list.ids[0])));
    uint32_t count = 9;
    size = sizeof count;
    int got = getsockopt(client, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER, &count, &size);
    found("SCTP_GET_ASSOC_NUMBER: after sctp_peeloff", "%s %d", result(got), (int)count);
    aborts(peeled);
    close(client);
    close(server);
}

int main(void) {
    alarm(60);
    int fd = one();
    found("listen: without a name", "%s", result(listen(fd, 1)));
    found("getsockname: after listen without a name", "%s", own(fd));
    close(fd);
    listener = one();
    if (binds(listener, "127.0.0.1", 5000) != 0 || listen(listener, 5) != 0)
        return 2;
    sockets();
    names();
    several_names();
    listening();
    connecting();
    ending();
    readiness();
    one_to_many();
    return failures != 0;
}
