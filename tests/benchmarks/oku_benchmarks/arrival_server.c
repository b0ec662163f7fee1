/* A target that notes when each request arrived and was answered: what all load generators are judged by.
 *
 *   arrival_server ADDRESS RECORDS CAPACITY DELAY_US FREEZE_AT_MS FREEZE_MS
 *
 * It listens on a free port of the loopback, writes its address to the file ADDRESS, and serves until SIGTERM.
 * RECORDS is shared memory: a header of 8 integers of 64 bits, and for each request three more: when it
 * arrived, when its answer was written (both in ns of CLOCK_REALTIME), and the number that its path ends with,
 * or -1.
 *
 * An arrival is stamped by the kernel, inside the send() of the client: neither this process nor its
 * place in the queue for a processor is in it. Where the kernel gives none, it is when the bytes were read.
 *
 * Every answer comes DELAY_US later; FREEZE_AT_MS after the first request nothing is answered for FREEZE_MS.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FDS = 1 << 16, EVENTS = 256, HEADER = 8, BUFFER = 1 << 16 };
enum { RECEIVED, ANSWERED, CONNECTIONS, BY_KERNEL, FREEZE_BEGAN, FREEZE_ENDED };

typedef struct {
  int64_t arrived, answered, index;
} Record;

typedef struct {
  uint32_t generation; /* of the descriptor: an answer of a closed connection must not go to the next one */
  int matched;         /* how much of the blank line that ends a head was seen */
  int in_line;         /* whether the request line is still being read */
  int64_t number;      /* the digits that its path ends with so far; -1 for none */
  int spaces;
} Connection;

typedef struct {
  int64_t due, record;
  int fd;
  uint32_t generation;
} Answer;

static const char ANSWER[] = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/plain\r\n\r\nHello, World!";
static Connection connections[MAX_FDS];
static volatile int64_t *header;
static Record *records;
static int64_t capacity, delay_ns, freeze_at_ns, freeze_ns;
static Answer *waiting; /* a ring, in the order in which they are due: the delay is the same for all */
static int64_t waiting_first, waiting_stop, waiting_size = 1 << 20;
static int timer;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void answer(int fd, int64_t record) {
  if (write(fd, ANSWER, sizeof ANSWER - 1) < 0 && errno != EPIPE && errno != ECONNRESET) perror("write");
  if (record < capacity) records[record].answered = now_ns();
  header[ANSWERED]++;
}

/* An absolute timer on CLOCK_REALTIME; 0 disarms it. */
static void set_timer(int64_t at) {
  struct itimerspec when = {.it_value = {at / 1000000000LL, at % 1000000000LL}};
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void postpone(int fd, int64_t record, int64_t due) {
  if (waiting_stop - waiting_first == waiting_size) {
    fputs("too many requests wait for an answer\n", stderr);
    exit(1);
  }
  Answer *last = &waiting[waiting_stop % waiting_size];
  *last = (Answer){due, record, fd, connections[fd].generation};
  if (waiting_first == waiting_stop++) set_timer(due);
}

static void answer_due(void) {
  while (waiting_first < waiting_stop) {
    Answer *next = &waiting[waiting_first % waiting_size];
    if (next->due > now_ns()) {
      set_timer(next->due);
      return;
    }
    waiting_first++;
    if (connections[next->fd].generation == next->generation) answer(next->fd, next->record);
  }
  set_timer(0);
}

static void take(int fd, int64_t arrived) {
  int64_t record = header[RECEIVED]++;
  if (record < capacity) records[record] = (Record){arrived, 0, connections[fd].number};
  if (record == 0 && freeze_ns) {
    header[FREEZE_BEGAN] = arrived + freeze_at_ns;
    header[FREEZE_ENDED] = arrived + freeze_at_ns + freeze_ns;
  }
  int64_t due = delay_ns ? arrived + delay_ns : 0;
  if (freeze_ns) {
    int64_t now = due ? due : now_ns();
    if (now >= header[FREEZE_BEGAN] && now < header[FREEZE_ENDED]) due = header[FREEZE_ENDED];
  }
  if (due)
    postpone(fd, record, due);
  else
    answer(fd, record);
}

/* Looks at each byte of a head once: the number in the request line, and the blank line at its end. */
static void parse(int fd, const char *bytes, ssize_t length, int64_t arrived) {
  Connection *connection = &connections[fd];
  for (ssize_t i = 0; i < length; i++) {
    char byte = bytes[i];
    if (connection->in_line) {
      if (byte == ' ')
        connection->spaces++;
      else if (byte == '\n')
        connection->in_line = 0;
      else if (connection->spaces == 1)
        connection->number = byte < '0' || byte > '9' ? -1
                             : connection->number < 0 ? byte - '0'
                                                      : connection->number * 10 + byte - '0';
    }
    if (byte == (connection->matched % 2 ? '\n' : '\r'))
      connection->matched++;
    else
      connection->matched = byte == '\r';
    if (connection->matched == 4) {
      take(fd, arrived);
      *connection = (Connection){.generation = connection->generation, .in_line = 1, .number = -1};
    }
  }
}

static void open_connection(int listener, int poll) {
  int fd, yes = 1;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
    if (fd >= MAX_FDS) {
      close(fd);
      continue;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    connections[fd] = (Connection){.generation = connections[fd].generation + 1, .in_line = 1, .number = -1};
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event)) fail("epoll_ctl");
    header[CONNECTIONS]++;
  }
}

static void read_connection(int fd) {
  static char bytes[BUFFER];
  char control[CMSG_SPACE(sizeof(struct timespec)) + 64];
  struct iovec part = {bytes, sizeof bytes};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  ssize_t length = recvmsg(fd, &message, 0);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (length <= 0) {
    connections[fd].generation++;
    close(fd);
    return;
  }
  int64_t arrived = 0;
  for (struct cmsghdr *each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each))
    if (each->cmsg_level == SOL_SOCKET && each->cmsg_type == SCM_TIMESTAMPNS) {
      struct timespec stamp;
      memcpy(&stamp, CMSG_DATA(each), sizeof stamp);
      arrived = stamp.tv_sec * 1000000000LL + stamp.tv_nsec;
      header[BY_KERNEL]++;
    }
  parse(fd, bytes, length, arrived ? arrived : now_ns());
}

static volatile sig_atomic_t ended;
static void end(int signal) {
  (void)signal;
  ended = 1;
}

static void open_records(const char *path) {
  size_t size = HEADER * sizeof *header + capacity * sizeof *records;
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || ftruncate(fd, size)) fail(path);
  char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (memory == MAP_FAILED) fail("mmap");
  header = (int64_t *)memory;
  records = (Record *)(memory + HEADER * sizeof *header);
}

static void write_address(const char *path, int listener) {
  struct sockaddr_in address;
  socklen_t length = sizeof address;
  getsockname(listener, (struct sockaddr *)&address, &length);
  char unfinished[4096];
  snprintf(unfinished, sizeof unfinished, "%s.new", path);
  FILE *file = fopen(unfinished, "w");
  if (!file) fail(unfinished);
  fprintf(file, "127.0.0.1:%d", ntohs(address.sin_port));
  fclose(file);
  if (rename(unfinished, path)) fail(path);
}

int main(int count, char **words) {
  if (count != 7) {
    fprintf(stderr, "%s ADDRESS RECORDS CAPACITY DELAY_US FREEZE_AT_MS FREEZE_MS\n", words[0]);
    return 2;
  }
  capacity = atoll(words[3]);
  delay_ns = atoll(words[4]) * 1000;
  freeze_at_ns = atoll(words[5]) * 1000000;
  freeze_ns = atoll(words[6]) * 1000000;
  waiting = calloc(waiting_size, sizeof *waiting);
  open_records(words[2]);
  struct sigaction action = {.sa_handler = end};
  sigaction(SIGTERM, &action, NULL);
  signal(SIGPIPE, SIG_IGN);

  int yes = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  setsockopt(listener, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes); /* connections inherit it */
  struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (struct sockaddr *)&loopback, sizeof loopback) || listen(listener, 4096)) fail("listen");
  timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  int poll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[EVENTS];
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  event.data.fd = timer;
  epoll_ctl(poll, EPOLL_CTL_ADD, timer, &event);
  write_address(words[1], listener);

  while (!ended) {
    int ready = epoll_wait(poll, events, EVENTS, -1);
    for (int i = 0; i < ready; i++) {
      int fd = events[i].data.fd;
      uint64_t expirations;
      if (fd == listener)
        open_connection(listener, poll);
      else if (fd != timer)
        read_connection(fd);
      else if (read(timer, &expirations, sizeof expirations) > 0)
        answer_due();
    }
  }
  return 0;
}
