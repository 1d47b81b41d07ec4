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
whitelist /home/user/.local/share/mcp-memory
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
blacklist /*
blacklist /usr/*
blacklist /usr/local/*
read-only /
read-only /usr
read-only /etc
read-write /home/user/.local/share/mcp-memory
read-only /home/user/.local/share/mcp-memory/.Rprofile
read-only /home/user/.local/share/mcp-memory/.agents
read-only /home/user/.local/share/mcp-memory/.aider.conf.yml
read-only /home/user/.local/share/mcp-memory/.amazonq
read-only /home/user/.local/share/mcp-memory/.aws/config
read-only /home/user/.local/share/mcp-memory/.bash_aliases
read-only /home/user/.local/share/mcp-memory/.bash_login
read-only /home/user/.local/share/mcp-memory/.bash_logout
read-only /home/user/.local/share/mcp-memory/.bash_profile
read-only /home/user/.local/share/mcp-memory/.bashrc
read-only /home/user/.local/share/mcp-memory/.cargo/bin
read-only /home/user/.local/share/mcp-memory/.cargo/config.toml
read-only /home/user/.local/share/mcp-memory/.claude
read-only /home/user/.local/share/mcp-memory/.claude.json
read-only /home/user/.local/share/mcp-memory/.claude/settings.json
read-only /home/user/.local/share/mcp-memory/.claude/settings.local.json
read-only /home/user/.local/share/mcp-memory/.codex
read-only /home/user/.local/share/mcp-memory/.codex/config.toml
read-only /home/user/.local/share/mcp-memory/.codex/hooks.json
read-only /home/user/.local/share/mcp-memory/.config/Code/User
read-only /home/user/.local/share/mcp-memory/.config/autostart
read-only /home/user/.local/share/mcp-memory/.config/environment.d
read-only /home/user/.local/share/mcp-memory/.config/fish
read-only /home/user/.local/share/mcp-memory/.config/git
read-only /home/user/.local/share/mcp-memory/.config/nvim
read-only /home/user/.local/share/mcp-memory/.config/opencode
read-only /home/user/.local/share/mcp-memory/.config/systemd
read-only /home/user/.local/share/mcp-memory/.config/zed
read-only /home/user/.local/share/mcp-memory/.continue
read-only /home/user/.local/share/mcp-memory/.copilot
read-only /home/user/.local/share/mcp-memory/.cshrc
read-only /home/user/.local/share/mcp-memory/.cursor
read-only /home/user/.local/share/mcp-memory/.cursor/hooks.json
read-only /home/user/.local/share/mcp-memory/.docker/config.json
read-only /home/user/.local/share/mcp-memory/.emacs
read-only /home/user/.local/share/mcp-memory/.emacs.d
read-only /home/user/.local/share/mcp-memory/.envrc
read-only /home/user/.local/share/mcp-memory/.gdbinit
read-only /home/user/.local/share/mcp-memory/.gemini
read-only /home/user/.local/share/mcp-memory/.gemini/settings.json
read-only /home/user/.local/share/mcp-memory/.git/branches
read-only /home/user/.local/share/mcp-memory/.git/commondir
read-only /home/user/.local/share/mcp-memory/.git/config
read-only /home/user/.local/share/mcp-memory/.git/config.worktree
read-only /home/user/.local/share/mcp-memory/.git/gitdir
read-only /home/user/.local/share/mcp-memory/.git/hooks
read-only /home/user/.local/share/mcp-memory/.git/info/attributes
read-only /home/user/.local/share/mcp-memory/.git/objects/info/alternates
read-only /home/user/.local/share/mcp-memory/.git/objects/info/http-alternates
read-only /home/user/.local/share/mcp-memory/.git/remotes
read-only /home/user/.local/share/mcp-memory/.gitconfig
read-only /home/user/.local/share/mcp-memory/.gitmodules
read-only /home/user/.local/share/mcp-memory/.gnupg
read-only /home/user/.local/share/mcp-memory/.husky
read-only /home/user/.local/share/mcp-memory/.idea
read-only /home/user/.local/share/mcp-memory/.inputrc
read-only /home/user/.local/share/mcp-memory/.irbrc
read-only /home/user/.local/share/mcp-memory/.junie
read-only /home/user/.local/share/mcp-memory/.kiro
read-only /home/user/.local/share/mcp-memory/.kshrc
read-only /home/user/.local/share/mcp-memory/.kube/config
read-only /home/user/.local/share/mcp-memory/.lldbinit
read-only /home/user/.local/share/mcp-memory/.local/bin
read-only /home/user/.local/share/mcp-memory/.local/share/applications
read-only /home/user/.local/share/mcp-memory/.local/share/systemd
read-only /home/user/.local/share/mcp-memory/.login
read-only /home/user/.local/share/mcp-memory/.mcp.json
read-only /home/user/.local/share/mcp-memory/.npmrc
read-only /home/user/.local/share/mcp-memory/.opencode
read-only /home/user/.local/share/mcp-memory/.pam_environment
read-only /home/user/.local/share/mcp-memory/.profile
read-only /home/user/.local/share/mcp-memory/.psqlrc
read-only /home/user/.local/share/mcp-memory/.qwen
read-only /home/user/.local/share/mcp-memory/.roo
read-only /home/user/.local/share/mcp-memory/.screenrc
read-only /home/user/.local/share/mcp-memory/.sqliterc
read-only /home/user/.local/share/mcp-memory/.ssh
read-only /home/user/.local/share/mcp-memory/.tcshrc
read-only /home/user/.local/share/mcp-memory/.tmux.conf
read-only /home/user/.local/share/mcp-memory/.vim
read-only /home/user/.local/share/mcp-memory/.vimrc
read-only /home/user/.local/share/mcp-memory/.vscode/mcp.json
read-only /home/user/.local/share/mcp-memory/.vscode/settings.json
read-only /home/user/.local/share/mcp-memory/.vscode/tasks.json
read-only /home/user/.local/share/mcp-memory/.windsurf
read-only /home/user/.local/share/mcp-memory/.xinitrc
read-only /home/user/.local/share/mcp-memory/.xprofile
read-only /home/user/.local/share/mcp-memory/.xsession
read-only /home/user/.local/share/mcp-memory/.xsessionrc
read-only /home/user/.local/share/mcp-memory/.zed
read-only /home/user/.local/share/mcp-memory/.zlogin
read-only /home/user/.local/share/mcp-memory/.zlogout
read-only /home/user/.local/share/mcp-memory/.zprofile
read-only /home/user/.local/share/mcp-memory/.zshenv
read-only /home/user/.local/share/mcp-memory/.zshrc
read-only /home/user/.local/share/mcp-memory/opencode.json
read-only /home/user/.local/share/mcp-memory/opencode.jsonc
