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
rlimit-fsize 67108864
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
noblacklist /bin
noblacklist /etc
noblacklist /lib
noblacklist /lib32
noblacklist /lib64
noblacklist /libx32
noblacklist /r
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
read-only /r
read-write /w
read-only /w/.Rprofile
read-only /w/.agents
read-only /w/.aider.conf.yml
read-only /w/.amazonq
read-only /w/.aws/config
read-only /w/.bash_aliases
read-only /w/.bash_login
read-only /w/.bash_logout
read-only /w/.bash_profile
read-only /w/.bashrc
read-only /w/.cargo/bin
read-only /w/.cargo/config.toml
read-only /w/.claude
read-only /w/.claude.json
read-only /w/.claude/settings.json
read-only /w/.claude/settings.local.json
read-only /w/.codex
read-only /w/.codex/config.toml
read-only /w/.codex/hooks.json
read-only /w/.config/Code/User
read-only /w/.config/autostart
read-only /w/.config/environment.d
read-only /w/.config/fish
read-only /w/.config/git
read-only /w/.config/nvim
read-only /w/.config/opencode
read-only /w/.config/systemd
read-only /w/.config/zed
read-only /w/.continue
read-only /w/.copilot
read-only /w/.cshrc
read-only /w/.cursor
read-only /w/.cursor/hooks.json
read-only /w/.docker/config.json
read-only /w/.emacs
read-only /w/.emacs.d
read-only /w/.envrc
read-only /w/.gdbinit
read-only /w/.gemini
read-only /w/.gemini/settings.json
read-only /w/.git/branches
read-only /w/.git/commondir
read-only /w/.git/config
read-only /w/.git/config.worktree
read-only /w/.git/gitdir
read-only /w/.git/hooks
read-only /w/.git/info/attributes
read-only /w/.git/objects/info/alternates
read-only /w/.git/objects/info/http-alternates
read-only /w/.git/remotes
read-only /w/.gitconfig
read-only /w/.gitmodules
read-only /w/.gnupg
read-only /w/.husky
read-only /w/.idea
read-only /w/.inputrc
read-only /w/.irbrc
read-only /w/.junie
read-only /w/.kiro
read-only /w/.kshrc
read-only /w/.kube/config
read-only /w/.lldbinit
read-only /w/.local/bin
read-only /w/.local/share/applications
read-only /w/.local/share/systemd
read-only /w/.login
read-only /w/.mcp.json
read-only /w/.npmrc
read-only /w/.opencode
read-only /w/.pam_environment
read-only /w/.profile
read-only /w/.psqlrc
read-only /w/.qwen
read-only /w/.roo
read-only /w/.screenrc
read-only /w/.sqliterc
read-only /w/.ssh
read-only /w/.tcshrc
read-only /w/.tmux.conf
read-only /w/.vim
read-only /w/.vimrc
read-only /w/.vscode/mcp.json
read-only /w/.vscode/settings.json
read-only /w/.vscode/tasks.json
read-only /w/.windsurf
read-only /w/.xinitrc
read-only /w/.xprofile
read-only /w/.xsession
read-only /w/.xsessionrc
read-only /w/.zed
read-only /w/.zlogin
read-only /w/.zlogout
read-only /w/.zprofile
read-only /w/.zshenv
read-only /w/.zshrc
read-only /w/opencode.json
read-only /w/opencode.jsonc
