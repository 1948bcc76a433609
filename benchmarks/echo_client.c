/* The load generator of echo.py, and the C server it is compared with.
 *
 *   echo_client load PORT CONNECTIONS FRAME_BYTES SECONDS MODE   prints: requests, p50 and p99 in microseconds
 *   echo_client serve MODE                                      prints its port
 *
 * MODE is echo (the answer is as long as the request) or ingest (the answer is four bytes).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct client {
    int descriptor;
    size_t unsent, missing;
    double started;
};

static void check(int is_fine, const char *what) {
    if (!is_fine) {
        perror(what);
        exit(1);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static int compare(const void *left, const void *right) {
    float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

static void push(struct client *client, const char *frame, size_t size, int poller) {
    while (client->unsent) {
        ssize_t sent = send(client->descriptor, frame + size - client->unsent, client->unsent, MSG_DONTWAIT);
        if (sent < 0) {
            check(errno == EAGAIN, "send");
            break;
        }
        client->unsent -= sent;
    }
    if (size > 4096) {
        struct epoll_event event = {.events = EPOLLIN | (client->unsent ? EPOLLOUT : 0), .data.ptr = client};
        epoll_ctl(poller, EPOLL_CTL_MOD, client->descriptor, &event);
    }
}

static void load(int port, int count, size_t size, double seconds, int is_echo) {
    pin(1);
    struct client *clients = calloc(count, sizeof *clients);
    char *frame = calloc(1, size), *answer = malloc(size + 4);
    uint32_t prefix = htonl(size - 4);
    memcpy(frame, &prefix, 4);
    int poller = epoll_create1(0);
    size_t answer_size = is_echo ? size : 4, capacity = 1 << 22, done = 0;
    float *latencies = malloc(capacity * sizeof *latencies);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    for (int i = 0; i < count; i++) {
        int one = 1, descriptor = socket(AF_INET, SOCK_STREAM, 0);
        check(connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0, "connect");
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        clients[i].descriptor = descriptor;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &clients[i]};
        epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event);
    }
    double begin = now(), end = begin + seconds, time = begin;
    for (int i = 0; i < count; i++) {
        clients[i].unsent = size, clients[i].missing = answer_size, clients[i].started = now();
        push(&clients[i], frame, size, poller);
    }
    while (time < end) {
        struct epoll_event events[64];
        int ready = epoll_wait(poller, events, 64, 1000);
        for (int i = 0; i < ready; i++) {
            struct client *client = events[i].data.ptr;
            if (client->unsent)
                push(client, frame, size, poller);
            if (!(events[i].events & EPOLLIN))
                continue;
            ssize_t received = recv(client->descriptor, answer, client->missing, MSG_DONTWAIT);
            check(received != 0, "the server closed the connection");
            if (received < 0)
                continue;
            client->missing -= received;
            if (client->missing)
                continue;
            time = now();
            latencies[done++ % capacity] = (time - client->started) * 1e6;
            client->unsent = size, client->missing = answer_size, client->started = time;
            push(client, frame, size, poller);
        }
        if (!ready)
            time = now();
    }
    size_t kept = done < capacity ? done : capacity;
    qsort(latencies, kept, sizeof *latencies, compare);
    printf("%zu %.1f %.1f\n", done, kept ? latencies[kept / 2] : 0, kept ? latencies[kept * 99 / 100] : 0);
}

static void serve(int is_echo) {
    static char buffer[2 << 20];
    static char *frames[65536];
    static size_t missing[65536], filled[65536];
    pin(0);
    int listening = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    check(bind(listening, (struct sockaddr *)&address, length) == 0, "bind");
    listen(listening, 1024);
    getsockname(listening, (struct sockaddr *)&address, &length);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    int poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listening};
    epoll_ctl(poller, EPOLL_CTL_ADD, listening, &event);
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(poller, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            int descriptor = events[i].data.fd;
            if (descriptor == listening) {
                descriptor = accept(listening, NULL, NULL);
                setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                event.data.fd = descriptor;
                missing[descriptor] = filled[descriptor] = 0;
                epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event);
                continue;
            }
            /* A frame lies in one piece, as it must for whoever is to use it. */
            if (!is_echo && !frames[descriptor])
                frames[descriptor] = malloc(2 << 20);
            char *place = is_echo ? buffer : frames[descriptor] + filled[descriptor];
            ssize_t size = recv(descriptor, place, (2 << 20) - (is_echo ? 0 : filled[descriptor]), MSG_DONTWAIT);
            if (size <= 0) {
                if (size == 0)
                    close(descriptor);
                continue;
            }
            if (is_echo) {
                send(descriptor, buffer, size, 0);
                continue;
            }
            if (!missing[descriptor]) {
                uint32_t prefix;
                memcpy(&prefix, place, 4);
                missing[descriptor] = 4 + ntohl(prefix);
            }
            missing[descriptor] -= size;
            filled[descriptor] += size;
            if (!missing[descriptor]) {
                filled[descriptor] = 0;
                send(descriptor, "\0\0\0", 4, 0);
            }
        }
    }
}

int main(int count, char **arguments) {
    if (count == 3 && !strcmp(arguments[1], "serve"))
        serve(!strcmp(arguments[2], "echo"));
    if (count == 7 && !strcmp(arguments[1], "load")) {
        int is_echo = !strcmp(arguments[6], "echo");
        load(atoi(arguments[2]), atoi(arguments[3]), atol(arguments[4]), atof(arguments[5]), is_echo);
        return 0;
    }
    fprintf(stderr, "see the first comment of echo_client.c\n");
    return 2;
}
