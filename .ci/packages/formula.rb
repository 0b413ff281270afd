# Filled in by .ci/release of sandbox-sidecar @VERSION@.
class SandboxSidecar < Formula
  desc "Confines editors' terminals and agents' tools without a daemon or root"
  homepage "https://github.com/sandbox-sidecar/sandbox-sidecar"
  version "@NUMBER@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "@URL@/sandbox-sidecar_@VERSION@_darwin_arm64.tar.gz"
      sha256 "@SHA256_darwin_arm64@"
    end
    on_intel do
      url "@URL@/sandbox-sidecar_@VERSION@_darwin_amd64.tar.gz"
      sha256 "@SHA256_darwin_amd64@"
    end
  end

  on_linux do
    on_arm do
      url "@URL@/sandbox-sidecar_@VERSION@_linux_arm64.tar.gz"
      sha256 "@SHA256_linux_arm64@"
    end
    on_intel do
      url "@URL@/sandbox-sidecar_@VERSION@_linux_amd64.tar.gz"
      sha256 "@SHA256_linux_amd64@"
    end
  end

  def install
    bin.install "sandbox-sidecar", "sandbox-sidecar-mcp", "sandbox-sidecar-credentials"
    man1.install "share/man/man1/sandbox-sidecar.1"
    bash_completion.install "share/bash-completion/completions/sandbox-sidecar"
    zsh_completion.install "share/zsh/site-functions/_sandbox-sidecar"
    fish_completion.install "share/fish/vendor_completions.d/sandbox-sidecar.fish"
  end

  test do
    assert_match "@VERSION@", shell_output("#{bin}/sandbox-sidecar version")
  end
end
