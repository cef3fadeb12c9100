/* polypath/sctp_compat.h - the names of the system's functions for those of libpolypath.
 *
 * An existing SCTP program compiles against libpolypath with
 *
 *     cc -include polypath/sctp_compat.h program.c $(pkg-config --cflags --libs polypath)
 *
 * and without -lsctp. All parts of the program that use its SCTP sockets have to be compiled this
 * way. Calls on other descriptors go on to the C library.
 *
 * The names are macros, which also rename variables and members of structures of these names. That
 * makes no difference within a C program. A C++ program whose classes, or those of the standard
 * library, have members of these names (std::fstream::close) should call the functions of polypath.h
 * instead.
 *
 * This header includes those of the system that declare the functions, with _GNU_SOURCE: their
 * declarations must not be renamed. With _FORTIFY_SOURCE, the renamed calls are not checked.
 */

#ifndef POLYPATH_SCTP_COMPAT_H
#define POLYPATH_SCTP_COMPAT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <polypath.h>

#define socket polypath_socket
#define bind polypath_bind
#define listen polypath_listen
#define accept polypath_accept
#define accept4 polypath_accept4
#define connect polypath_connect
#define shutdown polypath_shutdown
#define close polypath_close
#define getsockname polypath_getsockname
#define getpeername polypath_getpeername
#define getsockopt polypath_getsockopt
#define setsockopt polypath_setsockopt

#define send polypath_send
#define sendto polypath_sendto
#define sendmsg polypath_sendmsg
#define sendmmsg polypath_sendmmsg
#define recv polypath_recv
#define recvfrom polypath_recvfrom
#define recvmsg polypath_recvmsg
#define recvmmsg polypath_recvmmsg
#define read polypath_read
#define readv polypath_readv
#define write polypath_write
#define writev polypath_writev

#define dup polypath_dup
#define dup2 polypath_dup2
#define dup3 polypath_dup3
#define fcntl polypath_fcntl
#define ioctl polypath_ioctl
#define _exit polypath__exit

#define sctp_bindx polypath_sctp_bindx
#define sctp_connectx polypath_sctp_connectx
#define sctp_peeloff polypath_sctp_peeloff
#define sctp_peeloff_flags polypath_sctp_peeloff_flags
#define sctp_opt_info polypath_sctp_opt_info
#define sctp_getpaddrs polypath_sctp_getpaddrs
#define sctp_freepaddrs polypath_sctp_freepaddrs
#define sctp_getladdrs polypath_sctp_getladdrs
#define sctp_freeladdrs polypath_sctp_freeladdrs
#define sctp_getaddrlen polypath_sctp_getaddrlen
#define sctp_sendmsg polypath_sctp_sendmsg
#define sctp_send polypath_sctp_send
#define sctp_sendv polypath_sctp_sendv
#define sctp_recvmsg polypath_sctp_recvmsg
#define sctp_recvv polypath_sctp_recvv

#endif
