// Tries things from inside a sandbox, one process each, and prints for each `ok` or why it was refused.
//
//   probe ATTEMPT [ARG…] [-- ATTEMPT [ARG…]]…
//
// An attempt that works prints `ok`, with what it saw; one that is refused prints `no` and the error's name; one that
// never comes back prints `no TIMEOUT`. A probe that cannot make its attempt for a reason of its own prints `fault`.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>


static char seen[4096];

static int fault(const char *why) { snprintf(seen, sizeof seen, "%s", why); return -2; }

// Files -----------------------------------------------------------------------------------------------------------

static int try_read(char **a) {
    int fd = open(a[0], O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t n = read(fd, seen, 60);
    if (n < 0 && errno == EISDIR) return 0;
    if (n < 0) return -1;
    seen[n] = 0;
    return 0;
}
static int try_write(char **a) {
    int fd = open(a[0], O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, "x", 1) != 1 ? -1 : 0;
}
static int try_append(char **a) {
    int fd = open(a[0], O_WRONLY | O_APPEND | O_CLOEXEC);
    return fd < 0 || write(fd, "x", 1) != 1 ? -1 : 0;
}
static int try_create(char **a) {
    int fd = open(a[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd < 0 || write(fd, "x", 1) != 1 ? -1 : 0;
}
static int try_list(char **a) {
    DIR *d = opendir(a[0]);
    if (!d) return -1;
    size_t used = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.' && (!e->d_name[1] || e->d_name[1] == '.')) continue;
        used += snprintf(seen + used, sizeof seen - used, "%s ", e->d_name);
        if (used >= sizeof seen) break;
    }
    return 0;
}
static int try_stat(char **a) { struct stat s; return lstat(a[0], &s); }
static int try_unlink(char **a) { return unlink(a[0]); }
static int try_mkdir(char **a) { return mkdir(a[0], 0755); }
static int try_rename(char **a) { return rename(a[0], a[1]); }
static int try_link(char **a) { return link(a[0], a[1]); }
static int try_symlink(char **a) { return symlink(a[0], a[1]); }
static int try_truncate(char **a) { return truncate(a[0], 0); }
// To the length that it has: if this works, nothing is lost.
static int try_resize(char **a) {
    struct stat found;
    return stat(a[0], &found) < 0 ? -1 : truncate(a[0], found.st_size);
}
static int try_utimes(char **a) { return utimensat(AT_FDCWD, a[0], NULL, 0); }
static int try_xattr(char **a) { return setxattr(a[0], "user.probe", "x", 1, 0); }
static int try_chown(char **a) { return chown(a[0], getuid(), getgid()); }
static int try_chmod(char **a) { return chmod(a[0], strtol(a[1], NULL, 8)); }
static int try_fchmodat2(char **a) { return syscall(452, AT_FDCWD, a[0], strtol(a[1], NULL, 8), 0); }
static int try_openmode(char **a) {
    int fd = open(a[0], O_WRONLY | O_CREAT | O_EXCL, strtol(a[1], NULL, 8));
    if (fd < 0) return -1;
    struct stat s;
    fstat(fd, &s);
    if (s.st_mode & (S_ISUID | S_ISGID)) return 0;
    errno = EPERM;
    return -1;
}
static int try_mknodmode(char **a) {
    if (mknod(a[0], S_IFREG | strtol(a[1], NULL, 8), 0)) return -1;
    struct stat s;
    lstat(a[0], &s);
    if (s.st_mode & (S_ISUID | S_ISGID)) return 0;
    errno = EPERM;
    return -1;
}
static int try_openat2mode(char **a) {
    struct { uint64_t flags, mode, resolve; } how = {O_WRONLY | O_CREAT | O_EXCL, strtol(a[1], NULL, 8), 0};
    int fd = syscall(SYS_openat2, AT_FDCWD, a[0], &how, sizeof how);
    if (fd < 0) return -1;
    struct stat s;
    fstat(fd, &s);
    if (s.st_mode & (S_ISUID | S_ISGID)) return 0;
    errno = EPERM;
    return -1;
}
static int try_device(char **a) {
    if (mknod(a[0], S_IFCHR | 0666, makedev(1, 5))) return -1;
    int fd = open(a[0], O_RDONLY);
    return fd < 0 ? -1 : 0;
}
static int try_handle(char **a) {
    struct { struct file_handle h; char space[128]; } h;
    int id;
    h.h.handle_bytes = 128;
    if (name_to_handle_at(AT_FDCWD, a[0], &h.h, &id, 0)) return -1;
    int dir = open(a[0], O_RDONLY);
    return open_by_handle_at(dir, &h.h, O_RDONLY) < 0 ? -1 : 0;
}
static int try_cdup(char **a) {
    if (chdir(a[0])) return -1;
    for (int i = 0; i < 40; i++) if (chdir("..")) return -1;
    return try_read(a + 1);
}
static int try_chroot(char **a) { return chroot(a[0]); }
static int try_fd(char **a) {
    int fd = atoi(a[0]);
    if (fcntl(fd, F_GETFD) < 0) return -1;
    ssize_t n = pread(fd, seen, 60, 0);
    if (n >= 0) seen[n] = 0;
    return 0;
}

// Mounts and namespaces -------------------------------------------------------------------------------------------

static int try_bind(char **a) { return mount(a[0], a[1], NULL, MS_BIND, NULL); }
static int try_remount(char **a) { return mount(NULL, a[0], NULL, MS_REMOUNT | MS_BIND, NULL); }
static int try_umount(char **a) { return umount2(a[0], MNT_DETACH); }
static int try_tmpfs(char **a) { return mount("t", a[0], "tmpfs", 0, NULL); }
static int try_proc(char **a) { return mount("p", a[0], "proc", 0, NULL); }
static int try_opentree(char **a) { return syscall(SYS_open_tree, AT_FDCWD, a[0], 1) < 0 ? -1 : 0; }
static int try_fsopen(char **a) { (void)a; return syscall(SYS_fsopen, "tmpfs", 0) < 0 ? -1 : 0; }
static int try_setattr(char **a) {
    uint64_t attr[4] = {0, 1, 0, 0};
    return syscall(SYS_mount_setattr, AT_FDCWD, a[0], 0, attr, sizeof attr) < 0 ? -1 : 0;
}
static int try_pivot(char **a) { return syscall(SYS_pivot_root, a[0], a[0]); }
static int try_unshare(char **a) { return unshare(strtol(a[0], NULL, 16)); }
static int try_clone(char **a) {
    long pid = syscall(SYS_clone, strtol(a[0], NULL, 16) | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    return pid < 0 ? -1 : 0;
}
static int try_clone3(char **a) {
    uint64_t args[11] = {strtol(a[0], NULL, 16), 0, 0, 0, SIGCHLD};
    long pid = syscall(SYS_clone3, args, 64);
    if (pid == 0) _exit(0);
    return pid < 0 ? -1 : 0;
}
static int try_setns(char **a) {
    int fd = open(a[0], O_RDONLY);
    return fd < 0 ? -1 : setns(fd, 0);
}

// Processes -------------------------------------------------------------------------------------------------------

static int try_kill(char **a) { return kill(atoi(a[0]), atoi(a[1])); }
static int try_ptrace(char **a) { return ptrace(PTRACE_ATTACH, atoi(a[0]), 0, 0) < 0 ? -1 : 0; }
static int try_peek(char **a) {
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)strtoul(a[1], NULL, 16), 1};
    return process_vm_readv(atoi(a[0]), &here, 1, &there, 1, 0) < 0 ? -1 : 0;
}
static int try_getfd(char **a) {
    int pidfd = syscall(SYS_pidfd_open, atoi(a[0]), 0);
    return pidfd < 0 || syscall(SYS_pidfd_getfd, pidfd, 0, 0) < 0 ? -1 : 0;
}
static int try_prlimit(char **a) {
    struct rlimit r = {64, 64};
    return prlimit(atoi(a[0]), RLIMIT_NOFILE, &r, NULL);
}
static int try_nice(char **a) { return setpriority(PRIO_PROCESS, atoi(a[0]), 10); }
static int try_pids(char **a) {
    (void)a;
    DIR *d = opendir("/proc");
    if (!d) return -1;
    int count = 0;
    for (struct dirent *e; (e = readdir(d));) count += e->d_name[0] >= '0' && e->d_name[0] <= '9';
    snprintf(seen, sizeof seen, "%d", count);
    return 0;
}
static int try_shm(char **a) {
    int id = shmget(strtol(a[0], NULL, 16), 1, 0);
    return id < 0 || shmat(id, NULL, SHM_RDONLY) == (void *)-1 ? -1 : 0;
}
static int try_makeshm(char **a) { return shmget(strtol(a[0], NULL, 16), 4096, IPC_CREAT | 0666) < 0 ? -1 : 0; }
static int try_dropshm(char **a) {
    int id = shmget(strtol(a[0], NULL, 16), 1, 0);
    return id < 0 ? -1 : shmctl(id, IPC_RMID, NULL);
}
static int try_ppid(char **a) { (void)a; snprintf(seen, sizeof seen, "%d %d", getppid(), getpid()); return 0; }
static int try_caps(char **a) {
    (void)a;
    FILE *f = fopen("/proc/self/status", "r");
    if (!f) return -1;
    char line[256];
    size_t used = 0;
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, "Cap", 3) || !strncmp(line, "NoNewPrivs", 10) || !strncmp(line, "Seccomp:", 8)) {
            line[strcspn(line, "\n")] = ' ';
            used += snprintf(seen + used, sizeof seen - used, "%s", line);
        }
    return 0;
}
static int try_daemon(char **a) {
    // Leaves the session and the parent behind, then writes the proof that it lives on.
    if (fork() == 0) {
        setsid();
        signal(SIGHUP, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        if (fork() == 0) {
            for (int i = 0; i < 300; i++) {
                usleep(10000);
                int fd = open(a[0], O_WRONLY | O_CREAT | O_APPEND, 0644);
                if (fd >= 0 && write(fd, "x", 1)) close(fd);
            }
        }
        _exit(0);
    }
    return 0;
}

// Programs --------------------------------------------------------------------------------------------------------

static int try_exec(char **a) {
    pid_t pid = vfork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        dup2(null, 2);
        execv(a[0], a);
        _exit(errno == EACCES ? 213 : errno == ENOENT ? 202 : errno == EPERM ? 201 : 250);
    }
    int status;
    waitpid(pid, &status, 0);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 256;
    if (code == 213 || code == 202 || code == 201) { errno = code - 200; return -1; }
    if (code == 0) return 0;
    errno = ECANCELED; // started, or failed to, and told so
    return -1;
}
static int copy_into(int to, const char *from) {
    int fd = open(from, O_RDONLY);
    if (fd < 0) return -1;
    static char bytes[1 << 16];
    for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) > 0;) if (write(to, bytes, n) != n) return -1;
    return 0;
}
static int try_memfd(char **a) {
    int fd = memfd_create("probe", 0);
    if (fd < 0 || copy_into(fd, a[0])) return -1;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    char *argv[] = {path, "true", NULL};
    return try_exec(argv);
}
static int try_copyexec(char **a) {
    int fd = open(a[1], O_WRONLY | O_CREAT | O_TRUNC, 0755);
    if (fd < 0 || copy_into(fd, a[0])) return fault("cannot copy");
    close(fd);
    char *argv[] = {a[1], "true", NULL};
    return try_exec(argv);
}
static int try_mapexec(char **a) {
    int fd = open(a[0], O_RDONLY);
    if (fd < 0) return -1;
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0;
}
static int try_protectexec(char **a) {
    int fd = open(a[0], O_RDONLY);
    if (fd < 0) return -1;
    void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    return p == MAP_FAILED ? -1 : mprotect(p, 4096, PROT_READ | PROT_EXEC);
}
static int try_script(char **a) {
    int fd = open(a[0], O_WRONLY | O_CREAT | O_TRUNC, 0755);
    if (fd < 0 || write(fd, "#!/bin/true\n", 12) != 12) return fault("cannot write");
    close(fd);
    char *argv[] = {a[0], NULL};
    return try_exec(argv);
}

// Sockets ---------------------------------------------------------------------------------------------------------

static int finish(int fd, struct sockaddr *to, socklen_t length) {
    if (fd < 0) return -1;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    if (connect(fd, to, length) == 0) return 0;
    if (errno != EINPROGRESS) return -1;
    struct pollfd p = {fd, POLLOUT, 0};
    if (poll(&p, 1, 1500) <= 0) { errno = ETIMEDOUT; return -1; }
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    return error ? -1 : 0;
}
static struct sockaddr_in v4(char **a) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(a[1]))};
    inet_pton(AF_INET, a[0], &to.sin_addr);
    return to;
}
static int try_tcp(char **a) {
    struct sockaddr_in to = v4(a);
    return finish(socket(AF_INET, SOCK_STREAM, 0), (void *)&to, sizeof to);
}
static int try_tcp6(char **a) {
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(a[1]))};
    inet_pton(AF_INET6, a[0], &to.sin6_addr);
    return finish(socket(AF_INET6, SOCK_STREAM, 0), (void *)&to, sizeof to);
}
static int try_mptcp(char **a) {
    struct sockaddr_in to = v4(a);
    return finish(socket(AF_INET, SOCK_STREAM, 262), (void *)&to, sizeof to);
}
static int try_fastopen(char **a) {
    struct sockaddr_in to = v4(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 || sendto(fd, "x", 1, 0x20000000, (void *)&to, sizeof to) < 0 ? -1 : 0;
}
static int try_udp(char **a) {
    // A service that echoes: only an answer is a leak.
    struct sockaddr_in to = v4(a);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0 || connect(fd, (void *)&to, sizeof to) || send(fd, "x", 1, 0) < 0) return -1;
    struct pollfd p = {fd, POLLIN, 0};
    if (poll(&p, 1, 700) <= 0) { errno = ETIMEDOUT; return -1; }
    return recv(fd, seen, 10, 0) < 0 ? -1 : 0;
}
static int try_socket(char **a) { return socket(atoi(a[0]), atoi(a[1]), atoi(a[2])) < 0 ? -1 : 0; }
static int try_pair(char **a) { int p[2]; return socketpair(AF_UNIX, atoi(a[0]), 0, p); }
static socklen_t unix_address(struct sockaddr_un *to, const char *name) {
    memset(to, 0, sizeof *to);
    to->sun_family = AF_UNIX;
    strncpy(to->sun_path, name, sizeof to->sun_path - 1);
    if (name[0] != '@') return sizeof *to;
    to->sun_path[0] = 0;
    return offsetof(struct sockaddr_un, sun_path) + strlen(name);
}
static int try_unix(char **a) {
    struct sockaddr_un to;
    socklen_t length = unix_address(&to, a[0]);
    return finish(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&to, length);
}
static int try_pairsend(char **a) {
    struct sockaddr_un to;
    socklen_t length = unix_address(&to, a[0]);
    int p[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, p)) return -1;
    return sendto(p[0], "x", 1, 0, (void *)&to, length) < 0 ? -1 : 0;
}
static int try_interfaces(char **a) {
    (void)a;
    struct if_nameindex *all = if_nameindex();
    size_t used = 0;
    for (struct if_nameindex *i = all; i && i->if_index; i++)
        used += snprintf(seen + used, sizeof seen - used, "%s ", i->if_name);
    return all ? 0 : -1;
}

// The kernel's own surface ----------------------------------------------------------------------------------------

static int try_call(char **a) {
    long arg[6] = {0};
    for (int i = 0; i < 6 && a[i + 1]; i++) arg[i] = strtol(a[i + 1], NULL, 0);
    return syscall(strtol(a[0], NULL, 0), arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]) < 0 ? -1 : 0;
}
#ifdef __x86_64__
static int try_int80(char **a) {
    (void)a;
    int result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
    if (result > 0) return 0;
    errno = -result;
    return -1;
}
#else
static int try_int80(char **a) { (void)a; errno = ENOSYS; return -1; }
#endif
static int try_iouring(char **a) {
    (void)a;
    char params[120] = {0};
    return syscall(SYS_io_uring_setup, 4, params) < 0 ? -1 : 0;
}
static int try_perf(char **a) {
    (void)a;
    uint32_t attr[28] = {1, sizeof attr};
    return syscall(SYS_perf_event_open, attr, 0, -1, -1, 0) < 0 ? -1 : 0;
}
static int try_bpf(char **a) {
    (void)a;
    uint32_t attr[18] = {2, 4, 4, 1};
    return syscall(SYS_bpf, 0, attr, sizeof attr) < 0 ? -1 : 0;
}
static int try_key(char **a) {
    long id = syscall(SYS_request_key, "user", a[0], NULL, 0);
    if (id < 0) return -1;
    long n = syscall(SYS_keyctl, KEYCTL_READ, id, seen, 60);
    return n < 0 ? -1 : 0;
}
static int try_addkey(char **a) {
    return syscall(SYS_add_key, "user", a[0], "x", 1, KEY_SPEC_USER_KEYRING) < 0 ? -1 : 0;
}
static int try_sti(char **a) {
    int fd = open(a[0], O_RDWR | O_NOCTTY);
    if (fd < 0) fd = 0;
    return ioctl(fd, TIOCSTI, "x");
}
static int try_stihigh(char **a) {
    (void)a;
    return syscall(SYS_ioctl, 0, 0x100000000UL | TIOCSTI, "x") < 0 ? -1 : 0;
}
static int try_tioclinux(char **a) { (void)a; char two = 2; return ioctl(0, TIOCLINUX, &two); }
static int try_ownpersonality(char **a) { (void)a; return personality(ADDR_NO_RANDOMIZE) < 0 ? -1 : 0; }
static int try_hostname(char **a) { return sethostname(a[0], strlen(a[0])); }
static int try_clockset(char **a) {
    (void)a;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return clock_settime(CLOCK_REALTIME, &now);
}
static int try_dumpable(char **a) { (void)a; return prctl(PR_SET_DUMPABLE, 1); }

// Environment and limits ------------------------------------------------------------------------------------------

static int try_env(char **a) {
    char *value = getenv(a[0]);
    if (!value) { errno = ENOENT; return -1; }
    snprintf(seen, sizeof seen, "%s", value);
    return 0;
}
static int try_environ(char **a) {
    (void)a;
    size_t used = 0;
    for (char **e = environ; *e; e++) {
        size_t name = strcspn(*e, "=");
        used += snprintf(seen + used, sizeof seen - used, "%.*s ", (int)name, *e);
        if (used >= sizeof seen) break;
    }
    return 0;
}
static int try_descriptors(char **a) {
    (void)a;
    size_t used = 0;
    for (int fd = 3; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0) used += snprintf(seen + used, sizeof seen - used, "%d ", fd);
    return 0;
}
static int try_cwd(char **a) { (void)a; return getcwd(seen, sizeof seen) ? 0 : -1; }
static int try_forks(char **a) {
    int wanted = atoi(a[0]), made = 0;
    for (; made < wanted; made++) {
        pid_t pid = fork();
        if (pid < 0) break;
        if (pid == 0) { pause(); _exit(0); }
    }
    snprintf(seen, sizeof seen, "%d", made);
    int saved = errno;
    errno = saved;
    return made == wanted ? 0 : -1;
}
static int try_memory(char **a) {
    size_t size = strtoull(a[0], NULL, 10) << 20;
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return -1;
    for (size_t i = 0; i < size; i += 4096) p[i] = 1;
    return 0;
}
static int try_grow(char **a) {
    signal(SIGXFSZ, SIG_IGN);
    int fd = open(a[0], O_WRONLY | O_CREAT, 0644);
    if (fd < 0) return -1;
    return pwrite(fd, "x", 1, strtoll(a[1], NULL, 10)) < 0 ? -1 : 0;
}
static int try_sleep(char **a) { sleep(atoi(a[0])); return 0; }
static int try_nothing(char **a) { (void)a; return 0; }

static const struct attempt { const char *name; int (*run)(char **); int args; } attempts[] = {
    {"read", try_read, 1}, {"write", try_write, 1}, {"append", try_append, 1}, {"create", try_create, 1},
    {"list", try_list, 1}, {"stat", try_stat, 1}, {"unlink", try_unlink, 1}, {"mkdir", try_mkdir, 1},
    {"rename", try_rename, 2}, {"link", try_link, 2}, {"symlink", try_symlink, 2}, {"truncate", try_truncate, 1},
    {"resize", try_resize, 1},
    {"utimes", try_utimes, 1}, {"xattr", try_xattr, 1}, {"chown", try_chown, 1}, {"chmod", try_chmod, 2},
    {"fchmodat2", try_fchmodat2, 2}, {"openmode", try_openmode, 2}, {"mknodmode", try_mknodmode, 2},
    {"openat2mode", try_openat2mode, 2}, {"device", try_device, 1}, {"handle", try_handle, 1},
    {"cdup", try_cdup, 2}, {"chroot", try_chroot, 1}, {"fd", try_fd, 1}, {"bind", try_bind, 2},
    {"remount", try_remount, 1}, {"umount", try_umount, 1}, {"tmpfs", try_tmpfs, 1}, {"proc", try_proc, 1},
    {"opentree", try_opentree, 1}, {"fsopen", try_fsopen, 0}, {"setattr", try_setattr, 1},
    {"pivot", try_pivot, 1}, {"unshare", try_unshare, 1}, {"clone", try_clone, 1}, {"clone3", try_clone3, 1},
    {"setns", try_setns, 1}, {"kill", try_kill, 2}, {"ptrace", try_ptrace, 1}, {"peek", try_peek, 2},
    {"getfd", try_getfd, 1}, {"prlimit", try_prlimit, 1}, {"nice", try_nice, 1}, {"pids", try_pids, 0},
    {"shm", try_shm, 1}, {"makeshm", try_makeshm, 1}, {"dropshm", try_dropshm, 1}, {"ppid", try_ppid, 0}, {"caps", try_caps, 0}, {"daemon", try_daemon, 1},
    {"exec", try_exec, 1}, {"memfd", try_memfd, 1}, {"copyexec", try_copyexec, 2}, {"mapexec", try_mapexec, 1},
    {"protectexec", try_protectexec, 1}, {"script", try_script, 1}, {"tcp", try_tcp, 2}, {"tcp6", try_tcp6, 2},
    {"mptcp", try_mptcp, 2}, {"fastopen", try_fastopen, 2}, {"udp", try_udp, 2}, {"socket", try_socket, 3},
    {"pair", try_pair, 1}, {"unix", try_unix, 1}, {"pairsend", try_pairsend, 1},
    {"interfaces", try_interfaces, 0}, {"call", try_call, 1}, {"int80", try_int80, 0},
    {"iouring", try_iouring, 0}, {"perf", try_perf, 0}, {"bpf", try_bpf, 0}, {"key", try_key, 1},
    {"addkey", try_addkey, 1}, {"sti", try_sti, 1}, {"stihigh", try_stihigh, 0},
    {"tioclinux", try_tioclinux, 0}, {"personality", try_ownpersonality, 0}, {"hostname", try_hostname, 1},
    {"clockset", try_clockset, 0}, {"dumpable", try_dumpable, 0}, {"env", try_env, 1},
    {"environ", try_environ, 0}, {"descriptors", try_descriptors, 0}, {"cwd", try_cwd, 0},
    {"forks", try_forks, 1}, {"memory", try_memory, 1}, {"grow", try_grow, 2}, {"sleep", try_sleep, 1},
    {"nothing", try_nothing, 0},
};

static void answer(int out, int result, int error) {
    char line[sizeof seen + 100];
    for (char *c = seen; *c; c++) if ((unsigned char)*c < ' ') *c = ' ';
    int n = result == 0    ? snprintf(line, sizeof line, "ok %s", seen)
            : result == -2 ? snprintf(line, sizeof line, "fault %s", seen)
                           : snprintf(line, sizeof line, "no %s %s", strerrorname_np(error), seen);
    if (write(out, line, n) != n) _exit(9);
}

// Runs one attempt in a process of its own, so that it may die, and prints one line.
static void attempt(int argc, char **argv) {
    const struct attempt *found = NULL;
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
        if (!strcmp(attempts[i].name, argv[0]) && argc - 1 >= attempts[i].args) found = &attempts[i];
    for (int i = 0; i < argc; i++) printf("%s%s", i ? " " : "", argv[i]);
    printf("\t");
    fflush(stdout);
    int pipes[2], status;
    if (!found || pipe(pipes)) { printf("fault unknown attempt\n"); return; }
    pid_t pid = fork();
    if (pid < 0) { printf("fault no process\n"); return; }
    if (pid == 0) {
        close(pipes[0]);
        setpgid(0, 0);
        errno = 0;
        int result = found->run(argv + 1);
        answer(pipes[1], result, errno);
        _exit(0);
    }
    close(pipes[1]);
    char line[sizeof seen + 200] = "";
    struct pollfd p = {pipes[0], POLLIN, 0};
    ssize_t n = poll(&p, 1, 8000) > 0 ? read(pipes[0], line, sizeof line - 1) : -1;
    if (n < 0) kill(-pid, SIGKILL);
    waitpid(pid, &status, 0);
    kill(-pid, SIGKILL);
    close(pipes[0]);
    if (n > 0) printf("%.*s\n", (int)n, line);
    else if (n < 0) printf("no TIMEOUT\n");
    else printf("no SIGNAL-%d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    signal(SIGTTOU, SIG_IGN);
    for (int at = 1; at < argc;) {
        int end = at;
        while (end < argc && strcmp(argv[end], "--")) end++;
        char *stop = argv[end];
        argv[end] = NULL;
        attempt(end - at, argv + at);
        argv[end] = stop;
        at = end + 1;
    }
    return 0;
}
