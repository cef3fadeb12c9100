/* What other people's test suites of the SCTP socket API check and the other programs run-*.c do not: pointers
 * to memory that the program does not have, ends that each side sees, a full queue of accept, parameters of an
 * association that is up. Prints what it finds, to be compared with Linux's SCTP. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "run-common.h"

#define NOWHERE ((void *)-1)

static int listener;
static struct sockaddr_in name;

static int opened(int style) {
    int fd = socket(AF_INET, style, IPPROTO_SCTP);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

static int connected(int *accepted) {
    int client = opened(SOCK_STREAM);
    if (connect(client, (struct sockaddr *)&name, sizeof name) != 0)
        exit(2);
    *accepted = accept(listener, NULL, NULL);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(*accepted, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return client;
}

static void subscribe(int fd) {
    struct sctp_event event = {.se_assoc_id = SCTP_ALL_ASSOC, .se_type = SCTP_ASSOC_CHANGE, .se_on = 1};
    setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event);
}

static const char *receives(int fd) {
    char buffer[64];
    return result(recv(fd, buffer, sizeof buffer, 0));
}

/* Memory that was there once. */
static void *gone(void) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page, 4096);
    return page;
}

static void pointers(void) {
    void *places[] = {NOWHERE, (void *)8, gone()};
    const char *kinds[] = {"the kernel's half", "the first page", "unmapped memory"};
    int server, client = connected(&server), fresh = opened(SOCK_STREAM);
    for (int i = 0; i < 3; i++) {
        char text[128];
        socklen_t size = sizeof name;
        int number = sizeof(struct sctp_rtoinfo);
#define POINTER(what, call)                                                                                         \
    snprintf(text, sizeof text, "%s in %s", what, kinds[i]);                                                        \
    found(text, "%s", result(call))
        POINTER("bind: an address", bind(fresh, places[i], sizeof name));
        POINTER("connect: an address", connect(fresh, places[i], sizeof name));
        POINTER("accept: a length", accept(fresh, NULL, places[i]));
        POINTER("getsockname: an address", getsockname(client, places[i], &size));
        POINTER("getsockname: a length", getsockname(client, (struct sockaddr *)&name, places[i]));
        POINTER("getpeername: an address", getpeername(client, places[i], &size));
        POINTER("setsockopt: a value", setsockopt(fresh, IPPROTO_SCTP, SCTP_RTOINFO, places[i], number));
        POINTER("setsockopt: addresses", sctp_bindx(fresh, places[2], 0, 1));
        POINTER("getsockopt: a value", getsockopt(fresh, IPPROTO_SCTP, SCTP_RTOINFO, places[i], (void *)&number));
        POINTER("getsockopt: a length", getsockopt(fresh, IPPROTO_SCTP, SCTP_RTOINFO, &number, places[i]));
        POINTER("FIONREAD: a number", ioctl(client, FIONREAD, places[i]));
        POINTER("send: a message", send(client, places[i], 5, MSG_NOSIGNAL));
        struct iovec part = {.iov_base = places[i], .iov_len = 5};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        POINTER("sendmsg: a part", sendmsg(client, &message, MSG_NOSIGNAL));
        send(server, "hello", 5, 0);
        wait_for(client, POLLIN);
        POINTER("recv: a buffer", recv(client, places[i], 5, MSG_PEEK));
        POINTER("recvmsg: a part", recvmsg(client, &message, MSG_PEEK));
        POINTER("recv: a message after the errors", recv(client, (char[64]){0}, 64, 0));
        if (i == 2)
            break;
        /* The library does not ask the kernel about these when it moves data. */
        message.msg_iov = places[i];
        POINTER("sendmsg: the parts", sendmsg(client, &message, MSG_NOSIGNAL));
        POINTER("recvmsg: the parts", recvmsg(client, &message, MSG_DONTWAIT));
        POINTER("sendmsg: a message", sendmsg(client, places[i], MSG_NOSIGNAL));
        POINTER("recvmsg: a message", recvmsg(client, places[i], MSG_DONTWAIT));
    }
    close(client);
    close(server);
    close(fresh);
}

static void arguments(void) {
    int fd = opened(SOCK_STREAM), server, client = connected(&server);
    struct sockaddr_storage large = {.ss_family = AF_INET};
    found("bind: an address of 129 bytes", "%s", result(bind(fd, (struct sockaddr *)&large, sizeof large + 1)));
    found("connect: an address of 129 bytes", "%s", result(connect(fd, (struct sockaddr *)&large, sizeof large + 1)));
    socklen_t size = -1;
    found("getsockname: a negative length", "%s", result(getsockname(client, (struct sockaddr *)&large, &size)));
    size = -1;
    found("getpeername: a negative length", "%s", result(getpeername(client, (struct sockaddr *)&large, &size)));
    found("setsockopt: a level that does not exist, no value", "%s", result(setsockopt(fd, -1, SCTP_RTOINFO, 0, 0)));
    found("setsockopt: no value of no bytes", "%s", result(setsockopt(fd, IPPROTO_SCTP, SCTP_RTOINFO, 0, 0)));
    found("SCTP_AUTOCLOSE: no value, of a one-to-one socket", "%s",
          result(setsockopt(fd, IPPROTO_SCTP, SCTP_AUTOCLOSE, 0, 0)));
    /* A control message that claims to be longer than the buffer. */
    struct {
        struct cmsghdr head;
        struct sctp_sndinfo info;
    } control = {.head = {.cmsg_len = 4096, .cmsg_level = IPPROTO_SCTP, .cmsg_type = SCTP_SNDINFO}};
    struct iovec part = {.iov_base = "x", .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    found("sendmsg: a control message that is too long", "%s", result(sendmsg(client, &message, MSG_NOSIGNAL)));
    struct iovec parts[2] = {{.iov_base = "x", .iov_len = SSIZE_MAX}, {.iov_base = "x", .iov_len = 1}};
    struct msghdr huge = {.msg_iov = parts, .msg_iovlen = 2};
    found("recvmsg: more than a result can be", "%s", result(recvmsg(client, &huge, MSG_DONTWAIT)));
    close(fd);
    close(client);
    close(server);
}

/* Ends an association after a while. */
static void *later(void *fd) {
    usleep(100000);
    shutdown(*(int *)fd, SHUT_WR);
    return NULL;
}

static void ends(void) {
    int server, client = connected(&server);
    pthread_t thread;
    pthread_create(&thread, NULL, later, &client);
    errno = 0;
    const char *got = receives(server);
    found("recv: waits for the end, and leaves errno as it is", "%s, errno %d", got, errno);
    pthread_join(thread, NULL);
    close(client);
    close(server);
    client = connected(&server);
    send(server, "hello", 5, 0);
    wait_for(client, POLLIN);
    shutdown(client, SHUT_WR);
    found("recv: at the peer of the side that has shut down", "%s", receives(server));
    found("recv: what came before the own shutdown", "%s", receives(client));
    found("recv: after the own shutdown", "%s", receives(client));
    close(client);
    close(server);
    client = connected(&server);
    shutdown(client, SHUT_RD);
    found("recv: after SHUT_RD", "%s", receives(client));
    found("send: after SHUT_RD", "%s", result(send(client, "x", 1, 0)));
    found("recv: at the peer of SHUT_RD", "%s", receives(server));
    send(server, "hello", 5, 0);
    usleep(200000);
    found("recv: what came after SHUT_RD", "%s", receives(client));
    close(client);
    close(server);
    client = connected(&server);
    shutdown(client, SHUT_RDWR);
    found("recv: at the peer of SHUT_RDWR", "%s", receives(server));
    found("recv: after SHUT_RDWR", "%s", receives(client));
    close(client);
    close(server);
    int lonely = opened(SOCK_SEQPACKET);
    found("recv: of a one-to-many socket without associations", "%s", receives(lonely));
    found("recv: the same without waiting", "%s", result(recv(lonely, &server, 4, MSG_DONTWAIT)));
    close(lonely);
}

/* As many as the backlog and one more wait for accept. */
static void backlog(void) {
    int fd = opened(SOCK_STREAM), clients[4], refused = opened(SOCK_STREAM);
    struct sockaddr_in other = loopback(5001);
    bind(fd, (struct sockaddr *)&other, sizeof other);
    listen(fd, 3);
    for (int i = 0; i < 4; i++) {
        clients[i] = opened(SOCK_STREAM);
        found(i ? i == 1 ? "listen: the second of four" : i == 2 ? "listen: the third of four"
                                                                 : "listen: the fourth of four"
                : "listen: the first of four",
              "%s", result(connect(clients[i], (struct sockaddr *)&other, sizeof other)));
        usleep(20000);
    }
    found("listen: one too many", "%s", result(connect(refused, (struct sockaddr *)&other, sizeof other)));
    int first = accept(fd, NULL, NULL);
    usleep(100000);
    found("listen: after one was accepted", "%s", result(connect(refused, (struct sockaddr *)&other, sizeof other)));
    usleep(20000);
    listen(fd, 9);
    usleep(100000);
    int last = opened(SOCK_STREAM);
    found("listen: with a larger backlog", "%s", result(connect(last, (struct sockaddr *)&other, sizeof other)));
    for (int i = 0; i < 4; i++)
        close(clients[i]);
    close(last);
    close(refused);
    close(first);
    close(fd);
}

static void associations(void) {
    int server = opened(SOCK_SEQPACKET), client = opened(SOCK_SEQPACKET);
    struct sockaddr_in here = loopback(5002), from = loopback(5003);
    bind(server, (struct sockaddr *)&here, sizeof here);
    bind(client, (struct sockaddr *)&from, sizeof from);
    listen(server, 1);
    subscribe(server);
    subscribe(client);
    fcntl(client, F_SETFL, O_NONBLOCK);
    found("connect: a one-to-many socket that does not block", "%s",
          result(connect(client, (struct sockaddr *)&here, sizeof here)));
    fcntl(client, F_SETFL, 0);
    struct sctp_assoc_change own, change;
    recv(client, &own, sizeof own, 0);
    recv(server, &change, sizeof change, 0);
    int fd = sctp_peeloff(server, change.sac_assoc_id);
    found("connect: to the peer of an association that was peeled off", "%s",
          result(connect(server, (struct sockaddr *)&from, sizeof from)));
    found("sendto: the same", "%s",
          result(sendto(server, "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&from, sizeof from)));
    struct sockaddr_in elsewhere = loopback(5009);
    found("sctp_peeloff: sends to its peer whatever the address is", "%s",
          result(sendto(fd, "x", 1, 0, (struct sockaddr *)&elsewhere, sizeof elsewhere)));
    found("recv: what was sent so", "%s", receives(client));
    struct sctp_status status = {.sstat_assoc_id = own.sac_assoc_id};
    socklen_t size = sizeof status;
    struct {
        struct cmsghdr head;
        struct sctp_sndinfo info;
    } control = {.head = {.cmsg_len = sizeof control, .cmsg_level = IPPROTO_SCTP, .cmsg_type = SCTP_SNDINFO},
                 .info = {.snd_flags = SCTP_ABORT, .snd_assoc_id = own.sac_assoc_id}};
    struct msghdr message = {.msg_control = &control, .msg_controllen = sizeof control};
    sendmsg(client, &message, 0);
    found("SCTP_ABORT: SCTP_STATUS at once", "%s", result(getsockopt(client, IPPROTO_SCTP, SCTP_STATUS, &status, &size)));
    found("SCTP_ABORT: a message to the association", "%s",
          result(sendto(client, "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&here, sizeof here)));
    found("recv: of the peer after SCTP_ABORT", "%s", receives(fd));
    close(fd);
    close(client);
    close(server);
}

static const char *numbers(long a, long b, long c, const char *of) {
    static char text[8][96];
    static unsigned next;
    char *to = text[next++ % 8];
    snprintf(to, sizeof text[0], "%s: %ld %ld %ld", of, a, b, c);
    return to;
}

/* Parameters of an association that is up. */
static void parameters(void) {
    int server, fd = connected(&server), future = opened(SOCK_STREAM);
#define SET(option, value) result(setsockopt(fd, IPPROTO_SCTP, option, &value, sizeof value))
#define GET(option, value) (size = sizeof value, result(getsockopt(fd, IPPROTO_SCTP, option, &value, &size)))
    socklen_t size;
    struct sctp_rtoinfo rto = {.srto_initial = 500, .srto_max = 700, .srto_min = 600};
    found("SCTP_RTOINFO: set while up", "%s", SET(SCTP_RTOINFO, rto));
    const char *done = GET(SCTP_RTOINFO, rto);
    found("SCTP_RTOINFO: read while up, limits", "%s", numbers(0, rto.srto_max, rto.srto_min, done));
    rto = (struct sctp_rtoinfo){.srto_min = 5000};
    found("SCTP_RTOINFO: a minimum above the present maximum", "%s", SET(SCTP_RTOINFO, rto));
    rto = (struct sctp_rtoinfo){.srto_min = 3500};
    found("SCTP_RTOINFO: a minimum above the initial RTO", "%s",
          result(setsockopt(future, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto)));
    struct sctp_sack_info sack = {.sack_delay = 100, .sack_freq = 3};
    found("SCTP_DELAYED_SACK: set while up", "%s", SET(SCTP_DELAYED_SACK, sack));
    done = GET(SCTP_DELAYED_SACK, sack);
    found("SCTP_DELAYED_SACK: read while up", "%s", numbers(sack.sack_delay, sack.sack_freq, 0, done));
    sack = (struct sctp_sack_info){.sack_delay = 100, .sack_freq = 1};
    found("SCTP_DELAYED_SACK: every packet while up", "%s", SET(SCTP_DELAYED_SACK, sack));
    done = GET(SCTP_DELAYED_SACK, sack);
    found("SCTP_DELAYED_SACK: read, every packet", "%s", numbers(sack.sack_delay, sack.sack_freq, 0, done));
    struct sctp_assoc_value value = {.assoc_value = 3};
    found("SCTP_MAX_BURST: set while up", "%s", SET(SCTP_MAX_BURST, value));
    value.assoc_value = 0;
    done = GET(SCTP_MAX_BURST, value);
    found("SCTP_MAX_BURST: read while up", "%s", numbers(value.assoc_value, 0, 0, done));
    static const unsigned sizes[] = {1, 463, 464, 1000, 65516, 65517};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char text[64];
        value.assoc_value = sizes[i];
        snprintf(text, sizeof text, "SCTP_MAXSEG: of %u bytes", sizes[i]);
        found(text, "%s", result(setsockopt(future, IPPROTO_SCTP, SCTP_MAXSEG, &value, sizeof value)));
    }
    value.assoc_value = 500;
    found("SCTP_MAXSEG: set while up", "%s", SET(SCTP_MAXSEG, value));
    value.assoc_value = 0;
    done = GET(SCTP_MAXSEG, value);
    found("SCTP_MAXSEG: read while up", "%s", numbers(value.assoc_value, 0, 0, done));
    int plain = 0;
    done = GET(SCTP_MAXSEG, plain);
    found("SCTP_MAXSEG: read as an integer", "%s", numbers(plain, 0, 0, done));
    struct sctp_status status = {0};
    done = GET(SCTP_STATUS, status);
    found("SCTP_MAXSEG: in SCTP_STATUS", "%s", numbers(status.sstat_fragmentation_point, 0, 0, done));
    char large[2000] = {1};
    send(fd, large, sizeof large, 0);
    found("SCTP_MAXSEG: a larger message arrives whole", "%s", result(recv(server, large, sizeof large, 0)));
    int on = 1;
    SET(SCTP_DISABLE_FRAGMENTS, on);
    found("SCTP_DISABLE_FRAGMENTS: a message above SCTP_MAXSEG", "%s", result(send(fd, large, 501, MSG_NOSIGNAL)));
    found("SCTP_DISABLE_FRAGMENTS: a message of SCTP_MAXSEG", "%s", result(send(fd, large, 500, MSG_NOSIGNAL)));
    struct sctp_paddrparams path = {.spp_hbinterval = 1000, .spp_flags = SPP_HB_ENABLE, .spp_pathmaxrxt = 3};
    memcpy(&path.spp_address, &name, sizeof name);
    found("SCTP_PEER_ADDR_PARAMS: an interval while up", "%s", SET(SCTP_PEER_ADDR_PARAMS, path));
    path = (struct sctp_paddrparams){0};
    memcpy(&path.spp_address, &name, sizeof name);
    done = GET(SCTP_PEER_ADDR_PARAMS, path);
    found("SCTP_PEER_ADDR_PARAMS: the interval", "%s",
          numbers(path.spp_hbinterval, path.spp_pathmaxrxt, path.spp_flags & 3, done));
    path.spp_flags = SPP_SACKDELAY_ENABLE;
    path.spp_sackdelay = 300;
    found("SCTP_PEER_ADDR_PARAMS: a delay of SACKs while up", "%s", SET(SCTP_PEER_ADDR_PARAMS, path));
    path.spp_flags = SPP_HB_DISABLE;
    found("SCTP_PEER_ADDR_PARAMS: no HEARTBEATs while up", "%s", SET(SCTP_PEER_ADDR_PARAMS, path));
    done = GET(SCTP_PEER_ADDR_PARAMS, path);
    found("SCTP_PEER_ADDR_PARAMS: read again", "%s",
          numbers(path.spp_sackdelay, path.spp_flags & 3, path.spp_flags & 0x60, done));
    path.spp_flags = SPP_HB_ENABLE;
    path.spp_pathmtu = 511;
    found("SCTP_PEER_ADDR_PARAMS: a path MTU of 511 bytes", "%s", SET(SCTP_PEER_ADDR_PARAMS, path));
    struct sctp_paddrinfo info = {0};
    found("SCTP_GET_PEER_ADDR_INFO: without an address", "%s", GET(SCTP_GET_PEER_ADDR_INFO, info));
    struct sockaddr_in *to = (struct sockaddr_in *)&info.spinfo_address;
    *to = loopback(6999);
    found("SCTP_GET_PEER_ADDR_INFO: with another port", "%s", GET(SCTP_GET_PEER_ADDR_INFO, info));
    struct sctp_setpeerprim primary = {.sspp_addr = info.spinfo_address};
    found("SCTP_PRIMARY_ADDR: with another port", "%s", SET(SCTP_PRIMARY_ADDR, primary));
    memcpy(&path.spp_address, to, sizeof *to);
    path.spp_flags = SPP_HB_ENABLE;
    path.spp_pathmtu = 0;
    found("SCTP_PEER_ADDR_PARAMS: with another port", "%s", SET(SCTP_PEER_ADDR_PARAMS, path));
    struct sctp_assocparams limits = {.sasoc_asocmaxrxt = 4, .sasoc_cookie_life = 20000};
    found("SCTP_ASSOCINFO: set while up", "%s", SET(SCTP_ASSOCINFO, limits));
    limits = (struct sctp_assocparams){0};
    done = GET(SCTP_ASSOCINFO, limits);
    found("SCTP_ASSOCINFO: read while up", "%s", numbers(limits.sasoc_asocmaxrxt, limits.sasoc_cookie_life, 0, done));
    close(fd);
    close(server);
    close(future);
}

int main(void) {
    alarm(60);
    name = loopback(5000);
    listener = opened(SOCK_STREAM);
    if (bind(listener, (struct sockaddr *)&name, sizeof name) != 0 || listen(listener, 5) != 0)
        return 2;
    arguments();
    pointers();
    ends();
    parameters();
    close(listener);
    backlog();
    associations();
    return 0;
}
