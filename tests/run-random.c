/* Random calls on SCTP sockets, compared with a model: messages arrive once, complete and in order;
 * the end of one side is seen by the other after them; descriptors are freed. A second thread makes
 * calls that have no effect on the model at the same time. The argument is the seed. Prints what
 * contradicts the model, or "ok" with the number of calls. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run-common.h"

enum { PAIRS = 6, STEPS = 1500, LARGEST = 60000, QUEUE = 4096 };

struct message {
    unsigned size, content;
};

/* One side of an association. */
struct side {
    int fd;
    /* Sent by this side and not yet received: a ring. */
    struct message sent[QUEUE];
    unsigned first, count;
    /* Bytes of the first message that the other side has read. */
    unsigned read;
    int open, shut, aborted;
};

static struct side sides[PAIRS][2];
static int listener;
static unsigned long state;
static unsigned counter;
static atomic_int running = 1;
static atomic_int shown[PAIRS * 2];

static unsigned draw(unsigned below) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(state >> 33) % below;
}

static void contradicts(const char *what, int pair, long result) {
    printf("pair %d: %s (result %ld, errno %d, %s)\n", pair, what, result, errno, strerror(errno));
    exit(1);
}

static void connect_pair(int pair) {
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(5000)};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct side *one = sides[pair], *other = one + 1;
    memset(one, 0, 2 * sizeof *one);
    one->fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    if (connect(one->fd, (struct sockaddr *)&server, sizeof server) != 0)
        contradicts("connect", pair, -1);
    other->fd = accept(listener, NULL, NULL);
    if (other->fd < 0)
        contradicts("accept", pair, other->fd);
    one->open = other->open = 1;
    shown[2 * pair] = one->fd;
    shown[2 * pair + 1] = other->fd;
}

static void sends(int pair, struct side *own, struct side *other) {
    static char bytes[LARGEST];
    unsigned size = 1 + draw(draw(4) ? 2000 : LARGEST), content = counter++;
    memset(bytes, (int)content, size);
    if (own->count == QUEUE)
        return;
    ssize_t sent = send(own->fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    int ended = own->shut || !other->open || other->shut;
    if (sent == (ssize_t)size) {
        if (own->shut)
            contradicts("send succeeds after shutdown", pair, sent);
        own->sent[(own->first + own->count++) % QUEUE] = (struct message){size, content};
    } else if (sent >= 0) {
        contradicts("send of a part", pair, sent);
    } else if (errno != EAGAIN && !(ended && (errno == EPIPE || errno == ECONNRESET))) {
        contradicts("send", pair, sent);
    }
}

static void receives(int pair, struct side *own, struct side *other, int wait) {
    static char bytes[LARGEST];
    unsigned room = 1 + draw(draw(3) ? LARGEST : 500);
    /* A message after the end of one side may be lost. */
    int certain = other->count > 0 && other->open && !other->shut && !own->shut;
    ssize_t size = recv(own->fd, bytes, room, certain && wait ? 0 : MSG_DONTWAIT);
    if (size > 0) {
        struct message *head = &other->sent[other->first % QUEUE];
        if (!other->count)
            contradicts("a message that nobody has sent", pair, size);
        unsigned left = head->size - other->read;
        if ((unsigned)size != (left < room ? left : room))
            contradicts("the wrong size", pair, size);
        for (ssize_t i = 0; i < size; i++)
            if (bytes[i] != (char)head->content)
                contradicts("the wrong message", pair, i);
        other->read += (unsigned)size;
        if (other->read == head->size) {
            other->first++;
            other->count--;
            other->read = 0;
        }
    } else if (size == 0) {
        if (other->open && !other->shut && !own->shut)
            contradicts("the end without a cause", pair, size);
        if (other->count && !other->aborted && !own->shut && !other->shut && other->open)
            contradicts("the end before a message", pair, size);
    } else if (errno == ECONNRESET || errno == ECONNABORTED) {
        if (!other->aborted)
            contradicts("an abort without a cause", pair, size);
    } else if (errno != EAGAIN) {
        contradicts("recv", pair, size);
    } else if (certain && wait) {
        contradicts("EAGAIN of a blocking socket", pair, size);
    }
}

static void closes(struct side *own, struct side *other, int abort) {
    struct linger linger = {.l_onoff = abort, .l_linger = 0};
    setsockopt(own->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    /* As in Linux, unread messages make an abort of it. */
    if (abort || other->count)
        own->aborted = 1;
    close(own->fd);
    own->open = 0;
}

static void duplicates(struct side *own) {
    int copy = draw(2) ? dup(own->fd) : fcntl(own->fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return;
    if (draw(2)) {
        close(copy);
    } else {
        close(own->fd);
        own->fd = copy;
    }
}

/* Options with random sizes and contents. */
static void asks(int fd, unsigned seed) {
    unsigned char value[512];
    for (unsigned i = 0; i < sizeof value; i++)
        value[i] = seed % 3 ? 0 : (unsigned char)(seed * 31 + i * 7);
    socklen_t size = seed / 7 % sizeof value;
    int name = (int)(seed % 134);
    if (getsockopt(fd, IPPROTO_SCTP, name == SCTP_SOCKOPT_CONNECTX3 ? 0 : name, value, &size) == -1 && errno == 0)
        exit(3);
}

static void *disturbs(void *unused) {
    unsigned seed = 1;
    char byte;
    while (running) {
        seed = seed * 1103515245 + 12345;
        int fd = shown[seed >> 16 & 7];
        struct pollfd one = {.fd = fd, .events = POLLIN | POLLOUT};
        poll(&one, 1, 1);
        asks(fd, seed >> 8);
        struct sockaddr_storage name;
        socklen_t size = sizeof name;
        getpeername(fd, (struct sockaddr *)&name, &size);
        recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    }
    return unused;
}

int main(int count, char **words) {
    state = count > 1 ? strtoul(words[1], NULL, 10) : 1;
    alarm(100);
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(5000)};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    if (bind(listener, (struct sockaddr *)&server, sizeof server) != 0 || listen(listener, 8) != 0)
        return 2;
    int before = open_descriptors();
    for (int pair = 0; pair < PAIRS; pair++)
        connect_pair(pair);
    pthread_t thread;
    pthread_create(&thread, NULL, disturbs, NULL);
    for (int step = 0; step < STEPS; step++) {
        int pair = (int)draw(PAIRS), which = (int)draw(2);
        struct side *own = &sides[pair][which], *other = &sides[pair][!which];
        if (!own->open && !other->open) {
            connect_pair(pair);
            continue;
        }
        if (!own->open) {
            struct side *swap = own;
            own = other;
            other = swap;
        }
        switch (draw(40)) {
        case 0:
            closes(own, other, 0);
            break;
        case 1:
            closes(own, other, 1);
            break;
        case 2:
            shutdown(own->fd, SHUT_WR);
            own->shut = 1;
            break;
        case 3:
            duplicates(own);
            shown[2 * pair] = sides[pair][0].fd;
            shown[2 * pair + 1] = sides[pair][1].fd;
            break;
        case 4: {
            pid_t child = fork();
            if (child == 0)
                _exit(0);
            waitpid(child, NULL, 0);
            break;
        }
        case 5:
            asks(own->fd, draw(1 << 30));
            break;
        default:
            if (draw(2))
                sends(pair, own, other);
            else
                receives(pair, own, other, (int)draw(2));
        }
    }
    running = 0;
    pthread_join(thread, NULL);
    for (int pair = 0; pair < PAIRS; pair++)
        for (int which = 0; which < 2; which++)
            if (sides[pair][which].open)
                closes(&sides[pair][which], &sides[pair][!which], 1);
    struct timespec pause = {.tv_nsec = 20000000};
    for (int i = 0; i < 1000 && open_descriptors() > before; i++)
        nanosleep(&pause, NULL);
    if (open_descriptors() > before)
        contradicts("descriptors are left", -1, open_descriptors() - before);
    printf("ok %d\n", STEPS);
    return 0;
}
