/* Every socket option of RFC 6458 and Linux: its default, sizes that are too small or larger than needed,
 * and unknown associations. Prints what it finds, to be compared with Linux's SCTP. */

#define _GNU_SOURCE

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "run-common.h"

struct option {
    const char *name;
    int number;
    /* Bytes of its structure, and where that has the association's id; -1 if it has none. */
    int size, id;
    /* Whether the default is a constant of the API, not of the host or of the stack's own profile. */
    int fixed;
};

#define OPTION(name, type, id, fixed) {#name, name, sizeof(type), id, fixed}
#define VALUE(name, fixed) {#name, name, sizeof(struct sctp_assoc_value), 0, fixed}

static const struct option options[] = {
    OPTION(SCTP_RTOINFO, struct sctp_rtoinfo, 0, 1),
    OPTION(SCTP_ASSOCINFO, struct sctp_assocparams, 0, 0),
    OPTION(SCTP_INITMSG, struct sctp_initmsg, -1, 1),
    OPTION(SCTP_NODELAY, int, -1, 1),
    OPTION(SCTP_AUTOCLOSE, int, -1, 1),
    OPTION(SCTP_SET_PEER_PRIMARY_ADDR, struct sctp_setpeerprim, 0, 0),
    OPTION(SCTP_PRIMARY_ADDR, struct sctp_setprim, 0, 0),
    OPTION(SCTP_ADAPTATION_LAYER, struct sctp_setadaptation, -1, 1),
    OPTION(SCTP_DISABLE_FRAGMENTS, int, -1, 1),
    OPTION(SCTP_PEER_ADDR_PARAMS, struct sctp_paddrparams, 0, 0),
    OPTION(SCTP_DEFAULT_SEND_PARAM, struct sctp_sndrcvinfo, offsetof(struct sctp_sndrcvinfo, sinfo_assoc_id), 1),
    OPTION(SCTP_EVENTS, struct sctp_event_subscribe, -1, 1),
    OPTION(SCTP_I_WANT_MAPPED_V4_ADDR, int, -1, 1),
    VALUE(SCTP_MAXSEG, 1),
    OPTION(SCTP_STATUS, struct sctp_status, 0, 0),
    OPTION(SCTP_GET_PEER_ADDR_INFO, struct sctp_paddrinfo, 0, 0),
    OPTION(SCTP_DELAYED_SACK, struct sctp_sack_info, 0, 1),
    VALUE(SCTP_CONTEXT, 1),
    OPTION(SCTP_FRAGMENT_INTERLEAVE, int, -1, 1),
    OPTION(SCTP_PARTIAL_DELIVERY_POINT, int, -1, 1),
    VALUE(SCTP_MAX_BURST, 1),
    OPTION(SCTP_AUTH_CHUNK, struct sctp_authchunk, -1, 0),
    OPTION(SCTP_HMAC_IDENT, struct sctp_hmacalgo, -1, 0),
    OPTION(SCTP_AUTH_KEY, struct sctp_authkey, 0, 0),
    OPTION(SCTP_AUTH_ACTIVE_KEY, struct sctp_authkeyid, 0, 0),
    OPTION(SCTP_AUTH_DELETE_KEY, struct sctp_authkeyid, 0, 0),
    OPTION(SCTP_AUTH_DEACTIVATE_KEY, struct sctp_authkeyid, 0, 0),
    OPTION(SCTP_PEER_AUTH_CHUNKS, struct sctp_authchunks, 0, 0),
    OPTION(SCTP_LOCAL_AUTH_CHUNKS, struct sctp_authchunks, 0, 0),
    OPTION(SCTP_GET_ASSOC_NUMBER, uint32_t, -1, 1),
    OPTION(SCTP_GET_ASSOC_ID_LIST, struct sctp_assoc_ids, -1, 1),
    OPTION(SCTP_AUTO_ASCONF, int, -1, 1),
    OPTION(SCTP_PEER_ADDR_THLDS, struct sctp_paddrthlds, 0, 0),
    OPTION(SCTP_PEER_ADDR_THLDS_V2, struct sctp_paddrthlds_v2, 0, 0),
    OPTION(SCTP_RECVRCVINFO, int, -1, 1),
    OPTION(SCTP_RECVNXTINFO, int, -1, 1),
    OPTION(SCTP_DEFAULT_SNDINFO, struct sctp_sndinfo, offsetof(struct sctp_sndinfo, snd_assoc_id), 1),
    OPTION(SCTP_REUSE_PORT, int, -1, 1),
    OPTION(SCTP_GET_ASSOC_STATS, struct sctp_assoc_stats, 0, 0),
    VALUE(SCTP_PR_SUPPORTED, 1),
    OPTION(SCTP_DEFAULT_PRINFO, struct sctp_default_prinfo, offsetof(struct sctp_default_prinfo, pr_assoc_id), 1),
    OPTION(SCTP_PR_ASSOC_STATUS, struct sctp_prstatus, 0, 0),
    OPTION(SCTP_PR_STREAM_STATUS, struct sctp_prstatus, 0, 0),
    VALUE(SCTP_RECONFIG_SUPPORTED, 1),
    VALUE(SCTP_ENABLE_STREAM_RESET, 1),
    OPTION(SCTP_RESET_STREAMS, struct sctp_reset_streams, 0, 0),
    OPTION(SCTP_RESET_ASSOC, sctp_assoc_t, 0, 0),
    OPTION(SCTP_ADD_STREAMS, struct sctp_add_streams, 0, 0),
    VALUE(SCTP_STREAM_SCHEDULER, 1),
    OPTION(SCTP_STREAM_SCHEDULER_VALUE, struct sctp_stream_value, 0, 0),
    VALUE(SCTP_INTERLEAVING_SUPPORTED, 1),
    OPTION(SCTP_EVENT, struct sctp_event, offsetof(struct sctp_event, se_assoc_id), 0),
    VALUE(SCTP_ASCONF_SUPPORTED, 1),
    VALUE(SCTP_AUTH_SUPPORTED, 1),
    VALUE(SCTP_ECN_SUPPORTED, 0),
    VALUE(SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, 1),
    OPTION(SCTP_REMOTE_UDP_ENCAPS_PORT, struct sctp_udpencaps, 0, 0),
    OPTION(SCTP_PLPMTUD_PROBE_INTERVAL, struct sctp_probeinterval, 0, 0),
};

#define COUNT (sizeof options / sizeof *options)

static char text[160];

static const char *about(const struct option *one, const char *what) {
    snprintf(text, sizeof text, "%s: %s", one->name, what);
    return text;
}

static char buffer[400];

/* Reads an option with this size and association, and describes the result: the size, or the error. */
static const char *get(int fd, const struct option *one, socklen_t size, sctp_assoc_t id) {
    memset(buffer, 0, sizeof buffer);
    if (one->id >= 0 && size >= one->id + sizeof id)
        memcpy(buffer + one->id, &id, sizeof id);
    if (one->number == SCTP_EVENT) {
        uint16_t type = SCTP_SHUTDOWN_EVENT;
        memcpy(buffer + offsetof(struct sctp_event, se_type), &type, sizeof type);
    }
    int got = getsockopt(fd, IPPROTO_SCTP, one->number, buffer, &size);
    return result(got == 0 ? (long)size : -1);
}

static const char *set(int fd, const struct option *one, socklen_t size, sctp_assoc_t id) {
    memset(buffer, 0, sizeof buffer);
    if (one->id >= 0)
        memcpy(buffer + one->id, &id, sizeof id);
    return result(setsockopt(fd, IPPROTO_SCTP, one->number, buffer, size));
}

/* Bytes that options with lists or strings need not have. */
static int is_list(const struct option *one) {
    return one->number == SCTP_HMAC_IDENT || one->number == SCTP_PEER_AUTH_CHUNKS ||
           one->number == SCTP_LOCAL_AUTH_CHUNKS || one->number == SCTP_GET_ASSOC_ID_LIST;
}

static void sizes(int fd) {
    for (unsigned i = 0; i < COUNT; i++) {
        const struct option *one = &options[i];
        found(about(one, "getsockopt with its size"), "%s", get(fd, one, one->size, 0));
        if (one->fixed) {
            char words[400] = "";
            for (int at = 0; at < one->size; at++)
                sprintf(words + strlen(words), "%02x", (unsigned char)buffer[at]);
            found(about(one, "default"), "%s", words);
        }
        found(about(one, "getsockopt with no bytes"), "%s", get(fd, one, 0, 0));
        if (one->size > 1)
            found(about(one, "getsockopt with one byte less"), "%s", get(fd, one, one->size - 1, 0));
        if (!is_list(one))
            found(about(one, "getsockopt with 400 bytes"), "%s", get(fd, one, sizeof buffer, 0));
        found(about(one, "setsockopt with no bytes"), "%s", set(fd, one, 0, 0));
        if (one->size > 1)
            found(about(one, "setsockopt with one byte less"), "%s", set(fd, one, one->size - 1, 0));
        found(about(one, "setsockopt of zeros"), "%s", set(fd, one, one->size, 0));
        if (!is_list(one))
            found(about(one, "setsockopt with 400 bytes"), "%s", set(fd, one, sizeof buffer, 0));
    }
}

/* The options of authentication where it is on. */
static void authenticated(int fd) {
    struct sctp_assoc_value on = {.assoc_value = 1};
    setsockopt(fd, IPPROTO_SCTP, SCTP_AUTH_SUPPORTED, &on, sizeof on);
    for (unsigned i = 0; i < COUNT; i++) {
        const struct option *one = &options[i];
        if (strncmp(one->name, "SCTP_AUTH_", 10) != 0 && strstr(one->name, "_AUTH_CHUNKS") == NULL &&
            one->number != SCTP_HMAC_IDENT)
            continue;
        /* Linux's result for the deactivation of key 0 is not always the same. */
        if (one->number == SCTP_AUTH_DEACTIVATE_KEY)
            continue;
        found(about(one, "getsockopt with authentication"), "%s", get(fd, one, one->size, 0));
        found(about(one, "getsockopt with authentication and no bytes"), "%s", get(fd, one, 0, 0));
        found(about(one, "setsockopt of zeros with authentication"), "%s", set(fd, one, one->size, 0));
        found(about(one, "setsockopt with authentication and no bytes"), "%s", set(fd, one, 0, 0));
    }
    static const struct {
        const char *name;
        uint32_t count;
        uint16_t ids[3];
    } lists[] = {{"SHA-256 and SHA-1", 2, {3, 1}}, {"without SHA-1", 1, {3}}, {"three", 3, {3, 1, 1}},
                 {"more than it has room for", 9, {3, 1}}, {"unknown ones", 2, {1, 7}}};
    for (unsigned i = 0; i < sizeof lists / sizeof *lists; i++) {
        char statement[80];
        snprintf(statement, sizeof statement, "SCTP_HMAC_IDENT: setsockopt of %s", lists[i].name);
        found(statement, "%s", result(setsockopt(fd, IPPROTO_SCTP, SCTP_HMAC_IDENT, &lists[i].count, 10)));
    }
}

static void associations(int fd, const char *where) {
    char what[80];
    for (unsigned i = 0; i < COUNT; i++) {
        if (options[i].id < 0)
            continue;
        for (sctp_assoc_t id = 0; id < 4; id++) {
            static const char *names[] = {"SCTP_FUTURE_ASSOC", "SCTP_CURRENT_ASSOC", "SCTP_ALL_ASSOC", "unknown"};
            snprintf(what, sizeof what, "getsockopt of %s %s", names[id], where);
            found(about(&options[i], what), "%s", get(fd, &options[i], options[i].size, id == 3 ? 12345 : id));
            snprintf(what, sizeof what, "setsockopt of %s %s", names[id], where);
            found(about(&options[i], what), "%s", set(fd, &options[i], options[i].size, id == 3 ? 12345 : id));
        }
    }
}

int main(void) {
    alarm(40);
    int one = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    errno = 0;
    sizes(one);
    close(one);
    one = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    authenticated(one);
    close(one);
    int many = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    associations(many, "on a one-to-many socket");
    close(many);
    return failures != 0;
}
