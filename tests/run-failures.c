/* Messages that are lost with their association, TSNs, the receive window, and keys of authentication. Prints what
   it finds, to be compared with Linux's SCTP. */

#define _GNU_SOURCE

#include <stdlib.h>
#include <unistd.h>

#include "run-common.h"

enum { SIZE = 1000 };

static char buffer[8192];

static int set(int fd, int name, const void *value, socklen_t size) {
    return setsockopt(fd, IPPROTO_SCTP, name, value, size);
}

static int get(int fd, int name, void *value, socklen_t size) {
    return getsockopt(fd, IPPROTO_SCTP, name, value, &size);
}

static void subscribe(int fd, int type) {
    struct sctp_event event = {.se_type = type, .se_on = 1};
    set(fd, SCTP_EVENT, &event, sizeof event);
}

static void aborts(int fd) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

static int listening(int style, int port) {
    struct sockaddr_in name = loopback(port);
    int fd = socket_with_limit(AF_INET, style);
    bind(fd, (struct sockaddr *)&name, sizeof name);
    listen(fd, 5);
    return fd;
}

/* Sends messages until nothing more is taken; the number of messages. The first has the context 1. */
static unsigned fills(int fd, const struct sockaddr_in *to, int flags) {
    unsigned count = 0;
    for (int waits = 0; waits < 5;) {
        memset(buffer, (char)(count + 1), SIZE);
        struct sctp_sndinfo info = {.snd_sid = 3, .snd_ppid = htonl(7), .snd_context = count + 1, .snd_flags = flags};
        char control[CMSG_SPACE(sizeof info)] = {0};
        struct iovec part = {buffer, SIZE};
        struct msghdr message = {.msg_name = (void *)to, .msg_namelen = to ? sizeof *to : 0, .msg_iov = &part,
                                 .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = IPPROTO_SCTP;
        head->cmsg_type = SCTP_SNDINFO;
        head->cmsg_len = CMSG_LEN(sizeof info);
        memcpy(CMSG_DATA(head), &info, sizeof info);
        if (sendmsg(fd, &message, MSG_DONTWAIT) == SIZE) {
            count++;
            waits = 0;
        } else {
            usleep(20000);
            waits++;
        }
    }
    return count;
}

/* What the notifications about lost messages have, those of one type until SHUTDOWN_COMP or a second of silence. */
static const char *losses(int fd, int type, unsigned sent) {
    static char text[300];
    int head = type == SCTP_SEND_FAILED ? sizeof(struct sctp_send_failed) : sizeof(struct sctp_send_failed_event);
    unsigned first = 0, last = 0, count = 0, changes = 0, wrong = 0, error = 0, flags = 0, stream = 0, ppid = 0;
    unsigned before = 0;
    for (;;) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        if (poll(&one, 1, 1000) != 1)
            break;
        int how = 0, size = sctp_recvmsg(fd, buffer, sizeof buffer, NULL, NULL, NULL, &how);
        if (size <= 0)
            break;
        union sctp_notification *it = (union sctp_notification *)buffer;
        if (!(how & MSG_NOTIFICATION))
            continue;
        if (it->sn_header.sn_type == SCTP_ASSOC_CHANGE) {
            changes++;
            before += count;
            continue;
        }
        if (it->sn_header.sn_type != type)
            continue;
        unsigned context;
        if (type == SCTP_SEND_FAILED) {
            struct sctp_send_failed *failed = &it->sn_send_failed;
            context = failed->ssf_info.sinfo_context;
            error = failed->ssf_error;
            flags = failed->ssf_info.sinfo_flags;
            stream = failed->ssf_info.sinfo_stream;
            ppid = ntohl(failed->ssf_info.sinfo_ppid);
        } else {
            struct sctp_send_failed_event *failed = (struct sctp_send_failed_event *)buffer;
            context = failed->ssfe_info.snd_context;
            error = failed->ssf_error;
            flags = failed->ssfe_info.snd_flags;
            stream = failed->ssfe_info.snd_sid;
            ppid = ntohl(failed->ssfe_info.snd_ppid);
        }
        wrong += (int)it->sn_header.sn_length != head + SIZE || size != head + SIZE || !(how & MSG_EOR) ||
                 (count > 0 && context != last + 1) || buffer[head] != (char)context ||
                 buffer[head + SIZE - 1] != (char)context;
        first = count++ == 0 ? context : first;
        last = context;
    }
    snprintf(text, sizeof text, "%s, the last %s, %u wrong, %u before a change, error %x, flags %x, stream %u, ppid %u",
             count > 0 ? "some" : "none", last == sent ? "is" : "is not", wrong, before, error, flags, stream, ppid);
    return text;
}

/* The peer does not read, and then aborts. */
static void lost(int style, int type, int flags, const char *statement) {
    struct sockaddr_in name = loopback(5000);
    int listener = listening(SOCK_STREAM, 5000), client = socket_with_limit(AF_INET, style);
    if (style == SOCK_STREAM)
        connect(client, (struct sockaddr *)&name, sizeof name);
    else
        sctp_sendmsg(client, "first", 5, (struct sockaddr *)&name, sizeof name, 0, 0, 0, 0, 0);
    int peer = accept(listener, NULL, NULL);
    unsigned sent = fills(client, style == SOCK_STREAM ? NULL : &name, flags);
    subscribe(client, SCTP_ASSOC_CHANGE);
    struct sctp_event event = {.se_type = type, .se_on = 1, .se_assoc_id = style == SOCK_STREAM ? 0 : SCTP_ALL_ASSOC};
    set(client, SCTP_EVENT, &event, sizeof event);
    aborts(peer);
    found(statement, "%s", losses(client, type, sent));
    close(client);
    close(listener);
}

/* This side aborts. */
static void lost_here(void) {
    struct sockaddr_in name = loopback(5000);
    int listener = listening(SOCK_STREAM, 5000), client = socket_with_limit(AF_INET, SOCK_SEQPACKET);
    subscribe(client, SCTP_SEND_FAILED_EVENT);
    sctp_sendmsg(client, "first", 5, (struct sockaddr *)&name, sizeof name, 0, 0, 0, 0, 0);
    int peer = accept(listener, NULL, NULL);
    unsigned sent = fills(client, &name, 0);
    found("SCTP_ABORT: with messages that wait", "%s",
          result(sctp_sendmsg(client, NULL, 0, (struct sockaddr *)&name, sizeof name, 0, SCTP_ABORT, 0, 0, 0)));
    found("SCTP_SEND_FAILED_EVENT: after SCTP_ABORT", "%s", losses(client, SCTP_SEND_FAILED_EVENT, sent));
    close(client);
    close(peer);
    close(listener);
}

/* A message of three fragments whose lifetime ends while the peer's window is closed. */
static void abandoned(void) {
    struct sockaddr_in name = loopback(5000);
    int listener = socket_with_limit(AF_INET, SOCK_STREAM), client = socket_with_limit(AF_INET, SOCK_STREAM);
    int size = 8000, most = 1000;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    bind(listener, (struct sockaddr *)&name, sizeof name);
    listen(listener, 5);
    set(client, SCTP_MAXSEG, &most, sizeof most);
    connect(client, (struct sockaddr *)&name, sizeof name);
    int peer = accept(listener, NULL, NULL);
    subscribe(client, SCTP_SEND_FAILED_EVENT);
    static char block[2500];
    enum { COUNT = 40 };
    for (int i = 0; i < COUNT; i++)
        sctp_sendmsg(client, block, 1000, NULL, 0, 0, 0, 0, 0, 1);
    for (int i = 0; i < (int)sizeof block; i++)
        block[i] = (char)(i % 251);
    found("sctp_sendmsg: with a lifetime", "%s",
          result(sctp_sendmsg(client, block, sizeof block, NULL, 0, htonl(7), SCTP_PR_SCTP_TTL, 2, 50, 9)));
    usleep(300000);
    for (int i = 0; i < COUNT; i++)
        recv(peer, buffer, sizeof buffer, 0);
    int at = 0, head = sizeof(struct sctp_send_failed_event);
    for (int count = 0; at < (int)sizeof block; count++) {
        int got = recv(client, buffer, sizeof buffer, 0);
        if (got <= head)
            break;
        struct sctp_send_failed_event *failed = (struct sctp_send_failed_event *)buffer;
        char statement[90];
        snprintf(statement, sizeof statement, "SCTP_SEND_FAILED_EVENT: fragment %d of an abandoned message", count);
        int same = at + got - head <= (int)sizeof block && memcmp(buffer + head, block + at, got - head) == 0;
        found(statement, "flags %d, %d bytes, error %u, stream %d flags %x context %u, %s", failed->ssf_flags, got,
              failed->ssf_error, failed->ssfe_info.snd_sid, failed->ssfe_info.snd_flags,
              failed->ssfe_info.snd_context, same ? "its bytes" : "other bytes");
        at += got - head;
    }
    close(client);
    close(peer);
    close(listener);
}

/* TSNs of messages: relative to the first one. */
static void tsns(void) {
    struct sockaddr_in name = loopback(5000);
    int listener = listening(SOCK_STREAM, 5000), client = socket_with_limit(AF_INET, SOCK_STREAM), on = 1;
    connect(client, (struct sockaddr *)&name, sizeof name);
    int peer = accept(listener, NULL, NULL);
    struct sctp_event_subscribe events = {.sctp_data_io_event = 1};
    set(peer, SCTP_EVENTS, &events, sizeof events);
    for (int i = 0; i < 4; i++)
        sctp_sendmsg(client, "0123456789", 10, NULL, 0, 0, i == 2 ? SCTP_UNORDERED : 0, 0, 0, 0);
    uint32_t first = 0;
    for (int i = 0; i < 3; i++) {
        struct sctp_sndrcvinfo info = {0};
        int flags = 0;
        sctp_recvmsg(peer, buffer, sizeof buffer, NULL, NULL, &info, &flags);
        first = i == 0 ? info.sinfo_tsn : first;
        char statement[40];
        snprintf(statement, sizeof statement, "sinfo_tsn: of message %d", i);
        found(statement, "%u, %s", info.sinfo_tsn - first, info.sinfo_cumtsn == 0 ? "no cumulative TSN" : "cumulative");
    }
    set(peer, SCTP_RECVRCVINFO, &on, sizeof on);
    char control[256];
    struct iovec part = {buffer, 5};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control};
    for (int i = 0; i < 2; i++) {
        message.msg_controllen = sizeof control;
        recvmsg(peer, &message, 0);
        struct sctp_rcvinfo info;
        memcpy(&info, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof info);
        found(i == 0 ? "rcv_tsn: of a part" : "rcv_tsn: of the rest", "%u, cumulative %u", info.rcv_tsn - first,
              info.rcv_cumtsn);
    }
    close(client);
    close(peer);
    close(listener);
}

/* The window that the peer of a socket with this SO_RCVBUF sees. */
static void window(int size, const char *statement) {
    struct sockaddr_in name = loopback(5000);
    int listener = socket_with_limit(AF_INET, SOCK_STREAM), client = socket_with_limit(AF_INET, SOCK_STREAM);
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    bind(listener, (struct sockaddr *)&name, sizeof name);
    listen(listener, 5);
    connect(client, (struct sockaddr *)&name, sizeof name);
    struct sctp_status status = {0};
    get(client, SCTP_STATUS, &status, sizeof status);
    int peer = accept(listener, NULL, NULL), kept = 0;
    socklen_t length = sizeof kept;
    getsockopt(peer, SOL_SOCKET, SO_RCVBUF, &kept, &length);
    found(statement, "window %u, SO_RCVBUF %d", status.sstat_rwnd, kept);
    close(client);
    close(peer);
    close(listener);
}

/* A message that is larger than the window. */
static void larger_than_the_window(void) {
    struct sockaddr_in name = loopback(5000);
    int listener = socket_with_limit(AF_INET, SOCK_STREAM), client = socket_with_limit(AF_INET, SOCK_STREAM);
    int size = 8000;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    bind(listener, (struct sockaddr *)&name, sizeof name);
    listen(listener, 5);
    connect(client, (struct sockaddr *)&name, sizeof name);
    int peer = accept(listener, NULL, NULL), most = 1400;
    set(client, SCTP_MAXSEG, &most, sizeof most);
    static char large[50000];
    found("send: more than the window", "%s", result(send(client, large, sizeof large, 0)));
    int sum = 0, flags = 0, parts = 0;
    while (!(flags & MSG_EOR)) {
        flags = 0;
        int part = sctp_recvmsg(peer, large, sizeof large, NULL, NULL, NULL, &flags);
        if (part <= 0)
            break;
        sum += part;
        parts++;
    }
    found("MSG_EOR: of a message larger than SO_RCVBUF", "%d bytes, %s", sum, parts > 1 ? "in parts" : "whole");
    close(client);
    close(peer);
    close(listener);
}

static const char *active(int fd) {
    struct sctp_authkeyid id = {0};
    int value = get(fd, SCTP_AUTH_ACTIVE_KEY, &id, sizeof id);
    return value < 0 ? result(value) : result(id.scact_keynumber);
}

static const char *with_key(int fd, int option, int number) {
    struct sctp_authkeyid id = {.scact_keynumber = number};
    return result(set(fd, option, &id, sizeof id));
}

static const char *adds_key(int fd, int number) {
    struct {
        struct sctp_authkey head;
        uint8_t secret[4];
    } key = {{.sca_keynumber = number, .sca_keylength = 4}, {1, 2, 3, 4}};
    return result(set(fd, SCTP_AUTH_KEY, &key, sizeof key));
}

/* Statements about keys, of a socket and of an association. */
static void uses_keys(int fd, const char *where) {
    char statement[100];
#define KEYS(text, value) \
    snprintf(statement, sizeof statement, text ", %s", where); \
    found(statement, "%s", value)
    KEYS("SCTP_AUTH_ACTIVE_KEY: at first", active(fd));
    KEYS("SCTP_AUTH_DEACTIVATE_KEY: of an unknown key", with_key(fd, SCTP_AUTH_DEACTIVATE_KEY, 9));
    KEYS("SCTP_AUTH_KEY: key 5", adds_key(fd, 5));
    KEYS("SCTP_AUTH_KEY: key 6", adds_key(fd, 6));
    KEYS("SCTP_AUTH_ACTIVE_KEY: to 5", with_key(fd, SCTP_AUTH_ACTIVE_KEY, 5));
    KEYS("SCTP_AUTH_ACTIVE_KEY: is", active(fd));
    KEYS("SCTP_AUTH_DEACTIVATE_KEY: of the active key", with_key(fd, SCTP_AUTH_DEACTIVATE_KEY, 5));
    KEYS("SCTP_AUTH_ACTIVE_KEY: to 6", with_key(fd, SCTP_AUTH_ACTIVE_KEY, 6));
    KEYS("SCTP_AUTH_DEACTIVATE_KEY: of another key", with_key(fd, SCTP_AUTH_DEACTIVATE_KEY, 5));
    KEYS("SCTP_AUTH_DEACTIVATE_KEY: twice", with_key(fd, SCTP_AUTH_DEACTIVATE_KEY, 5));
    KEYS("SCTP_AUTH_ACTIVE_KEY: to a deactivated key", with_key(fd, SCTP_AUTH_ACTIVE_KEY, 5));
    KEYS("SCTP_AUTH_ACTIVE_KEY: is after that", active(fd));
    KEYS("SCTP_AUTH_KEY: key 5 again", adds_key(fd, 5));
    KEYS("SCTP_AUTH_ACTIVE_KEY: to the new key", with_key(fd, SCTP_AUTH_ACTIVE_KEY, 5));
    KEYS("SCTP_AUTH_DELETE_KEY: the active key", with_key(fd, SCTP_AUTH_DELETE_KEY, 5));
    KEYS("SCTP_AUTH_DELETE_KEY: another key", with_key(fd, SCTP_AUTH_DELETE_KEY, 6));
    KEYS("SCTP_AUTH_ACTIVE_KEY: to the deleted key", with_key(fd, SCTP_AUTH_ACTIVE_KEY, 6));
}

static void keys(void) {
    struct sockaddr_in name = loopback(5000);
    int listener = socket_with_limit(AF_INET, SOCK_STREAM), client = socket_with_limit(AF_INET, SOCK_STREAM);
    struct sctp_assoc_value on = {.assoc_value = 1};
    struct sctp_authchunk data = {.sauth_chunk = 0};
    for (int i = 0; i < 2; i++) {
        set(i ? listener : client, SCTP_AUTH_SUPPORTED, &on, sizeof on);
        set(i ? listener : client, SCTP_AUTH_CHUNK, &data, sizeof data);
    }
    int other = socket_with_limit(AF_INET, SOCK_STREAM);
    found("SCTP_AUTH_ACTIVE_KEY: without authentication", "%s", active(other));
    set(other, SCTP_AUTH_SUPPORTED, &on, sizeof on);
    uses_keys(other, "of a socket");
    close(other);
    bind(listener, (struct sockaddr *)&name, sizeof name);
    listen(listener, 5);
    connect(client, (struct sockaddr *)&name, sizeof name);
    int peer = accept(listener, NULL, NULL);
    subscribe(client, SCTP_AUTHENTICATION_EVENT);
    uses_keys(client, "of an association");
    for (int count = 0;; count++) {
        struct pollfd one = {.fd = client, .events = POLLIN};
        if (poll(&one, 1, 1000) != 1)
            break;
        recv(client, buffer, sizeof buffer, 0);
        struct sctp_authkey_event *event = (struct sctp_authkey_event *)buffer;
        char statement[60];
        snprintf(statement, sizeof statement, "SCTP_AUTHENTICATION_EVENT: number %d", count);
        found(statement, "type %x, key %d, %d, indication %d, length %d", event->auth_type, event->auth_keynumber,
              event->auth_altkeynumber, event->auth_indication, (int)event->auth_length);
    }
    close(client);
    close(peer);
    close(listener);
}

int main(void) {
    alarm(120);
    lost(SOCK_STREAM, SCTP_SEND_FAILED_EVENT, 0, "SCTP_SEND_FAILED_EVENT: of a one-to-one socket");
    lost(SOCK_STREAM, SCTP_SEND_FAILED, 0, "SCTP_SEND_FAILED: of a one-to-one socket");
    lost(SOCK_SEQPACKET, SCTP_SEND_FAILED_EVENT, 0, "SCTP_SEND_FAILED_EVENT: of a one-to-many socket");
    lost(SOCK_SEQPACKET, SCTP_SEND_FAILED_EVENT, SCTP_UNORDERED, "SCTP_SEND_FAILED_EVENT: of unordered messages");
    lost_here();
    abandoned();
    tsns();
    window(20000, "SO_RCVBUF: 20,000 bytes");
    window(100, "SO_RCVBUF: 100 bytes");
    larger_than_the_window();
    keys();
    return failures != 0;
}
