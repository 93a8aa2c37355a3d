/* A closed-loop load generator: every connection keeps a fixed number of requests in flight until the time is up.
 *
 *   loader PORT REQUESTS CONNECTIONS DEPTH SECONDS [LIMIT]
 *
 * REQUESTS is a file with one or more whole requests, each framed by Content-Length; connections walk through them in
 * turn. Replies are framed by Content-Length too, so AGTP/1.0 and HTTP/1.1 servers are measured by the same code. A
 * reply without a length is chunked.
 * LIMIT ends the run after that many replies. The result is one line of JSON on standard output.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    INBOX = 1 << 18,          /* the longest reply that can be read */
    SLOTS = 2000000,          /* latencies are counted by the microsecond, up to two seconds */
    CONNECTIONS_MAX = 10000,
    DEPTH_MAX = 1024,
    BATCH = 1 << 16,          /* the request file is repeated up to this size, so that a batch is one send */
};

struct connection {
    int fd;
    int next;                 /* the request that is due next */
    size_t offset;            /* where in the request bytes the next send starts */
    size_t owed;              /* bytes of requests that are due and not sent */
    int first, pending;       /* ring of the times at which requests became due */
    uint64_t *due;
    char *inbox;
    size_t filled;
    int waits_for_room;       /* EPOLLOUT is asked for */
};

static char *request_bytes;
static size_t request_total;
static size_t *request_length;
static int request_count;
static int depth;
static int poller;
static uint32_t *histogram;
static uint64_t replies, errors, deadline, limit = UINT64_MAX;

static void fail(const char *what)
{
    fprintf(stderr, "loader: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The length of the chunks at the start of `bytes`, 0 if they are not whole yet. */
static size_t chunked_length(const char *bytes, size_t size)
{
    size_t at = 0;
    for (;;) {
        const char *line = memmem(bytes + at, size - at, "\r\n", 2);
        if (!line)
            return 0;
        size_t span = strtoul(bytes + at, NULL, 16);
        at = (size_t)(line - bytes) + 2 + span + 2;
        if (at > size)
            return 0;
        if (!span)
            return at;
    }
}

/* The length of the message at the start of `bytes`, 0 if it is not whole yet. */
static size_t message_length(const char *bytes, size_t size)
{
    static const char name[] = "content-length:", coding[] = "transfer-encoding: chunked";
    const char *end = memmem(bytes, size, "\r\n\r\n", 4);
    if (!end)
        return 0;
    const char *line = memchr(bytes, '\n', size);
    size_t head = (size_t)(end - bytes) + 4;
    while (line && line < end) {
        line++;
        if (!strncasecmp(line, name, sizeof name - 1)) {
            size_t whole = head + strtoul(line + sizeof name - 1, NULL, 10);
            return whole <= size ? whole : 0;
        }
        if (!strncasecmp(line, coding, sizeof coding - 1)) {
            size_t body = chunked_length(bytes + head, size - head);
            return body ? head + body : 0;
        }
        line = memchr(line, '\n', (size_t)(end + 2 - line));
    }
    errno = 0;
    fail("a message without Content-Length");
    return 0;
}

static void read_requests(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail(path);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    int copies = size && size < BATCH ? (int)(BATCH / size) : 1;
    request_bytes = malloc(size * (size_t)copies + 1);
    if (!request_bytes || fread(request_bytes, 1, size, file) != size)
        fail(path);
    fclose(file);
    for (int copy = 1; copy < copies; copy++)
        memcpy(request_bytes + size * (size_t)copy, request_bytes, size);
    request_total = size * (size_t)copies;
    request_bytes[request_total] = 0;
    errno = 0;
    for (size_t at = 0; at < request_total;) {
        size_t length = message_length(request_bytes + at, request_total - at);
        if (!length)
            fail("the request file ends inside a request");
        request_length = realloc(request_length, sizeof *request_length * (size_t)(request_count + 1));
        if (!request_length)
            fail("out of memory");
        request_length[request_count++] = length;
        at += length;
    }
    if (!request_count)
        fail("the request file is empty");
}

static void watch(struct connection *c, int operation, int for_room)
{
    struct epoll_event event = {.events = EPOLLIN | (for_room ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(poller, operation, c->fd, &event) < 0)
        fail("epoll_ctl");
    c->waits_for_room = for_room;
}

static void send_owed(struct connection *c)
{
    while (c->owed) {
        size_t span = request_total - c->offset;
        if (span > c->owed)
            span = c->owed;
        ssize_t sent = send(c->fd, request_bytes + c->offset, span, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                fail("send");
            break;
        }
        c->owed -= (size_t)sent;
        c->offset = (c->offset + (size_t)sent) % request_total;
    }
    if (c->waits_for_room != (c->owed > 0))
        watch(c, EPOLL_CTL_MOD, c->owed > 0);
}

static void order(struct connection *c, int count, uint64_t at)
{
    while (count--) {
        c->owed += request_length[c->next];
        c->next = (c->next + 1) % request_count;
        c->due[(c->first + c->pending++) % depth] = at;
    }
}

static void note_reply(struct connection *c, const char *reply, size_t length, uint64_t at)
{
    const char *space = memchr(reply, ' ', length);
    if (!space || strncmp(space + 1, "200", 3)) {
        if (!errors)
            fprintf(stderr, "loader: the first reply that is not 200:\n%.*s\n", (int)(length < 600 ? length : 600), reply);
        errors++;
    }
    uint64_t waited = (at - c->due[c->first]) / 1000;
    histogram[waited < SLOTS ? waited : SLOTS - 1]++;
    c->first = (c->first + 1) % depth;
    c->pending--;
    replies++;
}

static void receive(struct connection *c)
{
    ssize_t got = recv(c->fd, c->inbox + c->filled, INBOX - c->filled, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    if (got <= 0) {
        if (!got)
            errno = 0;
        fail(got ? "recv" : "the server closed a connection");
    }
    c->filled += (size_t)got;
    uint64_t at = now_ns();
    size_t taken = 0, length;
    int answered = 0;
    while (c->pending && (length = message_length(c->inbox + taken, c->filled - taken))) {
        note_reply(c, c->inbox + taken, length, at);
        taken += length;
        answered++;
    }
    memmove(c->inbox, c->inbox + taken, c->filled - taken);
    c->filled -= taken;
    errno = 0;
    if (c->filled == INBOX)
        fail("a reply is too long");
    if (c->filled && !c->pending)
        fail("a reply that was not asked for");
    order(c, answered, at);
    send_owed(c);
}

static void open_connection(struct connection *c, int port, int index, int count)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address) < 0)
        fail("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->inbox = malloc(INBOX);
    c->due = calloc((size_t)depth, sizeof *c->due);
    if (!c->inbox || !c->due)
        fail("out of memory");
    /* each connection starts at its own part of the file, so that requests made to be sent once are sent once */
    c->next = (int)((uint64_t)index * (uint64_t)request_count / (uint64_t)count);
    for (int i = 0; i < c->next; i++)
        c->offset += request_length[i];
    watch(c, EPOLL_CTL_ADD, 0);
}

static double percentile(double share)
{
    uint64_t wanted = (uint64_t)((double)replies * share), seen = 0;
    for (int slot = 0; slot < SLOTS; slot++)
        if ((seen += histogram[slot]) > wanted)
            return slot;
    return SLOTS;
}

int main(int argc, char **argv)
{
    if (argc < 6 || argc > 7) {
        fprintf(stderr, "usage: loader PORT REQUESTS CONNECTIONS DEPTH SECONDS [LIMIT]\n");
        return 2;
    }
    int port = atoi(argv[1]), connections = atoi(argv[3]);
    double seconds = atof(argv[5]);
    depth = atoi(argv[4]);
    if (argc == 7)
        limit = strtoull(argv[6], NULL, 10);
    if (connections < 1 || connections > CONNECTIONS_MAX || depth < 1 || depth > DEPTH_MAX || seconds <= 0)
        fail("CONNECTIONS, DEPTH and SECONDS are positive numbers");
    read_requests(argv[2]);
    histogram = calloc(SLOTS, sizeof *histogram);
    struct connection *all = calloc((size_t)connections, sizeof *all);
    if (!histogram || !all || (poller = epoll_create1(0)) < 0)
        fail("set-up");
    for (int i = 0; i < connections; i++)
        open_connection(&all[i], port, i, connections);

    uint64_t start = now_ns(), now = start;
    deadline = start + (uint64_t)(seconds * 1e9);
    for (int i = 0; i < connections; i++) {
        order(&all[i], depth, start);
        send_owed(&all[i]);
    }
    struct epoll_event events[256];
    while (now < deadline && replies < limit) {
        int ready = epoll_wait(poller, events, 256, (int)((deadline - now) / 1000000) + 1);
        if (ready < 0 && errno != EINTR)
            fail("epoll_wait");
        for (int i = 0; i < ready; i++) {
            struct connection *c = events[i].data.ptr;
            if (events[i].events & EPOLLOUT)
                send_owed(c);
            if (events[i].events & ~(uint32_t)EPOLLOUT)
                receive(c);
        }
        now = now_ns();
    }
    double elapsed = (double)(now - start) / 1e9;
    printf("{\"loader\":\"c\",\"requests\":%llu,\"errors\":%llu,\"seconds\":%.3f,\"rps\":%.1f,\"p50_us\":%.0f,\"p99_us\":%.0f}\n",
           (unsigned long long)replies, (unsigned long long)errors, elapsed, (double)replies / elapsed, percentile(0.50), percentile(0.99));
    return 0;
}
