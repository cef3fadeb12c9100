/* One-to-many SCTP sockets (RFC 6458 3), and notifications. Prints a line for each statement, as
 * run-api.c does. The expected results are those of RFC 6458 and Linux. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run-common.h"

static int many_socket(void) {
    int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

static char buffer[4096];
static struct sctp_sndrcvinfo info;
static struct sockaddr_in from;

/* Receives a message, or notification, and returns its size; the rest is in the variables above. */
static int receive(int fd, int *flags) {
    socklen_t size = sizeof from;
    memset(&info, 0, sizeof info);
    *flags = 0;
    return sctp_recvmsg(fd, buffer, sizeof buffer, (struct sockaddr *)&from, &size, &info, flags);
}

/* Receives until a notification of this type arrives; 0 if none does. */
static int notified(int fd, int type) {
    int flags, size;
    while ((size = receive(fd, &flags)) > 0)
        if (flags & MSG_NOTIFICATION && ((struct sctp_shutdown_event *)buffer)->sse_type == type)
            return size;
    return 0;
}

static int next_message(int fd) {
    int flags, size;
    while ((size = receive(fd, &flags)) > 0)
        if (!(flags & MSG_NOTIFICATION))
            return size;
    return size;
}

static int number(int fd) {
    uint32_t count = 99;
    socklen_t size = sizeof count;
    return getsockopt(fd, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER, &count, &size) == 0 ? (int)count : -1;
}

static void subscribe(int fd, int type) {
    struct sctp_event event = {.se_assoc_id = SCTP_ALL_ASSOC, .se_type = type, .se_on = 1};
    setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event);
}

static int server;

static void begin(void) {
    struct sockaddr_in name = loopback(5000);
    server = many_socket();
    check("SOCK_SEQPACKET: gives a descriptor", server >= 0);
    int value = 0;
    socklen_t size = sizeof value;
    check("SO_TYPE: is SOCK_SEQPACKET",
          getsockopt(server, SOL_SOCKET, SO_TYPE, &value, &size) == 0 && value == SOCK_SEQPACKET);
    struct sctp_event_subscribe events = {.sctp_data_io_event = 1, .sctp_association_event = 1,
                                          .sctp_shutdown_event = 1};
    setsockopt(server, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events);
    check("bind: of a one-to-many socket", bind(server, (struct sockaddr *)&name, sizeof name) == 0);
    check("listen: of a one-to-many socket", listen(server, 1) == 0);
    check("accept: EOPNOTSUPP on a one-to-many socket",
          accept(server, NULL, NULL) == -1 && errno == EOPNOTSUPP);
    fcntl(server, F_SETFL, O_NONBLOCK);
    check("recv: EAGAIN without an association", recv(server, buffer, 1, 0) == -1 && errno == EAGAIN);
    fcntl(server, F_SETFL, 0);
    check("send: EPIPE without an address", send(server, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    check("SCTP_GET_ASSOC_NUMBER: is 0 at first", number(server) == 0);
}

static void exchange(void) {
    struct sockaddr_in to = loopback(5000);
    int client = many_socket(), other = many_socket(), flags;
    struct sctp_event_subscribe events = {.sctp_data_io_event = 1, .sctp_association_event = 1};
    setsockopt(client, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events);
    check("sendto: opens an association",
          sendto(client, "hello", 5, 0, (struct sockaddr *)&to, sizeof to) == 5);
    int size = receive(server, &flags);
    struct sctp_assoc_change *change = (struct sctp_assoc_change *)buffer;
    check("SCTP_ASSOC_CHANGE: SCTP_COMM_UP comes first",
          size >= (int)sizeof *change && flags & MSG_NOTIFICATION && change->sac_type == SCTP_ASSOC_CHANGE &&
              change->sac_state == SCTP_COMM_UP && change->sac_outbound_streams > 0);
    sctp_assoc_t first = change->sac_assoc_id;
    size = receive(server, &flags);
    check("sctp_recvmsg: has the association's id and the peer's address",
          size == 5 && info.sinfo_assoc_id == first && from.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    struct sockaddr_in client_name = from;
    check("SCTP_GET_ASSOC_NUMBER: counts", number(server) == 1);
    struct {
        uint32_t count;
        sctp_assoc_t ids[4];
    } list;
    socklen_t length = sizeof list;
    check("SCTP_GET_ASSOC_ID_LIST: lists",
          getsockopt(server, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, &list, &length) == 0 && list.count == 1 &&
              list.ids[0] == first);
    info.sinfo_stream = 2;
    info.sinfo_assoc_id = first;
    struct iovec part = {"by id", 5};
    char control[CMSG_SPACE(sizeof info)];
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = (struct cmsghdr *)control;
    header->cmsg_level = IPPROTO_SCTP;
    header->cmsg_type = SCTP_SNDRCV;
    header->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(header), &info, sizeof info);
    check("sendmsg: to an association's id", sendmsg(server, &message, 0) == 5);
    check("recvmsg: at the peer", next_message(client) == 5 && info.sinfo_stream == 2);
    check("sendto: to the address of an association",
          sendto(server, "addr", 4, 0, (struct sockaddr *)&client_name, sizeof client_name) == 4 &&
              next_message(client) == 4 && number(server) == 1);

    sctp_assoc_t id = 0;
    check("sctp_connectx: returns the association's id",
          sctp_connectx(other, (struct sockaddr *)&to, 1, &id) == 0 && id != 0 && number(other) == 1);
    check("connect: EISCONN to the same peer",
          connect(other, (struct sockaddr *)&to, sizeof to) == -1 && errno == EISCONN);
    check("SCTP_ASSOC_CHANGE: of the second association", notified(server, SCTP_ASSOC_CHANGE) > 0);
    sctp_assoc_t second = ((struct sctp_assoc_change *)buffer)->sac_assoc_id;
    check("SCTP_GET_ASSOC_NUMBER: counts both", number(server) == 2 && first != second);
    struct sctp_status status;
    memset(&status, 0, sizeof status);
    length = sizeof status;
    check("SCTP_STATUS: of an association",
          sctp_opt_info(server, second, SCTP_STATUS, &status, &length) == 0 &&
              status.sstat_assoc_id == second && status.sstat_state == SCTP_ESTABLISHED);
    check("SCTP_STATUS: EINVAL without such an association",
          sctp_opt_info(server, 12345, SCTP_STATUS, &status, &length) == -1 && errno == EINVAL);
    struct sockaddr *peers;
    int count = sctp_getpaddrs(server, second, &peers);
    check("sctp_getpaddrs: of an association", count >= 1);
    if (count > 0)
        sctp_freepaddrs(peers);

    memset(&info, 0, sizeof info);
    info.sinfo_flags = SCTP_SENDALL;
    memcpy(CMSG_DATA(header), &info, sizeof info);
    check("SCTP_SENDALL: reaches every peer",
          sendmsg(server, &message, 0) == 5 && next_message(client) == 5 && next_message(other) == 5);

    /* Messages wait in the socket while the association is peeled off. */
    sendto(other, "queued", 6, 0, (struct sockaddr *)&to, sizeof to);
    sendto(client, "stays", 5, 0, (struct sockaddr *)&to, sizeof to);
    wait_for(server, POLLIN);
    usleep(300000);
    int peeled = sctp_peeloff(server, second);
    check("sctp_peeloff: gives a descriptor", peeled >= 0 && number(server) == 1);
    check("sctp_peeloff: takes the messages that wait",
          wait_for(peeled, POLLIN) && recv(peeled, buffer, sizeof buffer, 0) == 6);
    check("sctp_peeloff: leaves the other associations'", next_message(server) == 5 &&
                                                              info.sinfo_assoc_id == first);
    check("sctp_peeloff: the new socket sends and receives",
          send(peeled, "out", 3, 0) == 3 && next_message(other) == 3 &&
              sendto(other, "in", 2, 0, (struct sockaddr *)&to, sizeof to) == 2 && wait_for(peeled, POLLIN) &&
              recv(peeled, buffer, sizeof buffer, 0) == 2);
    check("sctp_peeloff: EINVAL without such an association",
          sctp_peeloff(server, second) == -1 && errno == EINVAL);
    int sent = sctp_sendmsg(other, NULL, 0, (struct sockaddr *)&to, sizeof to, 0, SCTP_EOF, 0, 0, 0);
    check("SCTP_EOF: ends the association",
          sent == 0 && notified(peeled, SCTP_ASSOC_CHANGE) > 0 &&
              ((struct sctp_assoc_change *)buffer)->sac_state == SCTP_SHUTDOWN_COMP);
    struct pollfd readable = {.fd = peeled, .events = POLLIN};
    poll(&readable, 1, 1000);
    check("sctp_peeloff: the new socket ends with the association",
          recv(peeled, buffer, sizeof buffer, MSG_DONTWAIT) == 0);
    close(peeled);
    check("SCTP_EOF: EINVAL with data",
          sctp_sendmsg(client, "x", 1, (struct sockaddr *)&to, sizeof to, 0, SCTP_EOF, 0, 0, 0) == -1 &&
              errno == EINVAL);
    check("SCTP_ABORT: aborts",
          sctp_sendmsg(client, "why", 3, (struct sockaddr *)&to, sizeof to, 0, SCTP_ABORT, 0, 0, 0) == 0 &&
              notified(server, SCTP_ASSOC_CHANGE) > 0 &&
              ((struct sctp_assoc_change *)buffer)->sac_state == SCTP_COMM_LOST &&
              ((struct sctp_assoc_change *)buffer)->sac_assoc_id == first);
    check("SCTP_GET_ASSOC_NUMBER: is 0 again", number(server) == 0);
    struct sockaddr_in nobody = loopback(5001);
    sendto(client, "x", 1, 0, (struct sockaddr *)&nobody, sizeof nobody);
    int lost = 0;
    while (!lost && notified(client, SCTP_ASSOC_CHANGE) > 0)
        lost = ((struct sctp_assoc_change *)buffer)->sac_state == SCTP_CANT_STR_ASSOC;
    check("SCTP_CANT_STR_ASSOC: if nobody listens", lost);
    close(client);
    close(other);
}

static void closing(void) {
    struct sockaddr_in to = loopback(5000);
    int client = many_socket(), flags;
    int seconds = 1;
    check("SCTP_AUTOCLOSE: is set",
          setsockopt(client, IPPROTO_SCTP, SCTP_AUTOCLOSE, &seconds, sizeof seconds) == 0);
    int stream = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    check("SCTP_AUTOCLOSE: EOPNOTSUPP on a one-to-one socket",
          setsockopt(stream, IPPROTO_SCTP, SCTP_AUTOCLOSE, &seconds, sizeof seconds) == -1 && errno == EOPNOTSUPP);
    close(stream);
    sendto(client, "x", 1, 0, (struct sockaddr *)&to, sizeof to);
    check("SCTP_SHUTDOWN_EVENT: once the association was idle",
          notified(server, SCTP_SHUTDOWN_EVENT) == sizeof(struct sctp_shutdown_event));
    check("SCTP_SHUTDOWN_COMP: follows", notified(server, SCTP_ASSOC_CHANGE) > 0 &&
                                            ((struct sctp_assoc_change *)buffer)->sac_state == SCTP_SHUTDOWN_COMP);
    close(client);

    client = many_socket();
    subscribe(client, SCTP_SENDER_DRY_EVENT);
    sendto(client, "last", 4, 0, (struct sockaddr *)&to, sizeof to);
    check("SCTP_SENDER_DRY_EVENT: once everything is acknowledged",
          notified(client, SCTP_SENDER_DRY_EVENT) == sizeof(struct sctp_sender_dry_event));
    close(client);
    int got = next_message(server);
    check("close: of a one-to-many socket is graceful",
          got == 4 && notified(server, SCTP_ASSOC_CHANGE) > 0 &&
              ((struct sctp_assoc_change *)buffer)->sac_state == SCTP_SHUTDOWN_COMP);

    client = many_socket();
    sendto(client, "fork", 4, 0, (struct sockaddr *)&to, sizeof to);
    while (receive(server, &flags) > 0 && flags & MSG_NOTIFICATION)
        ;
    struct sockaddr_in name = from;
    pid_t child = fork();
    if (child == 0)
        _exit(sendto(server, "child", 5, 0, (struct sockaddr *)&name, sizeof name) == 5 ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    check("fork: a child sends on a one-to-many socket", status == 0 && next_message(client) == 5);
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(client);
    check("SO_LINGER: 0 seconds abort a one-to-many socket's associations",
          notified(server, SCTP_ASSOC_CHANGE) > 0 &&
              ((struct sctp_assoc_change *)buffer)->sac_state == SCTP_COMM_LOST);
    check("listen: 0 ends the acceptance of associations", listen(server, 0) == 0);
    client = many_socket();
    check("connect: ECONNREFUSED then",
          connect(client, (struct sockaddr *)&to, sizeof to) == -1 && errno == ECONNREFUSED);
    close(client);
    int refused = 0;
    for (int i = 0; i < 100; i++) {
        client = many_socket();
        fcntl(client, F_SETFL, O_NONBLOCK);
        refused += connect(client, (struct sockaddr *)&to, sizeof to) != -1 || errno != EINPROGRESS;
        close(client);
    }
    check("connect: EINPROGRESS if non-blocking, however soon it is refused", refused == 0);
    close(server);
}

int main(void) {
    alarm(90);
    begin();
    exchange();
    closing();
    return failures != 0;
}
