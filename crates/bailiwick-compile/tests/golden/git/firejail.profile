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
whitelist /home/user/.gitconfig
noblacklist /bin
noblacklist /etc
noblacklist /home
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
read-only /home/user/.gitconfig
read-write /workspace
read-only /workspace/.Rprofile
read-only /workspace/.agents
read-only /workspace/.aider.conf.yml
read-only /workspace/.amazonq
read-only /workspace/.aws/config
read-only /workspace/.bash_aliases
read-only /workspace/.bash_login
read-only /workspace/.bash_logout
read-only /workspace/.bash_profile
read-only /workspace/.bashrc
read-only /workspace/.cargo/bin
read-only /workspace/.cargo/config.toml
read-only /workspace/.claude
read-only /workspace/.claude.json
read-only /workspace/.claude/settings.json
read-only /workspace/.claude/settings.local.json
read-only /workspace/.codex
read-only /workspace/.codex/config.toml
read-only /workspace/.codex/hooks.json
read-only /workspace/.config/Code/User
read-only /workspace/.config/autostart
read-only /workspace/.config/environment.d
read-only /workspace/.config/fish
read-only /workspace/.config/git
read-only /workspace/.config/nvim
read-only /workspace/.config/opencode
read-only /workspace/.config/systemd
read-only /workspace/.config/zed
read-only /workspace/.continue
read-only /workspace/.copilot
read-only /workspace/.cshrc
read-only /workspace/.cursor
read-only /workspace/.cursor/hooks.json
read-only /workspace/.docker/config.json
read-only /workspace/.emacs
read-only /workspace/.emacs.d
read-only /workspace/.envrc
read-only /workspace/.gdbinit
read-only /workspace/.gemini
read-only /workspace/.gemini/settings.json
read-only /workspace/.git/branches
read-only /workspace/.git/commondir
read-only /workspace/.git/config
read-only /workspace/.git/config.worktree
read-only /workspace/.git/gitdir
read-only /workspace/.git/hooks
read-only /workspace/.git/info/attributes
read-only /workspace/.git/objects/info/alternates
read-only /workspace/.git/objects/info/http-alternates
read-only /workspace/.git/remotes
read-only /workspace/.gitconfig
read-only /workspace/.gitmodules
read-only /workspace/.gnupg
read-only /workspace/.husky
read-only /workspace/.idea
read-only /workspace/.inputrc
read-only /workspace/.irbrc
read-only /workspace/.junie
read-only /workspace/.kiro
read-only /workspace/.kshrc
read-only /workspace/.kube/config
read-only /workspace/.lldbinit
read-only /workspace/.local/bin
read-only /workspace/.local/share/applications
read-only /workspace/.local/share/systemd
read-only /workspace/.login
read-only /workspace/.mcp.json
read-only /workspace/.npmrc
read-only /workspace/.opencode
read-only /workspace/.pam_environment
read-only /workspace/.profile
read-only /workspace/.psqlrc
read-only /workspace/.qwen
read-only /workspace/.roo
read-only /workspace/.screenrc
read-only /workspace/.sqliterc
read-only /workspace/.ssh
read-only /workspace/.tcshrc
read-only /workspace/.tmux.conf
read-only /workspace/.vim
read-only /workspace/.vimrc
read-only /workspace/.vscode/mcp.json
read-only /workspace/.vscode/settings.json
read-only /workspace/.vscode/tasks.json
read-only /workspace/.windsurf
read-only /workspace/.xinitrc
read-only /workspace/.xprofile
read-only /workspace/.xsession
read-only /workspace/.xsessionrc
read-only /workspace/.zed
read-only /workspace/.zlogin
read-only /workspace/.zlogout
read-only /workspace/.zprofile
read-only /workspace/.zshenv
read-only /workspace/.zshrc
read-only /workspace/opencode.json
read-only /workspace/opencode.jsonc
