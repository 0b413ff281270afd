# The home is on another file system, a proxy has certificates of the company, and
# dotfiles are symlinks.
resolver ../run/resolvconf/resolv.conf
over /usr/local
certificates /usr/local/share/ca-certificates/corp/all.pem
mkdir -p "$work/home" && cp -a "$home/." "$work/home/"
mount --bind "$work/home" "$home"
mkdir -p "$home/dotfiles"
if [ -e "$home/.gitconfig" ]; then mv "$home/.gitconfig" "$home/dotfiles/gitconfig" && ln -s dotfiles/gitconfig "$home/.gitconfig"; fi
cp /usr/local/share/ca-certificates/corp/all.pem "$home/dotfiles/ca.pem" 2>/dev/null || :
SSL_CERT_FILE=$home/dotfiles/ca.pem
HTTPS_PROXY=http://proxy.corp.example:3128
export SSL_CERT_FILE HTTPS_PROXY
