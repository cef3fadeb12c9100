/* Binds sockets and holds them until standard input ends, to find out which ports processes have.
 *
 *   run-ports hold ADDRESS PORT [reuse|share] [bind|listen]
 *   run-ports many COUNT
 *   run-ports forks ADDRESS PORT
 *
 * hold prints "holds PORT", or the name of the error. many prints the ports of COUNT sockets that are bound to port 0.
 * forks listens, and a child of fork echoes one message; another child binds a port of its own. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what) {
    printf("%s %s\n", what, strerrorname_np(errno));
    fflush(stdout);
    exit(1);
}

static int bound(const char *address, int port, const char *mode) {
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), on = 1;
    if (fd < 0)
        fail("socket");
    if (!strcmp(mode, "reuse"))
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!strcmp(mode, "share"))
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, address, &to.sin_addr);
    if (bind(fd, (void *)&to, sizeof to))
        fail("bind");
    return fd;
}

static int port_of(int fd) {
    struct sockaddr_in own;
    socklen_t size = sizeof own;
    if (getsockname(fd, (void *)&own, &size))
        fail("getsockname");
    return ntohs(own.sin_port);
}

static void until_the_end(void) {
    fflush(stdout);
    while (getchar() != EOF)
        ;
}

static int forks(const char *address, int port) {
    int fd = bound(address, port, ""), status[2];
    if (listen(fd, 5))
        fail("listen");
    printf("listening\n");
    fflush(stdout);
    pid_t echo = fork();
    if (!echo) {
        char text[100];
        int peer = accept(fd, NULL, NULL);
        ssize_t size = recv(peer, text, sizeof text, 0);
        _exit(size <= 0 || send(peer, text, size, 0) != size);
    }
    pid_t own = fork();
    if (!own) {
        bound(address, port + 1, "");
        int taken = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
        inet_pton(AF_INET, address, &to.sin_addr);
        _exit(!(bind(taken, (void *)&to, sizeof to) == -1 && errno == EADDRINUSE));
    }
    waitpid(own, &status[0], 0);
    waitpid(echo, &status[1], 0);
    printf("children %d %d\n", status[0], status[1]);
    until_the_end();
    return 0;
}

int main(int count, char **words) {
    if (count < 3)
        return 2;
    if (!strcmp(words[1], "many")) {
        for (int left = atoi(words[2]); left > 0; left--)
            printf("%d ", port_of(bound("0.0.0.0", 0, "")));
        printf("\n");
        until_the_end();
        return 0;
    }
    if (!strcmp(words[1], "forks"))
        return forks(words[2], atoi(words[3]));
    int fd = bound(words[2], atoi(words[3]), count > 4 ? words[4] : "");
    if (count > 5 && !strcmp(words[5], "listen") && listen(fd, 5))
        fail("listen");
    printf("holds %d\n", port_of(fd));
    until_the_end();
    return 0;
}
