/* Receives numbered messages of one association over all paths between the hosts.
 *
 *     server PORT ADDRESS...
 *
 * The addresses are those of this host, one for each path. See client.c, docs/c-library.md. */

#include <arpa/inet.h>
#include <polypath.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PATHS = 8, MOST_BYTES = 196608 };

static int failed(const char *what) {
    perror(what);
    return 1;
}

int main(int count, char **words) {
    if (count < 3 || count > 2 + MOST_PATHS) {
        fprintf(stderr, "usage: server PORT ADDRESS...\n");
        return 2;
    }
    struct sockaddr_in addresses[MOST_PATHS];
    memset(addresses, 0, sizeof addresses);
    int paths = count - 2;
    for (int at = 0; at < paths; at++) {
        addresses[at].sin_family = AF_INET;
        addresses[at].sin_port = htons((uint16_t)atoi(words[1]));
        if (inet_pton(AF_INET, words[2 + at], &addresses[at].sin_addr) != 1) {
            fprintf(stderr, "server: %s is not an IPv4 address\n", words[2 + at]);
            return 2;
        }
    }

    int listener = polypath_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    if (listener < 0)
        return failed("socket");
    if (polypath_sctp_bindx(listener, (struct sockaddr *)addresses, paths, SCTP_BINDX_ADD_ADDR) < 0)
        return failed("bindx");
    if (polypath_listen(listener, 1) < 0)
        return failed("listen");
    printf("listening on %d addresses\n", paths);
    fflush(stdout);

    int fd = polypath_accept(listener, NULL, NULL);
    if (fd < 0)
        return failed("accept");
    static char message[MOST_BYTES];
    uint32_t next = 0;
    for (;;) {
        ssize_t size = polypath_recv(fd, message, sizeof message, 0);
        if (size < 0)
            return failed("recv");
        if (size == 0)
            break;
        uint32_t number;
        memcpy(&number, message, sizeof number);
        if (ntohl(number) != next) {
            fprintf(stderr, "server: message %u instead of %u\n", ntohl(number), next);
            return 1;
        }
        if (++next % 100 == 0) {
            printf("received %u messages\n", next);
            fflush(stdout);
        }
    }
    printf("the client has ended the association after %u messages\n", next);
    polypath_close(fd);
    return polypath_close(listener) == 0 ? 0 : failed("close");
}
