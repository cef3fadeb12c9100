/* polypath.h - SCTP sockets (RFC 9260, RFC 6458) in user space, over several network paths.
 *
 * Each function below has the arguments, the result and the errno of the function with the same name
 * without the prefix: that of the C library, or of libsctp (RFC 6458, section 9). The manual pages
 * of those apply. docs/run.md of polypath lists the options, notifications and limits.
 *
 *     polypath_configure("peer-port", "9899");
 *     int fd = polypath_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
 *     polypath_sctp_connectx(fd, addresses, 2, NULL);
 *     polypath_sctp_sendmsg(fd, "hello", 5, NULL, 0, 0, 0, 0, 0, 0);
 *     polypath_close(fd);
 *
 * Build with `pkg-config --cflags --libs polypath`. Linux only, on 64-bit processors.
 *
 * Descriptors
 *     A descriptor of polypath_socket() works with the kernel's poll, select, epoll, O_NONBLOCK,
 *     SO_RCVTIMEO and SO_SNDTIMEO. All else must go through the functions below: read(), send() or
 *     close() of the C library do not know such a descriptor. A function below that gets any other
 *     descriptor, or polypath_socket() with another protocol, calls the C library's function.
 *     sendfile(), splice() and stdio do not work on it.
 *     The library has descriptors of its own, which count against RLIMIT_NOFILE: one for each socket,
 *     and UDP sockets. A program must not close descriptors that it has not opened.
 *
 * Threads
 *     All functions may be called from several threads at once, on one socket, too. The library has
 *     one thread of its own, which starts with the first socket and blocks all signals. A signal
 *     handler must not call a function on a socket that it may have interrupted a call on.
 *     Functions that wait for a message or an association are cancellation points.
 *
 * Fork
 *     The associations stay with the process that has opened the socket. A child of fork() can
 *     accept on, read, write and close inherited sockets, and open its own; requests about the
 *     association of an inherited socket fail with EOPNOTSUPP. When the parent ends, its
 *     associations end. After exec, the descriptor is no SCTP socket.
 *
 * End of the process
 *     exit() and polypath__exit() close the sockets and wait up to 5 seconds until the peers have
 *     everything. _exit() and signals do not: the peers then run into their timeouts.
 *
 * Errors
 *     Functions return -1 and set errno, which keeps its value if they succeed. EIO is an internal
 *     error. EPIPE comes with SIGPIPE, unless MSG_NOSIGNAL is set. Pointers are not checked beyond
 *     NULL: the library crashes where the kernel returns EFAULT. The library never ends the process
 *     unless memory runs out, prints nothing, and leaves the handlers of signals alone.
 *
 * Units
 *     Sizes are in bytes; a message has at most 196,608. Timeouts are as in RFC 6458: milliseconds
 *     in options of SCTP, unless the RFC says seconds. Ports and addresses are in network byte
 *     order, as in <netinet/in.h>; ppid is passed through as it is.
 *
 * Structures and constants are those of <netinet/sctp.h> if libsctp-dev is installed, else those of
 * <linux/sctp.h>, and those that libsctp adds to them are declared here. Define
 * POLYPATH_WITHOUT_LIBSCTP to use the latter always.
 */

#ifndef POLYPATH_H
#define POLYPATH_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#if !defined POLYPATH_WITHOUT_LIBSCTP && defined __has_include
#if __has_include(<netinet/sctp.h>)
#include <netinet/sctp.h>
#define POLYPATH_HAS_LIBSCTP_HEADER 1
#endif
#endif

#ifndef POLYPATH_HAS_LIBSCTP_HEADER
#include <linux/sctp.h>
#ifndef SOL_SCTP
#define SOL_SCTP 132
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; polypath_version() returns that of the library. */
#define POLYPATH_VERSION "0.1.0"

#if !defined POLYPATH_HAS_LIBSCTP_HEADER && !defined HAVE_SCTP_SENDV
/* What libsctp's header adds to the kernel's (RFC 6458, 9.12 and 9.13). */
#define HAVE_SCTP_SENDV 1

enum {
    SCTP_SENDV_NOINFO,
    SCTP_SENDV_SNDINFO,
    SCTP_SENDV_PRINFO,
    SCTP_SENDV_AUTHINFO,
    SCTP_SENDV_SPA
};

#define SCTP_SEND_SNDINFO_VALID 0x1
#define SCTP_SEND_PRINFO_VALID 0x2
#define SCTP_SEND_AUTHINFO_VALID 0x4

struct sctp_sendv_spa {
    uint32_t sendv_flags;
    struct sctp_sndinfo sendv_sndinfo;
    struct sctp_prinfo sendv_prinfo;
    struct sctp_authinfo sendv_authinfo;
};

enum {
    SCTP_RECVV_NOINFO,
    SCTP_RECVV_RCVINFO,
    SCTP_RECVV_NXTINFO,
    SCTP_RECVV_RN
};

struct sctp_recvv_rn {
    struct sctp_rcvinfo recvv_rcvinfo;
    struct sctp_nxtinfo recvv_nxtinfo;
};
#endif

/* Settings.
 *
 * polypath_configure() sets one for all sockets of the process. It has to be called before the first
 * socket is opened. The last value of a key counts, and prevails over the environment:
 *
 *     key          value                                      default   environment
 *     port         UDP port of sockets that listen            9899      POLYPATH_RUN_PORT
 *     peer-port    UDP port of the peers                      9899      POLYPATH_RUN_PEER_PORT
 *     raw          true: IP protocol 132 without UDP, which   false     POLYPATH_RUN_RAW (set)
 *                  needs CAP_NET_RAW
 *     bind         local IP addresses of sockets that are     wildcard  POLYPATH_RUN_BIND
 *                  not bound, separated by commas
 *     encrypt      true: DTLS 1.3 (RFC 8261), which the peer  false     POLYPATH_RUN_ENCRYPT (set)
 *                  has to use, too; any certificate is
 *                  accepted
 *     profile      set of constants and policies              default   POLYPATH_RUN_PROFILE
 *     a constant   its value with a unit, such as "200ms"     profile   POLYPATH_RUN_CONFIG, lines
 *                  for "rto_min" (docs/parameters.md)                   of KEY=VALUE
 *
 * Invalid values in the environment are ignored. Each call checks the settings as a whole: to lower
 * both rto_max and rto_min, begin with rto_min.
 *
 * Returns 0, or -1 with errno: EBUSY after the process has opened an SCTP socket, EINVAL for a key
 * or a value that is not allowed, EFAULT for NULL.
 */
int polypath_configure(const char *key, const char *value);

/* Why the calling thread's last call of polypath_configure() that has failed did so: a line without
 * a newline, "" before any failure. Valid until the thread's next failure or its end. */
const char *polypath_configure_error(void);

/* The version of the library, such as "0.1.0". Static. */
const char *polypath_version(void);

/* Sockets: socket(2) with AF_INET or AF_INET6, SOCK_STREAM or SOCK_SEQPACKET, and IPPROTO_SCTP. */
int polypath_socket(int family, int type, int protocol);
int polypath_bind(int fd, const struct sockaddr *address, socklen_t length);
int polypath_listen(int fd, int backlog);
int polypath_accept(int fd, struct sockaddr *address, socklen_t *length);
int polypath_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int polypath_connect(int fd, const struct sockaddr *address, socklen_t length);
int polypath_shutdown(int fd, int how);
int polypath_close(int fd);
int polypath_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int polypath_getpeername(int fd, struct sockaddr *address, socklen_t *length);
int polypath_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
int polypath_setsockopt(int fd, int level, int name, const void *value, socklen_t length);

/* Messages. */
ssize_t polypath_send(int fd, const void *buffer, size_t size, int flags);
ssize_t polypath_sendto(int fd, const void *buffer, size_t size, int flags,
                        const struct sockaddr *address, socklen_t length);
ssize_t polypath_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t polypath_recv(int fd, void *buffer, size_t size, int flags);
ssize_t polypath_recvfrom(int fd, void *buffer, size_t size, int flags, struct sockaddr *address,
                          socklen_t *length);
ssize_t polypath_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t polypath_read(int fd, void *buffer, size_t size);
ssize_t polypath_readv(int fd, const struct iovec *parts, int count);
ssize_t polypath_write(int fd, const void *buffer, size_t size);
ssize_t polypath_writev(int fd, const struct iovec *parts, int count);
struct mmsghdr;
struct timespec;
int polypath_sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags);
int polypath_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags,
                      struct timespec *timeout);

/* Descriptors. ioctl(2) knows FIONREAD: the size of the next message. */
int polypath_dup(int fd);
int polypath_dup2(int from, int to);
int polypath_dup3(int from, int to, int flags);
int polypath_fcntl(int fd, int command, ...);
int polypath_ioctl(int fd, unsigned long request, ...);

/* _exit(2), after the wait described above. */
void polypath__exit(int status) __attribute__((noreturn));

/* RFC 6458, section 9. polypath_sctp_opt_info() takes every option, libsctp's takes a part. */
int polypath_sctp_bindx(int fd, struct sockaddr *addresses, int count, int flags);
int polypath_sctp_connectx(int fd, struct sockaddr *addresses, int count, sctp_assoc_t *id);
int polypath_sctp_peeloff(int fd, sctp_assoc_t id);
int polypath_sctp_peeloff_flags(int fd, sctp_assoc_t id, unsigned flags);
int polypath_sctp_opt_info(int fd, sctp_assoc_t id, int option, void *value, socklen_t *length);
int polypath_sctp_getpaddrs(int fd, sctp_assoc_t id, struct sockaddr **addresses);
int polypath_sctp_freepaddrs(struct sockaddr *addresses);
int polypath_sctp_getladdrs(int fd, sctp_assoc_t id, struct sockaddr **addresses);
int polypath_sctp_freeladdrs(struct sockaddr *addresses);
int polypath_sctp_getaddrlen(sa_family_t family);
int polypath_sctp_sendmsg(int fd, const void *buffer, size_t size, struct sockaddr *to,
                          socklen_t length, uint32_t ppid, uint32_t flags, uint16_t stream,
                          uint32_t timetolive, uint32_t context);
int polypath_sctp_send(int fd, const void *buffer, size_t size, const struct sctp_sndrcvinfo *info,
                       int flags);
int polypath_sctp_sendv(int fd, const struct iovec *parts, int count, struct sockaddr *addresses,
                        int number, void *info, socklen_t length, unsigned int type, int flags);
int polypath_sctp_recvmsg(int fd, void *buffer, size_t size, struct sockaddr *from,
                          socklen_t *length, struct sctp_sndrcvinfo *info, int *flags);
int polypath_sctp_recvv(int fd, const struct iovec *parts, int count, struct sockaddr *from,
                        socklen_t *from_length, void *info, socklen_t *length, unsigned int *type,
                        int *flags);

#ifdef __cplusplus
}
#endif

#endif
