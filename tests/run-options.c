/* Socket options and notifications of RFC 6458 and RFC 6525. Prints a line for each statement, as
 * run-api.c does. The expected results are those of the RFCs and of Linux. */

#define _GNU_SOURCE

#include <stdlib.h>
#include <unistd.h>

#include "run-common.h"

static int sctp_socket(void) {
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

static int set(int fd, int name, const void *value, socklen_t size) {
    return setsockopt(fd, IPPROTO_SCTP, name, value, size);
}

static int get(int fd, int name, void *value, socklen_t size) {
    socklen_t length = size;
    return getsockopt(fd, IPPROTO_SCTP, name, value, &length);
}

/* Whether an option with a `sctp_assoc_value` is returned as it was set. */
static int keeps(int fd, int name, uint32_t value) {
    struct sctp_assoc_value one = {.assoc_value = value}, got = {0};
    return set(fd, name, &one, sizeof one) == 0 && get(fd, name, &got, sizeof got) == 0 &&
           got.assoc_value == value;
}

static int keeps_int(int fd, int name, int value) {
    int got = -1;
    return set(fd, name, &value, sizeof value) == 0 && get(fd, name, &got, sizeof got) == 0 && got == value;
}

static void subscribe(int fd, int type) {
    struct sctp_event event = {.se_type = type, .se_on = 1};
    set(fd, SCTP_EVENT, &event, sizeof event);
}

static char buffer[4096];

/* Receives until a notification of this type arrives; its size, or 0. */
static int notified(int fd, int type) {
    int size;
    for (;;) {
        int flags = 0;
        size = sctp_recvmsg(fd, buffer, sizeof buffer, NULL, NULL, NULL, &flags);
        if (size <= 0)
            return 0;
        if (flags & MSG_NOTIFICATION && ((struct sctp_shutdown_event *)buffer)->sse_type == type)
            return size;
    }
}

static int listener, client, peer;

static void prepare(int fd) {
    struct sctp_assoc_value on = {.assoc_value = 1}, all = {.assoc_value = 7};
    set(fd, SCTP_RECONFIG_SUPPORTED, &on, sizeof on);
    set(fd, SCTP_ENABLE_STREAM_RESET, &all, sizeof all);
}

static void before(void) {
    int fd = client;
    struct sctp_assoc_value pf = {.assoc_value = 9};
    check("SCTP_CONTEXT: is returned as set", keeps(fd, SCTP_CONTEXT, 17));
    check("SCTP_DISABLE_FRAGMENTS: is returned as set", keeps_int(fd, SCTP_DISABLE_FRAGMENTS, 0));
    check("SCTP_FRAGMENT_INTERLEAVE: is returned as set", keeps_int(fd, SCTP_FRAGMENT_INTERLEAVE, 1));
    check("SCTP_REUSE_PORT: is returned as set", keeps_int(fd, SCTP_REUSE_PORT, 1));
    check("SCTP_ADAPTATION_LAYER: is returned as set", keeps_int(fd, SCTP_ADAPTATION_LAYER, 99));
    check("SCTP_AUTO_ASCONF: is returned as set", keeps_int(fd, SCTP_AUTO_ASCONF, 0));
    check("SCTP_MAX_BURST: is returned as set", keeps(fd, SCTP_MAX_BURST, 8));
    check("SCTP_PR_SUPPORTED: is returned as set", keeps(fd, SCTP_PR_SUPPORTED, 1));
    check("SCTP_RECONFIG_SUPPORTED: is returned as set", keeps(fd, SCTP_RECONFIG_SUPPORTED, 1));
    check("SCTP_ENABLE_STREAM_RESET: is returned as set", keeps(fd, SCTP_ENABLE_STREAM_RESET, 7));
    check("SCTP_INTERLEAVING_SUPPORTED: is returned as set", keeps(fd, SCTP_INTERLEAVING_SUPPORTED, 0));
    check("SCTP_ECN_SUPPORTED: is returned as set", keeps(fd, SCTP_ECN_SUPPORTED, 0));
    check("SCTP_EXPOSE_POTENTIALLY_FAILED_STATE: is 0 at first",
          get(fd, SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, &pf, sizeof pf) == 0 && pf.assoc_value == 0);
    check("SCTP_EXPOSE_POTENTIALLY_FAILED_STATE: EINVAL for 3",
          !keeps(fd, SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, 3) && errno == EINVAL);
    check("SCTP_EXPOSE_POTENTIALLY_FAILED_STATE: can be disabled",
          keeps(fd, SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, 1));
    check("SCTP_EXPOSE_POTENTIALLY_FAILED_STATE: can be enabled",
          keeps(fd, SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, 2));
    check("SCTP_STREAM_SCHEDULER: is returned as set", keeps(fd, SCTP_STREAM_SCHEDULER, SCTP_SS_PRIO));
    struct sctp_assoc_value unknown = {.assoc_value = 77};
    check("SCTP_STREAM_SCHEDULER: EINVAL for an unknown one",
          set(fd, SCTP_STREAM_SCHEDULER, &unknown, sizeof unknown) == -1 && errno == EINVAL);
    struct sctp_sack_info sack = {.sack_delay = 100, .sack_freq = 3}, sack_got;
    memset(&sack_got, 0, sizeof sack_got);
    check("SCTP_DELAYED_SACK: is returned as set",
          set(fd, SCTP_DELAYED_SACK, &sack, sizeof sack) == 0 &&
              get(fd, SCTP_DELAYED_SACK, &sack_got, sizeof sack_got) == 0 && sack_got.sack_delay == 100 &&
              sack_got.sack_freq == 3);
    sack.sack_delay = 501;
    check("SCTP_DELAYED_SACK: EINVAL above 500 ms",
          set(fd, SCTP_DELAYED_SACK, &sack, sizeof sack) == -1 && errno == EINVAL);
    struct sctp_default_prinfo pr = {.pr_policy = SCTP_PR_SCTP_RTX, .pr_value = 4}, pr_got;
    memset(&pr_got, 0, sizeof pr_got);
    check("SCTP_DEFAULT_PRINFO: is returned as set",
          set(fd, SCTP_DEFAULT_PRINFO, &pr, sizeof pr) == 0 &&
              get(fd, SCTP_DEFAULT_PRINFO, &pr_got, sizeof pr_got) == 0 &&
              pr_got.pr_policy == SCTP_PR_SCTP_RTX && pr_got.pr_value == 4);
    struct sctp_paddrthlds limits = {.spt_pathmaxrxt = 6, .spt_pathpfthld = 2}, limits_got;
    memset(&limits_got, 0, sizeof limits_got);
    check("SCTP_PEER_ADDR_THLDS: is returned as set",
          set(fd, SCTP_PEER_ADDR_THLDS, &limits, sizeof limits) == 0 &&
              get(fd, SCTP_PEER_ADDR_THLDS, &limits_got, sizeof limits_got) == 0 &&
              limits_got.spt_pathmaxrxt == 6 && limits_got.spt_pathpfthld == 2);
    struct sctp_paddrparams path;
    memset(&path, 0, sizeof path);
    path.spp_flags = SPP_HB_ENABLE | SPP_HB_DISABLE;
    check("SCTP_PEER_ADDR_PARAMS: EINVAL to enable and disable heartbeats",
          set(fd, SCTP_PEER_ADDR_PARAMS, &path, sizeof path) == -1 && errno == EINVAL);
    path.spp_flags = SPP_HB_DISABLE;
    struct sctp_paddrparams path_got;
    memset(&path_got, 0, sizeof path_got);
    check("SCTP_PEER_ADDR_PARAMS: disables heartbeats",
          set(fd, SCTP_PEER_ADDR_PARAMS, &path, sizeof path) == 0 &&
              get(fd, SCTP_PEER_ADDR_PARAMS, &path_got, sizeof path_got) == 0 &&
              path_got.spp_flags & SPP_HB_DISABLE);
    path.spp_flags = SPP_HB_ENABLE;
    set(fd, SCTP_PEER_ADDR_PARAMS, &path, sizeof path);
    struct sctp_assocparams association = {.sasoc_cookie_life = 30000}, association_got;
    memset(&association_got, 0, sizeof association_got);
    check("SCTP_ASSOCINFO: keeps the lifetime of cookies",
          set(fd, SCTP_ASSOCINFO, &association, sizeof association) == 0 &&
              get(fd, SCTP_ASSOCINFO, &association_got, sizeof association_got) == 0 &&
              association_got.sasoc_cookie_life == 30000);
    struct sctp_assoc_value size = {.assoc_value = 1000};
    int other = sctp_socket();
    check("SCTP_MAXSEG: is set", set(other, SCTP_MAXSEG, &size, sizeof size) == 0);
    close(other);
    struct sctp_status status;
    check("SCTP_STATUS: EINVAL before connect",
          get(fd, SCTP_STATUS, &status, sizeof status) == -1 && errno == EINVAL);
}

static void authentication(void) {
    int fd = sctp_socket();
    struct sctp_authchunk chunk = {.sauth_chunk = 0};
    check("SCTP_AUTH_CHUNK: EACCES without authentication",
          set(fd, SCTP_AUTH_CHUNK, &chunk, sizeof chunk) == -1 && errno == EACCES);
    check("SCTP_AUTH_SUPPORTED: is returned as set", keeps(fd, SCTP_AUTH_SUPPORTED, 1));
    check("SCTP_AUTH_CHUNK: adds a type", set(fd, SCTP_AUTH_CHUNK, &chunk, sizeof chunk) == 0);
    struct {
        struct sctp_authchunks head;
        uint8_t types[256];
    } chunks;
    memset(&chunks, 0, sizeof chunks);
    check("SCTP_LOCAL_AUTH_CHUNKS: lists it",
          get(fd, SCTP_LOCAL_AUTH_CHUNKS, &chunks, sizeof chunks) == 0 &&
              chunks.head.gauth_number_of_chunks == 1);
    chunk.sauth_chunk = 1;
    check("SCTP_AUTH_CHUNK: EINVAL for INIT",
          set(fd, SCTP_AUTH_CHUNK, &chunk, sizeof chunk) == -1 && errno == EINVAL);
    struct {
        struct sctp_hmacalgo head;
        uint16_t ids[8];
    } hmacs;
    memset(&hmacs, 0, sizeof hmacs);
    check("SCTP_HMAC_IDENT: has SHA-256 and SHA-1",
          get(fd, SCTP_HMAC_IDENT, &hmacs, sizeof hmacs) == 0 && hmacs.head.shmac_num_idents == 2);
    struct {
        struct sctp_authkey head;
        uint8_t secret[4];
    } key = {{.sca_keynumber = 5, .sca_keylength = 4}, {1, 2, 3, 4}};
    struct sctp_authkeyid id = {.scact_keynumber = 5};
    check("SCTP_AUTH_KEY: adds a key", set(fd, SCTP_AUTH_KEY, &key, sizeof key) == 0);
    check("SCTP_AUTH_ACTIVE_KEY: selects it", set(fd, SCTP_AUTH_ACTIVE_KEY, &id, sizeof id) == 0);
    check("SCTP_AUTH_DELETE_KEY: EINVAL for the active one",
          set(fd, SCTP_AUTH_DELETE_KEY, &id, sizeof id) == -1 && errno == EINVAL);
    id.scact_keynumber = 6;
    check("SCTP_AUTH_ACTIVE_KEY: EINVAL for an unknown one",
          set(fd, SCTP_AUTH_ACTIVE_KEY, &id, sizeof id) == -1 && errno == EINVAL);
    close(fd);
}

static void association(void) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(5000)};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = sctp_socket();
    prepare(listener);
    int types[] = {SCTP_ADAPTATION_INDICATION, SCTP_AUTHENTICATION_EVENT, SCTP_STREAM_RESET_EVENT,
                   SCTP_STREAM_CHANGE_EVENT, SCTP_ASSOC_RESET_EVENT, SCTP_PARTIAL_DELIVERY_EVENT,
                   SCTP_REMOTE_ERROR};
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++)
        subscribe(listener, types[i]);
    if (bind(listener, (struct sockaddr *)&name, sizeof name) != 0 || listen(listener, 5) != 0 ||
        connect(client, (struct sockaddr *)&name, sizeof name) != 0)
        exit(2);
    peer = accept(listener, NULL, NULL);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    int size = notified(peer, SCTP_ADAPTATION_INDICATION);
    check("SCTP_ADAPTATION_INDICATION: has the peer's number",
          size == sizeof(struct sctp_adaptation_event) &&
              ((struct sctp_adaptation_event *)buffer)->sai_adaptation_ind == 99);
    size = notified(peer, SCTP_AUTHENTICATION_EVENT);
    check("SCTP_AUTHENTICATION_EVENT: SCTP_AUTH_NO_AUTH without authentication",
          size == sizeof(struct sctp_authkey_event) &&
              ((struct sctp_authkey_event *)buffer)->auth_indication == 2);
    struct sctp_status status;
    memset(&status, 0, sizeof status);
    check("SCTP_STATUS: has the peer's window",
          get(client, SCTP_STATUS, &status, sizeof status) == 0 && status.sstat_rwnd > 1000 &&
              status.sstat_fragmentation_point > 500);
    struct sctp_paddrinfo path;
    memset(&path, 0, sizeof path);
    memcpy(&path.spinfo_address, &name, sizeof name);
    check("SCTP_GET_PEER_ADDR_INFO: of the peer's address",
          get(client, SCTP_GET_PEER_ADDR_INFO, &path, sizeof path) == 0 && path.spinfo_state == SCTP_ACTIVE &&
              path.spinfo_mtu > 500 && path.spinfo_cwnd > 0);
    check("SCTP_GET_PEER_ADDR_INFO: has the association's id, as SCTP_STATUS",
          path.spinfo_assoc_id > 2 && path.spinfo_assoc_id == status.sstat_assoc_id &&
              path.spinfo_assoc_id == status.sstat_primary.spinfo_assoc_id);
    struct sctp_prim primary;
    memset(&primary, 0, sizeof primary);
    check("SCTP_PRIMARY_ADDR: is the peer's address",
          get(client, SCTP_PRIMARY_ADDR, &primary, sizeof primary) == 0 &&
              ((struct sockaddr_in *)&primary.ssp_addr)->sin_port == htons(5000) &&
              set(client, SCTP_PRIMARY_ADDR, &primary, sizeof primary) == 0);
    check("SCTP_SET_PEER_PRIMARY_ADDR: EPERM without dynamic addresses",
          set(client, SCTP_SET_PEER_PRIMARY_ADDR, &primary, sizeof primary) == -1 && errno == EPERM);
    struct sctp_rtoinfo rto = {.srto_max = 5000};
    check("SCTP_RTOINFO: is set for an association", set(client, SCTP_RTOINFO, &rto, sizeof rto) == 0);
    struct sctp_paddrparams params;
    memset(&params, 0, sizeof params);
    params.spp_pathmaxrxt = 9;
    struct sctp_paddrparams got;
    memset(&got, 0, sizeof got);
    check("SCTP_PEER_ADDR_PARAMS: changes Path.Max.Retrans of an association",
          set(client, SCTP_PEER_ADDR_PARAMS, &params, sizeof params) == 0 &&
              get(client, SCTP_PEER_ADDR_PARAMS, &got, sizeof got) == 0 && got.spp_pathmaxrxt == 9);
    int on = 1;
    static char large[100000];
    set(client, SCTP_DISABLE_FRAGMENTS, &on, sizeof on);
    check("SCTP_DISABLE_FRAGMENTS: EMSGSIZE for a message larger than a packet",
          send(client, large, sizeof large, 0) == -1 && errno == EMSGSIZE);
    on = 0;
    set(client, SCTP_DISABLE_FRAGMENTS, &on, sizeof on);
    struct sctp_assoc_stats stats;
    memset(&stats, 0, sizeof stats);
    send(client, "x", 1, 0);
    recv(peer, buffer, sizeof buffer, 0);
    check("SCTP_GET_ASSOC_STATS: counts packets",
          get(peer, SCTP_GET_ASSOC_STATS, &stats, sizeof stats) == 0 && stats.sas_ipackets > 0 &&
              stats.sas_iodchunks > 0);
    struct sctp_prstatus abandoned = {.sprstat_policy = SCTP_PR_SCTP_TTL};
    check("SCTP_PR_ASSOC_STATUS: is 0 at first",
          get(client, SCTP_PR_ASSOC_STATUS, &abandoned, sizeof abandoned) == 0 &&
              abandoned.sprstat_abandoned_unsent == 0 && abandoned.sprstat_abandoned_sent == 0);
    abandoned.sprstat_sid = 5000;
    check("SCTP_PR_STREAM_STATUS: EINVAL for a stream that does not exist",
          get(client, SCTP_PR_STREAM_STATUS, &abandoned, sizeof abandoned) == -1 && errno == EINVAL);
    struct sctp_stream_value value = {.stream_id = 1, .stream_value = 3};
    check("SCTP_STREAM_SCHEDULER_VALUE: sets a priority",
          set(client, SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof value) == 0);
    struct {
        struct sctp_reset_streams head;
        uint16_t streams[2];
    } reset = {{.srs_flags = SCTP_STREAM_RESET_OUTGOING, .srs_number_streams = 1}, {1}};
    check("SCTP_RESET_STREAMS: resets a stream", set(client, SCTP_RESET_STREAMS, &reset, sizeof reset) == 0);
    size = notified(peer, SCTP_STREAM_RESET_EVENT);
    struct sctp_stream_reset_event *event = (struct sctp_stream_reset_event *)buffer;
    check("SCTP_STREAM_RESET_EVENT: at the peer",
          size == sizeof *event + 2 && event->strreset_flags & SCTP_STREAM_RESET_INCOMING_SSN &&
              event->strreset_stream_list[0] == 1);
    struct sctp_add_streams more = {.sas_outstrms = 3};
    int added = -1;
    /* The reply to the first request may be on its way. */
    for (int i = 0; i < 200 && added == -1; i++) {
        added = set(client, SCTP_ADD_STREAMS, &more, sizeof more);
        if (added == -1 && errno != EINPROGRESS)
            break;
        if (added == -1)
            usleep(20000);
    }
    check("SCTP_ADD_STREAMS: adds streams", added == 0);
    check("SCTP_STREAM_CHANGE_EVENT: at the peer",
          notified(peer, SCTP_STREAM_CHANGE_EVENT) == sizeof(struct sctp_stream_change_event) &&
              ((struct sctp_stream_change_event *)buffer)->strchange_instrms == 13);
    sctp_assoc_t id = 0;
    int whole = -1;
    for (int i = 0; i < 200 && whole == -1; i++) {
        whole = set(client, SCTP_RESET_ASSOC, &id, sizeof id);
        if (whole == -1 && errno != EINPROGRESS && errno != EAGAIN)
            break;
        if (whole == -1)
            usleep(20000);
    }
    check("SCTP_RESET_ASSOC: resets all numbers", whole == 0);
    check("SCTP_ASSOC_RESET_EVENT: at the peer",
          notified(peer, SCTP_ASSOC_RESET_EVENT) == sizeof(struct sctp_assoc_reset_event));
}

/* Messages that are abandoned because the peer does not read. */
static void abandons(void) {
    subscribe(client, SCTP_SEND_FAILED_EVENT);
    static char block[10000];
    struct sctp_status status;
    int sent = 0, arrived = 0;
    /* More than the peer's window. */
    do {
        sent += send(client, block, sizeof block, 0);
        usleep(2000);
    } while (get(client, SCTP_STATUS, &status, sizeof status) == 0 && status.sstat_rwnd > sizeof block);
    for (int i = 0; i < 3; i++)
        sent += send(client, block, sizeof block, 0);
    sctp_sendmsg(client, "late", 4, NULL, 0, 0, SCTP_PR_SCTP_TTL, 0, 50, 7);
    usleep(300000);
    /* It expires before the window opens. */
    while (arrived < sent) {
        int size = recv(peer, block, sizeof block, 0);
        if (size <= 0)
            break;
        arrived += size;
    }
    int size = notified(client, SCTP_SEND_FAILED_EVENT);
    struct sctp_send_failed_event *event = (struct sctp_send_failed_event *)buffer;
    check("SCTP_SEND_FAILED_EVENT: of a message with a lifetime",
          size >= (int)sizeof *event && event->ssfe_info.snd_context == 7);
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(client);
    close(peer);
    close(listener);
}

int main(void) {
    alarm(90);
    client = sctp_socket();
    before();
    prepare(client);
    authentication();
    association();
    abandons();
    return failures != 0;
}
