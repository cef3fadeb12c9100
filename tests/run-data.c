/* Messages: sizes, flags, parts, ancillary data, defaults and notifications among them. Prints what it finds, to
 * be compared with Linux's SCTP. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "run-common.h"

int sctp_recvv(int, const struct iovec *, int, struct sockaddr *, socklen_t *, void *, socklen_t *, unsigned *, int *);
int sctp_sendv(int, const struct iovec *, int, struct sockaddr *, int, void *, socklen_t, unsigned, int);

/* netinet/sctp.h has them. */
enum { SENDV_NOINFO, SENDV_SNDINFO, SENDV_PRINFO, SENDV_AUTHINFO, SENDV_SPA };
struct spa {
    uint32_t flags;
    struct sctp_sndinfo snd;
    struct sctp_prinfo pr;
    struct sctp_authinfo auth;
};

static int client, peer, listener;
static char buffer[4096];

static void limited(int fd) {
    struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

static int set(int fd, int name, const void *value, socklen_t size) {
    return setsockopt(fd, IPPROTO_SCTP, name, value, size);
}

static void turn(int fd, int name, int on) { set(fd, name, &on, sizeof on); }

static void connected(void) {
    struct sockaddr_in server = loopback(5000);
    client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    limited(client);
    if (connect(client, (struct sockaddr *)&server, sizeof server) != 0)
        exit(2);
    peer = accept(listener, NULL, NULL);
    limited(peer);
    turn(client, SCTP_NODELAY, 1);
}

static void aborts(int fd) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

/* Waits until the peer has everything. */
static void acknowledged(int fd) {
    struct sctp_status status;
    for (int i = 0; i < 1000; i++) {
        socklen_t size = sizeof status;
        memset(&status, 0, sizeof status);
        usleep(5000);
        if (getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &status, &size) != 0 || status.sstat_unackdata == 0)
            break;
    }
}

static char text[4][600];
static unsigned next;

static const char *flags_of(int flags) {
    char *to = text[next++ % 4];
    sprintf(to, "%s%s%s%s", flags & MSG_EOR ? " EOR" : "", flags & MSG_TRUNC ? " TRUNC" : "",
            flags & MSG_CTRUNC ? " CTRUNC" : "", flags & MSG_NOTIFICATION ? " NOTIFICATION" : "");
    return to;
}

/* The control messages of a message, without what differs from run to run. */
static const char *control_of(struct msghdr *message) {
    char *to = text[next++ % 4];
    sprintf(to, ", control %d", (int)message->msg_controllen);
    for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one)) {
        int size = one->cmsg_len - CMSG_LEN(0);
        sprintf(to + strlen(to), ", type %d with %d bytes", one->cmsg_type, size);
        if (one->cmsg_type == SCTP_RCVINFO && size == sizeof(struct sctp_rcvinfo)) {
            struct sctp_rcvinfo info;
            memcpy(&info, CMSG_DATA(one), sizeof info);
            sprintf(to + strlen(to), " (stream %d ssn %d flags %x ppid %u context %u)", info.rcv_sid, info.rcv_ssn,
                    info.rcv_flags, ntohl(info.rcv_ppid), info.rcv_context);
        } else if (one->cmsg_type == SCTP_SNDRCV && size == sizeof(struct sctp_sndrcvinfo)) {
            struct sctp_sndrcvinfo info;
            memcpy(&info, CMSG_DATA(one), sizeof info);
            sprintf(to + strlen(to), " (stream %d ssn %d flags %x ppid %u context %u time %u)", info.sinfo_stream,
                    info.sinfo_ssn, info.sinfo_flags, ntohl(info.sinfo_ppid), info.sinfo_context,
                    info.sinfo_timetolive);
        } else if (one->cmsg_type == SCTP_NXTINFO && size == sizeof(struct sctp_nxtinfo)) {
            struct sctp_nxtinfo info;
            memcpy(&info, CMSG_DATA(one), sizeof info);
            sprintf(to + strlen(to), " (stream %d flags %x ppid %u length %u)", info.nxt_sid, info.nxt_flags,
                    ntohl(info.nxt_ppid), info.nxt_length);
        }
    }
    return to;
}

/* recvmsg with room for so many bytes, and so much ancillary data. */
static const char *receives(int fd, size_t room, size_t control_room, int how) {
    static char control[512], line[900];
    struct sockaddr_in from = {0};
    struct iovec part = {buffer, room};
    struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &part, .msg_iovlen = 1,
                             .msg_control = control_room ? control : NULL, .msg_controllen = control_room};
    int size = recvmsg(fd, &message, how);
    if (size < 0)
        return result(size);
    snprintf(line, sizeof line, "%d%s%s, name %d", size, flags_of(message.msg_flags), control_of(&message),
             (int)message.msg_namelen);
    return line;
}

/* sendmsg with a control message. */
static int sends(int fd, int level, int type, const void *data, size_t size, const char *what) {
    char control[256] = {0};
    struct iovec part = {(void *)what, strlen(what)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = CMSG_SPACE(size)};
    struct cmsghdr *header = (struct cmsghdr *)control;
    header->cmsg_level = level;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(header), data, size);
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static const char *tells(int fd, uint16_t stream, uint16_t flags, size_t size) {
    struct sctp_sndinfo info = {.snd_sid = stream, .snd_flags = flags, .snd_ppid = htonl(9), .snd_context = 5};
    return result(sends(fd, IPPROTO_SCTP, SCTP_SNDINFO, &info, size, "info"));
}

/* Sends a message and says how much of it arrives. */
static void whole(const char *what, char *bytes, size_t size) {
    static char got[300000];
    size_t received = 0;
    ssize_t some = 0;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 7);
    found(what, "%s", result(send(client, bytes, size, 0)));
    while (received < size && (some = recv(peer, got + received, sizeof got - received, 0)) > 0)
        received += some;
    char name[100];
    snprintf(name, sizeof name, "%s: what arrives", what);
    found(name, "%zu, %s", received, memcmp(got, bytes, received) ? "others" : "the same");
}

static void sizes(void) {
    connected();
    found("send: no bytes", "%s", result(send(client, "", 0, 0)));
    struct msghdr none = {0};
    found("sendmsg: no part", "%s", result(sendmsg(client, &none, 0)));
    static char large[300000];
    found("send: 300000 bytes", "%s", result(send(client, large, sizeof large, MSG_DONTWAIT)));
    whole("send: 200000 bytes", large, 200000);
    int size = sizeof large;
    found("SO_SNDBUF: 300000", "%s", result(setsockopt(client, SOL_SOCKET, SO_SNDBUF, &size, sizeof size)));
    whole("send: 300000 bytes, SO_SNDBUF of as many", large, sizeof large);
    found("recv: nothing, MSG_DONTWAIT", "%s", receives(peer, 10, 0, MSG_DONTWAIT));
    send(client, "0123456789", 10, 0);
    wait_for(peer, POLLIN);
    found("MSG_PEEK: a part", "%s", receives(peer, 4, 0, MSG_PEEK));
    found("MSG_PEEK: all", "%s", receives(peer, 40, 0, MSG_PEEK));
    found("recv: into no bytes", "%s", receives(peer, 0, 0, 0));
    found("MSG_TRUNC: a part", "%s", receives(peer, 3, 0, MSG_TRUNC));
    found("MSG_PEEK: the rest", "%s", receives(peer, 40, 0, MSG_PEEK));
    found("MSG_WAITALL: the rest in a part", "%s", receives(peer, 5, 0, MSG_WAITALL));
    found("MSG_EOR: the last part", "%s", receives(peer, 40, 0, 0));
    found("recv: nothing is left", "%s", receives(peer, 40, 0, MSG_DONTWAIT));
    send(client, "abc", 3, 0);
    send(client, "def", 3, MSG_OOB);
    wait_for(peer, POLLIN);
    found("MSG_OOB: is received in order", "%s %.3s", receives(peer, 40, 0, 0), buffer);
    found("MSG_OOB: after it", "%s %.3s", receives(peer, 40, 0, 0), buffer);
    struct iovec parts[3] = {{"ab", 2}, {"", 0}, {"cd", 2}};
    found("writev: three parts", "%s", result(writev(client, parts, 3)));
    char one[2], two[2], three[2];
    struct iovec room[3] = {{one, 1}, {two, 2}, {three, 2}};
    found("readv: three parts", "%s %.1s%.2s%.1s", result(readv(peer, room, 3)), one, two, three);
    struct mmsghdr several[3] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 1}},
                                 {.msg_hdr = {.msg_iov = parts + 2, .msg_iovlen = 1}},
                                 {.msg_hdr = {.msg_iov = parts + 1, .msg_iovlen = 1}}};
    found("sendmmsg: the third has no bytes", "%s", result(sendmmsg(client, several, 3, 0)));
    acknowledged(client);
    struct mmsghdr two_parts[2] = {{.msg_hdr = {.msg_iov = room, .msg_iovlen = 3}},
                                   {.msg_hdr = {.msg_iov = room, .msg_iovlen = 3}}};
    found("recvmmsg: both messages", "%s", result(recvmmsg(peer, two_parts, 2, MSG_WAITFORONE, NULL)));
    found("recvmmsg: their sizes and flags", "%u%s, %u%s", two_parts[0].msg_len,
          flags_of(two_parts[0].msg_hdr.msg_flags), two_parts[1].msg_len, flags_of(two_parts[1].msg_hdr.msg_flags));
    send(client, "last", 4, 0);
    found("recv: a message after recvmmsg", "%s", receives(peer, 40, 0, 0));
    struct sockaddr_in other = loopback(5001), self = loopback(5000);
    found("sendto: a connected socket's peer", "%s",
          result(sendto(client, "x", 1, 0, (struct sockaddr *)&self, sizeof self)));
    found("sendto: a connected socket's other address", "%s",
          result(sendto(client, "x", 1, 0, (struct sockaddr *)&other, sizeof other)));
    found("sendto: an address that is too short", "%s",
          result(sendto(client, "x", 1, 0, (struct sockaddr *)&self, 5)));
    aborts(client);
    close(peer);

    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    found("sendto: opens an association of a one-to-one socket", "%s",
          result(sendto(fd, "first", 5, 0, (struct sockaddr *)&self, sizeof self)));
    peer = accept(listener, NULL, NULL);
    limited(peer);
    found("recv: its first message", "%s", receives(peer, 40, 0, 0));
    aborts(fd);
    close(peer);
}

static void info(void) {
    connected();
    turn(peer, SCTP_RECVRCVINFO, 1);
    for (int i = 0; i < 2; i++)
        send(client, "ordered", 7, 0);
    struct sctp_sndinfo snd = {.snd_sid = 3, .snd_flags = SCTP_UNORDERED, .snd_ppid = htonl(7)};
    found("SCTP_SNDINFO: unordered", "%s",
          result(sends(client, IPPROTO_SCTP, SCTP_SNDINFO, &snd, sizeof snd, "unordered")));
    snd.snd_flags = 0;
    sends(client, IPPROTO_SCTP, SCTP_SNDINFO, &snd, sizeof snd, "ordered");
    found("SCTP_RCVINFO: the first message", "%s", receives(peer, 40, 512, 0));
    found("SCTP_RCVINFO: the second message", "%s", receives(peer, 40, 512, 0));
    found("SCTP_RCVINFO: an unordered message", "%s", receives(peer, 40, 512, 0));
    found("SCTP_RCVINFO: the first on another stream", "%s", receives(peer, 40, 512, 0));
    struct sctp_event_subscribe events = {.sctp_data_io_event = 1};
    set(peer, SCTP_EVENTS, &events, sizeof events);
    struct sctp_assoc_value context = {.assoc_value = 33};
    set(peer, SCTP_CONTEXT, &context, sizeof context);
    for (int i = 0; i < 10; i++)
        send(client, "0123456789", 10, 0);
    found("SCTP_SNDRCV: after SCTP_RCVINFO", "%s", receives(peer, 40, 512, 0));
    found("SCTP_RCVINFO: with a part of a message", "%s", receives(peer, 4, 512, 0));
    found("SCTP_RCVINFO: with the rest of a message", "%s", receives(peer, 40, 512, 0));
    found("MSG_CTRUNC: no ancillary data", "%s", receives(peer, 40, 0, 0));
    found("MSG_CTRUNC: room for less than a header", "%s", receives(peer, 40, 10, 0));
    found("MSG_CTRUNC: room for a header", "%s", receives(peer, 40, CMSG_LEN(0), 0));
    found("MSG_CTRUNC: room for a part of the first", "%s", receives(peer, 40, CMSG_LEN(20), 0));
    found("MSG_CTRUNC: room for the first", "%s", receives(peer, 40, CMSG_SPACE(sizeof(struct sctp_rcvinfo)), 0));
    found("MSG_CTRUNC: room for a part of the second", "%s",
          receives(peer, 40, CMSG_SPACE(sizeof(struct sctp_rcvinfo)) + CMSG_LEN(4), 0));
    turn(peer, SCTP_RECVRCVINFO, 0);
    found("SCTP_SNDRCV: alone", "%s", receives(peer, 40, 512, 0));
    turn(peer, SCTP_RECVRCVINFO, 1);
    struct sctp_rcvinfo info;
    recv(peer, buffer, 40, 0);
    send(client, "tsn", 3, 0);
    char control[256];
    struct iovec part = {buffer, 40};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = 256};
    recvmsg(peer, &message, 0);
    memcpy(&info, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof info);
    found("SCTP_RCVINFO: has a TSN", "%d", info.rcv_tsn != 0);
    int on = 1;
    found("SCTP_RECVNXTINFO: on", "%s", result(set(peer, SCTP_RECVNXTINFO, &on, sizeof on)));
    turn(peer, SCTP_RECVRCVINFO, 0);
    events.sctp_data_io_event = 0;
    set(peer, SCTP_EVENTS, &events, sizeof events);
    send(client, "one", 3, 0);
    send(client, "four", 4, 0);
    acknowledged(client);
    found("SCTP_NXTINFO: of the next message", "%s", receives(peer, 40, 512, 0));
    found("SCTP_NXTINFO: without a next message", "%s", receives(peer, 40, 512, 0));
    aborts(client);
    close(peer);
}

static void requests(void) {
    connected();
    turn(peer, SCTP_RECVRCVINFO, 1);
    size_t full = sizeof(struct sctp_sndinfo);
    found("SCTP_SNDINFO: a stream that does not exist", "%s", tells(client, 10, 0, full));
    found("SCTP_SNDINFO: flags that do not exist", "%s", tells(client, 0, 0x800, full));
    found("SCTP_SNDINFO: too short", "%s", tells(client, 0, 0, full - 1));
    found("SCTP_SNDINFO: SCTP_EOF on a one-to-one socket", "%s", tells(client, 0, SCTP_EOF, full));
    found("SCTP_SNDINFO: SCTP_ABORT on a one-to-one socket", "%s", tells(client, 0, SCTP_ABORT, full));
    found("SCTP_SNDINFO: SCTP_SENDALL on a one-to-one socket", "%s", tells(client, 0, SCTP_SENDALL, full));
    found("SCTP_SNDINFO: SCTP_SACK_IMMEDIATELY", "%s", tells(client, 0, SCTP_SACK_IMMEDIATELY, full));
    found("SCTP_SNDINFO: SCTP_ADDR_OVER", "%s", tells(client, 0, SCTP_ADDR_OVER, full));
    struct sctp_sndrcvinfo both = {.sinfo_stream = 1, .sinfo_flags = 0x800};
    found("SCTP_SNDRCV: flags that do not exist", "%s",
          result(sends(client, IPPROTO_SCTP, SCTP_SNDRCV, &both, sizeof both, "x")));
    both.sinfo_flags = 0;
    found("SCTP_SNDRCV: too short", "%s", result(sends(client, IPPROTO_SCTP, SCTP_SNDRCV, &both, 8, "x")));
    both.sinfo_assoc_id = 12345;
    found("SCTP_SNDRCV: an unknown association on a one-to-one socket", "%s",
          result(sends(client, IPPROTO_SCTP, SCTP_SNDRCV, &both, sizeof both, "x")));
    struct sctp_prinfo pr = {.pr_policy = SCTP_PR_SCTP_TTL, .pr_value = 10000};
    found("SCTP_PRINFO: a lifetime", "%s", result(sends(client, IPPROTO_SCTP, SCTP_PRINFO, &pr, sizeof pr, "x")));
    pr.pr_policy = 0x40;
    found("SCTP_PRINFO: a policy that does not exist", "%s",
          result(sends(client, IPPROTO_SCTP, SCTP_PRINFO, &pr, sizeof pr, "x")));
    found("SCTP_PRINFO: too short", "%s", result(sends(client, IPPROTO_SCTP, SCTP_PRINFO, &pr, 4, "x")));
    struct sctp_authinfo auth = {.auth_keynumber = 3};
    found("SCTP_AUTHINFO: a key that does not exist", "%s",
          result(sends(client, IPPROTO_SCTP, SCTP_AUTHINFO, &auth, sizeof auth, "x")));
    struct sctp_initmsg init = {.sinit_num_ostreams = 3};
    found("SCTP_INIT: on a connected socket", "%s",
          result(sends(client, IPPROTO_SCTP, SCTP_INIT, &init, sizeof init, "x")));
    found("sendmsg: a control message that does not exist", "%s",
          result(sends(client, IPPROTO_SCTP, 77, &init, sizeof init, "x")));
    found("sendmsg: a control message of another level", "%s",
          result(sends(client, SOL_SOCKET, 77, &init, sizeof init, "x")));
    int count = 0;
    send(client, "last", 4, 0);
    while (recv(peer, buffer, sizeof buffer, 0) > 0 && memcmp(buffer, "last", 4) != 0)
        count++;
    found("recv: the messages that were sent", "%d", count);

    struct sctp_sndinfo defaults = {.snd_sid = 4, .snd_ppid = htonl(44), .snd_context = 4};
    found("SCTP_DEFAULT_SNDINFO: is set", "%s", result(set(client, SCTP_DEFAULT_SNDINFO, &defaults, sizeof defaults)));
    send(client, "defaults", 8, 0);
    found("SCTP_DEFAULT_SNDINFO: has an effect", "%s", receives(peer, 40, 512, 0));
    tells(client, 2, 0, full);
    found("SCTP_SNDINFO: takes the place of the defaults", "%s", receives(peer, 40, 512, 0));
    pr.pr_policy = SCTP_PR_SCTP_TTL;
    sends(client, IPPROTO_SCTP, SCTP_PRINFO, &pr, sizeof pr, "x");
    found("SCTP_PRINFO: leaves the defaults", "%s", receives(peer, 40, 512, 0));
    defaults.snd_sid = 200;
    found("SCTP_DEFAULT_SNDINFO: a stream that does not exist", "%s",
          result(set(client, SCTP_DEFAULT_SNDINFO, &defaults, sizeof defaults)));
    found("send: with a default stream that does not exist", "%s", result(send(client, "x", 1, 0)));
    defaults.snd_sid = 0;
    defaults.snd_flags = 0x800;
    found("SCTP_DEFAULT_SNDINFO: flags that do not exist", "%s",
          result(set(client, SCTP_DEFAULT_SNDINFO, &defaults, sizeof defaults)));
    both = (struct sctp_sndrcvinfo){.sinfo_stream = 5, .sinfo_flags = SCTP_UNORDERED, .sinfo_ppid = htonl(55)};
    found("SCTP_DEFAULT_SEND_PARAM: is set", "%s", result(set(client, SCTP_DEFAULT_SEND_PARAM, &both, sizeof both)));
    send(client, "defaults", 8, 0);
    found("SCTP_DEFAULT_SEND_PARAM: has an effect", "%s", receives(peer, 40, 512, 0));
    socklen_t size = sizeof defaults;
    memset(&defaults, 0, sizeof defaults);
    getsockopt(client, IPPROTO_SCTP, SCTP_DEFAULT_SNDINFO, &defaults, &size);
    found("SCTP_DEFAULT_SNDINFO: after SCTP_DEFAULT_SEND_PARAM", "%d %x %u %u", defaults.snd_sid, defaults.snd_flags,
          ntohl(defaults.snd_ppid), defaults.snd_context);
    both.sinfo_flags = 0x800;
    found("SCTP_DEFAULT_SEND_PARAM: flags that do not exist", "%s",
          result(set(client, SCTP_DEFAULT_SEND_PARAM, &both, sizeof both)));
    aborts(client);
    close(peer);
}

static const char *recvv(int fd, socklen_t room) {
    static char line[300];
    char info[128] = {0};
    struct iovec part = {buffer, 40};
    struct sockaddr_in from;
    socklen_t from_size = sizeof from, info_size = room;
    unsigned type = 99;
    int flags = 0, size = sctp_recvv(fd, &part, 1, (struct sockaddr *)&from, &from_size, info, &info_size, &type, &flags);
    if (size < 0)
        return result(size);
    struct sctp_rcvinfo rcv;
    memcpy(&rcv, info, sizeof rcv);
    sprintf(line, "%d%s, type %u, %d bytes, name %d", size, flags_of(flags), type, (int)info_size, (int)from_size);
    if (type == 1)
        sprintf(line + strlen(line), ", stream %d, ppid %u", rcv.rcv_sid, ntohl(rcv.rcv_ppid));
    return line;
}

static void vectors(void) {
    connected();
    struct iovec part = {"vector", 6};
    struct sockaddr_in to = loopback(5000);
    struct sctp_sndinfo snd = {.snd_sid = 1, .snd_ppid = htonl(11)};
    struct sctp_prinfo pr = {.pr_policy = SCTP_PR_SCTP_RTX, .pr_value = 3};
    struct spa spa = {.flags = 3, .snd = {.snd_sid = 2, .snd_ppid = htonl(12)}, .pr = pr};
    found("sctp_sendv: SCTP_SENDV_NOINFO", "%s", result(sctp_sendv(client, &part, 1, NULL, 0, NULL, 0, SENDV_NOINFO, 0)));
    found("sctp_sendv: SCTP_SENDV_SNDINFO", "%s",
          result(sctp_sendv(client, &part, 1, NULL, 0, &snd, sizeof snd, SENDV_SNDINFO, 0)));
    found("sctp_sendv: SCTP_SENDV_PRINFO", "%s",
          result(sctp_sendv(client, &part, 1, NULL, 0, &pr, sizeof pr, SENDV_PRINFO, 0)));
    found("sctp_sendv: SCTP_SENDV_SPA", "%s",
          result(sctp_sendv(client, &part, 1, NULL, 0, &spa, sizeof spa, SENDV_SPA, 0)));
    found("sctp_sendv: an infotype that does not exist", "%s",
          result(sctp_sendv(client, &part, 1, NULL, 0, &snd, sizeof snd, 77, 0)));
    found("sctp_sendv: an address of the peer", "%s",
          result(sctp_sendv(client, &part, 1, (struct sockaddr *)&to, 1, NULL, 0, SENDV_NOINFO, 0)));
    turn(peer, SCTP_RECVRCVINFO, 1);
    found("sctp_recvv: of SCTP_SENDV_NOINFO", "%s", recvv(peer, 128));
    found("sctp_recvv: of SCTP_SENDV_SNDINFO", "%s", recvv(peer, 128));
    found("sctp_recvv: too little room for the information", "%s", recvv(peer, 4));
    found("sctp_recvv: of SCTP_SENDV_SPA", "%s", recvv(peer, 128));
    turn(peer, SCTP_RECVRCVINFO, 0);
    found("sctp_recvv: without SCTP_RECVRCVINFO", "%s", recvv(peer, 128));
    send(client, "message", 7, 0);
    struct sctp_sndrcvinfo info;
    memset(&info, 0, sizeof info);
    int flags = 0;
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    int got = sctp_recvmsg(peer, buffer, 40, (struct sockaddr *)&from, &size, &info, &flags);
    found("sctp_recvmsg: without sctp_data_io_event", "%s%s, stream %d, name %d", result(got), flags_of(flags),
          info.sinfo_stream, (int)size);
    found("sctp_sendmsg: SCTP_EOF on a one-to-one socket", "%s",
          result(sctp_sendmsg(client, NULL, 0, NULL, 0, 0, SCTP_EOF, 0, 0, 0)));
    found("sctp_sendmsg: no bytes", "%s", result(sctp_sendmsg(client, NULL, 0, NULL, 0, 0, 0, 0, 0, 0)));
    aborts(client);
    close(peer);
}

static void many(void) {
    int server = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), one = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(5000)}, none = name;
    inet_pton(AF_INET, "127.0.0.3", &name.sin_addr);
    inet_pton(AF_INET, "127.0.0.4", &none.sin_addr);
    bind(server, (struct sockaddr *)&name, sizeof name);
    listen(server, 5);
    limited(server);
    limited(one);
    turn(server, SCTP_RECVRCVINFO, 1);
    struct sockaddr *to = (struct sockaddr *)&name;
    found("sendto: no bytes on a one-to-many socket", "%s", result(sendto(one, "", 0, 0, to, sizeof name)));
    found("sctp_sendmsg: SCTP_EOF to an address without an association", "%s",
          result(sctp_sendmsg(one, NULL, 0, to, sizeof name, 0, SCTP_EOF, 0, 0, 0)));
    found("sctp_sendmsg: SCTP_ABORT to an address without an association", "%s",
          result(sctp_sendmsg(one, NULL, 0, to, sizeof name, 0, SCTP_ABORT, 0, 0, 0)));
    found("sctp_sendmsg: a stream that does not exist, in the first message", "%s",
          result(sctp_sendmsg(one, "x", 1, to, sizeof name, 0, 0, 70, 0, 0)));
    sctp_assoc_t id = 0;
    found("sctp_connectx: of a one-to-many socket", "%s", result(sctp_connectx(one, to, 1, &id)));
    struct sctp_sndinfo snd = {.snd_assoc_id = id};
    found("SCTP_SNDINFO: an association", "%s", result(sends(one, IPPROTO_SCTP, SCTP_SNDINFO, &snd, sizeof snd, "id")));
    snd.snd_assoc_id = 12345;
    found("SCTP_SNDINFO: an unknown association", "%s",
          result(sends(one, IPPROTO_SCTP, SCTP_SNDINFO, &snd, sizeof snd, "id")));
    found("send: on a one-to-many socket without an address", "%s", result(send(one, "x", 1, MSG_NOSIGNAL)));
    snd.snd_assoc_id = 12345;
    struct iovec part = {"both", 4};
    found("sctp_sendv: an address and an unknown association", "%s",
          result(sctp_sendv(one, &part, 1, to, 1, &snd, sizeof snd, SENDV_SNDINFO, 0)));
    struct sctp_sndinfo defaults = {.snd_sid = 6, .snd_assoc_id = id};
    found("SCTP_DEFAULT_SNDINFO: of an association", "%s",
          result(set(one, SCTP_DEFAULT_SNDINFO, &defaults, sizeof defaults)));
    found("sendto: with an association's defaults", "%s", result(sendto(one, "def", 3, 0, to, sizeof name)));
    defaults = (struct sctp_sndinfo){.snd_sid = 7, .snd_assoc_id = SCTP_FUTURE_ASSOC};
    set(one, SCTP_DEFAULT_SNDINFO, &defaults, sizeof defaults);
    found("sendto: after a change of future associations' defaults", "%s",
          result(sendto(one, "fut", 3, 0, to, sizeof name)));
    found("recv: by id", "%s", receives(server, 40, 512, 0));
    found("recv: by an address and an unknown id", "%s", receives(server, 40, 512, 0));
    found("recv: with an association's defaults", "%s", receives(server, 40, 512, 0));
    found("recv: after a change of future associations' defaults", "%s", receives(server, 40, 512, 0));
    found("sctp_sendmsg: SCTP_EOF with data", "%s",
          result(sctp_sendmsg(one, "x", 1, to, sizeof name, 0, SCTP_EOF, 0, 0, 0)));
    found("sctp_sendmsg: SCTP_ABORT with a reason", "%s",
          result(sctp_sendmsg(one, "why", 3, to, sizeof name, 0, SCTP_ABORT, 0, 0, 0)));
    close(one);
    close(server);
}

int main(void) {
    alarm(60);
    listener = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sockaddr_in name = loopback(5000);
    if (bind(listener, (struct sockaddr *)&name, sizeof name) != 0 || listen(listener, 5) != 0)
        return 2;
    sizes();
    info();
    requests();
    vectors();
    many();
    return failures != 0;
}
