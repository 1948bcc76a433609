/* The load generator of broker.py, and the C loop that a broker is compared with.
 *
 *   broker_load load PORT CONNECTIONS SECONDS DEPTH FRAMES_FILE    prints: requests, answer bytes, p50 and p99 in us
 *   broker_load serve ingest FILE                                 prints its port
 *   broker_load serve egress FILE BYTES                           prints its port
 *
 * FRAMES_FILE holds whole frames, size in front; connection i sends frame i modulo their number again and again, DEPTH of
 * them in flight. An answer is a frame too. `ingest` does the least that a log must do with a request: receive it, compute
 * the CRC-32C of its bytes, append them to a file, answer. `egress` answers each request with BYTES of a file by sendfile.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

#define DEPTH_MAX 64
#define CONNECTIONS_MAX 1024

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

/* Three lanes, as fast libraries do it; joining the lanes is left out: it costs nothing that could be measured. */
static uint64_t crc32c(const uint8_t *data, size_t size) {
    uint64_t a = 0, b = 0, c = 0;
#ifdef __SSE4_2__
    size_t third = size / 24 * 8;
    for (size_t i = 0; i < third; i += 8) {
        a = _mm_crc32_u64(a, *(const uint64_t *)(data + i));
        b = _mm_crc32_u64(b, *(const uint64_t *)(data + third + i));
        c = _mm_crc32_u64(c, *(const uint64_t *)(data + 2 * third + i));
    }
#else
    for (size_t i = 0; i < size; i++) a = a * 31 + data[i];
#endif
    return a ^ b ^ c;
}

struct peer {
    int descriptor;
    size_t filled, frame_size, unsent;
    char *buffer;
    size_t capacity;
    /* of the load */
    char *frame;
    size_t frame_bytes, to_send;
    double started[DEPTH_MAX];
    unsigned sent, answered;
    uint32_t answer_left;
    unsigned head_bytes;
    uint8_t head[4];
};

static int listen_anywhere(void) {
    int listening = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(listening, IPPROTO_TCP, TCP_CONGESTION, "reno", 4); /* as the broker: nothing paces its clients */
    check(bind(listening, (struct sockaddr *)&address, size) == 0, "bind");
    check(listen(listening, 128) == 0, "listen");
    getsockname(listening, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listening;
}

/* Returns 0 when the client is gone. */
static int answer_ingest(struct peer *peer, int file, off_t *end) {
    static char answer[64];
    volatile uint64_t crc = crc32c((uint8_t *)peer->buffer + 4, peer->frame_size);
    (void)crc;
    check(pwrite(file, peer->buffer + 4, peer->frame_size, *end) == (ssize_t)peer->frame_size, "pwrite");
    *end += peer->frame_size;
    uint32_t size = htonl(sizeof answer - 4);
    memcpy(answer, &size, 4);
    memcpy(answer + 4, peer->buffer + 8, 4);
    return send(peer->descriptor, answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer;
}

static int push_egress(struct peer *peer, int file, size_t bytes) {
    while (peer->unsent) {
        off_t from = bytes - peer->unsent;
        ssize_t sent = sendfile(peer->descriptor, file, &from, peer->unsent);
        if (sent < 0) {
            if (errno != EAGAIN) peer->unsent = 0;
            return 0;
        }
        peer->unsent -= sent;
    }
    return 1;
}

static void serve(int is_ingest, const char *path, size_t bytes) {
    pin(0);
    signal(SIGPIPE, SIG_IGN);
    int listening = listen_anywhere(), poller = epoll_create1(0), one = 1;
    int file = is_ingest ? open(path, O_RDWR | O_CREAT | O_TRUNC, 0600) : open(path, O_RDONLY);
    check(file >= 0, path);
    off_t end = 0;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[64];
    epoll_ctl(poller, EPOLL_CTL_ADD, listening, &event);
    for (;;) {
        int count = epoll_wait(poller, events, 64, -1);
        for (int i = 0; i < count; i++) {
            struct peer *peer = events[i].data.ptr;
            if (!peer) {
                peer = calloc(1, sizeof *peer);
                peer->descriptor = accept4(listening, NULL, NULL, SOCK_NONBLOCK);
                peer->capacity = 1 << 21;
                peer->buffer = malloc(peer->capacity);
                setsockopt(peer->descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                event.data.ptr = peer;
                epoll_ctl(poller, EPOLL_CTL_ADD, peer->descriptor, &event);
                continue;
            }
            if (events[i].events & EPOLLOUT && push_egress(peer, file, bytes)) {
                event.events = EPOLLIN, event.data.ptr = peer;
                epoll_ctl(poller, EPOLL_CTL_MOD, peer->descriptor, &event);
            }
            for (;;) {
                size_t wanted = peer->filled < 4 ? 4 : 4 + peer->frame_size;
                ssize_t got = recv(peer->descriptor, peer->buffer + peer->filled, wanted - peer->filled, 0);
                if (got == 0 || (got < 0 && errno != EAGAIN)) {
                    close(peer->descriptor);
                    break;
                }
                if (got < 0) break;
                peer->filled += got;
                if (peer->filled == 4) {
                    uint32_t size;
                    memcpy(&size, peer->buffer, 4);
                    peer->frame_size = ntohl(size);
                    check(peer->frame_size + 4 <= peer->capacity, "a frame that fits");
                } else if (peer->filled == 4 + peer->frame_size) {
                    peer->filled = 0;
                    if (is_ingest) {
                        if (answer_ingest(peer, file, &end)) continue;
                        close(peer->descriptor);
                        break;
                    }
                    uint32_t size = htonl(bytes);
                    if (send(peer->descriptor, &size, 4, MSG_MORE | MSG_NOSIGNAL) != 4) {
                        close(peer->descriptor);
                        break;
                    }
                    peer->unsent = bytes;
                    if (!push_egress(peer, file, bytes)) {
                        event.events = EPOLLIN | EPOLLOUT, event.data.ptr = peer;
                        epoll_ctl(poller, EPOLL_CTL_MOD, peer->descriptor, &event);
                        break;
                    }
                }
            }
        }
    }
}

static void push_load(struct peer *peer, unsigned depth) {
    while (peer->sent - peer->answered < depth || peer->to_send) {
        if (!peer->to_send) {
            peer->to_send = peer->frame_bytes;
            peer->started[peer->sent++ % DEPTH_MAX] = now();
        }
        ssize_t sent = send(peer->descriptor, peer->frame + peer->frame_bytes - peer->to_send, peer->to_send, MSG_DONTWAIT);
        if (sent < 0) {
            check(errno == EAGAIN, "send");
            return;
        }
        peer->to_send -= sent;
        if (peer->to_send) return;
    }
}

static void load(int port, int connections, double seconds, unsigned depth, const char *path) {
    pin(1);
    struct stat stat;
    int file = open(path, O_RDONLY), poller = epoll_create1(0), one = 1, frames = 0;
    check(file >= 0 && fstat(file, &stat) == 0, path);
    char *data = malloc(stat.st_size), *starts[CONNECTIONS_MAX];
    check(read(file, data, stat.st_size) == stat.st_size, "read");
    for (off_t at = 0; at < stat.st_size && frames < CONNECTIONS_MAX; frames++) {
        uint32_t size;
        memcpy(&size, data + at, 4);
        starts[frames] = data + at;
        at += 4 + ntohl(size);
    }
    static struct peer peers[CONNECTIONS_MAX];
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    for (int i = 0; i < connections; i++) {
        struct peer *peer = &peers[i];
        peer->descriptor = socket(AF_INET, SOCK_STREAM, 0);
        check(connect(peer->descriptor, (struct sockaddr *)&address, sizeof address) == 0, "connect");
        setsockopt(peer->descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        uint32_t size;
        memcpy(&size, starts[i % frames], 4);
        peer->frame_bytes = 4 + ntohl(size);
        peer->frame = malloc(peer->frame_bytes);
        memcpy(peer->frame, starts[i % frames], peer->frame_bytes);
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = peer};
        epoll_ctl(poller, EPOLL_CTL_ADD, peer->descriptor, &event);
    }
    size_t capacity = 1 << 22, count = 0;
    float *latencies = malloc(capacity * sizeof *latencies);
    char *sink = malloc(1 << 20);
    uint64_t answer_bytes = 0;
    double start = now(), stop = start + seconds;
    for (int i = 0; i < connections; i++) push_load(&peers[i], depth);
    while (now() < stop) {
        struct epoll_event events[64];
        int ready = epoll_wait(poller, events, 64, 100);
        for (int i = 0; i < ready; i++) {
            struct peer *peer = events[i].data.ptr;
            for (;;) {
                int in_head = peer->answer_left == 0;
                ssize_t got = in_head ? recv(peer->descriptor, peer->head + peer->head_bytes, 4 - peer->head_bytes, MSG_DONTWAIT)
                                      : recv(peer->descriptor, sink,
                                             peer->answer_left < (1u << 20) ? peer->answer_left : 1u << 20, MSG_DONTWAIT);
                if (got == 0) {
                    fprintf(stderr, "the server closed the connection\n");
                    exit(1);
                }
                if (got < 0) break;
                if (in_head) {
                    peer->head_bytes += got;
                    if (peer->head_bytes == 4) {
                        uint32_t size;
                        memcpy(&size, peer->head, 4);
                        peer->answer_left = ntohl(size);
                        peer->head_bytes = 0;
                    }
                    continue;
                }
                answer_bytes += got;
                peer->answer_left -= got;
                if (!peer->answer_left) {
                    double started = peer->started[peer->answered++ % DEPTH_MAX];
                    if (count < capacity) latencies[count] = (now() - started) * 1e6;
                    count++;
                    push_load(peer, depth);
                }
            }
            if (events[i].events & EPOLLOUT) push_load(peer, depth);
        }
    }
    double elapsed = now() - start;
    size_t kept = count < capacity ? count : capacity;
    check(kept > 0, "an answer");
    qsort(latencies, kept, sizeof *latencies, compare);
    printf("%zu %.0f %.6f %.1f %.1f\n", count, (double)answer_bytes, elapsed, latencies[kept / 2], latencies[kept * 99 / 100]);
}

int main(int argc, char **argv) {
    if (argc >= 4 && !strcmp(argv[1], "serve"))
        serve(!strcmp(argv[2], "ingest"), argv[3], argc > 4 ? strtoull(argv[4], NULL, 10) : 0);
    if (argc == 7 && !strcmp(argv[1], "load"))
        load(atoi(argv[2]), atoi(argv[3]), atof(argv[4]), atoi(argv[5]), argv[6]);
    return 0;
}
