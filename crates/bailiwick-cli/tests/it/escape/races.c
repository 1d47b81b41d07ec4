// Races against the judge of names: everything that a call names is changed while the call waits.
// races DIR SECONDS [KIND]: DIR is writable, and `.mcp.json` must never be in it, `.git/config` never change.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char *top;
static volatile int over;
static char shared[64] = "harmless";
static int swapped = -1, first, second;

static void flip(const char *a, const char *b) { // whole words, so that no half of a name is read as another
	char word[64] = { 0 };
	static unsigned n;
	strcpy(word, n++ & 1 ? a : b);
	for (int i = 0; i < 2; i++) ((volatile long *)shared)[i] = ((long *)word)[i];
}
static void *flip_names(void *x) { (void)x; while (!over) flip("harmless", ".mcp.json"); return 0; }
static void *flip_git(void *x) { (void)x; while (!over) flip(".git/indeX", ".git/config"); return 0; }
static void *flip_directory(void *x) { (void)x; while (!over) { dup2(first, swapped); dup2(second, swapped); } return 0; }
static void *flip_link(void *x) {
	(void)x;
	while (!over) {
		unlink("l2"), symlink(".git/indeX", "l2"), rename("l2", "l");
		unlink("l2"), symlink(".git/config", "l2"), rename("l2", "l");
	}
	return 0;
}
static void *flip_link_to_new(void *x) {
	(void)x;
	while (!over) {
		unlink("m2"), symlink("harmless", "m2"), rename("m2", "m");
		unlink("m2"), symlink(".mcp.json", "m2"), rename("m2", "m");
	}
	return 0;
}
static void *flip_here(void *x) { (void)x; while (!over) { if (chdir(top)) break; if (chdir("sub")) break; } return 0; }
static void *swap_directories(void *x) {
	(void)x;
	while (!over) syscall(SYS_renameat2, AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE);
	return 0;
}
static void *move_to_the_way(void *x) { // a directory that is filled while it becomes `.vscode`
	(void)x;
	while (!over) { mkdir("v", 0777); if (!rename("v", ".vscode")) rename(".vscode", "v"); unlink("v/tasks.json"), rmdir("v"); }
	return 0;
}
static void use(int fd) { if (fd >= 0) { if (write(fd, "x", 1) < 0) {} close(fd); } }

enum { OPEN, OPEN_EXCL, MAKE, NODE, LINK, SYMLINK, RENAME, EXCHANGE, TRUNCATE, MODE, BY_FD, BY_LINK, BY_NEW_LINK, HERE, BETWEEN,
	ON_THE_WAY, MOVED_ON_THE_WAY, GIT_OPEN, GIT_UNLINK, KILLED, UNNAMED, KINDS };
static const char *names[] = { "open", "open-exclusive", "mkdir", "mknod", "link", "symlink", "rename", "exchange", "truncate", "mode",
	"by-directory", "by-link", "by-new-link", "by-cwd", "between-directories", "on-the-way", "moved-on-the-way", "git-open", "git-unlink", "killed", "unnamed" };

static void once(int kind) {
	int fd;
	switch (kind) {
	case OPEN: use(open(shared, O_CREAT | O_WRONLY, 0666)); unlink("harmless"); break;
	case OPEN_EXCL: use(open(shared, O_CREAT | O_EXCL | O_RDWR, 0666)); unlink("harmless"); break;
	case MAKE: mkdir(shared, 0777); rmdir("harmless"); break;
	case NODE: mknod(shared, S_IFREG | 0666, 0); unlink("harmless"); break;
	case LINK: if (link("own", shared)) {} unlink("harmless"); break;
	case SYMLINK: if (symlink("own", shared)) {} unlink("harmless"); break;
	case RENAME: use(open("t", O_CREAT | O_WRONLY, 0666)); rename("t", shared); break;
	case EXCHANGE: syscall(SYS_renameat2, AT_FDCWD, "own2", AT_FDCWD, shared, RENAME_EXCHANGE); break;
	case TRUNCATE: if (truncate(shared, 0)) {} break;
	case MODE: chmod(shared, 0); break;
	case BY_FD: use(openat(swapped, "config", O_CREAT | O_WRONLY, 0666)); break;
	case BY_LINK: use(open("l", O_WRONLY)); break;
	case BY_NEW_LINK: use(open("m", O_CREAT | O_WRONLY, 0666)); unlink("harmless"); break;
	case HERE: use(open(".mcp.json", O_CREAT | O_WRONLY, 0666)); break; // where it is `sub`, that is allowed
	case BETWEEN: use(open("a/config", O_CREAT | O_WRONLY, 0666)); break;
	case ON_THE_WAY: use(open("v/tasks.json", O_CREAT | O_WRONLY, 0666)); break;
	case MOVED_ON_THE_WAY: use(open("t", O_CREAT | O_WRONLY, 0666)); rename("t", "v/tasks.json"); break;
	case GIT_OPEN: use(open(shared, O_WRONLY | O_TRUNC)); break;
	case GIT_UNLINK: unlink(shared); use(open(".git/indeX", O_CREAT | O_WRONLY, 0666)); break;
	case KILLED:
		if (!(fd = fork())) { for (;;) once(OPEN); }
		usleep(200), kill(fd, SIGKILL), waitpid(fd, 0, 0);
		break;
	case UNNAMED:
		if ((fd = open(".", O_TMPFILE | O_RDWR, 0666)) >= 0) {
			char own[64];
			snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
			if (linkat(AT_FDCWD, own, AT_FDCWD, shared, AT_SYMLINK_FOLLOW)) {}
			close(fd), unlink("harmless");
		}
		break;
	}
}
static void *other(int kind, void *(**second_thread)(void *)) {
	*second_thread = 0;
	switch (kind) {
	case BY_FD: return flip_directory;
	case BY_LINK: return flip_link;
	case BY_NEW_LINK: return flip_link_to_new;
	case HERE: return flip_here;
	case BETWEEN: return swap_directories;
	case ON_THE_WAY: case MOVED_ON_THE_WAY: return move_to_the_way;
	case TRUNCATE: case MODE: case GIT_OPEN: case GIT_UNLINK: return flip_git;
	default: return flip_names;
	}
}
int main(int argc, char **argv) {
	if (argc < 3 || chdir(argv[1])) return 2;
	top = argv[1];
	const char *only = argc > 3 ? argv[3] : 0;
	double seconds = atof(argv[2]) / (only ? 1 : KINDS);
	mkdir("sub", 0777), mkdir("a", 0777), mkdir("b", 0777);
	use(open("own", O_CREAT | O_WRONLY, 0666)), use(open("own2", O_CREAT | O_WRONLY, 0666)), use(open(".git/indeX", O_CREAT | O_WRONLY, 0666));
	first = open("sub", O_PATH), second = open(".git", O_PATH), swapped = dup(first);
	for (int kind = 0; kind < KINDS; kind++) {
		if (only && strcmp(only, names[kind])) continue;
		void *(*more)(void *), *(*body)(void *) = other(kind, &more);
		pthread_t thread;
		struct timespec start, now;
		unsigned long rounds = 0;
		over = 0;
		clock_gettime(CLOCK_MONOTONIC, &start);
		if (pthread_create(&thread, 0, body, 0)) return 3;
		do { once(kind), rounds++, clock_gettime(CLOCK_MONOTONIC, &now); }
		while (now.tv_sec - start.tv_sec + (now.tv_nsec - start.tv_nsec) / 1e9 < seconds);
		over = 1;
		pthread_join(thread, 0);
		if (chdir(top)) return 4;
		printf("%s %s\n", names[kind], rounds > 3 ? "tried" : "hardly tried");
	}
	return 0;
}
