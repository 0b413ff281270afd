# The real resolvers of systemd-resolved, and certificates beside /etc/ssl.
resolver /run/systemd/resolve/resolv.conf
certificates ../../ca-certificates/extracted/tls-ca-bundle.pem
leads /etc/mtab /proc/self/mounts
leads /etc/os-release ../usr/lib/os-release
