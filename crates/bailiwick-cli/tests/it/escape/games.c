// Games with names: two processes rename, exchange, link, make and remove the same few entries at random, protected ones,
// directories on the way to them and harmless ones. games DIR ROUNDS SEED: DIR is writable and holds a repository.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *names[] = {
	"a", "a/tasks.json", "a/config", "a/n", "a/n/config", "b", "b/tasks.json", "b/n", "c", "link",
	".vscode", ".vscode/tasks.json", ".vscode/free", ".mcp.json", ".envrc",
	".git/config", ".git/commondir", ".git/hooks", ".git/hooks/pre-commit", ".git/x", ".git/x/n", ".git/x/n/config",
	".git/modules", ".git/modules/n", ".git/modules/n/config", ".git/modules/n/hooks", ".git/modules/n/HEAD",
	"sub", "sub/.git", "sub/HEAD", "sub/objects", "sub/refs", "sub/config",
};
#define NAMES (sizeof names / sizeof *names)

static unsigned long state;
static unsigned long next(unsigned long most) {
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return state % most;
}
static int one(void) {
	const char *from = names[next(NAMES)], *to = names[next(NAMES)];
	int fd;
	switch (next(11)) {
	case 0: case 1: return rename(from, to);
	case 2: return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE);
	case 3: return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
	case 4: return link(from, to);
	case 5: return symlink(from, to);
	case 6: case 7: return mkdir(to, 0777);
	case 8: return unlink(from);
	case 9: return rmdir(from);
	default:
		if ((fd = open(to, O_CREAT | O_WRONLY, 0666)) < 0) return -1;
		if (write(fd, "x", 1) < 0) {}
		return close(fd);
	}
}
int main(int argc, char **argv) {
	if (argc < 4 || chdir(argv[1])) return 2;
	unsigned long done[2] = { 0, 0 }, rounds = strtoul(argv[2], 0, 10) / 2, seed = strtoul(argv[3], 0, 10);
	pid_t other = fork();
	state = seed * 2 + (other == 0) + 1;
	for (unsigned long round = 0; round < rounds; round++) done[one() == 0]++;
	if (other == 0) _exit(done[1] > rounds / 100 ? 0 : 1);
	int status;
	waitpid(other, &status, 0);
	// Where nothing worked, nothing was tried.
	printf("%lu worked, %lu did not\n", done[1], done[0]);
	return done[1] > rounds / 100 && status == 0 ? 0 : 1;
}
