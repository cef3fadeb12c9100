/* Descriptors of SCTP sockets that threads and processes share, queues that are full, and ends at any
 * moment. Prints a line for each statement, as run-api.c does. Messages are numbered: each must arrive
 * once, whoever reads it. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run-common.h"

enum { WRITERS = 4, READERS = 4, EACH = 1500, ALL = WRITERS * EACH, LARGEST = 20000 };

static int listener, port = 5000;

/* Resident memory in KiB, without what the allocator keeps. */
static long resident(void) {
    malloc_trim(0);
    char line[256];
    long found = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file))
        sscanf(line, "VmRSS: %ld", &found);
    fclose(file);
    return found;
}

static void listens(void) {
    struct sockaddr_in server = loopback(port);
    listener = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    if (bind(listener, (struct sockaddr *)&server, sizeof server) != 0 || listen(listener, 5) != 0)
        exit(2);
}

static int connected(int *accepted) {
    struct sockaddr_in server = loopback(port);
    int client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    if (connect(client, (struct sockaddr *)&server, sizeof server) != 0)
        exit(2);
    *accepted = accept(listener, NULL, NULL);
    return client;
}

static void aborts(int fd) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

/* --- numbered messages --- */

struct numbered {
    unsigned number, size;
    char rest[LARGEST];
};

static int pair[2];
static atomic_int seen[ALL + 1];
static atomic_int wrong;

static unsigned size_of(unsigned number) {
    return 16 + (number * 2654435761U >> 8) % (number % 16 ? 1000 : LARGEST);
}

static int send_numbered(int fd, unsigned number, int flags) {
    struct numbered message = {.number = number, .size = size_of(number)};
    memset(message.rest, (int)number, sizeof message.rest);
    return send(fd, &message, message.size, flags) == (ssize_t)message.size ? 0 : -1;
}

/* Checks a message, and returns its number. */
static unsigned checked(const struct numbered *message, ssize_t size) {
    if (size < 8 || message->number >= ALL || message->size != (unsigned)size || size_of(message->number) != size) {
        wrong++;
        return ALL;
    }
    for (ssize_t i = 0; i < size - 8; i++)
        if (message->rest[i] != (char)message->number) {
            wrong++;
            return ALL;
        }
    return message->number;
}

static void *writes(void *first) {
    unsigned from = (unsigned)(size_t)first;
    struct pollfd writable = {.fd = pair[0], .events = POLLOUT};
    for (unsigned number = from; number < from + EACH; number++) {
        /* Some threads wait in send, others in poll. */
        int flags = from / EACH % 2 ? MSG_DONTWAIT : 0;
        while (send_numbered(pair[0], number, flags) != 0) {
            if (errno != EAGAIN) {
                wrong++;
                return NULL;
            }
            poll(&writable, 1, 1000);
        }
    }
    return NULL;
}

static void *reads(void *kind) {
    struct numbered message;
    struct pollfd readable = {.fd = pair[1], .events = POLLIN};
    for (;;) {
        int flags = kind ? MSG_DONTWAIT : 0;
        if (kind)
            poll(&readable, 1, 1000);
        ssize_t size = recv(pair[1], &message, sizeof message, flags);
        if (size == 0)
            return NULL;
        if (size > 0)
            seen[checked(&message, size)]++;
        else if (errno != EAGAIN) {
            wrong++;
            return NULL;
        }
    }
}

static int all_once(unsigned from, unsigned to) {
    for (unsigned number = from; number < to; number++)
        if (seen[number] != 1) {
            printf("message %u: %d times\n", number, seen[number]);
            return 0;
        }
    return 1;
}

static void threads(void) {
    pthread_t writers[WRITERS], readers[READERS];
    pair[0] = connected(&pair[1]);
    for (size_t i = 0; i < READERS; i++)
        pthread_create(&readers[i], NULL, reads, (void *)(i % 2));
    for (size_t i = 0; i < WRITERS; i++)
        pthread_create(&writers[i], NULL, writes, (void *)(i * EACH));
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    shutdown(pair[0], SHUT_WR);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    check("threads: every message arrives once and complete", !wrong && all_once(0, ALL));
    check("threads: send fails with EPIPE after shutdown", send(pair[0], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    close(pair[0]);
    close(pair[1]);
}

/* --- processes --- */

/* Reads until the end or `most` messages, and writes their numbers into a pipe. */
static void reports(int out, int most) {
    struct numbered message;
    for (ssize_t size; most-- && (size = recv(pair[1], &message, sizeof message, 0)) > 0;) {
        unsigned number = checked(&message, size);
        if (write(out, &number, sizeof number) != sizeof number)
            exit(3);
    }
}

static void forks(void) {
    int pipes[2];
    if (pipe(pipes) != 0)
        exit(2);
    memset(seen, 0, sizeof seen);
    wrong = 0;
    pair[0] = connected(&pair[1]);
    /* Some messages wait unread, and one is read in part. */
    for (unsigned number = 0; number < 20; number++)
        send_numbered(pair[0], number, 0);
    struct numbered message;
    wait_for(pair[1], POLLIN);
    usleep(100000);
    check("fork: MSG_PEEK before", recv(pair[1], &message, sizeof message, MSG_PEEK) == size_of(0));
    check("fork: a message is read in part before", recv(pair[1], &message, 8, 0) == 8 && message.number == 0);
    fflush(stdout);
    pid_t first = fork();
    if (first == 0) {
        char rest[LARGEST];
        int whole = recv(pair[1], rest, sizeof rest, 0) == size_of(0) - 8;
        reports(pipes[1], 7);
        _exit(whole ? 0 : 1);
    }
    int status = 0;
    waitpid(first, &status, 0);
    check("fork: a child reads the rest of the message", WIFEXITED(status) && WEXITSTATUS(status) == 0);
    int bytes = 0;
    check("fork: FIONREAD of the next message in the parent",
          wait_for(pair[1], POLLIN) && ioctl(pair[1], FIONREAD, &bytes) == 0 && bytes == (int)size_of(8));
    check("fork: MSG_PEEK in the parent",
          recv(pair[1], &message, sizeof message, MSG_PEEK) == size_of(8) && message.number == 8);
    pid_t children[3];
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            close(pipes[0]);
            if (i == 2) /* A child that sends. */
                for (unsigned number = EACH; number < 2 * EACH; number++)
                    send_numbered(pair[0], number, 0);
            else
                reports(pipes[1], -1);
            _exit(0);
        }
    }
    for (unsigned number = 20; number < EACH; number++) {
        send_numbered(pair[0], number, 0);
        ssize_t size = number % 3 ? 0 : recv(pair[1], &message, sizeof message, MSG_DONTWAIT);
        if (size > 0)
            seen[checked(&message, size)]++;
    }
    waitpid(children[2], NULL, 0);
    /* The engine reads what the child has sent, in order, before the end that follows. */
    shutdown(pair[0], SHUT_WR);
    for (ssize_t size; (size = recv(pair[1], &message, sizeof message, 0)) > 0;)
        seen[checked(&message, size)]++;
    close(pipes[1]);
    unsigned number;
    while (read(pipes[0], &number, sizeof number) == sizeof number)
        seen[number]++;
    for (int i = 0; i < 2; i++)
        waitpid(children[i], NULL, 0);
    seen[0]++;
    check("fork: every message of the parent arrives once, in one of the processes", !wrong && all_once(0, EACH));
    check("fork: so does every message of a child", all_once(EACH, 2 * EACH));
    close(pipes[0]);
    close(pair[0]);
    close(pair[1]);

    /* As servers that fork for each association do. */
    int peer, client = connected(&peer);
    send(client, "waits", 5, 0);
    wait_for(peer, POLLIN);
    shutdown(client, SHUT_WR);
    usleep(200000);
    pid_t child = fork();
    if (child == 0) {
        char buffer[16];
        _exit(recv(peer, buffer, sizeof buffer, 0) == 5 && recv(peer, buffer, sizeof buffer, 0) == 0 ? 0 : 1);
    }
    close(peer);
    waitpid(child, &status, 0);
    check("fork: a child reads what an association that is over has left", WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(client);
    client = connected(&peer);
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    check("fork: the sockets survive a child that is killed",
          send(client, "yes", 3, 0) == 3 && wait_for(peer, POLLIN) & POLLIN);
    close(client);
    close(peer);
}

/* --- full queues --- */

static void does_nothing(int number) { (void)number; }

static int fills(int fd) {
    static char block[60000];
    int sent = 0;
    while (send(fd, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        sent++;
    return sent;
}

static int empties(int fd) {
    static char block[65536];
    int got = 0;
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    while (poll(&readable, 1, 500) == 1 && recv(fd, block, sizeof block, 0) > 0)
        got++;
    return got;
}

static void full(void) {
    int peer, client = connected(&peer), set = epoll_create1(0);
    struct epoll_event edge = {.events = EPOLLOUT | EPOLLIN | EPOLLET}, event;
    epoll_ctl(set, EPOLL_CTL_ADD, client, &edge);
    epoll_wait(set, &event, 1, 0);
    int sent = 0;
    /* Until nothing fits anywhere on the way. */
    for (int more = 1; more; usleep(200000))
        sent += more = fills(client);
    check("EAGAIN: once the queues are full", errno == EAGAIN);
    struct pollfd writable = {.fd = client, .events = POLLOUT};
    check("poll: no POLLOUT after EAGAIN", poll(&writable, 1, 100) == 0);
    while (epoll_wait(set, &event, 1, 0) > 0)
        ;
    struct sigaction action = {.sa_handler = does_nothing};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval soon = {.it_value.tv_usec = 100000}, off = {0};
    setitimer(ITIMER_REAL, &soon, NULL);
    static char block[60000];
    check("EINTR: a signal interrupts a send that waits", send(client, block, 60000, 0) == -1 && errno == EINTR);
    struct timeval limit = {.tv_usec = 100000};
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    double before = now();
    check("SO_SNDTIMEO: a send that waits fails with EAGAIN",
          send(client, block, 60000, 0) == -1 && errno == EAGAIN && now() - before > 0.09 && now() - before < 5);
    setitimer(ITIMER_REAL, &off, NULL);
    signal(SIGALRM, SIG_DFL);
    alarm(100);
    check("epoll: no edge while full", epoll_wait(set, &event, 1, 0) == 0);
    int got = empties(peer);
    check("epoll: an edge once there is room", epoll_wait(set, &event, 1, 5000) == 1 && event.events & EPOLLOUT);
    check("EAGAIN: no message is lost or repeated", got == sent);
    check("send: works again", send(client, block, 60000, MSG_DONTWAIT) == 60000);
    epoll_ctl(set, EPOLL_CTL_ADD, peer, &edge);
    empties(peer);
    while (epoll_wait(set, &event, 1, 0) > 0)
        ;
    for (int i = 0; i < 3; i++) {
        send(client, "edge", 4, 0);
        check(i ? "epoll: another edge for a message after all were read" : "epoll: an edge for a message",
              epoll_wait(set, &event, 1, 5000) == 1 && event.events & EPOLLIN);
        char buffer[2];
        check("poll: POLLIN until a message is read completely",
              recv(peer, buffer, 2, 0) == 2 && wait_for(peer, POLLIN) & POLLIN && recv(peer, buffer, 2, 0) == 2);
        struct pollfd readable = {.fd = peer, .events = POLLIN};
        check("poll: no POLLIN after that", poll(&readable, 1, 0) == 0);
        check("recv: EAGAIN after that", recv(peer, buffer, 2, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    }
    close(client);
    close(peer);
    close(set);
}

/* --- ends at any moment --- */

static atomic_int finished;

static void *waits_in_recv(void *fd) {
    char buffer[4000];
    while (recv(*(int *)fd, buffer, sizeof buffer, 0) > 0)
        ;
    finished++;
    return NULL;
}

static void *waits_in_send(void *fd) {
    static char block[30000];
    while (send(*(int *)fd, block, sizeof block, MSG_NOSIGNAL) > 0)
        ;
    finished++;
    return NULL;
}

/* Both sides send and receive on threads of their own until the two are closed, one after the other. */
static int ends_at_once(unsigned draw) {
    int fds[2];
    fds[0] = connected(&fds[1]);
    int copies[4] = {fds[0], fds[1], fds[0], fds[1]};
    pthread_t all[4];
    finished = 0;
    int running = 0;
    for (int i = 0; i < 4; i++)
        /* Not always a reader: then a sender waits for ever, but for the end. */
        if (draw >> i & 1)
            pthread_create(&all[running++], NULL, i < 2 ? waits_in_recv : waits_in_send, &copies[i]);
    usleep(draw % 7 * 500);
    int which = draw >> 4 & 1;
    /* shutdown wakes threads that a close alone leaves waiting, as in Linux. */
    for (int i = 0; i < 2; i++) {
        int fd = fds[which ^ i];
        if (i || draw >> 5 & 1)
            shutdown(fd, SHUT_RDWR);
        if (draw >> 6 & 1)
            aborts(fd);
        else
            close(fd);
        usleep(draw % 3 * 300);
    }
    double until = now() + 20;
    while (finished < running && now() < until)
        usleep(1000);
    if (finished < running) {
        printf("draw %u: %d of %d threads end\n", draw, finished, running);
        return 0;
    }
    for (int i = 0; i < running; i++)
        pthread_join(all[i], NULL);
    return 1;
}

static void ends(void) {
    int before = open_descriptors(), all = 1;
    long memory = 0;
    for (unsigned round = 0; round < 384 && all; round++) {
        if (round == 128)
            memory = resident();
        all = ends_at_once(round * 37 % 128);
    }
    check("close: at any moment, every call in progress ends", all);
    double until = now() + 30;
    while (open_descriptors() > before && now() < until)
        usleep(20000);
    check("close: at any moment, no descriptor is left", open_descriptors() <= before);
    long grown = resident() - memory;
    if (grown > 16 << 10)
        printf("%ld KiB\n", grown);
    /* Each of the 256 associations has had up to 200 KB unread. */
    check("close: at any moment, no memory is left", grown < 16 << 10);
}

int main(int count, char **words) {
    alarm(100);
    signal(SIGPIPE, SIG_IGN);
    listens();
    void (*all[])(void) = {threads, forks, full, ends};
    for (int i = 0; i < 4; i++)
        if (count == 1 || atoi(words[1]) == i)
            all[i]();
    return failures != 0;
}
