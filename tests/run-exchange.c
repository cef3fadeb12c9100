/* An echo server on one-to-one sockets, and its client, which compares each answer. With STATIC, all calls on the
 * sockets are system calls of the program itself, so that no function of the C library is there to be replaced.
 *
 *   run-exchange server PORT ADDRESS...
 *   run-exchange client PORT REMOTE COUNT ADDRESS...
 *
 * The server ends with its first association. Messages have up to 16,000 bytes. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sctp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define STREAMS 4
#define LARGEST 16000

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static long checked(const char *what, long result) {
    if (result < 0)
        fail(what);
    return result;
}

#ifdef STATIC
#define PLAIN(name, ...) syscall(SYS_##name, __VA_ARGS__)
#else
#define PLAIN(name, ...) name(__VA_ARGS__)
#endif
#define CALL(name, ...) checked(#name, PLAIN(name, __VA_ARGS__))

static int set(int fd, int name, const void *value, socklen_t size) {
    return CALL(setsockopt, fd, IPPROTO_SCTP, name, value, size);
}

/* A socket that is bound to these addresses, as sctp_bindx binds it. */
static int bound(int port, char **addresses, int count) {
    int fd = CALL(socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP);
    struct sctp_initmsg init = {.sinit_num_ostreams = STREAMS, .sinit_max_instreams = STREAMS};
    struct sctp_event_subscribe events = {.sctp_data_io_event = 1, .sctp_shutdown_event = 1};
    struct sockaddr_in names[8] = {0};
    for (int i = 0; i < count && i < 8; i++) {
        names[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        inet_pton(AF_INET, addresses[i], &names[i].sin_addr);
    }
    set(fd, SCTP_INITMSG, &init, sizeof init);
    set(fd, SCTP_EVENTS, &events, sizeof events);
    if (count > 0)
        set(fd, SCTP_SOCKOPT_BINDX_ADD, names, count * sizeof names[0]);
    return fd;
}

/* Receives a message or a notification: its size, with MSG_NOTIFICATION in the flags. */
static long received(int fd, char *data, size_t room, struct sctp_sndrcvinfo *info, int *flags) {
    /* In two parts. */
    struct iovec parts[2] = {{data, 100}, {data + 100, room - 100}};
    char control[CMSG_SPACE(sizeof *info)];
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = control,
                             .msg_controllen = sizeof control};
    long size = CALL(recvmsg, fd, &message, 0);
    struct cmsghdr *one = CMSG_FIRSTHDR(&message);
    if (one && one->cmsg_level == IPPROTO_SCTP && one->cmsg_type == SCTP_SNDRCV)
        memcpy(info, CMSG_DATA(one), sizeof *info);
    *flags = message.msg_flags;
    return size;
}

static void send_on(int fd, int stream, unsigned ppid, const char *data, size_t size) {
    struct iovec part = {(char *)data, size};
    union {
        char bytes[CMSG_SPACE(sizeof(struct sctp_sndrcvinfo))];
        struct cmsghdr aligned;
    } control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct sctp_sndrcvinfo info = {.sinfo_stream = stream, .sinfo_ppid = ppid};
    struct cmsghdr *one = CMSG_FIRSTHDR(&message);
    one->cmsg_level = IPPROTO_SCTP;
    one->cmsg_type = SCTP_SNDRCV;
    one->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(one), &info, sizeof info);
    if (CALL(sendmsg, fd, &message, 0) != (long)size) {
        fprintf(stderr, "sendmsg: a part of a message\n");
        exit(1);
    }
}

static void serve(int listener) {
    static char data[1 << 17];
    struct sctp_sndrcvinfo info;
    int flags, fd;
    CALL(listen, listener, 8);
    printf("listening\n");
    fflush(stdout);
    fd = CALL(accept4, listener, 0, 0, SOCK_CLOEXEC);
    for (;;) {
        long size = received(fd, data, sizeof data, &info, &flags);
        if (size == 0)
            break;
        if (!(flags & MSG_NOTIFICATION))
            send_on(fd, info.sinfo_stream, info.sinfo_ppid, data, size);
    }
    CALL(close, fd);
    CALL(close, listener);
}

/* The peer's addresses, sorted. */
static void print_remotes(int fd) {
    static char buffer[4096];
    socklen_t size = sizeof buffer;
    struct sctp_getaddrs *request = (struct sctp_getaddrs *)buffer;
    char texts[8][INET_ADDRSTRLEN];
    CALL(getsockopt, fd, IPPROTO_SCTP, SCTP_GET_PEER_ADDRS, buffer, &size);
    int count = request->addr_num < 8 ? request->addr_num : 8;
    struct sockaddr_in *names = (struct sockaddr_in *)request->addrs;
    for (int i = 0; i < count; i++)
        inet_ntop(AF_INET, &names[i].sin_addr, texts[i], sizeof texts[i]);
    qsort(texts, count, sizeof texts[0], (int (*)(const void *, const void *))strcmp);
    printf("remote");
    for (int i = 0; i < count; i++)
        printf(" %s", texts[i]);
    printf("\n");
}

static void exchange(int fd, int count) {
    static char data[LARGEST], answer[LARGEST + 1];
    struct sctp_sndrcvinfo info;
    int flags;
    for (int n = 1; n <= count; n++) {
        int size = 1 + n * 397 % LARGEST;
        memset(data, n, size);
        send_on(fd, n % STREAMS, htonl(n), data, size);
        struct pollfd poll_one = {.fd = fd, .events = POLLIN};
        checked("poll", poll(&poll_one, 1, 60000));
        long got = received(fd, answer, sizeof answer, &info, &flags);
        if (got != size || memcmp(data, answer, size) || info.sinfo_stream != n % STREAMS ||
            info.sinfo_ppid != htonl(n)) {
            fprintf(stderr, "message %d: %ld bytes of %d on stream %d\n", n, got, size, info.sinfo_stream);
            exit(1);
        }
        if (n % 10 == 0)
            printf("exchanged %d\n", n);
        fflush(stdout);
        usleep(10000);
    }
}

int main(int count, char **words) {
    if (count > 2 && !strcmp(words[1], "server")) {
        serve(bound(atoi(words[2]), words + 3, count - 3));
        return 0;
    }
    if (count < 5 || strcmp(words[1], "client"))
        return 2;
    int fd = bound(0, words + 5, count - 5);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(words[2]))};
    inet_pton(AF_INET, words[3], &to.sin_addr);
    CALL(connect, fd, &to, sizeof to);
    exchange(fd, atoi(words[4]));
    print_remotes(fd);
    CALL(shutdown, fd, SHUT_WR);
    char byte;
    /* The peer has closed its socket, too. */
    while (PLAIN(read, fd, &byte, 1) > 0)
        ;
    CALL(close, fd);
    return 0;
}
