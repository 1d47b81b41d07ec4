deterministic-exit-code
deterministic-shutdown
caps.drop all
nonewprivs
noroot
nogroups
net none
ipc-namespace
machine-id
private-dev
nosound
no3d
nodvd
notv
nou2f
novideo
noinput
dbus-user none
seccomp
restrict-namespaces
noblacklist /dev
noblacklist /proc
whitelist /run/.bailiwick
protocol inet,inet6
dbus-system none
whitelist /tmp/.bailiwick
whitelist /tmp/x
blacklist /sys
read-only /
read-only /usr
read-only /etc
read-write /tmp/x
read-only /tmp/x/.git/hooks
read-only /tmp/x/.git/config
read-only /tmp/x/.git/config.worktree
read-only /tmp/x/.gitmodules
read-only /tmp/x/.mcp.json
read-only /tmp/x/.agents
read-only /tmp/x/.claude
read-only /tmp/x/.cursor
read-only /tmp/x/.codex
read-only /tmp/x/.gemini
read-only /tmp/x/.vscode/tasks.json
read-only /tmp/x/.vscode/settings.json
read-only /tmp/x/.vscode/mcp.json
read-only /tmp/x/.idea
read-only /tmp/x/.envrc
read-only /tmp/x/.husky
read-only /tmp/x/.bashrc
read-only /tmp/x/.bash_profile
read-only /tmp/x/.bash_login
read-only /tmp/x/.bash_logout
read-only /tmp/x/.profile
read-only /tmp/x/.zshrc
read-only /tmp/x/.zshenv
read-only /tmp/x/.zprofile
read-only /tmp/x/.zlogin
read-only /tmp/x/.gitconfig
read-only /tmp/x/.npmrc
read-only /tmp/x/.ssh
