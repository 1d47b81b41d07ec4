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
whitelist /etc/.bailiwick
whitelist /etc/ld.so.cache
whitelist /etc/ld.so.conf
whitelist /etc/ld.so.conf.d
whitelist /etc/alternatives
whitelist /etc/locale.alias
whitelist /etc/localtime
whitelist /etc/timezone
whitelist /etc/ssl/certs
whitelist /etc/ssl/openssl.cnf
whitelist /etc/ca-certificates
whitelist /etc/pki/tls/certs
whitelist /etc/pki/tls/openssl.cnf
whitelist /etc/pki/ca-trust/extracted
whitelist /etc/protocols
whitelist /etc/services
whitelist /etc/mime.types
whitelist /etc/inputrc
whitelist /etc/terminfo
whitelist /w/a
whitelist /w/z.txt
noblacklist /bin
noblacklist /etc
noblacklist /lib
noblacklist /lib32
noblacklist /lib64
noblacklist /libx32
noblacklist /run
noblacklist /sbin
noblacklist /tmp
noblacklist /usr
noblacklist /usr/bin
noblacklist /usr/lib
noblacklist /usr/lib32
noblacklist /usr/lib64
noblacklist /usr/libexec
noblacklist /usr/libx32
noblacklist /usr/local
noblacklist /usr/local/bin
noblacklist /usr/local/lib
noblacklist /usr/local/sbin
noblacklist /usr/local/share
noblacklist /usr/sbin
noblacklist /usr/share
noblacklist /w
blacklist /*
blacklist /usr/*
blacklist /usr/local/*
read-only /
read-only /usr
read-only /etc
read-only /w/a
read-write /w/z.txt
read-only /w/z.txt/.Rprofile
read-only /w/z.txt/.agents
read-only /w/z.txt/.aider.conf.yml
read-only /w/z.txt/.amazonq
read-only /w/z.txt/.aws/config
read-only /w/z.txt/.bash_aliases
read-only /w/z.txt/.bash_login
read-only /w/z.txt/.bash_logout
read-only /w/z.txt/.bash_profile
read-only /w/z.txt/.bashrc
read-only /w/z.txt/.cargo/bin
read-only /w/z.txt/.cargo/config.toml
read-only /w/z.txt/.claude
read-only /w/z.txt/.claude.json
read-only /w/z.txt/.claude/settings.json
read-only /w/z.txt/.claude/settings.local.json
read-only /w/z.txt/.codex
read-only /w/z.txt/.codex/config.toml
read-only /w/z.txt/.codex/hooks.json
read-only /w/z.txt/.config/Code/User
read-only /w/z.txt/.config/autostart
read-only /w/z.txt/.config/environment.d
read-only /w/z.txt/.config/fish
read-only /w/z.txt/.config/git
read-only /w/z.txt/.config/nvim
read-only /w/z.txt/.config/opencode
read-only /w/z.txt/.config/systemd
read-only /w/z.txt/.config/zed
read-only /w/z.txt/.continue
read-only /w/z.txt/.copilot
read-only /w/z.txt/.cshrc
read-only /w/z.txt/.cursor
read-only /w/z.txt/.cursor/hooks.json
read-only /w/z.txt/.docker/config.json
read-only /w/z.txt/.emacs
read-only /w/z.txt/.emacs.d
read-only /w/z.txt/.envrc
read-only /w/z.txt/.gdbinit
read-only /w/z.txt/.gemini
read-only /w/z.txt/.gemini/settings.json
read-only /w/z.txt/.git/branches
read-only /w/z.txt/.git/commondir
read-only /w/z.txt/.git/config
read-only /w/z.txt/.git/config.worktree
read-only /w/z.txt/.git/gitdir
read-only /w/z.txt/.git/hooks
read-only /w/z.txt/.git/info/attributes
read-only /w/z.txt/.git/objects/info/alternates
read-only /w/z.txt/.git/objects/info/http-alternates
read-only /w/z.txt/.git/remotes
read-only /w/z.txt/.gitconfig
read-only /w/z.txt/.gitmodules
read-only /w/z.txt/.gnupg
read-only /w/z.txt/.husky
read-only /w/z.txt/.idea
read-only /w/z.txt/.inputrc
read-only /w/z.txt/.irbrc
read-only /w/z.txt/.junie
read-only /w/z.txt/.kiro
read-only /w/z.txt/.kshrc
read-only /w/z.txt/.kube/config
read-only /w/z.txt/.lldbinit
read-only /w/z.txt/.local/bin
read-only /w/z.txt/.local/share/applications
read-only /w/z.txt/.local/share/systemd
read-only /w/z.txt/.login
read-only /w/z.txt/.mcp.json
read-only /w/z.txt/.npmrc
read-only /w/z.txt/.opencode
read-only /w/z.txt/.pam_environment
read-only /w/z.txt/.profile
read-only /w/z.txt/.psqlrc
read-only /w/z.txt/.qwen
read-only /w/z.txt/.roo
read-only /w/z.txt/.screenrc
read-only /w/z.txt/.sqliterc
read-only /w/z.txt/.ssh
read-only /w/z.txt/.tcshrc
read-only /w/z.txt/.tmux.conf
read-only /w/z.txt/.vim
read-only /w/z.txt/.vimrc
read-only /w/z.txt/.vscode/mcp.json
read-only /w/z.txt/.vscode/settings.json
read-only /w/z.txt/.vscode/tasks.json
read-only /w/z.txt/.windsurf
read-only /w/z.txt/.xinitrc
read-only /w/z.txt/.xprofile
read-only /w/z.txt/.xsession
read-only /w/z.txt/.xsessionrc
read-only /w/z.txt/.zed
read-only /w/z.txt/.zlogin
read-only /w/z.txt/.zlogout
read-only /w/z.txt/.zprofile
read-only /w/z.txt/.zshenv
read-only /w/z.txt/.zshrc
read-only /w/z.txt/opencode.json
read-only /w/z.txt/opencode.jsonc
