// What a sandbox gains by `?nestedSandbox=true` (namespaces of its own) and by `?fromWritable=true` (starting what it
// wrote): each attempt goes beyond that grant.
//
//   nested DIR SCENE PORT
//
// DIR/r is granted for reading, DIR/w for writing, DIR/out not at all. Each attempt is a process of its own; it prints
// its name and `ok` if it got what it wanted, else `no` and why.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *dir, *self;
static int port;

static char *at(const char *name) {
    static char paths[8][400];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, 400, "%s/%s", dir, name);
    return path;
}
static int put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    int done = write(fd, text, strlen(text)) < 0 ? -1 : 0, error = errno;
    close(fd);
    errno = error;
    return done;
}
static int can_open(const char *path, int flags) { return open(path, flags | O_CLOEXEC) < 0 ? -1 : 0; }
// Namespaces of one's own, with every capability in them.
static int enter(int more) { return unshare(CLONE_NEWUSER | more); }
static int inside(void) { return enter(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP); }
static int status_of(pid_t pid) {
    int status;
    waitpid(pid, &status, 0);
    errno = EACCES;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}
static int run(char *const argv[]) {
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        dup2(null, 2);
        execv(argv[0], argv);
        _exit(100);
    }
    return status_of(pid);
}
static int start(const char *path) { char *argv[] = {(char *)path, "--nothing", NULL}; return run(argv); }
static int copy(const char *from, const char *to, int mode) {
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    static char bytes[1 << 16];
    if (in < 0 || out < 0) return -1;
    for (ssize_t n; (n = read(in, bytes, sizeof bytes)) > 0;) if (write(out, bytes, n) != n) return -1;
    close(in);
    close(out);
    return mode ? chmod(to, mode) : 0;
}

// Namespaces ------------------------------------------------------------------------------------------------------

static int control_namespaces(void) { return inside(); }
static int control_read(void) { return inside() ? -1 : can_open(at("r/file"), O_RDONLY); }
static int read_outside(void) { return inside() ? -1 : can_open(at("out/secret"), O_RDONLY); }
static int write_read_only(void) { return inside() ? -1 : can_open(at("r/file"), O_WRONLY); }
static int remount(void) { return inside() ? -1 : mount(NULL, at("r"), NULL, MS_REMOUNT | MS_BIND, NULL); }
static int set_attributes(void) {
    uint64_t attributes[4] = {0, 1, 0, 0};
    return inside() ? -1 : syscall(SYS_mount_setattr, AT_FDCWD, at("r"), 0, attributes, sizeof attributes);
}
static int set_program(void) {
    uint64_t attributes[4] = {0, 8, 0, 0};
    return inside() ? -1 : syscall(SYS_mount_setattr, AT_FDCWD, at("w"), 0, attributes, sizeof attributes);
}
static int bind_mount(void) { return inside() ? -1 : mount(at("r"), at("w"), NULL, MS_BIND | MS_REC, NULL); }
static int move_mount_away(void) { return inside() ? -1 : mount(at("r"), at("w"), NULL, MS_MOVE, NULL); }
static int uncover_proc(void) { return inside() ? -1 : umount2("/proc/sys", MNT_DETACH); }
static int uncover_tmp(void) { return inside() ? -1 : umount2("/tmp", MNT_DETACH); }
static int uncover_hooks(void) { return inside() ? -1 : umount2(at("w/.git/hooks"), MNT_DETACH); }
static int unmount_root(void) { return inside() ? -1 : umount2("/", MNT_DETACH); }
static int open_tree_copy(void) {
    int tree = inside() ? -1 : (int)syscall(SYS_open_tree, AT_FDCWD, at("w"), 1 | 0x8000);
    return tree < 0 ? -1 : syscall(SYS_move_mount, tree, "", AT_FDCWD, at("r"), 4);
}
static int new_mount(const char *kind) {
    int context = inside() ? -1 : (int)syscall(SYS_fsopen, kind, 0);
    if (context < 0) return -1;
    syscall(SYS_fsconfig, context, 6, NULL, NULL, 0);
    int made = syscall(SYS_fsmount, context, 0, 0);
    return made < 0 ? -1 : syscall(SYS_move_mount, made, "", AT_FDCWD, at("w"), 4);
}
static int new_tmpfs(void) { return new_mount("tmpfs"); }
static int old_mount(const char *kind, const char *data) {
    if (enter(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWCGROUP)) return -1;
    pid_t pid = fork();
    if (pid == 0) _exit(mount("none", at("w"), kind, 0, data) ? errno : 0);
    int status;
    waitpid(pid, &status, 0);
    errno = WEXITSTATUS(status);
    return errno ? -1 : 0;
}
static int mount_proc(void) { return old_mount("proc", NULL); }
static int mount_sysfs(void) { return old_mount("sysfs", NULL); }
static int mount_devpts(void) { return old_mount("devpts", NULL); }
static int mount_mqueue(void) { return old_mount("mqueue", NULL); }
static int mount_cgroup(void) { return old_mount("cgroup2", NULL); }
static int mount_binfmt(void) { return old_mount("binfmt_misc", NULL); }
static int mount_bpf(void) { return old_mount("bpf", NULL); }
static int mount_fuse(void) { return old_mount("fuse", "fd=3,rootmode=40000,user_id=0,group_id=0"); }
static int mount_overlay(void) {
    char data[900];
    mkdir(at("w/up"), 0700);
    mkdir(at("w/work"), 0700);
    snprintf(data, sizeof data, "lowerdir=%s,upperdir=%s,workdir=%s", at("r"), at("w/up"), at("w/work"));
    return old_mount("overlay", data);
}
static int pivot(void) { return inside() || chdir(at("w")) ? -1 : syscall(SYS_pivot_root, ".", "."); }
static int chroot_out(void) {
    int root = open("/", O_RDONLY);
    if (inside() || chroot(at("w")) || fchdir(root)) return -1;
    for (int i = 0; i < 40; i++) if (chdir("..")) return -1;
    return can_open("home", O_RDONLY) ? -1 : can_open(at("out/secret") + 1, O_RDONLY);
}
static int join_first(void) {
    int fd = open("/proc/1/ns/mnt", O_RDONLY);
    return inside() || fd < 0 ? -1 : setns(fd, 0);
}
static int join_parents_user(void) {
    int fd = open("/proc/self/ns/user", O_RDONLY);
    return inside() || fd < 0 ? -1 : setns(fd, 0);
}
static int map_many(void) { return inside() ? -1 : put("/proc/self/uid_map", "0 0 65536"); }
static int map_root(void) {
    if (getuid() == 0) { errno = EINVAL; return -1; }
    return inside() ? -1 : put("/proc/self/uid_map", "0 0 1");
}
static int become_other(void) { return inside() ? -1 : setresuid(1234, 1234, 1234); }
static int other_groups(void) { gid_t group = 42; return inside() ? -1 : syscall(SYS_setgroups, 1, &group); }
static int give_away(void) { return inside() ? -1 : chown(at("w/mine"), 1234, 1234); }
static int set_user_bit(void) { return inside() ? -1 : chmod(at("w/mine"), 04755); }
static int file_capability(void) {
    uint32_t data[5] = {0x02000001, 0xffffffff, 0, 0xffffffff, 0};
    return inside() ? -1 : setxattr(at("w/mine"), "security.capability", data, sizeof data, 0);
}
static int make_device(void) { return inside() ? -1 : mknod(at("w/null"), S_IFCHR | 0666, makedev(1, 3)); }
static int kernel_setting(void) { return inside() ? -1 : can_open("/proc/sys/kernel/core_pattern", O_WRONLY); }
static int module_loader(void) { return inside() ? -1 : can_open("/proc/sys/kernel/modprobe", O_WRONLY); }
static int interrupts(void) { return inside() ? -1 : can_open("/proc/irq/default_smp_affinity", O_WRONLY); }
static int system_request(void) { return inside() ? -1 : can_open("/proc/sysrq-trigger", O_WRONLY); }
static int first_memory(void) { return inside() ? -1 : can_open("/proc/1/mem", O_RDWR); }
static int first_descriptors(void) { return inside() ? -1 : opendir("/proc/1/fd") ? 0 : -1; }
static int trace_first(void) { return inside() ? -1 : ptrace(PTRACE_SEIZE, 1, 0, 0) < 0 ? -1 : 0; }
static int tell_badness(void) { return inside() ? -1 : put("/proc/1/oom_score_adj", "-1000"); }
static int own_badness(void) { return inside() ? -1 : put("/proc/self/oom_score_adj", "-1000"); }
static int kernel_log(void) { return inside() ? -1 : syscall(SYS_syslog, 3, at("x"), 10); }
static int bpf_program(void) { uint32_t a[18] = {2, 4, 4, 1}; return inside() ? -1 : syscall(SYS_bpf, 0, a, sizeof a); }
static int perf(void) { uint32_t a[28] = {1, sizeof a}; return inside() ? -1 : syscall(SYS_perf_event_open, a, 0, -1, -1, 0); }
static int faults(void) { return inside() ? -1 : syscall(SYS_userfaultfd, 0); }
static int rings(void) { char p[120] = {0}; return inside() ? -1 : syscall(SYS_io_uring_setup, 4, p); }
static int by_handle(void) {
    struct { struct file_handle h; char space[128]; } h = {.h = {.handle_bytes = 128}};
    int id, directory = open(at("w"), O_RDONLY);
    if (inside() || name_to_handle_at(AT_FDCWD, at("w"), &h.h, &id, 0)) return -1;
    return open_by_handle_at(directory, &h.h, O_RDONLY) < 0 ? -1 : 0;
}
static int watch_all(void) { return inside() ? -1 : syscall(SYS_fanotify_init, 0, O_RDONLY); }
static int keys_of_caller(void) { return inside() ? -1 : syscall(SYS_keyctl, KEYCTL_DESCRIBE, KEY_SPEC_USER_KEYRING, 0, 0); }
static int set_clock(void) { struct timeval now; gettimeofday(&now, NULL); return inside() ? -1 : settimeofday(&now, NULL); }
static int raise_limit(void) {
    struct rlimit now;
    getrlimit(RLIMIT_CORE, &now);
    struct rlimit low = {0, 0}, high = {RLIM_INFINITY, RLIM_INFINITY};
    return inside() || setrlimit(RLIMIT_CORE, &low) ? -1 : setrlimit(RLIMIT_CORE, &high);
}
static int hostname_of_host(void) { return enter(0) ? -1 : sethostname("escaped", 7); }
static int raw_socket(void) { return inside() ? -1 : socket(AF_INET, SOCK_RAW, 1) < 0 ? -1 : 0; }
static int packet_socket(void) { return inside() ? -1 : socket(AF_PACKET, SOCK_RAW, 768) < 0 ? -1 : 0; }
static int filter_socket(void) { return inside() ? -1 : socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER) < 0 ? -1 : 0; }
static int unix_socket(void) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%.100s", at("r/socket"));
    int fd = inside() ? -1 : socket(AF_UNIX, SOCK_STREAM, 0);
    return fd < 0 ? -1 : connect(fd, (void *)&to, sizeof to);
}
static int tcp(int more) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (enter(more)) return -1;
    return connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&to, sizeof to);
}
static int host_network(void) { return tcp(0); }
static int another_network(void) { return tcp(CLONE_NEWNET); }
static int clone3_namespaces(void) {
    uint64_t args[11] = {CLONE_NEWUSER | CLONE_NEWNS, 0, 0, 0, SIGCHLD};
    long pid = syscall(SYS_clone3, args, 64);
    if (pid == 0) _exit(mount(NULL, at("r"), NULL, MS_REMOUNT | MS_BIND, NULL) ? 1 : 0);
    return pid < 0 ? -1 : status_of(pid);
}
static int deeper(void) {
    for (int i = 0; i < 5; i++) if (enter(CLONE_NEWNS)) return -1;
    return mount(NULL, at("r"), NULL, MS_REMOUNT | MS_BIND, NULL);
}
static int lift_rules(void) {
    struct { uint64_t fs, net, scoped; } all = {0x7fff, 0, 0};
    int rules = inside() ? -1 : (int)syscall(444, &all, 8, 0);
    if (rules < 0 || syscall(446, rules, 0)) return -1;
    return can_open(at("out/secret"), O_RDONLY);
}
static int regain(void) {
    prctl(PR_SET_SECUREBITS, 0, 0, 0, 0);
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};
    return syscall(SYS_capset, &header, data);
}
static int new_privileges(void) {
    if (inside() || prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0)) return -1;
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? 0 : -1;
}
static int program_from_new_mount(void) {
    if (inside() || mount("t", at("w"), "tmpfs", 0, NULL) || copy(self, at("w/p"), 0)) return -1;
    return start(at("w/p"));
}
static int written_program(void) { return inside() || copy(self, at("w/p2"), 0) ? -1 : start(at("w/p2")); }
static int version(const char *path) { char *argv[] = {(char *)path, "--version", NULL}; return run(argv); }
static int other_program(void) { return inside() ? -1 : version("/usr/bin/id"); }

// The same with a map of one's own, as browsers make it. Root gets none: the kernel refuses it without CAP_SETFCAP.
static int map_as(int inner, int more) {
    char line[64];
    uid_t user = getuid();
    gid_t group = getgid();
    if (enter(more)) return -1;
    put("/proc/self/setgroups", "deny"); // already so in a sandbox
    snprintf(line, sizeof line, "%d %d 1", inner < 0 ? (int)user : inner, user);
    if (put("/proc/self/uid_map", line)) return -1;
    snprintf(line, sizeof line, "%d %d 1", inner < 0 ? (int)group : inner, group);
    return put("/proc/self/gid_map", line);
}
static int mapped(void) { return map_as(0, CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP); }
static int control_map(void) {
    int root = getuid() == 0, done = map_as(-1, CLONE_NEWPID | CLONE_NEWNET);
    return root ? (done < 0 ? 0 : -1) : done;
}
static int control_mapped_read(void) { return getuid() == 0 ? 0 : mapped() ? -1 : can_open(at("r/file"), O_RDONLY); }
static int mapped_read_outside(void) { return mapped() ? -1 : can_open(at("out/secret"), O_RDONLY); }
static int mapped_write_read_only(void) { return mapped() ? -1 : can_open(at("r/file"), O_WRONLY); }
static int mapped_remount(void) { return mapped() ? -1 : mount(NULL, at("r"), NULL, MS_REMOUNT | MS_BIND, NULL); }
static int mapped_uncover(void) { return mapped() ? -1 : umount2("/proc/sys", MNT_DETACH); }
static int mapped_tmpfs(void) { return mapped() ? -1 : mount("t", at("w"), "tmpfs", 0, NULL); }
static int mapped_kernel_setting(void) { return mapped() ? -1 : can_open("/proc/sys/kernel/core_pattern", O_WRONLY); }
static int mapped_hostname(void) { return mapped() ? -1 : put("/proc/sys/kernel/hostname", "escaped"); }
static int mapped_limit(void) { return mapped() ? -1 : put("/proc/sys/user/max_user_namespaces", "100000"); }
static int mapped_forwarding(void) { return mapped() ? -1 : put("/proc/sys/net/ipv4/ip_forward", "1"); }
static int mapped_interrupts(void) { return mapped() ? -1 : can_open("/proc/irq/default_smp_affinity", O_WRONLY); }
static int mapped_system_request(void) { return mapped() ? -1 : can_open("/proc/sysrq-trigger", O_WRONLY); }
static int mapped_first_memory(void) { return mapped() ? -1 : can_open("/proc/1/mem", O_RDWR); }
static int mapped_first_map(void) { return mapped() ? -1 : put("/proc/1/uid_map", "0 0 1"); }
static int mapped_badness(void) { return mapped() ? -1 : put("/proc/self/oom_score_adj", "-1000"); }
static int mapped_give_away(void) { return mapped() ? -1 : chown(at("w/mine"), 1234, 1234); }
static int mapped_set_user(void) { return mapped() ? -1 : chmod(at("w/mine"), 04755); }
static int mapped_device(void) { return mapped() ? -1 : mknod(at("w/null"), S_IFCHR | 0666, makedev(1, 3)); }
static int mapped_hook(void) { return mapped() ? -1 : copy(self, at("w/.git/hooks/pre-push"), 0755); }
static int mapped_other_program(void) { return mapped() ? -1 : version("/usr/bin/id"); }
static int mapped_other_network(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return map_as(0, 0) ? -1 : connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&to, sizeof to);
}
static int unmapped_setting(void) { return put("/proc/sys/kernel/core_pattern", "|/escape"); }
static int unmapped_hostname(void) { return put("/proc/sys/kernel/hostname", "escaped"); }

// Starting what was written ---------------------------------------------------------------------------------------

static int control_written(void) { return copy(self, at("w/p3"), 0) ? -1 : start(at("w/p3")); }
static int control_tmp(void) { return copy(self, "/tmp/p3", 0) ? -1 : start("/tmp/p3"); }
static int read_only_program(void) { return start(at("r/program")); }
static int read_only_root(void) { char p[500]; snprintf(p, sizeof p, "/proc/self/root%s", at("r/program")); return start(p); }
static int read_only_link(void) { unlink(at("w/l")); return symlink(at("r/program"), at("w/l")) ? -1 : start(at("w/l")); }
static int read_only_hard_link(void) { return link(at("r/program"), at("w/h")) ? -1 : start(at("w/h")); }
static int read_only_moved(void) { return rename(at("r/program"), at("w/moved")) ? -1 : start(at("w/moved")); }
static int read_only_descriptor(void) {
    int fd = open(at("r/program"), O_RDONLY);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return fd < 0 ? -1 : start(path);
}
static int read_only_by_fexecve(void) {
    int fd = open(at("r/program"), O_PATH);
    pid_t pid = fork();
    char *argv[] = {"p", "--nothing", NULL};
    if (pid == 0) { syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH); _exit(100); }
    return status_of(pid);
}
static int read_only_chmod(void) { return chmod(at("r/file"), 0755); }
static int read_only_mapped(void) {
    int fd = open(at("r/program"), O_RDONLY);
    return fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0;
}
static int read_only_mapped_later(void) {
    int fd = open(at("r/program"), O_RDONLY);
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    return fd < 0 || page == MAP_FAILED ? -1 : mprotect(page, 4096, PROT_READ | PROT_EXEC);
}
static int by_loader(const char *program) {
    char *argv[] = {"/lib64/ld-linux-x86-64.so.2", (char *)program, "--version", NULL};
    return run(argv);
}
static int loader_read_only(void) { return by_loader(at("r/dynamic")); }
static int loader_other(void) { return by_loader("/usr/bin/id"); }
static int loader_helper(void) { return by_loader("/usr/lib/git-core/git"); }
static int absent_program(void) { return version("/usr/bin/id"); }
static int absent_shell(void) { return version("/bin/bash"); }
static int script(const char *path, const char *first) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    if (fd < 0 || write(fd, first, strlen(first)) < 0) return -1;
    close(fd);
    return start(path);
}
static int script_of_absent(void) { return script(at("w/s1"), "#!/bin/true\n"); }
static int script_of_read_only(void) { char line[500]; snprintf(line, sizeof line, "#!%s\n", at("r/program")); return script(at("w/s2"), line); }
static int script_of_loader(void) { return script(at("w/s3"), "#!/lib64/ld-linux-x86-64.so.2 /bin/true\n"); }
static int in_memory(void) {
    int fd = memfd_create("p", 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return fd < 0 || copy(self, path, 0) ? -1 : start(path);
}
static int set_user_program(void) { return copy(self, at("w/p4"), 04755); }
static int set_group_program(void) { return copy(self, at("w/p5"), 02755); }
static int set_user_when_made(void) {
    int fd = open(at("w/p6"), O_WRONLY | O_CREAT | O_TRUNC, 04755);
    struct stat about;
    errno = EPERM;
    return fd < 0 || fstat(fd, &about) || !(about.st_mode & 06000) ? -1 : 0;
}
static int set_user_of_host(void) {
    // A file of the host that is setuid runs without it.
    char *argv[] = {at("w/setuid"), "--effective", NULL};
    return run(argv);
}
static int hook_written(void) { return copy(self, at("w/.git/hooks/pre-commit"), 0755); }
static int library_written(void) { return copy(self, "/usr/lib/libescape.so", 0755); }
static int program_of_outside(void) { return start(at("out/program")); }
static int namespaces(void) { return unshare(CLONE_NEWUSER); }
static int by_current_directory(void) { return chdir(at("r")) ? -1 : start("./program"); }
static int by_directory_descriptor(void) {
    int fd = open(at("r"), O_PATH | O_DIRECTORY);
    pid_t pid = fork();
    char *argv[] = {"p", "--nothing", NULL};
    if (pid == 0) { syscall(SYS_execveat, fd, "program", argv, environ, 0); _exit(100); }
    return status_of(pid);
}
static int first_program(void) { return start("/proc/1/exe"); }
static int script_of_script(void) {
    char line[500];
    if (script(at("w/s4"), "#!/bin/true\n") == 0) return 0;
    snprintf(line, sizeof line, "#!%s\n", at("w/s4"));
    return script(at("w/s5"), line);
}
static int script_of_link(void) {
    unlink(at("w/i"));
    char line[500];
    snprintf(line, sizeof line, "#!%s\n", at("w/i"));
    return symlink(at("r/program"), at("w/i")) ? -1 : script(at("w/s6"), line);
}
// A program of one's own whose loader is another program: a copy in which that name is exchanged for a link's.
static int loaded_by(const char *program, const char *link, const char *to) {
    static char bytes[1 << 20];
    const char loader[] = "/lib64/ld-linux-x86-64.so.2";
    int in = open(at("r/dynamic"), O_RDONLY);
    ssize_t size = in < 0 ? -1 : read(in, bytes, sizeof bytes);
    char *place = size < 0 ? NULL : memmem(bytes, size, loader, sizeof loader);
    if (!place) return -1;
    strcpy(place, link);
    unlink(link);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    if (symlink(program, link) || out < 0 || write(out, bytes, size) != size) return -1;
    close(out);
    int done = version(to);
    unlink(link);
    return done;
}
static int loaded_by_read_only(void) { return loaded_by(at("r/loader"), "/tmp/bailiwick-i1", at("w/p7")); }
static int loaded_by_absent(void) { return loaded_by(at("out/loader"), "/tmp/bailiwick-i2", at("w/p8")); }
static int mapped_by_key(void) {
    int fd = open(at("r/program"), O_RDONLY);
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    return fd < 0 || page == MAP_FAILED ? -1 : syscall(SYS_pkey_mprotect, page, 4096, PROT_READ | PROT_EXEC, -1);
}
static int mapped_shared(void) {
    int fd = open(at("r/program"), O_RDONLY);
    return fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0;
}
static int implied_execution(void) { return syscall(SYS_personality, 0x0400000) < 0 ? -1 : 0; }
static int copied_absent(void) { return copy("/usr/bin/id", at("w/p9"), 0) ? -1 : version(at("w/p9")); }
// What can be read can be written elsewhere and started there: that is the grant.
static int control_copied(void) { return copy(at("r/program"), at("w/p10"), 0) ? -1 : start(at("w/p10")); }
static int overwritten_program(void) { return copy(self, "/usr/bin/env", 0) ? -1 : start("/usr/bin/env"); }
static int moved_over_program(void) { return copy(self, at("w/p11"), 0) ? -1 : rename(at("w/p11"), at("r/program")); }
static int mounted_over(void) { return mount(at("w"), at("r"), NULL, MS_BIND, NULL); }
// What a written program does, beyond being started.
static int connected(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&to, sizeof to);
}
static int to_socket(void) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s/r/socket", dir);
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&to, sizeof to);
}
static int secret_read(void) { return can_open(at("out/secret"), O_RDONLY); }
static int granted_changed(void) { return can_open(at("r/file"), O_WRONLY); }
static int first_traced(void) { return ptrace(PTRACE_ATTACH, 1, NULL, NULL) < 0 ? -1 : 0; }
static int first_read(void) { return can_open("/proc/1/environ", O_RDONLY); }
static const struct { const char *name; int (*run)(void); } deeds[] = {
    {"connected", connected}, {"to_socket", to_socket}, {"secret_read", secret_read},
    {"granted_changed", granted_changed}, {"first_traced", first_traced}, {"first_read", first_read},
};
static int by_written(const char *deed) {
    char name[64], number[16];
    snprintf(name, sizeof name, "w/by-%s", deed);
    snprintf(number, sizeof number, "%d", port);
    char *argv[] = {at(name), "--deed", (char *)deed, (char *)dir, number, NULL};
    return copy(self, argv[0], 0) ? -1 : run(argv);
}
static int written_connects(void) { return by_written("connected"); }
static int written_to_socket(void) { return by_written("to_socket"); }
static int written_reads_outside(void) { return by_written("secret_read"); }
static int written_changes_granted(void) { return by_written("granted_changed"); }
static int written_traces_first(void) { return by_written("first_traced"); }
static int written_reads_first(void) { return by_written("first_read"); }

static const struct { const char *scene, *name; int (*run)(void); } attempts[] = {
#define N(name) {"nested", #name, name}
#define W(name) {"written", #name, name}
    N(control_namespaces), N(control_read), N(read_outside), N(write_read_only), N(remount), N(set_attributes),
    N(set_program), N(bind_mount), N(move_mount_away), N(uncover_proc), N(uncover_tmp), N(uncover_hooks),
    N(unmount_root), N(open_tree_copy), N(new_tmpfs), N(mount_proc), N(mount_sysfs), N(mount_devpts), N(mount_mqueue),
    N(mount_cgroup), N(mount_binfmt), N(mount_bpf), N(mount_fuse), N(mount_overlay), N(pivot), N(chroot_out),
    N(join_first), N(join_parents_user), N(map_many), N(map_root), N(become_other), N(other_groups), N(give_away),
    N(set_user_bit), N(file_capability), N(make_device), N(kernel_setting), N(module_loader), N(interrupts),
    N(system_request), N(first_memory), N(first_descriptors), N(trace_first), N(tell_badness), N(own_badness),
    N(kernel_log), N(bpf_program), N(perf), N(faults), N(rings), N(by_handle), N(watch_all), N(keys_of_caller),
    N(set_clock), N(raise_limit), N(hostname_of_host), N(raw_socket), N(packet_socket), N(filter_socket),
    N(unix_socket), N(host_network), N(another_network), N(clone3_namespaces), N(deeper), N(lift_rules), N(regain),
    N(new_privileges), N(program_from_new_mount), N(written_program), N(other_program),
    N(control_map), N(control_mapped_read), N(mapped_read_outside), N(mapped_write_read_only), N(mapped_remount),
    N(mapped_uncover), N(mapped_tmpfs), N(mapped_kernel_setting), N(mapped_hostname), N(mapped_limit),
    N(mapped_forwarding), N(mapped_interrupts), N(mapped_system_request), N(mapped_first_memory), N(mapped_first_map),
    N(mapped_badness), N(mapped_give_away), N(mapped_set_user), N(mapped_device), N(mapped_hook),
    N(mapped_other_program), N(mapped_other_network), N(unmapped_setting), N(unmapped_hostname),
    W(control_written), W(control_tmp), W(read_only_program), W(read_only_root), W(read_only_link),
    W(read_only_hard_link), W(read_only_descriptor), W(read_only_by_fexecve), W(read_only_chmod),
    W(read_only_mapped), W(read_only_mapped_later), W(loader_read_only), W(loader_other), W(loader_helper),
    W(absent_program), W(absent_shell), W(script_of_absent), W(script_of_read_only), W(script_of_loader),
    W(in_memory), W(set_user_program), W(set_group_program), W(set_user_when_made), W(set_user_of_host),
    W(hook_written), W(library_written), W(program_of_outside), W(namespaces), W(regain),
    W(control_copied), W(by_current_directory), W(by_directory_descriptor), W(first_program), W(script_of_script),
    W(script_of_link), W(loaded_by_read_only), W(loaded_by_absent), W(mapped_by_key), W(mapped_shared),
    W(implied_execution), W(copied_absent), W(overwritten_program), W(mounted_over), W(written_connects),
    W(written_to_socket), W(written_reads_outside), W(written_changes_granted),
    W(written_traces_first), W(written_reads_first), W(read_only_moved), W(moved_over_program),
};

static void attempt(const char *name, int (*attempt)(void)) {
    int out[2];
    if (pipe(out)) return;
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        int done = attempt(), error = errno;
        if (done < 0) dprintf(out[1], "no %s", strerrorname_np(error));
        else dprintf(out[1], "ok");
        _exit(0);
    }
    close(out[1]);
    char line[100] = "";
    struct pollfd p = {out[0], POLLIN, 0};
    ssize_t n = poll(&p, 1, 10000) > 0 ? read(out[0], line, sizeof line - 1) : -1;
    kill(-pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(out[0]);
    printf("%s\t%s\n", name, n < 0 ? "no TIMEOUT" : n == 0 ? "no ENDED" : line);
    fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--nothing")) return 0;
    if (argc == 2 && !strcmp(argv[1], "--effective")) return geteuid() == getuid();
    if (argc == 5 && !strcmp(argv[1], "--deed")) {
        dir = argv[3];
        port = atoi(argv[4]);
        for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
            if (!strcmp(deeds[i].name, argv[2])) return deeds[i].run() < 0;
        return 1;
    }
    if (argc < 4) return 0;
    dir = argv[1];
    self = argv[0];
    port = atoi(argv[3]);
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
        if (!strcmp(attempts[i].scene, argv[2])) attempt(attempts[i].name, attempts[i].run);
    return 0;
}
