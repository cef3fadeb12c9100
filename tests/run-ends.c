/* Ends, errors, forks and threads of one-to-one SCTP sockets. Prints a line for each statement, as
 * run-api.c does. The expected results are those of RFC 6458, POSIX and Linux. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run-common.h"

static struct sockaddr_in address(const char *ip, int port) {
    struct sockaddr_in it = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, ip, &it.sin_addr);
    return it;
}

static int sctp_socket(void) { return socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP); }

static int listener;

static void listens(void) {
    struct sockaddr_in server = address("127.0.0.1", 5000);
    listener = sctp_socket();
    if (bind(listener, (struct sockaddr *)&server, sizeof server) != 0 || listen(listener, 5) != 0)
        exit(2);
}

static int connects(void) {
    struct sockaddr_in server = address("127.0.0.1", 5000);
    int client = sctp_socket();
    return connect(client, (struct sockaddr *)&server, sizeof server) == 0 ? client : -1;
}

static int connected(int *accepted) {
    int client = connects();
    *accepted = accept(listener, NULL, NULL);
    return client;
}

static void aborts(int fd) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

static void arguments(void) {
    int fd = sctp_socket();
    struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "/nowhere"};
    check("connect: EINVAL for an address of another family",
          connect(fd, (struct sockaddr *)&local, sizeof local) == -1 && errno == EINVAL);
    check("bind: EAFNOSUPPORT for an address of another family",
          bind(fd, (struct sockaddr *)&local, sizeof local) == -1 && errno == EAFNOSUPPORT);
    check("shutdown: ENOTCONN before connect", shutdown(fd, SHUT_RD) == -1 && errno == ENOTCONN);
    check("shutdown: EINVAL for an unknown direction", shutdown(fd, 7) == -1 && errno == EINVAL);
    socklen_t size = (socklen_t)-4;
    int value = 0;
    check("getsockopt: EINVAL for a negative size",
          getsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &value, &size) == -1 && errno == EINVAL);
    check("setsockopt: EINVAL for a negative size",
          setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &value, (socklen_t)-4) == -1 && errno == EINVAL);
    close(fd);

    /* A UDP socket that never replies. */
    struct sockaddr_in silent = address("127.0.0.2", 9899), peer = address("127.0.0.2", 5000);
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(udp, (struct sockaddr *)&silent, sizeof silent) != 0)
        exit(2);
    fd = sctp_socket();
    struct timeval limit = {.tv_usec = 300000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    double before = now();
    check("SO_SNDTIMEO: connect gives up waiting with EINPROGRESS",
          connect(fd, (struct sockaddr *)&peer, sizeof peer) == -1 && errno == EINPROGRESS &&
              now() - before < 10);
    check("connect: EALREADY while in progress",
          connect(fd, (struct sockaddr *)&peer, sizeof peer) == -1 && errno == EALREADY);
    struct pollfd writable = {.fd = fd, .events = POLLOUT};
    check("poll: no POLLOUT while connecting", poll(&writable, 1, 100) == 0);
    close(fd);
    fd = sctp_socket();
    int large = 8 << 20;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    check("connect: EINPROGRESS with a large SO_SNDBUF",
          connect(fd, (struct sockaddr *)&peer, sizeof peer) == -1 && errno == EINPROGRESS);
    writable.fd = fd;
    check("poll: no POLLOUT while connecting, whatever SO_SNDBUF", poll(&writable, 1, 100) == 0);
    close(fd);
    close(udp);
}

static void ends(void) {
    int peer, client = connected(&peer);
    char buffer[256];
    struct sctp_event_subscribe events = {.sctp_shutdown_event = 1, .sctp_association_event = 1};
    setsockopt(client, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events);
    struct sctp_event event = {.se_type = SCTP_PEER_ADDR_CHANGE, .se_on = 1};
    setsockopt(client, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event);
    close(client);
    check("close: is graceful", wait_for(peer, POLLIN) && recv(peer, buffer, sizeof buffer, 0) == 0);
    close(peer);

    setsockopt(listener, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events);
    client = connected(&peer);
    /* SCTP_COMM_UP waits unread. */
    check("poll: a notification is readable", wait_for(peer, POLLIN) & POLLIN);
    close(peer);
    check("close: is graceful with unread notifications", recv(client, buffer, sizeof buffer, 0) == 0);
    close(client);
    memset(&events, 0, sizeof events);
    setsockopt(listener, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events);

    client = connected(&peer);
    send(client, "unread", 6, 0);
    wait_for(peer, POLLIN);
    close(peer);
    check("close: aborts with unread messages",
          recv(client, buffer, sizeof buffer, 0) == -1 && errno == ECONNRESET);
    close(client);

    client = connected(&peer);
    send(peer, "last", 4, 0);
    shutdown(peer, SHUT_WR);
    wait_for(client, POLLIN);
    for (int i = 0; i < 100; i++)
        send(client, buffer, sizeof buffer, MSG_DONTWAIT | MSG_NOSIGNAL);
    wait_for(client, POLLHUP);
    check("recv: what arrived before the end is not lost", recv(client, buffer, sizeof buffer, 0) == 4);
    check("recv: 0 after that", recv(client, buffer, sizeof buffer, 0) == 0);
    close(client);
    close(peer);

    client = connected(&peer);
    static char block[60000];
    /* Until nothing more fits anywhere on the way to the client, which does not read. */
    double until = now() + 30;
    struct pollfd writable = {.fd = peer, .events = POLLOUT};
    while (now() < until && poll(&writable, 1, 300) == 1)
        send(peer, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL);
    aborts(peer);
    int sent = 0;
    while (sent >= 0)
        sent = send(client, block, sizeof block, MSG_NOSIGNAL);
    check("send: fails after the peer's abort although messages wait unread",
          errno == EPIPE || errno == ECONNRESET);
    close(client);

    client = connected(&peer);
    int bytes = 0;
    send(client, "seven..", 7, 0);
    wait_for(peer, POLLIN);
    check("FIONREAD: is the size of the next message", ioctl(peer, FIONREAD, &bytes) == 0 && bytes == 7);
    int copy = dup(peer), other = open("/dev/null", O_RDONLY);
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    check("dup2: closes the socket that it replaces", dup2(other, client) == client);
    recv(copy, buffer, sizeof buffer, 0);
    check("dup2: aborts it with SO_LINGER of 0 seconds",
          recv(copy, buffer, sizeof buffer, 0) == -1 && errno == ECONNRESET);
    close(copy);
    close(peer);
    close(other);
    close(client);
}

/* A child of fork has an engine of its own; its own child sees its end. */
static void grandchild(void) {
    int pipes[2];
    char byte = 0, buffer[16];
    if (pipe(pipes) != 0)
        exit(2);
    pid_t child = fork();
    if (child == 0) {
        int client = connects();
        send(client, "child", 5, 0);
        if (fork() == 0) {
            byte = recv(client, &byte, 1, 0) == 0 ? 'y' : 'n';
            (void)!write(pipes[1], &byte, 1);
            _exit(0);
        }
        /* After the message has arrived. */
        char go;
        (void)!read(pipes[0], &go, 1);
        kill(getpid(), SIGKILL);
    }
    int peer = accept(listener, NULL, NULL);
    check("fork: a child's own socket reaches the parent", recv(peer, buffer, sizeof buffer, 0) == 5);
    (void)!write(pipes[1], "g", 1);
    waitpid(child, NULL, 0);
    check("fork: an inherited socket ends with the parent", read(pipes[0], &byte, 1) == 1 && byte == 'y');
    aborts(peer);
    close(pipes[0]);
    close(pipes[1]);

    struct sockaddr_in name = address("127.0.0.2", 5000);
    int many = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), client = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    sctp_assoc_t id = 0;
    if (bind(many, (struct sockaddr *)&name, sizeof name) != 0 || listen(many, 1) != 0 ||
        sctp_connectx(client, (struct sockaddr *)&name, 1, &id) != 0)
        exit(2);
    child = fork();
    if (child == 0)
        _exit(sctp_peeloff(client, id) == -1 && errno == EOPNOTSUPP ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    check("fork: sctp_peeloff fails with EOPNOTSUPP in a child", status == 0);
    struct sockaddr_in third = address("127.0.0.2", 5001);
    int other = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), new = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    if (bind(other, (struct sockaddr *)&third, sizeof third) != 0 || listen(other, 1) != 0)
        exit(2);
    child = fork();
    if (child == 0) {
        int known = sendto(client, "known", 5, 0, (struct sockaddr *)&name, sizeof name) == 5;
        int opened = sendto(client, "opened", 6, 0, (struct sockaddr *)&third, sizeof third) == 6;
        int idle = sendto(new, "idle", 4, 0, (struct sockaddr *)&third, sizeof third) == -1 && errno == EOPNOTSUPP;
        _exit(known && opened && idle ? 0 : 1);
    }
    status = -1;
    waitpid(child, &status, 0);
    check("fork: a child sends on an inherited one-to-many socket",
          status == 0 && recv(many, buffer, sizeof buffer, 0) == 5);
    check("fork: a child opens an association of an inherited one-to-many socket",
          recv(other, buffer, sizeof buffer, 0) == 6);
    close(new);
    close(other);
    aborts(client);
    close(many);
}

static void forks(void) {
    int peer, client = connected(&peer);
    char buffer[64];
    pid_t child = vfork();
    if (child == 0) {
        close(client);
        close(listener);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    check("vfork: the child's close and _exit leave the parent's sockets",
          send(client, "here", 4, MSG_NOSIGNAL) == 4 && recv(peer, buffer, sizeof buffer, 0) == 4);
    close(client);
    close(peer);

    client = connects();
    wait_for(listener, POLLIN);
    child = fork();
    if (child == 0) {
        alarm(20);
        struct sctp_status status;
        socklen_t size = sizeof status;
        int one = accept(listener, NULL, NULL);
        int refused = getsockopt(one, IPPROTO_SCTP, SCTP_STATUS, &status, &size) == -1 && errno == EOPNOTSUPP;
        _exit(one >= 0 && send(one, "child", 5, 0) == 5 && refused ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    check("fork: a child accepts an association from before the fork",
          status == 0 && recv(client, buffer, sizeof buffer, 0) == 5);
    close(client);
    grandchild();
}

static void limits(void) {
    int client = connects(), free_one = dup(0);
    wait_for(listener, POLLIN);
    struct rlimit limit, low;
    getrlimit(RLIMIT_NOFILE, &limit);
    low = limit;
    low.rlim_cur = free_one;
    close(free_one);
    setrlimit(RLIMIT_NOFILE, &low);
    int refused = accept(listener, NULL, NULL), error = errno;
    setrlimit(RLIMIT_NOFILE, &limit);
    check("accept: EMFILE at the limit of descriptors", refused == -1 && error == EMFILE);
    int peer = wait_for(listener, POLLIN) ? accept(listener, NULL, NULL) : -1;
    check("accept: the association waits for the next call", peer >= 0 && send(peer, "x", 1, MSG_NOSIGNAL) == 1);
    close(client);
    close(peer);

    int before = open_descriptors();
    for (int i = 0; i < 100; i++) {
        client = connected(&peer);
        send(client, "x", 1, 0);
        close(i & 1 ? client : peer);
        close(i & 1 ? peer : client);
    }
    double until = now() + 20;
    while (open_descriptors() > before && now() < until)
        usleep(20000);
    check("close: frees all descriptors", open_descriptors() <= before);

    static int pairs[450][2];
    int made = 0;
    for (; made < 450; made++) {
        pairs[made][0] = connected(&pairs[made][1]);
        if (pairs[made][0] < 0 || pairs[made][1] < 0)
            break;
    }
    check("connect: 450 associations with both ends in 1024 descriptors", made == 450);
    for (int i = 0; i < made; i++) {
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
}

static void *reads(void *fd) {
    char buffer[16];
    while (recv(*(int *)fd, buffer, sizeof buffer, 0) >= 0)
        ;
    return NULL;
}

static void *reads_pipe(void *fd) {
    char byte;
    (void)!read(*(int *)fd, &byte, 1);
    return NULL;
}

static atomic_int accepted;

static void *ends_each(void *count) {
    for (; accepted < *(int *)count; accepted++)
        close(accept(listener, NULL, NULL));
    return NULL;
}

static void threads(void) {
    int peer, client = connected(&peer);
    pthread_t thread;
    pthread_create(&thread, NULL, reads, &client);
    usleep(100000);
    void *result = NULL;
    check("pthread_cancel: ends a thread that waits in recv",
          pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    int pipes[2];
    if (pipe(pipes) != 0)
        exit(2);
    pthread_create(&thread, NULL, reads_pipe, pipes);
    usleep(100000);
    check("pthread_cancel: ends a thread that waits in read on another descriptor",
          pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    char buffer[16];
    check("pthread_cancel: leaves the socket usable",
          send(peer, "yes", 3, 0) == 3 && recv(client, buffer, sizeof buffer, 0) == 3);
    close(client);
    close(peer);

    int count = 300, refused = 0;
    pthread_t server;
    pthread_create(&server, NULL, ends_each, &count);
    for (int i = 0; i < count && !refused; i++) {
        /* The backlog is 5: further associations would be refused. */
        while (i - accepted > 5)
            usleep(1000);
        client = connects();
        refused = client < 0;
        close(client);
    }
    if (!refused)
        pthread_join(server, NULL);
    check("connect: succeeds also if the peer shuts down at once", refused == 0);
}

/* As daemons do; the descriptors that this library needs are not among those that the program knows. */
static void closes_all(void) {
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    listens();
    int peer, client = connected(&peer);
    char buffer[16];
    check("close: of every descriptor leaves new sockets usable",
          send(client, "yes", 3, MSG_NOSIGNAL) == 3 && recv(peer, buffer, sizeof buffer, 0) == 3);
    close(client);
    close(peer);
}

int main(int count, char **words) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 1024;
    setrlimit(RLIMIT_NOFILE, &limit);
    alarm(100);
    listens();
    void (*all[])(void) = {arguments, ends, forks, limits, threads, closes_all};
    for (int i = 0; i < 6; i++)
        if (count == 1 || atoi(words[1]) == i)
            all[i]();
    return failures != 0;
}
