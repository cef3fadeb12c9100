/* IPv6 sockets: names, IPv4 peers with and without mapped addresses, IPV6_V6ONLY. Prints what it finds, to be
 * compared with Linux's SCTP. */

#define _GNU_SOURCE

#include <stdlib.h>
#include <unistd.h>

#include "run-common.h"

static struct sockaddr_in6 six(const char *ip, int port) {
    struct sockaddr_in6 it = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    inet_pton(AF_INET6, ip, &it.sin6_addr);
    return it;
}

static int binds(int fd, const char *ip, int port) {
    struct sockaddr_in6 name = six(ip, port);
    return bind(fd, (struct sockaddr *)&name, sizeof name);
}

static int connects(int fd, const char *ip, int port) {
    struct sockaddr_in6 name = six(ip, port);
    return connect(fd, (struct sockaddr *)&name, sizeof name);
}

static char text[8][160];
static unsigned next;

/* An address, with "port" for any that is not 0 or 5000 to 5009. */
static const char *shown(const void *address, socklen_t size) {
    char *to = text[next++ % 8], ip[64] = "?", number[8] = "port";
    const struct sockaddr_in *four = address;
    const struct sockaddr_in6 *name = address;
    int port = ntohs(four->sin_port);
    if (four->sin_family == AF_INET)
        inet_ntop(AF_INET, &four->sin_addr, ip, sizeof ip);
    else if (four->sin_family == AF_INET6)
        inet_ntop(AF_INET6, &name->sin6_addr, ip, sizeof ip);
    if (port == 0 || (port >= 5000 && port < 5010))
        snprintf(number, sizeof number, "%d", port);
    snprintf(to, sizeof text[0], "family %d, %s, %s, %d bytes", four->sin_family, ip, number, (int)size);
    return to;
}

static const char *own(int fd) {
    struct sockaddr_in6 name = {0};
    socklen_t size = sizeof name;
    return getsockname(fd, (struct sockaddr *)&name, &size) == 0 ? shown(&name, size) : result(-1);
}

static const char *peers(int fd) {
    struct sockaddr_in6 name = {0};
    socklen_t size = sizeof name;
    return getpeername(fd, (struct sockaddr *)&name, &size) == 0 ? shown(&name, size) : result(-1);
}

static void aborts(int fd) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

static void names(void) {
    int fd = socket_with_limit(AF_INET6, SOCK_STREAM), domain = -1, only = -1, on = 1;
    struct sockaddr_in four = loopback(5001);
    struct sockaddr_in6 loop = six("::1", 5001);
    socklen_t size = sizeof domain;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    found("SO_DOMAIN: of an IPv6 socket", "%d", domain);
    getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &size);
    found("IPV6_V6ONLY: default", "%d", only);
    found("getsockname: of a new IPv6 socket", "%s", own(fd));
    found("bind: 24 bytes of an IPv6 address", "%s", result(bind(fd, (struct sockaddr *)&loop, 24)));
    found("bind: 20 bytes of an IPv6 address", "%s", result(bind(fd, (struct sockaddr *)&loop, 20)));
    close(fd);
    fd = socket_with_limit(AF_INET6, SOCK_STREAM);
    found("bind: an IPv4 address on an IPv6 socket", "%s", result(bind(fd, (struct sockaddr *)&four, sizeof four)));
    found("getsockname: of an IPv4 address on an IPv6 socket", "%s", own(fd));
    close(fd);
    fd = socket_with_limit(AF_INET6, SOCK_STREAM);
    found("bind: a mapped address", "%s", result(binds(fd, "::ffff:127.0.0.1", 5001)));
    found("getsockname: of a mapped address", "%s", own(fd));
    close(fd);
    fd = socket_with_limit(AF_INET6, SOCK_STREAM);
    found("bind: a multicast IPv6 address", "%s", result(binds(fd, "ff02::1", 5001)));
    found("bind: another host's IPv6 address", "%s", result(binds(fd, "2001:db8::1", 5001)));
    found("bind: an IPv6 address", "%s", result(binds(fd, "::1", 5001)));
    found("getsockname: of an IPv6 address", "%s", own(fd));
    struct sockaddr *list = NULL;
    int count = sctp_getladdrs(fd, 0, &list);
    found("sctp_getladdrs: of an IPv6 address", "%s, %s", result(count), count > 0 ? shown(list, 28) : "none");
    if (count > 0)
        sctp_freeladdrs(list);
    found("sctp_bindx: an IPv4 address on an IPv6 socket", "%s", result(sctp_bindx(fd, (struct sockaddr *)&four, 1, 1)));
    count = sctp_getladdrs(fd, 0, &list);
    found("sctp_getladdrs: of both families", "%s", result(count));
    if (count > 0)
        sctp_freeladdrs(list);
    close(fd);
    fd = socket_with_limit(AF_INET6, SOCK_STREAM);
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &size);
    found("IPV6_V6ONLY: once set", "%d", only);
    found("bind: an IPv4 address with IPV6_V6ONLY", "%s", result(bind(fd, (struct sockaddr *)&four, sizeof four)));
    found("bind: a mapped address with IPV6_V6ONLY", "%s", result(binds(fd, "::ffff:127.0.0.1", 5001)));
    found("connect: a mapped address with IPV6_V6ONLY", "%s", result(connects(fd, "::ffff:127.0.0.1", 5000)));
    close(fd);
}

static void associations(void) {
    int listener = socket_with_limit(AF_INET6, SOCK_STREAM);
    struct sockaddr_in four = loopback(5000);
    found("bind: the IPv6 wildcard address", "%s", result(binds(listener, "::", 5000)));
    found("getsockname: of the IPv6 wildcard address", "%s", own(listener));
    found("listen: of the IPv6 wildcard address", "%s", result(listen(listener, 5)));

    int client = socket_with_limit(AF_INET6, SOCK_STREAM);
    found("connect: the IPv6 wildcard address", "%s", result(connects(client, "::", 5000)));
    found("connect: an IPv6 multicast address", "%s", result(connects(client, "ff02::1", 5000)));
    found("connect: 24 bytes of an IPv6 address", "%s",
          ({ struct sockaddr_in6 name = six("::1", 5000); result(connect(client, (struct sockaddr *)&name, 24)); }));
    close(client);
    client = socket_with_limit(AF_INET6, SOCK_STREAM);
    found("connect: an IPv6 address", "%s", result(connects(client, "::1", 5000)));
    found("getsockname: of a connected IPv6 socket", "%s", own(client));
    found("getpeername: of a connected IPv6 socket", "%s", peers(client));
    struct sockaddr_in6 name = {0};
    socklen_t size = sizeof name;
    int peer = accept(listener, (struct sockaddr *)&name, &size);
    found("accept: an IPv6 peer", "%s", shown(&name, size));
    found("getsockname: of an accepted IPv6 socket", "%s", own(peer));
    char buffer[64];
    send(client, "six", 3, 0);
    size = sizeof name;
    int got = recvfrom(peer, buffer, sizeof buffer, 0, (struct sockaddr *)&name, &size);
    found("recvfrom: an IPv6 peer", "%s, %s", result(got), shown(&name, size));
    found("sendto: an IPv4 address on a connected IPv6 socket", "%s",
          result(sendto(client, "x", 1, 0, (struct sockaddr *)&four, sizeof four)));
    aborts(client);
    close(peer);

    client = socket_with_limit(AF_INET, SOCK_STREAM);
    found("connect: an IPv4 socket to an IPv6 one", "%s",
          result(connect(client, (struct sockaddr *)&four, sizeof four)));
    size = sizeof name;
    peer = accept(listener, (struct sockaddr *)&name, &size);
    found("accept: an IPv4 peer", "%s", shown(&name, size));
    found("getpeername: of an IPv4 peer", "%s", peers(peer));
    found("getsockname: of the socket of an IPv4 peer", "%s", own(peer));
    send(client, "four", 4, 0);
    size = sizeof name;
    got = recvfrom(peer, buffer, sizeof buffer, 0, (struct sockaddr *)&name, &size);
    found("recvfrom: an IPv4 peer", "%s, %s", result(got), shown(&name, size));
    struct sockaddr *list = NULL;
    int count = sctp_getpaddrs(peer, 0, &list);
    found("sctp_getpaddrs: an IPv4 peer, the first address", "%s", count > 0 ? shown(list, 28) : result(count));
    if (count > 0)
        sctp_freepaddrs(list);
    struct sctp_status status;
    memset(&status, 0, sizeof status);
    size = sizeof status;
    getsockopt(peer, IPPROTO_SCTP, SCTP_STATUS, &status, &size);
    found("SCTP_STATUS: an IPv4 peer", "%s", shown(&status.sstat_primary.spinfo_address, size));
    aborts(client);
    close(peer);

    client = socket_with_limit(AF_INET6, SOCK_STREAM);
    found("connect: a mapped address", "%s", result(connects(client, "::ffff:127.0.0.1", 5000)));
    found("getpeername: of a mapped address", "%s", peers(client));
    peer = accept(listener, NULL, NULL);
    aborts(client);
    close(peer);
    client = socket_with_limit(AF_INET6, SOCK_STREAM);
    found("connect: an IPv4 address on an IPv6 socket", "%s",
          result(connect(client, (struct sockaddr *)&four, sizeof four)));
    found("getpeername: of an IPv4 address", "%s", peers(client));
    peer = accept(listener, NULL, NULL);
    aborts(client);
    close(peer);

    int off = 0;
    setsockopt(listener, IPPROTO_SCTP, SCTP_I_WANT_MAPPED_V4_ADDR, &off, sizeof off);
    client = socket_with_limit(AF_INET6, SOCK_STREAM);
    found("SCTP_I_WANT_MAPPED_V4_ADDR: off", "%s",
          result(setsockopt(client, IPPROTO_SCTP, SCTP_I_WANT_MAPPED_V4_ADDR, &off, sizeof off)));
    found("connect: without mapped addresses", "%s", result(connects(client, "::ffff:127.0.0.1", 5000)));
    found("getpeername: without mapped addresses", "%s", peers(client));
    size = sizeof name;
    peer = accept(listener, (struct sockaddr *)&name, &size);
    found("accept: without mapped addresses", "%s", shown(&name, size));
    found("getpeername: of an accepted socket without mapped addresses", "%s", peers(peer));
    found("getsockname: of an accepted socket without mapped addresses", "%s", own(peer));
    send(client, "four", 4, 0);
    size = sizeof name;
    got = recvfrom(peer, buffer, sizeof buffer, 0, (struct sockaddr *)&name, &size);
    found("recvfrom: without mapped addresses", "%s, %s", result(got), shown(&name, size));
    count = sctp_getpaddrs(peer, 0, &list);
    found("sctp_getpaddrs: without mapped addresses", "%s", count > 0 ? shown(list, 16) : result(count));
    if (count > 0)
        sctp_freepaddrs(list);
    size = sizeof status;
    getsockopt(peer, IPPROTO_SCTP, SCTP_STATUS, &status, &size);
    found("SCTP_STATUS: without mapped addresses", "%s", shown(&status.sstat_primary.spinfo_address, size));
    aborts(client);
    close(peer);
    client = socket_with_limit(AF_INET6, SOCK_STREAM);
    setsockopt(client, IPPROTO_SCTP, SCTP_I_WANT_MAPPED_V4_ADDR, &off, sizeof off);
    found("connect: an IPv6 address without mapped addresses", "%s", result(connects(client, "::1", 5000)));
    found("getpeername: of an IPv6 address without mapped addresses", "%s", peers(client));
    aborts(client);
    peer = accept(listener, NULL, NULL);
    close(peer);
    close(listener);
}

static void one_to_many(void) {
    int server = socket_with_limit(AF_INET6, SOCK_SEQPACKET), client = socket_with_limit(AF_INET6, SOCK_SEQPACKET);
    struct sockaddr_in6 to = six("::1", 5000), name = {0};
    binds(server, "::1", 5000);
    listen(server, 5);
    found("sendto: an IPv6 peer of a one-to-many socket", "%s",
          result(sendto(client, "many", 4, 0, (struct sockaddr *)&to, sizeof to)));
    char buffer[64];
    socklen_t size = sizeof name;
    int got = recvfrom(server, buffer, sizeof buffer, 0, (struct sockaddr *)&name, &size);
    found("recvfrom: an IPv6 peer of a one-to-many socket", "%s, %s", result(got), shown(&name, size));
    found("sendto: the address that recvfrom has returned", "%s",
          result(sendto(server, "back", 4, 0, (struct sockaddr *)&name, size)));
    size = sizeof name;
    got = recvfrom(client, buffer, sizeof buffer, 0, (struct sockaddr *)&name, &size);
    found("recvfrom: the reply", "%s, %s", result(got), shown(&name, size));
    aborts(client);
    close(server);
}

int main(void) {
    alarm(60);
    names();
    associations();
    one_to_many();
    return failures != 0;
}
