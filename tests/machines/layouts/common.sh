# What each layout begins with. $work is an empty directory for what is mounted,
# $home the home directory of the world, $link what /etc/resolv.conf leads to.
set -e
mount --make-rprivate /
mount -t tmpfs none "$work"
over() { # over DIR: changes of DIR are this layout's alone
	mkdir -p "$work$1/upper" "$work$1/work"
	mount -t overlay -o "lowerdir=$1,upperdir=$work$1/upper,workdir=$work$1/work" none "$1"
}
over /etc
over /var/lib
mount -t tmpfs none /run
mount -t tmpfs none /mnt
leads() { # leads LINK TARGET [FILE]: makes a symlink, and what it leads to a copy of FILE
	rm -rf "$1"
	mkdir -p "$(dirname "$1")"
	ln -s "$2" "$1"
	target=$(realpath -m "$(dirname "$1")/$2")
	case $2 in /*) target=$2 ;; esac
	mkdir -p "$(dirname "$target")"
	if [ -n "${3:-}" ]; then cp -r "$3" "$target"; fi
}
resolver() { # resolver LINK: /etc/resolv.conf is a symlink. Its server refuses at once.
	leads /etc/resolv.conf "$1"
	echo "nameserver 127.0.0.53" >"$target"
	chmod a+r "$target"
}
certificates() { # certificates TARGET: the usual file of certificates is a symlink
	cp -L /etc/ssl/certs/ca-certificates.crt "$work/ca.pem" 2>/dev/null || : >"$work/ca.pem"
	leads /etc/ssl/certs/ca-certificates.crt "$1" "$work/ca.pem"
}
