/* Associations as their options and notifications show them: the receive window, states, counters, authentication,
 * partial reliability, streams, extensions that both sides have to agree on, and several destination addresses.
 * Prints what it finds, to be compared with Linux's SCTP. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "run-common.h"

static int listener, client, peer;
static char buffer[70000], text[8][300];
static unsigned next;

static int set(int fd, int name, const void *value, socklen_t size) {
    return setsockopt(fd, IPPROTO_SCTP, name, value, size);
}

static int get(int fd, int name, void *value, socklen_t size) {
    return getsockopt(fd, IPPROTO_SCTP, name, value, &size);
}

static int turn(int fd, int name, uint32_t value) {
    struct sctp_assoc_value one = {.assoc_value = value};
    return set(fd, name, &one, sizeof one);
}

static void subscribe(int fd, int type) {
    struct sctp_event event = {.se_type = type, .se_on = 1};
    set(fd, SCTP_EVENT, &event, sizeof event);
}

static void opened(void) {
    listener = socket_with_limit(AF_INET, SOCK_STREAM);
    client = socket_with_limit(AF_INET, SOCK_STREAM);
}

static void connected(void) {
    struct sockaddr_in name = loopback(5000);
    struct timeval limit = {.tv_sec = 20};
    if (bind(listener, (struct sockaddr *)&name, sizeof name) != 0 || listen(listener, 5) != 0 ||
        connect(client, (struct sockaddr *)&name, sizeof name) != 0)
        exit(2);
    peer = accept(listener, NULL, NULL);
    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

static void aborts(int fd) {
    struct linger linger = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

static void over(void) {
    aborts(client);
    close(peer);
    close(listener);
}

static struct sctp_status status_of(int fd) {
    struct sctp_status status;
    memset(&status, 0, sizeof status);
    if (get(fd, SCTP_STATUS, &status, sizeof status) != 0)
        status.sstat_state = -1;
    return status;
}

/* Waits until the peer has everything, or its window is full. */
static void settle(int fd) {
    for (int i = 0; i < 100 && status_of(fd).sstat_unackdata != 0; i++)
        usleep(5000);
    usleep(300000);
}

static const char *next_one(int fd, int type) {
    char *to = text[next++ % 8];
    struct pollfd one = {.fd = fd, .events = POLLIN};
    for (int i = 0; i < 200; i++) {
        int flags = 0;
        if (poll(&one, 1, 3000) != 1)
            return "none";
        int size = sctp_recvmsg(fd, buffer, sizeof buffer, NULL, NULL, NULL, &flags);
        if (size <= 0)
            return result(size);
        union sctp_notification *it = (union sctp_notification *)buffer;
        if (!(flags & MSG_NOTIFICATION) || it->sn_header.sn_type != type)
            continue;
        int at = snprintf(to, sizeof text[0], "flags %x, %d bytes", it->sn_header.sn_flags, size);
        if (type == SCTP_AUTHENTICATION_EVENT)
            snprintf(to + at, sizeof text[0] - at, ", key %d alternative %d indication %d",
                     it->sn_authkey_event.auth_keynumber, it->sn_authkey_event.auth_altkeynumber,
                     it->sn_authkey_event.auth_indication);
        if (type == SCTP_STREAM_RESET_EVENT) {
            struct sctp_stream_reset_event *event = (struct sctp_stream_reset_event *)buffer;
            for (int k = 0; k < (size - (int)sizeof *event) / 2; k++)
                at += snprintf(to + at, sizeof text[0] - at, " stream %d", event->strreset_stream_list[k]);
        }
        if (type == SCTP_ASSOC_RESET_EVENT) {
            struct sctp_assoc_reset_event *event = (struct sctp_assoc_reset_event *)buffer;
            snprintf(to + at, sizeof text[0] - at, ", TSNs %s", event->assocreset_local_tsn ? "given" : "0");
        }
        return to;
    }
    return "too many";
}

/* Unread messages take room in the window that the peer sees. */
static void windows(void) {
    opened();
    int size = 60000;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    connected();
    uint32_t first = status_of(client).sstat_rwnd;
    for (int i = 0; i < 10; i++)
        send(client, buffer, 1000, 0);
    settle(client);
    found("SO_RCVBUF: the window after 10 unread messages of 1,000 bytes", "%u KB less",
          (first - status_of(client).sstat_rwnd + 500) / 1000);
    for (int i = 0; i < 9; i++)
        recv(peer, buffer, sizeof buffer, 0);
    recv(peer, buffer, 500, 0);
    /* The window is announced again with the next message. */
    send(client, buffer, 1000, 0);
    settle(client);
    found("SO_RCVBUF: the window after one and a half unread ones", "%u KB less",
          (first - status_of(client).sstat_rwnd + 600) / 1000);
    over();

    opened();
    size = 20000;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    connected();
    fcntl(client, F_SETFL, O_NONBLOCK);
    int refused = 0, sent = 0;
    for (int i = 0; i < 40; i++)
        sent += send(client, buffer, 1000, 0) == 1000;
    settle(client);
    found("SO_RCVBUF: 20,000 bytes, the window after 40 messages of 1,000 bytes", "%s",
          status_of(client).sstat_rwnd < 2000 ? "nearly closed" : "open");
    /* What waits at the sender does not get old unless the window is full. */
    subscribe(client, SCTP_SEND_FAILED_EVENT);
    for (int i = 0; i < 3; i++)
        refused += sctp_sendmsg(client, buffer, 500, NULL, 0, 0, SCTP_PR_SCTP_TTL, 3, 200, 0) != 500;
    usleep(400000);
    int sum = 0, others = 0;
    struct pollfd one = {.fd = peer, .events = POLLIN};
    while (poll(&one, 1, 3000) == 1) {
        int size = recv(peer, buffer, sizeof buffer, 0);
        sum += size == 1000;
        others += size == 500;
    }
    found("SCTP_SEND_FAILED_EVENT: of messages beyond a full window", "%d refused, %s %s %s", refused,
          next_one(client, SCTP_SEND_FAILED_EVENT), next_one(client, SCTP_SEND_FAILED_EVENT),
          next_one(client, SCTP_SEND_FAILED_EVENT));
    found("recv: all others once there is room", "%s, and %d of those", sum == sent ? "all" : "some", others);
    over();
}

static void states(void) {
    opened();
    int size = 5000;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    connected();
    found("SCTP_STATUS: of an association", "state %d and %d", status_of(client).sstat_state,
          status_of(peer).sstat_state);
    fcntl(client, F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 30; i++)
        send(client, buffer, 1000, 0);
    settle(client);
    shutdown(client, SHUT_WR);
    usleep(200000);
    found("SCTP_STATUS: after shutdown with data that waits", "state %d and %d", status_of(client).sstat_state,
          status_of(peer).sstat_state);
    over();

    opened();
    setsockopt(client, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    connected();
    fcntl(peer, F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 30; i++)
        send(peer, buffer, 1000, 0);
    settle(peer);
    shutdown(client, SHUT_WR);
    usleep(200000);
    found("SCTP_STATUS: after shutdown of the peer", "state %d and %d", status_of(client).sstat_state,
          status_of(peer).sstat_state);
    over();

    opened();
    connected();
    aborts(client);
    wait_for(peer, POLLIN);
    usleep(100000);
    found("SCTP_STATUS: after the peer's abort", "state %d", status_of(peer).sstat_state);
    close(peer);
    close(listener);
}

static void counters(void) {
    opened();
    connected();
    for (int i = 0; i < 3; i++)
        sctp_sendmsg(client, buffer, 100, NULL, 0, 0, 0, 0, 0, 0);
    for (int i = 0; i < 2; i++)
        sctp_sendmsg(client, buffer, 100, NULL, 0, 0, SCTP_UNORDERED, 1, 0, 0);
    sctp_sendmsg(client, buffer, 20000, NULL, 0, 0, 0, 0, 0, 0);
    settle(client);
    struct sctp_assoc_stats own, other;
    memset(&own, 0, sizeof own);
    memset(&other, 0, sizeof other);
    found("SCTP_GET_ASSOC_STATS: of both sides", "%s %s",
          result(get(client, SCTP_GET_ASSOC_STATS, &own, sizeof own)),
          result(get(peer, SCTP_GET_ASSOC_STATS, &other, sizeof other)));
#define BOTH(field) (unsigned long long)own.field, (unsigned long long)other.field
    found("SCTP_GET_ASSOC_STATS: unordered chunks sent", "%llu %llu", BOTH(sas_ouodchunks));
    found("SCTP_GET_ASSOC_STATS: unordered chunks received", "%llu %llu", BOTH(sas_iuodchunks));
    found("SCTP_GET_ASSOC_STATS: ordered chunks sent", "%d %d", own.sas_oodchunks >= 4, other.sas_oodchunks > 0);
    found("SCTP_GET_ASSOC_STATS: ordered chunks received", "%d %d", own.sas_iodchunks > 0, other.sas_iodchunks >= 4);
    found("SCTP_GET_ASSOC_STATS: as many as were sent", "%d", own.sas_oodchunks == other.sas_iodchunks);
    found("SCTP_GET_ASSOC_STATS: control chunks", "%d %d, %d %d", own.sas_octrlchunks > 1, own.sas_ictrlchunks > 1,
          other.sas_octrlchunks > 1, other.sas_ictrlchunks > 1);
    found("SCTP_GET_ASSOC_STATS: SACKs", "%d %d, %d %d", own.sas_isacks > 0, own.sas_osacks > 0, other.sas_isacks > 0,
          other.sas_osacks > 0);
    found("SCTP_GET_ASSOC_STATS: nothing lost", "%llu %llu, %llu %llu, %llu %llu, %llu %llu", BOTH(sas_rtxchunks),
          BOTH(sas_outofseqtsns), BOTH(sas_idupchunks), BOTH(sas_gapcnt));
    found("SCTP_GET_ASSOC_STATS: an RTO", "%d %d", own.sas_maxrto > 0, own.sas_maxrto <= 60000);
    struct sctp_assoc_stats part;
    memset(&part, 0x55, sizeof part);
    socklen_t size = 200;
    int got = getsockopt(client, IPPROTO_SCTP, SCTP_GET_ASSOC_STATS, &part, &size);
    found("SCTP_GET_ASSOC_STATS: into 200 bytes", "%s, %d bytes", result(got), (int)size);
    over();
}

/* Sizes of what an option of an association returns. */
static void sizes(void) {
    static const struct {
        const char *name;
        int number, size;
    } options[] = {
#define OPTION(name, type) {#name, name, sizeof(type)}
        OPTION(SCTP_STATUS, struct sctp_status), OPTION(SCTP_RTOINFO, struct sctp_rtoinfo),
        OPTION(SCTP_ASSOCINFO, struct sctp_assocparams), OPTION(SCTP_PRIMARY_ADDR, struct sctp_setprim),
        OPTION(SCTP_GET_PEER_ADDR_INFO, struct sctp_paddrinfo), OPTION(SCTP_PEER_ADDR_PARAMS, struct sctp_paddrparams),
        OPTION(SCTP_PEER_AUTH_CHUNKS, struct sctp_authchunks), OPTION(SCTP_LOCAL_AUTH_CHUNKS, struct sctp_authchunks),
        OPTION(SCTP_GET_ASSOC_STATS, struct sctp_assoc_stats), OPTION(SCTP_PR_ASSOC_STATUS, struct sctp_prstatus),
        OPTION(SCTP_PR_STREAM_STATUS, struct sctp_prstatus), OPTION(SCTP_STREAM_SCHEDULER_VALUE, struct sctp_stream_value),
        OPTION(SCTP_PEER_ADDR_THLDS, struct sctp_paddrthlds), OPTION(SCTP_EVENT, struct sctp_event),
        OPTION(SCTP_DEFAULT_PRINFO, struct sctp_default_prinfo), OPTION(SCTP_MAXSEG, struct sctp_assoc_value),
        OPTION(SCTP_DELAYED_SACK, struct sctp_sack_info), OPTION(SCTP_AUTH_ACTIVE_KEY, struct sctp_authkeyid),
        OPTION(SCTP_STREAM_SCHEDULER, struct sctp_assoc_value), OPTION(SCTP_CONTEXT, struct sctp_assoc_value),
    };
    opened();
    connected();
    for (unsigned i = 0; i < sizeof options / sizeof *options; i++) {
        int full = options[i].size;
        int lengths[] = {full + 8, full, full - 1, full / 2, 4, 0};
        char *to = text[next++ % 8];
        int at = 0;
        for (unsigned k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            memset(buffer, 0, 512);
            struct sockaddr_in name = loopback(5000);
            if (options[i].number == SCTP_GET_PEER_ADDR_INFO || options[i].number == SCTP_PEER_ADDR_PARAMS)
                memcpy(buffer + 4, &name, sizeof name);
            if (options[i].number == SCTP_PEER_ADDR_THLDS)
                memcpy(buffer + 8, &name, sizeof name);
            if (options[i].number == SCTP_PR_ASSOC_STATUS || options[i].number == SCTP_PR_STREAM_STATUS)
                buffer[6] = SCTP_PR_SCTP_TTL;
            if (options[i].number == SCTP_EVENT)
                memcpy(buffer + 4, &(uint16_t){SCTP_SHUTDOWN_EVENT}, 2);
            socklen_t size = lengths[k];
            int got = getsockopt(client, IPPROTO_SCTP, options[i].number, buffer, &size);
            at += snprintf(to + at, sizeof text[0] - at, "%s%s", k ? ", " : "", result(got == 0 ? (int)size : -1));
        }
        char what[80];
        snprintf(what, sizeof what, "%s: sizes of an association's value", options[i].name);
        found(what, "%s", to);
    }
    over();
}

static int adds_key(int fd, int number) {
    struct {
        struct sctp_authkey head;
        uint8_t secret[4];
    } key = {{.sca_keynumber = number, .sca_keylength = 4}, {1, 2, 3, number}};
    return set(fd, SCTP_AUTH_KEY, &key, sizeof key);
}

static const char *chunks_of(int fd, int option) {
    struct {
        struct sctp_authchunks head;
        uint8_t types[256];
    } list;
    memset(&list, 0, sizeof list);
    socklen_t size = sizeof list;
    char *to = text[next++ % 8];
    int got = getsockopt(fd, IPPROTO_SCTP, option, &list, &size);
    int at = snprintf(to, sizeof text[0], "%s, %d bytes, %u:", result(got), (int)size, list.head.gauth_number_of_chunks);
    for (unsigned i = 0; got == 0 && i < list.head.gauth_number_of_chunks && i < 20; i++)
        at += snprintf(to + at, sizeof text[0] - at, " %d", list.head.gauth_chunks[i]);
    return to;
}

static void authentication(void) {
    struct sctp_authchunk data = {.sauth_chunk = 0};
    opened();
    turn(listener, SCTP_AUTH_SUPPORTED, 1);
    turn(client, SCTP_AUTH_SUPPORTED, 1);
    set(listener, SCTP_AUTH_CHUNK, &data, sizeof data);
    adds_key(listener, 5);
    adds_key(client, 5);
    adds_key(listener, 6);
    adds_key(client, 6);
    subscribe(listener, SCTP_AUTHENTICATION_EVENT);
    connected();
    found("SCTP_PEER_AUTH_CHUNKS: of the side that connects", "%s", chunks_of(client, SCTP_PEER_AUTH_CHUNKS));
    found("SCTP_LOCAL_AUTH_CHUNKS: of the side that connects", "%s", chunks_of(client, SCTP_LOCAL_AUTH_CHUNKS));
    found("SCTP_PEER_AUTH_CHUNKS: of an accepted socket", "%s", chunks_of(peer, SCTP_PEER_AUTH_CHUNKS));
    found("SCTP_LOCAL_AUTH_CHUNKS: of an accepted socket", "%s", chunks_of(peer, SCTP_LOCAL_AUTH_CHUNKS));
    send(client, "with key 0", 10, 0);
    found("recv: of a message with key 0", "%s", result(recv(peer, buffer, sizeof buffer, 0)));
    struct sctp_authkeyid id = {.scact_keynumber = 5};
    found("SCTP_AUTH_ACTIVE_KEY: of an association", "%s", result(set(client, SCTP_AUTH_ACTIVE_KEY, &id, sizeof id)));
    send(client, "with key 5", 10, 0);
    found("SCTP_AUTHENTICATION_EVENT: when the peer begins to use a key", "%s",
          next_one(peer, SCTP_AUTHENTICATION_EVENT));
    found("recv: of a message with key 5", "%s", result(recv(peer, buffer, sizeof buffer, 0)));
    /* With a control message, for one message. */
    char control[CMSG_SPACE(sizeof(struct sctp_authinfo))] = {0};
    struct iovec part = {"with key 6", 10};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = IPPROTO_SCTP;
    header->cmsg_type = SCTP_AUTHINFO;
    header->cmsg_len = CMSG_LEN(sizeof(struct sctp_authinfo));
    *(uint16_t *)CMSG_DATA(header) = 6;
    found("SCTP_AUTHINFO: another key", "%s", result(sendmsg(client, &message, 0)));
    struct pollfd one = {.fd = peer, .events = POLLIN};
    int flags = 0, size = poll(&one, 1, 2000) == 1 ? sctp_recvmsg(peer, buffer, sizeof buffer, NULL, NULL, NULL, &flags) : -1;
    found("SCTP_AUTHINFO: what arrives first", "%s, %d bytes", flags & MSG_NOTIFICATION ? "a notification" : "a message", size);
    over();

    /* One side does not want it. */
    opened();
    turn(client, SCTP_AUTH_SUPPORTED, 1);
    connected();
    found("SCTP_PEER_AUTH_CHUNKS: without authentication", "%s", chunks_of(client, SCTP_PEER_AUTH_CHUNKS));
    found("SCTP_LOCAL_AUTH_CHUNKS: without authentication", "%s", chunks_of(client, SCTP_LOCAL_AUTH_CHUNKS));
    over();
}

static const char *counts(int fd, int option, int policy, int stream) {
    struct sctp_prstatus status;
    memset(&status, 0, sizeof status);
    status.sprstat_policy = policy;
    status.sprstat_sid = stream;
    char *to = text[next++ % 8];
    int got = get(fd, option, &status, sizeof status);
    snprintf(to, sizeof text[0], "%s, unsent %llu sent %llu", result(got),
             (unsigned long long)status.sprstat_abandoned_unsent, (unsigned long long)status.sprstat_abandoned_sent);
    return to;
}

static void partial_reliability(void) {
    static const int policies[] = {SCTP_PR_SCTP_NONE, SCTP_PR_SCTP_TTL, SCTP_PR_SCTP_RTX, SCTP_PR_SCTP_PRIO,
                                   SCTP_PR_SCTP_ALL, SCTP_PR_SCTP_ALL | SCTP_PR_SCTP_TTL, 0x40, 0xff};
    opened();
    int size = 5000;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    connected();
    for (unsigned i = 0; i < sizeof policies / sizeof *policies; i++) {
        char what[80];
        snprintf(what, sizeof what, "SCTP_PR_ASSOC_STATUS: policy %x", policies[i]);
        found(what, "%s", counts(client, SCTP_PR_ASSOC_STATUS, policies[i], 0));
        snprintf(what, sizeof what, "SCTP_PR_STREAM_STATUS: policy %x", policies[i]);
        found(what, "%s", counts(client, SCTP_PR_STREAM_STATUS, policies[i], 1));
    }
    /* The peer's window is full: these wait until they are too old. */
    for (int i = 0; i < 20; i++)
        sctp_sendmsg(client, buffer, 1000, NULL, 0, 0, 0, 0, 0, 0);
    settle(client);
    struct sctp_default_prinfo info = {.pr_policy = SCTP_PR_SCTP_TTL, .pr_value = 50};
    found("SCTP_DEFAULT_PRINFO: a lifetime", "%s", result(set(client, SCTP_DEFAULT_PRINFO, &info, sizeof info)));
    for (int i = 0; i < 3; i++)
        send(client, buffer, 100, 0);
    for (int i = 0; i < 2; i++)
        sctp_sendmsg(client, buffer, 100, NULL, 0, 0, SCTP_PR_SCTP_TTL, 1, 50, 0);
    usleep(200000);
    while (recv(peer, buffer, sizeof buffer, MSG_DONTWAIT) > 0 || status_of(client).sstat_unackdata > 0)
        usleep(1000);
    usleep(300000);
    while (recv(peer, buffer, sizeof buffer, MSG_DONTWAIT) > 0)
        usleep(1000);
    found("SCTP_PR_ASSOC_STATUS: after 5 that were too old", "%s", counts(client, SCTP_PR_ASSOC_STATUS, SCTP_PR_SCTP_TTL, 0));
    found("SCTP_PR_ASSOC_STATUS: all after that", "%s", counts(client, SCTP_PR_ASSOC_STATUS, SCTP_PR_SCTP_ALL, 0));
    found("SCTP_PR_ASSOC_STATUS: by priority after that", "%s", counts(client, SCTP_PR_ASSOC_STATUS, SCTP_PR_SCTP_PRIO, 0));
    found("SCTP_PR_STREAM_STATUS: of stream 1 after that", "%s", counts(client, SCTP_PR_STREAM_STATUS, SCTP_PR_SCTP_TTL, 1));
    found("SCTP_PR_STREAM_STATUS: all of stream 1 after that", "%s", counts(client, SCTP_PR_STREAM_STATUS, SCTP_PR_SCTP_ALL, 1));
    found("SCTP_PR_STREAM_STATUS: of a stream without such", "%s", counts(client, SCTP_PR_STREAM_STATUS, SCTP_PR_SCTP_TTL, 2));
    over();
}

static void streams(void) {
    opened();
    for (int i = 0; i < 2; i++) {
        int fd = i ? client : listener;
        turn(fd, SCTP_RECONFIG_SUPPORTED, 1);
        turn(fd, SCTP_ENABLE_STREAM_RESET, SCTP_ENABLE_RESET_STREAM_REQ | SCTP_ENABLE_CHANGE_ASSOC_REQ);
        subscribe(fd, SCTP_STREAM_RESET_EVENT);
        subscribe(fd, SCTP_ASSOC_RESET_EVENT);
        subscribe(fd, SCTP_STREAM_CHANGE_EVENT);
    }
    connected();
    struct {
        struct sctp_reset_streams head;
        uint16_t streams[2];
    } reset = {{.srs_flags = SCTP_STREAM_RESET_OUTGOING, .srs_number_streams = 2}, {1, 3}};
    found("SCTP_RESET_STREAMS: two outgoing ones", "%s", result(set(client, SCTP_RESET_STREAMS, &reset, sizeof reset)));
    found("SCTP_STREAM_RESET_EVENT: at the side that asked", "%s", next_one(client, SCTP_STREAM_RESET_EVENT));
    found("SCTP_STREAM_RESET_EVENT: at the other side", "%s", next_one(peer, SCTP_STREAM_RESET_EVENT));
    reset.head.srs_flags = SCTP_STREAM_RESET_INCOMING;
    found("SCTP_RESET_STREAMS: two incoming ones", "%s", result(set(client, SCTP_RESET_STREAMS, &reset, sizeof reset)));
    found("SCTP_STREAM_RESET_EVENT: of incoming ones, at the side that asked", "%s", next_one(client, SCTP_STREAM_RESET_EVENT));
    found("SCTP_STREAM_RESET_EVENT: of incoming ones, at the other side", "%s", next_one(peer, SCTP_STREAM_RESET_EVENT));
    usleep(300000);
    reset.streams[1] = 60000;
    found("SCTP_RESET_STREAMS: one that does not exist", "%s", result(set(client, SCTP_RESET_STREAMS, &reset, sizeof reset)));
    reset.head.srs_flags = 0;
    found("SCTP_RESET_STREAMS: no direction", "%s", result(set(client, SCTP_RESET_STREAMS, &reset, sizeof reset)));
    reset.head.srs_flags = SCTP_STREAM_RESET_OUTGOING;
    reset.head.srs_number_streams = 9;
    found("SCTP_RESET_STREAMS: more than the list has", "%s", result(set(client, SCTP_RESET_STREAMS, &reset, sizeof reset)));
    reset.head.srs_number_streams = 0;
    found("SCTP_RESET_STREAMS: all", "%s", result(set(client, SCTP_RESET_STREAMS, &reset, sizeof reset.head)));
    found("SCTP_STREAM_RESET_EVENT: of all, at the side that asked", "%s", next_one(client, SCTP_STREAM_RESET_EVENT));
    found("SCTP_STREAM_RESET_EVENT: of all, at the other side", "%s", next_one(peer, SCTP_STREAM_RESET_EVENT));
    usleep(300000);
    struct sctp_add_streams more = {0};
    more.sas_instrms = 2;
    found("SCTP_ADD_STREAMS: incoming ones", "%s", result(set(client, SCTP_ADD_STREAMS, &more, sizeof more)));
    usleep(500000);
    found("SCTP_ADD_STREAMS: streams after that", "%d %d, %d %d", status_of(client).sstat_instrms,
          status_of(client).sstat_outstrms, status_of(peer).sstat_instrms, status_of(peer).sstat_outstrms);
    more.sas_instrms = 0;
    found("SCTP_ADD_STREAMS: none", "%s", result(set(client, SCTP_ADD_STREAMS, &more, sizeof more)));
    more.sas_outstrms = 65535;
    found("SCTP_ADD_STREAMS: too many", "%s", result(set(client, SCTP_ADD_STREAMS, &more, sizeof more)));
    sctp_assoc_t id = 0;
    found("SCTP_RESET_ASSOC: while the peer refuses it", "%s", result(set(peer, SCTP_RESET_ASSOC, &id, sizeof id)));
    found("SCTP_ASSOC_RESET_EVENT: at the side that asked", "%s", next_one(peer, SCTP_ASSOC_RESET_EVENT));
    over();
}

/* The order in which messages of two streams leave once the window opens. */
static const char *order(int scheduler) {
    opened();
    int size = 4000;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    turn(client, SCTP_STREAM_SCHEDULER, scheduler);
    connected();
    struct sctp_stream_value low = {.stream_id = 1, .stream_value = 9}, high = {.stream_id = 2, .stream_value = 1};
    set(client, SCTP_STREAM_SCHEDULER_VALUE, &low, sizeof low);
    set(client, SCTP_STREAM_SCHEDULER_VALUE, &high, sizeof high);
    for (int i = 0; i < 30; i++)
        sctp_sendmsg(client, buffer, 1000, NULL, 0, 0, 0, 1, 0, 0);
    settle(client);
    for (int i = 0; i < 4; i++)
        sctp_sendmsg(client, buffer, 1000, NULL, 0, 0, 0, 2, 0, 0);
    int on = 1, before = 0, seen = 0, after = 0;
    set(peer, SCTP_RECVRCVINFO, &on, sizeof on);
    struct sctp_event_subscribe events = {.sctp_data_io_event = 1};
    set(peer, SCTP_EVENTS, &events, sizeof events);
    for (int i = 0; i < 34; i++) {
        struct sctp_sndrcvinfo info = {0};
        int flags = 0;
        if (sctp_recvmsg(peer, buffer, sizeof buffer, NULL, NULL, &info, &flags) != 1000)
            break;
        seen += info.sinfo_stream == 2;
        before += info.sinfo_stream == 1 && seen == 0;
        after += info.sinfo_stream == 1 && seen == 4;
    }
    over();
    char *to = text[next++ % 8];
    snprintf(to, sizeof text[0], "%s, %s", before == 30 ? "in order" : "before others", after > 0 ? "all early" : "to the end");
    return to;
}

static void schedulers(void) {
    found("SCTP_STREAM_SCHEDULER: first come, first served", "%s", order(SCTP_SS_FCFS));
    found("SCTP_STREAM_SCHEDULER: by priority", "%s", order(SCTP_SS_PRIO));
    found("SCTP_STREAM_SCHEDULER: round robin", "%s", order(SCTP_SS_RR));
    opened();
    found("SCTP_STREAM_SCHEDULER: 3", "%s", result(turn(client, SCTP_STREAM_SCHEDULER, 3)));
    connected();
    struct sctp_stream_value value = {.stream_id = 1, .stream_value = 5};
    int got = set(client, SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof value);
    found("SCTP_STREAM_SCHEDULER_VALUE: first come, first served", "%s", result(got));
    value.stream_value = 77;
    got = get(client, SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof value);
    found("SCTP_STREAM_SCHEDULER_VALUE: read again", "%s %d", result(got), value.stream_value);
    turn(client, SCTP_STREAM_SCHEDULER, SCTP_SS_PRIO);
    value.stream_value = 5;
    set(client, SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof value);
    value.stream_value = 77;
    got = get(client, SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof value);
    found("SCTP_STREAM_SCHEDULER_VALUE: a priority, read again", "%s %d", result(got), value.stream_value);
    value.stream_id = 60000;
    got = get(client, SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof value);
    found("SCTP_STREAM_SCHEDULER_VALUE: of a stream that does not exist", "%s", result(got));
    got = set(client, SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof value);
    found("SCTP_STREAM_SCHEDULER_VALUE: set for a stream that does not exist", "%s", result(got));
    over();
}

/* What both sides have to want. */
static void agreed(void) {
    static const struct {
        const char *name;
        int number;
    } extensions[] = {
#define EXTENSION(name) {#name, name}
        EXTENSION(SCTP_PR_SUPPORTED), EXTENSION(SCTP_RECONFIG_SUPPORTED), EXTENSION(SCTP_INTERLEAVING_SUPPORTED),
        EXTENSION(SCTP_ASCONF_SUPPORTED), EXTENSION(SCTP_AUTH_SUPPORTED), EXTENSION(SCTP_ECN_SUPPORTED),
    };
    for (unsigned i = 0; i < sizeof extensions / sizeof *extensions; i++)
        for (int who = 0; who < 4; who++) {
            int number = extensions[i].number;
            opened();
            int interleave = 1;
            set(listener, SCTP_FRAGMENT_INTERLEAVE, &interleave, sizeof interleave);
            set(client, SCTP_FRAGMENT_INTERLEAVE, &interleave, sizeof interleave);
            if (number == SCTP_ASCONF_SUPPORTED) {
                turn(listener, SCTP_AUTH_SUPPORTED, 1);
                turn(client, SCTP_AUTH_SUPPORTED, 1);
            }
            int one = turn(client, number, who & 1), other = turn(listener, number, who >> 1);
            connected();
            struct sctp_assoc_value own = {0}, theirs = {0};
            int got = get(client, number, &own, sizeof own);
            get(peer, number, &theirs, sizeof theirs);
            char what[90];
            snprintf(what, sizeof what, "%s: of an association with %d and %d", extensions[i].name, who & 1, who >> 1);
            found(what, "%d %d, %s, %u %u", one, other, result(got), own.assoc_value, theirs.assoc_value);
            snprintf(what, sizeof what, "%s: set for an association with %d and %d", extensions[i].name, who & 1, who >> 1);
            found(what, "%s", result(turn(client, number, 1)));
            over();
        }
}

static int with_addresses(int fd, struct sockaddr_in *to, int type, const void *address, size_t size) {
    char control[CMSG_SPACE(16)] = {0};
    struct iovec part = {"to several", 10};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = CMSG_SPACE(size)};
    if (to != NULL) {
        message.msg_name = to;
        message.msg_namelen = sizeof *to;
    }
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = IPPROTO_SCTP;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(header), address, size);
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static void destinations(void) {
    struct sockaddr_in names[2] = {loopback(5000), loopback(5000)};
    struct in_addr multicast, second;
    inet_pton(AF_INET, "127.0.0.3", &names[0].sin_addr);
    inet_pton(AF_INET, "127.0.0.4", &names[1].sin_addr);
    inet_pton(AF_INET, "224.0.0.5", &multicast);
    second = names[1].sin_addr;
    int server = socket_with_limit(AF_INET, SOCK_SEQPACKET), fd = socket_with_limit(AF_INET, SOCK_SEQPACKET);
    sctp_bindx(server, (struct sockaddr *)names, 2, 1);
    listen(server, 5);
    struct in6_addr six = in6addr_loopback;
    found("SCTP_DSTADDRV4: two bytes", "%s", result(with_addresses(fd, &names[0], SCTP_DSTADDRV4, &second, 2)));
    found("SCTP_DSTADDRV4: a multicast address", "%s", result(with_addresses(fd, &names[0], SCTP_DSTADDRV4, &multicast, 4)));
    found("SCTP_DSTADDRV6: on an IPv4 socket", "%s", result(with_addresses(fd, &names[0], SCTP_DSTADDRV6, &six, 16)));
    found("SCTP_DSTADDRV6: four bytes", "%s", result(with_addresses(fd, &names[0], SCTP_DSTADDRV6, &six, 4)));
    found("SCTP_DSTADDRV4: without a name", "%s", result(with_addresses(fd, NULL, SCTP_DSTADDRV4, &second, 4)));
    found("SCTP_DSTADDRV4: a second address", "%s", result(with_addresses(fd, &names[0], SCTP_DSTADDRV4, &second, 4)));
    found("recv: what was sent to both", "%s", result(recv(server, buffer, sizeof buffer, 0)));
    struct {
        uint32_t count;
        sctp_assoc_t ids[4];
    } list = {0};
    get(fd, SCTP_GET_ASSOC_ID_LIST, &list, sizeof list);
    struct sockaddr *addresses = NULL;
    int count = sctp_getpaddrs(fd, list.ids[0], &addresses);
    found("sctp_getpaddrs: of both", "%s", result(count));
    if (count > 0)
        sctp_freepaddrs(addresses);
    found("SCTP_DSTADDRV4: again", "%s", result(with_addresses(fd, &names[0], SCTP_DSTADDRV4, &second, 4)));
    found("recv: what was sent again", "%s", result(recv(server, buffer, sizeof buffer, 0)));
    close(fd);
    close(server);
}

static void ports(void) {
    struct sockaddr_in name = loopback(5000);
    int one = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), two = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), on = 1;
    set(one, SCTP_REUSE_PORT, &on, sizeof on);
    found("SCTP_REUSE_PORT: bind of the first", "%s", result(bind(one, (struct sockaddr *)&name, sizeof name)));
    found("SCTP_REUSE_PORT: bind of one without it", "%s", result(bind(two, (struct sockaddr *)&name, sizeof name)));
    set(two, SCTP_REUSE_PORT, &on, sizeof on);
    found("SCTP_REUSE_PORT: bind of the second", "%s", result(bind(two, (struct sockaddr *)&name, sizeof name)));
    found("SCTP_REUSE_PORT: set after bind", "%s", result(set(two, SCTP_REUSE_PORT, &on, sizeof on)));
    found("SCTP_REUSE_PORT: listen of the first", "%s", result(listen(one, 1)));
    close(two);
    two = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    set(two, SCTP_REUSE_PORT, &on, sizeof on);
    found("SCTP_REUSE_PORT: bind beside one that listens", "%s", result(bind(two, (struct sockaddr *)&name, sizeof name)));
    close(one);
    close(two);
    one = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    two = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    found("SCTP_REUSE_PORT: of a one-to-many socket", "%s", result(set(two, SCTP_REUSE_PORT, &on, sizeof on)));
    setsockopt(one, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    close(two);
    two = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    set(two, SCTP_REUSE_PORT, &on, sizeof on);
    bind(one, (struct sockaddr *)&name, sizeof name);
    found("SCTP_REUSE_PORT: beside SO_REUSEADDR", "%s", result(bind(two, (struct sockaddr *)&name, sizeof name)));
    close(one);
    close(two);
    one = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    two = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    setsockopt(one, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    bind(one, (struct sockaddr *)&name, sizeof name);
    found("SO_REUSEPORT: bind of one without it", "%s", result(bind(two, (struct sockaddr *)&name, sizeof name)));
    setsockopt(two, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    found("SO_REUSEPORT: bind of the second", "%s", result(bind(two, (struct sockaddr *)&name, sizeof name)));
    close(one);
    close(two);
}

static void more(void) {
    opened();
    connected();
    struct pollfd one = {.fd = peer, .events = POLLIN};
    send(client, "first", 5, MSG_MORE);
    found("MSG_MORE: a message", "%s", poll(&one, 1, 300) == 1 ? "arrives" : "waits");
    send(client, "second", 6, 0);
    usleep(200000);
    found("MSG_MORE: after the next message", "%s", result(recv(peer, buffer, sizeof buffer, MSG_DONTWAIT)));
    found("MSG_MORE: the next message", "%s", result(recv(peer, buffer, sizeof buffer, MSG_DONTWAIT)));
    over();
}

int main(void) {
    alarm(110);
    windows();
    states();
    counters();
    sizes();
    authentication();
    partial_reliability();
    streams();
    schedulers();
    agreed();
    destinations();
    ports();
    more();
    return failures != 0;
}
