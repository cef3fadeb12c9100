/* Several listening sockets in one process, and the addresses that a socket bound to the wildcard address announces.
 * Prints what it finds, to be compared with Linux's SCTP. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "run-common.h"

static struct sockaddr_in at(const char *ip, int port) {
    struct sockaddr_in it = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, ip, &it.sin_addr);
    return it;
}

static int binds(int fd, const char *ip, int port) {
    struct sockaddr_in name = at(ip, port);
    return bind(fd, (struct sockaddr *)&name, sizeof name);
}

static int connects(int fd, const char *ip, int port) {
    struct sockaddr_in name = at(ip, port);
    return connect(fd, (struct sockaddr *)&name, sizeof name);
}

static void reuses(int fd) {
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

static void aborts(int fd) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

/* Connects, and passes a message to the accepted socket. The word has what arrived there. */
static const char *reached(const char *ip, int port, int listener) {
    static char text[8][80];
    static unsigned next;
    char *to = text[next++ % 8], word[32] = "";
    int client = socket_with_limit(AF_INET, SOCK_STREAM);
    int got = connects(client, ip, port);
    if (got != 0) {
        snprintf(to, sizeof text[0], "%s", result(got));
        close(client);
        return to;
    }
    int peer = accept(listener, NULL, NULL);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    send(client, "word", 4, 0);
    ssize_t size = recv(peer, word, sizeof word - 1, 0);
    snprintf(to, sizeof text[0], "%s, %zd bytes, %s", result(got), size, word);
    aborts(client);
    close(peer);
    return to;
}

static void listeners(void) {
    struct {
        const char *ip;
        int port, fd;
    } all[] = {{"127.0.0.1", 5001, -1}, {"127.0.0.1", 5002, -1}, {"127.0.0.2", 5001, -1}, {"0.0.0.0", 5003, -1}};
    for (unsigned i = 0; i < 4; i++) {
        all[i].fd = socket_with_limit(AF_INET, SOCK_STREAM);
        binds(all[i].fd, all[i].ip, all[i].port);
        char name[64];
        snprintf(name, sizeof name, "listen: beside %u others", i);
        found(name, "%s", result(listen(all[i].fd, 5)));
    }
    for (unsigned i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "accept: of listener %u of four", i + 1);
        found(name, "%s", reached(i == 3 ? "127.0.0.1" : all[i].ip, all[i].port, all[i].fd));
    }
    found("connect: a port without a listener, beside listeners", "%s", reached("127.0.0.1", 5004, -1));
    found("connect: an address without a listener, beside listeners", "%s", reached("127.0.0.3", 5001, -1));

    int server = socket_with_limit(AF_INET, SOCK_SEQPACKET), client = socket_with_limit(AF_INET, SOCK_SEQPACKET);
    binds(server, "127.0.0.1", 5006);
    found("listen: a one-to-many socket beside others", "%s", result(listen(server, 5)));
    struct sockaddr_in to = at("127.0.0.1", 5006);
    found("sendto: a one-to-many socket beside others", "%s",
          result(sendto(client, "many", 4, 0, (struct sockaddr *)&to, sizeof to)));
    char word[32] = "";
    found("recv: of a one-to-many socket beside others", "%s, %s", result(recv(server, word, sizeof word - 1, 0)), word);
    aborts(client);
    close(server);

    close(all[3].fd);
    found("accept: after another listener was closed", "%s", reached("127.0.0.1", 5002, all[1].fd));
    for (unsigned i = 0; i < 3; i++)
        close(all[i].fd);
}

static void the_same_port(void) {
    int one = socket_with_limit(AF_INET, SOCK_STREAM), other = socket_with_limit(AF_INET, SOCK_STREAM);
    int third = socket_with_limit(AF_INET, SOCK_STREAM);
    reuses(one);
    reuses(other);
    reuses(third);
    found("SO_REUSEADDR: of the first of two sockets", "%s", result(binds(one, "127.0.0.1", 5005)));
    found("SO_REUSEADDR: of both sockets", "%s", result(binds(other, "127.0.0.1", 5005)));
    found("listen: the first of two with SO_REUSEADDR", "%s", result(listen(one, 5)));
    found("listen: the second of two with SO_REUSEADDR", "%s", result(listen(other, 5)));
    found("SO_REUSEADDR: beside a listening socket", "%s", result(binds(third, "127.0.0.1", 5005)));
    found("accept: of the first of two with SO_REUSEADDR", "%s", reached("127.0.0.1", 5005, one));
    close(third);
    close(other);
    close(one);

    int listener = socket_with_limit(AF_INET, SOCK_STREAM), client = socket_with_limit(AF_INET, SOCK_STREAM);
    reuses(listener);
    binds(listener, "127.0.0.1", 5008);
    listen(listener, 5);
    connects(client, "127.0.0.1", 5008);
    int peer = accept(listener, NULL, NULL);
    close(listener);
    listener = socket_with_limit(AF_INET, SOCK_STREAM);
    reuses(listener);
    found("bind: the port of an accepted socket, with SO_REUSEADDR", "%s", result(binds(listener, "127.0.0.1", 5008)));
    found("listen: on the port of an accepted socket", "%s", result(listen(listener, 5)));
    found("accept: of the new listener", "%s", reached("127.0.0.1", 5008, listener));
    char word[32] = "";
    send(client, "still", 5, 0);
    found("recv: from the old listener's peer", "%s, %s", result(recv(peer, word, sizeof word - 1, 0)), word);
    aborts(client);
    close(peer);
    close(listener);
}

/* The loopback addresses in a list that a function of sctp_getladdrs' kind returns. */
static const char *loopbacks(int (*function)(int, sctp_assoc_t, struct sockaddr **), int fd, sctp_assoc_t id) {
    static char text[8][80];
    static unsigned next;
    char *to = text[next++ % 8];
    struct sockaddr *list = NULL;
    int count = function(fd, id, &list), four = 0, six = 0, any = 0;
    char *entry = (char *)list;
    for (int i = 0; i < count; i++) {
        struct sockaddr_in *in = (struct sockaddr_in *)entry;
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)entry;
        int is_four = in->sin_family == AF_INET;
        four += is_four && in->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
        six += !is_four && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
        any += is_four ? in->sin_addr.s_addr == 0 : IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
        entry += is_four ? sizeof *in : sizeof *in6;
    }
    snprintf(to, sizeof text[0], "%s, 127.0.0.1 %d, ::1 %d, wildcard %d", count > 0 ? "some" : result(count), four, six, any);
    if (count > 0)
        sctp_freeladdrs(list);
    return to;
}

static sctp_assoc_t id_of(int fd) {
    struct sctp_status status;
    memset(&status, 0, sizeof status);
    socklen_t size = sizeof status;
    getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &status, &size);
    return status.sstat_assoc_id;
}

static void wildcards(void) {
    static const struct {
        const char *name;
        int family, only;
    } all[] = {{"an IPv4", AF_INET, 0}, {"an IPv6", AF_INET6, 0}, {"an IPv6-only", AF_INET6, 1}};
    for (unsigned i = 0; i < 3; i++) {
        struct sockaddr_in any = at("0.0.0.0", 5007), four = at("127.0.0.1", 5007);
        struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons(5007)}, six = any6;
        inet_pton(AF_INET6, "::1", &six.sin6_addr);
        int listener = socket_with_limit(all[i].family, SOCK_STREAM), client = socket_with_limit(all[i].family, SOCK_STREAM);
        setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &all[i].only, sizeof(int));
        setsockopt(client, IPPROTO_IPV6, IPV6_V6ONLY, &all[i].only, sizeof(int));
        int is_four = all[i].family == AF_INET;
        bind(listener, is_four ? (struct sockaddr *)&any : (struct sockaddr *)&any6, is_four ? sizeof any : sizeof any6);
        listen(listener, 5);
        char name[96];
#define NAMED(text) (snprintf(name, sizeof name, "%s %s socket bound to the wildcard address", text, all[i].name), name)
        found(NAMED("connect:"), "%s",
              result(connect(client, is_four ? (struct sockaddr *)&four : (struct sockaddr *)&six,
                             is_four ? sizeof four : sizeof six)));
        int peer = accept(listener, NULL, NULL);
        found(NAMED("sctp_getladdrs: of"), "%s", loopbacks(sctp_getladdrs, listener, 0));
        found(NAMED("sctp_getladdrs: of the association of"), "%s", loopbacks(sctp_getladdrs, peer, id_of(peer)));
        found(NAMED("sctp_getladdrs: of the accepted socket of"), "%s", loopbacks(sctp_getladdrs, peer, 0));
        found(NAMED("sctp_getpaddrs: of the peer of"), "%s", loopbacks(sctp_getpaddrs, client, id_of(client)));
        found(NAMED("sctp_getpaddrs: of"), "%s", loopbacks(sctp_getpaddrs, peer, id_of(peer)));
        found(NAMED("sctp_getladdrs: of the client of"), "%s", loopbacks(sctp_getladdrs, client, id_of(client)));
        aborts(client);
        close(peer);
        close(listener);
    }
    int server = socket_with_limit(AF_INET6, SOCK_SEQPACKET), client = socket_with_limit(AF_INET6, SOCK_SEQPACKET);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(5009)}, to = any;
    inet_pton(AF_INET6, "::1", &to.sin6_addr);
    bind(server, (struct sockaddr *)&any, sizeof any);
    listen(server, 5);
    found("connect: a one-to-many socket bound to the wildcard address", "%s",
          result(connect(client, (struct sockaddr *)&to, sizeof to)));
    struct {
        uint32_t count;
        sctp_assoc_t id[4];
    } ids = {0};
    socklen_t room = sizeof ids;
    getsockopt(client, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, &ids, &room);
    sctp_assoc_t id = ids.id[0];
    found("sctp_getpaddrs: of a one-to-many socket bound to the wildcard address", "%s",
          loopbacks(sctp_getpaddrs, client, id));
    found("sctp_getladdrs: of an association of a one-to-many socket", "%s", loopbacks(sctp_getladdrs, client, id));
    struct sockaddr_in four = at("127.0.0.1", 5009);
    found("sendto: another address of a peer bound to the wildcard address", "%s",
          result(sendto(client, "other", 5, 0, (struct sockaddr *)&four, sizeof four)));
    char word[32] = "";
    found("recv: sent to another address", "%s, %s", result(recv(server, word, sizeof word - 1, 0)), word);
    unsigned count = 0;
    socklen_t size = sizeof count;
    getsockopt(client, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER, &count, &size);
    found("SCTP_GET_ASSOC_NUMBER: with two addresses of one peer", "%u", count);
    aborts(client);
    close(server);
}

/* Listening again at once, after the socket of this name was closed: by close, or since another descriptor takes its
   number. */
static void again(int replaces, const char *statement) {
    struct sockaddr_in none = at("127.0.0.1", 5011);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(5010)};
    struct sctp_event event = {.se_type = SCTP_ASSOC_CHANGE, .se_on = 1};
    char text[100];
    const char *last = "0";
    for (int i = 0; i < 500 && strcmp(last, "0") == 0; i++) {
        int fd = socket_with_limit(AF_INET6, SOCK_SEQPACKET);
        setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event);
        last = result(bind(fd, (struct sockaddr *)&any, sizeof any) < 0 ? -1 : listen(fd, 5));
        /* An association that is refused. */
        sendto(fd, "nowhere", 7, 0, (struct sockaddr *)&none, sizeof none);
        recv(fd, text, sizeof text, 0);
        int other = open("/dev/null", O_RDONLY);
        if (replaces)
            dup2(other, fd);
        close(fd);
        close(other);
    }
    found(statement, "%s", last);
}

int main(void) {
    again(1, "listen: at once after dup2 has closed the socket");
    again(0, "listen: at once after close");
    listeners();
    the_same_port();
    wildcards();
    return 0;
}
