/* Exercises the socket API for SCTP (RFC 6458) on one-to-one sockets and prints a line for each
 * statement: "ok NAME: TEXT" or "failed NAME: TEXT". The expected results are those of RFC 6458 and
 * of Linux. Both ends are in this process. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run-common.h"

static int sctp_socket(void) { return socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP); }

/* Options before the association, and errors of sockets that are not connected. */
static void before(void) {
    int fd = sctp_socket();
    check("socket: SOCK_STREAM gives a descriptor", fd >= 0);
    int value = 0;
    socklen_t size = sizeof value;
    check("SO_TYPE: is SOCK_STREAM",
          getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &size) == 0 && value == SOCK_STREAM);
    check("SO_PROTOCOL: is IPPROTO_SCTP",
          getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &value, &size) == 0 && value == IPPROTO_SCTP);
    char byte;
    check("recv: ENOTCONN before connect", recv(fd, &byte, 1, 0) == -1 && errno == ENOTCONN);
    check("send: EPIPE before connect", send(fd, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    struct sockaddr_in name;
    size = sizeof name;
    check("getpeername: ENOTCONN before connect",
          getpeername(fd, (struct sockaddr *)&name, &size) == -1 && errno == ENOTCONN);
    struct sctp_initmsg init = {.sinit_num_ostreams = 5, .sinit_max_instreams = 7};
    struct sctp_initmsg got;
    size = sizeof got;
    check("SCTP_INITMSG: keeps fields that are 0",
          setsockopt(fd, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init) == 0 &&
              getsockopt(fd, IPPROTO_SCTP, SCTP_INITMSG, &got, &size) == 0 && got.sinit_num_ostreams == 5 &&
              got.sinit_max_instreams == 7 && got.sinit_max_attempts == 8);
    check("SCTP_INITMSG: EINVAL if too short",
          setsockopt(fd, IPPROTO_SCTP, SCTP_INITMSG, &init, 2) == -1 && errno == EINVAL);
    struct sctp_rtoinfo rto = {.srto_min = 300, .srto_max = 2000, .srto_initial = 500}, rto_got = {0};
    size = sizeof rto_got;
    check("SCTP_RTOINFO: is returned as set",
          setsockopt(fd, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto) == 0 &&
              getsockopt(fd, IPPROTO_SCTP, SCTP_RTOINFO, &rto_got, &size) == 0 && rto_got.srto_min == 300 &&
              rto_got.srto_max == 2000 && rto_got.srto_initial == 500);
    rto.srto_min = 3000;
    check("SCTP_RTOINFO: EINVAL if the minimum exceeds the maximum",
          setsockopt(fd, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto) == -1 && errno == EINVAL);
    struct sctp_assocparams assoc = {.sasoc_asocmaxrxt = 4}, assoc_got = {0};
    size = sizeof assoc_got;
    check("SCTP_ASSOCINFO: keeps Association.Max.Retrans",
          setsockopt(fd, IPPROTO_SCTP, SCTP_ASSOCINFO, &assoc, sizeof assoc) == 0 &&
              getsockopt(fd, IPPROTO_SCTP, SCTP_ASSOCINFO, &assoc_got, &size) == 0 &&
              assoc_got.sasoc_asocmaxrxt == 4);
    struct sctp_paddrparams path = {.spp_hbinterval = 7000}, path_got = {0};
    setsockopt(fd, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path, sizeof path);
    size = sizeof path_got;
    check("SCTP_PEER_ADDR_PARAMS: ignores the interval without SPP_HB_ENABLE",
          getsockopt(fd, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path_got, &size) == 0 &&
              path_got.spp_hbinterval == 30000);
    path = (struct sctp_paddrparams){.spp_hbinterval = 5000, .spp_pathmaxrxt = 3, .spp_flags = SPP_HB_ENABLE};
    size = sizeof path_got;
    check("SCTP_PEER_ADDR_PARAMS: is returned as set",
          setsockopt(fd, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path, sizeof path) == 0 &&
              getsockopt(fd, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path_got, &size) == 0 &&
              path_got.spp_hbinterval == 5000 && path_got.spp_pathmaxrxt == 3);
    value = 1;
    int nodelay = 0;
    size = sizeof nodelay;
    check("SCTP_NODELAY: is returned as set",
          setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &value, sizeof value) == 0 &&
              getsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &nodelay, &size) == 0 && nodelay == 1);
    check("setsockopt: ENOPROTOOPT for unknown options",
          setsockopt(fd, IPPROTO_SCTP, 99, &value, sizeof value) == -1 && errno == ENOPROTOOPT);
    struct sockaddr_in far = {.sin_family = AF_INET};
    inet_pton(AF_INET, "192.0.2.1", &far.sin_addr);
    check("bind: EADDRNOTAVAIL for other hosts' addresses",
          bind(fd, (struct sockaddr *)&far, sizeof far) == -1 && errno == EADDRNOTAVAIL);
    struct sockaddr_in any = loopback(0);
    size = sizeof name;
    check("bind: port 0 chooses a port",
          bind(fd, (struct sockaddr *)&any, sizeof any) == 0 &&
              getsockname(fd, (struct sockaddr *)&name, &size) == 0 && name.sin_port != 0);
    check("bind: EINVAL the second time",
          bind(fd, (struct sockaddr *)&any, sizeof any) == -1 && errno == EINVAL);
    check("close: returns 0, then EBADF", close(fd) == 0 && close(fd) == -1 && errno == EBADF);
}

static int listener;

/* A connected pair; `options` are called on the new socket before connect. */
static int connected(int *accepted) {
    struct sockaddr_in server = loopback(5000);
    int client = sctp_socket();
    if (connect(client, (struct sockaddr *)&server, sizeof server) != 0)
        return -1;
    *accepted = accept(listener, NULL, NULL);
    return client;
}

static void connecting(void) {
    listener = sctp_socket();
    struct sockaddr_in server = loopback(5000), name;
    struct sctp_event_subscribe events = {.sctp_data_io_event = 1};
    check("sctp_bindx: binds",
          sctp_bindx(listener, (struct sockaddr *)&server, 1, 1 /* SCTP_BINDX_ADD_ADDR */) == 0);
    check("SCTP_EVENTS: are inherited from the listening socket",
          setsockopt(listener, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events) == 0);
    check("listen: returns 0", listen(listener, 5) == 0);
    fcntl(listener, F_SETFL, O_NONBLOCK);
    check("accept: EAGAIN without an association", accept(listener, NULL, NULL) == -1 && errno == EAGAIN);
    fcntl(listener, F_SETFL, 0);

    int client = sctp_socket();
    fcntl(client, F_SETFL, O_NONBLOCK);
    check("connect: EINPROGRESS if non-blocking",
          connect(client, (struct sockaddr *)&server, sizeof server) == -1 && errno == EINPROGRESS);
    int error = -1;
    socklen_t size = sizeof error;
    check("poll: POLLOUT once connected", wait_for(client, POLLOUT) & POLLOUT);
    check("SO_ERROR: is 0 once connected",
          getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0);
    check("connect: EISCONN once connected",
          connect(client, (struct sockaddr *)&server, sizeof server) == -1 && errno == EISCONN);
    check("poll: POLLIN on a listening socket", wait_for(listener, POLLIN) & POLLIN);
    size = sizeof name;
    int accepted = accept4(listener, (struct sockaddr *)&name, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    check("accept4: sets the flags", accepted >= 0 && fcntl(accepted, F_GETFD) == FD_CLOEXEC &&
                                         fcntl(accepted, F_GETFL) & O_NONBLOCK);
    int waits = 0;
    for (int i = 0; i < 50; i++) {
        int other = sctp_socket();
        char byte;
        fcntl(other, F_SETFL, O_NONBLOCK);
        connect(other, (struct sockaddr *)&server, sizeof server);
        waits += recv(other, &byte, 1, 0) == -1 && errno == EAGAIN;
        wait_for(other, POLLOUT);
        close(accept(listener, NULL, NULL));
        close(other);
    }
    check("recv: EAGAIN after a non-blocking connect", waits == 50);
    struct sockaddr_in own;
    socklen_t own_size = sizeof own;
    getsockname(client, (struct sockaddr *)&own, &own_size);
    check("accept4: returns the peer's address", name.sin_port == own.sin_port &&
                                                     name.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    char buffer[8];
    check("recv: EAGAIN without a message", recv(accepted, buffer, 8, 0) == -1 && errno == EAGAIN);
    size = sizeof name;
    check("getpeername: is the peer", getpeername(client, (struct sockaddr *)&name, &size) == 0 &&
                                          ntohs(name.sin_port) == 5000);
    struct sockaddr *list;
    int count = sctp_getpaddrs(client, 0, &list);
    check("sctp_getpaddrs: lists the peer",
          count >= 1 && ((struct sockaddr_in *)list)->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    if (count > 0)
        sctp_freepaddrs(list);
    count = sctp_getladdrs(listener, 0, &list);
    check("sctp_getladdrs: lists the bound address",
          count == 1 && ntohs(((struct sockaddr_in *)list)->sin_port) == 5000);
    if (count > 0)
        sctp_freeladdrs(list);
    struct sctp_status status;
    size = sizeof status;
    memset(&status, 0, sizeof status);
    check("SCTP_STATUS: established, with 10 streams",
          sctp_opt_info(client, 0, SCTP_STATUS, &status, &size) == 0 && status.sstat_state == 4 &&
              status.sstat_outstrms == 10 && status.sstat_primary.spinfo_state == 2);
    close(client);
    check("recv: 0 after the peer's close", wait_for(accepted, POLLIN) && recv(accepted, buffer, 8, 0) == 0);
    close(accepted);

    struct sockaddr_in nobody = loopback(5001);
    client = sctp_socket();
    check("connect: ECONNREFUSED if nobody listens",
          connect(client, (struct sockaddr *)&nobody, sizeof nobody) == -1 && errno == ECONNREFUSED);
    check("sctp_connectx: connects after a failure",
          sctp_connectx(client, (struct sockaddr *)&server, 1, NULL) == 0);
    close(accept(listener, NULL, NULL));
    close(client);
}

static void messages(void) {
    int peer, client = connected(&peer), flags = 0;
    char buffer[4096];
    struct sctp_sndrcvinfo info;
    memset(&info, 0, sizeof info);
    check("sctp_sendmsg: sends", sctp_sendmsg(client, "hello", 5, NULL, 0, htonl(46), SCTP_UNORDERED, 3, 0, 0) == 5);
    check("sctp_recvmsg: returns stream, PPID and flags",
          sctp_recvmsg(peer, buffer, sizeof buffer, NULL, NULL, &info, &flags) == 5 && flags & MSG_EOR &&
              info.sinfo_stream == 3 && info.sinfo_ppid == htonl(46) && info.sinfo_flags & SCTP_UNORDERED &&
              memcmp(buffer, "hello", 5) == 0);
    send(client, "one", 3, 0);
    send(client, "two", 3, 0);
    check("recv: keeps message boundaries",
          recv(peer, buffer, sizeof buffer, 0) == 3 && recv(peer, buffer, sizeof buffer, 0) == 3);
    send(client, "partial", 7, 0);
    struct iovec part = {buffer, 4};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    int first = recvmsg(peer, &message, 0), first_end = message.msg_flags & MSG_EOR;
    int readable = wait_for(peer, POLLIN) & POLLIN;
    message.msg_control = NULL;
    message.msg_controllen = 0;
    int second = recvmsg(peer, &message, 0), second_end = message.msg_flags & MSG_EOR;
    check("MSG_EOR: only with the last part of a message",
          first == 4 && !first_end && readable && second == 3 && second_end);
    send(client, "peek", 4, 0);
    check("MSG_PEEK: leaves the message", recv(peer, buffer, 4096, MSG_PEEK) == 4 && recv(peer, buffer, 4096, 0) == 4);
    check("send: EINVAL without data", send(client, "", 0, 0) == -1 && errno == EINVAL);
    check("sctp_sendmsg: EINVAL on a stream that does not exist",
          sctp_sendmsg(client, "x", 1, NULL, 0, 0, 0, 10, 0, 0) == -1 && errno == EINVAL);
    struct iovec parts[2] = {{"ab", 2}, {"cd", 2}};
    check("writev: is one message", writev(client, parts, 2) == 4 && read(peer, buffer, 4096) == 4);
    int on = 1;
    char control[256];
    check("SCTP_RECVRCVINFO: is set", setsockopt(peer, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) == 0);
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct sctp_sndinfo))];
    } request;
    memset(&request, 0, sizeof request);
    struct msghdr outgoing = {.msg_iov = parts, .msg_iovlen = 1, .msg_control = &request, .msg_controllen = sizeof request};
    request.header.cmsg_level = IPPROTO_SCTP;
    request.header.cmsg_type = SCTP_SNDINFO;
    request.header.cmsg_len = CMSG_LEN(sizeof(struct sctp_sndinfo));
    struct sctp_sndinfo snd = {.snd_sid = 2, .snd_ppid = htonl(60)};
    memcpy(CMSG_DATA(&request.header), &snd, sizeof snd);
    check("SCTP_SNDINFO: sends", sendmsg(client, &outgoing, 0) == 2);
    part.iov_len = sizeof buffer;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    int found = 0;
    if (recvmsg(peer, &message, 0) == 2)
        for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
            struct sctp_rcvinfo rcv;
            memcpy(&rcv, CMSG_DATA(one), sizeof rcv);
            if (one->cmsg_level == IPPROTO_SCTP && one->cmsg_type == SCTP_RCVINFO)
                found = rcv.rcv_sid == 2 && rcv.rcv_ppid == htonl(60);
        }
    check("SCTP_RCVINFO: is received", found);
    static char large[150000], got[150000];
    memset(large, 7, sizeof large);
    int sent = send(client, large, sizeof large, 0), arrived = 0, size = 1;
    for (flags = 0; size > 0 && !(flags & MSG_EOR); arrived += size)
        size = sctp_recvmsg(peer, got + arrived, sizeof got - arrived, NULL, NULL, NULL, &flags);
    check("send: 150000 bytes are one message",
          sent == sizeof large && arrived == sizeof got && memcmp(large, got, sizeof got) == 0);
    int copy = dup(client);
    check("dup: the association lasts until the last close",
          close(client) == 0 && send(copy, "dup", 3, 0) == 3 && recv(peer, buffer, 4096, 0) == 3);
    pid_t child = fork();
    if (child == 0) {
        send(copy, "fork", 4, 0);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    check("fork: a child sends on an inherited socket", recv(peer, buffer, 4096, 0) == 4);
    check("shutdown: SHUT_WR ends the association",
          shutdown(copy, SHUT_WR) == 0 && recv(peer, buffer, 4096, 0) == 0);
    check("send: EPIPE after the end", send(peer, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    close(copy);
    close(peer);
}

static void forks(void) {
    pid_t child = fork();
    if (child == 0) {
        struct sockaddr_in server = loopback(5000);
        int client = sctp_socket();
        if (connect(client, (struct sockaddr *)&server, sizeof server) != 0)
            _exit(1);
        send(client, "child", 5, 0);
        _exit(0);
    }
    int peer = accept(listener, NULL, NULL);
    char buffer[16];
    check("fork: a child opens sockets of its own", recv(peer, buffer, sizeof buffer, 0) == 5);
    waitpid(child, NULL, 0);
    close(peer);
}

static void ends(void) {
    int peer, client = connected(&peer);
    char buffer[64];
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(client);
    check("SO_LINGER: 0 seconds abort, ECONNRESET at the peer",
          wait_for(peer, POLLIN) && recv(peer, buffer, sizeof buffer, 0) == -1 && errno == ECONNRESET);
    close(peer);

    client = connected(&peer);
    struct sctp_event event = {.se_type = SCTP_SHUTDOWN_EVENT, .se_on = 1};
    check("SCTP_EVENT: subscribes", setsockopt(peer, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
    send(client, "last", 4, 0);
    close(client);
    int flags = 0, first = sctp_recvmsg(peer, buffer, sizeof buffer, NULL, NULL, NULL, &flags);
    int notified = sctp_recvmsg(peer, buffer, sizeof buffer, NULL, NULL, NULL, &flags);
    struct sctp_shutdown_event *shutdown_event = (struct sctp_shutdown_event *)buffer;
    check("SCTP_SHUTDOWN_EVENT: follows the data",
          first == 4 && notified == sizeof *shutdown_event && flags & MSG_NOTIFICATION &&
              shutdown_event->sse_type == SCTP_SHUTDOWN_EVENT);
    close(peer);
}

int main(void) {
    alarm(40);
    before();
    connecting();
    messages();
    ends();
    forks();
    return failures != 0;
}
