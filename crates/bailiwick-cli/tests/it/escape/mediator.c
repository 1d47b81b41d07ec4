// Ways to reach a Unix socket that is not granted, past the supervisor that answers every connect.
//
//   mediator DIR
//
// DIR/r/socket and DIR/w/socket are granted; DIR/r/other, DIR/r/datagram and the abstract name `@DIR` are not. Every
// service sends one letter to who connects: `G` if it is granted, `U` if not. Each attempt is a process of its own and
// prints its name and the letters that it was sent, or why there were none. `O` is something of the sandbox's own.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *dir;
static char granted[128], other[128], datagram[128], mine[128];
static char letters[64];

static char *at(const char *name) {
    static char paths[8][200];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, 200, "%s/%s", dir, name);
    return path;
}
static void note(char letter) {
    size_t used = strlen(letters);
    if (!memchr(letters, letter, used) && used + 1 < sizeof letters) letters[used] = letter;
}
// Who is at the other end.
static int listen_to(int fd) {
    char letter;
    struct pollfd p = {fd, POLLIN, 0};
    if (poll(&p, 1, 1000) <= 0 || recv(fd, &letter, 1, MSG_DONTWAIT) != 1) return -1;
    note(letter);
    return 0;
}
static struct sockaddr_un named(const char *path) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    memcpy(to.sun_path, path, length < sizeof to.sun_path ? length : sizeof to.sun_path);
    return to;
}
static int stream(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }
static int reach_on(int fd, const char *path) {
    struct sockaddr_un to = named(path);
    if (fd < 0 || connect(fd, (void *)&to, sizeof to)) return -1;
    return listen_to(fd);
}
static int reach(const char *path) {
    int fd = stream(), done = reach_on(fd, path), error = errno;
    close(fd);
    errno = error;
    return done;
}
static int reach_raw(const void *address, socklen_t length) {
    int fd = stream();
    if (fd < 0 || connect(fd, address, length)) return -1;
    return listen_to(fd);
}

// Names -----------------------------------------------------------------------------------------------------------

static int control_granted(void) { return reach(granted); }
static int control_second(void) { return reach(mine); }
static int plain(void) { return reach(other); }
static int dot_dot(void) { return reach(at("r/../r/other")); }
static int through_file(void) { return reach(at("r/socket/../other")); }
static int double_slash(void) { return reach(at("r//other")); }
static int trailing_slash(void) { return reach(at("r/other/")); }
static int own_root(void) { char p[300]; snprintf(p, sizeof p, "/proc/self/root%s", other); return reach(p); }
static int thread_root(void) { char p[300]; snprintf(p, sizeof p, "/proc/thread-self/root%s", other); return reach(p); }
static int first_root(void) { char p[300]; snprintf(p, sizeof p, "/proc/1/root%s", other); return reach(p); }
static int own_cwd(void) { return chdir(at("r")) ? -1 : reach("/proc/self/cwd/other"); }
static int relative(void) { return chdir(at("r")) ? -1 : reach("other"); }
static int relative_dot(void) { return chdir(at("r")) ? -1 : reach("./other"); }
static int from_root(void) { return chdir("/") ? -1 : reach(other + 1); }
static int by_directory(void) {
    char p[64];
    int directory = open(at("r"), O_PATH | O_DIRECTORY);
    snprintf(p, sizeof p, "/proc/self/fd/%d/other", directory);
    return directory < 0 ? -1 : reach(p);
}
static int by_descriptor(void) {
    char p[64];
    int file = open(other, O_PATH);
    snprintf(p, sizeof p, "/proc/self/fd/%d", file);
    return file < 0 ? -1 : reach(p);
}
static int by_dev_fd(void) {
    char p[64];
    int file = open(other, O_PATH);
    snprintf(p, sizeof p, "/dev/fd/%d", file);
    return file < 0 ? -1 : reach(p);
}
static int nul_inside(void) {
    struct sockaddr_un to = named(granted);
    size_t length = strlen(granted) + 1;
    strncpy(to.sun_path + length, other, sizeof to.sun_path - length - 1);
    return reach_raw(&to, sizeof to);
}
static int nul_first(void) {
    struct sockaddr_un to = named("");
    strncpy(to.sun_path + 1, other, sizeof to.sun_path - 2);
    return reach_raw(&to, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(other));
}
static int abstract(void) {
    struct sockaddr_un to = named("");
    strncpy(to.sun_path + 1, dir, sizeof to.sun_path - 2);
    return reach_raw(&to, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(dir));
}
static int abstract_granted(void) {
    struct sockaddr_un to = named("");
    strncpy(to.sun_path + 1, granted, sizeof to.sun_path - 2);
    return reach_raw(&to, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(granted));
}
static int longest(void) {
    // All 108 bytes, without a zero at the end.
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t length = strlen(other), pad = sizeof to.sun_path - length;
    memset(to.sun_path, '/', pad);
    memcpy(to.sun_path + pad, other, length);
    return reach_raw(&to, sizeof to);
}
static int longer(void) {
    char bytes[128] = {0};
    struct sockaddr_un to = named(other);
    memcpy(bytes, &to, sizeof to);
    return reach_raw(bytes, sizeof bytes);
}
static int odd_lengths(void) {
    struct sockaddr_un to = named(other);
    for (long length = -2; length < 3; length++) reach_raw(&to, (socklen_t)length);
    for (long length = 129; length < 1L << 31; length = length * 2 + 1) reach_raw(&to, (socklen_t)length);
    return reach_raw(&to, offsetof(struct sockaddr_un, sun_path));
}

// What can be put in a name's place -------------------------------------------------------------------------------

static int own_link(void) { unlink(at("w/l1")); return symlink(other, at("w/l1")) ? -1 : reach(at("w/l1")); }
static int link_for_granted(void) {
    // The granted name lies where this may write: its socket becomes a link.
    char *aside = at("w/aside1");
    if (rename(mine, aside)) return -1;
    if (symlink(other, mine)) return -1;
    int done = reach(mine), error = errno;
    unlink(mine);
    rename(aside, mine);
    errno = error;
    return done;
}
static int directory_for_granted(void) {
    char *directory = at("w/d"), *aside = at("w/d.aside"), *name = at("w/d/socket");
    if (rename(directory, aside) || symlink(at("u"), directory)) return -1;
    int done = reach(name), error = errno;
    unlink(directory);
    rename(aside, directory);
    errno = error;
    return done;
}
static int hard_link(void) { return link(other, at("w/hard")) ? -1 : reach(at("w/hard")); }
static int hard_link_over(void) {
    return link(other, at("w/hard2")) || rename(at("w/hard2"), mine) ? -1 : reach(mine);
}
static int link_by_descriptor(void) {
    char p[64];
    int file = open(other, O_PATH);
    snprintf(p, sizeof p, "/proc/self/fd/%d", file);
    return linkat(AT_FDCWD, p, AT_FDCWD, at("w/hard3"), AT_SYMLINK_FOLLOW) ? -1 : reach(at("w/hard3"));
}
static int bind_name(void) {
    struct sockaddr_un to = named(at("w/bound"));
    if (bind(stream(), (void *)&to, sizeof to)) return -1;
    note('U');
    return 0;
}
static int bind_abstract(void) {
    struct sockaddr_un to = named("");
    strcpy(to.sun_path + 1, "bailiwick-bound");
    if (bind(stream(), (void *)&to, offsetof(struct sockaddr_un, sun_path) + 16)) return -1;
    note('O');
    return 0;
}
static int bind_any(void) {
    struct sockaddr_un to = named("");
    if (bind(stream(), (void *)&to, sizeof to.sun_family)) return -1;
    note('O');
    return 0;
}

// Kinds of sockets ------------------------------------------------------------------------------------------------

static int seqpacket(void) { return reach_on(socket(AF_UNIX, SOCK_SEQPACKET, 0), at("r/packet")); }
static int nonblocking(void) { return reach_on(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), other); }
static int old_protocol(void) { return reach_on(socket(AF_UNIX, SOCK_STREAM, PF_UNIX), other); }
static int send_datagram(int how) {
    struct sockaddr_un to = named(datagram);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0), pair[2];
    if (how == 4) fd = socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) ? -1 : pair[0];
    if (how == 5) fd = socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) ? -1 : pair[0];
    struct iovec byte = {"U", 1};
    struct mmsghdr message = {.msg_hdr = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &byte, .msg_iovlen = 1}};
    ssize_t sent = fd < 0     ? -1
                   : how == 0 ? (connect(fd, (void *)&to, sizeof to) ? -1 : send(fd, "U", 1, 0))
                   : how == 2 ? sendmsg(fd, &message.msg_hdr, 0)
                   : how == 3 ? sendmmsg(fd, &message, 1, 0)
                              : sendto(fd, "U", 1, 0, (void *)&to, sizeof to);
    // A connected pair ignores the name: only the service's own word is a leak, see the test.
    if (sent > 0 && how != 5) note('U');
    return sent > 0 ? 0 : -1;
}
static int datagram_connect(void) { return send_datagram(0); }
static int datagram_sendto(void) { return send_datagram(1); }
static int datagram_sendmsg(void) { return send_datagram(2); }
static int datagram_sendmmsg(void) { return send_datagram(3); }
static int datagram_pair(void) { return send_datagram(4); }
static int packet_pair_sendto(void) { return send_datagram(5); }
static int stream_sendto(void) {
    struct sockaddr_un to = named(other);
    int fd = stream();
    return sendto(fd, "x", 1, 0x20000000, (void *)&to, sizeof to) < 0 ? -1 : listen_to(fd);
}
static int pair_reconnect(void) {
    int pair[2];
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return -1;
    connect(pair[0], &none, sizeof none);
    return reach_on(pair[0], other);
}
static int internet_socket(void) { return reach_on(socket(AF_INET, SOCK_STREAM, 0), other); }
static int internet_address(void) {
    struct sockaddr_un to = named(other);
    to.sun_family = AF_INET;
    return reach_raw(&to, sizeof to);
}
static int no_family(void) {
    struct sockaddr_un to = named(other);
    to.sun_family = AF_UNSPEC;
    return reach_raw(&to, sizeof to);
}
static int connected_already(void) {
    int fd = stream();
    if (reach_on(fd, granted)) return -1;
    return reach_on(fd, other);
}
static int duplicate(void) {
    int fd = stream(), second = dup(fd);
    reach_on(fd, granted);
    return reach_on(second, other);
}
static int no_socket(void) { return reach_on(open("/dev/null", O_RDWR), other); }

// How the call is made --------------------------------------------------------------------------------------------

static int high_bits(void) {
    struct sockaddr_un to = named(other);
    int fd = stream();
    if (syscall(SYS_connect, 0x100000000UL | (unsigned)fd, &to, 0x500000000UL | sizeof to)) return -1;
    return listen_to(fd);
}
static int by_x32(void) {
    struct sockaddr_un to = named(other);
    int fd = stream();
    return syscall(0x40000000 | SYS_connect, fd, &to, sizeof to) ? -1 : listen_to(fd);
}
static int by_i386(void) {
#ifdef __x86_64__
    struct sockaddr_un *to =
        mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (to == MAP_FAILED) return -1;
    *to = named(other);
    int fd = stream(), result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(362), "b"(fd), "c"(to), "d"(sizeof *to) : "memory");
    errno = -result;
    return result ? -1 : listen_to(fd);
#else
    errno = ENOSYS;
    return -1;
#endif
}
static int by_io_uring(void) {
    char params[120] = {0};
    int ring = syscall(SYS_io_uring_setup, 4, params);
    if (ring < 0) return -1;
    note('U'); // a connect through the ring would not be seen
    return 0;
}
static int unmapped(void) {
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sockaddr_un to = named(other);
    munmap(pages + 4096, 4096);
    memcpy(pages + 4096 - 50, &to, 50);
    reach_raw(pages + 4096 - 50, sizeof to);
    return reach_raw(NULL, sizeof to);
}
static int in_child(void) {
    int fd = stream(), status;
    struct sockaddr_un to = named(other);
    if (vfork() == 0) _exit(connect(fd, (void *)&to, sizeof to) ? 1 : 0);
    wait(&status);
    return status ? -1 : listen_to(fd);
}
static int thread_result;
static void *own_files(void *unused) {
    // This thread's descriptors are its own: the process has another socket under the number.
    (void)unused;
    thread_result = unshare(CLONE_FILES) ? -1 : reach(other);
    return NULL;
}
static void *own_directory(void *unused) {
    (void)unused;
    thread_result = unshare(CLONE_FS) || chdir(at("r")) ? -1 : reach("other");
    return NULL;
}
static int in_thread(void *(*run)(void *)) {
    pthread_t thread;
    thread_result = -1;
    if (pthread_create(&thread, NULL, run, NULL)) return -1;
    pthread_join(thread, NULL);
    return thread_result;
}
static int thread_files(void) { return in_thread(own_files); }
static int thread_directory(void) { return in_thread(own_directory); }

// Races -----------------------------------------------------------------------------------------------------------

static volatile int racing;
static struct sockaddr_un *shared;
static volatile int race_fd;
static void *flip_name(void *unused) {
    (void)unused;
    struct sockaddr_un one = named(granted), two = named(other);
    while (racing) { *shared = one; *shared = two; }
    return NULL;
}
static void *flip_family(void *unused) {
    (void)unused;
    while (racing) { shared->sun_family = AF_INET; shared->sun_family = AF_UNIX; }
    return NULL;
}
static void *flip_descriptor(void *unused) {
    (void)unused;
    while (racing) {
        int own = stream(), net = socket(AF_INET, SOCK_STREAM, 0);
        dup2(net, race_fd);
        dup2(own, race_fd);
        close(own);
        close(net);
    }
    return NULL;
}
static void *close_descriptor(void *unused) {
    (void)unused;
    while (racing) { close(race_fd); int again = open("/dev/null", O_RDONLY); if (again != race_fd && again > 2) close(again); }
    return NULL;
}
static void *flip_file(void *unused) {
    (void)unused;
    char aside[200], way[200];
    snprintf(aside, sizeof aside, "%s/w/aside2", dir);
    snprintf(way, sizeof way, "%s/w/way2", dir);
    unlink(way);
    if (symlink(other, way)) return NULL;
    while (racing) syscall(SYS_renameat2, AT_FDCWD, way, AT_FDCWD, mine, 2);
    struct stat about;
    if (!lstat(mine, &about) && S_ISLNK(about.st_mode)) syscall(SYS_renameat2, AT_FDCWD, way, AT_FDCWD, mine, 2);
    return NULL;
}
static void *flip_directory(void *unused) {
    (void)unused;
    char directory[200], way[200], target[200];
    snprintf(directory, sizeof directory, "%s/w/d", dir);
    snprintf(way, sizeof way, "%s/w/way3", dir);
    snprintf(target, sizeof target, "%s/u", dir);
    unlink(way);
    if (symlink(target, way)) return NULL;
    while (racing) syscall(SYS_renameat2, AT_FDCWD, way, AT_FDCWD, directory, 2);
    struct stat about;
    if (!lstat(directory, &about) && S_ISLNK(about.st_mode)) syscall(SYS_renameat2, AT_FDCWD, way, AT_FDCWD, directory, 2);
    return NULL;
}
static int race(void *(*other_thread)(void *), const char *path, int rounds) {
    pthread_t thread;
    static struct sockaddr_un memory;
    if (!shared) shared = &memory;
    *shared = named(path);
    racing = 1;
    race_fd = stream();
    if (race_fd < 0 || pthread_create(&thread, NULL, other_thread, NULL)) return -1;
    for (int i = 0; i < rounds && !strchr(letters, 'U'); i++) {
        if (i % 16 == 0) sched_yield(); // on a busy machine the other thread has to have its turn
        int fd = other_thread == flip_descriptor || other_thread == close_descriptor ? race_fd : stream();
        if (!connect(fd, (void *)shared, sizeof *shared)) {
            char letter;
            struct pollfd p = {fd, POLLIN, 0};
            if (poll(&p, 1, 100) > 0 && recv(fd, &letter, 1, MSG_DONTWAIT) == 1) note(letter);
        }
        if (fd != race_fd) close(fd);
    }
    racing = 0;
    pthread_join(thread, NULL);
    return letters[0] ? 0 : -1;
}
static int race_name(void) { return race(flip_name, granted, 1000); }
static int race_family(void) { return race(flip_family, other, 1000); }
static int race_descriptor(void) { return race(flip_descriptor, other, 1000); }
static int race_close(void) { return race(close_descriptor, other, 1000); }
static int race_file(void) { return race(flip_file, mine, 1000); }
static int race_directory(void) { return race(flip_directory, at("w/d/socket"), 1000); }
static int race_processes(void) {
    // The name lies in memory that another process writes.
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t writer = fork();
    if (writer == 0) { racing = 1; flip_name(NULL); }
    while (!((volatile struct sockaddr_un *)shared)->sun_family) sched_yield();
    for (int i = 0; i < 1000 && !strchr(letters, 'U'); i++) {
        if (i % 16 == 0) sched_yield();
        int fd = stream();
        if (!connect(fd, (void *)shared, sizeof *shared)) listen_to(fd);
        close(fd);
    }
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    return letters[0] ? 0 : -1;
}

// The supervisor itself -------------------------------------------------------------------------------------------

static int flood(void) {
    // Ten thousand refusals, then the granted name must still answer.
    for (int i = 0; i < 10000; i++) {
        struct sockaddr_un to = named(other);
        int fd = stream();
        if (!connect(fd, (void *)&to, sizeof to)) { listen_to(fd); return 0; }
        close(fd);
    }
    return reach(granted);
}
static int killed_callers(void) {
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        if (child == 0) for (;;) reach(i % 2 ? other : granted);
        usleep(500);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return reach(granted);
}
static void nothing(int signal) { (void)signal; }
static int interrupted(void) {
    struct sigaction act = {.sa_handler = nothing};
    sigaction(SIGALRM, &act, NULL);
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 500; i++) {
        int fd = stream();
        struct sockaddr_un to = named(other);
        if (!connect(fd, (void *)&to, sizeof to)) listen_to(fd);
        close(fd);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    return reach(granted);
}
static int many_waiting(void) {
    // A service that accepts nobody: its queue is full, and those that wait must not stop the others.
    for (int i = 0; i < 400; i++)
        if (fork() == 0) { reach(at("r/full")); _exit(0); }
    usleep(300000);
    int done = reach(granted);
    kill(0, SIGTERM);
    return done;
}
static int descriptors_kept(void) {
    // What is replaced keeps its number and its flags, and no other appears.
    int fd = stream(), next;
    if (reach_on(fd, granted)) return -1;
    next = dup(fd);
    if (next != fd + 1 || !(fcntl(fd, F_GETFD) & FD_CLOEXEC)) note('U');
    return 0;
}

static const struct { const char *name; int (*run)(void); } attempts[] = {
#define ROW(name) {#name, name}
    ROW(control_granted), ROW(control_second), ROW(plain), ROW(dot_dot), ROW(through_file), ROW(double_slash),
    ROW(trailing_slash), ROW(own_root), ROW(thread_root), ROW(first_root), ROW(own_cwd), ROW(relative),
    ROW(relative_dot), ROW(from_root), ROW(by_directory), ROW(by_descriptor), ROW(by_dev_fd), ROW(nul_inside),
    ROW(nul_first), ROW(abstract), ROW(abstract_granted), ROW(longest), ROW(longer), ROW(odd_lengths),
    ROW(own_link), ROW(link_for_granted), ROW(directory_for_granted), ROW(hard_link), ROW(hard_link_over),
    ROW(link_by_descriptor), ROW(bind_name), ROW(bind_abstract), ROW(bind_any), ROW(seqpacket), ROW(nonblocking),
    ROW(old_protocol), ROW(datagram_connect), ROW(datagram_sendto), ROW(datagram_sendmsg), ROW(datagram_sendmmsg),
    ROW(datagram_pair), ROW(packet_pair_sendto), ROW(stream_sendto), ROW(pair_reconnect), ROW(internet_socket),
    ROW(internet_address), ROW(no_family), ROW(connected_already), ROW(duplicate), ROW(no_socket), ROW(high_bits),
    ROW(by_x32), ROW(by_i386), ROW(by_io_uring), ROW(unmapped), ROW(in_child), ROW(thread_files),
    ROW(thread_directory), ROW(race_name), ROW(race_family), ROW(race_descriptor), ROW(race_close), ROW(race_file),
    ROW(race_directory), ROW(race_processes), ROW(flood), ROW(killed_callers), ROW(interrupted), ROW(many_waiting),
    ROW(descriptors_kept),
};

static void attempt(const char *name, int (*run)(void)) {
    int out[2];
    if (pipe(out)) return;
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        signal(SIGTERM, SIG_IGN);
        signal(SIGPIPE, SIG_IGN);
        int done = run(), error = errno;
        dprintf(out[1], "%s %s", letters, done ? strerrorname_np(error) : "");
        _exit(0);
    }
    close(out[1]);
    char line[200] = "";
    struct pollfd p = {out[0], POLLIN, 0};
    ssize_t n = poll(&p, 1, 60000) > 0 ? read(out[0], line, sizeof line - 1) : -1;
    kill(-pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(out[0]);
    printf("%s\t%s\n", name, n < 0 ? "- TIMEOUT" : n == 0 ? "- ENDED" : line);
    fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    dir = argv[1];
    snprintf(granted, sizeof granted, "%s/r/socket", dir);
    snprintf(other, sizeof other, "%s/r/other", dir);
    snprintf(datagram, sizeof datagram, "%s/r/datagram", dir);
    snprintf(mine, sizeof mine, "%s/w/socket", dir);
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) attempt(attempts[i].name, attempts[i].run);
    return 0;
}
