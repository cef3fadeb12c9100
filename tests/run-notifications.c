/* Notifications with all their fields, and SCTP_STATUS. Prints what it finds, to be compared with Linux's SCTP. */

#define _GNU_SOURCE

#include <stdlib.h>
#include <unistd.h>

#include "run-common.h"

static char buffer[4096];

static int set(int fd, int name, const void *value, socklen_t size) {
    return setsockopt(fd, IPPROTO_SCTP, name, value, size);
}

static int opened(int style) {
    int fd = socket(AF_INET, style, IPPROTO_SCTP), on = 1;
    struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    set(fd, SCTP_NODELAY, &on, sizeof on);
    return fd;
}

static void subscribe(int fd, int type) {
    struct sctp_event event = {.se_type = type, .se_on = 1};
    set(fd, SCTP_EVENT, &event, sizeof event);
}

static void subscribe_to_all(int fd) {
    static const int types[] = {SCTP_ASSOC_CHANGE, SCTP_PEER_ADDR_CHANGE, SCTP_SEND_FAILED_EVENT, SCTP_REMOTE_ERROR,
                                SCTP_SHUTDOWN_EVENT, SCTP_PARTIAL_DELIVERY_EVENT, SCTP_ADAPTATION_INDICATION,
                                SCTP_AUTHENTICATION_EVENT};
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++)
        subscribe(fd, types[i]);
}

static void aborts(int fd) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

static struct sockaddr_in at(const char *ip, int port) {
    struct sockaddr_in it = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, ip, &it.sin_addr);
    return it;
}

/* The association that the last SCTP_ASSOC_CHANGE was about. */
static sctp_assoc_t last;

static const char *same(sctp_assoc_t id) { return id == 0 ? "no id" : id == last ? "its id" : "another id"; }

/* The fields of a notification. */
static const char *described(int size) {
    static char text[400];
    union sctp_notification *it = (union sctp_notification *)buffer;
    char ip[64] = "";
    switch (it->sn_header.sn_type) {
    case SCTP_ASSOC_CHANGE: {
        struct sctp_assoc_change *one = &it->sn_assoc_change;
        if (one->sac_state == SCTP_COMM_UP)
            last = one->sac_assoc_id;
        snprintf(text, sizeof text, "SCTP_ASSOC_CHANGE flags %x length %d, state %d error %d streams %d %d, %s, %d bytes",
                 one->sac_flags, (int)one->sac_length, one->sac_state, ntohs(one->sac_error),
                 one->sac_outbound_streams, one->sac_inbound_streams, same(one->sac_assoc_id), size);
        break;
    }
    case SCTP_PEER_ADDR_CHANGE: {
        struct sctp_paddr_change *one = &it->sn_paddr_change;
        inet_ntop(AF_INET, &((struct sockaddr_in *)&one->spc_aaddr)->sin_addr, ip, sizeof ip);
        snprintf(text, sizeof text, "SCTP_PEER_ADDR_CHANGE flags %x length %d, state %d error %d %s %s, %d bytes",
                 one->spc_flags, (int)one->spc_length, one->spc_state, one->spc_error, ip, same(one->spc_assoc_id), size);
        break;
    }
    case SCTP_SHUTDOWN_EVENT:
        snprintf(text, sizeof text, "SCTP_SHUTDOWN_EVENT flags %x length %d, %s, %d bytes",
                 it->sn_shutdown_event.sse_flags, (int)it->sn_shutdown_event.sse_length,
                 same(it->sn_shutdown_event.sse_assoc_id), size);
        break;
    case SCTP_ADAPTATION_INDICATION:
        snprintf(text, sizeof text, "SCTP_ADAPTATION_INDICATION flags %x length %d, %u, %s, %d bytes",
                 it->sn_adaptation_event.sai_flags, (int)it->sn_adaptation_event.sai_length,
                 it->sn_adaptation_event.sai_adaptation_ind, same(it->sn_adaptation_event.sai_assoc_id), size);
        break;
    case SCTP_AUTHENTICATION_EVENT: {
        struct sctp_authkey_event *one = &it->sn_authkey_event;
        snprintf(text, sizeof text, "SCTP_AUTHENTICATION_EVENT flags %x length %d, keys %d %d, %u, %s, %d bytes",
                 one->auth_flags, (int)one->auth_length, one->auth_keynumber, one->auth_altkeynumber,
                 one->auth_indication, same(one->auth_assoc_id), size);
        break;
    }
    case SCTP_SENDER_DRY_EVENT:
        snprintf(text, sizeof text, "SCTP_SENDER_DRY_EVENT flags %x length %d, %s, %d bytes",
                 it->sn_sender_dry_event.sender_dry_flags, (int)it->sn_sender_dry_event.sender_dry_length,
                 same(it->sn_sender_dry_event.sender_dry_assoc_id), size);
        break;
    case SCTP_SEND_FAILED_EVENT: {
        struct sctp_send_failed_event *one = (struct sctp_send_failed_event *)buffer;
        snprintf(text, sizeof text,
                 "SCTP_SEND_FAILED_EVENT flags %x length %d, error %u, stream %d flags %x ppid %u context %u, %s, %d bytes",
                 one->ssf_flags, (int)one->ssf_length, one->ssf_error, one->ssfe_info.snd_sid, one->ssfe_info.snd_flags,
                 ntohl(one->ssfe_info.snd_ppid), one->ssfe_info.snd_context, same(one->ssf_assoc_id), size);
        break;
    }
    default:
        snprintf(text, sizeof text, "type %x, %d bytes", it->sn_header.sn_type, size);
    }
    return text;
}

/* The next message or notification. */
static const char *next_one(int fd) {
    static char text[500];
    int flags = 0, size = sctp_recvmsg(fd, buffer, sizeof buffer, NULL, NULL, NULL, &flags);
    if (size < 0)
        return result(size);
    if (!(flags & MSG_NOTIFICATION)) {
        snprintf(text, sizeof text, "a message of %d bytes", size);
        return text;
    }
    snprintf(text, sizeof text, "%s%s", described(size), flags & MSG_EOR ? "" : ", without MSG_EOR");
    return text;
}

/* The first of this type; the others are left out. */
static const char *next_of(int fd, int type) {
    for (int i = 0; i < 20; i++) {
        const char *text = next_one(fd);
        if (((union sctp_notification *)buffer)->sn_header.sn_type == type || *text == '-')
            return text;
    }
    return "none";
}

static const char *status_of(int fd, sctp_assoc_t id) {
    static char text[300];
    struct sctp_status status;
    memset(&status, 0, sizeof status);
    status.sstat_assoc_id = id;
    socklen_t size = sizeof status;
    if (getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &status, &size) != 0)
        return result(-1);
    char ip[64];
    struct sockaddr_in *address = (struct sockaddr_in *)&status.sstat_primary.spinfo_address;
    inet_ntop(AF_INET, &address->sin_addr, ip, sizeof ip);
    snprintf(text, sizeof text, "state %d, streams %d %d, unacknowledged %d, pending %d, %s %s %d, primary %s, %d bytes",
             status.sstat_state, status.sstat_instrms, status.sstat_outstrms, status.sstat_unackdata,
             status.sstat_penddata, status.sstat_assoc_id == id ? "its id" : "another id",
             status.sstat_primary.spinfo_assoc_id == id ? "its id" : "another id", status.sstat_primary.spinfo_state,
             ip, (int)size);
    return text;
}

static void one_to_many(void) {
    int server = opened(SOCK_SEQPACKET), client = opened(SOCK_SEQPACKET);
    struct sockaddr_in name = at("127.0.0.3", 5000), own = at("127.0.0.3", 0);
    struct sockaddr *to = (struct sockaddr *)&name;
    struct sctp_initmsg init = {.sinit_num_ostreams = 5, .sinit_max_instreams = 3};
    struct sctp_setadaptation layer = {.ssb_adaptation_ind = 77};
    set(server, SCTP_INITMSG, &init, sizeof init);
    set(client, SCTP_ADAPTATION_LAYER, &layer, sizeof layer);
    subscribe_to_all(server);
    subscribe_to_all(client);
    bind(server, to, sizeof name);
    bind(client, (struct sockaddr *)&own, sizeof own);
    listen(server, 5);
    sctp_assoc_t id = 0;
    sctp_connectx(client, to, 1, &id);
    last = id;
    found("SCTP_ASSOC_CHANGE: SCTP_COMM_UP at the side that connects", "%s", next_of(client, SCTP_ASSOC_CHANGE));
    found("SCTP_AUTHENTICATION_EVENT: at the side that connects", "%s", next_of(client, SCTP_AUTHENTICATION_EVENT));
    found("SCTP_STATUS: at the side that connects", "%s", status_of(client, id));
    found("SCTP_STATUS: with an id of 0", "%s", status_of(client, 0));
    found("SCTP_ASSOC_CHANGE: SCTP_COMM_UP at the other side", "%s", next_of(server, SCTP_ASSOC_CHANGE));
    sctp_assoc_t other = last;
    found("SCTP_ADAPTATION_INDICATION: at the other side", "%s", next_of(server, SCTP_ADAPTATION_INDICATION));
    found("SCTP_AUTHENTICATION_EVENT: at the other side", "%s", next_of(server, SCTP_AUTHENTICATION_EVENT));
    found("SCTP_STATUS: at the other side", "%s", status_of(server, other));
    sctp_sendmsg(client, "hello", 5, to, sizeof name, 0, 0, 0, 0, 0);
    found("recv: a message after the notifications", "%s", next_one(server));

    subscribe(client, SCTP_SENDER_DRY_EVENT);
    struct pollfd readable = {.fd = client, .events = POLLIN};
    sctp_sendmsg(client, "none", 4, to, sizeof name, 0, 0, 0, 0, 0);
    found("SCTP_EVENT: of SCTP_FUTURE_ASSOC leaves a present association", "%s",
          poll(&readable, 1, 500) == 1 ? next_one(client) : "nothing");
    next_one(server);
    struct sctp_event dry = {.se_assoc_id = SCTP_ALL_ASSOC, .se_type = SCTP_SENDER_DRY_EVENT, .se_on = 1};
    set(client, SCTP_EVENT, &dry, sizeof dry);
    last = id;
    sctp_sendmsg(client, "dry", 3, to, sizeof name, 0, 0, 0, 0, 0);
    found("SCTP_SENDER_DRY_EVENT: after a message", "%s", next_of(client, SCTP_SENDER_DRY_EVENT));
    last = other;
    found("recv: the message", "%s", next_one(server));
    sctp_sendmsg(client, NULL, 0, to, sizeof name, 0, SCTP_EOF, 0, 0, 0);
    found("SCTP_SHUTDOWN_EVENT: at the peer", "%s", next_one(server));
    found("SCTP_ASSOC_CHANGE: SCTP_SHUTDOWN_COMP at the peer", "%s", next_one(server));
    last = id;
    found("SCTP_ASSOC_CHANGE: SCTP_SHUTDOWN_COMP at the side that began", "%s", next_of(client, SCTP_ASSOC_CHANGE));
    found("SCTP_STATUS: after the end", "%s", status_of(client, id));

    sctp_connectx(client, to, 1, &id);
    last = id;
    next_of(client, SCTP_ASSOC_CHANGE);
    next_of(server, SCTP_ASSOC_CHANGE);
    next_of(server, SCTP_AUTHENTICATION_EVENT);
    other = last;
    sctp_sendmsg(client, "because", 7, to, sizeof name, 0, SCTP_ABORT, 0, 0, 0);
    found("SCTP_ASSOC_CHANGE: SCTP_COMM_LOST at the peer of SCTP_ABORT", "%s", next_of(server, SCTP_ASSOC_CHANGE));
    last = id;
    found("SCTP_ASSOC_CHANGE: at the side that aborts", "%s", next_of(client, SCTP_ASSOC_CHANGE));
    struct sockaddr_in none = at("127.0.0.3", 5009);
    sctp_sendmsg(client, "nowhere", 7, (struct sockaddr *)&none, sizeof none, htonl(8), 0, 2, 0, 99);
    /* A notification before the association has been established: its id is not known. */
    found("SCTP_ASSOC_CHANGE: SCTP_CANT_STR_ASSOC", "%s", next_of(client, SCTP_ASSOC_CHANGE));
    close(client);
    close(server);
}

static void failures_to_send(void) {
    int server = opened(SOCK_SEQPACKET), client = opened(SOCK_SEQPACKET);
    struct sockaddr_in none = at("127.0.0.3", 5009);
    subscribe(client, SCTP_SEND_FAILED_EVENT);
    subscribe(client, SCTP_ASSOC_CHANGE);
    found("sctp_sendmsg: where no socket listens", "%s",
          result(sctp_sendmsg(client, "nowhere", 7, (struct sockaddr *)&none, sizeof none, htonl(8), 0, 2, 0, 99)));
    const char *text = next_one(client);
    struct pollfd more = {.fd = client, .events = POLLIN};
    if (strncmp(text, "SCTP_SEND", 9) != 0)
        text = poll(&more, 1, 1000) == 1 ? next_one(client) : "none";
    found("SCTP_SEND_FAILED_EVENT: of an association that was refused", "%s", text);
    close(client);
    close(server);
}

static void one_to_one(void) {
    int listener = opened(SOCK_STREAM), client = opened(SOCK_STREAM);
    struct sockaddr_in name = at("127.0.0.1", 5000);
    subscribe_to_all(listener);
    subscribe_to_all(client);
    bind(listener, (struct sockaddr *)&name, sizeof name);
    listen(listener, 5);
    found("connect: with notifications", "%s", result(connect(client, (struct sockaddr *)&name, sizeof name)));
    int peer = accept(listener, NULL, NULL);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    found("SCTP_ASSOC_CHANGE: SCTP_COMM_UP of a socket that connects", "%s", next_of(client, SCTP_ASSOC_CHANGE));
    found("SCTP_ASSOC_CHANGE: SCTP_COMM_UP of an accepted socket", "%s", next_of(peer, SCTP_ASSOC_CHANGE));
    found("SCTP_AUTHENTICATION_EVENT: of an accepted socket", "%s", next_of(peer, SCTP_AUTHENTICATION_EVENT));
    found("SCTP_STATUS: of an accepted socket", "%s", status_of(peer, last));
    sctp_assoc_t own = last;
    found("SCTP_STATUS: with another association's id", "%s", status_of(peer, own + 1000));
    char small[8];
    struct iovec part = {small, sizeof small};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    send(client, "before", 6, 0);
    found("recv: a message before the end", "%s", next_one(peer));
    close(client);
    wait_for(peer, POLLIN);
    int first = recvmsg(peer, &message, 0), first_flags = message.msg_flags;
    int second = recvmsg(peer, &message, 0), second_flags = message.msg_flags;
    found("MSG_EOR: a notification in parts", "%d %x, %d %x", first, first_flags, second, second_flags);
    found("SCTP_ASSOC_CHANGE: SCTP_SHUTDOWN_COMP of an accepted socket", "%s", next_of(peer, SCTP_ASSOC_CHANGE));
    found("recv: after the last notification", "%s", result(recv(peer, buffer, sizeof buffer, 0)));
    close(peer);

    client = opened(SOCK_STREAM);
    connect(client, (struct sockaddr *)&name, sizeof name);
    peer = accept(listener, NULL, NULL);
    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    next_of(peer, SCTP_AUTHENTICATION_EVENT);
    send(client, "unread", 6, 0);
    wait_for(peer, POLLIN);
    aborts(client);
    found("recv: a message before an abort", "%s", next_one(peer));
    found("SCTP_ASSOC_CHANGE: SCTP_COMM_LOST of an accepted socket", "%s", next_of(peer, SCTP_ASSOC_CHANGE));
    found("recv: after SCTP_COMM_LOST", "%s", result(recv(peer, buffer, sizeof buffer, 0)));
    close(peer);

    client = opened(SOCK_STREAM);
    struct sctp_event_subscribe few = {.sctp_association_event = 1, .sctp_shutdown_event = 1};
    found("SCTP_EVENTS: with 2 bytes", "%s", result(set(client, SCTP_EVENTS, &few, 2)));
    struct sctp_event event = {.se_type = SCTP_SHUTDOWN_EVENT};
    socklen_t size = sizeof event;
    getsockopt(client, IPPROTO_SCTP, SCTP_EVENT, &event, &size);
    found("SCTP_EVENT: of SCTP_SHUTDOWN_EVENT after SCTP_EVENTS with 2 bytes", "%d", event.se_on);
    event.se_type = SCTP_ASSOC_CHANGE;
    getsockopt(client, IPPROTO_SCTP, SCTP_EVENT, &event, &size);
    found("SCTP_EVENT: of SCTP_ASSOC_CHANGE after SCTP_EVENTS with 2 bytes", "%d", event.se_on);
    static const int types[] = {SCTP_SN_TYPE_BASE, SCTP_SN_TYPE_BASE + 14, 5, 0xffff};
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
        char text[64];
        event = (struct sctp_event){.se_type = types[i], .se_on = 1};
        snprintf(text, sizeof text, "SCTP_EVENT: type %x", types[i]);
        found(text, "%s", result(set(client, SCTP_EVENT, &event, sizeof event)));
    }
    close(client);
    close(listener);
}

static void paths(void) {
    int listener = opened(SOCK_STREAM), client = opened(SOCK_STREAM);
    struct sockaddr_in name = at("127.0.0.1", 5000), unknown = at("127.0.0.77", 5000);
    bind(listener, (struct sockaddr *)&name, sizeof name);
    listen(listener, 5);
    connect(client, (struct sockaddr *)&name, sizeof name);
    int peer = accept(listener, NULL, NULL);
    struct sctp_paddrinfo info;
    memset(&info, 0, sizeof info);
    memcpy(&info.spinfo_address, &name, sizeof name);
    socklen_t size = sizeof info;
    int got = getsockopt(client, IPPROTO_SCTP, SCTP_GET_PEER_ADDR_INFO, &info, &size);
    found("SCTP_GET_PEER_ADDR_INFO: of a new association", "%s, state %d, %d bytes", result(got), info.spinfo_state, (int)size);
    memcpy(&info.spinfo_address, &unknown, sizeof unknown);
    got = getsockopt(client, IPPROTO_SCTP, SCTP_GET_PEER_ADDR_INFO, &info, &size);
    found("SCTP_GET_PEER_ADDR_INFO: of an unknown address", "%s", result(got));
    struct sctp_prim primary;
    memset(&primary, 0, sizeof primary);
    memcpy(&primary.ssp_addr, &unknown, sizeof unknown);
    found("SCTP_PRIMARY_ADDR: an unknown address", "%s", result(set(client, SCTP_PRIMARY_ADDR, &primary, sizeof primary)));
    struct sctp_paddrparams params;
    memset(&params, 0, sizeof params);
    memcpy(&params.spp_address, &unknown, sizeof unknown);
    params.spp_pathmaxrxt = 3;
    found("SCTP_PEER_ADDR_PARAMS: an unknown address", "%s",
          result(set(client, SCTP_PEER_ADDR_PARAMS, &params, sizeof params)));
    memcpy(&params.spp_address, &name, sizeof name);
    params.spp_flags = SPP_HB_DEMAND;
    found("SCTP_PEER_ADDR_PARAMS: SPP_HB_DEMAND", "%s", result(set(client, SCTP_PEER_ADDR_PARAMS, &params, sizeof params)));
    struct sctp_assocparams association;
    memset(&association, 0, sizeof association);
    size = sizeof association;
    getsockopt(client, IPPROTO_SCTP, SCTP_ASSOCINFO, &association, &size);
    found("SCTP_ASSOCINFO: of an association", "%d retransmissions, %d paths, cookie %u", association.sasoc_asocmaxrxt,
          association.sasoc_number_peer_destinations, association.sasoc_cookie_life);
    struct sctp_assoc_value on = {.assoc_value = 1};
    found("SCTP_RECONFIG_SUPPORTED: of an association", "%s",
          result(set(client, SCTP_RECONFIG_SUPPORTED, &on, sizeof on)));
    struct {
        struct sctp_reset_streams head;
        uint16_t streams[2];
    } reset = {{.srs_flags = SCTP_STREAM_RESET_OUTGOING, .srs_number_streams = 1}, {1}};
    found("SCTP_RESET_STREAMS: not agreed", "%s", result(set(client, SCTP_RESET_STREAMS, &reset, sizeof reset)));
    sctp_assoc_t id = 0;
    found("SCTP_RESET_ASSOC: not agreed", "%s", result(set(client, SCTP_RESET_ASSOC, &id, sizeof id)));
    struct sctp_add_streams more = {.sas_outstrms = 1};
    found("SCTP_ADD_STREAMS: not agreed", "%s", result(set(client, SCTP_ADD_STREAMS, &more, sizeof more)));
    struct sctp_initmsg init = {.sinit_num_ostreams = 3};
    found("SCTP_INITMSG: after connect", "%s", result(set(client, SCTP_INITMSG, &init, sizeof init)));
    struct sctp_setadaptation layer = {.ssb_adaptation_ind = 3};
    found("SCTP_ADAPTATION_LAYER: after connect", "%s", result(set(client, SCTP_ADAPTATION_LAYER, &layer, sizeof layer)));
    struct sctp_assoc_value burst = {.assoc_value = 3};
    found("SCTP_MAX_BURST: of an association", "%s", result(set(client, SCTP_MAX_BURST, &burst, sizeof burst)));
    struct sctp_sack_info sack = {.sack_delay = 100, .sack_freq = 2};
    found("SCTP_DELAYED_SACK: of an association", "%s", result(set(client, SCTP_DELAYED_SACK, &sack, sizeof sack)));
    int reuse = 1;
    found("SCTP_REUSE_PORT: after connect", "%s", result(set(client, SCTP_REUSE_PORT, &reuse, sizeof reuse)));
    aborts(client);
    close(peer);
    close(listener);
}

int main(void) {
    alarm(90);
    one_to_many();
    failures_to_send();
    one_to_one();
    paths();
    return failures != 0;
}
