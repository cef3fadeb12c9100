/* Statements about programs whose system calls polypath run answers: signals, processes, descriptors. Compiled
 * statically; its parent process is the supervisor. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run-common.h"

#define PORT 7000
#define THREADS 40

static int listener;
static volatile sig_atomic_t handled;

static void handler(int signal) {
    handled = signal;
}

/* After this time the process handles SIGALRM. */
static void alarm_in(int milliseconds, int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    struct itimerval time = {.it_value = {milliseconds / 1000, milliseconds % 1000 * 1000}};
    handled = 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &time, NULL);
}

/* Both ends of a new association. */
static int connected(int *peer) {
    struct sockaddr_in to = loopback(PORT);
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    if (connect(fd, (struct sockaddr *)&to, sizeof to))
        return -1;
    *peer = accept(listener, NULL, NULL);
    return fd;
}

static void *sends_later(void *fd) {
    usleep(600000);
    send(*(int *)fd, "late", 4, 0);
    return NULL;
}

static void signals(void) {
    int peer, fd = connected(&peer);
    char buffer[16];
    double start = now();
    alarm_in(200, 0);
    long got = recv(fd, buffer, sizeof buffer, 0);
    check("recv: a signal ends it", got == -1 && errno == EINTR && handled == SIGALRM && now() < start + 5);

    pthread_t thread;
    pthread_create(&thread, NULL, sends_later, &peer);
    alarm_in(200, SA_RESTART);
    got = recv(fd, buffer, sizeof buffer, 0);
    check("recv: starts again after a signal with SA_RESTART", got == 4 && handled == SIGALRM);
    pthread_join(thread, NULL);

    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, &old);
    pthread_create(&thread, NULL, sends_later, &peer);
    alarm_in(100, 0);
    got = recv(fd, buffer, sizeof buffer, 0);
    check("recv: a blocked signal does not end it", got == 4 && !handled);
    sigprocmask(SIG_SETMASK, &old, NULL);
    check("recv: the signal arrives later", handled == SIGALRM);
    pthread_join(thread, NULL);

    /* What is sent is neither lost nor repeated. */
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval often = {.it_interval = {0, 700}, .it_value = {0, 700}}, never = {0};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    int right = 1;
    for (int i = 0; i < 2000 && right; i++) {
        int answer = -1;
        right = send(fd, &i, sizeof i, 0) == sizeof i && recv(peer, &answer, sizeof answer, 0) == sizeof answer &&
                answer == i;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    check("send, recv: signals change nothing", right);

    action.sa_flags = 0;
    sigaction(SIGPIPE, &action, NULL);
    handled = 0;
    shutdown(fd, SHUT_WR);
    got = send(fd, "x", 1, MSG_NOSIGNAL);
    check("send: EPIPE without SIGPIPE", got == -1 && errno == EPIPE && !handled);
    got = write(fd, "x", 1);
    check("write: EPIPE with SIGPIPE", got == -1 && errno == EPIPE && handled == SIGPIPE);
    close(fd);
    close(peer);
}

/* Nothing answers on the address of this UDP socket. */
static void connects(void) {
    int silent = socket(AF_INET, SOCK_DGRAM, 0), fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sockaddr_in to = loopback(9899), name = loopback(PORT);
    to.sin_addr.s_addr = name.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 8);
    int made = bind(silent, (struct sockaddr *)&to, sizeof to);
    struct timeval limit = {.tv_sec = 1};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    alarm_in(200, SA_RESTART);
    int refused = connect(fd, (struct sockaddr *)&name, sizeof name);
    check("connect: waits on after a signal with SA_RESTART",
          !made && refused == -1 && errno == EINPROGRESS && handled == SIGALRM);
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    double start = now();
    alarm_in(200, 0);
    refused = connect(fd, (struct sockaddr *)&name, sizeof name);
    check("connect: a signal ends it", refused == -1 && errno == EINTR && now() < start + 5);
    close(fd);
    close(silent);
}

static void processes(const char *program) {
    int peer, fd = connected(&peer), status = -1;
    char buffer[16], number[16];
    pid_t child = fork();
    if (child == 0) {
        struct sctp_status found;
        socklen_t size = sizeof found;
        int own = connected(&peer);
        _exit(send(fd, "child", 5, 0) == 5 && own >= 0 && send(own, "own", 3, 0) == 3 &&
              recv(peer, buffer, sizeof buffer, 0) == 3 &&
              getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &found, &size) == 0 ? 0 : 1);
    }
    waitpid(child, &status, 0);
    check("fork: a child uses its parent's sockets and its own",
          status == 0 && recv(peer, buffer, sizeof buffer, 0) == 5);

    child = fork();
    if (child == 0) {
        snprintf(number, sizeof number, "%d", fd);
        execl(program, program, "after-exec", number, NULL);
        _exit(2);
    }
    waitpid(child, &status, 0);
    check("exec: the program uses the socket", status == 0 && recv(peer, buffer, sizeof buffer, 0) == 4);

    child = fork();
    if (child == 0)
        _exit(recv(fd, buffer, sizeof buffer, 0) == 4 ? 0 : 1);
    usleep(200000);
    kill(child, SIGSTOP);
    waitpid(child, &status, WUNTRACED);
    int stopped = WIFSTOPPED(status);
    kill(child, SIGCONT);
    send(peer, "back", 4, 0);
    waitpid(child, &status, 0);
    check("SIGSTOP, SIGCONT: a call that waits goes on", stopped && status == 0);

    child = fork();
    if (child == 0) {
        execl(program, program, "waits", NULL);
        _exit(2);
    }
    close(fd);
    usleep(200000);
    check("close: a child has the socket",
          recv(peer, buffer, sizeof buffer, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    check("kill: the end of the last process ends the association", recv(peer, buffer, sizeof buffer, 0) == 0);
    close(peer);
}

/* The threads of the supervisor. */
static int supervisors_threads(void) {
    char path[64], line[256];
    int count = -1;
    snprintf(path, sizeof path, "/proc/%d/status", getppid());
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "Threads: %d", &count);
    if (file)
        fclose(file);
    return count;
}

static void *reads(void *fd) {
    char byte;
    return (void *)recv(*(int *)fd, &byte, 1, 0);
}

/* A process whose threads wait is killed. */
static void ends(void) {
    int pipes[2], peer, before = supervisors_threads();
    char byte;
    if (pipe(pipes))
        return;
    pid_t child = fork();
    if (child == 0) {
        int fd = connected(&peer);
        pthread_t thread;
        for (int i = 0; i < THREADS; i++)
            pthread_create(&thread, NULL, reads, &fd);
        usleep(500000);
        (void)!write(pipes[1], "x", 1);
        pause();
    }
    int ready = read(pipes[0], &byte, 1) == 1, during = supervisors_threads(), after = -1;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    for (double until = now() + 20; now() < until; usleep(50000))
        if ((after = supervisors_threads()) <= before + 5)
            break;
    check("kill: no thread of the supervisor goes on waiting",
          ready && before > 0 && during >= THREADS && after <= before + 5);

    struct sigaction action = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &action, NULL);
    int fd = connected(&peer);
    child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    check("exit: a child's end leaves the parent's sockets", send(fd, "x", 1, 0) == 1);
    close(fd);
    close(peer);
}

static void descriptors(void) {
    int peer, fd = connected(&peer), pipes[2];
    char buffer[16];
    check("socket: its number is large, and small enough for select", fd >= 256 && fd < FD_SETSIZE);
    int copy = dup(fd), other = fcntl(fd, F_DUPFD_CLOEXEC, 600);
    check("dup, fcntl: other numbers of the same socket", copy >= 256 && other >= 600 && copy != other &&
          fcntl(other, F_GETFD) == FD_CLOEXEC && fcntl(copy, F_GETFD) == 0);
    check("dup: the copy sends", send(copy, "x", 1, 0) == 1 && recv(peer, buffer, sizeof buffer, 0) == 1);
    check("dup2: to a small number EOPNOTSUPP", dup2(fd, 50) == -1 && errno == EOPNOTSUPP);
    check("dup2: to a large number", dup2(fd, 900) == 900 && send(900, "y", 1, 0) == 1 &&
          recv(peer, buffer, sizeof buffer, 0) == 1);
    close(900);
    close(copy);
    close(other);
    check("close: of copies", send(fd, "z", 1, 0) == 1 && recv(peer, buffer, sizeof buffer, 0) == 1);

    /* Other descriptors with numbers that stop. */
    check("pipe", pipe(pipes) == 0 && dup2(pipes[0], 700) == 700 && dup2(pipes[1], 701) == 701);
    check("read, write: of a pipe with large numbers", write(701, "pipe", 4) == 4 && read(700, buffer, 16) == 4);
    close(pipes[0]);
    close(pipes[1]);
    close(701);
    check("read: the end of a pipe with large numbers", read(700, buffer, 16) == 0 && close(700) == 0);
    check("read: of a number that is not open", read(777, buffer, 1) == -1 && errno == EBADF);
    close(fd);
    close(peer);
}

int main(int count, char **words) {
    if (count == 3 && !strcmp(words[1], "after-exec")) {
        struct sctp_status found;
        socklen_t size = sizeof found;
        int fd = atoi(words[2]);
        return getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &found, &size) || send(fd, "exec", 4, 0) != 4;
    }
    struct sockaddr_in name = loopback(PORT);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP);
    if (count == 2)
        pause();
    if (bind(listener, (struct sockaddr *)&name, sizeof name) || listen(listener, 64)) {
        perror("listen");
        return 2;
    }
    descriptors();
    signals();
    connects();
    processes(words[0]);
    ends();
    return failures != 0;
}
