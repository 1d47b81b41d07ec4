/* Reports what can be done from where it runs: one `check yes` or `check no` a line. It changes nothing that it
   finds: what it can open for writing it does not write, and what it makes it removes. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int can_read(const char *path) {
    struct stat about;
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0) return 0;
    char byte;
    int seen = fstat(fd, &about) == 0 && (S_ISDIR(about.st_mode) || read(fd, &byte, 1) >= 0);
    close(fd);
    return seen;
}

static int can_make(const char *directory) {
    char path[4200];
    snprintf(path, sizeof path, "%s/.probe-%d", directory, getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0) return 0;
    close(fd);
    unlink(path);
    return 1;
}

static int can_write(const char *path) {
    struct stat about;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) return can_make(path);
    int fd = open(path, O_WRONLY);
    if (fd < 0) return 0;
    close(fd);
    return 1;
}

static int can_move(const char *path) {
    char aside[4200];
    snprintf(aside, sizeof aside, "%s.aside", path);
    if (rename(path, aside) != 0) return 0;
    rename(aside, path);
    return 1;
}

static int connects(int family, struct sockaddr *address, socklen_t size) {
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0) return 0;
    int done = connect(fd, address, size) == 0;
    close(fd);
    return done;
}

static int can_reach_tcp(const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connects(AF_INET, (struct sockaddr *)&address, sizeof address);
}

static int can_reach_unix(const char *name, int abstract) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path + abstract, name, sizeof address.sun_path - 2);
    socklen_t size = offsetof(struct sockaddr_un, sun_path) + abstract + strlen(name) + (abstract ? 0 : 1);
    return connects(AF_UNIX, (struct sockaddr *)&address, size);
}

/* The families that a namespace of the network does not hold: they talk to the machine or its hypervisor. */
static int can_open(const char *family) {
    int fd = !strcmp(family, "vsock") ? socket(AF_VSOCK, SOCK_STREAM, 0)
                                      : socket(AF_NETLINK, SOCK_RAW, 9 /* NETLINK_AUDIT */);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static int has_capabilities(void) {
    char line[256];
    int some = 0;
    FILE *status = fopen("/proc/self/status", "r");
    if (!status) return 1;
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "Cap", 3) && strtoull(strchr(line, ':') + 1, NULL, 16)) some = 1;
    fclose(status);
    return some;
}

static int in_child(int (*act)(const char *), const char *argument) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(act(argument) ? 0 : 1);
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int can_remount(const char *path) { return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND, NULL) == 0; }

static int can_make_namespace(const char *unused) {
    (void)unused;
    return unshare(CLONE_NEWUSER) == 0;
}

static int can_make_setuid(const char *directory) {
    char path[4200];
    snprintf(path, sizeof path, "%s/.setuid-%d", directory, getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0) return 0;
    int done = fchmod(fd, 04755) == 0;
    close(fd);
    unlink(path);
    return done;
}

static void print_environment(void) {
    for (char **entry = environ; *entry; entry++) printf("env %.*s\n", (int)strcspn(*entry, "="), *entry);
}

static int check(const char *kind, const char *argument) {
    if (!strcmp(kind, "read")) return can_read(argument);
    if (!strcmp(kind, "write")) return can_write(argument);
    if (!strcmp(kind, "move")) return can_move(argument);
    if (!strcmp(kind, "tcp")) return can_reach_tcp(argument);
    if (!strcmp(kind, "unix")) return can_reach_unix(argument, 0);
    if (!strcmp(kind, "abstract")) return can_reach_unix(argument, 1);
    if (!strcmp(kind, "family")) return can_open(argument);
    if (!strcmp(kind, "signal")) return kill(atoi(argument), 0) == 0;
    if (!strcmp(kind, "remount")) return in_child(can_remount, argument);
    if (!strcmp(kind, "namespace")) return in_child(can_make_namespace, argument);
    if (!strcmp(kind, "setuid")) return can_make_setuid(argument);
    if (!strcmp(kind, "capabilities")) return has_capabilities();
    fprintf(stderr, "unknown check %s\n", kind);
    exit(2);
}

int main(int count, char **arguments) {
    for (int at = 1; at + 1 < count; at += 2)
        printf("%s %s %s\n", arguments[at], arguments[at + 1], check(arguments[at], arguments[at + 1]) ? "yes" : "no");
    print_environment();
    return 0;
}
