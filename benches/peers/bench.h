/* What the peers share: clocks and the one JSON line that the harness reads. */
#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static inline double now_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static inline double cpu_seconds(void)
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	return r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static inline void report(const char *role, unsigned long long bytes, double seconds)
{
	printf("{\"role\": \"%s\", \"bytes\": %llu, \"seconds\": %.6f, \"cpu_s\": %.6f}\n",
	       role, bytes, seconds, cpu_seconds());
	fflush(stdout);
}

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

#endif
