/* Sends numbered messages over all paths between the hosts.
 *
 *     client LOCAL,LOCAL... PORT COUNT ADDRESS...
 *
 * The local addresses are those of this host, one for each path, the others those of the server. Each
 * of the COUNT messages has 10,000 bytes. See server.c, docs/c-library.md. */

#include <arpa/inet.h>
#include <errno.h>
#include <polypath.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PATHS = 8, SIZE = 10000 };

static int failed(const char *what) {
    perror(what);
    return 1;
}

int main(int count, char **words) {
    if (count < 5 || count > 4 + MOST_PATHS) {
        fprintf(stderr, "usage: client LOCAL,LOCAL... PORT COUNT ADDRESS...\n");
        return 2;
    }
    struct sockaddr_in addresses[MOST_PATHS];
    memset(addresses, 0, sizeof addresses);
    int paths = count - 4;
    for (int at = 0; at < paths; at++) {
        addresses[at].sin_family = AF_INET;
        addresses[at].sin_port = htons((uint16_t)atoi(words[2]));
        if (inet_pton(AF_INET, words[4 + at], &addresses[at].sin_addr) != 1) {
            fprintf(stderr, "client: %s is not an IPv4 address\n", words[4 + at]);
            return 2;
        }
    }
    if (polypath_configure("bind", words[1]) < 0) {
        fprintf(stderr, "client: %s\n", polypath_configure_error());
        return 2;
    }

    int fd = polypath_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    if (fd < 0)
        return failed("socket");
    if (polypath_sctp_connectx(fd, (struct sockaddr *)addresses, paths, NULL) < 0)
        return failed("connectx");
    struct sockaddr *peers;
    int known = polypath_sctp_getpaddrs(fd, 0, &peers);
    if (known < 0)
        return failed("getpaddrs");
    printf("connected to %d addresses\n", known);
    fflush(stdout);
    polypath_sctp_freepaddrs(peers);

    static char message[SIZE];
    uint32_t total = (uint32_t)atoi(words[3]);
    for (uint32_t number = 0; number < total; number++) {
        uint32_t wire = htonl(number);
        memcpy(message, &wire, sizeof wire);
        if (polypath_sctp_sendmsg(fd, message, SIZE, NULL, 0, 0, 0, 0, 0, 0) != SIZE)
            return failed("sendmsg");
    }

    /* The graceful end: once the server has everything, recv fails with ENOTCONN, as in Linux. After a
     * failure it would have another error. */
    if (polypath_shutdown(fd, SHUT_WR) < 0)
        return failed("shutdown");
    if (polypath_recv(fd, message, SIZE, 0) >= 0 || errno != ENOTCONN)
        return failed("recv");
    printf("sent %u messages\n", total);
    return polypath_close(fd) == 0 ? 0 : failed("close");
}
