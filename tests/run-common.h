/* What the programs run-*.c share: a line for each statement, addresses, waiting. They define _GNU_SOURCE. */

#ifndef RUN_COMMON_H
#define RUN_COMMON_H

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/sctp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* libsctp's functions; its header conflicts with linux/sctp.h on some systems. */
int sctp_bindx(int, struct sockaddr *, int, int);
int sctp_connectx(int, struct sockaddr *, int, sctp_assoc_t *);
int sctp_peeloff(int, sctp_assoc_t);
int sctp_getpaddrs(int, sctp_assoc_t, struct sockaddr **);
int sctp_freepaddrs(struct sockaddr *);
int sctp_getladdrs(int, sctp_assoc_t, struct sockaddr **);
int sctp_freeladdrs(struct sockaddr *);
int sctp_sendmsg(int, const void *, size_t, struct sockaddr *, socklen_t, uint32_t, uint32_t, uint16_t,
                 uint32_t, uint32_t);
int sctp_recvmsg(int, void *, size_t, struct sockaddr *, socklen_t *, struct sctp_sndrcvinfo *, int *);
int sctp_opt_info(int, sctp_assoc_t, int, void *, socklen_t *);

/* The result of a call: the number, or -1 and the error. */
static inline const char *result(long value) {
    static char texts[8][32];
    static unsigned next;
    char *text = texts[next++ % 8];
    if (value < 0)
        snprintf(text, sizeof texts[0], "-1 %s", strerrorname_np(errno) ? strerrorname_np(errno) : "0");
    else
        snprintf(text, sizeof texts[0], "%ld", value);
    return text;
}

/* Prints what a statement has found; it is compared with what Linux's SCTP gives. */
__attribute__((format(printf, 2, 3))) static inline void found(const char *statement, const char *format, ...) {
    va_list values;
    va_start(values, format);
    printf("found %s = ", statement);
    vprintf(format, values);
    printf("\n");
    va_end(values);
    fflush(stdout);
}

static int failures;

static inline void check(const char *statement, int holds) {
    if (!holds)
        failures++;
    printf("%s %s", holds ? "ok" : "failed", statement);
    if (!holds)
        printf(" (errno %d, %s)", errno, strerror(errno));
    printf("\n");
    fflush(stdout);
}

/* A socket whose calls end after 20 seconds. */
static inline int socket_with_limit(int family, int style) {
    int fd = socket(family, style, IPPROTO_SCTP), on = 1;
    struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on);
    return fd;
}

/* Seconds. */
static inline double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

static inline int open_descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static inline struct sockaddr_in loopback(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static inline int wait_for(int fd, int events) {
    struct pollfd one = {.fd = fd, .events = events};
    return poll(&one, 1, 20000) == 1 ? one.revents : 0;
}

#endif
