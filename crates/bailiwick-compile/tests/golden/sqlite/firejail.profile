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
whitelist /workspace/data
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
noblacklist /workspace
blacklist /*
blacklist /usr/*
blacklist /usr/local/*
read-only /
read-only /usr
read-only /etc
read-write /workspace/data
read-only /workspace/data/.Rprofile
read-only /workspace/data/.agents
read-only /workspace/data/.aider.conf.yml
read-only /workspace/data/.amazonq
read-only /workspace/data/.aws/config
read-only /workspace/data/.bash_aliases
read-only /workspace/data/.bash_login
read-only /workspace/data/.bash_logout
read-only /workspace/data/.bash_profile
read-only /workspace/data/.bashrc
read-only /workspace/data/.cargo/bin
read-only /workspace/data/.cargo/config.toml
read-only /workspace/data/.claude
read-only /workspace/data/.claude.json
read-only /workspace/data/.claude/settings.json
read-only /workspace/data/.claude/settings.local.json
read-only /workspace/data/.codex
read-only /workspace/data/.codex/config.toml
read-only /workspace/data/.codex/hooks.json
read-only /workspace/data/.config/Code/User
read-only /workspace/data/.config/autostart
read-only /workspace/data/.config/environment.d
read-only /workspace/data/.config/fish
read-only /workspace/data/.config/git
read-only /workspace/data/.config/nvim
read-only /workspace/data/.config/opencode
read-only /workspace/data/.config/systemd
read-only /workspace/data/.config/zed
read-only /workspace/data/.continue
read-only /workspace/data/.copilot
read-only /workspace/data/.cshrc
read-only /workspace/data/.cursor
read-only /workspace/data/.cursor/hooks.json
read-only /workspace/data/.docker/config.json
read-only /workspace/data/.emacs
read-only /workspace/data/.emacs.d
read-only /workspace/data/.envrc
read-only /workspace/data/.gdbinit
read-only /workspace/data/.gemini
read-only /workspace/data/.gemini/settings.json
read-only /workspace/data/.git/branches
read-only /workspace/data/.git/commondir
read-only /workspace/data/.git/config
read-only /workspace/data/.git/config.worktree
read-only /workspace/data/.git/gitdir
read-only /workspace/data/.git/hooks
read-only /workspace/data/.git/info/attributes
read-only /workspace/data/.git/objects/info/alternates
read-only /workspace/data/.git/objects/info/http-alternates
read-only /workspace/data/.git/remotes
read-only /workspace/data/.gitconfig
read-only /workspace/data/.gitmodules
read-only /workspace/data/.gnupg
read-only /workspace/data/.husky
read-only /workspace/data/.idea
read-only /workspace/data/.inputrc
read-only /workspace/data/.irbrc
read-only /workspace/data/.junie
read-only /workspace/data/.kiro
read-only /workspace/data/.kshrc
read-only /workspace/data/.kube/config
read-only /workspace/data/.lldbinit
read-only /workspace/data/.local/bin
read-only /workspace/data/.local/share/applications
read-only /workspace/data/.local/share/systemd
read-only /workspace/data/.login
read-only /workspace/data/.mcp.json
read-only /workspace/data/.npmrc
read-only /workspace/data/.opencode
read-only /workspace/data/.pam_environment
read-only /workspace/data/.profile
read-only /workspace/data/.psqlrc
read-only /workspace/data/.qwen
read-only /workspace/data/.roo
read-only /workspace/data/.screenrc
read-only /workspace/data/.sqliterc
read-only /workspace/data/.ssh
read-only /workspace/data/.tcshrc
read-only /workspace/data/.tmux.conf
read-only /workspace/data/.vim
read-only /workspace/data/.vimrc
read-only /workspace/data/.vscode/mcp.json
read-only /workspace/data/.vscode/settings.json
read-only /workspace/data/.vscode/tasks.json
read-only /workspace/data/.windsurf
read-only /workspace/data/.xinitrc
read-only /workspace/data/.xprofile
read-only /workspace/data/.xsession
read-only /workspace/data/.xsessionrc
read-only /workspace/data/.zed
read-only /workspace/data/.zlogin
read-only /workspace/data/.zlogout
read-only /workspace/data/.zprofile
read-only /workspace/data/.zshenv
read-only /workspace/data/.zshrc
read-only /workspace/data/opencode.json
read-only /workspace/data/opencode.jsonc
