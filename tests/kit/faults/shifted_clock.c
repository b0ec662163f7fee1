/* Shifts the wall clock of a process by the seconds that a file holds, read anew at each call.

   Loaded by LD_PRELOAD. SHIFTED_CLOCKS is a folder with a file for each role; a process is of the role whose
   name stands among its arguments. The monotonic clocks are left alone, as they are when somebody sets the date. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static char path[4096];
static int (*real_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void find_role(void) {
  real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  const char *folder = getenv("SHIFTED_CLOCKS");
  static char arguments[65536];
  int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (!folder || file < 0) return;
  ssize_t length = read(file, arguments, sizeof arguments - 1);
  close(file);
  for (char *word = arguments; word < arguments + length; word += strlen(word) + 1) {
    struct stat found;
    if (!*word || strchr(word, '/')) continue;
    snprintf(path, sizeof path, "%s/%s", folder, word);
    if (!stat(path, &found) && S_ISREG(found.st_mode)) return;
  }
  path[0] = 0;
}

static long read_shift_s(void) {
  char text[32] = {0};
  if (!path[0]) return 0;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  return length > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t id, struct timespec *now) {
  int result = real_gettime(id, now);
  if (!result && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += read_shift_s();
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec precise;
  int result = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return result;
}

time_t time(time_t *stored) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (stored) *stored = precise.tv_sec;
  return precise.tv_sec;
}
